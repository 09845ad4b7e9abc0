//! Fleets, queues and the floor, of any size.

use rustix::time::{ClockId, clock_gettime};
use scheduler::*;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Sizes of a fleet with its queue.
#[derive(Clone, Copy)]
pub struct Shape {
    pub nodes: u32,
    pub running: u32,
    pub waiting: u32,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} nodes, {} ran, {} wait",
            self.nodes, self.running, self.waiting
        )
    }
}

/// Sizes of jobs: pods, GPUs each, how often of a hundred.
type Sizes = &'static [(u32, u64, u64)];

const SHORT: Sizes = &[
    (1, 1, 40),
    (1, 2, 20),
    (1, 4, 15),
    (1, 8, 15),
    (2, 8, 7),
    (4, 8, 3),
];
const MIXED: Sizes = &[
    (1, 1, 30),
    (1, 8, 30),
    (4, 8, 20),
    (8, 8, 10),
    (16, 8, 8),
    (128, 8, 2),
];

impl Shape {
    /// Short jobs have filled the fleet, and the mix of the queue has come in behind them.
    pub fn behind(self) -> State {
        let mut draw = Draw::new(7);
        let mut state = self.fleet();
        for _ in 0..self.running {
            submit(&mut state, spec(&mut draw, SHORT));
        }
        let filled = plan(&state, Millis::hours(1)).events;
        take(&mut state, filled);
        for _ in 0..self.waiting {
            submit(&mut state, spec(&mut draw, MIXED));
        }
        state
    }

    /// All of the fleet is with 39 teams in gangs of 32, running for an hour; the fortieth, with 1,024 GPUs of its own,
    /// asks for them as four whole blocks.
    pub fn borrowed(self) -> State {
        let others = (u64::from(self.nodes) * 8 - 1_024) / 39;
        let nominal = |team| MilliGpu::gpus(if team == 39 { 1_024 } else { others });
        let mut state = fleet(self.nodes, 1, nominal);
        let mut draw = Draw::new(9);
        for n in 0..self.nodes / 4 {
            let job = JobSpec {
                team: team(u64::from(n) % 39),
                topology: topology("block", None),
                checkpoint: Some(CheckpointContract {
                    period: Millis::minutes(70),
                    save: Millis::seconds(50),
                    on_demand: true,
                }),
                ..spec(&mut draw, &[(4, 8, 100)])
            };
            submit(&mut state, job);
        }
        let filled = plan(&state, Millis::hours(1)).events;
        take(&mut state, filled);
        let started = |job: &&Job| job.allocation.is_some();
        let ids: Vec<_> = state
            .jobs
            .values()
            .filter(started)
            .map(|job| job.id)
            .collect();
        for job in ids {
            for report in [Report::Bound, Report::Started] {
                command(
                    &mut state,
                    &Command::Report {
                        job,
                        attempt: 1,
                        report,
                    },
                );
            }
        }
        let owner = JobSpec {
            team: team(39),
            topology: topology("block", Some(Segments { pods: 32 })),
            ..spec(&mut draw, &[(128, 8, 100)])
        };
        submit(&mut state, owner);
        state
    }

    /// A fleet, and what happened on it while jobs came, started and ended.
    pub fn history(self) -> (State, Vec<Event>) {
        let start = self.fleet();
        let (mut state, mut draw, mut events) = (start.clone(), Draw::new(13), Vec::new());
        while events.len() < 20_000 {
            let mut take = |state: &mut State, new: Vec<Event>| {
                new.iter().for_each(|event| apply(state, event));
                events.extend(new);
            };
            for _ in 0..100 {
                let spec = Arc::new(spec(&mut draw, SHORT));
                let command = Command::Submit {
                    owner: "ada".into(),
                    spec,
                };
                let new = decide(&state, &command, state.at + Millis(100)).expect("taken in");
                take(&mut state, new);
            }
            let new = plan(&state, state.at).events;
            take(&mut state, new);
            let started: Vec<_> = state
                .jobs
                .values()
                .filter(|job| job.allocation.is_some())
                .map(|job| (job.id, job.attempt))
                .collect();
            for (job, attempt) in started {
                for report in [Report::Bound, Report::Started, Report::Succeeded] {
                    let new = decide(
                        &state,
                        &Command::Report {
                            job,
                            attempt,
                            report,
                        },
                        state.at,
                    )
                    .expect("heard");
                    take(&mut state, new);
                }
            }
        }
        (start, events)
    }

    fn fleet(self) -> State {
        let nominal = MilliGpu::gpus(u64::from(self.nodes) * 8 / 40);
        fleet(self.nodes, 5, |_| nominal)
    }
}

