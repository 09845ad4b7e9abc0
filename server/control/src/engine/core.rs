//! The engine's working state: takes commands and due items, folds what follows, gathers what is to be written.
//!
//! A moment is one time: the engine's own clock first, then nodes and gangs, then arrivals, then one cycle if anything
//! happened that a cycle could answer, until nothing more is due at it. The cycle itself is the caller's to run, on a
//! state that stays as it is ([`Core::begin_cycle`], [`Core::planned`]), so that commands can be taken meanwhile.

use super::live::Live;
use super::recorder::Recorder;
use crate::executor::Executor;
use crate::store::Transaction;
use scheduler::{Command, Event, Fact, JobId, Meter, Millis, Plan, Refusal, State, Waiting};
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
    /// Goes on from an earlier progress: what came since was not put on record.
    fn go_back(&mut self, progress: &str);
}

/// The fact under which the arrivals' progress is kept.
pub(crate) const ARRIVALS: &str = "arrivals";

/// The working state.
pub(crate) struct Core {
    /// Everything that is. Copied before it is changed, if a cycle still reads it.
    pub(crate) state: Arc<State>,
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
    /// Something came through a door that a cycle could answer.
    asked: bool,
    /// What came through the doors since the cycle began that is being planned.
    since: Option<Vec<Fact>>,
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
}

/// How far [`Core::advance`] came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// Nothing is left that is due.
    Nothing,
    /// The batch is full, and more is due.
    More,
    /// A cycle has to run at this time first.
    Cycle(Millis),
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
            lines: _,
            snapshot: _,
        } = folded;
        // A cycle tells the reasons of those that wait already.
        let wants_cycle = state.events > 0;
        Self {
            state: Arc::new(state),
            meter,
            waiting: Arc::default(),
            recorder,
            executor,
            arrivals,
            idle_tick: None,
            wants_cycle,
            asked: false,
            since: None,
            progress: None,
        }
    }

    /// Goes on from what is on record, after a batch that was not written: the live state, the numbers of the last entry
    /// and line, and the arrivals' progress.
    pub(crate) fn go_back(&mut self, live: &Live, recorder: Recorder, progress: Option<String>) {
        self.state = Arc::clone(&live.state);
        self.meter = live.meter.clone();
        self.waiting = Arc::clone(&live.waiting);
        self.recorder = recorder;
        self.executor.go_back(&self.state);
        if let (Some(arrivals), Some(progress)) = (self.arrivals.as_mut(), &progress) {
            arrivals.go_back(progress);
        }
        self.progress = progress;
        self.idle_tick = None;
        self.wants_cycle = self.state.events > 0;
        self.asked = false;
        self.since = None;
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

    /// Takes what is due before or at `until`, each at its own time, until the batch holds `most` entries or a cycle has to
    /// run first.
    pub(crate) fn advance(&mut self, until: Millis, most: usize, batch: &mut Batch) -> Ahead {
        while let Some(now) = self.due().filter(|due| *due <= until) {
            if batch.write.entries.len() >= most {
                return Ahead::More;
            }
            if self.moment(now, batch) {
                return Ahead::Cycle(now);
            }
        }
        Ahead::Nothing
    }

    /// Does a command that came through a door. [`Self::settle`] follows when all of a batch are done.
    pub(crate) fn take(
        &mut self,
        command: &Command,
        now: Millis,
        batch: &mut Batch,
    ) -> Result<(), Refusal> {
        // Time may not go on before what was due is answered; a door's wish for a cycle waits for its own turn.
        let due = self.wants_cycle;
        let before = batch.write.entries.len();
        let done = self.decide(command, now, batch);
        self.asked |= std::mem::replace(&mut self.wants_cycle, due) && !due;
        if let Some(since) = &mut self.since {
            let new = &batch.write.entries[before..];
            since.extend(new.iter().map(|entry| entry.event.fact.clone()));
        }
        done
    }

    /// True when something came through a door since the last cycle began that a cycle could answer. The next
    /// [`Self::advance`] has it run at the state's time.
    pub(crate) fn settle(&mut self) -> bool {
        let asked = std::mem::take(&mut self.asked);
        self.wants_cycle |= asked;
        asked
    }

    /// True when [`Self::settle`] would have something to do.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked
    }

    /// All that is due at one time but its cycle. True when a cycle has to follow.
    fn moment(&mut self, now: Millis, batch: &mut Batch) -> bool {
        if self.own_due().is_some_and(|due| due <= now) {
            let before = batch.write.entries.len();
            self.try_take(&Command::Tick, now, batch);
            if batch.write.entries.len() == before {
                self.idle_tick = Some(now);
                self.wants_cycle = true;
            }
        }
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
        std::mem::take(&mut self.wants_cycle)
    }

    fn decide(&mut self, command: &Command, now: Millis, batch: &mut Batch) -> Result<(), Refusal> {
        let events = scheduler::decide(&self.state, command, now)?;
        for event in events {
            self.fold(event, batch);
        }
        Ok(())
    }

    fn try_take(&mut self, command: &Command, now: Millis, batch: &mut Batch) {
        if let Err(refusal) = self.decide(command, now, batch) {
            tracing::warn!(?command, %refusal, "the engine refuses what its own surroundings say");
        }
    }

    /// A cycle begins, on the state as it is now: what comes through the doors until [`Self::planned`] is not in it.
    pub(crate) fn begin_cycle(&mut self) -> Arc<State> {
        self.asked = false;
        self.since = Some(Vec::new());
        Arc::clone(&self.state)
    }

    /// Carries out a plan that was made on `base`. False when it does not stand any more after what has happened
    /// meanwhile: then nothing is done.
    pub(crate) fn planned(&mut self, plan: Plan, base: Arc<State>, batch: &mut Batch) -> bool {
        let since = self.since.take().unwrap_or_default();
        if !plan.stands(&base, &since) {
            return false;
        }
        // Nobody reads it any more, so that nothing is copied.
        drop(base);
        for event in plan.events {
            self.fold(event, batch);
        }
        let still =
            |waiting: &Waiting| since.is_empty() || self.state.jobs.contains_key(&waiting.job);
        let waiting = plan.waiting.into_iter().filter(still);
        self.waiting = Arc::new(waiting.map(|waiting| (waiting.job, waiting)).collect());
        batch.planned = true;
        true
    }

    fn fold(&mut self, event: Event, batch: &mut Batch) {
        let before = match &event.fact {
            Fact::JobEnded { job, .. } => self.state.jobs.get(job).cloned(),
            _ => None,
        };
        scheduler::apply(Arc::make_mut(&mut self.state), &event);
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
            (Fact::JobAdmitted { .. } | Fact::GangReplaced { .. }, Some(gang)) => {
                self.executor.bind(gang);
            }
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
    /// Usage lines that were closed up to here, where that is known.
    pub(crate) lines: Option<u64>,
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
            | Fact::StepsStopped { .. }
            | Fact::StepsResumed { .. }
            | Fact::ActivityStopped { .. }
            | Fact::ActivityResumed { .. }
            | Fact::IdleWarned { .. }
            | Fact::Interrupted { .. }
            | Fact::CheckpointStarted { .. }
            | Fact::CheckpointSaved { .. }
            | Fact::SaveAsked { .. }
            | Fact::HourPassed
    )
}
