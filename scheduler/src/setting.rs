//! Policies as one table: each with its name, what it means, its range, and the field's own defaults beside it.
//!
//! Doors show this table and change one row at a time ([`Command::SetPolicy`](crate::Command::SetPolicy)). A row that a colleague
//! has changed since it was looked at is not changed: `change` counts the versions. What is said of other systems is their own
//! documentation's; where nothing is said, they have no such thing or none is known here.

use crate::change::{current, next_change, said};
use crate::decide::invalid;
use crate::{Fact, MilliGpu, Millis, PersonId, Policy, Refusal, State, UseOrder, WithinTeam};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A policy's value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    /// A span of time.
    Span(Millis),
    /// A number.
    Count(u64),
    /// Yes or no.
    Switch(bool),
    /// One of some words.
    Word(String),
    /// A limit on jobs; `None` = no limit.
    Jobs(Option<u64>),
    /// A limit on GPUs; `None` = no limit.
    Gpus(Option<MilliGpu>),
}

/// What a policy may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// A span between these, in whole ones of the last.
    Span(Millis, Millis, Millis),
    /// A number between these.
    Count(u64, u64),
    /// Yes or no.
    Switch,
    /// One of these words.
    Words(&'static [&'static str]),
    /// A limit on jobs up to this, or none.
    Jobs(u64),
    /// A limit on GPUs up to this, or none.
    Gpus(MilliGpu),
}

/// A row of the table.
pub struct PolicyRow {
    /// The field's name, as in [`Policy`].
    pub name: &'static str,
    /// What it means, in a sentence.
    pub meaning: &'static str,
    /// The same in other systems, with their defaults; may be empty.
    pub elsewhere: &'static str,
    /// What it may be.
    pub allowed: Allowed,
    get: fn(&Policy) -> Setting,
    set: fn(&mut Policy, Setting),
}

impl fmt::Debug for PolicyRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The longest of most spans.
const YEAR: Millis = Millis(366 * Millis::DAY.0);
/// The longest half-life of past use: it bounds the buckets that are kept.
const MAX_HALF_LIFE: Millis = Millis::hours(28 * 24);
/// The most planned starts of each kind: each one makes every cycle longer.
const MAX_RESERVATIONS: u64 = 1_000;
/// The most that any number may be.
const MAX_COUNT: u64 = u32::MAX as u64;
/// The highest limit on GPUs: far above any fleet, far below overflow.
pub(crate) const MAX_GPUS: MilliGpu = MilliGpu::gpus(1_000_000_000);

/// More than nothing.
const SPAN: Allowed = Allowed::Span(Millis(1), YEAR, Millis(1));
/// Nothing, too.
const SPAN_OR_NONE: Allowed = Allowed::Span(Millis(0), YEAR, Millis(1));

macro_rules! span {
    ($field:ident) => {
        (
            |policy: &Policy| Setting::Span(policy.$field),
            |policy: &mut Policy, to: Setting| {
                if let Setting::Span(span) = to {
                    policy.$field = span;
                }
            },
        )
    };
}
macro_rules! count {
    ($field:ident) => {
        (
            |policy: &Policy| Setting::Count(policy.$field.into()),
            |policy: &mut Policy, to: Setting| {
                if let Setting::Count(count) = to {
                    policy.$field = count.try_into().unwrap_or_default();
                }
            },
        )
    };
}
macro_rules! switch {
    ($field:ident) => {
        (
            |policy: &Policy| Setting::Switch(policy.$field),
            |policy: &mut Policy, to: Setting| {
                if let Setting::Switch(yes) = to {
                    policy.$field = yes;
                }
            },
        )
    };
}
macro_rules! jobs {
    ($field:ident) => {
        (
            |policy: &Policy| Setting::Jobs(policy.person_limits.$field.map(Into::into)),
            |policy: &mut Policy, to: Setting| {
                if let Setting::Jobs(limit) = to {
                    policy.person_limits.$field = limit.and_then(|limit| limit.try_into().ok());
                }
            },
        )
    };
}

type Access = (fn(&Policy) -> Setting, fn(&mut Policy, Setting));

const fn row(
    name: &'static str,
    meaning: &'static str,
    elsewhere: &'static str,
    allowed: Allowed,
    access: Access,
) -> PolicyRow {
    PolicyRow {
        name,
        meaning,
        elsewhere,
        allowed,
        get: access.0,
        set: access.1,
    }
}

