//! Planned starts: kept, whatever starts behind them; and the bound that follows for a big gang behind small jobs.

mod world;

use proptest::prelude::*;
use scheduler::*;
use std::collections::BTreeMap;
use world::*;

/// Starts what a cycle admitted.
fn cycle_and_run(world: &mut World) -> Plan {
    let plan = world.cycle();
    for event in &plan.events {
        if let Some(job) = event.fact.job() {
            world.run(job);
        }
    }
    plan
}

/// Ends everything that has reached its limit, as its own success.
fn end_what_is_over(world: &mut World) {
    let over: Vec<JobId> = world
        .state
        .jobs
        .values()
        .filter(|job| end_of(job, world.now).is_some_and(|end| end <= world.now))
        .map(|job| job.id)
        .collect();
    for job in over {
        world.report(job, Report::Succeeded).expect("it runs");
    }
}

/// When a job is over by its limit: from its start, or from now if it has not come up.
fn end_of(job: &Job, now: Millis) -> Option<Millis> {
    let allocation = job.allocation.as_ref()?;
    let left = job.spec.time_limit?.since(job.ran);
    Some(allocation.started.unwrap_or(now) + left)
}

fn limited(spec: JobSpec, minutes: u64) -> JobSpec {
    JobSpec {
        time_limit: Some(Millis::minutes(minutes)),
        ..spec
    }
}

/// The bound: what ran when the gang came in has reached its limit, and one step of this test. 4,096 GPUs are full of
/// one-node jobs of an hour each, more than can run come in every ten minutes for hours, from teams with more quota; the gang
/// needs four whole blocks and never sees one free by chance.
#[test]
fn case_1_a_gang_of_1024_gpus_behind_an_endless_stream_of_small_jobs_starts_within_their_longest_limit()
 {
    const LIMIT: u64 = 60;
    const STEP: u64 = 10;
    let mut world = World::grid(16, 4, 8).without_claims();
    world.team("big", None, &[("h100", own(1_024))]);
    for team in ["ads", "bio", "car"] {
        world.team(team, None, &[("h100", own(2_048))]);
    }
    let stream = |world: &mut World| {
        for n in 0..100 {
            let team = ["ads", "bio", "car"][n % 3];
            world.submit(limited(gang(team, 1, 8), LIMIT));
        }
    };
    for _ in 0..8 {
        stream(&mut world);
        cycle_and_run(&mut world);
        world.now += Millis::minutes(STEP);
        end_what_is_over(&mut world);
    }
    stream(&mut world);
    cycle_and_run(&mut world);
    let spec = shaped(
        gang("big", 128, 8),
        TopologyMode::Required,
        "block",
        Some(32),
    );
    let gang = world.submit(limited(spec, 600));
    let came_in = world.now;
    let mut promised = None;
    while world.phase(gang) == Some(Phase::Queued) {
        stream(&mut world);
        let plan = cycle_and_run(&mut world);
        let waiting = plan.waiting.iter().find(|waiting| waiting.job == gang);
        if let Some(planned) = waiting.and_then(|waiting| waiting.planned.as_ref()) {
            let at = planned.at.expect("everything has a limit");
            assert!(
                promised.is_none_or(|before| at <= before),
                "a promise is kept"
            );
            promised = Some(at);
        }
        assert!(
            world.now <= came_in + Millis::minutes(LIMIT + STEP),
            "it should have started"
        );
        world.now += Millis::minutes(STEP);
        end_what_is_over(&mut world);
    }
    let promised = promised.expect("it had a planned start");
    assert!(promised <= came_in + Millis::minutes(LIMIT));
}

/// One request: team, pods, GPUs a pod, minutes of its limit, a block asked for.
type Ask = (usize, u32, u64, Option<u64>, Option<bool>);

const TEAMS: [&str; 3] = ["ads", "bio", "dev"];

fn asks(most: usize) -> impl Strategy<Value = Vec<Ask>> {
    let gpus = prop_oneof![Just(1), Just(2), Just(4), Just(8)];
    let limit = prop::option::weighted(0.85, 1..200_u64);
    let block = prop::option::of(any::<bool>());
    prop::collection::vec((0..TEAMS.len(), 1..5_u32, gpus, limit, block), 1..most)
}

fn spec((team, pods, gpus, limit, block): Ask) -> JobSpec {
    let spec = JobSpec {
        time_limit: limit.map(Millis::minutes),
        ..gang(TEAMS[team], pods, gpus)
    };
    match block {
        Some(true) => shaped(spec, TopologyMode::Required, "block", None),
        Some(false) => shaped(spec, TopologyMode::Required, "block", Some(1)),
        None => spec,
    }
}

/// Two blocks of three nodes; two teams that lend to each other, one alone. What runs is up, some of it for a while.
fn busy(running: &[Ask], waiting: &[Ask], passes: u64) -> World {
    let mut world = World::grid(2, 1, 3).without_claims();
    world.cohort("c", None, &[("h100", own(4))]);
    world.team("ads", Some("c"), &[("h100", own(16))]);
    world.team("bio", Some("c"), &[("h100", own(8))]);
    world.team("dev", None, &[("h100", own(24))]);
    for (index, &ask) in running.iter().enumerate() {
        world.submit(spec(ask));
        if index % 3 == 2 {
            cycle_and_run(&mut world);
            world.now += Millis::minutes(passes);
            end_what_is_over(&mut world);
        }
    }
    cycle_and_run(&mut world);
    for &ask in waiting {
        world.submit(spec(ask));
    }
    world
}

