//! Dependencies: a job that waits for others to end. (Slurm: `--dependency=afterok:ID`, `afterany:ID`.)
//!
//! A job names jobs that came before it, and how each has to end: **ok** wants it to succeed, **any** wants it to end. It
//! stands outside of the line until all of them have: no place, no planned start, no claim; it keeps its submit time. It is
//! looked at in the cycle that follows the end it waits for.
//!
//! After-ok of a job that ended otherwise is never met: told as such at once, and left to its owner (Slurm:
//! `DependencyNeverSatisfied`, without `kill_invalid_depend`). A requeue is no end. Rings cannot be: whoever is named has a
//! number already.

use crate::decide::invalid;
use crate::{Blocker, End, JobId, JobSpec, Refusal, State};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The most jobs that one job may wait for.
const MAX_AFTER: usize = 64;

/// How a job has to end that another one waits for.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Wants {
    /// Well (Slurm: `afterok`).
    #[default]
    Ok,
    /// In any way (Slurm: `afterany`).
    Any,
}

/// A job that has to end first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Dependency {
    /// Which.
    pub on: JobId,
    /// How.
    #[serde(default)]
    pub wants: Wants,
}

impl Dependency {
    fn is_met_by(self, end: End) -> bool {
        match self.wants {
            Wants::Any => true,
            Wants::Ok => end == End::Succeeded,
        }
    }
}

/// How each job ended, by number: one letter a job, a dot for one that lives. Kept for ever, so that what is waited for is
/// never forgotten: a megabyte for a million jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ends(String);

/// A job that has not ended.
const LIVES: char = '.';

impl Ends {
    /// How a job ended; `None` = it lives, or never was.
    pub fn of(&self, job: JobId) -> Option<End> {
        let index = usize::try_from(job.0.checked_sub(1)?).ok()?;
        match self.0.as_bytes().get(index)? {
            b's' => Some(End::Succeeded),
            b'f' => Some(End::Failed),
            b'c' => Some(End::Cancelled),
            b't' => Some(End::TimedOut),
            _ => None,
        }
    }

    /// Takes in an end.
    pub(crate) fn note(&mut self, job: JobId, end: End) {
        let Some(index) = job.0.checked_sub(1).and_then(|n| usize::try_from(n).ok()) else {
            return;
        };
        let letter = match end {
            End::Succeeded => "s",
            End::Failed => "f",
            End::Cancelled => "c",
            End::TimedOut => "t",
        };
        while self.0.len() <= index {
            self.0.push(LIVES);
        }
        self.0.replace_range(index..=index, letter);
    }
}

/// Refuses what names no job, or one of them twice.
pub(crate) fn check_after(state: &State, spec: &JobSpec) -> Result<(), Refusal> {
    if spec.after.len() > MAX_AFTER {
        return Err(invalid(
            "after",
            format!("must be at most {MAX_AFTER} jobs"),
        ));
    }
    let mut named = BTreeSet::new();
    for Dependency { on, .. } in &spec.after {
        if on.0 == 0 || on.0 > state.counts.submitted {
            return Err(invalid("after", format!("there is no job {on}")));
        }
        if !named.insert(on) {
            return Err(invalid("after", format!("names job {on} twice")));
        }
    }
    Ok(())
}

/// What a job still waits for, in the order in which it names it.
pub(crate) fn unmet<'a>(state: &'a State, spec: &'a JobSpec) -> impl Iterator<Item = Blocker> + 'a {
    spec.after.iter().filter_map(|&dependency| {
        let Dependency { on, wants } = dependency;
        let ended = state.ends.of(on);
        let met = ended.is_some_and(|end| dependency.is_met_by(end));
        (!met).then_some(Blocker::Dependency { on, wants, ended })
    })
}

/// What must always be true of ends: no live job has one.
pub(crate) fn check(state: &State) -> Result<(), String> {
    let mut jobs = state.jobs.keys();
    match jobs.find(|job| state.ends.of(**job).is_some()) {
        Some(job) => Err(format!("job {job} lives, and has an end")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_kept_by_number_whichever_comes_first() {
        let mut ends = Ends::default();
        ends.note(JobId(3), End::Failed);
        ends.note(JobId(1), End::Succeeded);
        assert_eq!(ends, Ends("s.f".into()));
        let told = [0, 1, 2, 3, 4].map(|job| ends.of(JobId(job)));
        let expected = [None, Some(End::Succeeded), None, Some(End::Failed), None];
        assert_eq!(told, expected);
    }
}
