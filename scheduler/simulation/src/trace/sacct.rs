//! Slurm accounting: `sacct --parsable2`, times in UTC.

use super::{BrokenRow, Format, RowProblem, Rows, TraceError, expect, number, parse_tres};
use scheduler::Millis;

/// The columns of a file without a header: what Open XDMoD asks `sacct` for.
const COLUMNS: [&str; 26] = [
    "jobid",
    "jobidraw",
    "cluster",
    "partition",
    "qos",
    "account",
    "group",
    "gid",
    "user",
    "uid",
    "submit",
    "eligible",
    "start",
    "end",
    "elapsed",
    "exitcode",
    "state",
    "nnodes",
    "ncpus",
    "reqcpus",
    "reqmem",
    "reqtres",
    "alloctres",
    "timelimit",
    "nodelist",
    "jobname",
];
/// Columns without which nothing can be said.
const NEEDED: [&str; 8] = [
    "jobid",
    "submit",
    "start",
    "end",
    "state",
    "nnodes",
    "ncpus",
    "alloctres",
];
/// States of a job that is over.
const ENDED: [&str; 10] = [
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "REVOKED",
    "TIMEOUT",
];
/// States of a job that is not.
const NOT_ENDED: [&str; 10] = [
    "COMPLETING",
    "CONFIGURING",
    "PENDING",
    "REQUEUED",
    "REQUEUE_HOLD",
    "RESIZING",
    "RUNNING",
    "SIGNALING",
    "STAGE_OUT",
    "SUSPENDED",
];

/// A job that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SacctJob {
    /// Its line in the file, from 1.
    pub line: u64,
    /// Job id as written, without its array part.
    pub id: String,
    /// Tasks of the array in this row, in ascending order; empty for a job that is no array.
    pub tasks: Vec<u64>,
    /// Its name.
    pub name: String,
    /// Who is charged.
    pub account: String,
    /// Whose.
    pub user: String,
    /// When it came in.
    pub submit: Millis,
    /// When it started; `None` = never.
    pub start: Option<Millis>,
    /// When it ended.
    pub end: Millis,
    /// Its state, without who cancelled it.
    pub state: String,
    /// Nodes it had.
    pub nodes: u64,
    /// CPUs it had.
    pub cpus: u64,
    /// GPUs it had.
    pub gpus: u64,
    /// Memory it had, in MiB.
    pub memory_mib: u64,
    /// Its time limit; `None` = none, or not said.
    pub time_limit: Option<Millis>,
    /// False where the record says that it was never given a node.
    pub assigned: bool,
}

impl SacctJob {
    /// How many jobs the row stands for.
    pub fn count(&self) -> u64 {
        self.tasks.len().max(1) as u64
    }

    /// From start to end; zero for a job that never started.
    pub fn elapsed(&self) -> Millis {
        self.start.map_or(Millis(0), |start| self.end.since(start))
    }

    /// True when it was given nodes and started: only such jobs count as jobs and as waiting.
    pub fn ran(&self) -> bool {
        self.assigned && self.start.is_some()
    }
}

/// What a file of accounting says.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SacctRead {
    /// Jobs that are over, and broken rows.
    pub jobs: Rows<SacctJob>,
    /// Rows of jobs that were not over yet: passed over.
    pub not_ended: u64,
    /// Rows of job steps: their job's row counts for them.
    pub steps: u64,
}

/// True for a header line: `JobID|...|State|...`.
pub(super) fn is_header(line: &str) -> bool {
    let names: Vec<String> = line
        .split('|')
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    ["jobid", "start", "end"]
        .iter()
        .all(|name| names.iter().any(|column| column == name))
}

/// True for a row of the 26 columns.
pub(super) fn has_shape(line: &str) -> bool {
    let fields: Vec<&str> = line.splitn(COLUMNS.len(), '|').collect();
    fields.len() == COLUMNS.len() && parse_time(fields[10]).is_some()
}

/// Where each column is.
struct Layout {
    names: Vec<String>,
}

