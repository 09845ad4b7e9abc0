//! Larger shapes of the case list than a scenario text can draw.

mod world;

use scheduler::*;
use std::collections::BTreeMap;
use world::*;

/// Pods of a job by the first part of its nodes' names.
fn by_block(world: &World, job: JobId) -> BTreeMap<String, u32> {
    let mut blocks = BTreeMap::new();
    for (node, pods) in world.nodes(job) {
        let block = node.split('-').next().expect("a block").to_owned();
        *blocks.entry(block).or_default() += pods;
    }
    blocks
}

#[test]
fn case_24_segments_of_12_lie_in_three_blocks_of_17_however_often_the_topology_is_loaded() {
    let mut world = World::grid(3, 1, 17);
    let nodes: Vec<_> = world
        .state
        .nodes
        .values()
        .map(|free| free.node.clone())
        .collect();
    for node in nodes {
        world.set(Configure::Node(node));
    }
    world.team("a", None, &[("h100", own(408))]);
    let job = world.submit(shaped(
        gang("a", 36, 8),
        TopologyMode::Required,
        "block",
        Some(12),
    ));
    world.cycle();
    assert_eq!(
        by_block(&world, job).into_values().collect::<Vec<_>>(),
        [12, 12, 12]
    );
}

#[test]
fn case_23_many_small_jobs_touch_few_racks() {
    let mut world = World::grid(1, 33, 4);
    world.team("a", None, &[("h100", own(1_056))]);
    for _ in 0..64 {
        world.submit(gang("a", 1, 1));
    }
    let plan = world.cycle();
    assert_eq!(plan.events.len(), 64);
    let used = world
        .state
        .nodes
        .values()
        .filter(|free| !free.jobs.is_empty());
    let racks: Vec<_> = used.map(|free| free.node.domains[1].clone()).collect();
    assert_eq!(racks.len(), 8, "64 GPUs fill eight nodes");
    assert_eq!(
        racks
            .into_iter()
            .collect::<std::collections::BTreeSet<_>>()
            .len(),
        2
    );
}

#[test]
fn ranks_run_consecutively_inside_every_segment_and_rack() {
    let mut world = World::grid(4, 2, 4);
    world.team("a", None, &[("h100", own(256))]);
    world.health(0, Health::Cordoned);
    let job = world.submit(shaped(
        gang("a", 24, 8),
        TopologyMode::Required,
        "block",
        Some(8),
    ));
    world.cycle();
    let nodes = world.nodes(job);
    for segment in nodes.chunks(8) {
        let block = |node: &str| node.split('-').next().map(str::to_owned);
        assert!(
            segment
                .iter()
                .all(|(node, _)| block(node) == block(&segment[0].0))
        );
    }
    let racks: Vec<_> = nodes
        .iter()
        .map(|(node, _)| node.rsplit_once('-').map(|(rack, _)| rack))
        .collect();
    let mut seen = racks.clone();
    seen.dedup();
    let distinct: std::collections::BTreeSet<_> = racks.iter().collect();
    assert_eq!(
        seen.len(),
        distinct.len(),
        "no rack is left and entered again: {racks:?}"
    );
}

#[test]
fn a_gang_of_32_gpus_takes_four_nodes_of_one_block_and_the_fullest_one() {
    let mut world = World::grid(3, 4, 8);
    world.team("fraud-ml", None, &[("h100", own(768))]);
    let first = world.submit(shaped(
        gang("fraud-ml", 28, 8),
        TopologyMode::Required,
        "block",
        None,
    ));
    let second = world.submit(shaped(
        gang("fraud-ml", 20, 8),
        TopologyMode::Required,
        "block",
        None,
    ));
    world.cycle();
    let tune = world.submit(shaped(
        gang("fraud-ml", 4, 8),
        TopologyMode::Preferred,
        "block",
        None,
    ));
    world.cycle();
    assert_eq!(
        by_block(&world, tune),
        by_block(&world, first)
            .into_keys()
            .map(|block| (block, 4))
            .collect()
    );
    assert_ne!(
        by_block(&world, first).into_keys().next(),
        by_block(&world, second).into_keys().next()
    );
    let placement = world.state.jobs[&tune]
        .allocation
        .as_ref()
        .expect("admitted")
        .placement
        .clone();
    assert_eq!(placement.within, Some(1), "four nodes of one rack");
}

