//! All Rust tests, counted.
//!
//! A test that cannot run here (a public trace is not there) says so in a line `skipped: NAME: why` and returns; such a test is
//! counted as skipped, not as passed. A test that never ends is ended, and fails by its name.

use std::collections::BTreeSet;
use std::env;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::Tally;
use crate::failure::Failure;
use crate::place::Place;
use crate::run::{cargo, run};

/// What the whole output told.
#[derive(Default)]
struct Reading {
    tally: Tally,
    skipped: BTreeSet<String>,
    failed: Vec<String>,
    /// Tests of which the runner has said that they are long at it.
    long: BTreeSet<String>,
}

/// The longest that no test may end: ten times the slowest one on two busy cores.
const STUCK_AFTER: Duration = Duration::from_secs(600);

/// The seed of all properties (proptest's own variable).
const SEED: &str = "PROPTEST_RNG_SEED";

/// Runs `cargo test` on the default members; the whole output goes to `target/verify/tests.log`.
pub fn run_all(place: &Place) -> Result<Tally, Failure> {
    let folder = place.root.join("target/verify");
    fs::create_dir_all(&folder).map_err(Failure::disk("create", &folder))?;
    let path = folder.join("tests.log");
    let mut log = File::create(&path).map_err(Failure::disk("write", &path))?;
    let failed = |how: String| Failure::Command {
        deed: "cargo test".into(),
        how,
    };
    // Apart from the run, so that no compiler's silence is taken for a test that is stuck.
    let mut build = cargo(&place.root);
    build.args(["test", "--no-run"]);
    if let Err(failure) = run("building the tests", build) {
        eprintln!("    {failure}");
        return Ok(Tally::FAILED);
    }
    let mut test = cargo(&place.root);
    // One verdict for one state of the code: here the random lives come from one seed, unless another one is given. A plain
    // `cargo test` draws new ones.
    if env::var_os(SEED).is_none() {
        test.env(SEED, "20261130");
    }
    // What passing tests print is wanted too: the skipped ones say so there.
    test.args(["test", "--no-fail-fast", "--", "--show-output"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut group = Group::spawn(test).map_err(|e| failed(e.to_string()))?;
    let mut reading = Reading::default();
    if let Some(stdout) = group.leader.stdout.take() {
        let lines = lines_of(stdout);
        loop {
            match lines.recv_timeout(STUCK_AFTER) {
                Ok(line) => {
                    let line = line.map_err(|e| failed(e.to_string()))?;
                    writeln!(log, "{line}").map_err(Failure::disk("write", &path))?;
                    reading.take(&line);
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    reading.stuck();
                    group.end();
                    break;
                }
            }
        }
    }
    let status = group.wait().map_err(|e| failed(e.to_string()))?;
    for name in &reading.skipped {
        eprintln!("    skipped: {name}");
    }
    if !status.success() {
        eprintln!(
            "{}",
            fs::read_to_string(&path).map_err(Failure::disk("read", &path))?
        );
        for name in &reading.failed {
            eprintln!("    failed: {name}");
        }
    }
    let mut tally = reading.tally();
    tally.failed = tally.failed.max(reading.failed.len());
    if !status.success() && tally.failed == 0 {
        // It did not compile, or a test binary died.
        tally += Tally::FAILED;
    }
    if tally.passed == 0 && tally.failed == 0 {
        return Err(Failure::Answer {
            deed: "cargo test",
            why: "not one test was run".into(),
        });
    }
    Ok(tally)
}

/// What it writes, line by line, read by a thread of its own so that silence can be timed.
fn lines_of(stdout: impl Read + Send + 'static) -> mpsc::Receiver<io::Result<String>> {
    let (tell, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).split(b'\n') {
            let line = line.map(|line| String::from_utf8_lossy(&line).into_owned());
            if tell.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

/// A child that leads a process group: the test runner, with all that it starts. The group does not outlive this process:
/// not when it gives up on the way (the drop ends it), and not when it is ended itself (Ctrl-C reaches only its own group;
/// the watch sees its pipe close).
struct Group {
    leader: Child,
    watch: Child,
    over: bool,
}

impl Group {
    /// Starts the leader, and the watch beside it.
    fn spawn(mut command: Command) -> io::Result<Self> {
        let mut leader = command.process_group(0).spawn()?;
        // A line says that all is over; the end of the pipe, that nobody is left to say so.
        let script = r#"read -r over || kill -s KILL -- "-$1""#;
        let watch = Command::new("sh")
            .args(["-c", script, "watch", &leader.id().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        match watch {
            Ok(watch) => Ok(Self {
                leader,
                watch,
                over: false,
            }),
            Err(problem) => {
                kill_group(&leader);
                leader.wait()?;
                Err(problem)
            }
        }
    }

    /// Ends the leader with all that it started, also what is stuck in it.
    fn end(&self) {
        kill_group(&self.leader);
    }

    /// Waits for the leader; after that there is nothing to end.
    fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.leader.wait()?;
        self.over = true;
        if let Some(mut pipe) = self.watch.stdin.take() {
            pipe.write_all(b"over\n")?;
        }
        self.watch.wait()?;
        Ok(status)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.over {
            self.end();
            // Both are ended by what was just done; whether their ends can be read makes no difference any more.
            let _ = self.leader.wait();
            drop(self.watch.stdin.take());
            let _ = self.watch.wait();
        }
    }
}

fn kill_group(leader: &Child) {
    let group = format!("-{}", leader.id());
    let killed = Command::new("kill").args(["-KILL", "--", &group]).status();
    if !killed.is_ok_and(|status| status.success()) {
        eprintln!("    process group {group} could not be ended; way out: `kill -KILL -- {group}`");
    }
}

impl Reading {
    /// No test has ended for too long: those that are at it have failed.
    fn stuck(&mut self) {
        let minutes = STUCK_AFTER.as_secs() / 60;
        let mut names: Vec<_> = std::mem::take(&mut self.long).into_iter().collect();
        if names.is_empty() {
            names.push("a test without a name".to_owned());
        }
        let stuck = names
            .iter()
            .map(|name| format!("{name} (nothing ended for {minutes} min)"));
        self.failed.extend(stuck);
    }

    fn take(&mut self, line: &str) {
        if let Some(counts) = line.strip_prefix("test result: ") {
            self.tally += Tally {
                passed: number_before(counts, " passed"),
                failed: number_before(counts, " failed"),
                skipped: number_before(counts, " ignored"),
            };
        } else if let Some(name) = line.strip_prefix("skipped: ") {
            self.skipped.insert(name.to_owned());
        } else if let Some(test) = line.strip_prefix("test ") {
            if let Some(name) = test.strip_suffix(" has been running for over 60 seconds") {
                self.long.insert(name.to_owned());
            } else if let Some((name, verdict)) = test.split_once(" ... ") {
                self.long.remove(name);
                if verdict == "FAILED" {
                    self.failed.push(name.to_owned());
                }
            }
        }
    }

    /// A test that skipped itself was counted as passed by the test runner.
    fn tally(&self) -> Tally {
        let skipped = self.skipped.len();
        Tally {
            passed: self.tally.passed.saturating_sub(skipped),
            failed: self.tally.failed,
            skipped: self.tally.skipped + skipped,
        }
    }
}

/// The 12 of `ok. 12 passed; ...` for ` passed`; 0 where there is none.
fn number_before(text: &str, word: &str) -> usize {
    let before = text.find(word).map(|end| &text[..end]);
    let digits = before.and_then(|b| b.rsplit(|c: char| !c.is_ascii_digit()).next());
    digits.and_then(|d| d.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(lines: &[&str]) -> Reading {
        let mut reading = Reading::default();
        for line in lines {
            reading.take(line);
        }
        reading
    }

    #[test]
    fn the_results_of_several_test_binaries_add_up() {
        let reading = reading(&[
            "running 12 tests",
            "test engine::a_gang_waits ... FAILED",
            "test result: FAILED. 11 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "test result: ok. 30 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 1.20s",
        ]);
        assert_eq!(
            reading.tally(),
            Tally {
                passed: 41,
                failed: 1,
                skipped: 2
            }
        );
        assert_eq!(reading.failed, ["engine::a_gang_waits"]);
    }

    #[test]
    fn a_test_that_never_ends_fails_by_its_name() {
        let mut reading = reading(&[
            "test settings::grace has been running for over 60 seconds",
            "test settings::notice has been running for over 60 seconds",
            "test settings::grace ... ok",
        ]);
        reading.stuck();
        assert_eq!(
            reading.failed,
            ["settings::notice (nothing ended for 10 min)"]
        );
    }

    /// A group that would be at it for ten minutes, and its lines after the first.
    fn sleepers() -> (Group, mpsc::Receiver<io::Result<String>>) {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "sleep 600 & echo begun; wait"])
            .stdout(Stdio::piped());
        let mut group = Group::spawn(shell).expect("a shell");
        let lines = lines_of(group.leader.stdout.take().expect("piped"));
        let begun = lines.recv_timeout(Duration::from_secs(60));
        assert_eq!(begun.expect("a line").expect("read"), "begun");
        (group, lines)
    }

    /// The sleep held the other end, too: it closes when both are gone.
    fn assert_gone(lines: &mpsc::Receiver<io::Result<String>>) {
        let next = lines.recv_timeout(Duration::from_secs(60));
        assert!(next.is_err_and(|e| e == mpsc::RecvTimeoutError::Disconnected));
    }

    #[test]
    fn what_leads_a_group_is_ended_with_all_that_it_started() {
        let (mut group, lines) = sleepers();
        group.end();
        assert_gone(&lines);
        assert!(!group.wait().expect("ended").success());
    }

    #[test]
    fn a_group_goes_with_whoever_gives_up_on_it() {
        let (group, lines) = sleepers();
        drop(group);
        assert_gone(&lines);
    }

    #[test]
    fn a_group_goes_when_this_process_is_gone() {
        let (mut group, lines) = sleepers();
        // As if it had been killed: its end of the pipe closes, and no drop is run before.
        drop(group.watch.stdin.take());
        assert_gone(&lines);
        assert!(!group.wait().expect("ended").success());
    }

    #[test]
    fn a_group_that_is_waited_for_ends_as_it_ends() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "exit 3"]);
        let mut group = Group::spawn(shell).expect("a shell");
        assert_eq!(group.wait().expect("ended").code(), Some(3));
    }

    #[test]
    fn a_test_that_could_not_run_is_skipped_and_not_passed_however_often_it_says_so() {
        let said = "skipped: phillips_as_recorded: MUSTER_SHARED is not set";
        let result = "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        assert_eq!(
            reading(&[said, said, result]).tally(),
            Tally {
                passed: 2,
                failed: 0,
                skipped: 1
            }
        );
    }
}
