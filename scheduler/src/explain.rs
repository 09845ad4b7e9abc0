//! Reasons: why each job left waiting does not start, against the state after the cycle.
//!
//! A job starts as soon as one of its flavours has quota, room and no reservation before it. The one told is the flavour
//! that lacks the least, with everything that it lacks: lifting all of it starts the job, lifting all but one does not.

use crate::plan::{Candidate, Cycle, Offer};
use crate::quota::ShortAt;
use crate::{Blocker, CohortId, MilliGpu, Reason, TeamId};

/// Borrowers named in a reason, at most.
const HOLDERS: usize = 3;

/// Why a job waits that has not started in this cycle.
pub(crate) fn explain(cycle: &mut Cycle, job: &Candidate, class: usize, rank: usize) -> Reason {
    if !cycle.classes[class].never.is_empty() {
        return Reason::of(cycle.classes[class].never.clone());
    }
    let offers = 0..cycle.classes[class].offers.len();
    let lacking = offers.map(|offer| lacking(cycle, class, offer, rank));
    let closest = lacking
        .min_by_key(|blockers| (blockers.len(), short_by(blockers)))
        .unwrap_or_default();
    let mut all: Vec<Blocker> = job
        .backs_off(cycle.now)
        .map(|until| Blocker::BackOff { until })
        .into_iter()
        .collect();
    all.extend(closest);
    Reason::of(all)
}

/// What one offer lacks, in order of precedence.
fn lacking(cycle: &mut Cycle, class: usize, offer: usize, rank: usize) -> Vec<Blocker> {
    let Offer { flavour, spot } = cycle.classes[class].offers[offer];
    let mut all = Vec::new();
    if let (Some((id, index)), Some(team)) = (flavour, cycle.classes[class].team) {
        let asks = cycle.classes[class].gpus;
        let available = cycle.tree.available(team, index);
        if asks > available {
            let (at, holders) = holders(cycle, team, index, asks);
            let (flavour, short_by) = (id.clone(), asks.minus(available));
            all.push(Blocker::Quota {
                flavour,
                asks,
                available,
                short_by,
                at,
                holders,
            });
        }
        if let Some(&(_, job)) = cycle
            .closed
            .get(&index)
            .filter(|(closer, _)| *closer < rank)
        {
            all.push(Blocker::BehindReservation { job });
        }
    }
    if cycle.spots[spot].told.is_none() {
        cycle.spots[spot].told = Some(cycle.lacks(spot));
    }
    all.extend(cycle.spots[spot].told.clone().flatten());
    all
}

fn holders(
    cycle: &Cycle,
    team: usize,
    flavour: usize,
    asks: MilliGpu,
) -> (Option<CohortId>, Vec<(TeamId, MilliGpu)>) {
    match cycle.tree.short_at(team, flavour, asks) {
        ShortAt::Team => (None, Vec::new()),
        ShortAt::Cohort(cohort) => {
            let mut holders = cycle.tree.borrowers(cohort, flavour);
            holders.truncate(HOLDERS);
            (cycle.tree.cohort(cohort).cloned(), holders)
        }
    }
}

fn short_by(blockers: &[Blocker]) -> MilliGpu {
    let quota = blockers.iter().find_map(|blocker| match blocker {
        Blocker::Quota { short_by, .. } => Some(*short_by),
        _ => None,
    });
    quota.unwrap_or_default()
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
