//! Reservations and backfill: planned starts for those that wait, and who may pass them.
//!
//! The first jobs in order that cannot start (how many is the policy `reservations`), and as many again of those that have
//! waited over `reserve_after`, oldest first, get a **planned start**: the earliest moment at which quota and room of their
//! shape are there, if everything runs to its time limit. (Slurm's backfill, `bf_max_job_test`; EASY backfill has one.)
//! It **holds** that quota and these cards from then on. A job behind it may start if it keeps off what is held, or ends
//! before: then no planned start becomes later than it would be without it, since each still has its cards and its quota
//! at its time. Room and quota only shrink within a pass and holds only grow, so what was refused once stays refused.
//!
//! # What ends when
//! A running gang ends when its time is up; one that is being stopped, at once; one that keeps its nodes until others are
//! found for those that it lost, as if it started now; one that has no limit, never. Of the never-ending, the
//! ones admitted first are taken to end first, after all that have a limit: such a planned start has no known time, yet it
//! gathers nodes instead of losing each to the next small job. A job admitted later is later in that order, too; so a
//! planned start without a time never moves back either.
//!
//! A planned start that has no known time for want of **quota** holds quota only: to keep nodes free for a team that may
//! not use them would help nobody.
//!
//! # Bound
//! A gang that is among the first in order starts as soon as what runs now has reached its limits: nothing behind it can
//! make it later, however many small jobs come in.

mod sweep;

use crate::count::Counted;
use crate::cycle::Cycle;
use crate::place::{seek, within};
use crate::quota::QuotaTree;
use crate::room::{Free, PodAsk, Room, Yard};
use crate::{Job, JobId, MilliGpu, Millis, NodeId, Phase, Placement, PodPlace, Stage, State};
use std::collections::BTreeMap;
use std::sync::Arc;
use sweep::Sweep;

/// Moments from here on stand for "not known": the order in which the never-ending are taken to end.
const UNKNOWN: Millis = Millis(1 << 62);

/// The end of what would start now without a limit: after all others.
const NEVER: Millis = Millis(u64::MAX);

/// A moment as it is told: `None` when it is not known.
pub(crate) fn known(at: Millis) -> Option<Millis> {
    (at < UNKNOWN).then_some(at)
}

/// The end of what starts then and runs for so long.
fn end_of(start: Millis, span: Option<Millis>) -> Millis {
    span.map_or(NEVER, |span| Millis(start.0.saturating_add(span.0.max(1))))
}

/// What a job is charged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Charge {
    /// Its team's index in the quota tree.
    pub team: usize,
    /// The flavour's index.
    pub flavour: usize,
    /// What it asks.
    pub gpus: MilliGpu,
}

/// Where a gang was laid: places of its yard with their pods, and each pod's cards.
pub(crate) type Taken = (Vec<(usize, u32)>, Vec<PodPlace>);

/// A gang that has nodes now, and when it is taken to give them back.
struct Ending {
    at: Millis,
    charge: Option<Charge>,
    ask: PodAsk,
    placement: Arc<Placement>,
}

/// A planned start, and what it leaves of quota and nodes at its time.
pub(crate) struct Reservation<'a> {
    pub job: JobId,
    /// Its place in the order.
    pub rank: usize,
    pub at: Millis,
    end: Millis,
    charge: Option<Charge>,
    ask: PodAsk,
    pub placement: Arc<Placement>,
    /// The tree then, with it in place.
    tree: QuotaTree<'a>,
    /// What is free of its nodes then, with it in place; in order of node.
    nodes: Vec<(u32, Free)>,
}

impl Reservation<'_> {
    fn free(&self, node: u32) -> Option<&Free> {
        let found = self.nodes.binary_search_by_key(&node, |&(node, _)| node);
        found.ok().map(|index| &self.nodes[index].1)
    }

    /// Something else is there when it starts: what is left becomes less.
    fn make_way(
        &mut self,
        ids: &[NodeId],
        charge: Option<Charge>,
        ask: &PodAsk,
        pods: &[PodPlace],
    ) {
        if let Some(Charge {
            team,
            flavour,
            gpus,
        }) = charge
        {
            self.tree.charge(team, flavour, gpus);
        }
        for &pod in pods {
            let node = index_of(ids, pod.node);
            let found = node.and_then(|node| {
                let found = self.nodes.binary_search_by_key(&node, |&(node, _)| node);
                found.ok()
            });
            if let Some(found) = found {
                self.nodes[found].1.take_place(pod, ask);
            }
        }
    }
}

