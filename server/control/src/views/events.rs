//! Events in words.

use crate::engine::record::{cause_text, held_text, job_text, node_name, place_text};
use crate::period;
use crate::store::Entry;
use crate::words;
use contract::{EventView, gpu_count, plural};
use scheduler::{Claim, End, Fact, HoldMode, MilliGpuMs, State, StopCause, Withdrawal};

/// A job's event as doors show it.
pub(crate) fn view(entry: &Entry, state: &State) -> EventView {
    EventView {
        seq: entry.seq,
        at: period::instant(entry.event.at),
        event: words::kind_of(&entry.event.fact).to_owned(),
        text: text(&entry.event.fact, state),
    }
}

fn text(fact: &Fact, state: &State) -> String {
    match fact {
        Fact::JobSubmitted { owner, spec, .. } => {
            let least = spec.min_pods.filter(|least| *least < spec.pods);
            let least = least.map_or_else(String::new, |least| format!(", {least} at least"));
            format!(
                "Submitted by {owner}: {}{least}, {}",
                plural(spec.pods.into(), "pod", "pods"),
                gpu_count(spec.gpus())
            )
        }
        Fact::JobAdmitted {
            attempt: 1,
            placement,
            ..
        } => format!("Admitted on {}", place_text(placement, state)),
        Fact::JobAdmitted {
            attempt, placement, ..
        } => {
            format!(
                "Admitted again, attempt {attempt}, on {}",
                place_text(placement, state)
            )
        }
        Fact::GangBound { .. } => "All pods bound at once".to_owned(),
        Fact::GangStarted { .. } => "All pods up: running".to_owned(),
        Fact::CheckpointStarted { .. } => "A save began".to_owned(),
        Fact::StepsStopped { since, .. } => {
            format!("No step since {}", period::instant(*since))
        }
        Fact::StepsResumed { .. } => "Its steps go on".to_owned(),
        Fact::ActivityStopped { since, .. } => {
            format!("Does nothing since {}", period::instant(*since))
        }
        Fact::ActivityResumed { .. } => "Is in use again".to_owned(),
        Fact::IdleWarned { suspend_at, .. } => format!(
            "Warned: it is suspended at {}, unless it is used before",
            period::instant(*suspend_at)
        ),
        Fact::NotebookSuspended { by: None, .. } => {
            "Suspended by the idle rule: it holds no GPU until somebody resumes it".to_owned()
        }
        Fact::NotebookSuspended {
            by: Some(by), why, ..
        } => format!(
            "Suspended by {by}{}: it holds no GPU until somebody resumes it",
            said(why.as_ref())
        ),
        Fact::NotebookResumed { by, why, .. } => format!(
            "Resumed by {by}{}: waits with its first submit time",
            said(why.as_ref())
        ),
        Fact::PodSucceeded { rank, .. } => {
            format!("Pod {rank} has ended, well; the others go on")
        }
        Fact::Interrupted {
            what, area, lost, ..
        } => format!(
            "Interrupted by {what} ({}): {} GPU-hours of work since its last checkpoint are lost",
            words::area(*area),
            contract::gpu_hours(MilliGpuMs(u128::from(*lost)))
        ),
        Fact::PodsLost {
            node,
            keep_until: Some(until),
            ..
        } => format!(
            "Its pods on node {} are gone; it keeps its other nodes until {} while others are found",
            node_name(state, *node),
            period::instant(*until)
        ),
        Fact::PodsLost { node, .. } => {
            format!("Its pods on node {} are gone", node_name(state, *node))
        }
        Fact::GangStopped { until, .. } => format!(
            "All pods are gone; its nodes are kept until {} while others are found for those that it lost",
            period::instant(*until)
        ),
        Fact::GangReplaced {
            attempt,
            placement,
            moved,
            ..
        } => format!(
            "Starts again, attempt {attempt}, with {} elsewhere than before: {}",
            plural(moved.len() as u64, "pod", "pods"),
            place_text(placement, state)
        ),
        Fact::TimeLimitExtended { limit, by, why, .. } => format!(
            "May run for {} in all, says {by}{}",
            contract::person_span(*limit),
            said(why.as_ref())
        ),
        Fact::NodeSilent { node, since } => format!(
            "Node {} is silent since {}: nothing new starts there, what runs goes on",
            node_name(state, *node),
            period::instant(*since)
        ),
        Fact::NodeHeard { node } => format!("Node {} is heard again", node_name(state, *node)),
        Fact::CheckpointSaved {
            progress, bytes, ..
        } => format!(
            "A checkpoint is durable: {} of work, {}",
            contract::person_span(*progress),
            size(*bytes)
        ),
        Fact::StopRequested {
            cause, end: None, ..
        } => {
            format!("Stopping, to wait again: {}", cause_text(cause, state))
        }
        Fact::StopRequested { cause, .. } => format!("Stopping: {}", cause_text(cause, state)),
        Fact::JobRequeued {
            not_before: Some(until),
            ..
        } => {
            format!("Waits again; not tried before {}", period::instant(*until))
        }
        Fact::JobRequeued { .. } => {
            "Waits in its queue again, with its first submit time".to_owned()
        }
        Fact::JobEnded { end, cause, .. } => {
            let end = match end {
                End::Succeeded => "Succeeded",
                End::Failed => "Failed",
                End::Cancelled => "Cancelled",
                End::TimedOut => "Timed out",
            };
            match cause {
                None => end.to_owned(),
                Some(cause) => format!("{end}: {}", cause_text(cause, state)),
            }
        }
        Fact::NodeHealthSet { node, health, why } => {
            format!(
                "Node {} is {}: {why}",
                node_name(state, *node),
                words::health(*health)
            )
        }
        Fact::HoldSet {
            scope,
            mode,
            by,
            why,
        } => {
            let verb = match mode {
                HoldMode::Hold => "Held",
                HoldMode::Drain => "Drained",
            };
            format!(
                "{verb} by {by}{}: {}",
                said(why.as_ref()),
                held_text(scope, state)
            )
        }
        Fact::HoldLifted { scope, by, why } => {
            let why = said(why.as_ref());
            format!("Released by {by}{why}: {}", held_text(scope, state))
        }
        Fact::ClaimRequested { claim, .. } => claim_text("asks for", claim, state),
        Fact::ClaimMade { claim, .. } => claim_text("takes", claim, state),
        Fact::ClaimApproved { claim, by, .. } => match by {
            Some(by) => format!("Reclaim {claim} approved by {by}"),
            None => {
                format!("Reclaim {claim} approved by its deadline: the GPUs are the team's own")
            }
        },
        Fact::ClaimDeclined { claim, by, why, .. } => {
            let why = why.as_ref().map_or(String::new(), |why| format!(": {why}"));
            format!("Reclaim {claim} declined by {by}{why}")
        }
        Fact::ClaimDeferred {
            claim,
            by,
            deadline,
            ..
        } => format!(
            "Reclaim {claim} put off by {by} until {}",
            period::instant(*deadline)
        ),
        Fact::ClaimWithdrawn { claim, why, .. } => {
            format!("Reclaim {claim} withdrawn: {}", withdrawal_text(why, state))
        }
        Fact::SaveAsked {
            claim,
            until,
            keeps: Some(keeps),
            ..
        } => format!(
            "Asked to save by {}, and to go on with {} (reclaim {claim})",
            period::instant(*until),
            plural((*keeps).into(), "pod", "pods")
        ),
        Fact::ShrinkRequested {
            keeps,
            claim,
            claimant,
            ..
        } => format!(
            "Gives up its highest ranks to make room for {} (reclaim {claim}): {} stay",
            job_text(state, *claimant),
            plural((*keeps).into(), "pod", "pods")
        ),
        Fact::GangShrunk {
            keeps,
            cause: StopCause::NodeLost { node, .. },
            ..
        } => format!(
            "Goes on with {}, from its last checkpoint: those on {} are lost, and billed no longer",
            plural((*keeps).into(), "pod", "pods"),
            node_name(state, *node)
        ),
        Fact::GangShrunk { keeps, .. } => format!(
            "Goes on with {}: the others are gone, and billed no longer",
            plural((*keeps).into(), "pod", "pods")
        ),
        Fact::SaveAsked {
            job, claim, until, ..
        } => {
            let reclaim = state.jobs.get(job).and_then(|job| job.reclaim);
            let whom = reclaim.map_or(String::new(), |reclaim| {
                format!(" to make room for {}", job_text(state, reclaim.claimant))
            });
            format!(
                "Asked to save and go by {}{whom} (reclaim {claim})",
                period::instant(*until)
            )
        }
        Fact::PolicySet {
            by: Some(by), why, ..
        } => format!("Policies changed by {by}{}", said(why.as_ref())),
        Fact::LimitsSet { team, by, why, .. } => {
            format!("Limits of {team} changed by {by}{}", said(why.as_ref()))
        }
        Fact::TopologySet { .. }
        | Fact::FlavourSet { .. }
        | Fact::CohortSet { .. }
        | Fact::CohortRemoved { .. }
        | Fact::TeamSet { .. }
        | Fact::TeamRemoved { .. }
        | Fact::NodeSet { .. }
        | Fact::PolicySet { .. }
        | Fact::RateCardSet { .. }
        | Fact::HourPassed => words::kind_of(fact).replace('_', " "),
    }
}

