//! The fleet, its nodes, its teams and their quotas.

use super::Problems;
use super::caller::Caller;
use super::input::{NoQuery, Spec, number};
use super::problem::Refused;
use crate::door::Door;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use contract::{CohortView, FieldError, FleetView, MapView, NodeRow, TeamShareView, TeamView};
use serde::Deserialize;

/// The fleet at a glance.
#[utoipa::path(get, path = "/api/v1/fleet", tag = "fleet", operation_id = "fleet",
    responses((status = 200, description = "The fleet", body = FleetView), Problems))]
pub async fn fleet(
    State(door): State<Door>,
    Caller(actor): Caller,
    _: NoQuery,
) -> Result<Json<FleetView>, Refused> {
    Ok(Json(door.control.everyone(&actor).fleet().await?))
}

/// Every card, by block, rack and node.
#[utoipa::path(get, path = "/api/v1/map", tag = "fleet", operation_id = "map",
    responses((status = 200, description = "The map", body = MapView), Problems))]
pub async fn map(
    State(door): State<Door>,
    Caller(actor): Caller,
    _: NoQuery,
) -> Result<Json<MapView>, Refused> {
    Ok(Json(door.control.everyone(&actor).map().await?))
}

/// All nodes.
#[utoipa::path(get, path = "/api/v1/nodes", tag = "fleet", operation_id = "nodes",
    responses((status = 200, description = "Nodes", body = [NodeRow]), Problems))]
pub async fn nodes(
    State(door): State<Door>,
    Caller(actor): Caller,
    _: NoQuery,
) -> Result<Json<Vec<NodeRow>>, Refused> {
    Ok(Json(door.control.everyone(&actor).nodes().await?))
}

/// A node's new health.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetHealth {
    /// `ready`, `cordoned`, `draining`, `down`, ...
    health: String,
    /// Why, for those who ask later.
    #[schema(min_length = 1, max_length = 500)]
    why: String,
}

/// Change a node's health. For admins.
#[utoipa::path(post, path = "/api/v1/nodes/{id}/health", tag = "fleet", operation_id = "set_node_health",
    params(("id" = u32, Path, description = "The node's number")),
    request_body = SetHealth,
    responses((status = 204, description = "Done"), Problems))]
pub async fn set_health(
    State(door): State<Door>,
    Caller(actor): Caller,
    Path(id): Path<String>,
    _: NoQuery,
    Spec(body): Spec<SetHealth>,
) -> Result<StatusCode, Refused> {
    let admin = door.control.admin(&actor)?;
    let node = number(&id).ok_or_else(|| Refused::not_found(&format!("node `{id}`")))?;
    if !(1..=500).contains(&body.why.trim().chars().count()) {
        return Err(Refused::invalid(vec![FieldError::new(
            "why",
            "1 to 500 characters: others will ask",
        )]));
    }
    admin
        .set_health(node, &body.health, body.why.trim())
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// All teams with their quotas.
#[utoipa::path(get, path = "/api/v1/teams", tag = "teams", operation_id = "teams",
    responses((status = 200, description = "Teams", body = [TeamView]), Problems))]
pub async fn teams(
    State(door): State<Door>,
    Caller(actor): Caller,
    _: NoQuery,
) -> Result<Json<Vec<TeamView>>, Refused> {
    Ok(Json(door.control.everyone(&actor).teams().await?))
}

/// One team; its people only where the caller may see them.
#[utoipa::path(get, path = "/api/v1/teams/{id}", tag = "teams", operation_id = "team",
    params(("id" = String, Path, description = "The team's name")),
    responses((status = 200, description = "The team", body = TeamView), Problems))]
pub async fn team(
    State(door): State<Door>,
    Caller(actor): Caller,
    Path(id): Path<String>,
    _: NoQuery,
) -> Result<Json<TeamView>, Refused> {
    Ok(Json(door.control.everyone(&actor).team(&id).await?))
}

/// What a team deserves now, and why: its own, its part of the surplus, what it lends and borrows, and how much of it could
/// be called back.
#[utoipa::path(get, path = "/api/v1/teams/{id}/share", tag = "teams", operation_id = "team_share",
    params(("id" = String, Path, description = "The team's name")),
    responses((status = 200, description = "The team's fair share", body = TeamShareView), Problems))]
pub async fn team_share(
    State(door): State<Door>,
    Caller(actor): Caller,
    Path(id): Path<String>,
    _: NoQuery,
) -> Result<Json<TeamShareView>, Refused> {
    Ok(Json(door.control.everyone(&actor).team_share(&id).await?))
}

/// The tree of cohorts and teams, roots first, depth first.
#[utoipa::path(get, path = "/api/v1/quotas", tag = "teams", operation_id = "quotas",
    responses((status = 200, description = "The quota tree", body = [CohortView]), Problems))]
pub async fn quotas(
    State(door): State<Door>,
    Caller(actor): Caller,
    _: NoQuery,
) -> Result<Json<Vec<CohortView>>, Refused> {
    Ok(Json(door.control.everyone(&actor).quota_tree().await?))
}
