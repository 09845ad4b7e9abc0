//! Who gets in: a redirect to sign-in carries no page, and leads back to where one wanted to go.

use super::headers::Asked;
use super::page::{self, refuse};
use super::session;
use crate::door::Door;
use app::{PageProblem, Url};
use axum::Extension;
use axum::extract::{Form, Request, State};
use axum::http::header::{HOST, LOCATION};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use control::ServiceError;
use serde::Deserialize;
use std::net::IpAddr;
use tower_sessions::Session;

/// Lets through who is signed in, and tells what follows who that is.
pub async fn signed_in(
    State(door): State<Door>,
    Extension(session): Extension<Session>,
    mut request: Request,
    next: Next,
) -> Response {
    match session::actor(&door, &session).await {
        Ok(actor) => {
            request.extensions_mut().insert(actor);
            next.run(request).await
        }
        Err(ServiceError::Unauthenticated) => to_sign_in(&request),
        Err(error) => refuse(error),
    }
}

fn to_sign_in(request: &Request) -> Response {
    let back = if request.method() == Method::GET {
        path_of(request.uri())
    } else {
        page_behind(request.uri().path())
    };
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("next", &back);
    see_other(&format!("/sign-in?{}", query.finish()))
}

/// The page that a form was on: where a POST cannot be repeated one can at least look.
fn page_behind(path: &str) -> String {
    let segments: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    match segments.as_slice() {
        ["jobs", id, _] => format!("/jobs/{id}"),
        ["reclaims", id, _] => format!("/reclaims/{id}"),
        ["tokens", ..] => Url::Tokens.to_string(),
        ["holds", ..] => "/holds".to_owned(),
        ["limits", team] => {
            let team = Some((*team).to_owned());
            Url::Limits { team }.to_string()
        }
        ["admin", "policies", name] => {
            let change = Some((*name).to_owned());
            Url::Policies { change }.to_string()
        }
        _ => path.to_owned(),
    }
}

/// 303, without a body.
pub fn see_other(place: &str) -> Response {
    (StatusCode::SEE_OTHER, [(LOCATION, place)]).into_response()
}

/// The own path with its query.
pub fn path_of(uri: &Uri) -> String {
    uri.path_and_query()
        .map_or("/", |path| path.as_str())
        .to_owned()
}

/// Where `next` leads, if that is a path of this portal; the first page otherwise.
fn own_path(next: Option<&str>) -> &str {
    next.filter(|path| {
        path.starts_with('/')
            && !path.starts_with("//")
            && !path.starts_with("/sign-")
            && path
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && byte != b'\\')
    })
    .unwrap_or("/")
}

/// The choose-a-person page; somebody who is signed in already goes on.
pub async fn sign_in_page(
    State(door): State<Door>,
    Extension(session): Extension<Session>,
    Extension(asked): Extension<Asked>,
    uri: Uri,
) -> Response {
    if session::actor(&door, &session).await.is_ok() {
        let query = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        let next = query
            .into_owned()
            .find(|(name, _)| name == "next")
            .map(|(_, value)| value);
        return see_other(own_path(next.as_deref()));
    }
    page::render(&door, asked, page::context(&door, None, path_of(&uri))).await
}

/// What the sign-in form holds.
#[derive(Debug, Deserialize)]
pub struct SignIn {
    person: String,
    next: Option<String>,
}

/// Signs a demo person in.
pub async fn sign_in(
    State(door): State<Door>,
    Extension(session): Extension<Session>,
    Form(form): Form<SignIn>,
) -> Response {
    if !door.control.is_demo() {
        return refuse(ServiceError::NotFound("such page".to_owned()));
    }
    let begun = async {
        let people = door.control.demo_people().await?;
        if !people.iter().any(|person| person.id == form.person) {
            return Err(ServiceError::NotFound(format!(
                "demo person `{}`",
                form.person
            )));
        }
        session::begin(&session, &form.person).await
    };
    match begun.await {
        Ok(()) => see_other(own_path(form.next.as_deref())),
        Err(error) => refuse(error),
    }
}

