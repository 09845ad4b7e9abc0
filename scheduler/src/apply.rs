//! The fold.
use crate::{Event, State};
/// Takes in what happened. It cannot fail: it has happened.
pub fn apply(_state: &mut State, _event: &Event) {}
