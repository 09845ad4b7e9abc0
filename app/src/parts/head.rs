//! The head of a page: where one is, the title, and the one line that matters now.

use crate::url::Url;
use leptos::prelude::*;
use leptos_meta::Title;

/// A step of the way to this page.
pub type Crumb = (Option<Url>, String);

/// The head. `title` is the document's, too; the line says what matters now; children are the actions.
#[component]
pub fn PageHead(
    /// Title of page and document.
    #[prop(into)]
    title: String,
    /// The way here.
    #[prop(optional)]
    crumbs: Vec<Crumb>,
    /// What matters now.
    say: AnyView,
    /// The line is about a form that was sent: it stays when the page is looked at again.
    #[prop(optional)]
    still: bool,
    /// Actions.
    #[prop(optional)]
    children: Option<Children>,
) -> impl IntoView {
    let crumbs = (!crumbs.is_empty()).then(|| {
        let steps: Vec<_> = crumbs
            .into_iter()
            .map(|(url, word)| match url {
                Some(url) => {
                    view! { <li><a class="link" href=url.to_string()>{word}</a></li> }.into_any()
                }
                None => view! { <li>{word}</li> }.into_any(),
            })
            .collect();
        view! { <nav aria-label="Where you are"><ol class="crumbs">{steps}</ol></nav> }
    });
    view! {
        <Title text=title.clone() />
        <header class="head">
            <div>
                {crumbs}
                <h1>{title}</h1>
                <p class="say" data-live=(!still).then_some("say")>{say}</p>
            </div>
            {children.map(|children| view! { <div class="acts">{children()}</div> })}
        </header>
    }
}
