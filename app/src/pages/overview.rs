//! What matters now, with a first view by role: a team, the money, or the fleet.

use super::Page;
use super::overview_parts::{
    bills_panel, fleet_panel, helps, needs_someone, quota_panel, team_jobs, yours,
};
use crate::PageContext;
use crate::parts::{PageHead, capital, count, fact, facts, gpus, month_name, plural, price};
use crate::url::{LIVE, Start, Url};
use contract::{
    BillView, FleetView, Gpus, JobFilter, JobList, JobPage, JobState, QuotaView, Role, TeamView,
};
use control::{Actor, Everyone, ServiceError};
use leptos::prelude::*;

/// What the one who asks comes for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum View {
    Team,
    Money,
    Fleet,
}

fn view_of(actor: &Actor) -> View {
    if actor.has(Role::Admin) {
        View::Fleet
    } else if actor.has(Role::Manager) {
        View::Money
    } else {
        View::Team
    }
}

/// All that the page shows.
pub struct Seen {
    /// The fleet.
    pub fleet: FleetView,
    /// Own live jobs; for those over everything, the ones that wait.
    pub jobs: JobList,
    /// The filter of that list, for the link to all of it.
    pub filter: JobFilter,
    /// Live jobs of the own teams that are others'.
    pub team_jobs: Option<(JobFilter, JobList)>,
    /// Own teams.
    pub teams: Vec<TeamView>,
    /// This month, as far as it may be read.
    pub bill: BillView,
    /// Reclaims that wait for the reader's answer.
    pub reclaims: u64,
    /// True when the reader may see every job.
    pub sees_all: bool,
}

/// The page.
pub async fn overview(context: &PageContext) -> Page {
    let everyone = context.everyone()?;
    let actor = context
        .actor
        .as_ref()
        .ok_or(ServiceError::Unauthenticated)?;
    let view = view_of(actor);
    let seen = look(&everyone, actor, view).await?;
    let say = match view {
        View::Team => team_line(&seen),
        View::Money => money_line(&seen),
        View::Fleet => fleet_line(&seen.fleet),
    };
    let title = format!("Hello, {}", actor.name);
    let new = (!actor.teams().is_empty() || view == View::Fleet).then(|| {
        view! { <a class="btn go" href=Url::NewJob(Start::Empty).to_string()>"Submit a job"</a> }
    });
    let (left, right) = match view {
        View::Team => (
            view! { {yours(&seen, "Yours")}{helps(&seen)}{team_jobs(&seen)}{fleet_panel(&seen.fleet)} }.into_any(),
            view! { {quota_panel(&seen.teams)}{needs_someone(&seen)}{bills_panel(&seen.bill)} }
                .into_any(),
        ),
        View::Money => (
            view! { {bills_panel(&seen.bill)}{fleet_panel(&seen.fleet)}{yours(&seen, "Waiting longest")} }.into_any(),
            needs_someone(&seen),
        ),
        View::Fleet => (
            view! { {fleet_panel(&seen.fleet)}{yours(&seen, "Waiting longest")} }.into_any(),
            view! { {needs_someone(&seen)}{bills_panel(&seen.bill)} }.into_any(),
        ),
    };
    Ok(view! {
        <PageHead title=title say=say.into_any()>{new}</PageHead>
        <div data-live="facts">{figures(&seen)}</div>
        <div class="grid two">
            <div class="grid" data-live="left">{left}</div>
            <div class="grid" data-live="right">{right}</div>
        </div>
    }
    .into_any())
}

async fn look(everyone: &Everyone, actor: &Actor, view: View) -> Result<Seen, ServiceError> {
    let filter = match view {
        View::Team => JobFilter {
            owner: Some(actor.id.clone()),
            states: LIVE.to_vec(),
            ..JobFilter::default()
        },
        View::Money | View::Fleet => JobFilter {
            states: vec![JobState::Queued],
            sort: contract::SortKey::Oldest,
            ..JobFilter::default()
        },
    };
    let page = JobPage {
        limit: 6,
        after: None,
    };
    let mut teams = Vec::new();
    for team in actor.teams() {
        teams.push(everyone.team(team).await?);
    }
    let team_filter = JobFilter {
        teams: actor.teams().into_iter().map(str::to_owned).collect(),
        states: LIVE.to_vec(),
        ..JobFilter::default()
    };
    let team_jobs = match view {
        View::Team if !team_filter.teams.is_empty() => {
            let list = everyone.jobs(&team_filter, &page).await?;
            Some((team_filter, list))
        }
        _ => None,
    };
    Ok(Seen {
        team_jobs,
        fleet: everyone.fleet().await?,
        jobs: everyone.jobs(&filter, &page).await?,
        filter,
        teams,
        reclaims: everyone.reclaims_for_you().await?,
        sees_all: view != View::Team,
        bill: everyone.bills(None).await?,
    })
}

fn sum(quotas: &[QuotaView], part: fn(&QuotaView) -> Gpus) -> Gpus {
    quotas
        .iter()
        .fold(Gpus::default(), |sum, quota| Gpus(sum.0 + part(quota).0))
}

