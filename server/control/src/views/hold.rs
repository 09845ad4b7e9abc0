//! Holds: what is set aside, and whom that keeps waiting.

use crate::engine::Live;
use crate::engine::record::node_name;
use crate::period;
use contract::{Gpus, HoldKind, HoldView};
use scheduler::{Blocker, Hold, HoldMode, HoldScope, JobId, State, held_there};

/// What a hold lies on, in the two words that every door takes.
pub(crate) fn words_of(scope: &HoldScope, state: &State) -> (String, String) {
    match scope {
        HoldScope::Job { job } => ("job".to_owned(), job.to_string()),
        HoldScope::Team { team } => ("team".to_owned(), team.to_string()),
        HoldScope::Cohort { cohort } => ("cohort".to_owned(), cohort.to_string()),
        HoldScope::Node { node } => ("node".to_owned(), node_name(state, *node)),
        HoldScope::Domain { level, domain } => (level.to_string(), domain.to_string()),
    }
}

/// The engine's word for what a caller named; the error is about the field `on` or `what`.
pub(crate) fn scope_of(
    on: &str,
    what: &str,
    state: &State,
) -> Result<HoldScope, contract::FieldError> {
    let wrong = |field: &str, message: String| Err(contract::FieldError::new(field, message));
    let none = || wrong("what", format!("there is no {on} `{what}`"));
    let levels = state.topology.levels.split_last();
    let (node_level, above) = match levels {
        Some((node, above)) => (node.as_str(), above),
        None => ("node", &[][..]),
    };
    match on {
        "job" => match what.parse() {
            Ok(job) => Ok(HoldScope::Job { job: JobId(job) }),
            Err(_) => wrong("what", "write the job's number".to_owned()),
        },
        "team" if state.teams.contains_key(&what.into()) => {
            Ok(HoldScope::Team { team: what.into() })
        }
        "cohort" if state.cohorts.contains_key(&what.into()) => Ok(HoldScope::Cohort {
            cohort: what.into(),
        }),
        on if on == node_level => {
            let mut nodes = state.nodes.values();
            let found = nodes.find(|free| free.node.name.as_str() == what);
            found.map_or_else(none, |free| Ok(HoldScope::Node { node: free.node.id }))
        }
        on if above.iter().any(|level| level.as_str() == on) => {
            let index = above.iter().position(|level| level.as_str() == on);
            let mut nodes = state.nodes.values();
            let there = nodes.any(|free| {
                let domain = index.and_then(|index| free.node.domains.get(index));
                domain.is_some_and(|domain| domain.as_str() == what)
            });
            match there {
                true => Ok(HoldScope::Domain {
                    level: on.into(),
                    domain: what.into(),
                }),
                false => none(),
            }
        }
        "team" | "cohort" => none(),
        _ => {
            let mut kinds = kinds(state);
            kinds.insert(0, "job".to_owned());
            let said = format!("`{on}` cannot be held; write one of {}", kinds.join(", "));
            wrong("on", said)
        }
    }
}

/// Kinds of things that can be held besides single jobs: teams, cohorts, and the fabric's levels from the narrowest.
pub(crate) fn kinds(state: &State) -> Vec<String> {
    let levels = state.topology.levels.iter().rev().map(ToString::to_string);
    let tree = ["team", "cohort"].map(str::to_owned);
    levels.chain(tree).collect()
}

/// Names of all such things but the nodes, which are too many to choose from.
pub(crate) fn names(state: &State) -> Vec<String> {
    let domains = state.nodes.values().flat_map(|free| &free.node.domains);
    let mut domains: Vec<String> = domains.map(ToString::to_string).collect();
    domains.sort_unstable();
    domains.dedup();
    let teams = state.teams.keys().map(ToString::to_string);
    let cohorts = state.cohorts.keys().map(ToString::to_string);
    domains.into_iter().chain(teams).chain(cohorts).collect()
}

/// True when a blocker speaks of this hold.
fn speaks_of(blocker: &Blocker, scope: &HoldScope) -> bool {
    match blocker {
        Blocker::Held(hold) => hold.scope == *scope,
        Blocker::Room { held, .. } => held.iter().any(|hold| hold.scope == *scope),
        _ => false,
    }
}

/// One hold as the reader sees it; `refused` says why they may not release it.
pub(crate) fn view(
    hold: &Hold,
    live: &Live,
    sees: impl Fn(JobId) -> bool,
    refused: Option<String>,
) -> HoldView {
    let state = &live.state;
    let (on, what) = words_of(&hold.scope, state);
    let running = held_there(state, &hold.scope);
    let gpus = running.iter().filter_map(|id| state.jobs.get(id));
    let gpus = gpus.filter_map(|job| job.allocation.as_ref());
    let waiting = live.waiting.values().filter(|waiting| {
        let mut all = waiting.reason.all.iter();
        all.any(|blocker| speaks_of(blocker, &hold.scope))
    });
    HoldView {
        on,
        what,
        mode: kind_of(hold.mode),
        by: hold.by.to_string(),
        why: hold.why.clone(),
        since: period::instant(hold.since),
        running_jobs: running.len() as u64,
        running_gpus: Gpus(gpus.map(|allocation| allocation.gpus).sum()),
        waiting_jobs: waiting.count() as u64,
        running: running
            .into_iter()
            .filter(|job| sees(*job))
            .map(|job| job.0)
            .collect(),
        may_release: refused.is_none(),
        release_refused: refused,
    }
}

fn kind_of(mode: HoldMode) -> HoldKind {
    match mode {
        HoldMode::Hold => HoldKind::Hold,
        HoldMode::Drain => HoldKind::Drain,
    }
}

/// The engine's word for what becomes of those that run.
pub(crate) fn mode_of(kind: HoldKind) -> HoldMode {
    match kind {
        HoldKind::Hold => HoldMode::Hold,
        HoldKind::Drain => HoldMode::Drain,
    }
}

/// `held by admin`, `rack b03-r1 drained by admin` on a node's row; `None` when nothing lies on it.
pub(crate) fn on_node(state: &State, node: &scheduler::Node) -> Option<String> {
    let hold = scheduler::hold_over(state, node)?;
    let what = match &hold.scope {
        HoldScope::Domain { level, domain } => format!("{level} {domain} "),
        _ => String::new(),
    };
    Some(format!(
        "{what}{} by {}",
        kind_of(hold.mode).done(),
        hold.by
    ))
}
