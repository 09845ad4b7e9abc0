//! The portal's door: who gets in, what its forms answer, what its headers promise.

use crate::harness::{Browser, DEADLINE, Server, client};
use reqwest::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, SET_COOKIE};
use reqwest::{Response, StatusCode};

fn place(answer: &Response) -> &str {
    answer
        .headers()
        .get(LOCATION)
        .and_then(|place| place.to_str().ok())
        .unwrap_or_default()
}

#[tokio::test]
async fn nobody_sees_a_page_and_everybody_comes_back_to_where_they_went() {
    let server = Server::start(60).await;
    let http = client();
    for path in [
        "/",
        "/queue?team=fraud-ml",
        "/jobs/1",
        "/map",
        "/live",
        "/bills/fraud-ml.csv",
        "/no-such-page",
    ] {
        let answer = http
            .get(format!("{}{path}", server.url))
            .send()
            .await
            .expect("an answer");
        assert_eq!(answer.status(), StatusCode::SEE_OTHER, "{path}");
        let next: String = form_urlencoded::byte_serialize(path.as_bytes()).collect();
        assert_eq!(place(&answer), format!("/sign-in?next={next}"));
        assert_eq!(
            answer.text().await.expect("a body"),
            "",
            "a redirect carries no page"
        );
    }
    let (_, answer) = Browser::sign_in(&server, "fraud-ml.engineer", "/queue?team=fraud-ml").await;
    assert_eq!(
        (answer.status(), place(&answer)),
        (StatusCode::SEE_OTHER, "/queue?team=fraud-ml")
    );
    for elsewhere in [
        "//evil.example/",
        "https://evil.example/",
        "/\\evil.example",
    ] {
        let (_, answer) = Browser::sign_in(&server, "fraud-ml.engineer", elsewhere).await;
        assert_eq!(place(&answer), "/", "{elsewhere}");
    }
}

