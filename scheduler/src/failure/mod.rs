//! Failure: what is a loss, what is only silence, and how a gang goes on.
//!
//! - **Silence is no loss.** A node that misses its heartbeats takes nothing new; what runs there goes on, is held and is
//!   billed, and the node takes new work again as soon as it is heard. (Kubernetes evicts after five minutes, whatever runs.)
//! - **Lost** is what is confirmed: the node's end, a fence (power off, an out-of-service mark), an operator's word. The pods
//!   there are held and billed no longer.
//! - **Stall**: of a gang no step is heard for `stall_after`. It is stopped, its silent nodes are quarantined: what may still run
//!   there is billed to nobody, and nothing new is placed there before somebody says that it is gone ([`crate::Command::Repaired`]).
//! - **Replacement**: a gang that lost nodes stops whole and keeps the others for `recover_hold` while a spare of the same
//!   domain, or a free node there, is found: `replace`. Then it waits again, to be placed anew. Its charge stays all the time.
//!   Finding a replacement takes nobody.
//! - An **elastic** gang that has its fewest pods left goes on with these instead: [`crate::elastic`].
//! - **Lemon**: a node on which jobs of different people fail in a row is cordoned: `lemon`.
//! - **Degraded**: what runs goes on, nothing new is placed.
//! - **Interruption**: each one is on record with its cause and its cost: [`Area`], `cost`.
//!
//! # Choices where the page is silent
//! - A gang that stalls without a silent node has no node to replace: it gives all of them back and waits again.
//! - It keeps nothing while it gives up pods of its own, when its restart budget is used up, when it was on its way out
//!   already, and when a claim counts on its cards or its quota. While it keeps them it is not taken for anybody: that ends with `recover_hold`.
//! - Nodes that it keeps, and that are degraded, cordoned, silent or held meanwhile, are replaced with the lost ones.
//! - A job that is held, or whose team is, is not started again; it keeps its nodes until `recover_hold` is over.
//! - What it keeps is laid on the team's own part first: what is gone was borrowed first.

mod area;
mod fold;
mod lemon;
mod replace;

pub use area::{Area, area_of};
pub(crate) use fold::{
    drop_pods, ended, fold, halt, note_health, ran_up_to_loss, replaced, requeued, steps_on,
};
pub use lemon::Suspicion;
pub(crate) use lemon::{of_exit, suspect};
pub(crate) use replace::{replace, within};

use crate::decide::after_failure;
use crate::elastic;
use crate::{
    Allocation, End, Fact, Health, Job, JobId, MilliGpu, MilliGpuMs, Millis, NodeId, Phase,
    Refusal, Report, Stage, State, StopCause, stood_in_for,
};
use std::collections::BTreeSet;

/// A node misses its heartbeats; told again it changes nothing.
pub(crate) fn silent(state: &State, node: NodeId, since: Millis) -> Result<Vec<Fact>, Refusal> {
    let free = state.nodes.get(&node).ok_or(Refusal::NoSuchNode(node))?;
    let news = free.silent_since.is_none();
    let since = since.min(state.at);
    Ok(news
        .then_some(Fact::NodeSilent { node, since })
        .into_iter()
        .collect())
}

/// A silent node is heard again. One that was quarantined meanwhile stays so until what ran there is confirmed to be gone.
pub(crate) fn heard(state: &State, node: NodeId) -> Result<Vec<Fact>, Refusal> {
    let free = state.nodes.get(&node).ok_or(Refusal::NoSuchNode(node))?;
    let news = free.silent_since.is_some();
    Ok(news
        .then_some(Fact::NodeHeard { node })
        .into_iter()
        .collect())
}

/// How a mended node comes back: as the spare of its block, if one stands in for it; else it takes new work.
pub(crate) fn health_after_repair(state: &State, node: NodeId) -> Result<Health, Refusal> {
    let free = state.nodes.get(&node).ok_or(Refusal::NoSuchNode(node))?;
    match free.node.health {
        Health::Down | Health::Quarantined if stood_in_for(state).contains(&node) => {
            Ok(Health::Spare)
        }
        Health::Down | Health::Quarantined | Health::Degraded => Ok(Health::Ready),
        // An operator has said otherwise, or there was nothing to mend.
        health @ (Health::Ready | Health::Cordoned | Health::Draining | Health::Spare) => {
            Ok(health)
        }
    }
}

