//! Claims at full size, and against brute force.

mod world;

use proptest::prelude::*;
use scheduler::*;
use world::*;

fn saving(spec: JobSpec) -> JobSpec {
    JobSpec {
        checkpoint: Some(CheckpointContract {
            period: Millis::minutes(70),
            save: Millis::seconds(50),
            on_demand: true,
        }),
        ..spec
    }
}

fn in_one_block(team: &str) -> JobSpec {
    let gang = gang(team, 32, 8);
    saving(shaped(gang, TopologyMode::Required, "block", None))
}

fn gpu_time(gpus: u64, span: Millis) -> MilliGpuMs {
    MilliGpu::gpus(gpus).over(span)
}

/// Two blocks of 256 GPUs. One is used by its owner, the other is fraud-ml's, and borrowed by a job that saves every
/// 70 minutes. It has saved once, 40 minutes ago.
fn borrowed_block() -> (World, JobId) {
    let mut world = World::grid(2, 4, 8);
    world.cohort("risk", None, &[]);
    world.team("fraud-ml", Some("risk"), &[("h100", own(256))]);
    world.team("scoring", Some("risk"), &[("h100", own(256))]);
    world.team("guests", Some("risk"), &[("h100", own(0))]);
    let home = world.submit(in_one_block("scoring"));
    let guest = world.submit(in_one_block("guests"));
    world.cycle();
    world.pass(Millis::minutes(2));
    [home, guest].into_iter().for_each(|job| world.run(job));
    for job in [home, guest] {
        world.pass(Millis::minutes(70));
        world
            .report(job, saves(Millis::minutes(70)))
            .expect("it runs");
        world.pass(Millis::seconds(50));
        let saved = Report::CheckpointSaved {
            progress: Millis::minutes(70),
            bytes: 980_000_000_000,
        };
        world.report(job, saved).expect("it saves");
    }
    world.pass(Millis::minutes(40));
    (world, guest)
}

fn saves(progress: Millis) -> Report {
    Report::CheckpointStarted { progress }
}

#[test]
fn an_old_save_told_again_does_not_stop_a_victim_before_it_has_saved() {
    let (mut world, guest) = borrowed_block();
    world.submit(in_one_block("fraud-ml"));
    world.cycle();
    let again = Report::CheckpointSaved {
        progress: Millis::minutes(70),
        bytes: 980_000_000_000,
    };
    let refused = |world: &mut World| world.report(guest, again.clone());
    assert!(matches!(
        refused(&mut world),
        Err(Refusal::OutOfPlace { .. })
    ));
    world
        .report(guest, saves(Millis::minutes(110)))
        .expect("it was asked to save");
    let doubled = world.report(guest, saves(Millis::minutes(110)));
    assert!(matches!(doubled, Err(Refusal::OutOfPlace { .. })));
    assert!(matches!(
        refused(&mut world),
        Err(Refusal::OutOfPlace { .. })
    ));
    let saved = Report::CheckpointSaved {
        progress: Millis::minutes(110),
        bytes: 980_000_000_000,
    };
    let facts = world.report(guest, saved).expect("this one is new");
    let stops = |event: &Event| matches!(event.fact, Fact::StopRequested { .. });
    assert!(facts.iter().any(stops), "{facts:?}");
}

#[test]
fn a_yes_is_to_the_victims_that_were_seen() {
    let (mut world, guest) = borrowed_block();
    let mut cohort = world.state.cohorts[&"risk".into()].clone();
    cohort.reclaim = ReclaimMode::Approval;
    world.set(Configure::Cohort(cohort));
    world.submit(in_one_block("fraud-ml"));
    world.cycle();
    let claim = *world.state.claims.keys().next().expect("a request");
    let yes = |seen: Option<Vec<JobId>>| Command::ApproveClaim {
        claim,
        by: "admin".into(),
        seen,
    };
    let other = world.command(yes(Some(vec![JobId(guest.0 + 1)])));
    assert_eq!(other, Err(Refusal::VictimsChanged(claim)));
    let same = world
        .command(yes(Some(vec![guest])))
        .expect("these are the ones");
    assert!(matches!(same[0].fact, Fact::ClaimApproved { .. }));
}

