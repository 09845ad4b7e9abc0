//! An independent account of who holds what.
//!
//! It is kept from the events and the specs alone, never from the engine's own figures, which it is then compared to:
//! a mistake would have to be made twice, in two places, to go unseen. Each event costs what it touches.

mod aside;
mod claims;
mod gang;
mod notebooks;

pub use claims::Tally;

use gang::Gang;
use scheduler::{
    Event, Fact, FlavourId, Health, JobId, JobKind, JobSpec, MilliGpu, MilliGpuMs, Millis, Node,
    NodeId, Placement, Pool, State, TeamId, TopologyMode, UsageLine, Victim,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// When.
    pub at: Millis,
    /// What, in words.
    pub what: String,
}

#[derive(Clone, Debug)]
struct Machine {
    node: Node,
    is_silent: bool,
    used_milli: Vec<u64>,
    used_cpu_milli: u64,
    used_memory_mib: u64,
}

/// The account.
#[derive(Clone, Debug, Default)]
pub struct Auditor {
    machines: BTreeMap<NodeId, Machine>,
    gangs: BTreeMap<JobId, Gang>,
    charged: BTreeMap<(TeamId, FlavourId), MilliGpu>,
    claims: claims::Claims,
    aside: aside::Aside,
    notebooks: notebooks::Notebooks,
    levels: usize,
    level_names: Vec<scheduler::Name>,
    touched: BTreeSet<NodeId>,
    /// Events seen.
    pub events: u64,
    /// GPU-time held by attempts that are over.
    pub held: MilliGpuMs,
    /// GPU-time in closed usage lines.
    pub metered: MilliGpuMs,
}

/// How often the engine's own check of everything runs, in events.
const WHOLE_CHECK_EVERY: u64 = 997;

impl Auditor {
    /// Takes in an event that was just folded into `state`, and the usage lines that it closed.
    pub fn observe(
        &mut self,
        state: &State,
        event: &Event,
        lines: &[UsageLine],
    ) -> Result<(), Breach> {
        self.touched.clear();
        self.events += 1;
        let told = self
            .lines(lines)
            .and_then(|()| self.take(event))
            .and_then(|()| self.compare(state));
        let told = told.and_then(|()| {
            if self.events.is_multiple_of(WHOLE_CHECK_EVERY) {
                scheduler::invariants::check(state)
            } else {
                Ok(())
            }
        });
        told.map_err(|what| Breach { at: event.at, what })
    }

    fn lines(&mut self, lines: &[UsageLine]) -> Result<(), String> {
        for line in lines {
            let gang = self
                .gangs
                .get_mut(&line.job)
                .ok_or_else(|| format!("a usage line of job {}, which is not live", line.job))?;
            if line.attempt != gang.attempt
                || line.to <= line.from
                || gang.first_bound.is_none_or(|bound| line.from < bound)
            {
                return Err(format!(
                    "a usage line of job {} lies outside its attempt: {line:?}",
                    line.job
                ));
            }
            gang.metered += line.held();
            self.metered += line.held();
        }
        Ok(())
    }

    /// How claims have ended so far.
    pub fn claims(&self) -> Tally {
        self.claims.tally
    }

