//! Holds: what somebody sets aside, with who, why and since when.
//!
//! A **hold** keeps new work from starting and stops nothing that runs. It lies on
//! - a job (Slurm: `scontrol hold`): one that runs goes on, and stays when it next waits,
//! - a team, or a cohort with all that is below it (Kueue: `stopPolicy: Hold` of a ClusterQueue or Cohort),
//! - a node, or a whole domain such as a rack or a block (Kubernetes: `kubectl cordon`; Slurm: a node's `DRAIN` flag).
//!
//! A **drain** is a hold from which those that run leave, too: each at its next durable save, after which it waits again
//! elsewhere and has lost nothing but its restart; what never saves runs to its end. (Slurm's `DRAIN` lets jobs end; Kueue's
//! `HoldAndDrain` and `kubectl drain` evict at once.) [`held_there`] names those that are still there.
//!
//! # Choices where the page is silent
//! - A hold lies over a node's health, as Slurm's flag over a node's state: a node that breaks under it and is repaired stays held.
//! - One hold for each thing. A second one is refused, so that nobody undoes a colleague's in silence; only a drain may follow
//!   a hold. What is held in several ways (its own, its team's, its cohort's) starts when the last hold is lifted.
//! - Held jobs keep their first submit time and stay in their order, without a place in the queue: they are not compared
//!   to anybody, get no planned start and make no claim. A claim in flight is given up when its claimant is held.
//! - A held team goes on lending what it does not use.

use crate::decide::invalid;
use crate::{
    Blocker, CohortId, Fact, Job, JobId, Millis, Name, Node, NodeId, PersonId, Phase, Refusal,
    State, StopCause, TeamId, Withdrawal,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// What a hold lies on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "on", rename_all = "snake_case")]
pub enum HoldScope {
    /// One job.
    Job {
        /// Which.
        job: JobId,
    },
    /// All jobs of a team.
    Team {
        /// Which.
        team: TeamId,
    },
    /// All jobs of all teams below a cohort.
    Cohort {
        /// Which.
        cohort: CohortId,
    },
    /// One machine.
    Node {
        /// Which.
        node: NodeId,
    },
    /// All machines of a domain: a rack, a block.
    Domain {
        /// The level's name.
        level: Name,
        /// The domain's.
        domain: Name,
    },
}

impl fmt::Display for HoldScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job { job } => write!(f, "job {job}"),
            Self::Team { team } => write!(f, "team {team}"),
            Self::Cohort { cohort } => write!(f, "cohort {cohort}"),
            Self::Node { node } => write!(f, "node {node}"),
            Self::Domain { level, domain } => write!(f, "{level} {domain}"),
        }
    }
}

/// What becomes of those that run.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum HoldMode {
    /// They go on.
    #[default]
    Hold,
    /// They leave at their next durable save, and wait again.
    Drain,
}

/// Something that was set aside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// What.
    pub scope: HoldScope,
    /// What becomes of those that run.
    pub mode: HoldMode,
    /// Who did it.
    pub by: PersonId,
    /// The announcement: in their words, told to everybody who waits for it.
    pub why: Option<String>,
    /// Since when.
    pub since: Millis,
}

impl State {
    /// The hold that lies on this very thing.
    pub fn hold_on(&self, scope: &HoldScope) -> Option<&Hold> {
        if let HoldScope::Job { job } = scope {
            return self.jobs.get(job)?.hold.as_ref();
        }
        let found = self.holds.binary_search_by(|hold| hold.scope.cmp(scope));
        found.ok().map(|index| &self.holds[index])
    }

    /// Holds of nodes and domains, in order.
    pub(crate) fn node_holds(&self) -> impl Iterator<Item = &Hold> {
        self.holds.iter().filter(|hold| match hold.scope {
            HoldScope::Node { .. } | HoldScope::Domain { .. } => true,
            HoldScope::Job { .. } | HoldScope::Team { .. } | HoldScope::Cohort { .. } => false,
        })
    }
}

/// The facts that a hold leads to.
pub(crate) fn set(
    state: &State,
    scope: &HoldScope,
    mode: HoldMode,
    by: &PersonId,
    why: Option<&String>,
) -> Result<Vec<Fact>, Refusal> {
    check_scope(state, scope)?;
    let told = why.is_some_and(|why| !why.trim().is_empty());
    if !told && !matches!(scope, HoldScope::Job { .. }) {
        return Err(invalid("why", "say why, for those who meet the hold later"));
    }
    if let Some(hold) = state.hold_on(scope)
        && mode <= hold.mode
    {
        return Err(Refusal::HeldAlready {
            what: scope.to_string(),
            by: hold.by.clone(),
        });
    }
    let set = Fact::HoldSet {
        scope: scope.clone(),
        mode,
        by: by.clone(),
        why: why.cloned(),
    };
    let claims = state.claims.values().filter(|claim| {
        let claimant = state.jobs.get(&claim.claimant);
        claimant.is_some_and(|job| is_job_of(state, job, scope))
    });
    let given_up = claims.map(|claim| Fact::ClaimWithdrawn {
        job: claim.claimant,
        claim: claim.id,
        why: Withdrawal::ClaimantSetAside,
        again: None,
    });
    Ok(std::iter::once(set).chain(given_up).collect())
}

