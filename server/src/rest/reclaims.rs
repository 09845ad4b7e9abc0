//! Reclaims: list, show, and the four answers.

use super::Problems;
use super::caller::Caller;
use super::input::{NoQuery, Query, Spec};
use super::problem::Refused;
use crate::door::Door;
use axum::Json;
use axum::extract::{Path, State};
use contract::{
    DeclineReclaim, JobPage, ProposeVictims, ReclaimFilter, ReclaimList, ReclaimStage, ReclaimView,
};
use control::Actor;

/// List the reclaims that the caller may see, newest first: those of the caller's teams, on either side; all for managers and
/// admins.
#[utoipa::path(
    get, path = "/api/v1/reclaims", tag = "reclaims", operation_id = "list_reclaims",
    params(
        ("team" = Option<String>, Query, description = "Only those of these teams, on either side, with commas between"),
        ("stage" = Option<String>, Query, description = "Only these stages, with commas between: requested, approved, made, started, declined, withdrawn", pattern = "^(requested|approved|made|started|declined|withdrawn)(,(requested|approved|made|started|declined|withdrawn))*$"),
        ("limit" = Option<u32>, Query, description = "Rows at most, 20 when left out", minimum = 1, maximum = 100),
        ("after" = Option<String>, Query, description = "`next` of the page before"),
    ),
    responses((status = 200, description = "A page of reclaims", body = ReclaimList), Problems)
)]
pub async fn list(
    State(door): State<Door>,
    Caller(actor): Caller,
    mut query: Query,
) -> Result<Json<ReclaimList>, Refused> {
    let filter = ReclaimFilter {
        stages: query.list::<ReclaimStage>("stage"),
        teams: query.list("team"),
    };
    let page = JobPage {
        limit: query.number("limit", 1, 100).unwrap_or(20) as u32,
        after: query.text("after"),
    };
    query.finish()?;
    let list = door.control.everyone(&actor).reclaims(&filter, &page).await;
    Ok(Json(list.map_err(Refused::of_query)?))
}

/// Show a reclaim with its price now. For members of the teams on either side, managers and admins.
#[utoipa::path(
    get, path = "/api/v1/reclaims/{id}", tag = "reclaims", operation_id = "show_reclaim",
    params(("id" = u64, Path, description = "The reclaim's number")),
    responses((status = 200, description = "The reclaim", body = ReclaimView), Problems)
)]
pub async fn show(
    State(door): State<Door>,
    Caller(actor): Caller,
    Path(id): Path<String>,
    _: NoQuery,
) -> Result<Json<ReclaimView>, Refused> {
    as_it_is(&door, &actor, number(&id)?).await
}

/// Approve a reclaim: those who give back save and go. For admins.
#[utoipa::path(
    post, path = "/api/v1/reclaims/{id}/approve", tag = "reclaims", operation_id = "approve_reclaim",
    params(
        ("id" = u64, Path, description = "The reclaim's number"),
        ("seen" = Option<String>, Query, description = "Jobs that would stop, as they were shown, with commas between: if others are named by now, 409", pattern = "^[0-9]+(,[0-9]+)*$"),
    ),
    responses((status = 200, description = "Approved; the reclaim as it is now", body = ReclaimView), Problems)
)]
pub async fn approve(
    State(door): State<Door>,
    Caller(actor): Caller,
    Path(id): Path<String>,
    mut query: Query,
) -> Result<Json<ReclaimView>, Refused> {
    let id = number(&id)?;
    let seen = query.list::<u64>("seen");
    query.finish()?;
    door.control
        .reclaim_admin(&actor, id)
        .await?
        .approve((!seen.is_empty()).then_some(seen.as_slice()))
        .await?;
    as_it_is(&door, &actor, id).await
}

/// Decline a reclaim, with a reason. For admins.
#[utoipa::path(
    post, path = "/api/v1/reclaims/{id}/decline", tag = "reclaims", operation_id = "decline_reclaim",
    params(("id" = u64, Path, description = "The reclaim's number")),
    request_body(content = DeclineReclaim, content_type = "application/json"),
    responses((status = 200, description = "Declined; the reclaim as it is now", body = ReclaimView), Problems)
)]
pub async fn decline(
    State(door): State<Door>,
    Caller(actor): Caller,
    Path(id): Path<String>,
    _: NoQuery,
    Spec(body): Spec<DeclineReclaim>,
) -> Result<Json<ReclaimView>, Refused> {
    let id = number(&id)?;
    let admin = door.control.reclaim_admin(&actor, id).await?;
    admin.decline(&body.reason).await?;
    as_it_is(&door, &actor, id).await
}

/// Put a reclaim off by one more deadline, once. For leads of a team that would lose by it, and admins.
#[utoipa::path(
    post, path = "/api/v1/reclaims/{id}/defer", tag = "reclaims", operation_id = "defer_reclaim",
    params(("id" = u64, Path, description = "The reclaim's number")),
    responses((status = 200, description = "Put off; the reclaim as it is now", body = ReclaimView), Problems)
)]
pub async fn defer(
    State(door): State<Door>,
    Caller(actor): Caller,
    Path(id): Path<String>,
    _: NoQuery,
) -> Result<Json<ReclaimView>, Refused> {
    let id = number(&id)?;
    door.control
        .borrowers_lead(&actor, id)
        .await?
        .defer()
        .await?;
    as_it_is(&door, &actor, id).await
}

/// Propose other jobs that would do instead. For leads of a team that would lose by it, and admins.
#[utoipa::path(
    post, path = "/api/v1/reclaims/{id}/propose", tag = "reclaims", operation_id = "propose_victims",
    params(("id" = u64, Path, description = "The reclaim's number")),
    request_body(content = ProposeVictims, content_type = "application/json"),
    responses((status = 200, description = "Proposed; the reclaim as it is now", body = ReclaimView), Problems)
)]
pub async fn propose(
    State(door): State<Door>,
    Caller(actor): Caller,
    Path(id): Path<String>,
    _: NoQuery,
    Spec(body): Spec<ProposeVictims>,
) -> Result<Json<ReclaimView>, Refused> {
    let id = number(&id)?;
    let lead = door.control.borrowers_lead(&actor, id).await?;
    lead.propose(&body.victims).await?;
    as_it_is(&door, &actor, id).await
}

async fn as_it_is(door: &Door, actor: &Actor, id: u64) -> Result<Json<ReclaimView>, Refused> {
    let reclaim = door.control.sees_reclaim(actor, id).await?;
    Ok(Json(reclaim.show().await?))
}

fn number(text: &str) -> Result<u64, Refused> {
    super::number(text)
        .filter(|id| *id <= i64::MAX as u64)
        .ok_or_else(|| Refused::not_found(&format!("reclaim `{text}`")))
}
