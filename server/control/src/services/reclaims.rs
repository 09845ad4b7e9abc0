//! Reclaims: who sees them, who answers them, and what an answer meets that comes too late.

use super::jobs::checked_why;
use super::{Answer, everyone::visible_teams, invalid, no_reclaim};
use crate::engine::{EngineError, Live};
use crate::store::{ClaimRecord, Read, claims};
use crate::views::reclaim::{self as view, LiveClaim};
use crate::{Actor, BorrowersLead, Control, Everyone, ReclaimAdmin, SeesReclaim, ServiceError};
use contract::{JobPage, ReclaimFilter, ReclaimList, ReclaimRights, ReclaimView, Role};
use scheduler::{Claim, ClaimId, Command, JobId, Millis, Refusal, Stage, State, TeamId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Rows of a page when nothing is said.
const PAGE: u32 = 20;
/// Rows of a page at most.
const PAGE_MAX: u32 = 100;
/// Jobs of one proposal at most.
const VICTIMS_MAX: usize = 1_000;

/// Who may say yes or no, in words.
const DECIDERS: &str = "only the cohort's admin may approve or decline it; the lead of a team that would lose by it may \
     propose other jobs or put it off once";
/// Who may speak for the borrowers, in words.
const BORROWERS: &str = "only a lead of a team that would lose by it, or an admin, may propose other jobs or put it off";

/// Whether somebody sees a reclaim of these teams.
fn sees<'a>(actor: &Actor, mut teams: impl Iterator<Item = &'a TeamId>) -> bool {
    actor.has(Role::Manager) || teams.any(|team| actor.role_in(team.as_str()).is_some())
}

/// Whether somebody leads a team that would lose by a reclaim as it stands.
fn leads_a_loser(actor: &Actor, claim: &Claim) -> bool {
    let mut teams = claim.victims.iter().map(|victim| &victim.team);
    teams.any(|team| actor.role_in(team.as_str()) >= Some(Role::Lead))
}

/// What somebody who sees a reclaim may do with it now. The handles ask the same two questions.
fn rights(actor: &Actor, claim: &Claim, open: bool) -> ReclaimRights {
    let (admin, lead) = (actor.has(Role::Admin), leads_a_loser(actor, claim));
    let speaks = admin || lead;
    let said = match (open, admin, lead) {
        (false, ..) => "nothing is left to answer".to_owned(),
        (true, true, _) => "you decide as admin".to_owned(),
        (true, false, true) => "you answer as lead of a team that would lose by it".to_owned(),
        (true, false, false) => DECIDERS.to_owned(),
    };
    ReclaimRights {
        approve: open && admin,
        decline: open && admin,
        defer: open && speaks && claim.deferred_by.is_none(),
        propose: open && speaks,
        said,
    }
}

/// How many requests wait for an answer that somebody may give.
fn for_you(actor: &Actor, state: &State) -> u64 {
    let open = state.claims.values();
    let open = open.filter(|claim| claim.stage == Stage::Requested);
    let admin = actor.has(Role::Admin);
    open.filter(|claim| admin || leads_a_loser(actor, claim))
        .count() as u64
}

/// What a list of reclaims takes from the published state, so that it need not be held.
struct Seen {
    now: Millis,
    for_you: u64,
    names: Arc<State>,
    currency: String,
    open: BTreeMap<ClaimId, LiveClaim>,
}

fn look(live: &Live, actor: &Actor, now: Millis) -> Seen {
    let claims = live.state.claims.values();
    Seen {
        now,
        for_you: for_you(actor, &live.state),
        names: live.names.clone(),
        currency: view::currency(&live.state, now),
        open: claims
            .map(|claim| (claim.id, LiveClaim::of(&live.state, claim, now)))
            .collect(),
    }
}

