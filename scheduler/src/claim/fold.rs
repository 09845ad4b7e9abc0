//! The fold of claims.

use super::{Claim, Eviction, Reclaim, Stage, Victim};
use crate::apply::{discharge, recharge, step};
use crate::lifecycle::Step;
use crate::{Fact, Job, JobId, MilliGpu, Millis, Phase, Shed, State};

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
        Fact::ShrinkRequested { job, .. } => step(state, *job, Step::Tell, |job| {
            let shed = job.allocation.as_mut().and_then(|it| it.shed.as_mut());
            if let Some(shed) = shed {
                shed.stopping = Some(at);
            }
        }),
        Fact::SaveAsked { job, .. } => {
            let Some(job) = state.jobs.get_mut(job) else {
                return;
            };
            let shed = job.allocation.as_mut().and_then(|it| it.shed.as_mut());
            let shed = shed.map(|shed| &mut shed.reclaim);
            if let Some(reclaim) = job.reclaim.as_mut().or(shed) {
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
    if let Some(keeps) = victim.keeps {
        shed(state, at, claim, victim, keeps);
        return noted(state, at, claim, victim.job);
    }
    if let Some(allocation) = job.allocation.clone() {
        let team = job.spec.team.clone();
        discharge(state, at, victim.job, &team, &allocation);
    }
    step(state, victim.job, Step::Reclaim, |job: &mut Job| {
        job.reclaim = Some(reclaim(at, claim, victim));
    });
    noted(state, at, claim, victim.job);
}

fn reclaim(at: Millis, claim: &Claim, victim: &Victim) -> Reclaim {
    Reclaim {
        claim: claim.id,
        claimant: claim.claimant,
        at,
        until: victim.until,
        asked: None,
    }
}

/// That a job was taken is remembered.
fn noted(state: &mut State, at: Millis, claim: &Claim, victim: JobId) {
    let lives: Vec<JobId> = (state.jobs.get(&victim))
        .into_iter()
        .flat_map(|job| job.evictions.iter().map(|eviction| eviction.claimant))
        .filter(|claimant| state.jobs.contains_key(claimant))
        .collect();
    let Some(job) = state.jobs.get_mut(&victim) else {
        return;
    };
    job.evictions.retain(|eviction| {
        at.since(eviction.at) < Millis::DAY || lives.contains(&eviction.claimant)
    });
    job.evictions.push(Eviction {
        at,
        claimant: claim.claimant,
    });
}

/// An elastic gang: the charge of its highest ranks leaves now, what they hold when they are gone. What was borrowed goes
/// first, as it is laid anew on what stays.
fn shed(state: &mut State, at: Millis, claim: &Claim, victim: &Victim, keeps: u32) {
    let Some(job) = state.jobs.get(&victim.job) else {
        return;
    };
    let team = job.spec.team.clone();
    let Some(allocation) = &job.allocation else {
        return;
    };
    let Some(flavour) = allocation.placement.flavour.clone() else {
        return;
    };
    step(state, victim.job, Step::Tell, |job: &mut Job| {
        if let Some(allocation) = &mut job.allocation {
            let (own, borrowed) = allocation.charge_less(victim.gpus);
            allocation.shed = Some(Shed {
                keeps,
                reclaim: reclaim(at, claim, victim),
                stopping: None,
                own,
                borrowed,
            });
        }
    });
    recharge(state, at, &team, &flavour, victim.gpus, MilliGpu::ZERO);
}
