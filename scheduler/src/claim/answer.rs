//! What people and the clock say to claims.

use super::hunt::Hunt;
use super::told::revised_in;
use super::{Claim, Stage, Withdrawal};
use crate::cycle::Cycle;
use crate::{ClaimId, Command, Fact, JobId, Millis, PersonId, Refusal, State};
use std::collections::BTreeSet;

/// The facts that an answer to a requested claim leads to.
pub(crate) fn answer(state: &State, command: &Command, now: Millis) -> Result<Vec<Fact>, Refusal> {
    let fact = match command {
        Command::ApproveClaim { claim, by, seen } => {
            let claim = open(state, *claim)?;
            let named: BTreeSet<JobId> = claim.victims.iter().map(|victim| victim.job).collect();
            let same = |seen: &Vec<JobId>| seen.iter().copied().collect::<BTreeSet<_>>() == named;
            if !seen.as_ref().is_none_or(same) {
                return Err(Refusal::VictimsChanged(claim.id));
            }
            approve(claim, Some(by))
        }
        Command::DeclineClaim { claim, by, why } => {
            let claim = open(state, *claim)?;
            Fact::ClaimDeclined {
                job: claim.claimant,
                claim: claim.id,
                by: by.clone(),
                why: why.clone(),
                again: now + state.policy.claim_again_after,
            }
        }
        Command::DeferClaim { claim, by } => defer(state, open(state, *claim)?, by)?,
        Command::ProposeVictims { claim, by, victims } => {
            propose(state, open(state, *claim)?, by, victims, now)?
        }
        _ => return Ok(Vec::new()),
    };
    Ok(vec![fact])
}

/// A claim that waits for an answer.
fn open(state: &State, id: ClaimId) -> Result<&Claim, Refusal> {
    let claim = state.claims.get(&id).ok_or(Refusal::NoSuchClaim(id))?;
    match claim.stage {
        Stage::Requested => Ok(claim),
        Stage::Approved | Stage::Made => Err(Refusal::ClaimDecided(id)),
    }
}

fn approve(claim: &Claim, by: Option<&PersonId>) -> Fact {
    Fact::ClaimApproved {
        job: claim.claimant,
        claim: claim.id,
        by: by.cloned(),
    }
}

fn defer(state: &State, claim: &Claim, by: &PersonId) -> Result<Fact, Refusal> {
    if claim.deferred_by.is_some() {
        return Err(Refusal::AlreadyDeferred(claim.id));
    }
    let deadline = claim.deadline.unwrap_or(claim.at) + state.policy.approval_deadline;
    Ok(Fact::ClaimDeferred {
        job: claim.claimant,
        claim: claim.id,
        by: by.clone(),
        deadline,
    })
}

/// Other victims, who must do by themselves. They are made irreducible as any set is.
fn propose(
    state: &State,
    claim: &Claim,
    by: &PersonId,
    victims: &[JobId],
    now: Millis,
) -> Result<Fact, Refusal> {
    let mut cycle = Cycle::of(state, now);
    super::hold_room(&mut cycle, None);
    let named = victims.iter().map(|&job| (job, None)).collect();
    let found = Hunt::of(&mut cycle).again(&mut cycle, claim.claimant, Some(&named));
    let found = found.ok_or(Refusal::NotEnough(claim.id))?;
    let revised = Claim {
        proposed_by: Some(by.clone()),
        ..revised_in(&cycle, claim, &found, Stage::Requested)
    };
    Ok(Fact::ClaimRequested {
        job: claim.claimant,
        claim: revised.into(),
    })
}

/// When the first deadline is.
pub(crate) fn due(state: &State) -> Option<Millis> {
    open_claims(state).filter_map(|claim| claim.deadline).min()
}

fn open_claims(state: &State) -> impl Iterator<Item = &Claim> {
    let claims = state.claims.values();
    claims.filter(|claim| claim.stage == Stage::Requested)
}

/// Deadlines that have passed: an owner's claim is approved, others are withdrawn.
pub(crate) fn on_time(state: &State, now: Millis) -> impl Iterator<Item = Fact> {
    let passed = open_claims(state)
        .filter(move |claim| claim.deadline.is_some_and(|deadline| deadline <= now));
    passed.map(move |claim| {
        if claim.is_owners() {
            return approve(claim, None);
        }
        Fact::ClaimWithdrawn {
            job: claim.claimant,
            claim: claim.id,
            why: Withdrawal::Deadline,
            again: Some(now + state.policy.claim_again_after),
        }
    })
}

/// The claimant is cancelled while it waits: its claim is given up first.
pub(crate) fn gone(state: &State, claimant: JobId) -> Vec<Fact> {
    let claims = state.claims.values();
    claims
        .filter(|claim| claim.claimant == claimant)
        .map(|claim| Fact::ClaimWithdrawn {
            job: claimant,
            claim: claim.id,
            why: Withdrawal::ClaimantGone,
            again: None,
        })
        .collect()
}
