//! The eight steps from submit to bill, as far as a job has come. What comes later is said as such.

use crate::engine::record::{cause_text, job_text};
use crate::period::instant;
use crate::store::{Entry, JobRecord};
use contract::{
    JobBill, JobState, PlaceView, ReasonView, Step, StepState, SubmitJob, amount, count, gpu_count,
    gpus, person_span, plural, price,
};
use scheduler::{Fact, MilliGpu, Millis, State, StopCause};

/// What the steps are told from.
pub(crate) struct Told<'a> {
    /// The job's row.
    pub(crate) record: &'a JobRecord,
    /// What was asked for.
    pub(crate) spec: &'a SubmitJob,
    /// Its entries but its saves, oldest first.
    pub(crate) life: &'a [Entry],
    /// The published state, for names.
    pub(crate) state: &'a State,
    /// Why it waits, and its place.
    pub(crate) waiting: (Option<ReasonView>, Option<u32>),
    /// Own and borrowed GPUs while it is admitted; the last ones known afterwards.
    pub(crate) own: Option<(MilliGpu, MilliGpu)>,
    /// Where it lies or lay.
    pub(crate) place: Option<&'a PlaceView>,
    /// Its cost so far.
    pub(crate) bill: &'a JobBill,
    /// Running time so far.
    pub(crate) ran: Millis,
    /// How many checkpoints and interruptions it had.
    pub(crate) counts: (u64, usize),
    /// Now.
    pub(crate) now: Millis,
}

/// Times of a life, from its entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Times {
    first_admitted: Option<Millis>,
    admitted: Option<Millis>,
    bound: Option<Millis>,
    started: Option<Millis>,
    requeued: Option<Millis>,
    attempts: u32,
}

fn times(life: &[Entry]) -> Times {
    let mut times = Times::default();
    for entry in life {
        let at = Some(entry.event.at);
        match &entry.event.fact {
            Fact::JobAdmitted { attempt, .. } | Fact::GangReplaced { attempt, .. } => {
                times.first_admitted = times.first_admitted.or(at);
                times.admitted = at;
                (times.bound, times.started) = (None, None);
                times.attempts = *attempt;
            }
            Fact::GangBound { .. } => times.bound = at,
            Fact::GangStarted { .. } => times.started = at,
            Fact::JobRequeued { .. } => times.requeued = at,
            _ => {}
        }
    }
    times
}

/// The eight steps.
pub(crate) fn steps(told: &Told<'_>) -> Vec<Step> {
    let times = times(told.life);
    vec![
        submit(told),
        queue(told, &times),
        admit(told, &times),
        place(told, &times),
        bind(told, &times),
        run(told, &times),
        give_back(told),
        bill(told, &times),
    ]
}

fn step(name: &str, state: StepState, at: Option<Millis>, actor: &str) -> Step {
    Step {
        name: name.to_owned(),
        state,
        at: at.map(instant),
        actor: actor.to_owned(),
        figure: String::new(),
        note: String::new(),
    }
}

impl Told<'_> {
    fn state(&self) -> JobState {
        self.record.state
    }
    /// How a step stands that is reached at `at`: behind, ahead, or never.
    fn reached(&self, at: Option<Millis>) -> StepState {
        match (at, self.state()) {
            (Some(_), JobState::Queued) | (None, _) if !self.state().ended() => StepState::Ahead,
            (Some(_), _) => StepState::Done,
            (None, _) => StepState::Skipped,
        }
    }
}

fn submit(told: &Told<'_>) -> Step {
    let record = told.record;
    let mut step = step(
        "Submit",
        StepState::Done,
        Some(Millis(record.submitted)),
        &record.owner,
    );
    let spec = told.spec;
    step.figure = gpu_count(spec.gpus_per_pod.0 * u64::from(spec.pods));
    let least = spec.min_pods.filter(|least| *least < spec.pods);
    let least = least.map_or_else(String::new, |least| format!(", {least} at least"));
    step.note = format!(
        "{}{least}, project {}",
        plural(spec.pods.into(), "pod", "pods"),
        record.project
    );
    step
}

fn queue(told: &Told<'_>, times: &Times) -> Step {
    let submitted = Millis(told.record.submitted);
    let state = match (told.state(), times.first_admitted) {
        (JobState::Queued, _) => StepState::Now,
        (_, _) => StepState::Done,
    };
    let mut step = step(
        "Queue",
        state,
        Some(submitted),
        &format!("queue of {}", told.record.team),
    );
    let ended = told.record.ended.map(Millis);
    let until = times.first_admitted.or(ended).unwrap_or(told.now);
    step.figure = person_span(until.since(submitted));
    step.note = match (&told.waiting, told.state()) {
        // The reason has a panel of its own, with what would help.
        ((Some(reason), _), JobState::Queued) if reason.never => "can never run".to_owned(),
        ((Some(_), Some(place)), JobState::Queued) => format!("place {}", count((*place).into())),
        ((Some(reason), None), JobState::Queued) => reason.text.clone(),
        ((None, _), JobState::Queued) => "the next cycle says why it waits".to_owned(),
        (_, _) if times.attempts > 1 => {
            let attempts = plural(times.attempts.into(), "attempt", "attempts");
            format!("before the first of {attempts}")
        }
        (_, _) if times.first_admitted.is_none() => "ended while it waited".to_owned(),
        (_, _) => String::new(),
    };
    step
}

