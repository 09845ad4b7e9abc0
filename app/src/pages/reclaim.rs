//! One reclaim: its price now, who would go, and the answers that the reader may give.

use super::Page;
use super::reclaim_parts::{
    at_stake, countdown, for_whom, named, numbers, plain_answers, said, title, victims, ways,
};
use crate::PageContext;
use crate::forms;
use crate::parts::{Field, PageHead, form_error, plural, rounded, text_field};
use crate::url::Url;
use contract::{ReclaimAlternative, ReclaimStage, ReclaimView};
use control::ServiceError;
use leptos::prelude::*;

/// The page.
pub async fn reclaim(context: &PageContext, id: u64) -> Page {
    let actor = context
        .actor
        .as_ref()
        .ok_or(ServiceError::Unauthenticated)?;
    let one = context
        .control
        .sees_reclaim(actor, id)
        .await?
        .show()
        .await?;
    let crumbs = vec![
        (Some(Url::Reclaims { after: None }), "Reclaims".to_owned()),
        (None, format!("reclaim {id}")),
    ];
    let refused = form_error(&context.errors);
    let say = format!("{}.", crate::parts::capital(&one.outcome));
    Ok(view! {
        <PageHead title=title(&one) crumbs=crumbs say=say.into_any() />
        {refused}
        <div data-live="reclaim">
            {at_stake(&one, actor)}
            <section class="panel reclaim">
                <div class="reclaim-head"><div>{for_whom(&one)}{said(&one)}</div>{countdown(&one)}</div>
                {victims(&one)}
                {ways(&one)}
                {waits_for(&one)}
                <div class="answers">{plain_answers(&one)}<span class="q">{who_answers(&one)}</span></div>
            </section>
        </div>
        <div class="grid two">
            {another_set(&one, context)}
            {decline(&one, context)}
        </div>
    }
    .into_any())
}

fn who_answers(one: &ReclaimView) -> Option<String> {
    (one.stage == ReclaimStage::Requested)
        .then(|| format!("{}.", crate::parts::capital(&one.may.said)))
}

fn waits_for(one: &ReclaimView) -> Option<AnyView> {
    let jobs = plural(
        one.awaits.len() as u64,
        "job that leaves",
        "jobs that leave",
    );
    (!one.awaits.is_empty() && !one.stage.over()).then(|| {
        view! { <p class="hint">"It counts on the room of "{jobs}" anyway, too."</p> }.into_any()
    })
}

/// The sets that would do besides, each with its price, and a field for one's own.
fn another_set(one: &ReclaimView, context: &PageContext) -> Option<AnyView> {
    if one.stage != ReclaimStage::Requested {
        return None;
    }
    let may = one.may.propose;
    let sets: Vec<_> = one
        .alternatives
        .iter()
        .map(|other| set(one.id, other, may))
        .collect();
    let none = sets
        .is_empty()
        .then(|| view! { <p class="q">"No other set is known that would do."</p> });
    let own = may.then(|| {
        let field = Field {
            name: "victims",
            label: "Other jobs, by number",
            value: context.typed("victims", ""),
            hint: "with commas between; they must free enough in one place by themselves",
            errors: &context.errors,
        };
        view! {
            <form method="post" action=forms::answer_reclaim(one.id, "propose")>
                {text_field(field, "", None)}
                <button class="btn">"Propose these"</button>
            </form>
        }
    });
    Some(
        view! {
            <section class="panel sets" id="another-set">
                <h2>"Another set"</h2>
                {none}
                <ul class="rows">{sets}</ul>
                {own}
            </section>
        }
        .into_any(),
    )
}

fn set(id: u64, other: &ReclaimAlternative, may: bool) -> AnyView {
    let jobs: Vec<_> = other
        .jobs
        .iter()
        .map(|job| view! { <li>{named(job)}<span class="q">{job.team.clone()}", "{contract::gpu_count(job.gpus.0)}</span></li> })
        .collect();
    let place = other.domain.clone().map(|place| format!(" on {place}"));
    let victims = numbers(&other.jobs);
    let label = format!("Propose jobs {victims}");
    let propose = may.then(|| {
        view! {
            <form method="post" action=forms::answer_reclaim(id, "propose")>
                <input type="hidden" name="victims" value=victims />
                <button class="btn small" aria-label=label>"Propose"</button>
            </form>
        }
    });
    view! {
        <li>
            <div>
                <ul>{jobs}</ul>
                <span class="q">{rounded(&other.lost_gpu_hours, 1)}" GPU-hours lost"{place}</span>
            </div>
            {propose}
        </li>
    }
    .into_any()
}

fn decline(one: &ReclaimView, context: &PageContext) -> Option<AnyView> {
    one.may.decline.then(|| {
        let field = Field {
            name: "reason",
            label: "Why",
            value: context.typed("reason", ""),
            hint: "for those who asked; it stays with the reclaim",
            errors: &context.errors,
        };
        view! {
            <section class="panel" id="decline">
                <h2>"Decline"</h2>
                <p class="q">"Its job goes on waiting, and does not ask again for a while: an hour, unless the policy says otherwise."</p>
                <form method="post" action=forms::answer_reclaim(one.id, "decline")>
                    {text_field(field, "", None)}
                    <button class="btn danger">"Decline this reclaim"</button>
                </form>
            </section>
        }
        .into_any()
    })
}
