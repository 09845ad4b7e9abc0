//! What a record asks of the engine: jobs with their times, and the fleet that they run on.

use crate::driver::{Batch, Engine, Sink};
use crate::trace::{PodRow, SacctRead, TraceNode};
use scheduler::{
    Command, Configure, Flavour, FlavourId, Health, JobKind, JobSpec, Limits, MilliGpu, Millis,
    Name, Node, NodeId, PersonId, Pool, Priority, Quota, Refusal, Team, TeamId, Topology,
    TopologyMode, TopologyRequest,
};
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::sync::Arc;

/// How a job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// After it ran so long.
    After(Millis),
    /// Then, running or not: its owner takes it back.
    WithdrawnAt(Millis),
}

/// A job to come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// When it comes.
    pub submitted: Millis,
    /// Whose.
    pub owner: PersonId,
    /// What it asks for.
    pub spec: Arc<JobSpec>,
    /// How it ends.
    pub ends: Ends,
}

/// Equal nodes: `NODESxGPUS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// How many.
    pub nodes: u32,
    /// GPUs in each.
    pub gpus: u16,
}

/// Most nodes of a made-up cluster.
const MOST_NODES: u32 = 100_000;
/// Most GPUs of a node.
const MOST_GPUS: u16 = 32;

impl FromStr for Cluster {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text
            .split_once('x')
            .and_then(|(nodes, gpus)| Some((nodes.parse().ok()?, gpus.parse().ok()?)));
        match parsed {
            Some((nodes, gpus))
                if (1..=MOST_NODES).contains(&nodes) && (1..=MOST_GPUS).contains(&gpus) =>
            {
                Ok(Self { nodes, gpus })
            }
            _ => Err(format!(
                "`{text}` is not NODESxGPUS, such as 32x8: 1 to {MOST_NODES} nodes, each of 1 to {MOST_GPUS} GPUs"
            )),
        }
    }
}

/// The fleet's kind of GPU when a cluster is only counted.
const ANY_GPU: &str = "gpu";
/// The owner and team of a trace that names none.
const NOBODY: &str = "trace";

impl Cluster {
    /// Its nodes; CPU and memory are not known, and not judged.
    pub fn machines(self) -> Vec<TraceNode> {
        let one = |number: u32| TraceNode {
            name: format!("n{number:05}"),
            cpu_milli: 0,
            memory_mib: 0,
            cards: self.gpus,
            model: (self.gpus > 0).then(|| ANY_GPU.to_owned()),
        };
        (0..self.nodes).map(one).collect()
    }
}

/// An engine with these nodes, and for each team of the work a quota of everything: only room is judged.
///
/// A kind of GPU that is asked for and not there is known with nothing of it: such a job can never run.
pub fn engine_for(
    machines: &[TraceNode],
    work: &[Work],
    sink: &mut impl Sink,
) -> Result<Engine, Refusal> {
    let teams: BTreeSet<&TeamId> = work.iter().map(|job| &job.spec.team).collect();
    let asked = work
        .iter()
        .flat_map(|job| job.spec.flavours.iter().cloned());
    let mut total: BTreeMap<FlavourId, MilliGpu> =
        asked.map(|flavour| (flavour, MilliGpu::ZERO)).collect();
    let now = work
        .iter()
        .map(|job| job.submitted)
        .min()
        .unwrap_or_default();
    for machine in machines {
        if let Some(model) = &machine.model {
            *total.entry(model.as_str().into()).or_default() +=
                MilliGpu::gpus(u64::from(machine.cards));
        }
    }
    let quota = |nominal: &MilliGpu| Quota {
        nominal: *nominal,
        borrowing_limit: None,
        lending_limit: None,
    };
    let quotas: BTreeMap<_, _> = total
        .iter()
        .map(|(flavour, nominal)| (flavour.clone(), quota(nominal)))
        .collect();
    let team = |id: &TeamId| Team {
        id: id.clone(),
        cohort: None,
        weight_milli: 1_000,
        quotas: quotas.clone(),
        limits: Limits::default(),
        person_limits: Limits::default(),
        default_time_limit: None,
    };
    let mut all = vec![Configure::Topology(Topology {
        levels: vec![Name::from("node")],
    })];
    all.extend(total.keys().map(|id| {
        Configure::Flavour(Flavour {
            id: id.clone(),
            title: id.to_string(),
        })
    }));
    all.extend(teams.into_iter().map(team).map(Configure::Team));
    all.extend(
        machines
            .iter()
            .zip(0..)
            .map(|(machine, number)| Configure::Node(node(NodeId(number), machine))),
    );
    let mut engine = Engine::default();
    for change in all {
        engine.take(
            &Command::Configure(change),
            now,
            &mut Batch::default(),
            sink,
        )?;
    }
    Ok(engine)
}

