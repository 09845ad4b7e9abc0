//! What one can do with a job: hold, release, cancel. Each is a plain form, in place.

use crate::PageContext;
use crate::forms;
use crate::parts::{Field, choice, clock, rounded, span_ms, text_field};
use contract::{HoldKind, JobState, JobView};
use leptos::prelude::*;

/// That it is held while it runs on: one that waits says so as its reason.
pub fn held(job: &JobView) -> Option<AnyView> {
    let hold = job
        .hold
        .as_ref()
        .filter(|_| job.row.state != JobState::Queued)?;
    let then = match hold.mode {
        HoldKind::Hold => "It goes on, and stays when it next waits.",
        HoldKind::Drain => "It leaves with its next durable save, and waits then.",
    };
    let why = hold.why.clone().map(|why| format!(": {why}"));
    let since = clock(hold.since, job.now);
    Some(
        view! {
            <p class="notice held"><b>"Held"</b>" by "{hold.by.clone()}" since "{since}{why}". "{then}</p>
        }
        .into_any(),
    )
}

/// Holding, in place, or releasing what is held.
pub fn hold(job: &JobView, context: &PageContext) -> Option<AnyView> {
    if let Some(hold) = &job.hold {
        let Some(refused) = hold.release_refused.clone() else {
            return Some(
                view! { <form method="post" action=forms::release(job.row.id)><button class="btn">"Release"</button></form> }
                    .into_any(),
            );
        };
        return Some(
            view! {
                <span class="refused">
                    <button class="btn" disabled aria-describedby="release-why">"Release"</button>
                    <span class="hint" id="release-why">{refused}</span>
                </span>
            }
            .into_any(),
        );
    }
    job.may_hold.then(|| hold_form(job, context))
}

fn hold_form(job: &JobView, context: &PageContext) -> AnyView {
    let errors = context.errors.as_slice();
    let field = |name, label, value, hint| Field {
        name,
        label,
        value,
        hint,
        errors,
    };
    let waits = job.row.state == JobState::Queued;
    let said = match waits {
        true => "It does not start until it is released, and keeps its first submit time.",
        false => {
            "Held, it goes on and stays when it next waits. Drained, it leaves with its next durable save."
        }
    };
    let modes = [
        ("hold", "Hold: it goes on"),
        ("drain", "Drain: it leaves with its next save"),
    ];
    let modes = modes.map(|(value, word)| (value.to_owned(), word.to_owned()));
    let mode = (!waits).then(|| {
        choice(
            field("mode", "How", context.typed("mode", "hold"), ""),
            "",
            &modes,
        )
    });
    let why = field(
        "hold_why",
        "Why (for those who ask why it waits)",
        context.typed("hold_why", ""),
        "",
    );
    let open = errors
        .iter()
        .any(|error| matches!(error.field.as_str(), "hold_why" | "mode"));
    view! {
        <details class="cancel" open=open>
            <summary class="btn">"Hold…"</summary>
            <form class="panel" method="post" action=forms::hold(job.row.id)>
                <h2>"Hold "{job.row.name.clone()}"?"</h2>
                <p>{said}</p>
                {mode}
                {text_field(why, "", None)}
                <button class="btn go">"Hold this job"</button>
            </form>
        </details>
    }
    .into_any()
}

/// What cancelling costs, in words.
fn loss(job: &JobView) -> String {
    let held = contract::gpu_count(job.row.gpus.0);
    let kept = job.checkpoints.first().map_or_else(String::new, |last| {
        format!(
            " Its last checkpoint stays, with {} of work.",
            span_ms(last.progress_ms)
        )
    });
    match job.row.state {
        JobState::Running | JobState::Reclaiming => {
            let lost = rounded(&job.at_risk_gpu_hours, 1);
            format!("Gives {held} back. Work since the last checkpoint is lost: {lost} GPU-hours.")
        }
        JobState::Admitted | JobState::Starting | JobState::Recovering => {
            format!("Gives {held} back.{kept}")
        }
        JobState::Queued
        | JobState::Succeeded
        | JobState::Failed
        | JobState::Cancelled
        | JobState::TimedOut => {
            format!("It holds no GPU: it loses its place in the queue.{kept}")
        }
    }
}

/// Cancelling, in place: what is lost is said before it is done. Without a script it works the same.
pub fn cancel(job: &JobView, context: &PageContext) -> Option<AnyView> {
    let row = &job.row;
    if row.state.ended() {
        return None;
    }
    if !job.may_cancel {
        let why = job
            .cancel_refused
            .clone()
            .unwrap_or_else(|| "not yours to cancel".to_owned());
        return Some(
            view! {
                <span class="refused">
                    <button class="btn" disabled aria-describedby="cancel-why">"Cancel"</button>
                    <span class="hint" id="cancel-why">{why}</span>
                </span>
            }
            .into_any(),
        );
    }
    let loss = loss(job);
    let field = Field {
        name: "why",
        label: "Why (for those who read it later)",
        value: context.typed("why", ""),
        hint: "",
        errors: &context.errors,
    };
    let open = context.errors.iter().any(|error| error.field == "why");
    Some(
        view! {
            <details class="cancel" open=open>
                <summary class="btn">"Cancel…"</summary>
                <form class="panel" method="post" action=forms::cancel(row.id)>
                    <h2>"Cancel "{row.name.clone()}"?"</h2>
                    <p>{loss}</p>
                    {text_field(field, "", None)}
                    <button class="btn danger">"Cancel this one job"</button>
                </form>
            </details>
        }
        .into_any(),
    )
}
