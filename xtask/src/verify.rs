//! `cargo verify`: everything that is checked, step by step, each with its time, and a closing count.
//!
//! A step that fails does not end the run: the steps after it still tell what they find. Each step that is not a test run counts
//! as one.

use std::env;
use std::io::Write;
use std::ops::AddAssign;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use crate::bundle;
use crate::demo::release_server;
use crate::failure::Failure;
use crate::place::Place;
use crate::run::{cargo, kilobytes, run, seconds};
use crate::toolchain::{WASM, need_component, need_wasm_target};

mod arrows;
mod browser;
mod budget;
mod cargo_tests;

/// What a step found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Tests, or steps, that did what they should.
    pub passed: usize,
    /// Those that did not.
    pub failed: usize,
    /// Those that could not be run here, each named in the output.
    pub skipped: usize,
}

impl Tally {
    /// One step done.
    const DONE: Tally = Tally {
        passed: 1,
        failed: 0,
        skipped: 0,
    };
    /// One step failed.
    const FAILED: Tally = Tally {
        passed: 0,
        failed: 1,
        skipped: 0,
    };
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// A named check.
type Step = (&'static str, fn(&Place) -> Result<Tally, Failure>);

/// Cheap ones first; the site before the crates that embed it; the browser last, since it needs all the others' work.
const STEPS: [Step; 10] = [
    ("format", format),
    ("arrows between crates", arrows),
    ("the browser's part stays light", light),
    ("the site and its budget", site),
    ("clippy", clippy),
    ("clippy for wasm", clippy_for_wasm),
    ("tests", cargo_tests::run_all),
    ("documentation", documentation),
    ("release server", server),
    ("browser tests", browser::run_all),
];

/// Runs every step. The count is the last line, so what failed is only told by the exit code.
pub fn verify(place: &Place) -> ExitCode {
    if env::var_os("MUSTER_SHARED").is_none() {
        eprintln!("MUSTER_SHARED is not set: tests on the public traces will be skipped");
    }
    let mut total = Tally::default();
    let mut lines = Vec::new();
    for (name, step) in STEPS {
        eprintln!("==> {name}");
        let start = Instant::now();
        let tally = step(place).unwrap_or_else(|failure| {
            eprintln!("error: {failure}");
            Tally::FAILED
        });
        let line = line_of(name, tally, start.elapsed());
        eprintln!("    {line}");
        lines.push(line);
        total += tally;
    }
    eprintln!();
    for line in lines {
        eprintln!("{line}");
    }
    println!(
        "{} passed, {} failed, {} skipped",
        total.passed, total.failed, total.skipped
    );
    // The count is the last word, whichever way the output is buffered.
    let _ = std::io::stdout().flush();
    if total.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn line_of(name: &str, tally: Tally, time: Duration) -> String {
    let verdict = if tally.failed == 0 {
        "ok    "
    } else {
        "FAILED"
    };
    let count = match tally {
        Tally::DONE | Tally::FAILED => String::new(),
        Tally {
            passed,
            failed,
            skipped,
        } => format!(" ({passed} passed, {failed} failed, {skipped} skipped)"),
    };
    format!("{verdict} {:>8}  {name}{count}", seconds(time))
}

fn format(place: &Place) -> Result<Tally, Failure> {
    need_component("rustfmt", "fmt")?;
    let mut fmt = cargo(&place.root);
    fmt.args(["fmt", "--all", "--check"]);
    run("cargo fmt --check", fmt).map(|()| Tally::DONE)
}

fn clippy(place: &Place) -> Result<Tally, Failure> {
    need_component("clippy", "clippy")?;
    let mut clippy = cargo(&place.root);
    clippy.args([
        "clippy",
        "--all-targets",
        "--keep-going",
        "--",
        "-D",
        "warnings",
    ]);
    run("cargo clippy", clippy).map(|()| Tally::DONE)
}

fn clippy_for_wasm(place: &Place) -> Result<Tally, Failure> {
    need_wasm_target()?;
    let mut clippy = cargo(&place.root);
    clippy.args([
        "clippy",
        "--package",
        "hydrate",
        "--target",
        WASM,
        "--",
        "-D",
        "warnings",
    ]);
    run("cargo clippy of hydrate", clippy).map(|()| Tally::DONE)
}

fn documentation(place: &Place) -> Result<Tally, Failure> {
    let mut doc = cargo(&place.root);
    doc.args(["doc", "--no-deps", "--document-private-items", "--quiet"])
        .env("RUSTDOCFLAGS", "-D warnings");
    run("cargo doc", doc).map(|()| Tally::DONE)
}

fn arrows(place: &Place) -> Result<Tally, Failure> {
    report("arrows", arrows::wrong_arrows(place)?)
}

fn light(place: &Place) -> Result<Tally, Failure> {
    report("hydrate", arrows::heavy_packages(place)?)
}

fn site(place: &Place) -> Result<Tally, Failure> {
    let manifest = bundle::bundle(place)?;
    eprintln!(
        "    wasm {} of {}, Chart.js {} of {} (brotli)",
        kilobytes(manifest.wasm_br_bytes),
        kilobytes(budget::WASM_BR_BYTES_MAX),
        kilobytes(manifest.chart_br_bytes),
        kilobytes(budget::CHART_BR_BYTES_MAX)
    );
    report("budget", budget::over(&manifest))
}

fn server(place: &Place) -> Result<Tally, Failure> {
    release_server(place).map(|()| Tally::DONE)
}

/// Prints what was found; nothing found is a pass.
fn report(what: &str, found: Vec<String>) -> Result<Tally, Failure> {
    for line in &found {
        eprintln!("    {what}: {line}");
    }
    Ok(if found.is_empty() {
        Tally::DONE
    } else {
        Tally::FAILED
    })
}

/// A port that nobody listens on, for a server that a test starts.
pub fn free_port() -> Result<u16, Failure> {
    let deed = "looking for a free port";
    let listener = std::net::TcpListener::bind("127.0.0.1:0");
    let address = listener.and_then(|l| l.local_addr());
    address.map(|a| a.port()).map_err(|e| Failure::Answer {
        deed,
        why: e.to_string(),
    })
}

/// Whether this process may install packages of the system.
pub fn is_root() -> bool {
    Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_fails_is_named_as_failed_and_a_test_run_shows_its_counts() {
        let time = Duration::from_millis(1_250);
        assert_eq!(
            line_of("clippy", Tally::DONE, time),
            "ok        1.2 s  clippy"
        );
        assert_eq!(
            line_of("clippy", Tally::FAILED, time),
            "FAILED    1.2 s  clippy"
        );
        let tests = Tally {
            passed: 7,
            failed: 2,
            skipped: 1,
        };
        assert_eq!(
            line_of("tests", tests, time),
            "FAILED    1.2 s  tests (7 passed, 2 failed, 1 skipped)"
        );
    }
}
