//! Executors: what brings gangs up on machines and tells how they fare.
//!
//! An executor never decides. It is told what the engine has put on record, and what it sees comes back as commands.
//! Its fencing token is (job, attempt): a word about an older attempt is refused by the engine, and binding the same
//! attempt twice is binding it once.

mod simulated;

pub(crate) use simulated::Simulated;

use scheduler::{Command, Event, Job, Millis, State};

/// Brings gangs up, signals them, stops them, watches them.
pub trait Executor: Send {
    /// Brings up every pod of an admitted gang, or none. Idempotent by (job, attempt).
    fn bind(&mut self, gang: &Job);
    /// Asks a gang to save now.
    fn save(&mut self, gang: &Job);
    /// Stops a gang; its exit is reported once every pod is gone.
    fn stop(&mut self, gang: &Job);
    /// Something else went on record: a report that was taken, an end, a node's health.
    fn recorded(&mut self, event: &Event, state: &State);
    /// What it was told, and what it has reported, since this state is undone: none of it was put on record. It goes on
    /// from there.
    fn go_back(&mut self, state: &State);
    /// When there is something to report.
    fn due(&self) -> Option<Millis>;
    /// What there is to report at `now`: one command, until there is none.
    fn watch(&mut self, now: Millis, state: &State) -> Option<Command>;
}
