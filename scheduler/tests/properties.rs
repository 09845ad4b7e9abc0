//! Random lives of a small fleet: invariants after every event, the same state again from the journal and from a
//! snapshot, the same plan whatever came first, and lines that add up to what was held.

#[path = "properties/drawn.rs"]
mod drawn;
#[path = "properties/lines.rs"]
mod lines;
#[path = "properties/truth.rs"]
mod truth;
#[path = "properties/turned.rs"]
mod turned;
mod world;

use drawn::{after, health, hold_mode, limits, report, spec};
use lines::check_lines;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use scheduler::*;
use std::cell::Cell;
use std::collections::BTreeMap;
use truth::{check_no_less_would_do, check_reason, claims_from_behind_its_head};
use world::*;

/// One thing that happens. Numbers pick among what is there.
#[derive(Clone, Debug)]
enum Action {
    /// After others of those that were ever submitted, if any are named.
    Submit(Box<JobSpec>, Vec<(u64, Wants)>),
    Cycle,
    /// Whatever an executor may say, in place or not.
    Report(usize, Report),
    /// The likely next word about a gang.
    Advance(usize),
    Cancel(usize),
    Health(u32, Health),
    /// A node falls silent, is heard again, or is mended.
    Silence(u32, u32),
    Pass(u64),
    Nominal(usize, u64),
    /// Somebody answers a claim.
    Answer(usize, u32),
    /// The cohort's claims are put to a person, or not.
    Mode(ReclaimMode),
    Within(WithinTeam),
    /// Limits of a team, of each in it, or of each over all teams.
    Limit(usize, Limits),
    /// Something is set aside, or no more.
    Hold(usize, HoldMode),
    Release(usize),
    /// A notebook is suspended, or resumed.
    Suspend(usize),
    Resume(usize),
    /// The process dies and comes back.
    Crash,
}

const TEAMS: [&str; 4] = ["ads", "bio", "car", "dev"];

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        7 => (spec(), after()).prop_map(|(spec, after)| Action::Submit(Box::new(spec), after)),
        4 => Just(Action::Cycle),
        2 => (0..64_usize, report()).prop_map(|(job, report)| Action::Report(job, report)),
        8 => (0..64_usize).prop_map(Action::Advance),
        1 => (0..64_usize).prop_map(Action::Cancel),
        1 => (0..10_u32, health()).prop_map(|(node, health)| Action::Health(node, health)),
        1 => (0..10_u32, 0..3_u32).prop_map(|(node, what)| Action::Silence(node, what)),
        4 => (1..90_u64).prop_map(Action::Pass),
        1 => (0..TEAMS.len(), 0..24_u64).prop_map(|(team, nominal)| Action::Nominal(team, nominal)),
        1 => Just(Action::Crash),
        2 => (0..8_usize, 0..4_u32).prop_map(|(claim, what)| Action::Answer(claim, what)),
        1 => prop_oneof![Just(ReclaimMode::Auto), Just(ReclaimMode::Approval)].prop_map(Action::Mode),
        1 => prop_oneof![Just(WithinTeam::Never), Just(WithinTeam::LowerPriority)].prop_map(Action::Within),
        1 => (0..8_usize, limits()).prop_map(|(whose, limits)| Action::Limit(whose, limits)),
        2 => (0..64_usize, hold_mode()).prop_map(|(what, mode)| Action::Hold(what, mode)),
        2 => (0..64_usize).prop_map(Action::Release),
        1 => (0..64_usize).prop_map(Action::Suspend),
        1 => (0..64_usize).prop_map(Action::Resume),
    ]
}

/// What comes in while a cycle is planned, mostly.
fn door() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => spec().prop_map(|spec| Action::Submit(spec.into(), Vec::new())),
        2 => (0usize..40).prop_map(Action::Cancel),
        1 => (0usize..40).prop_map(Action::Advance),
    ]
}

/// Eight nodes in two blocks, two of another flavour beside them; two teams in an inner cohort, one above, one alone.
fn small_fleet() -> World {
    let mut world = World::grid(2, 2, 2);
    world.node("a0", "a100", 4, &["c0", "c0-r0"]);
    world.node("a1", "a100", 4, &["c0", "c0-r0"]);
    world.node_of(Pool::Notebook, "i0", "h100", 4, &["b1", "b1-r1"]);
    world.cohort("top", None, &[("h100", own(8))]);
    let limited = Quota {
        nominal: MilliGpu::gpus(4),
        borrowing_limit: Some(MilliGpu::gpus(12)),
        lending_limit: Some(MilliGpu::gpus(12)),
    };
    world.cohort("low", Some("top"), &[("h100", limited)]);
    world.team("ads", Some("low"), &[("h100", own(16)), ("a100", own(4))]);
    world.team("bio", Some("low"), &[("h100", own(8)), ("a100", own(4))]);
    world.team("car", Some("top"), &[("h100", own(16))]);
    world.team("dev", None, &[("h100", own(12)), ("a100", own(0))]);
    world
}

