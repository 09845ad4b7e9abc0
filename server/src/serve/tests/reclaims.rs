//! Reclaims through REST and through the portal's forms.

use super::{
    Body, CONTENT_TYPE, COOKIE, HOST, House, Millis, Request, StatusCode, bearer, plain, signed_in,
};
use axum::http::header::{AUTHORIZATION, LOCATION};
use axum::http::{HeaderMap, Method};
use contract::{Problem, ReclaimList, ReclaimStage, ReclaimView, SubmitJob};

/// A gang of 256 GPUs in one block that runs for a day and saves every 20 minutes.
fn block_of(team: &str, name: &str) -> SubmitJob {
    let text = format!(
        r#"{{"team": "{team}", "name": "{name}", "image": "{team}/train:1", "flavours": ["h100-80g"], "pods": 32,
            "gpus_per_pod": 8, "topology": "block", "time_limit": "2d", "run_time": "1d",
            "checkpoint": {{"period": "20m", "save": "10s"}}}}"#
    );
    serde_json::from_str(&text).expect("a spec")
}

/// A house in which fraud-ml asks back what foundation and alignment borrow.
struct Asked {
    house: House,
    path: String,
    /// A team that would lose by it.
    loser: String,
}

impl Asked {
    async fn open() -> Self {
        let house = House::open().await;
        for n in 1..=15 {
            let team = if n % 2 == 0 {
                "alignment"
            } else {
                "foundation"
            };
            submit(&house, team, &format!("lent-{n}")).await;
        }
        house.pass(Millis::minutes(30)).await;
        submit(&house, "fraud-ml", "chargeback").await;
        let admin = bearer(&house, "admin").await;
        let list = house
            .get(
                "/api/v1/reclaims?stage=requested&team=fraud-ml",
                (AUTHORIZATION, &admin),
            )
            .await;
        let list: ReclaimList = serde_json::from_str(&list).expect("a list");
        let [one] = list.reclaims.as_slice() else {
            panic!("one is asked for: {list:?}")
        };
        assert_eq!((list.total, list.for_you), (1, 1));
        Self {
            path: format!("/reclaims/{}", one.id),
            loser: one.losing_teams[0].clone(),
            house,
        }
    }

    /// What REST answers to somebody's deed.
    async fn rest(&self, who: &str, deed: &str, body: Option<&str>) -> (StatusCode, String) {
        let method = if deed.is_empty() || deed.starts_with('?') {
            Method::GET
        } else {
            Method::POST
        };
        let request = Request::builder()
            .method(method)
            .uri(format!("/api/v1{}{deed}", self.path))
            .header(HOST, "localhost")
            .header(AUTHORIZATION, bearer(&self.house, who).await)
            .header(CONTENT_TYPE, "application/json")
            .body(Body::from(body.unwrap_or_default().to_owned()));
        let (status, headers, text) = self.house.send(request.expect("a request")).await;
        if status.is_client_error() {
            assert_eq!(headers[CONTENT_TYPE], "application/problem+json", "{text}");
        }
        (status, text)
    }

    async fn refused(&self, who: &str, deed: &str, body: Option<&str>) -> Problem {
        let (status, text) = self.rest(who, deed, body).await;
        let problem: Problem = serde_json::from_str(&text).expect("a problem");
        assert_eq!(problem.status, status.as_u16());
        problem
    }

    async fn shown(&self, who: &str) -> ReclaimView {
        let (status, text) = self.rest(who, "", None).await;
        assert_eq!(status, StatusCode::OK, "{text}");
        serde_json::from_str(&text).expect("a reclaim")
    }

    /// What the portal answers to somebody's form.
    async fn post(&self, cookie: &str, deed: &str, form: &str) -> (StatusCode, HeaderMap, String) {
        let request = Request::post(format!("{}/{deed}", self.path))
            .header(HOST, "localhost")
            .header(COOKIE, cookie)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Body::from(form.to_owned()));
        self.house.send(request.expect("a request")).await
    }

    fn lead(&self) -> String {
        format!("{}.lead", self.loser)
    }
}

async fn submit(house: &House, team: &str, name: &str) {
    let actor = house.control.actor(&format!("{team}.engineer")).await;
    let actor = actor.expect("a person");
    let member = house.control.team_member(&actor, team).expect("a member");
    let done = member.submit(&block_of(team, name), None).await;
    done.expect("a good job");
    house.control.settled().await;
}

