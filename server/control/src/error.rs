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
    #[error("{}", by_field(.0))]
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
    /// The store takes nothing now, and that can pass: what stands in the way, and what to do about it.
    #[error(
        "nothing can be stored now: {0}. Ask again in a moment; with the same idempotency key it is the same request"
    )]
    Standing(String),
    /// Nobody is signed in, or the token is not valid (any more).
    #[error("sign in first")]
    Unauthenticated,
    /// Something broke here; the cause is in the log.
    #[error("something broke here; the cause is in the log")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// `name: too long; days: 1 to 365`.
fn by_field(fields: &[FieldError]) -> String {
    let each: Vec<_> = fields
        .iter()
        .map(|wrong| format!("{}: {}", wrong.field, wrong.message))
        .collect();
    each.join("; ")
}

/// How much of a journal stands before an entry that is wrong.
pub(crate) fn kept_before(seq: u64) -> String {
    match seq {
        0 | 1 => "No entry stands before it".to_owned(),
        2 => "Entry 1 before it stands".to_owned(),
        _ => format!("Entries 1 to {} before it stand", seq - 1),
    }
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
    #[error(
        "the journal in {path} is damaged at entry {seq}: {problem}. {}. Keep a copy of this folder, and restore it from a backup",
        kept_before(*seq)
    )]
    Journal {
        /// The folder.
        path: String,
        /// The entry.
        seq: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// Something stands in the store's way.
    #[error("the store cannot be used: {obstacle}")]
    Blocked {
        /// What, and what to do about it.
        obstacle: &'static str,
        /// The store's word.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The store refuses.
    #[error("the store cannot be opened")]
    Store(#[source] Box<dyn std::error::Error + Send + Sync>),
}
