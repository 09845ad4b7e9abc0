//! The engine's enums as they are written in the store, in views and in the journal's columns.

use scheduler::{Entitlement, Fact, Health, Pool, Priority, UnitKind, UsageLine, UsagePhase};

/// The type of an entry, as in its JSON.
pub(crate) fn kind_of(fact: &Fact) -> &'static str {
    match fact {
        Fact::TopologySet { .. } => "topology_set",
        Fact::FlavourSet { .. } => "flavour_set",
        Fact::CohortSet { .. } => "cohort_set",
        Fact::CohortRemoved { .. } => "cohort_removed",
        Fact::TeamSet { .. } => "team_set",
        Fact::TeamRemoved { .. } => "team_removed",
        Fact::NodeSet { .. } => "node_set",
        Fact::NodeHealthSet { .. } => "node_health_set",
        Fact::PolicySet { .. } => "policy_set",
        Fact::RateCardSet { .. } => "rate_card_set",
        Fact::JobSubmitted { .. } => "job_submitted",
        Fact::JobAdmitted { .. } => "job_admitted",
        Fact::GangBound { .. } => "gang_bound",
        Fact::GangStarted { .. } => "gang_started",
        Fact::CheckpointStarted { .. } => "checkpoint_started",
        Fact::CheckpointSaved { .. } => "checkpoint_saved",
        Fact::StopRequested { .. } => "stop_requested",
        Fact::JobRequeued { .. } => "job_requeued",
        Fact::JobEnded { .. } => "job_ended",
        Fact::ClaimRequested { .. } => "claim_requested",
        Fact::ClaimApproved { .. } => "claim_approved",
        Fact::ClaimDeclined { .. } => "claim_declined",
        Fact::ClaimDeferred { .. } => "claim_deferred",
        Fact::ClaimMade { .. } => "claim_made",
        Fact::ClaimWithdrawn { .. } => "claim_withdrawn",
        Fact::SaveAsked { .. } => "save_asked",
        Fact::HourPassed => "hour_passed",
    }
}

/// A line's flavour; empty without GPUs.
pub(crate) fn flavour_of(line: &UsageLine) -> &str {
    line.flavour
        .as_ref()
        .map(|flavour| flavour.as_str())
        .unwrap_or_default()
}

/// `own` or `borrowed`.
pub(crate) fn entitlement(entitlement: Entitlement) -> &'static str {
    match entitlement {
        Entitlement::Own => "own",
        Entitlement::Borrowed => "borrowed",
    }
}

/// `card`, `slice`, `share`.
pub(crate) fn unit(unit: UnitKind) -> &'static str {
    match unit {
        UnitKind::Card => "card",
        UnitKind::Slice => "slice",
        UnitKind::Share => "share",
    }
}

/// `run`, `save`, `recover`, `failed_launch`.
pub(crate) fn phase(phase: UsagePhase) -> &'static str {
    match phase {
        UsagePhase::Run => "run",
        UsagePhase::Save => "save",
        UsagePhase::Recover => "recover",
        UsagePhase::FailedLaunch => "failed_launch",
    }
}

/// `ready`, `down`, ...
pub(crate) fn health(health: Health) -> &'static str {
    match health {
        Health::Ready => "ready",
        Health::Degraded => "degraded",
        Health::Cordoned => "cordoned",
        Health::Draining => "draining",
        Health::Down => "down",
        Health::Quarantined => "quarantined",
        Health::Spare => "spare",
    }
}

/// The health of that word.
pub(crate) fn parse_health(word: &str) -> Option<Health> {
    [
        Health::Ready,
        Health::Degraded,
        Health::Cordoned,
        Health::Draining,
        Health::Down,
        Health::Quarantined,
        Health::Spare,
    ]
    .into_iter()
    .find(|one| health(*one) == word)
}

/// `batch` or `notebook`.
pub(crate) fn pool(pool: Pool) -> &'static str {
    match pool {
        Pool::Batch => "batch",
        Pool::Notebook => "notebook",
    }
}

/// `low`, `normal`, `high`.
pub(crate) fn priority(priority: Priority) -> &'static str {
    match priority {
        Priority::Low => "low",
        Priority::Normal => "normal",
        Priority::High => "high",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scheduler::{Event, Millis};

    #[test]
    fn the_columns_kind_is_the_jsons_event() {
        let event = Event {
            at: Millis(1),
            fact: Fact::HourPassed,
        };
        let json = serde_json::to_value(&event).expect("an event has a JSON form");
        assert_eq!(json["event"], kind_of(&event.fact));
        let event = Event {
            at: Millis(1),
            fact: Fact::GangBound {
                job: scheduler::JobId(7),
                attempt: 1,
            },
        };
        let json = serde_json::to_value(&event).expect("an event has a JSON form");
        assert_eq!(json["event"], kind_of(&event.fact));
        assert_eq!(json["job"], event.fact.job().map(|job| job.0).unwrap_or(0));
    }
}
