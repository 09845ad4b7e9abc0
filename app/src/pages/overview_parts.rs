//! Panels of the overview.

use super::overview::Seen;
use crate::parts::{
    amount, blank, by_size, count, fleet_bar, fleet_key, gpu_hours, gpus, month_name, plural,
    quota_bar, quota_key, reason_line, row_badge, when,
};
use crate::url::{LIVE, MapUrl, Start, Url};
use contract::{BillView, FleetView, JobFilter, JobList, JobRow, TeamView};
use jiff::Timestamp;
use leptos::prelude::*;

/// A few jobs, with the way to all of them.
pub fn yours(seen: &Seen, heading: &'static str) -> AnyView {
    list("yours", heading.to_owned(), &seen.jobs, &seen.filter)
}

/// Live jobs of the own teams.
pub fn team_jobs(seen: &Seen) -> Option<AnyView> {
    let (filter, jobs) = seen.team_jobs.as_ref()?;
    Some(list(
        "team-jobs",
        format!("{}, live", filter.teams.join(", ")),
        jobs,
        filter,
    ))
}

fn list(id: &'static str, heading: String, jobs: &JobList, filter: &JobFilter) -> AnyView {
    let rows: Vec<_> = jobs.jobs.iter().map(|job| row(id, job, jobs.now)).collect();
    let shown = rows.len() as u64;
    let content = if rows.is_empty() {
        let new = Url::NewJob(Start::Empty).to_string();
        blank("No job is live.", Some((new, "Submit one"))).into_any()
    } else {
        let caption = heading.clone();
        view! { <table class="brief"><caption class="sr">{caption}</caption><tbody>{rows}</tbody></table> }.into_any()
    };
    let all = Url::queue(filter.clone()).to_string();
    let more = (jobs.total > shown).then(|| {
        view! { <p class="more-link"><a class="link" href=all>"All "{count(jobs.total)}</a></p> }
    });
    view! { <section class="bare" id=id><h2>{heading}</h2>{content}{more}</section> }.into_any()
}

fn row(list: &str, job: &JobRow, now: Timestamp) -> AnyView {
    let what = match (&job.reason, &job.place) {
        (Some(reason), _) => reason_line(reason).into_any(),
        (None, Some(place)) => place.clone().into_any(),
        (None, None) => ().into_any(),
    };
    let ends = job.ends_by.map(|by| view! { "ends by "{when(by, now)} });
    view! {
        <tr id=format!("{list}-{}", job.id)>
            <td class="c-state">{row_badge(job)}</td>
            <td class="c-name"><a href=Url::Job(job.id).to_string()>{job.name.clone()}</a></td>
            <td class="c-why q">{what}</td>
            <td class="c-ends n">{ends}</td>
            <td class="c-gpus n">{gpus(job.gpus)}<span class="u">" GPUs"</span></td>
        </tr>
    }
    .into_any()
}

/// What would help the first own job that waits and for which something is known to.
pub fn helps(seen: &Seen) -> Option<AnyView> {
    let known = |job: &&JobRow| {
        job.reason
            .as_ref()
            .is_some_and(|reason| !reason.help.is_empty())
    };
    let job = seen.jobs.jobs.iter().find(known)?;
    let help = job
        .reason
        .as_ref()
        .map(|reason| reason.help.clone())
        .unwrap_or_default();
    let items: Vec<_> = help
        .into_iter()
        .map(|text| view! { <li>{text}</li> })
        .collect();
    let like = Url::NewJob(Start::Like(job.id)).to_string();
    Some(view! {
        <section class="bare" id="helps">
            <h2>"What would help "<a class="link" href=Url::Job(job.id).to_string()>{job.name.clone()}</a></h2>
            <ul class="plain">{items}</ul>
            <p class="more-link"><a class="link" href=like>"Submit a changed copy"</a></p>
        </section>
    }
    .into_any())
}

/// Hardware by flavour.
pub fn fleet_panel(fleet: &FleetView) -> AnyView {
    let bars: Vec<_> = by_size(&fleet.flavours)
        .into_iter()
        .map(|flavour| {
            let words = format!(
                "{} busy, {} free, of it {}",
                gpus(flavour.busy),
                gpus(flavour.free),
                plural(flavour.whole_blocks_free.into(), "whole block", "whole blocks")
            );
            view! {
                <div class="fleet-row">
                    <p><b>{flavour.title.clone()}</b><span class="q">{words}</span><span class="n">{gpus(flavour.total)}<span class="u">" GPUs"</span></span></p>
                    {fleet_bar(flavour)}
                </div>
            }
        })
        .collect();
    view! {
        <section class="panel" id="fleet">
            <h2><a href=Url::Map(MapUrl::default()).to_string()>"The fleet now"</a></h2>
            {bars}
            {fleet_key()}
        </section>
    }
    .into_any()
}

