//! Changing policies and limits, from their pages.

use super::answer::{Typed, answered};
use super::headers::Asked;
use crate::door::Door;
use app::Url;
use axum::Extension;
use axum::extract::{Form, Path, State};
use axum::response::Response;
use contract::{FieldError, Gpus, LimitSet, SetLimits, SetPolicy, parse_limit};
use control::{Actor, ServiceError};
use serde::Deserialize;
use std::str::FromStr;

/// A policy's new value, as it was typed.
#[derive(Debug, Default, Deserialize)]
pub struct Policy {
    #[serde(default)]
    value: String,
    #[serde(default)]
    why: String,
    #[serde(default)]
    version: String,
}

/// `POST /admin/policies/{name}`.
pub async fn policy(
    State(door): State<Door>,
    Extension(asked): Extension<Asked>,
    Extension(actor): Extension<Actor>,
    Path(name): Path<String>,
    Form(form): Form<Policy>,
) -> Response {
    let done = async {
        let admin = door.control.admin(&actor)?;
        let change = SetPolicy {
            value: form.value.clone(),
            version: version(&form.version)?,
            why: form.why.clone(),
        };
        admin.set_policy(&name, &change).await.map(drop)
    };
    let done = done.await;
    let change = done.is_err().then_some(name);
    let typed: Typed = [("value", form.value), ("why", form.why)].into();
    let page = Url::Policies { change }.to_string();
    answered(&door, asked, actor, page, done, typed).await
}

/// A team's new limits, as they were typed; empty = none.
#[derive(Debug, Default, Deserialize)]
pub struct Limits {
    #[serde(default)]
    running_jobs: String,
    #[serde(default)]
    waiting_jobs: String,
    #[serde(default)]
    running_gpus: String,
    #[serde(default)]
    member_running_jobs: String,
    #[serde(default)]
    member_waiting_jobs: String,
    #[serde(default)]
    member_running_gpus: String,
    #[serde(default)]
    why: String,
    #[serde(default)]
    version: String,
}

/// `POST /limits/{team}`.
pub async fn limits(
    State(door): State<Door>,
    Extension(asked): Extension<Asked>,
    Extension(actor): Extension<Actor>,
    Path(team): Path<String>,
    Form(form): Form<Limits>,
) -> Response {
    let done = async {
        let admin = door.control.admin(&actor)?;
        admin.set_limits(&team, &form.read()?).await.map(drop)
    };
    let done = done.await;
    let change = done.is_err().then_some(team);
    let page = Url::Limits { team: change }.to_string();
    answered(&door, asked, actor, page, done, form.typed()).await
}

impl Limits {
    fn read(&self) -> Result<SetLimits, ServiceError> {
        let mut wrong = Vec::new();
        let limits = LimitSet {
            running_jobs: limit("running_jobs", &self.running_jobs, &mut wrong),
            waiting_jobs: limit("waiting_jobs", &self.waiting_jobs, &mut wrong),
            running_gpus: limit::<Gpus>("running_gpus", &self.running_gpus, &mut wrong),
        };
        let member = LimitSet {
            running_jobs: limit("member_running_jobs", &self.member_running_jobs, &mut wrong),
            waiting_jobs: limit("member_waiting_jobs", &self.member_waiting_jobs, &mut wrong),
            running_gpus: limit::<Gpus>(
                "member_running_gpus",
                &self.member_running_gpus,
                &mut wrong,
            ),
        };
        if !wrong.is_empty() {
            return Err(ServiceError::Invalid(wrong));
        }
        Ok(SetLimits {
            limits,
            member,
            version: version(&self.version)?,
            why: self.why.clone(),
        })
    }

    fn typed(self) -> Typed {
        [
            ("running_jobs", self.running_jobs),
            ("waiting_jobs", self.waiting_jobs),
            ("running_gpus", self.running_gpus),
            ("member_running_jobs", self.member_running_jobs),
            ("member_waiting_jobs", self.member_waiting_jobs),
            ("member_running_gpus", self.member_running_gpus),
            ("why", self.why),
        ]
        .into()
    }
}

fn limit<T: FromStr>(field: &str, text: &str, wrong: &mut Vec<FieldError>) -> Option<T> {
    parse_limit(text).unwrap_or_else(|problem| {
        wrong.push(FieldError::new(field, problem));
        None
    })
}

/// The version that the page has shown; it comes back as it was given out.
fn version(text: &str) -> Result<u64, ServiceError> {
    text.parse().map_err(|_| {
        let said = "the page did not say what it has shown: open it again";
        ServiceError::Invalid(vec![FieldError::new("form", said)])
    })
}
