//! Changes of the inventory, the quota tree, the policy and the prices, checked before they become facts.

use crate::decide::invalid;
use crate::room::MAX_CARDS;
use crate::setting;
use crate::{
    Cohort, CohortId, Configure, Fact, FlavourId, Limits, MilliGpu, Millis, Node, Policy, Quota,
    RateCard, Refusal, State, Team, TeamId, Topology,
};
use std::collections::{BTreeMap, BTreeSet};

/// The most that one quota may be: far above any fleet, far below overflow.
const MAX_QUOTA: MilliGpu = MilliGpu::gpus(1_000_000_000);

/// The highest price: a million of the currency for one GPU-hour.
const MAX_MICROS: u64 = 1_000_000_000_000;

/// The most levels of a topology.
const MAX_LEVELS: usize = 8;

/// The greatest weight: a thousand times the usual one.
const MAX_WEIGHT: u64 = 1_000_000;

/// The fact that a change leads to.
pub(crate) fn configure(state: &State, change: &Configure) -> Result<Fact, Refusal> {
    match change {
        Configure::Topology(topology) => set_topology(state, topology),
        Configure::Flavour(flavour) => {
            named("id", flavour.id.as_str())?;
            Ok(Fact::FlavourSet {
                flavour: flavour.clone(),
            })
        }
        Configure::Cohort(cohort) => set_cohort(state, cohort),
        Configure::RemoveCohort(id) => {
            cohort_exists(state, Some(id))?;
            Ok(Fact::CohortRemoved { cohort: id.clone() })
        }
        Configure::Team(team) => set_team(state, team),
        Configure::RemoveTeam(id) => remove_team(state, id),
        Configure::Node(node) => set_node(state, node),
        Configure::Policy(policy) => set_policy(policy),
        Configure::RateCard(card) => publish(state, card),
    }
}

fn named(field: &str, name: &str) -> Result<(), Refusal> {
    if name.trim().is_empty() {
        Err(invalid(field, "must have a name"))
    } else {
        Ok(())
    }
}

fn set_topology(state: &State, topology: &Topology) -> Result<Fact, Refusal> {
    if !state.nodes.is_empty() {
        return Err(invalid("levels", "can only be set before the first node"));
    }
    if topology.levels.is_empty() || topology.levels.len() > MAX_LEVELS {
        return Err(invalid(
            "levels",
            format!("must be 1 to {MAX_LEVELS}, widest first, the node last"),
        ));
    }
    if topology.levels.iter().collect::<BTreeSet<_>>().len() < topology.levels.len() {
        return Err(invalid("levels", "must have different names"));
    }
    topology
        .levels
        .iter()
        .try_for_each(|level| named("levels", level.as_str()))?;
    Ok(Fact::TopologySet {
        topology: topology.clone(),
    })
}

fn cohort_exists(state: &State, id: Option<&CohortId>) -> Result<(), Refusal> {
    match id.filter(|id| !state.cohorts.contains_key(*id)) {
        Some(id) => Err(invalid("cohort", format!("there is no cohort `{id}`"))),
        None => Ok(()),
    }
}

fn set_cohort(state: &State, cohort: &Cohort) -> Result<Fact, Refusal> {
    named("id", cohort.id.as_str())?;
    check_weight(cohort.weight_milli)?;
    check_quotas(state, &cohort.quotas)?;
    cohort_exists(state, cohort.parent.as_ref())?;
    let mut above = cohort.parent.as_ref();
    while let Some(id) = above {
        if *id == cohort.id {
            let problem = format!("`{id}` would stand above itself: choose a parent outside of it");
            return Err(invalid("parent", problem));
        }
        above = state
            .cohorts
            .get(id)
            .and_then(|cohort| cohort.parent.as_ref());
    }
    Ok(Fact::CohortSet {
        cohort: cohort.clone(),
    })
}

fn check_weight(weight_milli: u64) -> Result<(), Refusal> {
    if weight_milli > MAX_WEIGHT {
        return Err(invalid(
            "weight",
            format!("must be at most {}", MAX_WEIGHT / 1_000),
        ));
    }
    Ok(())
}

fn check_quotas(state: &State, quotas: &BTreeMap<FlavourId, Quota>) -> Result<(), Refusal> {
    for (flavour, quota) in quotas {
        if !state.flavours.contains_key(flavour) {
            return Err(invalid(
                "quotas",
                format!("there is no flavour `{flavour}`"),
            ));
        }
        let amounts = [
            Some(quota.nominal),
            quota.borrowing_limit,
            quota.lending_limit,
        ];
        if amounts
            .into_iter()
            .flatten()
            .any(|amount| amount > MAX_QUOTA)
        {
            return Err(invalid(
                "quotas",
                format!("must be at most {MAX_QUOTA} GPUs of `{flavour}`"),
            ));
        }
    }
    Ok(())
}

