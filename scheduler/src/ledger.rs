//! Who borrows from whom: a ledger of borrower x lender x flavour, part of the state.
//!
//! A team has borrowed what it is charged beyond its nominal. The ledger says whose it is, to the thousandth, and the rows
//! of a borrower always add up to what it has borrowed:
//! - **More** is spread over the lenders of its tree by what they leave unused at that moment: in proportion, largest
//!   remainder first, then by id; level by level from the root, so that no cohort lends beyond its lending limit. Where all
//!   of it is whole GPUs, whole GPUs are spread: nobody lends a third of a card to a gang.
//! - **Less** goes back in proportion to what was lent.
//! - A lender that uses more of its own, or may lend less, **moves** its part to what other lenders leave unused.
//! - What cannot move has no lender any more ([`Lender::Nobody`]): a quota was cut under running work. It is the first that
//!   finds a lender again.
//!
//! Nobody lends what it uses, nor beyond its limit. A cohort lends what is its own nominal. A cohort's lending limit is
//! looked at when a loan is made. No other scheduler keeps this; Kueue and KAI know totals alone.

use crate::{Cohort, CohortId, FlavourId, MilliGpu, State, Team, TeamId};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Whose quota it is that is lent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lender {
    /// A cohort's own nominal.
    Cohort(CohortId),
    /// A team's.
    Team(TeamId),
    /// Nobody's any more: what was borrowed, or the borrower's own nominal, was cut under running work.
    Nobody,
}

/// A part of what a team has borrowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loan {
    /// Whose it is.
    pub from: Lender,
    /// How much.
    pub gpus: MilliGpu,
}

/// The rows of one flavour: of each borrower its loans in order of lender, no empty ones.
pub type Loans = BTreeMap<TeamId, Vec<Loan>>;

/// What a lender has lent of a flavour, by borrower.
pub fn lent_by(state: &State, from: &Lender, flavour: &FlavourId) -> Vec<(TeamId, MilliGpu)> {
    let rows = state.loans.get(flavour).into_iter().flatten();
    let lent = rows.flat_map(|(to, row)| row.iter().map(move |loan| (to, loan)));
    lent.filter(|(_, loan)| loan.from == *from)
        .map(|(to, loan)| (to.clone(), loan.gpus))
        .collect()
}

/// What a team has borrowed of a flavour, by lender.
pub fn loans_to<'a>(state: &'a State, to: &TeamId, flavour: &FlavourId) -> &'a [Loan] {
    let rows = state.loans.get(flavour);
    rows.and_then(|rows| rows.get(to))
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// `amount` in parts, in proportion to the weights: largest remainder first, then in the order given. Whole GPUs where all
/// of it is. Not more than the weights add up to.
fn apportion(amount: u64, weights: &[u64]) -> Vec<u64> {
    let whole = |amount: &u64| amount.is_multiple_of(1_000);
    let unit = if whole(&amount) && weights.iter().all(whole) {
        1_000
    } else {
        1
    };
    let sum: u128 = weights
        .iter()
        .map(|&weight| u128::from(weight / unit))
        .sum();
    let amount = u128::from(amount / unit).min(sum);
    if sum == 0 {
        return vec![0; weights.len()];
    }
    let exact = |weight: u64| amount * u128::from(weight / unit);
    let mut parts: Vec<u64> = weights
        .iter()
        .map(|&weight| (exact(weight) / sum) as u64)
        .collect();
    let left = amount - parts.iter().map(|&part| u128::from(part)).sum::<u128>();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|&index| Reverse(exact(weights[index]) % sum));
    for &index in order.iter().take(left as usize) {
        parts[index] += 1;
    }
    parts.iter().map(|part| part * unit).collect()
}

/// The teams that may lend to one of them. A change of one team's charge concerns no others, and there may be thousands.
struct Tree<'a> {
    /// `None` = one team that stands alone.
    root: Option<&'a CohortId>,
    /// The root of each cohort.
    roots: BTreeMap<&'a CohortId, &'a CohortId>,
    teams: Vec<&'a Team>,
}