impl Layout {
    fn of(first_line: &str) -> Result<(Self, HeaderLine), TraceError> {
        if !is_header(first_line) {
            return Ok((
                Self {
                    names: COLUMNS.map(str::to_owned).to_vec(),
                },
                HeaderLine::Absent,
            ));
        }
        let names: Vec<String> = first_line
            .split('|')
            .map(|name| name.trim().to_ascii_lowercase())
            .collect();
        let missing: Vec<&str> = NEEDED
            .into_iter()
            .filter(|name| !names.iter().any(|column| column == name))
            .collect();
        if missing.is_empty() {
            Ok((Self { names }, HeaderLine::Present))
        } else {
            Err(TraceError::MissingColumns {
                format: Format::Sacct,
                columns: missing,
            })
        }
    }

    /// The field of a column; empty where the file has no such column.
    fn get<'a>(&self, fields: &[&'a str], column: &str) -> &'a str {
        self.names
            .iter()
            .position(|name| name == column)
            .and_then(|at| fields.get(at))
            .copied()
            .unwrap_or("")
    }
}

#[derive(PartialEq, Eq)]
enum HeaderLine {
    Present,
    Absent,
}

/// Reads a file of accounting.
pub fn read_sacct(bytes: &[u8]) -> Result<SacctRead, TraceError> {
    expect(bytes, Format::Sacct)?;
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let (layout, header) = Layout::of(&String::from_utf8_lossy(lines[0]))?;
    let mut read = SacctRead::default();
    for (index, line) in lines
        .iter()
        .enumerate()
        .skip(usize::from(header == HeaderLine::Present))
    {
        let number = index as u64 + 1;
        match row(&layout, line, number) {
            Ok(Row::Nothing) => {}
            Ok(Row::Step) => read.steps += 1,
            Ok(Row::NotEnded) => read.not_ended += 1,
            Ok(Row::Job(job)) => read.jobs.rows.push(job),
            Err(problem) => read.jobs.broken.push(BrokenRow {
                format: Format::Sacct,
                line: number,
                problem,
            }),
        }
    }
    Ok(read)
}

enum Row {
    Nothing,
    Step,
    NotEnded,
    Job(SacctJob),
}

fn row(layout: &Layout, line: &[u8], number_of_line: u64) -> Result<Row, RowProblem> {
    let text = std::str::from_utf8(line)
        .map_err(|_| RowProblem::NotUtf8)?
        .trim_end_matches('\r');
    if text.trim().is_empty() {
        return Ok(Row::Nothing);
    }
    // The job's name is the last column, and may have the separator in it.
    let fields: Vec<&str> = text.splitn(layout.names.len(), '|').collect();
    if fields.len() != layout.names.len() {
        return Err(RowProblem::FieldCount {
            found: fields.len(),
            wanted: layout.names.len(),
        });
    }
    let get = |column: &str| layout.get(&fields, column);
    let (id, tasks) = parse_id(get("jobid"))?;
    if id.contains('.') {
        return Ok(Row::Step);
    }
    let state = get("state")
        .split_whitespace()
        .next()
        .unwrap_or("")
        .to_owned();
    if NOT_ENDED.contains(&state.as_str()) {
        return Ok(Row::NotEnded);
    }
    if !ENDED.contains(&state.as_str()) {
        return Err(RowProblem::Field {
            field: "state",
            value: state,
            wanted: "a job state of Slurm",
        });
    }
    let tres = parse_tres(get("alloctres")).map_err(|problem| RowProblem::Field {
        field: "alloctres",
        value: problem.part,
        wanted: "a list of NAME=AMOUNT",
    })?;
    let job = SacctJob {
        line: number_of_line,
        id,
        tasks,
        name: get("jobname").to_owned(),
        account: get("account").to_owned(),
        user: get("user").to_owned(),
        submit: time("submit", get("submit"))?,
        start: optional_time("start", get("start"))?,
        end: time("end", get("end"))?,
        state,
        nodes: number("nnodes", get("nnodes"))?,
        cpus: number("ncpus", get("ncpus"))?,
        gpus: tres.gpus,
        memory_mib: tres.memory_mib,
        time_limit: parse_time_limit(get("timelimit"))?,
        assigned: get("nodelist") != "None assigned",
    };
    if job.start.is_some_and(|start| job.end < start) {
        return Err(RowProblem::Backwards {
            earlier: "start",
            later: "end",
        });
    }
    Ok(Row::Job(job))
}

