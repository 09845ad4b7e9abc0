//! What is published: the state that readers see, advanced by the same events after they are durable.

use crate::store::Entry;
use scheduler::{JobId, Meter, State, Waiting};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// The published state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Live {
    /// Everything that is.
    pub(crate) state: State,
    /// Open usage.
    pub(crate) meter: Meter,
    /// Why jobs wait.
    pub(crate) waiting: BTreeMap<JobId, Waiting>,
    /// The last entry in it.
    pub(crate) seq: u64,
}

/// Shared among readers; locked for as long as a view takes to make.
#[derive(Clone, Debug)]
pub(crate) struct Published(Arc<RwLock<Live>>);

impl Published {
    /// Publishes a first state.
    pub(crate) fn new(live: Live) -> Self {
        Self(Arc::new(RwLock::new(live)))
    }

    /// For reading. Not to be held across a wait.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Live> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what has become durable, and the reasons of the last cycle, if one ran.
    pub(crate) fn advance(&self, entries: &[Entry], waiting: Option<BTreeMap<JobId, Waiting>>) {
        let mut live = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let live = &mut *live;
        for entry in entries {
            scheduler::apply(&mut live.state, &entry.event);
            // The closed lines are in the store; only what is still open is wanted here.
            live.meter.observe(&live.state, &entry.event);
            live.seq = entry.seq;
        }
        if let Some(waiting) = waiting {
            live.waiting = waiting;
        }
    }
}
