//! The cycle: who starts now, and why the others wait.
//!
//! 1. Settle, 2. advance claims: their facts are folded before a cycle; claims come later.
//! 3. **Order**: priority, first submit time, id. (Claims with held room, borrowing height and share go before these.)
//! 4. **Admit**: quota, then placement. Flavours in order of preference, those that stay inside nominal before those
//!    that borrow.
//! 5. **Reserve**: a job that waited over `reserve_after` closes its flavour to those behind it, to all if it lacks only
//!    room, to its team and to borrowers if it lacks quota of its own. (Planned starts and backfill go here.)
//! 6. **Explain** every job left waiting, against the state after the cycle.
//!
//! Within a cycle room and quota only shrink. So what was too big once stays too big: no shape is sought twice.

use crate::cycle::Cycle;
use crate::decide::check_spec;
use crate::explain::explain;
use crate::state::Turn;
use crate::{Blocker, Event, Fact, JobId, JobSpec, Millis, Placement, Reason, Refusal, State};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A job left waiting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Which.
    pub job: JobId,
    /// Its place in its team's queue, from 1; jobs that can never run have none.
    pub position: Option<u32>,
    /// Why.
    pub reason: Reason,
}

/// What one cycle decided.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Plan {
    /// Admissions, in order.
    pub events: Vec<Event>,
    /// Every job left waiting, in order.
    pub waiting: Vec<Waiting>,
}

/// Decides one cycle.
pub fn plan(state: &State, now: Millis) -> Plan {
    let now = now.max(state.at);
    let mut cycle = Cycle::of(state, now);
    let jobs: Vec<_> = state
        .queue
        .iter()
        .filter_map(|turn| Candidate::of(state, turn))
        .collect();
    let mut events = Vec::new();
    let mut left = Vec::new();
    for (rank, job) in jobs.iter().enumerate() {
        let class = cycle.class(job.spec);
        match cycle.start(job, class, rank) {
            Some(placement) => {
                let (job, attempt, placement) = (job.id, job.attempt + 1, Arc::new(placement));
                events.push(Event {
                    at: now,
                    fact: Fact::JobAdmitted {
                        job,
                        attempt,
                        placement,
                    },
                });
            }
            None => left.push((rank, class)),
        }
    }
    let mut positions = BTreeMap::<Option<usize>, u32>::new();
    let mut waiting = Vec::with_capacity(left.len());
    for (rank, class) in left {
        let job = &jobs[rank];
        let reason = explain(&mut cycle, job, class, rank);
        let team = cycle.classes[class].team;
        let position = (!reason.never()).then(|| {
            let position = positions.entry(team).or_default();
            *position += 1;
            *position
        });
        waiting.push(Waiting {
            job: job.id,
            position,
            reason,
        });
    }
    Plan { events, waiting }
}

/// "Fits now?": where a job with this spec would start if it came in now, last in its order, or why it would not.
/// The preview of the form and of `--dry-run`; nothing is changed.
pub fn would_start(state: &State, spec: &JobSpec, now: Millis) -> Result<Placement, Reason> {
    let now = now.max(state.at);
    if let Err(Refusal::Invalid { field, problem }) = check_spec(state, spec) {
        return Err(Reason::of(vec![Blocker::Misconfigured {
            field,
            names: problem,
        }]));
    }
    let new = Candidate {
        id: JobId(state.counts.submitted + 1),
        spec,
        submitted: now,
        attempt: 0,
        not_before: None,
    };
    let mut cycle = Cycle::of(state, now);
    let mut rank = 0;
    for job in state
        .queue
        .range(..new.turn())
        .filter_map(|turn| Candidate::of(state, turn))
    {
        let class = cycle.class(job.spec);
        cycle.start(&job, class, rank);
        rank += 1;
    }
    let class = cycle.class(spec);
    cycle
        .start(&new, class, rank)
        .ok_or_else(|| explain(&mut cycle, &new, class, rank))
}

/// A waiting job, as far as the cycle is concerned.
pub(crate) struct Candidate<'a> {
    pub id: JobId,
    pub spec: &'a JobSpec,
    pub submitted: Millis,
    pub attempt: u32,
    pub not_before: Option<Millis>,
}

impl<'a> Candidate<'a> {
    fn of(state: &'a State, turn: &Turn) -> Option<Self> {
        let job = state.jobs.get(&turn.2)?;
        let (id, submitted, attempt, not_before) =
            (job.id, job.submitted, job.attempt, job.not_before);
        Some(Self {
            id,
            spec: &job.spec,
            submitted,
            attempt,
            not_before,
        })
    }
    fn turn(&self) -> Turn {
        (Reverse(self.spec.priority), self.submitted, self.id)
    }
    /// Until when it is not tried, if it is not tried now.
    pub(crate) fn backs_off(&self, now: Millis) -> Option<Millis> {
        self.not_before.filter(|&until| until > now)
    }
}
