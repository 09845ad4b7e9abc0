//! Seeded lives of a small fleet under faults: the engine's proof that it keeps its word.
//!
//! A life is a stream of what people ask, what breaks, and what an unreliable executor says: late, twice, out of place,
//! or again because its word was lost with a process that died. Nodes fall silent, gangs stand still. The process dies around its writes and comes back from
//! what is on disk; the clock jumps. After every event the engine's own invariants and an independent account
//! ([`crate::audit`]) are compared with the state; after every start from disk the state with what it was before.
//!
//! - [`run`]: one life. Equal seeds give equal lives, to the byte: [`Outcome::digest`].
//! - [`Seen`]: which of the engine's rules came up, counted against the code's own list of them.
//!
//! # Deliberately absent
//! Time to save and to start up is the demo's model; nothing here measures speed.

mod aside;
mod disk;
mod failure;
mod notebooks;
mod people;
mod rules;
mod world;

pub use rules::{Rule, Seen};

use crate::audit::Tally;
use crate::draw::Draws;
use std::fmt;

/// One life that kept every invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Its seed.
    pub seed: u64,
    /// Events folded.
    pub events: u64,
    /// Everything that was said, as one number.
    pub digest: u64,
    /// How often the process died and came back.
    pub restarts: u64,
    /// How claims ended.
    pub claims: Tally,
    /// Rules that came up.
    pub seen: Seen,
}

/// A life that did not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its seed: the same again shows the same.
    pub seed: u64,
    /// After so many events.
    pub events: u64,
    /// What was wrong.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, events, what } = self;
        write!(f, "seed {seed}, after {events} events: {what}")
    }
}

/// Lives one life of at least so many events.
///
/// # Errors
/// The first invariant that was broken.
pub fn run(seed: u64, events: u64) -> Result<Outcome, Finding> {
    let mut world = world::World::new(seed);
    match world.live(events) {
        Ok(()) => Ok(world.outcome()),
        Err(what) => Err(Finding {
            seed,
            events: world.events(),
            what,
        }),
    }
}

/// The journal of [`run`]'s life as it is written: one event's JSON per line.
///
/// # Errors
/// As [`run`].
pub fn journal(seed: u64, events: u64) -> Result<Vec<String>, Finding> {
    let mut world = world::World::new(seed);
    match world.live(events) {
        Ok(()) => Ok(world.journal()),
        Err(what) => Err(Finding {
            seed,
            events: world.events(),
            what,
        }),
    }
}

/// Draws in a row.
#[derive(Clone, Debug)]
struct Dice {
    draws: Draws,
    thrown: u64,
}

impl Dice {
    fn new(draws: Draws) -> Self {
        Self { draws, thrown: 0 }
    }
    fn below(&mut self, n: u64) -> u64 {
        self.thrown += 1;
        self.draws.below(self.thrown, n)
    }
    fn happens(&mut self, per_mille: u64) -> bool {
        self.below(1_000) < per_mille
    }
    fn of<T: Clone>(&mut self, all: &[T]) -> Option<T> {
        let index = self.below(all.len() as u64) as usize;
        all.get(index).cloned()
    }
}
