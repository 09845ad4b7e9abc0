//! Random lives of a small fleet: invariants after every event, the same state again from the journal and from a
//! snapshot, the same plan whatever came first, and lines that add up to what was held.

mod world;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use scheduler::*;
use std::collections::BTreeMap;
use world::*;

/// One thing that happens. Numbers pick among what is there.
#[derive(Clone, Debug)]
enum Action {
    Submit(Box<JobSpec>),
    Cycle,
    /// Whatever an executor may say, in place or not.
    Report(usize, Report),
    /// The likely next word about a gang.
    Advance(usize),
    Cancel(usize),
    Health(u32, Health),
    Pass(u64),
    Nominal(usize, u64),
    /// Somebody answers a claim.
    Answer(usize, u32),
    /// The cohort's claims are put to a person, or not.
    Mode(ReclaimMode),
    Within(WithinTeam),
    /// The process dies and comes back.
    Crash,
}

const TEAMS: [&str; 4] = ["ads", "bio", "car", "dev"];

fn spec() -> impl Strategy<Value = JobSpec> {
    let gpus = prop_oneof![
        Just(250),
        Just(500),
        Just(1_000),
        Just(4_000),
        Just(8_000),
        Just(0)
    ];
    let flavours = prop_oneof![
        Just(vec!["h100"]),
        Just(vec!["a100"]),
        Just(vec!["h100", "a100"])
    ];
    let mode = prop_oneof![
        Just(TopologyMode::Required),
        Just(TopologyMode::Preferred),
        Just(TopologyMode::Unconstrained)
    ];
    let level = prop_oneof![Just("block"), Just("rack"), Just("node")];
    let priority = prop_oneof![
        Just(Priority::Low),
        Just(Priority::Normal),
        Just(Priority::High)
    ];
    let segment = prop::option::of(1..4_u32);
    let limit = prop::option::of(10..120_u64);
    let save = (5..90_u64, 0..400_u64, any::<bool>());
    let save = save.prop_map(|(period, save, on_demand)| CheckpointContract {
        period: Millis::minutes(period),
        save: Millis::seconds(save),
        on_demand,
    });
    let more = (0..3_u32, 0..2_u64, limit, prop::option::of(save), 0..5_u32);
    (
        0..TEAMS.len(),
        1..5_u32,
        gpus,
        flavours,
        (mode, level, segment),
        priority,
        more,
    )
        .prop_map(
            |(
                team,
                pods,
                gpus,
                flavours,
                (mode, level, segment),
                priority,
                (budget, cpu, limit, checkpoint, fixed),
            )| {
                let pods = segment.map_or(pods, |segment| pods * segment);
                let spec = JobSpec {
                    gpus_per_pod: MilliGpu(gpus),
                    flavours: flavours.into_iter().map(FlavourId::from).collect(),
                    priority,
                    restart_budget: budget,
                    cpu_milli_per_pod: cpu * 30_000,
                    time_limit: limit.map(Millis::minutes),
                    checkpoint,
                    preemptible: fixed > 0,
                    ..gang(TEAMS[team], pods, 0)
                };
                shaped(spec, mode, level, segment)
            },
        )
}

fn report() -> impl Strategy<Value = Report> {
    prop_oneof![
        Just(Report::Bound),
        Just(Report::Started),
        Just(Report::CheckpointStarted),
        (0..100_u64).prop_map(|minutes| Report::CheckpointSaved {
            progress: Millis::minutes(minutes),
            bytes: 1
        }),
        Just(Report::Succeeded),
        Just(Report::Failed { code: 1 }),
        Just(Report::Exited),
    ]
}

fn health() -> impl Strategy<Value = Health> {
    prop_oneof![3 => Just(Health::Ready), 1 => Just(Health::Cordoned), 2 => Just(Health::Down)]
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => spec().prop_map(|spec| Action::Submit(Box::new(spec))),
        4 => Just(Action::Cycle),
        2 => (0..64_usize, report()).prop_map(|(job, report)| Action::Report(job, report)),
        8 => (0..64_usize).prop_map(Action::Advance),
        1 => (0..64_usize).prop_map(Action::Cancel),
        1 => (0..10_u32, health()).prop_map(|(node, health)| Action::Health(node, health)),
        4 => (1..90_u64).prop_map(Action::Pass),
        1 => (0..TEAMS.len(), 0..24_u64).prop_map(|(team, nominal)| Action::Nominal(team, nominal)),
        1 => Just(Action::Crash),
        2 => (0..8_usize, 0..4_u32).prop_map(|(claim, what)| Action::Answer(claim, what)),
        1 => prop_oneof![Just(ReclaimMode::Auto), Just(ReclaimMode::Approval)].prop_map(Action::Mode),
        1 => prop_oneof![Just(WithinTeam::Never), Just(WithinTeam::LowerPriority)].prop_map(Action::Within),
    ]
}

