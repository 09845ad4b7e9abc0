//! The fold of failures.

use super::last_durable;
use super::lemon;
use crate::apply::{give_back, step, take, touch};
use crate::elastic;
use crate::lifecycle::Step;
use crate::{
    Activity, End, Fact, GonePod, Health, Job, JobId, Millis, NodeId, Placement, Recovery, State,
    StopCause, StopRequest,
};
use std::sync::Arc;

/// Takes in what happened to nodes, and to gangs on them.
pub(crate) fn fold(state: &mut State, at: Millis, fact: &Fact) {
    match fact {
        Fact::NodeSilent { node, since } => {
            if let Some(free) = state.nodes.get_mut(node) {
                free.silent_since = Some(*since);
            }
        }
        Fact::NodeHeard { node } => {
            if let Some(free) = state.nodes.get_mut(node) {
                free.silent_since = None;
            }
        }
        Fact::StepsStopped { job, since, .. } => tell(state, *job, |job| {
            if let Some(allocation) = &mut job.allocation {
                allocation.no_step_since = Some(*since);
            }
        }),
        Fact::StepsResumed { job, .. } => tell(state, *job, |job| steps_on(job, at)),
        Fact::PodSucceeded { job, rank, .. } => succeeded(state, *job, *rank),
        Fact::PodsLost {
            job,
            node,
            keep_until,
            ..
        } => lost(state, at, *job, *node, *keep_until),
        Fact::GangShrunk {
            job, keeps, cause, ..
        } => elastic::fold_shrunk(state, at, *job, *keeps, cause),
        Fact::TimeLimitExtended { job, limit, .. } => touch(state, *job, |job| {
            Arc::make_mut(&mut job.spec).time_limit = Some(*limit);
        }),
        _ => {}
    }
}

fn tell(state: &mut State, job: JobId, change: impl FnOnce(&mut Job)) {
    step(state, job, Step::Tell, change);
}

/// Steps go on: what is told of an earlier silence is old.
pub(crate) fn steps_on(job: &mut Job, at: Millis) {
    if let Some(allocation) = &mut job.allocation {
        allocation.no_step_since = None;
        allocation.stepped = Some(at);
    }
}

/// Takes pods out of a gang's placement and gives their cards back.
pub(crate) fn drop_pods(state: &mut State, id: JobId, ranks: &[u32], succeeded: bool) {
    let Some(job) = state.jobs.get_mut(&id) else {
        return;
    };
    let spec = job.spec.clone();
    let Some(allocation) = &mut job.allocation else {
        return;
    };
    let places = allocation.places();
    let was_gone = |rank: u32, gone: &[GonePod]| gone.iter().any(|pod| pod.rank == rank);
    let mut dropped = Vec::new();
    for &rank in ranks {
        let Some(&place) = places.get(rank as usize) else {
            continue;
        };
        if was_gone(rank, &allocation.gone) {
            continue;
        }
        dropped.push(place);
        allocation.gone.push(GonePod {
            rank,
            place,
            succeeded,
        });
    }
    allocation.gone.sort_unstable_by_key(|gone| gone.rank);
    let left = (0_u32..).zip(&places);
    let left = left.filter(|(rank, _)| !was_gone(*rank, &allocation.gone));
    let pods: Vec<_> = left.map(|(_, place)| *place).collect();
    allocation.placement = Arc::new(Placement {
        pods,
        ..Placement::clone(&allocation.placement)
    });
    let left = allocation.placement.clone();
    for place in dropped {
        give_back(state, id, &spec, place);
        // Others of its pods may still be there.
        if left.pods.iter().any(|pod| pod.node == place.node)
            && let Some(free) = state.nodes.get_mut(&place.node)
            && !free.jobs.contains(&id)
        {
            free.jobs.push(id);
        }
    }
}

fn succeeded(state: &mut State, id: JobId, rank: u32) {
    drop_pods(state, id, &[rank], true);
}

fn lost(state: &mut State, at: Millis, id: JobId, node: NodeId, keep_until: Option<Millis>) {
    let Some(job) = state.jobs.get(&id) else {
        return;
    };
    let places = job.allocation.as_ref().map(|it| it.places());
    let there = (0_u32..).zip(places.unwrap_or_default());
    let there = there.filter(|(_, place)| place.node == node);
    let ranks: Vec<u32> = there.map(|(rank, _)| rank).collect();
    drop_pods(state, id, &ranks, false);
    lemon::suspect(state, at, id, &[node]);
    if let Some(until) = keep_until {
        state.recovering.insert(id);
        touch(state, id, |job| {
            let since = job.recovery.map_or(at, |recovery| recovery.since);
            job.recovery = Some(Recovery { since, until });
        });
    }
}

