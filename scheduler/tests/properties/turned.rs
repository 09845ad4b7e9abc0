//! A stored state, stored the other way round.

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
