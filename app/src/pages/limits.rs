//! Limits on what runs and waits at once: of teams, of their members, of each person.

use super::Page;
use super::policies::last;
use crate::PageContext;
use crate::forms;
use crate::parts::{
    Col, Field, PageHead, Sheet, blank, count, form_error, gpus, plural, text_field,
};
use crate::url::Url;
use contract::{LimitList, LimitSet, LoadView, TeamLimitsView, limit_text};
use control::ServiceError;
use leptos::prelude::*;

/// People of a team that its row names.
const NAMED: usize = 3;

/// The page; `team` names the one whose form is open.
pub async fn limits(context: &PageContext, team: Option<&str>) -> Page {
    let list = context.everyone()?.limits().await?;
    let chosen = match team {
        None => None,
        Some(name) => {
            let found = list.teams.iter().find(|one| one.team == name);
            Some(found.ok_or_else(|| ServiceError::NotFound(format!("team {name}")))?)
        }
    };
    let form = match chosen {
        Some(one) if list.may_set => Some(form(context, one)),
        _ => None,
    };
    let content = if list.teams.is_empty() {
        blank("You are in no team.", None)
    } else {
        table(&list)
    };
    Ok(view! {
        <PageHead title="Limits" say=summary(&list).into_any() />
        {form_error(&context.errors)}
        {form}
        <div data-live="limits">{content}</div>
        {person(&list)}
    }
    .into_any())
}

fn summary(list: &LimitList) -> String {
    let none = LimitSet::default();
    let limited = list
        .teams
        .iter()
        .filter(|one| one.limits != none || one.member != none)
        .count() as u64;
    let who = match list.may_set {
        true => "",
        false => " An admin changes them.",
    };
    match limited {
        0 => format!("No team has a limit on what runs or waits at once.{who}"),
        n => format!(
            "{} a limit on what runs or waits at once. What is over a limit runs on; what would pass it waits.{who}",
            plural(n, "team has", "teams have")
        ),
    }
}

fn table(list: &LimitList) -> AnyView {
    let rows = list.teams.iter().map(|one| row(one, list)).collect();
    Sheet {
        caption: "Limits of teams".to_owned(),
        class: "settings",
        cols: vec![
            Col::Text("Team"),
            Col::Number("Running jobs"),
            Col::Number("Waiting jobs"),
            Col::Number("Running GPUs"),
            Col::Text("Each member, at most"),
            Col::Text("Who has most"),
            Col::Text("Last change"),
            Col::Unseen("Change them"),
        ],
        rows,
        foot: None,
    }
    .view()
}

/// `3 of 8`, `3, no limit`.
fn used(now: String, limit: Option<String>) -> AnyView {
    let of = match limit {
        Some(limit) => format!(" of {limit}"),
        None => ", no limit".to_owned(),
    };
    view! { {now}<span class="u">{of}</span> }.into_any()
}

fn row(one: &TeamLimitsView, list: &LimitList) -> AnyView {
    let (load, limits) = (&one.load, &one.limits);
    let to = Url::Limits {
        team: Some(one.team.clone()),
    };
    let label = format!("Change limits of {}", one.team);
    let change = list
        .may_set
        .then(|| view! { <a class="btn small" href=format!("{to}#change") aria-label=label>"Change…"</a> });
    let jobs = |n: u32| count(n.into());
    view! {
        <tr id=format!("limits-{}", one.team)>
            <th scope="row">{one.team.clone()}</th>
            <td class="n">{used(jobs(load.running_jobs), limits.running_jobs.map(jobs))}</td>
            <td class="n">{used(jobs(load.waiting_jobs), limits.waiting_jobs.map(jobs))}</td>
            <td class="n">{used(gpus(load.running_gpus), limits.running_gpus.map(gpus))}</td>
            <td>{each(&one.member)}</td>
            <td class="q">{most(one)}</td>
            <td>{last(one.last.as_ref(), list.now)}</td>
            <td class="n">{change}</td>
        </tr>
    }
    .into_any()
}

