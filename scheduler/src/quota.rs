//! Quota algebra, per flavour (Kueue's, stated whole).

use crate::{FlavourId, JobId, MilliGpu, State, TeamId};
use serde::{Deserialize, Serialize};

/// The figures of one team and flavour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QuotaFigures {
    /// Its own.
    pub nominal: MilliGpu,
    /// Charged now.
    pub charged: MilliGpu,
    /// Of these, inside nominal.
    pub own: MilliGpu,
    /// Of these, beyond it.
    pub borrowed: MilliGpu,
    /// Of its nominal, used by others of its cohort now.
    pub lent: MilliGpu,
    /// What it may still be charged.
    pub available: MilliGpu,
    /// The most it may borrow; `None` = no limit.
    pub borrowing_limit: Option<MilliGpu>,
    /// The most it lends; `None` = all.
    pub lending_limit: Option<MilliGpu>,
    /// The most it could ever be charged.
    pub maximum: MilliGpu,
}

/// The figures of a team in a flavour; zeros where it has no quota.
pub fn quota_figures(_state: &State, _team: &TeamId, _flavour: &FlavourId) -> QuotaFigures {
    unimplemented!()
}

/// How the team's charge in a flavour is laid on its jobs: `(job, own, borrowed)`, oldest admission first.
pub fn entitlements(_state: &State, _team: &TeamId, _flavour: &FlavourId) -> Vec<(JobId, MilliGpu, MilliGpu)> {
    unimplemented!()
}
