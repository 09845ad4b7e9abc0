//! What is set aside: machines, cohorts, teams and jobs, with who did it, why, since when, and whom that keeps waiting.

use super::Page;
use crate::PageContext;
use crate::forms;
use crate::parts::{
    Col, Field, PageHead, Sheet, blank, choice, count, form_error, gpus, plural, text_field, when,
};
use crate::url::Url;
use contract::{HoldKind, HoldList, HoldView};
use leptos::prelude::*;

/// Numbers of running jobs that a row names.
const NAMED: usize = 4;

/// The page; the form begins with what the address names.
pub async fn holds(context: &PageContext, on: Option<&str>, what: Option<&str>) -> Page {
    let list = context.everyone()?.holds().await?;
    let content = if list.holds.is_empty() {
        blank("Nothing that you may see is held.", None)
    } else {
        table(&list)
    };
    let form = set_form(context, &list, on, what);
    Ok(view! {
        <PageHead title="Holds" say=summary(&list).into_any() />
        {form_error(&context.errors)}
        <div data-live="holds">{content}</div>
        {form}
    }
    .into_any())
}

/// One line: how much is set aside, and whom that keeps waiting.
fn summary(list: &HoldList) -> String {
    if list.holds.is_empty() {
        return "A hold keeps new work away and stops nothing that runs; a drain lets that leave, too, with its next save.".to_owned();
    }
    let drains = list
        .holds
        .iter()
        .filter(|hold| hold.mode == HoldKind::Drain)
        .count() as u64;
    let n = list.holds.len() as u64;
    let drained = match drains {
        0 => String::new(),
        n => format!(", {} of them drained", count(n)),
    };
    let waits = list.holds.iter().map(|hold| hold.waiting_jobs).max();
    let waits = match waits.unwrap_or_default() {
        0 => "no job waits for it".to_owned(),
        n => format!("one of them keeps {} waiting", plural(n, "job", "jobs")),
    };
    format!(
        "{}{drained}; {waits}.",
        plural(n, "thing is held", "things are held")
    )
}

fn table(list: &HoldList) -> AnyView {
    let rows: Vec<_> = list.holds.iter().map(|hold| row(hold, list)).collect();
    Sheet {
        caption: "What is held".to_owned(),
        class: "holds",
        cols: vec![
            Col::Text("What"),
            Col::Text("How"),
            Col::Text("Why"),
            Col::Text("By"),
            Col::Text("Since"),
            Col::Text("Still runs there"),
            Col::Number("GPUs"),
            Col::Number("Keeps waiting"),
            Col::Unseen("Release"),
        ],
        rows,
        foot: None,
    }
    .view()
}

fn row(hold: &HoldView, list: &HoldList) -> AnyView {
    let name = match (hold.on.as_str(), hold.what.parse()) {
        ("job", Ok(id)) => {
            view! { <a class="link" href=Url::Job(id).to_string()>{format!("job {id}")}</a> }
                .into_any()
        }
        _ => format!("{} {}", hold.on, hold.what).into_any(),
    };
    let (tag, how) = match hold.mode {
        HoldKind::Hold => ("tag", "held"),
        HoldKind::Drain => ("tag drain", "drained"),
    };
    let waits = match hold.waiting_jobs {
        0 => "nobody".to_owned(),
        n => plural(n, "job", "jobs"),
    };
    view! {
        <tr id=format!("hold-{}-{}", hold.on, hold.what)>
            <th scope="row">{name}</th>
            <td><span class=tag>{how}</span></td>
            <td class="c-why">{hold.why.clone().unwrap_or_else(|| "no reason given".to_owned())}</td>
            <td>{hold.by.clone()}</td>
            <td class="nw">{when(hold.since, list.now)}</td>
            <td>{running(hold)}</td>
            <td class="n">{gpus(hold.running_gpus)}</td>
            <td class="n">{waits}</td>
            <td class="n">{release(hold)}</td>
        </tr>
    }
    .into_any()
}

/// The first ones by number, and how many more there are.
fn running(hold: &HoldView) -> AnyView {
    let named = hold.running.iter().take(NAMED);
    let named: Vec<_> = named
        .map(|id| view! { <a class="link" href=Url::Job(*id).to_string()>{id.to_string()}</a>" " })
        .collect();
    let more = hold.running_jobs - named.len() as u64;
    let more = match (more, named.is_empty()) {
        (0, true) => Some("nothing".to_owned()),
        (0, false) => None,
        (n, true) => Some(plural(n, "job", "jobs")),
        (n, false) => Some(format!("and {} more", count(n))),
    };
    view! { {named}<span class="q">{more}</span> }.into_any()
}

fn release(hold: &HoldView) -> AnyView {
    let label = format!("Release {} {}", hold.on, hold.what);
    if let Some(refused) = &hold.release_refused {
        return view! { <span class="q">{refused.clone()}</span> }.into_any();
    }
    view! {
        <form method="post" action=forms::RELEASE>
            <input type="hidden" name="on" value=hold.on.clone() />
            <input type="hidden" name="what" value=hold.what.clone() />
            <button class="btn small" aria-label=label>"Release"</button>
        </form>
    }
    .into_any()
}

/// Setting something aside: for those who may.
fn set_form(
    context: &PageContext,
    list: &HoldList,
    on: Option<&str>,
    what: Option<&str>,
) -> AnyView {
    if list.kinds.is_empty() {
        let said = "Your own jobs are held on their pages; a team by its lead; machines and cohorts by an admin.";
        return view! { <p class="hint">{said}</p> }.into_any();
    }
    let errors = context.errors.as_slice();
    // What came back wins over what the address names.
    let kept = |field: &str, named: Option<&str>| {
        let typed = context.typed(field, "");
        let typed = if typed.is_empty() {
            named.unwrap_or_default()
        } else {
            typed
        };
        typed.to_owned()
    };
    let first = list.kinds.first().map(String::as_str);
    let (on, what) = (kept("on", on.or(first)), kept("what", what));
    let (mode, why) = (kept("mode", Some("hold")), kept("why", None));
    let field = |name, label, value, hint| Field {
        name,
        label,
        value,
        hint,
        errors,
    };
    let kinds: Vec<_> = list
        .kinds
        .iter()
        .map(|kind| (kind.clone(), kind.clone()))
        .collect();
    let modes = [
        ("hold", "Hold: what runs goes on"),
        ("drain", "Drain: what runs leaves with its next save"),
    ];
    let modes = modes.map(|(value, word)| (value.to_owned(), word.to_owned()));
    let known: Vec<_> = list
        .names
        .iter()
        .map(|name| view! { <option value=name.clone()></option> })
        .collect();
    view! {
        <section class="panel act" id="set">
            <h2>"Hold or drain"</h2>
            <form method="post" action=forms::HOLDS>
                <div class="row">
                    {choice(field("on", "Kind", &on, ""), "short", &kinds)}
                    {text_field(field("what", "Name", &what, "as on the map or in the quota tree"), "", Some("holdable"))}
                    {choice(field("mode", "How", &mode, ""), "", &modes)}
                </div>
                {text_field(field("why", "Why", &why, "told to everybody who waits for it"), "", None)}
                <datalist id="holdable">{known}</datalist>
                <div class="acts"><button class="btn danger">"Set aside"</button></div>
            </form>
        </section>
    }
    .into_any()
}