/// The state at a moment, if everything runs to its limit and every other planned start has come true by then.
fn as_planned(world: &World, plan: &Plan, at: Millis, but: JobId) -> State {
    let mut state = world.state.clone();
    let ended = state.jobs.values().filter(|job| {
        let end = end_of(job, world.now);
        end.is_some_and(|end| end <= at)
    });
    let ended: Vec<JobId> = ended.map(|job| job.id).collect();
    for job in ended {
        let fact = Fact::JobEnded {
            job,
            end: End::Succeeded,
            cause: None,
        };
        apply(&mut state, &Event { at, fact });
    }
    for waiting in plan.waiting.iter().filter(|waiting| waiting.job != but) {
        let Some(PlannedStart {
            at: Some(start),
            placement,
        }) = &waiting.planned
        else {
            continue;
        };
        let limit = state.jobs[&waiting.job].spec.time_limit;
        let over = limit.is_some_and(|limit| *start + limit <= at);
        if *start <= at && !over {
            let fact = Fact::JobAdmitted {
                job: waiting.job,
                attempt: 1,
                placement: placement.clone(),
            };
            apply(&mut state, &Event { at, fact });
        }
    }
    if let Err(broken) = invariants::check(&state) {
        panic!("planned starts do not fit together: {broken}");
    }
    state.queue.retain(|turn| turn.2 == but);
    state
}

fn planned(plan: &Plan) -> BTreeMap<JobId, Millis> {
    let all = plan.waiting.iter();
    all.filter_map(|waiting| Some((waiting.job, waiting.planned.as_ref()?.at?)))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_planned_start_comes_true_if_all_runs_to_its_limit(running in asks(12), waiting in asks(10), passes in 0..40_u64) {
        let mut world = busy(&running, &waiting, passes);
        let plan = world.cycle();
        for (job, at) in planned(&plan) {
            let state = as_planned(&world, &plan, at, job);
            let then = scheduler::plan(&state, at);
            let starts = then.events.iter().any(|event| event.fact.job() == Some(job));
            prop_assert!(starts, "job {} was promised a start at {:?} and lacks {:?}", job, at, then.waiting);
        }
    }

    #[test]
    fn a_planned_start_is_no_later_with_a_backfilled_job_than_without_it(running in asks(12), waiting in asks(10), passes in 0..40_u64) {
        let world = busy(&running, &waiting, passes);
        let plan = plan(&world.state, world.now);
        let first = |plan: &Plan| plan.waiting.iter().find_map(|waiting| Some((waiting.job, waiting.planned.as_ref()?.at?)));
        let Some((job, at)) = first(&plan) else {
            return Ok(());
        };
        for event in &plan.events {
            let mut without = world.state.clone();
            without.queue.retain(|turn| Some(turn.2) != event.fact.job());
            let without = scheduler::plan(&without, world.now);
            let others = plan.events.iter().filter(|other| *other != event);
            // In order before it, or it made room for yet others: those are not backfilled behind it alone.
            let alone = others.eq(without.events.iter());
            if alone && event.fact.job() > Some(job) && first(&without).is_some_and(|(other, _)| other == job) {
                let before = first(&without).map(|(_, at)| at);
                let same_team = |id: JobId| world.state.jobs[&id].spec.team == world.state.jobs[&job].spec.team;
                if event.fact.job().is_some_and(same_team) {
                    prop_assert!(Some(at) <= before, "job {} is moved from {:?} to {:?} by {:?}", job, before, at, event);
                }
            }
        }
    }

    #[test]
    fn no_planned_start_is_later_with_all_that_were_backfilled_than_without_them(running in asks(12), waiting in asks(10), passes in 0..40_u64) {
        // One team: its jobs stand in the order of their numbers, whatever starts.
        let alone = |asks: &[Ask]| -> Vec<Ask> { asks.iter().map(|&(_, pods, gpus, limit, block)| (2, pods, gpus, limit, block)).collect() };
        let world = busy(&alone(&running), &alone(&waiting), passes);
        let with = plan(&world.state, world.now);
        for (job, at) in planned(&with) {
            let mut state = world.state.clone();
            state.queue.retain(|turn| turn.2 <= job || !with.events.iter().any(|event| event.fact.job() == Some(turn.2)));
            let without = planned(&plan(&state, world.now));
            prop_assert!(without.get(&job).is_none_or(|before| at <= *before), "job {} is moved from {:?} to {:?}", job, without.get(&job), at);
        }
    }

    #[test]
    fn what_waits_behind_a_planned_start_would_make_it_later_or_impossible(running in asks(12), waiting in asks(10), passes in 0..40_u64) {
        let mut world = busy(&running, &waiting, passes);
        let plan = world.cycle();
        for waiting in &plan.waiting {
            let Blocker::BehindReservation { job, planned } = waiting.reason.dominant else {
                continue;
            };
            let ahead = plan.waiting.iter().position(|other| other.job == job);
            let own = plan.waiting.iter().position(|other| other.job == waiting.job);
            prop_assert!(ahead < own, "the one that holds is ahead");
            let told = plan.waiting[ahead.unwrap_or_default()].planned.as_ref().map(|planned| planned.at);
            prop_assert_eq!(told, Some(planned), "and is told the same time");
            let over = world.state.jobs[&waiting.job].spec.time_limit.map(|limit| world.now + limit);
            prop_assert!(planned.is_none() || over > planned || over.is_none(), "it would not be over by then");
        }
    }
}
