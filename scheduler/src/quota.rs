//! Quota algebra, per flavour (Kueue's, stated whole). All amounts are GPUs in thousandths.
//!
//! ```text
//! subtree(n)    = nominal(n) + sum of lendable(children)
//! lendable(n)   = min(subtree(n), lending_limit(n))
//! guaranteed(n) = subtree(n) - lendable(n)
//! usage(team)   = charged;  usage(cohort) = sum over children of max(0, usage(c) - guaranteed(c))
//! available(root) = subtree - usage
//! available(n)    = max(0, guaranteed(n) - usage(n))
//!                 + min(available(parent), lendable(n) - max(0, usage(n) - guaranteed(n)) + borrowing_limit(n))
//! ```
//!
//! A team without a cohort is a root: it can use its nominal and no more.
//!
//! # Two levels, by hand
//! Cohort `c` (no quota of its own): team `a` nominal 10, lends at most 6, charged 2; team `b` nominal 4, borrows at
//! most 5, charged 7.
//!
//! | n | nominal | lendable | guaranteed | usage | available |
//! | --- | --- | --- | --- | --- | --- |
//! | `a` | 10 | min(10, 6) = 6 | 10 - 6 = 4 | 2 | max(0, 4 - 2) + min(3, 6 - 0 + no limit) = 2 + 3 = 5 |
//! | `b` | 4 | 4 | 0 | 7 | 0 + min(3, 4 - 7 + 5 = 2) = 2 |
//! | `c` | 0 + 6 + 4 = 10 | | | max(0, 2 - 4) + max(0, 7 - 0) = 7 | 10 - 7 = 3 |
//!
//! `a` owns 10, has 2, and may still take only 5: `b` borrowed 3 of it. `b` may take 2 of the 3 that are left, for its
//! own limit of 5.
//!
//! # Three levels, by hand
//! Root `r` with 8 of its own; under it cohort `x` (own 4, lends at most 5, borrows at most 3) with team `a` (nominal 6,
//! charged 9), and team `b` (nominal 2, charged 1).
//!
//! | n | subtree | lendable | guaranteed | usage | available |
//! | --- | --- | --- | --- | --- | --- |
//! | `a` | 6 | 6 | 0 | 9 | 0 + min(4, 6 - 9 + no limit) = 4 |
//! | `x` | 4 + 6 = 10 | min(10, 5) = 5 | 5 | 9 | max(0, 5 - 9) + min(10, 5 - 4 + 3 = 4) = 4 |
//! | `b` | 2 | 2 | 0 | 1 | 0 + min(10, 2 - 1 + no limit) = 10 |
//! | `r` | 8 + 5 + 2 = 15 | | | max(0, 9 - 5) + 1 = 5 | 15 - 5 = 10 |

use crate::order::Share;
use crate::{CohortId, FlavourId, JobId, Lender, MilliGpu, Quota, State, TeamId, lent_by};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The figures of one team and flavour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QuotaFigures {
    /// Its own.
    pub nominal: MilliGpu,
    /// Charged now.
    pub charged: MilliGpu,
    /// Of these, inside nominal.
    pub own: MilliGpu,
    /// Of these, beyond it.
    pub borrowed: MilliGpu,
    /// Of its nominal, used by others of its tree now, by the ledger.
    pub lent: MilliGpu,
    /// What it may still be charged.
    pub available: MilliGpu,
    /// The most it may borrow; `None` = no limit.
    pub borrowing_limit: Option<MilliGpu>,
    /// The most it lends; `None` = all.
    pub lending_limit: Option<MilliGpu>,
    /// The most it could ever be charged.
    pub maximum: MilliGpu,
}

