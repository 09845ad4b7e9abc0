//! What can be asked of the engine, and how it refuses.

use crate::{
    ClaimId, Cohort, CohortId, Flavour, Health, HoldMode, HoldScope, JobId, JobSpec, Millis, Node,
    NodeId, PersonId, Phase, Policy, RateCard, Setting, Team, TeamId, TeamLimits, Topology,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use thiserror::Error;

/// Something asked for: by a person through a door, by an executor, or by the clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Take a job in.
    Submit {
        /// Whose.
        owner: PersonId,
        /// What it asks for.
        spec: Arc<JobSpec>,
    },
    /// End a job.
    Cancel {
        /// Which.
        job: JobId,
        /// Who asks.
        by: PersonId,
        /// In their words.
        why: Option<String>,
    },
    /// Suspend a notebook: it gives its GPUs back and keeps its place on record.
    Suspend {
        /// Which.
        job: JobId,
        /// Who asks.
        by: PersonId,
        /// In their words.
        why: Option<String>,
    },
    /// Let a suspended notebook wait for its start again, in its first order.
    Resume {
        /// Which.
        job: JobId,
        /// Who asks.
        by: PersonId,
        /// In their words.
        why: Option<String>,
    },
    /// Change a node's health.
    SetHealth {
        /// Which.
        node: NodeId,
        /// To what. `Down` is a confirmed loss: gangs with a pod there are stopped and recover elsewhere.
        health: Health,
        /// Why: a cause of the reliability tables, or an operator's word.
        why: String,
    },
    /// A node misses its heartbeats. Silence is no loss: nothing new is placed there, and what runs goes on.
    Silent {
        /// Which.
        node: NodeId,
        /// When it was last heard.
        since: Millis,
    },
    /// A silent node is heard again.
    Heard {
        /// Which.
        node: NodeId,
    },
    /// A lost or quarantined node is well, and nothing of what ran there is left. It takes new work again, or becomes the
    /// spare if one has taken its place.
    Repaired {
        /// Which.
        node: NodeId,
        /// What was done.
        why: String,
    },
    /// Let a job run for longer.
    ExtendLimit {
        /// Which.
        job: JobId,
        /// Its new limit over all attempts; more than now.
        limit: Millis,
        /// Who asks.
        by: PersonId,
        /// In their words.
        why: Option<String>,
    },
    /// Set something aside: nothing new starts there.
    Hold {
        /// What.
        scope: HoldScope,
        /// What becomes of those that run.
        mode: HoldMode,
        /// Who asks.
        by: PersonId,
        /// In their words; must be said, but for a job.
        why: Option<String>,
    },
    /// Lift a hold.
    Release {
        /// Of what.
        scope: HoldScope,
        /// Who asks.
        by: PersonId,
        /// In their words.
        why: Option<String>,
    },
    /// Change one policy.
    SetPolicy {
        /// Its name in [`POLICIES`](crate::POLICIES).
        name: String,
        /// To what.
        to: Setting,
        /// The version that was looked at: one that a colleague has changed since is not changed.
        seen: u64,
        /// Who asks.
        by: PersonId,
        /// In their words; must be said.
        why: Option<String>,
    },
    /// Change how much of a team may run and wait at once.
    SetLimits {
        /// Whose.
        team: TeamId,
        /// To what.
        limits: TeamLimits,
        /// The version that was looked at.
        seen: u64,
        /// Who asks.
        by: PersonId,
        /// In their words; must be said.
        why: Option<String>,
    },
    /// Change what there is.
    Configure(Configure),
    /// An executor's word about an attempt.
    Report {
        /// Which job.
        job: JobId,
        /// Which attempt: a word about an older one is refused (fencing).
        attempt: u32,
        /// What.
        report: Report,
    },
    /// Let a requested claim go on.
    ApproveClaim {
        /// Which.
        claim: ClaimId,
        /// Who says so.
        by: PersonId,
        /// The victims that they have seen; when it names others by now it is not approved. `None` = whoever it names.
        seen: Option<Vec<JobId>>,
    },
    /// Refuse a requested claim.
    DeclineClaim {
        /// Which.
        claim: ClaimId,
        /// Who says so.
        by: PersonId,
        /// In their words.
        why: Option<String>,
    },
    /// Put a requested claim off by one more deadline, once.
    DeferClaim {
        /// Which.
        claim: ClaimId,
        /// Who says so.
        by: PersonId,
    },
    /// Name other victims of a requested claim, who must do.
    ProposeVictims {
        /// Which.
        claim: ClaimId,
        /// Who says so.
        by: PersonId,
        /// Them.
        victims: Vec<JobId>,
    },
    /// Time passed: limits, time-outs, hour marks.
    Tick,
}

