//! A job in a list, and its parts on its page.

use crate::engine::record;
use crate::period::instant;
use crate::store::{Entry, JobRecord, Saves};
use contract::{
    CheckpointView, Gpus, InterruptionView, JobRow, JobState, PlaceView, ReasonView, gpu_hours,
};
use scheduler::{Fact, JobId, MilliGpu, Millis, NodeId, Placement, State, StopCause, Waiting};
use std::collections::{BTreeMap, BTreeSet};

/// What only the published state knows of live jobs: quota moves, and reasons are of the last cycle.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overlay {
    own: BTreeMap<JobId, (MilliGpu, MilliGpu)>,
    waiting: BTreeMap<JobId, Waiting>,
}

impl Overlay {
    /// Of these jobs.
    pub(crate) fn of(
        state: &State,
        waiting: &BTreeMap<JobId, Waiting>,
        jobs: impl Iterator<Item = JobId>,
    ) -> Self {
        let mut overlay = Self::default();
        for id in jobs {
            let job = state.jobs.get(&id);
            if let Some(allocation) = job.and_then(|job| job.allocation.as_ref()) {
                let split = (allocation.own, allocation.borrowed);
                overlay.own.insert(id, split);
            }
            if let Some(why) = waiting.get(&id) {
                overlay.waiting.insert(id, why.clone());
            }
        }
        overlay
    }

    /// Why a job waits, and its place.
    pub(crate) fn waiting(&self, job: JobId) -> (Option<ReasonView>, Option<u32>) {
        match self.waiting.get(&job) {
            Some(waiting) => (
                Some(contract::reason::of_waiting(waiting)),
                waiting.position,
            ),
            None => (None, None),
        }
    }

    /// Own and borrowed GPUs of an admitted job.
    pub(crate) fn own(&self, job: JobId) -> Option<(MilliGpu, MilliGpu)> {
        self.own.get(&job).copied()
    }
}

/// A job in a list.
pub(crate) fn row(record: &JobRecord, overlay: &Overlay) -> JobRow {
    let id = JobId(record.id);
    let time = |at: Option<u64>| at.map(|at| instant(Millis(at)));
    let queued = record.state == JobState::Queued;
    let (reason, position) = if queued {
        overlay.waiting(id)
    } else {
        (None, None)
    };
    let own = overlay.own(id);
    // The row keeps what the last attempt was; of a job that has another one before it that is past.
    let up = !matches!(
        record.state,
        JobState::Queued | JobState::Admitted | JobState::Starting
    );
    JobRow {
        id: record.id,
        name: record.name.clone(),
        team: record.team.clone(),
        project: record.project.clone(),
        owner: record.owner.clone(),
        state: record.state,
        stopping: record.stopping,
        reason,
        position,
        place: record.place.clone().filter(|_| !queued),
        flavours: record
            .flavours
            .split(',')
            .filter(|flavour| !flavour.is_empty())
            .map(str::to_owned)
            .collect(),
        gpus: Gpus(MilliGpu(record.gpus_milli)),
        pods: record.pods,
        own: own.map(|(own, _)| Gpus(own)),
        borrowed: own.map(|(_, borrowed)| Gpus(borrowed)),
        priority: record.priority.clone(),
        submitted: instant(Millis(record.submitted)),
        started: time(record.started).filter(|_| up),
        ended: time(record.ended),
        ends_by: time(record.ends_by),
        end_cause: record.end_cause.clone(),
    }
}

/// A placement in words and figures.
pub(crate) fn place(placement: &Placement, state: &State) -> PlaceView {
    let mut seen = BTreeSet::new();
    let nodes: Vec<NodeId> = placement
        .pods
        .iter()
        .map(|pod| pod.node)
        .filter(|node| seen.insert(*node))
        .collect();
    let ranks = placement.pods.iter().map(|pod| {
        let cards = (0..32)
            .filter(|card| pod.cards & (1 << card) != 0)
            .collect();
        (record::node_name(state, pod.node), cards)
    });
    PlaceView {
        text: record::place_text(placement, state),
        flavour: placement.flavour.as_ref().map(ToString::to_string),
        blocks: record::blocks_of(placement, state)
            .iter()
            .map(ToString::to_string)
            .collect(),
        nodes: nodes
            .iter()
            .map(|node| record::node_name(state, *node))
            .collect(),
        worst_link: worst_link(placement, state),
        ranks: ranks.collect(),
    }
}

