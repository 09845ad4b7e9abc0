//! One table for people, and the same numbers for programs.

use super::Mode;
use super::as_recorded::Held;
use crate::trace::{BrokenRow, Format};
use scheduler::Millis;
use serde::Serialize;
use std::fmt;

/// A number with its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// What it is.
    pub label: String,
    /// Plain: no separators between thousands.
    pub value: String,
}

impl Row {
    pub(super) fn new(label: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            value: value.into(),
        }
    }
}

/// One day of a record. Hours are plain decimals with four places.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DayRow {
    /// `2016-12-22`, or `day 0` where the trace has no calendar.
    pub day: String,
    /// Jobs that ran in it.
    pub jobs: u64,
    /// GPU-hours inside it.
    pub gpu_hours: String,
    /// CPU-hours inside it.
    pub cpu_hours: String,
    /// Node-hours inside it.
    pub node_hours: String,
    /// Wall-hours inside it.
    pub wall_hours: String,
    /// Wait-hours of the jobs that started in it.
    pub wait_hours: String,
}

impl DayRow {
    pub(super) fn new(day: String, held: &Held) -> Self {
        let [gpu_hours, cpu_hours, node_hours, wall_hours, wait_hours] =
            held.hours_e4().map(e4_hours);
        Self {
            day,
            jobs: held.jobs,
            gpu_hours,
            cpu_hours,
            node_hours,
            wall_hours,
            wait_hours,
        }
    }
}

/// What a replay found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// What was read.
    pub format: Format,
    /// How it was replayed.
    pub mode: Mode,
    /// The numbers.
    pub rows: Vec<Row>,
    /// The same by day; empty for a scheduled replay.
    pub by_day: Vec<DayRow>,
    /// GPU-hours by team; empty for a replay as recorded.
    pub by_team: Vec<Row>,
    /// How the numbers were made, where a trace leaves a choice.
    pub rules: Vec<String>,
    /// How many rows were read and are in it.
    pub good_rows: u64,
    /// How many rows were left out.
    pub broken_rows: u64,
    /// Which, and why.
    pub warnings: Vec<BrokenRow>,
}

impl Report {
    /// Adds how long the replay took, by the caller's clock: there is none here.
    pub fn took(&mut self, wall: Millis) {
        self.rows.push(Row::new(
            "wall time",
            format!("{}.{:03} s", wall.0 / 1_000, wall.0 % 1_000),
        ));
    }

    /// The value of a row; empty when there is none of that name.
    pub fn value(&self, label: &str) -> &str {
        self.rows
            .iter()
            .find(|row| row.label == label)
            .map_or("", |row| row.value.as_str())
    }
}

/// Ten-thousandths of an hour as a plain decimal: `5_069_128` is `506.9128`.
pub fn e4_hours(e4: u128) -> String {
    format!("{}.{:04}", e4 / 10_000, e4 % 10_000)
}

/// Warnings shown in the table; the count is always whole.
const WARNINGS_SHOWN: usize = 20;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.mode {
            Mode::AsRecorded => "as recorded",
            Mode::Schedule => "scheduled by the engine",
        };
        writeln!(f, "{}, {how}\n", self.format)?;
        write_pairs(f, &self.rows)?;
        if !self.by_team.is_empty() {
            writeln!(f, "\nGPU-hours by team")?;
            write_pairs(f, &self.by_team)?;
        }
        if !self.by_day.is_empty() {
            writeln!(f)?;
            write_days(f, &self.by_day)?;
        }
        writeln!(f)?;
        for rule in &self.rules {
            writeln!(f, "rule: {rule}")?;
        }
        for row in self.warnings.iter().take(WARNINGS_SHOWN) {
            writeln!(f, "warning: {row}")?;
        }
        if self.broken_rows > WARNINGS_SHOWN as u64 {
            writeln!(
                f,
                "warning: and {} more",
                self.broken_rows - WARNINGS_SHOWN as u64
            )?;
        }
        writeln!(f, "{} broken rows", self.broken_rows)
    }
}

fn write_pairs(f: &mut fmt::Formatter<'_>, rows: &[Row]) -> fmt::Result {
    let label = rows
        .iter()
        .map(|row| row.label.chars().count())
        .max()
        .unwrap_or(0);
    let value = rows
        .iter()
        .map(|row| grouped(&row.value).chars().count())
        .max()
        .unwrap_or(0);
    for row in rows {
        writeln!(f, "{:label$}  {:>value$}", row.label, grouped(&row.value))?;
    }
    Ok(())
}

fn write_days(f: &mut fmt::Formatter<'_>, days: &[DayRow]) -> fmt::Result {
    let head = [
        "day",
        "jobs",
        "GPU-hours",
        "CPU-hours",
        "node-hours",
        "wall-hours",
        "wait-hours",
    ]
    .map(str::to_owned);
    let cells = days.iter().map(|day| {
        let hours = [
            &day.gpu_hours,
            &day.cpu_hours,
            &day.node_hours,
            &day.wall_hours,
            &day.wait_hours,
        ];
        let [gpu, cpu, node, wall, wait] = hours.map(|hours| grouped(hours));
        [
            day.day.clone(),
            grouped(&day.jobs.to_string()),
            gpu,
            cpu,
            node,
            wall,
            wait,
        ]
    });
    let all: Vec<[String; 7]> = std::iter::once(head).chain(cells).collect();
    let width = |column: usize| {
        all.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: [usize; 7] = std::array::from_fn(width);
    for row in &all {
        write!(f, "{:1$}", row[0], widths[0])?;
        for (cell, width) in row.iter().zip(widths).skip(1) {
            write!(f, "  {cell:>width$}")?;
        }
        writeln!(f)?;
    }
    Ok(())
}

/// A plain decimal with separators between thousands; other text as it is.
fn grouped(plain: &str) -> String {
    let whole = plain.find('.').unwrap_or(plain.len());
    let (digits, rest) = plain.split_at(whole);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return plain.to_owned();
    }
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_text_is_left_alone() {
        assert_eq!(grouped("11767.9883"), "11,767.9883");
        assert_eq!(grouped("4046"), "4,046");
        assert_eq!(grouped("506"), "506");
        assert_eq!(grouped("1 h 20 min"), "1 h 20 min");
    }
}
