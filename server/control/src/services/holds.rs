//! Holds: who sees what is set aside, who may set something aside, and who may take it back.
//!
//! Machines and cohorts are set aside by admins; a team, by its leads, too; a job, by its owner, too. Nobody undoes the hold of
//! somebody who stands above them (Slurm: `JobHeldAdmin`).

use super::identity::{ENDERS, may_end};
use super::jobs::checked_why;
use super::{Answer, no_job};
use crate::engine::Live;
use crate::views::hold as view;
use crate::{Actor, Control, Everyone, Holder, JobOwner, ServiceError};
use contract::{HoldKind, HoldList, HoldView, Role, TeamPerson};
use scheduler::{Command, Hold, HoldMode, HoldScope, JobId, Millis, State};
use std::collections::BTreeMap;

/// Who may set machines and cohorts aside, in words.
const ADMINS: &str =
    "only an admin may hold or release machines and cohorts; ask one, with the reason";
/// Who may set a team aside, in words.
const LEADS: &str = "only a lead of the team or an admin may hold or release it";

/// People of the teams that are held.
type People = BTreeMap<String, Vec<TeamPerson>>;

/// Why somebody may not set this aside; `None` = they may.
fn refused(actor: &Actor, state: &State, scope: &HoldScope) -> Option<&'static str> {
    if actor.has(Role::Admin) {
        return None;
    }
    match scope {
        HoldScope::Job { job } => {
            let job = state.jobs.get(job);
            let may =
                job.is_some_and(|job| may_end(actor, job.spec.team.as_str(), job.owner.as_str()));
            (!may).then_some(ENDERS)
        }
        HoldScope::Team { team } => {
            (actor.role_in(team.as_str()) < Some(Role::Lead)).then_some(LEADS)
        }
        HoldScope::Cohort { .. } | HoldScope::Node { .. } | HoldScope::Domain { .. } => {
            Some(ADMINS)
        }
    }
}

/// Why somebody may not release this hold, or drain what is held; `None` = they may.
fn change_refused(
    actor: &Actor,
    state: &State,
    hold: &Hold,
    people: &People,
    deed: &str,
) -> Option<String> {
    if let Some(said) = refused(actor, state, &hold.scope) {
        return Some(said.to_owned());
    }
    if actor.has(Role::Admin) || hold.by.as_str() == actor.id {
        return None;
    }
    let by = &hold.by;
    match &hold.scope {
        HoldScope::Job { job } => {
            let team = state.jobs.get(job).map(|job| job.spec.team.as_str());
            let leads = team.is_some_and(|team| actor.role_in(team) >= Some(Role::Lead));
            (!leads)
                .then(|| format!("{by} has held it: a lead of its team or an admin can {deed} it"))
        }
        HoldScope::Team { team } => {
            let mut people = people.get(team.as_str()).into_iter().flatten();
            let of_team =
                people.any(|person| person.id == by.as_str() && person.role >= Role::Lead);
            (!of_team).then(|| format!("{by} has held it: an admin can {deed} it"))
        }
        HoldScope::Cohort { .. } | HoldScope::Node { .. } | HoldScope::Domain { .. } => None,
    }
}

/// Whether somebody sees a hold. Those of machines and cohorts are announcements, for all.
fn sees(actor: &Actor, state: &State, hold: &Hold) -> bool {
    let of_team = |team: &str| actor.has(Role::Manager) || actor.role_in(team).is_some();
    match &hold.scope {
        HoldScope::Job { job } => {
            let job = state.jobs.get(job);
            job.is_some_and(|job| of_team(job.spec.team.as_str()))
        }
        HoldScope::Team { team } => of_team(team.as_str()),
        HoldScope::Cohort { .. } | HoldScope::Node { .. } | HoldScope::Domain { .. } => true,
    }
}

/// A hold as somebody sees it.
fn shown(actor: &Actor, live: &Live, hold: &Hold, people: &People) -> HoldView {
    let state = &live.state;
    let sees = |id: JobId| {
        let job = state.jobs.get(&id);
        job.is_some_and(|job| {
            actor.has(Role::Manager) || actor.role_in(job.spec.team.as_str()).is_some()
        })
    };
    let refused = change_refused(actor, state, hold, people, "release");
    view::view(hold, live, sees, refused)
}

/// The hold that lies on a job itself, as somebody sees it.
pub(super) fn of_job(actor: &Actor, live: &Live, job: JobId) -> Option<HoldView> {
    let hold = live.state.jobs.get(&job)?.hold.as_ref()?;
    Some(shown(actor, live, hold, &People::new()))
}

fn list(actor: &Actor, live: &Live, now: Millis, people: &People) -> HoldList {
    let state = &live.state;
    let of_jobs = state.jobs.values().filter_map(|job| job.hold.as_ref());
    let all = state.holds.iter().chain(of_jobs);
    let holds = all.filter(|hold| sees(actor, state, hold));
    let leads = |team: &&str| actor.role_in(team) >= Some(Role::Lead);
    let teams: Vec<String> = actor
        .teams()
        .into_iter()
        .filter(leads)
        .map(str::to_owned)
        .collect();
    let (kinds, names) = match (actor.has(Role::Admin), teams.is_empty()) {
        (true, _) => (view::kinds(state), view::names(state)),
        (false, false) => (vec!["team".to_owned()], teams),
        (false, true) => (Vec::new(), Vec::new()),
    };
    HoldList {
        now: crate::period::instant(now),
        holds: holds.map(|hold| shown(actor, live, hold, people)).collect(),
        kinds,
        names,
    }
}

