//! Connections: how many there may be at once, and how long one may take to say what it wants.

use crate::door::{Limits, stopped};
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutStream;

/// How many above the cap are told so at the same time; what is above that is hung up on.
const TURNED_AWAY_MAX: usize = 64;
/// A pause when the system gives no more connections (no file is left to open): it will again when others have ended.
const PAUSE: Duration = Duration::from_secs(1);
/// The answer to a request whose head does not come to an end.
const TOO_SLOW: &str = "HTTP/1.1 408 Request Timeout\r\nContent-Type: application/problem+json\r\nConnection: close\r\nContent-Length: 117\r\n\r\n\
{\"type\":\"/problems/slow\",\"title\":\"Too slow\",\"status\":408,\"detail\":\"the request's head did not arrive whole in time\"}\n";

/// The doors and what stands before them.
pub struct Doors {
    /// All doors.
    pub open: Router,
    /// What answers those who are too many.
    pub full: Router,
    /// The caps.
    pub limits: Limits,
}

/// Serves until `stop`, and then until the answers under way are out.
pub async fn serve(listener: TcpListener, doors: Doors, stop: impl Future<Output = ()>) {
    let Doors { open, full, limits } = doors;
    // Made once and shared: a bare router is finished anew for each request.
    let (open, full) = (open.with_state::<()>(()), full.with_state::<()>(()));
    let places = Arc::new(Semaphore::new(limits.connections));
    let aside = Arc::new(Semaphore::new(TURNED_AWAY_MAX));
    let (end, ends) = watch::channel(false);
    let mut under_way = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => break,
            Some(_) = under_way.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            // Gone before it was taken: the next one may be there already.
            Err(error) if is_of_the_other_side(&error) => continue,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                tokio::select! {
                    () = &mut stop => break,
                    () = tokio::time::sleep(PAUSE) => continue,
                }
            }
        };
        let (place, router) = match places.clone().try_acquire_owned() {
            Ok(place) => (place, open.clone()),
            Err(_) => match aside.clone().try_acquire_owned() {
                Ok(place) => (place, full.clone()),
                Err(_) => continue,
            },
        };
        under_way.spawn(attend(stream, router, limits, place, ends.clone()));
    }
    end.send_replace(true);
    drop(listener);
    while under_way.join_next().await.is_some() {}
}

/// Not a lack of ours, which a pause may mend.
fn is_of_the_other_side(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
    )
}

/// One connection, to its end.
async fn attend(
    stream: TcpStream,
    router: Router,
    limits: Limits,
    place: OwnedSemaphorePermit,
    mut ends: watch::Receiver<bool>,
) {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(limits.unread_within));
    let io = TokioIo::new(Box::pin(stream));
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_within)
        .serve_connection(io, TowerToHyperService::new(router));
    let ended = tokio::select! {
        ended = &mut connection => Some(ended),
        () = stopped(&mut ends) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            Pin::new(&mut connection).graceful_shutdown();
            (&mut connection).await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
        let parts = connection.into_parts();
        // An idle one that asked for nothing is closed without a word.
        if error.is_timeout() && !parts.read_buf.is_empty() {
            let mut stream = parts.io.into_inner();
            // Whoever has gone meanwhile hears nothing.
            drop(stream.write_all(TOO_SLOW.as_bytes()).await);
            drop(stream.shutdown().await);
        }
    }
    drop(place);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_a_slow_head_says_how_long_it_is() {
        let (head, body) = TOO_SLOW.split_once("\r\n\r\n").expect("head and body");
        assert!(
            head.ends_with(&format!("Content-Length: {}", body.len())),
            "{}",
            body.len()
        );
        let problem: contract::Problem = serde_json::from_str(body).expect("a problem");
        assert_eq!(problem.status, 408);
    }
}
