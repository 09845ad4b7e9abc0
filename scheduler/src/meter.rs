//! Metering: a fold over events that yields usage lines. What is billed is what was held.

use crate::place::nodes;
use crate::{
    Allocation, Event, Fact, FlavourId, JobId, MilliGpu, MilliGpuMs, Millis, NodeId, PersonId,
    State, StopCause, TeamId,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

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
    /// From the loss of a pod, or a stall, to the confirmed exit of the gang, or until it is bound again.
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
    open: BTreeMap<JobId, Open>,
}

/// What one attempt holds, from admit to confirmed exit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Open {
    /// What all of its lines have in common; `from` is where the open stretch begins.
    line: UsageLine,
    /// Bound: the stretch is open.
    bound: bool,
    /// All pods were up once.
    up: bool,
    own: MilliGpu,
    borrowed: MilliGpu,
    /// Pods that are not held while the gang is.
    #[serde(default)]
    gone: u32,
    /// Ranks of these that are placed, and not bound yet.
    #[serde(default)]
    unbound: Vec<u32>,
    /// Pods of the whole gang.
    #[serde(default)]
    pods: u32,
    /// Lines of a launch that is not resolved: they are `Run` if it comes up, and `FailedLaunch` if it does not.
    pending: Vec<UsageLine>,
}

impl Meter {
    /// Takes in an event that [`crate::apply()`] has just folded into `state`, and returns the lines that it closes.
    pub fn observe(&mut self, state: &State, event: &Event) -> Vec<UsageLine> {
        let mut lines = Vec::new();
        let at = event.at;
        match &event.fact {
            Fact::JobAdmitted { job, .. } => self.open(state, *job),
            Fact::GangBound { job, .. } => self.bind(state, *job, at, &mut lines),
            Fact::GangStarted { job, .. } => self.with(*job, |open| open.resolve(at, &mut lines)),
            Fact::CheckpointStarted { job, .. } => self.with(*job, |open| {
                open.turn(UsagePhase::Run, UsagePhase::Save, at, &mut lines);
            }),
            Fact::CheckpointSaved { job, .. } => self.with(*job, |open| {
                open.turn(UsagePhase::Save, UsagePhase::Run, at, &mut lines);
            }),
            Fact::StopRequested {
                job,
                cause: StopCause::NodeLost { .. } | StopCause::Stalled { .. },
                ..
            } => self.with(*job, |open| {
                open.turn(UsagePhase::Save, UsagePhase::Recover, at, &mut lines);
                open.turn(UsagePhase::Run, UsagePhase::Recover, at, &mut lines);
            }),
            Fact::PodsLost { job, .. } | Fact::PodSucceeded { job, .. } => {
                let pods = state.jobs.get(job).and_then(|job| job.allocation.as_ref());
                if let Some(allocation) = pods {
                    self.with(*job, |open| open.keep(allocation, at, &mut lines));
                }
            }
            Fact::GangShrunk { job, .. } => self.resize(state, *job, at, &mut lines),
            Fact::GangReplaced {
                job,
                attempt,
                moved,
                ..
            } => {
                let pods = state.jobs.get(job).and_then(|job| job.allocation.as_ref());
                if let Some(allocation) = pods {
                    self.with(*job, |open| {
                        open.again(*attempt, allocation, moved, at, &mut lines);
                    });
                }
            }
            Fact::JobRequeued { job, .. } | Fact::JobEnded { job, .. } => {
                if let Some(open) = self.open.remove(job) {
                    let (team, flavour) = (open.line.team.clone(), open.line.flavour.clone());
                    open.close(at, &mut lines);
                    flavour
                        .into_iter()
                        .for_each(|flavour| self.follow(state, &team, &flavour, at, &mut lines));
                }
            }
            Fact::TeamSet { team } => {
                let flavours = state
                    .laid
                    .get(&team.id)
                    .into_iter()
                    .flat_map(BTreeMap::keys);
                flavours.for_each(|flavour| self.follow(state, &team.id, flavour, at, &mut lines));
            }
            Fact::HourPassed => self
                .open
                .values_mut()
                .filter(|open| open.up)
                .for_each(|open| open.cut(at, &mut lines)),
            Fact::ClaimMade { claim, .. } => {
                // What the victims leave behind is laid anew on the others of their teams.
                let teams: BTreeSet<_> = claim.victims.iter().map(|victim| &victim.team).collect();
                for team in teams {
                    let laid = state.laid.get(team);
                    let flavours = laid.into_iter().flat_map(BTreeMap::keys);
                    flavours.for_each(|flavour| self.follow(state, team, flavour, at, &mut lines));
                }
            }
            Fact::StopRequested { .. }
            | Fact::ClaimRequested { .. }
            | Fact::ClaimApproved { .. }
            | Fact::ClaimDeclined { .. }
            | Fact::ClaimDeferred { .. }
            | Fact::ClaimWithdrawn { .. }
            | Fact::SaveAsked { .. }
            | Fact::ShrinkRequested { .. }
            | Fact::JobSubmitted { .. }
            | Fact::TopologySet { .. }
            | Fact::FlavourSet { .. }
            | Fact::CohortSet { .. }
            | Fact::CohortRemoved { .. }
            | Fact::TeamRemoved { .. }
            | Fact::NodeSet { .. }
            | Fact::NodeHealthSet { .. }
            | Fact::NodeSilent { .. }
            | Fact::NodeHeard { .. }
            | Fact::StepsStopped { .. }
            | Fact::StepsResumed { .. }
            | Fact::ActivityStopped { .. }
            | Fact::ActivityResumed { .. }
            | Fact::IdleWarned { .. }
            | Fact::NotebookSuspended { .. }
            | Fact::NotebookResumed { .. }
            | Fact::Interrupted { .. }
            | Fact::GangStopped { .. }
            | Fact::TimeLimitExtended { .. }
            | Fact::PolicySet { .. }
            | Fact::LimitsSet { .. }
            | Fact::HoldSet { .. }
            | Fact::HoldLifted { .. }
            | Fact::RateCardSet { .. } => {}
        }
        lines
    }

