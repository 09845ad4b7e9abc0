//! Everything that can happen. The journal is a list of these; the state is their fold.

use crate::{
    Claim, ClaimId, Cohort, CohortId, End, Flavour, Health, JobId, JobSpec, Millis, Node, NodeId,
    PersonId, Placement, Policy, RateCard, Team, TeamId, Topology, Withdrawal,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When.
    pub at: Millis,
    /// What.
    #[serde(flatten)]
    pub fact: Fact,
}

/// Why a gang is stopped or was lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum StopCause {
    /// A person asked for it.
    Person {
        /// Who.
        by: PersonId,
        /// In their words.
        why: Option<String>,
    },
    /// Its running time reached the limit.
    TimeLimit,
    /// A node of its gang was lost.
    NodeLost {
        /// Which.
        node: NodeId,
        /// What broke: a cause of the reliability tables, or an operator's word.
        what: String,
    },
    /// Its pods were not all up in time.
    LaunchTimeout,
    /// Its own process failed.
    Exited {
        /// Exit code.
        code: i32,
    },
    /// It makes room for an owner.
    Reclaim {
        /// By which claim.
        claim: ClaimId,
        /// For whom.
        claimant: JobId,
    },
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Fact {
    /// The fabric's levels were said.
    TopologySet {
        /// The levels.
        topology: Topology,
    },
    /// A flavour was added or changed.
    FlavourSet {
        /// The flavour.
        flavour: Flavour,
    },
    /// A cohort was added or changed.
    CohortSet {
        /// The cohort.
        cohort: Cohort,
    },
    /// A cohort is gone; its members stand alone.
    CohortRemoved {
        /// Which.
        cohort: CohortId,
    },
    /// A team was added or changed.
    TeamSet {
        /// The team.
        team: Team,
    },
    /// A team is gone. It has no jobs.
    TeamRemoved {
        /// Which.
        team: TeamId,
    },
    /// A node was added, or changed while it was empty.
    NodeSet {
        /// The node.
        node: Node,
    },
    /// A node's health changed.
    NodeHealthSet {
        /// Which.
        node: NodeId,
        /// To what.
        health: Health,
        /// Why.
        why: String,
    },
    /// The policy was changed.
    PolicySet {
        /// The whole policy.
        policy: Policy,
    },
    /// A rate card was published.
    RateCardSet {
        /// The card.
        card: RateCard,
    },
    /// A job came in.
    JobSubmitted {
        /// Its number.
        job: JobId,
        /// Whose.
        owner: PersonId,
        /// What it asks for.
        spec: Arc<JobSpec>,
    },
    /// All of its GPUs fit quota and place: charged from here.
    JobAdmitted {
        /// Which.
        job: JobId,
        /// The attempt that begins.
        attempt: u32,
        /// Where.
        placement: Arc<Placement>,
    },
    /// All pods are bound: held from here.
    GangBound {
        /// Which.
        job: JobId,
        /// Its attempt.
        attempt: u32,
    },
    /// All pods are up.
    GangStarted {
        /// Which.
        job: JobId,
        /// Its attempt.
        attempt: u32,
    },
    /// A save began.
    CheckpointStarted {
        /// Which.
        job: JobId,
        /// Its attempt.
        attempt: u32,
    },
    /// A save is durable.
    CheckpointSaved {
        /// Which.
        job: JobId,
        /// Its attempt.
        attempt: u32,
        /// Running time's work that it holds, over all attempts.
        progress: Millis,
        /// Its size.
        bytes: u64,
    },
    /// The gang is being stopped. A running job stays `running` until its exit is confirmed, except that a lost pod
    /// makes it `recovering`.
    StopRequested {
        /// Which.
        job: JobId,
        /// Its attempt.
        attempt: u32,
        /// Why.
        #[serde(flatten)]
        cause: StopCause,
        /// How the job ends once the exit is confirmed; `None` = it is queued again.
        end: Option<End>,
    },
    /// A claim is put to a person, or with other victims than before: nothing has moved.
    ClaimRequested {
        /// Whose.
        job: JobId,
        /// All of it.
        claim: Arc<Claim>,
    },
    /// A claim may go on: the next cycle plans it anew.
    ClaimApproved {
        /// Whose.
        job: JobId,
        /// Which.
        claim: ClaimId,
        /// By whom; `None` = by its deadline.
        by: Option<PersonId>,
    },
    /// A claim is over: a person says no.
    ClaimDeclined {
        /// Whose.
        job: JobId,
        /// Which.
        claim: ClaimId,
        /// By whom.
        by: PersonId,
        /// In their words.
        why: Option<String>,
        /// The claimant asks for nothing again before then.
        again: Millis,
    },
    /// The borrower's lead puts a claim off, once.
    ClaimDeferred {
        /// Whose.
        job: JobId,
        /// Which.
        claim: ClaimId,
        /// By whom.
        by: PersonId,
        /// The new deadline.
        deadline: Millis,
    },
    /// The decision: the victims' charge leaves, the targets are held.
    ClaimMade {
        /// Whose.
        job: JobId,
        /// All of it.
        claim: Arc<Claim>,
    },
    /// A claim is given up.
    ClaimWithdrawn {
        /// Whose.
        job: JobId,
        /// Which.
        claim: ClaimId,
        /// Why.
        #[serde(flatten)]
        why: Withdrawal,
        /// The claimant asks for nothing again before then.
        again: Option<Millis>,
    },
    /// A victim is asked to save now.
    SaveAsked {
        /// Which.
        job: JobId,
        /// Its attempt.
        attempt: u32,
        /// For which claim.
        claim: ClaimId,
        /// The end of its grace.
        until: Millis,
    },
    /// The exit of every pod is confirmed; the job waits again with its first submit time. Nothing is held or charged.
    JobRequeued {
        /// Which.
        job: JobId,
        /// The attempt that ended.
        attempt: u32,
        /// Not tried again before then.
        not_before: Option<Millis>,
    },
    /// The job is over. Nothing is held or charged.
    JobEnded {
        /// Which.
        job: JobId,
        /// How.
        end: End,
        /// Why, when not by itself.
        cause: Option<StopCause>,
    },
    /// A whole hour passed: usage lines are cut here.
    HourPassed,
}

impl Fact {
    /// The job that it is about, if it is about one.
    pub fn job(&self) -> Option<JobId> {
        match self {
            Self::JobSubmitted { job, .. }
            | Self::JobAdmitted { job, .. }
            | Self::GangBound { job, .. }
            | Self::GangStarted { job, .. }
            | Self::CheckpointStarted { job, .. }
            | Self::CheckpointSaved { job, .. }
            | Self::StopRequested { job, .. }
            | Self::ClaimRequested { job, .. }
            | Self::ClaimApproved { job, .. }
            | Self::ClaimDeclined { job, .. }
            | Self::ClaimDeferred { job, .. }
            | Self::ClaimMade { job, .. }
            | Self::ClaimWithdrawn { job, .. }
            | Self::SaveAsked { job, .. }
            | Self::JobRequeued { job, .. }
            | Self::JobEnded { job, .. } => Some(*job),
            Self::TopologySet { .. }
            | Self::FlavourSet { .. }
            | Self::CohortSet { .. }
            | Self::CohortRemoved { .. }
            | Self::TeamSet { .. }
            | Self::TeamRemoved { .. }
            | Self::NodeSet { .. }
            | Self::NodeHealthSet { .. }
            | Self::PolicySet { .. }
            | Self::RateCardSet { .. }
            | Self::HourPassed => None,
        }
    }
}
