//! Jobs as every door shows them.

use crate::{Gpus, HoldView, JobBill, NotebookView, ReclaimNote, SubmitJob};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A job's state, in every door. "Can never run" is a reason of `queued`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum JobState {
    /// Waits, with a reason.
    Queued,
    /// Charged and placed, not yet bound.
    Admitted,
    /// Bound, not all pods up.
    Starting,
    /// All pods up.
    Running,
    /// Saving and going, for an owner.
    Reclaiming,
    /// Lost a pod; on its way back to the queue.
    Recovering,
    /// Ended well.
    Succeeded,
    /// Ended badly.
    Failed,
    /// Ended by a person.
    Cancelled,
    /// Ended by its time limit.
    TimedOut,
}

impl JobState {
    /// All of them, in order.
    pub const ALL: [Self; 10] = [
        Self::Queued,
        Self::Admitted,
        Self::Starting,
        Self::Running,
        Self::Reclaiming,
        Self::Recovering,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
        Self::TimedOut,
    ];

    /// As written in JSON, URLs and the CLI.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Admitted => "admitted",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Reclaiming => "reclaiming",
            Self::Recovering => "recovering",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
        }
    }

    /// True when it has ended.
    pub fn ended(self) -> bool {
        matches!(
            self,
            Self::Succeeded | Self::Failed | Self::Cancelled | Self::TimedOut
        )
    }
}
impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
impl FromStr for JobState {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|state| state.as_str() == text)
            .ok_or_else(|| {
                let all: Vec<_> = Self::ALL.iter().map(|state| state.as_str()).collect();
                format!("`{text}` is no job state; states are {}", all.join(", "))
            })
    }
}

/// Why a job waits, typed and in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReasonView {
    /// The dominant blocker's type: `quota`, `room`, `exceeds_maximum`, ...
    pub code: String,
    /// One sentence: one blocker, asked against free.
    pub text: String,
    /// True when no change of load will ever start it.
    pub never: bool,
    /// Every blocker of the irreducible set, in words.
    pub all: Vec<String>,
    /// What would help, in words; empty when nothing is known to.
    pub help: Vec<String>,
    /// When it is planned to start at the latest, by the time limits of what runs; only for jobs that hold a reservation.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub planned_start: Option<Timestamp>,
}

/// Where a gang lies, in words and figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlaceView {
    /// `4 nodes of block h100-b07`.
    pub text: String,
    /// The flavour taken.
    pub flavour: Option<String>,
    /// Names of the widest domains touched.
    pub blocks: Vec<String>,
    /// Names of the nodes, in order of rank.
    pub nodes: Vec<String>,
    /// The worst link crossed, in words: `leaf of one block`.
    pub worst_link: String,
    /// One entry a pod, in order of rank: node name and card numbers.
    pub ranks: Vec<(String, Vec<u8>)>,
}

/// A job in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobRow {
    /// Number.
    pub id: u64,
    /// Name.
    pub name: String,
    /// Team.
    pub team: String,
    /// Project.
    pub project: String,
    /// Owner's id.
    pub owner: String,
    /// State.
    pub state: JobState,
    /// A stop is asked for and not yet confirmed.
    pub stopping: bool,
    /// Why it waits; only when queued.
    pub reason: Option<ReasonView>,
    /// Place in its team's queue, from 1; only when queued and able to run.
    pub position: Option<u32>,
    /// Where it runs or ran, in words: `4 nodes of block h100-b07`; not while it waits.
    pub place: Option<String>,
    /// Flavour taken, or the ones asked for.
    pub flavours: Vec<String>,
    /// GPUs of the gang.
    pub gpus: Gpus,
    /// Pods of the gang.
    pub pods: u32,
    /// Of its GPUs, inside the team's nominal; only when admitted.
    pub own: Option<Gpus>,
    /// Of its GPUs, borrowed; only when admitted.
    pub borrowed: Option<Gpus>,
    /// Priority class.
    pub priority: String,
    /// First submitted.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub submitted: Timestamp,
    /// All pods up, in this attempt, or in the last one of a job that has ended.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub started: Option<Timestamp>,
    /// Ended.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub ended: Option<Timestamp>,
    /// Latest end by its time limit, when it runs and has one.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub ends_by: Option<Timestamp>,
    /// Why it ended, when not by itself; in words.
    pub end_cause: Option<String>,
}

/// How a step of the eight stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum StepState {
    /// Behind it.
    Done,
    /// In it.
    Now,
    /// Not yet.
    Ahead,
    /// Will not happen (ended before).
    Skipped,
}

/// One of the eight steps from submit to bill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Step {
    /// `Submit`, `Queue`, `Admit`, `Place`, `Bind`, `Run`, `Give back`, `Bill`.
    pub name: String,
    /// How it stands.
    pub state: StepState,
    /// When it was reached.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub at: Option<Timestamp>,
    /// Who or what did it.
    pub actor: String,
    /// Its main figure: `29 min`, `24 own, 8 borrowed`. Where the time itself is the figure it is empty.
    pub figure: String,
    /// More, in words. What comes later is said as such.
    pub note: String,
}