/// Planned starts of one pass, and what ends when.
#[derive(Default)]
pub(crate) struct Backfill<'a> {
    /// Nodes in the order of a [`Room`].
    ids: Vec<NodeId>,
    /// Gangs of the state by end, made when first needed; those of this cycle among them from then on.
    endings: Option<Vec<Ending>>,
    /// Gangs of this cycle, until then.
    started: Vec<Ending>,
    pub reservations: Vec<Reservation<'a>>,
    /// Of those in the way of a spot until then, the first; found once, after the last pass.
    in_way: BTreeMap<(usize, Millis), Option<usize>>,
}

fn index_of(ids: &[NodeId], node: NodeId) -> Option<u32> {
    // Inventories are mostly numbered without gaps.
    if ids.get(node.0 as usize) == Some(&node) {
        return Some(node.0);
    }
    ids.binary_search(&node).ok().map(|index| index as u32)
}

/// When a gang of the state is taken to end.
fn ending(job: &Job, now: Millis) -> Option<Millis> {
    let allocation = job.allocation.as_ref()?;
    let soon = now + Millis(1);
    if job.leaves() || (job.phase == Phase::Recovering && job.recovery.is_none()) {
        return Some(soon);
    }
    if let Some(reclaim) = job.reclaim {
        return Some(reclaim.until.max(soon));
    }
    Some(match job.spec.time_limit {
        None => Millis(UNKNOWN.0 + allocation.order),
        Some(limit) => {
            let left = limit.since(job.ran);
            soon.max(allocation.started.unwrap_or(now) + left)
        }
    })
}

/// Cards that claims hold, by node: nobody else gets them when those who are on them now leave.
fn held_cards(state: &State) -> BTreeMap<NodeId, u32> {
    let mut held = BTreeMap::new();
    let claims = state.claims.values();
    for claim in claims.filter(|claim| claim.stage == Stage::Made) {
        for pod in &claim.placement.pods {
            *held.entry(pod.node).or_default() |= pod.cards;
        }
    }
    held
}

/// A placement without the pods on held cards.
fn without(placement: &Arc<Placement>, held: &BTreeMap<NodeId, u32>) -> Arc<Placement> {
    let is_held = |pod: &PodPlace| {
        held.get(&pod.node)
            .is_some_and(|cards| cards & pod.cards != 0)
    };
    if held.is_empty() || !placement.pods.iter().any(is_held) {
        return placement.clone();
    }
    let pods = placement.pods.iter().copied();
    Arc::new(Placement {
        pods: pods.filter(|pod| !is_held(pod)).collect(),
        ..Placement::clone(placement)
    })
}

impl Backfill<'_> {
    /// Forgets the planned starts; what ends when stays.
    pub(crate) fn begin_pass(&mut self) {
        self.reservations.clear();
        self.in_way.clear();
    }

    /// The first planned start whose quota would be missing until `end`.
    fn quota_in_way(&self, charge: Charge, end: Millis) -> Option<usize> {
        let Charge {
            team,
            flavour,
            gpus,
        } = charge;
        let in_way = |reservation: &Reservation| {
            reservation.at < end && reservation.tree.available(team, flavour) < gpus
        };
        self.reservations.iter().position(in_way)
    }

    /// True when pods on these nodes would be in no planned start's way until `end`.
    fn keeps_off(
        &self,
        room: &Room,
        yard: &Yard,
        ask: &PodAsk,
        found: &[(usize, u32)],
        end: Millis,
    ) -> bool {
        let until = |reservation: &&Reservation| reservation.at < end;
        let held: Vec<_> = self.reservations.iter().filter(until).collect();
        held.is_empty()
            || found.iter().all(|&(place, pods)| {
                let node = yard.nodes[place].0;
                let mut held = held.iter().filter_map(|held| held.free(node)).peekable();
                // What takes the cards does not know which are held: it looks at the whole node.
                held.peek().is_none() || {
                    let free = room.free[node as usize];
                    let masked = held.fold(free, |free, held| free.least(held));
                    masked.same_cards(&free) && masked.pods(ask) >= pods
                }
            })
    }

    /// Room without what the first `count` planned starts hold before `end`.
    fn masked(&self, room: &Room, count: usize, end: Millis) -> Room {
        let mut masked = Room {
            free: room.free.clone(),
            taken: Vec::new(),
            ids: Vec::new(),
        };
        let held = self.reservations[..count].iter();
        for reservation in held.filter(|reservation| reservation.at < end) {
            for (node, left) in &reservation.nodes {
                let free = &mut masked.free[*node as usize];
                *free = free.least(left);
            }
        }
        masked
    }
}

