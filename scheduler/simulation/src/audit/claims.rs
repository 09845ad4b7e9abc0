//! The account of claims: who was taken for whom, and what came of it.

use scheduler::{Basis, Claim, ClaimId, Fact, JobId, NodeId, Placement, Stage, StopCause, TeamId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A claim that is neither fulfilled nor withdrawn.
#[derive(Clone, Debug)]
struct Open {
    claimant: JobId,
    victims: BTreeSet<JobId>,
    placement: Arc<Placement>,
    made: bool,
}

/// The account.
#[derive(Clone, Debug, Default)]
pub(super) struct Claims {
    open: BTreeMap<ClaimId, Open>,
    /// Jobs on their way out, with their claim and its claimant.
    leaving: BTreeMap<JobId, (ClaimId, JobId)>,
    /// Every victim of every claimant that still lives.
    taken: BTreeSet<(JobId, JobId)>,
    held: BTreeMap<(NodeId, u32), ClaimId>,
    /// Who took from whom by fair share since the last event from outside.
    fair: BTreeSet<(TeamId, TeamId)>,
    /// Claims that were made, and how they ended.
    pub(super) tally: Tally,
}

/// How claims ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Put to a person.
    pub requested: u64,
    /// Decided.
    pub made: u64,
    /// Jobs taken.
    pub victims: u64,
    /// Victims that had saved before they were stopped.
    pub saved: u64,
    /// Ended in the claimant's start.
    pub fulfilled: u64,
    /// Given up, on the record.
    pub withdrawn: u64,
    /// Refused by a person.
    pub declined: u64,
}

impl Claims {
    /// Takes in a fact, before the account of who holds what does.
    pub(super) fn take(&mut self, fact: &Fact) -> Result<(), String> {
        match fact {
            Fact::ClaimRequested { claim, .. } => {
                self.tally.requested += u64::from(!self.open.contains_key(&claim.id));
                self.keep(claim);
            }
            Fact::ClaimMade { claim, .. } => self.make(claim)?,
            Fact::ClaimDeclined { claim, .. } => {
                self.tally.declined += 1;
                self.close(*claim)?;
            }
            Fact::ClaimWithdrawn { claim, .. } => {
                self.tally.withdrawn += 1;
                self.close(*claim)?;
            }
            Fact::SaveAsked { job, claim, .. } => {
                let leaving = self.leaving.get(job).map(|(claim, _)| *claim);
                if leaving != Some(*claim) {
                    return Err(format!(
                        "job {job} is asked to save for a claim that it is no victim of"
                    ));
                }
            }
            Fact::CheckpointSaved { job, .. } if self.leaving.contains_key(job) => {
                self.tally.saved += 1;
            }
            Fact::StopRequested {
                job,
                cause: StopCause::Reclaim { claim, claimant },
                ..
            } if self.leaving.get(job) != Some(&(*claim, *claimant)) => {
                return Err(format!(
                    "job {job} is stopped for job {claimant}, which has not taken it"
                ));
            }
            Fact::JobAdmitted { job, placement, .. }
            | Fact::GangReplaced { job, placement, .. } => self.start(*job, placement)?,
            Fact::ShrinkRequested {
                job,
                claim,
                claimant,
                ..
            } if self.leaving.get(job) != Some(&(*claim, *claimant)) => {
                return Err(format!(
                    "job {job} shrinks for job {claimant}, which has not taken of it"
                ));
            }
            Fact::JobRequeued { job, .. } | Fact::GangShrunk { job, .. } => {
                self.leaving.remove(job);
            }
            Fact::JobEnded { job, .. } => {
                self.leaving.remove(job);
                self.taken.retain(|(_, claimant)| claimant != job);
                if let Some(id) = self.of(*job) {
                    return Err(format!("job {job} ended, and its claim {id} did not"));
                }
            }
            _ => {}
        }
        if is_outside(fact) {
            self.fair.clear();
        }
        Ok(())
    }

    fn of(&self, claimant: JobId) -> Option<ClaimId> {
        let mut open = self.open.iter();
        open.find(|(_, open)| open.claimant == claimant)
            .map(|(id, _)| *id)
    }

    fn keep(&mut self, claim: &Claim) {
        self.open.insert(
            claim.id,
            Open {
                claimant: claim.claimant,
                victims: claim.victims.iter().map(|victim| victim.job).collect(),
                placement: claim.placement.clone(),
                made: claim.stage == Stage::Made,
            },
        );
    }

