//! The auditor's own account of one gang: where its pods are, and since when it holds them.

use super::Auditor;
use scheduler::{
    FlavourId, Health, JobId, JobSpec, MilliGpu, MilliGpuMs, Millis, NodeId, Placement, PodPlace,
    StopCause,
};
use std::sync::Arc;

/// One job.
#[derive(Clone, Debug)]
pub(super) struct Gang {
    pub(super) spec: Arc<JobSpec>,
    pub(super) attempt: u32,
    pub(super) flavour: Option<FlavourId>,
    /// By rank, from admit to confirmed exit; nothing where a pod is gone.
    pods: Vec<Option<PodPlace>>,
    /// Ranks that are placed and not bound yet, of an attempt that has others.
    unbound: Vec<u32>,
    /// Bound for the first time since it was admitted.
    pub(super) first_bound: Option<Millis>,
    /// Counted as held up to then.
    since: Option<Millis>,
    /// A stop was asked for and is not confirmed.
    pub(super) runs: bool,
    /// Its charge has left: it was taken.
    pub(super) is_taken: bool,
    /// Pods that it keeps, while it gives up the others; and whether these are being stopped.
    shed: Option<(u32, bool)>,
    /// Held so far.
    pub(super) held: MilliGpuMs,
    /// Billed in closed lines.
    pub(super) metered: MilliGpuMs,
}

impl Gang {
    pub(super) fn new(spec: &Arc<JobSpec>) -> Self {
        Self {
            spec: Arc::clone(spec),
            attempt: 0,
            flavour: None,
            pods: Vec::new(),
            unbound: Vec::new(),
            first_bound: None,
            since: None,
            runs: true,
            is_taken: false,
            shed: None,
            held: MilliGpuMs::default(),
            metered: MilliGpuMs::default(),
        }
    }

    /// What its team is charged for it.
    pub(super) fn charged(&self) -> MilliGpu {
        let size = self.pods.len() as u32;
        let pods = match (self.is_taken, self.shed) {
            (true, _) => 0,
            (false, Some((keeps, _))) => keeps,
            (false, None) => size,
        };
        self.spec.gpus_of(pods)
    }

    /// It is to give up its highest ranks: the fewest with which it runs, and no part of a segment.
    pub(super) fn shed(&mut self, job: JobId, keeps: u32) -> Result<(), String> {
        check_size(job, &self.spec, keeps)?;
        if self.shed.is_some() || self.is_taken || keeps >= self.pods.len() as u32 {
            return Err(format!("job {job} cannot shrink to {keeps} pods"));
        }
        self.shed = Some((keeps, false));
        Ok(())
    }

    pub(super) fn stop_shed(&mut self, job: JobId, keeps: u32) -> Result<(), String> {
        if self.shed != Some((keeps, false)) {
            return Err(format!(
                "job {job} is to keep {keeps} pods: {:?}",
                self.shed
            ));
        }
        self.shed = Some((keeps, true));
        Ok(())
    }

    /// From admit to confirmed exit, or to the end of the job.
    pub(super) fn has(&self) -> bool {
        !self.pods.is_empty()
    }

    pub(super) fn admit(&mut self, attempt: u32, placement: &Placement) {
        self.attempt = attempt;
        self.flavour.clone_from(&placement.flavour);
        self.pods = placement.pods.iter().copied().map(Some).collect();
        self.runs = true;
    }

    /// Bound; what it kept of an earlier attempt until now is returned.
    pub(super) fn bind(
        &mut self,
        job: JobId,
        attempt: u32,
        at: Millis,
    ) -> Result<MilliGpuMs, String> {
        let again = self.since.is_some() && self.unbound.is_empty();
        if self.attempt != attempt || !self.has() || again {
            return Err(format!("job {job} was bound out of place"));
        }
        let held = self.settle(at);
        self.unbound.clear();
        self.first_bound = self.first_bound.or(Some(at));
        self.since = Some(at);
        Ok(held)
    }

    pub(super) fn stop(&mut self, job: JobId) -> Result<(), String> {
        match std::mem::take(&mut self.runs) {
            true => Ok(()),
            false => Err(format!("job {job} stopped twice")),
        }
    }

    /// Counts what it has held up to now, and returns it.
    pub(super) fn settle(&mut self, at: Millis) -> MilliGpuMs {
        let Some(since) = self.since else {
            return MilliGpuMs::default();
        };
        let ranks = (0_u32..).zip(&self.pods);
        let there = ranks.filter(|(rank, pod)| pod.is_some() && !self.unbound.contains(rank));
        let gpus = MilliGpu(self.spec.gpus_per_pod.0 * there.count() as u64);
        let held = gpus.over(at.since(since));
        self.held += held;
        self.since = Some(at);
        held
    }

    /// Its pods that are left; it has none from now on.
    pub(super) fn end(&mut self) -> Vec<PodPlace> {
        (self.since, self.first_bound) = (None, None);
        self.unbound.clear();
        (self.flavour, self.shed) = (None, None);
        std::mem::take(&mut self.pods)
            .into_iter()
            .flatten()
            .collect()
    }
}

/// So many pods are a gang of this job: all, or of an elastic one at least its fewest, in whole segments.
pub(super) fn check_size(job: JobId, spec: &JobSpec, pods: u32) -> Result<(), String> {
    let least = spec.min_pods.unwrap_or(spec.pods);
    let segment = spec.topology.segments.map_or(1, |segments| segments.pods);
    match (least..=spec.pods).contains(&pods) && pods.is_multiple_of(segment) {
        true => Ok(()),
        false => Err(format!(
            "job {job} asks {least} to {} pods in segments of {segment}, and has {pods}",
            spec.pods
        )),
    }
}

