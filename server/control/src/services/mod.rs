//! The services. Every door calls these and nothing below them.

mod bills;
mod everyone;
mod holds;
mod identity;
mod jobs;
mod metrics;
mod reclaims;
mod settings;

pub(crate) use identity::mint;

use crate::ServiceError;

pub(crate) type Answer<T> = Result<T, ServiceError>;

/// Something changed: tells open screens to look again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The journal's last sequence number.
    pub seq: u64,
}

/// It is not there, or not yours to see.
pub(crate) fn no_job(job: u64) -> ServiceError {
    ServiceError::NotFound(format!("job {job}"))
}

/// It is not there, or not yours to see.
pub(crate) fn no_reclaim(claim: u64) -> ServiceError {
    ServiceError::NotFound(format!("reclaim {claim}"))
}

/// It is not there, or not yours to see.
pub(crate) fn no_team(team: &str) -> ServiceError {
    ServiceError::NotFound(format!("team `{team}`"))
}

/// One field is wrong.
pub(crate) fn invalid(field: &str, message: impl Into<String>) -> ServiceError {
    ServiceError::Invalid(vec![contract::FieldError::new(field, message)])
}
