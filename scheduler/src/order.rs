//! Who is looked at next: one head of every team, and among the heads a tournament over the tree of cohorts.
//!
//! A team's own queue is in order of priority, first submit time, id; its head stands for it. (Kueue: one head of each
//! ClusterQueue.) At every cohort, from the leaves up, the best of its members' heads is found by
//!
//! 1. held room of a claim: such a job does not wait in this order at all, its room is its own,
//! 2. lower **borrowing height**: 0 = inside the team's nominal, 1 = inside its cohort's, and so on. Before that, of two
//!    that stay inside levels one of which lies in the other, the one inside the **inner level**: teams may stand at
//!    different depths, so that both have one height, and yet the inner one has a right to what the outer one would
//!    borrow, and would claim it back in the next cycle,
//! 3. lower **share**, of the two members of that cohort through which the heads come: so two heads of one cohort are
//!    compared by their teams, two heads of different cohorts by these; then lower decayed past use (or this one first,
//!    by policy [`UseOrder`]),
//! 4. higher priority,
//! 5. earlier first submit time, kept across requeues,
//! 6. lower id.
//!
//! **Share** of a member `n` of cohort `c` (Kueue's dominant resource share, KEP-1714): the largest over flavours of
//! `max(0, usage(n) + what reaches n of the head's own need - subtree(n)) / lendable in c / weight(n)`, where what can be
//! lent in `c` is `subtree(c)`. Compared as fractions by cross-multiplication in 128 bits; whoever borrows with weight 0
//! comes last. A job that has waited over `reserve_after` is compared without its own need: by what its team holds, not by
//! how much it asks at once. Else a big gang that must borrow would stand behind every small one, for ever.
//!
//! **Past use** of a member is the largest over flavours of its teams' decayed use / lendable in `c` / weight.
//!
//! Take the best, charge it if it starts, choose again. Between two choices only the keys of the charged tree's heads
//! change; a team's next head costs the logarithm of the members of each cohort above it. Jobs of one class ask for the
//! same, so their keys are found once for each charge of their tree.

use crate::cycle::Cycle;
use crate::line::Candidate;
use crate::past_use::decayed_use;
use crate::policy::UseOrder;
use crate::quota::QuotaTree;
use crate::{JobId, Millis, Priority, State};
use std::cmp::{Ordering, Reverse};
use std::rc::Rc;

/// A fraction: what is above one's own, of what can be lent, by weight. The first two are below 10^16, quotas being at
/// most 10^12 thousandths each, and a weight at most 10^6: a product of all three is far below 2^127.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    above: u128,
    lendable: u128,
    weight: u128,
}

impl Share {
    pub(crate) fn new(above: u128, lendable: u128, weight: u128) -> Self {
        Self {
            above,
            lendable,
            weight,
        }
    }

    /// Smaller first; nothing above one's own is the smallest, whatever the weight; no weight is the largest.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        let parts = |share: &Self| share.lendable * share.weight;
        match (self.above, other.above) {
            (0, 0) => return Ordering::Equal,
            (0, _) => return Ordering::Less,
            (_, 0) => return Ordering::Greater,
            _ => {}
        }
        match (parts(self), parts(other)) {
            (0, 0) => Ordering::Equal,
            (0, _) => Ordering::Greater,
            (_, 0) => Ordering::Less,
            (mine, its) => (self.above * its).cmp(&(other.above * mine)),
        }
    }

    pub(crate) fn max(self, other: Self) -> Self {
        if self.compare(&other) == Ordering::Less {
            other
        } else {
            self
        }
    }
}

/// What a class of jobs is compared by: all jobs of a class ask for the same.
#[derive(Default)]
struct Keys {
    /// Charges of its tree that they are of.
    version: Option<u32>,
    height: u32,
    /// From the team up to its root: the share of each node on the way among its siblings.
    shares: Vec<Share>,
}

/// A team's head.
#[derive(Clone, Copy)]
struct Head {
    /// Index among the cycle's jobs.
    job: usize,
    /// Index of its keys.
    keys: usize,
    rest: (Reverse<Priority>, Millis, JobId),
}

/// Jobs of one team in its own order, from the last to the first: the head is popped off the end.
#[derive(Default)]
struct Queue {
    left: Vec<usize>,
    head: Option<Head>,
}

/// Winners of one cohort's members, pair by pair: slot 1 is the winner of all, slot `s` of `2s` and `2s + 1`.
#[derive(Default)]
struct Bracket {
    members: Vec<usize>,
    /// The team whose head has won so far; the second half stands for the members themselves.
    slots: Vec<Option<usize>>,
}

impl Bracket {
    fn of(members: Vec<usize>) -> Self {
        let slots = vec![None; 2 * members.len().next_power_of_two()];
        Self { members, slots }
    }
}