#[test]
fn a_victim_that_is_said_to_be_bound_twice_is_billed_from_the_first_time() {
    let (mut world, guest) = borrowed_block();
    world.submit(in_one_block("fraud-ml"));
    world.cycle();
    let bound = |world: &World| {
        let allocation = world.state.jobs[&guest].allocation.as_ref();
        allocation.and_then(|allocation| allocation.bound)
    };
    let (first, again) = (bound(&world), world.report(guest, Report::Bound));
    assert!(
        matches!(again, Err(Refusal::OutOfPlace { .. })),
        "{again:?}"
    );
    assert_eq!(bound(&world), first);
}

#[test]
fn fraud_ml_gets_its_256_gpus_back_for_the_price_of_a_save() {
    let (mut world, guest) = borrowed_block();
    let mine = world.submit(in_one_block("fraud-ml"));
    let asked_at = world.now;
    world.cycle();
    let claim = world.state.claims.values().next().expect("a claim").clone();
    let victims: Vec<_> = claim.victims.iter().map(|victim| victim.job).collect();
    assert_eq!((victims, claim.taken()), (vec![guest], MilliGpu::gpus(256)));
    // Killed now, it loses 40 minutes and its launch of two; saved first, 50 s and the launch.
    let launch = Millis::minutes(2);
    assert_eq!(
        claim.price.now.lost,
        gpu_time(256, Millis::minutes(40) + launch)
    );
    assert_eq!(
        claim.price.after_save.lost,
        gpu_time(256, Millis::seconds(50) + launch)
    );
    // The next one by itself costs no more, and comes 29 min 10 s later.
    assert_eq!(claim.price.next_save.lost, claim.price.after_save.lost);
    assert_eq!(
        claim.price.after_save.by,
        Some(asked_at + Millis::seconds(50))
    );
    let next = asked_at + Millis::minutes(30);
    assert_eq!(claim.price.next_save.by, Some(next));
    assert_eq!(world.phase(guest), Some(Phase::Reclaiming));

    world
        .report(guest, saves(Millis::minutes(110)))
        .expect("it was asked to");
    world.pass(Millis::seconds(50));
    let saved = Report::CheckpointSaved {
        progress: Millis::minutes(110),
        bytes: 980_000_000_000,
    };
    world.report(guest, saved).expect("it saves");
    world.pass(Millis::seconds(10));
    world.report(guest, Report::Exited).expect("it was stopped");
    world.cycle();
    assert_eq!(world.phase(mine), Some(Phase::Admitted));
    assert_eq!(
        world.now.since(asked_at),
        Millis::seconds(60),
        "a minute after it asked"
    );
    let blocks: std::collections::BTreeSet<_> = world
        .nodes(mine)
        .into_iter()
        .map(|(node, _)| node[..2].to_owned())
        .collect();
    assert_eq!(blocks.len(), 1, "one whole block");
    assert_eq!(world.phase(guest), Some(Phase::Queued));
    assert_eq!(
        world.state.jobs[&guest]
            .checkpoint
            .map(|saved| saved.progress),
        Some(Millis::minutes(110))
    );
    let held_saving: MilliGpuMs = (world.lines.iter())
        .filter(|line| line.job == guest && line.phase == UsagePhase::Save)
        .map(UsageLine::held)
        .sum();
    assert_eq!(
        held_saving,
        gpu_time(256, Millis::seconds(100)),
        "both saves are on its bill"
    );
}

/// Nodes as blocks; running jobs as (save time in tens of seconds, thousandths of a GPU, priority, minutes that it runs).
type Small = (Vec<u32>, Vec<(u64, u64, Priority, u64)>);

fn small(gpus: impl Strategy<Value = u64>) -> impl Strategy<Value = Small> {
    let priority = prop_oneof![
        Just(Priority::Low),
        Just(Priority::Normal),
        Just(Priority::High)
    ];
    let nodes = prop::collection::vec(0..2_u32, 2..=4);
    let jobs = prop::collection::vec((0..90_u64, gpus, priority, 11..58_u64), 1..=5);
    (nodes, jobs)
}

/// Whole GPUs of a pod.
fn whole() -> impl Strategy<Value = u64> {
    (1..=8_u64).prop_map(|gpus| gpus * 1_000)
}

