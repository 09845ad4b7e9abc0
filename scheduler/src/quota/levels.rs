//! Levels of the tree: inside which one a request lies, who borrows from it, and whose share is larger.

use super::{QuotaTree, signed, unsigned};
use crate::{MilliGpu, Stage, State};
use std::cmp::Ordering;

/// What a node has borrowed in its cohort, by its weight: `borrowed / (lendable x weight)`, the largest over all flavours.
#[derive(Clone, Copy, Debug)]
struct Share {
    borrowed: u128,
    /// Lendable x weight; 0 = without any, so the largest share of all as soon as something is borrowed.
    by: u128,
}

impl Share {
    const NONE: Self = Self { borrowed: 0, by: 1 };

    fn compare(&self, other: &Self) -> Ordering {
        match (self.is_endless(), other.is_endless()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => {
                (self.borrowed * other.by.max(1)).cmp(&(other.borrowed * self.by.max(1)))
            }
        }
    }
    fn is_endless(&self) -> bool {
        self.by == 0 && self.borrowed > 0
    }
}

impl QuotaTree<'_> {
    /// The lowest level that so many GPUs more stay inside of without its borrowing: its height above the team, and its
    /// index. (Kueue: FindHeightOfLowestSubtreeThatFits.)
    pub(crate) fn level_inside(
        &self,
        team: usize,
        flavour: usize,
        gpus: MilliGpu,
    ) -> Option<(u32, usize)> {
        let (mut node, mut need, mut height) = (team, signed(gpus), 0);
        loop {
            let cell = self.cell(node, flavour);
            if cell.usage + need <= cell.subtree {
                return Some((height, node));
            }
            need -= cell.local();
            node = self.frame.parent[node]?;
            height += 1;
        }
    }

    /// True when a node is the level, or below it.
    pub(crate) fn is_in(&self, node: usize, level: usize) -> bool {
        node == level || self.is_below(node, level)
    }

    /// True when a team uses what is the level's: it stands outside, and it and all above it, up to where the two meet, use
    /// more than is theirs.
    pub(crate) fn borrows_from(&self, team: usize, level: usize, flavour: usize) -> bool {
        if self.is_in(team, level) {
            return false;
        }
        let mut node = team;
        while !self.is_in(level, node) {
            let cell = self.cell(node, flavour);
            if cell.usage <= cell.subtree {
                return false;
            }
            match self.frame.parent[node] {
                Some(parent) => node = parent,
                None => return false,
            }
        }
        true
    }

    /// Compares the shares of two teams where they meet in the tree; `None` if they do not.
    pub(crate) fn compare_shares(&self, a: usize, b: usize) -> Option<Ordering> {
        let (mut below_a, mut below_b) = (a, b);
        while !self.is_below(b, self.frame.parent[below_a]?) {
            below_a = self.frame.parent[below_a]?;
        }
        let meet = self.frame.parent[below_a]?;
        while self.frame.parent[below_b]? != meet {
            below_b = self.frame.parent[below_b]?;
        }
        Some(
            self.share(below_a, meet)
                .compare(&self.share(below_b, meet)),
        )
    }

    fn share(&self, node: usize, cohort: usize) -> Share {
        let of = |flavour: usize| {
            let (cell, above) = (self.cell(node, flavour), self.cell(cohort, flavour));
            let borrowed = (cell.usage - cell.subtree).max(0).unsigned_abs();
            Share {
                borrowed: borrowed.into(),
                by: u128::from(above.subtree.max(0).unsigned_abs())
                    * u128::from(self.frame.weights[node]),
            }
        };
        let all = (0..self.frame.flavours.len()).map(of);
        all.fold(Share::NONE, |most, share| match share.compare(&most) {
            Ordering::Greater => share,
            Ordering::Less | Ordering::Equal => most,
        })
    }

    /// What claims have decided counts from then on, though their claimants have not started.
    pub(crate) fn charge_claims(&mut self, state: &State) {
        for claim in state
            .claims
            .values()
            .filter(|claim| claim.stage == Stage::Made)
        {
            let job = state.jobs.get(&claim.claimant);
            let flavour = claim.placement.flavour.as_ref();
            let flavour = flavour.and_then(|flavour| self.flavour(flavour));
            if let (Some(job), Some(team), Some(flavour)) = (job, self.team(&claim.team), flavour) {
                self.charge(team, flavour, job.spec.least_gpus());
            }
        }
    }

    /// What is left of a team's own.
    pub(crate) fn own_left(&self, team: usize, flavour: usize) -> MilliGpu {
        let cell = self.cell(team, flavour);
        unsigned(cell.nominal - cell.usage)
    }

    /// What a team owns.
    pub(crate) fn nominal(&self, team: usize, flavour: usize) -> MilliGpu {
        unsigned(self.cell(team, flavour).nominal)
    }
}
