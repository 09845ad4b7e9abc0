//! From what happened to claims to the rows that lists show. The state forgets a claim that is over; the list does not.

use crate::store::{Answered, ClaimRecord, Transaction};
use contract::ReclaimStage;
use scheduler::{Claim, ClaimId, Event, Fact, JobId, Millis};
use std::collections::BTreeMap;

/// Claims that are not over, as they are listed: a fold of the facts about claims, and of nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenClaims(BTreeMap<ClaimId, ClaimRecord>);

impl OpenClaims {
    /// Of these.
    pub(crate) fn of(open: Vec<ClaimRecord>) -> Self {
        Self(
            open.into_iter()
                .map(|record| (record.id(), record))
                .collect(),
        )
    }

    /// Takes an event in, and has the row of the claim that it is about written.
    pub(crate) fn note(&mut self, event: &Event, write: &mut Transaction) {
        let at = event.at;
        let Some(id) = self.claim_of(&event.fact) else {
            return;
        };
        if let Fact::ClaimRequested { claim, .. } | Fact::ClaimMade { claim, .. } = &event.fact {
            let record = self.0.entry(id).or_insert_with(|| first(claim, at));
            let teams = claim.victims.iter().map(|victim| victim.team.clone());
            record.losers.extend(teams);
            record.claim = (**claim).clone();
        }
        let Some(record) = self.0.get_mut(&id) else {
            return;
        };
        step(record, &event.fact, at);
        write.claims.insert(id.0, record.clone());
        if record.stage.over() {
            self.0.remove(&id);
        }
    }

    /// The claim that a fact is about.
    fn claim_of(&self, fact: &Fact) -> Option<ClaimId> {
        match fact {
            Fact::ClaimRequested { claim, .. } | Fact::ClaimMade { claim, .. } => Some(claim.id),
            Fact::ClaimApproved { claim, .. }
            | Fact::ClaimDeclined { claim, .. }
            | Fact::ClaimDeferred { claim, .. }
            | Fact::ClaimWithdrawn { claim, .. } => Some(*claim),
            Fact::JobAdmitted { job, .. } => self.by_claimant(*job),
            _ => None,
        }
    }

    fn by_claimant(&self, job: JobId) -> Option<ClaimId> {
        let mut all = self.0.values();
        all.find(|record| record.claim.claimant == job)
            .map(ClaimRecord::id)
    }
}

fn first(claim: &Claim, at: Millis) -> ClaimRecord {
    ClaimRecord {
        stage: ReclaimStage::Requested,
        asked: at,
        answered: None,
        made: None,
        ended: None,
        withdrawn: None,
        losers: Default::default(),
        claim: claim.clone(),
    }
}

fn step(record: &mut ClaimRecord, fact: &Fact, at: Millis) {
    match fact {
        Fact::ClaimRequested { .. } => {
            record.stage = ReclaimStage::Requested;
            // Other victims: the answer was about those before.
            record.answered = None;
        }
        Fact::ClaimApproved { by, .. } => {
            record.stage = ReclaimStage::Approved;
            record.answered = Some(Answered {
                at,
                by: by.clone(),
                why: None,
            });
        }
        Fact::ClaimDeferred { by, deadline, .. } => {
            record.claim.deadline = Some(*deadline);
            record.claim.deferred_by = Some(by.clone());
        }
        Fact::ClaimMade { .. } => {
            record.stage = ReclaimStage::Made;
            record.made = Some(at);
        }
        Fact::ClaimDeclined { by, why, .. } => {
            record.answered = Some(Answered {
                at,
                by: Some(by.clone()),
                why: why.clone(),
            });
            over(record, ReclaimStage::Declined, at);
        }
        Fact::ClaimWithdrawn { why, .. } => {
            record.withdrawn = Some(why.clone());
            over(record, ReclaimStage::Withdrawn, at);
        }
        Fact::JobAdmitted { .. } => over(record, ReclaimStage::Started, at),
        _ => {}
    }
}

fn over(record: &mut ClaimRecord, stage: ReclaimStage, at: Millis) {
    record.stage = stage;
    record.ended = Some(at);
}
