//! Which moves would open a whole block: scenarios, and every way tried on tiny clusters.

mod world;

use proptest::prelude::*;
use scheduler::*;
use std::collections::{BTreeMap, BTreeSet};
use world::*;

/// Two blocks of two nodes; `name = (pods, GPUs of each, nodes)` run there, in that order.
fn two_blocks() -> World {
    let mut world = World::grid(2, 1, 2).without_claims();
    world.team("a", None, &[("h100", own(64))]);
    world
}

/// Runs on the one node that is open meanwhile.
fn runs_on(world: &mut World, node: u32, spec: JobSpec) -> JobId {
    let nodes: Vec<NodeId> = world.state.nodes.keys().copied().collect();
    for &other in nodes.iter().filter(|other| other.0 != node) {
        health(world, other, Health::Cordoned);
    }
    let job = world.submit(spec);
    world.cycle();
    for &other in nodes.iter().filter(|other| other.0 != node) {
        health(world, other, Health::Ready);
    }
    assert!(world.state.jobs[&job].allocation.is_some(), "it fits there");
    world.run(job);
    job
}

fn health(world: &mut World, node: NodeId, health: Health) {
    world
        .command(Command::SetHealth {
            node,
            health,
            why: "test".into(),
        })
        .expect("the node is there");
}

fn open_block(world: &World) -> Option<Proposal> {
    defragment(&world.state, &"h100".into(), &"block".into(), world.now).expect("both are known")
}

fn saving(spec: JobSpec) -> JobSpec {
    JobSpec {
        checkpoint: Some(CheckpointContract {
            period: Millis::hours(1),
            save: Millis::minutes(1),
            on_demand: true,
        }),
        ..spec
    }
}

#[test]
fn one_small_job_moves_and_a_whole_block_is_open() {
    let mut world = two_blocks();
    let small = runs_on(&mut world, 0, saving(gang("a", 1, 2)));
    let large = runs_on(&mut world, 2, saving(gang("a", 1, 4)));
    world.pass(Millis::minutes(20));
    let way = open_block(&world).expect("there is a way");
    assert_eq!((way.domain.as_str(), way.opens), ("b0", MilliGpu::gpus(16)));
    let moved: Vec<_> = way.moves.iter().map(|one| one.job).collect();
    assert_eq!(moved, [small], "not job {large}, which loses more");
    // It fits beside the other one, on the node that is fuller.
    assert_eq!(way.moves[0].to.pods[0].node, NodeId(2));
    // A minute of saving for two GPUs; it came up at once.
    assert_eq!(way.lost, MilliGpu::gpus(2).over(Millis::minutes(1)));
    assert_eq!(way.cents, None, "there is no price");
}

#[test]
fn what_a_move_loses_is_told_in_money_too() {
    let mut world = two_blocks();
    let from = world.now + Millis::HOUR;
    world.set(Configure::RateCard(RateCard {
        id: "card".into(),
        from,
        currency: "USD".into(),
        own_micros: BTreeMap::from([("h100".into(), 2_000_000)]),
        borrowed_micros: BTreeMap::from([("h100".into(), 1_000_000)]),
    }));
    runs_on(&mut world, 0, gang("a", 1, 4));
    runs_on(&mut world, 2, gang("a", 1, 8));
    world.pass(Millis::hours(2));
    // It saves nothing: an hour at most counts, 4 GPUs at one dollar.
    let way = open_block(&world).expect("there is a way");
    assert_eq!((way.moves.len(), way.cents), (1, Some(Cents(400))));
}

#[test]
fn a_block_that_is_open_needs_no_moves() {
    let mut world = two_blocks();
    runs_on(&mut world, 0, gang("a", 1, 2));
    let way = open_block(&world).expect("it is open");
    assert_eq!((way.domain.as_str(), way.moves.len()), ("b1", 0));
}

#[test]
fn what_may_not_be_reclaimed_does_not_move() {
    let mut world = two_blocks();
    let fixed = JobSpec {
        preemptible: false,
        ..gang("a", 1, 1)
    };
    runs_on(&mut world, 0, fixed);
    let moved = runs_on(&mut world, 2, gang("a", 1, 7));
    let way = open_block(&world).expect("there is a way");
    assert_eq!(way.domain.as_str(), "b1");
    assert_eq!(way.moves[0].job, moved);
}

#[test]
fn nobody_moves_when_there_is_no_other_place() {
    let mut world = two_blocks();
    for node in 0..4 {
        runs_on(&mut world, node, gang("a", 1, 5));
    }
    assert_eq!(open_block(&world), None);
}

