//! A job's state: a word and a mark. Each mark has its own shape, so that colour is never the only sign.

use contract::{JobRow, JobState, ReasonView};
use leptos::prelude::*;

/// The mark's class and the word. What can never run is not shown as merely waiting.
pub fn state_word(state: JobState, reason: Option<&ReasonView>) -> (&'static str, &'static str) {
    match (state, reason) {
        (JobState::Queued, Some(reason)) if reason.code == "misconfigured" => {
            ("never", "Needs attention")
        }
        (JobState::Queued, Some(reason)) if reason.never => ("never", "Can never run"),
        (JobState::Queued, Some(reason)) if reason.code == "suspended" => ("wait", "Suspended"),
        (JobState::Queued, _) => ("wait", "Waiting"),
        (JobState::Admitted, _) => ("admit", "Admitted"),
        (JobState::Starting, _) => ("start", "Starting"),
        (JobState::Running, _) => ("run", "Running"),
        (JobState::Reclaiming, _) => ("give", "Giving back"),
        (JobState::Recovering, _) => ("recover", "Recovering"),
        (JobState::Succeeded, _) => ("done", "Succeeded"),
        (JobState::Failed, _) => ("failed", "Failed"),
        (JobState::Cancelled, _) => ("cancelled", "Cancelled"),
        (JobState::TimedOut, _) => ("timeout", "Timed out"),
    }
}

/// A state as a badge.
pub fn badge(state: JobState, reason: Option<&ReasonView>) -> AnyView {
    let (mark, word) = state_word(state, reason);
    view! { <span class=format!("badge {mark}")><i aria-hidden="true"></i>{word}</span> }.into_any()
}

/// A row's state; a stop under way is said beside it.
pub fn row_badge(row: &JobRow) -> AnyView {
    let stopping = row
        .stopping
        .then(|| view! { <span class="u">", stopping"</span> });
    view! { {badge(row.state, row.reason.as_ref())}{stopping} }.into_any()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn reason(code: &str, never: bool) -> ReasonView {
        ReasonView {
            code: code.into(),
            text: String::new(),
            never,
            planned_start: None,
            all: Vec::new(),
            help: Vec::new(),
        }
    }

    #[test]
    fn each_of_the_ten_states_has_its_own_word_and_shape() {
        let all: Vec<_> = JobState::ALL
            .into_iter()
            .map(|state| state_word(state, None))
            .collect();
        let marks: BTreeSet<_> = all.iter().map(|(mark, _)| mark).collect();
        let words: BTreeSet<_> = all.iter().map(|(_, word)| word).collect();
        assert_eq!((marks.len(), words.len()), (10, 10));
    }

    #[test]
    fn what_can_never_run_is_not_shown_as_waiting() {
        let never = reason("exceeds_maximum", true);
        let html = badge(JobState::Queued, Some(&never)).to_html();
        assert!(
            html.contains("Can never run") && html.contains("badge never"),
            "{html}"
        );
        assert!(!html.contains("Waiting"), "{html}");
        let html = badge(JobState::Queued, Some(&reason("suspended", false))).to_html();
        assert!(html.contains("Suspended"), "{html}");
        let html = badge(JobState::Queued, Some(&reason("quota", false))).to_html();
        assert!(
            html.contains("Waiting") && html.contains("badge wait"),
            "{html}"
        );
        let html = badge(JobState::Queued, Some(&reason("misconfigured", true))).to_html();
        assert!(html.contains("Needs attention"), "{html}");
    }
}
