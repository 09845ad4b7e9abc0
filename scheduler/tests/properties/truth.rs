//! Reasons are true: lifting all of what blocks a job starts it, lifting all but one does not, and nothing less would do.

use super::world::*;
use scheduler::*;
use std::cmp::Reverse;

/// Lifts all of a reason's blockers, and then all but each one of them.
pub fn check_reason(world: &World, waiting: &Waiting) {
    let reason = &waiting.reason;
    assert_eq!(reason.all.first(), Some(&reason.dominant));
    assert!(
        reason.all.iter().is_sorted_by_key(precedence),
        "{:?}",
        reason.all
    );
    let in_line = !reason.never() && !reason.all.iter().any(is_aside);
    assert_eq!(waiting.position.is_some(), in_line);
    if reason.never() {
        return;
    }
    let case = Case::of(world, waiting);
    assert!(
        starts_without(&case, &reason.all, &[]),
        "lifting all of {:?} starts it",
        reason.all
    );
    let case = case.of_flavour_told(reason);
    for blocker in &reason.all {
        if let Blocker::Room { held, .. } = blocker {
            check_held_room(&case, reason, held);
        }
    }
    for left in &reason.all {
        let others: Vec<_> = reason
            .all
            .iter()
            .filter(|blocker| *blocker != left)
            .cloned()
            .collect();
        let ahead = match left {
            // What is lifted besides may help the job ahead, too, or make this one no borrower.
            Blocker::BehindReservation { .. } if !others.is_empty() => continue,
            // Which flavour the job ahead closes may hang on those before it: all of them stay.
            Blocker::BehindReservation { .. } => {
                case.state.queue.iter().map(|turn| turn.2).collect()
            }
            _ => Vec::new(),
        };
        assert!(
            !starts_without(&case, &others, &ahead),
            "{left:?} is no blocker in {:?}",
            reason.all
        );
    }
}

/// Of the holds told with room, each is needed.
fn check_held_room(case: &Case, reason: &Reason, held: &[Hold]) {
    for kept in held {
        let mut all = reason.all.clone();
        for blocker in &mut all {
            if let Blocker::Room { held, .. } = blocker {
                // None of them may be lifted at all; then one of nothing stands for them.
                let nothing = Hold {
                    scope: HoldScope::Node { node: NodeId(999) },
                    ..kept.clone()
                };
                let others = held.iter().filter(|hold| *hold != kept).cloned();
                *held = others.chain([nothing]).collect();
            }
        }
        assert!(
            !starts_without(case, &all, &[]),
            "{:?} need not be lifted",
            kept.scope
        );
    }
}

fn precedence(blocker: &Blocker) -> u8 {
    match blocker {
        Blocker::Held(_) => 0,
        Blocker::Suspended { .. } => 1,
        Blocker::Misconfigured { .. } => 2,
        Blocker::NoMatchingFlavour { .. } => 3,
        Blocker::Dependency { .. } => 4,
        Blocker::ExceedsMaximum { .. } => 5,
        Blocker::Limit { .. } => 6,
        Blocker::BackOff { .. } => 7,
        Blocker::Quota { .. } => 8,
        Blocker::BehindReservation { .. } => 9,
        Blocker::Room { .. } => 10,
        Blocker::Claim { .. } => 11,
    }
}

fn is_aside(blocker: &Blocker) -> bool {
    matches!(
        blocker,
        Blocker::Held(_) | Blocker::Suspended { .. } | Blocker::Dependency { .. }
    )
}

/// What is set aside or backs off makes no claim, nor does what lacks room that no claim can make, though one could bring
/// it the quota: what it lacks is told as things stand.
fn makes_no_claim(all: &[Blocker]) -> bool {
    let has_no_quota = all.iter().any(|it| matches!(it, Blocker::Quota { .. }));
    all.iter().any(|blocker| match blocker {
        Blocker::Room { held, .. } => has_no_quota || !held.is_empty(),
        Blocker::BackOff { .. } | Blocker::Limit { .. } => true,
        other => is_aside(other),
    })
}

