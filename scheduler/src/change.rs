//! What several people may change: who did it last, why, and what it was before, so that nobody undoes a colleague's in silence.

use crate::decide::invalid;
use crate::setting::MAX_GPUS;
use crate::{Fact, Limits, Millis, PersonId, Refusal, State, TeamId};
use serde::{Deserialize, Serialize};

/// Who last changed something that several people may change, and what it was before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change<T> {
    /// Who.
    pub by: PersonId,
    /// When.
    pub at: Millis,
    /// In their words.
    pub why: Option<String>,
    /// What it was before.
    pub was: T,
    /// How often it was changed so far.
    pub version: u64,
}

/// A reason is given.
pub(crate) fn said(why: Option<&String>) -> Result<(), Refusal> {
    match why.is_some_and(|why| !why.trim().is_empty()) {
        true => Ok(()),
        false => Err(invalid("why", "say why, for those who meet it later")),
    }
}

/// Nobody has changed it since that version was seen.
pub(crate) fn current<T>(what: &str, last: Option<&Change<T>>, seen: u64) -> Result<(), Refusal> {
    match last {
        Some(last) if seen < last.version => Err(Refusal::ChangedSince {
            what: what.to_owned(),
            by: last.by.clone(),
        }),
        last if seen > last.map_or(0, |last| last.version) => Err(invalid(
            "version",
            "there was no such version: look at it again, and give back the one that it has",
        )),
        _ => Ok(()),
    }
}

/// The next version of something that is changed.
pub(crate) fn next_change<T>(
    last: Option<&Change<T>>,
    was: T,
    at: Millis,
    by: &PersonId,
    why: Option<&String>,
) -> Change<T> {
    Change {
        by: by.clone(),
        at,
        why: why.cloned(),
        was,
        version: last.map_or(0, |last| last.version) + 1,
    }
}

/// What may be limited of a team: all of it, and each of its members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamLimits {
    /// Of all jobs of the team.
    pub team: Limits,
    /// Of each person's jobs in it.
    pub member: Limits,
}

impl State {
    /// A team's limits; `None` without such a team.
    pub fn limits_of(&self, team: &TeamId) -> Option<TeamLimits> {
        let team = self.teams.get(team)?;
        Some(TeamLimits {
            team: team.limits,
            member: team.person_limits,
        })
    }
}

/// The fact that changed limits of a team are, if nobody has changed them since that version was seen.
pub(crate) fn limit(
    state: &State,
    team: &TeamId,
    limits: &TeamLimits,
    seen: u64,
    by: &PersonId,
    why: Option<&String>,
) -> Result<Vec<Fact>, Refusal> {
    let now = state
        .limits_of(team)
        .ok_or_else(|| Refusal::NoSuchTeam(team.clone()))?;
    said(why)?;
    let what = format!("limits of {team}");
    current(&what, state.limit_changes.get(team), seen)?;
    for (field, limits) in [("team", limits.team), ("member", limits.member)] {
        if limits.running_gpus.is_some_and(|gpus| gpus > MAX_GPUS) {
            let field = format!("{field}.running_gpus");
            return Err(invalid(
                &field,
                format!("must be at most {MAX_GPUS}; or none, for no limit"),
            ));
        }
    }
    if now == *limits {
        return Ok(Vec::new());
    }
    Ok(vec![Fact::LimitsSet {
        team: team.clone(),
        limits: *limits,
        by: by.clone(),
        why: why.cloned(),
    }])
}

/// Takes in a team's changed limits.
pub(crate) fn keep_limits(
    state: &mut State,
    team: &TeamId,
    limits: &TeamLimits,
    at: Millis,
    by: &PersonId,
    why: Option<&String>,
) {
    let Some(was) = state.limits_of(team) else {
        return;
    };
    let change = next_change(state.limit_changes.get(team), was, at, by, why);
    state.limit_changes.insert(team.clone(), change);
    if let Some(team) = state.teams.get_mut(team) {
        (team.limits, team.person_limits) = (limits.team, limits.member);
    }
}
