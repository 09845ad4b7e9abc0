//! What a command does.
use crate::{Command, Event, Millis, Refusal, State};
/// The events that a command leads to, or why it changes nothing.
pub fn decide(_state: &State, _command: &Command, _now: Millis) -> Result<Vec<Event>, Refusal> {
    unimplemented!()
}
/// When [`Command::Tick`] next has something to do: the next limit, time-out, back-off or hour.
pub fn next_due(_state: &State) -> Option<Millis> {
    unimplemented!()
}
