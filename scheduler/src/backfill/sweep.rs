//! The search for a planned start: time runs forward over what ends and what is planned.

use super::{Charge, Ending, NEVER, Reservation, end_of, index_of};
use crate::count::Counted;
use crate::cycle::Cycle;
use crate::place::{Least, Shape, seek};
use crate::quota::QuotaTree;
use crate::room::{Free, PodAsk, Room, Yard};
use crate::{Millis, PodPlace};

/// Time running forward over what ends and what is planned, until a shape has quota and room.
///
/// Room is not looked at before there is quota: most wait for that alone.
pub(super) struct Sweep<'c, 'a> {
    cycle: &'c Cycle<'a>,
    yard: &'c Yard<'a>,
    shape: &'c Shape,
    charge: Option<Charge>,
    span: Option<Millis>,
    pub(super) at: Millis,
    pub(super) tree: QuotaTree<'a>,
    /// What has come and gone since room was last looked at, in order.
    passed: Vec<Passed<'c>>,
    least: Least,
    seen: Option<Seen>,
}

/// Room at a moment.
pub(super) struct Seen {
    /// What is free then.
    pub(super) free: Vec<Free>,
    /// The same without what is held by planned starts that it would run into.
    pub(super) masked: Room,
    counted: Counted,
    /// Units that fit.
    units: u64,
}

/// A gang that gives back what it has, or takes it.
struct Passed<'c> {
    ask: &'c PodAsk,
    pods: &'c [PodPlace],
    turn: Turn,
}

/// What a gang does when its moment comes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Ends,
    Starts,
    /// Nothing yet, but from here on it is in the way.
    Near,
}

/// What a planned start means to another that is being planned.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    /// It ends.
    End,
    /// It starts.
    Start,
    /// From here on it would be run into.
    Near,
}

impl<'c, 'a> Sweep<'c, 'a> {
    pub(super) fn of(
        cycle: &'c Cycle<'a>,
        yard: &'c Yard<'a>,
        shape: &'c Shape,
        charge: Option<Charge>,
        span: Option<Millis>,
    ) -> Self {
        Self {
            cycle,
            yard,
            shape,
            charge,
            span,
            at: cycle.now,
            tree: cycle.tree.clone(),
            passed: Vec::new(),
            least: shape.least(yard.levels()),
            seen: None,
        }
    }

