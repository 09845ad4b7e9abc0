//! Setting aside and releasing, suspending and resuming, from the page of holds and from a job's page.

use super::answer::{Typed, answered, called};
use super::headers::Asked;
use crate::door::Door;
use axum::Extension;
use axum::extract::{Form, Path, State};
use axum::response::Response;
use contract::{FieldError, HoldKind};
use control::{Actor, ServiceError};
use serde::Deserialize;

/// The page of holds.
const HOLDS: &str = "/holds";

/// What to set aside, as it was typed.
#[derive(Debug, Default, Deserialize)]
pub struct Hold {
    #[serde(default)]
    on: String,
    #[serde(default)]
    what: String,
    #[serde(default)]
    mode: String,
    #[serde(default)]
    why: String,
}

/// How to set a job aside. Its page has another field `why`, of its cancelling.
#[derive(Debug, Default, Deserialize)]
pub struct HoldJob {
    #[serde(default)]
    mode: String,
    #[serde(default)]
    hold_why: String,
}

/// Why a notebook is suspended. Its page has another field `why`, of its cancelling.
#[derive(Debug, Default, Deserialize)]
pub struct Suspend {
    #[serde(default)]
    suspend_why: String,
}

/// `POST /holds`.
pub async fn hold(
    State(door): State<Door>,
    Extension(asked): Extension<Asked>,
    Extension(actor): Extension<Actor>,
    Form(form): Form<Hold>,
) -> Response {
    let done = async {
        let kind = kind(&form.mode)?;
        let holder = door.control.holder(&actor, &form.on, &form.what).await?;
        holder.hold(kind, Some(&form.why)).await.map(drop)
    };
    let done = done.await;
    let typed: Typed = [
        ("on", form.on),
        ("what", form.what),
        ("mode", form.mode),
        ("why", form.why),
    ]
    .into();
    answered(&door, asked, actor, HOLDS.to_owned(), done, typed).await
}

/// `POST /holds/release`.
pub async fn release(
    State(door): State<Door>,
    Extension(asked): Extension<Asked>,
    Extension(actor): Extension<Actor>,
    Form(form): Form<Hold>,
) -> Response {
    let done = async {
        let holder = door.control.holder(&actor, &form.on, &form.what).await?;
        holder.release(None).await
    };
    let done = done.await;
    answered(&door, asked, actor, HOLDS.to_owned(), done, Typed::new()).await
}

/// `POST /jobs/{id}/hold`.
pub async fn hold_job(
    State(door): State<Door>,
    Extension(asked): Extension<Asked>,
    Extension(actor): Extension<Actor>,
    Path(id): Path<String>,
    Form(form): Form<HoldJob>,
) -> Response {
    let done = async {
        let kind = kind(&form.mode)?;
        let owner = door.control.job_owner(&actor, number(&id)?).await?;
        let why = Some(form.hold_why.as_str());
        owner.holder().hold(kind, why).await.map(drop)
    };
    let done = called(done.await, "why", "hold_why");
    let typed = [("hold_why", form.hold_why), ("mode", form.mode)].into();
    answered(&door, asked, actor, format!("/jobs/{id}"), done, typed).await
}

/// `POST /jobs/{id}/release`.
pub async fn release_job(
    State(door): State<Door>,
    Extension(asked): Extension<Asked>,
    Extension(actor): Extension<Actor>,
    Path(id): Path<String>,
) -> Response {
    let done = async {
        let owner = door.control.job_owner(&actor, number(&id)?).await?;
        owner.release(None).await
    };
    let done = done.await;
    answered(
        &door,
        asked,
        actor,
        format!("/jobs/{id}"),
        done,
        Typed::new(),
    )
    .await
}

/// `POST /jobs/{id}/suspend`.
pub async fn suspend_job(
    State(door): State<Door>,
    Extension(asked): Extension<Asked>,
    Extension(actor): Extension<Actor>,
    Path(id): Path<String>,
    Form(form): Form<Suspend>,
) -> Response {
    let done = async {
        let owner = door.control.job_owner(&actor, number(&id)?).await?;
        owner.suspend(Some(&form.suspend_why)).await
    };
    let done = called(done.await, "why", "suspend_why");
    let typed = [("suspend_why", form.suspend_why)].into();
    answered(&door, asked, actor, format!("/jobs/{id}"), done, typed).await
}

/// `POST /jobs/{id}/resume`.
pub async fn resume_job(
    State(door): State<Door>,
    Extension(asked): Extension<Asked>,
    Extension(actor): Extension<Actor>,
    Path(id): Path<String>,
) -> Response {
    let done = async {
        let owner = door.control.job_owner(&actor, number(&id)?).await?;
        owner.resume(None).await
    };
    let (done, page) = (done.await, format!("/jobs/{id}"));
    answered(&door, asked, actor, page, done, Typed::new()).await
}

/// What becomes of those that run; nothing said is the gentler way.
fn kind(word: &str) -> Result<HoldKind, ServiceError> {
    if word.trim().is_empty() {
        return Ok(HoldKind::Hold);
    }
    let wrong = |message: String| ServiceError::Invalid(vec![FieldError::new("mode", message)]);
    word.parse().map_err(wrong)
}

fn number(id: &str) -> Result<u64, ServiceError> {
    crate::rest::number(id).ok_or_else(|| ServiceError::NotFound(format!("job `{id}`")))
}
