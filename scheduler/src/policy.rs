//! The numbers that an admin may change, with their defaults, in one table.

use crate::Millis;
use serde::{Deserialize, Serialize};

/// Every default of the engine. Times are spans.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// A gang that is not up by then is released (10 min; Kueue's waitForPodsReady: 5 min).
    pub launch_timeout: Millis,
    /// First wait after a failed launch; doubles with each failure, up to an hour (1 min; Kueue's requeuing back-off: 1 min).
    pub launch_back_off: Millis,
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
            reserve_after: Millis::minutes(30),
            restart_budget: 5,
            reservations: 8,
            half_life: Millis::hours(7 * 24),
            use_order: UseOrder::BreaksTies,
        }
    }
}
