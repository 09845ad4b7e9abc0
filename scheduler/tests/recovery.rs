//! Case 28 at its size: what a gang of 500 nodes keeps when two of them die.

mod world;

use scheduler::*;
use world::*;

/// 26 racks of 20 nodes in one block; the last node is its spare.
fn fleet() -> World {
    let mut world = World::grid(1, 26, 20);
    world.team("a", None, &[("h100", own(520 * 8))]);
    world.health(519, Health::Spare);
    world
}

fn placement(world: &World, job: JobId) -> Vec<PodPlace> {
    let allocation = world.state.jobs[&job].allocation.as_ref();
    allocation.expect("it has nodes").placement.pods.clone()
}

#[test]
fn case_28_two_of_500_nodes_die_together_and_the_gang_keeps_its_other_498() {
    let mut world = fleet();
    let spec = shaped(gang("a", 500, 8), TopologyMode::Required, "block", None);
    let job = world.submit(spec);
    world.cycle();
    world.run(job);
    let before = placement(&world, job);
    world.pass(Millis::minutes(30));
    for rank in [17, 303] {
        world.health(before[rank].node.0, Health::Down);
    }
    assert_eq!(world.phase(job), Some(Phase::Recovering));
    assert_eq!(
        placement(&world, job).len(),
        498,
        "what is gone is not held"
    );
    let figures = quota_figures(&world.state, &"a".into(), &"h100".into());
    assert_eq!(
        figures.charged,
        MilliGpu::gpus(4_000),
        "all of it is charged"
    );
    world.pass(Millis::seconds(20));
    world.report(job, Report::Exited).expect("the rest is gone");
    // Small work asks meanwhile for all that is free: the gang comes first.
    for _ in 0..30 {
        world.submit(gang("a", 1, 8));
    }
    world.cycle();
    let after = placement(&world, job);
    let moved = (0..500).filter(|&rank| before[rank] != after[rank]);
    assert_eq!(moved.collect::<Vec<_>>(), [17, 303]);
    let spare = |pod: &PodPlace| pod.node == NodeId(519);
    assert!(after.iter().any(spare), "the spare of the block is first");
    assert_eq!(world.state.nodes[&NodeId(519)].node.health, Health::Ready);
    world.run(job);
    assert_eq!(world.state.jobs[&job].restarts, 1, "one interruption");
    world.pass(Millis::minutes(10));
    world.report(job, Report::Succeeded).expect("it ends");
    let recovering = |line: &&UsageLine| line.phase == UsagePhase::Recover;
    let lines = world.lines.iter().filter(recovering);
    let gpus: Vec<MilliGpu> = lines.map(|line| line.gpus).collect();
    assert_eq!(
        gpus,
        [MilliGpu::gpus(498 * 8)],
        "the two are billed to nobody"
    );
}
