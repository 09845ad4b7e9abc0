//! How services refuse: one variant per way, each with the way out.

use contract::FieldError;
use thiserror::Error;

/// Why a service did nothing.
#[derive(Debug, Error)]
pub enum ServiceError {
    /// It is not there, or not yours to see.
    #[error("there is no {0}")]
    NotFound(String),
    /// Yours to see, not yours to do.
    #[error("{0}")]
    Forbidden(String),
    /// Fields that are wrong.
    #[error("the request has fields that are wrong")]
    Invalid(Vec<FieldError>),
    /// The engine refuses: the state does not allow it.
    #[error("{0}")]
    Conflict(String),
    /// The same idempotency key came with another request.
    #[error("this idempotency key was used for another request: use a new one")]
    KeyReused,
    /// The mailbox is full.
    #[error("too many requests are waiting: try again in a moment")]
    Busy,
    /// Nobody is signed in, or the token is not valid (any more).
    #[error("sign in first")]
    Unauthenticated,
    /// Something broke here; the cause is in the log.
    #[error("something broke here; the cause is in the log")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Why the control plane does not start.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The data folder cannot be used.
    #[error("the data folder {path} cannot be used: {problem}. Choose another one with --data DIR")]
    DataFolder {
        /// The folder.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The journal on disk does not fold.
    #[error("the journal in {path} is damaged at entry {seq}: {problem}")]
    Journal {
        /// The folder.
        path: String,
        /// The entry.
        seq: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// The store refuses.
    #[error("the store cannot be opened")]
    Store(#[source] Box<dyn std::error::Error + Send + Sync>),
}
