//! Jobs in a list: the filter is the address, and totals, rows and paging come from one query.

use super::Page;
use crate::PageContext;
use crate::parts::{Field, text_field};
use crate::parts::{
    PageHead, age, blank, choice, count, exact, gpus, plural, reason_line, row_badge, when,
};
use crate::url::{LIVE, QueueUrl, Start, Url, states_word};
use contract::{JobFilter, JobList, JobPage, JobRow, JobState, Role, SortKey};
use control::{Actor, ServiceError};
use jiff::Timestamp;
use leptos::prelude::*;

/// Rows on a page.
const ROWS: u32 = 50;

/// What one sees first: a member their own jobs, a lead those of the team, manager and admin everybody's; live ones.
pub fn first_filter(actor: &Actor, queue: &QueueUrl) -> JobFilter {
    if let Some(filter) = &queue.filter {
        return filter.clone();
    }
    let live = JobFilter {
        states: LIVE.to_vec(),
        ..JobFilter::default()
    };
    let leads = actor
        .teams()
        .into_iter()
        .filter(|team| actor.role_in(team) == Some(Role::Lead));
    let leads: Vec<String> = leads.map(str::to_owned).collect();
    if actor.has(Role::Manager) {
        live
    } else if leads.is_empty() {
        JobFilter {
            owner: Some(actor.id.clone()),
            ..live
        }
    } else {
        JobFilter {
            teams: leads,
            ..live
        }
    }
}

/// The page.
pub async fn queue(context: &PageContext, queue: &QueueUrl) -> Page {
    let everyone = context.everyone()?;
    let actor = context
        .actor
        .as_ref()
        .ok_or(ServiceError::Unauthenticated)?;
    let filter = first_filter(actor, queue);
    let page = JobPage {
        limit: ROWS,
        after: queue.after.clone(),
    };
    let list = everyone.jobs(&filter, &page).await?;
    let teams = everyone.team_names().await?;
    let say = summary(&list, &filter, actor).into_any();
    let rows = if list.jobs.is_empty() {
        nothing(&filter).into_any()
    } else {
        table(&list).into_any()
    };
    let new = Url::NewJob(Start::Empty).to_string();
    Ok(view! {
        <PageHead title="Queue" say=say>
            <a class="btn go" href=new>"Submit a job"</a>
        </PageHead>
        {filter_form(&filter, &teams)}
        {quick_links(&filter, actor)}
        <div data-live="jobs">{rows}{pager(&list, &filter, queue)}</div>
    }
    .into_any())
}

/// One line: how many of what is listed wait, run and have ended.
fn summary(list: &JobList, filter: &JobFilter, actor: &Actor) -> String {
    let whose = match (&filter.owner, filter.teams.as_slice()) {
        (Some(owner), _) if *owner == actor.id => "Yours: ".to_owned(),
        (Some(owner), _) => format!("{owner}: "),
        (None, []) => String::new(),
        (None, teams) => format!("{}: ", teams.join(", ")),
    };
    let counts = list.counts;
    let mut parts = vec![
        format!("{} waiting", count(counts.queued)),
        format!("{} with GPUs", count(counts.active)),
    ];
    if counts.ended > 0 {
        parts.push(format!("{} ended", count(counts.ended)));
    }
    format!("{whose}{}.", parts.join(", "))
}

fn filter_form(filter: &JobFilter, teams: &[String]) -> AnyView {
    let any = |word: &str| (String::new(), word.to_owned());
    let same = |text: &String| (text.clone(), text.clone());
    let team_options: Vec<_> = std::iter::once(any("any team"))
        .chain(teams.iter().map(same))
        .collect();
    let words = [("live", "live"), ("ended", "ended")];
    let words = words.map(|(value, word)| (value.to_owned(), word.to_owned()));
    let each =
        JobState::ALL.map(|state| (state.as_str().to_owned(), state.as_str().replace('_', " ")));
    let state_options: Vec<_> = std::iter::once(any("any state"))
        .chain(words)
        .chain(each)
        .collect();
    let sorts = [("", "newest first"), ("oldest", "oldest first")];
    let sorts = sorts.map(|(value, word)| (value.to_owned(), word.to_owned()));
    let sort = if filter.sort == SortKey::Oldest {
        "oldest"
    } else {
        ""
    };
    let (team, state) = (filter.teams.join(","), states_word(&filter.states));
    let field = |name, label, value| Field {
        name,
        label,
        value,
        hint: "",
        errors: &[],
    };
    let owner = filter.owner.as_deref().unwrap_or_default();
    let search = filter.search.as_deref().unwrap_or_default();
    view! {
        <form class="filter" method="get" action=Url::Queue(QueueUrl::default()).to_string() role="search">
            {text_field(field("search", "Name contains", search), "wide", None)}
            {choice(field("team", "Team", &team), "", &team_options)}
            {choice(field("state", "State", &state), "", &state_options)}
            {text_field(field("owner", "Owner", owner), "", None)}
            {choice(field("sort", "Order", sort), "", &sorts)}
            <button class="btn">"Filter"</button>
        </form>
    }
    .into_any()
}

