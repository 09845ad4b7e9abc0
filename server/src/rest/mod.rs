//! `/api/v1`: each call identifies the caller, makes the call, answers.
//!
//! Every way out is a problem in `application/problem+json`; the document at `/api/v1/openapi.json` lists all routes, and the
//! authorisation table in the tests is made from it, so that a route without a row there fails.

mod bills;
mod caller;
mod fleet;
mod holds;
mod input;
mod jobs;
mod problem;
mod reclaims;
mod settings;

pub use bills::csv_answer;
pub use input::number;
pub use problem::{REQUEST_ID, log_chain, request_id};

use crate::door::{Door, body_in_time, caught};
use axum::extract::State;
use axum::http::{
    HeaderValue, StatusCode,
    header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER},
};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router, middleware};
use problem::Refused;
use tower_http::csrf::CsrfLayer;
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{ComponentsBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// All routes under `/api`, with the document that describes them.
pub fn router(door: &Door) -> Router<Door> {
    let (routes, document) = described().split_for_parts();
    #[cfg(test)]
    let routes = routes
        .route("/api/v1/panics", get(crate::serve::tests::panics))
        .route("/api/v1/breaks", get(breaks));
    routes
        .route(
            "/api/v1/openapi.json",
            get(move || async move { Json(document) }),
        )
        .route("/api", get(nothing_here))
        .route("/api/{*rest}", axum::routing::any(nothing_here))
        .layer(CsrfLayer::new())
        .layer(middleware::from_fn_with_state(door.clone(), body_in_time))
        .layer(caught())
        .layer(middleware::from_fn(problem::finish))
}

fn described() -> OpenApiRouter<Door> {
    OpenApiRouter::with_openapi(document())
        .routes(routes!(jobs::submit, jobs::list))
        .routes(routes!(jobs::show))
        .routes(routes!(jobs::events))
        .routes(routes!(jobs::cancel))
        .routes(routes!(jobs::hold))
        .routes(routes!(jobs::release))
        .routes(routes!(jobs::suspend))
        .routes(routes!(jobs::resume))
        .routes(routes!(fleet::fleet))
        .routes(routes!(fleet::map))
        .routes(routes!(fleet::nodes))
        .routes(routes!(fleet::set_health))
        .routes(routes!(holds::list, holds::set))
        .routes(routes!(holds::release))
        .routes(routes!(fleet::teams))
        .routes(routes!(fleet::team))
        .routes(routes!(fleet::team_share))
        .routes(routes!(fleet::quotas))
        .routes(routes!(reclaims::list))
        .routes(routes!(reclaims::show))
        .routes(routes!(reclaims::approve))
        .routes(routes!(reclaims::decline))
        .routes(routes!(reclaims::defer))
        .routes(routes!(reclaims::propose))
        .routes(routes!(settings::policies))
        .routes(routes!(settings::set_policy))
        .routes(routes!(settings::limits))
        .routes(routes!(settings::set_limits))
        .routes(routes!(bills::usage))
        .routes(routes!(bills::bills))
        .routes(routes!(bills::bill))
}

fn document() -> OpenApi {
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some(
            "An API token: made on /tokens, or by `muster token create`",
        ))
        .build();
    let cookie = ApiKeyValue::with_description(crate::web::session::COOKIE, "The portal's session");
    OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("Muster")
                .version(env!("CARGO_PKG_VERSION"))
                .description(Some(
                    "One GPU fleet, shared by teams: submit a job, watch it wait and run, read its bill. Times are UTC; GPU-hours and money are \
                     decimals in text.",
                ))
                .license(Some(LicenseBuilder::new().name("Apache-2.0").identifier(Some("Apache-2.0")).build()))
                .build(),
        )
        .components(Some(
            ComponentsBuilder::new()
                // Named in every call's answers; those that `routes!` collects are only the ones of bodies.
                .schema_from::<contract::Problem>()
                .schema_from::<contract::FieldError>()
                .security_scheme("token", SecurityScheme::Http(bearer))
                .security_scheme("session", SecurityScheme::ApiKey(ApiKey::Cookie(cookie)))
                .build(),
        ))
        .security(Some([SecurityRequirement::new("token", [""; 0]), SecurityRequirement::new("session", [""; 0])]))
        .build()
}

#[cfg(test)]
async fn breaks() -> Refused {
    control::ServiceError::Internal("the disk is gone".into()).into()
}

async fn nothing_here() -> StatusCode {
    StatusCode::NOT_FOUND
}

/// What answers when there are as many connections as there may be.
pub fn full_house() -> Router {
    async fn full() -> Response {
        let mut response = Refused::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "full",
            "Too many connections",
            "too many connections are open: close some, or come again in a moment",
        )
        .into_response();
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
        response
    }
    Router::new()
        .fallback(full)
        .layer(middleware::from_fn(problem::finish))
}

/// For load balancers and monitoring, beside the API and open to all.
pub fn probes() -> Router<Door> {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
}

async fn ready(State(door): State<Door>) -> Response {
    let why = if *door.stopping.borrow() {
        "the server stops"
    } else if let Some(obstacle) = door.control.standing() {
        obstacle
    } else if !door.control.ready() {
        "the engine does not run"
    } else {
        return "ready\n".into_response();
    };
    let text = format!("not ready: {why}\n");
    (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1")], text).into_response()
}

async fn metrics(State(door): State<Door>) -> Result<Response, Refused> {
    let text = door.control.metrics().await?;
    Ok((
        [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
        text,
    )
        .into_response())
}

/// What a call answers with when it refuses; the same everywhere, so that clients handle it once.
#[derive(utoipa::IntoResponses)]
#[expect(
    dead_code,
    reason = "describes the answers in the document; `Refused` makes them"
)]
enum Problems {
    /// The query, the path or the body cannot be read.
    #[response(status = 400, content_type = "application/problem+json")]
    Unreadable(contract::Problem),
    /// No valid token and no session.
    #[response(status = 401, content_type = "application/problem+json")]
    SignIn(contract::Problem),
    /// The caller may see it, and may not do this.
    #[response(status = 403, content_type = "application/problem+json")]
    Forbidden(contract::Problem),
    /// It is not there, or not the caller's to see.
    #[response(status = 404, content_type = "application/problem+json")]
    NotFound(contract::Problem),
    /// The body did not arrive in time.
    #[response(status = 408, content_type = "application/problem+json")]
    Slow(contract::Problem),
    /// The state does not allow it, or the idempotency key came with another request.
    #[response(status = 409, content_type = "application/problem+json")]
    Conflict(contract::Problem),
    /// The body has more than 1 MiB.
    #[response(status = 413, content_type = "application/problem+json")]
    TooLarge(contract::Problem),
    /// The body is of an unknown kind.
    #[response(status = 415, content_type = "application/problem+json")]
    MediaType(contract::Problem),
    /// Fields are wrong: `errors` names each.
    #[response(status = 422, content_type = "application/problem+json")]
    Invalid(contract::Problem),
    /// Something broke; the log has the cause under the request id.
    #[response(status = 500, content_type = "application/problem+json")]
    Internal(contract::Problem),
    /// Too many requests wait, or nothing can be stored now: try again after the time in Retry-After.
    #[response(status = 503, content_type = "application/problem+json")]
    Busy(contract::Problem),
}
