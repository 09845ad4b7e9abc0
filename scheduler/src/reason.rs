//! Why a job waits: typed, true, one dominant by a fixed precedence.

use crate::{
    ClaimId, CohortId, End, FlavourId, Hold, JobId, LimitOf, Limited, MilliGpu, Millis, Name,
    PersonId, Stage, TeamId, Wants,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Whose maximum a request exceeds.
#[derive(
    Clone, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames,
)]
#[strum(serialize_all = "snake_case")]
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
#[derive(
    Clone, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames,
)]
#[strum(serialize_all = "snake_case")]
#[serde(tag = "blocker", rename_all = "snake_case")]
pub enum Blocker {
    /// It is set aside: itself, its team, or a cohort above. Told with who did it, and why.
    Held(Arc<Hold>),
    /// A suspended notebook: it waits for somebody to resume it.
    Suspended {
        /// Since when.
        since: Millis,
        /// By whom; `None` = by the idle rule.
        by: Option<PersonId>,
    },
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
    /// It waits for another job to end.
    Dependency {
        /// Which.
        on: JobId,
        /// How it has to end.
        wants: Wants,
        /// How it ended: otherwise, so that this is never met; `None` = it has not ended.
        ended: Option<End>,
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
    /// As much runs as may, of its team or of its owner.
    Limit {
        /// Whose limit.
        #[serde(flatten)]
        of: LimitOf,
        /// What it counts, and how far it is used.
        on: Limited,
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
    /// Quota is there, room of the right shape is not. What would be there but for holds of nodes is told with these.
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
        /// Holds of nodes and domains, the fewest of all with whose end there would be room; none if that does not do.
        #[serde(default, skip_serializing_if = "is_nothing")]
        held: Box<[Hold]>,
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

fn is_nothing(held: &[Hold]) -> bool {
    held.is_empty()
}

/// Why a job waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The one to tell first.
    pub dominant: Blocker,
    /// All of them, irreducible: lifting all starts the job, lifting all but one does not. Contains the dominant one.
    pub all: Vec<Blocker>,
}

impl Blocker {
    /// Its place in the order of precedence: the lowest is told first.
    pub(crate) fn precedence(&self) -> u8 {
        match self {
            Self::Held(_) => 0,
            Self::Suspended { .. } => 1,
            Self::Misconfigured { .. } => 2,
            Self::NoMatchingFlavour { .. } => 3,
            Self::Dependency { .. } => 4,
            Self::ExceedsMaximum { .. } => 5,
            Self::Limit { .. } => 6,
            Self::BackOff { .. } => 7,
            Self::Quota { .. } => 8,
            Self::BehindReservation { .. } => 9,
            Self::Room { .. } => 10,
            Self::Claim { .. } => 11,
        }
    }

    /// True when no change of load will ever lift it.
    pub(crate) fn is_for_ever(&self) -> bool {
        match self {
            Self::Misconfigured { .. }
            | Self::NoMatchingFlavour { .. }
            | Self::ExceedsMaximum { .. }
            | Self::Dependency { ended: Some(_), .. } => true,
            Self::Limit { on, .. } => on.is_for_ever(),
            Self::Held(_)
            | Self::Suspended { .. }
            | Self::Dependency { ended: None, .. }
            | Self::BackOff { .. }
            | Self::Quota { .. }
            | Self::BehindReservation { .. }
            | Self::Room { .. }
            | Self::Claim { .. } => false,
        }
    }

    /// True when it keeps its job out of the line: others do not wait behind it.
    fn is_set_aside(&self) -> bool {
        matches!(
            self,
            Self::Held(_) | Self::Suspended { .. } | Self::Dependency { .. }
        )
    }
}

impl Reason {
    /// True when no change of load will ever start it.
    pub fn never(&self) -> bool {
        self.all.iter().any(Blocker::is_for_ever)
    }

    /// True when the job stands in its team's queue: one that can never run does not, nor one that is set aside.
    pub fn in_line(&self) -> bool {
        !self.never() && !self.all.iter().any(Blocker::is_set_aside)
    }
}
