//! Why there is no page, and the way on.

use crate::PageProblem;
use crate::parts::PageHead;
use crate::url::{QueueUrl, Url};
use leptos::prelude::*;

/// The page for a problem.
pub fn problem(problem: &PageProblem) -> AnyView {
    let say = problem.detail.clone().into_any();
    let way = if problem.status == 401 {
        view! { <a class="btn go" href=Url::SignIn { next: None }.to_string()>"Sign in"</a> }
            .into_any()
    } else {
        view! {
            <a class="btn" href=Url::Overview.to_string()>"Overview"</a>
            <a class="btn" href=Url::Queue(QueueUrl::default()).to_string()>"Queue"</a>
        }
        .into_any()
    };
    view! {
        <div class="problem">
            <p class="code" aria-hidden="true">{problem.status}</p>
            <PageHead title=problem.title.clone() say=say still=true />
            <p class="acts">{way}</p>
        </div>
    }
    .into_any()
}
