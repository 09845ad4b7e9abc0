//! What people set aside and limit: holds and drains, jobs after others, limits of teams and of people.

use super::Dice;
use scheduler::{
    Command, Dependency, HoldMode, HoldScope, JobId, Limits, MilliGpu, NodeId, Setting, State,
    TeamId, TeamLimits, Wants,
};

/// Somebody sets something aside, or takes it back; most of what is held is released, else nothing would run.
pub(super) fn hold(dice: &mut Dice, state: &State, teams: &[&str]) -> Option<Command> {
    let of_jobs = state.jobs.values().filter_map(|job| job.hold.as_ref());
    let held = state.holds.iter().chain(of_jobs);
    let held: Vec<HoldScope> = held.map(|hold| hold.scope.clone()).collect();
    let by = "bea".into();
    if held.len() > 2 || (!held.is_empty() && dice.happens(600)) {
        return Some(Command::Release {
            scope: dice.of(&held)?,
            by,
            why: None,
        });
    }
    if dice.happens(100) {
        // Of what may not be held at all.
        let team = TeamId::from(dice.of(teams)?);
        let scope = HoldScope::Team { team };
        return Some(Command::Release {
            scope,
            by,
            why: None,
        });
    }
    let again = held.first().filter(|_| dice.happens(100)).cloned();
    Some(Command::Hold {
        scope: again.or_else(|| scope(dice, state, teams))?,
        mode: match dice.happens(300) {
            true => HoldMode::Drain,
            false => HoldMode::Hold,
        },
        by,
        why: Some("recabling".into()),
    })
}

fn scope(dice: &mut Dice, state: &State, teams: &[&str]) -> Option<HoldScope> {
    // Now and then it is somebody whose claim is under way.
    let mut claims = state.claims.values();
    if let Some(claim) = claims.next().filter(|_| dice.happens(800)) {
        let job = claim.claimant;
        return Some(HoldScope::Job { job });
    }
    let jobs: Vec<JobId> = state.jobs.keys().copied().collect();
    let domain = |level: &str, domain: &str| HoldScope::Domain {
        level: level.into(),
        domain: domain.into(),
    };
    Some(match dice.below(8) {
        0..=2 => HoldScope::Job {
            job: dice.of(&jobs).unwrap_or(JobId(0)),
        },
        3 => HoldScope::Team {
            team: dice.of(teams)?.into(),
        },
        4 => HoldScope::Cohort {
            cohort: "low".into(),
        },
        5 => domain("rack", dice.of(&["b0-r0", "b0-r1", "b1-r3", "c0-r0"])?),
        6 => domain("block", dice.of(&["b0", "b1"])?),
        _ => HoldScope::Node {
            node: NodeId(dice.below(12) as u32),
        },
    })
}

/// Whom a new job waits for: mostly nobody, else one or two of the last ones.
pub(super) fn after(dice: &mut Dice, state: &State) -> Vec<Dependency> {
    let last = state.counts.submitted;
    if last < 2 || !dice.happens(60) {
        return Vec::new();
    }
    let first = Dependency {
        on: JobId(last - dice.below(last.min(10))),
        wants: dice.of(&[Wants::Ok, Wants::Any]).unwrap_or_default(),
    };
    let second = Dependency {
        on: JobId(1 + dice.below(last)),
        wants: Wants::Any,
    };
    let second = Some(second).filter(|second| second.on != first.on);
    let second = second.filter(|_| dice.happens(300));
    std::iter::once(first).chain(second).collect()
}

/// Limits that bind now and then; nobody's is nothing at all.
pub(super) fn limits(dice: &mut Dice) -> Limits {
    let some = |dice: &mut Dice, least: u64, more: u64| {
        let is_set = dice.happens(250);
        is_set.then(|| least + dice.below(more))
    };
    Limits {
        running_jobs: some(dice, 3, 8).map(|most| most as u32),
        waiting_jobs: some(dice, 6, 14).map(|most| most as u32),
        running_gpus: some(dice, 12, 36).map(MilliGpu::gpus),
    }
}

/// What admins change at the end of each life: a policy and a team's limits, each once more by somebody who has looked too early.
pub(super) fn settings(state: &State) -> Vec<Command> {
    let why = Some("a review".to_owned());
    let policy = |count: u64| Command::SetPolicy {
        name: "reservations".to_owned(),
        to: Setting::Count(count),
        seen: 0,
        by: "bea".into(),
        why: why.clone(),
    };
    let limits = |team: &TeamId, most: u32| Command::SetLimits {
        team: team.clone(),
        limits: TeamLimits {
            team: Limits {
                running_jobs: Some(most),
                ..Limits::default()
            },
            member: Limits::default(),
        },
        seen: 0,
        by: "bea".into(),
        why: why.clone(),
    };
    let teams = state.teams.keys();
    let mut all: Vec<Command> = [20, 21].map(policy).to_vec();
    all.extend(teams.flat_map(|team| [900, 901].map(|most| limits(team, most))));
    all
}