/// The fact that the end of a hold is.
pub(crate) fn lift(
    state: &State,
    scope: &HoldScope,
    by: &PersonId,
    why: Option<&String>,
) -> Result<Vec<Fact>, Refusal> {
    check_scope(state, scope)?;
    if state.hold_on(scope).is_none() {
        return Err(Refusal::NotHeld {
            what: scope.to_string(),
        });
    }
    Ok(vec![Fact::HoldLifted {
        scope: scope.clone(),
        by: by.clone(),
        why: why.cloned(),
    }])
}

fn check_scope(state: &State, scope: &HoldScope) -> Result<(), Refusal> {
    match scope {
        HoldScope::Job { job } if !state.jobs.contains_key(job) => Err(Refusal::NoSuchJob(*job)),
        HoldScope::Team { team } if !state.teams.contains_key(team) => {
            Err(Refusal::NoSuchTeam(team.clone()))
        }
        HoldScope::Cohort { cohort } if !state.cohorts.contains_key(cohort) => {
            Err(invalid("cohort", format!("there is no cohort `{cohort}`")))
        }
        HoldScope::Node { node } if !state.nodes.contains_key(node) => {
            Err(Refusal::NoSuchNode(*node))
        }
        HoldScope::Domain { level, domain } => check_domain(state, level, domain),
        HoldScope::Job { .. }
        | HoldScope::Team { .. }
        | HoldScope::Cohort { .. }
        | HoldScope::Node { .. } => Ok(()),
    }
}

/// A domain that has nodes, at a level above the node.
pub(crate) fn check_domain(state: &State, level: &Name, domain: &Name) -> Result<(), Refusal> {
    let above = state.topology.levels.split_last();
    let (_, above) = above.unwrap_or((level, &[]));
    let Some(index) = above.iter().position(|other| other == level) else {
        let levels: Vec<_> = above.iter().map(Name::as_str).collect();
        let problem = format!(
            "there is no level `{level}` above the node; there are: {}",
            levels.join(", ")
        );
        return Err(invalid("level", problem));
    };
    let mut nodes = state.nodes.values();
    match nodes.any(|free| free.node.domains.get(index) == Some(domain)) {
        true => Ok(()),
        false => Err(invalid("domain", format!("there is no {level} `{domain}`"))),
    }
}

/// True when a hold on jobs is this job's: its own, its team's, or that of a cohort above.
fn is_job_of(state: &State, job: &Job, scope: &HoldScope) -> bool {
    match scope {
        HoldScope::Job { job: held } => *held == job.id,
        HoldScope::Team { team } => *team == job.spec.team,
        HoldScope::Cohort { cohort } => cohorts_above(state, &job.spec.team).contains(&cohort),
        HoldScope::Node { .. } | HoldScope::Domain { .. } => false,
    }
}

/// Cohorts above a team, from the nearest to the root.
fn cohorts_above<'a>(state: &'a State, team: &TeamId) -> Vec<&'a CohortId> {
    let first = state.teams.get(team).and_then(|team| team.cohort.as_ref());
    let above = std::iter::successors(first, |id| state.cohorts.get(*id)?.parent.as_ref());
    above.collect()
}

/// True when nothing new is placed on a node for a hold.
fn is_node_of(state: &State, node: &Node, scope: &HoldScope) -> bool {
    match scope {
        HoldScope::Node { node: held } => *held == node.id,
        HoldScope::Domain { level, domain } => {
            let levels = &state.topology.levels;
            let index = levels.iter().position(|other| other == level);
            index.is_some_and(|index| node.domains.get(index) == Some(domain))
        }
        HoldScope::Job { .. } | HoldScope::Team { .. } | HoldScope::Cohort { .. } => false,
    }
}

/// The hold that keeps new work from a node: its own, or that of a domain around it.
pub fn hold_over<'a>(state: &'a State, node: &Node) -> Option<&'a Hold> {
    let mut holds = state.node_holds();
    holds.find(|hold| is_node_of(state, node, &hold.scope))
}

/// Who still runs under a hold, in order of job number: gangs with a pod on such a node, jobs of such a team.
pub fn held_there(state: &State, scope: &HoldScope) -> Vec<JobId> {
    let jobs = state.jobs.values().filter(|job| {
        job.allocation.is_some() && (is_job_of(state, job, scope) || lies_on(state, job, scope))
    });
    jobs.map(|job| job.id).collect()
}

fn lies_on(state: &State, job: &Job, scope: &HoldScope) -> bool {
    let pods = job.allocation.iter();
    let mut nodes = pods.flat_map(|allocation| &allocation.placement.pods);
    nodes.any(|pod| {
        let free = state.nodes.get(&pod.node);
        free.is_some_and(|free| is_node_of(state, &free.node, scope))
    })
}

