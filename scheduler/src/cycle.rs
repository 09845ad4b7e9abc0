//! The scratch of one cycle: quota and room as integers, and every question asked once.
//!
//! Jobs of one team that ask for the same are one [`Class`]; shapes sought in the same nodes are one [`Spot`].

use crate::count::Counted;
use crate::explain::Lacks;
use crate::maximum::{Hardware, never, of_shape};
use crate::place::{Shape, Shortage, UnknownLevel, seek, take, within};
use crate::plan::Candidate;
use crate::quota::QuotaTree;
use crate::reserve::{Closed, Reservations, Wanting};
use crate::room::{Room, View, Yard, YardKey, pool_of};
use crate::{Blocker, FlavourId, JobId, JobSpec, MilliGpu, Millis, Placement, Pool, State, TeamId};
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, DefaultHasher};

/// A shape in a yard: where room for it is sought, once.
pub(crate) struct Spot<'a> {
    pub yard: usize,
    pub shape: Shape,
    /// How many pods fit where; kept up with what is taken.
    counted: Option<Counted>,
    /// No room was found in this cycle.
    full: bool,
    /// The healthy hardware could hold it; judged when first asked.
    could: Option<bool>,
    /// Why the empty hardware could not hold it; told with all that it exceeds.
    pub exceeds: Option<Blocker>,
    /// What it lacks at the end of the cycle; judged when first asked.
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
    /// What each offer lacks at the end of the cycle: quota and room; judged when first asked.
    pub told: Option<Vec<Lacks>>,
}

/// What makes two jobs the same.
#[derive(PartialEq, Eq, Hash)]
struct ClassKey<'a> {
    shape: Shape,
    pool: Pool,
    team: &'a TeamId,
    flavours: &'a [FlavourId],
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
    /// Only looked up, never walked: its order reaches nothing.
    class_index: HashMap<ClassKey<'a>, usize, BuildHasherDefault<DefaultHasher>>,
    pub classes: Vec<Class<'a>>,
    reservations: Reservations,
}

impl<'a> Cycle<'a> {
    /// For one cycle at `now`.
    pub(crate) fn of(state: &'a State, now: Millis) -> Self {
        Self {
            tree: QuotaTree::of(state),
            hardware: Hardware::of(state),
            room: Room::of(state, View::Now),
            healthy: None,
            yard_index: BTreeMap::new(),
            yards: Vec::new(),
            spot_index: BTreeMap::new(),
            spots: Vec::new(),
            class_index: HashMap::default(),
            classes: Vec::new(),
            reservations: Reservations::default(),
            state,
            now,
        }
    }

