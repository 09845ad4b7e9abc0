//! Errors as RFC 9457 problem details, whoever raised them.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use contract::{FieldError, Problem};
use control::ServiceError;
use std::error::Error;

/// The header that carries a request's id, in and out.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest id that is taken from a caller, in bytes.
const ID_MAX: usize = 200;

/// The id of a request, empty when it has none that can be shown.
pub fn request_id(headers: &HeaderMap) -> &str {
    let id = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
    id.filter(|id| id.len() <= ID_MAX).unwrap_or_default()
}

/// A refusal on its way out; [`finish`] writes its body.
#[derive(Clone, Debug)]
pub struct Refused(Box<Problem>);

impl Refused {
    /// A refusal of a kind (the last part of its URI reference), with the way out in the detail.
    pub fn new(status: StatusCode, kind: &str, title: &str, detail: impl Into<String>) -> Self {
        Self(Box::new(Problem {
            kind: format!("/problems/{kind}"),
            title: title.to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            request_id: None,
            errors: Vec::new(),
        }))
    }

    /// Fields that are wrong.
    pub fn invalid(errors: Vec<FieldError>) -> Self {
        let count = errors.len();
        let detail = match errors.as_slice() {
            [one] => format!("{}: {}", one.field, one.message),
            _ => format!("{count} fields are wrong: see errors"),
        };
        let mut refused = Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "invalid",
            "Fields are wrong",
            detail,
        );
        refused.0.errors = errors;
        refused
    }

    /// Something in the query that is wrong.
    pub fn bad_query(errors: Vec<FieldError>) -> Self {
        let mut refused = Self::invalid(errors);
        refused.0.status = StatusCode::BAD_REQUEST.as_u16();
        refused.0.kind = "/problems/query".to_owned();
        refused.0.title = "The query is wrong".to_owned();
        refused
    }

    /// What a service refused where all that it was given came from the query.
    pub fn of_query(error: ServiceError) -> Self {
        match error {
            ServiceError::Invalid(errors) => Self::bad_query(errors),
            other => Self::from(other),
        }
    }

    /// There is no such thing, or it is not the caller's to see.
    pub fn not_found(what: &str) -> Self {
        Self::from(ServiceError::NotFound(what.to_owned()))
    }
}

impl From<ServiceError> for Refused {
    fn from(error: ServiceError) -> Self {
        let detail = error.to_string();
        let new = |status, kind, title| Self::new(status, kind, title, detail);
        match error {
            ServiceError::NotFound(_) => new(StatusCode::NOT_FOUND, "not-found", "Not found"),
            ServiceError::Forbidden(_) => {
                new(StatusCode::FORBIDDEN, "forbidden", "Not yours to do")
            }
            ServiceError::Invalid(errors) => Self::invalid(errors),
            ServiceError::Conflict(_) => new(StatusCode::CONFLICT, "conflict", "Not possible now"),
            ServiceError::KeyReused => new(
                StatusCode::CONFLICT,
                "key-reused",
                "Idempotency key used before",
            ),
            ServiceError::Busy => new(StatusCode::SERVICE_UNAVAILABLE, "busy", "Busy"),
            ServiceError::Standing(_) => new(
                StatusCode::SERVICE_UNAVAILABLE,
                "standing",
                "Nothing can be stored now",
            ),
            ServiceError::Unauthenticated => {
                new(StatusCode::UNAUTHORIZED, "sign-in", "Sign in first")
            }
            ServiceError::Internal(cause) => {
                log_chain(cause.as_ref());
                new(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "internal",
                    "Something broke here",
                )
            }
        }
    }
}

/// The cause of an internal error, once, at the edge; the request's span says under which id.
pub fn log_chain(error: &(dyn Error + 'static)) {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    tracing::error!(cause = text, "a request failed");
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let status =
            StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = status.into_response();
        let headers = response.headers_mut();
        match status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// Writes the body of every refusal, also of those that the framework raised, with the request's id.
pub async fn finish(request: Request, next: Next) -> Response {
    let id = Some(request_id(request.headers()).to_owned()).filter(|id| !id.is_empty());
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let response = next.run(request).await;
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return response;
    }
    let Refused(mut problem) = match response.extensions().get::<Refused>() {
        Some(refused) => refused.clone(),
        None => by_status(status, &format!("{method} {path}")),
    };
    problem.request_id = id;
    let (mut parts, _) = response.into_parts();
    parts.headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/problem+json"),
    );
    parts.headers.remove(axum::http::header::CONTENT_LENGTH);
    let body = serde_json::to_vec(&problem).unwrap_or_default();
    Response::from_parts(parts, Body::from(body))
}

/// The problem behind a bare status.
fn by_status(status: StatusCode, what: &str) -> Refused {
    let (kind, title, detail) = match status {
        StatusCode::NOT_FOUND => (
            "not-found",
            "Not found",
            format!("there is no {what}; /api/v1/openapi.json lists what there is"),
        ),
        StatusCode::METHOD_NOT_ALLOWED => (
            "method",
            "Method not allowed",
            format!("{what} is not possible; the Allow header lists what is"),
        ),
        StatusCode::REQUEST_TIMEOUT => (
            "slow",
            "Too slow",
            "the request's body did not arrive whole in time: send it again".to_owned(),
        ),
        StatusCode::PAYLOAD_TOO_LARGE => (
            "too-large",
            "Too large",
            "a request body has at most 1 MiB".to_owned(),
        ),
        StatusCode::FORBIDDEN => (
            "cross-site",
            "Refused",
            "this came from another site; use a token in the Authorization header".to_owned(),
        ),
        status if status.is_client_error() => (
            "request",
            "The request is wrong",
            format!("{what}: {status}"),
        ),
        _ => (
            "internal",
            "Something broke here",
            "something broke here; the cause is in the log".to_owned(),
        ),
    };
    Refused::new(status, kind, title, detail)
}
