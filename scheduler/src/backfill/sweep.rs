//! The search for a planned start: time runs forward over what ends and what is planned.

use super::{Charge, Ending, Reservation, end_of, index_of};
use crate::count::Counted;
use crate::cycle::Cycle;
use crate::place::{Least, Shape, seek};
use crate::quota::QuotaTree;
use crate::room::{Free, PodAsk, Room, Yard};
use crate::{Millis, NodeId, PodPlace};
use std::cmp::Ordering;

/// Time running forward over what ends and what is planned, until a shape has quota and room.
pub(super) struct Sweep<'c, 'a> {
    yard: &'c Yard<'a>,
    shape: &'c Shape,
    charge: Option<Charge>,
    span: Option<Millis>,
    ids: &'c [NodeId],
    reservations: &'c [Reservation<'a>],
    pub(super) at: Millis,
    pub(super) tree: QuotaTree<'a>,
    /// What is free then.
    pub(super) free: Vec<Free>,
    /// The same without what is held by planned starts that it would run into.
    pub(super) masked: Room,
    counted: Counted,
    least: Least,
    /// Units that fit.
    units: u64,
    /// Nodes that have changed since they were last counted.
    dirty: Vec<u32>,
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
        let (backfill, room) = (&cycle.backfill, &cycle.room);
        let least = shape.least(yard.levels());
        let end = end_of(cycle.now, span);
        let masked = backfill.masked(room, backfill.reservations.len(), end);
        let counted = Counted::of(&masked, yard, &shape.ask);
        let units = counted.pods[least.level]
            .iter()
            .map(|&pods| least.units_in(pods))
            .sum();
        Self {
            yard,
            shape,
            charge,
            span,
            ids: &backfill.ids,
            reservations: &backfill.reservations,
            at: cycle.now,
            tree: cycle.tree.clone(),
            free: room.free.clone(),
            masked,
            counted,
            least,
            units,
            dirty: Vec::new(),
        }
    }

    /// Stops at the first moment at which all is there, with the nodes.
    pub(super) fn run(&mut self, endings: &[Ending]) -> Option<Vec<(usize, u32)>> {
        let mut marks = Vec::new();
        for (index, reservation) in self.reservations.iter().enumerate() {
            marks.push((reservation.at, Mark::Start, index));
            marks.push((reservation.end, Mark::End, index));
            if let Some(span) = self.span {
                marks.push((
                    Millis(reservation.at.0.saturating_sub(span.0)) + Millis(1),
                    Mark::Near,
                    index,
                ));
            }
        }
        marks.retain(|&(at, _, _)| at > self.at);
        marks.sort_unstable();
        let (mut ended, mut passed) = (0, 0);
        loop {
            self.look_again();
            if self.fits() {
                return seek(self.yard, &self.counted, self.shape).ok();
            }
            let next_end = endings.get(ended).map(|ending| ending.at);
            let next_mark = marks.get(passed).map(|&(at, _, _)| at);
            self.at = match (next_end, next_mark) {
                (Some(a), Some(b)) => a.min(b),
                (a, b) => a.or(b)?,
            };
            while let Some(ending) = endings.get(ended).filter(|ending| ending.at <= self.at) {
                self.shift(
                    ending.charge,
                    &ending.ask,
                    &ending.placement.pods,
                    Ordering::Greater,
                );
                ended += 1;
            }
            while let Some(&(_, mark, index)) =
                marks.get(passed).filter(|&&(at, _, _)| at <= self.at)
            {
                let Reservation {
                    charge,
                    ask,
                    placement,
                    nodes,
                    ..
                } = &self.reservations[index];
                match mark {
                    Mark::End => self.shift(*charge, ask, &placement.pods, Ordering::Greater),
                    Mark::Start => self.shift(*charge, ask, &placement.pods, Ordering::Less),
                    Mark::Near => {}
                }
                self.dirty.extend(nodes.iter().map(|&(node, _)| node));
                passed += 1;
            }
        }
    }

    fn fits(&self) -> bool {
        if self.units < self.least.units {
            return false;
        }
        let Some(Charge {
            team,
            flavour,
            gpus,
        }) = self.charge
        else {
            return true;
        };
        let near = self
            .reservations
            .iter()
            .filter(|reservation| self.is_near(reservation));
        let mut trees = near.map(|reservation| &reservation.tree);
        gpus <= self.tree.available(team, flavour)
            && trees.all(|tree| gpus <= tree.available(team, flavour))
    }

    /// True when a start now would run into a planned one.
    fn is_near(&self, reservation: &Reservation) -> bool {
        self.at < reservation.at && reservation.at < end_of(self.at, self.span)
    }

    /// A gang gives back what it has (`Greater`: there is more), or takes it.
    fn shift(&mut self, charge: Option<Charge>, ask: &PodAsk, pods: &[PodPlace], more: Ordering) {
        if let Some(Charge {
            team,
            flavour,
            gpus,
        }) = charge
        {
            match more {
                Ordering::Greater => self.tree.give_back(team, flavour, gpus),
                Ordering::Less | Ordering::Equal => self.tree.charge(team, flavour, gpus),
            }
        }
        for (index, &pod) in pods.iter().enumerate() {
            let Some(node) = index_of(self.ids, pod.node) else {
                continue;
            };
            match more {
                Ordering::Greater => self.free[node as usize].give_back(pod, ask),
                Ordering::Less | Ordering::Equal => self.free[node as usize].take_place(pod, ask),
            }
            // Pods of a gang lie node by node: the last one on a node says it all.
            if pods.get(index + 1).map(|next| next.node) != Some(pod.node) {
                self.dirty.push(node);
            }
        }
    }

    /// Counts again what has changed.
    fn look_again(&mut self) {
        let mut dirty = std::mem::take(&mut self.dirty);
        dirty.sort_unstable();
        dirty.dedup();
        for &node in &dirty {
            let near = self
                .reservations
                .iter()
                .filter(|reservation| self.is_near(reservation));
            let held = near.filter_map(|reservation| reservation.free(node));
            let free = held.fold(self.free[node as usize], |free, held| free.least(held));
            self.masked.free[node as usize] = free;
        }
        let (yard, ask) = (self.yard, &self.shape.ask);
        if dirty.len() > yard.nodes.len() / 4 {
            self.counted = Counted::of(&self.masked, yard, ask);
            let pods = &self.counted.pods[self.least.level];
            self.units = pods.iter().map(|&pods| self.least.units_in(pods)).sum();
        } else {
            for &node in &dirty {
                if let Some(place) = yard.place(node) {
                    self.recount(node, place);
                }
            }
        }
        dirty.clear();
        self.dirty = dirty;
    }

    /// Counts a node again, and the units of its domain.
    fn recount(&mut self, node: u32, place: usize) {
        let mut domain = place;
        for level in (self.least.level..self.yard.levels()).rev() {
            domain = self.yard.parent(level + 1, domain).unwrap_or_default();
        }
        let units = |counted: &Counted| self.least.units_in(counted.pods[self.least.level][domain]);
        let before = units(&self.counted);
        let free = self.masked.free[node as usize];
        self.counted
            .recount(&free, self.yard, place, &self.shape.ask);
        self.units = self.units - before + units(&self.counted);
    }
}
