//! Keeps what is on the screen fresh: hears of changes while the tab is visible, and looks at the same page again.

use leptos::prelude::*;

/// Says nothing while it works, and since when the page is old when it does not. `after` is the journal's sequence number
/// that the page shows.
#[island]
pub fn Live(after: u64) -> impl IntoView {
    let said = RwSignal::new(String::new());
    #[cfg(feature = "hydrate")]
    browser::start(after, said);
    #[cfg(not(feature = "hydrate"))]
    let _ = after;
    view! { <span class="live" role="status">{said}</span> }
}

#[cfg(feature = "hydrate")]
pub(crate) use browser::on_refresh;

#[cfg(feature = "hydrate")]
mod browser {
    use crate::islands::morph::morph;
    use crate::islands::stream::{self, Heard};
    use leptos::prelude::*;
    use std::cell::RefCell;
    use std::time::Duration;
    use wasm_bindgen::prelude::*;
    use wasm_bindgen_futures::{JsFuture, spawn_local};
    use web_sys::{Document, DomParser, Element, Response, SupportedType, VisibilityState};

    /// At most one look in this time: a fast demo clock changes something all the time.
    const BETWEEN_LOOKS: Duration = Duration::from_millis(900);
    /// Until a broken stream makes the page stale.
    const BEFORE_STALE: Duration = Duration::from_secs(5);
    /// Until a closed stream is tried again.
    const BEFORE_RETRY: Duration = Duration::from_secs(3);

    /// Whether a look is under way, and whether another one is wanted after it.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Look {
        Idle,
        Running,
        RunningAgain,
    }

    struct Shared {
        after: u64,
        look: Look,
        lost: bool,
        said: RwSignal<String>,
    }

    thread_local! {
        static SHARED: RefCell<Option<Shared>> = const { RefCell::new(None) };
        static HOOKS: RefCell<Vec<Box<dyn Fn()>>> = const { RefCell::new(Vec::new()) };
    }

    fn with<T>(act: impl FnOnce(&mut Shared) -> T) -> Option<T> {
        SHARED.with_borrow_mut(|shared| shared.as_mut().map(act))
    }

    /// Calls back after each look that renewed the page.
    pub(crate) fn on_refresh(hook: impl Fn() + 'static) {
        HOOKS.with_borrow_mut(|hooks| hooks.push(Box::new(hook)));
    }

    pub(super) fn start(after: u64, said: RwSignal<String>) {
        SHARED.set(Some(Shared {
            after,
            look: Look::Idle,
            lost: false,
            said,
        }));
        connect();
        let changed = Closure::<dyn FnMut()>::new(|| {
            if hidden() {
                stream::close();
            } else {
                connect();
                look();
            }
        });
        let _ = document()
            .add_event_listener_with_callback("visibilitychange", changed.as_ref().unchecked_ref());
        // It lives as long as the page.
        changed.forget();
    }

    fn hidden() -> bool {
        document().visibility_state() == VisibilityState::Hidden
    }

    fn after() -> u64 {
        with(|shared| shared.after).unwrap_or(0)
    }

    fn connect() {
        if !hidden() {
            stream::open(after, heard);
        }
    }

    fn heard(word: Heard) {
        match word {
            Heard::Change(seq) => {
                with(|shared| {
                    shared.after = seq;
                    shared.lost = false;
                });
                look();
            }
            Heard::Open => {
                if with(|shared| std::mem::take(&mut shared.lost)) == Some(true) {
                    look();
                }
            }
            Heard::Broken { refused } => lost(refused),
        }
    }

    /// The stream broke. A browser tries again by itself, unless it was refused; only if that does not help soon is it said.
    fn lost(refused: bool) {
        with(|shared| shared.lost = true);
        set_timeout(
            || {
                if with(|shared| shared.lost) == Some(true) {
                    stale();
                }
            },
            BEFORE_STALE,
        );
        if refused {
            stream::close();
            set_timeout(connect, BEFORE_RETRY);
        }
    }

    /// The page is old from now on: says since when, by the page's own clock.
    fn stale() {
        let as_of = document().get_element_by_id("as-of");
        let as_of = as_of
            .and_then(|time| time.text_content())
            .unwrap_or_default();
        let text = format!("stale since {}", as_of.trim());
        if let Some(said) = with(|shared| {
            shared.lost = true;
            shared.said
        }) {
            said.set(text);
        }
    }

    /// Looks at the page again, now or as soon as the look under way is done.
    fn look() {
        let go = with(|shared| {
            let go = shared.look == Look::Idle;
            shared.look = if go {
                Look::Running
            } else {
                Look::RunningAgain
            };
            go
        });
        if go == Some(true) {
            spawn_local(async {
                match fetch().await {
                    Ok(page) => fresh(&page),
                    Err(_) => stale(),
                }
                set_timeout(next, BETWEEN_LOOKS);
            });
        }
    }

    fn next() {
        let before = with(|shared| std::mem::replace(&mut shared.look, Look::Idle));
        if before == Some(Look::RunningAgain) {
            look();
        }
    }

    async fn fetch() -> Result<Document, JsValue> {
        let href = window().location().href()?;
        let response = JsFuture::from(window().fetch_with_str(&href)).await?;
        let response: Response = response.dyn_into()?;
        // Sent elsewhere (to sign in, say) or refused: this page stays as it is, and says that it is old.
        if !response.ok() || response.redirected() {
            return Err(JsValue::UNDEFINED);
        }
        let text = JsFuture::from(response.text()?).await?;
        let text = text.as_string().unwrap_or_default();
        DomParser::new()?.parse_from_string(&text, SupportedType::TextHtml)
    }

    /// Takes over what changed in the parts of the page that are marked as live.
    fn fresh(page: &Document) {
        let Ok(parts) = document().query_selector_all("[data-live]") else {
            return;
        };
        for old in (0..parts.length()).filter_map(|index| parts.item(index)) {
            let Ok(old) = old.dyn_into::<Element>() else {
                continue;
            };
            let name = old.get_attribute("data-live").unwrap_or_default();
            if let Ok(Some(new)) = page.query_selector(&format!("[data-live=\"{name}\"]")) {
                morph(&old, &new);
            }
        }
        document().set_title(&page.title());
        if let Some(said) = with(|shared| shared.said) {
            said.set(String::new());
        }
        HOOKS.with_borrow(|hooks| hooks.iter().for_each(|hook| hook()));
    }
}
