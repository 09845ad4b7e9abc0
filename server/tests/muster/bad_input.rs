//! What is wrong is named, by the field, and nothing is half done.

use crate::harness::{Browser, Server, fine_tune, muster, output_of};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, RequestBuilder};
use serde_json::Value;

/// Sends it and expects a problem with this status that names these fields.
async fn check(request: RequestBuilder, status: u16, fields: &[&str], what: &str) {
    let answer = request.send().await.expect("an answer");
    assert_eq!(answer.status().as_u16(), status, "{what}");
    assert_eq!(
        answer.headers()[CONTENT_TYPE],
        "application/problem+json",
        "{what}"
    );
    let id = answer.headers()["x-request-id"].clone();
    let problem: Value = answer.json().await.expect(what);
    assert_eq!(
        (problem["status"].as_u64(), problem["request_id"].as_str()),
        (Some(status.into()), id.to_str().ok()),
        "{what}"
    );
    for text in ["type", "title", "detail"] {
        assert!(
            problem[text].as_str().is_some_and(|text| !text.is_empty()),
            "{what}: {problem}"
        );
    }
    let named: Vec<_> = problem["errors"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|error| error["field"].as_str())
        .collect();
    assert_eq!(named, fields, "{what}: {problem}");
}

#[tokio::test]
async fn every_wrong_request_is_a_problem_that_names_its_fields() {
    let server = Server::start(60).await;
    let engineer = server.person("fraud-ml.engineer");
    let before = engineer.get("/jobs?owner=fraud-ml.engineer&limit=1").await["total"].clone();
    let good = fine_tune("good").to_string();
    let bodies = [
        ("{\"team\":", 400, &[][..]),
        ("[]", 422, &["body"]),
        (
            &good.replace("\"pods\":4", "\"pods\":\"four\""),
            422,
            &["pods"],
        ),
        (&good.replace("\"pods\":4", "\"pods\":0"), 422, &["pods"]),
        (&good.replace("\"pods\":4", "\"pods\":-1"), 422, &["pods"]),
        (
            &good.replace("\"pods\":4", "\"pods\":99999999999"),
            422,
            &["pods"],
        ),
        (
            &good.replace("\"gpus_per_pod\":8", "\"gpus_per_pod\":1.5"),
            422,
            &["gpus_per_pod"],
        ),
        (
            &good.replace("\"gpus_per_pod\":8", "\"gpus_per_pod\":-8"),
            422,
            &["gpus_per_pod"],
        ),
        (&good.replace("fraud-ml", "nobody-ml"), 422, &["team"]),
        (
            &good
                .replace("\"good\"", "\"Not Good\"")
                .replace("\"block\"", "\"galaxy\""),
            422,
            &["name", "topology"],
        ),
        (&good.replace("h100-80g", "abacus"), 422, &["flavours"]),
        (&good.replace("\"12h\"", "\"soon\""), 422, &["time_limit"]),
        (&good.replace("\"image\"", "\"picture\""), 422, &["picture"]),
        (
            &good.replace("\"30m\"", "\"45s\""),
            422,
            &["checkpoint.period"],
        ),
    ];
    for (body, status, fields) in bodies {
        let request = engineer
            .request(Method::POST, "/jobs")
            .header(CONTENT_TYPE, "application/json")
            .body(body.to_owned());
        check(request, status, fields, body).await;
    }
    let post = |kind: &str, body: &str| {
        engineer
            .request(Method::POST, "/jobs")
            .header(CONTENT_TYPE, kind)
            .body(body.to_owned())
    };
    check(
        post("application/x-www-form-urlencoded", &good),
        415,
        &[],
        "a form",
    )
    .await;
    check(
        post("application/toml", "team = fraud"),
        400,
        &[],
        "no TOML",
    )
    .await;
    check(
        post("application/toml", "team = 7"),
        422,
        &["team"],
        "TOML of a wrong type",
    )
    .await;
    check(
        post("application/yaml", "team: [fraud-ml]"),
        422,
        &["team"],
        "YAML of a wrong type",
    )
    .await;
    check(
        post("application/json", &" ".repeat((1 << 20) + 1)),
        413,
        &[],
        "too large",
    )
    .await;
    let key = post("application/json", &good).header("Idempotency-Key", "");
    check(key, 400, &["Idempotency-Key"], "an empty key").await;
    let after = engineer.get("/jobs?owner=fraud-ml.engineer&limit=1").await["total"].clone();
    assert_eq!(before, after, "nothing was submitted");
}

