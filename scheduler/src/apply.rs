//! The fold.

use crate::claim;
use crate::failure::{self, steps_on};
use crate::hold;
use crate::lifecycle::{Next, Step, next};
use crate::limit::recount;
use crate::notebook;
use crate::standby::{note_health, note_node};
use crate::{
    Activity, Allocation, Checkpoint, CohortId, Event, Fact, FlavourId, FreeNode, Hold, HoldScope,
    Job, JobId, JobSpec, Load, MilliGpu, Millis, Node, NodeId, PersonId, Phase, Placement,
    PodPlace, State, StopCause, StopRequest, TeamId,
};
use crate::{change, ledger, past_use, setting};
use std::sync::Arc;

/// Takes in what happened. It cannot fail: it has happened.
///
/// An event that does not fit the state (a journal of another history) changes nothing but the time.
pub fn apply(state: &mut State, event: &Event) {
    if state.events == 0 {
        // Usage begins with the first event; there are no hours to cut before it.
        state.hour = event.at.hour_floor();
    }
    state.events += 1;
    state.at = state.at.max(event.at);
    let at = event.at;
    match &event.fact {
        Fact::TopologySet { topology } => state.topology = topology.clone(),
        Fact::FlavourSet { flavour } => {
            drop(state.flavours.insert(flavour.id.clone(), flavour.clone()))
        }
        Fact::CohortSet { cohort } => {
            state.cohorts.insert(cohort.id.clone(), cohort.clone());
            ledger::settle_all(state);
        }
        Fact::CohortRemoved { cohort } => {
            remove_cohort(state, cohort);
            let cohort = cohort.clone();
            hold::forget(state, &HoldScope::Cohort { cohort });
            ledger::settle_all(state);
        }
        Fact::TeamSet { team } => {
            state.teams.insert(team.id.clone(), team.clone());
            let flavours: Vec<_> = state
                .laid
                .get(&team.id)
                .into_iter()
                .flat_map(|laid| laid.keys().cloned())
                .collect();
            flavours
                .iter()
                .for_each(|flavour| lay(state, &team.id, flavour));
            ledger::settle_all(state);
        }
        Fact::TeamRemoved { team } => {
            state.teams.remove(team);
            state.limit_changes.remove(team);
            hold::forget(state, &HoldScope::Team { team: team.clone() });
            ledger::settle_all(state);
        }
        Fact::NodeSet { node } => {
            let before = state.nodes.insert(node.id, empty(node));
            note_node(state, before.as_ref().map(|free| &free.node), node.id);
        }
        Fact::NodeHealthSet { node, health, .. } => {
            failure::note_health(state, *node, *health);
            if let Some(free) = state.nodes.get_mut(node) {
                free.node.health = *health;
            }
            note_health(state, *node);
        }
        Fact::HoldSet {
            scope,
            mode,
            by,
            why,
        } => {
            let hold = Hold {
                scope: scope.clone(),
                mode: *mode,
                by: by.clone(),
                why: why.clone(),
                since: at,
            };
            hold::keep(state, hold);
        }
        Fact::HoldLifted { scope, .. } => hold::forget(state, scope),
        Fact::PolicySet { policy, by, why } => {
            setting::keep(state, policy, at, by.as_ref(), why.as_ref());
            state.due = state
                .jobs
                .values()
                .filter_map(|job| Some((job.due(&state.policy)?, job.id)))
                .collect();
        }
        Fact::LimitsSet {
            team,
            limits,
            by,
            why,
        } => change::keep_limits(state, team, limits, at, by, why.as_ref()),
        Fact::RateCardSet { card } => state.rate_cards.push(card.clone()),
        Fact::JobSubmitted { job, owner, spec } => submit(state, at, *job, owner, spec),
        Fact::JobAdmitted {
            job,
            attempt,
            placement,
        } => {
            admit(state, at, *job, *attempt, placement);
            claim::fulfil(state, *job);
        }
        Fact::GangBound { job, .. } => step(state, *job, Step::Bind, |job| {
            if let Some(allocation) = &mut job.allocation {
                allocation.bound = Some(at);
            }
        }),
        Fact::GangStarted { job, .. } => step(state, *job, Step::Start, |job| {
            job.launch_failures = 0;
            if let Some(allocation) = &mut job.allocation {
                (allocation.started, allocation.stepped) = (Some(at), Some(at));
                allocation.activity = Activity::active(at);
            }
        }),
        Fact::CheckpointStarted { job, .. } => step(state, *job, Step::Save, |job| {
            if let Some(allocation) = &mut job.allocation {
                allocation.saving = Some(at);
            }
        }),
        Fact::CheckpointSaved {
            job,
            progress,
            bytes,
            ..
        } => step(state, *job, Step::Saved, |job| {
            if let Some(allocation) = &mut job.allocation {
                allocation.saving = None;
            }
            steps_on(job, at);
            // A save of less work than an earlier one is no better place to start from.
            if job.checkpoint.is_none_or(|last| last.progress <= *progress) {
                job.checkpoint = Some(Checkpoint {
                    at,
                    progress: *progress,
                    bytes: *bytes,
                });
            }
        }),
        Fact::StopRequested {
            job, cause, end, ..
        } => {
            let lost = matches!(
                cause,
                StopCause::NodeLost { .. } | StopCause::Stalled { .. }
            );
            step(
                state,
                *job,
                if lost { Step::Lose } else { Step::Stop },
                |job| {
                    job.stop = Some(StopRequest {
                        at,
                        cause: cause.clone(),
                        end: *end,
                    });
                    if let (true, Some(allocation)) = (lost, &mut job.allocation) {
                        allocation.saving = None;
                    }
                },
            );
        }
        Fact::JobRequeued {
            job, not_before, ..
        } => requeue(state, at, *job, *not_before),
        Fact::GangStopped { job, .. } => {
            failure::halt(state, at, *job);
        }
        Fact::GangReplaced {
            job,
            attempt,
            placement,
            ..
        } => failure::replaced(state, at, *job, *attempt, placement),
        Fact::Interrupted { .. } => {}
        Fact::NodeSilent { .. }
        | Fact::NodeHeard { .. }
        | Fact::StepsStopped { .. }
        | Fact::StepsResumed { .. }
        | Fact::PodSucceeded { .. }
        | Fact::PodsLost { .. }
        | Fact::GangShrunk { .. }
        | Fact::TimeLimitExtended { .. } => failure::fold(state, at, &event.fact),
        Fact::ActivityStopped { .. }
        | Fact::ActivityResumed { .. }
        | Fact::IdleWarned { .. }
        | Fact::NotebookSuspended { .. }
        | Fact::NotebookResumed { .. } => notebook::fold(state, at, &event.fact),
        Fact::JobEnded { job, end, .. } => {
            claim::fulfil(state, *job);
            failure::ended(state, *job, *end);
            release(state, at, *job);
            if state.jobs.contains_key(job) {
                state.counts.count(*end);
                state.ends.note(*job, *end);
            }
            step(state, *job, Step::End, |_| {});
        }
        Fact::HourPassed => {
            state.hour = state.hour.max(at);
            past_use::close_hour(state, at);
        }
        Fact::ClaimRequested { .. }
        | Fact::ClaimApproved { .. }
        | Fact::ClaimDeclined { .. }
        | Fact::ClaimDeferred { .. }
        | Fact::ClaimMade { .. }
        | Fact::ClaimWithdrawn { .. }
        | Fact::ShrinkRequested { .. }
        | Fact::SaveAsked { .. } => claim::fold(state, at, &event.fact),
    }
}