/// Why a job that has just saved leaves: the first drain that it is under, if there is one.
pub(crate) fn drained(state: &State, job: &Job) -> Option<StopCause> {
    let goes = matches!(job.phase, Phase::Running) && job.stop.is_none();
    let all = job.hold.iter().chain(&state.holds);
    let mut drains = all.filter(|hold| hold.mode == HoldMode::Drain && goes);
    let drain = drains
        .find(|hold| is_job_of(state, job, &hold.scope) || lies_on(state, job, &hold.scope))?;
    Some(StopCause::Drained {
        scope: drain.scope.clone(),
        by: drain.by.clone(),
    })
}

/// Takes in that a hold was set.
pub(crate) fn keep(state: &mut State, hold: Hold) {
    if let HoldScope::Job { job } = hold.scope {
        if let Some(job) = state.jobs.get_mut(&job) {
            job.hold = Some(hold);
        }
        return;
    }
    let place = state
        .holds
        .binary_search_by(|other| other.scope.cmp(&hold.scope));
    match place {
        Ok(index) => state.holds[index] = hold,
        Err(index) => state.holds.insert(index, hold),
    }
}

/// Takes in that it was lifted, or that what it lay on is gone.
pub(crate) fn forget(state: &mut State, scope: &HoldScope) {
    if let HoldScope::Job { job } = scope {
        if let Some(job) = state.jobs.get_mut(job) {
            job.hold = None;
        }
        return;
    }
    state.holds.retain(|hold| hold.scope != *scope);
}

/// Holds of teams, their own and those of the cohorts above them: found once for a cycle.
pub(crate) struct TeamHolds<'a>(BTreeMap<&'a TeamId, Vec<Arc<Hold>>>);

impl<'a> TeamHolds<'a> {
    pub(crate) fn of(state: &'a State) -> Self {
        let mut of_teams = BTreeMap::new();
        if state.holds.is_empty() {
            return Self(of_teams);
        }
        for team in state.teams.keys() {
            let own = HoldScope::Team { team: team.clone() };
            let above = cohorts_above(state, team).into_iter();
            let above = above.map(|cohort| HoldScope::Cohort {
                cohort: cohort.clone(),
            });
            let holds = std::iter::once(own).chain(above);
            let holds = holds.filter_map(|scope| state.hold_on(&scope));
            let holds: Vec<_> = holds.cloned().map(Arc::new).collect();
            if !holds.is_empty() {
                of_teams.insert(team, holds);
            }
        }
        Self(of_teams)
    }

    /// All holds that a job of this team is under, its own first.
    pub(crate) fn blockers(&self, own: Option<&Hold>, team: &TeamId) -> Vec<Blocker> {
        let of_team = self.0.get(team).into_iter().flatten().cloned();
        let own = own.into_iter().cloned().map(Arc::new);
        own.chain(of_team).map(Blocker::Held).collect()
    }
}

/// Nodes that take no new work for holds.
#[derive(Default)]
pub(crate) struct Closed<'a> {
    nodes: BTreeSet<NodeId>,
    /// By the level's index.
    domains: BTreeSet<(usize, &'a Name)>,
}

impl<'a> Closed<'a> {
    /// By some of the holds of a state.
    pub(crate) fn by(state: &'a State, holds: impl IntoIterator<Item = &'a Hold>) -> Self {
        let mut closed = Self::default();
        for hold in holds {
            match &hold.scope {
                HoldScope::Node { node } => drop(closed.nodes.insert(*node)),
                HoldScope::Domain { level, domain } => {
                    let mut levels = state.topology.levels.iter();
                    if let Some(index) = levels.position(|other| other == level) {
                        closed.domains.insert((index, domain));
                    }
                }
                HoldScope::Job { .. } | HoldScope::Team { .. } | HoldScope::Cohort { .. } => {}
            }
        }
        closed
    }

    pub(crate) fn has(&self, node: &Node) -> bool {
        let mut domains = self.domains.iter();
        self.nodes.contains(&node.id)
            || domains.any(|&(level, domain)| node.domains.get(level) == Some(domain))
    }
}

/// What must always be true of holds: each thing has one, in order, and it is there.
pub(crate) fn check(state: &State) -> Result<(), String> {
    if !state.holds.is_sorted_by(|a, b| a.scope < b.scope) {
        return Err("holds are not in order, or something has two".into());
    }
    let of_jobs = state.jobs.values();
    let of_jobs = of_jobs.filter_map(|job| Some((job.id, job.hold.as_ref()?)));
    for (job, hold) in of_jobs {
        if hold.scope != (HoldScope::Job { job }) {
            return Err(format!("the hold of job {job} lies on {}", hold.scope));
        }
    }
    for hold in &state.holds {
        let there = match &hold.scope {
            HoldScope::Job { .. } => false,
            HoldScope::Team { team } => state.teams.contains_key(team),
            HoldScope::Cohort { cohort } => state.cohorts.contains_key(cohort),
            // A node may be moved to another domain, and a domain be left without nodes.
            HoldScope::Node { .. } | HoldScope::Domain { .. } => true,
        };
        if !there {
            return Err(format!("a hold lies on {}, which is gone", hold.scope));
        }
    }
    Ok(())
}