/// A change of the inventory, the quota tree, the policy or the prices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Configure {
    /// The fabric's levels; only before the first node.
    Topology(Topology),
    /// Add or change a flavour.
    Flavour(Flavour),
    /// Add or change a cohort; its parent exists and makes no ring.
    Cohort(Cohort),
    /// Remove a cohort; its members stand alone.
    RemoveCohort(CohortId),
    /// Add or change a team; its cohort and flavours exist.
    Team(Team),
    /// Remove a team without jobs.
    RemoveTeam(TeamId),
    /// Add a node, or change an empty one.
    Node(Node),
    /// The whole policy.
    Policy(Policy),
    /// A rate card; it starts on a whole hour, so that no usage line spans two.
    RateCard(RateCard),
}

/// An executor's word about one attempt.
#[derive(
    Clone, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames,
)]
#[strum(serialize_all = "snake_case")]
pub enum Report {
    /// All pods are bound.
    Bound,
    /// All pods are up.
    Started,
    /// No step of the gang has been heard of since then; told once.
    NoStep {
        /// When the last one was.
        since: Millis,
    },
    /// Its steps go on.
    Stepped,
    /// A notebook does nothing since then; told once.
    Idle {
        /// When it last did something.
        since: Millis,
    },
    /// It does something again.
    Active,
    /// One pod has ended by itself, well, before the others.
    PodSucceeded {
        /// Which of the gang's pods.
        rank: u32,
    },
    /// A save began.
    CheckpointStarted {
        /// Running time's work that it will hold, over all attempts: tells a save from an earlier one told again.
        progress: Millis,
    },
    /// A save is durable.
    CheckpointSaved {
        /// Running time's work that it holds, over all attempts.
        progress: Millis,
        /// Its size.
        bytes: u64,
    },
    /// The highest ranks of an elastic gang were asked to go, and are gone.
    Shrunk,
    /// The gang ended by itself, well; every pod is gone.
    Succeeded,
    /// The gang ended by itself, badly; every pod is gone.
    Failed {
        /// Exit code.
        code: i32,
    },
    /// A requested stop is done; every pod is gone.
    Exited,
}

/// Why a command changes nothing. Each names the way out.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Eq,
    Error,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantNames,
)]
#[strum(serialize_all = "snake_case")]
pub enum Refusal {
    /// No such job, or it has ended.
    #[error("job {0} is not live: it has ended or never was")]
    NoSuchJob(JobId),
    /// No such team.
    #[error("there is no team `{0}`")]
    NoSuchTeam(TeamId),
    /// No such node.
    #[error("there is no node {0}")]
    NoSuchNode(NodeId),
    /// A stop is under way already.
    #[error("job {0} is being stopped already")]
    AlreadyStopping(JobId),
    /// Another kind of job.
    #[error("job {0} is no notebook: hold it, or cancel it")]
    NotNotebook(JobId),
    /// It is suspended already.
    #[error("job {0} is suspended already: resume it when it is needed")]
    AlreadySuspended(JobId),
    /// There is nothing to resume.
    #[error("job {0} is not suspended: it waits or runs")]
    NotSuspended(JobId),
    /// A word about an attempt that is over.
    #[error("job {job} is at attempt {current}, not {given}: the report came too late")]
    StaleAttempt {
        /// Which.
        job: JobId,
        /// The report's.
        given: u32,
        /// The job's.
        current: u32,
    },
    /// A report that does not fit the job's phase.
    #[error("job {job} cannot take this report while it is {phase:?}")]
    OutOfPlace {
        /// Which.
        job: JobId,
        /// Its phase.
        phase: Phase,
    },
    /// A field that cannot be so.
    #[error("{field}: {problem}")]
    Invalid {
        /// The field, as the contract names it.
        field: String,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// The node is in use.
    #[error("node {0} holds work: drain it first")]
    NodeInUse(NodeId),
    /// No such claim, or it is over.
    #[error("reclaim {0} is over or never was: look at the list of reclaims")]
    NoSuchClaim(ClaimId),
    /// It is decided already.
    #[error("reclaim {0} is decided already: its victims are on their way out")]
    ClaimDecided(ClaimId),
    /// It was put off once.
    #[error("reclaim {0} was put off once already: propose other jobs, or let the deadline decide")]
    AlreadyDeferred(ClaimId),
    /// It names others than those that were seen.
    #[error("reclaim {0} names other jobs by now: look at it again, then answer")]
    VictimsChanged(ClaimId),
    /// These victims do not do.
    #[error(
        "these jobs would not make room for reclaim {0}: name borrowers whose GPUs are enough, in one place"
    )]
    NotEnough(ClaimId),
    /// It is held already.
    #[error("{what} is held already, by {by}: lift that hold first")]
    HeldAlready {
        /// What.
        what: String,
        /// By whom.
        by: PersonId,
    },
    /// There is nothing to lift.
    #[error("{what} is not held: look for a hold of its team, its cohort or its rack")]
    NotHeld {
        /// What.
        what: String,
    },
    /// A colleague was first.
    #[error("{what} was changed by {by} since you looked: look at it again, then change it")]
    ChangedSince {
        /// What.
        what: String,
        /// By whom.
        by: PersonId,
    },
    /// The team still has jobs.
    #[error("team `{0}` has live jobs: cancel them first")]
    TeamInUse(TeamId),
}