/// What is judged: a job that waits, in its state.
struct Case {
    state: State,
    now: Millis,
    job: JobId,
}

impl Case {
    fn of(world: &World, waiting: &Waiting) -> Self {
        let mut state = world.state.clone();
        if makes_no_claim(&waiting.reason.all) {
            state.policy.owner_reclaim = false;
            state.policy.fair_reclaim = false;
            state.policy.within_team = WithinTeam::Never;
        }
        Self {
            state,
            now: world.now,
            job: waiting.job,
        }
    }

    /// The job as if it asked only for the flavour that a reason tells of, if it does: another one may be closed by those
    /// ahead in the queue, who are gone in a case.
    fn of_flavour_told(mut self, reason: &Reason) -> Self {
        let mut told = reason.all.iter().filter_map(|blocker| match blocker {
            Blocker::Quota { flavour, .. } | Blocker::Room { flavour, .. } => Some(flavour),
            _ => None,
        });
        let job = self.state.jobs.get_mut(&self.job).expect("the job");
        if let Some(told) = told.find(|told| job.spec.flavours.contains(told)) {
            let mut spec = JobSpec::clone(&job.spec);
            spec.flavours = vec![told.clone()];
            job.spec = spec.into();
        }
        self
    }
}

/// True when the job, with only `ahead` before it in the queue, starts once the blockers are lifted: quota by owning
/// more, room by new nodes.
fn starts_without(case: &Case, lifted: &[Blocker], ahead: &[JobId]) -> bool {
    let (id, mut state) = (case.job, case.state.clone());
    state
        .queue
        .retain(|turn| turn.2 == id || ahead.contains(&turn.2));
    let team = state.jobs[&id].spec.team.clone();
    for blocker in lifted {
        match blocker {
            Blocker::Quota { flavour, .. } => {
                let quotas = &mut state.teams.get_mut(&team).expect("its team").quotas;
                quotas.get_mut(flavour).expect("its quota").nominal += MilliGpu::gpus(1_000);
            }
            Blocker::Held(hold) => lift(&mut state, hold),
            Blocker::Suspended { .. } => state.jobs.get_mut(&id).expect("the job").suspended = None,
            Blocker::Limit { of, on } => {
                let limits = limits_of(&mut state, of);
                match on {
                    Limited::Jobs { .. } => limits.running_jobs = None,
                    Limited::Gpus { .. } => limits.running_gpus = None,
                }
            }
            // Nobody waits for it any more.
            Blocker::Dependency { on, .. } => {
                let job = state.jobs.get_mut(&id).expect("the job");
                let mut spec = JobSpec::clone(&job.spec);
                spec.after.retain(|dependency| dependency.on != *on);
                job.spec = spec.into();
            }
            // What holds of nodes keep from it is as good as new nodes, and just these holds do.
            Blocker::Room { held, .. } if !held.is_empty() => {
                held.iter().for_each(|hold| lift(&mut state, hold))
            }
            Blocker::Room { flavour, .. } => add_block(&mut state, flavour),
            Blocker::BackOff { .. } => state.jobs.get_mut(&id).expect("the job").not_before = None,
            // Those whom it names are gone, and their jobs with them.
            Blocker::Claim { leaving, .. } => leaving.iter().for_each(|job| end(&mut state, *job)),
            // The job ahead is not in the queue.
            Blocker::BehindReservation { .. } => {}
            Blocker::Misconfigured { .. }
            | Blocker::NoMatchingFlavour { .. }
            | Blocker::ExceedsMaximum { .. } => {
                panic!("cannot lift {blocker:?}")
            }
        }
    }
    let started = |event: &Event| matches!(event.fact, Fact::JobAdmitted { job, .. } if job == id);
    plan(&state, case.now).events.iter().any(started)
}

