//! A team's bill of a month: by project, by job, day by day; the same figures as the CSV.

use super::Page;
use super::bills::{months, range, state, sums, total_row, totals};
use crate::PageContext;
use crate::forms;
use crate::islands::DayChart;
use crate::parts::{
    Col, PageHead, Sheet, amount, blank, count, day_name, gpu_hours, month_name, plural, price,
    rounded,
};
use crate::url::Url;
use contract::{BillLine, BillView, DayUsage};
use leptos::prelude::*;

/// Lines on the page; the rest is in the CSV.
const LINES: usize = 200;

/// The page.
pub async fn bill(context: &PageContext, team: &str, month: Option<&str>) -> Page {
    let bill = context.everyone()?.bill(team, month).await?;
    let crumbs = vec![
        (
            Some(Url::Bills {
                month: Some(bill.month.clone()),
            }),
            "Bills".to_owned(),
        ),
        (None, team.to_owned()),
    ];
    let title = format!("{team}, {}", month_name(&bill.month));
    let state = state(&bill);
    let jobs: u64 = bill.projects.iter().map(|project| project.jobs).sum();
    let say = view! { {state}<b class="nw">{price(&bill.currency, &bill.totals.amount)}</b>" for "{plural(jobs, "job", "jobs")}" in "{plural(bill.projects.len() as u64, "project", "projects")}"." };
    let csv = forms::bill_csv(team, &bill.month);
    Ok(view! {
        <PageHead title=title crumbs=crumbs say=say.into_any()>
            <a class="btn" href=csv download>"CSV"</a>
        </PageHead>
        {months(&bill)}
        <div data-live="facts">{totals(&bill)}</div>
        <div class="grid two">
            <div data-live="projects">{projects(&bill)}</div>
            {days(&bill)}
        </div>
        <div data-live="lines">{lines(&bill)}</div>
        {range(&bill)}
    }
    .into_any())
}

fn projects(bill: &BillView) -> AnyView {
    let rows: Vec<_> = bill
        .projects
        .iter()
        .map(|project| {
            let totals = &project.totals;
            view! {
                <tr>
                    <th scope="row">{project.project.clone()}</th>
                    <td class="n q">{count(project.jobs)}</td>
                    <td class="n">{gpu_hours(&totals.gpu_hours)}</td>
                    <td class="n">{amount(&totals.own_amount)}</td>
                    <td class="n">{amount(&totals.borrowed_amount)}</td>
                    <td class="n"><b>{amount(&totals.amount)}</b></td>
                </tr>
            }
            .into_any()
        })
        .collect();
    let content = if rows.is_empty() {
        blank("No usage in this month.", None).into_any()
    } else {
        Sheet {
            caption: "By project".to_owned(),
            class: "bill",
            cols: sums("Project", &bill.currency),
            rows,
            foot: Some(total_row(None, &bill.totals)),
        }
        .view()
    };
    view! { <section><h2>"By project"</h2>{content}</section> }.into_any()
}

/// The chart, with the server's own drawing below until Chart.js has drawn, and the table behind it.
fn days(bill: &BillView) -> AnyView {
    let rows: Vec<_> = bill
        .days
        .iter()
        .map(|day| {
            let number = day.day.rsplit('-').next().unwrap_or_default().trim_start_matches('0').to_owned();
            view! {
                <tr data-day=number data-own=day.own_gpu_hours.clone() data-borrowed=day.borrowed_gpu_hours.clone()>
                    <th scope="row">{day_name(&day.day)}</th>
                    <td class="n">{gpu_hours(&day.own_gpu_hours)}</td>
                    <td class="n">{gpu_hours(&day.borrowed_gpu_hours)}</td>
                </tr>
            }
            .into_any()
        })
        .collect();
    let table = Sheet {
        caption: "GPU-hours by day".to_owned(),
        class: "",
        cols: vec![
            Col::Text("Day"),
            Col::Number("Own"),
            Col::Number("Borrowed"),
        ],
        rows,
        foot: None,
    }
    .tall(Some("days"));
    view! {
        <section class="panel" id="days-panel">
            <h2>"Day by day, GPU-hours"</h2>
            <div class="chart">{bars(&bill.days)}<DayChart table="days".to_owned() /></div>
            <ul class="key">
                <li><svg width="10" height="10" aria-hidden="true"><rect class="c-own" width="10" height="10" /></svg>"own"</li>
                <li><svg width="10" height="10" aria-hidden="true"><rect class="c-borrowed" width="10" height="10" /></svg>"borrowed"</li>
            </ul>
            <details class="more" id="days-table">
                <summary>"As a table"</summary>
                {table}
            </details>
        </section>
    }
    .into_any()
}

