//! Jobs: submit, list, show, events, cancel.

use super::Problems;
use super::caller::Caller;
use super::input::{NoQuery, Optional, Query, Spec};
use super::problem::Refused;
use crate::door::Door;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use contract::{
    DryRun, EventView, FieldError, JobFilter, JobList, JobPage, JobState, JobView, SortKey,
    SubmitJob, Submitted,
};
use serde::Deserialize;

/// Longest idempotency key, in characters.
const KEY_MAX: usize = 200;

/// Submit a job. It is stored before the answer goes out.
#[utoipa::path(
    post, path = "/api/v1/jobs", tag = "jobs", operation_id = "submit_job",
    params(
        ("dry_run" = Option<bool>, Query, description = "Only tell what would happen"),
        ("Idempotency-Key" = Option<String>, Header, description = "The same key with the same request is the same job; 1 to 200 visible ASCII characters", pattern = "^[ -~]{1,200}$"),
    ),
    request_body(content(
        (SubmitJob = "application/json"), (SubmitJob = "application/toml"), (SubmitJob = "application/yaml"),
    ), description = "The spec; TOML and YAML hold the same fields"),
    responses(
        (status = 201, description = "Stored as a new job", body = Submitted, headers(("Location" = String, description = "The job"))),
        (status = 200, description = "This key had made the job before, or, in a dry run, what would happen", body = SubmitAnswer),
        Problems
    )
)]
pub async fn submit(
    State(door): State<Door>,
    Caller(actor): Caller,
    mut query: Query,
    headers: HeaderMap,
    Spec(job): Spec<SubmitJob>,
) -> Result<Response, Refused> {
    let dry_run = query.yes("dry_run");
    query.finish()?;
    let key = idempotency_key(&headers)?;
    let team = door
        .control
        .team_member(&actor, &job.team)
        .map_err(|error| named_team(error, &job.team))?;
    if dry_run {
        return Ok(Json(team.dry_run(&job).await?).into_response());
    }
    let submitted = team.submit(&job, key).await?;
    let status = if submitted.repeated {
        StatusCode::OK
    } else {
        StatusCode::CREATED
    };
    let place = format!("/api/v1/jobs/{}", submitted.id);
    Ok((status, [(LOCATION, place)], Json(submitted)).into_response())
}

/// What a submission answers with.
#[derive(utoipa::ToSchema)]
#[schema(as = SubmitAnswer)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes the answer in the document")]
pub enum SubmitAnswer {
    /// Of a submission.
    Submitted(Submitted),
    /// Of a dry run.
    DryRun(DryRun),
}

/// A team in a spec that is not there is a wrong field, not a wrong address.
fn named_team(error: control::ServiceError, team: &str) -> Refused {
    match error {
        control::ServiceError::NotFound(_) => Refused::invalid(vec![FieldError::new(
            "team",
            format!("there is no team `{team}` that you may submit to"),
        )]),
        other => Refused::from(other),
    }
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, Refused> {
    let Some(value) = headers.get("idempotency-key") else {
        return Ok(None);
    };
    match value.to_str() {
        Ok(key) if (1..=KEY_MAX).contains(&key.len()) => Ok(Some(key)),
        _ => Err(Refused::bad_query(vec![FieldError::new(
            "Idempotency-Key",
            format!("1 to {KEY_MAX} visible ASCII characters"),
        )])),
    }
}

/// List the jobs that the caller may see, with totals.
#[utoipa::path(
    get, path = "/api/v1/jobs", tag = "jobs", operation_id = "list_jobs",
    params(
        ("team" = Option<String>, Query, description = "Only these teams, with commas between"),
        ("state" = Option<String>, Query, description = "Only these states, with commas between: queued, admitted, starting, running, reclaiming, recovering, succeeded, failed, cancelled, timed_out", pattern = "^(queued|admitted|starting|running|reclaiming|recovering|succeeded|failed|cancelled|timed_out)(,(queued|admitted|starting|running|reclaiming|recovering|succeeded|failed|cancelled|timed_out))*$"),
        ("owner" = Option<String>, Query, description = "Only this owner"),
        ("search" = Option<String>, Query, description = "Only names that contain this text"),
        ("sort" = Option<String>, Query, description = "newest (default) or oldest", pattern = "^(newest|oldest)$"),
        ("limit" = Option<u32>, Query, description = "Rows at most, 50 when left out", minimum = 1, maximum = 200),
        ("after" = Option<String>, Query, description = "`next` of the page before"),
    ),
    responses((status = 200, description = "A page of jobs", body = JobList), Problems)
)]
pub async fn list(
    State(door): State<Door>,
    Caller(actor): Caller,
    mut query: Query,
) -> Result<Json<JobList>, Refused> {
    let filter = JobFilter {
        teams: query.list("team"),
        states: query.list::<JobState>("state"),
        owner: query.text("owner"),
        search: query.text("search"),
        sort: sort(&mut query),
    };
    let limit = query.number("limit", 1, 200).unwrap_or(50) as u32;
    let page = JobPage {
        limit,
        after: query.text("after"),
    };
    query.finish()?;
    let jobs = door.control.everyone(&actor).jobs(&filter, &page).await;
    Ok(Json(jobs.map_err(Refused::of_query)?))
}