    /// Lines still open, cut at `now`: what a bill shows as "so far". A launch under way counts as running.
    pub fn open_lines(&self, now: Millis) -> Vec<UsageLine> {
        let mut lines = Vec::new();
        for open in self.open.values() {
            let mut open = open.clone();
            lines.append(&mut open.pending);
            open.up = true;
            open.cut(now, &mut lines);
        }
        lines
    }

    fn with(&mut self, job: JobId, change: impl FnOnce(&mut Open)) {
        if let Some(open) = self.open.get_mut(&job) {
            change(open);
        }
    }

    /// A gang has other pods than before; what its team is charged may be laid anew with that.
    fn resize(&mut self, state: &State, id: JobId, at: Millis, lines: &mut Vec<UsageLine>) {
        let Some(job) = state.jobs.get(&id) else {
            return;
        };
        let Some(allocation) = &job.allocation else {
            return;
        };
        self.with(id, |open| open.resize(allocation, at, lines));
        if let Some(flavour) = &allocation.placement.flavour {
            self.follow(state, &job.spec.team, flavour, at, lines);
        }
    }

    fn open(&mut self, state: &State, id: JobId) {
        let Some(job) = state.jobs.get(&id) else {
            return;
        };
        let Some(allocation) = &job.allocation else {
            return;
        };
        let spec = &job.spec;
        let share = spec.gpus_per_pod > MilliGpu::ZERO && spec.gpus_per_pod < MilliGpu::gpus(1);
        let line = UsageLine {
            job: id,
            attempt: job.attempt,
            team: spec.team.clone(),
            project: spec.project.clone(),
            owner: job.owner.clone(),
            flavour: allocation.placement.flavour.clone(),
            entitlement: Entitlement::Own,
            unit: if share {
                UnitKind::Share
            } else {
                UnitKind::Card
            },
            phase: UsagePhase::Run,
            from: Millis(0),
            to: Millis(0),
            gpus: allocation.gpus,
            cpu_milli: spec.cpu_milli_per_pod * u64::from(allocation.size()),
            nodes: nodes(&allocation.placement).len() as u32,
        };
        let (own, borrowed) = (allocation.own, allocation.borrowed);
        self.open.insert(
            id,
            Open {
                line,
                bound: false,
                up: false,
                own,
                borrowed,
                gone: 0,
                unbound: Vec::new(),
                pods: allocation.size(),
                pending: Vec::new(),
            },
        );
    }

