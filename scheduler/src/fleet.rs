//! What there is: flavours, the topology, nodes; and who may use it: teams, cohorts, quotas.

use crate::{CohortId, FlavourId, Limits, MilliGpu, Millis, Name, NodeId, ReclaimMode, TeamId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A kind of GPU (Kueue: ResourceFlavor).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flavour {
    /// Its name: `h100-80g`.
    pub id: FlavourId,
    /// What people call it: `H100 80 GB`.
    pub title: String,
}

/// The levels of the fabric, widest first; the last one is the node itself: `block`, `rack`, `node`.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Topology {
    /// Level names, widest first, the node last.
    pub levels: Vec<Name>,
}

/// How a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// Takes new work.
    Ready,
    /// A slow link or GPU: what runs goes on, nothing new is placed.
    Degraded,
    /// An operator's word: nothing new is placed.
    Cordoned,
    /// Being emptied.
    Draining,
    /// Confirmed lost.
    Down,
    /// Silent, and its gang went on without it: what may still run there is billed to nobody, and nothing new is placed
    /// before somebody confirms that it is gone.
    Quarantined,
    /// Kept free to replace a lost node; outside all quota.
    Spare,
}

/// What a node is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pool {
    /// Training and batch work.
    Batch,
    /// Notebooks: their cards are cut into slices, batch work is not placed there.
    Notebook,
}

/// One machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its number.
    pub id: NodeId,
    /// Its host name: `h100-b07-r2-n3`.
    pub name: Name,
    /// The kind of its GPUs; `None` on a machine without.
    pub flavour: Option<FlavourId>,
    /// Its domain at each level above the node, widest first: `["h100-b07", "h100-b07-r2"]`.
    pub domains: Vec<Name>,
    /// Whole GPUs (cards), at most 32.
    pub cards: u16,
    /// CPU in thousandths of a core.
    pub cpu_milli: u64,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// How it is.
    pub health: Health,
    /// What it is for.
    pub pool: Pool,
}

/// What one queue or cohort may use of one flavour. Kueue's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Quota {
    /// Its own.
    pub nominal: MilliGpu,
    /// The most it may borrow beyond its own; `None` = no limit.
    pub borrowing_limit: Option<MilliGpu>,
    /// The most of its own that it lends; `None` = all of it.
    pub lending_limit: Option<MilliGpu>,
}

/// A team with its queue (Kueue: ClusterQueue).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Team {
    /// Its name.
    pub id: TeamId,
    /// Where it hangs in the tree; `None` = alone: it neither lends nor borrows.
    pub cohort: Option<CohortId>,
    /// Its weight in fair shares among its siblings, in thousandths (1,000 = 1). 0 = last of all when it borrows.
    #[serde(default = "one")]
    pub weight_milli: u64,
    /// Per flavour. A flavour that is not named here cannot be asked for.
    pub quotas: BTreeMap<FlavourId, Quota>,
    /// How many of its jobs may run and wait at once.
    #[serde(default)]
    pub limits: Limits,
    /// How many of each person's jobs in it may.
    #[serde(default)]
    pub person_limits: Limits,
    /// Time limit of a job that names none; `None` = no limit.
    pub default_time_limit: Option<Millis>,
}

/// A node of the quota tree (Kueue: Cohort). It may have quota of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cohort {
    /// Its name.
    pub id: CohortId,
    /// The cohort above it; `None` = a root.
    pub parent: Option<CohortId>,
    /// Quota of its own, per flavour; often none.
    pub quotas: BTreeMap<FlavourId, Quota>,
    /// Its weight in fair shares among its siblings, in thousandths (1,000 = 1).
    #[serde(default = "one")]
    pub weight_milli: u64,
    /// Who decides on the claims of its teams.
    #[serde(default)]
    pub reclaim: ReclaimMode,
}

/// The weight of who says nothing.
fn one() -> u64 {
    1_000
}
