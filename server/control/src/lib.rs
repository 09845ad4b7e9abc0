//! The control plane: application services over one engine task, one journal and one store.

#![forbid(unsafe_code)]

mod actor;
mod bill;
mod clock;
mod control;
mod data;
mod demo;
mod engine;
mod error;
pub mod executor;
mod gauges;
pub mod offline;
mod options;
mod period;
mod reading;
mod services;
mod store;
mod views;
mod words;

pub use actor::{
    Actor, Admin, BorrowersLead, Everyone, Holder, JobOwner, ReclaimAdmin, SeesReclaim, TeamMember,
    Visible,
};
pub use clock::Clock;
pub use control::Control;
pub use error::{OpenError, ServiceError};
pub use options::{Demand, Mode, OnProgress, Options, Progress, Tuning};
pub use services::Change;
