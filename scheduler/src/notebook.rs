//! Notebooks that do nothing: warned, then suspended; and how they come back.
//!
//! The executor tells the two edges: that a notebook does nothing, since when, and that it does something again. Nothing is
//! no use of a GPU, no running cell, no key in a terminal; an open tab is not activity. `notebook_warning` before
//! `notebook_idle` is over its people are **warned**, with the moment at which it will be suspended: that word is kept,
//! whatever becomes of the policy. Then it is stopped. With its confirmed exit it is **suspended**: it holds nothing, is
//! charged and billed nothing, and stays on record with its first submit time, out of the line, until somebody
//! **resumes** it. (Kubeflow's notebook controller culls after a day when it is switched on; JupyterHub's idle culler
//! after ten minutes; neither warns nor gives the place in a queue back. Run:ai stops idle workspaces by policy.)
//!
//! # Choices where the page is silent
//! - Silence of the executor is no idleness: a notebook of which nothing is told counts as active.
//! - Only one that runs is suspended by the clock. One that is stopped, taken or recovering is on its way out anyway, and
//!   its clock begins anew when it is up again.
//! - What lies on its disk stays; what is only in memory goes, as with every stop. So work stops counting when it stops.
//! - A person may suspend one that waits, too: it keeps its place and lets others pass. A claim that it made is given up.
//! - One that is being stopped for another cause is not suspended: it waits again first, or ends.
//! - A suspended notebook counts as waiting in limits.

use crate::apply::{step, touch};
use crate::lifecycle::Step;
use crate::{
    Allocation, Blocker, Fact, Job, JobId, JobKind, Millis, PersonId, Phase, Policy, Refusal,
    Report, State, StopCause, Withdrawal,
};
use serde::{Deserialize, Serialize};

/// What a live notebook was last told to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Activity {
    /// It does nothing since then.
    pub idle_since: Option<Millis>,
    /// Its people were warned: it is suspended then.
    pub suspend_at: Option<Millis>,
    /// When it last went on, or came up: no later word tells of an earlier idleness.
    pub active: Option<Millis>,
}

impl Activity {
    /// It does something from now on.
    pub(crate) fn active(at: Millis) -> Self {
        Self {
            active: Some(at),
            ..Self::default()
        }
    }

    /// When it is warned, or suspended if it was: `None` = it is active.
    pub(crate) fn due(&self, policy: &Policy) -> Option<Millis> {
        let warned = Some(self.idle_since? + policy.notebook_idle.since(policy.notebook_warning));
        self.suspend_at.or(warned)
    }
}

/// A notebook that was suspended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspension {
    /// Since when: its exit was confirmed then.
    pub since: Millis,
    /// By whom; `None` = by the idle rule.
    pub by: Option<PersonId>,
    /// In their words.
    pub why: Option<String>,
}

/// What keeps a suspended notebook out of the line.
pub(crate) fn blocker(job: &Job) -> Option<Blocker> {
    let suspension = job.suspended.as_ref()?;
    Some(Blocker::Suspended {
        since: suspension.since,
        by: suspension.by.clone(),
    })
}

/// What an executor tells of activity; `None` when it is old, or told twice.
pub(crate) fn told(
    job: &Job,
    allocation: &Allocation,
    report: &Report,
    now: Millis,
) -> Option<Vec<Fact>> {
    let (id, attempt, known) = (job.id, job.attempt, allocation.activity);
    if job.spec.kind != JobKind::Notebook {
        return None;
    }
    match *report {
        Report::Idle { since } => {
            let since = since.min(now);
            let is_old = known.active.is_some_and(|active| since < active);
            let news = known.idle_since.is_none() && !is_old;
            news.then(|| {
                vec![Fact::ActivityStopped {
                    job: id,
                    attempt,
                    since,
                }]
            })
        }
        Report::Active => {
            known.idle_since?;
            Some(vec![Fact::ActivityResumed { job: id, attempt }])
        }
        _ => None,
    }
}

/// What the clock means to a notebook that runs and does nothing.
pub(crate) fn on_time(state: &State, job: &Job, now: Millis) -> Option<Fact> {
    let activity = job.allocation.as_ref()?.activity;
    let since = activity.idle_since?;
    let (id, attempt) = (job.id, job.attempt);
    Some(match activity.suspend_at {
        Some(_) => Fact::StopRequested {
            job: id,
            attempt,
            cause: StopCause::Idle { since },
            end: None,
        },
        None => Fact::IdleWarned {
            job: id,
            attempt,
            suspend_at: now + state.policy.notebook_warning,
        },
    })
}

