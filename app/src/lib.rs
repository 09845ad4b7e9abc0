//! The portal: pages rendered on the server, islands on both sides.

#[cfg(feature = "ssr")]
mod context;
#[cfg(feature = "ssr")]
mod shell;

#[cfg(feature = "ssr")]
pub use context::{AssetPaths, PageContext, PageProblem, PageStatus, SubmitState, page_context};
#[cfg(feature = "ssr")]
pub use shell::{App, shell};