#[test]
fn a_gang_keeps_its_topology_when_it_moves() {
    let mut world = World::grid(3, 1, 2).without_claims();
    world.team("a", None, &[("h100", own(64))]);
    let together = shaped(gang("a", 2, 4), TopologyMode::Required, "block", None);
    let gang_of_two = world.submit(together);
    world.cycle();
    world.run(gang_of_two);
    // Each of the other blocks has room for one of its pods on one node only, the last one for both.
    runs_on(&mut world, 2, gang("a", 1, 8));
    runs_on(&mut world, 3, gang("a", 1, 4));
    runs_on(&mut world, 4, gang("a", 1, 1));
    let way = open_block(&world).expect("there is a way");
    for one in &way.moves {
        let blocks: BTreeSet<u32> = one.to.pods.iter().map(|pod| pod.node.0 / 2).collect();
        assert_eq!(blocks.len(), 1, "{one:?}");
    }
}

#[test]
fn a_block_with_a_broken_node_is_not_whole_and_one_under_a_hold_is_left_alone() {
    let mut world = two_blocks();
    runs_on(&mut world, 0, gang("a", 1, 1));
    runs_on(&mut world, 2, gang("a", 1, 2));
    health(&mut world, NodeId(1), Health::Down);
    assert_eq!(
        open_block(&world).expect("one is left").domain.as_str(),
        "b1"
    );
    let scope = HoldScope::Node { node: NodeId(3) };
    world.hold(scope, HoldMode::Hold).expect("it is held");
    assert_eq!(open_block(&world), None);
}

#[test]
fn what_there_is_not_is_refused_by_its_field() {
    let world = two_blocks();
    let ask = |flavour: &str, level: &str| match defragment(
        &world.state,
        &flavour.into(),
        &level.into(),
        world.now,
    ) {
        Err(Refusal::Invalid { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    assert_eq!(ask("b200", "block"), "flavour");
    assert_eq!(ask("h100", "galaxy"), "level");
}

/// The least GPUs that move to empty one of two blocks, by trying every node for every job.
fn brute_force(free: [u64; 4], jobs: &[(usize, u64)]) -> Option<u64> {
    let of_block = |block: usize| {
        let movers: Vec<u64> = (jobs.iter().filter(|(node, _)| node / 2 == block))
            .map(|(_, gpus)| *gpus)
            .collect();
        let to = [2 - 2 * block, 3 - 2 * block];
        let ways = 1_u32 << movers.len();
        let fits = (0..ways).any(|way| {
            let mut left = [free[to[0]] as i64, free[to[1]] as i64];
            for (bit, gpus) in movers.iter().enumerate() {
                left[(way >> bit & 1) as usize] -= *gpus as i64;
            }
            left.iter().all(|left| *left >= 0)
        });
        fits.then(|| movers.iter().sum())
    };
    (0..2).filter_map(of_block).min()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_way_is_missed_and_none_is_cheaper(jobs in prop::collection::vec((0..4_usize, 1..6_u64), 1..7)) {
        let mut world = two_blocks();
        let mut free = [8_u64; 4];
        let mut lie = Vec::new();
        for (node, gpus) in jobs {
            let in_block = lie.iter().filter(|(at, _): &&(usize, u64)| at / 2 == node / 2).count();
            if free[node] >= gpus && in_block < 5 {
                free[node] -= gpus;
                lie.push((node, gpus));
                runs_on(&mut world, node as u32, gang("a", 1, gpus));
            }
        }
        world.pass(Millis::minutes(30));
        let way = open_block(&world);
        let least = brute_force(free, &lie);
        prop_assert_eq!(way.as_ref().map(|way| way.moves.iter().map(|one| one.gpus).sum::<MilliGpu>()), least.map(MilliGpu::gpus));
        if let Some(way) = way {
            sound(&world, &way)?;
        }
    }
}

/// Nobody lies in the block any more, and no card is given twice.
fn sound(world: &World, way: &Proposal) -> Result<(), TestCaseError> {
    let moved: BTreeSet<JobId> = way.moves.iter().map(|one| one.job).collect();
    let mut cards = BTreeSet::new();
    let stay = world
        .state
        .jobs
        .values()
        .filter(|job| !moved.contains(&job.id));
    let stay = stay.filter_map(|job| Some(&job.allocation.as_ref()?.placement));
    for placement in stay.chain(way.moves.iter().map(|one| &one.to)) {
        for pod in &placement.pods {
            let node = &world.state.nodes[&pod.node].node;
            prop_assert_ne!(&node.domains[0], &way.domain);
            for card in (0..32).filter(|card| pod.cards & (1 << card) != 0) {
                prop_assert!(
                    cards.insert((pod.node, card)),
                    "card {} is given twice",
                    card
                );
            }
        }
    }
    Ok(())
}
