//! A job: what it asks for, and where it is in its life.

use crate::state::Turn;
use crate::{
    Activity, ClaimId, Dependency, Eviction, FlavourId, Hold, JobId, MilliGpu, Millis, Name,
    NodeId, PersonId, Policy, Reclaim, StopCause, Suspension, TeamId,
};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::sync::Arc;

/// What kind of work it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobKind {
    /// A gang that trains and checkpoints.
    Train,
    /// Anything else that runs to its end.
    Batch,
    /// Interactive, on a slice or a share.
    Notebook,
}

/// Priority class; the higher one goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// When nobody else wants it.
    Low,
    /// The usual.
    Normal,
    /// Before the usual.
    High,
}

/// How strictly a topology request is meant (Kueue's words).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TopologyMode {
    /// Wait for it.
    Required,
    /// Climb a level at a time, at last spread.
    Preferred,
    /// Anywhere, packed tight.
    Unconstrained,
}

/// Equal parts of a gang, each inside one domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Segments {
    /// Pods in each segment; divides the gang's pods.
    pub pods: u32,
}

/// What a gang asks of the fabric.
///
/// Without segments the whole gang is asked to lie inside one domain of `level`; with segments each of them is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TopologyRequest {
    /// How strictly.
    pub mode: TopologyMode,
    /// The level's name; without segments, ignored when unconstrained.
    pub level: Option<Name>,
    /// Equal parts instead of the whole.
    pub segments: Option<Segments>,
}

/// How a job saves its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CheckpointContract {
    /// Time between the starts of two saves.
    pub period: Millis,
    /// How long one save stalls the job.
    pub save: Millis,
    /// Saves when asked, too.
    pub on_demand: bool,
}

/// What a job asks for. It never names machines.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct JobSpec {
    /// Its name: lower case letters, digits, dashes.
    pub name: String,
    /// Whose queue and quota.
    pub team: TeamId,
    /// What the money is spent for, inside the team.
    pub project: String,
    /// What kind of work.
    pub kind: JobKind,
    /// Flavours in order of preference. Empty for a job without GPUs.
    pub flavours: Vec<FlavourId>,
    /// Container image.
    pub image: String,
    /// Priority class.
    pub priority: Priority,
    /// Pods in the gang, at least one; the most of an elastic one.
    pub pods: u32,
    /// The fewest with which it goes on: it is elastic, and forms itself anew when pods go. `None` = all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_pods: Option<u32>,
    /// GPUs of each pod: 0, a share of one card, or whole cards.
    pub gpus_per_pod: MilliGpu,
    /// CPU of each pod in thousandths of a core; 0 = not judged.
    pub cpu_milli_per_pod: u64,
    /// Memory of each pod in MiB; 0 = not judged.
    pub memory_mib_per_pod: u64,
    /// What it asks of the fabric.
    pub topology: TopologyRequest,
    /// The longest it may run, over all attempts; `None` = no limit.
    pub time_limit: Option<Millis>,
    /// How it saves; `None` = it does not.
    pub checkpoint: Option<CheckpointContract>,
    /// May be taken back for an owner of what it borrows.
    pub preemptible: bool,
    /// How many failures it survives.
    pub restart_budget: u32,
    /// Jobs that have to end first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<Dependency>,
    /// Simulated executor only: how much running time its work takes. `None` = drawn from the seed.
    pub run_time: Option<Millis>,
}

impl JobSpec {
    /// GPUs of the whole gang: the most of an elastic one.
    pub fn gpus(&self) -> MilliGpu {
        self.gpus_of(self.pods)
    }

    /// GPUs of so many of its pods.
    pub fn gpus_of(&self, pods: u32) -> MilliGpu {
        self.gpus_per_pod * u64::from(pods)
    }

    /// The fewest pods with which it runs: all of them, unless it is elastic.
    pub fn least_pods(&self) -> u32 {
        self.min_pods.unwrap_or(self.pods)
    }

    /// GPUs of these: what it waits for, and what it claims.
    pub fn least_gpus(&self) -> MilliGpu {
        self.gpus_of(self.least_pods())
    }

    /// Pods by which an elastic gang becomes smaller or larger: a whole segment.
    pub(crate) fn step_pods(&self) -> u32 {
        (self.topology.segments).map_or(1, |segments| segments.pods.max(1))
    }
}

/// Where a job is in its life; ended jobs have an [`End`] instead and leave the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Waits, with a reason.
    Queued,
    /// Charged and placed; its nodes are not yet confirmed.
    Admitted,
    /// All pods bound; not all of them are up.
    Starting,
    /// All pods up.
    Running,
    /// Asked to save and go, for an owner.
    Reclaiming,
    /// Lost a pod: what is left of the gang is being stopped, then it keeps its nodes while others are found for those that
    /// it lost, and starts again; or it waits again.
    Recovering,
}

/// How a job ended.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantNames,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// By itself, well.
    Succeeded,
    /// By itself, badly; or out of restarts.
    Failed,
    /// By a person.
    Cancelled,
    /// By its time limit.
    TimedOut,
}

