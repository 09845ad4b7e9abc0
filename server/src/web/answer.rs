//! What a plain form is answered with: 303 to where its deed is seen, or the page again with what was typed and what is wrong.

use super::guard::see_other;
use super::headers::Asked;
use super::page::{self, ask_again, refuse, render};
use crate::door::Door;
use app::PageContext;
use axum::http::StatusCode;
use axum::response::Response;
use contract::FieldError;
use control::{Actor, ServiceError};
use std::collections::BTreeMap;

/// What was typed, by field.
pub type Typed = BTreeMap<&'static str, String>;

/// The answer to a form of the page at this path.
pub async fn answered(
    door: &Door,
    asked: Asked,
    actor: Actor,
    page: String,
    done: Result<(), ServiceError>,
    typed: Typed,
) -> Response {
    let (status, errors) = match done {
        Ok(()) => return see_other(&page),
        Err(ServiceError::Invalid(errors)) => (StatusCode::UNPROCESSABLE_ENTITY, errors),
        // Somebody else was first: the page as it is now, with that said above it.
        Err(ServiceError::Conflict(said)) => {
            (StatusCode::CONFLICT, vec![FieldError::new("form", said)])
        }
        // It can pass: nothing that was typed is lost meanwhile.
        Err(error @ (ServiceError::Busy | ServiceError::Standing(_))) => (
            StatusCode::SERVICE_UNAVAILABLE,
            vec![FieldError::new("form", error.to_string())],
        ),
        Err(error) => return refuse(error),
    };
    let context = page::context(door, Some(actor), page);
    context.status.set(status.as_u16());
    let context = PageContext {
        errors,
        typed,
        ..context
    };
    let mut response = render(door, asked, context).await;
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        ask_again(&mut response);
    }
    response
}

/// The same refusal, with a field called as the page's form calls it.
pub fn called(done: Result<(), ServiceError>, field: &str, here: &str) -> Result<(), ServiceError> {
    done.map_err(|error| match error {
        ServiceError::Invalid(mut fields) => {
            let mine = fields.iter_mut().filter(|wrong| wrong.field == field);
            mine.for_each(|wrong| wrong.field = here.to_owned());
            ServiceError::Invalid(fields)
        }
        other => other,
    })
}
