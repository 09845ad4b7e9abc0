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
            .report(job, Report::CheckpointStarted)
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
        .report(guest, Report::CheckpointStarted)
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

/// Nodes as blocks; running jobs as (node, GPUs, priority, minutes that it runs).
type Small = (Vec<u32>, Vec<(usize, u64, Priority, u64)>);

fn small() -> impl Strategy<Value = Small> {
    let priority = prop_oneof![
        Just(Priority::Low),
        Just(Priority::Normal),
        Just(Priority::High)
    ];
    let nodes = prop::collection::vec(0..2_u32, 2..=4);
    let jobs = prop::collection::vec((0..4_usize, 1..=8_u64, priority, 11..58_u64), 1..=5);
    (nodes, jobs)
}

/// The small cluster, full of guests who own nothing.
fn full(small: &Small) -> World {
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
    for (_, gpus, priority, minutes) in jobs {
        world.pass(Millis::minutes(ran - minutes));
        ran = minutes;
        let job = world.submit(JobSpec {
            priority,
            ..gang("guest", 1, gpus)
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_cheaper_set_would_do_and_nobody_could_be_given_back(small in small(), pods in 1..4_u32, gpus in 1..9_u64) {
        let mut world = full(&small);
        let running: Vec<JobId> = world.state.jobs.keys().copied().collect();
        let spec = gang("owner", pods, gpus);
        let spec = if pods > 1 { shaped(spec, TopologyMode::Required, "block", None) } else { spec };
        let mine = world.submit(spec);
        let facts = plan(&world.state, world.now).events;
        let made = facts.iter().find_map(|event| match &event.fact {
            Fact::ClaimMade { claim, .. } => Some(claim.clone()),
            _ => None,
        });
        let sets = (0..1_usize << running.len()).map(|mask| -> Vec<JobId> {
            (0..running.len()).filter(|bit| mask & (1 << bit) != 0).map(|bit| running[bit]).collect()
        });
        let enough: Vec<_> = sets.filter(|set| starts_without(&world, mine, set)).collect();
        let Some(claim) = made else {
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
