//! Every call of the interface, for every role: made from the interface's own document, so that a new route without a row fails.
//!
//! After a change that is meant, write the table anew with `MUSTER_WRITE=1 cargo test -p server authorisation`.

use crate::harness::{Person, Server, client, fine_tune};
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
        owner.submit(&fine_tune("seen-by-whom"), &key).await.1["id"].to_string()
    } else {
        "1".to_owned()
    };
    let asked = path
        .trim_start_matches("/api/v1")
        .replace(
            "{id}",
            if path.contains("/teams/") {
                "fraud-ml"
            } else {
                &job
            },
        )
        .replace("{team}", "fraud-ml");
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