const USE_ORDERS: [(UseOrder, &str); 2] = [
    (UseOrder::BreaksTies, "breaks_ties"),
    (UseOrder::Leads, "leads"),
];
const WITHIN_TEAM: [(WithinTeam, &str); 2] = [
    (WithinTeam::Never, "never"),
    (WithinTeam::LowerPriority, "lower_priority"),
];

fn word_of<T: PartialEq>(all: &[(T, &str)], value: &T) -> Setting {
    let found = all.iter().find(|(known, _)| known == value);
    Setting::Word(found.map_or("", |(_, word)| *word).to_owned())
}

fn of_word<T: Copy>(all: &[(T, &str)], to: &Setting) -> Option<T> {
    let Setting::Word(word) = to else { return None };
    let found = all.iter().find(|(_, known)| *known == word.as_str());
    found.map(|(value, _)| *value)
}

/// The table, in the order in which it is shown.
pub static POLICIES: [PolicyRow; 27] = [
    row(
        "grace",
        "A victim of a reclaim has at least so long to save before it is stopped.",
        "Kubernetes terminationGracePeriodSeconds: 30 s; Slurm GraceTime: 0",
        SPAN,
        span!(grace),
    ),
    row(
        "grace_cap",
        "And at most so long, however long its save takes.",
        "",
        SPAN,
        span!(grace_cap),
    ),
    row(
        "approval_deadline",
        "By when a person answers a reclaim; then an owner's is approved, any other one withdrawn.",
        "",
        SPAN,
        span!(approval_deadline),
    ),
    row(
        "claim_again_after",
        "A job whose reclaim was declined asks again after this.",
        "",
        SPAN,
        span!(claim_again_after),
    ),
    row(
        "minimum_run",
        "Whoever runs for less is taken last by an owner, and by nobody else.",
        "Slurm PreemptExemptTime: 0",
        SPAN_OR_NONE,
        span!(minimum_run),
    ),
    row(
        "preemption_budget",
        "Whoever was taken so often within a day is taken last by an owner, and by nobody else.",
        "",
        Allowed::Count(0, MAX_COUNT),
        count!(preemption_budget),
    ),
    row(
        "policy_age",
        "Work that a job without checkpoints is taken to lose, at most: silence is no shelter.",
        "",
        SPAN_OR_NONE,
        span!(policy_age),
    ),
    row(
        "owner_reclaim",
        "Owners take back what others borrow of them.",
        "Kueue reclaimWithinCohort: Never",
        Allowed::Switch,
        switch!(owner_reclaim),
    ),
    row(
        "fair_reclaim",
        "Borrowers take from borrowers whose share is larger.",
        "Kueue fair sharing: off",
        Allowed::Switch,
        switch!(fair_reclaim),
    ),
    row(
        "within_team",
        "Whether a team's jobs are taken for others of the same team.",
        "Kueue withinClusterQueue: Never",
        Allowed::Words(&["never", "lower_priority"]),
        (
            |policy| word_of(&WITHIN_TEAM, &policy.within_team),
            |policy, to| {
                if let Some(way) = of_word(&WITHIN_TEAM, &to) {
                    policy.within_team = way;
                }
            },
        ),
    ),
    row(
        "reservations",
        "How many of the first in order get a planned start, and how many of those that waited over reserve_after.",
        "Slurm's backfill: as many as it gets to in its time",
        Allowed::Count(0, MAX_RESERVATIONS),
        count!(reservations),
    ),
    row(
        "reserve_after",
        "A job that waited so long gets a planned start even if it is not among the first.",
        "",
        SPAN_OR_NONE,
        span!(reserve_after),
    ),
    row(
        "half_life",
        "Half-life of past use in fair shares.",
        "Slurm PriorityDecayHalfLife: 7 days",
        Allowed::Span(Millis::HOUR, MAX_HALF_LIFE, Millis::HOUR),
        span!(half_life),
    ),
    row(
        "use_order",
        "What past use decides in the order of teams: ties of the current share, or the order itself.",
        "Slurm's multifactor priority: it leads",
        Allowed::Words(&["breaks_ties", "leads"]),
        (
            |policy| word_of(&USE_ORDERS, &policy.use_order),
            |policy, to| {
                if let Some(order) = of_word(&USE_ORDERS, &to) {
                    policy.use_order = order;
                }
            },
        ),
    ),
    row(
        "launch_timeout",
        "A gang that is not up by then is released, and waits again.",
        "Kueue waitForPodsReady: 5 min",
        SPAN,
        span!(launch_timeout),
    ),
    row(
        "launch_back_off",
        "First wait after a launch that failed; it doubles with each, up to an hour.",
        "Kueue's requeuing back-off: 1 min",
        SPAN,
        span!(launch_back_off),
    ),
    row(
        "stall_after",
        "A running gang of which no step is heard for so long starts again elsewhere; its silent nodes are quarantined.",
        "Kubernetes evicts from an unreachable node after 5 min",
        SPAN,
        span!(stall_after),
    ),
    row(
        "recover_hold",
        "A gang that lost a node keeps its others for so long while another one is found for it; 0 = it does not.",
        "",
        SPAN_OR_NONE,
        span!(recover_hold),
    ),
    row(
        "count_lost_work",
        "Whether work that was lost with a node, or in a stall, counts against the time limit.",
        "Slurm's limit begins anew with each requeue",
        Allowed::Switch,
        switch!(count_lost_work),
    ),
    row(
        "lemon_people",
        "Jobs of so many different people fail on a node in a row, and it is cordoned; 0 = never.",
        "Slurm, Kueue: never",
        Allowed::Count(0, MAX_COUNT),
        count!(lemon_people),
    ),
    row(
        "lemon_window",
        "Failures that are further back do not count for that.",
        "",
        SPAN,
        span!(lemon_window),
    ),
    row(
        "notebook_idle",
        "A notebook that does nothing for so long is suspended: it gives its GPUs back until somebody resumes it.",
        "Kubeflow CULL_IDLE_TIME: 1 day, off; JupyterHub idle culler: 10 min",
        SPAN,
        span!(notebook_idle),
    ),
    row(
        "notebook_warning",
        "And its people are warned so long before.",
        "Kubeflow, JupyterHub: no warning",
        SPAN,
        span!(notebook_warning),
    ),
    row(
        "restart_budget",
        "Failures that a job survives when its spec says nothing.",
        "Kubernetes Job backoffLimit: 6",
        Allowed::Count(0, MAX_COUNT),
        count!(restart_budget),
    ),
    row(
        "person_limits.running_jobs",
        "Jobs of one person that may run at once, over all teams.",
        "Slurm MaxJobsPerUser: none",
        Allowed::Jobs(MAX_COUNT),
        jobs!(running_jobs),
    ),
    row(
        "person_limits.waiting_jobs",
        "Jobs of one person that may wait at once, over all teams.",
        "",
        Allowed::Jobs(MAX_COUNT),
        jobs!(waiting_jobs),
    ),
    row(
        "person_limits.running_gpus",
        "GPUs of one person's running jobs, over all teams.",
        "Slurm MaxTRESPerUser: none",
        Allowed::Gpus(MAX_GPUS),
        (
            |policy| Setting::Gpus(policy.person_limits.running_gpus),
            |policy, to| {
                if let Setting::Gpus(limit) = to {
                    policy.person_limits.running_gpus = limit;
                }
            },
        ),
    ),
];

