//! Replay of public traces: as recorded, or with the engine deciding.

mod as_recorded;
mod recorded;
mod report;
mod schedule;
mod work;

pub use as_recorded::{Held, as_recorded, usage_lines};
pub use recorded::{Recorded, recorded_pods, recorded_sacct};
pub use report::{DayRow, Report, Row, e4_hours};
pub use schedule::{Trace, schedule};
pub use work::{
    Cluster, Ends, Judge, POD_RULES, SACCT_RULES, Work, engine_for, pods_work, sacct_work,
};

use crate::driver::Sink;
use crate::trace::{self, BrokenRow, Format, TraceError, TraceNode};
use scheduler::Refusal;
use serde::Serialize;
use thiserror::Error;

/// How a trace is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Recorded starts and ends go to the ledger.
    AsRecorded,
    /// Recorded submissions and run times go to the engine, which decides.
    Schedule,
}

/// Where the engine's nodes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fleet<'a> {
    /// The bytes of a node list.
    Nodes(&'a [u8]),
    /// Equal nodes.
    Cluster(Cluster),
}

/// What to replay.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// The bytes of the trace file.
    pub trace: &'a [u8],
    /// The nodes; needed to schedule.
    pub fleet: Option<Fleet<'a>>,
    /// How; `None` = as recorded for accounting, scheduled for a pod list.
    pub mode: Option<Mode>,
}

/// Why a trace cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReplayError {
    /// The trace file cannot be read.
    #[error("the trace cannot be read")]
    Trace(#[source] TraceError),
    /// The node list cannot be read.
    #[error("the node list cannot be read")]
    Nodes(#[source] TraceError),
    /// Nothing to schedule on.
    #[error(
        "to schedule, the engine needs nodes: give --nodes FILE or --cluster NODESxGPUS, or replay with --as-recorded"
    )]
    NoFleet,
    /// The engine does not take these nodes.
    #[error("the engine does not take these nodes")]
    Fleet(#[source] Refusal),
}

/// Replays a trace.
pub fn run(request: &Request<'_>) -> Result<Report, ReplayError> {
    run_watched(request, &mut ())
}

/// Replays a trace; `sink` hears every event of a scheduled one.
pub fn run_watched(request: &Request<'_>, sink: &mut impl Sink) -> Result<Report, ReplayError> {
    let format = trace::recognise(request.trace).map_err(ReplayError::Trace)?;
    let usual = if format == Format::Sacct {
        Mode::AsRecorded
    } else {
        Mode::Schedule
    };
    match request.mode.unwrap_or(usual) {
        Mode::AsRecorded => {
            let (jobs, broken) =
                read_recorded(request.trace, format).map_err(ReplayError::Trace)?;
            Ok(as_recorded(format, &jobs, broken))
        }
        Mode::Schedule => scheduled(request, format, sink),
    }
}

fn scheduled(
    request: &Request<'_>,
    format: Format,
    sink: &mut impl Sink,
) -> Result<Report, ReplayError> {
    let (machines, broken_nodes, judge) = match request.fleet {
        // A trace that cannot be read is told before nodes that are not given.
        None => {
            return read_recorded(request.trace, format)
                .map_err(ReplayError::Trace)
                .and(Err(ReplayError::NoFleet));
        }
        Some(Fleet::Cluster(cluster)) => (cluster.machines(), Vec::new(), Judge::GpusOnly),
        Some(Fleet::Nodes(bytes)) => {
            let read = trace::read_nodes(bytes).map_err(ReplayError::Nodes)?;
            (read.rows, read.broken, Judge::Everything)
        }
    };
    let (work, mut rules, mut broken) =
        read_work(request.trace, format, &machines, judge).map_err(ReplayError::Trace)?;
    broken.extend(broken_nodes);
    if judge == Judge::GpusOnly {
        rules.push("CPU and memory of the cluster are not known, and not judged".to_owned());
    }
    let engine = engine_for(&machines, &work, sink).map_err(ReplayError::Fleet)?;
    Ok(schedule(format, engine, &work, (rules, broken), sink))
}

type WorkRead = (Vec<Work>, Vec<String>, Vec<BrokenRow>);

fn read_work(
    bytes: &[u8],
    format: Format,
    fleet: &[TraceNode],
    judge: Judge,
) -> Result<WorkRead, TraceError> {
    let words = |rules: &[&str]| rules.iter().map(|rule| (*rule).to_owned()).collect();
    match format {
        Format::Sacct => {
            let read = trace::read_sacct(bytes)?;
            Ok((
                sacct_work(&read, fleet, judge),
                words(&SACCT_RULES),
                read.jobs.broken,
            ))
        }
        Format::AlibabaPods | Format::AlibabaNodes => {
            let read = trace::read_pods(bytes)?;
            Ok((
                pods_work(&read.rows, fleet, judge),
                words(&POD_RULES),
                read.broken,
            ))
        }
    }
}

fn read_recorded(
    bytes: &[u8],
    format: Format,
) -> Result<(Vec<Recorded>, Vec<BrokenRow>), TraceError> {
    match format {
        Format::Sacct => {
            let read = trace::read_sacct(bytes)?;
            Ok((recorded_sacct(&read), read.jobs.broken))
        }
        Format::AlibabaPods | Format::AlibabaNodes => {
            let read = trace::read_pods(bytes)?;
            Ok((recorded_pods(&read.rows), read.broken))
        }
    }
}
