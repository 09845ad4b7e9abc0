//! Quotas: teams and the tree of cohorts.

use contract::{CohortView, Gpus, QuotaView, TeamPerson, TeamShareView, TeamView};
use scheduler::{
    CohortId, FlavourId, MilliGpu, Phase, Quota, State, Team, TeamId, fair_share, quota_figures,
};
use std::collections::BTreeMap;

/// GPUs on nodes now, by team and flavour: bound, and not confirmed gone.
type Held = BTreeMap<(TeamId, FlavourId), MilliGpu>;

fn held(state: &State) -> Held {
    let mut held = Held::new();
    for job in state.jobs.values() {
        let Some(allocation) = job
            .allocation
            .as_ref()
            .filter(|allocation| allocation.bound.is_some())
        else {
            continue;
        };
        if let Some(flavour) = &allocation.placement.flavour {
            *held
                .entry((job.spec.team.clone(), flavour.clone()))
                .or_default() += allocation.gpus;
        }
    }
    held
}

fn quota_of(state: &State, held: &Held, team: &TeamId, flavour: &FlavourId) -> QuotaView {
    let figures = quota_figures(state, team, flavour);
    QuotaView {
        flavour: flavour.to_string(),
        nominal: Gpus(figures.nominal),
        charged: Gpus(figures.charged),
        own: Gpus(figures.own),
        borrowed: Gpus(figures.borrowed),
        lent: Gpus(figures.lent),
        held: Gpus(
            held.get(&(team.clone(), flavour.clone()))
                .copied()
                .unwrap_or_default(),
        ),
        available: Gpus(figures.available),
        borrowing_limit: figures.borrowing_limit.map(Gpus),
        lending_limit: figures.lending_limit.map(Gpus),
    }
}

/// Live jobs of each team: those that wait, and the others.
type Live<'a> = BTreeMap<&'a TeamId, (u64, u64)>;

fn live(state: &State) -> Live<'_> {
    let mut live = Live::new();
    for job in state.jobs.values() {
        let (waiting, active) = live.entry(&job.spec.team).or_default();
        match job.phase {
            Phase::Queued => *waiting += 1,
            _ => *active += 1,
        }
    }
    live
}

fn team_view(state: &State, held: &Held, live: &Live<'_>, team: &Team) -> TeamView {
    let (waiting, active) = live.get(&team.id).copied().unwrap_or_default();
    TeamView {
        id: team.id.to_string(),
        cohort: team.cohort.as_ref().map(ToString::to_string),
        quotas: team
            .quotas
            .keys()
            .map(|flavour| quota_of(state, held, &team.id, flavour))
            .collect(),
        waiting,
        active,
        people: Vec::new(),
        default_time_limit_ms: team.default_time_limit.map(|limit| limit.0),
    }
}

/// All teams, by name, without their people.
pub(crate) fn teams(state: &State) -> Vec<TeamView> {
    let (held, live) = (held(state), live(state));
    state
        .teams
        .values()
        .map(|team| team_view(state, &held, &live, team))
        .collect()
}

/// One team, without its people.
pub(crate) fn team(state: &State, team: &TeamId) -> Option<TeamView> {
    state
        .teams
        .get(team)
        .map(|team| team_view(state, &held(state), &live(state), team))
}

/// A team's fair share of each flavour that it has quota of.
pub(crate) fn share(state: &State, team: &TeamId) -> Option<TeamShareView> {
    let of_team = state.teams.get(team)?;
    let flavours = of_team.quotas.keys().filter_map(|flavour| {
        let fair = fair_share(state, team, flavour)?;
        Some(contract::share::view(team, flavour.as_str(), &fair))
    });
    Some(TeamShareView {
        team: team.to_string(),
        flavours: flavours.collect(),
    })
}

/// Puts people into the teams that they may be seen in.
pub(crate) fn add_people(
    teams: &mut [TeamView],
    people: &BTreeMap<String, Vec<TeamPerson>>,
    sees: impl Fn(&str) -> bool,
) {
    for team in teams.iter_mut().filter(|team| sees(&team.id)) {
        team.people = people.get(&team.id).cloned().unwrap_or_default();
    }
}

/// The tree, roots first, depth first; by name among siblings.
pub(crate) fn tree(state: &State) -> Vec<CohortView> {
    let teams = teams(state);
    let mut views = Vec::new();
    let roots = state
        .cohorts
        .values()
        .filter(|cohort| cohort.parent.is_none());
    for root in roots {
        push_cohort(state, &teams, &root.id, 0, &mut views);
    }
    views
}

fn push_cohort(
    state: &State,
    teams: &[TeamView],
    id: &CohortId,
    depth: u32,
    views: &mut Vec<CohortView>,
) {
    let Some(cohort) = state.cohorts.get(id) else {
        return;
    };
    let place = views.len();
    let own: Vec<TeamView> = teams
        .iter()
        .filter(|team| team.cohort.as_deref() == Some(id.as_str()))
        .cloned()
        .collect();
    views.push(CohortView {
        id: id.to_string(),
        parent: cohort.parent.as_ref().map(ToString::to_string),
        depth,
        quotas: Vec::new(),
        teams: own,
    });
    let children = state
        .cohorts
        .values()
        .filter(|child| child.parent.as_ref() == Some(id));
    for child in children {
        push_cohort(state, teams, &child.id, depth + 1, views);
    }
    // Everything that was pushed since is below it.
    let below = views[place].teams.iter().map(|team| &team.quotas);
    let direct = views[place + 1..]
        .iter()
        .filter(|view| view.depth == depth + 1)
        .map(|view| &view.quotas);
    views[place].quotas = sums(&cohort.quotas, below.chain(direct));
}

fn sums<'a>(
    own: &BTreeMap<FlavourId, Quota>,
    parts: impl Iterator<Item = &'a Vec<QuotaView>>,
) -> Vec<QuotaView> {
    let mut by_flavour: BTreeMap<String, QuotaView> = BTreeMap::new();
    let empty = |flavour: &str| {
        let none = Gpus(MilliGpu::ZERO);
        QuotaView {
            flavour: flavour.to_owned(),
            nominal: none,
            charged: none,
            own: none,
            borrowed: none,
            lent: none,
            held: none,
            available: none,
            borrowing_limit: None,
            lending_limit: None,
        }
    };
    for part in parts.flatten() {
        let sum = by_flavour
            .entry(part.flavour.clone())
            .or_insert_with(|| empty(&part.flavour));
        sum.nominal.0 += part.nominal.0;
        sum.charged.0 += part.charged.0;
        sum.own.0 += part.own.0;
        sum.borrowed.0 += part.borrowed.0;
        sum.lent.0 += part.lent.0;
        sum.held.0 += part.held.0;
    }
    for (flavour, quota) in own {
        let sum = by_flavour
            .entry(flavour.to_string())
            .or_insert_with(|| empty(flavour.as_str()));
        sum.nominal.0 += quota.nominal;
        (sum.borrowing_limit, sum.lending_limit) = (
            quota.borrowing_limit.map(Gpus),
            quota.lending_limit.map(Gpus),
        );
    }
    for sum in by_flavour.values_mut() {
        sum.available = Gpus(sum.nominal.0.minus(sum.charged.0));
    }
    by_flavour.into_values().collect()
}