/// What any scheduler has to do at least: put who waits in order and look at each, look at each node, and at each pod that
/// holds GPUs. Milliseconds.
pub fn floor(state: &State) -> f64 {
    let watch = Watch::start();
    let waits = state.queue.iter().filter_map(|turn| {
        let job = state.jobs.get(&turn.2)?;
        Some((job.spec.priority, job.submitted, job.id, job.spec.gpus()))
    });
    let mut waits: Vec<_> = waits.collect();
    waits.sort_unstable();
    let asked: u64 = waits.iter().map(|(.., gpus)| gpus.0).sum();
    let nodes = state.nodes.values();
    let free: u64 = nodes
        .flat_map(|node| &node.free_milli)
        .map(|free| u64::from(*free))
        .sum();
    let held = state
        .jobs
        .values()
        .filter_map(|job| job.allocation.as_ref());
    let pods = held.flat_map(|held| &held.placement.pods);
    std::hint::black_box((asked, free, pods.map(|pod| pod.node).max()));
    watch.ms()
}

/// What any fold has to do at least: look at each event, and at the job that it is of. Milliseconds.
pub fn reading(events: &[Event]) -> f64 {
    let watch = Watch::start();
    let mut of_jobs = BTreeMap::<_, u64>::new();
    for job in events.iter().filter_map(|event| event.fact.job()) {
        *of_jobs.entry(job).or_default() += 1;
    }
    std::hint::black_box(of_jobs.len());
    watch.ms()
}

pub fn take(state: &mut State, events: Vec<Event>) {
    events.iter().for_each(|event| apply(state, event));
}

pub fn command(state: &mut State, command: &Command) {
    let events = decide(state, command, state.at).expect("taken in");
    take(state, events);
}

/// So many jobs come, and as many of those that hold GPUs end.
pub fn turn_over(state: &mut State, draw: &mut Draw, jobs: usize) {
    for _ in 0..jobs {
        submit(state, spec(draw, MIXED));
    }
    let held: Vec<_> = state
        .jobs
        .values()
        .filter(|job| job.allocation.is_some())
        .map(|job| (job.id, job.attempt))
        .take(jobs)
        .collect();
    for (job, attempt) in held {
        for report in [Report::Bound, Report::Started, Report::Succeeded] {
            // Some are up already.
            if let Ok(events) = decide(
                state,
                &Command::Report {
                    job,
                    attempt,
                    report,
                },
                state.at,
            ) {
                take(state, events);
            }
        }
    }
}

pub fn team(n: u64) -> TeamId {
    format!("team-{n:02}").as_str().into()
}

fn topology(level: &str, segments: Option<Segments>) -> TopologyRequest {
    TopologyRequest {
        mode: TopologyMode::Required,
        level: Some(level.into()),
        segments,
    }
}

/// Milliseconds of this thread's own time: others may be at work on the machine.
pub struct Watch(f64);

impl Watch {
    pub fn start() -> Self {
        Self(Self::now())
    }
    pub fn ms(&self) -> f64 {
        Self::now() - self.0
    }
    fn now() -> f64 {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
    }
}

/// A small generator: the bench needs no more.
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

fn fleet(nodes: u32, cohorts: u64, nominal: impl Fn(u64) -> MilliGpu) -> State {
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
    for cohort in 0..cohorts {
        let id = format!("cohort-{cohort}").as_str().into();
        set(Configure::Cohort(Cohort {
            id,
            parent: None,
            quotas: BTreeMap::new(),
            weight_milli: 1_000,
            reclaim: ReclaimMode::Auto,
        }));
    }
    for team in 0..40 {
        set(Configure::Team(Team {
            id: self::team(team),
            cohort: Some(format!("cohort-{}", team % cohorts).as_str().into()),
            weight_milli: 1_000,
            quotas: [(
                flavour.clone(),
                Quota {
                    nominal: nominal(team),
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
        team: team(draw.below(40)),
        project: "p".into(),
        kind: JobKind::Train,
        flavours: vec!["h100-80g".into()],
        image: "train:1".into(),
        priority: [Priority::Low, Priority::Normal, Priority::High][draw.below(3) as usize],
        pods,
        min_pods: None,
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

pub fn submit(state: &mut State, spec: JobSpec) {
    let command = Command::Submit {
        owner: "ada".into(),
        spec: Arc::new(spec),
    };
    let events = decide(state, &command, state.at + Millis(100)).expect("taken in");
    events.iter().for_each(|event| apply(state, event));
}
