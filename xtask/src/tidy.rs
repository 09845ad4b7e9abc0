//! What the house asks of every file, as tests: they run with all others.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::files;
use crate::place::workspace_root;

/// A file of ours and its text.
struct Source {
    /// Below the workspace.
    path: PathBuf,
    text: String,
}

/// The folders whose files are ours.
const FOLDERS: [&str; 9] = [
    ".cargo",
    ".ci",
    "app",
    "docs",
    "end2end",
    "public",
    "scheduler",
    "server",
    "xtask",
];
const STYLE: &str = "style";

/// Files at the top.
const FILES: [&str; 4] = ["Cargo.toml", "README.md", "package.json", ".gitignore"];

/// What is read as text.
const TEXT: [&str; 12] = [
    "css", "html", "js", "json", "md", "rs", "sh", "sql", "svg", "toml", "ts", "txt",
];

/// No file is longer.
const LINES_MAX: usize = 600;

fn sources() -> Result<Vec<Source>, Failure> {
    let root = workspace_root();
    let mut paths: Vec<PathBuf> = FILES
        .iter()
        .map(|file| root.join(file))
        .filter(|path| path.exists())
        .collect();
    for folder in FOLDERS.iter().chain([&STYLE]) {
        paths.extend(files::below(&root.join(folder))?);
    }
    let made_by_tools = [
        "node_modules",
        "target",
        "test-results",
        "playwright-report",
    ];
    paths.retain(|path| {
        !path
            .iter()
            .any(|part| made_by_tools.iter().any(|name| part == *name))
    });
    paths.retain(|path| is_text(path));
    paths
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).map_err(Failure::disk("read", &path))?;
            let path = path.strip_prefix(&root).unwrap_or(&path).to_path_buf();
            Ok(Source { path, text })
        })
        .collect()
}

fn is_text(path: &Path) -> bool {
    let ending = path.extension().and_then(|e| e.to_str());
    // Scripts and dot files have no ending.
    ending.is_none_or(|ending| TEXT.contains(&ending))
}

impl Source {
    fn is_rust(&self) -> bool {
        self.path.extension().is_some_and(|e| e == "rs")
    }

    /// These rules quote what they forbid.
    fn is_this_file(&self) -> bool {
        self.path == Path::new("xtask/src/tidy.rs")
    }

    /// `path:line: text` of every line that `is_wrong`.
    fn lines_that(&self, is_wrong: impl Fn(&str) -> bool) -> Vec<String> {
        let lines = self
            .text
            .lines()
            .enumerate()
            .filter(|(_, line)| is_wrong(line));
        lines
            .map(|(i, line)| format!("{}:{}: {}", self.path.display(), i + 1, line.trim()))
            .collect()
    }
}

/// All findings of one rule over the files it is for.
fn findings(
    applies: impl Fn(&Source) -> bool,
    rule: impl Fn(&Source) -> Vec<String>,
) -> Result<Vec<String>, Failure> {
    let sources = sources()?;
    let ours: Vec<&Source> = sources.iter().filter(|source| applies(source)).collect();
    assert!(
        !ours.is_empty(),
        "a rule for which there is no file checks nothing"
    );
    Ok(ours.into_iter().flat_map(rule).collect())
}

fn assert_none(found: Vec<String>, advice: &str) {
    assert!(found.is_empty(), "{advice}:\n{}", found.join("\n"));
}

#[test]
fn no_file_is_longer_than_six_hundred_lines() -> Result<(), Failure> {
    let is_ours = |source: &Source| {
        let ending = source.path.extension().and_then(|e| e.to_str());
        ending.is_some_and(|ending| ["css", "js", "rs", "sql", "ts"].contains(&ending))
    };
    let found = findings(is_ours, |source| {
        let lines = source.text.lines().count();
        let too_long =
            (lines > LINES_MAX).then(|| format!("{}: {lines} lines", source.path.display()));
        too_long.into_iter().collect()
    })?;
    assert_none(found, "split these along their subjects");
    Ok(())
}

