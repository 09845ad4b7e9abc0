//! What people do with notebooks: they suspend and resume them, and now and then what is none.

use super::Dice;
use scheduler::{
    Command, Job, JobId, JobKind, JobSpec, MilliGpu, State, TopologyMode, TopologyRequest,
};

/// Somebody suspends a notebook, or takes it up again.
pub(super) fn word(dice: &mut Dice, state: &State) -> Option<Command> {
    let any: Vec<JobId> = state.jobs.keys().copied().collect();
    let notebooks = || {
        let jobs = state.jobs.values();
        jobs.filter(|job| job.spec.kind == JobKind::Notebook)
    };
    let ids = |jobs: Vec<&Job>| jobs.into_iter().map(|job| job.id).collect::<Vec<_>>();
    let (away, here): (Vec<&Job>, Vec<&Job>) = notebooks().partition(|job| job.suspended.is_some());
    let (away, here) = (ids(away), ids(here));
    let (by, why) = ("ada".into(), None);
    Some(match dice.below(10) {
        0..=3 => Command::Resume {
            job: dice.of(&away)?,
            by,
            why,
        },
        4 => Command::Suspend {
            job: dice.of(&away)?,
            by,
            why,
        },
        5 => Command::Resume {
            job: dice.of(&here)?,
            by,
            why,
        },
        6 => Command::Suspend {
            job: dice.of(&any)?,
            by,
            why,
        },
        _ => Command::Suspend {
            job: dice.of(&here)?,
            by,
            why,
        },
    })
}

/// How many jobs live that are not suspended.
pub(super) fn others(state: &State) -> usize {
    let jobs = state.jobs.values();
    jobs.filter(|job| job.suspended.is_none()).count()
}

/// The same as a notebook: one pod with a card or a share of one, anywhere.
pub(super) fn made_one(dice: &mut Dice, spec: JobSpec) -> JobSpec {
    JobSpec {
        kind: JobKind::Notebook,
        flavours: vec!["h100".into()],
        pods: 1,
        min_pods: None,
        gpus_per_pod: MilliGpu(dice.of(&[250, 500, 1_000]).unwrap_or(1_000)),
        topology: TopologyRequest {
            mode: TopologyMode::Unconstrained,
            level: None,
            segments: None,
        },
        ..spec
    }
}
