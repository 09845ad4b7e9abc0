//! Virtual time around the engine: what the fleet would do, what the people would ask, what a trace has recorded.
//!
//! # Bird's eye
//! - [`draw`]: counter-based draws in integers. No generator, no global, no float.
//! - [`model`]: the simulated fleet's behaviour as pure functions of the seed: start-up, saves, run times, failures.
//! - [`driver`]: the event loop in virtual time that feeds the engine; everything below runs in it.
//! - [`demo`]: the demo fleet as data, its people, its workload, and its month of history.
//! - [`trace`]: readers of public traces; the format is recognised, a broken row is reported and the rest goes on.
//! - [`replay`]: a trace as recorded (into usage lines), or with the engine deciding (`--schedule`).
//! - [`audit`]: an independent account of who holds what, kept from the events alone.
//! - [`trial`]: seeded lives of a small fleet under faults, audited at every event; `cargo xtask sim` runs many.
//!
//! # Invariants
//! - Equal seeds and equal inputs give equal events, whoever asks and however often.
//! - Due items are taken in order of (time, sequence of planning); nothing depends on a hash map's order.
//! - Nothing here decides who starts: that is the engine's alone.
//! - Rounding happens when a number is printed, never before.
//!
//! # Deliberately absent
//! The clock (a caller that wants wall time passes a stopwatch in), files (readers take text), threads, and reference
//! policies to compare with.

#![forbid(unsafe_code)]

pub mod audit;
pub mod demo;
pub mod draw;
pub mod driver;
pub mod model;
pub mod replay;
pub mod trace;
pub mod trial;