    fn take(&mut self, event: &Event) -> Result<(), String> {
        self.claims.take(&event.fact)?;
        self.aside.take(&event.fact)?;
        self.notebooks.take(event)?;
        match &event.fact {
            Fact::TopologySet { topology } => {
                self.levels = topology.levels.len();
                self.level_names.clone_from(&topology.levels);
            }
            Fact::NodeSet { node } => self.set_node(node),
            Fact::NodeHealthSet { node, health, .. } => {
                let machine = self.machine(*node)?;
                machine.node.health = *health;
                if matches!(health, Health::Ready | Health::Down | Health::Spare) {
                    machine.is_silent = false;
                }
            }
            Fact::NodeSilent { node, .. } => self.machine(*node)?.is_silent = true,
            Fact::NodeHeard { node } => self.machine(*node)?.is_silent = false,
            Fact::JobSubmitted { job, spec, .. } => {
                self.gangs.insert(*job, Gang::new(spec));
            }
            Fact::JobAdmitted {
                job,
                attempt,
                placement,
            } => self.admit(*job, *attempt, placement)?,
            Fact::GangBound { job, attempt } => {
                // What it kept until now.
                let held = self.gang(*job)?.bind(*job, *attempt, event.at)?;
                self.held += held;
            }
            Fact::PodsLost { job, node, .. } => self.lose(*job, *node, event.at)?,
            Fact::PodSucceeded { job, rank, .. } => self.drop_pod(*job, *rank, event.at)?,
            Fact::StopRequested { job, .. } => self.gang(*job)?.runs = true,
            Fact::GangStopped { job, .. } => self.gang(*job)?.stop(*job)?,
            Fact::GangReplaced {
                job,
                attempt,
                placement,
                moved,
            } => self.replace(*job, *attempt, placement, moved, event.at)?,
            Fact::ShrinkRequested { job, keeps, .. } => self.gang(*job)?.stop_shed(*job, *keeps)?,
            Fact::GangShrunk {
                job, keeps, cause, ..
            } => self.shrink(*job, *keeps, cause, event.at)?,
            Fact::StepsStopped { job, .. }
            | Fact::StepsResumed { job, .. }
            | Fact::ActivityStopped { job, .. }
            | Fact::ActivityResumed { job, .. }
            | Fact::IdleWarned { job, .. }
            | Fact::Interrupted { job, .. } => drop(self.gang(*job)?),
            Fact::NotebookSuspended { job, .. } | Fact::NotebookResumed { job, .. } => {
                if self.gang(*job)?.has() {
                    return Err(format!("job {job} is suspended and holds GPUs"));
                }
            }
            Fact::JobRequeued { job, .. } => self.release(*job, event.at)?,
            Fact::JobEnded { job, .. } => {
                self.release(*job, event.at)?;
                let gang = self
                    .gangs
                    .remove(job)
                    .ok_or_else(|| format!("job {job} ended twice"))?;
                if gang.held != gang.metered {
                    let (held, metered) = (gang.held.0, gang.metered.0);
                    return Err(format!(
                        "job {job} held {held} milli-GPU-ms and was metered {metered}"
                    ));
                }
            }
            Fact::ClaimMade { claim, .. } => {
                for victim in &claim.victims {
                    self.discharge(victim)?;
                }
            }
            Fact::ClaimRequested { .. }
            | Fact::ClaimApproved { .. }
            | Fact::ClaimDeclined { .. }
            | Fact::ClaimDeferred { .. }
            | Fact::ClaimWithdrawn { .. }
            | Fact::SaveAsked { .. }
            | Fact::HoldSet { .. }
            | Fact::HoldLifted { .. }
            | Fact::FlavourSet { .. }
            | Fact::CohortSet { .. }
            | Fact::CohortRemoved { .. }
            | Fact::TeamSet { .. }
            | Fact::TeamRemoved { .. }
            | Fact::PolicySet { .. }
            | Fact::LimitsSet { .. }
            | Fact::RateCardSet { .. }
            | Fact::GangStarted { .. }
            | Fact::CheckpointStarted { .. }
            | Fact::CheckpointSaved { .. }
            | Fact::TimeLimitExtended { .. }
            | Fact::HourPassed => {}
        }
        Ok(())
    }

    fn set_node(&mut self, node: &Node) {
        let used_milli = vec![0; usize::from(node.cards)];
        let machine = Machine {
            node: node.clone(),
            is_silent: false,
            used_milli,
            used_cpu_milli: 0,
            used_memory_mib: 0,
        };
        self.touched.insert(node.id);
        self.machines.insert(node.id, machine);
    }

    fn gang(&mut self, job: JobId) -> Result<&mut Gang, String> {
        self.gangs
            .get_mut(&job)
            .ok_or_else(|| format!("job {job} is not live"))
    }

    fn admit(
        &mut self,
        job: JobId,
        attempt: u32,
        placement: &Arc<Placement>,
    ) -> Result<(), String> {
        let gang = self.gang(job)?;
        if gang.has() || attempt != gang.attempt + 1 {
            return Err(format!(
                "job {job} was admitted out of place, attempt {attempt}"
            ));
        }
        gang.admit(attempt, placement);
        let spec = Arc::clone(&gang.spec);
        self.aside.start(job, &spec)?;
        self.notebooks.start(job)?;
        self.lay(job, &spec, placement, &|_| true)?;
        if let Some(flavour) = &placement.flavour {
            *self
                .charged
                .entry((spec.team.clone(), flavour.clone()))
                .or_default() += spec.gpus_of(placement.pods.len() as u32);
        }
        Ok(())
    }