impl<'a> Tree<'a> {
    /// `None` for a team that is not there any more.
    fn around(state: &'a State, team: &TeamId) -> Option<Self> {
        let top = |mut cohort: &'a Cohort| {
            while let Some(above) = cohort.parent.as_ref().and_then(|id| state.cohorts.get(id)) {
                cohort = above;
            }
            &cohort.id
        };
        let roots: BTreeMap<_, _> = state
            .cohorts
            .values()
            .map(|cohort| (&cohort.id, top(cohort)))
            .collect();
        let root_of = |team: &Team| roots.get(team.cohort.as_ref()?).copied();
        let own = state.teams.get(team)?;
        let root = root_of(own);
        let teams = match root {
            None => vec![own],
            Some(_) => state
                .teams
                .values()
                .filter(|team| root_of(team) == root)
                .collect(),
        };
        Some(Self { root, roots, teams })
    }

    fn has(&self, cohort: &CohortId) -> bool {
        self.root.is_some() && self.roots.get(cohort).copied() == self.root
    }
}

/// A node of the quota tree as a lender.
struct Node {
    lender: Lender,
    parent: Option<usize>,
    /// The most that it may have lent of its own.
    most: u64,
    /// What it has lent.
    lent: u64,
    /// The most that its subtree lends beyond itself: a cohort's lending limit.
    out: Option<u64>,
}

/// All lenders of one flavour: cohorts, then teams, in order of id.
struct Forest {
    nodes: Vec<Node>,
}

impl Forest {
    /// Of the whole fleet, or of these teams with the cohorts of their tree.
    fn of(state: &State, flavour: &FlavourId, part: Option<&Tree<'_>>) -> Self {
        let within = |cohort: &&Cohort| part.is_none_or(|tree| tree.has(&cohort.id));
        let cohorts: Vec<&Cohort> = state.cohorts.values().filter(within).collect();
        let above = |id: &Option<CohortId>| {
            let id = id.as_ref()?;
            cohorts.binary_search_by(|cohort| cohort.id.cmp(id)).ok()
        };
        let inner = cohorts.iter().map(|cohort| {
            let quota = cohort.quotas.get(flavour);
            Node {
                lender: Lender::Cohort(cohort.id.clone()),
                parent: above(&cohort.parent),
                most: quota.map_or(0, |quota| quota.nominal.0),
                lent: 0,
                out: quota.and_then(|quota| quota.lending_limit.map(|limit| limit.0)),
            }
        });
        let leaf = |team: &Team| {
            let quota = team.quotas.get(flavour).copied().unwrap_or_default();
            let unused = quota.nominal.minus(state.charged(&team.id, flavour));
            let lends = quota.lending_limit.unwrap_or(unused).min(unused);
            Node {
                lender: Lender::Team(team.id.clone()),
                parent: above(&team.cohort),
                // Who stands alone lends to nobody.
                most: if team.cohort.is_some() { lends.0 } else { 0 },
                lent: 0,
                out: None,
            }
        };
        let nodes = match part {
            None => inner.chain(state.teams.values().map(leaf)).collect(),
            Some(tree) => inner.chain(tree.teams.iter().copied().map(leaf)).collect(),
        };
        Self { nodes }
    }

    fn index(&self, lender: &Lender) -> Option<usize> {
        let found = self.nodes.binary_search_by(|node| node.lender.cmp(lender));
        found.ok()
    }

    /// A node and all above it.
    fn path(&self, mut node: usize) -> Vec<usize> {
        let mut path = vec![node];
        while let Some(parent) = self.nodes[node].parent {
            path.push(parent);
            node = parent;
        }
        path
    }

    /// What each node's subtree could lend to a borrower with this path, of what `rows` leave unused.
    fn reach(&self, path: &[usize], rows: &Loans) -> Vec<u64> {
        let mut reach: Vec<u64> = self
            .nodes
            .iter()
            .map(|node| node.most.saturating_sub(node.lent))
            .collect();
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by_cached_key(|&node| Reverse(self.path(node).len()));
        for node in order {
            if let (Some(out), false) = (self.nodes[node].out, path.contains(&node)) {
                reach[node] = reach[node].min(out.saturating_sub(self.lent_beyond(node, rows)));
            }
            if let Some(parent) = self.nodes[node].parent {
                reach[parent] += reach[node];
            }
        }
        reach
    }

