//! Real public traces, where they are at hand: `MUSTER_SHARED` says where.

use simulation::replay::{Mode, Report, Request, run};
use simulation::trace::{parse_tres, read_sacct};
use std::path::PathBuf;

/// The file's bytes, or `None` with a word that the test was skipped.
fn data(test: &str, path: &str) -> Option<Vec<u8>> {
    let Some(shared) = std::env::var_os("MUSTER_SHARED") else {
        println!("skipped: {test} (MUSTER_SHARED is not set)");
        return None;
    };
    let file = PathBuf::from(shared).join("data").join(path);
    Some(std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display())))
}

fn json(bytes: &[u8]) -> serde_json::Value {
    serde_json::from_slice(bytes).expect("the expected output is JSON")
}

fn replayed(trace: &[u8], mode: Mode) -> Report {
    run(&Request {
        trace,
        fleet: None,
        mode: Some(mode),
    })
    .expect("the trace is known")
}

#[test]
fn eleven_days_of_slurm_accounting_give_the_published_hours() {
    let name = "eleven_days_of_slurm_accounting_give_the_published_hours";
    let Some(trace) = data(name, "sacct/phillips.log") else {
        return;
    };
    let Some(golden) = data(name, "golden/xdmod_usage.json") else {
        return;
    };
    let golden = &json(&golden)["phillips.log"];
    let report = replayed(&trace, Mode::AsRecorded);
    assert_eq!(report.value("jobs"), golden["job_count"].to_string());
    assert_eq!(report.broken_rows, 0);
    let hours = [
        ("GPU-hours", "gpu_hours"),
        ("CPU-hours", "cpu_hours"),
        ("node-hours", "node_hours"),
        ("wall-hours", "wall_hours"),
        ("wait-hours", "wait_hours"),
    ];
    for (label, key) in hours {
        assert_eq!(report.value(label), published(&golden[key]), "{label}");
    }
    let by_day = golden["gpu_hours_by_day"].as_object().expect("days");
    let ours: Vec<(String, String)> = report
        .by_day
        .iter()
        .map(|day| (day.day.clone(), day.gpu_hours.clone()))
        .collect();
    let theirs: Vec<(String, String)> = by_day
        .iter()
        .map(|(day, hours)| (day.clone(), published(hours)))
        .collect();
    assert_eq!(ours, theirs);
    assert_eq!(
        (report.value("jobs"), report.value("GPU-hours")),
        ("4046", "506.9128")
    );
}

/// A published number with the four places that it is compared to.
fn published(number: &serde_json::Value) -> String {
    let text = number.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    format!("{whole}.{fraction:0<4}")
}

#[test]
fn gpus_of_slurm_resources_are_counted_as_published() {
    let Some(cases) = data(
        "gpus_of_slurm_resources_are_counted_as_published",
        "sacct/unit/alloc-tres-gpu-count.json",
    ) else {
        return;
    };
    let cases = json(&cases);
    let cases = cases.as_array().expect("a list of cases");
    assert!(!cases.is_empty());
    for case in cases {
        let text = case[0].as_str().expect("a resource string");
        assert_eq!(
            parse_tres(text).map(|tres| tres.gpus).ok(),
            case[1].as_u64(),
            "{text}"
        );
    }
}

#[test]
fn slurm_rows_are_read_as_published() {
    let name = "slurm_rows_are_read_as_published";
    let Some(input) = data(name, "sacct/unit/input/accounting-logs.log") else {
        return;
    };
    let Some(output) = data(name, "sacct/unit/output/accounting-logs.json") else {
        return;
    };
    let read = read_sacct(&input).expect("accounting");
    let output = json(&output);
    let expected = output.as_array().expect("a list of jobs");
    assert_eq!(
        (read.jobs.rows.len(), read.jobs.broken.len()),
        (expected.len(), 0)
    );
    for (job, want) in read.jobs.rows.iter().zip(expected) {
        let seconds = |key: &str| want[key].as_u64().map(|seconds| seconds * 1_000);
        assert_eq!(Some(job.id.as_str()), want["job_id"].as_str());
        assert_eq!(Some(job.submit.0), seconds("submit_time"));
        assert_eq!(job.start.map(|at| at.0), seconds("start_time"));
        assert_eq!(Some(job.end.0), seconds("end_time"));
        assert_eq!(Some(job.elapsed().0), seconds("elapsed"));
        assert_eq!(job.time_limit.map(|limit| limit.0), seconds("timelimit"));
        assert_eq!(Some(job.cpus.to_string().as_str()), want["ncpus"].as_str());
        assert_eq!(
            Some(job.nodes.to_string().as_str()),
            want["nnodes"].as_str()
        );
        assert_eq!(Some(job.gpus), want["ngpus"].as_u64());
        assert_eq!(Some(job.name.as_str()), want["job_name"].as_str());
    }
}

#[test]
fn slurm_arrays_are_told_apart_as_published() {
    let name = "slurm_arrays_are_told_apart_as_published";
    let Some(input) = data(name, "sacct/unit/input/accounting-logs-with-job-arrays.log") else {
        return;
    };
    let Some(output) = data(
        name,
        "sacct/unit/output/accounting-logs-with-job-arrays.json",
    ) else {
        return;
    };
    let read = read_sacct(&input).expect("accounting");
    let tasks: Vec<Vec<u64>> = read.jobs.rows.iter().map(|job| job.tasks.clone()).collect();
    let expected: Vec<Vec<u64>> = serde_json::from_slice(&output).expect("lists of tasks");
    assert_eq!(tasks, expected);
}

#[test]
fn slurm_jobs_that_are_not_over_or_of_no_known_state_are_left_out_and_said() {
    let name = "slurm_jobs_that_are_not_over_or_of_no_known_state_are_left_out_and_said";
    let Some(running) = data(name, "sacct/unit/input/non-ended-job-state.log") else {
        return;
    };
    let Some(unknown) = data(name, "sacct/unit/input/unknown-job-state.log") else {
        return;
    };
    let running = read_sacct(&running).expect("accounting");
    assert_eq!(
        (
            running.jobs.rows.len(),
            running.not_ended,
            running.jobs.broken.len()
        ),
        (0, 2, 0)
    );
    let unknown = read_sacct(&unknown).expect("accounting");
    let told: Vec<String> = unknown
        .jobs
        .broken
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        told,
        [
            "line 1: state is `FOO`, not a job state of Slurm",
            "line 2: state is `BAR`, not a job state of Slurm"
        ]
    );
}

#[test]
fn slurm_names_keep_their_letters() {
    let Some(input) = data(
        "slurm_names_keep_their_letters",
        "sacct/unit/input/utf8-multibyte-chars.log",
    ) else {
        return;
    };
    let read = read_sacct(&input).expect("accounting");
    assert_eq!(read.jobs.rows[0].name, "a\u{e0}b");
}
