//! How the control plane is opened.

use std::path::PathBuf;

/// What it runs for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The demo: a simulated fleet with a generated month behind it, and a clock of its own.
    Demo {
        /// Seed of everything drawn.
        seed: u64,
        /// How fast its clock runs: 1 to 10,000.
        speed: u32,
        /// Forget the folder's earlier demo.
        fresh: bool,
    },
    /// Real time, over whatever the data folder holds.
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