fn act(world: &mut World, action: &Action) {
    let pick = |world: &World, n: usize| {
        let jobs: Vec<_> = world.state.jobs.keys().copied().collect();
        (!jobs.is_empty()).then(|| jobs[n % jobs.len()])
    };
    // Refusals are answers, too: they change nothing.
    match action {
        Action::Submit(spec, after) => {
            let mut spec = JobSpec::clone(spec);
            let ever = world.state.counts.submitted;
            if ever % 5 == 4 {
                // The only nodes for notebooks have these.
                (spec.kind, spec.flavours) = (JobKind::Notebook, vec!["h100".into()]);
                spec.min_pods = None;
            }
            let named = after.iter().filter(|_| ever > 0);
            let named = named.map(|&(n, wants)| (JobId(ever - n % ever), wants));
            let named: BTreeMap<JobId, Wants> = named.collect();
            let after = named.into_iter();
            spec.after = after.map(|(on, wants)| Dependency { on, wants }).collect();
            let command = Command::Submit {
                owner: if ever.is_multiple_of(3) { "bob" } else { "ada" }.into(),
                spec: spec.into(),
            };
            if let Err(refusal) = world.command(command) {
                let is_limit =
                    matches!(&refusal, Refusal::Invalid { field, .. } if field == "team");
                assert!(is_limit, "{refusal}");
            }
        }
        Action::Cycle => drop(world.cycle()),
        Action::Report(job, report) => {
            if let Some(job) = pick(world, *job) {
                drop(world.report(job, report.clone()));
            }
        }
        Action::Advance(job) => {
            if let Some(job) = pick(world, *job) {
                advance(world, job);
            }
        }
        Action::Cancel(job) => {
            if let Some(job) = pick(world, *job) {
                drop(world.command(Command::Cancel {
                    job,
                    by: "ada".into(),
                    why: None,
                }));
            }
        }
        // One of the two with A100 is no spare: what asks for both could never run.
        Action::Health(8.., Health::Spare) => {}
        Action::Health(node, health) => world.health(*node, *health),
        Action::Silence(node, what) => {
            let (node, since) = (NodeId(*node), world.now);
            drop(world.command(match what {
                0 => Command::Silent { node, since },
                1 => Command::Heard { node },
                _ => Command::Repaired {
                    node,
                    why: "mended".into(),
                },
            }));
        }
        Action::Pass(minutes) => drop(world.pass(Millis::minutes(*minutes))),
        Action::Nominal(team, nominal) => {
            let mut team = world.state.teams[&TEAMS[*team].into()].clone();
            team.quotas.entry("h100".into()).or_default().nominal = MilliGpu::gpus(*nominal);
            world.set(Configure::Team(team));
        }
        Action::Answer(claim, what) => answer(world, *claim, *what),
        Action::Mode(mode) => {
            let mut cohort = world.state.cohorts[&"low".into()].clone();
            cohort.reclaim = *mode;
            world.set(Configure::Cohort(cohort));
        }
        Action::Within(within_team) => {
            let policy = Policy {
                within_team: *within_team,
                ..world.state.policy.clone()
            };
            world.set(Configure::Policy(policy));
        }
        Action::Limit(whose, limits) => match TEAMS.get(*whose) {
            Some(team) => {
                let mut team = world.state.teams[&(*team).into()].clone();
                match team.limits == Limits::default() {
                    true => team.limits = *limits,
                    false => team.person_limits = *limits,
                }
                world.set(Configure::Team(team));
            }
            None => {
                let person_limits = *limits;
                let policy = world.state.policy.clone();
                world.set(Configure::Policy(Policy {
                    person_limits,
                    ..policy
                }));
            }
        },
        Action::Hold(what, mode) => drop(world.hold(scope(world, *what), *mode)),
        Action::Release(what) => {
            let holds: Vec<_> = held(world).collect();
            if !holds.is_empty() {
                let scope = holds[what % holds.len()].scope.clone();
                world.release(scope).expect("it is held");
            }
        }
        Action::Suspend(job) | Action::Resume(job) => {
            let jobs = world.state.jobs.values();
            let jobs = jobs.filter(|job| job.spec.kind == JobKind::Notebook);
            let jobs: Vec<_> = jobs.map(|job| job.id).collect();
            if !jobs.is_empty() {
                let job = jobs[job % jobs.len()];
                drop(match action {
                    Action::Suspend(_) => world.suspend(job),
                    _ => world.resume(job),
                });
            }
        }
        Action::Crash => crash(world),
    }
}

