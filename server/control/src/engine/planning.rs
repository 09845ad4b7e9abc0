//! A cycle on another thread: it takes tens of milliseconds on a large fleet, and the writer has better to do.

use crate::clock::Stopwatch;
use crate::gauges::Gauges;
use scheduler::{Millis, Plan, State};
use std::sync::Arc;
use tokio::task::JoinHandle;

/// A cycle that is being planned.
pub(crate) struct Planning(JoinHandle<(Plan, u64)>);

impl Planning {
    /// Begins it.
    pub(crate) fn begin(state: Arc<State>, now: Millis) -> Self {
        Self(tokio::task::spawn_blocking(move || {
            let watch = Stopwatch::start();
            let plan = scheduler::plan(&state, now);
            (plan, watch.micros())
        }))
    }

    /// Waits for it. May be begun again when it was given up.
    pub(crate) async fn end(&mut self, gauges: &Gauges) -> Plan {
        match (&mut self.0).await {
            Ok((plan, micros)) => {
                gauges.note_cycle(micros);
                plan
            }
            // Nobody cancels it: it has panicked, and the engine does with it.
            Err(lost) => std::panic::resume_unwind(lost.into_panic()),
        }
    }
}
