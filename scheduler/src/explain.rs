//! Reasons: why each job left waiting does not start, against the state after the cycle.
//!
//! A job starts as soon as one of its flavours has quota and room that no planned start ahead of it needs. The one told is the flavour
//! that lacks the least, with everything that it lacks: lifting all of it starts the job, lifting all but one does not.
//! A job that is set aside is told what it would lack besides as things stand: it makes no claim, so what one might bring
//! is not told.

use crate::backfill::known;
use crate::count::Counted;
use crate::cycle::Cycle;
use crate::hold::Closed;
use crate::line::Candidate;
use crate::place::seek;
use crate::quota::ShortAt;
use crate::room::{Room, View};
use crate::{Blocker, FlavourId, Hold, MilliGpu, Reason};

/// Borrowers named in a reason, at most.
const HOLDERS: usize = 3;

/// Holds of nodes that are tried for a reason, at most: beyond that they are not told.
const HOLDS: usize = 64;

/// Why a job waits that has not started in this cycle.
pub(crate) fn explain(cycle: &mut Cycle, job: &Candidate, class: usize, rank: usize) -> Reason {
    let mut all = job.aside.clone();
    all.extend((cycle.running).passed(job.spec, job.spec.least_gpus(), job.owner));
    if !cycle.classes[class].never.is_empty() || all.iter().any(Blocker::is_for_ever) {
        all.extend(cycle.classes[class].never.iter().cloned());
        all.sort_by_key(Blocker::precedence);
        return Reason::of(all);
    }
    let until = job.backs_off(cycle.now);
    cycle.judge(class);
    let offers = 0..cycle.classes[class].offers.len();
    let closest = offers.min_by_key(|&offer| {
        let lacks = &cycle.lacks(class)[offer];
        let held = cycle.held_before(lacks, rank).is_some();
        let missing = [lacks.quota.is_some(), held, lacks.room.is_some()];
        (
            missing.into_iter().filter(|&missing| missing).count(),
            short_by(&lacks.quota),
        )
    });
    all.extend(until.map(|until| Blocker::BackOff { until }));
    if let Some(offer) = closest {
        let lacks = &cycle.lacks(class)[offer];
        all.extend(lacks.quota.clone());
        all.extend(cycle.held_before(lacks, rank));
        all.extend(lacks.room.clone());
    }
    Reason::of(all)
}

/// What an offer lacks.
#[derive(Clone, Default)]
pub(crate) struct Lacks {
    pub quota: Option<Blocker>,
    pub room: Option<Blocker>,
    /// The planned start that holds quota or room which is there; of many, the first.
    held: Option<usize>,
}

