//! The store taken away while the doors are open.

use super::{Body, Doors, House, Limits, Request, StartError, TcpListener, attend, in_time, rest};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, HOST, RETRY_AFTER, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use contract::Submitted;
use std::time::Duration;

const JOB: &str =
    r#"{"team": "fraud-ml", "name": "a-job", "image": "fraud/train:4.12", "gpus_per_pod": 0}"#;

impl House {
    async fn token(&self) -> String {
        let actor = self.control.actor("fraud-ml.engineer").await;
        let actor = actor.expect("a person");
        let everyone = self.control.everyone(&actor);
        let token = everyone.create_token("laptop", 1).await;
        format!("Bearer {}", token.expect("a token").secret)
    }

    async fn submit(&self, token: &str) -> (StatusCode, HeaderMap, String) {
        let request = Request::post("/api/v1/jobs")
            .header(HOST, "localhost")
            .header(AUTHORIZATION, token)
            .header(CONTENT_TYPE, "application/json")
            .header("idempotency-key", "one")
            .body(Body::from(JOB));
        self.send(request.expect("a request")).await
    }

    async fn form(
        &self,
        path: &str,
        cookie: &str,
        form: &'static str,
    ) -> (StatusCode, HeaderMap, String) {
        let request = Request::post(path)
            .header(HOST, "localhost")
            .header(COOKIE, cookie)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Body::from(form));
        self.send(request.expect("a request")).await
    }

    async fn ready(&self) -> (StatusCode, HeaderMap, String) {
        let request = Request::get("/readyz").header(HOST, "localhost");
        self.send(request.body(Body::empty()).expect("a request"))
            .await
    }
}

#[tokio::test]
async fn while_nothing_can_be_stored_every_door_says_so_and_then_goes_on() {
    let house = House::open().await;
    let token = house.token().await;
    let (_, headers, _) = house.form("/sign-in", "", "person=fraud-ml.engineer").await;
    let cookie = headers[SET_COOKIE].to_str().expect("text").to_owned();
    let (_, headers, _) = house.form("/sign-in", "", "person=admin").await;
    let admin = headers[SET_COOKIE].to_str().expect("text").to_owned();
    let lock = house
        .control
        .session_pool()
        .begin_with("BEGIN IMMEDIATE")
        .await;
    let lock = lock.expect("another one has the lock");

    let (status, headers, text) = house.submit(&token).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{text}");
    assert_eq!(headers[CONTENT_TYPE], "application/problem+json");
    assert!(
        headers.contains_key(RETRY_AFTER) && text.contains("write lock"),
        "{text}"
    );
    let (status, _, text) = house.ready().await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(text.contains("write lock"), "{text}");
    // Reading goes on, by token and by session; signing in and out would write.
    house.get("/api/v1/jobs", (AUTHORIZATION, &token)).await;
    house.get("/queue", (COOKIE, &cookie)).await;
    // What was typed is on the page that says so.
    for (path, by, form, typed) in [
        ("/sign-in", "", "person=admin", None),
        ("/tokens", &cookie, "name=laptop&days=1", Some("laptop")),
        (
            "/jobs/new",
            &cookie,
            "team=fraud-ml&name=my-job&image=a%2Fb:1&gpus_per_pod=0&pods=1",
            Some("my-job"),
        ),
        (
            "/holds",
            &admin,
            "on=node&what=h100-b00-r0-n1&mode=hold&why=its+fans",
            Some("its fans"),
        ),
        (
            "/limits/fraud-ml",
            &admin,
            "running_jobs=4711&why=a+test&version=0",
            Some("4711"),
        ),
        (
            "/admin/policies/grace",
            &admin,
            "value=8m&why=long+saves&version=0",
            Some("long saves"),
        ),
    ] {
        let (status, headers, text) = house.form(path, by, form).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{path}: {text}");
        let kind = headers[CONTENT_TYPE].to_str().unwrap_or_default();
        assert!(kind.starts_with("text/html"), "{path}: {kind}");
        assert_eq!(headers[RETRY_AFTER], "1", "{path}");
        if let Some(typed) = typed {
            let kept = format!("value=\"{typed}\"");
            assert!(text.contains(&kept), "{path}: {typed} is lost: {text}");
            assert!(text.contains("write lock"), "{path}: {text}");
        }
    }

    lock.commit().await.expect("the lock is let go");
    let ready = async {
        let mut pause = tokio::time::interval(Duration::from_millis(20));
        while house.ready().await.0 != StatusCode::OK {
            pause.tick().await;
        }
    };
    in_time("it is ready again", ready).await;
    let (status, _, text) = house.submit(&token).await;
    assert_eq!(status, StatusCode::CREATED, "{text}");
    let made: Submitted = serde_json::from_str(&text).expect("a job");
    assert_eq!(
        (made.id, made.repeated),
        (1, false),
        "what was refused was not done"
    );
}

#[tokio::test]
async fn a_fault_that_stays_ends_the_server_with_one_line() {
    let House {
        control,
        doors,
        _stop: stop,
        _folder,
        ..
    } = House::open().await;
    // No transaction begins by this, and the trigger stays.
    let spoilt =
        "CREATE TRIGGER spoilt BEFORE INSERT ON journal BEGIN SELECT RAISE(ABORT, 'spoilt'); END";
    drop(control.session_pool().begin_with(spoilt).await);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let stopping = stop.subscribe();
    let doors = Doors {
        open: doors,
        full: rest::full_house(),
        limits: Limits::default(),
    };
    let served = attend(listener, doors, &control, &stopping);
    let actor = control.actor("fraud-ml.engineer").await.expect("a person");
    let member = control.team_member(&actor, "fraud-ml").expect("a member");
    let job = serde_json::from_str(JOB).expect("a spec");
    let both = async { tokio::join!(served, member.submit(&job, None)) };
    let (ended, refused) = in_time("the server ends", both).await;
    assert!(refused.is_err());
    let Err(StartError::Fault(line)) = ended else {
        panic!("{ended:?}");
    };
    assert!(
        line.contains("spoilt") && line.contains("muster journal verify"),
        "{line}"
    );
}