#[test]
fn sql_is_only_under_store() -> Result<(), Failure> {
    let statements = [
        "SELECT ",
        "INSERT INTO ",
        "UPDATE ",
        "DELETE FROM ",
        "CREATE TABLE ",
        "PRAGMA ",
    ];
    let outside = |source: &Source| {
        source.is_rust()
            && !source.is_this_file()
            && !source.path.starts_with("server/control/src/store")
    };
    let found = findings(outside, |source| {
        source.lines_that(|line| {
            let quoted = statements
                .iter()
                .any(|statement| line.contains(&format!("\"{statement}")));
            line.contains("sqlx::query") || quoted
        })
    })?;
    assert_none(
        found,
        "ask the store by a function of server/control/src/store",
    );
    Ok(())
}

#[test]
fn the_clock_is_read_in_one_file() -> Result<(), Failure> {
    let readings = [
        "SystemTime::now",
        "Timestamp::now",
        "Zoned::now",
        "Instant::now",
        "Date::now",
        "Utc::now",
    ];
    let outside = |source: &Source| {
        // xtask tells how long a step took, examples measure, and neither takes part in a decision.
        let exempt = source.path.starts_with("xtask")
            || source.path == Path::new("server/control/src/clock.rs");
        let aside = ["benches", "examples", "tests", "tests.rs"];
        let is_aside = source
            .path
            .iter()
            .any(|part| aside.iter().any(|name| part == *name));
        source.is_rust() && !exempt && !is_aside
    };
    let found = findings(outside, |source| {
        source.lines_that(|line| readings.iter().any(|now| line.contains(now)))
    })?;
    assert_none(
        found,
        "take the time from outside: server/control/src/clock.rs reads it",
    );
    Ok(())
}

#[test]
fn no_file_names_the_machine_it_was_written_on() -> Result<(), Failure> {
    let here = workspace_root().display().to_string();
    let folders = [here.as_str(), "/root/", "/home/", "/Users/"];
    let found = findings(
        |source| !source.is_this_file(),
        |source| source.lines_that(|line| folders.iter().any(|folder| line.contains(folder))),
    )?;
    assert_none(found, "name files relative to the workspace");
    Ok(())
}

#[test]
fn paths_named_in_prose_exist() -> Result<(), Failure> {
    let root = workspace_root();
    let found = findings(
        |source| {
            !source.is_this_file() && source.is_rust()
                || source.path.extension().is_some_and(|e| e == "md")
        },
        |source| {
            let prose = source
                .text
                .lines()
                .filter(|line| !source.is_rust() || line.trim_start().starts_with("//"));
            let named = prose
                .flat_map(paths_in)
                .filter(|path| !root.join(path).exists());
            named
                .map(|path| format!("{}: `{path}`", source.path.display()))
                .collect()
        },
    )?;
    assert_none(found, "these are named and not there");
    Ok(())
}

/// What stands in backticks and begins with one of our folders: `server/control/src/clock.rs`, also with `:12` behind it.
fn paths_in(line: &str) -> Vec<&str> {
    let quoted = line.split('`').skip(1).step_by(2);
    quoted.filter_map(path_of).collect()
}

fn path_of(quoted: &str) -> Option<&str> {
    let path = quoted.split(':').next()?;
    let (top, rest) = path.split_once('/')?;
    let is_plain = rest
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
    let is_ours = FOLDERS.contains(&top) || top == STYLE;
    (is_plain && is_ours).then_some(path)
}

#[test]
fn a_path_is_told_from_other_things_in_backticks() {
    let line = "`server/src/main.rs:12` and `cargo demo`, `app/<name>`, `/api/v1/jobs`, `scheduler/src/plan.rs`";
    assert_eq!(
        paths_in(line),
        ["server/src/main.rs", "scheduler/src/plan.rs"]
    );
    assert_eq!(
        paths_in("no quotes, no path: server/src/main.rs"),
        Vec::<&str>::new()
    );
}
