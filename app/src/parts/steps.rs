//! The eight steps from submit to bill.

use super::{clock, exact};
use contract::{Step, StepState};
use jiff::Timestamp;
use leptos::prelude::*;

/// The strip: name, figure or time, note. What is ahead or left out says so to those who cannot see the line.
pub fn steps_strip(steps: &[Step], now: Timestamp) -> AnyView {
    let items: Vec<_> = steps.iter().map(|step| one(step, now)).collect();
    view! { <ol class="steps" aria-label="The eight steps">{items}</ol> }.into_any()
}

fn one(step: &Step, now: Timestamp) -> AnyView {
    let (class, said) = match step.state {
        StepState::Done => ("done", "done"),
        StepState::Now => ("now", "now"),
        StepState::Ahead => ("ahead", "not yet"),
        StepState::Skipped => ("skipped", "left out"),
    };
    let at = step.at.map(|at| {
        view! { <time datetime=at.to_string() title=exact(at)>{clock(at, now)}</time> }
    });
    let figure = (!step.figure.is_empty())
        .then(|| view! { <span class="figure">{step.figure.clone()}</span> });
    let actor = (!step.actor.is_empty()).then(|| step.actor.clone());
    let between = (actor.is_some() && at.is_some()).then_some(" · ");
    let note =
        (!step.note.is_empty()).then(|| view! { <span class="note">{step.note.clone()}</span> });
    let current = (step.state == StepState::Now).then_some("step");
    view! {
        <li class=class aria-current=current>
            <b>{step.name.clone()}<span class="sr">", "{said}</span></b>
            {figure}
            <span>{at}{between}{actor}</span>
            {note}
        </li>
    }
    .into_any()
}
