//! The claims of a cycle, as facts.

use super::advance::broken;
use super::hunt::{Found, Hunt};
use super::loss::{Loss, price, together};
use super::prey::Right;
use super::{Alternative, Basis, Claim, ClaimId, Reclaim, ReclaimMode, Stage, Victim, Withdrawal};
use crate::cycle::Cycle;
use crate::decide::make_room;
use crate::elastic::shrink;
use crate::line::Candidate;
use crate::{Blocker, Event, Fact, FlavourId, Job, JobId, Reason, State};
use std::collections::BTreeSet;

/// Plans claims anew that are requested or approved. When approved, the same victims or fewer go; others need a new request
/// inside the same deadline. While requested, what is asked for stays what would be done. A claim of one that has started
/// in this cycle is over already.
pub(crate) fn review<'a>(
    cycle: &mut Cycle<'a>,
    hunt: &mut Hunt<'a>,
    started: &BTreeSet<JobId>,
) -> Vec<Event> {
    let state = cycle.state;
    let mut facts = Vec::new();
    for claim in state.claims.values() {
        if claim.stage == Stage::Made || started.contains(&claim.claimant) {
            continue;
        }
        let claimant = state.jobs.get(&claim.claimant);
        let limited = |job: &Job| passes_limit(cycle, job);
        let aside = broken(cycle, claim).filter(|why| *why == Withdrawal::ClaimantSetAside);
        let limited = claimant
            .is_some_and(limited)
            .then_some(Withdrawal::ClaimantSetAside);
        if let Some(why) = aside.or(limited) {
            facts.push(Fact::ClaimWithdrawn {
                job: claim.claimant,
                claim: claim.id,
                why,
                again: None,
            });
            continue;
        }
        let named = claim.victims.iter();
        let named = named.map(|victim| (victim.job, victim.keeps)).collect();
        if let Some(found) = hunt.again(cycle, claim.claimant, Some(&named)) {
            if claim.stage == Stage::Approved {
                hunt.take(cycle, &found);
                if let Some(job) = claimant {
                    (cycle.running).start(&job.spec, job.spec.least_gpus(), &job.owner);
                }
                let made = revised_in(cycle, claim, &found, Stage::Made);
                facts.extend(carried_out(cycle, made, &found));
            } else if found.taken().len() < named.len() || found.gpus() < claim.taken() {
                let fewer = revised_in(cycle, claim, &found, Stage::Requested);
                facts.push(Fact::ClaimRequested {
                    job: claim.claimant,
                    claim: fewer.into(),
                });
            }
        } else if let Some(found) = hunt.again(cycle, claim.claimant, None) {
            // Nobody has proposed these.
            let anew = Claim {
                proposed_by: None,
                ..revised_in(cycle, claim, &found, Stage::Requested)
            };
            facts.push(Fact::ClaimRequested {
                job: claim.claimant,
                claim: anew.into(),
            });
        } else {
            facts.push(Fact::ClaimWithdrawn {
                job: claim.claimant,
                claim: claim.id,
                why: Withdrawal::NothingToTake,
                again: None,
            });
        }
    }
    at(cycle, facts)
}

