//! Answers to reclaims: 303 to the reclaim, or its page again with what was typed and what is wrong.

use super::answer::{Typed, answered};
use super::headers::Asked;
use crate::door::Door;
use axum::Extension;
use axum::extract::{Form, Path, State};
use axum::response::Response;
use contract::FieldError;
use control::{Actor, ServiceError};
use serde::Deserialize;

/// A no.
#[derive(Debug, Default, Deserialize)]
pub struct Decline {
    #[serde(default)]
    reason: String,
}

/// Other jobs, as they were typed: numbers with commas or spaces between.
#[derive(Debug, Default, Deserialize)]
pub struct Propose {
    #[serde(default)]
    victims: String,
}

/// A yes to the jobs that the page has shown.
#[derive(Debug, Default, Deserialize)]
pub struct Approve {
    #[serde(default)]
    seen: String,
}

/// `POST /reclaims/{id}/approve`.
pub async fn approve(
    State(door): State<Door>,
    Extension(asked): Extension<Asked>,
    Extension(actor): Extension<Actor>,
    Path(id): Path<String>,
    Form(form): Form<Approve>,
) -> Response {
    let done = async {
        let admin = door.control.reclaim_admin(&actor, number(&id)?).await?;
        let seen = jobs(&form.seen, "form")?;
        admin
            .approve((!seen.is_empty()).then_some(seen.as_slice()))
            .await
    };
    let done = done.await;
    answered(&door, asked, actor, page(&id), done, Typed::new()).await
}

/// `POST /reclaims/{id}/decline`.
pub async fn decline(
    State(door): State<Door>,
    Extension(asked): Extension<Asked>,
    Extension(actor): Extension<Actor>,
    Path(id): Path<String>,
    Form(form): Form<Decline>,
) -> Response {
    let done = async {
        let admin = door.control.reclaim_admin(&actor, number(&id)?).await?;
        admin.decline(&form.reason).await
    };
    let done = done.await;
    let typed = [("reason", form.reason)].into();
    answered(&door, asked, actor, page(&id), done, typed).await
}

/// `POST /reclaims/{id}/defer`.
pub async fn defer(
    State(door): State<Door>,
    Extension(asked): Extension<Asked>,
    Extension(actor): Extension<Actor>,
    Path(id): Path<String>,
) -> Response {
    let done = async {
        let lead = door.control.borrowers_lead(&actor, number(&id)?).await?;
        lead.defer().await
    };
    let done = done.await;
    answered(&door, asked, actor, page(&id), done, Typed::new()).await
}

/// `POST /reclaims/{id}/propose`.
pub async fn propose(
    State(door): State<Door>,
    Extension(asked): Extension<Asked>,
    Extension(actor): Extension<Actor>,
    Path(id): Path<String>,
    Form(form): Form<Propose>,
) -> Response {
    let done = async {
        let lead = door.control.borrowers_lead(&actor, number(&id)?).await?;
        lead.propose(&jobs(&form.victims, "victims")?).await
    };
    let done = done.await;
    let typed = [("victims", form.victims)].into();
    answered(&door, asked, actor, page(&id), done, typed).await
}

fn page(id: &str) -> String {
    format!("/reclaims/{id}")
}

fn number(id: &str) -> Result<u64, ServiceError> {
    crate::rest::number(id).ok_or_else(|| ServiceError::NotFound(format!("reclaim `{id}`")))
}

/// Numbers of jobs out of what was typed, or out of what a page sent with a button: wrong there, it is the form that is wrong.
fn jobs(text: &str, field: &str) -> Result<Vec<u64>, ServiceError> {
    let words = text.split(|letter: char| letter == ',' || letter.is_whitespace());
    let words = words.filter(|word| !word.is_empty());
    let numbers: Result<Vec<u64>, _> = words.map(str::parse).collect();
    numbers.map_err(|_| {
        let message = "numbers of jobs, with commas between: 4711, 4712";
        ServiceError::Invalid(vec![FieldError::new(field, message)])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_read_as_people_type_them() {
        let read = |text| jobs(text, "victims").map_err(|error| format!("{error:?}"));
        assert_eq!(read("4711, 4712 4713"), Ok(vec![4711, 4712, 4713]));
        assert_eq!(read(" "), Ok(Vec::new()));
        assert!(read("4711; 4712").is_err_and(|error| error.contains("\"victims\"")));
    }
}
