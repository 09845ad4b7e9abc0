//! What a command does.
//!
//! Every list of events begins with an [`Fact::HourPassed`] for each whole hour that passed since the last one, each at
//! its exact time, so that usage lines are cut in order whichever command comes first after the hour.

use crate::change;
use crate::claim;
use crate::configure::configure;
use crate::depend::check_after;
use crate::elastic;
use crate::extend::extend;
use crate::failure;
use crate::hold;
use crate::lifecycle::{Next, Step, next};
use crate::limit::may_wait;
use crate::notebook;
use crate::room::{MAX_CARDS, MAX_PODS};
use crate::setting;
use crate::{
    Command, End, Event, Fact, FlavourId, Health, Job, JobId, JobSpec, MilliGpu, Millis, NodeId,
    PersonId, Phase, Reclaim, Refusal, Report, State, StopCause, TopologyMode,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The longest that any span of a spec may be: a hundred years.
const MAX_SPAN: Millis = Millis(100 * 366 * Millis::DAY.0);

/// The most flavours that a job may name.
const MAX_FLAVOURS: usize = 32;

/// The longest that launches back off.
const MAX_BACK_OFF: Millis = Millis::HOUR;

/// The events that a command leads to, or why it changes nothing.
///
/// A time before the last event's counts as that one's: the engine's time does not run backwards.
pub fn decide(state: &State, command: &Command, now: Millis) -> Result<Vec<Event>, Refusal> {
    let now = now.max(state.at);
    let facts = match command {
        Command::Submit { owner, spec } => submit(state, owner, spec)?,
        Command::Cancel { job, by, why } => cancel(state, live(state, *job)?, by, why.as_ref())?,
        Command::Suspend { job, by, why } => {
            notebook::suspend(state, live(state, *job)?, by, why.as_ref())?
        }
        Command::Resume { job, by, why } => notebook::resume(live(state, *job)?, by, why.as_ref())?,
        Command::SetHealth { node, health, why } => set_health(state, *node, *health, why, now)?,
        Command::Silent { node, since } => failure::silent(state, *node, *since)?,
        Command::Heard { node } => failure::heard(state, *node)?,
        Command::Repaired { node, why } => {
            let health = failure::health_after_repair(state, *node)?;
            set_health(state, *node, health, why, now)?
        }
        Command::ExtendLimit {
            job,
            limit,
            by,
            why,
        } => vec![extend(state, live(state, *job)?, *limit, by, why.as_ref())?],
        Command::Hold {
            scope,
            mode,
            by,
            why,
        } => hold::set(state, scope, *mode, by, why.as_ref())?,
        Command::Release { scope, by, why } => hold::lift(state, scope, by, why.as_ref())?,
        Command::SetPolicy {
            name,
            to,
            seen,
            by,
            why,
        } => setting::change(state, name, to, *seen, by, why.as_ref())?,
        Command::SetLimits {
            team,
            limits,
            seen,
            by,
            why,
        } => change::limit(state, team, limits, *seen, by, why.as_ref())?,
        Command::Configure(change) => vec![configure(state, change)?],
        Command::Report {
            job,
            attempt,
            report,
        } => take_report(state, live(state, *job)?, *attempt, report, now)?,
        Command::ApproveClaim { .. }
        | Command::DeclineClaim { .. }
        | Command::DeferClaim { .. }
        | Command::ProposeVictims { .. } => claim::answer(state, command, now)?,
        Command::Tick => tick(state, now),
    };
    let mut events = hours(state, now);
    events.extend(facts.into_iter().map(|fact| Event { at: now, fact }));
    Ok(events)
}

/// When [`Command::Tick`] next has something to do: the next limit, time-out, end of a back-off or hour. `None` before
/// the first event.
pub fn next_due(state: &State) -> Option<Millis> {
    if state.events == 0 {
        return None;
    }
    let hour = state.hour + Millis::HOUR;
    let job = state.due.first().map(|&(due, _)| due);
    job.into_iter().chain(claim::due(state)).chain([hour]).min()
}

/// One event for each whole hour crossed, at its exact time. Before the first event there are none to cut.
fn hours(state: &State, now: Millis) -> Vec<Event> {
    if state.events == 0 {
        return Vec::new();
    }
    let first = state.hour.0 / Millis::HOUR.0 + 1;
    (first..=now.0 / Millis::HOUR.0)
        .map(|hour| Event {
            at: Millis::hours(hour),
            fact: Fact::HourPassed,
        })
        .collect()
}

fn live(state: &State, job: JobId) -> Result<&Job, Refusal> {
    state.jobs.get(&job).ok_or(Refusal::NoSuchJob(job))
}

pub(crate) fn invalid(field: &str, problem: impl Into<String>) -> Refusal {
    Refusal::Invalid {
        field: field.into(),
        problem: problem.into(),
    }
}

fn submit(state: &State, owner: &PersonId, spec: &Arc<JobSpec>) -> Result<Vec<Fact>, Refusal> {
    let team = state
        .teams
        .get(&spec.team)
        .ok_or_else(|| Refusal::NoSuchTeam(spec.team.clone()))?;
    check_spec(state, spec)?;
    may_wait(state, owner, spec)?;
    // From here on the job has the limit that its team had when it came in.
    let spec = match (spec.time_limit, team.default_time_limit) {
        (None, Some(limit)) => Arc::new(JobSpec {
            time_limit: Some(limit),
            ..JobSpec::clone(spec)
        }),
        (Some(_), _) | (None, None) => spec.clone(),
    };
    let job = JobId(state.counts.submitted + 1);
    Ok(vec![Fact::JobSubmitted {
        job,
        owner: owner.clone(),
        spec,
    }])
}

/// Refuses what cannot be so. What merely cannot run is taken in, and waits with that reason.
pub(crate) fn check_spec(state: &State, spec: &JobSpec) -> Result<(), Refusal> {
    if spec.pods == 0 || spec.pods > MAX_PODS {
        return Err(invalid("pods", format!("must be from 1 to {MAX_PODS}")));
    }
    let gpus = spec.gpus_per_pod;
    if gpus.0 > 1_000 && !gpus.0.is_multiple_of(1_000) {
        return Err(invalid(
            "gpus_per_pod",
            "must be whole, or a share of one GPU below 1",
        ));
    }
    if gpus > MilliGpu::gpus(1_000) {
        return Err(invalid(
            "gpus_per_pod",
            format!("must be at most 1,000; no node has more than {MAX_CARDS}"),
        ));
    }
    if gpus > MilliGpu::ZERO && spec.flavours.is_empty() {
        return Err(invalid(
            "flavours",
            "must name at least one, since the pods ask for GPUs",
        ));
    }
    if spec.flavours.len() > MAX_FLAVOURS {
        return Err(invalid(
            "flavours",
            format!("must be at most {MAX_FLAVOURS}"),
        ));
    }
    let unknown = |flavour: &&FlavourId| !state.flavours.contains_key(*flavour);
    if let Some(flavour) = spec.flavours.iter().find(unknown) {
        return Err(invalid(
            "flavours",
            format!("there is no flavour `{flavour}`"),
        ));
    }
    // A million cores and a petabyte: above any node, below any overflow.
    for (field, asked, most) in [
        ("cpu_milli_per_pod", spec.cpu_milli_per_pod, 1_000_000_000),
        ("memory_mib_per_pod", spec.memory_mib_per_pod, 1_000_000_000),
    ] {
        if asked > most {
            return Err(invalid(field, format!("must be at most {most}")));
        }
    }
    check_topology(state, spec)?;
    elastic::check_min_pods(spec)?;
    check_after(state, spec)?;
    check_spans(spec)
}

fn check_topology(state: &State, spec: &JobSpec) -> Result<(), Refusal> {
    let request = &spec.topology;
    if request
        .segments
        .is_some_and(|segments| segments.pods == 0 || !spec.pods.is_multiple_of(segments.pods))
    {
        let problem = format!("must divide the gang's {} pods", spec.pods);
        return Err(invalid("topology.segments.pods", problem));
    }
    let needs_level = request.mode != TopologyMode::Unconstrained || request.segments.is_some();
    match &request.level {
        None if needs_level => Err(invalid(
            "topology.level",
            "must be named, unless the gang may lie anywhere",
        )),
        Some(level) if needs_level && !state.topology.levels.contains(level) => {
            let levels: Vec<_> = state
                .topology
                .levels
                .iter()
                .map(|level| level.as_str())
                .collect();
            let problem = format!(
                "there is no level `{level}`; there are: {}",
                levels.join(", ")
            );
            Err(invalid("topology.level", problem))
        }
        Some(_) | None => Ok(()),
    }
}

fn check_spans(spec: &JobSpec) -> Result<(), Refusal> {
    let period = spec.checkpoint.map(|checkpoint| checkpoint.period);
    for (field, span) in [
        ("time_limit", spec.time_limit),
        ("run_time", spec.run_time),
        ("checkpoint.period", period),
    ] {
        if span.is_some_and(|span| span == Millis(0) || span > MAX_SPAN) {
            return Err(invalid(
                field,
                "must be more than nothing and at most a hundred years",
            ));
        }
    }
    if spec
        .checkpoint
        .is_some_and(|checkpoint| checkpoint.save > MAX_SPAN)
    {
        return Err(invalid(
            "checkpoint.save",
            "must be at most a hundred years",
        ));
    }
    Ok(())
}

fn cancel(
    state: &State,
    job: &Job,
    by: &PersonId,
    why: Option<&String>,
) -> Result<Vec<Fact>, Refusal> {
    let cause = StopCause::Person {
        by: by.clone(),
        why: why.cloned(),
    };
    if job.phase == Phase::Queued || job.stands_by() {
        let mut facts = claim::gone(state, job.id);
        facts.push(Fact::JobEnded {
            job: job.id,
            end: End::Cancelled,
            cause: Some(cause),
        });
        return Ok(facts);
    }
    // A stop after which it would wait again is turned into its end; any other one ends it already.
    if job.stop.as_ref().is_some_and(|stop| stop.end.is_some()) {
        return Err(Refusal::AlreadyStopping(job.id));
    }
    let (attempt, end) = (job.attempt, Some(End::Cancelled));
    Ok(vec![Fact::StopRequested {
        job: job.id,
        attempt,
        cause,
        end,
    }])
}

fn set_health(
    state: &State,
    node: NodeId,
    health: Health,
    why: &str,
    now: Millis,
) -> Result<Vec<Fact>, Refusal> {
    let before = state.nodes.get(&node).ok_or(Refusal::NoSuchNode(node))?;
    if before.node.health == health {
        return Ok(Vec::new());
    }
    let mut facts = vec![Fact::NodeHealthSet {
        node,
        health,
        why: why.into(),
    }];
    if health == Health::Down {
        facts.extend(failure::lose(state, node, why, now));
    }
    Ok(facts)
}

/// How a job ends that has just failed; `None` = it may try again.
pub(crate) fn after_failure(job: &Job) -> Option<End> {
    (job.restarts >= job.spec.restart_budget).then_some(End::Failed)
}

fn take_report(
    state: &State,
    job: &Job,
    given: u32,
    report: &Report,
    now: Millis,
) -> Result<Vec<Fact>, Refusal> {
    let (id, attempt) = (job.id, job.attempt);
    if given != attempt {
        return Err(Refusal::StaleAttempt {
            job: id,
            given,
            current: attempt,
        });
    }
    let out_of_place = Refusal::OutOfPlace {
        job: id,
        phase: job.phase,
    };
    let fits = |step: Step| match next(job.phase, step) {
        Next::To(_) | Next::Gone => Ok(()),
        Next::Never => Err(out_of_place.clone()),
    };
    let Some(allocation) = &job.allocation else {
        return Err(out_of_place);
    };
    match report {
        // Said once already; the phase alone does not tell of one that is leaving.
        Report::Bound if allocation.bound.is_some() => Err(out_of_place),
        Report::Bound => fits(Step::Bind).map(|()| vec![Fact::GangBound { job: id, attempt }]),
        // What comes up while it is being stopped comes too late to count as a launch.
        Report::Started if job.stop.is_some() => Err(out_of_place),
        Report::Started => fits(Step::Start).map(|()| vec![Fact::GangStarted { job: id, attempt }]),
        Report::NoStep { .. } | Report::Stepped | Report::PodSucceeded { .. } => {
            fits(Step::Tell)?;
            failure::told(job, allocation, report, now).ok_or(out_of_place)
        }
        Report::Idle { .. } | Report::Active => {
            fits(Step::Tell)?;
            notebook::told(job, allocation, report, now).ok_or(out_of_place)
        }
        Report::CheckpointStarted { progress } => {
            // One that is durable already, told again, is no new one.
            let is_old = job
                .checkpoint
                .is_some_and(|last| *progress <= last.progress);
            if allocation.saving.is_some() || is_old {
                return Err(out_of_place);
            }
            fits(Step::Save).map(|()| vec![Fact::CheckpointStarted { job: id, attempt }])
        }
        Report::CheckpointSaved { progress, bytes } => {
            let (progress, bytes) = (*progress, *bytes);
            // The last save told again is no new one: a victim would be stopped before it has saved.
            let is_old = job.checkpoint.is_some_and(|last| match allocation.saving {
                Some(_) => (last.progress, last.bytes) == (progress, bytes),
                None => progress <= last.progress,
            });
            if is_old {
                return Err(out_of_place);
            }
            fits(Step::Saved).map(|()| {
                let saved = Fact::CheckpointSaved {
                    job: id,
                    attempt,
                    progress,
                    bytes,
                };
                // What a victim was given time for is done.
                let goes = job.reclaim.filter(|_| job.stop.is_none());
                let stop = goes.map(|reclaim| make_room(job, &reclaim));
                let stop = stop.or_else(|| elastic::sheds(job));
                let drained = || Some(leave(job, hold::drained(state, job)?));
                let stop = stop.or_else(drained);
                std::iter::once(saved).chain(stop).collect()
            })
        }
        Report::Shrunk => {
            fits(Step::Tell)?;
            let shrunk = elastic::shrunk(job, allocation).ok_or(out_of_place)?;
            Ok(vec![shrunk])
        }
        Report::Succeeded => {
            let mut facts = Vec::new();
            if job.phase == Phase::Starting && job.stop.is_none() {
                // So short that its start was never told.
                facts.push(Fact::GangStarted { job: id, attempt });
            } else if allocation.started.is_none() {
                return Err(out_of_place);
            }
            facts.push(Fact::JobEnded {
                job: id,
                end: End::Succeeded,
                cause: None,
            });
            Ok(facts)
        }
        Report::Failed { .. } | Report::Exited if job.stop.is_some() => {
            Ok(stopped(state, job, now))
        }
        Report::Failed { .. } if job.stands_by() => Err(out_of_place),
        Report::Failed { code } => Ok(failed(state, job, *code, now)),
        Report::Exited => Err(out_of_place),
    }
}

/// It goes, and waits again.
fn leave(job: &Job, cause: StopCause) -> Fact {
    Fact::StopRequested {
        job: job.id,
        attempt: job.attempt,
        cause,
        end: None,
    }
}

/// It failed by itself; every pod is gone.
fn failed(state: &State, job: &Job, code: i32, now: Millis) -> Vec<Fact> {
    let (id, attempt, cause) = (job.id, job.attempt, StopCause::Exited { code });
    let mut facts = vec![failure::cost(job, &cause, now)];
    match after_failure(job) {
        Some(end) => facts.push(Fact::JobEnded {
            job: id,
            end,
            cause: Some(cause),
        }),
        None => {
            facts.extend(failure::of_exit(state, job, now));
            // Keeps the exit code on the record, and tells the fold that this was a failure.
            facts.push(leave(job, cause));
            facts.push(Fact::JobRequeued {
                job: id,
                attempt,
                not_before: None,
            });
        }
    }
    facts
}

/// A requested stop is confirmed.
fn stopped(state: &State, job: &Job, now: Millis) -> Vec<Fact> {
    let Some(stop) = &job.stop else {
        return Vec::new();
    };
    if let Some(end) = stop.end {
        return vec![Fact::JobEnded {
            job: job.id,
            end,
            cause: Some(stop.cause.clone()),
        }];
    }
    if let Some(recovery) = job.recovery.filter(|recovery| recovery.until > now) {
        return vec![Fact::GangStopped {
            job: job.id,
            attempt: job.attempt,
            until: recovery.until,
        }];
    }
    let mut facts = Vec::new();
    let not_before = match stop.cause {
        StopCause::LaunchTimeout => {
            facts = failure::of_exit(state, job, now);
            Some(now + back_off(state, job))
        }
        StopCause::Person { .. }
        | StopCause::TimeLimit
        | StopCause::NodeLost { .. }
        | StopCause::Stalled { .. }
        | StopCause::Drained { .. }
        | StopCause::Idle { .. }
        | StopCause::Suspend { .. }
        | StopCause::Reclaim { .. }
        | StopCause::Exited { .. } => None,
    };
    facts.push(Fact::JobRequeued {
        job: job.id,
        attempt: job.attempt,
        not_before,
    });
    facts.extend(notebook::after_stop(job));
    facts
}

/// Doubles with each launch that did not come up.
fn back_off(state: &State, job: &Job) -> Millis {
    let first = state.policy.launch_back_off;
    let doubled = first.0.saturating_mul(1 << job.launch_failures.min(20));
    Millis(doubled).min(MAX_BACK_OFF.max(first))
}

fn tick(state: &State, now: Millis) -> Vec<Fact> {
    let due = state.due.iter().take_while(|&&(due, _)| due <= now);
    let (mut facts, mut quarantined) = (Vec::new(), BTreeSet::new());
    for job in due.filter_map(|(_, id)| state.jobs.get(id)) {
        let stalls = job.stalls_at(&state.policy).is_some_and(|at| at <= now);
        let over = job.runs_until().is_some_and(|until| until <= now);
        match job.phase {
            Phase::Running if stalls && !over => {
                facts.extend(failure::stall(state, job, now, &mut quarantined));
            }
            Phase::Running if !over => {
                let idle = notebook::on_time(state, job, now);
                facts.extend(idle.or_else(|| elastic::sheds(job)));
            }
            _ => facts.extend(on_time(job, now)),
        }
    }
    facts.extend(claim::on_time(state, now));
    facts
}

/// A victim is stopped: it has saved, or its grace is over.
pub(crate) fn make_room(job: &Job, reclaim: &Reclaim) -> Fact {
    Fact::StopRequested {
        job: job.id,
        attempt: job.attempt,
        cause: StopCause::Reclaim {
            claim: reclaim.claim,
            claimant: reclaim.claimant,
        },
        end: None,
    }
}

/// What a job's due time means in its phase.
fn on_time(job: &Job, now: Millis) -> Option<Fact> {
    let (id, attempt) = (job.id, job.attempt);
    let stop = |cause: StopCause, end: Option<End>| Fact::StopRequested {
        job: id,
        attempt,
        cause,
        end,
    };
    match job.phase {
        // The back-off is over: said on the record, so that the clock is not due for ever.
        Phase::Queued => Some(Fact::JobRequeued {
            job: id,
            attempt,
            not_before: job.not_before.filter(|&until| until > now),
        }),
        Phase::Admitted | Phase::Starting => Some(stop(StopCause::LaunchTimeout, None)),
        Phase::Reclaiming if job.runs_until().is_none_or(|until| until > now) => {
            job.reclaim.map(|reclaim| make_room(job, &reclaim))
        }
        Phase::Running | Phase::Reclaiming => Some(stop(StopCause::TimeLimit, Some(End::TimedOut))),
        // Nothing was found in place of what it lost: all of it is placed anew.
        Phase::Recovering => Some(Fact::JobRequeued {
            job: id,
            attempt,
            not_before: None,
        }),
    }
}