impl PolicyRow {
    /// Its value in a policy.
    pub fn of(&self, policy: &Policy) -> Setting {
        (self.get)(policy)
    }

    /// What is wrong with a value, with the way out; `None` = nothing.
    pub fn problem(&self, value: &Setting) -> Option<String> {
        let limit = |most: String| Some(format!("must be at most {most}; or none, for no limit"));
        match (self.allowed, value) {
            (Allowed::Span(least, most, whole), Setting::Span(span)) => {
                let fits = (least..=most).contains(span) && span.0.is_multiple_of(whole.0);
                (!fits).then(|| span_range(least, most, whole))
            }
            (Allowed::Count(least, most), Setting::Count(count)) => {
                (!(least..=most).contains(count)).then(|| format!("must be from {least} to {most}"))
            }
            (Allowed::Switch, Setting::Switch(_)) => None,
            (Allowed::Words(words), Setting::Word(word)) => (!words.contains(&word.as_str()))
                .then(|| format!("must be one of {}", words.join(", "))),
            (Allowed::Jobs(most), Setting::Jobs(jobs)) => (*jobs)
                .filter(|jobs| *jobs > most)
                .and_then(|_| limit(most.to_string())),
            (Allowed::Gpus(most), Setting::Gpus(gpus)) => (*gpus)
                .filter(|gpus| *gpus > most)
                .and_then(|_| limit(format!("{most} GPUs"))),
            _ => Some(format!("is another kind of value: {:?}", self.allowed)),
        }
    }
}

fn span_range(least: Millis, most: Millis, whole: Millis) -> String {
    let days = most.0 / Millis::DAY.0;
    match (least, whole) {
        (Millis(0), _) => format!("must be at most {days} days"),
        (_, Millis::HOUR) => format!("must be whole hours: at least one, at most {days} days"),
        _ => format!("must be more than nothing and at most {days} days"),
    }
}

