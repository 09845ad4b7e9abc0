//! The auditor's own account of notebooks: who does nothing, who was warned, and who gave its GPUs back.

use scheduler::{Event, Fact, JobId, JobKind, Millis, StopCause};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of the notebooks.
#[derive(Clone, Debug, Default)]
pub(super) struct Notebooks {
    all: BTreeSet<JobId>,
    /// Since when they do nothing.
    idle: BTreeMap<JobId, Millis>,
    /// Until when those that were warned have.
    warned: BTreeMap<JobId, Millis>,
    /// Being stopped to be suspended.
    leaving: BTreeSet<JobId>,
    /// Waits again after a stop of that kind: the next word is of its suspension.
    left: BTreeSet<JobId>,
    /// Suspended.
    away: BTreeSet<JobId>,
}

impl Notebooks {
    /// Takes in an event.
    pub(super) fn take(&mut self, event: &Event) -> Result<(), String> {
        let job = event.fact.job();
        if let Some(job) = job.filter(|job| self.left.contains(job))
            && !matches!(event.fact, Fact::NotebookSuspended { .. })
        {
            return Err(format!("job {job} was stopped to be suspended and is not"));
        }
        match &event.fact {
            Fact::JobSubmitted { job, spec, .. } if spec.kind == JobKind::Notebook => {
                self.all.insert(*job);
            }
            Fact::ActivityStopped { job, since, .. } => {
                let is_new = self.all.contains(job) && self.idle.insert(*job, *since).is_none();
                if !is_new || *since > event.at {
                    return Err(format!("job {job} is said to do nothing out of place"));
                }
            }
            Fact::ActivityResumed { job, .. } => {
                self.warned.remove(job);
                let known = self.idle.remove(job);
                known.ok_or_else(|| format!("job {job} goes on and was not idle"))?;
            }
            Fact::IdleWarned {
                job, suspend_at, ..
            } => {
                let is_new = self.warned.insert(*job, *suspend_at).is_none();
                if !is_new || !self.idle.contains_key(job) || *suspend_at < event.at {
                    return Err(format!("job {job} was warned out of place"));
                }
            }
            Fact::StopRequested {
                job, cause, end, ..
            } => self.stop(*job, cause, event.at, end.is_some())?,
            Fact::GangStarted { job, .. } | Fact::GangStopped { job, .. } => self.forget(*job),
            Fact::JobRequeued { job, .. } => {
                self.forget(*job);
                if self.leaving.remove(job) {
                    self.left.insert(*job);
                }
            }
            Fact::NotebookSuspended { job, .. } => {
                self.left.remove(job);
                if !self.all.contains(job) || !self.away.insert(*job) {
                    return Err(format!("job {job} was suspended out of place"));
                }
            }
            Fact::NotebookResumed { job, .. } => {
                let was_away = self.away.remove(job);
                let breach = || format!("job {job} was resumed and was not suspended");
                was_away.then_some(()).ok_or_else(breach)?;
            }
            Fact::JobEnded { job, .. } => {
                self.forget(*job);
                self.all.remove(job);
                self.away.remove(job);
                self.leaving.remove(job);
            }
            _ => {}
        }
        Ok(())
    }

    /// The idle rule stops only what was warned, and not before the word that was given.
    fn stop(
        &mut self,
        job: JobId,
        cause: &StopCause,
        at: Millis,
        ends: bool,
    ) -> Result<(), String> {
        match cause {
            StopCause::Idle { .. } if self.warned.get(&job).is_none_or(|until| *until > at) => {
                return Err(format!("job {job} is suspended before its warning is over"));
            }
            StopCause::Suspend { .. } if !self.all.contains(&job) => {
                return Err(format!("job {job} is suspended and is no notebook"));
            }
            StopCause::Idle { .. } | StopCause::Suspend { .. } => drop(self.leaving.insert(job)),
            // A person may turn the stop into its end.
            _ if ends => drop(self.leaving.remove(&job)),
            _ => {}
        }
        Ok(())
    }

    /// A new attempt is active until something else is told.
    fn forget(&mut self, job: JobId) {
        self.idle.remove(&job);
        self.warned.remove(&job);
    }

    /// Fails for a start of what is suspended.
    pub(super) fn start(&self, job: JobId) -> Result<(), String> {
        match self.away.contains(&job) {
            true => Err(format!("job {job} was started while it is suspended")),
            false => Ok(()),
        }
    }
}