/// The limits of one person, in words.
fn each(limits: &LimitSet) -> String {
    let parts = [
        limits
            .running_jobs
            .map(|n| format!("{} running", plural(n.into(), "job", "jobs"))),
        limits
            .waiting_jobs
            .map(|n| format!("{} waiting", plural(n.into(), "job", "jobs"))),
        limits
            .running_gpus
            .map(|n| format!("{} running", contract::gpu_count(n.0))),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    match parts.is_empty() {
        true => "no limit".to_owned(),
        false => parts.join(", "),
    }
}

fn most(one: &TeamLimitsView) -> String {
    let said = |load: &LoadView| {
        format!(
            "{} on {}",
            plural(load.running_jobs.into(), "job", "jobs"),
            contract::gpu_count(load.running_gpus.0)
        )
    };
    let busy = one.people.iter().filter(|one| one.load.running_jobs > 0);
    let named: Vec<_> = busy
        .take(NAMED)
        .map(|one| format!("{}: {}", one.person, said(&one.load)))
        .collect();
    named.join("; ")
}

/// What each person may have over all teams: a policy.
fn person(list: &LimitList) -> AnyView {
    let said = format!("Each person over all teams: {}.", each(&list.person));
    let to = list.may_set.then(|| {
        let to = Url::Policies {
            change: Some("person_limits.running_jobs".to_owned()),
        };
        view! { " It is a policy: "<a class="link" href=format!("{to}#change")>"change it"</a>"." }
    });
    view! { <p class="hint">{said}{to}</p> }.into_any()
}

fn form(context: &PageContext, one: &TeamLimitsView) -> AnyView {
    let errors = context.errors.as_slice();
    // What came back wins over what it is.
    let value = |name: &str, now: Option<String>| {
        let typed = context.typed.get(name).cloned();
        typed.unwrap_or_else(|| limit_text(now))
    };
    let text = |limit: Option<u32>| limit.map(|limit| limit.to_string());
    let (team, member) = (&one.limits, &one.member);
    let fields = [
        ("running_jobs", "Running jobs", text(team.running_jobs)),
        ("waiting_jobs", "Waiting jobs", text(team.waiting_jobs)),
        (
            "running_gpus",
            "Running GPUs",
            team.running_gpus.map(|gpus| gpus.to_string()),
        ),
        (
            "member_running_jobs",
            "Running jobs of each member",
            text(member.running_jobs),
        ),
        (
            "member_waiting_jobs",
            "Waiting jobs of each member",
            text(member.waiting_jobs),
        ),
        (
            "member_running_gpus",
            "Running GPUs of each member",
            member.running_gpus.map(|gpus| gpus.to_string()),
        ),
    ];
    let mut inputs: Vec<AnyView> = fields
        .into_iter()
        .map(|(name, label, now)| {
            let value = value(name, now);
            let field = Field {
                name,
                label,
                value: &value,
                hint: "",
                errors,
            };
            text_field(field, "", None)
        })
        .collect();
    let member = inputs.split_off(3);
    let why = Field {
        name: "why",
        label: "Why",
        value: context.typed("why", ""),
        hint: "for those who meet it later",
        errors,
    };
    let whole = Url::Limits { team: None }.to_string();
    view! {
        <section class="panel act first" id="change">
            <h2>"Limits of "{one.team.clone()}</h2>
            <p class="q">"A number, or none. A lower limit stops nothing: what is over it runs to its end."</p>
            <form method="post" action=forms::limits(&one.team)>
                <input type="hidden" name="version" value=one.version.to_string() />
                <div class="row">{inputs}</div>
                <div class="row">{member}</div>
                {text_field(why, "", None)}
                <div class="acts"><button class="btn go">"Change limits"</button><a class="btn quiet" href=whole>"Leave them"</a></div>
            </form>
        </section>
    }
    .into_any()
}