impl Auditor {
    /// Pods of an elastic gang are gone: the highest ranks, that were asked for, after they were stopped; or those on a
    /// node that was lost, and their charge is gone with them.
    pub(super) fn shrink(
        &mut self,
        job: JobId,
        keeps: u32,
        cause: &StopCause,
        at: Millis,
    ) -> Result<(), String> {
        let lost = match cause {
            StopCause::NodeLost { node, .. } => Some(*node),
            _ => None,
        };
        if let Some(node) = lost
            && self.machine(node)?.node.health != Health::Down
        {
            return Err(format!("job {job} shrank for node {node}, which is there"));
        }
        let gang = self.gang(job)?;
        if lost.is_none() && gang.shed != Some((keeps, true)) {
            return Err(format!("job {job} shrank to {keeps} pods: {:?}", gang.shed));
        }
        let (had, held) = (gang.charged(), gang.settle(at));
        gang.shed = None;
        let pods = std::mem::take(&mut gang.pods);
        let goes = |rank: u32, pod: &Option<PodPlace>| match lost {
            Some(node) => pod.is_none_or(|pod| pod.node == node),
            None => rank >= keeps,
        };
        let mut gone = Vec::new();
        for (rank, pod) in (0..).zip(pods) {
            match goes(rank, &pod) {
                true => gone.extend(pod),
                false => gang.pods.push(pod),
            }
        }
        if gang.pods.len() != keeps as usize {
            return Err(format!("job {job} has not {keeps} pods left"));
        }
        check_size(job, &gang.spec, keeps)?;
        let less = had.minus(gang.charged());
        let (spec, flavour) = (Arc::clone(&gang.spec), gang.flavour.clone());
        self.held += held;
        if let Some(flavour) = flavour
            && let Some(charged) = self.charged.get_mut(&(spec.team.clone(), flavour))
        {
            *charged = charged.minus(less);
        }
        (gone.into_iter()).try_for_each(|pod| self.give_back(&spec, pod))
    }

    /// All pods of a gang on a node are gone: the node must be.
    pub(super) fn lose(&mut self, job: JobId, node: NodeId, at: Millis) -> Result<(), String> {
        let health = self.machine(node)?.node.health;
        if !matches!(health, Health::Down | Health::Quarantined) {
            return Err(format!(
                "job {job} lost pods on node {node}, which is {health:?}"
            ));
        }
        let pods = (0..).zip(&self.gang(job)?.pods);
        let there = pods.filter(|(_, pod)| pod.is_some_and(|pod| pod.node == node));
        let ranks: Vec<u32> = there.map(|(rank, _)| rank).collect();
        ranks
            .into_iter()
            .try_for_each(|rank| self.drop_pod(job, rank, at))
    }

    /// One pod is gone.
    pub(super) fn drop_pod(&mut self, job: JobId, rank: u32, at: Millis) -> Result<(), String> {
        let gang = self.gang(job)?;
        let held = gang.settle(at);
        let pod = gang.pods.get_mut(rank as usize).and_then(Option::take);
        let pod = pod.ok_or_else(|| format!("job {job} lost its pod {rank} twice"))?;
        gang.unbound.retain(|other| *other != rank);
        let spec = Arc::clone(&gang.spec);
        self.held += held;
        self.give_back(&spec, pod)
    }

    /// It starts again: only when nothing of it runs, and only what had to move has moved.
    pub(super) fn replace(
        &mut self,
        job: JobId,
        attempt: u32,
        placement: &Placement,
        moved: &[u32],
        at: Millis,
    ) -> Result<(), String> {
        let gang = self.gang(job)?;
        if placement.pods.len() != gang.pods.len() {
            return Err(format!("job {job} starts again with other pods"));
        }
        if gang.runs || attempt != gang.attempt + 1 {
            return Err(format!("job {job} starts again while it runs"));
        }
        let held = gang.settle(at);
        (gang.attempt, gang.runs) = (attempt, true);
        let spec = Arc::clone(&gang.spec);
        let was_bound = gang.since.is_some();
        let mut left = Vec::new();
        for (rank, (pod, place)) in (0..).zip(gang.pods.iter_mut().zip(&placement.pods)) {
            let moves = moved.contains(&rank);
            if !moves && *pod != Some(*place) {
                return Err(format!("pod {rank} of job {job} moved, and is not said to"));
            }
            if moves {
                left.extend(pod.replace(*place));
            }
        }
        if was_bound {
            gang.unbound = moved.to_vec();
        }
        self.held += held;
        for pod in left {
            self.give_back(&spec, pod)?;
        }
        self.aside.start(job, &spec)?;
        self.lay(job, &spec, placement, &|rank| moved.contains(&rank))
    }

    /// A pod's cards, CPU and memory are free again.
    pub(super) fn give_back(&mut self, spec: &JobSpec, pod: PodPlace) -> Result<(), String> {
        let machine = self.machine(pod.node)?;
        for card in (0..32).filter(|card| pod.cards & (1 << card) != 0) {
            machine.used_milli[card] -= u64::from(pod.milli);
        }
        machine.used_cpu_milli -= spec.cpu_milli_per_pod;
        machine.used_memory_mib -= spec.memory_mib_per_pod;
        self.touched.insert(pod.node);
        Ok(())
    }
}
