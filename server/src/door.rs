//! What every door shares: the services, the browser's files, and the word to stop.

use crate::assets;
use app::AssetPaths;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use control::Control;
use leptos::prelude::LeptosOptions;
use std::any::Any;
use std::sync::Arc;
use tokio::sync::watch;
use tower_http::catch_panic::CatchPanicLayer;

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
}

impl Door {
    /// Over these services; says on standard error when the browser's files are not in this binary.
    pub fn new(control: Control, stopping: watch::Receiver<bool>) -> Self {
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
        }
    }
}

/// Returns once the server stops (or whoever would say so is gone).
pub async fn stopped(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stop| *stop).await;
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
