//! Reasons: why each job left waiting does not start, against the state after the cycle.
//!
//! A job starts as soon as one of its flavours has quota, room and no reservation before it. The one told is the flavour
//! that lacks the least, with everything that it lacks: lifting all of it starts the job, lifting all but one does not.

use crate::cycle::{Cycle, Lacks};
use crate::plan::Candidate;
use crate::{Blocker, MilliGpu, Reason};

/// Why a job waits that has not started in this cycle.
pub(crate) fn explain(cycle: &mut Cycle, job: &Candidate, class: usize, rank: usize) -> Reason {
    if !cycle.classes[class].never.is_empty() {
        return Reason::of(cycle.classes[class].never.clone());
    }
    let until = job.backs_off(cycle.now);
    cycle.judge(class);
    let offers = 0..cycle.classes[class].offers.len();
    let closest = offers.min_by_key(|&offer| {
        let Lacks { quota, room } = &cycle.lacks(class)[offer];
        let reserved = cycle.ahead_of(class, offer, rank).is_some();
        (
            usize::from(quota.is_some()) + usize::from(reserved) + usize::from(room.is_some()),
            short_by(quota),
        )
    });
    let mut all = Vec::with_capacity(4);
    all.extend(until.map(|until| Blocker::BackOff { until }));
    if let Some(offer) = closest {
        let Lacks { quota, room } = &cycle.lacks(class)[offer];
        all.extend(quota.clone());
        all.extend(
            cycle
                .ahead_of(class, offer, rank)
                .map(|job| Blocker::BehindReservation { job }),
        );
        all.extend(room.clone());
    }
    Reason::of(all)
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
