//! The cycle: who starts now, and why the others wait.
//!
//! 1. Settle: its facts are folded before a cycle. 2. **Advance claims** in flight: those whose room is free start, the
//!    others hold it. Gangs that lost nodes and kept the others start again where `failure::replace` finds room for them.
//! 3. **Order**: `order`, six keys. Claims with held room went before these.
//! 4. **Admit**: quota, then placement, or a claim, once all that start without one have. Flavours in order of preference, those that stay inside nominal before those
//!    that borrow.
//! 5. **Reserve and backfill**: `backfill`. Those that cannot start get planned starts; what starts behind them keeps off
//!    what these hold, or ends before.
//! 6. **Explain** every job left waiting, against the state after the cycle.
//!
//! Within a cycle room and quota only shrink. So what was too big once stays too big: no shape is sought twice.

use crate::backfill::known;
use crate::claim::{Hunt, claim_of, hold_room, make_claims, review};
use crate::cycle::Cycle;
use crate::decide::check_spec;
use crate::explain::explain;
use crate::failure::replace;
use crate::hold::TeamHolds;
use crate::line::{Candidate, Line, aside};
use crate::order::{Order, Share, past_use};
use crate::{
    Blocker, Event, Fact, JobId, JobSpec, Millis, PersonId, Placement, Reason, Refusal, Stage,
    State, apply,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

/// A job left waiting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Which.
    pub job: JobId,
    /// Its place in its team's queue, from 1; jobs that can never run have none, nor have those that are set aside.
    pub position: Option<u32>,
    /// Why.
    pub reason: Reason,
    /// When it is planned to start, if it has a planned start. What starts behind it does not make it later.
    pub planned: Option<PlannedStart>,
}

/// A planned start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedStart {
    /// When, at the latest, by the time limits of what runs; `None` = not known, since something there has no limit.
    pub at: Option<Millis>,
    /// What is held for it from then on: flavour and cards. No pods when quota alone is held.
    pub placement: Arc<Placement>,
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
///
/// A claim changes what others may have: after one the cycle goes round again, on what is then decided.
pub fn plan(state: &State, now: Millis) -> Plan {
    cycle(state, now, Tell::Reasons)
}

/// What [`plan`] decides, without the reasons of those left waiting: for a past that nobody watches.
pub fn plan_events(state: &State, now: Millis) -> Vec<Event> {
    cycle(state, now, Tell::Nothing).events
}

fn cycle(state: &State, now: Millis, tell: Tell) -> Plan {
    let now = now.max(state.at);
    let line = Line::of(state);
    let mut round = Round::of(state, &line, now, Claims::Made, tell);
    if !round.again {
        return round.plan;
    }
    let (mut after, mut events, mut told) = (state.clone(), Vec::new(), BTreeSet::new());
    for rounds in 1..=ROUNDS {
        let done = &round.plan.events;
        done.iter().for_each(|event| apply(&mut after, event));
        told.extend(done.iter().filter_map(|event| event.fact.job()));
        events.append(&mut round.plan.events);
        let claims = match (round.again, rounds) {
            (false, _) => break,
            // Whoever is still left asks again in the next cycle.
            (true, ROUNDS) => Claims::Left,
            (true, _) => Claims::Made,
        };
        let line = line.later(&after, &told);
        debug_assert!(line.agrees_with(&Line::of(&after)));
        round = Round::of(&after, &line, now, claims, tell);
    }
    events.append(&mut round.plan.events);
    Plan {
        events,
        waiting: round.plan.waiting,
    }
}

/// The most rounds of one cycle.
const ROUNDS: u32 = 16;

/// Whether a round makes claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claims {
    Made,
    Left,
}

/// Whether those left waiting are told why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tell {
    Reasons,
    Nothing,
}

/// One round of a cycle.
struct Round {
    plan: Plan,
    /// Claims were made, fulfilled or given up: what is told of those left waiting is not the last word.
    again: bool,
}

