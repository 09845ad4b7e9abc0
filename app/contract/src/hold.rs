//! Holds as every door shows them: what is set aside, by whom, why, since when, and whom that keeps waiting.

use crate::Gpus;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What becomes of those that run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum HoldKind {
    /// They go on; nothing new starts.
    #[default]
    Hold,
    /// They leave, too, each with its next durable save.
    Drain,
}

impl HoldKind {
    /// As written in JSON and in forms.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Drain => "drain",
        }
    }

    /// What was done, in a word: `held`, `drained`.
    pub fn done(self) -> &'static str {
        match self {
            Self::Hold => "held",
            Self::Drain => "drained",
        }
    }
}

impl std::str::FromStr for HoldKind {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "hold" => Ok(Self::Hold),
            "drain" => Ok(Self::Drain),
            other => Err(format!("`{other}` is no way to hold: write hold, or drain")),
        }
    }
}

/// Setting something aside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SetHold {
    /// The kind of thing: `job`, `team`, `cohort`, `node`, or a level above the node, such as `rack` and `block`.
    pub on: String,
    /// Its name or number.
    pub what: String,
    /// What becomes of those that run.
    #[serde(default)]
    pub mode: HoldKind,
    /// In the caller's words: told to everybody who waits for it. Must be said, but for a job.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(max_length = 500))]
    pub why: Option<String>,
}

/// Something that is set aside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HoldView {
    /// The kind of thing: `job`, `team`, `cohort`, `node`, `rack`, ...
    pub on: String,
    /// Its name or number.
    pub what: String,
    /// Held or drained.
    pub mode: HoldKind,
    /// Who did it.
    pub by: String,
    /// In their words.
    pub why: Option<String>,
    /// Since when.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub since: Timestamp,
    /// Jobs that still run there and that the reader may see, by number.
    pub running: Vec<u64>,
    /// All jobs that still run there.
    pub running_jobs: u64,
    /// GPUs of these.
    pub running_gpus: Gpus,
    /// Jobs that it keeps waiting: those that are under it, and those that it keeps room from.
    pub waiting_jobs: u64,
    /// True when the reader may release it.
    pub may_release: bool,
    /// Why not, when not.
    pub release_refused: Option<String>,
}

/// What is set aside, and what the reader may set aside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HoldList {
    /// When this was made.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub now: Timestamp,
    /// Cohorts, teams and machines first, then jobs.
    pub holds: Vec<HoldView>,
    /// Kinds of things that the reader may set aside besides single jobs.
    pub kinds: Vec<String>,
    /// Names of such things, nodes left out.
    pub names: Vec<String>,
}
