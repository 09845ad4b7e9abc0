//! All doors in one process, over a clock that the tests move.

mod doors;
mod reclaims;

use super::{
    Control, Doors, Limits, Mode, Options, Request, Router, StartError, TcpListener, Tuning,
    attend, io, rest, router, watch,
};
use axum::body::{Body, to_bytes};
use axum::http::header::{
    AUTHORIZATION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, HOST, SET_COOKIE,
};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use contract::{BillView, JobView};
use control::{Clock, Demand};
use scheduler::Millis;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tower::ServiceExt;
use tracing_subscriber::fmt::MakeWriter;

mod faults;
mod limits;
mod tokens;

/// A route that panics, in the tests' routers only.
pub async fn panics() -> StatusCode {
    panic!("the roof is on fire")
}

/// What the log says.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("the log").extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;
    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// When a demo without history stands: 2026-10-20T06:00:00Z.
const EPOCH: Millis = Millis(1_792_476_000_000);

/// Nothing that is awaited here takes longer, also on a slow machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// What must come to pass; fails by its name when it does not.
async fn in_time<T>(what: &str, awaited: impl Future<Output = T>) -> T {
    let bound = tokio::time::timeout(DEADLINE, awaited).await;
    bound.unwrap_or_else(|_| panic!("not within {DEADLINE:?}: {what}"))
}

/// All doors of a demo without history, whose clock stands still.
struct House {
    control: Control,
    clock: Clock,
    doors: Router,
    _stop: watch::Sender<bool>,
    _folder: TempDir,
}

impl House {
    async fn open() -> Self {
        Self::limited(Limits::default()).await
    }

    async fn limited(limits: Limits) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let clock = Clock::held(EPOCH);
        let options = Options {
            data: folder.path().to_owned(),
            mode: Mode::Demo {
                seed: 1,
                speed: 1,
                fresh: false,
            },
        };
        let tuning = Tuning {
            history_days: 0,
            demand: Demand::None,
            clock: Some(clock.clone()),
            ..Tuning::default()
        };
        let control = Control::open_with(options, tuning).await.expect("it opens");
        let (stop, stopping) = watch::channel(false);
        let doors = router(&control, stopping, limits).await;
        let doors = doors.expect("the doors");
        Self {
            control,
            clock,
            doors,
            _stop: stop,
            _folder: folder,
        }
    }

    async fn send(&self, request: Request<Body>) -> (StatusCode, HeaderMap, String) {
        let answer = self
            .doors
            .clone()
            .oneshot(request)
            .await
            .expect("an answer");
        let (parts, body) = answer.into_parts();
        let body = to_bytes(body, usize::MAX).await.expect("a body");
        let text = String::from_utf8(body.to_vec()).expect("text");
        (parts.status, parts.headers, text)
    }

    /// What somebody with this token or cookie gets.
    async fn get(&self, path: &str, by: (HeaderName, &str)) -> String {
        let request = Request::get(path)
            .header(HOST, "localhost")
            .header(by.0, by.1);
        let (status, _, text) = self
            .send(request.body(Body::empty()).expect("a request"))
            .await;
        assert_eq!(status, StatusCode::OK, "{path}: {text}");
        text
    }

    /// Moves the clock, and waits until all that was due is written.
    async fn pass(&self, span: Millis) {
        let to = self.clock.now() + span;
        self.clock.set(to);
        let mut changes = self.control.changes();
        let reached = async {
            while self.clock.now() < to {
                // One that was missed in between makes no difference: there are more, or the time is reached.
                let heard = tokio::time::timeout(Duration::from_secs(1), changes.recv()).await;
                drop(heard);
            }
        };
        in_time("all that was due is written", reached).await;
    }
}

/// Somebody's token, as a header has it.
async fn bearer(house: &House, who: &str) -> String {
    let actor = house.control.actor(who).await.expect("a person");
    let token = house.control.everyone(&actor).create_token("a", 1).await;
    format!("Bearer {}", token.expect("a token").secret)
}

/// Somebody's session, as a header has it.
async fn signed_in(house: &House, who: &str) -> String {
    let form = Request::post("/sign-in")
        .header(HOST, "localhost")
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Body::from(format!("person={who}")));
    let (_, headers, _) = house.send(form.expect("a request")).await;
    let cookie = headers[SET_COOKIE].to_str().expect("text");
    cookie.split(';').next().unwrap_or_default().to_owned()
}

/// Without the markers that stand where views meet.
fn plain(page: &str) -> String {
    page.replace("<!>", "")
}

/// A `GET` of nobody, with its answer and what the log says of it at its usual level.
async fn ask(path: &str, id: &str) -> (StatusCode, HeaderMap, String, String) {
    let house = House::open().await;
    let request = Request::get(path)
        .header(HOST, "localhost")
        .header(rest::REQUEST_ID, id)
        .body(Body::empty())
        .expect("a request");
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(crate::cli::USUAL_LOG)
        .with_ansi(false)
        .with_writer(log.clone())
        .finish();
    let listening = tracing::subscriber::set_default(subscriber);
    let (status, headers, text) = house.send(request).await;
    drop(listening);
    let log = String::from_utf8(log.0.lock().expect("the log").clone()).expect("text");
    (status, headers, text, log)
}

