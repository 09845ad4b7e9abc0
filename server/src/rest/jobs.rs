//! Jobs: submit, list, show, events, hold, release, cancel.

use super::Problems;
use super::caller::Caller;
use super::input::{self, NoQuery, Optional, Query, Spec};
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
use control::Actor;
use scheduler::HoldMode;
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
    let refused = |problem: String| {
        let field = vec![FieldError::new("Idempotency-Key", problem)];
        Err(Refused::bad_query(field))
    };
    let mut given = headers.get_all("idempotency-key").iter();
    let Some(key) = given.next() else {
        return Ok(None);
    };
    if given.next().is_some() {
        return refused("is given twice: send one".to_owned());
    }
    // A tab may stand in a header, and not in a key.
    match key.to_str() {
        Ok(text) if (1..=KEY_MAX).contains(&text.len()) && !text.contains('\t') => Ok(Some(text)),
        _ => refused(format!("1 to {KEY_MAX} visible ASCII characters")),
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
        ("after" = Option<String>, Query, description = "`next` of the page before", pattern = "^[no](0|[1-9a-f][0-9a-f]{0,15})$"),
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

/// Why a job is cancelled, released, suspended or resumed.
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
    accepted(&door, &actor, id).await
}

/// Why a job is held or released, and what becomes of it when it runs.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    /// In the caller's words: told to everybody who asks why it waits.
    #[serde(default)]
    #[schema(max_length = 500)]
    why: Option<String>,
    /// Let it leave at its next durable save, if it runs; otherwise it goes on.
    #[serde(default)]
    drain: bool,
}

/// Hold a job: it does not start, or not again, until it is released.
#[utoipa::path(
    post, path = "/api/v1/jobs/{id}/hold", tag = "jobs", operation_id = "hold_job",
    params(("id" = u64, Path, description = "The job's number")),
    request_body(content = Option<Hold>, content_type = "application/json"),
    responses((status = 202, description = "Done; the job as it is now", body = JobView), Problems)
)]
pub async fn hold(
    State(door): State<Door>,
    Caller(actor): Caller,
    Path(id): Path<String>,
    _: NoQuery,
    Optional(body): Optional<Hold>,
) -> Result<(StatusCode, Json<JobView>), Refused> {
    let id = number(&id)?;
    let mode = match body.drain {
        true => HoldMode::Drain,
        false => HoldMode::Hold,
    };
    let owner = door.control.job_owner(&actor, id).await?;
    owner.hold(mode, body.why.as_deref()).await?;
    accepted(&door, &actor, id).await
}

/// Release a job that is held.
#[utoipa::path(
    post, path = "/api/v1/jobs/{id}/release", tag = "jobs", operation_id = "release_job",
    params(("id" = u64, Path, description = "The job's number")),
    request_body(content = Option<Cancel>, content_type = "application/json"),
    responses((status = 202, description = "Done; the job as it is now", body = JobView), Problems)
)]
pub async fn release(
    State(door): State<Door>,
    Caller(actor): Caller,
    Path(id): Path<String>,
    _: NoQuery,
    Optional(body): Optional<Cancel>,
) -> Result<(StatusCode, Json<JobView>), Refused> {
    let id = number(&id)?;
    let owner = door.control.job_owner(&actor, id).await?;
    owner.release(body.why.as_deref()).await?;
    accepted(&door, &actor, id).await
}

/// Suspend a notebook: it gives its GPUs back and costs nothing, and keeps its place on record until it is resumed.
#[utoipa::path(
    post, path = "/api/v1/jobs/{id}/suspend", tag = "jobs", operation_id = "suspend_job",
    params(("id" = u64, Path, description = "The job's number")),
    request_body(content = Option<Cancel>, content_type = "application/json"),
    responses((status = 202, description = "Asked for; the job as it is now", body = JobView), Problems)
)]
pub async fn suspend(
    State(door): State<Door>,
    Caller(actor): Caller,
    Path(id): Path<String>,
    _: NoQuery,
    Optional(body): Optional<Cancel>,
) -> Result<(StatusCode, Json<JobView>), Refused> {
    let id = number(&id)?;
    let owner = door.control.job_owner(&actor, id).await?;
    owner.suspend(body.why.as_deref()).await?;
    accepted(&door, &actor, id).await
}

/// Resume a suspended notebook: it waits with its first submit time, and starts again.
#[utoipa::path(
    post, path = "/api/v1/jobs/{id}/resume", tag = "jobs", operation_id = "resume_job",
    params(("id" = u64, Path, description = "The job's number")),
    request_body(content = Option<Cancel>, content_type = "application/json"),
    responses((status = 202, description = "Done; the job as it is now", body = JobView), Problems)
)]
pub async fn resume(
    State(door): State<Door>,
    Caller(actor): Caller,
    Path(id): Path<String>,
    _: NoQuery,
    Optional(body): Optional<Cancel>,
) -> Result<(StatusCode, Json<JobView>), Refused> {
    let id = number(&id)?;
    let owner = door.control.job_owner(&actor, id).await?;
    owner.resume(body.why.as_deref()).await?;
    accepted(&door, &actor, id).await
}

/// What was asked is done or under way; the job as it is now.
async fn accepted(
    door: &Door,
    actor: &Actor,
    id: u64,
) -> Result<(StatusCode, Json<JobView>), Refused> {
    let job = door.control.visible(actor, id).await?.show().await?;
    Ok((StatusCode::ACCEPTED, Json(job)))
}

/// A job's number out of an address. The store's numbers are signed.
fn number(text: &str) -> Result<u64, Refused> {
    input::number(text)
        .filter(|id| *id <= i64::MAX as u64)
        .ok_or_else(|| Refused::not_found(&format!("job `{text}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_header_of_visible_characters() {
        let check = |keys: &[&str]| {
            let mut headers = HeaderMap::new();
            for key in keys {
                headers.append("idempotency-key", key.parse().expect("a header"));
            }
            let key = idempotency_key(&headers);
            key.map(|key| key.map(str::to_owned))
                .map_err(|refused| format!("{refused:?}"))
        };
        assert_eq!(check(&[]), Ok(None));
        assert_eq!(check(&["a key"]), Ok(Some("a key".to_owned())));
        for keys in [
            &["a", "a"][..],
            &["a", "b"],
            &["a\tb"],
            &[""],
            &[&"k".repeat(201)],
        ] {
            let said = check(keys).expect_err("refused");
            assert!(
                said.contains("field: \"Idempotency-Key\""),
                "{keys:?}: {said}"
            );
        }
    }
}