/// The figures of a team in a flavour; zeros where it has no quota.
pub fn quota_figures(state: &State, team: &TeamId, flavour: &FlavourId) -> QuotaFigures {
    let Some(quota) = state
        .teams
        .get(team)
        .and_then(|team| team.quotas.get(flavour))
    else {
        return QuotaFigures::default();
    };
    let mut tree = QuotaTree::of(state);
    tree.charge_claims(state);
    let (Some(node), Some(flavour_index)) = (tree.team(team), tree.flavour(flavour)) else {
        return QuotaFigures::default();
    };
    let charged = state.charged(team, flavour);
    let own = charged.min(quota.nominal);
    QuotaFigures {
        nominal: quota.nominal,
        charged,
        own,
        borrowed: charged.minus(own),
        lent: lent_by(state, &Lender::Team(team.clone()), flavour)
            .into_iter()
            .map(|(_, gpus)| gpus)
            .sum(),
        available: tree.available(node, flavour_index),
        borrowing_limit: quota.borrowing_limit,
        lending_limit: quota.lending_limit,
        maximum: tree.maximum(node, flavour_index),
    }
}

/// How the team's charge in a flavour is laid on its jobs: `(job, own, borrowed)`, oldest admission first.
pub fn entitlements(
    state: &State,
    team: &TeamId,
    flavour: &FlavourId,
) -> Vec<(JobId, MilliGpu, MilliGpu)> {
    let jobs = state
        .laid
        .get(team)
        .and_then(|laid| laid.get(flavour))
        .into_iter()
        .flatten();
    jobs.filter_map(|id| {
        let allocation = state.jobs.get(id)?.allocation.as_ref()?;
        Some((*id, allocation.own, allocation.borrowed))
    })
    .collect()
}

/// One flavour's figures at one node of the tree. Signed: a cut quota leaves less than nothing available.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    nominal: i64,
    lendable: i64,
    guaranteed: i64,
    borrowing_limit: i64,
    subtree: i64,
    usage: i64,
}

impl Cell {
    /// What it uses beyond what is guaranteed to it: that part counts at its parent.
    fn over(&self) -> i64 {
        (self.usage - self.guaranteed).max(0)
    }
    fn local(&self) -> i64 {
        (self.guaranteed - self.usage).max(0)
    }
    /// The most that may still come to it through its parent.
    fn ceiling(&self) -> i64 {
        (self.lendable - self.over()).saturating_add(self.borrowing_limit)
    }
}

/// "No limit", far above any quota and far below overflow.
const NO_LIMIT: i64 = i64::MAX / 4;

fn signed(amount: MilliGpu) -> i64 {
    i64::try_from(amount.0).unwrap_or(NO_LIMIT).min(NO_LIMIT)
}

fn unsigned(amount: i64) -> MilliGpu {
    MilliGpu(u64::try_from(amount).unwrap_or(0))
}

/// Where a claim is short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ShortAt {
    /// The team's own limit.
    Team,
    /// A cohort has no more to give, or may not borrow more: its index in the tree.
    Cohort(usize),
}

/// The quota tree with its charges, as integers: the scratch of one cycle. Cheap to copy: each planned start has one.
#[derive(Clone)]
pub(crate) struct QuotaTree<'a> {
    frame: Rc<Frame<'a>>,
    /// Node x flavour.
    cells: Vec<Cell>,
}

/// What charges do not change.
struct Frame<'a> {
    flavours: BTreeMap<&'a FlavourId, usize>,
    cohorts: Vec<&'a CohortId>,
    teams: BTreeMap<&'a TeamId, usize>,
    /// Cohorts first, then teams; both in order of id.
    parent: Vec<Option<usize>>,
    /// Of each node, in thousandths.
    weights: Vec<u64>,
    /// Of each flavour, all that the roots have.
    all: Vec<i64>,
}

