//! The event stream: tells open screens that something changed, so that they look again.

use super::page::refuse;
use crate::door::{Door, Limits, stopped};
use axum::Extension;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use control::{Change, ServiceError};
use futures_util::stream;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::time::{Interval, MissedTickBehavior, Sleep, interval, sleep};
use tower_sessions::Session;

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

/// How many event streams there are, all in all and by session.
#[derive(Debug, Default)]
pub struct Streams(Mutex<BTreeMap<String, usize>>);

/// A place among them, given back when it is dropped.
struct Place {
    streams: Arc<Streams>,
    session: String,
}

impl Streams {
    /// A place for one more stream of a session, or the answer to one too many.
    fn enter(self: &Arc<Self>, session: String, limits: &Limits) -> Result<Place, StatusCode> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.values().sum::<usize>() >= limits.streams {
            return Err(StatusCode::SERVICE_UNAVAILABLE);
        }
        let of_session = open.entry(session.clone()).or_default();
        if *of_session >= limits.streams_of_session {
            return Err(StatusCode::TOO_MANY_REQUESTS);
        }
        *of_session += 1;
        Ok(Place {
            streams: Arc::clone(self),
            session,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self
            .streams
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(of_session) = open.get_mut(&self.session) {
            *of_session -= 1;
            if *of_session == 0 {
                open.remove(&self.session);
            }
        }
    }
}

struct Listener {
    door: Door,
    _place: Place,
    changes: broadcast::Receiver<Change>,
    stopping: watch::Receiver<bool>,
    sent: u64,
    pause: Interval,
    age: Pin<Box<Sleep>>,
}

/// `GET /live`: an event `change` for every change, its id the journal's sequence. Whoever is behind hears at once.
pub async fn stream(
    State(door): State<Door>,
    Extension(session): Extension<Session>,
    Query(from): Query<From>,
    headers: HeaderMap,
) -> Response {
    let session = session.id().map(|id| id.to_string()).unwrap_or_default();
    let place = match door.streams.enter(session, &door.limits) {
        Ok(place) => place,
        Err(StatusCode::SERVICE_UNAVAILABLE) => return refuse(ServiceError::Busy),
        Err(status) => return status.into_response(),
    };
    let last = headers
        .get("last-event-id")
        .and_then(|id| id.to_str().ok())
        .and_then(|id| id.parse().ok());
    if !door.control.running() {
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
        _place: place,
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
        let changes = control.changes();
        let door = Door::new(control, stopping.clone(), Limits::default());
        let place = door.streams.enter("a session".to_owned(), &door.limits);
        let listener = Listener {
            sent: 0,
            changes,
            stopping,
            _place: place.expect("a place"),
            door,
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

    #[test]
    fn streams_are_counted_by_session_and_in_all() {
        let streams = Arc::new(Streams::default());
        let limits = Limits {
            streams: 3,
            streams_of_session: 2,
            ..Limits::default()
        };
        let enter = |session: &str| streams.enter(session.to_owned(), &limits);
        let first = enter("a").expect("a place");
        let _second = enter("a").expect("a place");
        assert_eq!(enter("a").err(), Some(StatusCode::TOO_MANY_REQUESTS));
        let _third = enter("b").expect("a place");
        assert_eq!(enter("c").err(), Some(StatusCode::SERVICE_UNAVAILABLE));
        drop(first);
        let _fourth = enter("a").expect("a place that was given back");
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
