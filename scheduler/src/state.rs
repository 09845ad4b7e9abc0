//! The state: what the fold of all events knows. Ended jobs leave it; the store keeps them.

use crate::{
    Claim, ClaimId, Cohort, CohortId, End, Flavour, FlavourId, Job, JobId, Loans, MilliGpu, Millis,
    Name, Node, NodeId, PastUse, Policy, Priority, RateCard, Team, TeamId, Topology,
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
    pub nodes: BTreeMap<NodeId, FreeNode>,
    /// Spares that a block is meant to have, by flavour and block: the most it had at once.
    #[serde(default)]
    pub spare_places: BTreeMap<FlavourId, BTreeMap<Name, u32>>,
    /// Jobs that have not ended.
    pub jobs: BTreeMap<JobId, Job>,
    /// `charged` of each team and flavour: the sum over its admitted, starting, running and recovering jobs. No zeros.
    pub charged: BTreeMap<TeamId, BTreeMap<FlavourId, MilliGpu>>,
    /// Who borrows from whom, by flavour; no empty rows.
    #[serde(default)]
    pub loans: BTreeMap<FlavourId, Loans>,
    /// What each team was charged of each flavour by the hour, as far back as it counts. Nothing that is nothing.
    #[serde(default)]
    pub past_use: BTreeMap<TeamId, BTreeMap<FlavourId, PastUse>>,
    /// Numbers that an admin may change.
    pub policy: Policy,
    /// Prices, in order of publication.
    pub rate_cards: Vec<RateCard>,
    /// How many jobs there were.
    pub counts: Counts,
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
    /// When the clock next concerns a job: the end of its back-off, of its launch or of its time.
    pub due: BTreeSet<(Millis, JobId)>,
}

impl State {
    /// True when somebody was taken for this job.
    pub(crate) fn has_evicted_for(&self, claimant: JobId) -> bool {
        let evictions = self.jobs.values().flat_map(|job| &job.evictions);
        evictions
            .into_iter()
            .any(|eviction| eviction.claimant == claimant)
    }
}

/// A waiting job's place in the order of the cycle.
pub type Turn = (Reverse<Priority>, Millis, JobId);
