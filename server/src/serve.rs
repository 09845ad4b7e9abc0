//! Starting and stopping: the address, the services, the doors.

use crate::connections::{self, Doors};
use crate::door::{Door, Limits, caught, stopped};
use crate::{rest, web};
use axum::extract::DefaultBodyLimit;
use axum::http::Request;
use axum::{Router, middleware};
use control::{Control, Mode, OpenError, Options, ServiceError, Tuning};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use thiserror::Error;
use tokio::net::{TcpListener, lookup_host};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tower_http::request_id::{MakeRequestUuid, PropagateRequestIdLayer, SetRequestIdLayer};
use tower_http::trace::TraceLayer;

/// Largest request body.
const BODY_MAX: usize = 1 << 20;
/// How long answers under way may take once the server stops.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);

/// Why it did not start, or did not go on, in one line with the way out.
#[derive(Debug, Error)]
pub enum StartError {
    /// The address does not parse or resolve.
    #[error("{addr} is no address to listen on: write it like 127.0.0.1:3000")]
    Address {
        /// As given.
        addr: String,
    },
    /// The demo signs anybody in.
    #[error(
        "{addr} is not a loopback address, and the demo signs anybody in: use --addr 127.0.0.1:PORT"
    )]
    NotLoopback {
        /// As given.
        addr: String,
    },
    /// Somebody else listens there.
    #[error(
        "{addr} is taken by another program: stop that one, or choose another port with --addr"
    )]
    Taken {
        /// The address.
        addr: SocketAddr,
    },
    /// It cannot be listened on.
    #[error("cannot listen on {addr} ({problem}): choose another address with --addr")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// What the system says.
        problem: io::Error,
    },
    /// The control plane does not open.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The session table cannot be made.
    #[error("the sessions cannot be stored: is the data folder writable?")]
    Sessions(#[source] ServiceError),
    /// It ran, and cannot go on.
    #[error("stopped: {0}")]
    Fault(String),
    /// The system refuses something that always works.
    #[error("the system refuses: {0}")]
    System(#[from] io::Error),
}

/// Runs until SIGTERM or ctrl-c, or until a fault of the store that does not pass.
pub async fn run(addr: &str, options: Options, tuning: Tuning) -> Result<(), StartError> {
    let demo = matches!(options.mode, Mode::Demo { .. });
    let listener = listen(addr, demo).await?;
    let bound = listener.local_addr()?;
    let mut stop = stop_signals()?;
    let control = tokio::select! {
        opened = Control::open_with(options, tuning) => opened?,
        () = stopped(&mut stop) => return Ok(()),
    };
    let limits = Limits::default();
    let doors = Doors {
        open: router(&control, stop.clone(), limits).await?,
        full: rest::full_house(),
        limits,
    };
    announce(bound, demo);
    attend(listener, doors, &control, &stop).await
}

/// Serves until it is told to stop, or until the engine ends by itself, and closes the control plane.
async fn attend(
    listener: TcpListener,
    doors: Doors,
    control: &Control,
    stop: &watch::Receiver<bool>,
) -> Result<(), StartError> {
    let served = connections::serve(listener, doors, end_of(control, stop));
    let deadline = async {
        end_of(control, stop).await;
        tokio::time::sleep(CLOSE_WITHIN).await;
    };
    tokio::select! {
        () = served => {}
        () = deadline => {}
    }
    control.close().await;
    match control.fault() {
        Some(fault) => Err(StartError::Fault(fault.to_owned())),
        None => Ok(()),
    }
}

/// Returns once the server is told to stop, or once the engine has ended by itself.
fn end_of(
    control: &Control,
    stop: &watch::Receiver<bool>,
) -> impl Future<Output = ()> + Send + use<> {
    let (control, mut stop) = (control.clone(), stop.clone());
    async move {
        tokio::select! {
            () = stopped(&mut stop) => {}
            () = control.stopped() => {}
        }
    }
}

fn announce(bound: SocketAddr, demo: bool) {
    if demo {
        println!("Muster is at http://{bound} — sign in as fraud-ml engineer on the first page");
    } else {
        println!("Muster is at http://{bound}");
    }
}

async fn listen(addr: &str, demo: bool) -> Result<TcpListener, StartError> {
    let wrong = || StartError::Address {
        addr: addr.to_owned(),
    };
    let resolved: Vec<SocketAddr> = lookup_host(addr).await.map_err(|_| wrong())?.collect();
    let bind = if demo {
        resolved.iter().find(|addr| addr.ip().is_loopback())
    } else {
        resolved.first()
    };
    let bind = match (bind, resolved.is_empty()) {
        (Some(bind), _) => *bind,
        (None, true) => return Err(wrong()),
        (None, false) => {
            return Err(StartError::NotLoopback {
                addr: addr.to_owned(),
            });
        }
    };
    TcpListener::bind(bind)
        .await
        .map_err(|problem| match problem.kind() {
            io::ErrorKind::AddrInUse => StartError::Taken { addr: bind },
            _ => StartError::Listen {
                addr: bind,
                problem,
            },
        })
}

/// Turns true at SIGTERM or ctrl-c.
fn stop_signals() -> io::Result<watch::Receiver<bool>> {
    let (say, hear) = watch::channel(false);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        say.send_replace(true);
        // A second one does not wait.
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        std::process::exit(130);
    });
    Ok(hear)
}

/// What the log says around everything that a request writes into it. Of the level of errors, so that the id stands beside
/// a cause whatever else is logged.
fn span_of<B>(request: &Request<B>) -> tracing::Span {
    let id = rest::request_id(request.headers());
    let (method, path) = (request.method(), request.uri().path());
    tracing::error_span!("request", id, %method, path)
}

/// All doors, from the outside in: request id, log, headers, panics, files, own names, session, routes.
async fn router(
    control: &Control,
    stopping: watch::Receiver<bool>,
    limits: Limits,
) -> Result<Router, StartError> {
    // Leptos' resources run on this; it is set already when a test starts two servers in one process.
    let _ = any_spawner::Executor::init_tokio();
    let door = Door::new(control.clone(), stopping.clone(), limits);
    let sessions = web::session::layer(control, stopping)
        .await
        .map_err(StartError::Sessions)?;
    let inside = web::router(&door)
        .merge(rest::router(&door))
        .layer(sessions)
        .merge(rest::probes())
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(middleware::from_fn_with_state(
            door.clone(),
            web::own_names_only,
        ))
        .layer(middleware::from_fn(web::files))
        .layer(caught())
        .layer(middleware::from_fn(web::secure))
        .layer(
            TraceLayer::new_for_http()
                .make_span_with(span_of)
                .on_failure(()),
        )
        .layer(PropagateRequestIdLayer::new(rest::REQUEST_ID))
        .layer(SetRequestIdLayer::new(rest::REQUEST_ID, MakeRequestUuid));
    Ok(inside.with_state(door))
}

#[cfg(test)]
pub mod tests;