    fn reservations(&self) -> &'c [Reservation<'a>] {
        &self.cycle.backfill.reservations
    }

    /// Stops at the first moment at which all is there, with the nodes and what is free then.
    pub(super) fn run(&mut self, endings: &'c [Ending]) -> Option<(Vec<(usize, u32)>, Seen)> {
        let marks = self.marks();
        let (mut ended, mut passed) = (0, 0);
        loop {
            if self.has_quota()
                && let Some(found) = self.look()
            {
                return Some((found, self.seen.take()?));
            }
            let next_end = endings.get(ended).map(|ending| ending.at);
            let next_mark = marks.get(passed).map(|&(at, _, _)| at);
            self.at = match (next_end, next_mark) {
                (Some(a), Some(b)) => a.min(b),
                (a, b) => a.or(b)?,
            };
            while let Some(ending) = endings.get(ended).filter(|ending| ending.at <= self.at) {
                let pods = &ending.placement.pods;
                self.pass(ending.charge, &ending.ask, pods, Turn::Ends);
                ended += 1;
            }
            while let Some(&(_, mark, index)) =
                marks.get(passed).filter(|&&(at, _, _)| at <= self.at)
            {
                let reservation = &self.reservations()[index];
                let pods = &reservation.placement.pods;
                let turn = match mark {
                    Mark::End => Turn::Ends,
                    Mark::Start => Turn::Starts,
                    Mark::Near => Turn::Near,
                };
                self.pass(reservation.charge, &reservation.ask, pods, turn);
                passed += 1;
            }
        }
    }

    /// Moments at which a planned start matters, in order.
    fn marks(&self) -> Vec<(Millis, Mark, usize)> {
        let mut marks = Vec::new();
        for (index, reservation) in self.reservations().iter().enumerate() {
            marks.push((reservation.at, Mark::Start, index));
            marks.push((reservation.end, Mark::End, index));
            if let Some(span) = self.span {
                let near = Millis(reservation.at.0.saturating_sub(span.0)) + Millis(1);
                marks.push((near, Mark::Near, index));
            }
        }
        // What waits for the end of a planned start that never ends has none itself.
        marks.retain(|&(at, _, _)| at > self.at && at < NEVER);
        marks.sort_unstable();
        marks
    }

    /// Planned starts that a start now would run into.
    fn near(&self) -> impl Iterator<Item = &'c Reservation<'a>> + use<'c, 'a> {
        let (at, end) = (self.at, end_of(self.at, self.span));
        self.reservations()
            .iter()
            .filter(move |reservation| at < reservation.at && reservation.at < end)
    }

    fn has_quota(&self) -> bool {
        let Some(Charge {
            team,
            flavour,
            gpus,
        }) = self.charge
        else {
            return true;
        };
        let mut trees = self.near().map(|reservation| &reservation.tree);
        gpus <= self.tree.available(team, flavour)
            && trees.all(|tree| gpus <= tree.available(team, flavour))
    }

    /// A gang's moment has come: its quota now, its room when that is next looked at.
    fn pass(&mut self, charge: Option<Charge>, ask: &'c PodAsk, pods: &'c [PodPlace], turn: Turn) {
        if let Some(Charge {
            team,
            flavour,
            gpus,
        }) = charge
        {
            match turn {
                Turn::Ends => self.tree.give_back(team, flavour, gpus),
                Turn::Starts => self.tree.charge(team, flavour, gpus),
                Turn::Near => {}
            }
        }
        self.passed.push(Passed { ask, pods, turn });
    }

    /// Where the shape has room now.
    fn look(&mut self) -> Option<Vec<(usize, u32)>> {
        let passed = std::mem::take(&mut self.passed);
        let seen = match self.seen.take() {
            Some(seen) => self.see_again(seen, &passed),
            None => self.see(&passed),
        };
        let enough = seen.units >= self.least.units;
        let found = enough.then(|| seek(self.yard, &seen.counted, self.shape));
        self.seen = Some(seen);
        found?.ok()
    }

    /// Room as it is now, of the whole yard.
    fn see(&self, passed: &[Passed]) -> Seen {
        let mut free = self.cycle.room.free.clone();
        self.each_node(passed, &mut free, |_| {});
        let mut masked = Room {
            free: free.clone(),
            taken: Vec::new(),
            ids: Vec::new(),
        };
        for reservation in self.near() {
            for (node, left) in &reservation.nodes {
                let free = &mut masked.free[*node as usize];
                *free = free.least(left);
            }
        }
        self.count(free, masked)
    }

    fn count(&self, free: Vec<Free>, masked: Room) -> Seen {
        let counted = Counted::of(&masked, self.yard, &self.shape.ask);
        let pods = counted.pods[self.least.level].iter();
        Seen {
            units: pods.map(|&pods| self.least.units_in(pods)).sum(),
            free,
            masked,
            counted,
        }
    }

    /// The same, where only what has passed was changed.
    fn see_again(&self, mut seen: Seen, passed: &[Passed]) -> Seen {
        let mut dirty = Vec::new();
        self.each_node(passed, &mut seen.free, |node| dirty.push(node));
        dirty.sort_unstable();
        dirty.dedup();
        for &node in &dirty {
            let held = self.near().filter_map(|reservation| reservation.free(node));
            let free = held.fold(seen.free[node as usize], |free, held| free.least(held));
            seen.masked.free[node as usize] = free;
        }
        if dirty.len() > self.yard.nodes.len() / 4 {
            return self.count(seen.free, seen.masked);
        }
        for &node in &dirty {
            if let Some(place) = self.yard.place(node) {
                self.recount(&mut seen, node, place);
            }
        }
        seen
    }

    /// Does what has passed to nodes of the yard; each of them is told.
    fn each_node(&self, passed: &[Passed], free: &mut [Free], mut tell: impl FnMut(u32)) {
        for Passed { ask, pods, turn } in passed {
            for (index, &pod) in pods.iter().enumerate() {
                let node = index_of(&self.cycle.backfill.ids, pod.node);
                let Some(node) = node.filter(|&node| self.yard.place(node).is_some()) else {
                    continue;
                };
                match turn {
                    Turn::Ends => free[node as usize].give_back(pod, ask),
                    Turn::Starts => free[node as usize].take_place(pod, ask),
                    Turn::Near => {}
                }
                // Pods of a gang lie node by node: the last one on a node says it all.
                if pods.get(index + 1).map(|next| next.node) != Some(pod.node) {
                    tell(node);
                }
            }
        }
    }

    /// Counts a node again, and the units of its domain.
    fn recount(&self, seen: &mut Seen, node: u32, place: usize) {
        let mut domain = place;
        for level in (self.least.level..self.yard.levels()).rev() {
            domain = self.yard.parent(level + 1, domain).unwrap_or_default();
        }
        let units = |counted: &Counted| self.least.units_in(counted.pods[self.least.level][domain]);
        let before = units(&seen.counted);
        let free = seen.masked.free[node as usize];
        seen.counted
            .recount(&free, self.yard, place, &self.shape.ask);
        seen.units = seen.units - before + units(&seen.counted);
    }
}