/// The row of that name.
pub fn policy_row(name: &str) -> Option<&'static PolicyRow> {
    POLICIES.iter().find(|row| row.name == name)
}

/// Refuses a policy with a value that none of its rows allows.
pub(crate) fn check(policy: &Policy) -> Result<(), Refusal> {
    POLICIES
        .iter()
        .try_for_each(|row| match row.problem(&row.of(policy)) {
            None => Ok(()),
            Some(problem) => Err(invalid(row.name, problem)),
        })
}

/// The fact that a changed policy is, if nobody has changed it since that version of it was seen.
pub(crate) fn change(
    state: &State,
    name: &str,
    to: &Setting,
    seen: u64,
    by: &PersonId,
    why: Option<&String>,
) -> Result<Vec<Fact>, Refusal> {
    let row = policy_row(name).ok_or_else(|| {
        let all: Vec<_> = POLICIES.iter().map(|row| row.name).collect();
        invalid(
            "name",
            format!("there is no policy `{name}`; there are: {}", all.join(", ")),
        )
    })?;
    said(why)?;
    current(name, state.policy_changes.get(name), seen)?;
    if let Some(problem) = row.problem(to) {
        return Err(invalid("value", problem));
    }
    let mut policy = state.policy.clone();
    (row.set)(&mut policy, to.clone());
    if policy == state.policy {
        return Ok(Vec::new());
    }
    Ok(vec![Fact::PolicySet {
        policy,
        by: Some(by.clone()),
        why: why.cloned(),
    }])
}

/// Takes in a changed policy: each row that somebody made another one has a new version. What the fleet was set up with is
/// nobody's change.
pub(crate) fn keep(
    state: &mut State,
    policy: &Policy,
    at: Millis,
    by: Option<&PersonId>,
    why: Option<&String>,
) {
    for (row, by) in POLICIES.iter().filter_map(|row| Some((row, by?))) {
        let was = row.of(&state.policy);
        if was != row.of(policy) {
            let last = state.policy_changes.get(row.name);
            let change = next_change(last, was, at, by, why);
            state.policy_changes.insert(row.name.to_owned(), change);
        }
    }
    state.policy = policy.clone();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of all fields, those of a group with a dot between.
    fn fields(value: &serde_json::Value) -> Vec<String> {
        let object = value.as_object().expect("an object");
        let names = object.iter().flat_map(|(name, value)| match value {
            serde_json::Value::Object(_) => {
                let inner = fields(value).into_iter();
                inner.map(|inner| format!("{name}.{inner}")).collect()
            }
            _ => vec![name.clone()],
        });
        names.collect()
    }

    #[test]
    fn every_policy_has_a_row_and_every_row_a_policy() {
        let policy = serde_json::to_value(Policy::default()).expect("JSON");
        let mut fields = fields(&policy);
        let mut rows: Vec<_> = POLICIES.iter().map(|row| row.name.to_owned()).collect();
        fields.sort_unstable();
        rows.sort_unstable();
        assert_eq!(
            fields, rows,
            "a policy that an admin cannot see and change, or a row without one: add it to POLICIES"
        );
    }

    #[test]
    fn each_row_reads_and_writes_its_own_field() {
        for row in &POLICIES {
            let mut policy = Policy::default();
            let usual = row.of(&policy);
            assert_eq!(
                row.problem(&usual),
                None,
                "{}: its default is allowed",
                row.name
            );
            let other = match usual.clone() {
                Setting::Span(span) => Setting::Span(span + Millis::HOUR),
                Setting::Count(count) => Setting::Count(count + 1),
                Setting::Switch(yes) => Setting::Switch(!yes),
                Setting::Word(word) => {
                    let Allowed::Words(words) = row.allowed else {
                        panic!("{}: words without a list", row.name)
                    };
                    let other = words.iter().find(|other| **other != word);
                    Setting::Word((*other.expect("two words")).to_owned())
                }
                Setting::Jobs(_) => Setting::Jobs(Some(3)),
                Setting::Gpus(_) => Setting::Gpus(Some(MilliGpu::gpus(3))),
            };
            (row.set)(&mut policy, other.clone());
            assert_eq!(row.of(&policy), other, "{}", row.name);
            let others = POLICIES.iter().filter(|one| one.name != row.name);
            for one in others {
                assert_eq!(one.of(&policy), one.of(&Policy::default()), "{}", one.name);
            }
            assert!(!row.meaning.is_empty(), "{}", row.name);
        }
    }
}
