//! Bodies that come in: JSON, TOML or YAML, every wrong field named at once.

use super::problem::Refused;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use contract::FieldError;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A body in JSON, TOML or YAML, by its content type.
pub struct Spec<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Spec<T> {
    type Rejection = Refused;
    async fn from_request(request: Request, state: &S) -> Result<Self, Refused> {
        let Draft { value, wrong } = Draft::from_request(request, state).await?;
        if wrong.is_empty() {
            Ok(Self(value))
        } else {
            Err(Refused::invalid(wrong))
        }
    }
}

/// A body that may have wrong fields: they are named, and stand-ins are in their place, so that the others can be judged
/// before the answer names them all.
pub struct Draft<T> {
    /// What was read.
    pub value: T,
    /// Fields that do not parse, are missing or are not known.
    pub wrong: Vec<FieldError>,
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Draft<T> {
    type Rejection = Refused;
    async fn from_request(request: Request, state: &S) -> Result<Self, Refused> {
        let format = format_of(request.headers())?;
        let body = read_body(request, state).await?;
        let value = match format {
            Format::Json => json(&body)?,
            Format::Toml => {
                toml::from_str(text(&body)?).map_err(|error| unreadable(error.to_string()))?
            }
            Format::Yaml => yaml(text(&body)?)?,
        };
        draft(value)
    }
}

/// The longest YAML document: a spec has some hundred bytes.
const YAML_MAX: usize = 64 << 10;
/// The deepest YAML document: a spec has two levels.
const YAML_DEPTH_MAX: usize = 32;

/// YAML, refused before it is parsed where parsing would cost more than a spec is worth: the parser reads far ahead in
/// brackets that do not close.
fn yaml(text: &str) -> Result<Value, Refused> {
    if text.len() > YAML_MAX {
        return Err(unreadable(format!(
            "a spec in YAML has at most {} KiB",
            YAML_MAX >> 10
        )));
    }
    let mut depth = 0_usize;
    for byte in text.bytes() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > YAML_DEPTH_MAX {
            return Err(unreadable(format!(
                "more than {YAML_DEPTH_MAX} brackets are open at once"
            )));
        }
    }
    serde_norway::from_str(text).map_err(|error| unreadable(error.to_string()))
}

/// A small JSON body that may be left out.
pub struct Optional<T>(pub T);

impl<T: DeserializeOwned + Default, S: Send + Sync> FromRequest<S> for Optional<T> {
    type Rejection = Refused;
    async fn from_request(request: Request, state: &S) -> Result<Self, Refused> {
        let headers = request.headers().clone();
        let body = read_body(request, state).await?;
        if body.is_empty() {
            return Ok(Self(T::default()));
        }
        match format_of(&headers)? {
            Format::Json if body.trim_ascii() == b"null" => Ok(Self(T::default())),
            Format::Json => from_value(json(&body)?).map(Self),
            Format::Toml | Format::Yaml => Err(unsupported(
                "this body is JSON: set Content-Type: application/json",
            )),
        }
    }
}

async fn read_body<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, Refused> {
    Bytes::from_request(request, state)
        .await
        .map_err(|rejection| match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => Refused::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "too-large",
                "Too large",
                "a request body has at most 1 MiB",
            ),
            status => Refused::new(
                status,
                "body",
                "The body cannot be read",
                rejection.body_text(),
            ),
        })
}

enum Format {
    Json,
    Toml,
    Yaml,
}

fn unsupported(detail: &str) -> Refused {
    Refused::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "media-type",
        "Unknown kind of body",
        detail,
    )
}

fn format_of(headers: &HeaderMap) -> Result<Format, Refused> {
    let whole = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let kind = whole
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    match kind.as_str() {
        "application/json" => Ok(Format::Json),
        "application/toml" => Ok(Format::Toml),
        "application/yaml" | "application/x-yaml" | "text/yaml" => Ok(Format::Yaml),
        _ => Err(unsupported(
            "set Content-Type to application/json, application/toml or application/yaml",
        )),
    }
}

fn unreadable(detail: String) -> Refused {
    Refused::new(
        StatusCode::BAD_REQUEST,
        "syntax",
        "The body cannot be read",
        detail,
    )
}

fn json(body: &[u8]) -> Result<Value, Refused> {
    // Twice, so that what is no JSON at all is told apart from JSON that says the wrong thing.
    serde_json::from_slice(body).map_err(|error| unreadable(format!("this is no JSON: {error}")))
}

fn text(body: &[u8]) -> Result<&str, Refused> {
    std::str::from_utf8(body).map_err(|error| unreadable(format!("this is no UTF-8 text: {error}")))
}

fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, Refused> {
    let Draft { value, wrong } = draft(value)?;
    if wrong.is_empty() {
        Ok(value)
    } else {
        Err(Refused::invalid(wrong))
    }
}

