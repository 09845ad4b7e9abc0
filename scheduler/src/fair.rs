//! What a team deserves now, and why: its own, its part of what others leave, what it lends and borrows, and how much of it
//! could be called back.

use crate::order::Share;
use crate::quota::QuotaTree;
use crate::{
    FlavourId, Lender, Loan, MilliGpu, Phase, QuotaFigures, State, TeamId, lent_by, loans_to,
    quota_figures,
};
use std::collections::BTreeSet;

/// A member of the same cohort, to compare with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Which.
    pub team: TeamId,
    /// What it has borrowed.
    pub borrowed: MilliGpu,
    /// Its share: borrowed / lendable in the cohort / weight, in ten-thousandths, rounded down; `None` = it borrows with
    /// weight 0, or where there is nothing to lend.
    pub share_e4: Option<u64>,
    /// Borrows, or has jobs waiting: takes part in the surplus.
    pub wants: bool,
}

/// A team's fair share of one flavour, with its working.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FairShare {
    /// Nominal, charged, borrowed, lent, limits.
    pub figures: QuotaFigures,
    /// What the teams and cohorts of its tree leave unused of their own now, lent or not.
    pub surplus: MilliGpu,
    /// Its part of that: by weight among the teams that want more than their own. Zero when it does not.
    pub surplus_part: MilliGpu,
    /// Whom it has borrowed from.
    pub from: Vec<Loan>,
    /// Whom it has lent to.
    pub to: Vec<(TeamId, MilliGpu)>,
    /// Of what it has borrowed, what could move to other lenders if its lenders called it in now.
    pub movable: MilliGpu,
    /// Of what it has borrowed, what it would have to give back then.
    pub exposed: MilliGpu,
    /// Itself and its peers in its cohort, the smallest share first; itself alone without a cohort.
    pub peers: Vec<Peer>,
}

impl FairShare {
    /// What it deserves now: its own and its part of the surplus, within its borrowing limit.
    pub fn deserved(&self) -> MilliGpu {
        let part = self.surplus_part;
        let limit = self.figures.borrowing_limit.unwrap_or(part);
        self.figures.nominal + part.min(limit)
    }
}

/// A team's fair share of a flavour; `None` if there is no such team, or it has no quota of it.
pub fn fair_share(state: &State, team: &TeamId, flavour: &FlavourId) -> Option<FairShare> {
    let of_team = state.teams.get(team)?;
    of_team.quotas.get(flavour)?;
    let tree = QuotaTree::of(state);
    let (node, index) = (tree.team(team)?, tree.flavour(flavour)?);
    let root = tree.root(node);
    let in_tree = |other: &TeamId| {
        tree.team(other)
            .is_some_and(|other| tree.root(other) == root)
    };
    let waiting: BTreeSet<&TeamId> = state
        .jobs
        .values()
        .filter(|job| job.phase == Phase::Queued && job.spec.flavours.contains(flavour))
        .map(|job| &job.spec.team)
        .collect();
    let figures = quota_figures(state, team, flavour);
    let wants = |team: &TeamId| {
        waiting.contains(team) || state.charged(team, flavour) > state.nominal(team, flavour)
    };
    let mut surplus = MilliGpu::ZERO;
    let (mut weight, mut weights) = (0, 0);
    for other in state.teams.values().filter(|other| in_tree(&other.id)) {
        let unused = state
            .nominal(&other.id, flavour)
            .minus(state.charged(&other.id, flavour));
        let lends = other
            .quotas
            .get(flavour)
            .and_then(|quota| quota.lending_limit);
        surplus += lends.unwrap_or(unused).min(unused);
        if wants(&other.id) {
            weights += u128::from(other.weight_milli);
            if other.id == *team {
                weight = u128::from(other.weight_milli);
            }
        }
    }
    let cohorts = state.cohorts.values();
    let own = cohorts.filter_map(|cohort| {
        let below = tree.cohort_index(&cohort.id)?;
        (tree.root(below) == root).then(|| cohort.quotas.get(flavour).map(|quota| quota.nominal))?
    });
    surplus += own.sum();
    let part = (u128::from(surplus.0) * weight).checked_div(weights);
    let borrowed = figures.borrowed;
    let lent = |from: &Lender| {
        let loans = lent_by(state, from, flavour).into_iter();
        loans.map(|(_, gpus)| gpus).sum::<MilliGpu>()
    };
    let mut all_lent = MilliGpu::ZERO;
    for other in state.teams.keys().filter(|other| in_tree(other)) {
        all_lent += lent(&Lender::Team(other.clone()));
    }
    for cohort in state.cohorts.keys() {
        if tree
            .cohort_index(cohort)
            .is_some_and(|node| tree.root(node) == root)
        {
            all_lent += lent(&Lender::Cohort(cohort.clone()));
        }
    }
    let from = loans_to(state, team, flavour).to_vec();
    // Its lenders, should they want it, have nothing unused themselves: only others' can take it over.
    let lenders = from
        .iter()
        .map(|loan| unused_of(state, &loan.from, flavour));
    let free = surplus.minus(all_lent).minus(lenders.sum());
    let movable = borrowed.min(free);
    let siblings = state.teams.values().filter(|other| {
        other.id == *team || (other.cohort.is_some() && other.cohort == of_team.cohort)
    });
    let mut peers: Vec<(Share, Peer)> = siblings
        .filter_map(|other| {
            let node = tree.team(&other.id)?;
            let borrowed = state
                .charged(&other.id, flavour)
                .minus(state.nominal(&other.id, flavour));
            let (lendable, weight) = (tree.lendable_around(node, index), tree.weight(node));
            let share = Share::new(borrowed.0.into(), lendable, weight);
            let share_e4 = (u128::from(borrowed.0) * 10_000 * 1_000)
                .checked_div(lendable * weight)
                .or((borrowed == MilliGpu::ZERO).then_some(0));
            let peer = Peer {
                team: other.id.clone(),
                borrowed,
                share_e4: share_e4.and_then(|share| u64::try_from(share).ok()),
                wants: wants(&other.id),
            };
            Some((share, peer))
        })
        .collect();
    peers.sort_by(|(a, one), (b, other)| a.compare(b).then_with(|| one.team.cmp(&other.team)));
    Some(FairShare {
        figures,
        surplus,
        surplus_part: MilliGpu(part.and_then(|part| u64::try_from(part).ok()).unwrap_or(0)),
        from,
        to: lent_by(state, &Lender::Team(team.clone()), flavour),
        movable,
        exposed: borrowed.minus(movable),
        peers: peers.into_iter().map(|(_, peer)| peer).collect(),
    })
}

/// What a lender leaves unused and has not lent.
fn unused_of(state: &State, from: &Lender, flavour: &FlavourId) -> MilliGpu {
    let most = match from {
        Lender::Team(team) => {
            let quota = state
                .teams
                .get(team)
                .and_then(|team| team.quotas.get(flavour));
            let quota = quota.copied().unwrap_or_default();
            let unused = quota.nominal.minus(state.charged(team, flavour));
            quota.lending_limit.unwrap_or(unused).min(unused)
        }
        Lender::Cohort(cohort) => state
            .cohorts
            .get(cohort)
            .and_then(|cohort| cohort.quotas.get(flavour))
            .map(|quota| quota.nominal)
            .unwrap_or_default(),
        Lender::Nobody => MilliGpu::ZERO,
    };
    let lent = lent_by(state, from, flavour).into_iter();
    most.minus(lent.map(|(_, gpus)| gpus).sum())
}
