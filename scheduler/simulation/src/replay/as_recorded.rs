//! As recorded: starts and ends become usage lines, the ones that bills are made of, and their sum is the answer.
//!
//! The rules, which are those of Open XDMoD's reference (they give its published totals to the last digit):
//! - GPU-, CPU- and node-hours: from start to end, x GPUs, CPUs and nodes that the job had.
//! - wall-hours: from start to end, once for each job.
//! - wait-hours: from submission to start, never below zero, for jobs that started.
//! - a job that was never given a node counts neither as a job nor as waiting.
//! - a day's hours are those inside it, midnight to midnight in UTC: lines are cut there. Its jobs are those that ran
//!   at some moment of it; its wait-hours are those of the jobs that started in it.
//!
//! The lines are written straight from the record, not through the engine's meter: the meter speaks of equal pods on
//! known cards, and a record of 10 GPUs on 3 nodes cannot be said so.

use super::recorded::Recorded;
use super::report::{DayRow, Report, Row};
use super::{Mode, e4_hours};
use crate::trace::{BrokenRow, Format};
use scheduler::{
    Entitlement, FlavourId, JobId, MilliGpuMs, Millis, UnitKind, UsageLine, UsagePhase,
};
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// Sums, exact: thousandths x milliseconds, or milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Jobs.
    pub jobs: u64,
    /// GPU-time.
    pub gpu: MilliGpuMs,
    /// CPU-time in thousandths of a core x ms.
    pub cpu_milli_ms: u128,
    /// Node-time in ms.
    pub node_ms: u128,
    /// Wall time in ms.
    pub wall_ms: u128,
    /// Waiting time in ms.
    pub wait_ms: u128,
}

impl AddAssign<&UsageLine> for Held {
    fn add_assign(&mut self, line: &UsageLine) {
        let span = u128::from(line.to.since(line.from).0);
        self.gpu += line.held();
        self.cpu_milli_ms += u128::from(line.cpu_milli) * span;
        self.node_ms += u128::from(line.nodes) * span;
        self.wall_ms += span;
    }
}

impl Held {
    /// Hours in ten-thousandths: GPU, CPU, node, wall, wait.
    pub fn hours_e4(&self) -> [u128; 5] {
        let milli = |amount: u128| MilliGpuMs(amount).gpu_hours_e4();
        let whole = |ms: u128| milli(ms * 1_000);
        [
            self.gpu.gpu_hours_e4(),
            milli(self.cpu_milli_ms),
            whole(self.node_ms),
            whole(self.wall_ms),
            whole(self.wait_ms),
        ]
    }
}

/// The usage lines of one recorded job, cut on the hour as the product's own are.
pub fn usage_lines(number: JobId, job: &Recorded) -> impl Iterator<Item = UsageLine> {
    let (start, end) = job.ran.unwrap_or_default();
    let cuts = std::iter::successors(Some(start), |cut| Some(cut.hour_floor() + Millis::HOUR));
    cuts.take_while(move |from| *from < end)
        .map(move |from| UsageLine {
            job: number,
            attempt: 1,
            team: job.team.as_str().into(),
            project: String::new(),
            owner: job.owner.as_str().into(),
            flavour: (job.gpus.0 > 0).then(|| FlavourId::from("gpu")),
            entitlement: Entitlement::Own,
            unit: if job.gpus.0.is_multiple_of(1_000) {
                UnitKind::Card
            } else {
                UnitKind::Share
            },
            phase: UsagePhase::Run,
            from,
            to: end.min(from.hour_floor() + Millis::HOUR),
            gpus: job.gpus,
            cpu_milli: job.cpu_milli,
            nodes: job.nodes,
        })
}

/// The sums over everything and by day (days since 1970, UTC).
pub(super) fn sum(jobs: &[Recorded]) -> (Held, BTreeMap<u64, Held>) {
    let mut whole = Held::default();
    let mut days: BTreeMap<u64, Held> = BTreeMap::new();
    for (index, job) in jobs.iter().enumerate() {
        let Some((start, end)) = job.ran else {
            continue;
        };
        let wait = u128::from(start.since(job.submitted).0);
        whole.jobs += 1;
        whole.wait_ms += wait;
        days.entry(day_of(start)).or_default().wait_ms += wait;
        for line in usage_lines(JobId(index as u64 + 1), job) {
            whole += &line;
            *days.entry(day_of(line.from)).or_default() += &line;
        }
        let last = if end > start {
            Millis(end.0 - 1)
        } else {
            start
        };
        for day in day_of(start)..=day_of(last) {
            days.entry(day).or_default().jobs += 1;
        }
    }
    (whole, days)
}