/// A node with nothing on it.
fn empty(node: &Node) -> FreeNode {
    FreeNode {
        free_milli: vec![1_000; usize::from(node.cards)],
        free_cpu_milli: node.cpu_milli,
        free_memory_mib: node.memory_mib,
        jobs: Vec::new(),
        silent_since: None,
        node: node.clone(),
    }
}

fn remove_cohort(state: &mut State, gone: &CohortId) {
    state.cohorts.remove(gone);
    for cohort in state
        .cohorts
        .values_mut()
        .filter(|cohort| cohort.parent.as_ref() == Some(gone))
    {
        cohort.parent = None;
    }
    for team in state
        .teams
        .values_mut()
        .filter(|team| team.cohort.as_ref() == Some(gone))
    {
        team.cohort = None;
    }
}

fn submit(state: &mut State, at: Millis, id: JobId, owner: &PersonId, spec: &Arc<JobSpec>) {
    state.counts.submitted = state.counts.submitted.max(id.0);
    let job = Job {
        id,
        owner: owner.clone(),
        spec: spec.clone(),
        submitted: at,
        phase: Phase::Queued,
        attempt: 0,
        restarts: 0,
        launch_failures: 0,
        allocation: None,
        ran: Millis(0),
        checkpoint: None,
        stop: None,
        not_before: None,
        reclaim: None,
        hold: None,
        evictions: Vec::new(),
        no_claim_before: None,
        recovery: None,
        suspended: None,
    };
    remember_turn(state, &job);
    recount(state, &job, Load::default(), Load::of(&job));
    state.jobs.insert(id, job);
}

/// Puts the job into the queue and the list of due times, as its phase says.
fn remember_turn(state: &mut State, job: &Job) {
    if job.phase == Phase::Queued {
        state.queue.insert(job.turn());
    }
    if let Some(due) = job.due(&state.policy) {
        state.due.insert((due, job.id));
    }
}

