//! Claims: reclaim and preemption.
//!
//! A job whose request is its team's own (or inside a level of the cohort tree), and that lacks quota or room, may take
//! it from those who borrow. It does so by a [`Claim`]: it names its victims, what they lose, and the very cards on which
//! the claimant will start; from then on nobody else uses these.
//!
//! - Who may be taken: `prey`. Where, then whom: `hunt`, in `ground`. What they lose, and the price of a request: `loss`.
//! - What a cycle does with claims in flight: `advance`. What is told of them: `told`. What people answer: `answer`.
//! - The fold: `fold`. What must always be true: `holds`.
//!
//! # The life of a claim
//! `requested` (a person decides, or the deadline) -> `approved` (planned anew with the same victims or fewer) -> `made`
//! -> the claimant's start, or a withdrawal on the record. A cohort whose claims are `auto` begins at `made`.
//!
//! At `made` the victims' charge leaves and each is asked to save: [`crate::Phase::Reclaiming`]. As soon as its save is durable,
//! or its grace is over, it is stopped; at its exit it waits again with its first submit time. What has nothing to save
//! with is stopped at once. The grace of a job is the policy's or twice its save time, whichever is more, capped.
//!
//! # Elastic gangs
//! Of these, whole segments are taken, the highest ranks first and never below their fewest pods, before anybody is taken
//! whole. What is taken of one gang is [`crate::Shed`]: its charge leaves at `made`, the gang saves first as others do, then these
//! pods are stopped; they are held and billed until their exit is confirmed, and the gang goes on with the others.
//!
//! # Choices where the page is silent
//! - An elastic gang forms itself anew without starting again. So it loses nothing but the time of a save, and one that
//!   cannot save within its grace gives up its pods at once. One that is not up yet, or is giving up pods already, is not shrunk.
//! - An elastic claimant claims its fewest pods: for more nobody else has to go.
//! - Cards are held, not whole nodes: two claimants of four GPUs may share a node of eight, as two jobs may.
//! - A job that lies wholly inside its team's nominal is never taken for another team: victims have a borrowed part.
//! - `fair_reclaim` is about quota: a borrower evicts nobody merely to lie closer together.
//! - A topology *preference* evicts nobody: victims are sought for what the request must have.
//! - The cohort of the claimant's team says whether a person decides. Who is taken for his own team is that team's affair.
//! - After a refusal, by an admin or by the deadline, the claimant does not ask again for `claim_again_after`.
//! - A victim's own and borrowed parts stay as they were at the decision until its exit: that is what it is billed for.

mod advance;
mod answer;
mod fold;
mod ground;
mod holds;
mod hunt;
mod loss;
mod prey;
mod taken;
mod told;

pub(crate) use advance::hold_room;
pub(crate) use answer::{answer, due, gone, on_time};
pub(crate) use fold::{fold, fulfil};
pub(crate) use holds::check;
pub(crate) use hunt::Hunt;
pub(crate) use loss::loss_of_move;
pub use loss::price_now;
pub(crate) use told::{claim_of, make_claims, review};

use crate::{
    Cents, CohortId, JobId, MilliGpu, MilliGpuMs, Millis, Name, PersonId, Placement, TeamId,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// A claim's number, from 1 in the order of their making.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct ClaimId(pub u64);

impl fmt::Display for ClaimId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// By what right.
#[derive(
    Clone, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames,
)]
#[strum(serialize_all = "snake_case")]
#[serde(tag = "basis", rename_all = "snake_case")]
pub enum Basis {
    /// The request is inside a level of the quota tree, without that level borrowing.
    Owner {
        /// Borrowing height: 0 = inside the team's nominal.
        height: u32,
        /// The level; `None` = the team itself.
        cohort: Option<CohortId>,
    },
    /// Lower priority inside the same team, by policy.
    Priority,
    /// A borrower from a borrower whose share stays at or above its own (`fair_reclaim`).
    FairShare,
}

/// How far a claim has come.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantNames,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// A person is asked; nothing has moved.
    Requested,
    /// Somebody said yes, or the deadline did; the next cycle plans it anew.
    Approved,
    /// Decided: quota has moved, victims are on their way out, the targets are held.
    Made,
}

/// One job that is taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Victim {
    /// Which.
    pub job: JobId,
    /// Which of its attempts.
    pub attempt: u32,
    /// Whose.
    pub team: TeamId,
    /// What it gives up: all that it has, unless it keeps pods.
    pub gpus: MilliGpu,
    /// The end of its grace. When the claim was made, for what has nothing to save with.
    pub until: Millis,
    /// What it loses: GPUs x (unsaved work at the stop + save + restart).
    #[serde(with = "as_u64")]
    pub lost: MilliGpuMs,
    /// The pods that it keeps: an elastic gang goes on with these. `None` = it goes whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeps: Option<u32>,
}

