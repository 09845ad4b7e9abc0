//! Claims in flight, at the beginning of a cycle: those whose room is free start, the others hold it.

use super::{Claim, Stage, Withdrawal};
use crate::cycle::Cycle;
use crate::hold::Closed;
use crate::room::takes_work;
use crate::{Event, Fact, JobId, NodeId};
use std::collections::BTreeSet;

/// What became of the claims in flight.
#[derive(Default)]
pub(crate) struct Advanced {
    /// Starts and withdrawals.
    pub events: Vec<Event>,
    /// Claimants that have started.
    pub started: BTreeSet<JobId>,
    /// Claimants that go on waiting for their room: the rest of the cycle leaves them alone.
    pub waiting: BTreeSet<JobId>,
    /// True when a claim was given up: it is planned anew.
    pub withdrawn: bool,
}

/// Goes through the claims that are made, in order of their making: of two that want the same, the later one yields.
///
/// `but` is left out as if it were not there.
pub(crate) fn hold_room(cycle: &mut Cycle, but: Option<JobId>) -> Advanced {
    let mut advanced = Advanced::default();
    let state = cycle.state;
    let made = state
        .claims
        .values()
        .filter(|claim| claim.stage == Stage::Made && Some(claim.claimant) != but);
    for claim in made {
        if let Some(why) = broken(cycle, claim) {
            advanced.withdrawn = true;
            advanced.events.push(Event {
                at: cycle.now,
                fact: Fact::ClaimWithdrawn {
                    job: claim.claimant,
                    claim: claim.id,
                    why,
                    again: None,
                },
            });
            continue;
        }
        let start = start(cycle, claim);
        let settled = match start {
            Some(_) => &mut advanced.started,
            None => &mut advanced.waiting,
        };
        settled.insert(claim.claimant);
        if let Some(start) = start {
            advanced.events.push(Event {
                at: cycle.now,
                fact: start,
            });
        }
        hold(cycle, claim);
    }
    advanced
}

/// What makes a claim impossible.
pub(super) fn broken(cycle: &Cycle, claim: &Claim) -> Option<Withdrawal> {
    let state = cycle.state;
    let Some(claimant) = state.jobs.get(&claim.claimant) else {
        return Some(Withdrawal::ClaimantGone);
    };
    // Said when it is held; here for a team that has moved below a held cohort.
    if !(cycle
        .team_holds
        .blockers(claimant.hold.as_ref(), &claim.team))
    .is_empty()
    {
        return Some(Withdrawal::ClaimantSetAside);
    }
    let closed = Closed::by(state, state.node_holds());
    let lost = |node: &NodeId| {
        let free = state.nodes.get(node);
        free.is_none_or(|free| {
            !takes_work(free.node.health) || free.silent_since.is_some() || closed.has(&free.node)
        })
    };
    let nodes = claim.placement.pods.iter().map(|pod| pod.node);
    if let Some(node) = nodes.into_iter().find(lost) {
        return Some(Withdrawal::TargetLost { node });
    }
    let (team, flavour) = wanted(cycle, claim)?;
    let spec = &claimant.spec;
    let mut tree = cycle.tree.clone();
    for job in claim.awaits.iter().filter_map(|id| state.jobs.get(id)) {
        let Some(allocation) = job.allocation.as_ref().filter(|_| job.is_charged()) else {
            continue;
        };
        if let (Some(team), true) = (
            tree.team(&job.spec.team),
            allocation.placement.flavour == claim.placement.flavour,
        ) {
            tree.give_back(team, flavour, allocation.gpus);
        }
    }
    (tree.available(team, flavour) < spec.least_gpus()).then_some(Withdrawal::QuotaGone)
}

/// The claimant's team and flavour in the quota tree.
fn wanted(cycle: &Cycle, claim: &Claim) -> Option<(usize, usize)> {
    let flavour = claim.placement.flavour.as_ref()?;
    Some((cycle.tree.team(&claim.team)?, cycle.tree.flavour(flavour)?))
}

/// The claimant's start, if all of its room and its quota are free.
fn start(cycle: &Cycle, claim: &Claim) -> Option<Fact> {
    let job = cycle.state.jobs.get(&claim.claimant)?;
    let (team, flavour) = wanted(cycle, claim)?;
    let free = cycle.room.is_free(&job.spec, &claim.placement)
        && cycle.tree.available(team, flavour) >= job.spec.least_gpus();
    free.then(|| Fact::JobAdmitted {
        job: job.id,
        attempt: job.attempt + 1,
        placement: claim.placement.clone(),
    })
}

/// Nobody else uses its targets, nor its quota.
fn hold(cycle: &mut Cycle, claim: &Claim) {
    let Some(job) = cycle.state.jobs.get(&claim.claimant) else {
        return;
    };
    cycle.room.hold(&job.spec, &claim.placement);
    cycle.placed.push((&job.spec, claim.placement.clone()));
    let gpus = job.spec.least_gpus();
    cycle.running.start(&job.spec, gpus, &job.owner);
    if let Some((team, flavour)) = wanted(cycle, claim) {
        cycle.tree.charge(team, flavour, gpus);
    }
}