/// Money in hundredths: only for an order.
fn cents(text: &str) -> i128 {
    text.replace('.', "").parse().unwrap_or(0)
}

/// GPU-hours in ten-thousandths: only for the height of a bar.
fn e4(text: &str) -> u64 {
    text.replace('.', "").parse().unwrap_or(0)
}

fn bars(days: &[DayUsage]) -> AnyView {
    let both = |day: &DayUsage| e4(&day.own_gpu_hours) + e4(&day.borrowed_gpu_hours);
    let highest = days.iter().map(both).max().unwrap_or(0).max(1);
    let count = days.len().max(1) as u64;
    let step = 10_000 / count;
    let percent = |part: u64| format!("{}.{:02}%", part / 100, part % 100);
    let rects: Vec<_> = days
        .iter()
        .enumerate()
        .map(|(index, day)| {
            let high = |text: &str| e4(text) * 9_500 / highest;
            let (own, borrowed) = (high(&day.own_gpu_hours), high(&day.borrowed_gpu_hours));
            let x = percent(index as u64 * step);
            let wide = percent(step * 7 / 10);
            view! {
                <rect class="c-own" x=x.clone() y=percent(10_000 - own) width=wide.clone() height=percent(own) />
                <rect class="c-borrowed" x=x y=percent(10_000 - own - borrowed) width=wide height=percent(borrowed) />
            }
        })
        .collect();
    let said = format!(
        "GPU-hours by day; the table below has them. The highest day has {}.",
        rounded(&format!("{}.{:04}", highest / 10_000, highest % 10_000), 1)
    );
    view! { <svg class="bars" width="100%" height="100%" role="img" aria-label=said>{rects}</svg> }
        .into_any()
}

fn lines(bill: &BillView) -> AnyView {
    // What costs most is looked for first; the CSV has them by job.
    let mut lines: Vec<&BillLine> = bill.lines.iter().collect();
    lines.sort_by_key(|line| std::cmp::Reverse(cents(&line.totals.amount)));
    let rows: Vec<_> = lines.into_iter().take(LINES).map(line).collect();
    let rest = bill.lines.len().saturating_sub(LINES);
    let rest = (rest > 0).then(|| {
        let csv = forms::bill_csv(bill.team.as_deref().unwrap_or_default(), &bill.month);
        view! { <p class="q">{count(rest as u64)}" more lines are in the "<a class="link" href=csv download>"CSV"</a>", which has all of them."</p> }
    });
    let table = Sheet {
        caption: "By job and flavour".to_owned(),
        class: "bill by-job",
        cols: vec![
            Col::Text("Job"),
            Col::Text("Project"),
            Col::Text("Owner"),
            Col::Text("Flavour"),
            Col::Number("GPU-hours"),
            Col::Number("Own"),
            Col::Number("Borrowed"),
            Col::Money("Total", bill.currency.clone()),
        ],
        rows,
        foot: None,
    }
    .view();
    view! {
        <section class="lines-section">
            <h2>"By job, "{plural(bill.lines.len() as u64, "line", "lines")}</h2>
            {table}
            {rest}
        </section>
    }
    .into_any()
}

fn line(line: &BillLine) -> AnyView {
    let totals = &line.totals;
    view! {
        <tr id=format!("line-{}-{}", line.job, line.flavour)>
            <th scope="row"><a href=Url::Job(line.job).to_string()>{line.name.clone()}</a><span class="u id">{line.job}</span></th>
            <td class="q">{line.project.clone()}</td>
            <td class="q">{line.owner.clone()}</td>
            <td class="q">{line.flavour.clone()}</td>
            <td class="n">{gpu_hours(&totals.gpu_hours)}</td>
            <td class="n">{amount(&totals.own_amount)}</td>
            <td class="n">{amount(&totals.borrowed_amount)}</td>
            <td class="n"><b>{amount(&totals.amount)}</b></td>
        </tr>
    }
    .into_any()
}
