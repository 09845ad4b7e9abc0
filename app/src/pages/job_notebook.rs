//! A notebook on its job's page: what its idle rule says, when it is warned and suspended, and the two buttons.

use crate::PageContext;
use crate::forms;
use crate::parts::{Field, clock, span, span_ms, text_field};
use contract::{JobState, JobView, NotebookView};
use jiff::Timestamp;
use leptos::prelude::*;

/// The rule in a sentence.
fn rule(notebook: &NotebookView) -> String {
    format!(
        "A notebook that is not used for {} is suspended; its people are warned {} before.",
        span_ms(notebook.idle_ms),
        span_ms(notebook.warning_ms)
    )
}

/// Where it stands in it; what is bold, and the rest.
fn stand(notebook: &NotebookView, now: Timestamp) -> (&'static str, String) {
    if let Some(suspension) = &notebook.suspended {
        let by = match &suspension.by {
            Some(by) => by.clone(),
            None => "the idle rule".to_owned(),
        };
        let why = suspension.why.as_ref();
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        let since = clock(suspension.since, now);
        let said = format!(
            " by {by} since {since}{why}. It holds no GPU and costs nothing. Resumed, it waits with its first submit time \
             and starts again; what lies on its disk is kept."
        );
        return ("Suspended", said);
    }
    match (notebook.idle_since, notebook.warned_at, notebook.suspend_at) {
        (Some(since), None, Some(at)) => (
            "Warned",
            format!(
                ": not used since {}. It is suspended at {}, in {}, unless it is used before.",
                clock(since, now),
                clock(at, now),
                span(now, at)
            ),
        ),
        (Some(since), Some(warned), Some(at)) => (
            "Not used",
            format!(
                " since {}. Its people are warned at {}; it is suspended at {}, unless it is used before.",
                clock(since, now),
                clock(warned, now),
                clock(at, now)
            ),
        ),
        _ => (
            "Idle rule",
            ": nothing says that it is not used.".to_owned(),
        ),
    }
}

/// The rule, and where it stands in it.
pub fn idle_rule(job: &JobView) -> Option<AnyView> {
    let notebook = job.notebook.as_ref()?;
    let (word, said) = stand(notebook, job.now);
    let class = match word {
        "Warned" | "Suspended" => "notice held",
        _ => "notice",
    };
    Some(view! { <p class=class><b>{word}</b>{said}" "{rule(notebook)}</p> }.into_any())
}

/// Suspending it, in place: what is lost is said before it is done. Or taking it up again.
pub fn suspend(job: &JobView, context: &PageContext) -> Option<AnyView> {
    let notebook = job.notebook.as_ref()?;
    if notebook.may_resume {
        return Some(
            view! { <form method="post" action=forms::resume(job.row.id)><button class="btn go">"Resume"</button></form> }
                .into_any(),
        );
    }
    notebook.may_suspend.then(|| suspend_form(job, context))
}

/// What a suspension takes away, in words.
fn loss(job: &JobView) -> String {
    let kept = "It costs nothing until somebody resumes it, and keeps its first submit time.";
    match job.row.state {
        JobState::Queued => format!("It lets others pass. {kept}"),
        _ => format!(
            "Gives {} back. What lies on its disk is kept; what is only in memory is lost. {kept}",
            contract::gpu_count(job.row.gpus.0)
        ),
    }
}

fn suspend_form(job: &JobView, context: &PageContext) -> AnyView {
    let why = Field {
        name: "suspend_why",
        label: "Why (for those who look for it)",
        value: context.typed("suspend_why", ""),
        hint: "",
        errors: &context.errors,
    };
    let open = context
        .errors
        .iter()
        .any(|error| error.field == "suspend_why");
    view! {
        <details class="cancel" open=open>
            <summary class="btn">"Suspend…"</summary>
            <form class="panel" method="post" action=forms::suspend(job.row.id)>
                <h2>"Suspend "{job.row.name.clone()}"?"</h2>
                <p>{loss(job)}</p>
                {text_field(why, "", None)}
                <button class="btn go">"Suspend this notebook"</button>
            </form>
        </details>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::SuspensionView;

    /// After two in the fleet's zone.
    fn at(minute: u32) -> Timestamp {
        format!("2026-11-30T13:{minute:02}:00Z")
            .parse()
            .expect("a time")
    }

    fn notebook() -> NotebookView {
        NotebookView {
            idle_ms: 1_800_000,
            warning_ms: 600_000,
            idle_since: None,
            warned_at: None,
            suspend_at: None,
            suspended: None,
            may_suspend: true,
            may_resume: false,
        }
    }

    #[test]
    fn the_rule_is_told_with_its_times_before_and_after_the_warning() {
        assert_eq!(
            rule(&notebook()),
            "A notebook that is not used for 30 min is suspended; its people are warned 10 min before."
        );
        let idle = NotebookView {
            idle_since: Some(at(0)),
            warned_at: Some(at(20)),
            suspend_at: Some(at(30)),
            ..notebook()
        };
        let (word, said) = stand(&idle, at(5));
        assert_eq!(word, "Not used");
        assert!(said.contains("warned at 14:20"), "{said}");
        assert!(said.contains("suspended at 14:30"), "{said}");
        let warned = NotebookView {
            warned_at: None,
            ..idle
        };
        let (word, said) = stand(&warned, at(21));
        assert_eq!(word, "Warned");
        assert!(said.contains("14:30, in 9 min"), "{said}");
    }

    #[test]
    fn a_suspended_one_says_by_whom_and_that_it_costs_nothing() {
        let suspended = SuspensionView {
            since: at(30),
            by: None,
            why: None,
        };
        let away = NotebookView {
            suspended: Some(suspended),
            ..notebook()
        };
        let (word, said) = stand(&away, at(40));
        assert_eq!(word, "Suspended");
        assert!(said.contains("by the idle rule since 14:30"), "{said}");
        assert!(said.contains("costs nothing"), "{said}");
    }
}
