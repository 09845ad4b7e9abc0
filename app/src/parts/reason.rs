//! Why a job waits, in the words that every door uses.

use contract::ReasonView;
use leptos::prelude::*;

/// The dominant reason in one line. The style sheet makes its first letter a capital; the words stay those of REST and CLI.
pub fn reason_line(reason: &ReasonView) -> AnyView {
    view! { <span class="reason">{reason.text.clone()}</span> }.into_any()
}

/// The reason whole: what else stands in the way, and what would help.
pub fn reason_block(reason: &ReasonView) -> AnyView {
    let others: Vec<_> = reason
        .all
        .iter()
        .filter(|text| **text != reason.text)
        .cloned()
        .collect();
    let others = (!others.is_empty()).then(|| {
        view! {
            <p class="q">"Also in the way:"</p>
            <ul class="plain">{others.into_iter().map(|text| view! { <li class="reason">{text}</li> }).collect_view()}</ul>
        }
    });
    let help = reason.help.clone();
    let help = (!help.is_empty()).then(|| {
        view! {
            <h3>"What would help"</h3>
            <ul class="plain">{help.into_iter().map(|text| view! { <li>{text}</li> }).collect_view()}</ul>
        }
    });
    view! {
        <p class="lead">{reason_line(reason)}</p>
        {others}
        {help}
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_shows_each_blocker_once_and_what_would_help() {
        let reason = ReasonView {
            code: "quota".into(),
            text: "short by 8 <b>".into(),
            never: false,
            planned_start: None,
            all: vec!["short by 8 <b>".into(), "no block has room".into()],
            help: vec!["Ask for 24.".into()],
        };
        let html = reason_block(&reason).to_html();
        assert_eq!(html.matches("short by 8 &lt;b&gt;").count(), 1, "{html}");
        assert!(
            html.contains("no block has room") && html.contains("Ask for 24."),
            "{html}"
        );
        assert!(
            !html.contains("<b>"),
            "a reason is text, never HTML: {html}"
        );
    }
}
