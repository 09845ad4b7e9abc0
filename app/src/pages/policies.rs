//! The policies: what each means, what it is and was, and a form to change one.

use super::Page;
use crate::PageContext;
use crate::forms;
use crate::parts::{Col, Field, PageHead, Sheet, choice, form_error, plural, text_field, when};
use crate::url::Url;
use contract::{ChangeView, PolicyView};
use control::ServiceError;
use jiff::Timestamp;
use leptos::prelude::*;

/// The page; `change` names the policy whose form is open.
pub async fn policies(context: &PageContext, change: Option<&str>) -> Page {
    let actor = context
        .actor
        .as_ref()
        .ok_or(ServiceError::Unauthenticated)?;
    let all = context.control.admin(actor)?.policies().await?;
    let now = context.everyone()?.fleet().await?.now;
    let chosen = match change {
        None => None,
        Some(name) => {
            let found = all.iter().find(|one| one.name == name);
            Some(found.ok_or_else(|| ServiceError::NotFound(format!("policy {name}")))?)
        }
    };
    let changed = all.iter().filter(|one| one.changed).count() as u64;
    let rules = plural(all.len() as u64, "rule", "rules");
    let say = match changed {
        0 => format!("{rules} that every cycle goes by, all at their defaults."),
        1 => format!("{rules} that every cycle goes by; 1 is not at its default."),
        n => format!("{rules} that every cycle goes by; {n} are not at their defaults."),
    };
    let form = chosen.map(|one| form(context, one, now));
    let rows = all.iter().map(|one| row(one, now)).collect();
    let table = Sheet {
        caption: "Policies".to_owned(),
        class: "settings",
        cols: vec![
            Col::Text("Policy"),
            Col::Number("Now"),
            Col::Number("Default"),
            Col::Text("Allowed"),
            Col::Text("Elsewhere"),
            Col::Text("Last change"),
            Col::Unseen("Change it"),
        ],
        rows,
        foot: None,
    };
    Ok(view! {
        <PageHead title="Policies" say=say.into_any() />
        {form_error(&context.errors)}
        {form}
        <div data-live="policies">{table.view()}</div>
    }
    .into_any())
}

fn row(one: &PolicyView, now: Timestamp) -> AnyView {
    let to = Url::Policies {
        change: Some(one.name.clone()),
    };
    let label = format!("Change {}", one.name);
    let mark = one
        .changed
        .then(|| view! { <span class="tag">"changed"</span> });
    view! {
        <tr id=format!("policy-{}", one.name.replace('.', "-"))>
            <th scope="row"><code>{one.name.clone()}</code>{mark}<span class="under q">{one.meaning.clone()}</span></th>
            <td class="n"><b>{one.value.clone()}</b></td>
            <td class="n q">{one.default.clone()}</td>
            <td class="q">{one.allowed.clone()}</td>
            <td class="q">{one.elsewhere.clone()}</td>
            <td>{last(one.last.as_ref(), now)}</td>
            <td class="n"><a class="btn small" href=format!("{to}#change") aria-label=label>"Change…"</a></td>
        </tr>
    }
    .into_any()
}

/// Who last changed it, when, from what to what, and why.
pub fn last(last: Option<&ChangeView>, now: Timestamp) -> Option<AnyView> {
    let last = last?;
    let why = last
        .why
        .clone()
        .map(|why| view! { <span class="under q">{why}</span> });
    Some(
        view! { {last.what.clone()}" by "{last.by.clone()}", "{when(last.at, now)}{why} }
            .into_any(),
    )
}

fn form(context: &PageContext, one: &PolicyView, now: Timestamp) -> AnyView {
    let errors = context.errors.as_slice();
    // What came back wins over what it is.
    let typed = context.typed.get("value").cloned();
    let value = typed.unwrap_or_else(|| one.value.clone());
    let why = context.typed("why", "");
    let field = |name, label, value, hint| Field {
        name,
        label,
        value,
        hint,
        errors,
    };
    let control = match one.choices.is_empty() {
        true => text_field(field("value", "New value", &value, ""), "short", None),
        false => {
            let words: Vec<_> = one
                .choices
                .iter()
                .map(|word| (word.clone(), word.clone()))
                .collect();
            choice(field("value", "New value", &value, ""), "short", &words)
        }
    };
    let before = last(one.last.as_ref(), now)
        .map(|last| view! { <p class="q">"Last change: "{last}"."</p> });
    let whole = Url::Policies { change: None }.to_string();
    view! {
        <section class="panel act first" id="change">
            <h2>"Change "<code>{one.name.clone()}</code></h2>
            <p>{one.meaning.clone()}</p>
            <p class="q">"Now "<b>{one.value.clone()}</b>", by default "{one.default.clone()}"; "{one.allowed.clone()}"."</p>
            {before}
            <form method="post" action=forms::policy(&one.name)>
                <input type="hidden" name="version" value=one.version.to_string() />
                {control}
                {text_field(field("why", "Why", why, "for those who meet it later"), "", None)}
                <div class="acts"><button class="btn go">"Change it"</button><a class="btn quiet" href=whole>"Leave it"</a></div>
            </form>
        </section>
    }
    .into_any()
}