impl<'a> Cycle<'a> {
    /// Room for a spot that is in no planned start's way, and the pods taken there.
    pub(crate) fn take_off_held(&mut self, spot: usize, span: Option<Millis>) -> Option<Taken> {
        let end = end_of(self.now, span);
        let found = self.find(spot).ok()?;
        let (yard, shape) = (&self.yards[self.spots[spot].yard], self.spots[spot].shape);
        if self
            .backfill
            .keeps_off(&self.room, yard, &shape.ask, &found, end)
        {
            let pods = crate::place::take(yard, &mut self.room, &shape, &found);
            return Some((found, pods));
        }
        let count = self.backfill.reservations.len();
        let mut masked = self.backfill.masked(&self.room, count, end);
        let counted = Counted::of(&masked, yard, &shape.ask);
        let found = seek(yard, &counted, &shape).ok()?;
        let pods = crate::place::take(yard, &mut masked, &shape, &found);
        for &pod in &pods {
            if let Some(node) = index_of(&self.backfill.ids, pod.node) {
                self.room.take_place(node, pod, &shape.ask);
            }
        }
        Some((found, pods))
    }

    /// True when there is room for a spot that is in no planned start's way.
    pub(crate) fn is_off_held(&mut self, spot: usize, span: Option<Millis>) -> bool {
        let end = end_of(self.now, span);
        let Ok(found) = self.find(spot) else {
            return false;
        };
        let (yard, shape) = (&self.yards[self.spots[spot].yard], self.spots[spot].shape);
        let (backfill, room) = (&self.backfill, &self.room);
        backfill.keeps_off(room, yard, &shape.ask, &found, end) || {
            let masked = backfill.masked(room, backfill.reservations.len(), end);
            seek(yard, &Counted::of(&masked, yard, &shape.ask), &shape).is_ok()
        }
    }

    /// The planned start, by its number, that keeps a class from an offer although quota and room are there.
    pub(crate) fn quota_held(&self, class: usize, offer: usize) -> Option<usize> {
        let charge = self.charge_of(class, offer)?;
        let end = end_of(self.now, self.classes[class].span);
        self.backfill.quota_in_way(charge, end)
    }

    /// The same for room; found once for each spot and span.
    pub(crate) fn room_held(&mut self, spot: usize, span: Option<Millis>) -> Option<usize> {
        let end = end_of(self.now, span);
        if let Some(&known) = self.backfill.in_way.get(&(spot, end)) {
            return known;
        }
        let found = self.find(spot).ok();
        let (yard, shape) = (&self.yards[self.spots[spot].yard], self.spots[spot].shape);
        let fits = |count: usize| {
            let masked = self.backfill.masked(&self.room, count, end);
            seek(yard, &Counted::of(&masked, yard, &shape.ask), &shape).is_ok()
        };
        let free = found.is_some_and(|found| {
            self.backfill
                .keeps_off(&self.room, yard, &shape.ask, &found, end)
        });
        let mut all = self.backfill.reservations.len();
        let in_way = if free || fits(all) {
            None
        } else {
            // Holds only add up: the first one with which there is no room is the one in the way.
            let mut none = 0;
            while none + 1 < all {
                let half = (none + all) / 2;
                if fits(half) { none = half } else { all = half }
            }
            Some(all - 1)
        };
        self.backfill.in_way.insert((spot, end), in_way);
        in_way
    }

    /// A gang has started: planned starts before its end make way, later ones are planned around it.
    pub(crate) fn note_start(
        &mut self,
        charge: Option<Charge>,
        ask: PodAsk,
        span: Option<Millis>,
        placement: &Arc<Placement>,
    ) {
        let end = end_of(self.now, span);
        let backfill = &mut self.backfill;
        for reservation in &mut backfill.reservations {
            if reservation.at < end {
                reservation.make_way(&backfill.ids, charge, &ask, &placement.pods);
            }
        }
        // Among the never-ending, later than all that run: by the order of admissions.
        let later = self.state.admissions + backfill.started.len() as u64;
        let at = if end == NEVER {
            Millis(UNKNOWN.0 + later + backfill.endings.as_ref().map_or(0, Vec::len) as u64 + 1)
        } else {
            end
        };
        let ending = Ending {
            at,
            charge,
            ask,
            placement: placement.clone(),
        };
        match &mut backfill.endings {
            Some(endings) => {
                let place = endings.partition_point(|other| other.at <= at);
                endings.insert(place, ending);
            }
            None => backfill.started.push(ending),
        }
    }