    /// Pods come to their places; `is_new` says which ranks were not there before.
    fn lay(
        &mut self,
        job: JobId,
        spec: &JobSpec,
        placement: &Placement,
        is_new: &dyn Fn(u32) -> bool,
    ) -> Result<(), String> {
        gang::check_size(job, spec, placement.pods.len() as u32)?;
        if !placement
            .flavour
            .as_ref()
            .map_or(spec.gpus().0 == 0, |flavour| {
                spec.flavours.contains(flavour)
            })
        {
            return Err(format!(
                "job {job} was given {:?}, which it did not ask for",
                placement.flavour
            ));
        }
        for (rank, pod) in (0..).zip(&placement.pods) {
            self.check_node(job, spec, placement, pod)?;
            if is_new(rank) {
                self.place(job, spec, pod)?;
            }
        }
        if spec.topology.mode == TopologyMode::Required {
            self.check_topology(job, spec, placement)?;
        }
        Ok(())
    }

    /// The node takes new work of this kind.
    fn check_node(
        &mut self,
        job: JobId,
        spec: &JobSpec,
        all: &Placement,
        pod: &scheduler::PodPlace,
    ) -> Result<(), String> {
        let name = format!("job {job} on node {}", pod.node);
        let machine = self
            .machines
            .get(&pod.node)
            .ok_or_else(|| format!("{name}: no such node"))?;
        self.aside.place(job, &machine.node, &self.level_names)?;
        let pool = if spec.kind == JobKind::Notebook {
            Pool::Notebook
        } else {
            Pool::Batch
        };
        if machine.node.health != Health::Ready || machine.is_silent || machine.node.pool != pool {
            return Err(format!(
                "{name}: it is {:?} in pool {:?}, silent: {}",
                machine.node.health, machine.node.pool, machine.is_silent
            ));
        }
        if all.flavour.is_some() && machine.node.flavour != all.flavour {
            return Err(format!("{name}: its GPUs are of another kind"));
        }
        Ok(())
    }

    fn machine(&mut self, node: NodeId) -> Result<&mut Machine, String> {
        self.machines
            .get_mut(&node)
            .ok_or_else(|| format!("node {node} was never added"))
    }

    fn place(
        &mut self,
        job: JobId,
        spec: &JobSpec,
        pod: &scheduler::PodPlace,
    ) -> Result<(), String> {
        let name = format!("job {job} on node {}", pod.node);
        let machine = self.machine(pod.node)?;
        if u64::from(pod.cards.count_ones()) * u64::from(pod.milli) != spec.gpus_per_pod.0 {
            return Err(format!(
                "{name}: {} cards x {} is not what the pod asks",
                pod.cards.count_ones(),
                pod.milli
            ));
        }
        for card in (0..32).filter(|card| pod.cards & (1 << card) != 0) {
            let used = machine
                .used_milli
                .get_mut(card)
                .ok_or_else(|| format!("{name}: it has no card {card}"))?;
            *used += u64::from(pod.milli);
            if *used > 1_000 {
                return Err(format!("{name}: card {card} is held twice"));
            }
        }
        machine.used_cpu_milli += spec.cpu_milli_per_pod;
        machine.used_memory_mib += spec.memory_mib_per_pod;
        if machine.used_cpu_milli > machine.node.cpu_milli
            || machine.used_memory_mib > machine.node.memory_mib
        {
            return Err(format!("{name}: more CPU or memory than it has"));
        }
        self.touched.insert(pod.node);
        Ok(())
    }

    /// A required request: the gang, or each of its segments in order of rank, inside one domain of the level.
    fn check_topology(
        &self,
        job: JobId,
        spec: &JobSpec,
        placement: &Placement,
    ) -> Result<(), String> {
        let level = spec
            .topology
            .level
            .as_ref()
            .and_then(|name| self.level_names.iter().position(|known| known == name));
        let Some(level) = level else { return Ok(()) };
        let part = spec
            .topology
            .segments
            .map_or(placement.pods.len() as u32, |segments| segments.pods)
            .max(1) as usize;
        for segment in placement.pods.chunks(part) {
            let domains: BTreeSet<_> = segment
                .iter()
                .map(|pod| self.domain(pod.node, level))
                .collect();
            if domains.len() != 1 {
                return Err(format!(
                    "job {job} requires one {} and lies in {}",
                    self.level_names[level],
                    domains.len()
                ));
            }
        }
        Ok(())
    }

