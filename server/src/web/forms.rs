//! Plain form posts: 303 to where it is seen, or the page again with what was typed and what is wrong.

use super::answer::answered;
use super::guard::{path_of, see_other};
use super::headers::Asked;
use super::page::{self, ask_again, refuse, refuse_query, render, with_form};
use super::secrets::Secret;
use crate::door::Door;
use crate::rest::{csv_answer, number};
use app::{PageProblem, SubmitState};
use axum::Extension;
use axum::extract::{Form, Path, Query, State};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use contract::{DryRun, FieldError, SubmitForm, Submitted};
use control::{Actor, ServiceError};
use serde::Deserialize;
use std::collections::BTreeMap;
use tower_sessions::Session;

/// The page of the tokens.
const TOKENS: &str = "/tokens";

/// What became of a form.
enum Outcome {
    Checked(DryRun),
    Submitted(Submitted),
}

/// `POST /jobs/new`: submits, or with `action=check` tells what would happen.
pub async fn submit(
    State(door): State<Door>,
    Extension(asked): Extension<Asked>,
    Extension(actor): Extension<Actor>,
    Form(pairs): Form<Vec<(String, String)>>,
) -> Response {
    let check = pairs
        .iter()
        .any(|(name, value)| name == "action" && value == "check");
    let form = submit_form(pairs);
    let (state, status) = match act(&door, &actor, &form, check).await {
        Ok(Outcome::Submitted(job)) => return see_other(&format!("/jobs/{}", job.id)),
        Ok(Outcome::Checked(preview)) => (
            SubmitState {
                form,
                errors: Vec::new(),
                preview: Some(preview),
            },
            StatusCode::OK,
        ),
        Err(ServiceError::Internal(cause)) => return refuse(ServiceError::Internal(cause)),
        Err(error) => {
            let status = StatusCode::from_u16(PageProblem::of(&error).status)
                .unwrap_or(StatusCode::UNPROCESSABLE_ENTITY);
            (
                SubmitState {
                    form,
                    errors: by_field(error),
                    preview: None,
                },
                status,
            )
        }
    };
    let mut response = render(&door, asked, with_form(&door, actor, state, status)).await;
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        ask_again(&mut response);
    }
    response
}

async fn act(
    door: &Door,
    actor: &Actor,
    form: &SubmitForm,
    check: bool,
) -> Result<Outcome, ServiceError> {
    let job = match form.parse() {
        Ok(job) => job,
        Err(_) => {
            let catalog = door.control.everyone(actor).catalog().await?;
            return Err(ServiceError::Invalid(form.wrong(&catalog)));
        }
    };
    let team = door
        .control
        .team_member(actor, &job.team)
        .map_err(|error| match error {
            ServiceError::NotFound(_) | ServiceError::Forbidden(_) => {
                ServiceError::Invalid(vec![FieldError::new(
                    "team",
                    format!("there is no team `{}` that you may submit to", job.team),
                )])
            }
            other => other,
        })?;
    if check {
        return Ok(Outcome::Checked(team.dry_run(&job).await?));
    }
    let key = Some(form.key.as_str()).filter(|key| !key.is_empty());
    Ok(Outcome::Submitted(team.submit(&job, key).await?))
}

/// Field errors as they are; anything else is about the whole form.
fn by_field(error: ServiceError) -> Vec<FieldError> {
    match error {
        ServiceError::Invalid(errors) => errors,
        other => vec![FieldError::new("form", other.to_string())],
    }
}

/// The form as it was typed. Several boxes of one name are one value with commas; fields that it does not have are left out.
fn submit_form(pairs: Vec<(String, String)>) -> SubmitForm {
    let mut fields: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in pairs {
        match fields.get_mut(&name) {
            Some(before) => {
                before.push(',');
                before.push_str(&value);
            }
            None => {
                fields.insert(name, value);
            }
        }
    }
    let fields = fields
        .into_iter()
        .map(|(name, value)| (name, value.into()))
        .collect();
    serde_json::from_value(serde_json::Value::Object(fields)).unwrap_or_default()
}

/// Why a job is cancelled.
#[derive(Debug, Default, Deserialize)]
pub struct Cancel {
    #[serde(default)]
    why: String,
}

