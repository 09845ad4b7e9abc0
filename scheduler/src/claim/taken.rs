//! What leaves for a claim: jobs whole, or pods of them.

use super::loss::Loss;
use super::prey::{Prey, ends_soon};
use crate::cycle::Cycle;
use crate::{Job, JobId, MilliGpu, Placement};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What leaves without being taken.
pub(super) struct Leaving<'a> {
    pub job: &'a Job,
    pub placement: Arc<Placement>,
    /// Its charge goes with it, and has not left yet.
    pub charged: Option<MilliGpu>,
}

/// What is taken of one job.
pub(crate) struct Taken<'a> {
    pub job: &'a Job,
    /// Of what goes.
    pub loss: Loss,
    /// Pods that it keeps; `None` = it goes whole.
    pub keeps: Option<u32>,
}

impl<'a> Leaving<'a> {
    /// All that leave anyway, soon.
    pub(super) fn all(cycle: &Cycle<'a>) -> Vec<Self> {
        let (state, grace) = (cycle.state, cycle.state.policy.grace);
        let leaving = state.jobs.values().filter_map(|job| {
            let allocation = job.allocation.as_ref()?;
            let whole = ends_soon(job, cycle.now, grace);
            let placement = match whole {
                true => allocation.placement.clone(),
                false => allocation.shedding()?,
            };
            let charged = (whole && job.is_charged()).then_some(allocation.gpus);
            Some(Leaving {
                job,
                placement,
                charged,
            })
        });
        leaving.collect()
    }
}

/// What a set takes of each job: segments of one gang are one loss.
pub(super) fn taken<'a>(all: &[Prey<'a>], set: &[usize]) -> Vec<Taken<'a>> {
    let mut of_jobs = BTreeMap::<JobId, Taken>::new();
    for prey in set.iter().map(|&index| &all[index]) {
        let keeps = prey.part.map(|part| part.keeps);
        match of_jobs.get_mut(&prey.id) {
            Some(taken) => {
                taken.loss.gpus += prey.gpus;
                taken.keeps = taken.keeps.min(keeps);
            }
            None => {
                let (job, loss) = (prey.job, prey.loss);
                of_jobs.insert(prey.id, Taken { job, loss, keeps });
            }
        }
    }
    of_jobs.into_values().collect()
}

/// Jobs that are named, each with the fewest pods that it keeps; `None` = it may go whole.
pub(crate) type Named = BTreeMap<JobId, Option<u32>>;

pub(super) fn is_named(prey: &Prey, only: &Named) -> bool {
    only.get(&prey.id)
        .is_some_and(|keeps| match (keeps, prey.part) {
            (None, _) => true,
            (Some(keeps), Some(part)) => part.keeps >= *keeps,
            (Some(_), None) => false,
        })
}