/// Eight nodes in two blocks, two of another flavour beside them; two teams in an inner cohort, one above, one alone.
fn small_fleet() -> World {
    let mut world = World::grid(2, 2, 2);
    world.node("a0", "a100", 4, &["c0", "c0-r0"]);
    world.node("a1", "a100", 4, &["c0", "c0-r0"]);
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
        Action::Submit(spec) => drop(world.submit(JobSpec::clone(spec))),
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
        Action::Health(node, health) => world.health(*node, *health),
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
        Action::Crash => crash(world),
    }
}

fn answer(world: &mut World, claim: usize, what: u32) {
    let claims: Vec<_> = world.state.claims.values().cloned().collect();
    if claims.is_empty() {
        return;
    }
    let claim = &claims[claim % claims.len()];
    let (id, by) = (claim.id, "bea".into());
    let command = match what {
        0 => Command::ApproveClaim { claim: id, by },
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
        Phase::Running | Phase::Reclaiming if job.0.is_multiple_of(3) => Report::CheckpointStarted,
        Phase::Running | Phase::Reclaiming => Report::Succeeded,
        Phase::Recovering => Report::Exited,
    };
    drop(world.report(job, report));
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
        let (state, _, _) = replay(&permuted(&world.journal));
        let plans = [plan(&world.state, world.now), plan(&state, world.now)];
        prop_assert_eq!(serde_json::to_string(&plans[0]).unwrap(), serde_json::to_string(&plans[1]).unwrap());
    }

    #[test]
    fn reasons_are_true(actions in prop::collection::vec(action(), 1..80)) {
        let mut world = small_fleet();
        actions.iter().for_each(|action| act(&mut world, action));
        let plan = world.cycle();
        for waiting in &plan.waiting {
            check_reason(&world, waiting);
        }
        let again = scheduler::plan(&world.state, world.now);
        prop_assert_eq!(again.events, vec![], "a cycle leaves nothing that could start");
        prop_assert_eq!(again.waiting, plan.waiting, "and says the same again");
    }
}

/// The same journal with its first nodes and its first teams turned round.
fn permuted(journal: &[Event]) -> Vec<Event> {
    let mut journal = journal.to_vec();
    let nodes = |event: &Event| matches!(event.fact, Fact::NodeSet { .. });
    let teams = |event: &Event| matches!(event.fact, Fact::TeamSet { .. });
    let first_node = journal.iter().position(nodes).expect("there are nodes");
    let first_team = journal.iter().position(teams).expect("there are teams");
    journal[first_node..first_node + 10].reverse();
    journal[first_team..first_team + TEAMS.len()].reverse();
    journal
}

/// Lifts all of a reason's blockers, and then all but each one of them.
fn check_reason(world: &World, waiting: &Waiting) {
    let reason = &waiting.reason;
    assert_eq!(reason.all.first(), Some(&reason.dominant));
    assert!(
        reason.all.iter().is_sorted_by_key(precedence),
        "{:?}",
        reason.all
    );
    assert_eq!(waiting.position.is_none(), reason.never());
    if reason.never() {
        return;
    }
    assert!(
        starts_without(world, waiting.job, &reason.all, &[]),
        "lifting all of {:?} starts it",
        reason.all
    );
    for left in &reason.all {
        let others: Vec<_> = reason
            .all
            .iter()
            .filter(|blocker| *blocker != left)
            .cloned()
            .collect();
        let ahead = match left {
            // What is lifted besides may help the job ahead, too, or make this one no borrower.
            Blocker::BehindReservation { .. } if !others.is_empty() => continue,
            // Which flavour the job ahead closes may hang on those before it: all of them stay.
            Blocker::BehindReservation { .. } => {
                world.state.queue.iter().map(|turn| turn.2).collect()
            }
            _ => Vec::new(),
        };
        assert!(
            !starts_without(world, waiting.job, &others, &ahead),
            "{left:?} is no blocker"
        );
    }
}

fn precedence(blocker: &Blocker) -> u8 {
    match blocker {
        Blocker::Misconfigured { .. } => 0,
        Blocker::NoMatchingFlavour { .. } => 1,
        Blocker::ExceedsMaximum { .. } => 2,
        Blocker::BackOff { .. } => 3,
        Blocker::Quota { .. } => 4,
        Blocker::BehindReservation { .. } => 5,
        Blocker::Room { .. } => 6,
        Blocker::Claim { .. } => 7,
    }
}