fn check_limits(field: &str, limits: Limits) -> Result<(), Refusal> {
    if limits.running_gpus.is_some_and(|gpus| gpus > MAX_QUOTA) {
        return Err(invalid(field, format!("must be at most {MAX_QUOTA} GPUs")));
    }
    Ok(())
}

fn set_team(state: &State, team: &Team) -> Result<Fact, Refusal> {
    named("id", team.id.as_str())?;
    check_weight(team.weight_milli)?;
    cohort_exists(state, team.cohort.as_ref())?;
    check_quotas(state, &team.quotas)?;
    check_limits("limits", team.limits)?;
    check_limits("person_limits", team.person_limits)?;
    if team.default_time_limit == Some(Millis(0)) {
        return Err(invalid(
            "default_time_limit",
            "must be more than nothing; leave it out for no limit",
        ));
    }
    Ok(Fact::TeamSet { team: team.clone() })
}

fn remove_team(state: &State, id: &TeamId) -> Result<Fact, Refusal> {
    if !state.teams.contains_key(id) {
        return Err(Refusal::NoSuchTeam(id.clone()));
    }
    if state.jobs.values().any(|job| job.spec.team == *id) {
        return Err(Refusal::TeamInUse(id.clone()));
    }
    Ok(Fact::TeamRemoved { team: id.clone() })
}

fn set_node(state: &State, node: &Node) -> Result<Fact, Refusal> {
    named("name", node.name.as_str())?;
    if !state.jobs_on(node.id).is_empty() {
        return Err(Refusal::NodeInUse(node.id));
    }
    let namesake = |other: &Node| other.name == node.name && other.id != node.id;
    if state.nodes.values().any(|free| namesake(&free.node)) {
        return Err(invalid(
            "name",
            format!("`{}` is another node's name", node.name),
        ));
    }
    if node.cards > MAX_CARDS {
        return Err(invalid("cards", format!("must be at most {MAX_CARDS}")));
    }
    if let Some(flavour) = node
        .flavour
        .as_ref()
        .filter(|flavour| !state.flavours.contains_key(*flavour))
    {
        return Err(invalid(
            "flavour",
            format!("there is no flavour `{flavour}`"),
        ));
    }
    if node.flavour.is_none() && node.cards > 0 {
        return Err(invalid(
            "flavour",
            "must be named, since the node has cards",
        ));
    }
    let levels = state.topology.levels.len().saturating_sub(1);
    if node.domains.len() != levels {
        return Err(invalid(
            "domains",
            format!("must be {levels}: one for each level above the node"),
        ));
    }
    Ok(Fact::NodeSet { node: node.clone() })
}

fn set_policy(policy: &Policy) -> Result<Fact, Refusal> {
    setting::check(policy)?;
    Ok(Fact::PolicySet {
        policy: policy.clone(),
        by: None,
        why: None,
    })
}

fn publish(state: &State, card: &RateCard) -> Result<Fact, Refusal> {
    named("id", &card.id)?;
    named("currency", &card.currency)?;
    if card.from != card.from.hour_floor() {
        return Err(invalid(
            "from",
            "must be a whole hour, so that no usage line spans two cards",
        ));
    }
    if state.admissions > 0 && card.from < state.hour {
        return Err(invalid(
            "from",
            "must not be before the current hour: what was used has its price",
        ));
    }
    if state.rate_cards.iter().any(|other| other.id == card.id) {
        return Err(invalid(
            "id",
            format!(
                "`{}` is published already: give the new prices a new name",
                card.id
            ),
        ));
    }
    if let Some(other) = state
        .rate_cards
        .iter()
        .find(|other| other.currency != card.currency)
    {
        return Err(invalid(
            "currency",
            format!("must be {}, as on the cards before", other.currency),
        ));
    }
    for (flavour, &micros) in card.own_micros.iter().chain(&card.borrowed_micros) {
        if !state.flavours.contains_key(flavour) {
            return Err(invalid(
                "prices",
                format!("there is no flavour `{flavour}`"),
            ));
        }
        if micros > MAX_MICROS {
            return Err(invalid(
                "prices",
                format!("must be at most {MAX_MICROS} millionths for `{flavour}`"),
            ));
        }
    }
    Ok(Fact::RateCardSet { card: card.clone() })
}
