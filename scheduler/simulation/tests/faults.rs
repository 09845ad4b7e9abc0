//! The faults of a real fleet, replayed on one of its size with gangs running, where the trace is at hand: `MUSTER_SHARED`
//! says where. 400 GPU servers over 349 days (InfiniteHBD-Trace; StepFun, Apache-2.0): 584 faults and 584 ends.

use scheduler::{
    Area, CheckpointContract, Command, Configure, Event, Fact, Flavour, Health, JobId, JobKind,
    JobSpec, MilliGpu, MilliGpuMs, Millis, Node, NodeId, Policy, Pool, Priority, Quota, Refusal,
    State, StopCause, Team, Topology, TopologyMode, TopologyRequest, UsageLine, invariants,
};
use simulation::audit::Auditor;
use simulation::driver::{Agenda, Batch, Driver, Engine, Sink, World};
use simulation::model::next_report;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

const NODES: u32 = 400;
/// Nodes of a block, one of them its spare.
const BLOCK: u32 = 20;
const BEGIN: Millis = Millis::hours(480_000);
/// After the last fault nothing new comes in.
const LAST: Millis = Millis(BEGIN.0 + 350 * Millis::DAY.0);

/// A fault begins or ends.
#[derive(Clone, Debug)]
struct Turn {
    at: Millis,
    node: NodeId,
    /// `None` = it ends.
    cause: Option<&'static str>,
}

/// The trace, or `None` with a word that the test was skipped.
fn trace(test: &str) -> Option<Vec<Turn>> {
    let Some(shared) = std::env::var_os("MUSTER_SHARED") else {
        println!("skipped: {test} (MUSTER_SHARED is not set)");
        return None;
    };
    let file = PathBuf::from(shared).join("data/infinitehbd-faults/fault_trace.json");
    let text = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&text).expect("a list of events");
    let mut nodes = BTreeMap::new();
    let turns = rows.iter().map(|row| {
        let name = row["node_id"].as_str().expect("a node").to_owned();
        let next = nodes.len() as u32;
        // Spread over the blocks: 7 and 400 have no factor in common, so each gets its own.
        let node = NodeId(*nodes.entry(name).or_insert(next) * 7 % NODES);
        let days = row["event_time"].as_f64().expect("days");
        let fault = &row["fault_type"];
        let cause = cause(&fault["Class"], &fault["Desc"]);
        Turn {
            at: BEGIN + Millis((days * Millis::DAY.0 as f64).round() as u64),
            node,
            cause: (row["event_type"] == "fault_start").then_some(cause),
        }
    });
    Some(turns.collect())
}

/// The trace's classes in the names of table 5 of "The Llama 3 Herd of Models".
fn cause(class: &serde_json::Value, what: &serde_json::Value) -> &'static str {
    let (class, what) = (class.as_str().unwrap_or(""), what.as_str().unwrap_or(""));
    match class {
        "GPU" if what.contains("ECC") => "GPU HBM3 Memory",
        "GPU" if what.contains("Temperature") => "GPU Thermal Interface + Sensor",
        "GPU" if what.contains("Silent Data") => "Silent Data Corruption",
        "GPU" => "Faulty GPU",
        "Parameter Plane Cable" => "Network Switch/Cable",
        "NIC" => "NIC",
        "Fan" | "Motherboard" | "Motherboard Battery" => "Server Chassis",
        "Power Supply" => "Power Supply",
        "CPU" => "CPU",
        "RAID Card" | "Riser Card" => "IO Expansion Board",
        "File System" | "Software Tool" | "Operating System" | "Firmware" => "Software Bug",
        "Change" | "Test" | "Training Task Troubleshooting" => "Host Maintenance",
        _ => "unknown",
    }
}

enum Item {
    Fault(usize),
    Job(JobId, u32),
    Submit(usize),
}

/// The fleet, its faults, and people who ask for the same again when a gang has ended.
struct Fleet {
    turns: Vec<Turn>,
    /// Faults that are open, by node: one has a second one before the first ends.
    open: BTreeMap<NodeId, u32>,
    refused: Vec<String>,
}

impl World for Fleet {
    type Item = Item;

