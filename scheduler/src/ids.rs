//! Ids. Numbers where we give them out, names where people do.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// A name as people gave it. Cheap to clone; ordered as text, so that no order depends on who came first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Name(Arc<str>);

impl Name {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}
impl From<String> for Name {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

macro_rules! named {
    ($($(#[$doc:meta])* $id:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $id(pub Name);
        impl $id {
            /// The text.
            pub fn as_str(&self) -> &str { self.0.as_str() }
        }
        impl From<&str> for $id { fn from(text: &str) -> Self { Self(text.into()) } }
        impl From<String> for $id { fn from(text: String) -> Self { Self(text.into()) } }
        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { fmt::Display::fmt(&self.0, f) }
        }
    )*};
}
named!(
    /// A team, by its name: `fraud-ml`.
    TeamId,
    /// A cohort of teams, by its name.
    CohortId,
    /// A kind of GPU, by its name: `h100-80g`.
    FlavourId,
    /// A person or service account.
    PersonId,
);

/// A job's number: given in order of submission, from 1.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct JobId(pub u64);

/// A node's number, from 0 in the order of the inventory.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct NodeId(pub u32);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