#[tokio::test]
async fn a_panic_is_a_problem_or_a_page_with_the_id_that_the_log_has() {
    for (path, kind) in [
        ("/api/v1/panics", "application/problem+json"),
        ("/panics", "text/html"),
    ] {
        let (status, headers, text, log) = ask(path, "r-4711").await;
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR, "{path}");
        let is = headers[CONTENT_TYPE].to_str().unwrap_or_default();
        assert!(is.starts_with(kind), "{path}: {is}");
        assert_eq!(headers["x-request-id"], "r-4711", "{path}");
        assert_eq!(headers["x-content-type-options"], "nosniff", "{path}");
        assert!(headers.contains_key(CONTENT_SECURITY_POLICY), "{path}");
        assert!(text.contains("r-4711"), "{path}: {text}");
        let said = log
            .lines()
            .find(|line| line.contains("the roof is on fire"));
        assert!(
            said.is_some_and(|line| line.contains("r-4711")),
            "{path}: {log}"
        );
    }
}

#[tokio::test]
async fn the_cause_of_a_500_stands_in_the_log_under_the_requests_id() {
    let (status, _, text, log) = ask("/api/v1/breaks", "r-4712").await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(
        text.contains("r-4712") && !text.contains("the disk"),
        "{text}"
    );
    let said = log.lines().find(|line| line.contains("the disk is gone"));
    assert!(said.is_some_and(|line| line.contains("r-4712")), "{log}");
}

#[tokio::test]
async fn page_csv_and_rest_say_the_same_of_two_months() {
    let house = House::open().await;
    let actor = house
        .control
        .actor("fraud-ml.engineer")
        .await
        .expect("a person");
    let member = house
        .control
        .team_member(&actor, "fraud-ml")
        .expect("a member");
    for (name, pods) in [("long-one", 3), ("wide-one", 40)] {
        let job = format!(
            r#"{{"team": "fraud-ml", "name": "{name}", "image": "fraud/train:4.12", "flavours": ["h100-80g"],
                "pods": {pods}, "gpus_per_pod": 8, "time_limit": "30d", "run_time": "20d"}}"#
        );
        let job = serde_json::from_str(&job).expect("a spec");
        member.submit(&job, None).await.expect("a good job");
    }
    house.pass(Millis::hours(14 * 24)).await;
    let token = house
        .control
        .everyone(&actor)
        .create_token("laptop", 1)
        .await;
    let bearer = format!("Bearer {}", token.expect("a token").secret);
    let form = Request::post("/sign-in")
        .header(HOST, "localhost")
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Body::from("person=fraud-ml.engineer"));
    let (_, headers, _) = house.send(form.expect("a request")).await;
    let cookie = headers[SET_COOKIE].to_str().expect("text").to_owned();
    let cookie = cookie.split(';').next().unwrap_or_default();

    let now: BillView = serde_json::from_str(
        &house
            .get("/api/v1/bills/fraud-ml", (AUTHORIZATION, &bearer))
            .await,
    )
    .expect("a bill");
    assert_eq!(now.months, ["2026-11", "2026-10"]);
    for month in &now.months {
        let path = |end: &str| format!("/bills/fraud-ml{end}?month={month}");
        let rest = house
            .get(&format!("/api/v1{}", path("")), (AUTHORIZATION, &bearer))
            .await;
        let bill: BillView = serde_json::from_str(&rest).expect("a bill");
        assert_eq!(bill.lines.len(), 2, "{month}");
        assert_ne!(
            bill.totals.borrowed_amount, "0.00",
            "{month}: the wide one borrows"
        );
        let csv = house
            .get(
                &format!("/api/v1{}", path(".csv")),
                (AUTHORIZATION, &bearer),
            )
            .await;
        assert_eq!(
            csv,
            house.get(&path(".csv"), (COOKIE, cookie)).await,
            "{month}"
        );
        let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        let amounts: Vec<&str> = rows[1..].iter().map(|row| row[14]).collect();
        let lines = bill.lines.iter().map(|line| line.totals.amount.as_str());
        let expected: Vec<&str> = lines.chain([bill.totals.amount.as_str()]).collect();
        assert_eq!(amounts, expected, "{month}: {csv}");
        for line in &bill.lines {
            let job = format!("/api/v1/jobs/{}", line.job);
            let job = house.get(&job, (AUTHORIZATION, &bearer)).await;
            let job: JobView = serde_json::from_str(&job).expect("a job");
            let parts = job.bill.months.iter().filter(|part| part.month == *month);
            let amounts: Vec<&str> = parts.map(|part| part.amount.as_str()).collect();
            assert_eq!(
                amounts,
                [line.totals.amount.as_str()],
                "{month}: {}",
                line.name
            );
        }
        let page = house.get(&path(""), (COOKIE, cookie)).await;
        let shown = contract::price(&bill.currency, &bill.totals.amount);
        assert!(page.contains(&shown), "{month}: {shown} is not on the page");
        let all: BillView = serde_json::from_str(
            &house
                .get(
                    &format!("/api/v1/bills?month={month}"),
                    (AUTHORIZATION, &bearer),
                )
                .await,
        )
        .expect("a bill");
        assert_eq!(
            (&all.totals, all.teams[0].jobs),
            (&bill.totals, 2),
            "{month}"
        );
    }
}