impl<'a> QuotaTree<'a> {
    /// The tree as the state has it.
    pub(crate) fn of(state: &'a State) -> Self {
        let flavours: BTreeMap<_, _> = state
            .flavours
            .keys()
            .enumerate()
            .map(|(index, id)| (id, index))
            .collect();
        let cohorts: BTreeMap<_, _> = state
            .cohorts
            .keys()
            .enumerate()
            .map(|(index, id)| (id, index))
            .collect();
        let teams = state
            .teams
            .keys()
            .enumerate()
            .map(|(index, id)| (id, cohorts.len() + index))
            .collect();
        let above = |id: &Option<CohortId>| id.as_ref().and_then(|id| cohorts.get(id).copied());
        let parent = state.cohorts.values().map(|cohort| above(&cohort.parent));
        let parent: Vec<_> = parent
            .chain(state.teams.values().map(|team| above(&team.cohort)))
            .collect();
        let weights = state.cohorts.values().map(|cohort| cohort.weight_milli);
        let weights = weights.chain(state.teams.values().map(|team| team.weight_milli));
        let frame = Frame {
            cohorts: cohorts.into_keys().collect(),
            weights: weights.collect(),
            all: Vec::new(),
            flavours,
            teams,
            parent,
        };
        let unlimited = Cell {
            borrowing_limit: NO_LIMIT,
            ..Cell::default()
        };
        let cells = vec![unlimited; frame.parent.len() * frame.flavours.len()];
        let all = vec![0; frame.flavours.len()];
        let mut tree = Self {
            frame: Rc::new(frame),
            cells,
        };
        let all = tree.fill(state, all);
        if let Some(frame) = Rc::get_mut(&mut tree.frame) {
            frame.all = all;
        }
        tree
    }

    /// Fills the cells; returns all that the roots have.
    fn fill(&mut self, state: &State, mut all: Vec<i64>) -> Vec<i64> {
        let frame = Rc::clone(&self.frame);
        let quotas = state.cohorts.values().map(|cohort| &cohort.quotas);
        let quotas: Vec<_> = quotas
            .chain(state.teams.values().map(|team| &team.quotas))
            .collect();
        let order = self.leaves_first();
        for &node in &order {
            for flavour in 0..frame.flavours.len() {
                let at = self.at(node, flavour);
                self.cells[at].lendable = NO_LIMIT;
            }
            for (id, quota) in quotas[node] {
                if let Some(&flavour) = frame.flavours.get(id) {
                    self.set(node, flavour, quota);
                }
            }
        }
        // Children come before their parents, so a node's subtree is whole when it is its turn.
        for &node in &order {
            for (flavour, all) in all.iter_mut().enumerate() {
                let at = self.at(node, flavour);
                let cell = &mut self.cells[at];
                cell.subtree += cell.nominal;
                cell.lendable = cell.lendable.min(cell.subtree);
                cell.guaranteed = cell.subtree - cell.lendable;
                let (lendable, subtree) = (cell.lendable, cell.subtree);
                if let Some(parent) = frame.parent[node] {
                    let above = self.at(parent, flavour);
                    self.cells[above].subtree += lendable;
                } else {
                    *all += subtree;
                }
            }
        }
        for (team, of_team) in &state.charged {
            for (flavour, &charged) in of_team {
                if let (Some(node), Some(flavour)) = (self.team(team), self.flavour(flavour)) {
                    self.charge(node, flavour, charged);
                }
            }
        }
        all
    }

    /// Writes the limits; `lendable` holds the lending limit until the subtree is known.
    fn set(&mut self, node: usize, flavour: usize, quota: &Quota) {
        let at = self.at(node, flavour);
        let cell = &mut self.cells[at];
        cell.nominal = signed(quota.nominal);
        cell.borrowing_limit = quota.borrowing_limit.map_or(NO_LIMIT, signed);
        cell.lendable = quota.lending_limit.map_or(NO_LIMIT, signed);
    }

    /// All nodes, every child before its parent.
    fn leaves_first(&self) -> Vec<usize> {
        let depth = |mut node: usize| {
            let mut depth = 0;
            // No ring can come in by the door; the bound keeps a broken journal from hanging us.
            while let (Some(parent), true) =
                (self.frame.parent[node], depth <= self.frame.parent.len())
            {
                (node, depth) = (parent, depth + 1);
            }
            depth
        };
        let mut order: Vec<usize> = (0..self.frame.parent.len()).collect();
        order.sort_by_cached_key(|&node| (std::cmp::Reverse(depth(node)), node));
        order
    }

