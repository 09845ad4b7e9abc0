//! One event stream for all tabs of a browser: HTTP/1.1 allows it six connections to a server, and the seventh visible tab
//! hung. The tab that holds a lock has the stream and tells the others on a channel; when it is hidden or closed the next
//! visible one takes over. Without locks (plain HTTP from another machine) each visible tab has its own.

use js_sys::{Function, Object, Promise, Reflect};
use leptos::prelude::window;
use std::cell::RefCell;
use wasm_bindgen::prelude::*;
use web_sys::{AbortController, BroadcastChannel, EventSource, MessageEvent};

/// Name of the lock and of the channel.
const NAME: &str = "muster-live";

/// What is heard of the server, by this tab or from the one that has the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The journal has come this far.
    Change(u64),
    /// The stream is open, for the first time or again.
    Open,
    /// The stream broke; `refused` when the browser does not try again by itself.
    Broken {
        /// It stays closed.
        refused: bool,
    },
}

impl Heard {
    /// As a number on the channel.
    fn to_word(self) -> f64 {
        match self {
            Self::Change(seq) => seq as f64,
            Self::Open => -1.0,
            // Whoever has the stream tries again: the others only know that it is gone.
            Self::Broken { .. } => -2.0,
        }
    }

    fn from_word(word: f64) -> Option<Self> {
        match word {
            -1.0 => Some(Self::Open),
            -2.0 => Some(Self::Broken { refused: false }),
            seq if seq >= 0.0 => Some(Self::Change(seq as u64)),
            _ => None,
        }
    }
}

/// This tab's part in it.
#[derive(Default)]
struct Part {
    /// It waits for the lock, or has it.
    wanted: Option<AbortController>,
    /// It has the lock: calling this gives it back.
    release: Option<Function>,
    source: Option<EventSource>,
    channel: Option<BroadcastChannel>,
}

thread_local! {
    static PART: RefCell<Part> = RefCell::default();
}

/// Wants to hear. `after` says from where on when it is this tab's turn to have the stream.
pub fn open(after: fn() -> u64, heard: fn(Heard)) {
    if PART.with_borrow(|part| part.wanted.is_some() || part.source.is_some()) {
        return;
    }
    listen(heard);
    if take_turn(after, heard).is_none() {
        stream(after(), heard);
    }
}

/// Wants to hear no more: the next tab may have the stream.
pub fn close() {
    let part = PART.take();
    if let Some(source) = part.source {
        source.close();
    }
    if let Some(channel) = part.channel {
        channel.close();
    }
    match (part.release, part.wanted) {
        (Some(release), _) => drop(release.call0(&JsValue::UNDEFINED)),
        (None, Some(wanted)) => wanted.abort(),
        (None, None) => {}
    }
}

/// Hears what the tab with the stream tells.
fn listen(heard: fn(Heard)) {
    let Ok(channel) = BroadcastChannel::new(NAME) else {
        return;
    };
    let told = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
        if let Some(word) = event.data().as_f64().and_then(Heard::from_word) {
            heard(word);
        }
    });
    channel.set_onmessage(Some(told.as_ref().unchecked_ref()));
    // As long as the channel, of which a tab opens a handful.
    told.forget();
    PART.with_borrow_mut(|part| part.channel = Some(channel));
}

/// Waits for the lock and has the stream while it holds it; `None` where there are no locks.
fn take_turn(after: fn() -> u64, heard: fn(Heard)) -> Option<()> {
    let navigator = window().navigator();
    // By name: the typed interface is not settled yet.
    let locks = Reflect::get(&navigator, &"locks".into()).ok()?;
    let request: Function = Reflect::get(&locks, &"request".into())
        .ok()?
        .dyn_into()
        .ok()?;
    let abort = AbortController::new().ok()?;
    let options = Object::new();
    Reflect::set(&options, &"signal".into(), &abort.signal()).ok()?;
    let turn = Closure::once_into_js(move || -> JsValue {
        if PART.with_borrow(|part| part.wanted.is_none()) {
            return JsValue::UNDEFINED;
        }
        stream(after(), heard);
        let until = Promise::new(&mut |resolve, _| {
            PART.with_borrow_mut(|part| part.release = Some(resolve));
        });
        until.into()
    });
    PART.with_borrow_mut(|part| part.wanted = Some(abort));
    let asked = request.call3(&locks, &NAME.into(), &options, &turn).ok();
    if let Some(asked) = asked.and_then(|asked| asked.dyn_into::<Promise>().ok()) {
        // Giving up the wait is no fault.
        let given_up = Closure::<dyn FnMut(JsValue)>::new(|_| {});
        let _ = asked.catch(&given_up);
        given_up.forget();
    }
    Some(())
}

fn stream(after: u64, heard: fn(Heard)) {
    let Ok(source) = EventSource::new(&format!("/live?after={after}")) else {
        return;
    };
    let message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
        if let Ok(seq) = event.last_event_id().parse() {
            tell(Heard::Change(seq), heard);
        }
    });
    for name in ["message", "change"] {
        let _ = source.add_event_listener_with_callback(name, message.as_ref().unchecked_ref());
    }
    let opened = Closure::<dyn FnMut()>::new(move || tell(Heard::Open, heard));
    source.set_onopen(Some(opened.as_ref().unchecked_ref()));
    let failed = Closure::<dyn FnMut()>::new(move || {
        let refused = PART.with_borrow(|part| {
            let state = part.source.as_ref().map(EventSource::ready_state);
            state == Some(EventSource::CLOSED)
        });
        tell(Heard::Broken { refused }, heard);
    });
    source.set_onerror(Some(failed.as_ref().unchecked_ref()));
    // As long as the stream, of which a tab opens a handful.
    message.forget();
    opened.forget();
    failed.forget();
    PART.with_borrow_mut(|part| part.source = Some(source));
}

/// To this tab and to the others.
fn tell(word: Heard, heard: fn(Heard)) {
    PART.with_borrow(|part| {
        if let Some(channel) = &part.channel {
            let _ = channel.post_message(&word.to_word().into());
        }
    });
    heard(word);
}
