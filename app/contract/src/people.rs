//! Who acts, and with which rights.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What a person may do, in one scope. Each of member and lead contains the one before; manager reads every bill and job;
/// admin may do everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Role {
    /// Submits to the team, cancels own jobs, sees the team's jobs and bill.
    Member,
    /// Also cancels any job of the team.
    Lead,
    /// Reads every team's jobs and bills.
    Manager,
    /// Everything.
    Admin,
}

impl Role {
    /// As written everywhere.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Member => "member",
            Self::Lead => "lead",
            Self::Manager => "manager",
            Self::Admin => "admin",
        }
    }
}

/// A role in a team; manager and admin are roles over everything and have no team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Membership {
    /// The team, or `None` for a role over everything.
    pub team: Option<String>,
    /// The role.
    pub role: Role,
}

/// A person or service account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PersonView {
    /// Id: `fraud-ml.engineer`.
    pub id: String,
    /// Shown name.
    pub name: String,
    /// Roles.
    pub memberships: Vec<Membership>,
}

/// A person as their team's page shows them: with their role there, and nothing of what they are elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TeamPerson {
    /// Id: `fraud-ml.engineer`.
    pub id: String,
    /// Shown name.
    pub name: String,
    /// Role in this team.
    pub role: Role,
}

/// An API token as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TokenView {
    /// Id, to revoke it by.
    pub id: String,
    /// What it is for, in its owner's words.
    pub name: String,
    /// Its first characters, to find it by.
    pub prefix: String,
    /// Made.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created: Timestamp,
    /// Ends.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub expires: Timestamp,
    /// Last used.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub last_used: Option<Timestamp>,
}

/// A token just made: its secret is shown this once.
#[derive(Clone, Serialize, Deserialize)]
pub struct NewToken {
    /// What is kept.
    pub token: TokenView,
    /// The secret itself.
    pub secret: String,
}

impl std::fmt::Debug for NewToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewToken")
            .field("token", &self.token)
            .field("secret", &"***")
            .finish()
    }
}
