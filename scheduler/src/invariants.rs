//! What must always be true; checked after every event in tests and simulations.
use crate::State;
/// The first broken invariant, in words; `Ok` when all hold.
pub fn check(_state: &State) -> Result<(), String> {
    Ok(())
}
