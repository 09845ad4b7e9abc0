//! `muster replay`: a public trace as recorded, or with the engine deciding.

use super::Done;
use super::client::Output;
use super::table::{print, write_out};
use clap::Args;
use simulation::replay::{self, Cluster, Fleet, Mode, Request};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use thiserror::Error;

/// `muster replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The trace: Alibaba GPU 2023 pods (openb_pod_list), or the output of `sacct -P`. Its format is recognised.
    file: PathBuf,
    /// The nodes to schedule on: an openb_node_list.
    #[arg(long, value_name = "FILE", conflicts_with = "cluster")]
    nodes: Option<PathBuf>,
    /// The nodes to schedule on: equal ones, such as 32x8.
    #[arg(long, value_name = "NODESxGPUS")]
    cluster: Option<Cluster>,
    /// Lets the engine decide; the default for a pod list.
    #[arg(long, conflicts_with = "as_recorded")]
    schedule: bool,
    /// Feeds recorded starts and ends to the ledger; the default for accounting files.
    #[arg(long)]
    as_recorded: bool,
    /// How to print.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Debug, Error)]
#[error("{path} cannot be read: {problem}")]
struct FileError {
    path: String,
    problem: std::io::Error,
}

#[derive(Debug, Error)]
#[error("no row of {0} can be read: is it whole, and of this format?")]
struct AllBroken(String);

fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    fs::read(path).map_err(|problem| FileError {
        path: path.display().to_string(),
        problem,
    })
}

/// Does it.
pub fn perform(args: &ReplayArgs) -> Done {
    let trace = read(&args.file)?;
    let nodes = args.nodes.as_deref().map(read).transpose()?;
    let listed = nodes.as_deref().map(Fleet::Nodes);
    let request = Request {
        trace: &trace,
        fleet: listed.or(args.cluster.map(Fleet::Cluster)),
        mode: match (args.schedule, args.as_recorded) {
            (true, _) => Some(Mode::Schedule),
            (_, true) => Some(Mode::AsRecorded),
            (false, false) => None,
        },
    };
    let watch = control::Clock::virtual_from(scheduler::Millis(0), 1);
    let mut report = replay::run(&request)?;
    report.took(watch.now());
    if args.output == Output::Json {
        print(args.output, &report, |_| Vec::new())?;
    } else {
        write_out(&report.to_string())?;
    }
    if report.good_rows == 0 && report.broken_rows > 0 {
        return Err(AllBroken(args.file.display().to_string()).into());
    }
    Ok(ExitCode::SUCCESS)
}
