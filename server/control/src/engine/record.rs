//! From the engine's job to the row that lists show.

use crate::period::instant;
use crate::store::JobRecord;
use crate::words;
use contract::{JobState, SubmitJob};
use scheduler::{
    End, HoldScope, Job, JobId, Millis, Name, NodeId, Phase, Placement, State, StopCause,
};
use std::collections::BTreeSet;

/// A live job's state in every door.
pub(crate) fn state_of(job: &Job) -> JobState {
    match job.phase {
        Phase::Queued => JobState::Queued,
        Phase::Admitted => JobState::Admitted,
        Phase::Starting => JobState::Starting,
        Phase::Running => JobState::Running,
        Phase::Reclaiming => JobState::Reclaiming,
        Phase::Recovering => JobState::Recovering,
    }
}

/// An ended job's state in every door.
pub(crate) fn state_of_end(end: End) -> JobState {
    match end {
        End::Succeeded => JobState::Succeeded,
        End::Failed => JobState::Failed,
        End::Cancelled => JobState::Cancelled,
        End::TimedOut => JobState::TimedOut,
    }
}

/// Why a job was stopped or lost, in words.
pub(crate) fn cause_text(cause: &StopCause, state: &State) -> String {
    match cause {
        StopCause::Person { by, why: None } => format!("cancelled by {by}"),
        StopCause::Person { by, why: Some(why) } => format!("cancelled by {by}: {why}"),
        StopCause::TimeLimit => "reached its time limit".to_owned(),
        StopCause::NodeLost { node, what } => {
            format!("lost node {}: {what}", node_name(state, *node))
        }
        StopCause::Drained { scope, by } => {
            format!(
                "has saved, and {} is being drained by {by}",
                held_text(scope, state)
            )
        }
        StopCause::Stalled { silent, .. } => match silent.first() {
            None => "took no step for too long".to_owned(),
            Some(node) => format!(
                "took no step for too long, and node {} is silent",
                node_name(state, *node)
            ),
        },
        StopCause::Idle { since } => {
            format!("did nothing since {}: it is suspended", instant(*since))
        }
        StopCause::Suspend { by, why: None } => format!("suspended by {by}"),
        StopCause::Suspend { by, why: Some(why) } => format!("suspended by {by}: {why}"),
        StopCause::LaunchTimeout => "its pods did not come up in time".to_owned(),
        StopCause::Reclaim { claim, claimant } => {
            format!(
                "makes room for {} (reclaim {claim})",
                job_text(state, *claimant)
            )
        }
        StopCause::Exited { code } => format!("its program ended with exit code {code}"),
    }
}

/// What is held, as people know it.
pub(crate) fn held_text(scope: &HoldScope, state: &State) -> String {
    match scope {
        HoldScope::Node { node } => format!("node {}", node_name(state, *node)),
        HoldScope::Job { .. }
        | HoldScope::Team { .. }
        | HoldScope::Cohort { .. }
        | HoldScope::Domain { .. } => scope.to_string(),
    }
}

/// `job 4711 of fraud-ml`, as long as it lives.
pub(crate) fn job_text(state: &State, job: JobId) -> String {
    match state.jobs.get(&job) {
        Some(live) => format!("job {job} of {}", live.spec.team),
        None => format!("job {job}"),
    }
}

/// A node's host name.
pub(crate) fn node_name(state: &State, node: NodeId) -> String {
    state
        .nodes
        .get(&node)
        .map_or_else(|| node.to_string(), |free| free.node.name.to_string())
}

/// Names of the widest domains that a placement touches, in order of rank, no doubles.
pub(crate) fn blocks_of(placement: &Placement, state: &State) -> Vec<Name> {
    let mut seen = BTreeSet::new();
    let mut blocks = Vec::new();
    for pod in &placement.pods {
        let Some(block) = state
            .nodes
            .get(&pod.node)
            .and_then(|free| free.node.domains.first())
        else {
            continue;
        };
        if seen.insert(block.clone()) {
            blocks.push(block.clone());
        }
    }
    blocks
}