#[tokio::test]
async fn signing_in_makes_a_new_session_and_signing_out_ends_it() {
    let server = Server::start(60).await;
    let (first, _) = Browser::sign_in(&server, "fraud-ml.engineer", "/").await;
    let again = first.post("/sign-in", &[("person", "fraud-ml.lead")]).await;
    let cookie = again.headers()[SET_COOKIE]
        .to_str()
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .to_owned();
    assert_ne!(cookie, first.cookie, "the id changes at sign-in");
    assert_eq!(
        first.get("/").await.status(),
        StatusCode::SEE_OTHER,
        "the old id is worth nothing"
    );
    let second = Browser { cookie, ..first };
    assert_eq!(second.get("/").await.status(), StatusCode::OK);
    assert_eq!(
        second.post("/sign-out", &[]).await.status(),
        StatusCode::SEE_OTHER
    );
    assert_eq!(second.get("/").await.status(), StatusCode::SEE_OTHER);
    let unknown = client()
        .post(format!("{}/sign-in", server.url))
        .form(&[("person", "root")])
        .send()
        .await
        .expect("an answer");
    assert_eq!(unknown.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_form_is_kept_with_its_errors_and_a_good_one_leads_to_its_job() {
    let server = Server::start(60).await;
    let (browser, _) = Browser::sign_in(&server, "fraud-ml.engineer", "/").await;
    let good = [
        ("team", "fraud-ml"),
        ("name", "from-the-form"),
        ("image", "fraud/train:1"),
        ("flavours", "h100-80g"),
        ("pods", "4"),
        ("gpus_per_pod", "8"),
        ("topology", "block"),
        ("key", "form-1"),
    ];
    let bad = good.map(|(name, value)| {
        if name == "pods" {
            (name, "four")
        } else {
            (name, value)
        }
    });
    let answer = browser.post("/jobs/new", &bad).await;
    assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(answer.headers()[CACHE_CONTROL], "no-store");
    let page = answer.text().await.expect("a page");
    for kept in [
        "value=\"four\"",
        "value=\"from-the-form\"",
        "aria-invalid=\"true\"",
    ] {
        assert!(page.contains(kept), "{kept}: {page}");
    }
    let checked = browser
        .post("/jobs/new", &[&good[..], &[("action", "check")]].concat())
        .await;
    assert_eq!(checked.status(), StatusCode::OK);
    let page = checked.text().await.expect("a page");
    assert!(page.contains("Fits: starts now"), "{page}");
    let made = browser.post("/jobs/new", &good).await;
    assert_eq!(made.status(), StatusCode::SEE_OTHER);
    let job = place(&made).to_owned();
    assert!(job.starts_with("/jobs/"), "{job}");
    let again = browser.post("/jobs/new", &good).await;
    assert_eq!(
        place(&again),
        job,
        "a second press of the button is the same job"
    );
    let (stranger, _) = Browser::sign_in(&server, "alignment.engineer", "/").await;
    assert_eq!(
        stranger.post("/jobs/new", &good).await.status(),
        StatusCode::UNPROCESSABLE_ENTITY
    );
    assert_eq!(
        stranger.post(&format!("{job}/cancel"), &[]).await.status(),
        StatusCode::NOT_FOUND
    );
    let (analyst, _) = Browser::sign_in(&server, "fraud-ml.analyst", "/").await;
    assert_eq!(
        analyst.post(&format!("{job}/cancel"), &[]).await.status(),
        StatusCode::FORBIDDEN
    );
    assert_eq!(
        browser
            .post(&format!("{job}/cancel"), &[("why", "tried it")])
            .await
            .status(),
        StatusCode::SEE_OTHER
    );
}

#[tokio::test]
async fn a_form_from_another_site_is_refused_with_our_page() {
    let server = Server::start(60).await;
    let (browser, _) = Browser::sign_in(&server, "fraud-ml.engineer", "/").await;
    for (header, value) in [
        ("sec-fetch-site", "cross-site"),
        ("origin", "http://evil.example"),
    ] {
        let post = browser
            .http
            .post(format!("{}/sign-out", browser.url))
            .header(header, value);
        let answer = browser.send(post).await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{header}");
        assert!(
            answer.headers()[CONTENT_TYPE]
                .as_bytes()
                .starts_with(b"text/html")
        );
        let post = browser
            .http
            .post(format!("{}/api/v1/jobs", browser.url))
            .header(header, value);
        assert_eq!(
            browser.send(post).await.headers()[CONTENT_TYPE],
            "application/problem+json"
        );
    }
    assert_eq!(
        browser.get("/").await.status(),
        StatusCode::OK,
        "still signed in"
    );
    let renamed = browser
        .http
        .get(&browser.url)
        .header("host", "evil.example");
    assert_eq!(
        browser.send(renamed).await.status(),
        StatusCode::MISDIRECTED_REQUEST,
        "a name that was pointed at this machine"
    );
}

#[tokio::test]
async fn every_answer_says_what_a_page_may_load() {
    let server = Server::start(60).await;
    let (browser, _) = Browser::sign_in(&server, "fraud-ml.engineer", "/").await;
    for path in ["/", "/no-such-page", "/api/v1/fleet", "/healthz"] {
        let answer = browser.get(path).await;
        let headers = answer.headers().clone();
        let policy = headers["content-security-policy"]
            .to_str()
            .unwrap_or_default()
            .to_owned();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self' 'nonce-")
                && !policy.contains("unsafe-inline"),
            "{policy}"
        );
        let nonce = policy
            .split("nonce-")
            .nth(1)
            .and_then(|rest| rest.split('\'').next())
            .unwrap_or_default();
        let text = answer.text().await.expect("a body");
        let nonce = format!("nonce=\"{nonce}\"");
        for script in text.split("<script").skip(1) {
            let tag = script.split('>').next().unwrap_or_default();
            assert!(
                tag.contains(&nonce),
                "{path}: every script has the nonce: {tag}"
            );
        }
        assert_eq!(
            (
                &headers["x-content-type-options"],
                &headers["referrer-policy"]
            ),
            (
                &"nosniff".parse().expect("a value"),
                &"same-origin".parse().expect("a value")
            )
        );
        assert_eq!(headers[CACHE_CONTROL], "no-store");
    }
    assert_eq!(
        browser.get("/no-such-page").await.status(),
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn the_stream_tells_of_a_change_and_whoever_is_behind_at_once() {
    let server = Server::start(60).await;
    let (browser, _) = Browser::sign_in(&server, "fraud-ml.engineer", "/").await;
    let request = browser
        .http
        .get(format!("{}/live", browser.url))
        .header("last-event-id", "1");
    let mut stream = browser.send(request).await;
    assert_eq!(stream.headers()[CONTENT_TYPE], "text/event-stream");
    let mut text = String::new();
    let heard = async {
        while text.matches("event: change\n").count() < 2 {
            let chunk = stream.chunk().await.expect("open").expect("more");
            text.push_str(&String::from_utf8_lossy(&chunk));
            if text.matches("event: change\n").count() == 1 {
                let person = server.person("fraud-ml.engineer");
                person
                    .submit(&crate::harness::small_job("tick"), "tick")
                    .await;
            }
        }
    };
    tokio::time::timeout(DEADLINE, heard)
        .await
        .expect("two changes");
    assert!(text.contains("id: "), "{text}");
}

#[tokio::test]
async fn what_the_state_does_not_allow_is_a_conflict_on_a_form_too() {
    let server = Server::start(60).await;
    let (browser, _) = Browser::sign_in(&server, "fraud-ml.engineer", "/").await;
    let form = |name: &'static str| {
        [
            ("team", "fraud-ml"),
            ("name", name),
            ("image", "fraud/train:1"),
            ("pods", "1"),
            ("gpus_per_pod", "0"),
            ("topology", "any"),
            ("run_time", "10h"),
            ("key", "conflict-1"),
        ]
    };
    let made = browser.post("/jobs/new", &form("first")).await;
    let job = place(&made).to_owned();
    assert!(job.starts_with("/jobs/"), "{made:?}");
    let reused = browser.post("/jobs/new", &form("second")).await;
    assert_eq!(reused.status(), StatusCode::CONFLICT);
    let page = reused.text().await.expect("a page");
    assert!(
        page.contains("second") && page.contains("used for another request"),
        "{page}"
    );
    let long = "x".repeat(501);
    let refused = browser
        .post(&format!("{job}/cancel"), &[("why", &long)])
        .await;
    assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let page = refused.text().await.expect("a page");
    assert!(page.contains(&long), "what was typed is there again");
    assert!(page.contains("at most 500 characters"), "{page}");
    let token = [("name", "a laptop of mine"), ("days", "soon")];
    let refused = browser.post("/tokens", &token).await;
    assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let page = refused.text().await.expect("a page");
    assert!(page.contains("a laptop of mine"), "{page}");
}

#[tokio::test]
async fn a_page_that_takes_no_such_request_says_which_it_takes() {
    let server = Server::start(60).await;
    let (browser, _) = Browser::sign_in(&server, "fraud-ml.engineer", "/").await;
    for (path, takes) in [("/jobs/1/cancel", "POST"), ("/tokens/1/revoke", "POST")] {
        let answer = browser.get(path).await;
        assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED, "{path}");
        assert_eq!(answer.headers()["allow"], takes, "{path}");
        assert!(
            answer.text().await.expect("a page").contains("<html"),
            "{path}"
        );
    }
}