/// Somebody's words, in brackets.
fn said(why: Option<&String>) -> String {
    why.map_or(String::new(), |why| format!(" ({why})"))
}

fn claim_text(verb: &str, claim: &Claim, state: &State) -> String {
    let jobs: Vec<String> = claim
        .victims
        .iter()
        .map(|victim| victim.job.to_string())
        .collect();
    format!(
        "Reclaim {} {verb} the {} of job{} {}, to start on {}",
        claim.id,
        gpu_count(claim.taken()),
        if jobs.len() == 1 { "" } else { "s" },
        jobs.join(", "),
        place_text(&claim.placement, state)
    )
}

/// Why a claim was given up, in words.
pub(crate) fn withdrawal_text(why: &Withdrawal, state: &State) -> String {
    match why {
        Withdrawal::ClaimantGone => "its job was cancelled".to_owned(),
        Withdrawal::ClaimantSetAside => "its job is held, or may not start for a limit".to_owned(),
        Withdrawal::TargetLost { node } => {
            format!("node {} takes no work any more", node_name(state, *node))
        }
        Withdrawal::QuotaGone => "the quota that it stood on was cut".to_owned(),
        Withdrawal::NothingToTake => "what it asked for does not help any more".to_owned(),
        Withdrawal::Deadline => "nobody approved it in time".to_owned(),
    }
}

/// Bytes for people, in decimal units.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 4] = [
        ("TB", 1_000_000_000_000),
        ("GB", 1_000_000_000),
        ("MB", 1_000_000),
        ("kB", 1_000),
    ];
    match UNITS.iter().find(|(_, unit)| bytes >= *unit) {
        Some((word, unit)) => format!("{}.{} {word}", bytes / unit, bytes % unit / (unit / 10)),
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_decimal() {
        assert_eq!(
            (size(980_000_000_000), size(30_625_000), size(12)),
            ("980.0 GB".into(), "30.6 MB".into(), "12 B".into())
        );
    }
}
