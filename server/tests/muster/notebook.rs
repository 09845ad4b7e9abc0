//! A notebook through each door: asked for on the command line, suspended there, resumed over REST, shown on its page.

use crate::harness::{Browser, Server, stdout};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

#[tokio::test]
async fn a_notebook_is_suspended_and_resumed_through_each_door() {
    let server = Server::start(60).await;
    let (admin, engineer) = (server.person("admin"), server.person("fraud-ml.engineer"));
    // So that the rule itself does not come before the people, however slow the machine is.
    let rule = json!({ "value": "28d", "version": 0, "why": "a demonstration" });
    let set = admin.request(Method::PUT, "/policies/notebook_idle");
    assert_eq!(admin.ask(set.json(&rule)).await.0, StatusCode::OK);

    let flags = [
        "--team",
        "fraud-ml",
        "--name",
        "card-drift",
        "--kind",
        "notebook",
        "--flavour",
        "h100-80g",
        "--gpus-per-pod",
        "1",
        "--image",
        "fraud/lab:2",
    ];
    let pods = engineer.cli(&[&["job", "submit"][..], &flags, &["--pods", "2"]].concat());
    let said = String::from_utf8_lossy(&pods.stderr);
    assert!(
        !pods.status.success() && said.contains("pods: a notebook is one pod"),
        "{said}"
    );
    let made = engineer.cli(&[&["job", "submit"][..], &flags].concat());
    let id: u64 = stdout(&made).trim().parse().expect("its number");
    let runs = engineer
        .job_until(id, |job| job["state"] == "running")
        .await;
    assert_eq!(runs["notebook"]["idle_ms"], 28 * 24 * 3_600_000_u64);
    assert_eq!(runs["notebook"]["may_suspend"], true);

    let number = id.to_string();
    let gone = engineer.cli(&["job", "suspend", &number, "--why", "gone home"]);
    stdout(&gone);
    let away = engineer
        .job_until(id, |job| job["notebook"]["suspended"].is_object())
        .await;
    let suspended = &away["notebook"]["suspended"];
    assert_eq!(
        (&suspended["by"], &suspended["why"], &away["state"]),
        (
            &json!("fraud-ml.engineer"),
            &json!("gone home"),
            &json!("queued")
        )
    );
    assert_eq!(away["reason"]["code"], "suspended");
    let (browser, _) = Browser::sign_in(&server, "fraud-ml.engineer", "/").await;
    let page = browser.get(&format!("/jobs/{id}")).await;
    let page = page.text().await.expect("a page");
    for told in ["by fraud-ml.engineer since", "gone home", ">Resume<"] {
        assert!(page.contains(told), "{told}: {page}");
    }

    let resume = engineer.request(Method::POST, &format!("/jobs/{id}/resume"));
    let (status, job) = engineer.ask(resume.json(&json!({}))).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{job}");
    assert_eq!(job["notebook"]["suspended"], Value::Null);
    let again = engineer
        .job_until(id, |job| job["state"] == "running")
        .await;
    assert_eq!(again["submitted"], runs["submitted"]);
    let page = browser.get(&format!("/jobs/{id}")).await;
    let page = page.text().await.expect("a page");
    assert!(page.contains("Suspend this notebook"), "{page}");
    let long = "x".repeat(501);
    let form = [("suspend_why", long.as_str())];
    let refused = browser.post(&format!("/jobs/{id}/suspend"), &form).await;
    assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let page = refused.text().await.expect("a page");
    assert!(
        page.contains(&long) && page.contains("at most 500 characters"),
        "what was typed is there again: {page}"
    );
    let form = [("suspend_why", "lunch")];
    let done = browser.post(&format!("/jobs/{id}/suspend"), &form).await;
    assert_eq!(done.status(), StatusCode::SEE_OTHER);
    engineer
        .job_until(id, |job| job["notebook"]["suspended"]["why"] == "lunch")
        .await;
    let back = engineer.cli(&["job", "resume", &number]);
    stdout(&back);
    engineer
        .job_until(id, |job| job["notebook"]["suspended"].is_null())
        .await;
}
