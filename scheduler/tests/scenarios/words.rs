//! The words of the scenario texts, read.

use scheduler::*;

pub(super) fn number(text: &str) -> u64 {
    text.parse()
        .unwrap_or_else(|_| panic!("`{text}` is no number"))
}

pub(super) fn millis(text: &str) -> Millis {
    let (n, unit) = text.split_at(text.len() - 1);
    match unit {
        "s" => Millis::seconds(number(n)),
        "m" => Millis::minutes(number(n)),
        "h" => Millis::hours(number(n)),
        _ => panic!("`{text}` is no span"),
    }
}

pub(super) fn field<'a>(fields: &[&'a str], key: &str) -> Option<&'a str> {
    fields
        .iter()
        .find_map(|field| field.strip_prefix(key)?.strip_prefix('='))
}

/// `running=4 waiting=9 running-gpus=16`, or the same of each person.
pub(super) fn limits(fields: &[&str], whose: &str) -> Limits {
    let get = |what: &str| field(fields, &format!("{whose}{what}")).map(number);
    Limits {
        running_jobs: get("running").map(|most| most as u32),
        waiting_jobs: get("waiting").map(|most| most as u32),
        running_gpus: get("gpus").map(MilliGpu::gpus),
    }
}

pub(super) fn quotas(fields: &[&str]) -> Vec<(&'static str, Quota)> {
    let limit = |text: Option<&str>| {
        text.filter(|text| *text != "-")
            .map(|text| MilliGpu::gpus(number(text)))
    };
    let of = |flavour: &'static str| {
        let mut parts = field(fields, flavour)?.split(':');
        let nominal = MilliGpu::gpus(number(parts.next()?));
        let (borrowing_limit, lending_limit) = (limit(parts.next()), limit(parts.next()));
        Some((
            flavour,
            Quota {
                nominal,
                borrowing_limit,
                lending_limit,
            },
        ))
    };
    ["h100", "a100"].into_iter().filter_map(of).collect()
}

pub(super) fn report_of(text: &str, progress: Millis, now: Millis) -> Report {
    let (what, value) = text.split_once('=').unwrap_or((text, "0"));
    match what {
        "bound" => Report::Bound,
        "started" => Report::Started,
        "save" if value != "0" => Report::CheckpointStarted {
            progress: millis(value),
        },
        "save" => Report::CheckpointStarted { progress },
        "no-step" => Report::NoStep { since: now },
        "step" => Report::Stepped,
        "idle" if value != "0" => Report::Idle {
            since: Millis(now.since(millis(value)).0),
        },
        "idle" => Report::Idle { since: now },
        "active" => Report::Active,
        "pod" => Report::PodSucceeded {
            rank: number(value) as u32,
        },
        "saved" => Report::CheckpointSaved {
            progress: millis(value),
            bytes: 1,
        },
        "succeeded" => Report::Succeeded,
        "failed" => Report::Failed {
            code: number(value) as i32,
        },
        "shrunk" => Report::Shrunk,
        "exited" => Report::Exited,
        _ => panic!("no such report: {text}"),
    }
}

pub(super) fn health_of(text: &str) -> Health {
    match text {
        "ready" => Health::Ready,
        "degraded" => Health::Degraded,
        "cordoned" => Health::Cordoned,
        "draining" => Health::Draining,
        "down" => Health::Down,
        "quarantined" => Health::Quarantined,
        "spare" => Health::Spare,
        _ => panic!("no such health: {text}"),
    }
}
