//! What anybody signed in may see: the fleet, quotas, and the jobs of their teams.

use super::{Answer, invalid, no_team};
use crate::store::{JobCursor, jobs};
use crate::views::job::{Overlay, row};
use crate::views::{fleet, map, quota};
use crate::{Actor, Control, Everyone};
use contract::{
    Catalog, CohortView, FleetView, JobFilter, JobList, JobPage, JobState, MapView, NodeRow, Role,
    StateCounts, TeamShareView, TeamView,
};
use scheduler::{Job, JobId, State, TeamId};

/// Rows of a page when nothing is said.
const PAGE: u32 = 50;
/// Rows of a page at most.
const PAGE_MAX: u32 = 200;

/// Teams whose jobs the actor may see; `None` = all.
pub(crate) fn visible_teams(actor: &Actor) -> Option<Vec<String>> {
    if actor.has(Role::Manager) {
        return None;
    }
    Some(actor.teams().into_iter().map(str::to_owned).collect())
}

/// Says which live jobs the actor may see.
fn sees<'a>(actor: &'a Actor, state: &'a State) -> impl Fn(JobId) -> bool + 'a {
    let all = actor.has(Role::Manager);
    move |job| {
        all || state
            .jobs
            .get(&job)
            .is_some_and(|job: &Job| actor.role_in(job.spec.team.as_str()).is_some())
    }
}

/// What the actor may name in a spec.
pub(crate) fn catalog_of(actor: &Actor, state: &State) -> Catalog {
    let submits = |team: &&TeamId| actor.has(Role::Admin) || actor.role_in(team.as_str()).is_some();
    Catalog {
        teams: state
            .teams
            .keys()
            .filter(submits)
            .map(ToString::to_string)
            .collect(),
        flavours: state.flavours.keys().map(ToString::to_string).collect(),
        levels: state
            .topology
            .levels
            .iter()
            .map(ToString::to_string)
            .collect(),
        restart_budget: state.policy.restart_budget,
    }
}

impl Everyone {
    fn control(&self) -> &Control {
        &self.control
    }

    /// What a spec may name, for the form and for [`contract::SubmitJob::check`].
    pub async fn catalog(&self) -> Answer<Catalog> {
        Ok(catalog_of(
            &self.actor,
            &self.control().inner.published.read().state,
        ))
    }

    /// The fleet at a glance.
    pub async fn fleet(&self) -> Answer<FleetView> {
        let inner = &self.control().inner;
        let (now, speed) = (inner.clock.now(), inner.clock.speed());
        let live = inner.published.read();
        Ok(fleet::fleet(&live, now.max(live.state.at), speed))
    }

    /// The map.
    pub async fn map(&self) -> Answer<MapView> {
        let inner = &self.control().inner;
        let now = inner.clock.now();
        let live = inner.published.read();
        Ok(map::map(
            &live,
            now.max(live.state.at),
            sees(&self.actor, &live.state),
        ))
    }

    /// All nodes.
    pub async fn nodes(&self) -> Answer<Vec<NodeRow>> {
        let live = self.control().inner.published.read();
        Ok(fleet::nodes(&live.state, sees(&self.actor, &live.state)))
    }

    /// The quota tree, roots first, depth first.
    pub async fn quota_tree(&self) -> Answer<Vec<CohortView>> {
        let mut tree = quota::tree(&self.control().inner.published.read().state);
        let people = self.control().inner.store.people_by_team().await?;
        for cohort in &mut tree {
            quota::add_people(&mut cohort.teams, &people, |team| self.sees_people(team));
        }
        Ok(tree)
    }

    /// All teams (quotas are for all to see; people only for one's own team and admins).
    pub async fn teams(&self) -> Answer<Vec<TeamView>> {
        let mut teams = quota::teams(&self.control().inner.published.read().state);
        let people = self.control().inner.store.people_by_team().await?;
        quota::add_people(&mut teams, &people, |team| self.sees_people(team));
        Ok(teams)
    }

    /// Names of the teams whose jobs the actor may see.
    pub async fn team_names(&self) -> Answer<Vec<String>> {
        let visible = visible_teams(&self.actor);
        let live = self.control().inner.published.read();
        let names = live.state.teams.keys().map(ToString::to_string);
        Ok(match visible {
            None => names.collect(),
            Some(mine) => names.filter(|name| mine.contains(name)).collect(),
        })
    }

    /// One team.
    pub async fn team(&self, team: &str) -> Answer<TeamView> {
        let found = quota::team(
            &self.control().inner.published.read().state,
            &TeamId::from(team),
        );
        let mut view = found.ok_or_else(|| no_team(team))?;
        if self.sees_people(team) {
            view.people = self.control().inner.store.people_of(team).await?;
        }
        Ok(view)
    }

    /// What a team deserves now, and why.
    pub async fn team_share(&self, team: &str) -> Answer<TeamShareView> {
        let live = self.control().inner.published.read();
        quota::share(&live.state, &TeamId::from(team)).ok_or_else(|| no_team(team))
    }

    fn sees_people(&self, team: &str) -> bool {
        self.actor.role_in(team).is_some() || self.actor.has(Role::Admin)
    }

    /// Jobs that the actor may see. Filter, totals, counts and paging come from one query.
    pub async fn jobs(&self, filter: &JobFilter, page: &JobPage) -> Answer<JobList> {
        let limit = match page.limit {
            0 => PAGE,
            1..=PAGE_MAX => page.limit,
            _ => return Err(invalid("limit", format!("1 to {PAGE_MAX}"))),
        };
        let after = match page.after.as_deref().filter(|after| !after.is_empty()) {
            None => None,
            Some(text) => {
                let cursor = JobCursor::parse(text).filter(|cursor| cursor.sort == filter.sort);
                Some(cursor.ok_or_else(|| {
                    invalid(
                        "after",
                        "give back what the last page said in `next`, with the same sort",
                    )
                })?)
            }
        };
        let visible = visible_teams(&self.actor);
        let (mut read, (state, waiting, now)) = self
            .control()
            .moment(|live, now| (live.state.clone(), live.waiting.clone(), now))
            .await?;
        let found = jobs::page(&mut read, filter, visible.as_deref(), after, limit).await?;
        let ids = found.jobs.iter().map(|record| JobId(record.id));
        let overlay = Overlay::of(&state, &waiting, ids);
        drop((state, waiting));
        let next = found.jobs.last().filter(|_| found.more);
        Ok(JobList {
            next: next.map(|last| {
                JobCursor {
                    sort: filter.sort,
                    last: last.id,
                }
                .text()
            }),
            total: found.counts.values().sum(),
            counts: counts(found.counts.into_iter()),
            jobs: found
                .jobs
                .iter()
                .map(|record| row(record, &overlay))
                .collect(),
            now: crate::period::instant(now),
        })
    }
}

fn counts(by_state: impl Iterator<Item = (JobState, u64)>) -> StateCounts {
    let mut counts = StateCounts::default();
    for (state, n) in by_state {
        match state {
            JobState::Queued => counts.queued += n,
            state if state.ended() => counts.ended += n,
            _ => counts.active += n,
        }
    }
    counts
}
