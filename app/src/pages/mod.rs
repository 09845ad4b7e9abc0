//! The pages, a file each: each asks the services and shows what they say.

mod bill;
mod bills;
mod holds;
mod job;
mod job_acts;
mod job_notebook;
mod job_parts;
mod limits;
mod map;
mod overview;
mod overview_parts;
mod policies;
mod problem;
mod queue;
mod quotas;
mod reclaim;
mod reclaim_parts;
mod reclaims;
mod sign_in;
mod submit;
mod tokens;

pub use bill::bill;
pub use bills::bills;
pub use holds::holds;
pub use job::job;
pub use limits::limits;
pub use map::map;
pub use overview::overview;
pub use policies::policies;
pub use problem::problem;
pub use queue::{first_filter, queue};
pub use quotas::quotas;
pub use reclaim::reclaim;
pub use reclaims::reclaims;
pub use sign_in::sign_in;
pub use submit::submit;
pub use tokens::tokens;

use control::ServiceError;
use leptos::prelude::AnyView;

/// A page, or why there is none.
type Page = Result<AnyView, ServiceError>;
