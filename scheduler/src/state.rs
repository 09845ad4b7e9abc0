//! The state: what the fold of all events knows. Ended jobs leave it; the store keeps them.

use crate::{
    Change, Claim, ClaimId, Cohort, CohortId, End, Ends, Flavour, FlavourId, Hold, Job, JobId,
    Load, Loans, MilliGpu, Millis, Name, Node, NodeId, PastUse, PersonId, Policy, Priority,
    RateCard, Setting, SharedMap, Suspicion, Team, TeamId, TeamLimits, Topology,
};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// How many jobs there were, by end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Ever submitted; the highest job number.
    pub submitted: u64,
    /// Ended, by kind.
    pub succeeded: u64,
    /// Ended, by kind.
    pub failed: u64,
    /// Ended, by kind.
    pub cancelled: u64,
    /// Ended, by kind.
    pub timed_out: u64,
}

impl Counts {
    /// Counts one end.
    pub(crate) fn count(&mut self, end: End) {
        match end {
            End::Succeeded => self.succeeded += 1,
            End::Failed => self.failed += 1,
            End::Cancelled => self.cancelled += 1,
            End::TimedOut => self.timed_out += 1,
        }
    }
}

/// A node and what of it is free.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreeNode {
    /// The node.
    pub node: Node,
    /// Free thousandths of each card, by card number. Taken from admit (so that nothing else is placed there) to
    /// confirmed exit.
    pub free_milli: Vec<u16>,
    /// Free CPU in thousandths of a core.
    pub free_cpu_milli: u64,
    /// Free memory in MiB.
    pub free_memory_mib: u64,
    /// Gangs with a pod here.
    pub jobs: Vec<JobId>,
    /// It misses its heartbeats since then: nothing new is placed here.
    #[serde(default)]
    pub silent_since: Option<Millis>,
}

/// Everything that is, by id.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct State {
    /// Time of the last event.
    pub at: Millis,
    /// The last whole hour at which usage lines were cut.
    pub hour: Millis,
    /// Levels of the fabric.
    pub topology: Topology,
    /// Kinds of GPU.
    pub flavours: BTreeMap<FlavourId, Flavour>,
    /// The quota tree's inner nodes.
    pub cohorts: BTreeMap<CohortId, Cohort>,
    /// Its leaves.
    pub teams: BTreeMap<TeamId, Team>,
    /// Machines.
    pub nodes: SharedMap<NodeId, FreeNode>,
    /// Spares that a block is meant to have, by flavour and block: the most it had at once.
    #[serde(default)]
    pub spare_places: BTreeMap<FlavourId, BTreeMap<Name, u32>>,
    /// What is set aside besides single jobs, in order of what it is.
    #[serde(default)]
    pub holds: Vec<Hold>,
    /// Jobs that have not ended.
    pub jobs: SharedMap<JobId, Job>,
    /// `charged` of each team and flavour: the sum over its admitted, starting, running and recovering jobs. No zeros.
    pub charged: BTreeMap<TeamId, BTreeMap<FlavourId, MilliGpu>>,
    /// Who borrows from whom, by flavour; no empty rows.
    #[serde(default)]
    pub loans: BTreeMap<FlavourId, Loans>,
    /// Jobs of each person in each team, by whether they run. No zeros.
    #[serde(default)]
    pub load: BTreeMap<TeamId, BTreeMap<PersonId, Load>>,
    /// What each team was charged of each flavour by the hour, as far back as it counts. Nothing that is nothing.
    #[serde(default)]
    pub past_use: BTreeMap<TeamId, BTreeMap<FlavourId, PastUse>>,
    /// Numbers that an admin may change.
    pub policy: Policy,
    /// Who last changed each policy, by name; those that nobody changed are left out.
    #[serde(default)]
    pub policy_changes: BTreeMap<String, Change<Setting>>,
    /// Who last changed each team's limits.
    #[serde(default)]
    pub limit_changes: BTreeMap<TeamId, Change<TeamLimits>>,
    /// Prices, in order of publication.
    pub rate_cards: Vec<RateCard>,
    /// How many jobs there were.
    pub counts: Counts,
    /// How each job ended, by number.
    #[serde(default)]
    pub ends: Ends,
    /// Admissions so far.
    pub admissions: u64,
    /// Events folded so far.
    pub events: u64,
    /// Claims that are neither fulfilled nor withdrawn.
    #[serde(default)]
    pub claims: BTreeMap<ClaimId, Claim>,
    /// Claims so far.
    #[serde(default)]
    pub claims_ever: u64,
    /// Waiting jobs in the order of the cycle: priority, first submit time, id.
    pub queue: BTreeSet<Turn>,
    /// Jobs of each team and flavour that are charged, oldest admission first. No empty lists.
    pub laid: BTreeMap<TeamId, BTreeMap<FlavourId, Vec<JobId>>>,
    /// Gangs that keep their nodes while others are found in place of those that they lost.
    #[serde(default)]
    pub recovering: BTreeSet<JobId>,
    /// Failures that nodes are suspected of; no empty lists.
    #[serde(default)]
    pub suspicions: BTreeMap<NodeId, Vec<Suspicion>>,
    /// When the clock next concerns a job: the end of its back-off, of its launch or of its time.
    pub due: BTreeSet<(Millis, JobId)>,
}

impl State {
    /// Those for whom somebody was taken, as far as it is kept.
    pub(crate) fn evicted_for(&self) -> BTreeSet<JobId> {
        let evictions = self.jobs.values().flat_map(|job| &job.evictions);
        evictions.map(|eviction| eviction.claimant).collect()
    }
}

/// A waiting job's place in the order of the cycle.
pub type Turn = (Reverse<Priority>, Millis, JobId);
