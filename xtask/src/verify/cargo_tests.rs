//! All Rust tests, counted.
//!
//! A test that cannot run here (a public trace is not there) says so in a line `skipped: NAME: why` and returns; such a test is
//! counted as skipped, not as passed.

use std::collections::BTreeSet;
use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use super::Tally;
use crate::failure::Failure;
use crate::place::Place;
use crate::run::cargo;

/// What the whole output told.
#[derive(Default)]
struct Reading {
    tally: Tally,
    skipped: BTreeSet<String>,
    failed: Vec<String>,
}

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
    let mut test = cargo(&place.root);
    // One verdict for one state of the code: here the random lives come from one seed, unless another one is given. A plain
    // `cargo test` draws new ones.
    if env::var_os(SEED).is_none() {
        test.env(SEED, "20261130");
    }
    // What passing tests print is wanted too: the skipped ones say so there.
    test.args(["test", "--no-fail-fast", "--", "--show-output"])
        .stdout(Stdio::piped());
    let mut child = test.spawn().map_err(|e| failed(e.to_string()))?;
    let mut reading = Reading::default();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n') {
            let line = line.map_err(|e| failed(e.to_string()))?;
            let line = String::from_utf8_lossy(&line);
            writeln!(log, "{line}").map_err(Failure::disk("write", &path))?;
            reading.take(&line);
        }
    }
    let status = child.wait().map_err(|e| failed(e.to_string()))?;
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

impl Reading {
    fn take(&mut self, line: &str) {
        if let Some(counts) = line.strip_prefix("test result: ") {
            self.tally += Tally {
                passed: number_before(counts, " passed"),
                failed: number_before(counts, " failed"),
                skipped: number_before(counts, " ignored"),
            };
        } else if let Some(name) = line.strip_prefix("skipped: ") {
            self.skipped.insert(name.to_owned());
        } else if let Some(name) = line
            .strip_prefix("test ")
            .and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            self.failed.push(name.to_owned());
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
