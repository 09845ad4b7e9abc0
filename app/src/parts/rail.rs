//! The rail: where one can go, who is signed in, and which clock this is.

use super::{count, exact, zone_name};
use crate::forms;
use crate::islands::Live;
use crate::url::{QueueUrl, Url};
use contract::Role;
use control::Actor;
use jiff::Timestamp;
use leptos::prelude::*;

/// What the rail shows of the fleet.
pub struct Frame {
    /// Jobs in the list behind the Queue link; `None` = not known now.
    pub queued: Option<u64>,
    /// Reclaims that wait for an answer of the one who looks; `None` = not known now.
    pub reclaims: Option<u64>,
    /// The page's now.
    pub now: Timestamp,
    /// How fast the clock runs.
    pub speed: u32,
    /// The journal's sequence number that the page shows; `None` where looking again would show nothing new.
    pub seq: Option<u64>,
}

/// The mark of the house: nine cards.
fn mark() -> AnyView {
    view! {
        <svg width="22" height="22" viewBox="0 0 22 22" aria-hidden="true">
            <path class="k-mark" d="M1 3.7h20M1 10.7h20M1 17.7h20" />
        </svg>
    }
    .into_any()
}

/// The rail of somebody who is signed in.
pub fn rail(actor: &Actor, here: Option<&Url>, frame: &Frame) -> AnyView {
    let queued = frame
        .queued
        .map(|n| view! { <span class="count" data-live="queued">{count(n)}</span> });
    // There also when it is nought, so that a look at the page again has a place for it.
    let reclaims = frame.reclaims.map(|n| {
        let for_you =
            (n > 0).then(|| view! { {count(n)}<span class="sr">" for you to answer"</span> });
        view! { <span class="count" data-live="reclaims-for-you">{for_you}</span> }.into_any()
    });
    let plain: Option<AnyView> = None;
    let link = |url: Url, word: &'static str, extra: Option<AnyView>| {
        let current = here
            .is_some_and(|here| same_place(here, &url))
            .then_some("page");
        view! { <li><a href=url.to_string() aria-current=current><span>{word}</span>{extra}</a></li> }
    };
    let first = [
        link(Url::Overview, "Overview", None),
        link(
            Url::Queue(QueueUrl::default()),
            "Queue",
            queued.map(IntoAny::into_any),
        ),
        link(Url::Map(crate::url::MapUrl::default()), "Map", None),
        link(
            Url::Holds {
                on: None,
                what: None,
            },
            "Holds",
            None,
        ),
    ];
    let money = [
        link(Url::Quotas { flavour: None }, "Quotas", None),
        link(Url::Limits { team: None }, "Limits", None),
        link(Url::Reclaims { after: None }, "Reclaims", reclaims),
        link(Url::Bills { month: None }, "Bills", plain),
    ];
    let own = [link(Url::Tokens, "API tokens", None)];
    let admin = actor.has(Role::Admin).then(|| {
        let policies = link(Url::Policies { change: None }, "Policies", None);
        view! {
            <p class="group" id="rail-admin">"Admin"</p>
            <ul aria-labelledby="rail-admin">{policies}</ul>
        }
    });
    let speed = (frame.speed != 1).then(|| {
        view! { <span class="q">"demo clock at "{count(frame.speed.into())}"x"</span> }
    });
    view! {
        <aside class="rail">
            <a class="mark" href=Url::Overview.to_string()>{mark()}"muster"</a>
            <nav aria-label="Main">
                <ul>{first.into_iter().collect_view()}</ul>
                <p class="group" id="rail-money">"Teams and money"</p>
                <ul aria-labelledby="rail-money">{money.into_iter().collect_view()}</ul>
                {admin}
                <p class="group" id="rail-own">"Yours"</p>
                <ul aria-labelledby="rail-own">{own.into_iter().collect_view()}</ul>
            </nav>
            <div class="who">
                <b>{actor.name.clone()}</b>
                <span class="q">{roles(actor)}</span>
                <span class="q">"times in "{zone_name()}</span>
                <span class="q">
                    "as of "
                    <time id="as-of" data-live="as-of" datetime=frame.now.to_string() title=exact(frame.now)>
                        {super::time_of_day(frame.now)}
                    </time>
                </span>
                {speed}
                {frame.seq.map(|seq| view! { <Live after=seq /> })}
                <form method="post" action=forms::SIGN_OUT><button class="btn small">"Sign out"</button></form>
            </div>
        </aside>
    }
    .into_any()
}

/// Two addresses are the same place of the rail when they are the same kind of page.
fn same_place(here: &Url, link: &Url) -> bool {
    let place = |url: &Url| match url {
        Url::Overview => 0,
        Url::Queue(_) | Url::Job(_) | Url::NewJob(_) => 1,
        Url::Map(_) => 2,
        Url::Quotas { .. } => 3,
        Url::Bills { .. } | Url::Bill { .. } => 4,
        Url::Tokens => 5,
        Url::SignIn { .. } => 6,
        Url::Reclaims { .. } | Url::Reclaim(_) => 7,
        Url::Holds { .. } => 8,
        Url::Limits { .. } => 9,
        Url::Policies { .. } => 10,
    };
    place(here) == place(link)
}

/// Roles in words: `member of fraud-ml`, `admin`.
fn roles(actor: &Actor) -> String {
    let words: Vec<_> = actor
        .memberships
        .iter()
        .map(|membership| match &membership.team {
            Some(team) => format!("{} of {team}", membership.role.as_str()),
            None => membership.role.as_str().to_owned(),
        })
        .collect();
    if words.is_empty() {
        "no role yet".to_owned()
    } else {
        words.join(", ")
    }
}