    fn make(&mut self, claim: &Claim) -> Result<(), String> {
        self.tally.made += 1;
        self.tally.victims += claim.victims.len() as u64;
        for victim in &claim.victims {
            if self
                .leaving
                .insert(victim.job, (claim.id, claim.claimant))
                .is_some()
            {
                return Err(format!("job {} is taken by two claims", victim.job));
            }
            if !self.taken.insert((victim.job, claim.claimant)) {
                return Err(format!(
                    "job {} is taken twice for job {}",
                    victim.job, claim.claimant
                ));
            }
            // Its own team's jobs of lower priority may go beside others': that is between the two jobs.
            if claim.basis == Basis::FairShare && victim.team != claim.team {
                let back = (victim.team.clone(), claim.team.clone());
                if self.fair.contains(&back) {
                    return Err(format!(
                        "{} takes back from {} what it just gave",
                        claim.team, victim.team
                    ));
                }
                self.fair.insert((claim.team.clone(), victim.team.clone()));
            }
        }
        for (node, card) in cards(&claim.placement) {
            if let Some(other) = self
                .held
                .insert((node, card), claim.id)
                .filter(|other| *other != claim.id)
            {
                return Err(format!(
                    "card {card} of node {node} is held by claims {other} and {}",
                    claim.id
                ));
            }
        }
        self.keep(claim);
        Ok(())
    }

    fn start(&mut self, job: JobId, placement: &Arc<Placement>) -> Result<(), String> {
        let own = self.of(job);
        let held = cards(placement).find_map(|card| self.held.get(&card));
        if let Some(other) = held.filter(|held| Some(**held) != own) {
            return Err(format!(
                "job {job} starts on a card that claim {other} holds"
            ));
        }
        let Some(id) = own else { return Ok(()) };
        let open = self.open.get(&id).filter(|open| open.made);
        if open.is_some_and(|open| open.placement != *placement) {
            return Err(format!(
                "job {job} starts elsewhere than its claim {id} holds"
            ));
        }
        self.tally.fulfilled += u64::from(open.is_some());
        self.close(id)
    }

    fn close(&mut self, id: ClaimId) -> Result<(), String> {
        let gone = self.open.remove(&id);
        self.held.retain(|_, of| *of != id);
        gone.map(|_| ())
            .ok_or_else(|| format!("claim {id} ended twice, or never was"))
    }

    /// Claims whose victims are gone, and which are neither fulfilled nor given up: at the end of a run there are none.
    pub(super) fn unanswered(&self) -> Option<String> {
        let is_left = |open: &Open| {
            open.made
                && open
                    .victims
                    .iter()
                    .all(|job| !self.leaving.contains_key(job))
        };
        let (id, open) = self.open.iter().find(|(_, open)| is_left(open))?;
        Some(format!(
            "claim {id} of job {} took its victims for nothing",
            open.claimant
        ))
    }
}

fn cards(placement: &Placement) -> impl Iterator<Item = (NodeId, u32)> + '_ {
    // Shares of one card may be held side by side: whole cards are looked at.
    let whole = placement.pods.iter().filter(|pod| pod.milli == 1_000);
    whole.flat_map(|pod| {
        let cards = (0..32).filter(|card| pod.cards & (1 << card) != 0);
        cards.map(|card| (pod.node, card))
    })
}

/// What comes from outside of the cycle: a submit, an end, a failure, a repair, a change of quota or policy.
fn is_outside(fact: &Fact) -> bool {
    matches!(
        fact,
        Fact::JobSubmitted { .. }
            | Fact::JobEnded { .. }
            | Fact::NodeHealthSet { .. }
            | Fact::NodeSilent { .. }
            | Fact::NodeHeard { .. }
            | Fact::PodSucceeded { .. }
            | Fact::Interrupted { .. }
            | Fact::TimeLimitExtended { .. }
            | Fact::NodeSet { .. }
            | Fact::TeamSet { .. }
            | Fact::CohortSet { .. }
            | Fact::CohortRemoved { .. }
            | Fact::PolicySet { .. }
            | Fact::LimitsSet { .. }
            | Fact::HoldSet { .. }
            | Fact::HoldLifted { .. }
    )
}
