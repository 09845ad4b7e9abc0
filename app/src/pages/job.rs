//! One job, from submit to bill.

use super::Page;
use super::job_acts::{cancel, held, hold};
use super::job_notebook::{idle_rule, suspend};
use super::job_parts::{
    asked_for, checkpoints, cost, same_elsewhere, what_happened, where_it_runs,
};
use crate::PageContext;
use crate::parts::{
    PageHead, badge, clock, count, form_error, gpus, reason_block, span, span_ms, steps_strip, when,
};
use crate::url::{LIVE, QueueUrl, Start, Url};
use contract::{JobState, JobView, MapBlock};
use control::ServiceError;
use leptos::prelude::*;

/// The page.
pub async fn job(context: &PageContext, id: u64) -> Page {
    let actor = context
        .actor
        .as_ref()
        .ok_or(ServiceError::Unauthenticated)?;
    let job = context.control.visible(actor, id).await?.show().await?;
    let blocks = match &job.placement {
        Some(place) if !job.row.state.ended() => {
            let map = context.everyone()?.map().await?;
            let mine = map
                .blocks
                .into_iter()
                .filter(|block| place.blocks.contains(&block.name));
            mine.collect()
        }
        _ => Vec::new(),
    };
    let row = &job.row;
    let crumbs = vec![
        (Some(Url::Queue(QueueUrl::default())), "Queue".to_owned()),
        (Some(Url::team_queue(&row.team, &LIVE)), row.team.clone()),
        (None, format!("job {}", row.id)),
    ];
    let like = Url::NewJob(Start::Like(row.id)).to_string();
    let (suspend, hold, cancel) = (
        suspend(&job, context),
        hold(&job, context),
        cancel(&job, context),
    );
    Ok(view! {
        <PageHead title=row.name.clone() crumbs=crumbs say=say(&job)>
            <div class="acts" data-live="actions"><a class="btn quiet" href=like>"Clone"</a>{suspend}{hold}{cancel}</div>
        </PageHead>
        {form_error(&context.errors)}
        <div data-live="reclaim">{held(&job)}{idle_rule(&job)}{reclaim(&job)}</div>
        <div data-live="steps">{steps_strip(&job.steps, job.now)}</div>
        <div class="grid two">
            <div class="grid" data-live="job">{left(&job, &blocks)}</div>
            <div class="grid">
                <div class="grid" data-live="cost">{cost(&job)}</div>
                {asked_for(&job)}
                {same_elsewhere(&job)}
            </div>
        </div>
    }
    .into_any())
}

/// The reclaim that it asks by or would stop for.
fn reclaim(job: &JobView) -> Option<AnyView> {
    let note = job.reclaim.as_ref()?;
    let now = job.now;
    let until = note
        .deadline
        .map(|at| view! { " Until "{when(at, now)}", in "{span(now, at)}"." });
    let class = if note.loses { "notice held" } else { "notice" };
    let who = if note.loses {
        "Asked to give back: "
    } else {
        "Reclaim: "
    };
    Some(
        view! {
            <p class=class>
                <b>{who}</b>{note.text.clone()}"."{until}" "
                <a href=Url::Reclaim(note.id).to_string()>"Reclaim "{note.id}</a>
            </p>
        }
        .into_any(),
    )
}

fn left(job: &JobView, blocks: &[MapBlock]) -> AnyView {
    let reason = job.row.reason.as_ref().map(|reason| {
        view! { <section class="panel" id="why"><h2>"Why it waits"</h2>{reason_block(reason)}</section> }
    });
    view! { {reason}{where_it_runs(job, blocks)}{checkpoints(job)}{what_happened(job)} }.into_any()
}

/// The one line: state, size, since when, until when.
fn say(job: &JobView) -> AnyView {
    let (row, now) = (&job.row, job.now);
    let flavours = row.flavours.join(" or ");
    let size = match row.gpus.0.0 {
        0 => "without GPUs".to_owned(),
        _ => format!("{} {flavours}", gpus(row.gpus)),
    };
    let size = match (row.pods < job.spec.pods, row.state) {
        (true, state) if state != JobState::Queued => {
            let asked = contract::plural(job.spec.pods.into(), "pod", "pods");
            format!("{size}, at {} of {asked}", count(row.pods.into()))
        }
        _ => size,
    };
    let stopping = row.stopping.then_some(", stopping");
    let rest = match row.state {
        JobState::Queued => {
            let place = row.position.map(|place| {
                format!(
                    ", place {} in the queue of {}",
                    count(place.into()),
                    row.team
                )
            });
            format!(
                "for {size} since {}{}.",
                clock(row.submitted, now),
                place.unwrap_or_default()
            )
            .into_any()
        }
        state if state.ended() => {
            let ended = row.ended.map(|at| view! { " at "{when(at, now)} });
            let ran = (job.ran_ms > 0).then(|| format!(" after running {}", span_ms(job.ran_ms)));
            let cause = row.end_cause.clone().map(|cause| format!(": {cause}"));
            let on = if row.started.is_some() {
                "on "
            } else {
                "before it ran, asked for "
            };
            view! { {on}{size}{ended}{ran}{cause}"." }.into_any()
        }
        _ => {
            let since = row
                .started
                .map(|at| view! { " since "{when(at, now)}" ("{span(at, now)}")" });
            let by = row
                .ends_by
                .map(|at| view! { ", ends by "<b>{when(at, now)}</b>" at the latest" });
            view! { "on "{size}{since}{by}"." }.into_any()
        }
    };
    view! { {badge(row.state, row.reason.as_ref())}{stopping}" "{rest} }.into_any()
}
