//! The fold of claims.

use super::{Claim, Eviction, Reclaim, Stage, Victim};
use crate::apply::{discharge, step};
use crate::lifecycle::Step;
use crate::{Fact, Job, JobId, Millis, Phase, State};

/// Takes in what happened to a claim.
pub(crate) fn fold(state: &mut State, at: Millis, fact: &Fact) {
    match fact {
        Fact::ClaimRequested { claim, .. } => keep(state, claim),
        Fact::ClaimApproved { claim, .. } => {
            if let Some(claim) = state.claims.get_mut(claim) {
                claim.stage = Stage::Approved;
            }
        }
        Fact::ClaimDeferred {
            claim,
            by,
            deadline,
            ..
        } => {
            if let Some(claim) = state.claims.get_mut(claim) {
                claim.deadline = Some(*deadline);
                claim.deferred_by = Some(by.clone());
            }
        }
        Fact::ClaimDeclined {
            job, claim, again, ..
        } => {
            state.claims.remove(claim);
            bar(state, *job, Some(*again));
        }
        Fact::ClaimWithdrawn {
            job, claim, again, ..
        } => {
            state.claims.remove(claim);
            bar(state, *job, *again);
        }
        Fact::ClaimMade { claim, .. } => {
            keep(state, claim);
            for victim in &claim.victims {
                take(state, at, claim, victim);
            }
        }
        Fact::SaveAsked { job, .. } => {
            if let Some(reclaim) = state.jobs.get_mut(job).and_then(|job| job.reclaim.as_mut()) {
                reclaim.asked = Some(at);
            }
        }
        _ => {}
    }
}

/// The claimant has started, or is over: its claim is, too.
pub(crate) fn fulfil(state: &mut State, claimant: JobId) {
    state.claims.retain(|_, claim| claim.claimant != claimant);
}

fn keep(state: &mut State, claim: &Claim) {
    state.claims_ever = state.claims_ever.max(claim.id.0);
    state.claims.insert(claim.id, claim.clone());
}

/// The claimant asks for nothing again before then.
fn bar(state: &mut State, claimant: JobId, until: Option<Millis>) {
    let waits = |job: &Job| job.phase == Phase::Queued;
    if state.jobs.get(&claimant).is_some_and(waits) {
        // A step, since its place in the list of due times changes with it.
        step(state, claimant, Step::Requeue, |job| {
            job.no_claim_before = until.or(job.no_claim_before);
        });
    }
}

/// A victim: its charge leaves now, what it holds when it is gone.
fn take(state: &mut State, at: Millis, claim: &Claim, victim: &Victim) {
    let Some(job) = state.jobs.get(&victim.job) else {
        return;
    };
    if job.attempt != victim.attempt || !job.is_charged() {
        return;
    }
    if let Some(allocation) = job.allocation.clone() {
        let team = job.spec.team.clone();
        discharge(state, at, victim.job, &team, &allocation);
    }
    let lives: Vec<JobId> = (state.jobs.get(&victim.job))
        .into_iter()
        .flat_map(|job| job.evictions.iter().map(|eviction| eviction.claimant))
        .filter(|claimant| state.jobs.contains_key(claimant))
        .collect();
    step(state, victim.job, Step::Reclaim, |job: &mut Job| {
        job.reclaim = Some(Reclaim {
            claim: claim.id,
            claimant: claim.claimant,
            at,
            until: victim.until,
            asked: None,
        });
        job.evictions.retain(|eviction| {
            at.since(eviction.at) < Millis::DAY || lives.contains(&eviction.claimant)
        });
        job.evictions.push(Eviction {
            at,
            claimant: claim.claimant,
        });
    });
}