impl Round {
    fn of<'a>(state: &'a State, line: &Line<'a>, now: Millis, claims: Claims, tell: Tell) -> Self {
        let mut walk = Walk::of(state, now, line);
        let mut again = !walk.events.is_empty();
        while walk.pass(None) {}
        if claims == Claims::Made {
            let facts = walk.claim();
            again |= !facts.is_empty();
            walk.events.extend(facts);
        }
        let waiting = match tell {
            Tell::Reasons if !again => walk.explain(),
            Tell::Reasons | Tell::Nothing => Vec::new(),
        };
        let events = walk.events;
        Self {
            plan: Plan { events, waiting },
            again,
        }
    }
}

/// "Fits now?": where a job of this owner with this spec would start if it came in now, last in its order, or why it would
/// not.
/// The preview of the form and of `--dry-run`; nothing is changed.
pub fn would_start(
    state: &State,
    owner: &PersonId,
    spec: &JobSpec,
    now: Millis,
) -> Result<Placement, Reason> {
    let now = now.max(state.at);
    if let Err(Refusal::Invalid { field, problem }) = check_spec(state, spec) {
        return Err(Reason::of(vec![Blocker::Misconfigured {
            field,
            names: problem,
        }]));
    }
    let holds = TeamHolds::of(state);
    let new = Candidate {
        aside: aside(state, &holds, None, spec),
        owner,
        id: JobId(state.counts.submitted + 1),
        spec,
        priority: spec.priority,
        submitted: now,
        attempt: 0,
        not_before: None,
        no_claim_before: None,
        span: spec.time_limit.or_else(|| default_limit(state, spec)),
        kind: 0,
    };
    let id = new.id;
    let mut line = Line::of(state);
    let place = line.insert(new);
    let mut walk = Walk::of(state, now, &line);
    while walk.pass(Some(place)) {}
    match walk.events.last().map(|event| &event.fact) {
        Some(Fact::JobAdmitted { job, placement, .. }) if *job == id => {
            Ok(Placement::clone(placement))
        }
        Some(_) | None => Err(walk.explain_one(place)),
    }
}

/// The limit of a job that names none.
fn default_limit(state: &State, spec: &JobSpec) -> Option<Millis> {
    state.teams.get(&spec.team)?.default_time_limit
}

/// One cycle under way: passes over the waiting jobs, until one starts nothing.
///
/// What starts moves its team back in the order. So the last pass, which starts nothing, is the one whose order and
/// reasons are told: they are those of the state that the cycle leaves behind, and the same cycle again says the same.
struct Walk<'a, 'b> {
    cycle: Cycle<'a>,
    past: Rc<[Share]>,
    jobs: &'b [Candidate<'a>],
    classes: Vec<usize>,
    /// Not started so far, in order of priority, submit time and id.
    left: Vec<usize>,
    /// Claimants that wait for the room that is held for them.
    holding: Vec<usize>,
    /// The last pass's order.
    order: Vec<usize>,
    events: Vec<Event>,
}

