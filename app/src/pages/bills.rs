//! A month's bill by team.

use super::Page;
use crate::PageContext;
use crate::forms;
use crate::parts::{
    Col, PageHead, Sheet, amount, blank, count, exact, fact, facts, gpu_hours, month_name, plural,
    price, rounded, zone_name,
};
use crate::url::Url;
use contract::{BillTotals, BillView, TeamBill};
use leptos::prelude::*;

/// The page.
pub async fn bills(context: &PageContext, month: Option<&str>) -> Page {
    let bill = context.everyone()?.bills(month).await?;
    let say = summary(&bill);
    let title = format!("Bills, {}", month_name(&bill.month));
    let content = if bill.teams.is_empty() {
        blank("No team that you may read has usage in this month.", None).into_any()
    } else {
        table(&bill).into_any()
    };
    let csv = forms::bills_csv(&bill.month);
    Ok(view! {
        <PageHead title=title say=say><a class="btn" href=csv download>"CSV"</a></PageHead>
        {months(&bill)}
        <div data-live="facts">{totals(&bill)}</div>
        <div data-live="bill">{content}</div>
        {range(&bill)}
    }
    .into_any())
}

fn summary(bill: &BillView) -> AnyView {
    let teams = bill.teams.iter().filter(|team| team.jobs > 0).count();
    let state = state(bill);
    view! { {state}<b class="nw">{price(&bill.currency, &bill.totals.amount)}</b>" by "{plural(teams as u64, "team", "teams")}", at the rates of the card “"{bill.rate_card.clone()}"”." }.into_any()
}

/// How a month stands, before its amount.
pub fn state(bill: &BillView) -> &'static str {
    if bill.until <= bill.from {
        "Not begun: "
    } else if bill.until < bill.to {
        "Open: so far "
    } else {
        "Over: "
    }
}

/// Own, borrowed, all: of the whole bill.
pub fn totals(bill: &BillView) -> AnyView {
    let (totals, currency) = (&bill.totals, bill.currency.as_str());
    let hours = |text: &str| format!("{} GPU-hours", rounded(text, 1));
    let mut all = vec![
        fact(
            price(currency, &totals.amount),
            "",
            format!("in all, {}", hours(&totals.gpu_hours)),
        ),
        fact(
            price(currency, &totals.own_amount),
            "",
            format!("own quota, {}", hours(&totals.own_gpu_hours)),
        ),
        fact(
            price(currency, &totals.borrowed_amount),
            "",
            format!("borrowed, {}", hours(&totals.borrowed_gpu_hours)),
        ),
    ];
    if !totals
        .failed_launch_gpu_hours
        .trim_matches(['0', '.'])
        .is_empty()
    {
        let said = format!(
            "failed launches, {}: not charged",
            hours(&totals.failed_launch_gpu_hours)
        );
        all.push(fact(price(currency, "0.00"), "", said));
    }
    facts(all)
}

/// Months that have usage.
pub fn months(bill: &BillView) -> AnyView {
    let links: Vec<_> = bill
        .months
        .iter()
        .map(|month| {
            let here = (*month == bill.month).then_some("true");
            let month_of = Some(month.clone());
            let to = match &bill.team {
                Some(team) => Url::Bill {
                    team: team.clone(),
                    month: month_of,
                },
                None => Url::Bills { month: month_of },
            };
            view! { <li><a href=to.to_string() aria-current=here>{month_name(month)}</a></li> }
        })
        .collect();
    view! { <nav aria-label="Months"><ul class="pills">{links}</ul></nav> }.into_any()
}

/// What the bill spans: half open, in the billing zone.
pub fn range(bill: &BillView) -> AnyView {
    let until = (bill.until < bill.to).then(|| view! { "; counted up to "<time data-live="until" datetime=bill.until.to_string()>{exact(bill.until)}</time> });
    let zone = if bill.zone == zone_name() {
        bill.zone.clone()
    } else {
        format!("{}, shown in {}", bill.zone, zone_name())
    };
    view! {
        <p class="hint range">
            "From "<time datetime=bill.from.to_string()>{exact(bill.from)}</time>
            " up to, and without, "<time datetime=bill.to.to_string()>{exact(bill.to)}</time>
            ", "{zone}{until}"."
        </p>
    }
    .into_any()
}

/// Columns of a table of sums.
pub fn sums(first: &'static str, currency: &str) -> Vec<Col> {
    vec![
        Col::Text(first),
        Col::Number("Jobs"),
        Col::Number("GPU-hours"),
        Col::Number("Own"),
        Col::Number("Borrowed"),
        Col::Money("Total", currency.to_owned()),
    ]
}

/// The row below; jobs that are in several rows are not added up.
pub fn total_row(jobs: Option<u64>, totals: &BillTotals) -> AnyView {
    view! {
        <tr>
            <th scope="row">"Total"</th>
            <td class="n">{jobs.map(count)}</td>
            <td class="n">{gpu_hours(&totals.gpu_hours)}</td>
            <td class="n">{amount(&totals.own_amount)}</td>
            <td class="n">{amount(&totals.borrowed_amount)}</td>
            <td class="n">{amount(&totals.amount)}</td>
        </tr>
    }
    .into_any()
}

fn table(bill: &BillView) -> AnyView {
    let rows: Vec<_> = bill
        .teams
        .iter()
        .map(|team| row(team, &bill.month))
        .collect();
    let jobs: u64 = bill.teams.iter().map(|team| team.jobs).sum();
    Sheet {
        caption: format!("By team, in {}", bill.currency),
        class: "bill",
        cols: sums("Team", &bill.currency),
        rows,
        foot: Some(total_row(Some(jobs), &bill.totals)),
    }
    .view()
}

fn row(team: &TeamBill, month: &str) -> AnyView {
    let to = Url::Bill {
        team: team.team.clone(),
        month: Some(month.to_owned()),
    };
    let totals = &team.totals;
    view! {
        <tr id=format!("team-{}", team.team)>
            <th scope="row"><a href=to.to_string()>{team.team.clone()}</a></th>
            <td class="n q">{count(team.jobs)}</td>
            <td class="n">{gpu_hours(&totals.gpu_hours)}</td>
            <td class="n">{amount(&totals.own_amount)}</td>
            <td class="n">{amount(&totals.borrowed_amount)}</td>
            <td class="n"><b>{amount(&totals.amount)}</b></td>
        </tr>
    }
    .into_any()
}