fn admit(told: &Told<'_>, times: &Times) -> Step {
    let mut step = step(
        "Admit",
        told.reached(times.admitted),
        times.admitted,
        "scheduler",
    );
    if let (StepState::Done, Some((own, borrowed))) = (step.state, told.own) {
        step.figure = gpu_count(own + borrowed);
        // What of it is borrowed moves with the team's other jobs: only now's is known.
        step.note = match (told.state().ended(), borrowed) {
            (true, _) => "all at once".to_owned(),
            (false, MilliGpu::ZERO) => "all at once; now all own".to_owned(),
            (false, _) => format!(
                "all at once; now {} own, {} borrowed",
                gpus(own),
                gpus(borrowed)
            ),
        };
    }
    step
}

fn place(told: &Told<'_>, times: &Times) -> Step {
    let mut step = step(
        "Place",
        told.reached(times.admitted),
        times.admitted,
        "scheduler",
    );
    if let (StepState::Done, Some(place)) = (step.state, told.place) {
        step.figure = match place.blocks.as_slice() {
            [block] => block.clone(),
            blocks => plural(blocks.len() as u64, "block", "blocks"),
        };
        step.note = format!(
            "{}; worst link {}",
            plural(place.nodes.len() as u64, "node", "nodes"),
            place.worst_link
        );
    }
    step
}

fn bind(told: &Told<'_>, times: &Times) -> Step {
    let state = match told.state() {
        JobState::Admitted => StepState::Now,
        _ => told.reached(times.bound),
    };
    let mut step = step("Bind", state, times.bound, "simulated executor");
    if let (Some(bound), Some(admitted), StepState::Done) =
        (times.bound, times.admitted, step.state)
    {
        // How many an elastic gang has now may be fewer.
        let pods = told
            .life
            .iter()
            .rev()
            .find_map(|entry| match &entry.event.fact {
                Fact::JobAdmitted { placement, .. } => Some(placement.pods.len() as u32),
                _ => None,
            });
        let pods = pods.unwrap_or(told.record.pods);
        let all = plural(told.spec.pods.into(), "pod", "pods");
        step.figure = format!("{} of {all}", count(pods.into()));
        let span = bound.since(admitted).0;
        step.note = format!("at once, in {}.{} s", span / 1_000, span % 1_000 / 100);
    }
    step
}

fn run(told: &Told<'_>, times: &Times) -> Step {
    let state = match told.state() {
        JobState::Starting | JobState::Running | JobState::Reclaiming | JobState::Recovering => {
            StepState::Now
        }
        _ if told.state().ended() && told.ran > Millis(0) => StepState::Done,
        _ => told.reached(times.started),
    };
    let mut step = step("Run", state, times.started, "simulated executor");
    if matches!(state, StepState::Now | StepState::Done) {
        step.figure = person_span(told.ran);
        let (checkpoints, interruptions) = told.counts;
        step.note = match told.state() {
            JobState::Starting => "pods are coming up".to_owned(),
            JobState::Recovering => recovering(told.life),
            _ => format!(
                "{}, {}",
                number(checkpoints, "checkpoint"),
                number(interruptions as u64, "interruption")
            ),
        };
        if told.record.pods < told.spec.pods {
            let (has, asks) = (count(told.record.pods.into()), told.spec.pods);
            let asks = plural(asks.into(), "pod", "pods");
            let runs = if told.state().ended() { "ran" } else { "runs" };
            step.note = format!("{runs} at {has} of {asks}; {}", step.note);
        }
        if let Some(cause) = &told.record.end_cause {
            step.note = format!("{}; {cause}", step.note);
        } else if let Some(cause) = stopping(told.life, told.state) {
            step.note = format!("{}; stopping: {cause}", step.note);
        }
    }
    step
}

fn recovering(life: &[Entry]) -> String {
    match life.last().map(|last| &last.event.fact) {
        Some(Fact::GangStopped { until, .. }) => format!(
            "stopped; keeps its nodes until {} while others are found for those that it lost",
            instant(*until)
        ),
        _ => "lost a pod; what is left of the gang is being stopped".to_owned(),
    }
}