    /// The class of a job, made when first met.
    pub(crate) fn class(&mut self, spec: &'a JobSpec) -> usize {
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
            told: None,
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
            let of_yard = &self.yards[yard];
            let exceeds = of_shape(&self.hardware, of_yard, &shape, &self.state.topology);
            self.spots.push(Spot {
                yard,
                shape,
                counted: None,
                full: false,
                could: None,
                exceeds,
                told: None,
                flavour: key.flavour,
            });
            self.spots.len() - 1
        })
    }

    /// Starts a job if it can: charges its quota and takes its room. If it cannot, it may close its flavour.
    pub(crate) fn start(
        &mut self,
        job: &Candidate,
        class: usize,
        rank: usize,
    ) -> Option<Placement> {
        if !self.classes[class].never.is_empty() || job.backs_off(self.now).is_some() {
            return None;
        }
        if !self.classes[class].spent {
            for offer in self.offers_in_order(class) {
                if let Some(placement) = self.try_offer(class, offer, rank) {
                    return Some(placement);
                }
            }
            self.classes[class].spent = true;
        }
        if self.now.since(job.submitted) >= self.state.policy.reserve_after {
            self.reserve(job.id, class, rank);
        }
        None
    }

    /// Offers inside nominal first, then those that borrow; each in order of preference.
    fn offers_in_order(&self, class: usize) -> Vec<usize> {
        let borrows = |offer: &usize| {
            let wanting = self.wanting(class, *offer, 0);
            wanting.is_some_and(
                |Wanting {
                     team,
                     flavour,
                     gpus,
                     ..
                 }| !self.tree.inside_nominal(team, flavour, gpus),
            )
        };
        let mut order: Vec<usize> = (0..self.classes[class].offers.len()).collect();
        order.sort_by_key(borrows);
        order
    }

    /// A job of a class that wants an offer; `None` if the offer has no flavour to want.
    fn wanting(&self, class: usize, offer: usize, rank: usize) -> Option<Wanting> {
        let class = &self.classes[class];
        let ((_, flavour), team) = (class.offers[offer].flavour?, class.team?);
        Some(Wanting {
            rank,
            team,
            flavour,
            gpus: class.gpus,
        })
    }

    /// The job that another one must not pass, should it want this offer.
    pub(crate) fn ahead_of(&self, class: usize, offer: usize, rank: usize) -> Option<JobId> {
        self.reservations
            .ahead_of(self.wanting(class, offer, rank)?, &self.tree)
    }

    fn try_offer(&mut self, class: usize, offer: usize, rank: usize) -> Option<Placement> {
        let Offer { flavour, spot, .. } = self.classes[class].offers[offer];
        let wanting = self.wanting(class, offer, rank);
        let may = wanting.is_none_or(|wanting| self.has_quota(wanting))
            && self.ahead_of(class, offer, rank).is_none();
        if self.spots[spot].full || !may {
            return None;
        }
        let Ok(found) = self.find(spot) else {
            self.spots[spot].full = true;
            return None;
        };
        let Spot { yard, shape, .. } = self.spots[spot];
        let yard = &self.yards[yard];
        let pods = take(yard, &mut self.room, &shape, &found);
        let within = within(yard, &self.state.topology, &found);
        if let Some(Wanting {
            team,
            flavour,
            gpus,
            ..
        }) = wanting
        {
            self.tree.charge(team, flavour, gpus);
        }
        Some(Placement {
            flavour: flavour.map(|(id, _)| id.clone()),
            pods,
            within,
        })
    }

    fn has_quota(
        &self,
        Wanting {
            team,
            flavour,
            gpus,
            ..
        }: Wanting,
    ) -> bool {
        gpus <= self.tree.available(team, flavour)
    }

    /// Closes the first flavour in which the job lacks nothing but room; if there is none, the first in which it lacks
    /// quota that is its team's own.
    fn reserve(&mut self, job: JobId, class: usize, rank: usize) {
        let mut own = None;
        for offer in self.offers_in_order(class) {
            let Some(wanting) = self.wanting(class, offer, rank) else {
                continue;
            };
            let spot = self.classes[class].offers[offer].spot;
            if self.ahead_of(class, offer, rank).is_some() || !self.could_hold(spot) {
                continue;
            }
            let Wanting {
                team,
                flavour,
                gpus,
                ..
            } = wanting;
            if self.has_quota(wanting) {
                self.reservations.close(job, wanting, Closed::All);
                return;
            }
            if own.is_none() && self.tree.owns(team, flavour, gpus) {
                own = Some(wanting);
            }
        }
        if let Some(wanting) = own {
            let Wanting {
                team: of,
                flavour,
                gpus,
                ..
            } = wanting;
            let lent = self.tree.inside_nominal(of, flavour, gpus);
            let to = if lent {
                Closed::Borrowers { of }
            } else {
                Closed::Team { of }
            };
            self.reservations.close(job, wanting, to);
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
        let yard = &self.yards[yard];
        let could = seek(yard, &Counted::of(healthy, yard, &shape.ask), &shape).is_ok();
        self.spots[spot].could = Some(could);
        could
    }

    /// Room for a spot as things stand, or what is missing.
    pub(crate) fn find(&mut self, spot: usize) -> Result<Vec<(usize, u32)>, Shortage<'a>> {
        let Spot {
            yard,
            shape,
            counted,
            ..
        } = &mut self.spots[spot];
        let yard = &self.yards[*yard];
        match counted {
            Some(counted) => {
                counted.catch_up(&self.room, yard, &shape.ask);
                seek(yard, counted, shape)
            }
            None => seek(
                yard,
                counted.insert(Counted::of(&self.room, yard, &shape.ask)),
                shape,
            ),
        }
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
            told: None,
        }
    }
}