/// No truer reason exists: with the job alone in the queue, no set of fewer things than are told starts it, out of all that
/// could be lifted. True when there was anything to tell.
pub fn check_no_less_would_do(world: &World, job: JobId) -> bool {
    let mut state = world.state.clone();
    if state.claims.values().any(|claim| claim.claimant == job) {
        return false;
    }
    // What is lacked, not what a claim might bring.
    (state.policy.owner_reclaim, state.policy.fair_reclaim) = (false, false);
    state.policy.within_team = WithinTeam::Never;
    state.queue.retain(|turn| turn.2 == job);
    let told = plan(&state, world.now).waiting;
    let Some(waiting) = told.iter().find(|waiting| waiting.job == job) else {
        return false;
    };
    if waiting.reason.never() {
        return false;
    }
    let case = Case {
        now: world.now,
        job,
        state,
    };
    let all = &waiting.reason.all;
    let lifts = everything_that_could_be_lifted(&case);
    // Pairs are as far as brute force goes in the time that there is.
    for size in 0..all.len().min(3) {
        for set in sets_of(lifts.len(), size) {
            let set: Vec<_> = set.into_iter().map(|index| lifts[index].clone()).collect();
            assert!(
                !starts_without(&case, &set, &[]),
                "{set:?} would do, and {all:?} is told"
            );
        }
    }
    true
}

/// All subsets of so many of the first `n`.
fn sets_of(n: usize, size: usize) -> Vec<Vec<usize>> {
    if size == 0 {
        return vec![Vec::new()];
    }
    let smaller = sets_of(n, size - 1);
    let next = |set: &Vec<usize>| set.last().map_or(0, |last| last + 1);
    let longer = smaller.into_iter().flat_map(|set| {
        (next(&set)..n).map(move |more| set.iter().copied().chain([more]).collect())
    });
    longer.collect()
}

/// One blocker of each kind that could be told of a job: each flavour's quota and room, each hold, limit and dependency.
fn everything_that_could_be_lifted(case: &Case) -> Vec<Blocker> {
    let job = &case.state.jobs[&case.job];
    let mut lifts = Vec::new();
    for flavour in &job.spec.flavours {
        let none = MilliGpu::ZERO;
        // Where a flavour can never do, more of it is another fleet, not a blocker that is gone.
        if can_never_run(case, flavour) {
            continue;
        }
        let quotas = &case.state.teams[&job.spec.team].quotas;
        if quotas.contains_key(flavour) {
            lifts.push(Blocker::Quota {
                flavour: flavour.clone(),
                asks: none,
                available: none,
                short_by: none,
                at: None,
                holders: Vec::new(),
            });
        }
        lifts.push(room_of(flavour, Box::default()));
    }
    let holds = job.hold.iter().chain(&case.state.holds);
    let (of_nodes, others): (Vec<_>, Vec<_>) = holds.cloned().partition(|hold| {
        matches!(
            hold.scope,
            HoldScope::Node { .. } | HoldScope::Domain { .. }
        )
    });
    if !of_nodes.is_empty() {
        lifts.push(room_of(&job.spec.flavours[0], of_nodes.into()));
    }
    lifts.extend(others.into_iter().map(|hold| Blocker::Held(hold.into())));
    lifts.extend(job.suspended.iter().map(|it| Blocker::Suspended {
        since: it.since,
        by: it.by.clone(),
    }));
    let after = job.spec.after.iter();
    lifts.extend(after.map(|after| Blocker::Dependency {
        on: after.on,
        wants: after.wants,
        ended: None,
    }));
    lifts.extend(job.not_before.map(|until| Blocker::BackOff { until }));
    let (team, person) = (job.spec.team.clone(), job.owner.clone());
    for of in [
        LimitOf::Team { team: team.clone() },
        LimitOf::Member {
            team,
            person: person.clone(),
        },
        LimitOf::Person { person },
    ] {
        let zero = MilliGpu::ZERO;
        for on in [
            Limited::Jobs { limit: 0, run: 0 },
            Limited::Gpus {
                limit: zero,
                run: zero,
                asks: zero,
            },
        ] {
            lifts.push(Blocker::Limit { of: of.clone(), on });
        }
    }
    lifts
}