    fn due(
        &mut self,
        item: Item,
        now: Millis,
        state: &State,
        _agenda: &mut Agenda<Item>,
    ) -> Vec<Command> {
        match item {
            Item::Fault(index) => self.fault(index),
            Item::Submit(kind) => vec![Command::Submit {
                owner: ["ada", "bob", "eve"][kind % 3].into(),
                spec: Arc::new(gang(kind)),
            }],
            Item::Job(job, attempt) => {
                let live = state.jobs.get(&job).filter(|live| live.attempt == attempt);
                let report = live.and_then(|live| next_report(1, live));
                let report = report.filter(|(at, _)| *at <= now);
                let report = report.map(|(_, report)| Command::Report {
                    job,
                    attempt,
                    report,
                });
                report.into_iter().collect()
            }
        }
    }

    fn follow(&mut self, event: &Event, state: &State, agenda: &mut Agenda<Item>) {
        let Some(id) = event.fact.job() else { return };
        let Some(job) = state.jobs.get(&id) else {
            if matches!(event.fact, Fact::JobEnded { .. }) && event.at < LAST {
                agenda.push(event.at, Item::Submit(id.0 as usize));
            }
            return;
        };
        if let Some((at, _)) = next_report(1, job) {
            agenda.push(at.max(event.at), Item::Job(id, job.attempt));
        }
    }

    fn refused(&mut self, command: &Command, refusal: &Refusal) {
        self.refused.push(format!("{refusal} ({command:?})"));
    }
}

impl Fleet {
    fn fault(&mut self, index: usize) -> Vec<Command> {
        let Turn { node, cause, .. } = self.turns[index].clone();
        let open = self.open.entry(node).or_default();
        if let Some(cause) = cause {
            *open += 1;
            return vec![Command::SetHealth {
                node,
                health: Health::Down,
                why: cause.into(),
            }];
        }
        *open -= 1;
        let mended = (*open == 0).then_some(Command::Repaired {
            node,
            why: "repaired".into(),
        });
        mended.into_iter().collect()
    }
}

/// Gangs of 4 to 16 whole nodes inside one block, for five to twenty days, that save twice a day or not at all.
fn gang(kind: usize) -> JobSpec {
    JobSpec {
        name: "train".into(),
        team: "research".into(),
        project: "llm".into(),
        kind: JobKind::Train,
        flavours: vec!["h100".into()],
        image: "train:1".into(),
        priority: Priority::Normal,
        pods: [4, 8, 16, 6, 12][kind % 5],
        min_pods: None,
        gpus_per_pod: MilliGpu::gpus(8),
        cpu_milli_per_pod: 32_000,
        memory_mib_per_pod: 0,
        topology: TopologyRequest {
            mode: TopologyMode::Required,
            level: Some("block".into()),
            segments: None,
        },
        time_limit: (!kind.is_multiple_of(3)).then_some(Millis::hours(40 * 24)),
        checkpoint: (!kind.is_multiple_of(4)).then_some(CheckpointContract {
            period: Millis::hours(12),
            save: Millis::seconds(50),
            on_demand: true,
        }),
        preemptible: true,
        restart_budget: 50,
        after: Vec::new(),
        run_time: Some(Millis::hours(24 * [5, 9, 14, 20][kind % 4])),
    }
}

fn fleet() -> Vec<Configure> {
    let levels = ["block", "node"].map(Into::into).to_vec();
    let mut all = vec![Configure::Topology(Topology { levels })];
    all.push(Configure::Flavour(Flavour {
        id: "h100".into(),
        title: "H100".into(),
    }));
    all.extend((0..NODES).map(|id| {
        Configure::Node(Node {
            id: NodeId(id),
            name: format!("n{id}").as_str().into(),
            flavour: Some("h100".into()),
            domains: vec![format!("b{}", id / BLOCK).as_str().into()],
            cards: 8,
            cpu_milli: 96_000,
            memory_mib: 1_000_000,
            health: match (id + 1).is_multiple_of(BLOCK) {
                true => Health::Spare,
                false => Health::Ready,
            },
            pool: Pool::Batch,
        })
    }));
    let nominal = MilliGpu::gpus(u64::from(NODES) * 8);
    let quota = Quota {
        nominal,
        ..Quota::default()
    };
    all.push(Configure::Team(Team {
        id: "research".into(),
        cohort: None,
        weight_milli: 1_000,
        quotas: BTreeMap::from([("h100".into(), quota)]),
        limits: Default::default(),
        person_limits: Default::default(),
        default_time_limit: None,
    }));
    // Faults here are the machines': nobody's program fails.
    all.push(Configure::Policy(Policy::default()));
    all
}

