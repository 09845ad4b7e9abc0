//! The cycle: who starts now, and why the others wait.

use crate::{Event, JobId, JobSpec, Millis, Placement, Reason, State};
use serde::{Deserialize, Serialize};

/// A job left waiting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Which.
    pub job: JobId,
    /// Its place in its team's queue, from 1; jobs that can never run have none.
    pub position: Option<u32>,
    /// Why.
    pub reason: Reason,
}

/// What one cycle decided.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Plan {
    /// Admissions, in order.
    pub events: Vec<Event>,
    /// Every job left waiting, in order.
    pub waiting: Vec<Waiting>,
}

/// Decides one cycle.
pub fn plan(_state: &State, _now: Millis) -> Plan {
    Plan::default()
}

/// "Fits now?": where a job with this spec would start if it were the only one waiting, or why it would not.
/// The preview of the form and of `--dry-run`; nothing is changed.
pub fn would_start(_state: &State, _spec: &JobSpec, _now: Millis) -> Result<Placement, Reason> {
    unimplemented!()
}
