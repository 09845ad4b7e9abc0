//! The numbers that an admin may change, with their defaults, in one table.

use crate::Millis;
use serde::{Deserialize, Serialize};

/// Every default of the engine. Times are spans.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// A gang that is not up by then is released (10 min; Kueue's waitForPodsReady: 5 min).
    pub launch_timeout: Millis,
    /// First wait after a failed launch; doubles with each failure, up to an hour (1 min; Kueue's requeuing back-off: 1 min).
    pub launch_back_off: Millis,
    /// A job that waited this long for room of the right shape is not passed by others of its flavour any more; one that
    /// waited for its team's own quota, not by its team nor by borrowers (30 min).
    pub reserve_after: Millis,
    /// Failures that a job survives when it says nothing (5).
    pub restart_budget: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            launch_timeout: Millis::minutes(10),
            launch_back_off: Millis::MINUTE,
            reserve_after: Millis::minutes(30),
            restart_budget: 5,
        }
    }
}