fn node(id: NodeId, machine: &TraceNode) -> Node {
    Node {
        id,
        name: machine.name.as_str().into(),
        flavour: machine.model.as_deref().map(FlavourId::from),
        domains: Vec::new(),
        cards: machine.cards,
        cpu_milli: machine.cpu_milli,
        memory_mib: machine.memory_mib,
        health: Health::Ready,
        pool: Pool::Batch,
    }
}

/// Whether the fleet's CPU and memory are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judge {
    /// GPUs, CPU and memory.
    Everything,
    /// GPUs only.
    GpusOnly,
}

/// The shape of one pod of a job.
struct Shape {
    pods: u32,
    gpus: MilliGpu,
    cpu_milli: u64,
    memory_mib: u64,
}

fn spec(
    name: &str,
    team: TeamId,
    flavours: Vec<FlavourId>,
    shape: &Shape,
    judge: Judge,
) -> Arc<JobSpec> {
    let judged = |amount: u64| {
        if judge == Judge::Everything {
            amount
        } else {
            0
        }
    };
    Arc::new(JobSpec {
        name: name.to_owned(),
        team,
        project: String::new(),
        kind: JobKind::Batch,
        flavours: if shape.gpus.0 == 0 {
            Vec::new()
        } else {
            flavours
        },
        image: String::new(),
        priority: Priority::Normal,
        pods: shape.pods,
        min_pods: None,
        gpus_per_pod: shape.gpus,
        cpu_milli_per_pod: judged(shape.cpu_milli),
        memory_mib_per_pod: judged(shape.memory_mib),
        topology: TopologyRequest {
            mode: TopologyMode::Unconstrained,
            level: None,
            segments: None,
        },
        time_limit: None,
        checkpoint: None,
        preemptible: false,
        restart_budget: 0,
        after: Vec::new(),
        run_time: None,
    })
}

/// Rules of [`pods_work`], in words.
pub const POD_RULES: [&str; 4] = [
    "a pod comes at its creation time; once started it runs for its recorded deletion - scheduled time",
    "a pod recorded as Running has no end of its own: it runs as long as from its recorded start to the last time in the list",
    "a pod that was never scheduled is withdrawn at its recorded deletion, running or waiting",
    "gpu_spec names the kinds of GPU allowed, in order; an empty one allows all of the fleet's",
];

/// Pods as jobs of one pod, of one team.
pub fn pods_work(pods: &[PodRow], fleet: &[TraceNode], judge: Judge) -> Vec<Work> {
    let models: BTreeSet<&str> = fleet
        .iter()
        .filter_map(|machine| machine.model.as_deref())
        .collect();
    let counted_only = models.iter().eq([&ANY_GPU]);
    let any: Vec<FlavourId> = models.into_iter().map(FlavourId::from).collect();
    let times = pods
        .iter()
        .flat_map(|pod| [Some(pod.created), pod.scheduled, pod.deleted]);
    let horizon = times.flatten().max().unwrap_or_default();
    let one = |pod: &PodRow| {
        let named = || {
            pod.models
                .iter()
                .map(|model| FlavourId::from(model.as_str()))
                .collect()
        };
        let flavours = if pod.models.is_empty() || counted_only {
            any.clone()
        } else {
            named()
        };
        let shape = Shape {
            pods: 1,
            gpus: pod.gpus,
            cpu_milli: pod.cpu_milli,
            memory_mib: pod.memory_mib,
        };
        Work {
            submitted: pod.created,
            owner: NOBODY.into(),
            spec: spec(&pod.name, NOBODY.into(), flavours, &shape, judge),
            ends: pod_ends(pod, horizon),
        }
    };
    pods.iter().map(one).collect()
}

fn pod_ends(pod: &PodRow, horizon: Millis) -> Ends {
    match (pod.scheduled, pod.deleted) {
        (Some(scheduled), Some(deleted)) if !pod.left_running => {
            Ends::After(deleted.since(scheduled))
        }
        (Some(scheduled), _) => Ends::After(horizon.since(scheduled)),
        (None, deleted) => Ends::WithdrawnAt(deleted.unwrap_or(horizon)),
    }
}