/// Takes it out of both.
fn forget_turn(state: &mut State, job: &Job) {
    state.queue.remove(&job.turn());
    if let Some(due) = job.due(&state.policy) {
        state.due.remove(&(due, job.id));
    }
}

/// Moves one job along the table and lets `change` write what else the event says about it.
pub(crate) fn step(state: &mut State, id: JobId, step: Step, change: impl FnOnce(&mut Job)) {
    let Some(mut shared) = state.jobs.remove(&id) else {
        return;
    };
    forget_turn(state, &shared);
    let before = Load::of(&shared);
    match next(shared.phase, step) {
        Next::To(phase) => {
            let job = Arc::make_mut(&mut shared);
            job.phase = phase;
            change(job);
        }
        Next::Gone => return recount(state, &shared, before, Load::default()),
        Next::Never => {}
    }
    recount(state, &shared, before, Load::of(&shared));
    remember_turn(state, &shared);
    state.jobs.insert(id, shared);
}

/// Lets `change` write something about a job that its phase does not depend on, but its due time may.
pub(crate) fn touch(state: &mut State, id: JobId, change: impl FnOnce(&mut Job)) {
    let Some(mut shared) = state.jobs.remove(&id) else {
        return;
    };
    forget_turn(state, &shared);
    change(Arc::make_mut(&mut shared));
    remember_turn(state, &shared);
    state.jobs.insert(id, shared);
}

fn admit(state: &mut State, at: Millis, id: JobId, attempt: u32, placement: &Arc<Placement>) {
    let Some(job) = state.jobs.get(&id).filter(|job| job.phase == Phase::Queued) else {
        return;
    };
    let spec = job.spec.clone();
    // An elastic one may have started with fewer pods than it asks.
    let gpus = spec.gpus_of(placement.pods.len() as u32);
    state.admissions += 1;
    let order = state.admissions;
    step(state, id, Step::Admit, |job| {
        job.attempt = attempt;
        job.not_before = None;
        job.allocation = Some(Allocation {
            placement: placement.clone(),
            gpus,
            own: gpus,
            borrowed: MilliGpu::ZERO,
            order,
            admitted: at,
            bound: None,
            started: None,
            saving: None,
            gone: Vec::new(),
            no_step_since: None,
            stepped: None,
            activity: Activity::default(),
            shed: None,
        });
    });
    for &pod in &placement.pods {
        take(state, id, &spec, pod);
    }
    let Some(flavour) = &placement.flavour else {
        return;
    };
    past_use::count(state, &spec.team, flavour, at);
    *state
        .charged
        .entry(spec.team.clone())
        .or_default()
        .entry(flavour.clone())
        .or_default() += gpus;
    state
        .laid
        .entry(spec.team.clone())
        .or_default()
        .entry(flavour.clone())
        .or_default()
        .push(id);
    lay(state, &spec.team, flavour);
    ledger::settle_charge(state, &spec.team, flavour);
}

pub(crate) fn take(state: &mut State, id: JobId, spec: &JobSpec, pod: PodPlace) {
    let Some(free) = state.nodes.get_mut(&pod.node) else {
        return;
    };
    for_each_card(pod, &mut free.free_milli, |card| {
        *card = card.saturating_sub(pod.milli)
    });
    free.free_cpu_milli = free.free_cpu_milli.saturating_sub(spec.cpu_milli_per_pod);
    free.free_memory_mib = free.free_memory_mib.saturating_sub(spec.memory_mib_per_pod);
    if !free.jobs.contains(&id) {
        free.jobs.push(id);
    }
}

pub(crate) fn give_back(state: &mut State, id: JobId, spec: &JobSpec, pod: PodPlace) {
    let Some(free) = state.nodes.get_mut(&pod.node) else {
        return;
    };
    for_each_card(pod, &mut free.free_milli, |card| *card += pod.milli);
    free.free_cpu_milli += spec.cpu_milli_per_pod;
    free.free_memory_mib += spec.memory_mib_per_pod;
    free.jobs.retain(|&job| job != id);
}

fn for_each_card(pod: PodPlace, cards: &mut [u16], mut change: impl FnMut(&mut u16)) {
    let mut left = pod.cards;
    while left != 0 {
        let card = left.trailing_zeros();
        left &= left - 1;
        if let Some(milli) = cards.get_mut(card as usize) {
            change(milli);
        }
    }
}

/// Frees everything that the job has: its exit is confirmed.
fn release(state: &mut State, at: Millis, id: JobId) -> Option<Allocation> {
    let job = state.jobs.get_mut(&id)?;
    // Out of the list of due times while it still says when it was due.
    let due = job.due(&state.policy).map(|due| (due, id));
    let (was_charged, before) = (job.is_charged(), Load::of(job));
    let (allocation, spec) = (job.allocation.take()?, job.spec.clone());
    let (job, after) = (job.clone(), Load::of(job));
    recount(state, &job, before, after);
    due.map(|due| state.due.remove(&due));
    for &pod in &allocation.placement.pods {
        give_back(state, id, &spec, pod);
    }
    if was_charged {
        discharge(state, at, id, &spec.team, &allocation);
    }
    Some(allocation)
}