#[tokio::test]
async fn every_wrong_address_or_query_is_a_problem() {
    let server = Server::start(60).await;
    let engineer = server.person("fraud-ml.engineer");
    for (method, path, status, fields) in [
        (Method::GET, "/jobs?limit=0", 400, &["limit"][..]),
        (
            Method::GET,
            "/jobs?limit=many&state=asleep&sort=up",
            400,
            &["state", "sort", "limit"],
        ),
        (Method::GET, "/jobs?colour=red", 400, &["colour"]),
        (Method::GET, "/jobs?team=a&team=b", 400, &["team"]),
        (Method::GET, "/jobs?after=nowhere", 400, &["after"]),
        (Method::GET, "/jobs/0", 404, &[]),
        (Method::GET, "/jobs/999999999", 404, &[]),
        (Method::GET, "/jobs/abc", 404, &[]),
        (Method::GET, "/jobs/1?verbose=true", 400, &["verbose"]),
        (Method::GET, "/jobs/%ff", 400, &[]),
        (Method::GET, "/usage", 400, &["team"]),
        (Method::GET, "/bills?month=2026-13", 400, &["month"]),
        (Method::GET, "/bills?month=1970-01", 400, &["month"]),
        (Method::GET, "/bills?month=9999-12", 400, &["month"]),
        (Method::GET, "/bills?month=", 400, &["month"]),
        (
            Method::GET,
            "/bills/fraud-ml?month=9999-12",
            400,
            &["month"],
        ),
        (
            Method::GET,
            "/bills/fraud-ml.csv?month=1970-01",
            400,
            &["month"],
        ),
        (
            Method::GET,
            "/usage?team=fraud-ml&month=9999-12",
            400,
            &["month"],
        ),
        (
            Method::GET,
            "/usage?team=fraud-ml&limit=1001",
            400,
            &["limit"],
        ),
        (Method::GET, "/jobs/1/events?limit=1001", 400, &["limit"]),
        (Method::GET, "/bills/no-such-team", 404, &[]),
        (Method::GET, "/teams/no-such-team", 404, &[]),
        (Method::GET, "/nothing", 404, &[]),
        (Method::DELETE, "/jobs", 405, &[]),
    ] {
        check(engineer.request(method, path), status, fields, path).await;
    }
}

#[tokio::test]
async fn a_month_that_is_none_is_refused_alike_by_every_door() {
    let server = Server::start(60).await;
    let engineer = server.person("fraud-ml.engineer");
    let (browser, _) = Browser::sign_in(&server, "fraud-ml.engineer", "/").await;
    for month in ["2026-13", "1970-01", "9999-01", "9999-12", "soon"] {
        for path in [
            "/bills",
            "/bills.csv",
            "/bills/fraud-ml",
            "/bills/fraud-ml.csv",
        ] {
            let answer = browser.get(&format!("{path}?month={month}")).await;
            assert_eq!(answer.status().as_u16(), 400, "{path} {month}");
            let page = answer.text().await.expect("a page");
            assert!(page.contains("month:"), "{path} {month}: {page}");
        }
        let refused = engineer.cli(&["bill", "show", "fraud-ml", "--month", month]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{month}: {said}");
        assert!(said.starts_with("muster: month: "), "{month}: {said}");
    }
    for path in ["/queue?state=asleep", "/queue?after=nowhere"] {
        assert_eq!(browser.get(path).await.status().as_u16(), 400, "{path}");
    }
}

#[tokio::test]
async fn the_command_line_says_each_wrong_field_in_a_line() {
    let server = Server::start(60).await;
    let engineer = server.person("fraud-ml.engineer");
    let args = [
        "job",
        "submit",
        "--team",
        "fraud-ml",
        "--name",
        "Bad Name",
        "--image",
        "a b",
        "--gpus-per-pod",
        "8",
        "--flavour",
        "h100-80g",
    ];
    let refused = engineer.cli(&args);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    let lines: Vec<_> = said.lines().collect();
    assert!(
        lines.len() == 2
            && lines[0].starts_with("muster: name: ")
            && lines[1].starts_with("muster: image: "),
        "{said}"
    );
    assert_eq!(
        engineer
            .cli(&["job", "submit", "--pods", "four"])
            .status
            .code(),
        Some(2)
    );
}

#[test]
fn a_demo_that_cannot_start_says_why_and_what_to_do() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = taken.local_addr().expect("an address").to_string();
    let file = tempfile::NamedTempFile::new().expect("a file");
    let inside = file.path().join("data");
    let inside = inside.to_str().expect("a path");
    for (args, why, way_out) in [
        (["--addr", &addr, "--data", "unused"], "is taken", "--addr"),
        (
            ["--addr", "0.0.0.0:0", "--data", "unused"],
            "not a loopback address",
            "127.0.0.1",
        ),
        (
            ["--addr", "nonsense", "--data", "unused"],
            "no address",
            "127.0.0.1:3000",
        ),
        (
            ["--addr", "127.0.0.1:0", "--data", inside],
            "data folder",
            "--data",
        ),
    ] {
        let ended = output_of(muster().arg("demo").args(args));
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(1), "{args:?}: {said}");
        let line = said
            .lines()
            .find(|line| line.starts_with("muster: "))
            .unwrap_or_default();
        assert!(
            line.contains(why) && line.contains(way_out),
            "{args:?}: {said}"
        );
    }
}

