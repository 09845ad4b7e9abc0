//! Bars of quota and of hardware: two things, two names. Widths are SVG attributes, since the policy forbids inline styles;
//! each bar says its figures in words.

use super::gpus;
use contract::{FlavourUse, Gpus, QuotaView};
use leptos::prelude::*;

/// A share of a scale as a percentage with two decimals, for an SVG attribute.
fn percent(part: u64, of: u64) -> String {
    let hundredths = (part.min(of) * 10_000).checked_div(of).unwrap_or(0);
    format!("{}.{:02}%", hundredths / 100, hundredths % 100)
}

/// One part of a bar, from `from` on; nothing when it is empty.
fn part(class: &'static str, from: u64, wide: u64, of: u64) -> Option<impl IntoView> {
    (wide > 0).then(|| {
        view! { <rect class=class x=percent(from, of) y="6" width=percent(wide, of) height="10" /> }
    })
}

/// Quota: own use, what of it is lent, the mark at nominal, and what is borrowed beyond. `scale` is the width of the widest
/// bar on the page, in thousandths of a GPU.
pub fn quota_bar(quota: &QuotaView, scale: u64) -> AnyView {
    let milli = |amount: Gpus| amount.0.0;
    let (nominal, own) = (milli(quota.nominal), milli(quota.own));
    let (borrowed, lent) = (milli(quota.borrowed), milli(quota.lent).min(nominal));
    let said = format!(
        "of {} own {} in use, {} lent, {} borrowed",
        gpus(quota.nominal),
        gpus(quota.own),
        gpus(quota.lent),
        gpus(quota.borrowed)
    );
    let mark = percent(nominal, scale);
    view! {
        <svg class="bar" width="100%" height="22" role="img" aria-label=said>
            {part("c-free", 0, nominal, scale)}
            {part("c-own", 0, own, scale)}
            {part("c-lent", nominal.saturating_sub(lent), lent, scale)}
            {part("c-borrowed", nominal, borrowed, scale)}
            {part("c-hatch", nominal, borrowed, scale)}
            <line class="mark-nominal" x1=mark.clone() y1="2" x2=mark y2="20" />
        </svg>
    }
    .into_any()
}

/// What the parts of a quota bar mean.
pub fn quota_key() -> AnyView {
    key(&[
        ("c-own", "own use"),
        ("c-lent", "lent"),
        ("c-borrowed", "borrowed"),
        ("c-free", "unused"),
    ])
}

/// Hardware of one flavour: busy with own and borrowed apart, notebooks, broken, spare, free.
pub fn fleet_bar(flavour: &FlavourUse) -> AnyView {
    let milli = |amount: Gpus| amount.0.0;
    let own = milli(flavour.busy).saturating_sub(milli(flavour.borrowed));
    let parts = [
        ("c-own", own),
        ("c-borrowed", milli(flavour.borrowed)),
        ("c-note", milli(flavour.notebook)),
        ("c-bad", milli(flavour.broken)),
        ("c-free", milli(flavour.free)),
        ("c-spare", milli(flavour.spare)),
    ];
    // Spares stand apart from the total.
    let total = milli(flavour.total) + milli(flavour.spare);
    let mut from = 0;
    let rects: Vec<_> = parts
        .into_iter()
        .filter_map(|(class, wide)| {
            let start = from;
            from += wide;
            let hatch = match class {
                "c-borrowed" => part("c-hatch", start, wide, total),
                "c-bad" => part("c-cross", start, wide, total),
                _ => None,
            };
            part(class, start, wide, total).map(|rect| view! { {rect}{hatch} })
        })
        .collect();
    let said = format!(
        "{}: of {} GPUs {} busy, {} of them borrowed, {} for notebooks, {} out of use, {} free; {} spare besides",
        flavour.title,
        gpus(flavour.total),
        gpus(flavour.busy),
        gpus(flavour.borrowed),
        gpus(flavour.notebook),
        gpus(flavour.broken),
        gpus(flavour.free),
        gpus(flavour.spare)
    );
    view! { <svg class="bar" width="100%" height="22" role="img" aria-label=said>{rects}</svg> }
        .into_any()
}

/// Flavours, the largest part of the fleet first.
pub fn by_size(flavours: &[FlavourUse]) -> Vec<&FlavourUse> {
    let mut all: Vec<_> = flavours.iter().collect();
    all.sort_by(|a, b| {
        b.total
            .cmp(&a.total)
            .then_with(|| a.flavour.cmp(&b.flavour))
    });
    all
}

/// What the parts of a hardware bar mean.
pub fn fleet_key() -> AnyView {
    key(&[
        ("c-own", "own quota"),
        ("c-borrowed", "borrowed"),
        ("c-note", "notebooks"),
        ("c-bad", "out of use"),
        ("c-free", "free"),
        ("c-spare", "spare"),
    ])
}

fn key(parts: &[(&'static str, &'static str)]) -> AnyView {
    let items: Vec<_> = parts
        .iter()
        .map(|(class, word)| {
            let over = match *class {
                "c-borrowed" => Some("c-hatch"),
                "c-bad" => Some("c-cross"),
                _ => None,
            };
            let over = over.map(|class| view! { <rect class=class width="10" height="10" /> });
            view! {
                <li>
                    <svg width="10" height="10" aria-hidden="true"><rect class=*class width="10" height="10" />{over}</svg>
                    {*word}
                </li>
            }
        })
        .collect();
    view! { <ul class="key">{items}</ul> }.into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_never_wider_than_its_scale_and_says_its_figures() {
        let gpus = |n: u64| Gpus::whole(n);
        let quota = QuotaView {
            flavour: "h100-80g".into(),
            nominal: gpus(256),
            charged: gpus(288),
            own: gpus(256),
            borrowed: gpus(32),
            lent: gpus(0),
            held: gpus(288),
            available: gpus(0),
            borrowing_limit: None,
            lending_limit: None,
        };
        let html = quota_bar(&quota, 320_000).to_html();
        assert!(
            html.contains("of 256 own 256 in use, 0 lent, 32 borrowed"),
            "{html}"
        );
        assert!(
            html.contains("width=\"80.00%\"") && html.contains("width=\"10.00%\""),
            "{html}"
        );
        assert!(
            !html.contains("style="),
            "the policy forbids inline styles: {html}"
        );
        assert_eq!(percent(3, 0), "0.00%");
    }
}