/// The order of one pass over the waiting jobs.
pub(crate) struct Order {
    queues: Vec<Queue>,
    /// Of each class, counting its need and not.
    keys: Vec<Keys>,
    /// Of each tree, at its root: charges so far.
    versions: Vec<u32>,
    /// The root of each node.
    roots: Vec<usize>,
    /// One for each cohort; the last one for the roots.
    brackets: Vec<Bracket>,
    /// Where each node stands among its siblings: bracket, and place in it.
    seats: Vec<(usize, usize)>,
    /// How far below its root each node is.
    depths: Vec<usize>,
    /// Past use of each node among its siblings; the same throughout the cycle.
    past: Rc<[Share]>,
    use_order: UseOrder,
    reserve_after: Millis,
    /// Jobs of no team, which never start: they come last.
    strays: Vec<usize>,
}

impl Order {
    /// Of all jobs, given in order of priority, submit time and id, with the class of each.
    pub(crate) fn of(
        cycle: &Cycle,
        past: &Rc<[Share]>,
        jobs: &[Candidate],
        classes: &[usize],
        left: &[usize],
    ) -> Self {
        let tree = &cycle.tree;
        let cohorts = tree.cohorts();
        let mut members = vec![Vec::new(); cohorts + 1];
        let mut seats = Vec::with_capacity(tree.nodes());
        for node in 0..tree.nodes() {
            let bracket = tree.parent(node).unwrap_or(cohorts);
            seats.push((bracket, members[bracket].len()));
            members[bracket].push(node);
        }
        let mut order = Self {
            queues: std::iter::repeat_with(Queue::default)
                .take(tree.nodes())
                .collect(),
            brackets: members.into_iter().map(Bracket::of).collect(),
            keys: std::iter::repeat_with(Keys::default)
                .take(2 * cycle.classes.len())
                .collect(),
            versions: vec![0; tree.nodes()],
            roots: (0..tree.nodes()).map(|node| tree.root(node)).collect(),
            seats,
            depths: (0..tree.nodes()).map(|node| tree.depth(node)).collect(),
            past: Rc::clone(past),
            use_order: cycle.state.policy.use_order,
            reserve_after: cycle.state.policy.reserve_after,
            strays: Vec::new(),
        };
        for &job in left.iter().rev() {
            match cycle.classes[classes[job]].team {
                Some(team) => order.queues[team].left.push(job),
                None => order.strays.push(job),
            }
        }
        for team in cohorts..tree.nodes() {
            order.advance(cycle, jobs, classes, team);
        }
        order
    }

    /// Takes the best head out of the order; its team's next job stands for the team from now on.
    pub(crate) fn next(
        &mut self,
        cycle: &Cycle,
        jobs: &[Candidate],
        classes: &[usize],
    ) -> Option<usize> {
        let all = self.brackets.last()?;
        let Some(team) = all.slots[1] else {
            return self.strays.pop();
        };
        let job = self.queues[team].head.as_ref()?.job;
        self.advance(cycle, jobs, classes, team);
        Some(job)
    }

    /// The keys after a team was charged: those of its tree.
    pub(crate) fn charged(
        &mut self,
        cycle: &Cycle,
        jobs: &[Candidate],
        classes: &[usize],
        team: usize,
    ) {
        let root = self.roots[team];
        self.versions[root] += 1;
        for other in cycle.tree.cohorts()..cycle.tree.nodes() {
            let head = self.queues[other].head;
            if let Some(head) = head.filter(|_| self.roots[other] == root) {
                self.seat(cycle, jobs, classes, other, head.job);
                self.replay(other);
            }
        }
    }

    /// Puts the team's next job at its head.
    fn advance(&mut self, cycle: &Cycle, jobs: &[Candidate], classes: &[usize], team: usize) {
        match self.queues[team].left.pop() {
            Some(job) => self.seat(cycle, jobs, classes, team, job),
            None => self.queues[team].head = None,
        }
        self.replay(team);
    }

    /// Finds the keys of a team's head.
    fn seat(
        &mut self,
        cycle: &Cycle,
        jobs: &[Candidate],
        classes: &[usize],
        team: usize,
        job: usize,
    ) {
        let (candidate, class) = (&jobs[job], classes[job]);
        let waited = cycle.now.since(candidate.submitted) >= self.reserve_after;
        let index = 2 * class + usize::from(waited);
        let version = Some(self.versions[self.roots[team]]);
        let keys = &mut self.keys[index];
        if keys.version != version {
            let (offer, height) = cycle.lowest_offer(class);
            (keys.version, keys.height) = (version, height);
            let need = offer.filter(|_| !waited);
            cycle.tree.shares(team, need, &mut keys.shares);
        }
        self.queues[team].head = Some(Head {
            job,
            keys: index,
            rest: candidate.turn(),
        });
    }