/// The fact that follows the requeue of a notebook that was stopped to be suspended.
pub(crate) fn after_stop(job: &Job) -> Option<Fact> {
    let (by, why) = match &job.stop.as_ref()?.cause {
        StopCause::Idle { .. } => (None, None),
        StopCause::Suspend { by, why } => (Some(by.clone()), why.clone()),
        StopCause::Person { .. }
        | StopCause::TimeLimit
        | StopCause::NodeLost { .. }
        | StopCause::Stalled { .. }
        | StopCause::LaunchTimeout
        | StopCause::Exited { .. }
        | StopCause::Drained { .. }
        | StopCause::Reclaim { .. } => return None,
    };
    Some(Fact::NotebookSuspended {
        job: job.id,
        by,
        why,
    })
}

/// The facts of a suspension that a person asks for.
pub(crate) fn suspend(
    state: &State,
    job: &Job,
    by: &PersonId,
    why: Option<&String>,
) -> Result<Vec<Fact>, Refusal> {
    let (id, attempt) = (job.id, job.attempt);
    if job.spec.kind != JobKind::Notebook {
        return Err(Refusal::NotNotebook(id));
    }
    if job.suspended.is_some() {
        return Err(Refusal::AlreadySuspended(id));
    }
    if job.stop.is_some() || job.phase == Phase::Reclaiming {
        return Err(Refusal::AlreadyStopping(id));
    }
    let suspended = Fact::NotebookSuspended {
        job: id,
        by: Some(by.clone()),
        why: why.cloned(),
    };
    if job.phase == Phase::Queued {
        let claims = state.claims.values().filter(|claim| claim.claimant == id);
        let given_up = claims.map(|claim| Fact::ClaimWithdrawn {
            job: id,
            claim: claim.id,
            why: Withdrawal::ClaimantSetAside,
            again: None,
        });
        return Ok(given_up.chain([suspended]).collect());
    }
    if job.stands_by() {
        let requeued = Fact::JobRequeued {
            job: id,
            attempt,
            not_before: None,
        };
        return Ok(vec![requeued, suspended]);
    }
    Ok(vec![Fact::StopRequested {
        job: id,
        attempt,
        cause: StopCause::Suspend {
            by: by.clone(),
            why: why.cloned(),
        },
        end: None,
    }])
}

/// The fact that its return into the line is.
pub(crate) fn resume(job: &Job, by: &PersonId, why: Option<&String>) -> Result<Vec<Fact>, Refusal> {
    if job.spec.kind != JobKind::Notebook {
        return Err(Refusal::NotNotebook(job.id));
    }
    if job.stop.is_some() {
        return Err(Refusal::AlreadyStopping(job.id));
    }
    if job.suspended.is_none() {
        return Err(Refusal::NotSuspended(job.id));
    }
    Ok(vec![Fact::NotebookResumed {
        job: job.id,
        by: by.clone(),
        why: why.cloned(),
    }])
}

/// Takes in what happened to a notebook.
pub(crate) fn fold(state: &mut State, at: Millis, fact: &Fact) {
    let tell = |state: &mut State, job: JobId, change: &dyn Fn(&mut Activity)| {
        step(state, job, Step::Tell, |job| {
            job.allocation
                .iter_mut()
                .for_each(|it| change(&mut it.activity));
        });
    };
    match fact {
        Fact::ActivityStopped { job, since, .. } => tell(state, *job, &|activity| {
            activity.idle_since = Some(*since);
        }),
        Fact::ActivityResumed { job, .. } => tell(state, *job, &|activity| {
            *activity = Activity::active(at);
        }),
        Fact::IdleWarned {
            job, suspend_at, ..
        } => tell(state, *job, &|activity| {
            activity.suspend_at = Some(*suspend_at);
        }),
        Fact::NotebookSuspended { job, by, why } => touch(state, *job, |job| {
            if job.phase == Phase::Queued && job.spec.kind == JobKind::Notebook {
                job.suspended = Some(Suspension {
                    since: at,
                    by: by.clone(),
                    why: why.clone(),
                });
            }
        }),
        Fact::NotebookResumed { job, .. } => touch(state, *job, |job| job.suspended = None),
        _ => {}
    }
}

/// What must always be true: only notebooks are idle or suspended, and what is suspended has nothing.
pub(crate) fn check(state: &State) -> Result<(), String> {
    for job in state.jobs.values() {
        let id = job.id;
        let activity = job.allocation.as_ref().map(|it| it.activity);
        let activity = activity.unwrap_or_default();
        let is_told = activity.idle_since.is_some() || job.suspended.is_some();
        if is_told && job.spec.kind != JobKind::Notebook {
            return Err(format!("job {id} is no notebook, and is idle or suspended"));
        }
        if job.suspended.is_some() && job.phase != Phase::Queued {
            return Err(format!("job {id} is suspended and {:?}", job.phase));
        }
        if activity.suspend_at.is_some() && activity.idle_since.is_none() {
            return Err(format!("job {id} was warned and is not idle"));
        }
    }
    Ok(())
}