#[tokio::test]
async fn each_answer_is_refused_with_its_own_problem_and_given_once() {
    let asked = Asked::open().await;
    let lead = asked.lead();
    // Nobody else finds it; whoever sees it is told whose answer it is.
    for deed in ["", "/approve", "/defer"] {
        let problem = asked.refused("signals.lead", deed, None).await;
        assert_eq!(problem.status, 404, "{deed}");
    }
    for (who, deed) in [
        ("manager", "/approve"),
        (lead.as_str(), "/approve"),
        ("fraud-ml.lead", "/defer"),
    ] {
        let problem = asked.refused(who, deed, None).await;
        assert_eq!(problem.status, 403, "{who} {deed}");
        assert!(problem.detail.contains("admin"), "{}", problem.detail);
    }
    for (who, deed, body, field) in [
        ("admin", "/decline", "{}", "reason"),
        ("admin", "/decline", r#"{"reason": "  "}"#, "reason"),
        (
            "admin",
            "/decline",
            r#"{"reason": "a", "reasons": 1}"#,
            "reasons",
        ),
        (lead.as_str(), "/propose", r#"{"victims": []}"#, "victims"),
        (
            lead.as_str(),
            "/propose",
            r#"{"victims": [4711]}"#,
            "victims",
        ),
    ] {
        let problem = asked.refused(who, deed, Some(body)).await;
        assert_eq!(problem.status, 422, "{deed} {body}");
        assert_eq!(problem.errors[0].field, field, "{deed} {body}");
    }
    let other = asked.shown(&lead).await.alternatives.swap_remove(0);
    let victims: Vec<u64> = other.jobs.iter().map(|job| job.id).collect();
    let body = format!(r#"{{"victims": {victims:?}}}"#);
    let (status, text) = asked.rest("admin", "/propose", Some(&body)).await;
    assert_eq!(status, StatusCode::OK, "{text}");
    let now: ReclaimView = serde_json::from_str(&text).expect("a reclaim");
    assert_eq!(now.proposed_by.as_deref(), Some("admin"));
    let speaker = format!("{}.lead", now.losing_teams[0]);
    assert_eq!(asked.rest(&speaker, "/defer", None).await.0, StatusCode::OK);
    let again = asked.refused(&speaker, "/defer", None).await;
    assert_eq!(again.status, 409);
    assert!(again.detail.contains(&speaker), "{}", again.detail);

    let (status, text) = asked.rest("admin", "/approve", None).await;
    assert_eq!(status, StatusCode::OK, "{text}");
    let late = asked
        .refused("admin", "/decline", Some(r#"{"reason": "late"}"#))
        .await;
    assert_eq!(late.status, 409);
    assert!(
        late.detail.contains("was approved by admin at"),
        "{}",
        late.detail
    );
    assert_eq!(asked.shown(&lead).await.stage, ReclaimStage::Made);
}

#[tokio::test]
async fn a_list_takes_what_it_knows_and_names_the_rest() {
    let asked = Asked::open().await;
    let token = bearer(&asked.house, "admin").await;
    for (query, field) in [
        ("stage=running", "stage"),
        ("limit=0", "limit"),
        ("after=x", "after"),
        ("colour=red", "colour"),
    ] {
        let request = Request::get(format!("/api/v1/reclaims?{query}"))
            .header(HOST, "localhost")
            .header(AUTHORIZATION, &token)
            .body(Body::empty());
        let (status, _, text) = asked.house.send(request.expect("a request")).await;
        let problem: Problem = serde_json::from_str(&text).expect("a problem");
        assert_eq!(
            (status, problem.errors[0].field.as_str()),
            (StatusCode::BAD_REQUEST, field),
            "{query}"
        );
    }
    let stranger = bearer(&asked.house, "signals.lead").await;
    let none = asked
        .house
        .get("/api/v1/reclaims", (AUTHORIZATION, &stranger))
        .await;
    let none: ReclaimList = serde_json::from_str(&none).expect("a list");
    assert_eq!((none.total, none.for_you, none.reclaims.len()), (0, 0, 0));
}

#[tokio::test]
async fn the_inbox_shows_each_what_concerns_them_and_a_form_answers_once() {
    let asked = Asked::open().await;
    let house = &asked.house;
    let (admin, lead) = (
        signed_in(house, "admin").await,
        signed_in(house, &asked.lead()).await,
    );
    let page = house.get("/reclaims", (COOKIE, &admin)).await;
    let approve = format!("action=\"{}/approve\"", asked.path);
    for part in [
        approve.as_str(),
        "1 waits for an answer, for you to give.",
        "Killed now",
        "After a save (what a yes does)",
        "chargeback",
        "You decide as admin.",
        " for you to answer",
    ] {
        assert!(plain(&page).contains(part), "{part} is not on {page}");
    }
    let page = house.get("/reclaims", (COOKIE, &lead)).await;
    assert!(!page.contains(&approve) && page.contains("Your team would lose by it."));
    let page = house.get(&asked.path, (COOKIE, &lead)).await;
    assert!(page.contains("Propose these") && !page.contains("Decline this reclaim"));
    let stranger = signed_in(house, "signals.lead").await;
    let page = house.get("/reclaims", (COOKIE, &stranger)).await;
    assert!(page.contains("None waits for an answer.") && !page.contains("chargeback"));

    let (status, _, page) = asked.post(&admin, "decline", "reason=").await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(page.contains("aria-invalid=\"true\"") && page.contains("say why"));
    let (status, _, page) = asked.post(&lead, "propose", "victims=4711%2C+ten").await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(page.contains("value=\"4711, ten\""), "what was typed stays");
    assert_eq!(
        asked.post(&lead, "approve", "").await.0,
        StatusCode::FORBIDDEN
    );
    // What a page sends with its button is nobody's typing: the form is wrong, and no field of another one.
    let (status, _, page) = asked.post(&admin, "approve", "seen=ten").await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        page.contains("role=\"alert\"") && !page.contains("aria-invalid=\"true\""),
        "{page}"
    );
    let (status, headers, _) = asked
        .post(&admin, "decline", "reason=a+paper+deadline")
        .await;
    assert_eq!(
        (status, headers[LOCATION].to_str().expect("text")),
        (StatusCode::SEE_OTHER, asked.path.as_str())
    );
    let (status, _, page) = asked.post(&admin, "approve", "").await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(
        page.contains("role=\"alert\"") && page.contains("was declined by admin at"),
        "{page}"
    );
    let page = house.get("/reclaims", (COOKIE, &lead)).await;
    assert!(plain(&page).contains("Declined by admin: a paper deadline"));
}
