//! One life: people, an unreliable executor, a clock that jumps, and a process that dies.

use super::aside::settings;
use super::disk::Disk;
use super::people::{People, fleet};
use super::{Dice, Outcome, Seen};
use crate::audit::Auditor;
use crate::draw::Draws;
use crate::driver::{Agenda, Engine};
use crate::model::next_report;
use scheduler::{Command, Event, JobId, Millis, Phase, Plan, Refusal, Report, invariants, plan};

/// When a life begins: a whole hour.
const BIRTH: Millis = Millis::hours(500_000);
/// People do something every two minutes, on average.
const PEOPLE: Millis = Millis::minutes(2);

/// What is due.
#[derive(Clone, Debug)]
enum Item {
    /// Somebody does something.
    People,
    /// The executor may have something to report about this attempt.
    Job(JobId, u32),
    /// It says again what it has said: it does not know that it was heard.
    Again(JobId, u32, Report),
}

/// Around one write, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Death {
    /// Nothing was written: it never happened.
    Before,
    /// All was written, nobody was told.
    After,
    Not,
}

/// What the same cycle says when it is asked again.
fn differs(one: &Plan, other: &Plan) -> String {
    let mut pairs = one.waiting.iter().zip(&other.waiting);
    let (first, then) = pairs.find(|(a, b)| a != b).unzip();
    format!(
        "the same cycle again decides {:?} after {:?}, and tells of {then:?} what was {first:?}",
        other.events, one.events
    )
}