/// One way to free the room, and what it costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Way {
    /// GPU-time lost by all victims together.
    #[serde(with = "as_u64")]
    pub lost: MilliGpuMs,
    /// When the last of them has saved, not counting its exit; `None` = that never comes.
    pub by: Option<Millis>,
    /// The same in money, at the card in force; `None` without a price.
    pub cents: Option<Cents>,
}

/// The price of a claim, three ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// Killed at once.
    pub now: Way,
    /// Each saves first, where it can within its grace: what is done.
    pub after_save: Way,
    /// Each goes on to its next periodic save.
    pub next_save: Way,
}

/// Other victims that would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alternative {
    /// Where the room would be; `None` = anywhere.
    pub domain: Option<Name>,
    /// Who.
    pub victims: Vec<JobId>,
    /// What they would lose.
    #[serde(with = "as_u64")]
    pub lost: MilliGpuMs,
}

/// A job's demand for what others use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Its number.
    pub id: ClaimId,
    /// The job that will start.
    pub claimant: JobId,
    /// Its team.
    pub team: TeamId,
    /// By what right.
    #[serde(flatten)]
    pub basis: Basis,
    /// How far it has come.
    pub stage: Stage,
    /// Where the claimant will start: its target cards, held from `made` on.
    pub placement: Arc<Placement>,
    /// Who is taken, in order of job number. The set is irreducible: without any one of them it would not do.
    pub victims: Vec<Victim>,
    /// Others on their way out already, whose room or quota it counts on.
    pub awaits: Vec<JobId>,
    /// What it costs.
    pub price: Price,
    /// Other sets that would do, dearer ones, at most three.
    pub alternatives: Vec<Alternative>,
    /// When it was requested, or made without a request.
    pub at: Millis,
    /// While it is requested: when the deadline decides.
    pub deadline: Option<Millis>,
    /// The borrower's lead who has put it off, once.
    pub deferred_by: Option<PersonId>,
    /// The borrower's lead who has proposed these victims.
    pub proposed_by: Option<PersonId>,
}

impl Claim {
    /// By when the last victim's grace is over.
    pub fn until(&self) -> Millis {
        let graces = self.victims.iter().map(|victim| victim.until);
        graces.max().unwrap_or(self.at)
    }

    /// What its victims have together.
    pub fn taken(&self) -> MilliGpu {
        self.victims.iter().map(|victim| victim.gpus).sum()
    }

    /// True for a claim on what is the claimant's own: at the deadline it is approved, others are withdrawn.
    pub fn is_owners(&self) -> bool {
        match self.basis {
            Basis::Owner { .. } => true,
            Basis::Priority | Basis::FairShare => false,
        }
    }
}

/// Why a claim is given up.
#[derive(
    Clone, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames,
)]
#[strum(serialize_all = "snake_case")]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Withdrawal {
    /// The claimant was cancelled.
    ClaimantGone,
    /// The claimant is held, or may not start for a limit.
    ClaimantSetAside,
    /// A target node takes no work any more: it is planned anew.
    TargetLost {
        /// Which.
        node: crate::NodeId,
    },
    /// The quota that it stood on was cut.
    QuotaGone,
    /// What was approved does not do any more, and nothing else does.
    NothingToTake,
    /// Nobody approved it in time, and it is no owner's.
    Deadline,
}

/// A victim's side of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reclaim {
    /// Which claim.
    pub claim: ClaimId,
    /// For whom.
    pub claimant: JobId,
    /// Since when.
    pub at: Millis,
    /// The end of its grace.
    pub until: Millis,
    /// When it was asked to save, if it was.
    pub asked: Option<Millis>,
}

/// That a job was taken once: for the preemption budget, and because nobody is taken twice for one claimant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Eviction {
    /// When.
    pub at: Millis,
    /// For whom.
    pub claimant: JobId,
}

/// Who decides on the claims of a cohort's teams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReclaimMode {
    /// The engine, at once.
    #[default]
    Auto,
    /// The cohort's admin, within the deadline.
    Approval,
}

/// Whether jobs of a team are taken for others of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WithinTeam {
    /// They are not (Kueue's default for `withinClusterQueue`).
    #[default]
    Never,
    /// Those of lower priority are.
    LowerPriority,
}

/// Internally tagged facts cannot carry numbers of 128 bits; 64 of them hold 100,000 GPUs for a thousand years.
mod as_u64 {
    use crate::MilliGpuMs;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(amount: &MilliGpuMs, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(u64::try_from(amount.0).unwrap_or(u64::MAX))
    }
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<MilliGpuMs, D::Error> {
        u64::deserialize(from).map(|amount| MilliGpuMs(amount.into()))
    }
}
