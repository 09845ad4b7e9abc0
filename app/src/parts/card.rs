//! Facts in a row, and the states of a page that has nothing or cannot know.

use leptos::prelude::*;

/// One fact of the row: a figure with its unit, and what it means.
pub struct Fact {
    figure: String,
    unit: String,
    said: AnyView,
}

/// A fact.
pub fn fact(
    figure: impl Into<String>,
    unit: impl Into<String>,
    said: impl IntoView + 'static,
) -> Fact {
    Fact {
        figure: figure.into(),
        unit: unit.into(),
        said: said.into_any(),
    }
}

/// Facts side by side.
pub fn facts(all: Vec<Fact>) -> AnyView {
    let items: Vec<_> = all
        .into_iter()
        .map(|fact| {
            let unit =
                (!fact.unit.is_empty()).then(|| view! { " "<span class="u">{fact.unit}</span> });
            view! { <div><dt>{fact.said}</dt><dd>{fact.figure}{unit}</dd></div> }
        })
        .collect();
    view! { <dl class="facts">{items}</dl> }.into_any()
}

/// Nothing here: says what would be here, and the way on.
pub fn blank(said: &'static str, way: Option<(String, &'static str)>) -> AnyView {
    let way = way.map(|(href, word)| view! { " "<a class="link" href=href>{word}</a> });
    view! { <p class="blank">{said}{way}</p> }.into_any()
}
