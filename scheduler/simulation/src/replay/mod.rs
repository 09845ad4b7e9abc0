//! Replay of public traces: as recorded, or with the engine deciding.

mod as_recorded;
mod recorded;
mod report;

pub use as_recorded::{Held, as_recorded, usage_lines};
pub use recorded::{Recorded, recorded_pods, recorded_sacct};
pub use report::{DayRow, Report, Row, e4_hours};

use crate::trace::{self, Format, TraceError};
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

/// What to replay.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The trace file's bytes.
    pub trace: &'a [u8],
    /// How; `None` = as recorded for accounting, scheduled for a pod list.
    pub mode: Option<Mode>,
}

/// Why a trace cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReplayError {
    /// The trace file cannot be read.
    #[error("the trace cannot be read")]
    Trace(#[source] TraceError),
}

/// Replays a trace.
pub fn run(request: &Request<'_>) -> Result<Report, ReplayError> {
    let format = trace::recognise(request.trace).map_err(ReplayError::Trace)?;
    let (jobs, broken) = read_recorded(request.trace, format).map_err(ReplayError::Trace)?;
    Ok(as_recorded(format, &jobs, broken))
}

fn read_recorded(
    bytes: &[u8],
    format: Format,
) -> Result<(Vec<Recorded>, Vec<trace::BrokenRow>), TraceError> {
    match format {
        Format::Sacct => {
            let read = trace::read_sacct(bytes)?;
            Ok((recorded_sacct(&read), read.jobs.broken))
        }
        Format::AlibabaPods => {
            let read = trace::read_pods(bytes)?;
            Ok((recorded_pods(&read.rows), read.broken))
        }
        Format::AlibabaNodes => Err(TraceError::WrongFormat {
            found: format,
            wanted: Format::AlibabaPods,
        }),
    }
}
