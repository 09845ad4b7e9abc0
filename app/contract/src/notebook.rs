//! What a job's page says of a notebook: its idle rule, and where it stands in it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A notebook's idle rule, and where it stands in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NotebookView {
    /// It is suspended after so long without use, in milliseconds.
    pub idle_ms: u64,
    /// And its people are warned so long before, in milliseconds.
    pub warning_ms: u64,
    /// It runs, and nothing of it is used since then; nothing here = it is in use, or does not run.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub idle_since: Option<Timestamp>,
    /// When its people are warned, if it goes on like that; nothing here once they are.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub warned_at: Option<Timestamp>,
    /// When it is suspended, if it goes on like that: a promise once they are warned.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub suspend_at: Option<Timestamp>,
    /// It is suspended.
    pub suspended: Option<SuspensionView>,
    /// True when the actor may suspend it now.
    pub may_suspend: bool,
    /// True when the actor may resume it now.
    pub may_resume: bool,
}

/// A notebook that gave its GPUs back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SuspensionView {
    /// Since when.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub since: Timestamp,
    /// By whom; nothing here = by the idle rule.
    pub by: Option<String>,
    /// In their words.
    pub why: Option<String>,
}
