//! How long one full cycle takes, no caches kept: order, quota, placement, all reasons. Prints milliseconds.
//!
//! `cargo run --release -p scheduler --example cycle [-- NODES RUNNING WAITING]`, by default the shape of the numbers to
//! reach: 1,280 nodes / 10,240 GPUs, 40 teams, 2,000 running, 10,000 waiting.

use scheduler::*;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

fn main() {
    let given: Vec<u32> = std::env::args()
        .skip(1)
        .filter_map(|arg| arg.parse().ok())
        .collect();
    let size = |index: usize, usual: u32| given.get(index).copied().unwrap_or(usual);
    let (nodes, running, waiting) = (size(0, 1_280), size(1, 2_000), size(2, 10_000));
    let mut state = fleet(nodes);
    // Short jobs fill the fleet, then the mix of the queue comes in behind them.
    let mut draw = Draw(7);
    for _ in 0..running {
        submit(
            &mut state,
            spec(
                &mut draw,
                &[
                    (1, 1, 40),
                    (1, 2, 20),
                    (1, 4, 15),
                    (1, 8, 15),
                    (2, 8, 7),
                    (4, 8, 3),
                ],
            ),
        );
    }
    let first = Watch::start();
    let filled = plan(&state, Millis::hours(1));
    println!(
        "filling: {} admitted in {:.1} ms",
        filled.events.len(),
        first.ms()
    );
    filled
        .events
        .iter()
        .for_each(|event| apply(&mut state, event));
    for _ in 0..waiting {
        submit(
            &mut state,
            spec(
                &mut draw,
                &[
                    (1, 1, 30),
                    (1, 8, 30),
                    (4, 8, 20),
                    (8, 8, 10),
                    (16, 8, 8),
                    (128, 8, 2),
                ],
            ),
        );
    }
    let now = Millis::hours(3);
    let mut times: Vec<f64> = (0..21)
        .map(|_| {
            let start = Watch::start();
            let plan = plan(&state, now);
            assert!(!plan.waiting.is_empty());
            start.ms()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let plan = plan(&state, now);
    println!(
        "cycle: {} admitted, {} left waiting",
        plan.events.len(),
        plan.waiting.len()
    );
    println!("p50 {:.2} ms, max {:.2} ms", times[10], times[20]);
    let steady = Watch::start();
    plan.events
        .iter()
        .for_each(|event| apply(&mut state, event));
    println!("fold of its events: {:.2} ms", steady.ms());
    let start = Watch::start();
    let next = scheduler::plan(&state, now);
    println!(
        "next cycle: {} admitted, {:.2} ms",
        next.events.len(),
        start.ms()
    );
}

/// Milliseconds of this thread's own time where the system tells (others may be at work), else of the clock.
struct Watch(f64);

impl Watch {
    fn start() -> Self {
        Self(Self::now())
    }
    fn ms(&self) -> f64 {
        Self::now() - self.0
    }
    fn now() -> f64 {
        let told = std::fs::read_to_string("/proc/thread-self/schedstat");
        let ns = told
            .ok()
            .and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
        ns.map_or_else(
            || STARTED.get_or_init(Instant::now).elapsed().as_secs_f64() * 1e3,
            |ns| ns / 1e6,
        )
    }
}

static STARTED: OnceLock<Instant> = OnceLock::new();

/// A small generator: the example needs no more.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

fn fleet(nodes: u32) -> State {
    let mut state = State::default();
    let mut set = |change: Configure| {
        let events =
            decide(&state, &Command::Configure(change), Millis::hours(1)).expect("allowed");
        events.iter().for_each(|event| apply(&mut state, event));
    };
    set(Configure::Topology(Topology {
        levels: ["block", "rack", "node"].map(Name::from).to_vec(),
    }));
    let flavour = FlavourId::from("h100-80g");
    set(Configure::Flavour(Flavour {
        id: flavour.clone(),
        title: "H100".into(),
    }));
    for id in 0..nodes {
        let (block, rack) = (
            format!("h100-b{:03}", id / 32),
            format!("h100-b{:03}-r{}", id / 32, id / 8 % 4),
        );
        set(Configure::Node(Node {
            id: NodeId(id),
            name: format!("{rack}-n{}", id % 8).into(),
            flavour: Some(flavour.clone()),
            domains: vec![block.into(), rack.into()],
            cards: 8,
            cpu_milli: 192_000,
            memory_mib: 2_000_000,
            health: Health::Ready,
            pool: Pool::Batch,
        }));
    }
    for cohort in 0..5 {
        let id = format!("cohort-{cohort}").as_str().into();
        set(Configure::Cohort(Cohort {
            id,
            parent: None,
            quotas: BTreeMap::new(),
            weight_milli: 1_000,
            reclaim: ReclaimMode::Auto,
        }));
    }
    for team in 0..40_u64 {
        let nominal = MilliGpu::gpus(u64::from(nodes) * 8 / 40);
        set(Configure::Team(Team {
            id: format!("team-{team:02}").as_str().into(),
            cohort: Some(format!("cohort-{}", team % 5).as_str().into()),
            weight_milli: 1_000,
            quotas: [(
                flavour.clone(),
                Quota {
                    nominal,
                    ..Quota::default()
                },
            )]
            .into(),
            limits: Limits::default(),
            person_limits: Limits::default(),
            default_time_limit: Some(Millis::DAY),
        }));
    }
    state
}

/// A job of one of the shapes `(pods, GPUs each, how often of a hundred)`.
fn spec(draw: &mut Draw, shapes: &[(u32, u64, u64)]) -> JobSpec {
    let mut pick = draw.below(100);
    let (pods, gpus, _) = *shapes
        .iter()
        .find(|shape| {
            let found = pick < shape.2;
            pick = pick.saturating_sub(shape.2);
            found
        })
        .unwrap_or(&shapes[0]);
    let (mode, level, segments) = match (pods, draw.below(3)) {
        (128, _) => (TopologyMode::Required, "block", Some(Segments { pods: 32 })),
        (_, 0) => (TopologyMode::Required, "block", None),
        (_, 1) => (TopologyMode::Preferred, "rack", None),
        (_, _) => (TopologyMode::Unconstrained, "block", None),
    };
    JobSpec {
        name: "tune".into(),
        team: format!("team-{:02}", draw.below(40)).as_str().into(),
        project: "p".into(),
        kind: JobKind::Train,
        flavours: vec!["h100-80g".into()],
        image: "train:1".into(),
        priority: [Priority::Low, Priority::Normal, Priority::High][draw.below(3) as usize],
        pods,
        gpus_per_pod: MilliGpu::gpus(gpus),
        cpu_milli_per_pod: gpus * 8_000,
        memory_mib_per_pod: gpus * 64_000 * (1 + draw.below(2)),
        topology: TopologyRequest {
            mode,
            level: Some(level.into()),
            segments,
        },
        time_limit: None,
        checkpoint: None,
        preemptible: true,
        restart_budget: 5,
        after: Vec::new(),
        run_time: None,
    }
}

fn submit(state: &mut State, spec: JobSpec) {
    let command = Command::Submit {
        owner: "ada".into(),
        spec: Arc::new(spec),
    };
    let events = decide(state, &command, state.at + Millis(100)).expect("taken in");
    events.iter().for_each(|event| apply(state, event));
}
