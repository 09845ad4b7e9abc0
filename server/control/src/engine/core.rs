//! The engine's working state: takes commands and due items, folds what follows, gathers what is to be written.
//!
//! A moment is one time: the engine's own clock first, then nodes and gangs, then arrivals, then one cycle if anything
//! happened that a cycle could answer, until nothing more is due at it. History, live demo and service run this.

use super::recorder::Recorder;
use crate::executor::Executor;
use crate::store::Transaction;
use scheduler::{Command, Event, Fact, JobId, Meter, Millis, Refusal, State, Waiting};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where new work comes from, other than from people at the doors.
pub(crate) trait Arrivals: Send {
    /// When the next one is due.
    fn due(&mut self) -> Option<Millis>;
    /// The next one that is wanted and due at `now`.
    fn take(&mut self, now: Millis, state: &State) -> Option<Command>;
    /// How far it has come, to go on from there after a restart.
    fn progress(&self) -> String;
}

/// The fact under which the arrivals' progress is kept.
pub(crate) const ARRIVALS: &str = "arrivals";

/// The working state.
pub(crate) struct Core {
    /// Everything that is.
    pub(crate) state: State,
    /// Open usage.
    pub(crate) meter: Meter,
    /// Why jobs wait, after the last cycle.
    pub(crate) waiting: Arc<BTreeMap<JobId, Waiting>>,
    /// Turns what happens into rows.
    pub(crate) recorder: Recorder,
    executor: Box<dyn Executor>,
    arrivals: Option<Box<dyn Arrivals>>,
    /// The last time at which the clock's command did nothing.
    idle_tick: Option<Millis>,
    wants_cycle: bool,
    /// The arrivals' progress as last written.
    progress: Option<String>,
}

/// What one batch yields.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// For the store.
    pub(crate) write: Transaction,
    /// True when a cycle ran: reasons may be new.
    pub(crate) planned: bool,
    /// Cycles that ran.
    pub(crate) cycles: u32,
}

impl Batch {
    /// True when there is nothing to write.
    pub(crate) fn is_empty(&self) -> bool {
        self.write.entries.is_empty() && self.write.keys.is_empty()
    }
}

impl Core {
    /// A core over a folded state.
    pub(crate) fn new(
        folded: Folded,
        executor: Box<dyn Executor>,
        arrivals: Option<Box<dyn Arrivals>>,
    ) -> Self {
        let Folded {
            state,
            meter,
            recorder,
            snapshot: _,
        } = folded;
        // A cycle tells the reasons of those that wait already.
        let wants_cycle = state.events > 0;
        Self {
            state,
            meter,
            waiting: Arc::default(),
            recorder,
            executor,
            arrivals,
            idle_tick: None,
            wants_cycle,
            progress: None,
        }
    }

    /// When something is due by itself.
    pub(crate) fn due(&mut self) -> Option<Millis> {
        if self.wants_cycle {
            return Some(self.state.at);
        }
        let arrivals = self.arrivals.as_mut().and_then(|arrivals| arrivals.due());
        [self.own_due(), self.executor.due(), arrivals]
            .into_iter()
            .flatten()
            .min()
            .map(|due| due.max(self.state.at))
    }

    /// When the engine's own clock has something to do.
    fn own_due(&self) -> Option<Millis> {
        scheduler::next_due(&self.state).filter(|due| self.idle_tick.is_none_or(|idle| *due > idle))
    }

    /// Takes what is due before or at `until`, each at its own time, until the batch holds `most` entries. True when
    /// nothing is left.
    pub(crate) fn advance(&mut self, until: Millis, most: usize, batch: &mut Batch) -> bool {
        while let Some(now) = self.due().filter(|due| *due <= until) {
            if batch.write.entries.len() >= most {
                return false;
            }
            self.moment(now, batch);
        }
        true
    }

    /// Does a command that came through a door. [`Self::settle`] follows when all of a batch are done.
    pub(crate) fn take(
        &mut self,
        command: &Command,
        now: Millis,
        batch: &mut Batch,
    ) -> Result<(), Refusal> {
        let events = scheduler::decide(&self.state, command, now)?;
        for event in events {
            self.fold(event, batch);
        }
        Ok(())
    }