/// What the team holds, borrows and lends, and how the own jobs stand.
fn team_line(seen: &Seen) -> String {
    let mut words: Vec<String> = seen
        .teams
        .iter()
        .map(|team| {
            let quotas = team.quotas.as_slice();
            let (borrowed, lent) = (
                sum(quotas, |quota| quota.borrowed),
                sum(quotas, |quota| quota.lent),
            );
            let mut line = format!(
                "{} holds {} of its {} GPUs",
                team.id,
                gpus(sum(quotas, |quota| quota.own)),
                gpus(sum(quotas, |quota| quota.nominal))
            );
            if borrowed.0.0 > 0 {
                line += &format!(", borrows {}", gpus(borrowed));
            }
            if lent.0.0 > 0 {
                line += &format!(", lends {}", gpus(lent));
            }
            line + "."
        })
        .collect();
    if words.is_empty() {
        words.push("You are in no team yet: an admin can add you to one.".to_owned());
    }
    let counts = seen.jobs.counts;
    words.push(match (counts.queued, counts.active) {
        (0, 0) => "You have no live job.".to_owned(),
        (0, n) => format!(
            "{} of yours with GPUs, none waits.",
            plural(n, "job", "jobs")
        ),
        (waiting, n) => format!(
            "Of your jobs {} waiting, {} with GPUs.",
            count(waiting),
            count(n)
        ),
    });
    words.join(" ")
}

fn money_line(seen: &Seen) -> String {
    let bill = &seen.bill;
    let teams = bill.teams.iter().filter(|team| team.jobs > 0).count() as u64;
    format!(
        "{} spent {} so far in {}.",
        capital(&plural(teams, "team", "teams")),
        price(&bill.currency, &bill.totals.amount),
        month_name(&bill.month)
    )
}

fn fleet_line(fleet: &FleetView) -> String {
    let part = |part: fn(&contract::FlavourUse) -> Gpus| {
        fleet.flavours.iter().fold(Gpus::default(), |sum, flavour| {
            Gpus(sum.0 + part(flavour).0)
        })
    };
    let sick: Vec<_> = fleet
        .unhealthy
        .iter()
        .map(|(health, nodes)| {
            format!(
                "{} {health}",
                plural((*nodes).into(), "node is", "nodes are")
            )
        })
        .collect();
    let sick = if sick.is_empty() {
        "Every node is well".to_owned()
    } else {
        sick.join(", ")
    };
    format!(
        "{sick}. Of {} GPUs {} are busy and {} free.",
        gpus(part(|flavour| flavour.total)),
        gpus(part(|flavour| flavour.busy)),
        gpus(part(|flavour| flavour.free))
    )
}

/// How many jobs wait, in words, and the list that shows just these: a member's are those of the own teams.
fn waiting(seen: &Seen) -> (u64, String, Url) {
    let filter = JobFilter {
        states: vec![JobState::Queued],
        ..JobFilter::default()
    };
    if seen.sees_all {
        let fleet = &seen.fleet;
        let all = fleet.waiting_jobs + fleet.never_jobs;
        let never = match fleet.never_jobs {
            0 => String::new(),
            n => format!("; {} can never run", count(n)),
        };
        let gpus = contract::gpu_count(fleet.waiting_gpus.0);
        return (all, format!("wait, for {gpus}{never}"), Url::queue(filter));
    }
    let waits = seen.teams.iter().map(|team| team.waiting).sum();
    let teams: Vec<String> = seen.teams.iter().map(|team| team.id.clone()).collect();
    let words = match teams.as_slice() {
        [team] => format!("wait in {team}"),
        _ => "wait in your teams".to_owned(),
    };
    (waits, words, Url::queue(JobFilter { teams, ..filter }))
}

/// The facts in a row, each with a way to what it is made of.
fn figures(seen: &Seen) -> AnyView {
    let fleet = &seen.fleet;
    let part = |part: fn(&contract::FlavourUse) -> Gpus| {
        gpus(fleet.flavours.iter().fold(Gpus::default(), |sum, flavour| {
            Gpus(sum.0 + part(flavour).0)
        }))
    };
    let busy = format!(
        "busy; {} free, {} out of use",
        part(|flavour| flavour.free),
        part(|flavour| flavour.broken)
    );
    let whole: u32 = fleet
        .flavours
        .iter()
        .map(|flavour| flavour.whole_blocks_free)
        .sum();
    let (waits, waiting, list) = waiting(seen);
    let bill = &seen.bill;
    let spent = match seen.teams.as_slice() {
        [team] => format!("{}, {} so far", team.id, month_name(&bill.month)),
        _ => format!("{} so far", month_name(&bill.month)),
    };
    facts(vec![
        fact(
            part(|flavour| flavour.busy),
            format!("of {} GPUs", part(|flavour| flavour.total)),
            view! { <a href=Url::Map(Default::default()).to_string()>{busy}</a> },
        ),
        fact(
            count(waits),
            if waits == 1 { "job" } else { "jobs" },
            view! { <a href=list.to_string()>{waiting}</a> },
        ),
        fact(
            count(whole.into()),
            if whole == 1 {
                "whole block"
            } else {
                "whole blocks"
            },
            view! { <a href=Url::Map(Default::default()).to_string()>"free, for a gang of 256 GPUs each"</a> },
        ),
        fact(
            price(&bill.currency, &bill.totals.amount),
            "",
            view! { <a href=Url::Bills { month: None }.to_string()>{spent}</a> },
        ),
    ])
}
