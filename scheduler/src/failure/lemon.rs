//! Lemon nodes: those on which jobs of different people fail, one after the other.
//!
//! A job that exits with an error puts a suspicion on each of its nodes, one that loses a node on that node alone. It is a
//! lemon when jobs of `lemon_people` different people failed there within `lemon_window` and none ended well there since.
//! A job that fails everywhere until its restart budget ends it takes its suspicions back: it was the job. So does whoever
//! puts the node back in service. (Meta calls lemons what "causes repeating job failures": arXiv 2410.21680, section IV.)

use crate::{Fact, Health, Job, JobId, Millis, NodeId, PersonId, State};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// That a job failed on a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspicion {
    /// Which job.
    pub job: JobId,
    /// Whose.
    pub owner: PersonId,
    /// When.
    pub at: Millis,
}

/// Takes in that a job failed on nodes.
pub(crate) fn suspect(state: &mut State, at: Millis, id: JobId, nodes: &[NodeId]) {
    let Some(owner) = state.jobs.get(&id).map(|job| job.owner.clone()) else {
        return;
    };
    let window = state.policy.lemon_window;
    for &node in nodes {
        let list = state.suspicions.entry(node).or_default();
        list.retain(|old| at.since(old.at) < window && old.job != id);
        list.push(Suspicion {
            job: id,
            owner: owner.clone(),
            at,
        });
    }
}

/// Takes in that a job ended well on nodes, or that they were put back in service.
pub(crate) fn clear(state: &mut State, nodes: &[NodeId]) {
    for node in nodes {
        state.suspicions.remove(node);
    }
}

/// Takes in that it was the job.
pub(crate) fn forget(state: &mut State, job: JobId) {
    state.suspicions.retain(|_, list| {
        list.retain(|old| old.job != job);
        !list.is_empty()
    });
}

/// Nodes that are lemons once this job has failed on all of its own.
pub(crate) fn of_exit(state: &State, job: &Job, now: Millis) -> Vec<Fact> {
    let people = state.policy.lemon_people as usize;
    let Some(allocation) = job.allocation.as_ref().filter(|_| people > 0) else {
        return Vec::new();
    };
    let nodes = crate::place::nodes(&allocation.placement);
    let lemons = nodes.into_iter().filter_map(|node| {
        let free = state.nodes.get(&node)?;
        let list = state.suspicions.get(&node).map(Vec::as_slice);
        let list = list.unwrap_or_default().iter();
        let recent = list.filter(|old| now.since(old.at) < state.policy.lemon_window);
        let mut jobs: Vec<_> = recent.map(|old| (old.job, &old.owner)).collect();
        jobs.retain(|(id, _)| *id != job.id);
        jobs.push((job.id, &job.owner));
        let owners: BTreeSet<&PersonId> = jobs.iter().map(|(_, owner)| *owner).collect();
        let in_service = matches!(free.node.health, Health::Ready | Health::Degraded);
        (in_service && owners.len() >= people).then(|| {
            let jobs: Vec<String> = jobs.iter().map(|(id, _)| id.to_string()).collect();
            Fact::NodeHealthSet {
                node,
                health: Health::Cordoned,
                why: format!(
                    "jobs of {} people failed here in a row: {}",
                    owners.len(),
                    jobs.join(", ")
                ),
            }
        })
    });
    lemons.collect()
}