    fn at(&self, node: usize, flavour: usize) -> usize {
        node * self.frame.flavours.len() + flavour
    }
    fn cell(&self, node: usize, flavour: usize) -> &Cell {
        &self.cells[self.at(node, flavour)]
    }

    /// A team's index.
    pub(crate) fn team(&self, id: &TeamId) -> Option<usize> {
        self.frame.teams.get(id).copied()
    }
    /// A flavour's index.
    pub(crate) fn flavour(&self, id: &FlavourId) -> Option<usize> {
        self.frame.flavours.get(id).copied()
    }
    /// A cohort's index.
    pub(crate) fn cohort_index(&self, id: &CohortId) -> Option<usize> {
        self.frame.cohorts.binary_search(&id).ok()
    }
    /// A cohort's name.
    pub(crate) fn cohort(&self, node: usize) -> Option<&CohortId> {
        self.frame.cohorts.get(node).copied()
    }

    /// Charges a team.
    pub(crate) fn charge(&mut self, team: usize, flavour: usize, gpus: MilliGpu) {
        let (mut node, mut more) = (team, signed(gpus));
        loop {
            let at = self.at(node, flavour);
            let cell = &mut self.cells[at];
            let before = cell.over();
            cell.usage += more;
            more = cell.over() - before;
            match self.frame.parent[node] {
                Some(parent) if more > 0 => node = parent,
                _ => return,
            }
        }
    }

    /// Takes a charge off again.
    pub(crate) fn give_back(&mut self, team: usize, flavour: usize, gpus: MilliGpu) {
        let (mut node, mut less) = (team, signed(gpus));
        loop {
            let at = self.at(node, flavour);
            let cell = &mut self.cells[at];
            let before = cell.over();
            cell.usage -= less;
            less = before - cell.over();
            match self.frame.parent[node] {
                Some(parent) if less > 0 => node = parent,
                _ => return,
            }
        }
    }

    fn available_signed(&self, node: usize, flavour: usize) -> i64 {
        let cell = self.cell(node, flavour);
        match self.frame.parent[node] {
            None => cell.subtree - cell.usage,
            Some(parent) => {
                cell.local() + self.available_signed(parent, flavour).min(cell.ceiling())
            }
        }
    }

    /// What a team may still be charged.
    pub(crate) fn available(&self, team: usize, flavour: usize) -> MilliGpu {
        unsigned(self.available_signed(team, flavour))
    }

    /// The lowest level that `gpus` more of a team fit inside without borrowing there: 0 = its own nominal, 1 = its
    /// cohort's subtree, and so on. What fits nowhere now is counted at the root: a big gang is not put behind small ones
    /// for not fitting yet.
    pub(crate) fn height(&self, team: usize, flavour: usize, gpus: MilliGpu) -> u32 {
        let (mut node, mut more, mut height) = (team, signed(gpus), 0);
        loop {
            let cell = self.cell(node, flavour);
            if cell.usage + more <= cell.subtree {
                return height;
            }
            more = (cell.usage + more - cell.guaranteed).max(0) - cell.over();
            match self.frame.parent[node] {
                Some(parent) => (node, height) = (parent, height + 1),
                None => return height,
            }
        }
    }

    /// The share of each node from a team up to its root, with what reaches it of a need `(flavour, GPUs)`.
    pub(crate) fn shares(
        &self,
        team: usize,
        need: Option<(usize, MilliGpu)>,
        into: &mut Vec<Share>,
    ) {
        into.clear();
        let mut more = need.map_or(0, |(_, gpus)| signed(gpus));
        let mut node = Some(team);
        while let Some(at) = node {
            let shares = (0..self.frame.flavours.len()).map(|flavour| {
                let cell = self.cell(at, flavour);
                let needed = need.is_some_and(|(needed, _)| needed == flavour);
                let usage = cell.usage + if needed { more } else { 0 };
                let above = u128::try_from(usage - cell.subtree).unwrap_or(0);
                Share::new(above, self.lendable_around(at, flavour), self.weight(at))
            });
            into.push(shares.fold(Share::default(), Share::max));
            if let Some((flavour, _)) = need {
                let cell = self.cell(at, flavour);
                more = (cell.usage + more - cell.guaranteed).max(0) - cell.over();
            }
            node = self.frame.parent[at];
        }
    }