/// One pod's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PodPlace {
    /// The node.
    pub node: NodeId,
    /// Its cards, one bit each.
    pub cards: u32,
    /// How much of each of these cards: 1,000 = whole.
    pub milli: u16,
}

/// Where a gang lies: one entry a pod, in order of rank.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Placement {
    /// The flavour taken, of those asked for; `None` for a job without GPUs.
    pub flavour: Option<FlavourId>,
    /// One a pod, in order of rank.
    pub pods: Vec<PodPlace>,
    /// Index into the topology's levels of the narrowest level that holds the whole gang; `None` = it crosses the
    /// widest one. The link above that level is the worst one crossed.
    pub within: Option<u8>,
}

/// What an admitted job has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    /// Where.
    pub placement: Arc<Placement>,
    /// GPUs in all that its team is charged: without those of pods that it is giving up.
    pub gpus: MilliGpu,
    /// Of these, inside the team's nominal. `own + borrowed = gpus`. The team's borrowed part is laid on its newest
    /// admissions, so this changes when others of the team come and go.
    pub own: MilliGpu,
    /// Of these, borrowed.
    pub borrowed: MilliGpu,
    /// Running number of the admission: the newest has the highest.
    pub order: u64,
    /// When it was admitted.
    pub admitted: Millis,
    /// When its nodes were bound: held from here.
    pub bound: Option<Millis>,
    /// When all pods were up.
    pub started: Option<Millis>,
    /// When the save under way began.
    pub saving: Option<Millis>,
    /// Pods that are gone while the gang is not, by rank: they are not in its placement any more.
    #[serde(default)]
    pub gone: Vec<GonePod>,
    /// No step has been heard of since then.
    #[serde(default)]
    pub no_step_since: Option<Millis>,
    /// When steps last went on after a silence, or a save was durable: no later word tells of an earlier silence.
    #[serde(default)]
    pub stepped: Option<Millis>,
    /// What a notebook was last told to do.
    #[serde(default)]
    pub activity: Activity,
    /// It is giving up its highest ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shed: Option<Shed>,
}

/// The highest ranks of an elastic gang that make room for a claim, until they are gone: their charge has left already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shed {
    /// Pods that it keeps: the ranks below.
    pub keeps: u32,
    /// For whom, and until when it may save first.
    pub reclaim: Reclaim,
    /// Since when they are being stopped.
    pub stopping: Option<Millis>,
    /// Of what they hold, what was inside the team's nominal at the decision: they are billed for it until they are gone.
    pub own: MilliGpu,
    /// Of what they hold, what was borrowed.
    pub borrowed: MilliGpu,
}

/// A pod of a live gang that is held no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GonePod {
    /// Which of the gang's pods.
    pub rank: u32,
    /// Where it was.
    pub place: PodPlace,
    /// True when it ended by itself, well; else its node was lost.
    pub succeeded: bool,
}

/// A gang that lost pods and keeps its other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// Since when.
    pub since: Millis,
    /// Until when it keeps them; then all of it is placed anew.
    pub until: Millis,
}

impl Allocation {
    /// Pods of this attempt, those that are gone among them: fewer than an elastic job asks, if it did not get all.
    pub fn size(&self) -> u32 {
        (self.placement.pods.len() + self.gone.len()) as u32
    }

    /// Takes so much out of its charge, what is borrowed first; what it was, own and borrowed.
    pub(crate) fn charge_less(&mut self, gpus: MilliGpu) -> (MilliGpu, MilliGpu) {
        let borrowed = gpus.min(self.borrowed);
        let own = gpus.minus(borrowed);
        self.gpus = self.gpus.minus(gpus);
        self.own = self.own.minus(own);
        self.borrowed = self.borrowed.minus(borrowed);
        (own, borrowed)
    }

    /// Where the pods are that it is giving up.
    pub(crate) fn shedding(&self) -> Option<Arc<Placement>> {
        let keeps = self.shed?.keeps;
        let left = |rank: u32| self.gone.iter().all(|gone| gone.rank != rank);
        let pods = (0_u32..).zip(self.places());
        let pods = pods.filter(|(rank, _)| *rank >= keeps && left(*rank));
        Some(Arc::new(Placement {
            pods: pods.map(|(_, place)| place).collect(),
            ..Placement::clone(&self.placement)
        }))
    }

    /// Each rank's place, its last one where the pod is gone.
    pub fn places(&self) -> Vec<PodPlace> {
        let mut left = self.placement.pods.iter();
        let mut gone = self.gone.iter().peekable();
        let all = self.placement.pods.len() + self.gone.len();
        let ranks =
            (0..all as u32).filter_map(|rank| match gone.next_if(|gone| gone.rank == rank) {
                Some(gone) => Some(gone.place),
                None => left.next().copied(),
            });
        ranks.collect()
    }
}

/// The last durable checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// When it was durable.
    pub at: Millis,
    /// How much running time's work it holds, over all attempts.
    pub progress: Millis,
    /// Its size in bytes.
    pub bytes: u64,
}

