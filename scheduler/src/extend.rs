//! More time for a job, and whom that delays.
//!
//! The limit counts running time over all attempts; what was lost with a node or in a stall is left out, by the policy
//! `count_lost_work`. (Slurm: `scontrol update TimeLimit`, for operators; it tells nobody whom it delays.)

use crate::decide::invalid;
use crate::failure::is_counted_on;
use crate::{Event, Fact, Job, JobId, Millis, PersonId, PlannedStart, Refusal, State, apply, plan};
use std::collections::BTreeMap;

/// The longest limit: a hundred years.
const LONGEST: Millis = Millis(100 * 366 * Millis::DAY.0);

/// A job that is planned to start later than without the extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delay {
    /// Which.
    pub job: JobId,
    /// When it is planned to start as things are.
    pub before: Millis,
    /// When it would be; `None` = not known any more.
    pub after: Option<Millis>,
}

/// The fact that an extension is.
pub(crate) fn extend(
    state: &State,
    job: &Job,
    limit: Millis,
    by: &PersonId,
    why: Option<&String>,
) -> Result<Fact, Refusal> {
    let Some(now) = job.spec.time_limit else {
        return Err(invalid(
            "limit",
            "the job has no time limit: it needs no more",
        ));
    };
    if limit <= now || limit > LONGEST {
        return Err(invalid(
            "limit",
            "must be longer than the limit that it has, and at most a hundred years",
        ));
    }
    if is_counted_on(state, job) {
        return Err(invalid(
            "limit",
            "a reclaim counts on its end: wait until that has started, or withdraw it",
        ));
    }
    Ok(Fact::TimeLimitExtended {
        job: job.id,
        limit,
        by: by.clone(),
        why: why.cloned(),
    })
}

/// Whose planned start would be later if a job had this limit: two cycles, one on a copy. Those without a planned start
/// are not in it: when they start is not known either way. In the order of the cycle.
///
/// # Errors
/// What [`crate::Command::ExtendLimit`] would be refused for.
pub fn extension_delays(
    state: &State,
    job: JobId,
    limit: Millis,
    now: Millis,
) -> Result<Vec<Delay>, Refusal> {
    let live = state.jobs.get(&job).ok_or(Refusal::NoSuchJob(job))?;
    let fact = extend(state, live, limit, &PersonId::from(""), None)?;
    let now = now.max(state.at);
    let mut longer = state.clone();
    apply(&mut longer, &Event { at: now, fact });
    let before = planned(state, now);
    let after: BTreeMap<JobId, Option<Millis>> = planned(&longer, now).into_iter().collect();
    let delays = before.into_iter().filter_map(|(id, at)| {
        // Whoever is not there any more has started.
        let (before, after) = (at?, *after.get(&id)?);
        let later = after.is_none_or(|after| after > before);
        (later && id != job).then_some(Delay {
            job: id,
            before,
            after,
        })
    });
    Ok(delays.collect())
}

/// When those that wait after one cycle are planned to start.
fn planned(state: &State, now: Millis) -> Vec<(JobId, Option<Millis>)> {
    let waiting = plan(state, now).waiting.into_iter();
    let at = |planned: Option<PlannedStart>| planned.and_then(|planned| planned.at);
    waiting
        .map(|waiting| (waiting.job, at(waiting.planned)))
        .collect()
}