    fn bind(&mut self, state: &State, id: JobId, at: Millis, lines: &mut Vec<UsageLine>) {
        let Some(allocation) = state.jobs.get(&id).and_then(|job| job.allocation.as_ref()) else {
            return;
        };
        self.with(id, |open| {
            // What it kept was for recovering until now.
            open.cut(at, lines);
            (open.bound, open.line.from) = (true, at);
            (open.up, open.line.phase) = (false, UsagePhase::Run);
            open.gone = allocation.gone.len() as u32;
            open.unbound.clear();
            open.line.nodes = nodes(&allocation.placement).len() as u32;
            (open.own, open.borrowed) = (allocation.own, allocation.borrowed);
        });
    }

    /// Cuts what has another split between own and borrowed than before. Only the newest admissions can: all older
    /// than the last one with a borrowed part, now or before, are wholly own.
    fn follow(
        &mut self,
        state: &State,
        team: &TeamId,
        flavour: &FlavourId,
        at: Millis,
        lines: &mut Vec<UsageLine>,
    ) {
        let jobs = state.laid.get(team).and_then(|laid| laid.get(flavour));
        for id in jobs.into_iter().flatten().rev() {
            let Some(allocation) = state.jobs.get(id).and_then(|job| job.allocation.as_ref())
            else {
                continue;
            };
            let Some(open) = self.open.get_mut(id) else {
                continue;
            };
            let (own, borrowed) = billed(allocation);
            if open.borrowed == MilliGpu::ZERO && borrowed == MilliGpu::ZERO {
                break;
            }
            if open.borrowed != borrowed {
                open.cut(at, lines);
                (open.own, open.borrowed) = (own, borrowed);
            }
        }
    }
}

impl Open {
    /// Ends the open stretch at `at`, hour by hour, and begins the next one.
    fn cut(&mut self, at: Millis, lines: &mut Vec<UsageLine>) {
        if !self.bound {
            return;
        }
        while self.line.from < at {
            let to = at.min(self.line.from.hour_floor() + Millis::HOUR);
            // Nothing is held when all pods are gone.
            if self.line.nodes > 0 {
                let held = self.held();
                let into = if self.up {
                    &mut *lines
                } else {
                    &mut self.pending
                };
                into.extend(parts(&held, to, self.own, self.borrowed));
            }
            self.line.from = to;
        }
    }

    /// The line of what is held: without the pods that are gone.
    fn held(&self) -> UsageLine {
        let mut line = self.line.clone();
        let (pods, left) = (self.pods.max(1), self.pods.saturating_sub(self.gone));
        if self.gone > 0 {
            line.gpus = MilliGpu(line.gpus.0 / u64::from(pods) * u64::from(left));
            line.cpu_milli = line.cpu_milli / u64::from(pods) * u64::from(left);
        }
        line
    }

    /// What is gone is held no longer, what is not bound not yet.
    fn keep(&mut self, allocation: &Allocation, at: Millis, lines: &mut Vec<UsageLine>) {
        self.cut(at, lines);
        let places = allocation.places();
        let ranks = (0_u32..).zip(&places);
        let held = ranks.filter(|(rank, _)| {
            let gone = allocation.gone.binary_search_by_key(rank, |gone| gone.rank);
            gone.is_err() && !self.unbound.contains(rank)
        });
        let held: Vec<NodeId> = held.map(|(_, place)| place.node).collect();
        self.gone = self.pods.saturating_sub(held.len() as u32);
        self.line.nodes = held.into_iter().collect::<BTreeSet<_>>().len() as u32;
    }

