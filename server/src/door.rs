//! What every door shares: the services, the browser's files, and the word to stop.

use crate::assets;
use crate::web::{Secrets, Streams};
use app::AssetPaths;
use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use control::Control;
use futures_util::{StreamExt, stream};
use leptos::prelude::LeptosOptions;
use std::any::Any;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tower_http::catch_panic::CatchPanicLayer;

/// How much one caller, and all of them, may ask of the server at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once. A process usually may have 1,024 files open; the store and the log need some of them.
    pub connections: usize,
    /// How long a request's head may take, and how long a connection may idle between two. A browser needs one round trip;
    /// one that is sent letter by letter would hold its place for hours.
    pub head_within: Duration,
    /// How long a body may take: 1 MiB at 35 kB a second.
    pub body_within: Duration,
    /// How long a caller may read nothing of its answer: a connection that is never read holds its place for ever.
    pub unread_within: Duration,
    /// Event streams at once: each is a connection that stays, and half of them are left for questions.
    pub streams: usize,
    /// Event streams of one session: a browser opens at most six connections to one server, and a person has two browsers.
    pub streams_of_session: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 768,
            head_within: Duration::from_secs(15),
            body_within: Duration::from_secs(30),
            unread_within: Duration::from_secs(30),
            streams: 384,
            streams_of_session: 12,
        }
    }
}

/// Shared by all handlers; cheap to clone.
#[derive(Clone)]
pub struct Door {
    /// The services.
    pub control: Control,
    /// Where the browser's files are.
    pub site: Arc<AssetPaths>,
    /// The same for Leptos.
    pub options: LeptosOptions,
    /// Turns true when the server stops: long answers end then.
    pub stopping: watch::Receiver<bool>,
    /// How much may be asked at once.
    pub limits: Limits,
    /// Who listens for changes.
    pub streams: Arc<Streams>,
    /// Secrets that wait for their page.
    pub secrets: Secrets,
}

impl Door {
    /// Over these services; says on standard error when the browser's files are not in this binary.
    pub fn new(control: Control, stopping: watch::Receiver<bool>, limits: Limits) -> Self {
        let site = match assets::manifest() {
            Some(manifest) => AssetPaths {
                css: manifest.style,
                font: manifest.font,
                chart: format!("/{}/chart.js", manifest.pkg),
                pkg: manifest.pkg,
                output_name: manifest.output_name,
            },
            None => {
                eprintln!(
                    "This binary has no styles and scripts inside: run `cargo bundle` and build it again."
                );
                AssetPaths::default()
            }
        };
        let options = LeptosOptions::builder()
            .output_name(site.output_name.as_str())
            .site_pkg_dir(site.pkg.as_str())
            .build();
        Self {
            control,
            site: Arc::new(site),
            options,
            stopping,
            limits,
            streams: Arc::default(),
            secrets: Secrets::default(),
        }
    }
}

/// Returns once the server stops (or whoever would say so is gone).
pub async fn stopped(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stop| *stop).await;
}

/// Gives a request's body so much time, and answers with a bare 408 when it is over. It lies where [`caught`] does.
pub async fn body_in_time(State(door): State<Door>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    if body.is_end_stream() {
        return next.run(Request::from_parts(parts, body)).await;
    }
    let late = Arc::new(AtomicBool::new(false));
    let reading = (
        body.into_data_stream(),
        Box::pin(tokio::time::sleep(door.limits.body_within)),
        late.clone(),
    );
    let pieces = stream::unfold(reading, |(mut body, mut end, late)| async move {
        let piece = tokio::select! {
            piece = body.next() => piece?.map_err(io::Error::other),
            () = &mut end => {
                late.store(true, Ordering::Release);
                Err(io::ErrorKind::TimedOut.into())
            }
        };
        Some((piece, (body, end, late)))
    });
    let response = next
        .run(Request::from_parts(parts, Body::from_stream(pieces)))
        .await;
    if late.load(Ordering::Acquire) {
        return StatusCode::REQUEST_TIMEOUT.into_response();
    }
    response
}

/// Makes a bare 500 of a panic. It lies inside of what makes a problem or a page of that, and of the headers.
pub fn caught() -> CatchPanicLayer<fn(Panic) -> Response> {
    CatchPanicLayer::custom(on_panic)
}

/// What a panic carries.
type Panic = Box<dyn Any + Send>;

fn on_panic(panic: Panic) -> Response {
    let said = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    let cause = said.unwrap_or("a panic without words");
    tracing::error!(cause, "a request panicked");
    StatusCode::INTERNAL_SERVER_ERROR.into_response()
}
