//! What comes in: queries that may hold only what is known, bodies in JSON, TOML or YAML, errors by the field.

use crate::rest::problem::Refused;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header::CONTENT_TYPE};
use contract::FieldError;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::str::FromStr;

/// A query's values by name. Each is taken once; what is left at the end is refused.
pub struct Query {
    values: BTreeMap<String, String>,
    wrong: Vec<FieldError>,
    known: Vec<&'static str>,
}

impl Query {
    fn of(query: &str) -> Self {
        let mut values = BTreeMap::new();
        let mut wrong = Vec::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if values
                .insert(name.to_string(), value.into_owned())
                .is_some()
            {
                wrong.push(FieldError::new(
                    &name,
                    "is given twice; several values go into one, with commas",
                ));
            }
        }
        Self {
            values,
            wrong,
            known: Vec::new(),
        }
    }

    /// A text; `None` when it is absent or empty.
    pub fn text(&mut self, name: &'static str) -> Option<String> {
        self.given(name).filter(|value| !value.is_empty())
    }

    /// A value where empty is not absent: `limit=` asks for something that is no number.
    pub fn given(&mut self, name: &'static str) -> Option<String> {
        self.known.push(name);
        self.values.remove(name)
    }

    /// A whole number within a range.
    pub fn number(&mut self, name: &'static str, least: u64, most: u64) -> Option<u64> {
        let text = self.given(name)?;
        let number = number(&text).filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.flag(name, format!("a whole number from {least} to {most}"));
        }
        number
    }

    /// `true` or `false`; absent is `false`.
    pub fn yes(&mut self, name: &'static str) -> bool {
        match self.given(name).as_deref() {
            Some("true") => true,
            Some("false") | None => false,
            Some(_) => {
                self.flag(name, "true or false".to_owned());
                false
            }
        }
    }

    /// Several values, with commas between.
    pub fn list<T: FromStr<Err: std::fmt::Display> + Ord>(&mut self, name: &'static str) -> Vec<T> {
        let text = self.text(name).unwrap_or_default();
        let mut all = Vec::new();
        for part in text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            match part.parse::<T>() {
                Ok(value) => all.push(value),
                Err(error) => self.flag(name, <T::Err as ToString>::to_string(&error)),
            }
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Marks a value as wrong.
    pub fn flag(&mut self, name: &str, message: String) {
        self.wrong.push(FieldError::new(name, message));
    }

    /// Refuses what was wrong, and what nobody asked for.
    pub fn finish(mut self) -> Result<(), Refused> {
        let known = if self.known.is_empty() {
            "nothing".to_owned()
        } else {
            self.known.join(", ")
        };
        for name in self.values.keys() {
            self.wrong.push(FieldError::new(
                name,
                format!("is not known here; known: {known}"),
            ));
        }
        if self.wrong.is_empty() {
            Ok(())
        } else {
            Err(Refused::bad_query(self.wrong))
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = Refused;
    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Refused> {
        Ok(Self::of(parts.uri.query().unwrap_or_default()))
    }
}

/// A number out of an address, written as it is given out: digits alone, no sign, no zero before them. Anything else is an
/// address that leads nowhere.
pub fn number<T: FromStr + ToString>(text: &str) -> Option<T> {
    text.parse()
        .ok()
        .filter(|number: &T| number.to_string() == text)
}

/// No query at all: anything in it is refused.
pub struct NoQuery;

impl<S: Sync> FromRequestParts<S> for NoQuery {
    type Rejection = Refused;
    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Refused> {
        Query::of(parts.uri.query().unwrap_or_default())
            .finish()
            .map(|()| Self)
    }
}

/// A body in JSON, TOML or YAML, by its content type.
pub struct Spec<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Spec<T> {
    type Rejection = Refused;
    async fn from_request(request: Request, state: &S) -> Result<Self, Refused> {
        let format = format_of(request.headers())?;
        let body = read_body(request, state).await?;
        match format {
            Format::Json => from_json(&body),
            Format::Toml => from_text(&body, |text| {
                toml::from_str(text).map_err(|error| error.to_string())
            }),
            Format::Yaml => from_text(&body, |text| {
                serde_norway::from_str(text).map_err(|error| error.to_string())
            }),
        }
        .map(Self)
    }
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
            Format::Json => from_json(&body).map(Self),
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

fn from_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refused> {
    // Twice, so that what is no JSON at all is told apart from JSON that says the wrong thing.
    let value: serde_json::Value = serde_json::from_slice(body)
        .map_err(|error| unreadable(format!("this is no JSON: {error}")))?;
    from_value(value)
}

fn from_text<T: DeserializeOwned>(
    body: &[u8],
    read: impl Fn(&str) -> Result<serde_json::Value, String>,
) -> Result<T, Refused> {
    let text = std::str::from_utf8(body)
        .map_err(|error| unreadable(format!("this is no UTF-8 text: {error}")))?;
    from_value(read(text).map_err(unreadable)?)
}

fn from_value<T: DeserializeOwned>(value: serde_json::Value) -> Result<T, Refused> {
    if !value.is_object() {
        return Err(Refused::invalid(vec![FieldError::new(
            "body",
            "must be an object with named fields",
        )]));
    }
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let path = if path == "." { "" } else { path.as_str() };
        Refused::invalid(vec![field_error(path, &error.into_inner().to_string())])
    })
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
    fn a_number_in_an_address_is_written_as_it_is_given_out() {
        assert_eq!(number::<u32>("3"), Some(3));
        assert_eq!(number::<u64>("0"), Some(0));
        for text in [
            "+3",
            "-3",
            "03",
            "00",
            "",
            " 3",
            "3 ",
            "3.0",
            "4294967296",
            "\u{663}",
        ] {
            assert_eq!(number::<u32>(text), None, "{text}");
        }
    }

    #[test]
    fn a_query_holds_only_what_is_known_and_once() {
        let mut query = Query::of("limit=0&team=a&team=b&colour=red");
        assert_eq!(query.number("limit", 1, 200), None);
        assert_eq!(query.list::<String>("team"), ["b"]);
        let refused = format!("{:?}", query.finish().expect_err("three are wrong"));
        for field in ["limit", "team", "colour"] {
            assert!(
                refused.contains(&format!("field: \"{field}\"")),
                "{field}: {refused}"
            );
        }
    }
}
