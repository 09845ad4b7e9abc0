//! Policies and limits: who sees them, who changes them, and what a change meets that comes after a colleague's.

use super::jobs::checked_why;
use super::{Answer, invalid, no_team};
use crate::engine::{EngineError, Live};
use crate::period::instant;
use crate::views::setting as view;
use crate::{Admin, Everyone, ServiceError};
use contract::{LimitList, PolicyView, Role, SetLimits, SetPolicy, TeamLimitsView};
use scheduler::{Command, POLICIES, Refusal, TeamId, TeamLimits, policy_row};

impl Admin {
    /// All policies, in the order of the table.
    pub async fn policies(&self) -> Answer<Vec<PolicyView>> {
        let live = self.control.inner.published.read();
        Ok(POLICIES
            .iter()
            .map(|row| view::policy(row, &live.state))
            .collect())
    }

    /// Changes one, unless a colleague has changed it since that version was looked at.
    pub async fn set_policy(&self, name: &str, change: &SetPolicy) -> Answer<PolicyView> {
        let none = || ServiceError::NotFound(format!("policy `{name}`"));
        let row = policy_row(name).ok_or_else(none)?;
        let to = contract::parse_setting(row, &change.value);
        let command = Command::SetPolicy {
            name: name.to_owned(),
            to: to.map_err(|wrong| invalid("value", wrong))?,
            seen: change.version,
            by: self.actor.id.as_str().into(),
            why: checked_why(Some(&change.why))?,
        };
        let last = |live: &Live| view::policy(row, &live.state).last;
        self.change(command, last).await?;
        let live = self.control.inner.published.read();
        Ok(view::policy(row, &live.state))
    }

    /// Changes all limits of a team at once, unless a colleague has changed them since that version was looked at.
    pub async fn set_limits(&self, team: &str, change: &SetLimits) -> Answer<TeamLimitsView> {
        let id = TeamId::from(team);
        let command = Command::SetLimits {
            team: id.clone(),
            limits: TeamLimits {
                team: change.limits.into(),
                member: change.member.into(),
            },
            seen: change.version,
            by: self.actor.id.as_str().into(),
            why: checked_why(Some(&change.why))?,
        };
        let shown = |live: &Live| view::limits(&id, &live.state);
        if shown(&self.control.inner.published.read()).is_none() {
            return Err(no_team(team));
        }
        self.change(command, |live| shown(live)?.last).await?;
        let live = self.control.inner.published.read();
        shown(&live).ok_or_else(|| no_team(team))
    }

    /// Asks the engine. Whoever comes after a colleague is told what that one has changed, and why.
    async fn change(
        &self,
        command: Command,
        last: impl Fn(&Live) -> Option<contract::ChangeView>,
    ) -> Answer<()> {
        let refusal = match self.control.try_ask(command, None).await? {
            Ok(_) => return Ok(()),
            Err(EngineError::Refused(refusal)) => refusal,
            Err(other) => return Err(other.into()),
        };
        let last = last(&self.control.inner.published.read());
        match (&refusal, last) {
            (Refusal::ChangedSince { what, .. }, Some(last)) => {
                Err(ServiceError::Conflict(view::changed_since(what, &last)))
            }
            _ => Err(EngineError::Refused(refusal).into()),
        }
    }
}

impl Everyone {
    /// Limits of the actor's teams; of all teams for managers and admins.
    pub async fn limits(&self) -> Answer<LimitList> {
        let now = self.control.inner.clock.now();
        let live = self.control.inner.published.read();
        let state = &live.state;
        let all = self.actor.has(Role::Manager);
        let mine = |team: &&TeamId| all || self.actor.role_in(team.as_str()).is_some();
        let teams = state.teams.keys().filter(mine);
        Ok(LimitList {
            now: instant(now.max(state.at)),
            teams: teams.filter_map(|team| view::limits(team, state)).collect(),
            person: state.policy.person_limits.into(),
            may_set: self.actor.has(Role::Admin),
        })
    }
}
