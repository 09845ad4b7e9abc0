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
    /// The next event; `None` when the stream ends.
    async fn next(&mut self) -> Option<Event> {
        loop {
            let seq = self.door.control.seq();
            if seq != self.sent {
                let Self {
                    stopping, pause, ..
                } = self;
                tokio::select! {
                    () = stopped(stopping) => return None,
                    _ = pause.tick() => {}
                }
                self.sent = self.door.control.seq();
                return Some(
                    Event::default()
                        .event("change")
                        .id(self.sent.to_string())
                        .data(self.sent.to_string()),
                );
            }
            let Self {
                changes,
                stopping,
                age,
                ..
            } = self;
            tokio::select! {
                () = stopped(stopping) => return None,
                () = age.as_mut() => return None,
                change = changes.recv() => match change {
                    Ok(_) | Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return None,
                },
            }
        }
    }
}
