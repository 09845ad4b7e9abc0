//! Placement and admission against brute force on clusters of up to four nodes and five jobs: every way to lay the pods is
//! tried.

mod world;

use proptest::prelude::*;
use scheduler::*;
use world::*;

/// Nodes as `(block, free cards)`.
type Cluster = Vec<(u32, u16)>;

fn cluster() -> impl Strategy<Value = Cluster> {
    prop::collection::vec((0..2_u32, 1..=8_u16), 1..=4)
}

fn build(cluster: &Cluster) -> World {
    let mut world = World::bare(&["block", "node"]);
    for (index, &(block, cards)) in cluster.iter().enumerate() {
        world.node(&format!("n{index}"), "h100", cards, &[&format!("b{block}")]);
    }
    world.team("a", None, &[("h100", own(1_000))]);
    world
}

/// Every way to lay `pods` on nodes with room for so many, each node in multiples of `step`.
fn all_ways(room: &[u32], pods: u32, step: u32) -> Vec<Vec<u32>> {
    let Some((&first, rest)) = room.split_first() else {
        return if pods == 0 {
            vec![Vec::new()]
        } else {
            Vec::new()
        };
    };
    let here = (0..=first.min(pods)).filter(|here| here.is_multiple_of(step));
    here.flat_map(|here| {
        all_ways(rest, pods - here, step)
            .into_iter()
            .map(move |mut way| {
                way.insert(0, here);
                way
            })
    })
    .collect()
}

fn blocks(cluster: &Cluster, way: &[u32]) -> usize {
    let used = cluster.iter().zip(way).filter(|(_, pods)| **pods > 0);
    used.map(|((block, _), _)| *block)
        .collect::<std::collections::BTreeSet<_>>()
        .len()
}

fn nodes(way: &[u32]) -> usize {
    way.iter().filter(|pods| **pods > 0).count()
}

/// What the engine chose, as pods of each node; `None` if it found no room.
fn chosen(cluster: &Cluster, spec: &JobSpec) -> Option<Vec<u32>> {
    let world = build(cluster);
    let placement = would_start(&world.state, &"ada".into(), spec, world.now).ok()?;
    let mut way = vec![0; cluster.len()];
    let mut free: Vec<u32> = cluster.iter().map(|&(_, cards)| (1 << cards) - 1).collect();
    for pod in &placement.pods {
        let node = pod.node.0 as usize;
        assert_eq!(pod.cards & !free[node], 0, "each card once");
        assert_eq!(u64::from(pod.cards.count_ones()), spec.gpus_per_pod.whole());
        free[node] &= !pod.cards;
        way[node] += 1;
    }
    Some(way)
}

/// Pods that a way leaves room for in the blocks that it uses: what is left over.
fn left_over(cluster: &Cluster, room: &[u32], way: &[u32]) -> u32 {
    let used: Vec<u32> = cluster
        .iter()
        .zip(way)
        .filter(|(_, pods)| **pods > 0)
        .map(|((block, _), _)| *block)
        .collect();
    let all = cluster
        .iter()
        .zip(room)
        .filter(|((block, _), _)| used.contains(block));
    all.map(|(_, room)| room).sum::<u32>() - way.iter().sum::<u32>()
}

/// One job of a mixed load: team, pods, thousandths of a GPU a pod, pods of a segment or none, one block asked for.
type Mixed = (usize, u32, u64, Option<u32>, bool);

const TEAMS: [&str; 2] = ["ads", "bio"];

fn mixed() -> impl Strategy<Value = Mixed> {
    let milli = prop_oneof![
        Just(250_u64),
        Just(500),
        Just(1_000),
        Just(2_000),
        Just(3_000),
        Just(8_000)
    ];
    let segment = prop::option::of(1..3_u32);
    (0..TEAMS.len(), 1..5_u32, milli, segment, any::<bool>())
}

fn spec((team, pods, milli, segment, block): Mixed) -> JobSpec {
    let spec = JobSpec {
        gpus_per_pod: MilliGpu(milli),
        ..gang(TEAMS[team], pods * segment.unwrap_or(1), 0)
    };
    match (block, segment) {
        (false, None) => spec,
        _ => shaped(spec, TopologyMode::Required, "block", segment),
    }
}