impl Seen {
    async fn views(
        &self,
        read: &mut Read,
        actor: &Actor,
        records: &[ClaimRecord],
    ) -> Answer<Vec<ReclaimView>> {
        let jobs: BTreeSet<JobId> = records.iter().flat_map(view::jobs_of).collect();
        let briefs = claims::briefs(read, &jobs).await?;
        let visible = visible_teams(actor);
        let told = view::Told {
            now: self.now,
            names: &self.names,
            currency: &self.currency,
            briefs: &briefs,
            visible: visible.as_deref(),
        };
        let views = records.iter().map(|record| {
            let open = record.stage == contract::ReclaimStage::Requested;
            let may = rights(actor, &record.claim, open);
            told.view(record, self.open.get(&record.id()), may)
        });
        Ok(views.collect())
    }
}

impl Everyone {
    /// Reclaims that the actor may see, newest first. Rows and total come from one query.
    pub async fn reclaims(&self, filter: &ReclaimFilter, page: &JobPage) -> Answer<ReclaimList> {
        let limit = match page.limit {
            0 => PAGE,
            1..=PAGE_MAX => page.limit,
            _ => return Err(invalid("limit", format!("1 to {PAGE_MAX}"))),
        };
        let before = match page.after.as_deref().filter(|after| !after.is_empty()) {
            None => None,
            Some(text) => {
                let number = text
                    .parse()
                    .ok()
                    .filter(|number| i64::try_from(*number).is_ok());
                let wrong = || invalid("after", "give back what the last page said in `next`");
                Some(number.ok_or_else(wrong)?)
            }
        };
        let visible = visible_teams(&self.actor);
        let (mut read, seen) = self
            .control
            .moment(|live, now| look(live, &self.actor, now))
            .await?;
        let found = claims::page(&mut read, filter, visible.as_deref(), before, limit).await?;
        let next = found.claims.last().filter(|_| found.more);
        Ok(ReclaimList {
            total: found.total,
            for_you: seen.for_you,
            next: next.map(|last| last.id().to_string()),
            now: crate::period::instant(seen.now),
            reclaims: seen.views(&mut read, &self.actor, &found.claims).await?,
        })
    }

    /// How many reclaims wait for an answer that the actor may give.
    pub async fn reclaims_for_you(&self) -> Answer<u64> {
        let live = self.control.inner.published.read();
        Ok(for_you(&self.actor, &live.state))
    }
}

impl Control {
    /// Seeing a reclaim: members of the claimant's team and of those that would lose by it, managers, admins; anybody
    /// else finds none.
    pub async fn sees_reclaim(&self, actor: &Actor, claim: u64) -> Answer<SeesReclaim> {
        self.seen_reclaim(actor, claim).await?;
        Ok(SeesReclaim {
            control: self.clone(),
            actor: actor.clone(),
            claim: ClaimId(claim),
        })
    }

    /// Saying yes or no: the cohort's admin.
    pub async fn reclaim_admin(&self, actor: &Actor, claim: u64) -> Answer<ReclaimAdmin> {
        self.seen_reclaim(actor, claim).await?;
        if !actor.has(Role::Admin) {
            return Err(ServiceError::Forbidden(DECIDERS.to_owned()));
        }
        Ok(ReclaimAdmin {
            control: self.clone(),
            actor: actor.clone(),
            claim: ClaimId(claim),
        })
    }

    /// Speaking for the borrowers: a lead of a team that would lose by it, an admin.
    pub async fn borrowers_lead(&self, actor: &Actor, claim: u64) -> Answer<BorrowersLead> {
        let record = self.seen_reclaim(actor, claim).await?;
        if !(actor.has(Role::Admin) || leads_a_loser(actor, &record.claim)) {
            return Err(ServiceError::Forbidden(BORROWERS.to_owned()));
        }
        Ok(BorrowersLead {
            control: self.clone(),
            actor: actor.clone(),
            claim: ClaimId(claim),
        })
    }

