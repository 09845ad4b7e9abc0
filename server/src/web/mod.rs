//! The portal's door: pages rendered by Leptos, plain form posts, the event stream.
//!
//! From the outside in: headers on every answer, the browser's files, the session, the cross-site check, the guard that sends to
//! sign-in whoever is not signed in, and then the page. Nothing below the guard asks who is there: it is told.

mod answer;
mod forms;
mod guard;
mod headers;
mod holds;
mod live;
mod page;
mod reclaims;
mod secrets;
pub mod session;
mod settings;

pub use headers::secure;
pub use live::Streams;
pub use secrets::Secrets;

use crate::assets;
use crate::door::{Door, body_in_time, caught};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use tower_http::csrf::CsrfLayer;

/// All routes of the portal. What is no route is the portal's own page for that.
pub fn router(door: &Door) -> Router<Door> {
    let guarded = Router::new()
        .route("/live", get(live::stream))
        .route("/jobs/new", get(page::show).post(forms::submit))
        .route("/jobs/{id}/cancel", post(forms::cancel))
        .route("/jobs/{id}/hold", post(holds::hold_job))
        .route("/jobs/{id}/release", post(holds::release_job))
        .route("/jobs/{id}/suspend", post(holds::suspend_job))
        .route("/jobs/{id}/resume", post(holds::resume_job))
        .route("/holds", get(page::show).post(holds::hold))
        .route("/holds/release", post(holds::release))
        .route("/admin/policies/{name}", post(settings::policy))
        .route("/limits/{team}", post(settings::limits))
        .route("/tokens", get(forms::tokens).post(forms::create_token))
        .route("/tokens/{id}/revoke", post(forms::revoke_token))
        .route("/reclaims/{id}/approve", post(reclaims::approve))
        .route("/reclaims/{id}/decline", post(reclaims::decline))
        .route("/reclaims/{id}/defer", post(reclaims::defer))
        .route("/reclaims/{id}/propose", post(reclaims::propose))
        .route("/bills.csv", get(forms::bills_csv))
        .route("/bills/{team}", get(forms::bill))
        .fallback(page::show)
        .layer(middleware::from_fn_with_state(
            door.clone(),
            guard::signed_in,
        ));
    let open = Router::new()
        .route("/sign-in", get(guard::sign_in_page).post(guard::sign_in))
        .route("/sign-out", post(guard::sign_out));
    #[cfg(test)]
    let open = open.route("/panics", get(crate::serve::tests::panics));
    guarded
        .merge(open)
        .layer(CsrfLayer::new())
        .layer(middleware::from_fn_with_state(door.clone(), body_in_time))
        .layer(caught())
        .layer(middleware::from_fn_with_state(
            door.clone(),
            page::show_refusals,
        ))
}

/// The browser's files, before anything else is asked.
pub async fn files(request: Request, next: Next) -> Response {
    if matches!(*request.method(), Method::GET | Method::HEAD)
        && let Some(file) = assets::asset(
            request.uri().path().trim_start_matches('/'),
            request.headers(),
        )
    {
        return file;
    }
    next.run(request).await
}

/// The demo answers only to names of this machine: a page elsewhere whose name was pointed here is not one of them.
pub async fn own_names_only(State(door): State<Door>, request: Request, next: Next) -> Response {
    if door.control.is_demo() && !guard::is_own_name(request.headers()) {
        return guard::misdirected();
    }
    next.run(request).await
}
