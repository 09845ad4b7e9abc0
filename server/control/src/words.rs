//! The engine's enums as they are written in the store, in views and in the journal's columns.

use scheduler::{
    Area, Entitlement, Fact, FreeNode, Health, Pool, Priority, UnitKind, UsageLine, UsagePhase,
};

/// The type of an entry, as in its JSON.
pub(crate) fn kind_of(fact: &Fact) -> &'static str {
    fact.into()
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

/// How a node is, its silence with it.
pub(crate) fn health_of(free: &FreeNode) -> &'static str {
    match (free.node.health, free.silent_since) {
        (Health::Ready, Some(_)) => "silent",
        (other, _) => health(other),
    }
}

/// Where a cause lay.
pub(crate) fn area(area: Area) -> &'static str {
    match area {
        Area::Gpu => "GPU",
        Area::Dependency => "software",
        Area::Network => "network",
        Area::Maintenance => "maintenance",
        Area::Host => "host",
        Area::Program => "its own program",
        Area::Unknown => "unknown",
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
