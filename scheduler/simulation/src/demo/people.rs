//! Who can sign in to the demo. Roles instead of names: nobody here exists.

use super::TEAMS;
use scheduler::{PersonId, TeamId};

/// What a demo person may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DemoRole {
    /// Works in a team.
    Member,
    /// Leads a team.
    Lead,
    /// Sees all bills.
    Manager,
    /// Runs the fleet.
    Admin,
}

/// One person of the demo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DemoPerson {
    /// Their id: `fraud-ml.engineer`.
    pub id: PersonId,
    /// What the portal calls them: `fraud-ml engineer`.
    pub name: String,
    /// Teams with their role there; empty for the manager and the admin.
    pub teams: Vec<(TeamId, DemoRole)>,
    /// Their role over everything, if they have one.
    pub everywhere: Option<DemoRole>,
}

/// An engineer, an analyst and a lead for each team; one manager, one admin.
pub fn demo_people() -> Vec<DemoPerson> {
    let in_teams = TEAMS.iter().flat_map(|team| {
        [
            ("engineer", DemoRole::Member),
            ("analyst", DemoRole::Member),
            ("lead", DemoRole::Lead),
        ]
        .map(|(word, role)| DemoPerson {
            id: person(team.id, word),
            name: format!("{} {word}", team.id),
            teams: vec![(team.id.into(), role)],
            everywhere: None,
        })
    });
    let over_all =
        [("manager", DemoRole::Manager), ("admin", DemoRole::Admin)].map(|(word, role)| {
            DemoPerson {
                id: word.into(),
                name: word.to_owned(),
                teams: Vec::new(),
                everywhere: Some(role),
            }
        });
    in_teams.chain(over_all).collect()
}

/// The id of a team's person: `fraud-ml.engineer`.
pub(super) fn person(team: &str, word: &str) -> PersonId {
    format!("{team}.{word}").into()
}