    /// Plays the matches again that a node's head has a part in.
    fn replay(&mut self, team: usize) {
        let mut node = team;
        let mut winner = self.queues[team].head.is_some().then_some(team);
        loop {
            let (bracket, place) = self.seats[node];
            let half = self.brackets[bracket].slots.len() / 2;
            let mut slot = half + place;
            self.brackets[bracket].slots[slot] = winner;
            while slot > 1 {
                slot /= 2;
                let slots = &self.brackets[bracket].slots;
                let better = match (slots[2 * slot], slots[2 * slot + 1]) {
                    (Some(a), Some(b)) => Some(self.better(bracket, a, b)),
                    (a, b) => a.or(b),
                };
                self.brackets[bracket].slots[slot] = better;
            }
            winner = self.brackets[bracket].slots[1];
            if bracket + 1 == self.brackets.len() {
                return;
            }
            node = bracket;
        }
    }

    /// Whose head goes first at a cohort, of two teams below different members of it.
    fn better(&self, bracket: usize, a: usize, b: usize) -> usize {
        let (Some(one), Some(other)) = (&self.queues[a].head, &self.queues[b].head) else {
            return a;
        };
        // The members of this cohort that the two come through are at this depth.
        let depth = if bracket + 1 == self.brackets.len() {
            0
        } else {
            self.depths[bracket] + 1
        };
        let (mine, its) = (&self.keys[one.keys], &self.keys[other.keys]);
        let share = |team: usize, keys: &Keys| keys.shares[self.depths[team] - depth];
        let by_share = || share(a, mine).compare(&share(b, its));
        let by_use = || {
            let past = |team: usize| &self.past[self.member(bracket, team)];
            past(a).compare(past(b))
        };
        let fair = || match self.use_order {
            UseOrder::BreaksTies => by_share().then_with(by_use),
            UseOrder::Leads => by_use().then_with(by_share),
        };
        let reach = |team: usize, keys: &Keys| self.reach(depth, team, keys);
        let order = (reach(a, mine).cmp(&reach(b, its)))
            .then_with(fair)
            .then_with(|| one.rest.cmp(&other.rest));
        if order == Ordering::Greater { b } else { a }
    }

    /// How far a head reaches, at a cohort whose members are at a depth: levels beyond its own member, and its height.
    ///
    /// Heads of two members that stay inside their own members take nothing from each other. Beyond these their levels lie
    /// one in the other: the cohort itself, or one above it.
    fn reach(&self, depth: usize, team: usize, keys: &Keys) -> (usize, u32) {
        let level = self.depths[team].saturating_sub(keys.height as usize);
        (depth.saturating_sub(level), keys.height)
    }

    /// The member of a cohort that a team is below of, or is.
    fn member(&self, bracket: usize, team: usize) -> usize {
        let mut node = team;
        while self.seats[node].0 != bracket {
            node = self.seats[node].0;
        }
        self.brackets[bracket].members[self.seats[node].1]
    }
}

/// Decayed use of every node of the tree among its siblings.
pub(crate) fn past_use(state: &State, tree: &QuotaTree, now: Millis) -> Rc<[Share]> {
    let flavours = state.flavours.len();
    let mut used = vec![0_u128; tree.nodes() * flavours];
    for (team, of_team) in &state.past_use {
        let Some(node) = tree.team(team) else {
            continue;
        };
        for flavour in of_team.keys() {
            let Some(index) = tree.flavour(flavour) else {
                continue;
            };
            // In seconds of a thousandth: exact enough, and far from overflow when multiplied across.
            let of_flavour = decayed_use(state, team, flavour, now) / 1_000;
            let mut above = Some(node);
            while let Some(node) = above {
                used[node * flavours + index] += of_flavour;
                above = tree.parent(node);
            }
        }
    }
    let share = |node: usize| {
        let shares = (0..flavours).map(|flavour| {
            let lendable = tree.lendable_around(node, flavour);
            Share::new(used[node * flavours + flavour], lendable, tree.weight(node))
        });
        shares.fold(Share::default(), Share::max)
    };
    (0..tree.nodes()).map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_compared_as_fractions_and_no_weight_comes_last() {
        let share = Share::new;
        let orders = [
            (share(0, 0, 0), share(0, 8, 1), Ordering::Equal),
            (share(0, 0, 0), share(1, 8, 1), Ordering::Less),
            (share(1, 3, 1), share(2, 6, 1), Ordering::Equal),
            (share(1, 8, 1), share(3, 8, 4), Ordering::Greater),
            (share(1, 8, 0), share(7, 8, 1), Ordering::Greater),
            (share(1, 8, 0), share(7, 8, 0), Ordering::Equal),
            (
                share(1_000_000_000_000_000, 1, 1_000),
                share(1, 1_000_000_000_000_000, 1_000_000),
                Ordering::Greater,
            ),
        ];
        for (a, b, order) in orders {
            assert_eq!(a.compare(&b), order, "{a:?} and {b:?}");
            assert_eq!(b.compare(&a), order.reverse());
        }
    }
}
