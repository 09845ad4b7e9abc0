//! Reasons in words: one function for list, page, REST and CLI.

use crate::ReasonView;
use crate::text::{count, gpu_count, gpus, plural};
use jiff::Timestamp;
use scheduler::{
    Blocker, ClaimId, End, Hold, HoldScope, JobId, LimitOf, Limited, MilliGpu, Millis, Reason,
    Scope, Stage, Waiting, Wants,
};

/// A moment as people read it: `2026-11-30 13:05 UTC`.
fn moment(at: Millis) -> String {
    let stamp = i64::try_from(at.0).ok();
    let stamp = stamp.and_then(|ms| Timestamp::from_millisecond(ms).ok());
    stamp.map_or_else(String::new, |stamp| {
        stamp.strftime("%Y-%m-%d %H:%M UTC").to_string()
    })
}

/// One blocker in one sentence: asked against free.
pub fn sentence(blocker: &Blocker) -> String {
    match blocker {
        Blocker::Held(hold) => held(hold),
        Blocker::Suspended { since, by } => {
            let by = match by {
                Some(by) => by.to_string(),
                None => "the idle rule".to_owned(),
            };
            format!(
                "suspended by {by} since {}: it holds no GPU",
                moment(*since)
            )
        }
        Blocker::Misconfigured { field, names } => {
            format!("needs attention: {field} names `{names}`, which is not there")
        }
        Blocker::NoMatchingFlavour { team } => {
            format!("can never run: {team} has no quota in any flavour it asks for")
        }
        Blocker::Dependency { on, wants, ended } => depends(*on, *wants, *ended),
        Blocker::ExceedsMaximum { asks, limit, of } => exceeds(*asks, *limit, of),
        Blocker::Limit { of, on } => limit(of, *on),
        Blocker::BackOff { .. } => "its launch failed; waits before the next try".to_owned(),
        Blocker::Quota {
            flavour,
            asks,
            available,
            short_by,
            at,
            holders,
        } => {
            let whose = match at {
                None => "of what its team may be charged".to_owned(),
                Some(cohort) => format!("of what cohort {cohort} can lend"),
            };
            let holders: Vec<_> = holders
                .iter()
                .map(|(team, held)| format!("{team} borrows {}", gpus(*held)))
                .collect();
            let who = if holders.is_empty() {
                String::new()
            } else {
                format!("; {}", holders.join(", "))
            };
            format!(
                "short by {} {flavour} {whose}: asks {}, {} left{who}",
                gpus(*short_by),
                gpus(*asks),
                gpus(*available)
            )
        }
        Blocker::Claim {
            claim,
            stage,
            leaving,
            until,
        } => in_flight(*claim, *stage, leaving.len(), *until),
        Blocker::BehindReservation { job, planned } => match planned {
            Some(at) => format!(
                "would move the planned start of job {job}, which is at {}",
                moment(*at)
            ),
            None => format!(
                "would take what is kept for job {job}, which is ahead; its start has no known time, since something that \
                 it waits for has no time limit"
            ),
        },
        Blocker::Room {
            flavour,
            level,
            asks_pods,
            best_pods,
            best_domain,
            segments,
            held,
        } => {
            let set_aside = set_aside(held);
            let level = level.as_ref().map_or("the fleet", |level| level.as_str());
            let best = best_domain.as_ref().map_or_else(
                || "the best has".to_owned(),
                |name| format!("the best, {name}, has"),
            );
            match segments {
                None => format!(
                    "no {level} has {flavour} room for {} now: {best} room for {}{set_aside}",
                    plural((*asks_pods).into(), "pod", "pods"),
                    count((*best_pods).into())
                ),
                Some((asked, fit)) => format!(
                    "{flavour} room for {fit} of {asked} segments now: each needs {} in one {level}{set_aside}",
                    plural((*asks_pods).into(), "pod", "pods")
                ),
            }
        }
    }
}

/// A limit that is used up: the most, and what runs.
fn limit(of: &LimitOf, on: Limited) -> String {
    let whose = match of {
        LimitOf::Team { team } => team.to_string(),
        LimitOf::Member { team, person } => format!("{person} in {team}"),
        LimitOf::Person { person } => person.to_string(),
    };
    match on {
        Limited::Jobs { limit: 0, .. } => format!("can never run: limit 0 running jobs of {whose}"),
        Limited::Jobs { limit, run } => {
            let jobs = plural(limit.into(), "running job", "running jobs");
            let verb = if run == 1 { "runs" } else { "run" };
            format!("limit {jobs} of {whose}, {} {verb}", count(run.into()))
        }
        Limited::Gpus { limit, asks, .. } if asks > limit => format!(
            "can never run: asks {}, limit {} of {whose}",
            gpu_count(asks),
            gpus(limit)
        ),
        Limited::Gpus { limit, run, asks } => format!(
            "limit {} at once of {whose}: asks {}, {} run",
            gpu_count(limit),
            gpus(asks),
            gpus(run)
        ),
    }
}

