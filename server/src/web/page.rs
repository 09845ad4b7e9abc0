//! Pages: the context for Leptos, the render, and the page for a refusal.

use super::guard::{self, path_of};
use super::headers::Asked;
use crate::door::Door;
use crate::rest::log_chain;
use app::{PageContext, PageProblem, PageStatus, SubmitState, shell};
use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use control::{Actor, ServiceError};
use leptos::prelude::provide_context;
use std::collections::BTreeMap;
use tower_http::csrf::ProtectionError;

/// Any page; which one is the portal's to say, also when there is none.
pub async fn show(
    State(door): State<Door>,
    Extension(asked): Extension<Asked>,
    Extension(actor): Extension<Actor>,
    method: Method,
    uri: Uri,
) -> Response {
    if !matches!(method, Method::GET | Method::HEAD) {
        return refuse(ServiceError::NotFound("such form".to_owned()));
    }
    render(&door, asked, context(&door, Some(actor), path_of(&uri))).await
}

/// What a page is handed, as far as the request alone tells.
pub fn context(door: &Door, actor: Option<Actor>, path_and_query: String) -> PageContext {
    PageContext {
        control: door.control.clone(),
        actor,
        path_and_query,
        submit: None,
        new_token: None,
        seen_token: None,
        errors: Vec::new(),
        typed: BTreeMap::new(),
        problem: None,
        request_id: String::new(),
        broke: |cause| log_chain(cause),
        assets: door.site.clone(),
        status: PageStatus::default(),
    }
}

/// The submit page with a form on it, under a status.
pub fn with_form(
    door: &Door,
    actor: Actor,
    submit: SubmitState,
    status: StatusCode,
) -> PageContext {
    let context = PageContext {
        submit: Some(submit),
        ..context(door, Some(actor), "/jobs/new".to_owned())
    };
    context.status.set(status.as_u16());
    context
}

/// Renders a page, whole, before its first byte goes out: only so can it still set its status.
pub async fn render(door: &Door, asked: Asked, context: PageContext) -> Response {
    let Asked { nonce, id } = asked;
    let context = PageContext {
        request_id: id,
        ..context
    };
    let status = context.status.clone();
    let options = door.options.clone();
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = context.path_and_query.parse().unwrap_or_default();
    let provide = move || {
        provide_context(nonce.clone());
        provide_context(context.clone());
    };
    let render =
        leptos_axum::render_app_async_with_context(provide, move || shell(options.clone()));
    let mut response = render(request).await;
    if let Ok(status) = StatusCode::from_u16(status.get()) {
        *response.status_mut() = status;
    }
    response
}

/// A refusal on its way out; [`show_refusals`] makes a page of it.
#[derive(Clone)]
struct Refused(PageProblem);

/// The answer for what a service refused.
pub fn refuse(error: ServiceError) -> Response {
    if let ServiceError::Internal(cause) = &error {
        log_chain(cause.as_ref());
    }
    answer(PageProblem::of(&error))
}

fn answer(problem: PageProblem) -> Response {
    let mut response = StatusCode::from_u16(problem.status)
        .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
        .into_response();
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        ask_again(&mut response);
    }
    response.extensions_mut().insert(Refused(problem));
    response
}

/// Says in a 503 when to ask again: in a second.
pub fn ask_again(response: &mut Response) {
    let soon = HeaderValue::from_static("1");
    response.headers_mut().insert(RETRY_AFTER, soon);
}

/// [`refuse`], where all that the service was given came from the address.
pub fn refuse_query(error: ServiceError) -> Response {
    match error {
        ServiceError::Invalid(_) => {
            let mut problem = PageProblem::of(&error);
            problem.status = StatusCode::BAD_REQUEST.as_u16();
            problem.title = "Something is wrong in the address".into();
            answer(problem)
        }
        other => refuse(other),
    }
}

/// Makes a page of every refusal: a service's, a cross-site form's, one of a bare status.
pub async fn show_refusals(
    State(door): State<Door>,
    Extension(asked): Extension<Asked>,
    request: Request,
    next: Next,
) -> Response {
    let path = path_of(request.uri());
    let session = request
        .extensions()
        .get::<tower_sessions::Session>()
        .cloned();
    let response = next.run(request).await;
    let problem = if let Some(Refused(problem)) = response.extensions().get::<Refused>() {
        problem.clone()
    } else if response.extensions().get::<ProtectionError>().is_some() {
        guard::cross_site()
    } else if let Some(problem) = by_status(&response) {
        problem
    } else {
        return response;
    };
    let actor = match session {
        Some(session) => super::session::actor(&door, &session).await.ok(),
        None => None,
    };
    let context = context(&door, actor, path);
    let problem = problem.under(&asked.id);
    context.status.set(problem.status);
    let context = PageContext {
        problem: Some(problem),
        ..context
    };
    let mut page = render(&door, asked, context).await;
    for name in [ALLOW, RETRY_AFTER] {
        if let Some(value) = response.headers().get(&name) {
            page.headers_mut().insert(name, value.clone());
        }
    }
    page
}

/// A page for a bare status, such as a form that the framework could not read.
fn by_status(response: &Response) -> Option<PageProblem> {
    let status = response.status();
    let is_page = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    if is_page || !(status.is_client_error() || status.is_server_error()) {
        return None;
    }
    let (title, detail) = match status {
        StatusCode::METHOD_NOT_ALLOWED => {
            ("Not possible here", "This address takes no such request.")
        }
        StatusCode::REQUEST_TIMEOUT => (
            "Too slow",
            "The form did not arrive whole in time. Go back and send it again.",
        ),
        StatusCode::TOO_MANY_REQUESTS => (
            "Too many pages listen",
            "Close some of the pages that you have open here.",
        ),
        StatusCode::PAYLOAD_TOO_LARGE => ("Too large", "A form has at most 1 MiB."),
        status if status.is_client_error() => (
            "The request is wrong",
            "The form could not be read. Go back and send it again.",
        ),
        _ => ("Something broke here", "The cause is in the log."),
    };
    Some(PageProblem {
        status: status.as_u16(),
        title: title.into(),
        detail: detail.into(),
    })
}