/// Claims of jobs that could not start, given in order: owners first, those inside their nominal and then those inside the
/// deepest level, as in the order of starts.
pub(crate) fn make_claims<'a>(
    cycle: &mut Cycle<'a>,
    hunt: &mut Hunt<'a>,
    left: &[(&Candidate<'a>, usize)],
) -> Vec<Event> {
    let state = cycle.state;
    let claimants: BTreeSet<JobId> = state.claims.values().map(|claim| claim.claimant).collect();
    let mut reaches = vec![None; cycle.classes.len()];
    let mut asking: Vec<_> = left
        .iter()
        .enumerate()
        .filter_map(|(rank, &(candidate, class))| {
            let refused = candidate
                .no_claim_before
                .is_some_and(|until| until > cycle.now);
            let barred = refused || candidate.stands_aside(cycle.now);
            let reach = *reaches[class].get_or_insert_with(|| hunt.reach(cycle, class));
            (!barred && !claimants.contains(&candidate.id)).then_some((
                reach,
                rank,
                class,
                candidate.id,
            ))
        })
        .collect();
    asking.sort_by_key(|&(reach, rank, ..)| (reach, rank));
    let mut facts = Vec::new();
    let (mut spent, served) = (BTreeSet::new(), state.evicted_for());
    let mut alike: Vec<_> = vec![None; cycle.classes.len()];
    let mut id = state.claims_ever;
    for (_, _, class, job) in asking {
        let same = alike[class].get_or_insert_with(|| cycle.sought_alike(class));
        if spent.contains(same) {
            continue;
        }
        let Some(job) = state.jobs.get(&job) else {
            continue;
        };
        if passes_limit(cycle, job) {
            continue;
        }
        let Some(found) = hunt.seek(cycle, job, class, None) else {
            // Another one of the class may be barred from fewer victims than one that was served before.
            if !served.contains(&job.id) {
                spent.insert(same.clone());
            }
            continue;
        };
        id += 1;
        let stage = match (mode(cycle, job), found.own_team) {
            (ReclaimMode::Approval, false) => Stage::Requested,
            (ReclaimMode::Approval, true) | (ReclaimMode::Auto, _) => Stage::Made,
        };
        let claim = claim(cycle, ClaimId(id), job, &found, stage);
        match stage {
            Stage::Made => {
                hunt.take(cycle, &found);
                (cycle.running).start(&job.spec, job.spec.least_gpus(), &job.owner);
                facts.extend(carried_out(cycle, claim, &found));
            }
            Stage::Requested | Stage::Approved => facts.push(Fact::ClaimRequested {
                job: job.id,
                claim: claim.into(),
            }),
        }
    }
    at(cycle, facts)
}

/// Why a job waits that has a claim in flight: for those whom it names, and nothing else. `started` have just started in
/// this cycle.
pub(crate) fn claim_of(
    state: &State,
    claimant: JobId,
    started: &BTreeSet<JobId>,
) -> Option<Reason> {
    let mut claims = state.claims.values();
    let claim = claims.find(|claim| claim.claimant == claimant)?;
    let has = |job: &Job| job.allocation.is_some();
    let holds = |job: &JobId| state.jobs.get(job).is_some_and(has) || started.contains(job);
    // Once it is decided, a victim that has gone and come back is none any more.
    let leaves = |victim: &&Victim| match claim.stage {
        Stage::Requested | Stage::Approved => holds(&victim.job),
        Stage::Made => {
            let job = state.jobs.get(&victim.job);
            let same = job.filter(|job| has(job) && job.attempt == victim.attempt);
            // One that shrinks leaves no more once it has.
            same.is_some_and(|job| victim.keeps.is_none() || job.sheds_for(claim.id))
        }
    };
    let named = claim.victims.iter().filter(leaves).map(|victim| victim.job);
    let leaving = named.chain(claim.awaits.iter().copied().filter(holds));
    let until = match (claim.stage, claim.deadline) {
        (Stage::Requested, Some(deadline)) => deadline,
        _ => claim.until(),
    };
    Some(Reason::of(vec![Blocker::Claim {
        claim: claim.id,
        stage: claim.stage,
        leaving: leaving.collect(),
        until,
    }]))
}

/// True when its start would pass a limit on what runs at once.
fn passes_limit(cycle: &Cycle, job: &Job) -> bool {
    let asks = job.spec.least_gpus();
    !(cycle.running.passed(&job.spec, asks, &job.owner)).is_empty()
}

fn at(cycle: &Cycle, facts: Vec<Fact>) -> Vec<Event> {
    let at = cycle.now;
    facts.into_iter().map(|fact| Event { at, fact }).collect()
}

/// Who decides: the cohort of the claimant's team says.
fn mode(cycle: &Cycle, job: &Job) -> ReclaimMode {
    let team = cycle.state.teams.get(&job.spec.team);
    let cohort = team.and_then(|team| cycle.state.cohorts.get(team.cohort.as_ref()?));
    cohort.map(|cohort| cohort.reclaim).unwrap_or_default()
}

fn claim(cycle: &Cycle, id: ClaimId, job: &Job, found: &Found, stage: Stage) -> Claim {
    let taken = found.taken();
    let losses: Vec<&Loss> = taken.iter().map(|taken| &taken.loss).collect();
    let lost = together(&losses);
    let victims = taken.iter().zip(lost).map(|(taken, lost)| Victim {
        job: taken.job.id,
        attempt: taken.job.attempt,
        team: taken.job.spec.team.clone(),
        gpus: taken.loss.gpus,
        until: taken.loss.until,
        lost,
        keeps: taken.keeps,
    });
    let others = found.alternatives.iter().map(|other| Alternative {
        domain: other.domain.cloned(),
        victims: other.victims.clone(),
        lost: other.lost,
    });
    let unknown = FlavourId::from("");
    let flavour = found.placement.flavour.as_ref().unwrap_or(&unknown);
    let deadline = cycle.now + cycle.state.policy.approval_deadline;
    Claim {
        id,
        claimant: job.id,
        team: job.spec.team.clone(),
        basis: basis(cycle, found),
        stage,
        placement: found.placement.clone(),
        victims: victims.collect(),
        awaits: found.awaits.clone(),
        price: price(cycle.state, flavour, &losses, cycle.now),
        alternatives: others.collect(),
        at: cycle.now,
        deadline: (stage == Stage::Requested).then_some(deadline),
        deferred_by: None,
        proposed_by: None,
    }
}

fn basis(cycle: &Cycle, found: &Found) -> Basis {
    match found.right {
        Right::Level(level, height) => Basis::Owner {
            height,
            cohort: cycle.tree.cohort(level).cloned(),
        },
        Right::Share | Right::OwnTeam if found.own_team => Basis::Priority,
        Right::Share | Right::OwnTeam => Basis::FairShare,
    }
}

/// A claim with what was found for it now; its number, its deadline and what people said of it stay.
pub(super) fn revised_in(cycle: &Cycle, old: &Claim, found: &Found, stage: Stage) -> Claim {
    let Some(job) = cycle.state.jobs.get(&old.claimant) else {
        return old.clone();
    };
    let new = claim(cycle, old.id, job, found, stage);
    Claim {
        at: if stage == Stage::Made { new.at } else { old.at },
        deadline: old.deadline.filter(|_| stage == Stage::Requested),
        deferred_by: old.deferred_by.clone(),
        proposed_by: old.proposed_by.clone(),
        ..new
    }
}

/// The decision, and what each victim is told.
fn carried_out(cycle: &Cycle, claim: Claim, found: &Found) -> Vec<Fact> {
    let mut told = Vec::new();
    for taken in found.taken() {
        let (job, loss) = (taken.job, &taken.loss);
        let saving = job
            .allocation
            .as_ref()
            .is_some_and(|allocation| allocation.saving.is_some());
        let asked = job
            .spec
            .checkpoint
            .is_some_and(|contract| contract.on_demand);
        if loss.save.is_none() {
            let reclaim = Reclaim {
                claim: claim.id,
                claimant: claim.claimant,
                at: cycle.now,
                until: loss.until,
                asked: None,
            };
            told.push(match taken.keeps {
                Some(keeps) => shrink(job, keeps, &reclaim),
                None => make_room(job, &reclaim),
            });
        } else if asked && !saving {
            told.push(Fact::SaveAsked {
                job: job.id,
                attempt: job.attempt,
                claim: claim.id,
                until: loss.until,
                keeps: taken.keeps,
            });
        }
    }
    let made = Fact::ClaimMade {
        job: claim.claimant,
        claim: claim.into(),
    };
    std::iter::once(made).chain(told).collect()
}