    /// Runs the moment of commands that came through a door to its end.
    pub(crate) fn settle(&mut self, now: Millis, batch: &mut Batch) {
        self.moment(now.max(self.state.at), batch);
    }

    fn moment(&mut self, now: Millis, batch: &mut Batch) {
        if self.own_due().is_some_and(|due| due <= now) {
            let before = batch.write.entries.len();
            self.try_take(&Command::Tick, now, batch);
            if batch.write.entries.len() == before {
                self.idle_tick = Some(now);
                self.wants_cycle = true;
            }
        }
        loop {
            while let Some(command) = self.executor.watch(now, &self.state) {
                self.try_take(&command, now, batch);
            }
            while let Some(command) = self
                .arrivals
                .as_mut()
                .and_then(|arrivals| arrivals.take(now, &self.state))
            {
                self.try_take(&command, now, batch);
            }
            if !std::mem::take(&mut self.wants_cycle) {
                break;
            }
            self.cycle(now, batch);
        }
    }

    fn try_take(&mut self, command: &Command, now: Millis, batch: &mut Batch) {
        if let Err(refusal) = self.take(command, now, batch) {
            tracing::warn!(?command, %refusal, "the engine refuses what its own surroundings say");
        }
    }

    fn cycle(&mut self, now: Millis, batch: &mut Batch) {
        let plan = scheduler::plan(&self.state, now);
        for event in plan.events {
            self.fold(event, batch);
        }
        let waiting = plan.waiting.into_iter();
        self.waiting = Arc::new(waiting.map(|waiting| (waiting.job, waiting)).collect());
        batch.planned = true;
        batch.cycles += 1;
    }

    fn fold(&mut self, event: Event, batch: &mut Batch) {
        let before = match &event.fact {
            Fact::JobEnded { job, .. } => self.state.jobs.get(job).cloned(),
            _ => None,
        };
        scheduler::apply(&mut self.state, &event);
        let lines = self.meter.observe(&self.state, &event);
        self.wants_cycle |= calls_for_a_cycle(&event.fact);
        self.tell_executor(&event);
        self.recorder.note(
            &self.state,
            &event,
            lines,
            before.as_ref(),
            &mut batch.write,
        );
    }

    fn tell_executor(&mut self, event: &Event) {
        let gang = event.fact.job().and_then(|job| self.state.jobs.get(&job));
        match (&event.fact, gang) {
            (Fact::JobAdmitted { .. }, Some(gang)) => self.executor.bind(gang),
            (Fact::SaveAsked { .. }, Some(gang)) => self.executor.save(gang),
            (Fact::StopRequested { .. }, Some(gang)) => self.executor.stop(gang),
            _ => self.executor.recorded(event, &self.state),
        }
    }

    /// Has the arrivals' progress written with the batch, when it is new.
    pub(crate) fn note_progress(&mut self, batch: &mut Batch) {
        let Some(progress) = self.arrivals.as_ref().map(|arrivals| arrivals.progress()) else {
            return;
        };
        if self.progress.as_ref() != Some(&progress) {
            batch.write.facts.push((ARRIVALS, progress.clone()));
            self.progress = Some(progress);
        }
    }
}

/// A fold of the journal up to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Folded {
    /// The state.
    pub(crate) state: State,
    /// Its meter.
    pub(crate) meter: Meter,
    /// Where the journal and the ledger end.
    pub(crate) recorder: Recorder,
    /// The entry of the snapshot that it began with; 0 without one.
    pub(crate) snapshot: u64,
}

/// Whether an event can change what a cycle answers. Reports on a gang's way up, and hour marks, cannot.
fn calls_for_a_cycle(fact: &Fact) -> bool {
    !matches!(
        fact,
        Fact::JobAdmitted { .. }
            | Fact::GangBound { .. }
            | Fact::GangStarted { .. }
            | Fact::CheckpointStarted { .. }
            | Fact::CheckpointSaved { .. }
            | Fact::SaveAsked { .. }
            | Fact::HourPassed
    )
}
