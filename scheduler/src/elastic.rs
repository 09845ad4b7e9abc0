//! Elastic gangs: those that say with how few pods they go on.
//!
//! - **Start**: with all pods if quota, room and limits have place for them, else with as many as have, and never with fewer
//!   than its fewest, all at once. It waits, is planned, claims and is told why it waits as a gang of its fewest pods.
//! - **Size**: what it has is what is charged, held, metered and limited; it changes by whole segments.
//! - **Shrink**: a claim takes its highest ranks before anybody is taken whole. Their charge leaves at the decision, the gang
//!   saves first if it can within its grace, then these pods are stopped; at their confirmed exit they are held and billed
//!   no longer. Meanwhile they are billed as they were: own or borrowed.
//!
//! - **Loss**: with the node of some pods lost and its fewest left, it goes on with these from its last durable save instead of
//!   waiting for others: no restart counts, and what was lost leaves charge, held and bill at that moment. Of a gang in
//!   segments whole ones must be lost: what is left of a broken one is not known to have stopped. One that is giving up pods,
//!   or of which pods have ended, stops whole as others do.
//!
//! It forms itself anew without a new attempt (as with `torchrun --nnodes=MIN:MAX`). On the simulated fleet its work takes the same
//! running time whatever its size.

use crate::apply::{recharge, step};
use crate::decide::invalid;
use crate::failure;
use crate::lifecycle::Step;
use crate::{
    Allocation, Fact, Job, JobId, JobKind, JobSpec, MilliGpu, Millis, NodeId, Phase, PodPlace,
    Reclaim, Refusal, State, StopCause,
};
use std::sync::Arc;

/// Refuses a fewest number of pods that cannot be.
pub(crate) fn check_min_pods(spec: &JobSpec) -> Result<(), Refusal> {
    let (Some(least), step) = (spec.min_pods, spec.step_pods()) else {
        return Ok(());
    };
    if spec.kind == JobKind::Notebook {
        return Err(invalid(
            "min_pods",
            "a notebook keeps its pods: leave it out",
        ));
    }
    if least == 0 || least > spec.pods {
        let problem = format!("must be from 1 to the {} pods of the gang", spec.pods);
        return Err(invalid("min_pods", problem));
    }
    if !least.is_multiple_of(step) {
        let problem = format!("must be whole segments of {step} pods");
        return Err(invalid("min_pods", problem));
    }
    Ok(())
}

/// The highest ranks of an elastic gang are stopped: it has saved, or its grace is over.
pub(crate) fn shrink(job: &Job, keeps: u32, reclaim: &Reclaim) -> Fact {
    Fact::ShrinkRequested {
        job: job.id,
        attempt: job.attempt,
        keeps,
        claim: reclaim.claim,
        claimant: reclaim.claimant,
    }
}

/// The same of one that gives up pods, if it does, and they are not being stopped yet.
pub(crate) fn sheds(job: &Job) -> Option<Fact> {
    let shed = job.allocation.as_ref()?.shed?;
    let waits = job.stop.is_none() && shed.stopping.is_none();
    waits.then(|| shrink(job, shed.keeps, &shed.reclaim))
}

/// What the exit of its highest ranks means; `None` when nobody has asked for it, or all of it is being stopped.
pub(crate) fn shrunk(job: &Job, allocation: &Allocation) -> Option<Fact> {
    let shed = allocation.shed.filter(|shed| shed.stopping.is_some())?;
    job.stop.is_none().then_some(Fact::GangShrunk {
        job: job.id,
        attempt: job.attempt,
        keeps: shed.keeps,
        cause: StopCause::Reclaim {
            claim: shed.reclaim.claim,
            claimant: shed.reclaim.claimant,
        },
    })
}

/// What the loss of a node means to an elastic gang that has pods enough elsewhere: it goes on with these. `None` when it
/// stops whole.
pub(crate) fn outlives(job: &Job, node: NodeId, what: &str, now: Millis) -> Option<Vec<Fact>> {
    let allocation = job.allocation.as_ref()?;
    let runs = job.phase == Phase::Running && job.stop.is_none();
    if !runs || allocation.shed.is_some() || !allocation.gone.is_empty() {
        return None;
    }
    let pods = &allocation.placement.pods;
    let left = |pods: &[PodPlace]| pods.iter().filter(|pod| pod.node != node).count();
    let step = job.spec.step_pods() as usize;
    let whole = |segment: &[PodPlace]| matches!(left(segment), 0) || left(segment) == step;
    let keeps = left(pods) as u32;
    if keeps < job.spec.least_pods() || !pods.chunks(step).all(whole) {
        return None;
    }
    let cause = StopCause::NodeLost {
        node,
        what: what.into(),
    };
    let shrunk = Fact::GangShrunk {
        job: job.id,
        attempt: job.attempt,
        keeps,
        cause: cause.clone(),
    };
    Some(vec![failure::cost(job, &cause, now), shrunk])
}

/// The fold of a gang that goes on smaller.
pub(crate) fn fold_shrunk(state: &mut State, at: Millis, id: JobId, keeps: u32, cause: &StopCause) {
    let Some(allocation) = state.jobs.get(&id).and_then(|job| job.allocation.clone()) else {
        return;
    };
    let lost = match cause {
        StopCause::NodeLost { node, .. } => Some(*node),
        _ => None,
    };
    let goes = |rank: u32, place: PodPlace| match lost {
        Some(node) => place.node == node,
        None => rank >= keeps,
    };
    let ranks = (0_u32..).zip(allocation.places());
    let ranks = ranks.filter(|&(rank, place)| goes(rank, place));
    let ranks: Vec<u32> = ranks.map(|(rank, _)| rank).collect();
    failure::drop_pods(state, id, &ranks, true);
    let (counts_lost, pods) = (state.policy.count_lost_work, ranks.len() as u32);
    let places = state.jobs.get(&id).and_then(|job| job.allocation.as_ref());
    let places = places.map(|allocation| allocation.placement.pods.clone());
    let within = failure::within(state, &places.unwrap_or_default());
    step(state, id, Step::Tell, |job| {
        let ran = failure::ran_up_to_loss(job, at, counts_lost);
        let gpus = job.spec.gpus_of(pods);
        let Some(allocation) = &mut job.allocation else {
            return;
        };
        allocation.gone.retain(|gone| !ranks.contains(&gone.rank));
        Arc::make_mut(&mut allocation.placement).within = within;
        allocation.shed = None;
        if lost.is_some() {
            // It forms itself anew from its last save; who was asked to go has left the charge already.
            allocation.charge_less(gpus);
            (allocation.started, allocation.saving) = (Some(at), None);
            job.ran += ran;
            failure::steps_on(job, at);
        }
    });
    let Some(node) = lost else { return };
    failure::suspect(state, at, id, &[node]);
    if let Some(flavour) = &allocation.placement.flavour {
        let Some(spec) = state.jobs.get(&id).map(|job| job.spec.clone()) else {
            return;
        };
        let gpus = spec.gpus_of(pods);
        recharge(state, at, &spec.team, flavour, gpus, MilliGpu::ZERO);
    }
}