    /// What can be lent in the cohort that a node is a member of; among the roots, all that there is.
    pub(crate) fn lendable_around(&self, node: usize, flavour: usize) -> u128 {
        let lendable = match self.frame.parent[node] {
            Some(parent) => self.cell(parent, flavour).subtree,
            None => self.frame.all[flavour],
        };
        u128::try_from(lendable).unwrap_or(0)
    }

    /// A node's weight in fair shares, in thousandths.
    pub(crate) fn weight(&self, node: usize) -> u128 {
        self.frame.weights[node].into()
    }
    /// Nodes: cohorts, then teams.
    pub(crate) fn nodes(&self) -> usize {
        self.frame.parent.len()
    }
    /// How many of them are cohorts.
    pub(crate) fn cohorts(&self) -> usize {
        self.frame.cohorts.len()
    }
    /// The cohort above a node.
    pub(crate) fn parent(&self, node: usize) -> Option<usize> {
        self.frame.parent[node]
    }
    /// How many cohorts are above a node.
    pub(crate) fn depth(&self, mut node: usize) -> usize {
        let mut depth = 0;
        while let Some(parent) = self.frame.parent[node] {
            (node, depth) = (parent, depth + 1);
        }
        depth
    }

    /// The most that a team could ever be charged: what is available when nobody is charged anything.
    pub(crate) fn maximum(&self, team: usize, flavour: usize) -> MilliGpu {
        fn of(tree: &QuotaTree, node: usize, flavour: usize) -> i64 {
            let cell = Cell {
                usage: 0,
                ..*tree.cell(node, flavour)
            };
            match tree.frame.parent[node] {
                None => cell.subtree,
                Some(parent) => cell.local() + of(tree, parent, flavour).min(cell.ceiling()),
            }
        }
        unsigned(of(self, team, flavour))
    }

    /// Where `gpus` more are too many; meaningful only when they are.
    pub(crate) fn short_at(&self, team: usize, flavour: usize, gpus: MilliGpu) -> ShortAt {
        let (mut node, mut need) = (team, signed(gpus));
        while let Some(parent) = self.frame.parent[node] {
            let cell = self.cell(node, flavour);
            need -= cell.local();
            if need > cell.ceiling() {
                break;
            }
            node = parent;
        }
        if node < self.frame.cohorts.len() {
            ShortAt::Cohort(node)
        } else {
            ShortAt::Team
        }
    }

    /// Teams below a cohort that are charged beyond their nominal, most first.
    pub(crate) fn borrowers(&self, cohort: usize, flavour: usize) -> Vec<(TeamId, MilliGpu)> {
        let below = self
            .frame
            .teams
            .iter()
            .filter(|&(_, &team)| self.is_below(team, cohort));
        let borrowed = below.map(|(id, &team)| (*id, unsigned(self.borrowed(team, flavour))));
        let mut all: Vec<_> = borrowed
            .filter(|&(_, amount)| amount > MilliGpu::ZERO)
            .collect();
        all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        all.into_iter()
            .map(|(id, amount)| (id.clone(), amount))
            .collect()
    }

    fn borrowed(&self, team: usize, flavour: usize) -> i64 {
        let cell = self.cell(team, flavour);
        (cell.usage - cell.nominal).max(0)
    }

    fn is_below(&self, mut node: usize, cohort: usize) -> bool {
        while let Some(parent) = self.frame.parent[node] {
            if parent == cohort {
                return true;
            }
            node = parent;
        }
        false
    }

    /// The top of the tree that a node is in.
    pub(crate) fn root(&self, mut node: usize) -> usize {
        while let Some(parent) = self.frame.parent[node] {
            node = parent;
        }
        node
    }
}

mod levels;
#[cfg(test)]
mod tests;
