//! Everything that can happen. The journal is a list of these; the state is their fold.

use crate::{
    Area, Claim, ClaimId, Cohort, CohortId, End, Flavour, Health, HoldMode, HoldScope, JobId,
    JobSpec, Millis, Node, NodeId, PersonId, Placement, Policy, RateCard, Team, TeamId, TeamLimits,
    Topology, Withdrawal,
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
#[derive(
    Clone, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames,
)]
#[strum(serialize_all = "snake_case")]
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
    /// No step of its was heard of for too long.
    Stalled {
        /// Since when.
        since: Millis,
        /// Those of its nodes that are silent: they are quarantined.
        silent: Vec<NodeId>,
    },
    /// Its pods were not all up in time.
    LaunchTimeout,
    /// Its own process failed.
    Exited {
        /// Exit code.
        code: i32,
    },
    /// It has saved, and what it runs on or belongs to is being drained.
    Drained {
        /// What is.
        scope: HoldScope,
        /// By whom.
        by: PersonId,
    },
    /// A notebook that did nothing for too long: it is suspended.
    Idle {
        /// Since when.
        since: Millis,
    },
    /// A person suspends a notebook.
    Suspend {
        /// Who.
        by: PersonId,
        /// In their words.
        why: Option<String>,
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
#[derive(
    Clone, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames,
)]
#[strum(serialize_all = "snake_case")]
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
    /// A node misses its heartbeats: nothing new is placed there. What runs goes on, is held and is billed.
    NodeSilent {
        /// Which.
        node: NodeId,
        /// Since when.
        since: Millis,
    },
    /// A silent node is heard again.
    NodeHeard {
        /// Which.
        node: NodeId,
    },
    /// Something was set aside: nothing new starts there.
    HoldSet {
        /// What.
        scope: HoldScope,
        /// What becomes of those that run.
        #[serde(default)]
        mode: HoldMode,
        /// By whom.
        by: PersonId,
        /// In their words.
        why: Option<String>,
    },
    /// A hold was lifted.
    HoldLifted {
        /// Of what.
        scope: HoldScope,
        /// By whom.
        by: PersonId,
        /// In their words.
        why: Option<String>,
    },
    /// The policy was changed.
    PolicySet {
        /// The whole policy.
        policy: Policy,
        /// By whom; `None` = it is what the fleet was set up with.
        #[serde(default)]
        by: Option<PersonId>,
        /// In their words.
        #[serde(default)]
        why: Option<String>,
    },
    /// How much of a team may run and wait at once was changed.
    LimitsSet {
        /// Whose.
        team: TeamId,
        /// To what.
        limits: TeamLimits,
        /// By whom.
        by: PersonId,
        /// In their words.
        why: Option<String>,
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
    /// No step of a running gang has been heard of since then.
    StepsStopped {
        /// Which.
        job: JobId,
        /// Its attempt.
        attempt: u32,
        /// Since when.
        since: Millis,
    },
    /// Its steps go on.
    StepsResumed {
        /// Which.
        job: JobId,
        /// Its attempt.
        attempt: u32,
    },
    /// A notebook does nothing since then.
    ActivityStopped {
        /// Which.
        job: JobId,
        /// Its attempt.
        attempt: u32,
        /// Since when.
        since: Millis,
    },
    /// It does something again.
    ActivityResumed {
        /// Which.
        job: JobId,
        /// Its attempt.
        attempt: u32,
    },
    /// Its people are told when it will be suspended, if it goes on doing nothing.
    IdleWarned {
        /// Which.
        job: JobId,
        /// Its attempt.
        attempt: u32,
        /// When.
        suspend_at: Millis,
    },
    /// A notebook is suspended: it has nothing, keeps its place on record, and is in no line.
    NotebookSuspended {
        /// Which.
        job: JobId,
        /// By whom; `None` = by the idle rule.
        by: Option<PersonId>,
        /// In their words.
        why: Option<String>,
    },
    /// It waits in the line again, with its first submit time.
    NotebookResumed {
        /// Which.
        job: JobId,
        /// By whom.
        by: PersonId,
        /// In their words.
        why: Option<String>,
    },
    /// One pod has ended by itself, well: its place is held no longer. The others go on; no gang is broken by it.
    PodSucceeded {
        /// Which.
        job: JobId,
        /// Its attempt.
        attempt: u32,
        /// Which of its pods.
        rank: u32,
    },
    /// What it cost that a gang was cut short: by a node, by standing still or by its own exit.
    Interrupted {
        /// Which.
        job: JobId,
        /// Its attempt.
        attempt: u32,
        /// The cause, in the words of the reliability tables where it stands there.
        what: String,
        /// Where it lay.
        area: Area,
        /// Work since the last durable checkpoint of this attempt, in thousandths of a GPU x milliseconds.
        lost: u64,
    },
    /// Its pods on a node are gone for certain, or quarantined with it: they are held and billed no longer.
    PodsLost {
        /// Which.
        job: JobId,
        /// Its attempt.
        attempt: u32,
        /// Where.
        node: NodeId,
        /// Until when it keeps its other nodes while others are found in place of this one; `None` = it does not.
        keep_until: Option<Millis>,
    },
    /// The exit of every pod that was left is confirmed; it keeps their nodes until then.
    GangStopped {
        /// Which.
        job: JobId,
        /// The attempt that ended.
        attempt: u32,
        /// Until when.
        until: Millis,
    },
    /// Others were found in place of the nodes that it lost: it starts again, from its last durable checkpoint.
    GangReplaced {
        /// Which.
        job: JobId,
        /// The attempt that begins.
        attempt: u32,
        /// Where, all of it.
        placement: Arc<Placement>,
        /// Ranks that lie elsewhere than before.
        moved: Vec<u32>,
    },
    /// A job may run for longer.
    TimeLimitExtended {
        /// Which.
        job: JobId,
        /// Its limit from now on, over all attempts.
        limit: Millis,
        /// By whom.
        by: PersonId,
        /// In their words.
        why: Option<String>,
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
        /// Pods with which it goes on then; `None` = it goes whole.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        keeps: Option<u32>,
    },
    /// The highest ranks of an elastic gang are being stopped, for an owner; the others go on.
    ShrinkRequested {
        /// Which.
        job: JobId,
        /// Its attempt.
        attempt: u32,
        /// Pods that it keeps: the ranks below.
        keeps: u32,
        /// By which claim.
        claim: ClaimId,
        /// For whom.
        claimant: JobId,
    },
    /// Pods of an elastic gang are gone, and held and billed no longer; it goes on with the others: the highest ranks, which
    /// were asked to go; or those on a node that was lost, and the others are numbered anew in their order.
    GangShrunk {
        /// Which.
        job: JobId,
        /// Its attempt.
        attempt: u32,
        /// Pods that it has left.
        keeps: u32,
        /// A reclaim, or the loss of a node.
        cause: StopCause,
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
            | Self::StepsStopped { job, .. }
            | Self::StepsResumed { job, .. }
            | Self::ActivityStopped { job, .. }
            | Self::ActivityResumed { job, .. }
            | Self::IdleWarned { job, .. }
            | Self::NotebookSuspended { job, .. }
            | Self::NotebookResumed { job, .. }
            | Self::PodSucceeded { job, .. }
            | Self::Interrupted { job, .. }
            | Self::PodsLost { job, .. }
            | Self::GangStopped { job, .. }
            | Self::GangReplaced { job, .. }
            | Self::TimeLimitExtended { job, .. }
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
            | Self::ShrinkRequested { job, .. }
            | Self::GangShrunk { job, .. }
            | Self::JobRequeued { job, .. }
            | Self::JobEnded { job, .. }
            | Self::HoldSet {
                scope: HoldScope::Job { job },
                ..
            }
            | Self::HoldLifted {
                scope: HoldScope::Job { job },
                ..
            } => Some(*job),
            Self::TopologySet { .. }
            | Self::FlavourSet { .. }
            | Self::CohortSet { .. }
            | Self::CohortRemoved { .. }
            | Self::TeamSet { .. }
            | Self::TeamRemoved { .. }
            | Self::NodeSet { .. }
            | Self::NodeHealthSet { .. }
            | Self::NodeSilent { .. }
            | Self::NodeHeard { .. }
            | Self::HoldSet { .. }
            | Self::HoldLifted { .. }
            | Self::PolicySet { .. }
            | Self::LimitsSet { .. }
            | Self::RateCardSet { .. }
            | Self::HourPassed => None,
        }
    }
}