/// `POST /jobs/{id}/cancel`.
pub async fn cancel(
    State(door): State<Door>,
    Extension(asked): Extension<Asked>,
    Extension(actor): Extension<Actor>,
    Path(id): Path<String>,
    Form(form): Form<Cancel>,
) -> Response {
    let Some(number) = number(&id) else {
        return refuse(ServiceError::NotFound(format!("job `{id}`")));
    };
    let done = async {
        let owner = door.control.job_owner(&actor, number).await?;
        owner.cancel(Some(&form.why)).await
    };
    let done = done.await;
    let typed = [("why", form.why)].into();
    answered(&door, asked, actor, format!("/jobs/{number}"), done, typed).await
}

/// A token to be made.
#[derive(Debug, Deserialize)]
pub struct CreateToken {
    #[serde(default)]
    name: String,
    #[serde(default)]
    days: String,
}

/// `GET /tokens`: the page, with the secret of the token that this session has just made, once.
pub async fn tokens(
    State(door): State<Door>,
    Extension(asked): Extension<Asked>,
    Extension(actor): Extension<Actor>,
    Extension(session): Extension<Session>,
    method: Method,
    uri: Uri,
) -> Response {
    let id = session.id().filter(|_| method == Method::GET);
    let secret = id.and_then(|id| door.secrets.see(&id.to_string()));
    let mut context = page::context(&door, Some(actor), path_of(&uri));
    match secret {
        Some(Secret::New(token)) => context.new_token = Some(*token),
        Some(Secret::Seen(name)) => context.seen_token = Some(name),
        None => {}
    }
    render(&door, asked, context).await
}

/// `POST /tokens`: the secret waits for the page that shows it, so that a reload makes no other token.
pub async fn create_token(
    State(door): State<Door>,
    Extension(asked): Extension<Asked>,
    Extension(actor): Extension<Actor>,
    Extension(session): Extension<Session>,
    Form(form): Form<CreateToken>,
) -> Response {
    let made = async {
        let days = form.days.trim().parse().map_err(|_| {
            ServiceError::Invalid(vec![FieldError::new(
                "days",
                "a whole number from 1 to 365",
            )])
        })?;
        door.control
            .everyone(&actor)
            .create_token(form.name.trim(), days)
            .await
    };
    let done = made.await.map(|token| {
        let session = session.id().map(|id| id.to_string()).unwrap_or_default();
        door.secrets.put(session, token);
    });
    let typed = [("name", form.name), ("days", form.days)].into();
    answered(&door, asked, actor, TOKENS.to_owned(), done, typed).await
}

/// `POST /tokens/{id}/revoke`.
pub async fn revoke_token(
    State(door): State<Door>,
    Extension(actor): Extension<Actor>,
    Path(id): Path<String>,
) -> Response {
    match door.control.everyone(&actor).revoke_token(&id).await {
        Ok(()) => see_other(TOKENS),
        Err(error) => refuse(error),
    }
}

/// Which month.
#[derive(Debug, Deserialize)]
pub struct Month {
    month: Option<String>,
}

/// `GET /bills.csv`: the month over all teams that the reader may read, from the page's query.
pub async fn bills_csv(
    State(door): State<Door>,
    Extension(actor): Extension<Actor>,
    Query(month): Query<Month>,
) -> Response {
    let month = month.month.as_deref().filter(|month| !month.is_empty());
    match door.control.everyone(&actor).bills(month).await {
        Ok(bill) => csv_answer(&bill).into_response(),
        Err(error) => refuse_query(error),
    }
}

/// `GET /bills/{team}`: the page; with `.csv` behind the team's name, the file, from the same query.
pub async fn bill(
    State(door): State<Door>,
    asked: Extension<Asked>,
    Extension(actor): Extension<Actor>,
    Path(team): Path<String>,
    Query(month): Query<Month>,
    method: Method,
    uri: Uri,
) -> Response {
    let Some(team) = team.strip_suffix(".csv") else {
        return page::show(State(door), asked, Extension(actor), method, uri).await;
    };
    let month = month.month.as_deref().filter(|month| !month.is_empty());
    match door.control.everyone(&actor).bill(team, month).await {
        Ok(bill) => csv_answer(&bill).into_response(),
        Err(error) => refuse_query(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_of_one_name_are_one_value_and_unknown_fields_are_left_out() {
        let pairs = [
            ("flavours", "h100-80g"),
            ("flavours", "a100-80g"),
            ("action", "check"),
            ("pods", "4"),
        ];
        let form = submit_form(
            pairs
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
        );
        assert_eq!(
            (
                form.flavours.as_str(),
                form.pods.as_str(),
                form.team.as_str()
            ),
            ("h100-80g,a100-80g", "4", "")
        );
    }
}