    /// What lenders below a node have lent beyond it.
    fn lent_beyond(&self, node: usize, rows: &Loans) -> u64 {
        let below = |lender: &Lender| {
            let index = self.index(lender);
            index.is_some_and(|index| self.path(index).contains(&node))
        };
        let beyond = rows
            .iter()
            .filter(|(to, _)| !below(&Lender::Team((*to).clone())));
        let loans = beyond.flat_map(|(_, row)| row);
        loans
            .filter(|loan| below(&loan.from))
            .map(|loan| loan.gpus.0)
            .sum()
    }

    /// Lends so much out of a node's subtree, which has it.
    fn lend(&mut self, node: usize, amount: u64, reach: &[u64], row: &mut BTreeMap<Lender, u64>) {
        let children: Vec<usize> = (0..self.nodes.len())
            .filter(|&child| self.nodes[child].parent == Some(node) && reach[child] > 0)
            .collect();
        let own = self.nodes[node].most.saturating_sub(self.nodes[node].lent);
        let mut weights = vec![own];
        weights.extend(children.iter().map(|&child| reach[child]));
        let parts = apportion(amount, &weights);
        if parts[0] > 0 {
            self.nodes[node].lent += parts[0];
            *row.entry(self.nodes[node].lender.clone()).or_default() += parts[0];
        }
        for (&child, &part) in children.iter().zip(&parts[1..]) {
            if part > 0 {
                self.lend(child, part, reach, row);
            }
        }
    }
}

fn sum(row: &[Loan]) -> u64 {
    row.iter().map(|loan| loan.gpus.0).sum()
}

/// Takes so much off a row, in proportion.
fn give_back(row: &mut Vec<Loan>, amount: u64) {
    let weights: Vec<u64> = row.iter().map(|loan| loan.gpus.0).collect();
    let parts = apportion(amount, &weights);
    for (loan, part) in row.iter_mut().zip(parts) {
        loan.gpus.0 -= part;
    }
    row.retain(|loan| loan.gpus > MilliGpu::ZERO);
}

/// Brings the rows of a flavour in line after a team's charge has changed.
pub(crate) fn settle_charge(state: &mut State, team: &TeamId, flavour: &FlavourId) {
    let (charged, nominal) = (state.charged(team, flavour), state.nominal(team, flavour));
    let row = loans_to(state, team, flavour);
    let even = sum(row) == charged.minus(nominal).0;
    let orphan = |loan: &Loan| loan.from == Lender::Nobody;
    let mut rows = state.loans.get(flavour).into_iter().flatten();
    let of_team = |loan: &Loan| matches!(&loan.from, Lender::Team(from) if from == team);
    // A team that borrows no more than before and lends nothing leaves the ledger as it is.
    if even && !rows.any(|(_, row)| row.iter().any(|loan| of_team(loan) || orphan(loan))) {
        return;
    }
    settle(state, flavour, Some(team));
}

/// Brings the rows of all flavours in line after the tree or a quota has changed.
pub(crate) fn settle_all(state: &mut State) {
    let flavours: Vec<FlavourId> = state.flavours.keys().cloned().collect();
    flavours
        .iter()
        .for_each(|flavour| settle(state, flavour, None));
}

