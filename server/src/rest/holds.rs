//! Holds and drains: of jobs, teams, cohorts, nodes and the domains around them.

use super::Problems;
use super::caller::Caller;
use super::input::{NoQuery, Query, Spec};
use super::problem::Refused;
use crate::door::Door;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use contract::{HoldList, HoldView, SetHold};
use control::ServiceError;

/// List what is set aside: machines and cohorts for all, teams and jobs for those who may see them.
#[utoipa::path(
    get, path = "/api/v1/holds", tag = "holds", operation_id = "list_holds",
    responses((status = 200, description = "What is set aside", body = HoldList), Problems)
)]
pub async fn list(
    State(door): State<Door>,
    Caller(actor): Caller,
    _: NoQuery,
) -> Result<Json<HoldList>, Refused> {
    Ok(Json(door.control.everyone(&actor).holds().await?))
}

/// Set something aside: nothing new starts there; with `drain` those that run leave, too, each with its next durable save.
/// Machines and cohorts are for admins, a team for its leads, a job for its owner.
#[utoipa::path(
    post, path = "/api/v1/holds", tag = "holds", operation_id = "set_hold",
    request_body(content = SetHold, content_type = "application/json"),
    responses((status = 201, description = "Done; the hold as it is now", body = HoldView), Problems)
)]
pub async fn set(
    State(door): State<Door>,
    Caller(actor): Caller,
    _: NoQuery,
    Spec(body): Spec<SetHold>,
) -> Result<(StatusCode, Json<HoldView>), Refused> {
    let holder = door.control.holder(&actor, &body.on, &body.what).await?;
    let hold = holder.hold(body.mode, body.why.as_deref()).await?;
    Ok((StatusCode::CREATED, Json(hold)))
}

/// Release what is set aside. What somebody has held who stands above the caller is not the caller's to release.
#[utoipa::path(
    delete, path = "/api/v1/holds/{on}/{what}", tag = "holds", operation_id = "release_hold",
    params(
        ("on" = String, Path, description = "The kind of thing: job, team, cohort, node, rack, ..."),
        ("what" = String, Path, description = "Its name or number"),
        ("why" = Option<String>, Query, description = "In the caller's words", max_length = 500),
    ),
    responses((status = 204, description = "Released"), Problems)
)]
pub async fn release(
    State(door): State<Door>,
    Caller(actor): Caller,
    Path((on, what)): Path<(String, String)>,
    mut query: Query,
) -> Result<StatusCode, Refused> {
    let why = query.text("why");
    query.finish()?;
    let holder = door.control.holder(&actor, &on, &what).await;
    // What is wrong with the address leads nowhere.
    let holder = holder.map_err(|error| match error {
        ServiceError::Invalid(_) => Refused::not_found(&format!("{on} `{what}` to release")),
        other => other.into(),
    })?;
    holder
        .release(why.as_deref())
        .await
        .map_err(Refused::of_query)?;
    Ok(StatusCode::NO_CONTENT)
}