fn time(field: &'static str, value: &str) -> Result<Millis, RowProblem> {
    parse_time(value).ok_or_else(|| RowProblem::Field {
        field,
        value: value.to_owned(),
        wanted: "a time like 2016-12-22T07:15:13",
    })
}

fn optional_time(field: &'static str, value: &str) -> Result<Option<Millis>, RowProblem> {
    if matches!(value, "" | "Unknown" | "None") {
        Ok(None)
    } else {
        time(field, value).map(Some)
    }
}

/// `2016-12-22T07:15:13` in UTC, or seconds since 1970 (`SLURM_TIME_FORMAT=%s`).
fn parse_time(text: &str) -> Option<Millis> {
    if let Ok(seconds) = text.parse::<u64>() {
        return seconds.checked_mul(1_000).map(Millis);
    }
    let civil: jiff::civil::DateTime = text.parse().ok()?;
    let utc = jiff::tz::TimeZone::UTC.to_timestamp(civil).ok()?;
    u64::try_from(utc.as_millisecond()).ok().map(Millis)
}

/// `DAYS-HH:MM:SS`, `HH:MM:SS`, `MM:SS`; words (`UNLIMITED`, `Partition_Limit`) are no limit.
fn parse_time_limit(text: &str) -> Result<Option<Millis>, RowProblem> {
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return Ok(None);
    }
    let problem = || RowProblem::Field {
        field: "timelimit",
        value: text.to_owned(),
        wanted: "DAYS-HH:MM:SS",
    };
    let (days, clock) = text.split_once('-').unwrap_or(("0", text));
    let parts: Vec<u64> = clock
        .split(':')
        .map(str::parse)
        .collect::<Result<_, _>>()
        .map_err(|_| problem())?;
    let seconds = match parts[..] {
        [hours, minutes, seconds] => hours * 3_600 + minutes * 60 + seconds,
        [minutes, seconds] => minutes * 60 + seconds,
        _ => return Err(problem()),
    };
    let days: u64 = days.parse().map_err(|_| problem())?;
    Ok(Some(Millis::seconds(days * 86_400 + seconds)))
}

/// `4103947`, `4103947_100`, `4103947_[9-11,13%2]`: the id and the tasks of the array.
fn parse_id(text: &str) -> Result<(String, Vec<u64>), RowProblem> {
    let problem = || RowProblem::Field {
        field: "jobid",
        value: text.to_owned(),
        wanted: "JOB, JOB_TASK or JOB_[TASKS]",
    };
    if text.is_empty() {
        return Err(problem());
    }
    // A step (`4103947_3.batch`) is told by its point, which no array has.
    let Some((id, tasks)) = text.split_once('_').filter(|_| !text.contains('.')) else {
        return Ok((text.to_owned(), Vec::new()));
    };
    let tasks = tasks
        .strip_prefix('[')
        .and_then(|inner| inner.strip_suffix(']'))
        .unwrap_or(tasks);
    // `%2` says how many tasks may run at once.
    let tasks = tasks.split('%').next().unwrap_or(tasks);
    let mut all = Vec::new();
    for part in tasks.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (last, step) = last.split_once(':').unwrap_or((last, "1"));
        let numbers = (
            first.parse::<u64>(),
            last.parse::<u64>(),
            step.parse::<usize>(),
        );
        let (Ok(first), Ok(last), Ok(step)) = numbers else {
            return Err(problem());
        };
        if first > last || step == 0 || last - first > MOST_TASKS {
            return Err(problem());
        }
        all.extend((first..=last).step_by(step));
    }
    Ok((id.to_owned(), all))
}

