//! Every call of the interface, for every role: made from the interface's own document, so that a new route without a row fails.
//! Then the portal's pages, forms, files and the event stream.
//!
//! After a change that is meant, write the table anew with `MUSTER_WRITE=1 cargo test -p server authorisation`.

use crate::harness::{Browser, Person, Server, client, fine_tune, notebook};
use reqwest::Method;
use serde_json::{Value, json};
use std::fmt::Write as _;

const TABLE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/muster/authorisation.txt"
);

/// Columns: nobody, a token that is none, somebody of another team, and then those of the job's own team and above all.
const ROLES: [&str; 8] = [
    "nobody", "forged", "other", "member", "owner", "lead", "manager", "admin",
];

#[tokio::test]
async fn each_call_answers_each_role_as_the_table_says() {
    let server = Server::start(60).await;
    let people = people(&server);
    let document = people[4]
        .http
        .get(format!("{}/api/v1/openapi.json", server.url))
        .send()
        .await
        .expect("an answer");
    let document: Value = document.json().await.expect("JSON");
    let mut table = String::from(
        "Status of each call for each role; the job and the bill are team fraud-ml's.\n",
    );
    let _ = writeln!(
        table,
        "{:<36}{}",
        "",
        ROLES.map(|role| format!("{role:>8}")).concat()
    );
    for (path, calls) in document["paths"].as_object().expect("paths") {
        for method in calls
            .as_object()
            .expect("calls")
            .keys()
            .filter(|key| is_method(key))
        {
            let mut row = format!(
                "{:<36}",
                format!(
                    "{} {}",
                    method.to_uppercase(),
                    path.trim_start_matches("/api/v1")
                )
            );
            for person in &people {
                let _ = write!(row, "{:>8}", status(&people[4], person, method, path).await);
            }
            table.push_str(&row);
            table.push('\n');
        }
    }
    portal(&server, &people[4], &mut table).await;
    if std::env::var_os("MUSTER_WRITE").is_some() {
        std::fs::write(TABLE, &table).expect("written");
    }
    let kept = std::fs::read_to_string(TABLE).unwrap_or_default();
    assert_eq!(table, kept, "the calls and the table in {TABLE} differ");
}

fn is_method(key: &str) -> bool {
    ["get", "post", "put", "patch", "delete"].contains(&key)
}

fn people(server: &Server) -> Vec<Person> {
    let nobody = |token: &str| Person {
        http: client(),
        url: server.url.clone(),
        token: token.to_owned(),
    };
    let mut people = vec![
        nobody(""),
        nobody("muster_0000000000000000000000000000000000000000000"),
    ];
    let ids = [
        "alignment.engineer",
        "fraud-ml.analyst",
        "fraud-ml.engineer",
        "fraud-ml.lead",
        "manager",
        "admin",
    ];
    people.extend(ids.map(|id| server.person(id)));
    people
}

/// Makes the call on a job of the owner's that is there for this call alone.
async fn status(owner: &Person, person: &Person, method: &str, path: &str) -> u16 {
    let job = if path.contains("/jobs/{id}") {
        let key = format!("{method}{path}{}", person.token)
            .replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
        owner.submit(&seen(path), &key).await.1["id"].to_string()
    } else {
        "1".to_owned()
    };
    let asked = path
        .trim_start_matches("/api/v1")
        .replace(
            "{id}",
            match path {
                path if path.contains("/teams/") => "fraud-ml",
                path if path.contains("/reclaims/") => NONE,
                _ => &job,
            },
        )
        .replace("{team}", "fraud-ml")
        .replace("{name}", "grace")
        .replace("{on}/{what}", &format!("node/{NODE}"));
    let asked = if path.ends_with("/usage") {
        format!("{asked}?team=fraud-ml")
    } else {
        asked
    };
    let method = Method::from_bytes(method.to_uppercase().as_bytes()).expect("a method");
    let mut request = person.request(method.clone(), &asked);
    if person.token.is_empty() {
        request = person
            .http
            .request(method.clone(), format!("{}/api/v1{asked}", person.url));
    }
    let body = match (method.as_str(), path) {
        ("POST", "/api/v1/jobs") => Some(fine_tune("by-whom")),
        // A reclaim of everybody's is not to be had here: these show that nobody gets past the door, and that what is not
        // there is not there. Who may do what with one is told by the services' own tests.
        ("POST", "/api/v1/reclaims/{id}/decline") => Some(json!({ "reason": "not now" })),
        ("POST", "/api/v1/reclaims/{id}/propose") => Some(json!({ "victims": [1] })),
        ("POST", "/api/v1/holds") => {
            Some(json!({ "on": "node", "what": NODE, "why": "a look at its fans" }))
        }
        ("PUT", "/api/v1/policies/{name}") => {
            Some(json!({ "value": "6m", "version": 0, "why": "slow saves" }))
        }
        ("PUT", "/api/v1/teams/{id}/limits") => Some(
            json!({ "limits": { "running_jobs": 900 }, "member": {}, "version": 0, "why": "a review" }),
        ),
        ("POST", "/api/v1/nodes/{id}/health") => {
            Some(json!({ "health": "cordoned", "why": "a look at its fans" }))
        }
        ("POST", _) => Some(json!({})),
        _ => None,
    };
    if let Some(body) = body {
        request = request.json(&body);
    }
    request.send().await.expect("an answer").status().as_u16()
}

