//! The numbers that an admin may change, with their defaults, in one table.

use crate::{Limits, Millis, WithinTeam};
use serde::{Deserialize, Serialize};

/// Every default of the engine. Times are spans.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// A gang that is not up by then is released (10 min; Kueue's waitForPodsReady: 5 min).
    pub launch_timeout: Millis,
    /// First wait after a failed launch; doubles with each failure, up to an hour (1 min; Kueue's requeuing back-off: 1 min).
    pub launch_back_off: Millis,
    /// A running gang of which no step is heard for so long starts again elsewhere, and its silent nodes are quarantined (15 min;
    /// Kubernetes evicts from an unreachable node after 5 min, whatever runs there; NCCL's watchdog: 10 min).
    pub stall_after: Millis,
    /// A gang that lost a node keeps its others for so long while another one is found for it; 0 = it does not (10 min;
    /// Slurm's and Kueue's gangs keep nothing; Kueue's `podsReady` recovery time-out: none).
    pub recover_hold: Millis,
    /// Whether work that was lost with a node, or in a stall, counts against the time limit (no; Slurm's limit begins anew with
    /// each requeue).
    pub count_lost_work: bool,
    /// Jobs of so many different people fail on a node in a row, and it is cordoned; 0 = never (3; Slurm, Kueue: never).
    pub lemon_people: u32,
    /// Failures that are further back do not count for that (7 days).
    pub lemon_window: Millis,
    /// A notebook that does nothing for so long is suspended (30 min; Kubeflow's culler: a day, JupyterHub's: 10 min).
    pub notebook_idle: Millis,
    /// And is warned so long before (10 min; neither of them warns).
    pub notebook_warning: Millis,
    /// A job that waited this long gets a planned start even if it is not among the first, and is compared by what its team
    /// holds, not by what it asks (30 min; Slurm and Kueue have no such promise).
    pub reserve_after: Millis,
    /// Failures that a job survives when it says nothing (5).
    pub restart_budget: u32,
    /// How many of the first in order get a planned start, and how many of those that waited over `reserve_after` (8;
    /// Slurm's backfill: as many as it gets to in its time).
    pub reservations: u32,
    /// Half-life of past use in fair shares: whole hours (7 days; Slurm's PriorityDecayHalfLife: 7 days).
    pub half_life: Millis,
    /// What past use decides in the order of teams (breaks ties of the current share; Slurm: leads).
    pub use_order: UseOrder,
    /// A victim has at least so long to save (5 min; Kubernetes' `terminationGracePeriodSeconds`: 30 s; Slurm's `GraceTime`: 0).
    pub grace: Millis,
    /// And at most so long, however long its save takes (20 min).
    pub grace_cap: Millis,
    /// By when a person answers a request (10 min).
    pub approval_deadline: Millis,
    /// A claimant that was refused asks again after this (60 min).
    pub claim_again_after: Millis,
    /// Whoever runs for less is taken last by an owner, and by nobody else (10 min; Slurm's `PreemptExemptTime`: 0).
    pub minimum_run: Millis,
    /// Whoever was taken so often in a day is taken last by an owner, and by nobody else (3).
    pub preemption_budget: u32,
    /// Unsaved work, at most, of a job that reports no checkpoints (60 min).
    pub policy_age: Millis,
    /// Owners take back what is borrowed (yes; Kueue's `reclaimWithinCohort`: never).
    pub owner_reclaim: bool,
    /// Borrowers may take from borrowers with a larger share (yes; Kueue's `reclaimWithinCohort` with fair sharing).
    pub fair_reclaim: bool,
    /// Whether a team's jobs are taken for others of it (never).
    pub within_team: WithinTeam,
    /// How many of a person's jobs may run and wait at once, over all teams (no limit; Slurm's `MaxJobsPerUser`: none).
    pub person_limits: Limits,
}

/// What past use decides in the order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UseOrder {
    /// Among teams of equal share, whoever used less lately goes first.
    #[default]
    BreaksTies,
    /// Whoever used less lately goes first; the current share breaks ties.
    Leads,
}

impl Policy {
    /// The half-life in whole hours, at least one.
    pub(crate) fn half_life_hours(&self) -> u64 {
        (self.half_life.0 / Millis::HOUR.0).max(1)
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            launch_timeout: Millis::minutes(10),
            launch_back_off: Millis::MINUTE,
            stall_after: Millis::minutes(15),
            recover_hold: Millis::minutes(10),
            count_lost_work: false,
            lemon_people: 3,
            lemon_window: Millis::hours(7 * 24),
            notebook_idle: Millis::minutes(30),
            notebook_warning: Millis::minutes(10),
            reserve_after: Millis::minutes(30),
            restart_budget: 5,
            reservations: 8,
            half_life: Millis::hours(7 * 24),
            use_order: UseOrder::BreaksTies,
            grace: Millis::minutes(5),
            grace_cap: Millis::minutes(20),
            approval_deadline: Millis::minutes(10),
            claim_again_after: Millis::minutes(60),
            minimum_run: Millis::minutes(10),
            preemption_budget: 3,
            policy_age: Millis::minutes(60),
            owner_reclaim: true,
            fair_reclaim: true,
            within_team: WithinTeam::Never,
            person_limits: Limits::default(),
        }
    }
}