/// Slurm's own bound on an array (MaxArraySize): a larger range is a slip of the pen.
const MOST_TASKS: u64 = 4_000_001;

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: &str = "7|7|c|p|q|acct|g|1|ann|2|2016-12-22T07:00:00|2016-12-22T07:00:00|2016-12-22T07:15:13|\
                       2016-12-22T08:15:13|01:00:00|0:0|COMPLETED|1|12|12|1Mn|cpu=12|cpu=12,gres/gpu=2|1-00:00:00|n1|a name";

    fn read(text: &str) -> SacctRead {
        read_sacct(text.as_bytes()).expect("sacct is recognised")
    }

    #[test]
    fn a_row_is_read_whole() {
        let read = read(ROW);
        let job = &read.jobs.rows[0];
        assert_eq!((job.gpus, job.cpus, job.nodes), (2, 12, 1));
        assert_eq!(job.elapsed(), Millis::HOUR);
        assert_eq!(job.time_limit, Some(Millis::DAY));
        assert_eq!(
            (job.account.as_str(), job.user.as_str(), job.name.as_str()),
            ("acct", "ann", "a name")
        );
    }

    #[test]
    fn a_name_may_have_the_separator_in_it() {
        assert_eq!(
            read(&ROW.replace("a name", "a|b|c")).jobs.rows[0].name,
            "a|b|c"
        );
    }

    #[test]
    fn broken_rows_are_named_by_line_and_the_rest_goes_on() {
        let text = [
            ROW,
            "1|2|3",
            &ROW.replace("2016-12-22T08:15:13", "soon"),
            &ROW.replace("T08:15", "T06:15"),
            ROW,
        ]
        .join("\n");
        let read = read(&text);
        assert_eq!(read.jobs.rows.len(), 2);
        let told: Vec<String> = read.jobs.broken.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "line 2: has 3 fields, not 26",
                "line 3: end is `soon`, not a time like 2016-12-22T07:15:13",
                "line 4: end is before start",
            ]
        );
    }

    #[test]
    fn a_row_that_is_no_text_is_broken() {
        let mut bytes = ROW.as_bytes().to_vec();
        bytes.extend_from_slice(b"\n\xff\xfe|\n");
        let read = read_sacct(&bytes).expect("sacct is recognised");
        assert_eq!(read.jobs.broken[0].to_string(), "line 2: is not UTF-8");
    }

    #[test]
    fn a_header_line_may_put_the_columns_in_any_order() {
        let text = "JobID|State|Start|End|Submit|NNodes|NCPUS|AllocTRES\n9|COMPLETED|100|160|40|1|4|gres/gpu:a100=4\n";
        let read = read(text);
        assert_eq!(read.jobs.rows[0].gpus, 4);
        assert_eq!(read.jobs.rows[0].elapsed(), Millis::MINUTE);
    }

    #[test]
    fn a_header_without_what_is_needed_is_told_what() {
        let error = read_sacct(b"JobID|Start|End|State\n")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("submit, nnodes, ncpus, alloctres"),
            "{error}"
        );
    }

    #[test]
    fn steps_and_jobs_that_are_not_over_are_passed_over_and_counted() {
        let step = ROW.replacen("7|7", "7.batch|7.batch", 1);
        let running = ROW
            .replace("COMPLETED", "RUNNING")
            .replace("2016-12-22T08:15:13", "Unknown");
        let read = read(&[ROW, &step, &running].join("\n"));
        assert_eq!(
            (
                read.jobs.rows.len(),
                read.steps,
                read.not_ended,
                read.jobs.broken.len()
            ),
            (1, 1, 1, 0)
        );
    }

    #[test]
    fn arrays_are_counted_by_their_tasks() {
        assert_eq!(
            parse_id("12_[9-11,13%2]"),
            Ok(("12".into(), vec![9, 10, 11, 13]))
        );
        assert_eq!(parse_id("12_[0-6:2]"), Ok(("12".into(), vec![0, 2, 4, 6])));
        assert!(parse_id("12_[4-1]").is_err());
    }

    #[test]
    fn time_limits_are_read_in_every_form() {
        assert_eq!(
            parse_time_limit("37-14:00:00"),
            Ok(Some(Millis::hours(37 * 24 + 14)))
        );
        assert_eq!(parse_time_limit("05:30"), Ok(Some(Millis::seconds(330))));
        assert_eq!(parse_time_limit("UNLIMITED"), Ok(None));
        assert!(parse_time_limit("1-2").is_err());
    }
}
