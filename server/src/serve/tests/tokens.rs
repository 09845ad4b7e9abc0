//! A new token's secret in the browser.

use super::{Body, House, Request};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, COOKIE, HOST, LOCATION, SET_COOKIE};

#[tokio::test]
async fn a_secret_is_seen_once_by_its_own_session_and_a_reload_makes_no_other_token() {
    let house = House::open().await;
    let sign_in = async |person: &'static str| {
        let form = Request::post("/sign-in")
            .header(HOST, "localhost")
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Body::from(person));
        let (_, headers, _) = house.send(form.expect("a request")).await;
        let cookie = headers[SET_COOKIE].to_str().expect("text");
        cookie.split(';').next().unwrap_or_default().to_owned()
    };
    let mine = sign_in("person=fraud-ml.engineer").await;
    let other = sign_in("person=fraud-ml.engineer").await;
    let form = Request::post("/tokens")
        .header(HOST, "localhost")
        .header(COOKIE, &mine)
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Body::from("name=nightly&days=7"));
    let (status, headers, text) = house.send(form.expect("a request")).await;
    assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
    assert_eq!(headers[LOCATION], "/tokens");
    assert!(!text.contains("mst_"), "{text}");
    let elsewhere = house.get("/tokens", (COOKIE, &other)).await;
    assert!(!elsewhere.contains("MUSTER_TOKEN=mst_"));
    let first = house.get("/tokens", (COOKIE, &mine)).await;
    assert!(first.contains("MUSTER_TOKEN=mst_"), "{first}");
    let again = house.get("/tokens", (COOKIE, &mine)).await;
    assert!(!again.contains("MUSTER_TOKEN=mst_"));
    assert!(again.contains("was shown once"), "{again}");
    let actor = house.control.actor("fraud-ml.engineer").await;
    let actor = actor.expect("a person");
    let tokens = house.control.everyone(&actor).tokens().await;
    assert_eq!(tokens.expect("a list").len(), 1);
}