/// What happened, and the account beside it.
#[derive(Default)]
struct Watch {
    auditor: Auditor,
    interrupted: u64,
    replaced: u64,
    moved: u64,
    kept: u64,
    spares: u64,
    anew: u64,
    lost: BTreeMap<Area, u64>,
    ended: BTreeMap<&'static str, u64>,
    billed: MilliGpuMs,
}

impl Sink for Watch {
    fn wants_reasons(&self) -> bool {
        false
    }

    fn event(&mut self, state: &State, event: &Event, lines: &[UsageLine]) {
        if let Err(breach) = self.auditor.observe(state, event, lines) {
            panic!("{breach:?}, after {event:?}");
        }
        if let Err(broken) = invariants::check(state) {
            panic!("{broken}, after {event:?}");
        }
        self.billed += lines.iter().map(UsageLine::held).sum();
        match &event.fact {
            Fact::Interrupted { area, lost, .. } => {
                self.interrupted += 1;
                *self.lost.entry(*area).or_default() += lost / 3_600_000_000;
            }
            Fact::GangReplaced {
                moved, placement, ..
            } => {
                self.replaced += 1;
                self.moved += moved.len() as u64;
                self.kept += (placement.pods.len() - moved.len()) as u64;
            }
            Fact::NodeHealthSet { health, why, .. } => {
                let takes_over = *health == Health::Ready && why.starts_with("takes over");
                self.spares += u64::from(takes_over);
            }
            Fact::JobRequeued { .. } => self.anew += 1,
            Fact::JobEnded { end, cause, .. } => {
                assert!(!matches!(cause, Some(StopCause::Exited { .. })));
                *self.ended.entry(end.into()).or_default() += 1;
            }
            _ => {}
        }
    }
}

#[test]
fn a_year_of_real_faults_leaves_no_gang_stuck_and_every_gpu_hour_counted() {
    let name = "a_year_of_real_faults_leaves_no_gang_stuck_and_every_gpu_hour_counted";
    let Some(turns) = trace(name) else { return };
    assert_eq!(turns.len(), 1_168);
    let mut watch = Watch::default();
    let (mut engine, mut batch) = (Engine::default(), Batch::default());
    for change in fleet() {
        let taken = engine.take(&Command::Configure(change), BEGIN, &mut batch, &mut watch);
        taken.expect("the fleet is set up");
    }
    let world = Fleet {
        turns,
        open: BTreeMap::new(),
        refused: Vec::new(),
    };
    let mut driver = Driver::new(engine, world);
    for (index, turn) in driver.world.turns.iter().enumerate() {
        driver.agenda.push(turn.at, Item::Fault(index));
    }
    for kind in 0..36 {
        driver.agenda.push(BEGIN, Item::Submit(kind));
    }
    driver.run(None, &mut watch);
    let state = &driver.engine.state;
    assert_eq!(driver.world.refused, Vec::<String>::new());
    assert_eq!(
        state.jobs.len(),
        0,
        "somebody is stuck: {:?}",
        state.jobs.keys()
    );
    assert_eq!(watch.auditor.close(state), Ok(()));
    assert_eq!(
        watch.billed, watch.auditor.held,
        "what is billed is what was held"
    );
    assert_eq!(watch.ended.keys().collect::<Vec<_>>(), [&"succeeded"]);
    assert!(
        watch.replaced > 100 && watch.spares > 100,
        "{} {}",
        watch.replaced,
        watch.spares
    );
    println!(
        "{} events, {} gangs; {} interruptions: {} gangs started again with {} pods elsewhere and {} kept, {} spares \
         took over, {} were placed anew; {} GPU-hours held; GPU-hours of work lost: {:?}",
        watch.auditor.events,
        state.counts.submitted,
        watch.interrupted,
        watch.replaced,
        watch.moved,
        watch.kept,
        watch.spares,
        watch.anew,
        watch.billed.0 / 3_600_000_000,
        watch.lost,
    );
}