/// The lists that people ask for most, each with its own address.
fn quick_links(filter: &JobFilter, actor: &Actor) -> AnyView {
    let owner = Some(actor.id.clone());
    let of = |states: &[JobState], owner: Option<String>| JobFilter {
        states: states.to_vec(),
        owner,
        ..JobFilter::default()
    };
    let links = [
        ("Mine, live", of(&LIVE, owner.clone())),
        ("Mine, all", of(&[], owner)),
        ("All, live", of(&LIVE, None)),
        ("All waiting", of(&[JobState::Queued], None)),
        ("All ended", of(&crate::url::ENDED, None)),
    ];
    let links = links.map(|(word, of)| {
        let here = (of == *filter).then_some("true");
        view! { <li><a href=Url::queue(of).to_string() aria-current=here>{word}</a></li> }
    });
    view! { <nav aria-label="Lists"><ul class="pills">{links.into_iter().collect_view()}</ul></nav> }.into_any()
}

fn nothing(filter: &JobFilter) -> AnyView {
    let everything = Url::queue(JobFilter::default()).to_string();
    let said = if *filter == JobFilter::default() {
        "There is no job yet."
    } else {
        "No job fits this filter."
    };
    blank(said, Some((everything, "Show every job")))
}

/// The table; a list on a narrow screen, where each cell keeps its name.
fn table(list: &JobList) -> AnyView {
    let now = list.now;
    let rows: Vec<_> = list.jobs.iter().map(|job| row(job, now)).collect();
    view! {
        <table class="list jobs">
            <caption class="sr">"Jobs"</caption>
            <thead>
                <tr>
                    <th scope="col">"State"</th>
                    <th scope="col">"Job"</th>
                    <th scope="col">"Team"</th>
                    <th scope="col">"Why, or where"</th>
                    <th scope="col" class="n">"Place"</th>
                    <th scope="col" class="n">"Ends"</th>
                    <th scope="col" class="n">"GPUs"</th>
                    <th scope="col">"Owner"</th>
                    <th scope="col" class="n">"Age"</th>
                </tr>
            </thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn row(job: &JobRow, now: Timestamp) -> AnyView {
    let place = job.position.map(|place| count(place.into()));
    let ends = match (job.ended, job.ends_by, job.started) {
        (Some(ended), ..) => {
            Some(view! { <span class="u">"ended "</span>{when(ended, now)} }.into_any())
        }
        (None, Some(by), _) => {
            Some(view! { <span class="u">"by "</span>{when(by, now)} }.into_any())
        }
        (None, None, Some(_)) => Some(view! { <span class="u">"no limit"</span> }.into_any()),
        (None, None, None) => None,
    };
    // `fraud-ml.engineer` under `fraud-ml` is told apart by its last word.
    let short = job
        .owner
        .strip_prefix(&job.team)
        .and_then(|rest| rest.strip_prefix('.'));
    let owner = short.unwrap_or(&job.owner).to_owned();
    let borrowed = job.borrowed.filter(|amount| amount.0.0 > 0);
    let borrowed = borrowed.map(|amount| {
        view! { <span class="sr">", "{gpus(amount)}" borrowed"</span><i class="dot-borrowed" title=format!("{} borrowed", gpus(amount)) aria-hidden="true"></i> }
    });
    view! {
        <tr id=format!("job-{}", job.id)>
            <td class="c-state">{row_badge(job)}</td>
            <td class="c-name"><a href=Url::Job(job.id).to_string()>{job.name.clone()}</a><span class="u id">{job.id}</span></td>
            <td class="c-team q">{job.team.clone()}</td>
            <td class="c-why">{why_or_where(job)}</td>
            <td class="c-place n">{place}</td>
            <td class="c-ends n">{ends}</td>
            <td class="c-gpus n">{gpus(job.gpus)}{borrowed}<span class="unit-s">" GPUs"</span></td>
            <td class="c-owner q" title=job.owner.clone()>{owner}</td>
            <td class="c-age n q">{age(job.submitted, now)}</td>
        </tr>
    }
    .into_any()
}

/// The reason of a job that waits, the cause of an end, otherwise the place.
fn why_or_where(job: &JobRow) -> AnyView {
    match (&job.reason, &job.end_cause, &job.place) {
        (Some(reason), ..) => reason_line(reason).into_any(),
        (None, Some(cause), _) => view! { <span class="reason">{cause.clone()}</span> }.into_any(),
        (None, None, Some(place)) => place.clone().into_any(),
        (None, None, None) => ().into_any(),
    }
}

fn pager(list: &JobList, filter: &JobFilter, queue: &QueueUrl) -> AnyView {
    let shown = list.jobs.len() as u64;
    let said = match (&queue.after, &list.next) {
        (None, None) => plural(list.total, "job", "jobs"),
        (None, Some(_)) => format!(
            "1 to {} of {}",
            count(shown),
            plural(list.total, "job", "jobs")
        ),
        (Some(_), _) => format!(
            "{} more of {}",
            count(shown),
            plural(list.total, "job", "jobs")
        ),
    };
    let first = queue.after.as_ref().map(|_| {
        view! { <a class="btn" href=Url::queue(filter.clone()).to_string()>"First page"</a> }
    });
    let next = list.next.clone().map(|after| {
        let next = Url::Queue(QueueUrl {
            filter: Some(filter.clone()),
            after: Some(after),
        });
        view! { <a class="btn" href=next.to_string() rel="next">"Next page"</a> }
    });
    view! {
        <div class="pager">
            <p class="q">{said}", as of "<time datetime=list.now.to_string()>{exact(list.now)}</time></p>
            {first}
            {next}
        </div>
    }
    .into_any()
}