/// Rules of [`sacct_work`], in words.
pub const SACCT_RULES: [&str; 3] = [
    "a job comes at its submission and runs for its recorded time; its account is its team",
    "its nodes are its pods where they divide its GPUs, otherwise it has one pod for each GPU",
    "a job that was never given a node is left out",
];

/// Accounting as gangs, a team for each account.
pub fn sacct_work(read: &SacctRead, fleet: &[TraceNode], judge: Judge) -> Vec<Work> {
    let models: BTreeSet<&str> = fleet
        .iter()
        .filter_map(|machine| machine.model.as_deref())
        .collect();
    let flavours: Vec<FlavourId> = models.into_iter().map(FlavourId::from).collect();
    let ran = read.jobs.rows.iter().filter(|job| job.ran());
    let all = ran.flat_map(|job| {
        let nodes = job.nodes.max(1);
        let pods = if job.gpus.is_multiple_of(nodes) {
            nodes
        } else {
            job.gpus
        };
        let shape = Shape {
            pods: u32::try_from(pods).unwrap_or(u32::MAX),
            gpus: MilliGpu::gpus(job.gpus / pods),
            cpu_milli: (job.cpus * 1_000).div_ceil(pods),
            memory_mib: job.memory_mib.div_ceil(pods),
        };
        let work = Work {
            submitted: job.submit,
            owner: job.user.as_str().into(),
            spec: spec(
                &job.id,
                job.account.as_str().into(),
                flavours.clone(),
                &shape,
                judge,
            ),
            ends: Ends::After(job.elapsed()),
        };
        (0..job.count()).map(move |_| work.clone())
    });
    let mut all: Vec<Work> = all.collect();
    all.sort_by_key(|work| work.submitted);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> PodRow {
        PodRow {
            name: "p".into(),
            cpu_milli: 1_000,
            memory_mib: 1,
            gpus: MilliGpu(500),
            models: Vec::new(),
            left_running: false,
            created: Millis::seconds(10),
            scheduled: Some(Millis::seconds(12)),
            deleted: Some(Millis::seconds(20)),
        }
    }

    #[test]
    fn a_cluster_is_read_from_its_counts() {
        assert_eq!("32x8".parse(), Ok(Cluster { nodes: 32, gpus: 8 }));
        assert!("32".parse::<Cluster>().unwrap_err().contains("NODESxGPUS"));
        assert!("0x8".parse::<Cluster>().is_err() && "1x64".parse::<Cluster>().is_err());
    }

    #[test]
    fn pods_end_by_the_rules_stated() {
        let horizon = Millis::seconds(100);
        assert_eq!(pod_ends(&pod(), horizon), Ends::After(Millis::seconds(8)));
        assert_eq!(
            pod_ends(
                &PodRow {
                    left_running: true,
                    ..pod()
                },
                horizon
            ),
            Ends::After(Millis::seconds(88))
        );
        assert_eq!(
            pod_ends(
                &PodRow {
                    scheduled: None,
                    ..pod()
                },
                horizon
            ),
            Ends::WithdrawnAt(Millis::seconds(20))
        );
        assert_eq!(
            pod_ends(
                &PodRow {
                    deleted: None,
                    ..pod()
                },
                horizon
            ),
            Ends::After(Millis::seconds(88))
        );
    }

    #[test]
    fn a_pod_without_a_wish_may_have_any_gpu_of_the_fleet() {
        let fleet = Cluster { nodes: 1, gpus: 8 }.machines();
        assert_eq!(
            pods_work(&[pod()], &fleet, Judge::GpusOnly)[0]
                .spec
                .flavours,
            [FlavourId::from("gpu")]
        );
        let picky = PodRow {
            models: vec!["V100M16".into(), "V100M32".into()],
            ..pod()
        };
        let machine = |model: &str| TraceNode {
            model: Some(model.into()),
            ..fleet[0].clone()
        };
        let mixed = [machine("T4"), machine("V100M32")];
        let flavours = &pods_work(&[picky], &mixed, Judge::Everything)[0]
            .spec
            .flavours;
        assert_eq!(flavours, &["V100M16", "V100M32"].map(FlavourId::from));
    }
}
