//! Killed at any moment: whatever a client was told is there afterwards, once, and the journal is whole.

use crate::harness::{Server, muster, output_of, small_job, stdout};
use reqwest::StatusCode;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{Mutex, Notify};

/// How often it is killed.
const KILLS: u64 = 50;
/// Clients that submit at the same time.
const CLIENTS: u64 = 4;

/// What the clients were told, over all lives of the server.
#[derive(Default)]
struct Told {
    /// Name and id of each submission that was answered.
    jobs: Mutex<BTreeMap<String, u64>>,
    /// Submissions whose answer never came: key, which is the name too.
    unanswered: Mutex<Vec<String>>,
    count: AtomicU64,
    more: Notify,
}

impl Told {
    async fn note(&self, name: &str, id: u64) {
        let before = self.jobs.lock().await.insert(name.to_owned(), id);
        assert!(
            before.is_none_or(|before| before == id),
            "{name} was job {before:?} and is {id}"
        );
        self.count.fetch_add(1, Ordering::SeqCst);
        self.more.notify_one();
    }
    /// Returns once `count` submissions were answered.
    async fn reaches(&self, count: u64) {
        while self.count.load(Ordering::SeqCst) < count {
            self.more.notified().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_fifty_times_it_keeps_every_job_that_a_client_was_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let told = Arc::new(Told::default());
    let mut folded: Option<Folded> = None;
    for life in 0..KILLS {
        let server = Server::over(folder.path(), 600).await;
        if let Some(folded) = &folded {
            assert_eq!(&resumed(&server).await, folded, "life {life}");
        }
        check_everything_told_is_there(&server, &told).await;
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                tokio::spawn(submit_until_it_dies(
                    server_person(&server),
                    life,
                    client,
                    told.clone(),
                ))
            })
            .collect();
        // Each life ends after another number of answers, while the next ones are on their way.
        told.reaches(told.count.load(Ordering::SeqCst) + 1 + life * 7 % 23)
            .await;
        server.kill();
        for client in clients {
            client.await.expect("a client ends when the server does");
        }
        folded = Some(verify(folder.path()));
    }
    let server = Server::over(folder.path(), 600).await;
    assert_eq!(Some(resumed(&server).await), folded, "the last life");
    check_everything_told_is_there(&server, &told).await;
    assert!(told.jobs.lock().await.len() as u64 >= KILLS);
}

fn server_person(server: &Server) -> crate::harness::Person {
    server.person("fraud-ml.engineer")
}

/// Every other one holds a GPU, so that gangs start, are metered and end while it is killed.
fn spec_of(name: &str) -> Value {
    let mut spec = small_job(name);
    if name.ends_with(['0', '2', '4', '6', '8']) {
        spec["flavours"] = Value::from(vec!["h100-80g"]);
        spec["gpus_per_pod"] = 1.into();
    }
    spec
}

async fn submit_until_it_dies(
    person: crate::harness::Person,
    life: u64,
    client: u64,
    told: Arc<Told>,
) {
    for number in 0.. {
        let name = format!("life-{life}-{client}-{number}");
        let request = person
            .request(reqwest::Method::POST, "/jobs")
            .header("Idempotency-Key", &name)
            .json(&spec_of(&name));
        let answer = match request.send().await {
            Ok(answer) => answer.json::<Value>().await,
            Err(error) => Err(error),
        };
        match answer.ok().and_then(|answer| answer["id"].as_u64()) {
            Some(id) => told.note(&name, id).await,
            None => {
                told.unanswered.lock().await.push(name);
                return;
            }
        }
    }
}

/// Asks again under the keys that were never answered, then looks for every job.
async fn check_everything_told_is_there(server: &Server, told: &Told) {
    let person = server_person(server);
    for name in std::mem::take(&mut *told.unanswered.lock().await) {
        let (status, answer) = person.submit(&spec_of(&name), &name).await;
        assert!(
            matches!(status, StatusCode::CREATED | StatusCode::OK),
            "{name}: {answer}"
        );
        told.note(&name, answer["id"].as_u64().expect("an id"))
            .await;
    }
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    let mut after = String::new();
    loop {
        let page = person
            .get(&format!(
                "/jobs?owner=fraud-ml.engineer&search=life-&limit=200{after}"
            ))
            .await;
        for job in page["jobs"].as_array().expect("jobs") {
            let name = job["name"].as_str().unwrap_or_default().to_owned();
            let before = found.insert(name.clone(), job["id"].as_u64().expect("an id"));
            assert_eq!(before, None, "{name} is there twice");
        }
        let Some(next) = page["next"].as_str() else {
            break;
        };
        after = format!("&after={next}");
    }
    let told = told.jobs.lock().await;
    let lost: BTreeSet<_> = told
        .iter()
        .filter(|(name, id)| found.get(*name) != Some(id))
        .collect();
    assert!(lost.is_empty(), "told, and not there: {lost:?}");
}

/// The journal's last entry, and the hash of the state after it.
type Folded = (u64, String);

/// Folds the journal offline from its first entry: no usage line over another, no gap, and the read models are its own.
fn verify(data: &Path) -> Folded {
    let mut verify = muster();
    verify.args(["journal", "verify", "--output", "json", "--data"]);
    let verified = output_of(verify.arg(data));
    let report: Value = serde_json::from_str(&stdout(&verified)).expect("JSON");
    let events = report["events"].as_u64().expect("a count");
    assert!(events > 0, "{report}");
    (events, report["hash"].as_str().expect("a hash").to_owned())
}

/// What the running server went on from, as it says itself.
async fn resumed(server: &Server) -> Folded {
    let asked = reqwest::get(format!("{}/metrics", server.url)).await;
    let text = asked.expect("an answer").text().await.expect("text");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("muster_resumed_entry{state_hash=\""));
    let (hash, entry) = line
        .and_then(|line| line.split_once("\"} "))
        .expect("the metrics name it");
    (entry.parse().expect("a number"), hash.to_owned())
}