/// As many wrong fields as one answer names.
const WRONG_MAX: usize = 40;

/// Reads it with a stand-in for each wrong field; refused when there is none that would do.
fn draft<T: DeserializeOwned>(mut value: Value) -> Result<Draft<T>, Refused> {
    let mut wrong: Vec<FieldError> = Vec::new();
    // Fields that had to be stood in for, and how many values were tried in their place.
    let mut tried: BTreeMap<String, usize> = BTreeMap::new();
    while wrong.len() < WRONG_MAX {
        let Some(fields) = value.as_object_mut() else {
            wrong.push(FieldError::new(
                "body",
                "must be an object with named fields",
            ));
            break;
        };
        let error = match serde_path_to_error::deserialize(&*fields) {
            Ok(value) => return Ok(Draft { value, wrong }),
            Err(error) => error,
        };
        let path = error.path().to_string();
        let path = if path == "." { "" } else { path.as_str() };
        let found = field_error(path, &error.into_inner().to_string());
        let top = found
            .field
            .split(['.', '['])
            .next()
            .unwrap_or_default()
            .to_owned();
        let tries = tried.get(&top).copied();
        if tries.is_none() {
            wrong.push(found);
        }
        match stand_ins().nth(tries.unwrap_or(0)) {
            // At first it is left out, which does where it may be.
            _ if tries.is_none() && fields.remove(&top).is_some() => {
                tried.insert(top, 0);
            }
            Some(value) => {
                fields.insert(top.clone(), value);
                *tried.entry(top).or_default() += 1;
            }
            None => break,
        }
    }
    Err(Refused::invalid(wrong))
}

/// What may stand in for a field of whichever type.
fn stand_ins() -> impl Iterator<Item = Value> {
    [json!(""), json!(1), json!([]), json!({}), json!(false)].into_iter()
}

/// Names the field that a deserializer's message speaks of: a missing or unknown one stands in the text, not in the path.
fn field_error(path: &str, message: &str) -> FieldError {
    for (opening, said) in [
        ("missing field `", "is missing"),
        ("unknown field `", "is not known here"),
    ] {
        let Some((name, rest)) = message
            .strip_prefix(opening)
            .and_then(|rest| rest.split_once('`'))
        else {
            continue;
        };
        let parent = path
            .strip_suffix(name)
            .unwrap_or(path)
            .trim_end_matches('.');
        let dot = if parent.is_empty() { "" } else { "." };
        return FieldError::new(&format!("{parent}{dot}{name}"), format!("{said}{rest}"));
    }
    FieldError::new(if path.is_empty() { "body" } else { path }, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::SubmitJob;

    fn check(body: &str, field: &str) {
        let value = serde_json::from_str(body).expect(body);
        let refused = from_value::<SubmitJob>(value).expect_err(body);
        assert!(
            format!("{refused:?}").contains(&format!("field: \"{field}\"")),
            "{body}: {refused:?}"
        );
    }

    #[test]
    fn a_wrong_type_a_missing_and_an_unknown_field_are_named() {
        let good = r#"{"team":"a","name":"b","image":"i","gpus_per_pod":8,"pods":4,"checkpoint":{"period":"1h"}}"#;
        check(&good.replace(":4", ":\"four\""), "pods");
        check(&good.replace("\"image\":\"i\",", ""), "image");
        check(&good.replace("\"image\"", "\"imag\""), "imag");
        check(&good.replace("\"1h\"", "\"soon\""), "checkpoint.period");
        check(&good.replace("\"period\"", "\"perio\""), "checkpoint.perio");
        check("[]", "body");
    }

    #[test]
    fn every_wrong_field_is_named_in_one_answer() {
        let value = json!({"team": 5, "image": "i", "gpus_per_pod": "many", "pods": "four", "colour": "red",
            "checkpoint": {"period": "soon"}, "time_limit": "later"});
        let Draft { wrong, .. } = draft::<SubmitJob>(value).expect("stand-ins do");
        let mut fields: Vec<_> = wrong.iter().map(|error| error.field.as_str()).collect();
        fields.sort_unstable();
        let all = [
            "checkpoint.period",
            "colour",
            "gpus_per_pod",
            "name",
            "pods",
            "team",
            "time_limit",
        ];
        assert_eq!(fields, all);
    }

    #[test]
    fn yaml_that_costs_more_than_a_spec_is_refused_unread() {
        assert!(yaml(&"[".repeat(YAML_DEPTH_MAX + 1)).is_err());
        assert!(yaml(&" ".repeat(YAML_MAX + 1)).is_err());
        assert_eq!(
            yaml("team: a\npods: 4\n").ok(),
            Some(json!({"team": "a", "pods": 4}))
        );
    }
}
