//! With the engine deciding: submissions and run times are the record's, starts are the engine's.

use super::report::{Report, Row};
use super::work::{Ends, Work};
use super::{Mode, e4_hours};
use crate::driver::{Agenda, Driver, Engine, Sink, World};
use crate::trace::{BrokenRow, Format};
use scheduler::{
    Command, Event, Fact, JobId, MilliGpu, MilliGpuMs, Millis, Pool, Refusal, Report as Word,
    State, StopCause, UsageLine, Waiting,
};
use std::collections::BTreeMap;

/// What can be due.
#[derive(Clone, Copy, Debug)]
pub enum Item {
    /// A job comes in.
    Submit(usize),
    /// A gang is up: at once, since a record's run time has its start-up in it.
    Up(JobId, u32),
    /// Its work is done.
    Done(JobId, u32),
    /// Its owner has no more use for it.
    Withdraw(JobId),
    /// A stop that was asked for is done.
    Gone(JobId, u32),
}

/// The record as the engine's surroundings.
#[derive(Debug)]
pub struct Trace<'a> {
    work: &'a [Work],
    /// The job that the next submission event is about.
    coming: usize,
    of_job: BTreeMap<JobId, usize>,
    /// Commands that the engine refused: none, if all is well.
    pub refused: Vec<String>,
}

impl<'a> Trace<'a> {
    fn ends(&self, job: JobId) -> Option<Ends> {
        self.of_job.get(&job).map(|index| self.work[*index].ends)
    }

    /// A driver around this record, every submission planned.
    pub fn driver(engine: Engine, work: &'a [Work]) -> Driver<Self> {
        let world = Self {
            work,
            coming: 0,
            of_job: BTreeMap::new(),
            refused: Vec::new(),
        };
        let mut driver = Driver::new(engine, world);
        for (index, job) in work.iter().enumerate() {
            driver.agenda.push(job.submitted, Item::Submit(index));
        }
        driver
    }
}

/// True while this attempt of the job is live.
fn is_live(state: &State, job: JobId, attempt: u32) -> bool {
    state
        .jobs
        .get(&job)
        .is_some_and(|live| live.attempt == attempt && live.allocation.is_some())
}

impl World for Trace<'_> {
    type Item = Item;

    fn due(
        &mut self,
        item: Item,
        _now: Millis,
        state: &State,
        _agenda: &mut Agenda<Item>,
    ) -> Vec<Command> {
        let word = |job: JobId, attempt: u32, report: Word| Command::Report {
            job,
            attempt,
            report,
        };
        match item {
            Item::Submit(index) => {
                self.coming = index;
                let work = &self.work[index];
                vec![Command::Submit {
                    owner: work.owner.clone(),
                    spec: work.spec.clone(),
                }]
            }
            Item::Up(job, attempt) => vec![
                word(job, attempt, Word::Bound),
                word(job, attempt, Word::Started),
            ],
            Item::Done(job, attempt) if is_live(state, job, attempt) => {
                vec![word(job, attempt, Word::Succeeded)]
            }
            Item::Gone(job, attempt) if is_live(state, job, attempt) => {
                vec![word(job, attempt, Word::Exited)]
            }
            Item::Withdraw(job) if state.jobs.contains_key(&job) => {
                let why = Some("the record has it deleted here".to_owned());
                vec![Command::Cancel {
                    job,
                    by: state.jobs[&job].owner.clone(),
                    why,
                }]
            }
            Item::Done(..) | Item::Gone(..) | Item::Withdraw(_) => Vec::new(),
        }
    }

    fn follow(&mut self, event: &Event, _state: &State, agenda: &mut Agenda<Item>) {
        match &event.fact {
            Fact::JobSubmitted { job, .. } => {
                self.of_job.insert(*job, self.coming);
                if let Some(Ends::WithdrawnAt(at)) = self.ends(*job) {
                    agenda.push(at, Item::Withdraw(*job));
                }
            }
            Fact::JobAdmitted { job, attempt, .. } => {
                agenda.push(event.at, Item::Up(*job, *attempt))
            }
            Fact::GangStarted { job, attempt } => {
                if let Some(Ends::After(run)) = self.ends(*job) {
                    agenda.push(event.at + run, Item::Done(*job, *attempt));
                }
            }
            Fact::StopRequested { job, attempt, .. } => {
                agenda.push(event.at, Item::Gone(*job, *attempt))
            }
            _ => {}
        }
    }

    fn refused(&mut self, command: &Command, refusal: &Refusal) {
        self.refused.push(format!("{refusal} ({command:?})"));
    }
}

/// What is counted while the engine runs.
#[derive(Debug, Default)]
struct Count {
    submitted: BTreeMap<JobId, Millis>,
    waits: Vec<Millis>,
    preemptions: u64,
    held: MilliGpuMs,
    by_team: BTreeMap<String, MilliGpuMs>,
    first: Option<Millis>,
    last: Millis,
}

impl Sink for Count {
    fn event(&mut self, _state: &State, event: &Event, lines: &[UsageLine]) {
        match &event.fact {
            Fact::JobSubmitted { job, .. } => {
                self.first.get_or_insert(event.at);
                self.submitted.insert(*job, event.at);
            }
            Fact::GangStarted { job, attempt: 1 } => {
                self.waits
                    .extend(self.submitted.get(job).map(|at| event.at.since(*at)));
            }
            Fact::StopRequested {
                cause, end: None, ..
            } if is_preemption(cause) => self.preemptions += 1,
            Fact::JobEnded { .. } => self.last = event.at,
            _ => {}
        }
        for line in lines {
            self.held += line.held();
            *self.by_team.entry(line.team.to_string()).or_default() += line.held();
        }
    }
}