    /// It has other pods than before, each of them bound.
    fn resize(&mut self, allocation: &Allocation, at: Millis, lines: &mut Vec<UsageLine>) {
        self.cut(at, lines);
        let (before, after) = (u64::from(self.pods.max(1)), u64::from(allocation.size()));
        self.line.gpus = MilliGpu(self.line.gpus.0 / before * after);
        self.line.cpu_milli = self.line.cpu_milli / before * after;
        self.pods = allocation.size();
        if allocation.saving.is_none() {
            self.line.phase = UsagePhase::Run;
        }
        (self.own, self.borrowed) = billed(allocation);
        self.keep(allocation, at, lines);
    }

    /// The next attempt begins on what it kept; what never came up of the last one was a failed launch.
    fn again(
        &mut self,
        attempt: u32,
        allocation: &Allocation,
        moved: &[u32],
        at: Millis,
        lines: &mut Vec<UsageLine>,
    ) {
        self.cut(at, lines);
        self.unbound = moved.to_vec();
        self.keep(allocation, at, lines);
        if !self.up {
            let failed = |line: &mut UsageLine| line.phase = UsagePhase::FailedLaunch;
            self.pending.iter_mut().for_each(failed);
            lines.append(&mut self.pending);
        }
        (self.up, self.line.attempt) = (true, attempt);
        self.line.phase = UsagePhase::Recover;
    }

    /// From one phase to another, if it is in that one. A launch has no phase yet.
    fn turn(&mut self, from: UsagePhase, to: UsagePhase, at: Millis, lines: &mut Vec<UsageLine>) {
        if self.up && self.line.phase == from {
            self.cut(at, lines);
            self.line.phase = to;
        }
    }

    /// It came up: what it held since the bind was for running. The hours that are over are cut now, the rest goes on.
    fn resolve(&mut self, at: Millis, lines: &mut Vec<UsageLine>) {
        self.up = true;
        lines.append(&mut self.pending);
        self.cut(at.hour_floor(), lines);
    }

    fn close(mut self, at: Millis, lines: &mut Vec<UsageLine>) {
        if !self.up {
            self.line.phase = UsagePhase::FailedLaunch;
            self.pending
                .iter_mut()
                .for_each(|line| line.phase = UsagePhase::FailedLaunch);
        }
        self.cut(at, lines);
        lines.append(&mut self.pending);
    }
}

/// What a gang is billed for, own and borrowed: what its team is charged, and what pods still hold that it is giving up.
fn billed(allocation: &Allocation) -> (MilliGpu, MilliGpu) {
    match allocation.shed {
        Some(shed) => (
            allocation.own + shed.own,
            allocation.borrowed + shed.borrowed,
        ),
        None => (allocation.own, allocation.borrowed),
    }
}

/// One line for each entitlement, of what the line holds: what is gone was borrowed first. The CPU is on the first. Work
/// without GPUs has an own line of none.
fn parts(
    line: &UsageLine,
    to: Millis,
    own: MilliGpu,
    borrowed: MilliGpu,
) -> impl Iterator<Item = UsageLine> {
    let own = own.min(line.gpus);
    let borrowed = borrowed.min(line.gpus.minus(own));
    let with_own = own > MilliGpu::ZERO || borrowed == MilliGpu::ZERO;
    let cut = |entitlement, gpus, cpu_milli| UsageLine {
        entitlement,
        gpus,
        cpu_milli,
        to,
        ..line.clone()
    };
    let own = with_own.then(|| cut(Entitlement::Own, own, line.cpu_milli));
    let borrowed = (borrowed > MilliGpu::ZERO).then(|| {
        cut(
            Entitlement::Borrowed,
            borrowed,
            if with_own { 0 } else { line.cpu_milli },
        )
    });
    own.into_iter().chain(borrowed)
}