impl Cycle<'_> {
    /// Finds out what each offer of a class lacks at the end of the cycle, once.
    fn judge(&mut self, class: usize) {
        if self.classes[class].told.is_none() {
            let offers = 0..self.classes[class].offers.len();
            let told = offers.map(|offer| self.offer_lacks(class, offer)).collect();
            self.classes[class].told = Some(told);
        }
    }

    /// The planned start that a job at this place in the order would move, if it is in its way.
    fn held_before(&self, lacks: &Lacks, rank: usize) -> Option<Blocker> {
        let reservation = &self.backfill.reservations[lacks.held?];
        (reservation.rank < rank).then(|| Blocker::BehindReservation {
            job: reservation.job,
            planned: known(reservation.at),
        })
    }

    /// What each offer of a class that was judged lacks.
    fn lacks(&self, class: usize) -> &[Lacks] {
        self.classes[class].told.as_deref().unwrap_or_default()
    }

    fn offer_lacks(&mut self, class: usize, offer: usize) -> Lacks {
        let spot = self.classes[class].offers[offer].spot;
        if self.spots[spot].told.is_none() {
            self.spots[spot].told = Some(self.spot_lacks(spot));
        }
        let room = self.spots[spot].told.clone().flatten();
        let quota = self.quota_lacks(class, offer);
        let of_quota = match quota {
            None => self.quota_held(class, offer),
            Some(_) => None,
        };
        let of_room = match room {
            None => self.room_held(spot, self.classes[class].span),
            Some(_) => None,
        };
        let held = match (of_quota, of_room) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Lacks { quota, room, held }
    }

    fn quota_lacks(&self, class: usize, offer: usize) -> Option<Blocker> {
        let of_class = &self.classes[class];
        let ((id, flavour), team) = (of_class.offers[offer].flavour?, of_class.team?);
        let (asks, available) = (of_class.gpus, self.left(class, team, flavour));
        let short_by = asks.minus(available);
        if short_by == MilliGpu::ZERO {
            return None;
        }
        let (at, mut holders) = match self.tree.short_at(team, flavour, asks) {
            ShortAt::Team => (None, Vec::new()),
            // Its own, since what is not preemptible does not borrow.
            ShortAt::Cohort(_)
                if !of_class.preemptible && asks <= self.tree.available(team, flavour) =>
            {
                (None, Vec::new())
            }
            ShortAt::Cohort(at) => (
                self.tree.cohort(at).cloned(),
                self.tree.borrowers(at, flavour),
            ),
        };
        holders.truncate(HOLDERS);
        let flavour = id.clone();
        Some(Blocker::Quota {
            flavour,
            asks,
            available,
            short_by,
            at,
            holders,
        })
    }

    fn spot_lacks(&mut self, spot: usize) -> Option<Blocker> {
        let flavour = self.spots[spot].flavour;
        let short = self.find(spot).err()?;
        Some(Blocker::Room {
            flavour: flavour.cloned().unwrap_or_else(|| FlavourId::from("cpu")),
            level: short
                .level
                .and_then(|level| self.state.topology.levels.get(level))
                .cloned(),
            asks_pods: short.asks_pods,
            best_pods: short.best_pods,
            best_domain: short.best_domain.cloned(),
            segments: short.segments,
            held: self.holds_in_way(spot).into(),
        })
    }

    /// The fewest holds of nodes with whose end there would be room for a spot: each of them is needed.
    fn holds_in_way(&self, spot: usize) -> Vec<Hold> {
        let yard = &self.yards[self.spots[spot].yard];
        let lies_here = |hold: &&Hold| {
            let closed = Closed::by(self.state, [*hold]);
            let nodes = yard.nodes.iter();
            let mut nodes = nodes.filter_map(|(_, id)| self.state.nodes.get(id));
            nodes.any(|free| closed.has(&free.node))
        };
        let mut lifted: Vec<&Hold> = self.state.node_holds().filter(lies_here).collect();
        if lifted.is_empty() || lifted.len() > HOLDS || !self.fits_but(spot, &lifted) {
            return Vec::new();
        }
        let mut index = 0;
        while index < lifted.len() {
            let hold = lifted.remove(index);
            if lifted.is_empty() || !self.fits_but(spot, &lifted) {
                lifted.insert(index, hold);
                index += 1;
            }
        }
        lifted.into_iter().cloned().collect()
    }

    /// Whether a spot would have room after the cycle without some holds of nodes.
    fn fits_but(&self, spot: usize, lifted: &[&Hold]) -> bool {
        let kept = self.state.node_holds();
        let closed = Closed::by(self.state, kept.filter(|hold| !lifted.contains(hold)));
        let mut room = Room::but(self.state, View::Now, &closed);
        for (spec, placement) in &self.placed {
            room.hold(spec, placement);
        }
        let (yard, shape) = (&self.yards[self.spots[spot].yard], &self.spots[spot].shape);
        seek(yard, &Counted::of(&room, yard, &shape.ask), shape).is_ok()
    }
}

fn short_by(quota: &Option<Blocker>) -> MilliGpu {
    match quota {
        Some(Blocker::Quota { short_by, .. }) => *short_by,
        Some(_) | None => MilliGpu::ZERO,
    }
}

impl Reason {
    /// The first blocker is dominant.
    ///
    /// There is one for every job that has not started: room and quota only shrink within a cycle, so whatever kept the
    /// job at its turn keeps it at the end. Should a bug break that, the job is told to be misconfigured, not silently
    /// left out.
    pub(crate) fn of(mut all: Vec<Blocker>) -> Self {
        debug_assert!(!all.is_empty(), "a job that nothing keeps has not started");
        if all.is_empty() {
            all.push(Blocker::Misconfigured {
                field: "engine".into(),
                names: "no reason".into(),
            });
        }
        Self {
            dominant: all[0].clone(),
            all,
        }
    }
}
