//! Queries that come in: they may hold only what is known, and once.

use crate::rest::problem::Refused;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use contract::FieldError;
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
        let number = text
            .parse()
            .ok()
            .filter(|number| (least..=most).contains(number));
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

#[cfg(test)]
mod tests {
    use super::*;

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