/// A job that has to end first, and how it ended if that will not do.
fn depends(on: JobId, wants: Wants, ended: Option<End>) -> String {
    let how = match ended {
        None => {
            let wants = match wants {
                Wants::Ok => "to succeed",
                Wants::Any => "to end",
            };
            return format!("waits for job {on} {wants}");
        }
        Some(End::Succeeded) => "succeeded",
        Some(End::Failed) => "failed",
        Some(End::Cancelled) => "was cancelled",
        Some(End::TimedOut) => "ran into its time limit",
    };
    format!("can never run: waits for job {on} to succeed, which {how}")
}

/// What is set aside, by whom, why, and since when.
fn held(hold: &Hold) -> String {
    let what = match &hold.scope {
        HoldScope::Job { .. } => "the job itself".to_owned(),
        other => other.to_string(),
    };
    let since = moment(hold.since);
    let why = match &hold.why {
        Some(why) => format!(": {why}"),
        None => String::new(),
    };
    format!("held: {what}, by {} since {since}{why}", hold.by)
}

/// Holds of nodes that keep room from it, at most three by name.
fn set_aside(holds: &[Hold]) -> String {
    let told: Vec<_> = holds.iter().take(3).map(held).collect();
    match holds.len() {
        0 => String::new(),
        n if n > 3 => format!(
            "; there would be but for what is {} and {} more",
            told.join("; "),
            n - 3
        ),
        _ => format!("; there would be but for what is {}", told.join("; ")),
    }
}

/// A claim under way: whom it waits for, and until when.
fn in_flight(claim: ClaimId, stage: Stage, leaving: usize, until: Millis) -> String {
    let jobs = match leaving {
        0 => "no job is left to go".to_owned(),
        1 => "1 job has to go".to_owned(),
        n => format!("{} jobs have to go", count(n as u64)),
    };
    let minutes = until.0 / Millis::MINUTE.0 % (24 * 60);
    let until = format!("{:02}:{:02} UTC", minutes / 60, minutes % 60);
    match stage {
        Stage::Requested => format!("reclaim {claim} waits for an answer until {until}: {jobs}"),
        Stage::Approved => format!("reclaim {claim} is approved: {jobs}"),
        Stage::Made => format!("reclaim {claim} is in flight: {jobs}, by {until} at the latest"),
    }
}

fn exceeds(asks: MilliGpu, limit: MilliGpu, of: &Scope) -> String {
    let (asks, limit) = (gpu_count(asks), gpus(limit));
    match of {
        Scope::Fleet => format!("can never run: asks {asks}, the fleet has {limit}"),
        Scope::Team { team } => {
            format!("can never run: asks {asks}, {team} can have {limit} at most")
        }
        Scope::Domain { level } => {
            format!("can never run: asks {asks} in one {level}, the largest has {limit}")
        }
        Scope::Node => {
            format!("can never run: a pod asks {asks}, the largest node has {limit}")
        }
    }
}

/// The most that could ever run as far as whole jobs are judged: of fleet and team, the lower one.
fn most(reason: &Reason) -> Option<MilliGpu> {
    let limits = reason.all.iter().filter_map(|blocker| match blocker {
        Blocker::ExceedsMaximum {
            limit,
            of: Scope::Fleet | Scope::Team { .. },
            ..
        } => Some(*limit),
        _ => None,
    });
    limits.min()
}