/// Of one team's tree, or of all.
fn settle(state: &mut State, flavour: &FlavourId, around: Option<&TeamId>) {
    let mut all = state.loans.remove(flavour).unwrap_or_default();
    let tree = around.and_then(|team| Tree::around(state, team));
    let of_teams = |teams: &mut dyn Iterator<Item = &TeamId>| -> BTreeMap<TeamId, u64> {
        let over = |team: &TeamId| {
            state
                .charged(team, flavour)
                .minus(state.nominal(team, flavour))
        };
        teams
            .map(|team| (team, over(team)))
            .filter(|&(_, borrowed)| borrowed > MilliGpu::ZERO)
            .map(|(team, borrowed)| (team.clone(), borrowed.0))
            .collect()
    };
    let (borrowed, mut rows) = match &tree {
        None => (
            of_teams(&mut state.charged.keys()),
            std::mem::take(&mut all),
        ),
        Some(tree) => (
            of_teams(&mut tree.teams.iter().map(|team| &team.id)),
            tree.teams
                .iter()
                .filter_map(|team| all.remove_entry(&team.id))
                .collect(),
        ),
    };
    let mut forest = Forest::of(state, flavour, tree.as_ref());
    rows.retain(|team, _| borrowed.contains_key(team));
    for (team, row) in &mut rows {
        let over = sum(row).saturating_sub(borrowed[team]);
        give_back(row, over);
        // Who has left the tree lends in it no more; what is nobody's looks for a lender again.
        let root = forest.index(&Lender::Team(team.clone()));
        let root = root.and_then(|node| forest.path(node).pop());
        row.retain(|loan| {
            let lender = forest.index(&loan.from);
            root.is_some() && lender.and_then(|node| forest.path(node).pop()) == root
        });
    }
    call_in(&mut forest, &mut rows);
    for (team, &borrowed) in &borrowed {
        let row = rows.entry(team.clone()).or_default();
        let missing = borrowed - sum(row);
        if missing == 0 {
            continue;
        }
        let mut loans: BTreeMap<Lender, u64> =
            row.drain(..).map(|loan| (loan.from, loan.gpus.0)).collect();
        let found = forest.index(&Lender::Team(team.clone()));
        let path = found.map_or_else(Vec::new, |node| forest.path(node));
        let mut lent = 0;
        if let Some(&root) = path.last() {
            rows.insert(team.clone(), as_row(&loans));
            let reach = forest.reach(&path, &rows);
            lent = missing.min(reach[root]);
            forest.lend(root, lent, &reach, &mut loans);
        }
        if missing > lent {
            *loans.entry(Lender::Nobody).or_default() += missing - lent;
        }
        rows.insert(team.clone(), as_row(&loans));
    }
    all.append(&mut rows);
    if !all.is_empty() {
        state.loans.insert(flavour.clone(), all);
    }
}

fn as_row(loans: &BTreeMap<Lender, u64>) -> Vec<Loan> {
    let loans = loans.iter().map(|(from, &gpus)| Loan {
        from: from.clone(),
        gpus: MilliGpu(gpus),
    });
    loans.collect()
}

/// Lenders that have lent more than they may take the rest back, from their borrowers in proportion.
fn call_in(forest: &mut Forest, rows: &mut Loans) {
    for row in rows.values() {
        for loan in row {
            if let Some(node) = forest.index(&loan.from) {
                forest.nodes[node].lent += loan.gpus.0;
            }
        }
    }
    for node in &mut forest.nodes {
        let over = node.lent.saturating_sub(node.most);
        if over == 0 {
            continue;
        }
        node.lent = node.most;
        let loans = rows.values_mut().flatten();
        let mut loans: Vec<&mut Loan> = loans.filter(|loan| loan.from == node.lender).collect();
        let weights: Vec<u64> = loans.iter().map(|loan| loan.gpus.0).collect();
        for (loan, part) in loans.iter_mut().zip(apportion(over, &weights)) {
            loan.gpus.0 -= part;
        }
    }
    for row in rows.values_mut() {
        row.retain(|loan| loan.gpus > MilliGpu::ZERO);
    }
}

/// The first broken rule of the ledger, in words.
pub(crate) fn check(state: &State) -> Result<(), String> {
    for flavour in state.flavours.keys() {
        let mut lent = BTreeMap::<&Lender, MilliGpu>::new();
        for team in state.teams.keys() {
            let row = loans_to(state, team, flavour);
            let (charged, nominal) = (state.charged(team, flavour), state.nominal(team, flavour));
            if sum(row) != charged.minus(nominal).0 {
                return Err(format!(
                    "team {team} has borrowed {} of {flavour} by its charge and {row:?} by the ledger",
                    charged.minus(nominal)
                ));
            }
            for loan in row {
                *lent.entry(&loan.from).or_default() += loan.gpus;
            }
        }
        for node in Forest::of(state, flavour, None).nodes {
            let lent = lent.get(&node.lender).copied().unwrap_or_default();
            if lent.0 > node.most {
                return Err(format!(
                    "{:?} lends {lent} of {flavour} and may lend {}",
                    node.lender,
                    MilliGpu(node.most)
                ));
            }
        }
    }
    Ok(())
}
