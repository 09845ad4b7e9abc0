//! Policies and limits: shown, and changed by admins.

use super::Problems;
use super::caller::Caller;
use super::input::{NoQuery, Spec};
use super::problem::Refused;
use crate::door::Door;
use axum::Json;
use axum::extract::{Path, State};
use contract::{LimitList, PolicyView, SetLimits, SetPolicy, TeamLimitsView};

/// List the policies: each with its meaning, range, default, and who last changed it. For admins.
#[utoipa::path(
    get, path = "/api/v1/policies", tag = "policies", operation_id = "list_policies",
    responses((status = 200, description = "All policies", body = [PolicyView]), Problems)
)]
pub async fn policies(
    State(door): State<Door>,
    Caller(actor): Caller,
    _: NoQuery,
) -> Result<Json<Vec<PolicyView>>, Refused> {
    Ok(Json(door.control.admin(&actor)?.policies().await?))
}

/// Change a policy. With a version that a colleague has changed since, 409 says what they have changed. For admins.
#[utoipa::path(
    put, path = "/api/v1/policies/{name}", tag = "policies", operation_id = "set_policy",
    params(("name" = String, Path, description = "The policy's name")),
    request_body(content = SetPolicy, content_type = "application/json"),
    responses((status = 200, description = "The policy as it is now", body = PolicyView), Problems)
)]
pub async fn set_policy(
    State(door): State<Door>,
    Caller(actor): Caller,
    Path(name): Path<String>,
    _: NoQuery,
    Spec(body): Spec<SetPolicy>,
) -> Result<Json<PolicyView>, Refused> {
    let admin = door.control.admin(&actor)?;
    Ok(Json(admin.set_policy(&name, &body).await?))
}

/// List limits of the caller's teams, and how far they are used; of all teams for managers and admins.
#[utoipa::path(
    get, path = "/api/v1/limits", tag = "teams", operation_id = "list_limits",
    responses((status = 200, description = "Limits", body = LimitList), Problems)
)]
pub async fn limits(
    State(door): State<Door>,
    Caller(actor): Caller,
    _: NoQuery,
) -> Result<Json<LimitList>, Refused> {
    Ok(Json(door.control.everyone(&actor).limits().await?))
}

/// Change all limits of a team at once; what is left out has none. With a version that a colleague has changed since, 409 says
/// what they have changed. For admins.
#[utoipa::path(
    put, path = "/api/v1/teams/{id}/limits", tag = "teams", operation_id = "set_limits",
    params(("id" = String, Path, description = "The team's name")),
    request_body(content = SetLimits, content_type = "application/json"),
    responses((status = 200, description = "The limits as they are now", body = TeamLimitsView), Problems)
)]
pub async fn set_limits(
    State(door): State<Door>,
    Caller(actor): Caller,
    Path(id): Path<String>,
    _: NoQuery,
    Spec(body): Spec<SetLimits>,
) -> Result<Json<TeamLimitsView>, Refused> {
    let admin = door.control.admin(&actor)?;
    Ok(Json(admin.set_limits(&id, &body).await?))
}
