//! Readers of public traces.
//!
//! Readers take the bytes of a file. The format is recognised from the header or the shape of the rows, or the formats
//! known are named. A broken row is reported with its line and what is wrong with it; the rest goes on.

mod alibaba;
mod sacct;
mod tres;

pub use alibaba::{PodRow, TraceNode, read_nodes, read_pods};
pub use sacct::{SacctJob, SacctRead, read_sacct};
pub use tres::{Tres, TresProblem, parse_tres};

use serde::Serialize;
use std::fmt;
use thiserror::Error;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Slurm accounting: `sacct --parsable2`, with a header line or in the 26 columns without one.
    Sacct,
    /// Alibaba's GPU trace of 2023: the nodes.
    AlibabaNodes,
    /// Alibaba's GPU trace of 2023: the pods.
    AlibabaPods,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sacct => "Slurm accounting (sacct -P)",
            Self::AlibabaNodes => "Alibaba GPU 2023 node list",
            Self::AlibabaPods => "Alibaba GPU 2023 pod list",
        })
    }
}

/// Why a file cannot be read at all.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TraceError {
    /// Nothing in it.
    #[error("the file is empty: give one with rows in it")]
    Empty,
    /// Not one of ours.
    #[error(
        "the format was not recognised (first line: `{first_line}`). Known are: Slurm accounting (`sacct -P`, 26 columns \
         or with its header line), Alibaba GPU 2023 node lists (sn,cpu_milli,memory_mib,gpu,model) and pod lists \
         (name,cpu_milli,memory_mib,num_gpu,gpu_milli,...)"
    )]
    Unknown {
        /// How it begins.
        first_line: String,
    },
    /// The right kind of file without what is needed.
    #[error("this {format} has no column {}: use a list that has", .columns.join(", "))]
    MissingColumns {
        /// What it is.
        format: Format,
        /// What is missing, in the order of the format.
        columns: Vec<&'static str>,
    },
    /// A file of one kind where another was asked for.
    #[error("found: {found}; needed here: {wanted}")]
    WrongFormat {
        /// What it is.
        found: Format,
        /// What it should be.
        wanted: Format,
    },
}

/// What is wrong with a row.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RowProblem {
    /// Bytes that are no text.
    #[error("is not UTF-8")]
    NotUtf8,
    /// Too few or too many fields.
    #[error("has {found} fields, not {wanted}")]
    FieldCount {
        /// In the row.
        found: usize,
        /// In the format.
        wanted: usize,
    },
    /// A field that cannot be read.
    #[error("{field} is `{value}`, not {wanted}")]
    Field {
        /// Which.
        field: &'static str,
        /// What it says.
        value: String,
        /// What it should be.
        wanted: &'static str,
    },
    /// Two fields that contradict each other.
    #[error("{later} is before {earlier}")]
    Backwards {
        /// The field that should come first.
        earlier: &'static str,
        /// The field that should come after it.
        later: &'static str,
    },
}

/// A row that was left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BrokenRow {
    /// What the file is.
    pub format: Format,
    /// Its line in the file, from 1.
    pub line: u64,
    /// What is wrong.
    pub problem: RowProblem,
}

impl fmt::Display for BrokenRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = if self.format == Format::AlibabaNodes {
            "node list, "
        } else {
            ""
        };
        write!(f, "{of}line {}: {}", self.line, self.problem)
    }
}

/// What a reader found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows<T> {
    /// Good rows, in the file's order.
    pub rows: Vec<T>,
    /// The others.
    pub broken: Vec<BrokenRow>,
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            broken: Vec::new(),
        }
    }
}

/// How many lines are looked at for the shape of a file without a header.
const LOOK_AT: usize = 50;
/// How much of an unknown first line is shown.
const SHOWN: usize = 80;

/// Says what a file is.
pub fn recognise(bytes: &[u8]) -> Result<Format, TraceError> {
    let text = String::from_utf8_lossy(bytes);
    let first = text
        .lines()
        .map(|line| line.trim_start_matches('\u{feff}'))
        .find(|line| !line.trim().is_empty());
    let first = first.ok_or(TraceError::Empty)?;
    let has = |names: &[&str]| {
        let columns: Vec<&str> = first
            .split(',')
            .map(|name| name.trim().trim_matches('"'))
            .collect();
        names.iter().all(|name| columns.contains(name))
    };
    if has(&["sn", "cpu_milli", "gpu"]) {
        Ok(Format::AlibabaNodes)
    } else if has(&["name", "cpu_milli", "num_gpu", "gpu_milli"]) {
        Ok(Format::AlibabaPods)
    } else if sacct::is_header(first) || text.lines().take(LOOK_AT).any(sacct::has_shape) {
        Ok(Format::Sacct)
    } else {
        Err(TraceError::Unknown {
            first_line: first.chars().take(SHOWN).collect(),
        })
    }
}

/// The file must be of this format.
fn expect(bytes: &[u8], wanted: Format) -> Result<(), TraceError> {
    match recognise(bytes)? {
        found if found == wanted => Ok(()),
        found => Err(TraceError::WrongFormat { found, wanted }),
    }
}

/// A whole number, or what is wrong with the field.
fn number(field: &'static str, value: &str) -> Result<u64, RowProblem> {
    value.trim().parse().map_err(|_| RowProblem::Field {
        field,
        value: value.to_owned(),
        wanted: "a whole number",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_recognised_from_header_or_shape() {
        let pods = b"name,cpu_milli,memory_mib,num_gpu,gpu_milli\n";
        assert_eq!(recognise(pods), Ok(Format::AlibabaPods));
        assert_eq!(
            recognise(b"sn,cpu_milli,memory_mib,gpu,model\n"),
            Ok(Format::AlibabaNodes)
        );
        assert_eq!(
            recognise(b"JobID|User|Submit|Start|End|State\n"),
            Ok(Format::Sacct)
        );
    }

    #[test]
    fn an_unknown_file_is_told_which_formats_are_known() {
        let error = recognise(b"; SWF header\n1 2 3\n").unwrap_err().to_string();
        assert!(
            error.contains("; SWF header") && error.contains("sacct") && error.contains("Alibaba"),
            "{error}"
        );
        assert_eq!(recognise(b" \n"), Err(TraceError::Empty));
    }
}
