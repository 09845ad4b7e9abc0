//! The event loop in virtual time: due items become commands, commands events, and after each moment the engine plans.
//!
//! The live server does the same with a real clock. Here a moment is one time: every item due then is taken, in order
//! of planning, and one cycle follows if anything happened that a cycle could answer. What the cycle started may plan
//! more for the same moment; the loop goes on until nothing is due at it.

use scheduler::{Command, Event, Fact, Meter, Millis, Plan, Refusal, State, UsageLine, Waiting};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Items by the time at which they are due; of one time, the one planned first comes first.
#[derive(Clone, Debug)]
pub struct Agenda<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    planned: u64,
}

#[derive(Clone, Debug)]
struct Entry<T> {
    at: Millis,
    sequence: u64,
    item: T,
}
impl<T> Entry<T> {
    fn key(&self) -> (Millis, u64) {
        (self.at, self.sequence)
    }
}
impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl<T> Eq for Entry<T> {}
impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            planned: 0,
        }
    }
}

impl<T> Agenda<T> {
    /// Plans an item.
    pub fn push(&mut self, at: Millis, item: T) {
        self.planned += 1;
        self.heap.push(Reverse(Entry {
            at,
            sequence: self.planned,
            item,
        }));
    }

    /// When the next item is due.
    pub fn next_at(&self) -> Option<Millis> {
        self.heap.peek().map(|entry| entry.0.at)
    }

    /// The next item that is due at `now` or before.
    pub fn pop_due(&mut self, now: Millis) -> Option<T> {
        if self.next_at()? > now {
            return None;
        }
        self.heap.pop().map(|entry| entry.0.item)
    }
}

/// What happened at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Batch {
    /// When.
    pub at: Millis,
    /// What, in order.
    pub events: Vec<Event>,
    /// Usage lines that these events closed.
    pub lines: Vec<UsageLine>,
}

/// Who listens.
pub trait Sink {
    /// One event, just folded into the state, and the usage lines that it closed.
    fn event(&mut self, _state: &State, _event: &Event, _lines: &[UsageLine]) {}
    /// Whether it listens to why jobs wait: without, a past is made sooner, and is the same.
    fn wants_reasons(&self) -> bool {
        true
    }
    /// Why jobs are left waiting after a cycle.
    fn waiting(&mut self, _state: &State, _waiting: &[Waiting]) {}
    /// Everything of one moment; never empty.
    fn batch(&mut self, _state: &State, _batch: &Batch) {}
}

/// Nobody.
impl Sink for () {
    fn wants_reasons(&self) -> bool {
        false
    }
}

/// The fold: a state and its meter.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Engine {
    /// Everything that is.
    pub state: State,
    /// Open usage.
    pub meter: Meter,
}

impl Engine {
    /// Does a command; what it led to is added to `batch`.
    pub fn take(
        &mut self,
        command: &Command,
        now: Millis,
        batch: &mut Batch,
        sink: &mut impl Sink,
    ) -> Result<(), Refusal> {
        let events = scheduler::decide(&self.state, command, now)?;
        self.fold(events, batch, sink);
        Ok(())
    }

    /// Plans once; what it decided is added to `batch`. Returns why the others wait, if the sink wants it.
    pub fn cycle(&mut self, now: Millis, batch: &mut Batch, sink: &mut impl Sink) -> Vec<Waiting> {
        if !sink.wants_reasons() {
            self.fold(scheduler::plan_events(&self.state, now), batch, sink);
            return Vec::new();
        }
        let Plan { events, waiting } = scheduler::plan(&self.state, now);
        self.fold(events, batch, sink);
        sink.waiting(&self.state, &waiting);
        waiting
    }

    fn fold(&mut self, events: Vec<Event>, batch: &mut Batch, sink: &mut impl Sink) {
        for event in events {
            scheduler::apply(&mut self.state, &event);
            let lines = self.meter.observe(&self.state, &event);
            sink.event(&self.state, &event, &lines);
            batch.lines.extend(lines);
            batch.events.push(event);
        }
    }
}

/// What is around the engine: it turns due items into commands, and events into new items.
pub trait World {
    /// What can be due.
    type Item;

    /// An item is due: plan what comes after it, and say what to ask of the engine.
    fn due(
        &mut self,
        item: Self::Item,
        now: Millis,
        state: &State,
        agenda: &mut Agenda<Self::Item>,
    ) -> Vec<Command>;

    /// An event happened: plan what follows from it.
    fn follow(&mut self, event: &Event, state: &State, agenda: &mut Agenda<Self::Item>);