/// What the own teams have, use, borrow and lend.
pub fn quota_panel(teams: &[TeamView]) -> Vec<AnyView> {
    let panels: Vec<AnyView> = teams
        .iter()
        .map(|team| {
            let mut quotas: Vec<_> = team.quotas.iter().collect();
            quotas.sort_by(|a, b| b.nominal.cmp(&a.nominal).then_with(|| a.flavour.cmp(&b.flavour)));
            let rows: Vec<_> = quotas
                .into_iter()
                .map(|quota| {
                    let scale = quota.nominal.0.0.max(quota.own.0.0) + quota.borrowed.0.0;
                    let words = format!("{} of {} own", gpus(quota.own), gpus(quota.nominal));
                    let flow = match (quota.borrowed.0.0, quota.lent.0.0) {
                        (0, 0) => String::new(),
                        (_, 0) => format!(", {} borrowed", gpus(quota.borrowed)),
                        (0, _) => format!(", {} lent", gpus(quota.lent)),
                        _ => format!(", {} borrowed, {} lent", gpus(quota.borrowed), gpus(quota.lent)),
                    };
                    view! {
                        <div class="fleet-row">
                            <p><b>{quota.flavour.clone()}</b><span class="q">{words}{flow}</span></p>
                            {quota_bar(quota, scale.max(1))}
                        </div>
                    }
                })
                .collect();
            let live = Url::team_queue(&team.id, &LIVE).to_string();
            view! {
                <section class="panel" id=format!("quota-{}", team.id)>
                    <h2><a href=Url::Quotas { flavour: None }.to_string()>{team.id.clone()}", quota"</a></h2>
                    {rows}
                    {quota_key()}
                    <p class="more-link">
                        <a class="link" href=live>{plural(team.waiting, "job waits", "jobs wait")}", "{count(team.active)}" with GPUs"</a>
                    </p>
                </section>
            }
            .into_any()
        })
        .collect();
    panels
}

/// What somebody should look at.
pub fn needs_someone(seen: &Seen) -> AnyView {
    let fleet = &seen.fleet;
    let mut rows: Vec<AnyView> = Vec::new();
    if seen.reclaims > 0 {
        let href = Url::Reclaims { after: None }.to_string();
        let words = plural(seen.reclaims, "reclaim waits", "reclaims wait");
        rows.push(
            view! { <li>{words}" for your answer"<a class="link" href=href>"answer"</a></li> }
                .into_any(),
        );
    }
    for (health, nodes) in fleet.unhealthy.iter() {
        let table = Url::Map(MapUrl::default()).to_string();
        let words = format!(
            "{} {health}",
            plural((*nodes).into(), "node is", "nodes are")
        );
        rows.push(view! { <li>{words}<a class="link" href=table>"map"</a></li> }.into_any());
    }
    let never = seen
        .jobs
        .jobs
        .iter()
        .filter(|job| job.reason.as_ref().is_some_and(|reason| reason.never));
    let mut named = 0;
    for job in never {
        named += 1;
        let href = Url::Job(job.id).to_string();
        rows.push(view! { <li>{job.name.clone()}" can never run"<a class="link" href=href>"why"</a></li> }.into_any());
    }
    // A member is told of own jobs only: nobody is sent to a list that does not show what was counted.
    let others = fleet.never_jobs.saturating_sub(named);
    if seen.sees_all && others > 0 {
        let words = match named {
            0 => plural(others, "job can never run", "jobs can never run"),
            _ => plural(others, "more can never run", "more can never run"),
        };
        rows.push(view! { <li>{words}</li> }.into_any());
    }
    let content = if rows.is_empty() {
        blank("Nothing: every node is well, and every job can run.", None).into_any()
    } else {
        view! { <ul class="rows">{rows}</ul> }.into_any()
    };
    view! { <section class="panel" id="needs"><h2>"Needs someone"</h2>{content}</section> }
        .into_any()
}

/// The month so far: the teams that spent most.
pub fn bills_panel(bill: &BillView) -> AnyView {
    let mut teams: Vec<_> = bill.teams.iter().filter(|team| team.jobs > 0).collect();
    let e2 = |text: &str| text.replace('.', "").parse::<i128>().unwrap_or(0);
    teams.sort_by_key(|team| {
        (
            std::cmp::Reverse(e2(&team.totals.amount)),
            team.team.clone(),
        )
    });
    let rows: Vec<_> = teams
        .iter()
        .take(8)
        .map(|team| {
            let to = Url::Bill {
                team: team.team.clone(),
                month: Some(bill.month.clone()),
            };
            view! {
                <tr id=format!("spent-{}", team.team)>
                    <th scope="row"><a href=to.to_string()>{team.team.clone()}</a></th>
                    <td class="n">{gpu_hours(&team.totals.gpu_hours)}<span class="u">" GPU-h"</span></td>
                    <td class="n">{amount(&team.totals.amount)}</td>
                </tr>
            }
        })
        .collect();
    let content = if rows.is_empty() {
        blank("No usage yet this month.", None).into_any()
    } else {
        view! { <table class="plain"><caption class="sr">"Spent most"</caption><tbody>{rows}</tbody></table> }.into_any()
    };
    let heading = format!("{}, in {}", month_name(&bill.month), bill.currency);
    let all = Url::Bills {
        month: Some(bill.month.clone()),
    }
    .to_string();
    let more = (teams.len() > 8).then(|| view! { <p class="more-link"><a class="link" href=all>"All "{count(teams.len() as u64)}" teams"</a></p> });
    view! { <section class="panel" id="spent"><h2><a href=Url::Bills { month: None }.to_string()>{heading}</a></h2>{content}{more}</section> }.into_any()
}
