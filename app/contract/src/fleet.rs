//! The fleet and its quotas as every door shows them.

use crate::{Gpus, TeamPerson};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One flavour's hardware now, in GPUs. `total = busy + free + notebook + broken`; spares are apart. What is held counts as
/// broken, since nothing new starts there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FlavourUse {
    /// Flavour.
    pub flavour: String,
    /// Its title.
    pub title: String,
    /// All cards but those of spares, which stand in for lost ones.
    pub total: Gpus,
    /// Held or taken by gangs.
    pub busy: Gpus,
    /// Of `busy`, borrowed.
    pub borrowed: Gpus,
    /// Free on ready nodes.
    pub free: Gpus,
    /// On spare nodes.
    pub spare: Gpus,
    /// On notebook nodes.
    pub notebook: Gpus,
    /// On nodes that take nothing new, and not busy.
    pub broken: Gpus,
    /// Blocks that are wholly free.
    pub whole_blocks_free: u32,
    /// Sum of the teams' nominals.
    pub nominal: Gpus,
}

/// The fleet at a glance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FleetView {
    /// When this was made.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub now: Timestamp,
    /// How fast the clock runs: 1 = real time.
    pub speed: u32,
    /// Journal sequence that this shows.
    pub seq: u64,
    /// By flavour.
    pub flavours: Vec<FlavourUse>,
    /// Jobs waiting that can run.
    pub waiting_jobs: u64,
    /// GPUs that they ask for.
    pub waiting_gpus: Gpus,
    /// Queued jobs that can never run.
    pub never_jobs: u64,
    /// Jobs with GPUs.
    pub active_jobs: u64,
    /// Nodes not ready, by health: `down` 3.
    pub unhealthy: Vec<(String, u32)>,
}

/// One node in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NodeRow {
    /// Number.
    pub id: u32,
    /// Host name.
    pub name: String,
    /// Flavour.
    pub flavour: Option<String>,
    /// Domains, widest first.
    pub domains: Vec<String>,
    /// `ready`, `down`, `spare`, ...
    pub health: String,
    /// It takes no new work for a hold: `rack b03-r1 held by admin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// `batch` or `notebook`.
    pub pool: String,
    /// Cards.
    pub gpus: u16,
    /// Of these, wholly free.
    pub free: u16,
    /// Jobs here that the actor may see.
    pub jobs: Vec<u64>,
    /// Jobs here that the actor may not see.
    pub other_jobs: u32,
}

/// A named domain with its size (for forms).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DomainView {
    /// Name.
    pub name: String,
    /// GPUs.
    pub gpus: Gpus,
}

/// One card of the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum MapCard {
    /// Nobody's.
    Free,
    /// Held inside nominal.
    Own,
    /// Held beyond nominal.
    Borrowed,
    /// A share of it is held.
    Shared,
    /// On a node that takes nothing new: broken, or held.
    Broken,
    /// On a spare node.
    Spare,
    /// On a notebook node.
    Notebook,
}

/// One node of the map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MapNode {
    /// Number.
    pub id: u32,
    /// Host name.
    pub name: String,
    /// Health.
    pub health: String,
    /// It takes no new work for a hold: `rack b03-r1 held by admin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// One a card.
    pub cards: Vec<MapCard>,
    /// Teams that hold here; the actor may see all team names.
    pub teams: Vec<String>,
    /// Jobs that the actor may see.
    pub jobs: Vec<u64>,
}

/// A rack of the map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MapRack {
    /// Name.
    pub name: String,
    /// Nodes.
    pub nodes: Vec<MapNode>,
}

/// A block of the map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MapBlock {
    /// Name.
    pub name: String,
    /// Flavour.
    pub flavour: String,
    /// All its cards but its spares'.
    pub total: Gpus,
    /// Busy cards.
    pub busy: Gpus,
    /// `whole and free`, `full`, `room for 80`, `in pieces`.
    pub note: String,
    /// Racks.
    pub racks: Vec<MapRack>,
}

/// The map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MapView {
    /// When this was made.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub now: Timestamp,
    /// Blocks, by name.
    pub blocks: Vec<MapBlock>,
}

/// One flavour of a team's or cohort's quota. Limits: `None` = no limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QuotaView {
    /// Flavour.
    pub flavour: String,
    /// Its own.
    pub nominal: Gpus,
    /// Charged now (decided).
    pub charged: Gpus,
    /// Of these, inside nominal.
    pub own: Gpus,
    /// Of these, beyond it.
    pub borrowed: Gpus,
    /// Of its nominal, used by others.
    pub lent: Gpus,
    /// Held on nodes now; differs from `charged` while a gang starts or leaves.
    pub held: Gpus,
    /// May still be charged.
    pub available: Gpus,
    /// Most it may borrow.
    pub borrowing_limit: Option<Gpus>,
    /// Most it lends.
    pub lending_limit: Option<Gpus>,
}

/// A team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TeamView {
    /// Name.
    pub id: String,
    /// Cohort.
    pub cohort: Option<String>,
    /// Quotas.
    pub quotas: Vec<QuotaView>,
    /// Jobs waiting.
    pub waiting: u64,
    /// Jobs with GPUs.
    pub active: u64,
    /// Members with their roles; only where the actor may see them (own team, admin), else empty.
    pub people: Vec<TeamPerson>,
    /// Time limit of jobs that name none, in milliseconds.
    pub default_time_limit_ms: Option<u64>,
}

/// A cohort with what hangs below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CohortView {
    /// Name.
    pub id: String,
    /// The one above.
    pub parent: Option<String>,
    /// Depth in the tree, 0 = root.
    pub depth: u32,
    /// Sums of its subtree.
    pub quotas: Vec<QuotaView>,
    /// Its teams.
    pub teams: Vec<TeamView>,
}
