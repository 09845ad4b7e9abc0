//! What was once written stays readable: every kind of event that there is has a line in `fixtures/facts.jsonl`, as some
//! version wrote it, and every line still says the same.

use scheduler::Event;
use serde_json::Value;
use simulation::trial::{self, Rule, Seen};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Lists of the code whose every variant is written in some event.
const LISTS: [&str; 4] = ["event", "stop by", "end", "withdrawal by"];

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/facts.jsonl")
}

/// What no line shows.
fn missing(lines: &str) -> Vec<Rule> {
    let mut seen = Seen::default();
    for line in lines.lines() {
        seen.event(&parse(line));
    }
    let missing = seen.missing().into_iter();
    missing.filter(|rule| LISTS.contains(&rule.list)).collect()
}

fn parse(line: &str) -> Event {
    serde_json::from_str(line).unwrap_or_else(|error| {
        panic!("a line that was once written is not read any more: {error}\n{line}")
    })
}

/// Adds a line for everything that has none, out of the simulation's lives; never touches those that are there.
fn append_missing(lines: &mut String) {
    let mut wanted: BTreeSet<Rule> = missing(lines).into_iter().collect();
    for seed in 1..=20 {
        if wanted.is_empty() {
            return;
        }
        for line in trial::journal(seed, 5_000).expect("a life") {
            let mut shows = Seen::default();
            shows.event(&parse(&line));
            let shown: Vec<Rule> = shows.counts().map(|(rule, _)| rule).collect();
            if shown.iter().any(|rule| wanted.contains(rule)) {
                wanted.retain(|rule| !shown.contains(rule));
                writeln!(lines, "{line}").expect("written to a string");
            }
        }
    }
}

#[test]
fn every_kind_of_event_has_a_line_that_was_once_written() {
    let mut lines = std::fs::read_to_string(path()).unwrap_or_default();
    if std::env::var("MUSTER_FIXTURES").as_deref() == Ok("append") {
        append_missing(&mut lines);
        std::fs::write(path(), &lines).expect("written");
    }
    let missing: Vec<String> = missing(&lines).iter().map(Rule::to_string).collect();
    assert!(
        missing.is_empty(),
        "no line of server/control/tests/fixtures/facts.jsonl shows: {}. \
         `MUSTER_FIXTURES=append cargo test -p control --test wire` adds one of each from the simulation's lives; \
         commit it, and change no line that was there",
        missing.join(", ")
    );
}

#[test]
fn every_line_says_what_it_said() {
    let lines = std::fs::read_to_string(path()).expect("the fixture");
    assert!(lines.lines().count() > 30);
    for line in lines.lines() {
        let was: Value = serde_json::from_str(line).expect("JSON");
        let is = serde_json::to_value(parse(line)).expect("an event has a JSON form");
        assert_eq!(lost(&was, &is), None, "{line}\nis now\n{is}");
    }
}

/// The first value of `was` that is not in `is`. New fields may come, since old entries are read without them.
fn lost(was: &Value, is: &Value) -> Option<String> {
    match (was, is) {
        (Value::Object(was), Value::Object(is)) => {
            was.iter().find_map(|(key, value)| match is.get(key) {
                Some(now) => lost(value, now).map(|path| format!("{key}.{path}")),
                None => Some(key.clone()),
            })
        }
        (Value::Array(was), Value::Array(is)) if was.len() == is.len() => {
            was.iter().zip(is).find_map(|(was, is)| lost(was, is))
        }
        _ => (was != is).then(|| format!("{was} became {is}")),
    }
}