/// Pods that a node has room for: on whole free cards, or on shares of one that has so much left.
fn room_of(node: &FreeNode, milli: u64) -> u32 {
    let shares = node.free_milli.iter().map(|&free| u64::from(free) / milli);
    let whole = node.free_milli.iter().filter(|&&free| free == 1_000);
    match milli < 1_000 {
        true => shares.sum::<u64>() as u32,
        false => (whole.count() as u64 / (milli / 1_000)) as u32,
    }
}

/// Whether any way to lay a job's pods is of the shape that it asks for.
fn has_room(state: &State, blocks_of: &Cluster, spec: &JobSpec) -> bool {
    let room: Vec<u32> = (state.nodes.values())
        .map(|node| room_of(node, spec.gpus_per_pod.0))
        .collect();
    let shape = &spec.topology;
    let ways = all_ways(&room, spec.pods, 1);
    ways.iter().any(|way| {
        let in_block = |block| -> u32 {
            let pods = blocks_of.iter().zip(way);
            pods.filter(|((of, _), _)| *of == block)
                .map(|(_, pods)| pods)
                .sum()
        };
        match (&shape.level, shape.segments) {
            (None, _) => true,
            (Some(_), None) => blocks(blocks_of, way) == 1,
            (Some(_), Some(segments)) => (0..2).all(|block| in_block(block) % segments.pods == 0),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_admission_is_missed_that_quota_and_room_allow(
        cluster in cluster(),
        jobs in prop::collection::vec((mixed(), any::<bool>()), 1..=5),
        own_gpus in 0..24_u64,
    ) {
        let mut world = World::bare(&["block", "node"]).without_claims();
        for (index, &(block, cards)) in cluster.iter().enumerate() {
            world.node(&format!("n{index}"), "h100", cards, &[&format!("b{block}")]);
        }
        world.cohort("c", None, &[]);
        world.team("ads", Some("c"), &[("h100", own(own_gpus))]);
        world.team("bio", Some("c"), &[("h100", own(8))]);
        // Nobody waits behind a planned start: what fits starts.
        world.set(Configure::Policy(Policy { reservations: 0, reserve_after: Millis::hours(24 * 300), ..world.state.policy.clone() }));
        for (job, over) in jobs {
            let job = world.submit(spec(job));
            if over && world.cycle().events.iter().any(|event| event.fact.job() == Some(job)) {
                world.run(job);
                // Every other one that runs ends again, and leaves its part of the cards.
                if job.0.is_multiple_of(2) {
                    world.report(job, Report::Succeeded).expect("it runs");
                }
            }
        }
        let plan = world.cycle();
        let charged: MilliGpu = world.state.jobs.values().filter(|job| job.allocation.is_some()).map(|job| job.spec.gpus()).sum();
        for waiting in &plan.waiting {
            let spec = &world.state.jobs[&waiting.job].spec;
            // Both lend and borrow all: what is left is the cohort's.
            let quota = charged + spec.gpus() <= MilliGpu::gpus(own_gpus + 8);
            let room = has_room(&world.state, &cluster, spec);
            prop_assert!(!(quota && room), "job {} could start: {:?}", waiting.job, waiting.reason);
            if !waiting.reason.never() {
                let told: Vec<bool> = ["quota", "room"].iter().map(|name| waiting.reason.all.iter().any(|blocker| <&str>::from(blocker) == *name)).collect();
                prop_assert_eq!(told, vec![!quota, !room], "of job {}: {:?}", waiting.job, waiting.reason);
            }
        }
    }

    #[test]
    fn segments_stay_whole_inside_blocks(cluster in cluster(), segment in 1..5_u32, segments in 1..4_u32, milli in prop_oneof![Just(500_u64), Just(1_000), Just(2_000)]) {
        let spec = spec((0, segments, milli, Some(segment), true));
        let mut world = build(&cluster);
        world.team("ads", None, &[("h100", own(1_000))]);
        let placed = would_start(&world.state, &"ada".into(), &spec, world.now).ok();
        prop_assert_eq!(placed.is_some(), has_room(&world.state, &cluster, &spec));
        let Some(placed) = placed else {
            return Ok(());
        };
        for pods in placed.pods.chunks(segment as usize) {
            let blocks: std::collections::BTreeSet<u32> = pods.iter().map(|pod| cluster[pod.node.0 as usize].0).collect();
            prop_assert_eq!(blocks.len(), 1, "a segment of consecutive ranks lies in one block: {:?}", placed);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn required_takes_the_block_with_the_least_left_over(cluster in cluster(), pods in 2..8_u32, gpus in 1..5_u64) {
        let room: Vec<u32> = cluster.iter().map(|&(_, cards)| u32::from(cards) / gpus as u32).collect();
        let ways = all_ways(&room, pods, 1);
        let fit: Vec<_> = ways.iter().filter(|way| blocks(&cluster, way) == 1).collect();
        let way = chosen(&cluster, &shaped(gang("a", pods, gpus), TopologyMode::Required, "block", None));
        prop_assert_eq!(way.is_some(), !fit.is_empty());
        if let Some(way) = way {
            prop_assert_eq!(blocks(&cluster, &way), 1);
            let least = fit.iter().map(|way| left_over(&cluster, &room, way)).min();
            prop_assert_eq!(Some(left_over(&cluster, &room, &way)), least);
            let block = cluster[way.iter().position(|pods| *pods > 0).unwrap_or(0)].0;
            let inside = fit.iter().filter(|way| way.iter().zip(&cluster).all(|(pods, node)| *pods == 0 || node.0 == block));
            prop_assert_eq!(Some(nodes(&way)), inside.map(|way| nodes(way)).min(), "in as few nodes as it can");
        }
    }

    #[test]
    fn preferred_takes_as_few_blocks_as_it_can(cluster in cluster(), pods in 2..12_u32, gpus in 1..5_u64) {
        let room: Vec<u32> = cluster.iter().map(|&(_, cards)| u32::from(cards) / gpus as u32).collect();
        let ways = all_ways(&room, pods, 1);
        let way = chosen(&cluster, &shaped(gang("a", pods, gpus), TopologyMode::Preferred, "block", None));
        prop_assert_eq!(way.is_some(), !ways.is_empty());
        if let Some(way) = way {
            prop_assert!(ways.contains(&way));
            let fewest = ways.iter().map(|way| blocks(&cluster, way)).min();
            prop_assert_eq!(Some(blocks(&cluster, &way)), fewest);
        }
    }

    #[test]
    fn unconstrained_starts_whenever_the_pods_fit_at_all(cluster in cluster(), pods in 1..16_u32, gpus in 1..5_u64) {
        let room: Vec<u32> = cluster.iter().map(|&(_, cards)| u32::from(cards) / gpus as u32).collect();
        let ways = all_ways(&room, pods, 1);
        let way = chosen(&cluster, &gang("a", pods, gpus));
        prop_assert_eq!(way.is_some(), !ways.is_empty());
        if let Some(way) = way {
            prop_assert!(ways.contains(&way));
        }
    }

    #[test]
    fn segments_stay_whole_in_as_few_nodes_as_they_can(cluster in cluster(), segment in 1..4_u32, segments in 2..5_u32) {
        let room: Vec<u32> = cluster.iter().map(|&(_, cards)| u32::from(cards)).collect();
        let ways = all_ways(&room, segment * segments, segment);
        let spec = shaped(gang("a", segment * segments, 1), TopologyMode::Required, "node", Some(segment));
        let way = chosen(&cluster, &spec);
        prop_assert_eq!(way.is_some(), !ways.is_empty());
        if let Some(way) = way {
            prop_assert!(ways.contains(&way), "{:?} is no way of whole segments", way);
        }
    }

    #[test]
    fn one_pod_takes_the_node_with_the_least_left_over(cluster in cluster(), gpus in 1..9_u64) {
        let fits = cluster.iter().map(|&(_, cards)| u64::from(cards)).filter(|cards| *cards >= gpus);
        let least = fits.min();
        let way = chosen(&cluster, &gang("a", 1, gpus));
        let cards = way.map(|way| cluster[way.iter().position(|pods| *pods > 0).unwrap_or(0)].1);
        prop_assert_eq!(cards.map(u64::from), least);
    }
}