/// Every pod that was left is gone; it keeps their nodes.
pub(crate) fn halt(state: &mut State, at: Millis, id: JobId) {
    let counts_lost = state.policy.count_lost_work;
    step(state, id, Step::Halt, |job| {
        let stop = job.stop.take();
        job.ran += ran_for(job, at, stop.as_ref(), counts_lost);
        job.restarts += 1;
        if let Some(allocation) = &mut job.allocation {
            (allocation.started, allocation.saving) = (None, None);
            allocation.no_step_since = None;
            allocation.activity = Activity::default();
        }
    });
}

/// What an attempt counts against the time limit: up to its exit; one that was cut short by a node or a stall up to
/// then, or, by policy, up to its last durable checkpoint: what was lost has to be done once more.
pub(crate) fn ran_for(
    job: &Job,
    exit: Millis,
    stop: Option<&StopRequest>,
    counts_lost: bool,
) -> Millis {
    let Some(started) = job.allocation.as_ref().and_then(|it| it.started) else {
        return Millis(0);
    };
    match stop {
        Some(StopRequest {
            at,
            cause: StopCause::NodeLost { .. } | StopCause::Stalled { .. },
            ..
        }) => up_to_loss(job, started, *at, counts_lost),
        Some(_) | None => exit.since(started),
    }
}

fn up_to_loss(job: &Job, started: Millis, at: Millis, counts_lost: bool) -> Millis {
    match counts_lost {
        true => at.since(started),
        false => last_durable(job, started).since(started),
    }
}

/// The same of a gang that goes on after a loss.
pub(crate) fn ran_up_to_loss(job: &Job, at: Millis, counts_lost: bool) -> Millis {
    let started = job.allocation.as_ref().and_then(|it| it.started);
    started.map_or(Millis(0), |started| {
        up_to_loss(job, started, at, counts_lost)
    })
}

/// An attempt that had nodes is over, and the job waits again: whom its failure makes suspect, and the running time that
/// it counts.
pub(crate) fn requeued(state: &mut State, at: Millis, id: JobId) -> Millis {
    let Some(job) = state.jobs.get(&id) else {
        return Millis(0);
    };
    let stop = job.stop.clone();
    let ran = ran_for(job, at, stop.as_ref(), state.policy.count_lost_work);
    let failed = matches!(
        stop.map(|stop| stop.cause),
        Some(StopCause::Exited { .. } | StopCause::LaunchTimeout)
    );
    if let Some(allocation) = job.allocation.as_ref().filter(|_| failed) {
        let nodes = crate::place::nodes(&allocation.placement);
        lemon::suspect(state, at, id, &nodes);
    }
    ran
}

/// A job is over: where it ended well nobody is suspected any more; if it failed everywhere, it was the job.
pub(crate) fn ended(state: &mut State, id: JobId, end: End) {
    state.recovering.remove(&id);
    match end {
        End::Succeeded => {
            let job = state.jobs.get(&id);
            let allocation = job.and_then(|job| job.allocation.as_ref());
            let nodes = allocation.map(|it| crate::place::nodes(&it.placement));
            lemon::clear(state, &nodes.unwrap_or_default());
        }
        End::Failed => lemon::forget(state, id),
        End::Cancelled | End::TimedOut => {}
    }
}

/// It starts again: the nodes that it kept, and others for those that it lost.
pub(crate) fn replaced(
    state: &mut State,
    at: Millis,
    id: JobId,
    attempt: u32,
    placement: &Arc<Placement>,
) {
    let Some(job) = state.jobs.get(&id).filter(|job| job.stands_by()) else {
        return;
    };
    let (spec, kept) = (job.spec.clone(), job.allocation.clone());
    let kept = kept.into_iter().flat_map(|it| it.placement.pods.clone());
    for pod in kept {
        give_back(state, id, &spec, pod);
    }
    for &pod in &placement.pods {
        take(state, id, &spec, pod);
    }
    state.recovering.remove(&id);
    step(state, id, Step::Replace, |job| {
        job.attempt = attempt;
        job.recovery = None;
        if let Some(allocation) = &mut job.allocation {
            allocation.placement = placement.clone();
            allocation.gone.clear();
            allocation.admitted = at;
            (allocation.bound, allocation.stepped) = (None, None);
        }
    });
}

/// Nodes on which a health is set: what it says of silence and suspicions.
pub(crate) fn note_health(state: &mut State, node: NodeId, health: Health) {
    let before = state.nodes.get(&node).map(|free| free.node.health);
    if let Some(free) = state.nodes.get_mut(&node)
        && matches!(health, Health::Ready | Health::Down | Health::Spare)
    {
        free.silent_since = None;
    }
    if before == Some(Health::Cordoned) && health == Health::Ready {
        lemon::clear(state, &[node]);
    }
}
