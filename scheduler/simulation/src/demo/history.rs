//! The demo's past: a month of it in the engine, in virtual time, from a seed.
//!
//! Demand is limited so that the demo begins with room: an arrival is turned away when its flavour is busy enough, or
//! when its team has enough waiting already. The live demo asks the same question ([`is_wanted`]).

use super::workload::{Arrival, Workload};
use super::{A100, TEAMS, demo_configuration, fates, last_asks, rate_card, update};
use crate::driver::{Agenda, Batch, Driver, Engine, Sink, World};
use crate::model::{Turn, next_report, next_turn};
use scheduler::{
    Command, Configure, Event, JobId, JobSpec, MilliGpu, Millis, NodeId, Phase, Policy, Refusal,
    State, quota_figures,
};
use std::iter::Peekable;

/// H100 GPUs that may be charged and asked for by teams that can borrow: about eleven of sixteen blocks.
const H100_BUSY: MilliGpu = MilliGpu::gpus(2_700);
/// The same for A100, of 512.
const A100_BUSY: MilliGpu = MilliGpu::gpus(440);
/// The last update of firmware: how long before the end of the past it begins and ends. What it leaves are whole blocks,
/// all nodes ready, as the demo promises.
const UPDATE_BEGINS: Millis = Millis::hours(84);
const UPDATE_VACATES: Millis = Millis::hours(10);
const UPDATE_ENDS: Millis = Millis::minutes(6);
/// By when people answer from the last hour of the past on: at the demo's usual speed that is four minutes of theirs.
const APPROVAL_DEADLINE: Millis = Millis::hours(4);
/// How long before the end of the past the last of it is lent, and somebody asks back: the update is over by then.
const LEND_REST: Millis = Millis::minutes(5);
const ASK_FOR_OWN: Millis = Millis::minutes(4);
/// Jobs that a team with a borrowing limit lets wait at most.
const TEAM_WAITING: usize = 4;

/// What can be due.
#[derive(Clone, Debug)]
pub enum Item {
    /// The next arrival of the workload.
    Arrive,
    /// Somebody asks for this, come what may.
    Submit(Arrival),
    /// Somebody asks for more A100 close together than there is just then.
    AskForRoom,
    /// People get more time to answer requests to give something back.
    MoreTime,
    /// What is left of the A100 is borrowed.
    LendRest,
    /// Somebody asks for what others borrow, where a person is asked first.
    AskForOwn,
    /// The executor may have something to report about this attempt.
    Job(JobId, u32),
    /// A node breaks or comes back.
    Node(NodeId, Turn),
    /// Four blocks are emptied for an update of their firmware.
    UpdateBegins,
    /// What still runs there has to go.
    UpdateVacates,
    /// They are back.
    UpdateEnds,
}

/// The simulated fleet and its people.
#[derive(Debug)]
pub struct DemoWorld {
    seed: u64,
    epoch: Millis,
    arrivals: Peekable<Workload>,
    /// Arrivals that were turned away.
    pub turned_away: u64,
    /// Commands that the engine refused: none, if all is well.
    pub refused: Vec<String>,
}

/// A driver of the demo from `epoch` on: the fleet is set up, nothing runs yet. `epoch` is a whole hour.
///
/// # Errors
/// When the engine refuses the demo's own configuration.
pub fn demo_driver(
    seed: u64,
    epoch: Millis,
    sink: &mut impl Sink,
) -> Result<Driver<DemoWorld>, Refusal> {
    let epoch = epoch.hour_floor();
    let mut engine = Engine::default();
    let mut batch = Batch {
        at: epoch,
        ..Batch::default()
    };
    for change in demo_configuration()
        .into_iter()
        .chain([Configure::RateCard(rate_card(epoch))])
    {
        engine.take(&Command::Configure(change), epoch, &mut batch, sink)?;
    }
    sink.batch(&engine.state, &batch);
    let nodes: Vec<NodeId> = engine.state.nodes.keys().copied().collect();
    let arrivals = Workload::new(seed, epoch).peekable();
    let world = DemoWorld {
        seed,
        epoch,
        arrivals,
        turned_away: 0,
        refused: Vec::new(),
    };
    let mut driver = Driver::new(engine, world);
    for node in nodes {
        let (at, turn) = next_turn(seed, node, epoch, epoch);
        driver.agenda.push(at, Item::Node(node, turn));
    }
    if let Some(first) = driver.world.arrivals.peek() {
        driver.agenda.push(first.at, Item::Arrive);
    }
    Ok(driver)
}

/// The demo's past from `epoch` to `now`: everything that happened goes to `sink`; what is now is returned.
///
/// # Errors
/// When the engine refuses the demo's own configuration.
pub fn history(
    seed: u64,
    epoch: Millis,
    now: Millis,
    sink: &mut impl Sink,
) -> Result<Engine, Refusal> {
    let mut driver = demo_driver(seed, epoch, sink)?;
    let ago = |span: Millis| Millis(now.0.saturating_sub(span.0)).max(epoch);
    let never = last_asks::never(ago(Millis::minutes(52)));
    driver.agenda.push(never.at, Item::Submit(never));
    let beyond_quota = last_asks::beyond_quota(ago(Millis::minutes(47)));
    driver
        .agenda
        .push(beyond_quota.at, Item::Submit(beyond_quota));
    driver
        .agenda
        .push(ago(Millis::minutes(41)), Item::AskForRoom);
    driver.agenda.push(ago(Millis::HOUR), Item::MoreTime);
    driver.agenda.push(ago(LEND_REST), Item::LendRest);
    driver.agenda.push(ago(ASK_FOR_OWN), Item::AskForOwn);
    driver.agenda.push(ago(UPDATE_BEGINS), Item::UpdateBegins);
    driver.agenda.push(ago(UPDATE_VACATES), Item::UpdateVacates);
    driver.agenda.push(ago(UPDATE_ENDS), Item::UpdateEnds);
    driver.run(Some(now), sink);
    debug_assert!(
        driver.world.refused.is_empty(),
        "{:?}",
        driver.world.refused
    );
    Ok(driver.engine)
}