/// What the confirmed loss of a node means to the gangs with a pod there.
pub(crate) fn lose(state: &State, node: NodeId, why: &str, now: Millis) -> Vec<Fact> {
    let jobs = state.jobs_on(node).iter();
    let jobs = jobs.filter_map(|job| state.jobs.get(job));
    let mut facts = Vec::new();
    for job in jobs {
        if let Some(outlives) = elastic::outlives(job, node, why, now) {
            facts.extend(outlives);
            continue;
        }
        let until = keep_until(state, job, now);
        if job.stop.is_none() && !job.stands_by() {
            let cause = StopCause::NodeLost {
                node,
                what: why.into(),
            };
            facts.extend(interrupt(job, cause, now));
        }
        facts.push(lost_there(job, node, until));
    }
    facts
}

fn lost_there(job: &Job, node: NodeId, keep_until: Option<Millis>) -> Fact {
    Fact::PodsLost {
        job: job.id,
        attempt: job.attempt,
        node,
        keep_until,
    }
}

/// What it cost, and the stop of what is left.
fn interrupt(job: &Job, cause: StopCause, now: Millis) -> Vec<Fact> {
    let cost = cost(job, &cause, now);
    let stop = Fact::StopRequested {
        job: job.id,
        attempt: job.attempt,
        end: after_failure(job),
        cause,
    };
    vec![cost, stop]
}

/// Until when a gang that loses a node now keeps the others.
fn keep_until(state: &State, job: &Job, now: Millis) -> Option<Millis> {
    if let Some(recovery) = job.recovery {
        return Some(recovery.until);
    }
    let sheds = job.allocation.as_ref().is_some_and(|it| it.shed.is_some());
    let leaves = sheds
        || job.stop.is_some()
        || matches!(job.phase, Phase::Queued | Phase::Reclaiming)
        || after_failure(job).is_some();
    let hold = state.policy.recover_hold;
    (!leaves && hold > Millis(0) && !is_counted_on(state, job)).then(|| now + hold)
}

/// True when a claim counts on what it gives back.
pub(crate) fn is_counted_on(state: &State, job: &Job) -> bool {
    let made = state.claims.values();
    let mut made = made.filter(|claim| claim.stage == Stage::Made);
    made.any(|claim| {
        let pods = job.allocation.iter();
        let mut pods = pods.flat_map(|allocation| &allocation.placement.pods);
        let held = &claim.placement.pods;
        claim.awaits.contains(&job.id)
            || pods.any(|pod| {
                held.iter()
                    .any(|held| held.node == pod.node && held.cards & pod.cards != 0)
            })
    })
}

/// What standing still for too long means; `quarantined` are nodes that were quarantined by others just now.
pub(crate) fn stall(
    state: &State,
    job: &Job,
    now: Millis,
    quarantined: &mut BTreeSet<NodeId>,
) -> Vec<Fact> {
    let Some(allocation) = &job.allocation else {
        return Vec::new();
    };
    let since = allocation.no_step_since.unwrap_or(now);
    let nodes = crate::place::nodes(&allocation.placement);
    let silent = nodes.into_iter().filter(|node| {
        let free = state.nodes.get(node);
        free.is_some_and(|free| free.silent_since.is_some() && free.node.health != Health::Down)
    });
    let silent: Vec<NodeId> = silent.collect();
    let mut facts = Vec::new();
    for &node in &silent {
        let is_new = state.nodes[&node].node.health != Health::Quarantined;
        if quarantined.insert(node) && is_new {
            facts.push(Fact::NodeHealthSet {
                node,
                health: Health::Quarantined,
                why: format!("silent, and job {} stands still", job.id),
            });
        }
    }
    let until = keep_until(state, job, now);
    let cause = StopCause::Stalled {
        since,
        silent: silent.clone(),
    };
    facts.extend(interrupt(job, cause, now));
    let lost = silent.into_iter();
    facts.extend(lost.map(|node| lost_there(job, node, until)));
    facts
}

