//! A small world for tests: a state, its meter and a clock, moved by commands. Every invariant is checked after every
//! event.

#![allow(dead_code, reason = "each test binary uses its part of the builder")]

use scheduler::*;
use std::collections::BTreeMap;
use std::sync::Arc;

pub struct World {
    pub state: State,
    pub meter: Meter,
    pub now: Millis,
    pub journal: Vec<Event>,
    pub lines: Vec<UsageLine>,
}

impl World {
    /// Blocks of racks of nodes of eight GPUs, all of flavour `h100`, named `b0`, `b0-r0`, `b0-r0-n0`.
    pub fn grid(blocks: u32, racks: u32, nodes: u32) -> Self {
        let mut world = Self::bare(&["block", "rack", "node"]);
        for block in 0..blocks {
            for rack in 0..racks {
                for node in 0..nodes {
                    let rack = format!("b{block}-r{rack}");
                    world.node(
                        &format!("{rack}-n{node}"),
                        "h100",
                        8,
                        &[&format!("b{block}"), &rack],
                    );
                }
            }
        }
        world
    }

    /// Levels, and the flavours `h100` and `a100`, nothing else.
    pub fn bare(levels: &[&str]) -> Self {
        let mut world = Self {
            state: State::default(),
            meter: Meter::default(),
            now: Millis::hours(1_000),
            journal: Vec::new(),
            lines: Vec::new(),
        };
        let levels = levels.iter().map(|&level| level.into()).collect();
        world.set(Configure::Topology(Topology { levels }));
        for flavour in ["h100", "a100"] {
            world.set(Configure::Flavour(Flavour {
                id: flavour.into(),
                title: flavour.into(),
            }));
        }
        world
    }

    pub fn set(&mut self, change: Configure) {
        self.command(Command::Configure(change))
            .expect("the change is allowed");
    }

    /// Nobody is taken for anybody.
    pub fn without_claims(mut self) -> Self {
        let policy = Policy {
            owner_reclaim: false,
            fair_reclaim: false,
            ..self.state.policy.clone()
        };
        self.set(Configure::Policy(policy));
        self
    }

    pub fn node(&mut self, name: &str, flavour: &str, cards: u16, domains: &[&str]) -> NodeId {
        self.node_of(Pool::Batch, name, flavour, cards, domains)
    }

    /// A node of a pool.
    pub fn node_of(
        &mut self,
        pool: Pool,
        name: &str,
        flavour: &str,
        cards: u16,
        domains: &[&str],
    ) -> NodeId {
        let id = NodeId(self.state.nodes.len() as u32);
        self.set(Configure::Node(Node {
            id,
            name: name.into(),
            flavour: (cards > 0).then(|| flavour.into()),
            domains: domains.iter().map(|&domain| domain.into()).collect(),
            cards,
            cpu_milli: 96_000,
            memory_mib: 1_000_000,
            health: Health::Ready,
            pool,
        }));
        id
    }

    pub fn cohort(&mut self, id: &str, parent: Option<&str>, quotas: &[(&str, Quota)]) {
        let parent = parent.map(CohortId::from);
        self.set(Configure::Cohort(Cohort {
            id: id.into(),
            parent,
            quotas: named(quotas),
            weight_milli: 1_000,
            reclaim: ReclaimMode::Auto,
        }));
    }

    pub fn team(&mut self, id: &str, cohort: Option<&str>, quotas: &[(&str, Quota)]) {
        self.set(Configure::Team(Team {
            id: id.into(),
            cohort: cohort.map(CohortId::from),
            weight_milli: 1_000,
            quotas: named(quotas),
            limits: Limits::default(),
            person_limits: Limits::default(),
            default_time_limit: None,
        }));
    }

    pub fn command(&mut self, command: Command) -> Result<Vec<Event>, Refusal> {
        let events = decide(&self.state, &command, self.now)?;
        events.iter().for_each(|event| self.take(event));
        Ok(events)
    }

    pub fn take(&mut self, event: &Event) {
        apply(&mut self.state, event);
        self.lines.extend(self.meter.observe(&self.state, event));
        self.journal.push(event.clone());
        if let Err(broken) = invariants::check(&self.state) {
            panic!("after {event:?}: {broken}");
        }
    }

    pub fn submit(&mut self, spec: JobSpec) -> JobId {
        let command = Command::Submit {
            owner: "ada".into(),
            spec: Arc::new(spec),
        };
        self.command(command).expect("the spec is taken in");
        JobId(self.state.counts.submitted)
    }