/// Whole ones and shares of one.
fn shares_too() -> impl Strategy<Value = u64> {
    prop_oneof![Just(250), Just(500), whole()]
}

/// The small cluster, full of guests who own nothing, and report no checkpoints.
fn full(small: &Small) -> World {
    full_of(small, |_| None)
}

fn full_of(small: &Small, save: impl Fn(u64) -> Option<CheckpointContract>) -> World {
    let mut world = World::bare(&["block", "node"]);
    for (index, block) in small.0.iter().enumerate() {
        world.node(&format!("n{index}"), "h100", 8, &[&format!("b{block}")]);
    }
    let gpus = small.0.len() as u64 * 8;
    world.cohort("c", None, &[]);
    world.team("owner", Some("c"), &[("h100", own(gpus))]);
    world.team("guest", Some("c"), &[("h100", own(0))]);
    let mut jobs = small.1.clone();
    jobs.sort_by_key(|job| std::cmp::Reverse(job.3));
    let mut ran = jobs.first().map_or(0, |job| job.3);
    for (tens, milli, priority, minutes) in jobs {
        world.pass(Millis::minutes(ran - minutes));
        ran = minutes;
        let job = world.submit(JobSpec {
            priority,
            gpus_per_pod: MilliGpu(milli),
            checkpoint: save(tens),
            ..gang("guest", 1, 0)
        });
        world.cycle();
        if world.phase(job) == Some(Phase::Admitted) {
            world.run(job);
        }
    }
    world.pass(Millis::minutes(ran));
    let waiting: Vec<_> = world.state.queue.iter().map(|turn| turn.2).collect();
    for job in waiting {
        let cancel = Command::Cancel {
            job,
            by: "ada".into(),
            why: None,
        };
        world.command(cancel).expect("it waits");
    }
    world
}

/// Whether the claimant starts at once when these have ended.
fn starts_without(world: &World, claimant: JobId, gone: &[JobId]) -> bool {
    let mut state = world.state.clone();
    for &job in gone {
        let fact = Fact::JobEnded {
            job,
            end: End::Cancelled,
            cause: None,
        };
        apply(
            &mut state,
            &Event {
                at: world.now,
                fact,
            },
        );
    }
    let started =
        |event: &Event| matches!(event.fact, Fact::JobAdmitted { job, .. } if job == claimant);
    let plan = plan(&state, world.now);
    plan.events.first().is_some_and(started)
}

/// The highest band, the loss, how many: what sets are compared by.
fn cost(world: &World, set: &[JobId]) -> (Option<Priority>, MilliGpuMs, usize) {
    let jobs = || set.iter().map(|job| &world.state.jobs[job]);
    let lost = jobs().map(|job| {
        let started = job
            .allocation
            .as_ref()
            .and_then(|allocation| allocation.started);
        job.spec
            .gpus()
            .over(world.now.since(started.unwrap_or(world.now)))
    });
    (
        jobs().map(|job| job.spec.priority).max(),
        lost.sum(),
        set.len(),
    )
}

/// Subsets of those that run with whose end the claimant starts at once.
fn sets_that_do(world: &World, claimant: JobId) -> Vec<Vec<JobId>> {
    let guests = world.state.jobs.values();
    let guests = guests.filter(|job| job.allocation.is_some());
    let running: Vec<JobId> = guests.map(|job| job.id).collect();
    let sets = (0..1_usize << running.len()).map(|mask| -> Vec<JobId> {
        let bits = (0..running.len()).filter(|bit| mask & (1 << bit) != 0);
        bits.map(|bit| running[bit]).collect()
    });
    sets.filter(|set| starts_without(world, claimant, set))
        .collect()
}

/// The claim that the next cycle makes, if it makes one.
fn made(world: &World) -> Option<Claim> {
    let facts = plan(&world.state, world.now).events;
    facts.iter().find_map(|event| match &event.fact {
        Fact::ClaimMade { claim, .. } => Some(Claim::clone(claim)),
        _ => None,
    })
}

