//! The demo's sign-in: choose a person. It exists in the demo only, on this machine.

use super::Page;
use crate::PageContext;
use crate::forms;
use crate::parts::PageHead;
use contract::PersonView;
use control::ServiceError;
use leptos::prelude::*;
use std::collections::BTreeMap;

/// Whom the walk through the demo begins with.
const FIRST: [(&str, &str); 4] = [
    (
        "fraud-ml.engineer",
        "submits a fine-tune, sees why it waits, cancels own jobs",
    ),
    (
        "fraud-ml.lead",
        "also cancels any job of the team, and reads its bill first",
    ),
    ("manager", "reads every team's jobs and bills"),
    ("admin", "may do everything, and sees the fleet first"),
];

/// The page.
pub async fn sign_in(context: &PageContext, next: Option<&str>) -> Page {
    if !context.control.is_demo() {
        return Err(ServiceError::NotFound("such page".to_owned()));
    }
    let people = context.control.demo_people().await?;
    let why = next.filter(|next| *next != "/").map(|next| {
        view! { <p class="notice" role="status">"Sign in to go on to "<code>{next.to_owned()}</code>"."</p> }
    });
    let say = "This is the demo on your own machine: choose who you are. Nobody here exists, and there is no password.";
    let next = next.unwrap_or("/").to_owned();
    Ok(view! {
        <div class="sign-in">
            <PageHead title="Muster" say=say.into_any() still=true />
            {why}
            {first(&people, &next)}
            {anybody(&people, &next)}
        </div>
    }
    .into_any())
}

/// A button for each of the first few, with what they may do.
fn first(people: &[PersonView], next: &str) -> AnyView {
    let buttons: Vec<_> = FIRST
        .iter()
        .enumerate()
        .filter_map(|(index, (id, said))| {
            let person = people.iter().find(|person| person.id == *id)?;
            let class = if index == 0 { "person first" } else { "person" };
            let (name, more) = (format!("person-{index}"), format!("person-{index}-may"));
            Some(view! {
                <li>
                    <button class=class name="person" value=*id aria-labelledby=name aria-describedby=more>
                        <b id=name.clone()>{person.name.clone()}</b>
                        <span id=more.clone()>{*said}</span>
                    </button>
                </li>
            })
        })
        .collect();
    view! {
        <form method="post" action=forms::SIGN_IN>
            <input type="hidden" name="next" value=next.to_owned() />
            <ul class="people">{buttons}</ul>
        </form>
    }
    .into_any()
}

/// Everybody else, by team: a small button each, in a form of one press.
fn anybody(people: &[PersonView], next: &str) -> AnyView {
    let mut teams: BTreeMap<String, Vec<&PersonView>> = BTreeMap::new();
    for person in people
        .iter()
        .filter(|person| FIRST.iter().all(|(id, _)| person.id != *id))
    {
        let team = person
            .memberships
            .iter()
            .find_map(|membership| membership.team.clone());
        teams
            .entry(team.unwrap_or_default())
            .or_default()
            .push(person);
    }
    let groups: Vec<_> = teams
        .into_iter()
        .map(|(team, people)| {
            let buttons: Vec<_> = people.iter().map(|person| button(person, &team)).collect();
            let word = if team.is_empty() {
                "over everything".to_owned()
            } else {
                team
            };
            view! { <li><span>{word}</span>{buttons}</li> }
        })
        .collect();
    view! {
        <form method="post" action=forms::SIGN_IN>
            <h2>"Or somebody else, by team"</h2>
            <input type="hidden" name="next" value=next.to_owned() />
            <ul class="by-team">{groups}</ul>
        </form>
    }
    .into_any()
}

/// `speech engineer` under `speech` is shown as `engineer`, and named whole.
fn button(person: &PersonView, team: &str) -> AnyView {
    let short = person
        .name
        .strip_prefix(team)
        .unwrap_or(&person.name)
        .trim()
        .to_owned();
    view! { <button class="btn small" name="person" value=person.id.clone() aria-label=person.name.clone()>{short}</button> }.into_any()
}
