//! A stored state, stored the other way round; and a journal that begins the other way round.

use scheduler::{Event, Fact};
use serde_json::Value;

/// JSON with every object's members the other way round.
pub fn write_turned(value: &Value, text: &mut String) {
    let (open, close, parts): (_, _, Vec<String>) = match value {
        Value::Object(members) => {
            let turned = members.iter().rev().map(|(key, value)| {
                let mut text = format!("{}:", Value::from(key.as_str()));
                write_turned(value, &mut text);
                text
            });
            ('{', '}', turned.collect())
        }
        Value::Array(items) => {
            let items = items.iter().map(|item| {
                let mut text = String::new();
                write_turned(item, &mut text);
                text
            });
            ('[', ']', items.collect())
        }
        other => return text.push_str(&other.to_string()),
    };
    text.push(open);
    text.push_str(&parts.join(","));
    text.push(close);
}

/// The same journal with its first nodes and its first teams turned round.
pub fn permuted(journal: &[Event], teams_there: usize) -> Vec<Event> {
    let mut journal = journal.to_vec();
    let nodes = |event: &Event| matches!(event.fact, Fact::NodeSet { .. });
    let teams = |event: &Event| matches!(event.fact, Fact::TeamSet { .. });
    let first_node = journal.iter().position(nodes).expect("there are nodes");
    let first_team = journal.iter().position(teams).expect("there are teams");
    journal[first_node..first_node + 10].reverse();
    journal[first_team..first_team + teams_there].reverse();
    journal
}
