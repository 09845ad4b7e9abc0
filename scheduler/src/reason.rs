//! Why a job waits: typed, true, one dominant by a fixed precedence.

use crate::{ClaimId, CohortId, FlavourId, JobId, MilliGpu, Millis, Name, Stage, TeamId};
use serde::{Deserialize, Serialize};

/// Whose maximum a request exceeds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "scope", rename_all = "snake_case")]
pub enum Scope {
    /// All hardware of the flavours asked for.
    Fleet,
    /// Everything the team could ever be charged: its nominal and its borrowing limit, or the tree's total.
    Team {
        /// The team.
        team: TeamId,
    },
    /// The largest domain of the level that must hold it.
    Domain {
        /// The level.
        level: Name,
    },
    /// The largest node: a pod asks more than any node has.
    Node,
}

/// One thing that keeps a job from starting.
///
/// The variants stand in order of precedence: the first one that holds is the dominant one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "blocker", rename_all = "snake_case")]
pub enum Blocker {
    /// The spec names something that is not there (any more).
    Misconfigured {
        /// Which field.
        field: String,
        /// What it names.
        names: String,
    },
    /// The team has no quota in any flavour asked for.
    NoMatchingFlavour {
        /// The team.
        team: TeamId,
    },
    /// Can never run.
    ExceedsMaximum {
        /// GPUs asked.
        asks: MilliGpu,
        /// The most there could be.
        limit: MilliGpu,
        /// Of what.
        #[serde(flatten)]
        of: Scope,
    },
    /// Was tried, failed to launch, and is not tried again before then.
    BackOff {
        /// Until.
        until: Millis,
    },
    /// Quota is short.
    Quota {
        /// The flavour that comes closest.
        flavour: FlavourId,
        /// GPUs asked.
        asks: MilliGpu,
        /// What the team may still be charged.
        available: MilliGpu,
        /// `asks - available`.
        short_by: MilliGpu,
        /// Where it is short: the team's own limit when `None`, otherwise the cohort that has no more to lend.
        at: Option<CohortId>,
        /// Who holds it: teams that borrow there, most first, at most three.
        holders: Vec<(TeamId, MilliGpu)>,
    },
    /// Quota and room are there, but a job ahead has a planned start that this one would move: it needs the same quota or
    /// nodes, and this one would not be over by then.
    BehindReservation {
        /// The job ahead.
        job: JobId,
        /// Its planned start; `None` = not known, since something that it waits for has no time limit.
        #[serde(default)]
        planned: Option<Millis>,
    },
    /// Quota is there, room of the right shape is not.
    Room {
        /// The flavour.
        flavour: FlavourId,
        /// The level that must hold it; `None` = anywhere.
        level: Option<Name>,
        /// Pods asked (of one segment, when it has segments).
        asks_pods: u32,
        /// Pods that the best domain has room for.
        best_pods: u32,
        /// That domain.
        best_domain: Option<Name>,
        /// Segments asked and the most that fit at once; `None` without segments.
        segments: Option<(u32, u32)>,
    },
    /// Its own claim is in flight: it starts when those it names are gone.
    Claim {
        /// Which.
        claim: ClaimId,
        /// How far it has come.
        stage: Stage,
        /// Jobs that have to go, and have not gone.
        leaving: Vec<JobId>,
        /// Requested: when the deadline decides. Made: when the last grace is over.
        until: Millis,
    },
}

/// Why a job waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The one to tell first.
    pub dominant: Blocker,
    /// All of them, irreducible: lifting all starts the job, lifting all but one does not. Contains the dominant one.
    pub all: Vec<Blocker>,
}

impl Reason {
    /// True when no change of load will ever start it.
    pub fn never(&self) -> bool {
        matches!(
            self.dominant,
            Blocker::Misconfigured { .. }
                | Blocker::NoMatchingFlavour { .. }
                | Blocker::ExceedsMaximum { .. }
        )
    }
}
