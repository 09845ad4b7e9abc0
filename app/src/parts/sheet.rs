//! A table: named for those who cannot see it, scrolling by itself where it is wide, and reachable by keyboard then.

use leptos::prelude::*;

/// The head of a column.
pub enum Col {
    /// Of words.
    Text(&'static str),
    /// Of numbers, to the right.
    Number(&'static str),
    /// Of money, with its currency.
    Money(&'static str, String),
    /// Of pictures or buttons: its head is for those who cannot see them.
    Unseen(&'static str),
}

/// A table and how it looks.
pub struct Sheet {
    /// What it holds, in a few words.
    pub caption: String,
    /// Its look.
    pub class: &'static str,
    /// Columns, from the left.
    pub cols: Vec<Col>,
    /// Rows.
    pub rows: Vec<AnyView>,
    /// The row below, with totals.
    pub foot: Option<AnyView>,
}

impl Sheet {
    /// As wide as its page.
    pub fn view(self) -> AnyView {
        self.scrolling("scroll", None)
    }

    /// At most as high as a part of the screen; `live` names what is kept up with the server.
    pub fn tall(self, live: Option<&'static str>) -> AnyView {
        self.scrolling("scroll tall", live)
    }

    fn scrolling(self, scroll: &'static str, live: Option<&'static str>) -> AnyView {
        let label = self.caption.clone();
        let heads: Vec<_> = self.cols.into_iter().map(head).collect();
        let foot = self.foot.map(|foot| view! { <tfoot>{foot}</tfoot> });
        view! {
            <div class=scroll tabindex="0" role="region" aria-label=label>
                <table class=self.class id=live>
                    <caption class="sr">{self.caption}</caption>
                    <thead><tr>{heads}</tr></thead>
                    <tbody data-live=live>{self.rows}</tbody>
                    {foot}
                </table>
            </div>
        }
        .into_any()
    }
}

fn head(col: Col) -> AnyView {
    match col {
        Col::Text(name) => view! { <th scope="col">{name}</th> }.into_any(),
        Col::Number(name) => view! { <th scope="col" class="n">{name}</th> }.into_any(),
        Col::Money(name, currency) => {
            view! { <th scope="col" class="n">{name}", "{currency}</th> }.into_any()
        }
        Col::Unseen(name) => {
            view! { <th scope="col"><span class="sr">{name}</span></th> }.into_any()
        }
    }
}