/// Whether an arrival is let in: the demo leaves room, and nobody's queue grows without end.
pub fn is_wanted(state: &State, spec: &JobSpec) -> bool {
    let limited = |team: &str| {
        TEAMS
            .iter()
            .any(|row| row.id == team && row.borrows.is_some())
    };
    if limited(spec.team.as_str()) {
        let waits =
            |job: &&scheduler::Job| job.phase == Phase::Queued && job.spec.team == spec.team;
        if state.jobs.values().filter(waits).count() >= TEAM_WAITING {
            return false;
        }
    }
    let Some(first) = spec.flavours.first() else {
        return true;
    };
    let asked = state.jobs.values().filter(|job| match &job.allocation {
        Some(allocation) => allocation.placement.flavour.as_ref() == Some(first),
        None => job.spec.flavours.first() == Some(first) && !limited(job.spec.team.as_str()),
    });
    let busy = asked.map(|job| job.spec.gpus()).sum::<MilliGpu>() + spec.gpus();
    let most = if first.as_str() == A100 {
        A100_BUSY
    } else {
        H100_BUSY
    };
    // Teams that may borrow do not queue for room: they come back another time.
    let stands = limited(spec.team.as_str())
        || first.as_str() == A100
        || scheduler::would_start(state, &"anybody".into(), spec, state.at).is_ok();
    busy <= most && (stands || is_own(state, spec))
}

/// True for work that stays inside its team's own: whoever borrows it has to make room.
fn is_own(state: &State, spec: &JobSpec) -> bool {
    spec.flavours.iter().any(|flavour| {
        let figures = quota_figures(state, &spec.team, flavour);
        figures.charged + spec.gpus() <= figures.nominal
    })
}

impl World for DemoWorld {
    type Item = Item;

    fn due(
        &mut self,
        item: Item,
        now: Millis,
        state: &State,
        agenda: &mut Agenda<Item>,
    ) -> Vec<Command> {
        match item {
            Item::Arrive => {
                let arrived = self.arrivals.next();
                if let Some(next) = self.arrivals.peek() {
                    agenda.push(next.at, Item::Arrive);
                }
                let wanted = arrived.filter(|arrival| is_wanted(state, &arrival.spec));
                self.turned_away += u64::from(wanted.is_none());
                wanted.into_iter().map(submit).collect()
            }
            Item::Submit(arrival) => vec![submit(arrival)],
            Item::AskForRoom => last_asks::for_room(state, now)
                .into_iter()
                .map(submit)
                .collect(),
            Item::MoreTime => vec![Command::Configure(Configure::Policy(Policy {
                approval_deadline: APPROVAL_DEADLINE,
                ..state.policy.clone()
            }))],
            Item::LendRest => last_asks::rest_lent(state, now)
                .into_iter()
                .map(submit)
                .collect(),
            Item::AskForOwn => last_asks::for_a_person(state, now)
                .into_iter()
                .map(submit)
                .collect(),
            Item::Job(job, attempt) => self.report(job, attempt, now, state).into_iter().collect(),
            Item::Node(node, turn) => {
                let (at, next) = next_turn(self.seed, node, self.epoch, now);
                agenda.push(at, Item::Node(node, next));
                fates(state, node, turn)
            }
            Item::UpdateBegins => update::begin(self.seed, state),
            Item::UpdateVacates => update::vacate(state),
            Item::UpdateEnds => update::end(state),
        }
    }

    fn follow(&mut self, event: &Event, state: &State, agenda: &mut Agenda<Item>) {
        let Some(job) = event.fact.job().and_then(|job| state.jobs.get(&job)) else {
            return;
        };
        if let Some((at, _)) = next_report(self.seed, job) {
            agenda.push(at.max(event.at), Item::Job(job.id, job.attempt));
        }
    }

    fn refused(&mut self, command: &Command, refusal: &Refusal) {
        self.refused.push(format!("{refusal} ({command:?})"));
    }
}

impl DemoWorld {
    /// The report that is due, unless something happened to the job since it was planned.
    fn report(&self, job: JobId, attempt: u32, now: Millis, state: &State) -> Option<Command> {
        let live = state
            .jobs
            .get(&job)
            .filter(|live| live.attempt == attempt)?;
        let (at, report) = next_report(self.seed, live)?;
        (at <= now).then_some(Command::Report {
            job,
            attempt,
            report,
        })
    }
}

fn submit(arrival: Arrival) -> Command {
    Command::Submit {
        owner: arrival.owner,
        spec: arrival.spec,
    }
}
