//! The portal as people use it: Playwright in a headless Chromium, on the release server.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Tally, free_port, is_root};
use crate::failure::Failure;
use crate::place::Place;
use crate::run::{run, step};
use crate::toolchain::need_npm_packages;

/// How Debian brings Chromium.
const APT: &str = "apt-get update && apt-get install -y --no-install-recommends chromium";

/// Where distributions put it.
const PROGRAMS: [&str; 3] = [
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
];

/// Runs all browser tests. A browser that is missing is installed where that may be done, and named where not.
pub fn run_all(place: &Place) -> Result<Tally, Failure> {
    need_npm_packages(place)?;
    if !place.muster().is_file() {
        return Err(Failure::NoServer {
            path: place.muster(),
        });
    }
    let chromium = need_chromium()?;
    let folder = place.root.join("target/verify");
    fs::create_dir_all(&folder).map_err(Failure::disk("create", &folder))?;
    let results = folder.join("browser.json");
    let _ = fs::remove_file(&results);
    let mut playwright = Command::new(place.npm_program("playwright"));
    playwright
        .current_dir(place.root.join("end2end"))
        .args(["test", "--reporter=list,json"])
        .env("PLAYWRIGHT_JSON_OUTPUT_FILE", &results)
        .env("CHROMIUM_PATH", chromium)
        .env("MUSTER_BIN", place.muster())
        .env("MUSTER_E2E_PORT", free_port()?.to_string());
    let ended = run("the browser tests", playwright);
    let tally = read(&results)?;
    match ended {
        // It ended badly without a test to blame: the server did not start, or a file does not parse.
        Err(failure) if tally.failed == 0 => Err(failure),
        _ => Ok(tally),
    }
}

fn need_chromium() -> Result<PathBuf, Failure> {
    if let Some(path) = env::var_os("CHROMIUM_PATH") {
        return Ok(PathBuf::from(path));
    }
    if let Some(path) = installed() {
        return Ok(path);
    }
    if is_root() && Path::new("/usr/bin/apt-get").exists() {
        step("Chromium (apt-get)", || {
            let mut apt = Command::new("sh");
            apt.args(["-c", APT])
                .env("DEBIAN_FRONTEND", "noninteractive");
            run(APT, apt)
        })?;
    }
    installed().ok_or(Failure::Chromium { apt: APT })
}

fn installed() -> Option<PathBuf> {
    PROGRAMS
        .iter()
        .map(PathBuf::from)
        .find(|path| path.exists())
}

fn read(results: &Path) -> Result<Tally, Failure> {
    let text = fs::read_to_string(results).map_err(Failure::disk("read", results))?;
    tally_of(&text).ok_or(Failure::Answer {
        deed: "playwright",
        why: "its report holds no counts".into(),
    })
}

/// A test that passed only when tried again counts as failed.
fn tally_of(report: &str) -> Option<Tally> {
    let report: serde_json::Value = serde_json::from_str(report).ok()?;
    let count = |name: &str| {
        report["stats"][name]
            .as_u64()
            .and_then(|n| usize::try_from(n).ok())
    };
    let errors = report["errors"].as_array().map_or(0, Vec::len);
    Some(Tally {
        passed: count("expected")?,
        failed: count("unexpected")? + count("flaky")? + errors,
        skipped: count("skipped")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_needed_a_second_try_is_a_failure() {
        let report = r#"{"stats": {"expected": 9, "unexpected": 1, "flaky": 1, "skipped": 2}, "errors": []}"#;
        assert_eq!(
            tally_of(report),
            Some(Tally {
                passed: 9,
                failed: 2,
                skipped: 2
            })
        );
        assert_eq!(tally_of("{}"), None);
    }
}