/// The record of an interruption.
pub(crate) fn cost(job: &Job, cause: &StopCause, now: Millis) -> Fact {
    let (what, area) = match cause {
        StopCause::NodeLost { what, .. } => (what.clone(), area_of(what)),
        StopCause::Stalled { silent, .. } if silent.is_empty() => {
            ("no step".to_owned(), Area::Unknown)
        }
        StopCause::Stalled { .. } => ("no step, and a silent node".to_owned(), Area::Unknown),
        StopCause::Exited { code } => (format!("exit code {code}"), Area::Program),
        StopCause::Person { .. }
        | StopCause::TimeLimit
        | StopCause::LaunchTimeout
        | StopCause::Drained { .. }
        | StopCause::Idle { .. }
        | StopCause::Suspend { .. }
        | StopCause::Reclaim { .. } => ("stopped".to_owned(), Area::Unknown),
    };
    Fact::Interrupted {
        job: job.id,
        attempt: job.attempt,
        what,
        area,
        lost: u64::try_from(unsaved(job, now).0).unwrap_or(u64::MAX),
    }
}

/// GPU-time since the last durable checkpoint of this attempt: what has to be done once more.
fn unsaved(job: &Job, now: Millis) -> MilliGpuMs {
    let started = job.allocation.as_ref().and_then(|it| it.started);
    let from = started.map(|started| last_durable(job, started));
    let gpus = (job.allocation.as_ref()).map_or(MilliGpu::ZERO, |allocation| allocation.gpus);
    gpus.over(from.map_or(Millis(0), |from| now.since(from)))
}

/// From when on the work of an attempt is not saved.
pub(crate) fn last_durable(job: &Job, started: Millis) -> Millis {
    job.checkpoint
        .map_or(started, |saved| saved.at.max(started))
}

/// What an executor tells of steps and of single pods; `None` when it is old, or told twice.
pub(crate) fn told(
    job: &Job,
    allocation: &Allocation,
    report: &Report,
    now: Millis,
) -> Option<Vec<Fact>> {
    let (id, attempt) = (job.id, job.attempt);
    let fact = match *report {
        Report::NoStep { since } => {
            let since = since.min(now);
            let is_old = allocation.stepped.is_some_and(|stepped| since < stepped);
            if allocation.no_step_since.is_some() || is_old {
                return None;
            }
            Fact::StepsStopped {
                job: id,
                attempt,
                since,
            }
        }
        Report::Stepped => {
            allocation.no_step_since?;
            Fact::StepsResumed { job: id, attempt }
        }
        Report::PodSucceeded { rank } => {
            let is_gone = allocation.gone.iter().any(|gone| gone.rank == rank);
            if rank >= allocation.size() || is_gone || job.stop.is_some() {
                return None;
            }
            Fact::PodSucceeded {
                job: id,
                attempt,
                rank,
            }
        }
        _ => return None,
    };
    let is_last = matches!(fact, Fact::PodSucceeded { .. }) && allocation.placement.pods.len() == 1;
    let ended = Fact::JobEnded {
        job: id,
        end: End::Succeeded,
        cause: None,
    };
    let ended = is_last.then_some(ended);
    Some(std::iter::once(fact).chain(ended).collect())
}

/// What must always be true of gangs that lost pods.
pub(crate) fn check(state: &State) -> Result<(), String> {
    let keeps = |job: &&Job| job.recovery.is_some();
    let keepers: BTreeSet<JobId> = state
        .jobs
        .values()
        .filter(keeps)
        .map(|job| job.id)
        .collect();
    if keepers != state.recovering {
        return Err(format!(
            "{keepers:?} keep nodes, {:?} are listed",
            state.recovering
        ));
    }
    for job in state.jobs.values() {
        let id = job.id;
        if job.recovery.is_some() && job.phase != Phase::Recovering {
            return Err(format!("job {id} is {:?} and recovers", job.phase));
        }
        if job.stands_by() && job.recovery.is_none() {
            return Err(format!("job {id} recovers, and nothing is found for it"));
        }
        let Some(allocation) = &job.allocation else {
            continue;
        };
        let gone = &allocation.gone;
        if !gone.is_sorted_by(|a, b| a.rank < b.rank) {
            return Err(format!("job {id} lost one pod twice: {gone:?}"));
        }
        let lost = gone.iter().any(|gone| !gone.succeeded);
        if lost && job.stop.is_none() && job.phase != Phase::Recovering {
            return Err(format!("job {id} goes on without a pod that was lost"));
        }
    }
    let empty = |list: &Vec<Suspicion>| list.is_empty();
    match state.suspicions.values().any(empty) {
        true => Err("a node is suspected of nothing".into()),
        false => Ok(()),
    }
}
