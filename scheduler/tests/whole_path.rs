//! A job, from submit to its usage lines.

mod world;

use scheduler::*;
use world::*;

#[test]
fn a_gang_of_four_nodes_goes_from_submit_to_its_usage_lines() {
    let mut world = World::grid(2, 2, 4);
    world.team("fraud-ml", None, &[("h100", own(64))]);
    let job = world.submit(shaped(
        gang("fraud-ml", 4, 8),
        TopologyMode::Preferred,
        "block",
        None,
    ));
    let plan = world.cycle();
    assert_eq!(plan.events.len(), 1);
    assert_eq!(world.phase(job), Some(Phase::Admitted));
    world.now += Millis::minutes(10);
    world.report(job, Report::Bound).unwrap();
    world.now += Millis::minutes(2);
    world.report(job, Report::Started).unwrap();
    world.now += Millis::minutes(60);
    let progress = Millis::minutes(60);
    let saves = Report::CheckpointStarted { progress };
    world.report(job, saves.clone()).unwrap();
    world.now += Millis::seconds(49);
    world
        .report(
            job,
            Report::CheckpointSaved {
                progress: Millis::minutes(60),
                bytes: 980_000_000_000,
            },
        )
        .unwrap();
    // Told again after it is durable, it is no new save.
    assert!(matches!(
        world.report(job, saves),
        Err(Refusal::OutOfPlace { .. })
    ));
    world.report(job, Report::Succeeded).unwrap();
    assert_eq!(world.phase(job), None);
    assert_eq!(world.state.counts.succeeded, 1);
    let held: MilliGpuMs = world.lines.iter().map(UsageLine::held).sum();
    assert_eq!(
        held,
        MilliGpu::gpus(32).over(Millis::minutes(62) + Millis::seconds(49))
    );
    let phases: Vec<_> = world.lines.iter().map(|line| line.phase).collect();
    assert_eq!(phases, [UsagePhase::Run, UsagePhase::Run, UsagePhase::Save]);
}

#[test]
fn the_1024_gpu_gang_takes_four_whole_blocks() {
    let mut world = World::grid(16, 4, 8);
    world.team("lm", None, &[("h100", own(4_096))]);
    // Twelve blocks are broken by a node each.
    for block in 0..12 {
        world.health(block * 32, Health::Cordoned);
    }
    let job = world.submit(shaped(
        gang("lm", 128, 8),
        TopologyMode::Required,
        "block",
        Some(32),
    ));
    world.cycle();
    let blocks: std::collections::BTreeSet<_> = world
        .nodes(job)
        .iter()
        .map(|(node, _)| node.split('-').next().unwrap().to_owned())
        .collect();
    assert_eq!(
        blocks.into_iter().collect::<Vec<_>>(),
        ["b12", "b13", "b14", "b15"]
    );
    assert_eq!(world.nodes(job).len(), 128);
}

#[test]
fn a_request_above_the_fleet_is_told_with_both_numbers() {
    let mut world = World::grid(16, 4, 8);
    world.team("lm", None, &[("h100", own(4_096))]);
    world.submit(gang("lm", 1_025, 8));
    let plan = world.cycle();
    let (asks, limit) = (MilliGpu::gpus(8_200), MilliGpu::gpus(4_096));
    assert_eq!(
        plan.waiting[0].reason.dominant,
        Blocker::ExceedsMaximum {
            asks,
            limit,
            of: Scope::Fleet
        }
    );
    assert_eq!(plan.waiting[0].position, None);
}

#[test]
fn a_gang_of_eight_waits_whole_when_seven_are_free() {
    let mut world = World::grid(1, 1, 1);
    world.team("a", None, &[("h100", own(8))]);
    world.submit(gang("a", 1, 1));
    let gang = world.submit(gang("a", 8, 1));
    let plan = world.cycle();
    assert_eq!(plan.waiting.len(), 1);
    assert_eq!(
        (plan.waiting[0].job, plan.waiting[0].position),
        (gang, Some(1))
    );
    assert_eq!(world.phase(gang), Some(Phase::Queued));
    assert_eq!(world.nodes(gang), []);
}