/// True when the job, with only `ahead` before it in the queue, starts once the blockers are lifted: quota by owning
/// more, room by new nodes.
fn starts_without(world: &World, id: JobId, lifted: &[Blocker], ahead: &[JobId]) -> bool {
    let mut state = world.state.clone();
    state
        .queue
        .retain(|turn| turn.2 == id || ahead.contains(&turn.2));
    let team = world.state.jobs[&id].spec.team.clone();
    for blocker in lifted {
        match blocker {
            Blocker::Quota { flavour, .. } => {
                let quotas = &mut state.teams.get_mut(&team).expect("its team").quotas;
                quotas.get_mut(flavour).expect("its quota").nominal += MilliGpu::gpus(1_000);
            }
            Blocker::Room { flavour, .. } => add_block(&mut state, flavour),
            Blocker::BackOff { .. } => state.jobs.get_mut(&id).expect("the job").not_before = None,
            // Those whom it names are gone, and their jobs with them.
            Blocker::Claim { leaving, .. } => leaving.iter().for_each(|job| end(&mut state, *job)),
            // The job ahead is not in the queue.
            Blocker::BehindReservation { .. } => {}
            Blocker::Misconfigured { .. }
            | Blocker::NoMatchingFlavour { .. }
            | Blocker::ExceedsMaximum { .. } => {
                panic!("cannot lift {blocker:?}")
            }
        }
    }
    let started = |event: &Event| matches!(event.fact, Fact::JobAdmitted { job, .. } if job == id);
    plan(&state, world.now).events.iter().any(started)
}

fn end(state: &mut State, job: JobId) {
    let fact = Fact::JobEnded {
        job,
        end: End::Cancelled,
        cause: None,
    };
    apply(state, &Event { at: state.at, fact });
}

fn add_block(state: &mut State, flavour: &FlavourId) {
    for id in 100..124 {
        let node = Node {
            id: NodeId(id),
            name: format!("new-{id}").into(),
            flavour: Some(flavour.clone()),
            domains: vec!["new".into(), "new-r0".into()],
            cards: 8,
            cpu_milli: 960_000,
            memory_mib: 1_000_000,
            health: Health::Ready,
            pool: Pool::Batch,
        };
        apply(
            state,
            &Event {
                at: state.at,
                fact: Fact::NodeSet { node },
            },
        );
    }
}

/// When each attempt was bound, and when its exit was confirmed.
fn held(journal: &[Event], now: Millis) -> BTreeMap<(JobId, u32), (Millis, Millis)> {
    let (mut open, mut held) = (BTreeMap::new(), BTreeMap::new());
    for event in journal {
        match &event.fact {
            Fact::GangBound { job, attempt } => drop(open.insert(*job, (*attempt, event.at))),
            Fact::JobRequeued { job, .. } | Fact::JobEnded { job, .. } => {
                if let Some((attempt, from)) = open.remove(job) {
                    held.insert((*job, attempt), (from, event.at));
                }
            }
            _ => {}
        }
    }
    held.extend(
        open.into_iter()
            .map(|(job, (attempt, from))| ((job, attempt), (from, now))),
    );
    held
}

fn check_lines(world: &World) {
    let specs: BTreeMap<JobId, MilliGpu> = world
        .journal
        .iter()
        .filter_map(|event| match &event.fact {
            Fact::JobSubmitted { job, spec, .. } => Some((*job, spec.gpus())),
            _ => None,
        })
        .collect();
    let mut by_attempt = BTreeMap::<(JobId, u32), Vec<UsageLine>>::new();
    for line in world
        .lines
        .iter()
        .cloned()
        .chain(world.meter.open_lines(world.now))
    {
        assert!(line.from < line.to, "no line is empty: {line:?}");
        assert!(
            line.to <= line.from.hour_floor() + Millis::HOUR,
            "no line spans an hour mark: {line:?}"
        );
        by_attempt
            .entry((line.job, line.attempt))
            .or_default()
            .push(line);
    }
    for ((job, attempt), (from, to)) in held(&world.journal, world.now) {
        let mut lines = by_attempt.remove(&(job, attempt)).unwrap_or_default();
        lines.sort_by_key(|line| (line.from, line.entitlement));
        // Own and borrowed are cut together, so the attempt is a row of stretches, each with all of its GPUs.
        let mut until = from;
        for stretch in lines.chunk_by(|a, b| a.from == b.from) {
            assert_eq!(
                stretch[0].from, until,
                "no gap and no overlap in attempt {attempt} of job {job}"
            );
            assert!(
                stretch
                    .iter()
                    .all(|line| line.to == stretch[0].to && line.phase == stretch[0].phase)
            );
            assert_eq!(
                stretch.iter().map(|line| line.gpus).sum::<MilliGpu>(),
                specs[&job]
            );
            until = stretch[0].to;
        }
        assert_eq!(
            until, to,
            "attempt {attempt} of job {job} is metered to its exit"
        );
    }
    assert!(
        by_attempt.is_empty(),
        "lines of what was never held: {by_attempt:?}"
    );
}
