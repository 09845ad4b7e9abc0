//! The event stream: tells open screens that something changed, so that they look again.

use super::page::refuse;
use crate::door::{Door, stopped};
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use control::{Change, ServiceError};
use futures_util::stream;
use serde::Deserialize;
use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::time::{Interval, MissedTickBehavior, Sleep, interval, sleep};

/// At most one event in this time, about three a second, to each listener.
const PAUSE: Duration = Duration::from_millis(333);
/// A comment this often, so that nobody between takes the line for dead.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// A stream ends after this time; the browser comes back by itself, and its session is looked at again.
const AGE_MAX: Duration = Duration::from_secs(900);

/// Where a listener that never heard anything begins: the sequence that its page showed.
#[derive(Debug, Deserialize)]
pub struct From {
    after: Option<u64>,
}

struct Listener {
    door: Door,
    changes: broadcast::Receiver<Change>,
    stopping: watch::Receiver<bool>,
    sent: u64,
    pause: Interval,
    age: Pin<Box<Sleep>>,
}

/// `GET /live`: an event `change` for every change, its id the journal's sequence. Whoever is behind hears at once.
pub async fn stream(
    State(door): State<Door>,
    Query(from): Query<From>,
    headers: HeaderMap,
) -> Response {
    let last = headers
        .get("last-event-id")
        .and_then(|id| id.to_str().ok())
        .and_then(|id| id.parse().ok());
    if !door.control.ready() {
        return refuse(ServiceError::Busy);
    }
    // The receiver first: a change between the two is then heard twice rather than missed.
    let changes = door.control.changes();
    let mut pause = interval(PAUSE);
    pause.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let listener = Listener {
        sent: last.or(from.after).unwrap_or_else(|| door.control.seq()),
        changes,
        stopping: door.stopping.clone(),
        door,
        pause,
        age: Box::pin(sleep(AGE_MAX)),
    };
    let events = stream::unfold(listener, |mut listener| async move {
        let event = listener.next().await?;
        Some((Ok::<_, Infallible>(event), listener))
    });
    Sse::new(events)
        .keep_alive(KeepAlive::new().interval(HEARTBEAT))
        .into_response()
}

impl Listener {
    /// The next event; `None` when the stream ends: it is old, the server stops, or nothing changes any more.
    async fn next(&mut self) -> Option<Event> {
        loop {
            let behind = self.door.control.seq() != self.sent;
            let Self {
                door,
                changes,
                stopping,
                pause,
                age,
                ..
            } = self;
            tokio::select! {
                biased;
                () = stopped(stopping) => return None,
                () = age.as_mut() => return None,
                () = door.control.stopped() => return None,
                _ = pause.tick(), if behind => {
                    self.sent = self.door.control.seq();
                    return Some(change(self.sent));
                }
                heard = changes.recv(), if !behind => if heard == Err(RecvError::Closed) {
                    return None;
                },
            }
        }
    }
}

fn change(seq: u64) -> Event {
    let seq = seq.to_string();
    Event::default().event("change").id(seq.clone()).data(seq)
}

#[cfg(test)]
mod tests {
    use super::*;
    use control::{Clock, Control, Demand, Mode, Options, Tuning};
    use futures_util::FutureExt;

    /// The ears of somebody whose page shows an older state, over a demo that stands still.
    async fn listener(age: Duration) -> (Listener, watch::Sender<bool>, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options {
            data: folder.path().to_owned(),
            mode: Mode::Demo {
                seed: 1,
                speed: 1,
                fresh: false,
            },
        };
        let tuning = Tuning {
            history_days: 0,
            demand: Demand::None,
            clock: Some(Clock::held(scheduler::Millis(1_792_476_000_000))),
            ..Tuning::default()
        };
        let control = Control::open_with(options, tuning).await.expect("it opens");
        let (stop, stopping) = watch::channel(false);
        let listener = Listener {
            sent: 0,
            changes: control.changes(),
            stopping: stopping.clone(),
            door: Door::new(control, stopping),
            pause: interval(PAUSE),
            age: Box::pin(sleep(age)),
        };
        (listener, stop, folder)
    }

    #[tokio::test]
    async fn whoever_is_behind_hears_at_once_and_then_nothing_until_a_change() {
        let (mut listener, stop, _folder) = listener(AGE_MAX).await;
        assert!(listener.next().await.is_some());
        assert_eq!(listener.sent, listener.door.control.seq());
        let next = listener.next();
        tokio::pin!(next);
        assert!((&mut next).now_or_never().is_none());
        stop.send_replace(true);
        assert!(next.await.is_none(), "the server stops");
    }

    #[tokio::test]
    async fn a_stream_that_is_never_idle_ends_with_its_age() {
        let (mut listener, _stop, _folder) = listener(Duration::ZERO).await;
        assert!(listener.next().await.is_none());
    }

    #[tokio::test]
    async fn a_stream_ends_when_the_engine_does() {
        let (mut listener, _stop, _folder) = listener(AGE_MAX).await;
        assert!(listener.next().await.is_some());
        listener.door.control.close().await;
        assert!(listener.next().await.is_none());
    }
}
