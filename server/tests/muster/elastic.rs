//! An elastic gang through each door: asked for on the command line, over REST and in the form; it starts with what fits.

use crate::harness::{Browser, Server, fine_tune, stdout};
use reqwest::StatusCode;
use serde_json::{Value, json};

/// More nodes than the fleet has: it can only start with fewer pods.
const PODS: u64 = 600;

#[tokio::test]
async fn an_elastic_gang_starts_with_what_fits_and_says_so_at_each_door() {
    let server = Server::start(60).await;
    let engineer = server.person("fraud-ml.engineer");
    let flags = [
        "--team",
        "fraud-ml",
        "--name",
        "sweep",
        "--flavour",
        "h100-80g",
        "--pods",
        "600",
        "--gpus-per-pod",
        "8",
        "--image",
        "fraud/train:4.12",
        "--time-limit",
        "12h",
        "--run-time",
        "10h",
    ];
    let with = |least: &'static str| {
        engineer.cli(&[&["job", "submit"][..], &flags, &["--min-pods", least]].concat())
    };
    for least in ["0", "601"] {
        let refused = with(least);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(
            !refused.status.success()
                && said.contains("min_pods: from 1 to the 600 pods that it asks"),
            "{said}"
        );
    }
    let made = with("2");
    let id: u64 = stdout(&made).trim().parse().expect("its number");
    let job = engineer
        .job_until(id, |job| job["state"] == "running")
        .await;
    assert_eq!(job["spec"]["min_pods"], 2);
    let pods = job["pods"].as_u64().expect("its pods");
    assert!((2..PODS).contains(&pods), "{pods} pods");
    assert_eq!(job["gpus"].as_f64(), Some(pods as f64 * 8.0));
    let asked = job["steps"][0]["note"].as_str().unwrap_or_default();
    assert!(asked.starts_with("600 pods, 2 at least"), "{asked}");
    let notes = job["steps"].as_array().into_iter().flatten();
    let note = notes.filter_map(|step| step["note"].as_str());
    let runs = format!("runs at {pods} of 600 pods");
    assert!(note.clone().any(|note| note.starts_with(&runs)), "{job}");

    let shown = stdout(&engineer.cli(&["job", "show", &id.to_string()]));
    assert!(shown.contains(&format!("{pods} of 600 pods")), "{shown}");
    let (browser, _) = Browser::sign_in(&server, "fraud-ml.engineer", "/").await;
    let page = browser.get(&format!("/jobs/{id}")).await;
    let page = page.text().await.expect("a page");
    assert!(page.contains(&format!("at {pods} of 600 pods")), "{page}");
}

#[tokio::test]
async fn a_fewest_that_cannot_be_is_named_by_rest() {
    let server = Server::start(60).await;
    let engineer = server.person("fraud-ml.engineer");
    let spec = |least: Value| {
        let mut spec = fine_tune("elastic");
        spec["min_pods"] = least;
        spec
    };
    for (least, status) in [
        (json!(0), StatusCode::UNPROCESSABLE_ENTITY),
        (json!(5), StatusCode::UNPROCESSABLE_ENTITY),
        (json!("two"), StatusCode::UNPROCESSABLE_ENTITY),
        (json!(-1), StatusCode::UNPROCESSABLE_ENTITY),
        (json!(4), StatusCode::CREATED),
        (json!(null), StatusCode::CREATED),
    ] {
        let (answered, body) = engineer
            .submit(&spec(least.clone()), &format!("least-{least}"))
            .await;
        assert_eq!(answered, status, "{least}: {body}");
        if status != StatusCode::CREATED {
            assert_eq!(body["errors"][0]["field"], "min_pods", "{least}: {body}");
        }
    }
}