/// A stop that was asked for and is not yet confirmed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopRequest {
    /// When.
    pub at: Millis,
    /// Why.
    pub cause: StopCause,
    /// How the job ends once the exit is confirmed; `None` = it is queued again.
    pub end: Option<End>,
}

/// A job that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Its number.
    pub id: JobId,
    /// Who submitted it.
    pub owner: PersonId,
    /// What it asks for.
    pub spec: Arc<JobSpec>,
    /// First submit time, kept across requeues.
    pub submitted: Millis,
    /// Where it is in its life.
    pub phase: Phase,
    /// Attempts so far; the current one's number when it has an allocation.
    pub attempt: u32,
    /// Failures so far, of the restart budget.
    pub restarts: u32,
    /// Launches that did not come up since one last did; the back-off doubles with each.
    pub launch_failures: u32,
    /// What it has, from admit to confirmed exit.
    pub allocation: Option<Allocation>,
    /// Running time that counts against its limit, of earlier attempts.
    pub ran: Millis,
    /// Its last durable checkpoint.
    pub checkpoint: Option<Checkpoint>,
    /// A stop under way.
    pub stop: Option<StopRequest>,
    /// Not tried again before then (back-off after a failed launch).
    pub not_before: Option<Millis>,
    /// The claim that it makes room for.
    #[serde(default)]
    pub reclaim: Option<Reclaim>,
    /// When it was taken: those of the last day, and those for claimants that still live.
    #[serde(default)]
    pub evictions: Vec<Eviction>,
    /// It was set aside.
    #[serde(default)]
    pub hold: Option<Hold>,
    /// Makes no claim before then: one was refused.
    #[serde(default)]
    pub no_claim_before: Option<Millis>,
    /// It keeps its nodes while others are found in place of those that it lost.
    #[serde(default)]
    pub recovery: Option<Recovery>,
    /// A notebook that gave its GPUs back, and is in no line until somebody resumes it.
    #[serde(default)]
    pub suspended: Option<Suspension>,
}

impl Job {
    /// Its place in the order of the cycle while it waits.
    pub(crate) fn turn(&self) -> Turn {
        (Reverse(self.spec.priority), self.submitted, self.id)
    }

    /// When its time is used up; `None` before all pods are up, and without a limit. At least a moment is left: a job that
    /// comes up with its time used up is stopped at once.
    pub(crate) fn runs_until(&self) -> Option<Millis> {
        Some(self.allocation.as_ref()?.started? + self.spec.time_limit?.since(self.ran))
    }

    /// True while its GPUs count in its team's charge: a victim's leave at the decision to take it.
    pub(crate) fn is_charged(&self) -> bool {
        self.allocation.is_some() && self.phase != Phase::Reclaiming
    }

    /// When the clock next concerns it: the end of its back-off, of its launch or of its time. `None` = never, or not
    /// until its exit is confirmed.
    pub(crate) fn due(&self, policy: &Policy) -> Option<Millis> {
        if self.stop.is_some() {
            return None;
        }
        match self.phase {
            Phase::Queued => [self.not_before, self.no_claim_before]
                .into_iter()
                .flatten()
                .min(),
            Phase::Admitted | Phase::Starting => {
                Some(self.allocation.as_ref()?.admitted + policy.launch_timeout)
            }
            Phase::Running => {
                let stalls = self.stalls_at(policy);
                let idle = self.allocation.as_ref()?.activity.due(policy);
                let own = stalls.into_iter().chain(self.runs_until());
                own.chain(idle).chain(self.sheds_at()).min()
            }
            Phase::Reclaiming => {
                let grace = self.reclaim.map(|reclaim| reclaim.until);
                grace.into_iter().chain(self.runs_until()).min()
            }
            Phase::Recovering => self.recovery.map(|recovery| recovery.until),
        }
    }

    /// When the pods that it gives up are stopped, if they are not yet.
    pub(crate) fn sheds_at(&self) -> Option<Millis> {
        let shed = self.allocation.as_ref()?.shed?;
        shed.stopping.is_none().then_some(shed.reclaim.until)
    }

    /// True while it gives up pods for a claim.
    pub(crate) fn sheds_for(&self, claim: ClaimId) -> bool {
        let shed = self.allocation.as_ref().and_then(|it| it.shed);
        shed.is_some_and(|shed| shed.reclaim.claim == claim)
    }

    /// When it has stood still for too long.
    pub(crate) fn stalls_at(&self, policy: &Policy) -> Option<Millis> {
        Some(self.allocation.as_ref()?.no_step_since? + policy.stall_after)
    }

    /// True when it is being stopped, and gives back what it has.
    pub(crate) fn leaves(&self) -> bool {
        let ends = self.stop.as_ref().is_some_and(|stop| stop.end.is_some());
        self.stop.is_some() && (self.recovery.is_none() || ends)
    }

    /// True when every pod is gone and it keeps its nodes: nothing runs, and nothing has to be stopped.
    pub(crate) fn stands_by(&self) -> bool {
        self.phase == Phase::Recovering && self.stop.is_none()
    }
}