/// Signs out.
pub async fn sign_out(Extension(session): Extension<Session>) -> Response {
    match session::end(&session).await {
        Ok(()) => see_other("/sign-in"),
        Err(error) => refuse(error),
    }
}

/// Whether the request names this machine: `localhost`, or an address that never leaves it.
pub fn is_own_name(headers: &HeaderMap) -> bool {
    // Of two names one is somebody else's: a proxy may go by the other one.
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return false;
    };
    let Ok(host) = host.to_str() else {
        return false;
    };
    let Ok(authority) = host.parse::<axum::http::uri::Authority>() else {
        return false;
    };
    let name = authority
        .host()
        .trim_start_matches('[')
        .trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || name
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// The answer to a request under another name.
pub fn misdirected() -> Response {
    let text = "The demo answers on this machine only: open it as http://127.0.0.1 or http://localhost, with its port.\n";
    (StatusCode::MISDIRECTED_REQUEST, text).into_response()
}

/// The page for a request that came from another site.
pub fn cross_site() -> PageProblem {
    PageProblem {
        status: 403,
        title: "Refused".into(),
        detail: "This form was sent from another site. Open the page here and send it again."
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_leads_only_to_own_paths() {
        for good in ["/", "/queue?team=fraud-ml&state=queued", "/jobs/7"] {
            assert_eq!(own_path(Some(good)), good);
        }
        for bad in [
            "",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "/a\r\nb",
            "/sign-out",
            "queue",
            "/ä",
        ] {
            assert_eq!(own_path(Some(bad)), "/", "{bad}");
        }
    }

    #[test]
    fn the_demo_knows_the_names_of_its_machine() {
        let check = |host: &str, own: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().expect(host));
            assert_eq!(is_own_name(&headers), own, "{host}");
        };
        for host in [
            "localhost:3000",
            "127.0.0.1:3000",
            "127.1.2.3",
            "[::1]:3000",
            "LOCALHOST",
        ] {
            check(host, true);
        }
        for host in [
            "evil.example:3000",
            "localhost.evil.example",
            "10.0.0.1:3000",
            "127.0.0.1.nip.io",
        ] {
            check(host, false);
        }
        let mut two = HeaderMap::new();
        for host in ["localhost:3000", "localhost:3000"] {
            two.append(HOST, host.parse().expect(host));
        }
        assert!(!is_own_name(&two), "two names");
    }

    #[test]
    fn a_post_leads_back_to_its_page() {
        assert_eq!(page_behind("/jobs/7/cancel"), "/jobs/7");
        assert_eq!(page_behind("/tokens/a1/revoke"), "/tokens");
        assert_eq!(page_behind("/jobs/7/resume"), "/jobs/7");
        assert_eq!(page_behind("/jobs/new"), "/jobs/new");
        assert_eq!(page_behind("/limits/fraud-ml"), "/limits?team=fraud-ml");
        let policies = "/admin/policies?change=grace";
        assert_eq!(page_behind("/admin/policies/grace"), policies);
    }

    #[test]
    fn every_post_of_the_table_leads_back_to_a_page() {
        // The table's own text, since a router does not tell its routes. A page is what the portal's addresses know.
        let table = include_str!("mod.rs");
        let (guarded, _) = table.split_once("let open =").expect("the table");
        let posts = guarded
            .split(".route(")
            .skip(1)
            .filter(|route| route.contains("post("))
            .map(|route| route.split('"').nth(1).expect("a path"));
        let mut seen = 0;
        for path in posts {
            let page = page_behind(&path.replace("{id}", "7").replace(['{', '}'], ""));
            assert!(Url::parse(&page).is_ok(), "{path} leads to {page}");
            seen += 1;
        }
        assert!(seen >= 16, "{seen} posts in the table");
    }
}
