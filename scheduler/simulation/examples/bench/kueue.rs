//! Kueue's `large-scale` performance shape (its `configs/large-scale/generator.yaml`): 10 cohorts of 100 queues, 20 units of
//! their own each, 100 to borrow, reclaim by anybody, jobs of lower priority taken within a queue; 50,000 workloads of one
//! pod, each through every state. Its published mean is 1,179.411 s of wall time (`rangespec.yaml`); a unit is a GPU here.
//!
//! Nodes have room to spare, since Kueue's shape has none: quota alone decides.

use super::shapes::{Watch, command};
use scheduler::{
    Cohort, Command, Configure, Flavour, Health, JobKind, JobSpec, Limits, MilliGpu, Millis, Name,
    Node, NodeId, Pool, Priority, Quota, ReclaimMode, Setting, State, Team, Topology, TopologyMode,
    TopologyRequest,
};
use simulation::driver::{Batch, Engine, Sink};
use simulation::replay::{Ends, Trace, Work};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

const COHORTS: u32 = 10;
const QUEUES: u32 = 100;
/// Workloads of a queue: how many, how far apart, how long, priority, units.
const WORKLOADS: [(u64, u64, u64, Priority, u64); 3] = [
    (35, 60, 150, Priority::Low, 1),
    (11, 300, 350, Priority::Normal, 5),
    (4, 700, 700, Priority::High, 20),
];
const PUBLISHED_SECONDS: f64 = 1_179.411;
const TARGET_SECONDS: f64 = 10.0;

fn fleet() -> State {
    let mut state = State::default();
    let mut set = |change| command(&mut state, &Command::Configure(change));
    set(Configure::Topology(Topology {
        levels: vec![Name::from("node")],
    }));
    set(Configure::Flavour(Flavour {
        id: "unit".into(),
        title: "unit".into(),
    }));
    for n in 0..1_250 {
        set(Configure::Node(Node {
            id: NodeId(n),
            name: format!("n{n}").as_str().into(),
            flavour: Some("unit".into()),
            domains: Vec::new(),
            cards: 32,
            cpu_milli: 32_000,
            memory_mib: 32_000,
            health: Health::Ready,
            pool: Pool::Batch,
        }));
    }
    for cohort in 0..COHORTS {
        set(Configure::Cohort(Cohort {
            id: format!("cohort-{cohort}").as_str().into(),
            parent: None,
            quotas: BTreeMap::new(),
            weight_milli: 1_000,
            reclaim: ReclaimMode::Auto,
        }));
        for queue in 0..QUEUES {
            let quota = Quota {
                nominal: MilliGpu::gpus(20),
                borrowing_limit: Some(MilliGpu::gpus(100)),
                lending_limit: None,
            };
            set(Configure::Team(Team {
                id: format!("cq-{cohort}-{queue}").as_str().into(),
                cohort: Some(format!("cohort-{cohort}").as_str().into()),
                weight_milli: 1_000,
                quotas: [("unit".into(), quota)].into(),
                limits: Limits::default(),
                person_limits: Limits::default(),
                default_time_limit: None,
            }));
        }
    }
    command(
        &mut state,
        &Command::SetPolicy {
            name: "within_team".into(),
            to: Setting::Word("lower_priority".into()),
            seen: 0,
            by: "admin".into(),
            why: Some("as Kueue's shape has it".into()),
        },
    );
    state
}

fn work() -> Vec<Work> {
    let mut work = Vec::new();
    for (cohort, queue) in (0..COHORTS).flat_map(|c| (0..QUEUES).map(move |q| (c, q))) {
        for (count, apart, runs, priority, units) in WORKLOADS {
            let spec = Arc::new(JobSpec {
                name: "workload".into(),
                team: format!("cq-{cohort}-{queue}").as_str().into(),
                project: "p".into(),
                kind: JobKind::Train,
                flavours: vec!["unit".into()],
                image: "train:1".into(),
                priority,
                pods: 1,
                min_pods: None,
                gpus_per_pod: MilliGpu::gpus(units),
                cpu_milli_per_pod: 0,
                memory_mib_per_pod: 0,
                topology: TopologyRequest {
                    mode: TopologyMode::Unconstrained,
                    level: None,
                    segments: None,
                },
                time_limit: None,
                checkpoint: None,
                preemptible: true,
                restart_budget: 5,
                after: Vec::new(),
                run_time: None,
            });
            work.extend((1..=count).map(|n| Work {
                submitted: Millis(n * apart),
                owner: "ada".into(),
                spec: Arc::clone(&spec),
                ends: Ends::After(Millis(runs)),
            }));
        }
    }
    work
}

/// Moments, and the time that the jobs took to end.
#[derive(Default)]
struct Moments(u64, Millis);

impl Sink for Moments {
    fn batch(&mut self, _state: &State, batch: &Batch) {
        self.0 += 1;
        self.1 = batch.at;
    }
    fn waiting(&mut self, _state: &State, _waiting: &[scheduler::Waiting]) {}
}

/// One line under the table: every job through every state, reasons told at every moment.
pub fn print() {
    let engine = Engine {
        state: fleet(),
        ..Engine::default()
    };
    let work = work();
    let mut moments = Moments::default();
    let mut driver = Trace::driver(engine, &work);
    let (started, watch) = (Instant::now(), Watch::start());
    driver.run(None, &mut moments);
    let (wall, own) = (started.elapsed().as_secs_f64(), watch.ms() / 1e3);
    let counts = &driver.engine.state.counts;
    assert_eq!(counts.succeeded, work.len() as u64, "every job ends");
    assert!(
        driver.world.refused.is_empty(),
        "{} commands, the first: {:?}",
        driver.world.refused.len(),
        driver.world.refused.first()
    );
    println!(
        "Kueue large-scale: {} workloads, 1,000 queues, {} moments over {:.3} simulated s: {own:.1} s of this thread, {wall:.1} s of \
         wall time; target {TARGET_SECONDS} s: {}; Kueue's published mean: {PUBLISHED_SECONDS} s",
        work.len(),
        moments.0,
        moments.1.0 as f64 / 1e3,
        if own <= TARGET_SECONDS {
            "reached"
        } else {
            "not reached"
        },
    );
}