    /// The engine refused a command of [`Self::due`].
    fn refused(&mut self, command: &Command, refusal: &Refusal);
}

/// An engine, its world, and what is due.
#[derive(Debug)]
pub struct Driver<W: World> {
    /// The engine.
    pub engine: Engine,
    /// What is around it.
    pub world: W,
    /// What is due.
    pub agenda: Agenda<W::Item>,
    /// Why jobs were left waiting after the last cycle.
    pub waiting: Vec<Waiting>,
    /// The last time at which the clock's command did nothing: the engine is not asked again for the same.
    idle_tick: Option<Millis>,
}

impl<W: World> Driver<W> {
    /// A driver around an engine that is set up, with nothing due yet.
    pub fn new(engine: Engine, world: W) -> Self {
        Self {
            engine,
            world,
            agenda: Agenda::default(),
            waiting: Vec::new(),
            idle_tick: None,
        }
    }

    /// Runs until nothing is planned, or until the first moment at or after `end`.
    ///
    /// The engine's own clock (hour marks, limits) runs only as long as the world has something planned.
    pub fn run(&mut self, end: Option<Millis>, sink: &mut impl Sink) {
        while let Some(planned) = self.agenda.next_at() {
            let now = self
                .own_due()
                .map_or(planned, |own| own.min(planned))
                .max(self.engine.state.at);
            if end.is_some_and(|end| now >= end) {
                break;
            }
            self.moment(now, sink);
        }
    }

    /// When the engine's own clock has something to do.
    fn own_due(&self) -> Option<Millis> {
        scheduler::next_due(&self.engine.state)
            .filter(|due| self.idle_tick.is_none_or(|idle| *due > idle))
    }

    /// One moment: the clock, then the items due, then a cycle, and again while the world has more for it.
    fn moment(&mut self, now: Millis, sink: &mut impl Sink) {
        let mut batch = Batch {
            at: now,
            ..Batch::default()
        };
        let mut wants_cycle = self.tick(now, &mut batch, sink);
        let mut followed = 0;
        loop {
            self.follow(&batch, &mut followed);
            while let Some(item) = self.agenda.pop_due(now) {
                for command in self
                    .world
                    .due(item, now, &self.engine.state, &mut self.agenda)
                {
                    if let Err(refusal) = self.engine.take(&command, now, &mut batch, sink) {
                        self.world.refused(&command, &refusal);
                    }
                    wants_cycle |= batch.events[followed..]
                        .iter()
                        .any(|event| calls_for_a_cycle(&event.fact));
                    self.follow(&batch, &mut followed);
                }
            }
            if !std::mem::take(&mut wants_cycle) {
                break;
            }
            self.waiting = self.engine.cycle(now, &mut batch, sink);
        }
        if !batch.events.is_empty() {
            sink.batch(&self.engine.state, &batch);
        }
    }

    /// Lets the engine's clock act; true when a cycle may have something to do.
    fn tick(&mut self, now: Millis, batch: &mut Batch, sink: &mut impl Sink) -> bool {
        if self.own_due().is_none_or(|due| due > now) {
            return false;
        }
        let before = batch.events.len();
        if let Err(refusal) = self.engine.take(&Command::Tick, now, batch, sink) {
            self.world.refused(&Command::Tick, &refusal);
        }
        let happened = &batch.events[before..];
        self.idle_tick = happened.is_empty().then_some(now);
        // A tick without events is a back-off that ended: its job may start now.
        happened.is_empty() || happened.iter().any(|event| calls_for_a_cycle(&event.fact))
    }

    fn follow(&mut self, batch: &Batch, followed: &mut usize) {
        for event in &batch.events[*followed..] {
            self.world
                .follow(event, &self.engine.state, &mut self.agenda);
        }
        *followed = batch.events.len();
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_one_time_come_in_the_order_of_planning() {
        let mut agenda = Agenda::default();
        for (at, item) in [(5, 'c'), (3, 'a'), (5, 'd'), (3, 'b')] {
            agenda.push(Millis(at), item);
        }
        let taken: Vec<char> = std::iter::from_fn(|| agenda.pop_due(Millis(5))).collect();
        assert_eq!(taken, ['a', 'b', 'c', 'd']);
    }

    #[test]
    fn nothing_is_due_before_its_time() {
        let mut agenda = Agenda::default();
        agenda.push(Millis(7), ());
        assert_eq!(
            (agenda.pop_due(Millis(6)), agenda.next_at()),
            (None, Some(Millis(7)))
        );
    }
}