/// `4 nodes of block h100-b07`; `node h100-b07-r2-n3`; `128 nodes of blocks a, b, c, d`.
pub(crate) fn place_text(placement: &Placement, state: &State) -> String {
    let nodes: BTreeSet<NodeId> = placement.pods.iter().map(|pod| pod.node).collect();
    if let (1, Some(node)) = (nodes.len(), nodes.first()) {
        return format!("node {}", node_name(state, *node));
    }
    let level = state
        .topology
        .levels
        .first()
        .map_or("block", |level| level.as_str());
    let blocks: Vec<String> = blocks_of(placement, state)
        .iter()
        .map(ToString::to_string)
        .collect();
    let all = contract::plural(nodes.len() as u64, "node", "nodes");
    match blocks.len() {
        0 => all,
        1 => format!("{all} of {level} {}", blocks[0]),
        2..=4 => format!("{all} of {level}s {}", blocks.join(", ")),
        n => format!("{all} of {n} {level}s"),
    }
}

/// When it ends at the latest, by its time limit.
pub(crate) fn ends_by(job: &Job) -> Option<Millis> {
    let started = job.allocation.as_ref()?.started?;
    Some(started + job.spec.time_limit?.since(job.ran))
}

/// The row of a live job. With `detailed` its spec and placement are written, too.
pub(crate) fn of_live(job: &Job, state: &State, details: Details) -> JobRecord {
    let allocation = job.allocation.as_ref();
    let taken = allocation.and_then(|allocation| allocation.placement.flavour.as_ref());
    let flavours = match taken {
        Some(flavour) => flavour.to_string(),
        None => job
            .spec
            .flavours
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(","),
    };
    // An elastic gang may have fewer than it asks.
    let pods = allocation.map_or(job.spec.pods, |allocation| allocation.size());
    JobRecord {
        id: job.id.0,
        name: job.spec.name.clone(),
        team: job.spec.team.to_string(),
        project: job.spec.project.clone(),
        owner: job.owner.to_string(),
        state: state_of(job),
        stopping: job.stop.is_some(),
        priority: words::priority(job.spec.priority).to_owned(),
        flavours,
        gpus_milli: job.spec.gpus_of(pods).0,
        pods,
        attempt: job.attempt,
        ran_ms: job.ran.0,
        submitted: job.submitted.0,
        started: allocation
            .and_then(|allocation| allocation.started)
            .map(|at| at.0),
        ended: None,
        ends_by: ends_by(job).map(|at| at.0),
        own_milli: allocation.map(|allocation| allocation.own.0),
        borrowed_milli: allocation.map(|allocation| allocation.borrowed.0),
        place: allocation.map(|allocation| place_text(&allocation.placement, state)),
        end_cause: None,
        details: match details {
            Details::Write => Some(details_of(job)),
            Details::Leave => None,
        },
    }
}

/// Whether a job's spec and placement go with its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Details {
    /// They are new.
    Write,
    /// They are as they were.
    Leave,
}

fn details_of(job: &Job) -> (String, Option<String>) {
    let spec = serde_json::to_string(&SubmitJob::from_spec(&job.spec)).unwrap_or_default();
    let placement = job
        .allocation
        .as_ref()
        .and_then(|allocation| serde_json::to_string(&*allocation.placement).ok());
    (spec, placement)
}

/// The row of a job that has just ended; `job` is as it was before. Own and borrowed stay as its own last event left them:
/// others' events move them without a row.
pub(crate) fn of_ended(
    job: &Job,
    state: &State,
    at: Millis,
    end: End,
    cause: Option<&StopCause>,
) -> JobRecord {
    let last_run = job
        .allocation
        .as_ref()
        .and_then(|allocation| allocation.started)
        .map(|started| at.since(started));
    JobRecord {
        state: state_of_end(end),
        stopping: false,
        ended: Some(at.0),
        ends_by: None,
        ran_ms: (job.ran + last_run.unwrap_or_default()).0,
        end_cause: cause.map(|cause| cause_text(cause, state)),
        own_milli: None,
        borrowed_milli: None,
        ..of_live(job, state, Details::Leave)
    }
}

/// Puts a newer row in an older one's place; what is known of the current or last attempt stays. The store's upsert does
/// the same across batches.
pub(crate) fn renew(older: Option<JobRecord>, newer: JobRecord) -> JobRecord {
    let Some(older) = older else { return newer };
    JobRecord {
        started: newer.started.or(older.started),
        place: newer.place.or(older.place),
        own_milli: newer.own_milli.or(older.own_milli),
        borrowed_milli: newer.borrowed_milli.or(older.borrowed_milli),
        details: match (newer.details, older.details) {
            (Some((spec, place)), Some((_, last))) => Some((spec, place.or(last))),
            (newer, older) => newer.or(older),
        },
        ..newer
    }
}
