//! The control plane: application services over one engine task, one journal and one store.

#![forbid(unsafe_code)]

mod actor;
mod error;
mod options;
mod service;

pub use actor::{Actor, Admin, Everyone, JobOwner, Manager, TeamMember, Visible};
pub use error::{OpenError, ServiceError};
pub use options::{Mode, Options};
pub use service::{Change, Control};
