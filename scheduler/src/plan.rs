//! The cycle: who starts now, and why the others wait.
//!
//! 1. Settle, 2. advance claims: their facts are folded before a cycle; claims come later.
//! 3. **Order**: priority, first submit time, id. (Claims with held room, borrowing height and share go before these.)
//! 4. **Admit**: quota, then placement. Flavours in order of preference, those that stay inside nominal before those
//!    that borrow.
//! 5. **Reserve**: a job that waited over `reserve_after`, has the quota and lacks only the room, closes its flavour to
//!    all behind it, provided that the healthy hardware could hold it. (Planned starts and backfill go here.)
//! 6. **Explain** every job left waiting, against the state after the cycle.
//!
//! Within a cycle room and quota only shrink. So what was too big once stays too big: no shape is sought twice.

use crate::decide::check_spec;
use crate::explain::explain;
use crate::maximum::{Hardware, never};
use crate::place::{Shape, UnknownLevel, seek, shortage, take, within};
use crate::quota::QuotaTree;
use crate::room::{Room, View, Yard, YardKey, pool_of};
use crate::state::Turn;
use crate::{
    Blocker, Event, Fact, FlavourId, JobId, JobSpec, MilliGpu, Millis, Placement, Pool, Reason,
    Refusal, State, TeamId,
};
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
    let mut positions = BTreeMap::<&TeamId, u32>::new();
    let mut waiting = Vec::with_capacity(left.len());
    for (rank, class) in left {
        let job = &jobs[rank];
        let reason = explain(&mut cycle, job, class, rank);
        let position = (!reason.never()).then(|| {
            let position = positions.entry(&job.spec.team).or_default();
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

/// A shape in a yard: where room for it is sought, once.
pub(crate) struct Spot<'a> {
    pub yard: usize,
    pub shape: Shape,
    /// No room was found in this cycle.
    full: bool,
    /// The healthy hardware could hold it; judged when first asked.
    could: Option<bool>,
    /// The blocker to tell, at the end of the cycle; judged when first asked.
    pub told: Option<Option<Blocker>>,
    /// The flavour's name in a reason.
    pub flavour: Option<&'a FlavourId>,
}

/// One way for a class of jobs to run.
pub(crate) struct Offer<'a> {
    /// The flavour and its index in the quota tree; `None` without GPUs.
    pub flavour: Option<(&'a FlavourId, usize)>,
    pub spot: usize,
}

/// All waiting jobs of one team that ask for the same.
pub(crate) struct Class<'a> {
    /// The team's index in the quota tree; `None` only when there is something that can never be met.
    pub team: Option<usize>,
    pub gpus: MilliGpu,
    pub offers: Vec<Offer<'a>>,
    /// Why these can never run.
    pub never: Vec<Blocker>,
    /// Could not start in this cycle; so no other one can.
    spent: bool,
}

/// What makes two jobs the same.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct ClassKey<'a> {
    team: &'a TeamId,
    flavours: &'a [FlavourId],
    pool: Pool,
    shape: Shape,
}

/// The scratch of one cycle. The state itself is only read.
pub(crate) struct Cycle<'a> {
    pub state: &'a State,
    pub now: Millis,
    pub tree: QuotaTree<'a>,
    pub hardware: Hardware<'a>,
    pub room: Room,
    healthy: Option<Room>,
    yard_index: BTreeMap<YardKey<'a>, usize>,
    pub yards: Vec<Yard<'a>>,
    spot_index: BTreeMap<(usize, Shape), usize>,
    pub spots: Vec<Spot<'a>>,
    class_index: BTreeMap<ClassKey<'a>, usize>,
    pub classes: Vec<Class<'a>>,
    /// Flavours that a job which waits for room has closed to those behind it: its rank and id.
    pub closed: BTreeMap<usize, (usize, JobId)>,
}

impl<'a> Cycle<'a> {
    fn of(state: &'a State, now: Millis) -> Self {
        Self {
            tree: QuotaTree::of(state),
            hardware: Hardware::of(state),
            room: Room::of(state, View::Now),
            healthy: None,
            yard_index: BTreeMap::new(),
            yards: Vec::new(),
            spot_index: BTreeMap::new(),
            spots: Vec::new(),
            class_index: BTreeMap::new(),
            classes: Vec::new(),
            closed: BTreeMap::new(),
            state,
            now,
        }
    }