/// True when the job could never run if it asked for this flavour only.
fn can_never_run(case: &Case, flavour: &FlavourId) -> bool {
    let mut state = case.state.clone();
    let job = state.jobs.get_mut(&case.job).expect("the job");
    let mut spec = JobSpec::clone(&job.spec);
    spec.flavours = vec![flavour.clone()];
    job.spec = spec.into();
    let told = plan(&state, case.now).waiting;
    let mut told = told.iter().filter(|waiting| waiting.job == case.job);
    told.any(|waiting| waiting.reason.never())
}

fn room_of(flavour: &FlavourId, held: Box<[Hold]>) -> Blocker {
    Blocker::Room {
        flavour: flavour.clone(),
        level: None,
        asks_pods: 0,
        best_pods: 0,
        best_domain: None,
        segments: None,
        held,
    }
}

fn limits_of<'a>(state: &'a mut State, of: &LimitOf) -> &'a mut Limits {
    match of {
        LimitOf::Team { team } => &mut state.teams.get_mut(team).expect("the team").limits,
        LimitOf::Member { team, .. } => {
            let team = state.teams.get_mut(team).expect("the team");
            &mut team.person_limits
        }
        LimitOf::Person { .. } => &mut state.policy.person_limits,
    }
}

fn lift(state: &mut State, hold: &Hold) {
    let (scope, by) = (hold.scope.clone(), "bea".into());
    let fact = Fact::HoldLifted {
        scope,
        by,
        why: None,
    };
    apply(state, &Event { at: state.at, fact });
}

fn end(state: &mut State, job: JobId) {
    let fact = Fact::JobEnded {
        job,
        end: End::Cancelled,
        cause: None,
    };
    apply(state, &Event { at: state.at, fact });
}

fn add_block(state: &mut State, flavour: &FlavourId) {
    for id in 100..148 {
        let node = Node {
            id: NodeId(id),
            name: format!("new-{id}").into(),
            flavour: Some(flavour.clone()),
            domains: vec!["new".into(), "new-r0".into()],
            cards: 8,
            cpu_milli: 960_000,
            memory_mib: 1_000_000,
            health: Health::Ready,
            pool: if id < 124 {
                Pool::Batch
            } else {
                Pool::Notebook
            },
        };
        apply(
            state,
            &Event {
                at: state.at,
                fact: Fact::NodeSet { node },
            },
        );
    }
}

/// What starts in a cycle is nobody's prey until the next one. A team is spoken for by its head: behind one that must borrow
/// an owner's small job is looked at late, and claims a cycle later what a borrower has started on meanwhile. That is the one
/// thing that a second cycle at the same moment may still do.
pub fn claims_from_behind_its_head(world: &World, plan: &Plan, again: &Plan) -> bool {
    let started = |job: JobId| {
        let is =
            |event: &Event| matches!(event.fact, Fact::JobAdmitted { job: one, .. } if one == job);
        plan.events.iter().any(is)
    };
    let turn = |job: &Job| (Reverse(job.spec.priority), job.submitted, job.id);
    let is_behind = |claimant: JobId| {
        let claimant = &world.state.jobs[&claimant];
        let waiting = plan.waiting.iter().map(|waiting| waiting.job);
        let mut of_team = waiting.map(|job| &world.state.jobs[&job]);
        of_team.any(|job| job.spec.team == claimant.spec.team && turn(job) < turn(claimant))
    };
    again.events.iter().any(|event| match &event.fact {
        Fact::ClaimMade { claim, .. } | Fact::ClaimRequested { claim, .. } => {
            is_behind(claim.claimant) && claim.victims.iter().any(|victim| started(victim.job))
        }
        _ => false,
    })
}
