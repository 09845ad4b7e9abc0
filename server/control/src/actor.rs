//! Who acts. Permission is a value: a dangerous method lives on a handle that only the permitted can get.

use crate::Control;
use contract::{Membership, Role};
use scheduler::{ClaimId, HoldScope, JobId, TeamId};

/// Somebody who is signed in, with their rights as they were looked up for this request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// Person's id.
    pub id: String,
    /// Shown name.
    pub name: String,
    /// Roles.
    pub memberships: Vec<Membership>,
}

impl Actor {
    /// True with a role over everything of this kind or above (admin stands above manager).
    pub fn has(&self, role: Role) -> bool {
        self.memberships
            .iter()
            .any(|membership| membership.team.is_none() && membership.role >= role)
    }
    /// The actor's role in a team, if any.
    pub fn role_in(&self, team: &str) -> Option<Role> {
        self.memberships
            .iter()
            .filter(|membership| membership.team.as_deref() == Some(team))
            .map(|membership| membership.role)
            .max()
    }
    /// Teams that the actor is in, by name.
    pub fn teams(&self) -> Vec<&str> {
        let mut teams: Vec<&str> = self
            .memberships
            .iter()
            .filter_map(|membership| membership.team.as_deref())
            .collect();
        teams.sort_unstable();
        teams.dedup();
        teams
    }
}

/// Anybody signed in: fleet, map, quotas; lists of what they may see.
#[derive(Clone)]
pub struct Everyone {
    pub(crate) control: Control,
    pub(crate) actor: Actor,
}
/// A member of a team (or an admin): submits to it, reads its bill.
#[derive(Clone)]
pub struct TeamMember {
    pub(crate) control: Control,
    pub(crate) actor: Actor,
    pub(crate) team: TeamId,
}
/// Somebody who may see a job.
#[derive(Clone)]
pub struct Visible {
    pub(crate) control: Control,
    pub(crate) actor: Actor,
    pub(crate) job: JobId,
}
/// Somebody who may end a job: its owner, a lead of its team, an admin.
#[derive(Clone)]
pub struct JobOwner {
    pub(crate) control: Control,
    pub(crate) actor: Actor,
    pub(crate) job: JobId,
}
/// Somebody who may set this one thing aside: an admin; a lead, their team; an owner, their job.
#[derive(Clone)]
pub struct Holder {
    pub(crate) control: Control,
    pub(crate) actor: Actor,
    pub(crate) scope: HoldScope,
}
/// Somebody who may see a reclaim: a member of the claimant's or a victim's team, a manager, an admin.
#[derive(Clone)]
pub struct SeesReclaim {
    pub(crate) control: Control,
    pub(crate) actor: Actor,
    pub(crate) claim: ClaimId,
}
/// Somebody who may say yes or no to a reclaim: the cohort's admin.
#[derive(Clone)]
pub struct ReclaimAdmin {
    pub(crate) control: Control,
    pub(crate) actor: Actor,
    pub(crate) claim: ClaimId,
}
/// Somebody who speaks for those who would lose by a reclaim: a lead of a victim's team, an admin.
#[derive(Clone)]
pub struct BorrowersLead {
    pub(crate) control: Control,
    pub(crate) actor: Actor,
    pub(crate) claim: ClaimId,
}
/// An admin.
#[derive(Clone)]
pub struct Admin {
    pub(crate) control: Control,
    pub(crate) actor: Actor,
}