/// What the owner asks: pods, thousandths of a GPU each, pods of a segment or none.
fn owners(pods: u32, milli: u64, segment: Option<u32>) -> JobSpec {
    let spec = JobSpec {
        gpus_per_pod: MilliGpu(milli),
        ..gang("owner", pods * segment.unwrap_or(1), 0)
    };
    match (pods, segment) {
        (1, None) => spec,
        _ => shaped(spec, TopologyMode::Required, "block", segment),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn of_shares_and_segments_too_no_cheaper_set_would_do(small in small(shares_too()), pods in 1..4_u32, milli in shares_too(), segment in prop::option::of(1..3_u32)) {
        let mut world = full(&small);
        let mine = world.submit(owners(pods, milli, segment));
        let enough = sets_that_do(&world, mine);
        let Some(claim) = made(&world) else {
            prop_assert!(enough.is_empty() || enough[0].is_empty(), "{:?} would do, and nobody was taken", enough);
            return Ok(());
        };
        let taken: Vec<JobId> = claim.victims.iter().map(|victim| victim.job).collect();
        prop_assert!(enough.contains(&taken), "{:?} does not do", taken);
        for left in &taken {
            let others: Vec<_> = taken.iter().copied().filter(|job| job != left).collect();
            prop_assert!(!enough.contains(&others), "{:?} could be given back of {:?}", left, taken);
        }
        let best = enough.iter().map(|set| cost(&world, set)).min();
        prop_assert_eq!(Some(cost(&world, &taken)), best, "{:?} was taken, of {:?}", taken, enough);
    }

    #[test]
    fn an_owners_claim_is_decided_in_the_next_cycle_and_starts_within_the_longest_grace_and_a_stop(small in small(shares_too()), pods in 1..4_u32, milli in shares_too(), segment in prop::option::of(1..3_u32)) {
        const STOP: Millis = Millis::seconds(30);
        // Each has its own save time, and none of them ever saves.
        let mut world = full_of(&small, |tens| (tens > 20).then_some(CheckpointContract {
            period: Millis::hours(2),
            save: Millis::seconds(tens * 10),
            on_demand: true,
        }));
        let mine = world.submit(owners(pods, milli, segment));
        let (asked, enough) = (world.now, sets_that_do(&world, mine));
        world.cycle();
        if enough.is_empty() {
            prop_assert!(world.state.claims.is_empty(), "nothing would do");
            return Ok(());
        }
        if enough[0].is_empty() {
            prop_assert_eq!(world.phase(mine), Some(Phase::Admitted));
            return Ok(());
        }
        let claim = world.state.claims.values().next().expect("free room and borrowers contain the shape").clone();
        prop_assert_eq!((claim.claimant, claim.stage, claim.at), (mine, Stage::Made, asked));
        let policy = &world.state.policy;
        prop_assert!(claim.until() <= asked + policy.grace_cap);
        let longest = claim.until().since(asked);
        world.pass(longest);
        world.pass(STOP);
        for victim in &claim.victims {
            world.report(victim.job, Report::Exited).expect("it was stopped at the end of its grace");
        }
        world.cycle();
        prop_assert_eq!(world.phase(mine), Some(Phase::Admitted));
        prop_assert_eq!(world.now.since(asked), longest + STOP);
        prop_assert!(world.state.claims.is_empty());
    }

    #[test]
    fn no_cheaper_set_would_do_and_nobody_could_be_given_back(small in small(whole()), pods in 1..4_u32, gpus in 1..9_u64) {
        let mut world = full(&small);
        let spec = gang("owner", pods, gpus);
        let spec = if pods > 1 { shaped(spec, TopologyMode::Required, "block", None) } else { spec };
        let mine = world.submit(spec);
        let enough = sets_that_do(&world, mine);
        let Some(claim) = made(&world) else {
            prop_assert!(enough.is_empty() || enough[0].is_empty(), "{enough:?} would do, and nobody was taken");
            return Ok(());
        };
        let taken: Vec<JobId> = claim.victims.iter().map(|victim| victim.job).collect();
        prop_assert!(enough.contains(&taken), "{taken:?} does not do");
        let best = enough.iter().map(|set| cost(&world, set)).min();
        prop_assert_eq!(Some(cost(&world, &taken)), best, "{:?} was taken, of {:?}", taken, enough);
        for left in &taken {
            let others: Vec<_> = taken.iter().copied().filter(|job| job != left).collect();
            prop_assert!(!enough.contains(&others), "{left:?} could be given back");
        }
    }
}