    async fn seen_reclaim(&self, actor: &Actor, claim: u64) -> Answer<ClaimRecord> {
        // The store's numbers are signed.
        let id = i64::try_from(claim).map_err(|_| no_reclaim(claim))?;
        let mut read = self.inner.store.read().await?;
        let found = claims::one(&mut read, ClaimId(id as u64)).await?;
        found
            .filter(|record| sees(actor, record.teams()))
            .ok_or_else(|| no_reclaim(claim))
    }

    /// Gives an answer. One that comes too late is told who was first, and what they said.
    async fn answer(&self, claim: ClaimId, command: Command) -> Answer<()> {
        let refusal = match self.try_ask(command, None).await? {
            Ok(_) => return Ok(()),
            Err(EngineError::Refused(refusal)) => refusal,
            Err(other) => return Err(other.into()),
        };
        if matches!(refusal, Refusal::NotEnough(_)) {
            return Err(invalid("victims", refusal.to_string()));
        }
        let mut read = self.inner.store.read().await?;
        let record = claims::one(&mut read, claim).await?;
        let live = self.inner.published.read();
        Err(ServiceError::Conflict(match record {
            Some(record) => view::too_late(&record, &refusal, &live.names),
            None => refusal.to_string(),
        }))
    }
}

impl SeesReclaim {
    /// The reclaim, whole.
    pub async fn show(&self) -> Answer<ReclaimView> {
        let (mut read, seen) = self
            .control
            .moment(|live, now| look(live, &self.actor, now))
            .await?;
        let record = claims::one(&mut read, self.claim).await?;
        let record = record.ok_or_else(|| no_reclaim(self.claim.0))?;
        let views = seen.views(&mut read, &self.actor, &[record]).await?;
        let mut views = views.into_iter();
        views.next().ok_or_else(|| no_reclaim(self.claim.0))
    }
}

impl ReclaimAdmin {
    /// Lets it go on: those who would lose save and go. Whoever says which jobs they have `seen` named approves these and no
    /// others: a proposal may have come between.
    pub async fn approve(&self, seen: Option<&[u64]>) -> Answer<()> {
        let (claim, by) = (self.claim, self.actor.id.as_str().into());
        let seen = seen.map(|jobs| jobs.iter().copied().map(JobId).collect());
        let command = Command::ApproveClaim { claim, by, seen };
        self.control.answer(claim, command).await
    }

    /// Refuses it, for a reason that those who asked will read.
    pub async fn decline(&self, reason: &str) -> Answer<()> {
        let why = checked_why(Some(reason)).map_err(of_reason)?;
        if why.is_none() {
            return Err(invalid("reason", "say why, for those who asked"));
        }
        let (claim, by) = (self.claim, self.actor.id.as_str().into());
        let command = Command::DeclineClaim { claim, by, why };
        self.control.answer(claim, command).await
    }
}

/// The same error about the field as it is called here.
fn of_reason(error: ServiceError) -> ServiceError {
    match error {
        ServiceError::Invalid(mut fields) => {
            fields
                .iter_mut()
                .for_each(|wrong| wrong.field = "reason".to_owned());
            ServiceError::Invalid(fields)
        }
        other => other,
    }
}

impl BorrowersLead {
    /// Puts it off by one more deadline, once.
    pub async fn defer(&self) -> Answer<()> {
        let (claim, by) = (self.claim, self.actor.id.as_str().into());
        let command = Command::DeferClaim { claim, by };
        self.control.answer(claim, command).await
    }

    /// Names other jobs that would go instead; they must do by themselves.
    pub async fn propose(&self, victims: &[u64]) -> Answer<()> {
        if victims.is_empty() || victims.len() > VICTIMS_MAX {
            let message = format!("name 1 to {VICTIMS_MAX} jobs that would go instead");
            return Err(invalid("victims", message));
        }
        let (claim, by) = (self.claim, self.actor.id.as_str().into());
        let victims: BTreeSet<JobId> = victims.iter().copied().map(JobId).collect();
        let command = Command::ProposeVictims {
            claim,
            by,
            victims: victims.into_iter().collect(),
        };
        self.control.answer(claim, command).await
    }
}