/// Whether a gang was stopped for somebody else's sake.
fn is_preemption(cause: &StopCause) -> bool {
    match cause {
        StopCause::Reclaim { .. } => true,
        StopCause::Person { .. }
        | StopCause::TimeLimit
        | StopCause::Drained { .. }
        | StopCause::Idle { .. }
        | StopCause::Suspend { .. }
        | StopCause::NodeLost { .. }
        | StopCause::Stalled { .. }
        | StopCause::LaunchTimeout
        | StopCause::Exited { .. } => false,
    }
}

/// Both listen.
struct Both<'a, S>(&'a mut Count, &'a mut S);
impl<S: Sink> Sink for Both<'_, S> {
    fn wants_reasons(&self) -> bool {
        self.1.wants_reasons()
    }
    fn event(&mut self, state: &State, event: &Event, lines: &[UsageLine]) {
        self.0.event(state, event, lines);
        self.1.event(state, event, lines);
    }
    fn waiting(&mut self, state: &State, waiting: &[Waiting]) {
        self.1.waiting(state, waiting);
    }
    fn batch(&mut self, state: &State, batch: &crate::driver::Batch) {
        self.1.batch(state, batch);
    }
}

/// Lets the engine decide on a fleet that is set up; `sink` hears everything. Jobs that can never run stay waiting.
pub fn schedule(
    format: Format,
    engine: Engine,
    work: &[Work],
    (rules, broken): (Vec<String>, Vec<BrokenRow>),
    sink: &mut impl Sink,
) -> Report {
    let capacity = capacity(&engine.state);
    let mut count = Count::default();
    let mut driver = Trace::driver(engine, work);
    driver.run(None, &mut Both(&mut count, sink));
    let state = &driver.engine.state;
    let waiting = scheduler::plan(state, state.at).waiting;
    let never = waiting
        .iter()
        .filter(|waiting| waiting.reason.never())
        .count();
    let left = waiting.len() - never;
    let span = count.last.since(count.first.unwrap_or_default());
    count.waits.sort_unstable();
    let mut rows = vec![
        Row::new("jobs", work.len().to_string()),
        Row::new("started", count.waits.len().to_string()),
        Row::new("wait p50", seconds(quantile(&count.waits, 50))),
        Row::new("wait p95", seconds(quantile(&count.waits, 95))),
        Row::new("GPUs", capacity.to_string()),
        Row::new("utilisation", per_cent(count.held, capacity.over(span))),
        Row::new("preemptions", count.preemptions.to_string()),
        Row::new("GPU-hours", e4_hours(count.held.gpu_hours_e4())),
        Row::new("can never run", never.to_string()),
        Row::new(
            "withdrawn",
            driver.engine.state.counts.cancelled.to_string(),
        ),
        Row::new("left waiting", left.to_string()),
        Row::new(
            "span",
            format!(
                "{} h",
                e4_hours(u128::from(span.0) * 10_000 / u128::from(Millis::HOUR.0))
            ),
        ),
    ];
    if !driver.world.refused.is_empty() {
        rows.push(Row::new(
            "refused commands",
            driver.world.refused.len().to_string(),
        ));
    }
    let by_team = count
        .by_team
        .iter()
        .map(|(team, held)| Row::new(team.as_str(), e4_hours(held.gpu_hours_e4())))
        .collect();
    let broken_rows = broken.len() as u64;
    Report {
        format,
        mode: Mode::Schedule,
        rows,
        by_day: Vec::new(),
        by_team,
        rules,
        good_rows: work.len() as u64,
        broken_rows,
        warnings: broken,
    }
}

/// GPUs for batch work.
fn capacity(state: &State) -> MilliGpu {
    let batch = state
        .nodes
        .values()
        .map(|free| &free.node)
        .filter(|node| node.pool == Pool::Batch);
    MilliGpu::gpus(batch.map(|node| u64::from(node.cards)).sum())
}

/// The smallest number that `per_cent` of all are at or below.
fn quantile(sorted: &[Millis], per_cent: usize) -> Millis {
    let rank = (sorted.len() * per_cent).div_ceil(100);
    sorted
        .get(rank.saturating_sub(1))
        .copied()
        .unwrap_or_default()
}

/// Seconds with three places.
fn seconds(span: Millis) -> String {
    format!("{}.{:03} s", span.0 / 1_000, span.0 % 1_000)
}

fn per_cent(part: MilliGpuMs, whole: MilliGpuMs) -> String {
    let e4 = (part.0 * 1_000_000).checked_div(whole.0).unwrap_or(0);
    format!("{}.{:04} %", e4 / 10_000, e4 % 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_numbers_that_occurred() {
        let waits: Vec<Millis> = (1..=20).map(Millis).collect();
        assert_eq!(
            (quantile(&waits, 50), quantile(&waits, 95)),
            (Millis(10), Millis(19))
        );
        assert_eq!(quantile(&[], 50), Millis(0));
    }
}
