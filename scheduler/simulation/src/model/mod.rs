//! How the simulated fleet behaves: start-up, saves, run times, failures, repairs.
//!
//! Every answer is a pure function of the seed and of what it is about, so an executor that asks needs no memory of
//! its own: after a restart it reads the engine's state and gets the same future. [`next_report`] says what an
//! executor reports next about one job, and when; [`next_failure`] and [`repair`] are the fates of one node.

mod desk;
mod faults;
mod life;

pub use faults::{CAUSES, Cause, Mend, NODE_MTBF, Turn, next_failure, next_turn, repair};
pub(crate) use life::median_run_time;
pub use life::{
    bind_time, checkpoint_bytes, exit_time, launch_fails, next_report, own_failure, run_time,
    save_time, start_up,
};
