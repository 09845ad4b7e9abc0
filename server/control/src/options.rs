//! How the control plane is opened.

use crate::Clock;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// What it runs for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The demo: a simulated fleet with a generated month behind it, and a clock of its own.
    Demo {
        /// Seed of everything drawn. A folder keeps the seed that it was made with.
        seed: u64,
        /// How fast its clock runs: 1 to 10,000.
        speed: u32,
        /// Forget the folder's earlier demo.
        fresh: bool,
    },
    /// Real time, over whatever the data folder holds. The fleet begins empty; until there are other executors, gangs
    /// run on the simulated one.
    Serve,
}

/// How to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Data folder; made when absent.
    pub data: PathBuf,
    /// What it runs for.
    pub mode: Mode,
}

/// How far a first start has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Days of history made.
    pub day: u32,
    /// Of so many.
    pub days: u32,
    /// Entries of the journal so far.
    pub events: u64,
}

/// Who is told how far a first start has come.
pub type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;

/// Work that comes by itself in the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// The forty teams ask for work, as the seed says.
    Seeded,
    /// Only what comes through the doors.
    None,
}

/// What tests and measurements change; the defaults are the product's.
#[derive(Clone)]
pub struct Tuning {
    /// Days of history that a fresh demo begins with.
    pub history_days: u32,
    /// What comes by itself after the history.
    pub demand: Demand,
    /// A clock other than the mode's own.
    pub clock: Option<Clock>,
    /// Told after each day of history.
    pub progress: OnProgress,
    /// How large the engine may make the database, in its pages (what is there already stays): a disk that fills up.
    pub pages_max: Option<u32>,
}

impl Default for Tuning {
    fn default() -> Self {
        let log = |progress: Progress| {
            tracing::info!(
                day = progress.day,
                of = progress.days,
                events = progress.events,
                "making the demo's history"
            );
        };
        Self {
            history_days: 30,
            demand: Demand::Seeded,
            clock: None,
            progress: Arc::new(log),
            pages_max: None,
        }
    }
}

impl fmt::Debug for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tuning")
            .field("history_days", &self.history_days)
            .field("demand", &self.demand)
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}