impl Everyone {
    /// What is set aside, as far as the actor sees it: machines and cohorts, and teams and jobs of their own.
    pub async fn holds(&self) -> Answer<HoldList> {
        let people = self.control.inner.store.people_by_team().await?;
        let now = self.control.inner.clock.now();
        let live = self.control.inner.published.read();
        Ok(list(&self.actor, &live, now.max(live.state.at), &people))
    }
}

impl Control {
    /// Setting something aside: a job, for its owner, a lead of its team, an admin; a team, for its leads and admins; all
    /// else, for admins.
    pub async fn holder(&self, actor: &Actor, on: &str, what: &str) -> Answer<Holder> {
        let (on, what) = (on.trim(), what.trim());
        let admin = actor.has(Role::Admin);
        let scope = {
            let live = self.inner.published.read();
            // What is not theirs anyway is refused before anything is said about what there is.
            if !admin
                && !matches!(on, "job" | "team")
                && view::kinds(&live.state).iter().any(|kind| kind == on)
            {
                return Err(ServiceError::Forbidden(ADMINS.to_owned()));
            }
            view::scope_of(on, what, &live.state)
                .map_err(|wrong| ServiceError::Invalid(vec![wrong]))?
        };
        if let HoldScope::Job { job } = scope {
            return Ok(self.job_owner(actor, job.0).await?.holder());
        }
        if let Some(said) = refused(actor, &self.inner.published.read().state, &scope) {
            return Err(ServiceError::Forbidden(said.to_owned()));
        }
        Ok(Holder {
            control: self.clone(),
            actor: actor.clone(),
            scope,
        })
    }
}

impl Holder {
    /// Sets it aside. Those who wait for it are told who did it and why.
    pub async fn hold(&self, kind: HoldKind, why: Option<&str>) -> Answer<HoldView> {
        self.set(view::mode_of(kind), why).await?;
        self.show().await
    }

    async fn set(&self, mode: HoldMode, why: Option<&str>) -> Answer<()> {
        let why = checked_why(why)?;
        // A drain takes the place of a hold, with whoever set it: else its owner could lift an admin's hold in two steps.
        let drains = {
            let live = self.control.inner.published.read();
            let hold = live.state.hold_on(&self.scope);
            hold.is_some_and(|hold| mode > hold.mode)
        };
        if drains {
            self.may_change("drain").await?;
        }
        let command = Command::Hold {
            scope: self.scope.clone(),
            mode,
            by: self.actor.id.as_str().into(),
            why,
        };
        self.control.ask(command, None).await.map(drop)
    }

    /// Takes it back. What somebody has held who stands above the actor is not theirs to release.
    pub async fn release(&self, why: Option<&str>) -> Answer<()> {
        let why = checked_why(why)?;
        self.may_change("release").await?;
        let command = Command::Release {
            scope: self.scope.clone(),
            by: self.actor.id.as_str().into(),
            why,
        };
        self.control.ask(command, None).await.map(drop)
    }

    /// What lies on it already, if anything does, is theirs to lift or to make a drain of.
    async fn may_change(&self, deed: &str) -> Answer<()> {
        let people = self.people().await?;
        let live = self.control.inner.published.read();
        if let HoldScope::Job { job } = self.scope
            && !live.state.jobs.contains_key(&job)
        {
            return Err(no_job(job.0));
        }
        let hold = live.state.hold_on(&self.scope);
        let refused =
            hold.and_then(|hold| change_refused(&self.actor, &live.state, hold, &people, deed));
        match refused {
            Some(said) => Err(ServiceError::Forbidden(said)),
            None => Ok(()),
        }
    }

    async fn show(&self) -> Answer<HoldView> {
        let people = self.people().await?;
        let live = self.control.inner.published.read();
        let hold = live.state.hold_on(&self.scope);
        let gone = || ServiceError::Conflict(format!("{} is not held any more", self.scope));
        Ok(shown(&self.actor, &live, hold.ok_or_else(gone)?, &people))
    }

    /// People of the team that this is about.
    async fn people(&self) -> Answer<People> {
        let HoldScope::Team { team } = &self.scope else {
            return Ok(People::new());
        };
        let people = self.control.inner.store.people_of(team.as_str()).await?;
        Ok([(team.to_string(), people)].into())
    }
}

impl JobOwner {
    /// Setting this one job aside.
    pub fn holder(&self) -> Holder {
        Holder {
            control: self.control.clone(),
            actor: self.actor.clone(),
            scope: HoldScope::Job { job: self.job },
        }
    }

    /// Sets the job aside: one that waits does not start, one that runs goes on and stays when it next waits.
    pub async fn hold(&self, mode: HoldMode, why: Option<&str>) -> Answer<()> {
        self.holder().set(mode, why).await
    }

    /// Lifts its hold. What a lead or an admin has held, its owner does not release.
    pub async fn release(&self, why: Option<&str>) -> Answer<()> {
        self.holder().release(why).await
    }
}