/// The widest link that the gang crosses: `between nodes of one rack`.
fn worst_link(placement: &Placement, state: &State) -> String {
    let level = |index: usize| {
        state
            .topology
            .levels
            .get(index)
            .map_or("node", |level| level.as_str())
    };
    match placement.within.map(usize::from) {
        None => format!("between {}s", level(0)),
        Some(index) if index + 1 >= state.topology.levels.len() => "inside one node".to_owned(),
        Some(index) => format!("between {}s of one {}", level(index + 1), level(index)),
    }
}

/// Durable checkpoints, last ones first.
pub(crate) fn checkpoints(saves: &Saves) -> Vec<CheckpointView> {
    let mut all = Vec::new();
    let mut began = None;
    for entry in &saves.last {
        match &entry.event.fact {
            Fact::CheckpointStarted { attempt, .. } => began = Some((*attempt, entry.event.at)),
            Fact::CheckpointSaved {
                attempt,
                progress,
                bytes,
                ..
            } => {
                let stall = began
                    .take()
                    .filter(|(of, _)| of == attempt)
                    .map(|(_, at)| entry.event.at.since(at));
                all.push(CheckpointView {
                    number: 0,
                    attempt: *attempt,
                    at: instant(entry.event.at),
                    stall_ms: stall.unwrap_or_default().0,
                    progress_ms: progress.0,
                    bytes: *bytes,
                });
            }
            _ => {}
        }
    }
    all.reverse();
    for (checkpoint, number) in all.iter_mut().zip((1..=saves.count).rev()) {
        checkpoint.number = u32::try_from(number).unwrap_or(u32::MAX);
    }
    all
}

/// What would be lost if it stopped now: the rule of [`interruptions`], for a gang that runs since `started`.
pub(crate) fn unsaved(
    started: Option<Millis>,
    last: Option<&CheckpointView>,
    now: Millis,
) -> Millis {
    let saved = last.map_or(Millis(0), |last| {
        Millis(u64::try_from(last.at.as_millisecond()).unwrap_or(0))
    });
    started.map_or(Millis(0), |started| now.since(started.max(saved)))
}

/// Stops that were not the job's own end and that it came back from, or not; first ones first.
///
/// Lost is what the gang did since the later of its last durable checkpoint and its start.
pub(crate) fn interruptions(
    life: &[Entry],
    saved: &BTreeMap<u64, Millis>,
    per_pod: MilliGpu,
    state: &State,
) -> Vec<InterruptionView> {
    let mut started: Option<Millis> = None;
    let mut pods = 0;
    let mut all = Vec::new();
    for entry in life {
        let at = entry.event.at;
        if let Some(cause) = cut_by(entry) {
            let saved = saved.get(&entry.seq).copied();
            let unsaved = started.map(|started| at.since(saved.unwrap_or(started).max(started)));
            all.push(InterruptionView {
                at: instant(at),
                cause: record::cause_text(cause, state),
                lost_gpu_hours: gpu_hours((per_pod * pods).over(unsaved.unwrap_or_default())),
            });
            // An elastic gang that outlives a node begins again from its last save at once.
            if matches!(entry.event.fact, Fact::GangShrunk { .. }) {
                started = Some(at);
            }
        }
        match &entry.event.fact {
            Fact::GangStarted { .. } => started = Some(at),
            Fact::JobRequeued { .. } | Fact::GangStopped { .. } => started = None,
            // An elastic gang may have fewer pods than it asks.
            Fact::JobAdmitted { placement, .. } => pods = placement.pods.len() as u64,
            Fact::GangShrunk { keeps, .. } => pods = u64::from(*keeps),
            _ => {}
        }
    }
    all
}

/// Numbers of the entries that are interruptions.
pub(crate) fn cuts(life: &[Entry]) -> Vec<u64> {
    let cuts = life.iter().filter(|entry| cut_by(entry).is_some());
    cuts.map(|entry| entry.seq).collect()
}

/// What interrupted a job in an entry, if anything did.
fn cut_by(entry: &Entry) -> Option<&StopCause> {
    let cause = match &entry.event.fact {
        Fact::StopRequested { cause, .. }
        | Fact::GangShrunk {
            cause: cause @ StopCause::NodeLost { .. },
            ..
        } => cause,
        Fact::JobEnded {
            cause: Some(cause @ StopCause::Exited { .. }),
            ..
        } => cause,
        _ => return None,
    };
    let own = matches!(
        cause,
        StopCause::Person { .. }
            | StopCause::TimeLimit
            | StopCause::Idle { .. }
            | StopCause::Suspend { .. }
    );
    (!own).then_some(cause)
}
