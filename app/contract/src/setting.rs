//! Policies and limits as every door shows and takes them.

use crate::{Gpus, Span, person_span};
use jiff::Timestamp;
use scheduler::{Allowed, Limits, PolicyRow, Setting};
use serde::{Deserialize, Serialize};

/// The last change of something that several people may change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChangeView {
    /// Who.
    pub by: String,
    /// When.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Timestamp,
    /// In their words.
    pub why: Option<String>,
    /// From what to what: `5m to 8m`.
    pub what: String,
}

/// A policy: one of the numbers that an admin may change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PolicyView {
    /// Its name.
    pub name: String,
    /// What it means, in a sentence.
    pub meaning: String,
    /// What it is now: `5m`, `8`, `yes`, `no limit`.
    pub value: String,
    /// What it is when nobody has changed it.
    pub default: String,
    /// True when it is not its default.
    pub changed: bool,
    /// Its unit, or what kind of value it is: `time`, `number`, `yes or no`, `jobs`, `GPUs`.
    pub unit: String,
    /// What it may be.
    pub allowed: String,
    /// Values to choose from, where there are few.
    pub choices: Vec<String>,
    /// The same in other systems, with their defaults; empty when there is no such thing.
    pub elsewhere: String,
    /// How often it was changed: to be given back with the next change, so that nobody undoes a colleague's unseen.
    pub version: u64,
    /// The last change.
    pub last: Option<ChangeView>,
}

/// Changing a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SetPolicy {
    /// Its new value, as it is shown: `8m`, `4`, `no`, `none`.
    pub value: String,
    /// The version that was looked at. When a colleague has changed it since, 409.
    pub version: u64,
    /// In the caller's words.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 500))]
    pub why: String,
}

/// How much may run and wait at once; what is left out or null has no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LimitSet {
    /// Jobs that run.
    pub running_jobs: Option<u32>,
    /// Jobs that wait.
    pub waiting_jobs: Option<u32>,
    /// GPUs of the jobs that run.
    pub running_gpus: Option<Gpus>,
}

/// How much does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LoadView {
    /// Jobs that run.
    pub running_jobs: u32,
    /// Jobs that wait.
    pub waiting_jobs: u32,
    /// GPUs of the jobs that run.
    pub running_gpus: Gpus,
}

/// One person's jobs in a team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PersonLoad {
    /// Who.
    pub person: String,
    /// How much.
    pub load: LoadView,
}

/// A team's limits, and how far they are used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TeamLimitsView {
    /// The team.
    pub team: String,
    /// Of all its jobs.
    pub limits: LimitSet,
    /// Of each person's jobs in it.
    pub member: LimitSet,
    /// What it has.
    pub load: LoadView,
    /// What its people have, the most first.
    pub people: Vec<PersonLoad>,
    /// How often the limits were changed: to be given back with the next change.
    pub version: u64,
    /// The last change.
    pub last: Option<ChangeView>,
}

/// Limits of the teams that the reader may see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LimitList {
    /// When this was made.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub now: Timestamp,
    /// By name.
    pub teams: Vec<TeamLimitsView>,
    /// Of each person's jobs over all teams: a policy.
    pub person: LimitSet,
    /// True when the reader may change them.
    pub may_set: bool,
}

/// Changing a team's limits: all of them at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SetLimits {
    /// Of all the team's jobs.
    pub limits: LimitSet,
    /// Of each person's jobs in it.
    pub member: LimitSet,
    /// The version that was looked at. When a colleague has changed them since, 409.
    pub version: u64,
    /// In the caller's words.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 500))]
    pub why: String,
}

impl From<Limits> for LimitSet {
    fn from(limits: Limits) -> Self {
        Self {
            running_jobs: limits.running_jobs,
            waiting_jobs: limits.waiting_jobs,
            running_gpus: limits.running_gpus.map(Gpus),
        }
    }
}
impl From<LimitSet> for Limits {
    fn from(limits: LimitSet) -> Self {
        Self {
            running_jobs: limits.running_jobs,
            waiting_jobs: limits.waiting_jobs,
            running_gpus: limits.running_gpus.map(|gpus| gpus.0),
        }
    }
}

/// What people write and read where there is no limit.
pub const NO_LIMIT: &str = "no limit";