/// What would help, in words.
fn help(reason: &Reason) -> Vec<String> {
    match &reason.dominant {
        Blocker::Held(hold) => {
            let who = match hold.scope {
                HoldScope::Job { .. } => "its owner, a lead of its team or an admin can release it",
                _ => "an admin can release it",
            };
            vec![format!("Ask {}: {who}.", hold.by)]
        }
        Blocker::Room { held, .. } if !held.is_empty() => vec![format!(
            "Ask {}: it starts when what is held is released.",
            held[0].by
        )],
        Blocker::Suspended { .. } => {
            vec!["Resume it: it waits then with its first submit time.".into()]
        }
        Blocker::Misconfigured { .. } => {
            vec!["Cancel it and submit it again with a reference that exists.".into()]
        }
        Blocker::NoMatchingFlavour { .. } => {
            vec!["Ask for a flavour that the team has quota in.".into()]
        }
        Blocker::Dependency { ended: None, .. } => {
            vec!["It is looked at as soon as that job ends.".into()]
        }
        Blocker::Dependency { ended: Some(_), .. } => {
            vec!["Cancel it, and submit it again without that job or after any end of it.".into()]
        }
        Blocker::ExceedsMaximum { limit, of, .. } => match of {
            Scope::Domain { level } => vec![
                format!(
                    "Split it into segments that fit one {level} each, or make the {level} preferred."
                ),
                format!("Ask for at most {}.", gpu_count(*limit)),
            ],
            Scope::Node => vec![format!("Ask for at most {} a pod.", gpu_count(*limit))],
            Scope::Fleet | Scope::Team { .. } => {
                let most = most(reason).unwrap_or(*limit);
                vec![format!("Ask for at most {}.", gpu_count(most))]
            }
        },
        Blocker::Limit {
            on: Limited::Gpus { limit, asks, .. },
            ..
        } if asks > limit => vec![format!("Ask for at most {}.", gpu_count(*limit))],
        Blocker::Limit {
            of: LimitOf::Team { .. },
            ..
        } => vec!["One of the team's running jobs must end, or an admin raises the limit.".into()],
        Blocker::Limit { .. } => {
            vec!["One of this person's running jobs must end, or an admin raises the limit.".into()]
        }
        Blocker::BackOff { .. } => vec!["It is tried again by itself.".into()],
        Blocker::Quota { available, .. } if available.0 > 0 => vec![format!(
            "Asking for at most {} fits the quota now.",
            gpu_count(*available)
        )],
        Blocker::Quota { .. } => {
            vec!["Running jobs of the team must end, or the team needs more quota.".into()]
        }
        Blocker::BehindReservation { .. } => {
            vec![
                "A time limit that ends before then lets it start now, if there is one.".into(),
                "It starts after that job, or sooner in another flavour.".into(),
            ]
        }
        Blocker::Room {
            level: Some(level),
            best_pods,
            segments: None,
            ..
        } => {
            let mut help = vec![format!("Make the {level} preferred instead of required.")];
            if *best_pods > 0 {
                help.push(format!(
                    "Asking for at most {} fits one {level} now.",
                    plural((*best_pods).into(), "pod", "pods")
                ));
            }
            help
        }
        Blocker::Claim {
            stage: Stage::Requested,
            ..
        } => vec!["An admin of its cohort can approve it sooner.".into()],
        Blocker::Claim { .. } => vec!["Nothing: its room is held, and nobody else gets it.".into()],
        Blocker::Room { .. } => vec!["It starts when enough GPUs are free at once.".into()],
    }
}

fn code(blocker: &Blocker) -> &'static str {
    match blocker {
        Blocker::Held(_) => "held",
        Blocker::Suspended { .. } => "suspended",
        Blocker::Misconfigured { .. } => "misconfigured",
        Blocker::NoMatchingFlavour { .. } => "no_matching_flavour",
        Blocker::Dependency { .. } => "dependency",
        Blocker::ExceedsMaximum { .. } => "exceeds_maximum",
        Blocker::Limit { .. } => "limit",
        Blocker::BackOff { .. } => "back_off",
        Blocker::Quota { .. } => "quota",
        Blocker::BehindReservation { .. } => "behind_reservation",
        Blocker::Room { .. } => "room",
        Blocker::Claim { .. } => "claim",
    }
}

/// Why a job waits, with its planned start.
pub fn of_waiting(waiting: &Waiting) -> ReasonView {
    let mut told = view(&waiting.reason);
    let Some(planned) = &waiting.planned else {
        return told;
    };
    if let Some(at) = planned.at {
        let stamp = i64::try_from(at.0).ok();
        told.planned_start = stamp.and_then(|ms| Timestamp::from_millisecond(ms).ok());
        told.help.insert(
            0,
            format!(
                "Its start is planned at {} at the latest; nothing behind it makes that later.",
                moment(at)
            ),
        );
    }
    told
}

/// A reason as every door shows it.
pub fn view(reason: &Reason) -> ReasonView {
    ReasonView {
        code: code(&reason.dominant).to_owned(),
        text: sentence(&reason.dominant),
        never: reason.never(),
        all: reason.all.iter().map(sentence).collect(),
        help: help(reason),
        planned_start: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_never_run_says_what_it_asks_and_what_there_is() {
        let blocker = Blocker::ExceedsMaximum {
            asks: MilliGpu::gpus(8_200),
            limit: MilliGpu::gpus(4_096),
            of: Scope::Fleet,
        };
        assert_eq!(
            sentence(&blocker),
            "can never run: asks 8,200 GPUs, the fleet has 4,096"
        );
    }

    #[test]
    fn advice_meets_the_lowest_of_all_limits() {
        let exceeds = |limit, of| Blocker::ExceedsMaximum {
            asks: MilliGpu::gpus(8_200),
            limit: MilliGpu::gpus(limit),
            of,
        };
        let team = Scope::Team {
            team: "fraud-ml".into(),
        };
        let all = vec![exceeds(4_096, Scope::Fleet), exceeds(3_904, team)];
        let reason = Reason {
            dominant: all[0].clone(),
            all,
        };
        assert_eq!(view(&reason).help, ["Ask for at most 3,904 GPUs."]);
    }
}
