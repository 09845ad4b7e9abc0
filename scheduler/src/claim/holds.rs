//! What must always be true of claims.
//!
//! - A claimant waits, and has one claim. A card belongs to one claim, and whoever is on it is on its way out.
//! - A victim says for whom it goes, and is charged nothing. It was taken once for one claimant.

use super::{Claim, Stage};
use crate::{Job, JobId, NodeId, Phase, PodPlace, State};
use std::collections::{BTreeMap, BTreeSet};

/// The first broken invariant, in words.
pub(crate) fn check(state: &State) -> Result<(), String> {
    let mut held = BTreeMap::<(NodeId, u32), u64>::new();
    let mut claimants = BTreeSet::new();
    for claim in state.claims.values() {
        check_claim(state, claim)?;
        if !claimants.insert(claim.claimant) {
            return Err(format!("job {} has two claims", claim.claimant));
        }
        if claim.stage != Stage::Made {
            continue;
        }
        for pod in &claim.placement.pods {
            for card in (0..32).filter(|card| pod.cards & (1 << card) != 0) {
                let of_card = held.entry((pod.node, card)).or_default();
                *of_card += u64::from(pod.milli);
                if *of_card > 1_000 {
                    return Err(format!(
                        "card {card} of node {} is held by two claims",
                        pod.node
                    ));
                }
            }
        }
    }
    for job in state.jobs.values() {
        check_job(state, job, &held)?;
    }
    Ok(())
}

fn check_claim(state: &State, claim: &Claim) -> Result<(), String> {
    let id = claim.id;
    let waits = |job: &Job| job.phase == Phase::Queued;
    if !state.jobs.get(&claim.claimant).is_some_and(waits) {
        return Err(format!("claim {id}: its claimant does not wait"));
    }
    if claim.victims.is_empty() {
        return Err(format!("claim {id} takes nobody"));
    }
    if (claim.stage == Stage::Requested) != claim.deadline.is_some()
        && claim.stage != Stage::Approved
    {
        return Err(format!(
            "claim {id} is {:?} until {:?}",
            claim.stage, claim.deadline
        ));
    }
    let twice = |job: &JobId| {
        let evictions = state.jobs.get(job).map(|job| job.evictions.as_slice());
        let evictions = evictions.unwrap_or_default().iter();
        evictions
            .filter(|eviction| eviction.claimant == claim.claimant)
            .count()
            > 1
    };
    match claim.victims.iter().find(|victim| twice(&victim.job)) {
        Some(victim) => Err(format!(
            "job {} was taken twice for job {}",
            victim.job, claim.claimant
        )),
        None => Ok(()),
    }
}

fn check_job(state: &State, job: &Job, held: &BTreeMap<(NodeId, u32), u64>) -> Result<(), String> {
    let id = job.id;
    if (job.phase == Phase::Reclaiming) != job.reclaim.is_some() {
        return Err(format!(
            "job {id} is {:?} and makes room: {:?}",
            job.phase, job.reclaim
        ));
    }
    let Some(allocation) = &job.allocation else {
        return Ok(());
    };
    let soon = super::prey::ends_soon(job, state.at, state.policy.grace);
    let shed = allocation.shedding();
    let stays = |pod: &&PodPlace| shed.as_ref().is_none_or(|shed| !shed.pods.contains(pod));
    let on_held = (allocation.placement.pods.iter().filter(stays)).any(|pod| {
        (0..32).any(|card| pod.cards & (1 << card) != 0 && held.contains_key(&(pod.node, card)))
    });
    // A share of a card may lie beside what is held of it.
    let whole = job.spec.gpus_per_pod.0 >= 1_000;
    if on_held && whole && !soon {
        return Err(format!(
            "job {id} is on a card that a claim holds, and does not leave"
        ));
    }
    Ok(())
}