impl<'a, 'b> Walk<'a, 'b> {
    fn of(state: &'a State, now: Millis, line: &'b Line<'a>) -> Self {
        let mut cycle = Cycle::of(state, now);
        let mut of_kinds = vec![None; line.kinds];
        let jobs = line.jobs.as_slice();
        let class_of = |job: &Candidate<'a>| {
            *of_kinds[job.kind].get_or_insert_with(|| cycle.class(job.spec, job.span))
        };
        let classes: Vec<_> = jobs.iter().map(class_of).collect();
        let mut advanced = hold_room(&mut cycle, None);
        advanced.events.extend(replace(&mut cycle));
        let is_held = |index: &usize| advanced.waiting.contains(&jobs[*index].id);
        let is_left =
            |index: &usize| !is_held(index) && !advanced.started.contains(&jobs[*index].id);
        Self {
            classes,
            left: (0..jobs.len()).filter(is_left).collect(),
            holding: (0..jobs.len()).filter(is_held).collect(),
            order: Vec::with_capacity(jobs.len()),
            events: advanced.events,
            past: past_use(state, &cycle.tree, now),
            cycle,
            jobs,
        }
    }

    /// One pass. True when another one may tell more: something has started, and it was not the one that is sought.
    fn pass(&mut self, sought: Option<usize>) -> bool {
        let (jobs, classes, cycle) = (self.jobs, &self.classes, &mut self.cycle);
        cycle.begin_pass(jobs, classes, &self.left);
        self.order.clear();
        let started_before = self.events.len();
        let mut order = Order::of(cycle, &self.past, jobs, classes, &self.left);
        while let Some(index) = order.next(cycle, jobs, classes) {
            let (job, class) = (&jobs[index], classes[index]);
            let Some(placement) = cycle.start(job, class, self.order.len()) else {
                self.order.push(index);
                continue;
            };
            cycle.placed.push((job.spec, placement.clone()));
            self.events.push(Event {
                at: cycle.now,
                fact: Fact::JobAdmitted {
                    job: job.id,
                    attempt: job.attempt + 1,
                    placement,
                },
            });
            if sought == Some(index) {
                return false;
            }
            if let Some(team) = cycle.classes[class].team {
                order.charged(cycle, jobs, classes, team);
            }
        }
        self.left.clone_from(&self.order);
        self.left.sort_unstable();
        self.events.len() > started_before
    }

    /// Those that have started so far.
    fn started(&self) -> BTreeSet<JobId> {
        let admitted = self.events.iter().filter_map(|event| match &event.fact {
            Fact::JobAdmitted { job, .. } => Some(*job),
            _ => None,
        });
        admitted.collect()
    }

    /// Claims of those that are left.
    fn claim(&mut self) -> Vec<Event> {
        let claims = self.cycle.state.claims.values();
        let mut open = claims.filter(|claim| claim.stage != Stage::Made);
        if self.order.is_empty() && open.next().is_none() {
            return Vec::new();
        }
        let left = self.order.iter();
        let asking: Vec<_> = left
            .map(|&index| (&self.jobs[index], self.classes[index]))
            .collect();
        // Whoever has just started needs none any more.
        let started = self.started();
        let mut hunt = Hunt::of(&mut self.cycle);
        let mut facts = review(&mut self.cycle, &mut hunt, &started);
        facts.extend(make_claims(&mut self.cycle, &mut hunt, &asking));
        facts
    }

    /// Why each job that is left waits, in order; first those whose room is held.
    fn explain(&mut self) -> Vec<Waiting> {
        self.cycle.plan_passed_over();
        let started = self.started();
        let mut positions = BTreeMap::<Option<usize>, u32>::new();
        let mut waiting = Vec::with_capacity(self.order.len());
        let held = self.holding.iter().map(|&index| (index, None));
        let left = self.order.iter().enumerate();
        let left = left.map(|(rank, &index)| (index, Some(rank)));
        let all: Vec<_> = held.chain(left).collect();
        let planned = self.cycle.backfill.reservations.iter().map(|planned| {
            let (at, placement) = (known(planned.at), planned.placement.clone());
            (planned.rank, PlannedStart { at, placement })
        });
        let mut planned: BTreeMap<usize, PlannedStart> = planned.collect();
        for (index, rank) in all {
            let (job, class) = (&self.jobs[index], self.classes[index]);
            let claim = claim_of(self.cycle.state, job.id, &started);
            let reason =
                claim.unwrap_or_else(|| explain(&mut self.cycle, job, class, rank.unwrap_or(0)));
            let team = self.cycle.classes[class].team;
            let position = reason.in_line().then(|| {
                let position = positions.entry(team).or_default();
                *position += 1;
                *position
            });
            waiting.push(Waiting {
                job: job.id,
                position,
                reason,
                planned: rank.and_then(|rank| planned.remove(&rank)),
            });
        }
        waiting
    }

    fn explain_one(&mut self, index: usize) -> Reason {
        self.cycle.plan_passed_over();
        let rank = self.order.iter().position(|&other| other == index);
        explain(
            &mut self.cycle,
            &self.jobs[index],
            self.classes[index],
            rank.unwrap_or_default(),
        )
    }
}
