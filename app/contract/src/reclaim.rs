//! Reclaims as every door shows them: who asks for what others borrow, what that costs, who answered.

use crate::Gpus;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How far a reclaim has come. The first three are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum ReclaimStage {
    /// A person is asked; nothing has moved.
    Requested,
    /// Somebody said yes, or the deadline did; it is planned anew in a moment.
    Approved,
    /// Decided: those who give back save and go, and the room is held.
    Made,
    /// Over: its job has started.
    Started,
    /// Over: a person said no.
    Declined,
    /// Over: given up, with a cause.
    Withdrawn,
}

impl ReclaimStage {
    /// All of them, in order.
    pub const ALL: [Self; 6] = [
        Self::Requested,
        Self::Approved,
        Self::Made,
        Self::Started,
        Self::Declined,
        Self::Withdrawn,
    ];
    /// Those that are not over.
    pub const OPEN: [Self; 3] = [Self::Requested, Self::Approved, Self::Made];
    /// Those that are.
    pub const OVER: [Self; 3] = [Self::Started, Self::Declined, Self::Withdrawn];

    /// As written in JSON, URLs and the CLI.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Approved => "approved",
            Self::Made => "made",
            Self::Started => "started",
            Self::Declined => "declined",
            Self::Withdrawn => "withdrawn",
        }
    }

    /// True when it is over.
    pub fn over(self) -> bool {
        Self::OVER.contains(&self)
    }
}
impl fmt::Display for ReclaimStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
impl FromStr for ReclaimStage {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|stage| stage.as_str() == text)
            .ok_or_else(|| {
                let all: Vec<_> = Self::ALL.iter().map(|stage| stage.as_str()).collect();
                format!("`{text}` is no stage; stages are {}", all.join(", "))
            })
    }
}

/// A job that a reclaim is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReclaimJob {
    /// Number.
    pub id: u64,
    /// Name; `None` for a job that only stands as an alternative and is not the reader's to see.
    pub name: Option<String>,
    /// Team.
    pub team: String,
    /// Owner's id; `None` like the name.
    pub owner: Option<String>,
    /// GPUs of the gang.
    pub gpus: Gpus,
    /// True when the reader may open the job itself.
    pub visible: bool,
}

/// A job that would stop, or was stopped, for a reclaim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReclaimVictim {
    /// Which.
    pub job: ReclaimJob,
    /// Its last durable checkpoint, while it runs and has one.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub last_checkpoint: Option<Timestamp>,
    /// How long one save of it takes, in milliseconds; `None` when it saves nothing.
    pub save_ms: Option<u64>,
    /// Runs since, while it runs.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub started: Option<Timestamp>,
    /// What it loses when it goes the advised way, in GPU-hours with four decimals.
    pub lost_gpu_hours: String,
    /// Pods with which it goes on, if it is elastic and gives up only some; `None` = it stops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeps_pods: Option<u32>,
    /// The end of its grace, once that is decided.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub until: Option<Timestamp>,
}

/// One way to free the room, and what it costs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReclaimWay {
    /// GPU-hours lost by all who go, four decimals.
    pub lost_gpu_hours: String,
    /// The same in money at the rate card in force, two decimals; `None` without a price.
    pub amount: Option<String>,
    /// When the last of them has saved, its exit not counted; `None` = that never comes.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub by: Option<Timestamp>,
    /// How long that is from the price's own time, in milliseconds.
    pub wait_ms: Option<u64>,
}

/// What a reclaim costs, three ways.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReclaimPrice {
    /// When it was worked out: now while it waits for an answer, at the decision afterwards.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Timestamp,
    /// Killed at once.
    pub now: ReclaimWay,
    /// Each saves first, where it can within its grace: what a yes does.
    pub after_save: ReclaimWay,
    /// Each goes on to its next periodic save.
    pub next_save: ReclaimWay,
    /// What the claimant's GPUs wait for until that next save, in GPU-hours with four decimals; `None` if it never comes.
    pub idle_gpu_hours: Option<String>,
    /// Currency.
    pub currency: String,
}