fn sort(query: &mut Query) -> SortKey {
    match query.given("sort").as_deref() {
        None | Some("newest") => SortKey::Newest,
        Some("oldest") => SortKey::Oldest,
        Some(_) => {
            query.flag("sort", "newest or oldest".to_owned());
            SortKey::Newest
        }
    }
}

/// Show a job, whole.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}", tag = "jobs", operation_id = "show_job",
    params(("id" = u64, Path, description = "The job's number")),
    responses((status = 200, description = "The job", body = JobView), Problems)
)]
pub async fn show(
    State(door): State<Door>,
    Caller(actor): Caller,
    Path(id): Path<String>,
    _: NoQuery,
) -> Result<Json<JobView>, Refused> {
    let visible = door.control.visible(&actor, number(&id)?).await?;
    Ok(Json(visible.show().await?))
}

/// What happened to a job, oldest first.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/events", tag = "jobs", operation_id = "job_events",
    params(
        ("id" = u64, Path, description = "The job's number"),
        ("after" = Option<u64>, Query, description = "Only after this `seq`"),
        ("limit" = Option<u32>, Query, description = "At most, 100 when left out", minimum = 1, maximum = 1000),
    ),
    responses((status = 200, description = "Events", body = [EventView]), Problems)
)]
pub async fn events(
    State(door): State<Door>,
    Caller(actor): Caller,
    Path(id): Path<String>,
    mut query: Query,
) -> Result<Json<Vec<EventView>>, Refused> {
    let after = query.number("after", 0, i64::MAX as u64).unwrap_or(0);
    let limit = query.number("limit", 1, 1_000).unwrap_or(100) as u32;
    query.finish()?;
    let visible = door.control.visible(&actor, number(&id)?).await?;
    let events = visible.events(after, limit).await;
    Ok(Json(events.map_err(Refused::of_query)?))
}

/// Why a job is cancelled.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    /// In the caller's words.
    #[serde(default)]
    #[schema(max_length = 500)]
    why: Option<String>,
}

/// Cancel a job: at once when it waits, otherwise when every pod is confirmed gone.
#[utoipa::path(
    post, path = "/api/v1/jobs/{id}/cancel", tag = "jobs", operation_id = "cancel_job",
    params(("id" = u64, Path, description = "The job's number")),
    request_body(content = Option<Cancel>, content_type = "application/json"),
    responses((status = 202, description = "Asked for; the job as it is now", body = JobView), Problems)
)]
pub async fn cancel(
    State(door): State<Door>,
    Caller(actor): Caller,
    Path(id): Path<String>,
    _: NoQuery,
    Optional(body): Optional<Cancel>,
) -> Result<(StatusCode, Json<JobView>), Refused> {
    let id = number(&id)?;
    door.control
        .job_owner(&actor, id)
        .await?
        .cancel(body.why.as_deref())
        .await?;
    let job = door.control.visible(&actor, id).await?.show().await?;
    Ok((StatusCode::ACCEPTED, Json(job)))
}

/// A job's number out of an address; anything else is an address that leads nowhere.
fn number(text: &str) -> Result<u64, Refused> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse()
        .ok()
        .filter(|id| plain && *id <= i64::MAX as u64)
        .ok_or_else(|| Refused::not_found(&format!("job `{text}`")))
}
