//! Views: what doors show, computed from the published state and the store. No door computes a figure of its own.

pub(crate) mod events;
pub(crate) mod fleet;
pub(crate) mod hold;
pub(crate) mod job;
pub(crate) mod map;
pub(crate) mod notebook;
pub(crate) mod quota;
pub(crate) mod reclaim;
pub(crate) mod setting;
pub(crate) mod steps;