/// Something that may be held.
fn scope(world: &World, n: usize) -> HoldScope {
    let jobs: Vec<_> = world.state.jobs.keys().copied().collect();
    let part = n / 8;
    let domain = |level: &str, domain: &str| HoldScope::Domain {
        level: level.into(),
        domain: domain.into(),
    };
    match n % 8 {
        0..=2 if !jobs.is_empty() => HoldScope::Job {
            job: jobs[part * 7 % jobs.len()],
        },
        3 => HoldScope::Team {
            team: TEAMS[part % TEAMS.len()].into(),
        },
        4 => HoldScope::Cohort {
            cohort: ["top", "low"][part % 2].into(),
        },
        5 => domain("rack", ["b0-r0", "b0-r1", "b1-r0", "b1-r1"][part % 4]),
        6 => domain("block", ["b0", "b1", "c0"][part % 3]),
        _ => HoldScope::Node {
            node: NodeId(part as u32),
        },
    }
}

fn held(world: &World) -> impl Iterator<Item = &Hold> {
    let of_jobs = world.state.jobs.values();
    let of_jobs = of_jobs.filter_map(|job| job.hold.as_ref());
    of_jobs.chain(&world.state.holds)
}

fn answer(world: &mut World, claim: usize, what: u32) {
    let claims: Vec<_> = world.state.claims.values().cloned().collect();
    if claims.is_empty() {
        return;
    }
    let claim = &claims[claim % claims.len()];
    let (id, by) = (claim.id, "bea".into());
    let command = match what {
        0 => Command::ApproveClaim {
            claim: id,
            by,
            seen: None,
        },
        1 => Command::DeclineClaim {
            claim: id,
            by,
            why: None,
        },
        2 => Command::DeferClaim { claim: id, by },
        _ => Command::ProposeVictims {
            claim: id,
            by,
            victims: world.state.jobs.keys().copied().collect(),
        },
    };
    drop(world.command(command));
}

fn advance(world: &mut World, job: JobId) {
    let of_job = &world.state.jobs[&job];
    let report = match of_job.phase {
        _ if of_job.stop.is_some() => Report::Exited,
        Phase::Queued => return,
        Phase::Admitted => Report::Bound,
        Phase::Starting => Report::Started,
        Phase::Running if sheds(of_job) => Report::Shrunk,
        Phase::Running | Phase::Reclaiming if job.0.is_multiple_of(3) => {
            Report::CheckpointStarted {
                progress: Millis(world.now.0),
            }
        }
        Phase::Running if of_job.spec.kind == JobKind::Notebook => {
            Report::Idle { since: world.now }
        }
        Phase::Running | Phase::Reclaiming => Report::Succeeded,
        Phase::Recovering => Report::Exited,
    };
    drop(world.report(job, report));
}

/// True when pods of it are being stopped, and the others go on.
fn sheds(job: &Job) -> bool {
    let shed = job.allocation.as_ref().and_then(|it| it.shed);
    shed.is_some_and(|shed| shed.stopping.is_some())
}

/// What is known after a crash is the last snapshot and the journal behind it; both give what was there before.
fn crash(world: &mut World) {
    let (state, meter, _) = replay(&world.journal);
    assert_eq!(state, world.state, "the journal folds to the same state");
    assert_eq!(meter, world.meter, "and to the same open stretches");
    let text =
        serde_json::to_string(&(&world.state, &world.meter)).expect("a snapshot can be written");
    let (state, meter): (State, Meter) = serde_json::from_str(&text).expect("and read");
    assert_eq!(state, world.state, "a snapshot is the state");
    assert_eq!(meter, world.meter);
    (world.state, world.meter) = (state, meter);
}

fn replay(journal: &[Event]) -> (State, Meter, Vec<UsageLine>) {
    let (mut state, mut meter, mut lines) = (State::default(), Meter::default(), Vec::new());
    for event in journal {
        apply(&mut state, event);
        lines.extend(meter.observe(&state, event));
    }
    (state, meter, lines)
}