    fn domain(&self, node: NodeId, level: usize) -> Option<&scheduler::Name> {
        let node = &self.machines.get(&node)?.node;
        if level + 1 == self.levels {
            Some(&node.name)
        } else {
            node.domains.get(level)
        }
    }

    /// A victim: its charge leaves, what it holds does not.
    fn discharge(&mut self, victim: &Victim) -> Result<(), String> {
        let job = victim.job;
        let gang = self.gang(job)?;
        if !gang.has() {
            return Err(format!("job {job} is taken and has nothing"));
        }
        let had = gang.charged();
        match victim.keeps {
            Some(keeps) => gang.shed(job, keeps)?,
            None => gang.is_taken = true,
        }
        let less = had.minus(gang.charged());
        if victim.gpus != less {
            let told = victim.gpus;
            return Err(format!(
                "job {job} gives up {less}, and is said to give up {told}"
            ));
        }
        let (flavour, spec) = (gang.flavour.clone(), Arc::clone(&gang.spec));
        if let Some(flavour) = flavour
            && let Some(charged) = self.charged.get_mut(&(spec.team.clone(), flavour.clone()))
        {
            *charged = charged.minus(less);
        }
        Ok(())
    }

    /// Every pod of the gang is gone.
    fn release(&mut self, job: JobId, at: Millis) -> Result<(), String> {
        let gang = self.gang(job)?;
        let charged_for = gang.charged();
        gang.is_taken = false;
        if !gang.has() {
            return Ok(());
        }
        let (spec, flavour) = (Arc::clone(&gang.spec), gang.flavour.clone());
        let held = gang.settle(at);
        let pods = gang.end();
        self.held += held;
        for pod in pods {
            self.give_back(&spec, pod)?;
        }
        if let Some(flavour) = flavour
            && let Some(charged) = self.charged.get_mut(&(spec.team.clone(), flavour.clone()))
        {
            *charged = charged.minus(charged_for);
        }
        Ok(())
    }

    /// The engine's figures of what this event touched are the account's.
    fn compare(&self, state: &State) -> Result<(), String> {
        for id in &self.touched {
            let (ours, theirs) = (
                &self.machines[id],
                state
                    .nodes
                    .get(id)
                    .ok_or_else(|| format!("node {id} is not in the state"))?,
            );
            let free = ours.used_milli.iter().map(|used| 1_000 - used);
            let same = theirs
                .free_milli
                .iter()
                .map(|milli| u64::from(*milli))
                .eq(free)
                && theirs.free_cpu_milli == ours.node.cpu_milli - ours.used_cpu_milli
                && theirs.free_memory_mib == ours.node.memory_mib - ours.used_memory_mib;
            if !same {
                return Err(format!(
                    "node {id}: the engine's free room is not what its pods leave: {theirs:?}"
                ));
            }
        }
        if self.events.is_multiple_of(WHOLE_CHECK_EVERY) {
            self.compare_charges(state)?;
        }
        Ok(())
    }

    fn compare_charges(&self, state: &State) -> Result<(), String> {
        let ours = self
            .charged
            .iter()
            .filter(|(_, charged)| charged.0 > 0)
            .map(|((team, flavour), charged)| (team, flavour, *charged));
        let theirs = state.charged.iter().flat_map(|(team, all)| {
            all.iter()
                .map(move |(flavour, charged)| (team, flavour, *charged))
        });
        if ours.eq(theirs) {
            Ok(())
        } else {
            Err("the engine's charges are not the sum over its admitted jobs".into())
        }
    }

    /// At the end of a run: nothing is held, everything that was held is metered.
    pub fn close(&self, state: &State) -> Result<(), Breach> {
        let breach = |what: String| Breach { at: state.at, what };
        scheduler::invariants::check(state).map_err(breach)?;
        self.compare_charges(state).map_err(breach)?;
        if let Some(left) = self.claims.unanswered() {
            return Err(breach(left));
        }
        let running = self.gangs.values().filter(|gang| gang.has()).count();
        if running == 0 && self.held != self.metered {
            return Err(breach(format!(
                "held {} milli-GPU-ms, metered {}",
                self.held.0, self.metered.0
            )));
        }
        Ok(())
    }
}
