//! Holds, limits and policies through REST and through the portal's forms.

use super::{
    Body, CONTENT_TYPE, COOKIE, HOST, House, Request, StatusCode, bearer, plain, signed_in,
};
use axum::http::header::{AUTHORIZATION, LOCATION};
use axum::http::{HeaderMap, Method};
use contract::{HoldList, HoldView, LimitList, PolicyView, Problem, SubmitJob, TeamLimitsView};
use serde::de::DeserializeOwned;

/// What REST answers to somebody's deed.
async fn rest(
    house: &House,
    who: &str,
    (method, path): (Method, &str),
    body: &str,
) -> (StatusCode, String) {
    let request = Request::builder()
        .method(method)
        .uri(format!("/api/v1{path}"))
        .header(HOST, "localhost")
        .header(AUTHORIZATION, bearer(house, who).await)
        .header(CONTENT_TYPE, "application/json")
        .body(Body::from(body.to_owned()));
    let (status, _, text) = house.send(request.expect("a request")).await;
    (status, text)
}

/// What the portal answers to somebody's form.
async fn post(
    house: &House,
    cookie: &str,
    path: &str,
    form: &str,
) -> (StatusCode, HeaderMap, String) {
    let request = Request::post(path)
        .header(HOST, "localhost")
        .header(COOKIE, cookie)
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Body::from(form.to_owned()));
    let (status, headers, text) = house.send(request.expect("a request")).await;
    (status, headers, plain(&text))
}

fn read<T: DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).expect(text)
}

async fn small_job(house: &House) -> u64 {
    let spec = r#"{"team": "fraud-ml", "name": "small", "image": "fraud-ml/train:1", "flavours": ["h100-80g"], "pods": 1,
        "gpus_per_pod": 8, "run_time": "1d"}"#;
    let spec: SubmitJob = read(spec);
    let actor = house.control.actor("fraud-ml.engineer").await;
    let actor = actor.expect("a person");
    let member = house.control.team_member(&actor, "fraud-ml");
    let done = member.expect("a member").submit(&spec, None).await;
    done.expect("a good job").id
}

