//! Policies and limits, with who last changed them.

use crate::period::instant;
use contract::{
    ChangeView, Gpus, LoadView, PersonLoad, PolicyView, TeamLimitsView, allowed_text, limit_text,
    setting_text,
};
use scheduler::{Change, Limits, Load, Policy, PolicyRow, State, TeamId, TeamLimits};

/// A policy as it is.
pub(crate) fn policy(row: &PolicyRow, state: &State) -> PolicyView {
    let (now, usual) = (row.of(&state.policy), row.of(&Policy::default()));
    let (allowed, unit, choices) = allowed_text(row.allowed);
    let last = state.policy_changes.get(row.name);
    PolicyView {
        name: row.name.to_owned(),
        meaning: row.meaning.to_owned(),
        value: setting_text(&now),
        default: setting_text(&usual),
        changed: now != usual,
        unit: unit.to_owned(),
        allowed,
        choices,
        elsewhere: row.elsewhere.to_owned(),
        version: last.map_or(0, |last| last.version),
        last: last.map(|last| {
            let what = format!("{} to {}", setting_text(&last.was), setting_text(&now));
            change(last, what)
        }),
    }
}

fn change<T>(last: &Change<T>, what: String) -> ChangeView {
    ChangeView {
        by: last.by.to_string(),
        at: instant(last.at),
        why: last.why.clone(),
        what,
    }
}

/// What a colleague has changed, for whoever comes after: what, by whom, when and why.
pub(crate) fn changed_since(what: &str, last: &ChangeView) -> String {
    let why = last
        .why
        .as_ref()
        .map_or(String::new(), |why| format!(": {why}"));
    format!(
        "{what} was changed from {} by {} at {}{why}. Look at it again; if yours is still right, send it once more",
        last.what, last.by, last.at
    )
}

fn load(load: &Load) -> LoadView {
    LoadView {
        running_jobs: load.running,
        waiting_jobs: load.waiting,
        running_gpus: Gpus(load.gpus),
    }
}

/// A team's limits, and how far they are used; `None` without such a team.
pub(crate) fn limits(team: &TeamId, state: &State) -> Option<TeamLimitsView> {
    let now = state.limits_of(team)?;
    let of_people = state.load.get(team);
    let mut people: Vec<_> = of_people
        .into_iter()
        .flatten()
        .map(|(person, of_person)| PersonLoad {
            person: person.to_string(),
            load: load(of_person),
        })
        .collect();
    let all = people
        .iter()
        .fold(LoadView::default(), |sum, one| LoadView {
            running_jobs: sum.running_jobs + one.load.running_jobs,
            waiting_jobs: sum.waiting_jobs + one.load.waiting_jobs,
            running_gpus: Gpus(sum.running_gpus.0 + one.load.running_gpus.0),
        });
    people.sort_by(|a, b| {
        let most = |one: &PersonLoad| (one.load.running_gpus, one.load.running_jobs);
        most(b).cmp(&most(a)).then_with(|| a.person.cmp(&b.person))
    });
    let last = state.limit_changes.get(team);
    Some(TeamLimitsView {
        team: team.to_string(),
        limits: now.team.into(),
        member: now.member.into(),
        load: all,
        people,
        version: last.map_or(0, |last| last.version),
        last: last.map(|last| change(last, differences(&last.was, &now))),
    })
}

/// `running jobs no limit to 8; a member's running GPUs 16 to 32`.
fn differences(was: &TeamLimits, now: &TeamLimits) -> String {
    let of = |whose: &str, was: &Limits, now: &Limits| {
        [
            (
                "running jobs",
                limit_text(was.running_jobs),
                limit_text(now.running_jobs),
            ),
            (
                "waiting jobs",
                limit_text(was.waiting_jobs),
                limit_text(now.waiting_jobs),
            ),
            (
                "running GPUs",
                limit_text(was.running_gpus),
                limit_text(now.running_gpus),
            ),
        ]
        .into_iter()
        .filter(|(_, was, now)| was != now)
        .map(|(what, was, now)| format!("{whose}{what} {was} to {now}"))
        .collect::<Vec<_>>()
    };
    let mut all = of("", &was.team, &now.team);
    all.extend(of("a member's ", &was.member, &now.member));
    all.join("; ")
}
