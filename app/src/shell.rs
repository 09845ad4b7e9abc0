//! The page around every page.

use crate::page_context;
use leptos::prelude::*;

/// The document.
pub fn shell(_options: LeptosOptions) -> impl IntoView {
    view! {
        <!DOCTYPE html>
        <html lang="en">
            <head>
                <meta charset="utf-8" />
                <title>"Muster"</title>
            </head>
            <body>
                <App />
            </body>
        </html>
    }
}

/// The portal; expects a [`crate::PageContext`].
#[component]
pub fn App() -> impl IntoView {
    let page = page_context();
    match &page.problem {
        Some(problem) => page.status.set(problem.status),
        None => page.status.set(200),
    }
    view! { <main><h1>"Muster"</h1></main> }
}