/// One life.
pub(super) struct World {
    seed: u64,
    dice: Dice,
    engine: Engine,
    auditor: Auditor,
    disk: Disk,
    agenda: Agenda<Item>,
    people: People,
    now: Millis,
    restarts: u64,
    cycles: u64,
    seen: Seen,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let draws = Draws::new(seed).of(0x7472_6961);
        Self {
            seed,
            dice: Dice::new(draws.of(1)),
            engine: Engine::default(),
            auditor: Auditor::default(),
            disk: Disk::default(),
            agenda: Agenda::default(),
            people: People::new(Dice::new(draws.of(2))),
            now: BIRTH,
            restarts: 0,
            cycles: 0,
            seen: Seen::default(),
        }
    }

    pub(super) fn events(&self) -> u64 {
        self.disk.events()
    }

    pub(super) fn outcome(self) -> Outcome {
        Outcome {
            seed: self.seed,
            events: self.disk.events(),
            digest: self.disk.digest(),
            restarts: self.restarts,
            claims: self.auditor.claims(),
            seen: self.seen,
        }
    }

    pub(super) fn journal(self) -> Vec<String> {
        self.disk.journal()
    }

    /// Lives until so many events are written; then the whole journal is folded once more.
    pub(super) fn live(&mut self, events: u64) -> Result<(), String> {
        for change in fleet() {
            self.ask(&Command::Configure(change), Death::Not)?;
        }
        self.agenda.push(self.now, Item::People);
        while self.disk.events() < events {
            self.moment()?;
        }
        for command in settings(&self.engine.state) {
            self.ask(&command, Death::Not)?;
        }
        let again = self.disk.fold_all()?;
        if again != self.engine {
            return Err("the whole journal folds to another state".to_owned());
        }
        Ok(())
    }

    /// The next moment at which anything is due, or a later one: clocks jump, processes are suspended.
    fn moment(&mut self) -> Result<(), String> {
        let own = scheduler::next_due(&self.engine.state);
        let due = self.agenda.next_at().into_iter().chain(own).min();
        self.now = self.now.max(due.ok_or("nothing is ever due again")?);
        if self.dice.happens(2) {
            self.now += Millis::minutes(self.dice.below(600));
        }
        if own.is_some_and(|own| own <= self.now) {
            self.act(&Command::Tick)?;
        }
        while let Some(item) = self.agenda.pop_due(self.now) {
            self.due(item)?;
        }
        self.cycle()
    }

    fn due(&mut self, item: Item) -> Result<(), String> {
        match item {
            Item::People => {
                let wait = Draws::new(self.seed).of(self.events());
                let wait = wait.exponential(self.dice.below(1 << 32), PEOPLE);
                self.agenda.push(self.now + wait, Item::People);
                match self.people.next(&self.engine.state) {
                    Some(command) => self.act(&command),
                    None => Ok(()),
                }
            }
            Item::Job(job, attempt) => self.report(job, attempt),
            Item::Again(job, attempt, report) => self.tell(job, attempt, report),
        }
    }

    /// The executor's next word about an attempt, if it is due: said now, or later, or twice.
    fn report(&mut self, job: JobId, attempt: u32) -> Result<(), String> {
        let live = self.engine.state.jobs.get(&job);
        let Some(live) = live.filter(|live| live.attempt == attempt) else {
            return Ok(());
        };
        let Some((_, report)) = next_report(self.seed, live).filter(|(at, _)| *at <= self.now)
        else {
            return Ok(());
        };
        if self.dice.happens(60) {
            let late = self.now + Millis::seconds(self.dice.below(1_500));
            self.agenda.push(late, Item::Job(job, attempt));
            return Ok(());
        }
        if self.dice.happens(80) {
            let again = self.now + Millis::seconds(self.dice.below(900));
            let report = report.clone();
            self.agenda.push(again, Item::Again(job, attempt, report));
        }
        if let Some(other) = self.other_word(job, attempt, &report) {
            self.agenda.push(self.now, Item::Job(job, attempt));
            return self.tell(job, attempt, other);
        }
        self.tell(job, attempt, report)
    }

    fn tell(&mut self, job: JobId, attempt: u32, report: Report) -> Result<(), String> {
        self.seen.report(&report);
        self.act(&Command::Report {
            job,
            attempt,
            report,
        })
    }

    /// What the executor says instead, now and then: a gang that runs stands still, for good or for a while; of one that
    /// ends one pod ends before the others.
    fn other_word(&mut self, job: JobId, attempt: u32, report: &Report) -> Option<Report> {
        let live = self.engine.state.jobs.get(&job)?;
        if live.phase != Phase::Running || live.stop.is_some() {
            return None;
        }
        let pods = live.allocation.as_ref()?.placement.pods.len();
        if matches!(report, Report::Succeeded) && pods > 1 && self.dice.happens(300) {
            let rank = self.dice.below(live.spec.pods.into()) as u32;
            return Some(Report::PodSucceeded { rank });
        }
        if !self.dice.happens(40) {
            return None;
        }
        if self.dice.happens(500) {
            let later = self.now + Millis::minutes(self.dice.below(20));
            self.agenda
                .push(later, Item::Again(job, attempt, Report::Stepped));
        }
        Some(Report::NoStep { since: self.now })
    }

    /// A command, around whose write the process may die. What the executor said is said again: nobody confirmed it.
    fn act(&mut self, command: &Command) -> Result<(), String> {
        let death = match self.dice.below(100) {
            0 => Death::Before,
            1 => Death::After,
            _ => Death::Not,
        };
        self.ask(command, death)?;
        if let (
            true,
            Command::Report {
                job,
                attempt,
                report,
            },
        ) = (death != Death::Not, command)
        {
            let again = self.now + Millis::seconds(5);
            self.agenda
                .push(again, Item::Again(*job, *attempt, report.clone()));
        }
        Ok(())
    }

    fn ask(&mut self, command: &Command, death: Death) -> Result<(), String> {
        // A clock that is set back does not turn the engine's time back.
        let back = Millis::minutes(self.dice.below(40) * u64::from(self.dice.happens(10)));
        let now = Millis(self.now.0 - back.0);
        match scheduler::decide(&self.engine.state, command, now) {
            Ok(events) => self.write(&events, death),
            Err(refusal) => self.refused(command, &refusal),
        }
    }

    /// A refusal is an answer; but only people and a late word may get one.
    fn refused(&mut self, command: &Command, refusal: &Refusal) -> Result<(), String> {
        self.seen.refusal(refusal);
        match command {
            Command::Tick => Err(format!("the clock was refused: {refusal}")),
            _ => Ok(()),
        }
    }

    fn cycle(&mut self) -> Result<(), String> {
        let planned = plan(&self.engine.state, self.now);
        self.seen.waiting(&planned.waiting);
        self.write(&planned.events, Death::Not)?;
        self.cycles += 1;
        if self.cycles.is_multiple_of(64) {
            let again = plan(&self.engine.state, self.now);
            if !again.events.is_empty() || again.waiting != planned.waiting {
                return Err(differs(&planned, &again));
            }
        }
        Ok(())
    }

    /// Writes events and folds them, or dies around it.
    fn write(&mut self, events: &[Event], death: Death) -> Result<(), String> {
        if death == Death::Before {
            return self.restart();
        }
        self.disk.write(events)?;
        for event in events {
            self.seen.event(event);
            scheduler::apply(&mut self.engine.state, event);
            let lines = self.engine.meter.observe(&self.engine.state, event);
            let state = &self.engine.state;
            self.disk.close(&lines);
            let told = self.auditor.observe(state, event, &lines);
            told.map_err(|breach| format!("{} at {} after {event:?}", breach.what, breach.at.0))?;
            invariants::check(state).map_err(|what| format!("{what}, after {event:?}"))?;
            let job = event.fact.job().and_then(|job| state.jobs.get(&job));
            if let Some((job, (at, _))) =
                job.and_then(|job| Some((job, next_report(self.seed, job)?)))
            {
                self.agenda
                    .push(at.max(self.now), Item::Job(job.id, job.attempt));
            }
        }
        if self.dice.happens(3) {
            self.disk.keep(&self.engine)?;
        }
        if death == Death::After {
            return self.restart();
        }
        Ok(())
    }

    /// What is on disk is what was in memory.
    fn restart(&mut self) -> Result<(), String> {
        self.restarts += 1;
        let engine = self.disk.open()?;
        if engine != self.engine {
            return Err("a start from disk makes another state".to_owned());
        }
        self.engine = engine;
        Ok(())
    }
}
