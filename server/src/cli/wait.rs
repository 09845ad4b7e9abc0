//! Waiting for a job's end, with one line that says where it is and why.

use super::Done;
use super::client::{Client, ClientError, Output};
use super::job::{draw_job, exit_code};
use super::table::print;
use contract::JobView;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

/// Between two looks.
const EVERY: Duration = Duration::from_millis(500);
/// The exit code of a wait that nothing would end.
const CAN_NEVER_RUN: u8 = 4;
/// How long looks may fail, or hang, in a row before it gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits; the exit code is the end state's, or says that it can never run as things are.
pub async fn wait(client: &Client, id: u64, output: Output) -> Done {
    let mut line = Line::default();
    loop {
        let path = format!("/jobs/{id}");
        let look = async || client.get::<JobView>(&path, &[]).await;
        let looked = answered(PATIENCE, look, |error| {
            line.show(&format!("{error}; looking again"));
        });
        let looked = looked.await;
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
                line.show(&progress(&job));
            }
            Err(error) => {
                line.end();
                return Err(error.into());
            }
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// Looks until one is answered or refused for good. When patience ends, the last failure is the answer.
async fn answered<T>(
    patience: Duration,
    look: impl AsyncFn() -> Result<T, ClientError>,
    mut tell: impl FnMut(&ClientError),
) -> Result<T, ClientError> {
    let mut last = None;
    let looking = async {
        loop {
            match look().await {
                Err(error) if error.may_pass() => {
                    tell(&error);
                    last = Some(error);
                }
                done => return done,
            }
            tokio::time::sleep(EVERY).await;
        }
    };
    match tokio::time::timeout(patience, looking).await {
        Ok(done) => done,
        // No look has its end yet: the client's own limit is shorter than patience, so one more tells why.
        Err(_) => match last {
            Some(error) => Err(error),
            None => look().await,
        },
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

    #[tokio::test]
    async fn patience_is_a_time_however_long_one_look_takes() {
        let looks = std::cell::Cell::new(0);
        // The first breaks at once, the second hangs: it is not waited for.
        let look = async || {
            looks.set(looks.get() + 1);
            if looks.get() > 1 {
                std::future::pending::<()>().await;
            }
            Err::<(), _>(ClientError::Connection {
                url: "http://nowhere".to_owned(),
                problem: "gone".to_owned(),
            })
        };
        let ended = answered(EVERY * 2, look, |_| ());
        let ended = tokio::time::timeout(Duration::from_secs(60), ended).await;
        let ended = ended.expect("it gives up");
        assert!(matches!(ended, Err(ClientError::Connection { .. })));
    }
}