fn config() -> ProptestConfig {
    let seeds = FileFailurePersistence::Direct("tests/properties-regressions.txt");
    ProptestConfig {
        cases: 96,
        failure_persistence: Some(Box::new(seeds)),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_life_keeps_the_invariants_and_is_the_same_again(actions in prop::collection::vec(action(), 1..120)) {
        let mut world = small_fleet();
        actions.iter().for_each(|action| act(&mut world, action));
        crash(&mut world);
        let (_, _, lines) = replay(&world.journal);
        prop_assert_eq!(lines, world.lines);
        prop_assert!(world.journal.is_sorted_by_key(|event| event.at), "time runs forward");
    }

    #[test]
    fn the_clock_is_never_due_for_ever(actions in prop::collection::vec(action(), 1..80)) {
        let mut world = small_fleet();
        actions.iter().for_each(|action| act(&mut world, action));
        for _ in 0..8 {
            let due = next_due(&world.state).expect("there is always a next hour");
            world.now = world.now.max(due);
            let events = world.pass(Millis(0));
            prop_assert!(!events.is_empty(), "something was due at {due:?}");
            prop_assert!(next_due(&world.state) > Some(world.now), "and is done");
        }
    }

    #[test]
    fn lines_add_up_to_what_was_held(actions in prop::collection::vec(action(), 1..120)) {
        let mut world = small_fleet();
        actions.iter().for_each(|action| act(&mut world, action));
        check_lines(&world);
    }

    #[test]
    fn what_came_first_of_nodes_and_teams_does_not_change_the_plan(actions in prop::collection::vec(action(), 1..80)) {
        let mut world = small_fleet();
        actions.iter().for_each(|action| act(&mut world, action));
        let (state, _, _) = replay(&turned::permuted(&world.journal, TEAMS.len()));
        let plans = [plan(&world.state, world.now), plan(&state, world.now)];
        prop_assert_eq!(serde_json::to_string(&plans[0]).unwrap(), serde_json::to_string(&plans[1]).unwrap());
    }

    #[test]
    fn a_plan_that_stands_can_be_carried_out_later(
        actions in prop::collection::vec(action(), 1..80),
        meanwhile in prop::collection::vec(door(), 0..6),
    ) {
        let mut world = small_fleet();
        actions.iter().for_each(|action| act(&mut world, action));
        let (base, begun) = (world.state.clone(), world.journal.len());
        let plan = plan(&base, world.now);
        meanwhile.iter().for_each(|action| act(&mut world, action));
        let since = world.journal[begun..].iter().map(|event| &event.fact);
        if plan.stands(&base, since) {
            plan.events.iter().for_each(|event| world.take(event));
            // Nothing of it was lost on a state that has moved on.
            let starts = |event: &Event| match &event.fact {
                Fact::JobAdmitted { job, attempt, .. } => Some((*job, *attempt)),
                _ => None,
            };
            for (job, attempt) in plan.events.iter().filter_map(starts) {
                let job = &world.state.jobs[&job];
                prop_assert!(job.attempt == attempt && job.allocation.is_some());
            }
        } else {
            prop_assert!(!meanwhile.is_empty());
        }
    }

    #[test]
    fn how_the_state_is_stored_does_not_change_the_plan(actions in prop::collection::vec(action(), 1..80)) {
        let mut world = small_fleet();
        actions.iter().for_each(|action| act(&mut world, action));
        let stored = serde_json::to_value(&world.state).expect("a state can be written");
        let mut turned = String::new();
        turned::write_turned(&stored, &mut turned);
        let state: State = serde_json::from_str(&turned).expect("and read, whatever comes first in it");
        prop_assert_eq!(&state, &world.state);
        let plans = [plan(&world.state, world.now), plan(&state, world.now)];
        prop_assert_eq!(serde_json::to_string(&plans[0]).unwrap(), serde_json::to_string(&plans[1]).unwrap());
    }
}

/// States in which every reason is tried.
const STATES: u32 = 1_000;

#[test]
fn reasons_are_true_of_every_waiting_job_in_a_thousand_states() {
    let seeds = FileFailurePersistence::Direct("tests/properties-regressions.txt");
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: STATES,
        failure_persistence: Some(Box::new(seeds)),
        ..ProptestConfig::default()
    });
    let (tried, alone) = (Cell::new(0_u32), Cell::new(0_u32));
    let lives = prop::collection::vec(action(), 1..80);
    let done = runner.run(&lives, |actions| {
        let mut world = small_fleet();
        actions.iter().for_each(|action| act(&mut world, action));
        let plan = world.cycle();
        let again = scheduler::plan(&world.state, world.now);
        // A gang that seeks nodes for those that it lost takes what is lifted for somebody else before anybody that waits, and
        // seeks what is held for it anew after every start.
        let settled = world.state.recovering.is_empty();
        if !settled || claims_from_behind_its_head(&world, &plan, &again) {
            return Ok(());
        }
        prop_assert_eq!(
            again.events,
            vec![],
            "a cycle leaves nothing that could start or be claimed"
        );
        prop_assert_eq!(&again.waiting, &plan.waiting, "and says the same again");
        for waiting in &plan.waiting {
            check_reason(&world, waiting);
            let told = check_no_less_would_do(&world, waiting.job);
            tried.set(tried.get() + 1);
            alone.set(alone.get() + u32::from(told));
        }
        Ok(())
    });
    done.unwrap_or_else(|found| panic!("{found}"));
    let (tried, alone) = (tried.get(), alone.get());
    assert!(
        tried > 2 * STATES && alone > STATES,
        "{tried} reasons tried, {alone} alone in the queue"
    );
}