    /// One cycle, folded.
    pub fn cycle(&mut self) -> Plan {
        let plan = plan(&self.state, self.now);
        plan.events.iter().for_each(|event| self.take(event));
        plan
    }

    pub fn report(&mut self, job: JobId, report: Report) -> Result<Vec<Event>, Refusal> {
        let attempt = self.state.jobs.get(&job).map_or(0, |job| job.attempt);
        self.command(Command::Report {
            job,
            attempt,
            report,
        })
    }

    /// Bound and up.
    pub fn run(&mut self, job: JobId) {
        for report in [Report::Bound, Report::Started] {
            self.report(job, report).expect("the gang comes up");
        }
    }

    /// Sets something aside.
    pub fn hold(&mut self, scope: HoldScope, mode: HoldMode) -> Result<Vec<Event>, Refusal> {
        self.command(Command::Hold {
            scope,
            mode,
            by: "bea".into(),
            why: Some("recabling".into()),
        })
    }

    pub fn release(&mut self, scope: HoldScope) -> Result<Vec<Event>, Refusal> {
        self.command(Command::Release {
            scope,
            by: "bea".into(),
            why: None,
        })
    }

    pub fn suspend(&mut self, job: JobId) -> Result<Vec<Event>, Refusal> {
        let by = "ada".into();
        self.command(Command::Suspend { job, by, why: None })
    }

    pub fn resume(&mut self, job: JobId) -> Result<Vec<Event>, Refusal> {
        let by = "ada".into();
        self.command(Command::Resume { job, by, why: None })
    }

    pub fn health(&mut self, node: u32, health: Health) {
        let command = Command::SetHealth {
            node: NodeId(node),
            health,
            why: "xid 79".into(),
        };
        self.command(command).expect("the node is there");
    }

    /// Lets time pass and ticks once.
    pub fn pass(&mut self, span: Millis) -> Vec<Event> {
        self.now += span;
        self.command(Command::Tick)
            .expect("a tick is never refused")
    }

    pub fn phase(&self, job: JobId) -> Option<Phase> {
        self.state.jobs.get(&job).map(|job| job.phase)
    }

    /// Names of the nodes that a job lies on, with its pods there.
    pub fn nodes(&self, job: JobId) -> Vec<(String, u32)> {
        let allocation = self
            .state
            .jobs
            .get(&job)
            .and_then(|job| job.allocation.as_ref());
        let pods = allocation
            .map(|allocation| allocation.placement.pods.as_slice())
            .unwrap_or_default();
        on_nodes(&self.state, pods)
    }
}

/// Names of nodes with their pods, in order of rank.
pub fn on_nodes(state: &State, pods: &[PodPlace]) -> Vec<(String, u32)> {
    let mut nodes: Vec<(String, u32)> = Vec::new();
    for pod in pods {
        let name = state.nodes[&pod.node].node.name.to_string();
        match nodes.last_mut() {
            Some((last, pods)) if *last == name => *pods += 1,
            _ => nodes.push((name, 1)),
        }
    }
    nodes
}

fn named(quotas: &[(&str, Quota)]) -> BTreeMap<FlavourId, Quota> {
    quotas
        .iter()
        .map(|&(flavour, quota)| (flavour.into(), quota))
        .collect()
}

/// So many GPUs, lent and borrowed without limit.
pub fn own(gpus: u64) -> Quota {
    Quota {
        nominal: MilliGpu::gpus(gpus),
        borrowing_limit: None,
        lending_limit: None,
    }
}

/// A gang of `pods` x `gpus`, anywhere, that survives five failures.
pub fn gang(team: &str, pods: u32, gpus: u64) -> JobSpec {
    JobSpec {
        name: "tune".into(),
        team: team.into(),
        project: "fraud".into(),
        kind: JobKind::Train,
        flavours: vec!["h100".into()],
        image: "train:1".into(),
        priority: Priority::Normal,
        pods,
        min_pods: None,
        gpus_per_pod: MilliGpu::gpus(gpus),
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
    }
}

/// The same with a topology request.
pub fn shaped(spec: JobSpec, mode: TopologyMode, level: &str, segment: Option<u32>) -> JobSpec {
    let segments = segment.map(|pods| Segments { pods });
    JobSpec {
        topology: TopologyRequest {
            mode,
            level: Some(level.into()),
            segments,
        },
        ..spec
    }
}