/// What the portal is asked: pages, files, the stream, and every form.
const ASKED: [(&str, &str); 34] = [
    ("GET", "/"),
    ("GET", "/queue"),
    ("GET", "/jobs/{id}"),
    ("GET", "/jobs/new"),
    ("GET", "/map"),
    ("GET", "/holds"),
    ("GET", "/quotas"),
    ("GET", "/limits"),
    ("GET", "/admin/policies"),
    ("GET", "/reclaims"),
    ("GET", "/reclaims/{none}"),
    ("GET", "/bills"),
    ("GET", "/bills.csv"),
    ("GET", "/bills/fraud-ml"),
    ("GET", "/bills/fraud-ml.csv"),
    ("GET", "/tokens"),
    ("GET", "/live"),
    ("POST", "/jobs/new"),
    ("POST", "/jobs/{id}/cancel"),
    ("POST", "/jobs/{id}/hold"),
    ("POST", "/jobs/{id}/release"),
    ("POST", "/jobs/{id}/suspend"),
    ("POST", "/jobs/{id}/resume"),
    ("POST", "/holds"),
    ("POST", "/holds/release"),
    ("POST", "/limits/fraud-ml"),
    ("POST", "/admin/policies/grace"),
    ("POST", "/reclaims/{none}/approve"),
    ("POST", "/reclaims/{none}/decline"),
    ("POST", "/reclaims/{none}/defer"),
    ("POST", "/reclaims/{none}/propose"),
    ("POST", "/tokens"),
    ("POST", "/tokens/{token}/revoke"),
    ("POST", "/sign-out"),
];

/// The portal's part of the table. The job is fraud-ml.engineer's, and so is the token.
async fn portal(server: &Server, owner: &Person, table: &mut String) {
    let signed_in = [
        "alignment.engineer",
        "fraud-ml.analyst",
        "fraud-ml.engineer",
        "fraud-ml.lead",
        "manager",
        "admin",
    ];
    let (mine, _) = Browser::sign_in(server, "fraud-ml.engineer", "/").await;
    table.push_str("The portal: its pages, files and forms, by session.\n");
    for (method, path) in ASKED {
        let _ = write!(table, "{:<36}", format!("{method} {path}"));
        let mut browsers = vec![
            mine.with_cookie(""),
            mine.with_cookie("muster_session=forged"),
        ];
        for id in signed_in {
            browsers.push(Browser::sign_in(server, id, "/").await.0);
        }
        for (role, browser) in ROLES.iter().zip(&browsers) {
            let key = format!("{method}{path}{role}").replace(['/', '{', '}', '.'], "-");
            let job = owner.submit(&seen(path), &key).await.1["id"].to_string();
            let path = path.replace("{id}", &job).replace("{none}", NONE);
            let path = match path.contains("{token}") {
                true => path.replace("{token}", &token_of(&mine).await),
                false => path,
            };
            let answer = match (method, path.as_str()) {
                ("GET", path) => browser.get(path).await,
                (_, "/jobs/new") => browser.post("/jobs/new", &FORM).await,
                (_, "/tokens") => {
                    let form = [("name", "by whom"), ("days", "1")];
                    browser.post("/tokens", &form).await
                }
                (_, path @ ("/holds" | "/holds/release")) => browser.post(path, &HELD).await,
                (_, path) => browser.post(path, &[]).await,
            };
            // Sent to sign in is another thing than sent on after a deed.
            let place = answer
                .headers()
                .get("location")
                .and_then(|place| place.to_str().ok());
            let away = place.is_some_and(|place| place.starts_with("/sign-in?"));
            let said = match away {
                true => "sign-in".to_owned(),
                false => answer.status().as_u16().to_string(),
            };
            let _ = write!(table, "{said:>8}");
        }
        table.push('\n');
    }
}

/// The job that a call is made on: what is suspended is a notebook.
fn seen(path: &str) -> Value {
    match path.ends_with("/suspend") || path.ends_with("/resume") {
        true => notebook("seen-by-whom"),
        false => fine_tune("seen-by-whom"),
    }
}

/// The number of a reclaim that is not there.
const NONE: &str = "999999";

/// A job as the form sends it.
const FORM: [(&str, &str); 6] = [
    ("team", "fraud-ml"),
    ("name", "by-form"),
    ("image", "fraud/train:1"),
    ("pods", "1"),
    ("gpus_per_pod", "0"),
    ("topology", "any"),
];

/// A node that is set aside.
const NODE: &str = "h100-b00-r0-n1";

/// The same as its form sends it.
const HELD: [(&str, &str); 4] = [
    ("on", "node"),
    ("what", NODE),
    ("mode", "hold"),
    ("why", "a look at its fans"),
];

/// A new token's id.
async fn token_of(browser: &Browser) -> String {
    let made = browser
        .post("/tokens", &[("name", "to be revoked"), ("days", "1")])
        .await;
    assert_eq!(made.status().as_u16(), 303);
    let page = browser.get("/tokens").await;
    let page = page.text().await.expect("a page");
    let id = page
        .split("id=\"token-")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    id.expect("a token in the list").to_owned()
}