/// A job that goes on is charged less, or more, than before.
pub(crate) fn recharge(
    state: &mut State,
    at: Millis,
    team: &TeamId,
    flavour: &FlavourId,
    less: MilliGpu,
    more: MilliGpu,
) {
    past_use::count(state, team, flavour, at);
    let of_team = state.charged.entry(team.clone()).or_default();
    let charged = of_team.entry(flavour.clone()).or_default();
    *charged = charged.minus(less) + more;
    lay(state, team, flavour);
    ledger::settle_charge(state, team, flavour);
}

/// Takes what a job has out of its team's charge, and out of the order of its admissions.
pub(crate) fn discharge(
    state: &mut State,
    at: Millis,
    id: JobId,
    team: &TeamId,
    allocation: &Allocation,
) {
    let Some(flavour) = &allocation.placement.flavour else {
        return;
    };
    past_use::count(state, team, flavour, at);
    if let Some(of_team) = state.charged.get_mut(team) {
        if let Some(charged) = of_team.get_mut(flavour) {
            *charged = charged.minus(allocation.gpus);
        }
        of_team.retain(|_, charged| *charged > MilliGpu::ZERO);
        if of_team.is_empty() {
            state.charged.remove(team);
        }
    }
    if let Some(of_team) = state.laid.get_mut(team) {
        if let Some(jobs) = of_team.get_mut(flavour) {
            jobs.retain(|&job| job != id);
        }
        of_team.retain(|_, jobs| !jobs.is_empty());
        if of_team.is_empty() {
            state.laid.remove(team);
        }
    }
    lay(state, team, flavour);
    ledger::settle_charge(state, team, flavour);
}

/// Lays the borrowed part of a team's charge on its newest admissions.
fn lay(state: &mut State, team: &TeamId, flavour: &FlavourId) {
    let Some(jobs) = state.laid.get(team).and_then(|laid| laid.get(flavour)) else {
        return;
    };
    let mut borrowed = state
        .charged(team, flavour)
        .minus(state.nominal(team, flavour));
    for id in jobs.iter().rev() {
        let Some(allocation) = state
            .jobs
            .get_mut(id)
            .and_then(|job| job.allocation.as_mut())
        else {
            continue;
        };
        if borrowed == MilliGpu::ZERO && allocation.borrowed == MilliGpu::ZERO {
            // All older ones are wholly inside nominal, before and after.
            break;
        }
        allocation.borrowed = allocation.gpus.min(borrowed);
        allocation.own = allocation.gpus.minus(allocation.borrowed);
        borrowed = borrowed.minus(allocation.borrowed);
    }
}

fn requeue(state: &mut State, at: Millis, id: JobId, not_before: Option<Millis>) {
    let ran = failure::requeued(state, at, id);
    release(state, at, id);
    state.recovering.remove(&id);
    step(state, id, Step::Requeue, |job| {
        job.not_before = not_before;
        job.no_claim_before = job.no_claim_before.filter(|&until| until > at);
        (job.reclaim, job.recovery) = (None, None);
        job.ran += ran;
        match job.stop.take().map(|stop| stop.cause) {
            Some(
                StopCause::NodeLost { .. } | StopCause::Stalled { .. } | StopCause::Exited { .. },
            ) => job.restarts += 1,
            Some(StopCause::LaunchTimeout) => job.launch_failures += 1,
            Some(
                StopCause::Person { .. }
                | StopCause::TimeLimit
                | StopCause::Drained { .. }
                | StopCause::Idle { .. }
                | StopCause::Suspend { .. }
                | StopCause::Reclaim { .. },
            )
            | None => {}
        }
    });
}

impl State {
    /// What a team is charged of a flavour.
    pub(crate) fn charged(&self, team: &TeamId, flavour: &FlavourId) -> MilliGpu {
        self.charged
            .get(team)
            .and_then(|of_team| of_team.get(flavour))
            .copied()
            .unwrap_or_default()
    }

    /// What a team owns of a flavour.
    pub(crate) fn nominal(&self, team: &TeamId, flavour: &FlavourId) -> MilliGpu {
        self.teams
            .get(team)
            .and_then(|team| team.quotas.get(flavour))
            .map(|quota| quota.nominal)
            .unwrap_or_default()
    }

    /// Jobs with a pod on a node.
    pub(crate) fn jobs_on(&self, node: NodeId) -> &[JobId] {
        self.nodes
            .get(&node)
            .map(|free| free.jobs.as_slice())
            .unwrap_or_default()
    }
}
