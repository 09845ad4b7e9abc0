//! What is published: the state that readers see, advanced by the same events after they are durable.

use crate::store::Entry;
use scheduler::{Fact, JobId, Meter, State, Waiting};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// The published state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Live {
    /// Everything that is. Whoever looks for longer than a view takes keeps it, and not the lock: it is copied then before it
    /// is changed.
    pub(crate) state: Arc<State>,
    /// As much of the state as words need: levels and nodes. Kept apart, since it hardly ever changes.
    pub(crate) names: Arc<State>,
    /// Open usage.
    pub(crate) meter: Meter,
    /// Why jobs wait.
    pub(crate) waiting: Arc<BTreeMap<JobId, Waiting>>,
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
    pub(crate) fn advance(
        &self,
        entries: &[Entry],
        waiting: Option<Arc<BTreeMap<JobId, Waiting>>>,
    ) {
        let mut live = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let live = &mut *live;
        if !entries.is_empty() {
            let state = Arc::make_mut(&mut live.state);
            for entry in entries {
                scheduler::apply(state, &entry.event);
                // The closed lines are in the store; only what is still open is wanted here.
                live.meter.observe(state, &entry.event);
                live.seq = entry.seq;
            }
        }
        if entries.iter().any(|entry| renames(&entry.event.fact)) {
            live.names = names_of(&live.state);
        }
        if let Some(waiting) = waiting {
            live.waiting = waiting;
        }
    }
}

/// Whether a fact changes what nodes and levels are called.
fn renames(fact: &Fact) -> bool {
    matches!(fact, Fact::TopologySet { .. } | Fact::NodeSet { .. })
}

/// As much of a state as words need.
fn names_of(state: &State) -> Arc<State> {
    Arc::new(State {
        topology: state.topology.clone(),
        nodes: state.nodes.clone(),
        ..State::default()
    })
}

impl Live {
    /// Of a state that was folded, before its first cycle.
    pub(crate) fn of(state: State, meter: Meter, seq: u64) -> Self {
        Self {
            names: names_of(&state),
            state: Arc::new(state),
            meter,
            waiting: Arc::default(),
            seq,
        }
    }
}