fn day_of(at: Millis) -> u64 {
    at.0 / Millis::DAY.0
}

/// Replays a record as it was.
pub fn as_recorded(format: Format, jobs: &[Recorded], broken: Vec<BrokenRow>) -> Report {
    let (whole, days) = sum(jobs);
    let [gpu, cpu, node, wall, wait] = whole.hours_e4().map(e4_hours);
    let never = jobs.iter().filter(|job| job.ran.is_none()).count();
    let rows = vec![
        Row::new("jobs", whole.jobs.to_string()),
        Row::new("GPU-hours", gpu),
        Row::new("CPU-hours", cpu),
        Row::new("node-hours", node),
        Row::new("wall-hours", wall),
        Row::new("wait-hours", wait),
        Row::new("never given a node", never.to_string()),
    ];
    let by_day = days
        .iter()
        .map(|(day, held)| DayRow::new(day_name(format, *day), held))
        .collect();
    Report {
        format,
        mode: Mode::AsRecorded,
        rows,
        by_day,
        by_team: Vec::new(),
        rules: RULES.map(str::to_owned).to_vec(),
        good_rows: jobs.len() as u64,
        broken_rows: broken.len() as u64,
        warnings: broken,
    }
}

const RULES: [&str; 3] = [
    "hours run from start to end; days are cut at midnight UTC",
    "wait = start - submission, never below zero, on the day of the start",
    "a job that was never given a node counts neither as a job nor as waiting",
];

/// A date for accounting; a number for a trace whose clock starts at zero.
fn day_name(format: Format, day: u64) -> String {
    let at = i64::try_from(day * Millis::DAY.0)
        .ok()
        .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    match (format, at) {
        (Format::Sacct, Some(at)) => jiff::tz::TimeZone::UTC.to_datetime(at).date().to_string(),
        _ => format!("day {day}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scheduler::MilliGpu;

    fn job(submitted: u64, start: u64, end: u64) -> Recorded {
        Recorded {
            name: "1".into(),
            team: "a".into(),
            owner: "b".into(),
            submitted: Millis(submitted),
            ran: Some((Millis(start), Millis(end))),
            gpus: MilliGpu::gpus(2),
            cpu_milli: 12_000,
            nodes: 1,
        }
    }

    #[test]
    fn lines_neither_overlap_nor_leave_a_gap_and_are_cut_on_the_hour() {
        let lines: Vec<UsageLine> = usage_lines(JobId(1), &job(0, 1_800_000, 9_000_000)).collect();
        let stretches: Vec<(u64, u64)> =
            lines.iter().map(|line| (line.from.0, line.to.0)).collect();
        assert_eq!(
            stretches,
            [
                (1_800_000, 3_600_000),
                (3_600_000, 7_200_000),
                (7_200_000, 9_000_000)
            ]
        );
    }

    #[test]
    fn a_job_over_midnight_counts_on_both_days_and_its_wait_on_the_first() {
        let midnight = Millis::DAY.0;
        let (whole, days) = sum(&[job(
            midnight - 7_200_000,
            midnight - 3_600_000,
            midnight + 7_200_000,
        )]);
        assert_eq!(
            whole.hours_e4().map(e4_hours),
            ["6.0000", "36.0000", "3.0000", "3.0000", "1.0000"]
        );
        assert_eq!(
            days[&0].hours_e4().map(e4_hours),
            ["2.0000", "12.0000", "1.0000", "1.0000", "1.0000"]
        );
        assert_eq!((days[&0].jobs, days[&1].jobs, days[&1].wait_ms), (1, 1, 0));
    }

    #[test]
    fn a_job_that_ends_at_midnight_is_not_one_of_the_next_day() {
        let (_, days) = sum(&[job(0, 1_000, Millis::DAY.0), job(0, 5_000, 5_000)]);
        assert_eq!((days.len(), days[&0].jobs), (1, 2));
    }
}