/// A durable checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CheckpointView {
    /// Its number in this job, from 1.
    pub number: u32,
    /// Attempt.
    pub attempt: u32,
    /// Durable at.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Timestamp,
    /// Stall in milliseconds.
    pub stall_ms: u64,
    /// Running time's work that it holds, in milliseconds.
    pub progress_ms: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A stop that was not the job's own end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct InterruptionView {
    /// When.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Timestamp,
    /// What happened, in words.
    pub cause: String,
    /// GPU-hours since the last durable checkpoint, four decimals.
    pub lost_gpu_hours: String,
}

/// Something that happened to a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EventView {
    /// Its number in the journal.
    pub seq: u64,
    /// When.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Timestamp,
    /// Its type: `job_admitted`.
    pub event: String,
    /// In words.
    pub text: String,
}

/// A job, whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobView {
    /// As in the list.
    #[serde(flatten)]
    pub row: JobRow,
    /// The demo clock's or the wall's now, when this was made.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub now: Timestamp,
    /// The eight steps.
    pub steps: Vec<Step>,
    /// Where it runs or ran last.
    pub placement: Option<PlaceView>,
    /// Last ones first, at most 50.
    pub checkpoints: Vec<CheckpointView>,
    /// How many checkpoints there are in all.
    pub checkpoint_count: u64,
    /// First ones first.
    pub interruptions: Vec<InterruptionView>,
    /// Last ones first, at most 100.
    pub events: Vec<EventView>,
    /// Running time so far, in milliseconds, over all attempts.
    pub ran_ms: u64,
    /// Running time since the later of its last durable checkpoint and its start, in milliseconds: lost if it stopped now.
    pub at_risk_ms: u64,
    /// The same in GPU-hours: what an interruption now would be charged with.
    pub at_risk_gpu_hours: String,
    /// Cost so far: own, borrowed, failed launches, total.
    pub bill: JobBill,
    /// What was asked for.
    pub spec: SubmitJob,
    /// The reclaim that it asks by or would stop for, while that is open.
    #[serde(default)]
    pub reclaim: Option<ReclaimNote>,
    /// It is set aside.
    #[serde(default)]
    pub hold: Option<HoldView>,
    /// What holds for a live notebook.
    #[serde(default)]
    pub notebook: Option<NotebookView>,
    /// True when the actor may set it aside.
    #[serde(default)]
    pub may_hold: bool,
    /// True when the actor may cancel it.
    pub may_cancel: bool,
    /// Why not, when not.
    pub cancel_refused: Option<String>,
}

/// Order of a list; the id is always the last key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SortKey {
    /// Newest submission first.
    #[default]
    Newest,
    /// Oldest first.
    Oldest,
}

/// What a list holds. Its canonical text form is the URL's query.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobFilter {
    /// Only these teams; empty = all that the actor may see. Sorted, no doubles.
    pub teams: Vec<String>,
    /// Only these states; empty = all. Sorted, no doubles.
    pub states: Vec<JobState>,
    /// Only this owner.
    pub owner: Option<String>,
    /// Only names that contain this text.
    pub search: Option<String>,
    /// Order.
    pub sort: SortKey,
}

/// Which part of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobPage {
    /// Rows at most, 1 to 200; 0 = 50.
    pub limit: u32,
    /// Where the last page ended, as it gave it.
    pub after: Option<String>,
}

/// Counts by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StateCounts {
    /// Queued.
    pub queued: u64,
    /// Admitted, starting, running, reclaiming, recovering.
    pub active: u64,
    /// Ended.
    pub ended: u64,
}

/// One page of jobs; totals and rows come from one query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobList {
    /// The rows.
    pub jobs: Vec<JobRow>,
    /// How many the filter matches in all.
    pub total: u64,
    /// Of these, by state.
    pub counts: StateCounts,
    /// Where the next page begins; `None` on the last one.
    pub next: Option<String>,
    /// When this was made.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub now: Timestamp,
}

/// Answer to a submission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Submitted {
    /// The job's number.
    pub id: u64,
    /// True when this idempotency key had made the job before.
    pub repeated: bool,
}

/// What would happen if it were submitted now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Preview {
    /// It would start now.
    pub fits: bool,
    /// Where, when it fits.
    pub place: Option<PlaceView>,
    /// Why not, when it does not.
    pub reason: Option<ReasonView>,
    /// GPUs inside the team's nominal.
    pub own: Gpus,
    /// GPUs borrowed.
    pub borrowed: Gpus,
    /// What one hour of it costs, two decimals; `None` when it can never run.
    pub per_hour: Option<String>,
    /// What it costs if it runs to its time limit, two decimals; `None` without a limit, or when it can never run.
    pub at_limit: Option<String>,
    /// Currency.
    pub currency: String,
}

/// Answer to a dry run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DryRun {
    /// The spec as it would be stored, defaults filled in.
    pub spec: SubmitJob,
    /// What would happen.
    pub preview: Preview,
}