#[tokio::test]
async fn a_hold_is_set_listed_and_released_over_rest() {
    let house = House::open().await;
    let block = r#"{"on": "block", "what": "h100-b02", "mode": "drain", "why": "new switches"}"#;
    let (status, text) = rest(&house, "fraud-ml.lead", (Method::POST, "/holds"), block).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{text}");
    let (status, text) = rest(&house, "admin", (Method::POST, "/holds"), block).await;
    assert_eq!(status, StatusCode::CREATED, "{text}");
    let held: HoldView = read(&text);
    assert_eq!((held.by.as_str(), held.running_jobs), ("admin", 0));
    for (body, field) in [
        (r#"{"on": "block", "what": "h100-b99", "why": "x"}"#, "what"),
        (r#"{"on": "planet", "what": "earth", "why": "x"}"#, "on"),
        (r#"{"on": "block", "what": "h100-b03"}"#, "why"),
        (
            r#"{"on": "block", "what": "h100-b03", "mode": "kick", "why": "x"}"#,
            "mode",
        ),
    ] {
        let (status, text) = rest(&house, "admin", (Method::POST, "/holds"), body).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{text}");
        assert_eq!(read::<Problem>(&text).errors[0].field, field, "{body}");
    }
    let (_, text) = rest(&house, "alignment.engineer", (Method::GET, "/holds"), "").await;
    let list: HoldList = read(&text);
    assert_eq!(list.holds.len(), 1, "an announcement is for all: {text}");
    let gone = |path: &'static str| (Method::DELETE, path);
    for (who, path, wanted) in [
        ("admin", "/holds/block/h100-b99", StatusCode::NOT_FOUND),
        (
            "fraud-ml.lead",
            "/holds/block/h100-b02",
            StatusCode::FORBIDDEN,
        ),
        (
            "admin",
            "/holds/block/h100-b02?reason=x",
            StatusCode::BAD_REQUEST,
        ),
        (
            "admin",
            "/holds/block/h100-b02?why=done",
            StatusCode::NO_CONTENT,
        ),
        ("admin", "/holds/block/h100-b02", StatusCode::CONFLICT),
    ] {
        let (status, text) = rest(&house, who, gone(path), "").await;
        assert_eq!(status, wanted, "{who} {path}: {text}");
    }
}

#[tokio::test]
async fn the_page_of_holds_takes_and_releases_and_keeps_what_was_typed() {
    let house = House::open().await;
    let (admin, engineer) = (
        signed_in(&house, "admin").await,
        signed_in(&house, "fraud-ml.engineer").await,
    );
    let page = house
        .get("/holds?on=rack&what=h100-b03-r1", (COOKIE, &admin))
        .await;
    assert!(page.contains("value=\"h100-b03-r1\""), "{page}");
    let form = "on=rack&what=h100-b03-r1&mode=drain&why=";
    let (status, _, page) = post(&house, &admin, "/holds", form).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        page.contains("say why") && page.contains("value=\"h100-b03-r1\""),
        "{page}"
    );
    let form = "on=rack&what=h100-b03-r1&mode=drain&why=new+rails";
    let (status, headers, _) = post(&house, &admin, "/holds", form).await;
    assert_eq!(
        (status, headers[LOCATION].to_str().expect("text")),
        (StatusCode::SEE_OTHER, "/holds")
    );
    let (status, _, page) = post(&house, &admin, "/holds", form).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(
        page.contains("role=\"alert\"") && page.contains("is held already, by admin"),
        "{page}"
    );
    let page = plain(&house.get("/holds", (COOKIE, &engineer)).await);
    assert!(
        page.contains("new rails") && !page.contains("action=\"/holds/release\""),
        "{page}"
    );
    let (status, _, _) = post(
        &house,
        &engineer,
        "/holds/release",
        "on=rack&what=h100-b03-r1",
    )
    .await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    let (status, _, _) = post(&house, &admin, "/holds/release", "on=rack&what=h100-b03-r1").await;
    assert_eq!(status, StatusCode::SEE_OTHER);
    let page = house
        .get("/map?view=table&block=h100-b03", (COOKIE, &admin))
        .await;
    assert!(
        page.contains("/holds?on=node&amp;what=h100-b03-r1-n0#set"),
        "{page}"
    );
}

#[tokio::test]
async fn a_job_is_held_and_released_on_its_page_by_those_who_may() {
    let house = House::open().await;
    let job = small_job(&house).await;
    let path = format!("/jobs/{job}");
    let (owner, lead) = (
        signed_in(&house, "fraud-ml.engineer").await,
        signed_in(&house, "fraud-ml.lead").await,
    );
    let long = format!("mode=hold&hold_why={}", "x".repeat(501));
    let (status, _, page) = post(&house, &owner, &format!("{path}/hold"), &long).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(page.contains("at most 500 characters") && page.contains(&"x".repeat(501)));
    let form = "mode=hold&hold_why=its+data+is+mended";
    let (status, headers, _) = post(&house, &lead, &format!("{path}/hold"), form).await;
    assert_eq!(
        (status, headers[LOCATION].to_str().expect("text")),
        (StatusCode::SEE_OTHER, path.as_str())
    );
    let page = plain(&house.get(&path, (COOKIE, &owner)).await);
    assert!(
        page.contains("its data is mended")
            && page.contains("a lead of its team or an admin can release it"),
        "{page}"
    );
    let (status, _, _) = post(&house, &owner, &format!("{path}/release"), "").await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    let (status, _, _) = post(&house, &lead, &format!("{path}/release"), "").await;
    assert_eq!(status, StatusCode::SEE_OTHER);
    let page = house.get(&path, (COOKIE, &owner)).await;
    assert!(page.contains(&format!("action=\"{path}/hold\"")), "{page}");
}

#[tokio::test]
async fn a_policy_is_changed_over_rest_and_on_its_page_over_the_version_that_was_seen() {
    let house = House::open().await;
    let (_, text) = rest(&house, "admin", (Method::GET, "/policies"), "").await;
    let all: Vec<PolicyView> = read(&text);
    let grace = all
        .iter()
        .find(|one| one.name == "grace")
        .expect("it is there");
    assert_eq!((grace.value.as_str(), grace.version), ("5m", 0));
    let (status, text) = rest(&house, "manager", (Method::GET, "/policies"), "").await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{text}");
    let put = (Method::PUT, "/policies/grace");
    for (body, status, field) in [
        (
            r#"{"value": "8m", "why": "x"}"#,
            StatusCode::UNPROCESSABLE_ENTITY,
            "version",
        ),
        (
            r#"{"value": "8m", "version": 0, "why": ""}"#,
            StatusCode::UNPROCESSABLE_ENTITY,
            "why",
        ),
        (
            r#"{"value": "0s", "version": 0, "why": "x"}"#,
            StatusCode::UNPROCESSABLE_ENTITY,
            "value",
        ),
    ] {
        let (got, text) = rest(&house, "admin", put.clone(), body).await;
        assert_eq!(got, status, "{text}");
        assert_eq!(read::<Problem>(&text).errors[0].field, field, "{body}");
    }
    let body = r#"{"value": "8m", "version": 0, "why": "slow saves"}"#;
    let (status, text) = rest(&house, "admin", put.clone(), body).await;
    assert_eq!(status, StatusCode::OK, "{text}");
    assert_eq!(read::<PolicyView>(&text).version, 1);
    let (status, text) = rest(&house, "admin", put, body).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(
        read::<Problem>(&text)
            .detail
            .contains("from 5m to 8m by admin"),
        "{text}"
    );

    let admin = signed_in(&house, "admin").await;
    let page = house
        .get("/admin/policies?change=grace", (COOKIE, &admin))
        .await;
    assert!(
        page.contains("action=\"/admin/policies/grace\"")
            && page.contains("name=\"version\" value=\"1\""),
        "{page}"
    );
    let stale = "value=4m&why=they+are+quick&version=0";
    let (status, _, page) = post(&house, &admin, "/admin/policies/grace", stale).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(
        page.contains("from 5m to 8m by admin") && page.contains("value=\"4m\""),
        "{page}"
    );
    assert!(
        page.contains("name=\"version\" value=\"1\""),
        "it may be sent once more: {page}"
    );
    let (status, _, page) = post(
        &house,
        &admin,
        "/admin/policies/grace",
        "value=soon&why=x&version=1",
    )
    .await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        page.contains("value=\"soon\"") && page.contains("aria-invalid=\"true\""),
        "{page}"
    );
    let good = "value=4m&why=they+are+quick&version=1";
    let (status, headers, _) = post(&house, &admin, "/admin/policies/grace", good).await;
    assert_eq!(
        (status, headers[LOCATION].to_str().expect("text")),
        (StatusCode::SEE_OTHER, "/admin/policies")
    );
    let lead = signed_in(&house, "fraud-ml.lead").await;
    let (status, _, _) = post(&house, &lead, "/admin/policies/grace", good).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn limits_are_shown_to_their_team_and_set_by_an_admin() {
    let house = House::open().await;
    let (_, text) = rest(&house, "fraud-ml.engineer", (Method::GET, "/limits"), "").await;
    let list: LimitList = read(&text);
    assert_eq!(
        (list.teams.len(), list.teams[0].team.as_str(), list.may_set),
        (1, "fraud-ml", false)
    );
    let lead = signed_in(&house, "fraud-ml.lead").await;
    let page = plain(&house.get("/limits", (COOKIE, &lead)).await);
    assert!(
        page.contains("no limit") && !page.contains("#change"),
        "{page}"
    );
    let put = (Method::PUT, "/teams/fraud-ml/limits");
    let body = r#"{"limits": {"running_jobs": 4, "running_gpus": 64}, "member": {"waiting_jobs": 9}, "version": 0, "why": "a review"}"#;
    let (status, _) = rest(&house, "fraud-ml.lead", put.clone(), body).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    let (status, text) = rest(&house, "admin", put, body).await;
    assert_eq!(status, StatusCode::OK, "{text}");
    let set: TeamLimitsView = read(&text);
    let said = set.last.expect("a change").what;
    assert_eq!(
        said,
        "running jobs no limit to 4; running GPUs no limit to 64; a member's waiting jobs no limit to 9"
    );
    let admin = signed_in(&house, "admin").await;
    let page = house.get("/limits?team=fraud-ml", (COOKIE, &admin)).await;
    assert!(page.contains("name=\"version\" value=\"1\""), "{page}");
    let wrong = "running_jobs=many&member_running_gpus=none&why=x&version=1";
    let (status, _, page) = post(&house, &admin, "/limits/fraud-ml", wrong).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        page.contains("value=\"many\"") && page.contains("is no limit"),
        "{page}"
    );
    let none = "running_jobs=&running_gpus=no+limit&why=over&version=1";
    let (status, _, page) = post(&house, &admin, "/limits/fraud-ml", none).await;
    assert_eq!(status, StatusCode::SEE_OTHER, "{page}");
    let (_, text) = rest(&house, "admin", (Method::GET, "/limits"), "").await;
    let list: LimitList = read(&text);
    let mine = list.teams.iter().find(|one| one.team == "fraud-ml");
    assert_eq!(
        mine.expect("it is there").limits.running_jobs,
        None,
        "{text}"
    );
}
