//! Metering: a fold over events that yields usage lines. What is billed is what was held.

use crate::{Event, FlavourId, JobId, MilliGpu, MilliGpuMs, Millis, PersonId, State, TeamId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Inside the team's nominal, or beyond it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entitlement {
    /// Inside nominal.
    Own,
    /// Beyond nominal.
    Borrowed,
}

/// What the amount counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnitKind {
    /// Whole cards.
    Card,
    /// A fixed slice of a card.
    Slice,
    /// A share of a card.
    Share,
}

/// What the time was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsagePhase {
    /// Starting up (when it came up) and running.
    Run,
    /// Stalled by a save.
    Save,
    /// From the loss of a pod to the confirmed exit of the gang.
    Recover,
    /// From bind to exit of a gang that never came up: kept, at price 0.
    FailedLaunch,
}

impl UsagePhase {
    /// False where the quantity is kept and the price is 0.
    pub fn is_billed(self) -> bool {
        match self {
            Self::Run | Self::Save | Self::Recover => true,
            Self::FailedLaunch => false,
        }
    }
}

/// GPUs held by one job for one stretch of time, with nothing about them changing. Never edited.
///
/// Lines of one job, attempt and entitlement neither overlap nor leave a gap from bind to confirmed exit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageLine {
    /// Which job.
    pub job: JobId,
    /// Which attempt.
    pub attempt: u32,
    /// Whose.
    pub team: TeamId,
    /// For what.
    pub project: String,
    /// By whom.
    pub owner: PersonId,
    /// The kind of GPU; `None` for a job without.
    pub flavour: Option<FlavourId>,
    /// Inside nominal or beyond.
    pub entitlement: Entitlement,
    /// What the amount counts.
    pub unit: UnitKind,
    /// What the time was spent on.
    pub phase: UsagePhase,
    /// From then, inclusive.
    pub from: Millis,
    /// To then, exclusive.
    pub to: Millis,
    /// GPUs held all that time.
    pub gpus: MilliGpu,
    /// CPU held all that time, in thousandths of a core; on the own line, or on the borrowed one if there is no own line.
    pub cpu_milli: u64,
    /// Nodes of the gang.
    pub nodes: u32,
}

impl UsageLine {
    /// GPU-time held.
    pub fn held(&self) -> MilliGpuMs {
        self.gpus.over(self.to.since(self.from))
    }
}

/// Open stretches of held GPUs, folded beside the state.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Meter {
    open: BTreeMap<JobId, Vec<UsageLine>>,
}

impl Meter {
    /// Takes in an event that [`crate::apply`] has just folded into `state`, and returns the lines that it closes.
    pub fn observe(&mut self, _state: &State, _event: &Event) -> Vec<UsageLine> {
        Vec::new()
    }

    /// Lines still open, cut at `now`: what a bill shows as "so far".
    pub fn open_lines(&self, _now: Millis) -> Vec<UsageLine> {
        Vec::new()
    }
}