#[test]
fn a_rate_card_begins_on_a_whole_hour_and_never_before_what_was_used() {
    let mut world = World::grid(1, 1, 1);
    world.team("a", None, &[("h100", own(8))]);
    let card = |id: &str, from: Millis| {
        let micros = BTreeMap::from([(FlavourId::from("h100"), 2_500_000)]);
        let (own_micros, borrowed_micros) = (micros.clone(), micros);
        Command::Configure(Configure::RateCard(RateCard {
            id: id.into(),
            from,
            currency: "EUR".into(),
            own_micros,
            borrowed_micros,
        }))
    };
    let refused =
        |answer: Result<Vec<Event>, Refusal>| matches!(answer, Err(Refusal::Invalid { .. }));
    assert!(refused(
        world.command(card("half", world.now + Millis::minutes(30)))
    ));
    assert!(
        world
            .command(card("before anything ran", Millis::hours(1)))
            .is_ok()
    );
    world.submit(gang("a", 1, 8));
    world.cycle();
    world.pass(Millis::hours(2));
    let hour = world.state.hour;
    assert!(refused(world.command(card("past", hour - Millis::HOUR))));
    assert!(world.command(card("now", hour)).is_ok());
    assert!(
        refused(world.command(card("now", hour + Millis::HOUR))),
        "a name is given once"
    );
}

#[test]
fn cohorts_make_no_ring() {
    let mut world = World::bare(&["node"]);
    world.cohort("top", None, &[]);
    world.cohort("mid", Some("top"), &[]);
    world.cohort("low", Some("mid"), &[]);
    let ring = Cohort {
        id: "top".into(),
        parent: Some("low".into()),
        quotas: BTreeMap::new(),
        weight_milli: 1_000,
        reclaim: ReclaimMode::Auto,
    };
    let answer = world.command(Command::Configure(Configure::Cohort(ring)));
    assert!(matches!(answer, Err(Refusal::Invalid { field, .. }) if field == "parent"));
}

#[test]
fn would_start_says_what_a_submit_would_lead_to_and_changes_nothing() {
    let mut world = World::grid(1, 1, 2);
    world.team("a", None, &[("h100", own(16))]);
    world.submit(gang("a", 1, 8));
    let before = world.state.clone();
    let small = would_start(&world.state, &"ada".into(), &gang("a", 1, 8), world.now)
        .expect("there is room for both");
    assert_eq!(
        on_nodes(&world.state, &small.pods)[0].0,
        "b0-r0-n1",
        "the one that waits goes first"
    );
    let reason = would_start(&world.state, &"ada".into(), &gang("a", 2, 8), world.now)
        .expect_err("one node is taken");
    assert!(matches!(reason.dominant, Blocker::Quota { .. }));
    let reason = would_start(
        &world.state,
        &"ada".into(),
        &gang("nobody", 1, 8),
        world.now,
    )
    .expect_err("there is no such team");
    assert!(reason.never());
    assert_eq!(world.state, before);
}

#[test]
fn a_report_about_an_older_attempt_is_fenced_off() {
    let mut world = World::grid(1, 1, 1);
    world.team("a", None, &[("h100", own(8))]);
    let job = world.submit(gang("a", 1, 8));
    world.cycle();
    world.run(job);
    world
        .report(job, Report::Failed { code: 1 })
        .expect("it may fail");
    world.cycle();
    let late = Command::Report {
        job,
        attempt: 1,
        report: Report::Succeeded,
    };
    assert_eq!(
        world.command(late),
        Err(Refusal::StaleAttempt {
            job,
            given: 1,
            current: 2
        })
    );
}