/// Why it is being stopped, if that was the last thing said but for what it lost.
fn stopping(life: &[Entry], state: &State) -> Option<String> {
    let is_loss = |entry: &&Entry| matches!(entry.event.fact, Fact::PodsLost { .. });
    let last = life.iter().rev().find(|entry| !is_loss(entry))?;
    match &last.event.fact {
        Fact::StopRequested { cause, .. } => Some(cause_text(cause, state)),
        _ => None,
    }
}

fn number(n: u64, word: &str) -> String {
    match n {
        0 => format!("no {word}s"),
        n => plural(n, word, &format!("{word}s")),
    }
}

/// What the last reclaim of this job said: when, for whom, and by when it had to go.
fn asked(told: &Told<'_>) -> Option<(Millis, String)> {
    told.life.iter().rev().find_map(|entry| {
        let text = match &entry.event.fact {
            Fact::SaveAsked {
                claim,
                until,
                keeps: Some(keeps),
                ..
            } => format!(
                "to save by {} and go on with {} (reclaim {claim})",
                instant(*until),
                plural((*keeps).into(), "pod", "pods")
            ),
            Fact::ShrinkRequested {
                keeps,
                claim,
                claimant,
                ..
            } => format!(
                "goes on with {}, for {} (reclaim {claim})",
                plural((*keeps).into(), "pod", "pods"),
                job_text(told.state, *claimant)
            ),
            Fact::SaveAsked { claim, until, .. } => {
                format!("to save and go by {} (reclaim {claim})", instant(*until))
            }
            Fact::StopRequested { cause, .. } if matches!(cause, StopCause::Reclaim { .. }) => {
                cause_text(cause, told.state)
            }
            _ => return None,
        };
        Some((entry.event.at, text))
    })
}

/// True while an elastic gang gives up pods.
fn is_shrinking(told: &Told<'_>) -> bool {
    let last = told.life.iter().rev().map(|entry| &entry.event.fact);
    let mut last = last.filter(|fact| {
        matches!(
            fact,
            Fact::ClaimMade { .. }
                | Fact::SaveAsked { .. }
                | Fact::ShrinkRequested { .. }
                | Fact::GangShrunk { .. }
                | Fact::JobAdmitted { .. }
        )
    });
    matches!(
        last.next(),
        Some(Fact::SaveAsked { keeps: Some(_), .. } | Fact::ShrinkRequested { .. })
    ) && !told.state().ended()
}

fn give_back(told: &Told<'_>) -> Step {
    if let Some((at, text)) = asked(told) {
        let (state, figure) = match told.state() {
            JobState::Reclaiming => (StepState::Now, "asked"),
            _ if is_shrinking(told) => (StepState::Now, "asked"),
            _ => (StepState::Done, "gave back"),
        };
        let mut step = step("Give back", state, Some(at), "owners of what it borrows");
        (step.figure, step.note) = (figure.to_owned(), text);
        return step;
    }
    let state = if told.state().ended() {
        StepState::Skipped
    } else {
        StepState::Ahead
    };
    let mut step = step("Give back", state, None, "owners of what it borrows");
    let borrowed = told.own.map_or(MilliGpu::ZERO, |(_, borrowed)| borrowed);
    step.figure = if told.state().ended() {
        "was not asked"
    } else {
        "not asked"
    }
    .to_owned();
    if told.state() == JobState::Queued && told.own.is_none() {
        step.figure = String::new();
    }
    step.note = match (told.state().ended(), borrowed) {
        (true, _) => "ended without a reclaim".to_owned(),
        (false, MilliGpu::ZERO) => match told.state() {
            JobState::Queued => "what it may borrow".to_owned(),
            _ => "nothing borrowed".to_owned(),
        },
        (false, borrowed) => format!("{} reclaimable", gpu_count(borrowed)),
    };
    step
}

fn bill(told: &Told<'_>, times: &Times) -> Step {
    let state = match told.state() {
        state if state.ended() && times.bound.is_some() => StepState::Done,
        state if state.ended() => StepState::Skipped,
        JobState::Queued if times.bound.is_none() => StepState::Ahead,
        _ if times.bound.is_some() => StepState::Now,
        _ => StepState::Ahead,
    };
    let ended = told
        .record
        .ended
        .map(Millis)
        .filter(|_| state == StepState::Done);
    let mut step = step("Bill", state, ended, "usage ledger");
    let totals = &told.bill.totals;
    if matches!(state, StepState::Now | StepState::Done) {
        step.figure = price(&told.bill.currency, &totals.amount);
        let so_far = if state == StepState::Now {
            "so far: "
        } else {
            ""
        };
        step.note = format!(
            "{so_far}{} GPU-h own, {} borrowed",
            amount(&totals.own_gpu_hours),
            amount(&totals.borrowed_gpu_hours)
        );
    } else {
        step.note = "from bind to confirmed exit".to_owned();
    }
    step
}