/// True when somebody wrote that there is no limit.
pub fn is_no_limit(text: &str) -> bool {
    matches!(text.trim(), "" | "none" | NO_LIMIT)
}

/// A limit as people write it: a number, or none.
pub fn parse_limit<T: std::str::FromStr>(text: &str) -> Result<Option<T>, String> {
    if is_no_limit(text) {
        return Ok(None);
    }
    let wrong = || format!("`{text}` is no limit: write a whole number, or none for no limit");
    text.trim().parse().map(Some).map_err(|_| wrong())
}

/// A limit as people read it; none is not 0.
pub fn limit_text(limit: Option<impl ToString>) -> String {
    limit.map_or_else(|| NO_LIMIT.to_owned(), |limit| limit.to_string())
}

/// A policy's value as it is shown, and written.
pub fn setting_text(setting: &Setting) -> String {
    match setting {
        Setting::Span(span) => Span(*span).to_string(),
        Setting::Count(count) => count.to_string(),
        Setting::Switch(true) => "yes".to_owned(),
        Setting::Switch(false) => "no".to_owned(),
        Setting::Word(word) => word.clone(),
        Setting::Jobs(limit) => limit_text(*limit),
        Setting::Gpus(limit) => limit_text(*limit),
    }
}

/// A policy's value out of what was written.
pub fn parse_setting(row: &PolicyRow, text: &str) -> Result<Setting, String> {
    let text = text.trim();
    match row.allowed {
        Allowed::Span(..) => Ok(Setting::Span(text.parse::<Span>()?.0)),
        Allowed::Count(..) => match text.parse() {
            Ok(count) => Ok(Setting::Count(count)),
            Err(_) => Err(format!("`{text}` is no whole number")),
        },
        Allowed::Switch => match text {
            "yes" => Ok(Setting::Switch(true)),
            "no" => Ok(Setting::Switch(false)),
            _ => Err("write yes or no".to_owned()),
        },
        Allowed::Words(_) => Ok(Setting::Word(text.to_owned())),
        Allowed::Jobs(_) => parse_limit(text).map(Setting::Jobs),
        Allowed::Gpus(_) => {
            let gpus: Option<Gpus> = parse_limit(text)?;
            Ok(Setting::Gpus(gpus.map(|gpus| gpus.0)))
        }
    }
}

/// What a policy may be, in words; its unit; and what to choose from, where that is little.
pub fn allowed_text(allowed: Allowed) -> (String, &'static str, Vec<String>) {
    match allowed {
        Allowed::Span(least, most, whole) => {
            let most = person_span(most);
            let said = match (least.0, whole.0) {
                (0, _) => format!("0 to {most}"),
                (_, 1) => format!("more than 0, to {most}"),
                _ => format!("whole hours, {} to {most}", person_span(least)),
            };
            (said, "time", Vec::new())
        }
        Allowed::Count(least, most) if most == u64::from(u32::MAX) => {
            (format!("{least} or more"), "number", Vec::new())
        }
        Allowed::Count(least, most) => (format!("{least} to {most}"), "number", Vec::new()),
        Allowed::Switch => (
            "yes, no".to_owned(),
            "yes or no",
            ["yes", "no"].map(str::to_owned).to_vec(),
        ),
        Allowed::Words(words) => {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            (words.join(", "), "word", words)
        }
        Allowed::Jobs(_) => ("a number, or none".to_owned(), "jobs", Vec::new()),
        Allowed::Gpus(_) => ("a number, or none".to_owned(), "GPUs", Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scheduler::{POLICIES, Policy};

    #[test]
    fn what_is_shown_of_each_policy_can_be_written_back() {
        for row in &POLICIES {
            let value = row.of(&Policy::default());
            let text = setting_text(&value);
            assert_eq!(parse_setting(row, &text), Ok(value), "{}: {text}", row.name);
            assert!(!allowed_text(row.allowed).0.is_empty(), "{}", row.name);
        }
    }

    #[test]
    fn no_limit_is_not_nought() {
        assert_eq!(limit_text(None::<u32>), "no limit");
        assert_eq!(limit_text(Some(0)), "0");
        assert_eq!(parse_limit::<u32>("none"), Ok(None));
        assert_eq!(parse_limit::<u32>(" 0 "), Ok(Some(0)));
        assert!(parse_limit::<u32>("many").is_err());
    }
}