/// What a command says on standard error, and how it ended.
fn said(command: &mut std::process::Command) -> (Option<i32>, String) {
    let ended = output_of(command);
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    (ended.status.code(), said)
}

#[test]
fn what_the_environment_or_a_flag_gets_wrong_is_named() {
    let nowhere = |url: &str, token: &str| {
        let mut command = muster();
        command.args(["job", "list"]);
        command.env("MUSTER_URL", url).env("MUSTER_TOKEN", token);
        command
    };
    let cluster = |size: &str| {
        let mut command = muster();
        command.args(["replay", "no-trace.csv", "--cluster", size]);
        command
    };
    let folder = tempfile::tempdir().expect("a folder");
    let broken = folder.path().join("sacct.txt");
    let rows = "JobID|State|Start|End|Submit|NNodes|NCPUS|AllocTRES\n\
                9|COMPLETED|100|160|40|1|4|gres/gpu:a100=18446744073709551615,gres/gpu:v100=1\n";
    std::fs::write(&broken, rows).expect("a file");
    let mut replay = muster();
    replay.arg("replay").arg(&broken);
    for (mut command, code, words) in [
        (
            nowhere("127.0.0.1:3000", "mst_1"),
            1,
            &["MUSTER_URL", "http://"][..],
        ),
        (
            nowhere("http://127.0.0.1:3000", "mst_1\n"),
            1,
            &["MUSTER_TOKEN"],
        ),
        (cluster("8x0"), 2, &["8x0", "NODESxGPUS"]),
        (cluster("0x8"), 2, &["0x8", "NODESxGPUS"]),
        (cluster("99999999999x8"), 2, &["99999999999x8"]),
        (replay, 1, &["no row of", "sacct.txt"]),
    ] {
        let (ended, said) = said(&mut command);
        assert_eq!(ended, Some(code), "{said}");
        for word in words {
            assert!(said.contains(word), "{word}: {said}");
        }
    }
}

#[tokio::test]
async fn a_submission_prints_its_number_alone_and_tells_people_where_it_is() {
    let server = Server::start(60).await;
    let engineer = server.person("fraud-ml.engineer");
    let flags = [
        "--team",
        "fraud-ml",
        "--name",
        "a-job",
        "--image",
        "a/b:1",
        "--gpus-per-pod",
        "0",
    ];
    let made = engineer.cli(&[&["job", "submit"][..], &flags].concat());
    let id: u64 = crate::harness::stdout(&made)
        .trim()
        .parse()
        .expect("a number alone");
    let told = String::from_utf8_lossy(&made.stderr).into_owned();
    assert!(
        told.contains(&format!("{}/jobs/{id}", server.url)),
        "{told}"
    );
    let mut unnamed = muster();
    unnamed.args(["token", "create", "--as", "admin", "--name", "", "--data"]);
    let (code, told) = said(unnamed.arg(&server.data));
    assert!(
        code == Some(1) && told.starts_with("muster: name: "),
        "{told}"
    );
    let admin = server.person("admin");
    let health = serde_json::json!({ "health": "ready", "why": "a probe" });
    let cancel = serde_json::json!({});
    for (path, body) in [
        ("/nodes/+3/health", &health),
        ("/nodes/03/health", &health),
        ("/jobs/+1/cancel", &cancel),
        ("/jobs/01/cancel", &cancel),
    ] {
        let (status, answer) = admin
            .ask(admin.request(Method::POST, path).json(body))
            .await;
        assert_eq!(status.as_u16(), 404, "{path}: {answer}");
    }
}
