//! Waiting for a job's end, with one line that says where it is and why.

use super::Done;
use super::client::{Client, ClientError, Output};
use super::job::{draw_job, exit_code};
use super::table::print;
use contract::JobView;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Between two looks.
const EVERY: Duration = Duration::from_millis(500);
/// The exit code of a wait that nothing would end.
const CAN_NEVER_RUN: u8 = 4;
/// How long looks may fail before it gives up. A look that hangs takes its own limit ([`super::client`]) on top, once.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits; the exit code is the end state's, or says that it can never run as things are.
pub async fn wait(client: &Client, id: u64, output: Output) -> Done {
    let mut line = Line::default();
    let mut failing = Failing::default();
    loop {
        let looked: Result<JobView, ClientError> = client.get(&format!("/jobs/{id}"), &[]).await;
        match looked {
            Ok(job) if job.row.state.ended() => {
                line.end();
                print(output, &job, draw_job)?;
                return Ok(exit_code(job.row.state));
            }
            // It would wait for ever; what could let it run is somebody's decision.
            Ok(job) if is_never(&job) => {
                line.end();
                print(output, &job, draw_job)?;
                eprintln!(
                    "{}; `muster job cancel {id}` takes it out of the queue",
                    progress(&job)
                );
                return Ok(ExitCode::from(CAN_NEVER_RUN));
            }
            Ok(job) => {
                failing = Failing::default();
                line.show(&progress(&job));
            }
            Err(error) if error.may_pass() && failing.bear(Instant::now()) => {
                line.show(&format!("{error}; looking again"));
            }
            Err(error) => {
                line.end();
                return Err(error.into());
            }
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// Since when no look has been answered.
#[derive(Default)]
struct Failing {
    since: Option<Instant>,
}

impl Failing {
    /// One more look has failed: true while it is worth another.
    fn bear(&mut self, now: Instant) -> bool {
        now - *self.since.get_or_insert(now) < PATIENCE
    }
}

fn is_never(job: &JobView) -> bool {
    job.row.reason.as_ref().is_some_and(|reason| reason.never)
}

fn progress(job: &JobView) -> String {
    let row = &job.row;
    let said = row
        .reason
        .as_ref()
        .map(|reason| reason.text.as_str())
        .or(row.place.as_deref())
        .unwrap_or_default();
    let position = row
        .position
        .map(|position| format!(" (place {position} in the queue)"))
        .unwrap_or_default();
    if said.is_empty() {
        format!("{}{position}", row.state)
    } else {
        format!("{}{position}: {said}", row.state)
    }
}

/// A line on standard error: written over itself on a terminal, one more line at each change elsewhere.
#[derive(Default)]
struct Line {
    shown: String,
}

impl Line {
    fn show(&mut self, text: &str) {
        if self.shown == text {
            return;
        }
        let mut err = std::io::stderr().lock();
        // A progress line that cannot be written is no reason to stop waiting.
        let _ = if err.is_terminal() {
            write!(err, "\r\x1b[K{text}").and_then(|()| err.flush())
        } else {
            writeln!(err, "{text}")
        };
        self.shown = text.to_owned();
    }

    fn end(&self) {
        if !self.shown.is_empty() && std::io::stderr().is_terminal() {
            eprintln!();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_is_a_time_however_long_one_look_takes() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut failing = Failing::default();
        // Looks that hang for half a minute each.
        assert!(failing.bear(at(30)) && failing.bear(at(60)));
        assert!(!failing.bear(at(90)), "a minute after the first");
        // Looks that are refused at once.
        let mut failing = Failing::default();
        assert!((0..60).all(|second| failing.bear(at(second))));
        assert!(!failing.bear(at(60)));
    }
}