/// Another set that would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReclaimAlternative {
    /// Where the room would be; `None` = anywhere.
    pub domain: Option<String>,
    /// Who would go.
    pub jobs: Vec<ReclaimJob>,
    /// What they would lose, in GPU-hours with four decimals, when this was worked out.
    pub lost_gpu_hours: String,
}

/// What the reader may do with a reclaim now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReclaimRights {
    /// Approve it.
    pub approve: bool,
    /// Decline it.
    pub decline: bool,
    /// Put it off, once.
    pub defer: bool,
    /// Propose another set.
    pub propose: bool,
    /// As what, in words; or why nothing.
    pub said: String,
}

/// A reclaim, whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReclaimView {
    /// Number.
    pub id: u64,
    /// How far it has come.
    pub stage: ReclaimStage,
    /// The demo clock's or the wall's now, when this was made.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub now: Timestamp,
    /// The job that asks.
    pub claimant: ReclaimJob,
    /// Since when that job waits: its first submission.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub claimant_submitted: Option<Timestamp>,
    /// By what right, in words: `inside its team's own quota`.
    pub right: String,
    /// Where it would start: `32 nodes of block h100-b07`.
    pub place: String,
    /// What those who go have together.
    pub taken: Gpus,
    /// Who would go, or went.
    pub victims: Vec<ReclaimVictim>,
    /// Teams of those who would go, in order of name.
    pub losing_teams: Vec<String>,
    /// Jobs that are on their way out anyway, and whose room it counts on.
    pub awaits: Vec<u64>,
    /// What it costs.
    pub price: ReclaimPrice,
    /// Other sets that would do, dearer ones.
    pub alternatives: Vec<ReclaimAlternative>,
    /// When it was first asked for.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub requested: Timestamp,
    /// Until when a person may answer; only while it waits for an answer.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub deadline: Option<Timestamp>,
    /// What the deadline does by itself: `approved` or `withdrawn`.
    pub at_deadline: Option<String>,
    /// Who has put it off.
    pub deferred_by: Option<String>,
    /// Who has proposed these jobs.
    pub proposed_by: Option<String>,
    /// When it was approved or declined; `None` also for one that needed nobody's word.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub decided: Option<Timestamp>,
    /// By whom; `None` = by its deadline, or nobody was asked.
    pub decided_by: Option<String>,
    /// The reason that was given with a no.
    pub reason: Option<String>,
    /// When it was over.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub ended: Option<Timestamp>,
    /// What became of it so far, in one sentence.
    pub outcome: String,
    /// What the reader may do.
    pub may: ReclaimRights,
}

/// Which reclaims.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReclaimFilter {
    /// Only these stages; empty = all. Sorted, no doubles.
    pub stages: Vec<ReclaimStage>,
    /// Only those of these teams, on either side; empty = all that the reader may see. Sorted, no doubles.
    pub teams: Vec<String>,
}

/// One page of reclaims, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReclaimList {
    /// The rows.
    pub reclaims: Vec<ReclaimView>,
    /// How many the filter matches in all.
    pub total: u64,
    /// How many wait for an answer that the reader may give, whatever the filter.
    pub for_you: u64,
    /// Where the next page begins; `None` on the last one.
    pub next: Option<String>,
    /// When this was made.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub now: Timestamp,
}

/// A no, with its reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeclineReclaim {
    /// In the caller's words, for those who asked.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 500))]
    pub reason: String,
}

/// Other jobs that would do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProposeVictims {
    /// Numbers of the jobs that would go instead.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 1000))]
    pub victims: Vec<u64>,
}

/// A reclaim that a job's page tells of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReclaimNote {
    /// Which.
    pub id: u64,
    /// How far it has come.
    pub stage: ReclaimStage,
    /// True when the job would stop for it, false when it is the one that asks.
    pub loses: bool,
    /// In one sentence.
    pub text: String,
    /// Until when a person may answer.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub deadline: Option<Timestamp>,
}