    /// The class of a job, made when first met.
    fn class(&mut self, spec: &'a JobSpec) -> usize {
        let shape = match Shape::of(spec, &self.state.topology) {
            Ok(shape) => shape,
            Err(UnknownLevel(level)) => {
                let names = level.map_or_else(String::new, |level| level.to_string());
                let blocker = Blocker::Misconfigured {
                    field: "topology.level".into(),
                    names,
                };
                return self.add_class(Class::impossible(spec, blocker));
            }
        };
        let key = ClassKey {
            team: &spec.team,
            flavours: &spec.flavours,
            pool: pool_of(spec.kind),
            shape,
        };
        if let Some(&class) = self.class_index.get(&key) {
            return class;
        }
        let class = self.describe(spec, shape);
        let class = self.add_class(class);
        self.class_index.insert(key, class);
        class
    }

    fn add_class(&mut self, class: Class<'a>) -> usize {
        self.classes.push(class);
        self.classes.len() - 1
    }

    fn describe(&mut self, spec: &'a JobSpec, shape: Shape) -> Class<'a> {
        let Some(team) = self.tree.team(&spec.team) else {
            let names = spec.team.to_string();
            return Class::impossible(
                spec,
                Blocker::Misconfigured {
                    field: "team".into(),
                    names,
                },
            );
        };
        let pool = pool_of(spec.kind);
        let gpus = spec.gpus();
        let mut offers = Vec::new();
        if gpus == MilliGpu::ZERO {
            offers.push(Offer {
                flavour: None,
                spot: self.spot(
                    YardKey {
                        pool,
                        flavour: None,
                    },
                    shape,
                ),
            });
        } else {
            let known = spec
                .flavours
                .iter()
                .filter_map(|id| Some((id, self.tree.flavour(id)?)));
            let known: Vec<_> = known.collect();
            if let (true, Some(names)) = (known.is_empty(), spec.flavours.first()) {
                let names = names.to_string();
                return Class::impossible(
                    spec,
                    Blocker::Misconfigured {
                        field: "flavours".into(),
                        names,
                    },
                );
            }
            let quotas = self.state.teams.get(&spec.team).map(|team| &team.quotas);
            for (id, index) in known {
                if quotas.is_some_and(|quotas| quotas.contains_key(id)) {
                    let spot = self.spot(
                        YardKey {
                            pool,
                            flavour: Some(id),
                        },
                        shape,
                    );
                    offers.push(Offer {
                        flavour: Some((id, index)),
                        spot,
                    });
                }
            }
            if offers.is_empty() {
                return Class::impossible(
                    spec,
                    Blocker::NoMatchingFlavour {
                        team: spec.team.clone(),
                    },
                );
            }
        }
        let mut class = Class {
            team: Some(team),
            gpus,
            offers,
            never: Vec::new(),
            spent: false,
        };
        class.never = never(self, spec, &mut class.offers);
        class
    }

    fn spot(&mut self, key: YardKey<'a>, shape: Shape) -> usize {
        let yard = *self.yard_index.entry(key).or_insert_with(|| {
            self.yards.push(Yard::of(self.state, key));
            self.yards.len() - 1
        });
        *self.spot_index.entry((yard, shape)).or_insert_with(|| {
            self.spots.push(Spot {
                yard,
                shape,
                full: false,
                could: None,
                told: None,
                flavour: key.flavour,
            });
            self.spots.len() - 1
        })
    }

    /// Starts a job if it can: charges its quota and takes its room. If it cannot, it may close its flavour.
    fn start(&mut self, job: &Candidate, class: usize, rank: usize) -> Option<Placement> {
        if !self.classes[class].never.is_empty() || job.backs_off(self.now).is_some() {
            return None;
        }
        let team = self.classes[class].team?;
        if !self.classes[class].spent {
            for offer in self.offers_in_order(class, team) {
                if let Some(placement) = self.try_offer(class, team, offer) {
                    return Some(placement);
                }
            }
            self.classes[class].spent = true;
        }
        if self.now.since(job.submitted) >= self.state.policy.reserve_after {
            self.reserve(job.id, class, team, rank);
        }
        None
    }

    /// Offers inside nominal first, then those that borrow; each in order of preference.
    fn offers_in_order(&self, class: usize, team: usize) -> Vec<usize> {
        let class = &self.classes[class];
        let borrows = |offer: &usize| match class.offers[*offer].flavour {
            Some((_, flavour)) => !self.tree.inside_nominal(team, flavour, class.gpus),
            None => false,
        };
        let mut order: Vec<usize> = (0..class.offers.len()).collect();
        order.sort_by_key(borrows);
        order
    }

    fn try_offer(&mut self, class: usize, team: usize, offer: usize) -> Option<Placement> {
        let gpus = self.classes[class].gpus;
        let Offer { flavour, spot } = self.classes[class].offers[offer];
        let Spot {
            yard, shape, full, ..
        } = self.spots[spot];
        if full || !self.has_quota(team, flavour, gpus) || self.is_closed(flavour) {
            return None;
        }
        let yard = &self.yards[yard];
        let Ok(found) = seek(yard, &self.room, &shape) else {
            self.spots[spot].full = true;
            return None;
        };
        let pods = take(yard, &mut self.room, &shape, &found);
        let within = within(yard, &self.state.topology, &found);
        if let Some((_, flavour)) = flavour {
            self.tree.charge(team, flavour, gpus);
        }
        Some(Placement {
            flavour: flavour.map(|(id, _)| id.clone()),
            pods,
            within,
        })
    }

    fn has_quota(&self, team: usize, flavour: Option<(&FlavourId, usize)>, gpus: MilliGpu) -> bool {
        flavour.is_none_or(|(_, flavour)| gpus <= self.tree.available(team, flavour))
    }

    fn is_closed(&self, flavour: Option<(&FlavourId, usize)>) -> bool {
        flavour.is_some_and(|(_, flavour)| self.closed.contains_key(&flavour))
    }

    /// Closes the first flavour in which the job lacks nothing but room.
    fn reserve(&mut self, job: JobId, class: usize, team: usize, rank: usize) {
        for offer in self.offers_in_order(class, team) {
            let Offer { flavour, spot } = self.classes[class].offers[offer];
            let Some((_, index)) = flavour else { continue };
            let lacks_room_only =
                self.has_quota(team, flavour, self.classes[class].gpus) && !self.is_closed(flavour);
            if lacks_room_only && self.could_hold(spot) {
                self.closed.insert(index, (rank, job));
                return;
            }
        }
    }

    /// True when the healthy hardware could hold the shape if nothing else ran.
    fn could_hold(&mut self, spot: usize) -> bool {
        if let Some(could) = self.spots[spot].could {
            return could;
        }
        let healthy = self
            .healthy
            .get_or_insert_with(|| Room::of(self.state, View::HealthyEmpty));
        let Spot { yard, shape, .. } = self.spots[spot];
        let could = seek(&self.yards[yard], healthy, &shape).is_ok();
        self.spots[spot].could = Some(could);
        could
    }

    /// What a spot lacks now; `None` = it has room.
    pub(crate) fn lacks(&self, spot: usize) -> Option<Blocker> {
        let Spot {
            yard,
            shape,
            flavour,
            ..
        } = &self.spots[spot];
        let yard = &self.yards[*yard];
        if seek(yard, &self.room, shape).is_ok() {
            return None;
        }
        let short = shortage(yard, &self.room.count(yard, &shape.ask), shape);
        Some(Blocker::Room {
            flavour: flavour.cloned().unwrap_or_else(|| FlavourId::from("cpu")),
            level: short
                .level
                .and_then(|level| self.state.topology.levels.get(level))
                .cloned(),
            asks_pods: short.asks_pods,
            best_pods: short.best_pods,
            best_domain: short.best_domain.cloned(),
            segments: short.segments,
        })
    }
}

impl Class<'_> {
    fn impossible(spec: &JobSpec, blocker: Blocker) -> Self {
        Self {
            team: None,
            gpus: spec.gpus(),
            offers: Vec::new(),
            never: vec![blocker],
            spent: false,
        }
    }
}
