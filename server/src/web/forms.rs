//! Plain form posts: 303 to where it is seen, or the page again with what was typed and what is wrong.

use super::guard::see_other;
use super::page::{self, refuse, render, with_form};
use crate::door::Door;
use crate::rest::csv_answer;
use app::{PageContext, SubmitState};
use axum::Extension;
use axum::extract::{Form, Path, Query, State};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use contract::{DryRun, FieldError, SubmitForm, Submitted};
use control::{Actor, ServiceError};
use leptos::nonce::Nonce;
use serde::Deserialize;
use std::collections::BTreeMap;

/// What became of a form.
enum Outcome {
    Checked(DryRun),
    Submitted(Submitted),
}

/// `POST /jobs/new`: submits, or with `action=check` tells what would happen.
pub async fn submit(
    State(door): State<Door>,
    Extension(nonce): Extension<Nonce>,
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
            let status = match error {
                ServiceError::Busy => StatusCode::SERVICE_UNAVAILABLE,
                _ => StatusCode::UNPROCESSABLE_ENTITY,
            };
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
    render(&door, nonce, with_form(&door, actor, state, status)).await
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
    Extension(actor): Extension<Actor>,
    Path(id): Path<String>,
    Form(form): Form<Cancel>,
) -> Response {
    let Ok(number) = id.parse() else {
        return refuse(ServiceError::NotFound(format!("job `{id}`")));
    };
    let why: String = form.why.trim().chars().take(500).collect();
    let why = Some(why.as_str()).filter(|why| !why.is_empty());
    let done = async {
        door.control
            .job_owner(&actor, number)
            .await?
            .cancel(why)
            .await
    };
    match done.await {
        Ok(()) => see_other(&format!("/jobs/{number}")),
        Err(error) => refuse(error),
    }
}

/// A token to be made.
#[derive(Debug, Deserialize)]
pub struct CreateToken {
    #[serde(default)]
    name: String,
    #[serde(default)]
    days: String,
}

/// `POST /tokens`: the page shows the secret this once, so this is an answer and no redirect.
pub async fn create_token(
    State(door): State<Door>,
    Extension(nonce): Extension<Nonce>,
    Extension(actor): Extension<Actor>,
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
    let made = made.await;
    let context = page::context(&door, Some(actor), "/tokens".to_owned());
    let context = match made {
        Ok(token) => PageContext {
            new_token: Some(token),
            ..context
        },
        Err(ServiceError::Invalid(errors)) => {
            context
                .status
                .set(StatusCode::UNPROCESSABLE_ENTITY.as_u16());
            PageContext { errors, ..context }
        }
        Err(error) => return refuse(error),
    };
    render(&door, nonce, context).await
}

/// `POST /tokens/{id}/revoke`.
pub async fn revoke_token(
    State(door): State<Door>,
    Extension(actor): Extension<Actor>,
    Path(id): Path<String>,
) -> Response {
    match door.control.everyone(&actor).revoke_token(&id).await {
        Ok(()) => see_other("/tokens"),
        Err(error) => refuse(error),
    }
}

/// Which month.
#[derive(Debug, Deserialize)]
pub struct Month {
    month: Option<String>,
}

/// `GET /bills/{team}`: the page; with `.csv` behind the team's name, the file, from the same query.
pub async fn bill(
    State(door): State<Door>,
    nonce: Extension<Nonce>,
    Extension(actor): Extension<Actor>,
    Path(team): Path<String>,
    Query(month): Query<Month>,
    method: Method,
    uri: Uri,
) -> Response {
    let Some(team) = team.strip_suffix(".csv") else {
        return page::show(State(door), nonce, Extension(actor), method, uri).await;
    };
    let month = month.month.as_deref().filter(|month| !month.is_empty());
    match door.control.everyone(&actor).bill(team, month).await {
        Ok(bill) => csv_answer(&bill).into_response(),
        Err(error) => refuse(error),
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