    /// Plans a start for a job that cannot start now, in the flavour that comes first; `false` if nothing that runs could ever make room.
    pub(crate) fn reserve(&mut self, job: JobId, class: usize, rank: usize) -> bool {
        self.know_endings();
        let offers = 0..self.classes[class].offers.len();
        let plans = offers.filter_map(|offer| self.plan_start(class, offer));
        let Some(plan) = plans.min_by_key(|plan| plan.at) else {
            return false;
        };
        let reservation = Reservation { job, rank, ..plan };
        let Backfill {
            ids, reservations, ..
        } = &mut self.backfill;
        for other in reservations.iter_mut() {
            // It will be there when the other one starts.
            if reservation.at < other.at && other.at < reservation.end {
                other.make_way(
                    ids,
                    reservation.charge,
                    &reservation.ask,
                    &reservation.placement.pods,
                );
            }
        }
        reservations.push(reservation);
        true
    }

    fn know_endings(&mut self) {
        if self.backfill.endings.is_some() {
            return;
        }
        self.backfill.ids = self.state.nodes.keys().copied().collect();
        let held = held_cards(self.state);
        let of_state = self.state.jobs.values().filter_map(|job| {
            let allocation = job.allocation.as_ref()?;
            let placement = &allocation.placement;
            let flavour = placement.flavour.as_ref().filter(|_| job.is_charged());
            let charge = flavour.and_then(|flavour| {
                let (team, flavour) =
                    (self.tree.team(&job.spec.team)?, self.tree.flavour(flavour)?);
                let gpus = allocation.gpus;
                Some(Charge {
                    team,
                    flavour,
                    gpus,
                })
            });
            Some(Ending {
                at: ending(job, self.now)?,
                charge,
                ask: PodAsk::of(&job.spec),
                placement: without(placement, &held),
            })
        });
        let mut endings: Vec<_> = of_state.collect();
        endings.append(&mut self.backfill.started);
        endings.sort_by_key(|ending| ending.at);
        self.backfill.endings = Some(endings);
    }

    /// The earliest start of a class in one of its offers.
    fn plan_start(&self, class: usize, offer: usize) -> Option<Reservation<'a>> {
        let of_class = &self.classes[class];
        let spot = &self.spots[of_class.offers[offer].spot];
        let (yard, shape) = (&self.yards[spot.yard], &spot.shape);
        let charge = self.charge_of(class, offer);
        // What is not preemptible waits for its team's own: when that comes is not planned.
        if !of_class.preemptible && charge.is_some_and(|charge| !self.has_quota(class, charge)) {
            return None;
        }
        let mut sweep = Sweep::of(self, yard, shape, charge, of_class.span);
        let endings = self.backfill.endings.as_deref().unwrap_or_default();
        let (found, mut seen) = sweep.run(endings)?;
        let quota_now = charge.is_none_or(|charge| self.has_quota(class, charge));
        let holds_nodes = known(sweep.at).is_some() || quota_now;
        let mut pods = Vec::new();
        let mut nodes = BTreeMap::new();
        if holds_nodes {
            for &(place, count) in &found {
                let (node, id) = yard.nodes[place];
                for _ in 0..count {
                    let pod = seen.masked.free[node as usize].take(id, &shape.ask);
                    seen.free[node as usize].take_place(pod, &shape.ask);
                    pods.push(pod);
                }
                nodes.insert(node, seen.free[node as usize]);
            }
        }
        if let Some(Charge {
            team,
            flavour,
            gpus,
        }) = charge
        {
            sweep.tree.charge(team, flavour, gpus);
        }
        let flavour = of_class.offers[offer].flavour.map(|(id, _)| id.clone());
        let placement = Placement {
            flavour,
            pods,
            within: within(yard, &self.state.topology, &found),
        };
        let (at, tree) = (sweep.at, sweep.tree);
        Some(Reservation {
            job: JobId(0),
            rank: 0,
            at,
            end: end_of(at, of_class.span),
            charge,
            ask: shape.ask,
            placement: Arc::new(placement),
            tree,
            nodes: nodes.into_iter().collect(),
        })
    }
}
