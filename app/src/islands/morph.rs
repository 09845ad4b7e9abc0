//! Takes a fresh page's part over into the one on the screen, touching only what differs, so that focus, scroll position, open
//! details and half-typed text stay. Children with an id are matched by it.

use std::collections::HashSet;
use wasm_bindgen::JsCast;
use web_sys::{Element, Node};

/// What the reader or an island has set, and the server does not know.
const KEPT: [&str; 4] = ["open", "tabindex", "data-words", "data-at"];

/// Makes `old` equal to `new`.
pub fn morph(old: &Element, new: &Element) {
    if old.is_equal_node(Some(new)) || old.tag_name() == "LEPTOS-ISLAND" {
        return;
    }
    attributes(old, new);
    children(old, new);
}

fn names(of: &Element) -> Vec<String> {
    let names = of.get_attribute_names();
    let names = names.iter().filter_map(|name| name.as_string());
    names
        .filter(|name| !KEPT.contains(&name.as_str()))
        .collect()
}

fn attributes(old: &Element, new: &Element) {
    for name in names(old) {
        if !new.has_attribute(&name) {
            let _ = old.remove_attribute(&name);
        }
    }
    for name in names(new) {
        let value = new.get_attribute(&name).unwrap_or_default();
        if old.get_attribute(&name).as_ref() != Some(&value) {
            let _ = old.set_attribute(&name, &value);
        }
    }
}

/// A child's id, if it has one.
fn key(node: &Node) -> Option<String> {
    let id = node.dyn_ref::<Element>()?.id();
    (!id.is_empty()).then_some(id)
}

fn siblings(first: Option<Node>) -> impl Iterator<Item = Node> {
    std::iter::successors(first, Node::next_sibling)
}

fn children(old: &Element, new: &Element) {
    let fresh: Vec<Node> = siblings(new.first_child()).collect();
    let keys: HashSet<String> = fresh.iter().filter_map(key).collect();
    let is_gone = |node: &Node| key(node).is_some_and(|key| !keys.contains(&key));
    let mut at = old.first_child();
    for node in &fresh {
        // What is gone goes first: then what stays need not move, and keeps its focus.
        while let Some(gone) = at.take_if(|node| is_gone(node)) {
            at = gone.next_sibling();
            let _ = old.remove_child(&gone);
        }
        let found = match key(node) {
            Some(wanted) => siblings(at.clone()).find(|child| key(child).as_ref() == Some(&wanted)),
            None => at
                .clone()
                .filter(|child| key(child).is_none() && child.node_name() == node.node_name()),
        };
        let Some(found) = found else {
            let page = old.owner_document();
            let copy = page.and_then(|page| page.import_node_with_deep(node, true).ok());
            if let Some(copy) = copy {
                let _ = old.insert_before(&copy, at.as_ref());
            }
            continue;
        };
        if at.as_ref().is_some_and(|at| at.is_same_node(Some(&found))) {
            at = found.next_sibling();
        } else {
            let _ = old.insert_before(&found, at.as_ref());
        }
        one(&found, node);
    }
    for gone in siblings(at).collect::<Vec<_>>() {
        let _ = old.remove_child(&gone);
    }
}

fn one(old: &Node, new: &Node) {
    match (old.dyn_ref::<Element>(), new.dyn_ref::<Element>()) {
        (Some(old), Some(new)) => morph(old, new),
        _ if old.node_value() != new.node_value() => {
            old.set_node_value(new.node_value().as_deref());
        }
        _ => {}
    }
}
