//! Words for what lies under the pointer or the arrow keys on a map. The table says the same.

use leptos::prelude::*;

/// The tooltip of all drawings on the page.
#[island]
pub fn MapHover() -> impl IntoView {
    let words = RwSignal::new(String::new());
    let place = RwSignal::new((0.0_f64, 0.0_f64));
    let tip = NodeRef::<leptos::html::Div>::new();
    #[cfg(feature = "hydrate")]
    browser::start(words, place, tip);
    #[cfg(not(feature = "hydrate"))]
    let _ = place;
    view! {
        <div class="tip" role="status" node_ref=tip hidden=move || words.read().is_empty()>
            {words}
        </div>
    }
}

#[cfg(feature = "hydrate")]
mod browser {
    use leptos::html::Div;
    use leptos::prelude::*;
    use wasm_bindgen::prelude::*;
    use web_sys::{Element, Event, HtmlElement, KeyboardEvent};

    /// Room that the tooltip takes at most, in pixels.
    const TIP_WIDE: f64 = 320.0;
    /// Marks the node that is looked at; a refresh leaves it.
    const AT: &str = "data-at";

    #[derive(Clone, Copy)]
    struct Tip {
        words: RwSignal<String>,
        place: RwSignal<(f64, f64)>,
    }

    pub(super) fn start(words: RwSignal<String>, place: RwSignal<(f64, f64)>, tip: NodeRef<Div>) {
        let shown = Tip { words, place };
        reachable();
        crate::islands::live::on_refresh(move || {
            reachable();
            shown.look_again();
        });
        listen("pointerover", move |event| shown.follow(&event));
        listen("focusout", move |_| shown.leave());
        listen("keydown", move |event| {
            if let Ok(event) = event.dyn_into::<KeyboardEvent>() {
                shown.step(&event);
            }
        });
        Effect::new(move |_| {
            let (x, y) = place.get();
            if let Some(tip) = tip.get() {
                let tip: &HtmlElement = tip.as_ref();
                // The object model may set a place; the policy forbids only the attribute.
                let _ = tip.style().set_property("left", &format!("{x}px"));
                let _ = tip.style().set_property("top", &format!("{y}px"));
            }
        });
    }

    fn listen(name: &str, act: impl FnMut(Event) + 'static) {
        let act = Closure::<dyn FnMut(Event)>::new(act);
        let _ = document().add_event_listener_with_callback(name, act.as_ref().unchecked_ref());
        // It lives as long as the page.
        act.forget();
    }

    fn all(selector: &str) -> Vec<Element> {
        let Ok(list) = document().query_selector_all(selector) else {
            return Vec::new();
        };
        let nodes = (0..list.length()).filter_map(|index| list.item(index));
        nodes.filter_map(|node| node.dyn_into().ok()).collect()
    }

    /// Each drawing is one stop of the Tab key; arrows go on from there.
    fn reachable() {
        for drawing in all("svg.block") {
            let _ = drawing.set_attribute("tabindex", "0");
        }
    }

    /// A node's words. The browser's own tooltip would stand beside ours: it is taken out at the first look.
    fn words_of(node: &Element) -> String {
        if let Ok(Some(title)) = node.query_selector("title") {
            let words = title.text_content().unwrap_or_default();
            let _ = node.set_attribute("data-words", words.trim());
            title.remove();
        }
        node.get_attribute("data-words").unwrap_or_default()
    }

    impl Tip {
        fn show(self, node: &Element) {
            unmark();
            let _ = node.set_attribute(AT, "");
            let area = node.get_bounding_client_rect();
            let room = window().inner_width().ok().and_then(|wide| wide.as_f64());
            let rightmost = room.unwrap_or(1_024.0) - TIP_WIDE;
            let left = area.left().min(rightmost).max(8.0);
            self.place.set((left, area.bottom() + 6.0));
            self.words.set(words_of(node));
        }

        /// The page is fresh: what is looked at may have other words now.
        fn look_again(self) {
            if let Some(node) = all(".nd[data-at]").first() {
                self.words.set(words_of(node));
            }
        }

        fn leave(self) {
            unmark();
            self.words.set(String::new());
        }

        fn follow(self, event: &Event) {
            let target = event.target();
            let target = target.and_then(|target| target.dyn_into::<Element>().ok());
            match target.and_then(|target| target.closest(".nd").ok().flatten()) {
                Some(node) => self.show(&node),
                None if self.words.with_untracked(|words| !words.is_empty()) => self.leave(),
                None => {}
            }
        }

        fn step(self, event: &KeyboardEvent) {
            if event.key() == "Escape" {
                return self.leave();
            }
            let nodes = all("svg.block:focus .nd");
            if nodes.is_empty() {
                return;
            }
            let at = nodes.iter().position(|node| node.has_attribute(AT));
            let column = |index: usize| nodes[index].get_attribute("x");
            let rack = |at: usize| {
                let here = column(at);
                (0..nodes.len())
                    .filter(|index| column(*index) == here)
                    .count()
            };
            let next = match (event.key().as_str(), at) {
                ("ArrowDown" | "ArrowUp" | "ArrowLeft" | "ArrowRight", None) => Some(0),
                ("ArrowDown", Some(at)) => Some(at + 1),
                ("ArrowUp", Some(at)) => at.checked_sub(1),
                ("ArrowRight", Some(at)) => Some(at + rack(at)),
                ("ArrowLeft", Some(at)) => at.checked_sub(rack(at)),
                _ => return,
            };
            event.prevent_default();
            if let Some(node) = next.and_then(|next| nodes.get(next)) {
                self.show(node);
            }
        }
    }

    fn unmark() {
        for node in all(".nd[data-at]") {
            let _ = node.remove_attribute(AT);
        }
    }
}
