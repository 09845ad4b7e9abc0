//! A notebook's idle rule in figures.

use crate::period::instant;
use contract::{NotebookView, SuspensionView};
use scheduler::{Job, JobKind, Phase, State};

/// Of a live notebook; `may` = the reader may end it, and so suspend it. Nothing for another kind of job.
pub(crate) fn view(state: &State, job: &Job, may: bool) -> Option<NotebookView> {
    if job.spec.kind != JobKind::Notebook {
        return None;
    }
    let (idle, warning) = (state.policy.notebook_idle, state.policy.notebook_warning);
    let runs = job.phase == Phase::Running && job.stop.is_none();
    let activity = job.allocation.as_ref().map(|it| it.activity);
    let activity = activity.filter(|_| runs).unwrap_or_default();
    let since = activity.idle_since;
    // The warning has its whole time, however short the rule is.
    let warned_at = since.map(|since| since + idle.since(warning));
    let suspend_at = activity.suspend_at.or(warned_at.map(|at| at + warning));
    let leaves = job.stop.is_some() || job.phase == Phase::Reclaiming;
    Some(NotebookView {
        idle_ms: idle.0,
        warning_ms: warning.0,
        idle_since: since.map(instant),
        warned_at: warned_at
            .filter(|_| activity.suspend_at.is_none())
            .map(instant),
        suspend_at: suspend_at.map(instant),
        suspended: job.suspended.as_ref().map(|it| SuspensionView {
            since: instant(it.since),
            by: it.by.as_ref().map(ToString::to_string),
            why: it.why.clone(),
        }),
        may_suspend: may && job.suspended.is_none() && !leaves,
        may_resume: may && job.suspended.is_some(),
    })
}
