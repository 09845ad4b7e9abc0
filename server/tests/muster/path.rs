//! The whole path: from submit to bill, by command line and by REST.

use crate::harness::{Person, Server, fine_tune, stdout};
use reqwest::StatusCode;
use serde_json::Value;

/// GPU-hours or money in text as a whole number of the last place.
fn exact(value: &Value) -> i128 {
    let text = value.as_str().expect("a decimal in text");
    text.replace('.', "").parse().expect("digits")
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[tokio::test]
async fn a_fine_tune_goes_from_the_command_line_to_the_bill() {
    let server = Server::start(10_000).await;
    let engineer = server.person("fraud-ml.engineer");
    let flags = [
        "--team",
        "fraud-ml",
        "--name",
        "ft-cli",
        "--flavour",
        "h100-80g",
        "--pods",
        "4",
        "--gpus-per-pod",
        "8",
        "--topology",
        "block",
        "--image",
        "fraud/train:4.12",
        "--time-limit",
        "12h",
        "--run-time",
        "2h",
        "--output",
        "json",
    ];
    let dry = engineer.cli(&[&["job", "submit", "--dry-run"][..], &flags].concat());
    let dry = json_of(&stdout(&dry));
    assert_eq!(dry["spec"]["pods"], 4);
    let ended = engineer.cli(&[&["job", "submit", "--wait"][..], &flags].concat());
    let job = json_of(&stdout(&ended));
    assert_eq!(job["state"], "succeeded");
    assert_lies_in_one_block(&job);
    assert_is_billed(&engineer, &job).await;
}

#[tokio::test]
async fn what_can_never_run_is_not_waited_for() {
    let server = Server::start(60).await;
    let engineer = server.person("fraud-ml.engineer");
    let flags = [
        "--team",
        "fraud-ml",
        "--name",
        "too-big",
        "--flavour",
        "h100-80g",
        "--pods",
        "1025",
    ];
    let more = [
        "--gpus-per-pod",
        "8",
        "--image",
        "x/y:1",
        "--time-limit",
        "8h",
    ];
    let waited = engineer.cli(&[&["job", "submit", "--wait"][..], &flags, &more].concat());
    assert_eq!(waited.status.code(), Some(4));
    let said = String::from_utf8_lossy(&waited.stderr);
    assert!(
        said.contains("can never run: asks 8,200 GPUs") && said.contains("job cancel"),
        "{said}"
    );
    let told = engineer.cli(&[&["job", "submit"][..], &flags, &more].concat());
    let said = String::from_utf8_lossy(&told.stderr);
    assert!(
        told.status.success() && said.contains("can never run"),
        "{said}"
    );
}

#[tokio::test]
async fn a_fine_tune_goes_through_rest_to_the_bill() {
    let server = Server::start(10_000).await;
    let engineer = server.person("fraud-ml.engineer");
    let (status, submitted) = engineer.submit(&fine_tune("ft-rest"), "one").await;
    assert_eq!(status, StatusCode::CREATED, "{submitted}");
    let id = submitted["id"].as_u64().expect("an id");
    let first = engineer.get(&format!("/jobs/{id}")).await;
    assert!(
        first["state"] != "queued" || first["reason"]["text"].is_string(),
        "a waiting job says why: {first}"
    );
    let job = engineer
        .job_until(id, |job| job["state"] == "succeeded")
        .await;
    assert_lies_in_one_block(&job);
    assert!(
        job["checkpoint_count"]
            .as_u64()
            .is_some_and(|count| count >= 3),
        "it saved every half hour of two: {job}"
    );
    let events = engineer.get(&format!("/jobs/{id}/events?limit=1000")).await;
    let seqs: Vec<_> = events
        .as_array()
        .expect("a list")
        .iter()
        .map(|event| event["seq"].as_u64())
        .collect();
    assert!(seqs.len() >= 4 && seqs.is_sorted(), "{events}");
    assert_is_billed(&engineer, &job).await;
}

fn assert_lies_in_one_block(job: &Value) {
    let place = &job["placement"];
    assert_eq!(place["blocks"].as_array().map(Vec::len), Some(1), "{place}");
    let mut nodes: Vec<_> = place["nodes"]
        .as_array()
        .expect("nodes")
        .iter()
        .map(Value::to_string)
        .collect();
    nodes.sort();
    nodes.dedup();
    assert_eq!(nodes.len(), 4, "{place}");
}

/// The job's usage lines, its own page and the month's bill say the same.
async fn assert_is_billed(person: &Person, job: &Value) {
    let id = job["id"].as_u64().expect("an id");
    let bill = person.get("/bills/fraud-ml").await;
    let months = bill["months"].as_array().expect("months").clone();
    let (mut billed_hours, mut billed_cents, mut held) = (0, 0, 0);
    for month in months.iter().filter_map(Value::as_str) {
        let bill = person.get(&format!("/bills/fraud-ml?month={month}")).await;
        let lines = bill["lines"].as_array().expect("lines");
        for line in lines.iter().filter(|line| line["job"] == id) {
            billed_hours += exact(&line["gpu_hours"]);
            billed_cents += exact(&line["amount"]);
        }
        let sum: i128 = lines.iter().map(|line| exact(&line["amount"])).sum();
        assert_eq!(
            sum,
            exact(&bill["totals"]["amount"]),
            "the lines add up to the total"
        );
        let usage = person
            .get(&format!(
                "/usage?team=fraud-ml&month={month}&job={id}&limit=1000"
            ))
            .await;
        let lines = usage.as_array().expect("lines");
        held += lines
            .iter()
            .map(|line| {
                line["milli_gpu_ms"]
                    .as_str()
                    .and_then(|text| text.parse().ok())
                    .unwrap_or(0)
            })
            .sum::<i128>();
    }
    let of_job = &job["bill"];
    assert!(
        held >= 32 * 2 * 3_600_000_000,
        "it held 32 GPUs for at least two hours: {held}"
    );
    assert!(
        (billed_hours - held * 10_000 / 3_600_000_000).abs() <= 2,
        "billed {billed_hours}, held {held}"
    );
    assert!(
        (billed_cents - exact(&of_job["amount"])).abs() <= 2,
        "billed {billed_cents}, its page {of_job}"
    );
    let rate = |name: &str| exact(&of_job[name]);
    let by_hand = exact(&of_job["own_gpu_hours"]) * rate("own_rate")
        + exact(&of_job["borrowed_gpu_hours"]) * rate("borrowed_rate");
    assert!(
        (by_hand / 10_000 - exact(&of_job["amount"])).abs() <= 2,
        "GPU-hours x rate is the amount: {of_job}"
    );
}

#[tokio::test]
async fn the_same_key_is_the_same_job_and_with_another_spec_a_conflict() {
    let server = Server::start(60).await;
    let engineer = server.person("fraud-ml.engineer");
    let (first, made) = engineer.submit(&fine_tune("once"), "k-1").await;
    let (second, again) = engineer.submit(&fine_tune("once"), "k-1").await;
    assert_eq!((first, second), (StatusCode::CREATED, StatusCode::OK));
    assert_eq!(
        (made["id"].clone(), made["repeated"].clone()),
        (again["id"].clone(), Value::Bool(false))
    );
    assert_eq!(again["repeated"], true);
    let (status, problem) = engineer.submit(&fine_tune("twice"), "k-1").await;
    assert_eq!(
        (status, problem["type"].as_str()),
        (StatusCode::CONFLICT, Some("/problems/key-reused"))
    );
    let lead = server.person("fraud-ml.lead");
    let (status, other) = lead.submit(&fine_tune("once"), "k-1").await;
    assert_eq!(
        status,
        StatusCode::CREATED,
        "a key is its person's own: {other}"
    );
}

#[tokio::test]
async fn what_can_never_run_is_queued_and_says_so() {
    let server = Server::start(60).await;
    let engineer = server.person("fraud-ml.engineer");
    let mut spec = fine_tune("too-big");
    spec["pods"] = 1025.into();
    spec["topology"] = "any".into();
    let (status, submitted) = engineer.submit(&spec, "big").await;
    assert_eq!(status, StatusCode::CREATED, "{submitted}");
    let id = submitted["id"].as_u64().expect("an id");
    let job = engineer
        .job_until(id, |job| job["reason"].is_object())
        .await;
    assert_eq!(
        (job["state"].as_str(), job["reason"]["never"].as_bool()),
        (Some("queued"), Some(true))
    );
    let text = job["reason"]["text"].as_str().unwrap_or_default();
    assert!(
        text.contains("asks 8,200 GPUs, the fleet has 4,096"),
        "{text}"
    );
    let cancelled = engineer.cli(&[
        "job",
        "cancel",
        &id.to_string(),
        "--why",
        "too big",
        "--output",
        "json",
    ]);
    assert_eq!(json_of(&stdout(&cancelled))["state"], "cancelled");
}

#[tokio::test]
async fn tables_are_for_people_and_the_box_needs_no_token() {
    let server = Server::start(60).await;
    let engineer = server.person("fraud-ml.engineer");
    for (args, said) in [
        (&["job", "list", "--limit", "5"][..], "QUEUED"),
        (&["team", "list"], "fraud-ml"),
        (&["team", "show", "fraud-ml"], "fraud-ml.engineer"),
        (&["quota", "show"], "company"),
        (&["node", "list"], "HEALTH"),
        (&["reclaim", "list", "--stage", "any"], "for you to answer"),
        (&["bill", "show"], "total"),
        (&["bill", "show", "fraud-ml"], "fraud-ml"),
    ] {
        let text = stdout(&engineer.cli(args));
        assert!(
            text.to_lowercase().contains(&said.to_lowercase()),
            "{args:?}: {text}"
        );
    }
    let listed = stdout(&engineer.cli(&["reclaim", "list", "--output", "json"]));
    let by_rest = engineer
        .get("/reclaims?stage=requested,approved,made")
        .await;
    assert_eq!(json_of(&listed)["total"], by_rest["total"]);
    let refused = engineer.cli(&["reclaim", "decline", "999999", "--reason", "not now"]);
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("there is no reclaim 999999"), "{said}");
    let data = server.data.to_str().expect("a path");
    let team = stdout(&engineer.cli(&[
        "team", "show", "fraud-ml", "--data", data, "--output", "json",
    ]));
    let people = json_of(&team)["people"].clone();
    let by_rest = engineer.get("/teams/fraud-ml").await["people"].clone();
    assert_eq!(people, by_rest, "one view of a team's people for all doors");
    for person in people.as_array().expect("people") {
        let known: Vec<_> = person.as_object().expect("a person").keys().collect();
        assert_eq!(known, ["id", "name", "role"], "and nothing of other teams");
    }
    let lead = people
        .as_array()
        .expect("people")
        .iter()
        .find(|person| person["id"] == "fraud-ml.lead");
    assert_eq!(
        lead.map(|person| person["role"].clone()),
        Some("lead".into()),
        "{people}"
    );
    let verified =
        json_of(&stdout(&engineer.cli(&[
            "journal", "verify", "--data", data, "--output", "json",
        ])));
    assert!(
        verified["events"].as_u64().is_some_and(|events| events > 0),
        "{verified}"
    );
    let nobody = Person {
        token: String::new(),
        ..engineer
    };
    let refused = nobody.cli(&["job", "list"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("muster token create"));
}
