//! The scratch of one cycle: quota and room as integers, and every question asked once.
//!
//! Jobs of one team that ask for the same are one [`Class`]; shapes sought in the same nodes are one [`Spot`].

use crate::backfill::{Backfill, Charge};
use crate::count::Counted;
use crate::explain::Lacks;
use crate::hold::TeamHolds;
use crate::limit::Running;
use crate::line::{Candidate, ClassKey, Index};
use crate::maximum::{Hardware, never, of_shape};
use crate::place::{Shape, Shortage, UnknownLevel, seek, within};
use crate::quota::QuotaTree;
use crate::room::{Room, View, Yard, YardKey, pool_of};
use crate::{Blocker, FlavourId, JobId, JobSpec, MilliGpu, Millis, Placement, State};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A shape in a yard: where room for it is sought, once.
pub(crate) struct Spot<'a> {
    pub yard: usize,
    pub shape: Shape,
    /// How many pods fit where; kept up with what is taken.
    counted: Option<Counted>,
    /// No room was found in this cycle.
    full: bool,
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
    /// The longest that it may still run; `None` = no limit.
    pub span: Option<Millis>,
    /// What is not preemptible runs inside nominal only: nobody could give back what it borrows.
    pub preemptible: bool,
    pub offers: Vec<Offer<'a>>,
    /// Why these can never run.
    pub never: Vec<Blocker>,
    /// Could not start in this cycle; so no other one can.
    spent: bool,
    /// What each offer lacks at the end of the cycle: quota and room; judged when first asked.
    pub told: Option<Vec<Lacks>>,
}

/// Whether what planned starts hold counts as taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    Ignored,
    KeptOff,
}

/// The scratch of one cycle. The state itself is only read.
pub(crate) struct Cycle<'a> {
    pub state: &'a State,
    pub now: Millis,
    pub tree: QuotaTree<'a>,
    pub hardware: Hardware<'a>,
    pub team_holds: TeamHolds<'a>,
    pub running: Running<'a>,
    pub room: Room,
    yard_index: BTreeMap<YardKey<'a>, usize>,
    pub yards: Vec<Yard<'a>>,
    spot_index: BTreeMap<(usize, Shape), usize>,
    pub spots: Vec<Spot<'a>>,
    class_index: Index<ClassKey<'a>>,
    pub classes: Vec<Class<'a>>,
    pub backfill: Backfill<'a>,
    /// Jobs that have waited over `reserve_after`, the oldest ones.
    waited: Vec<JobId>,
    /// Those that could not start since planned starts were last made, with class and rank, in order.
    passed_over: Vec<(JobId, usize, usize)>,
    /// Planned starts of this pass by the order alone.
    first: u32,
    /// What this cycle has placed or holds, besides what runs.
    pub placed: Vec<(&'a JobSpec, Arc<Placement>)>,
}

impl<'a> Cycle<'a> {
    /// For one cycle at `now`.
    pub(crate) fn of(state: &'a State, now: Millis) -> Self {
        Self {
            tree: QuotaTree::of(state),
            hardware: Hardware::of(state),
            team_holds: TeamHolds::of(state),
            running: Running::of(state),
            room: Room::of(state, View::Now),
            yard_index: BTreeMap::new(),
            yards: Vec::new(),
            spot_index: BTreeMap::new(),
            spots: Vec::new(),
            class_index: Index::default(),
            classes: Vec::new(),
            backfill: Backfill::default(),
            waited: Vec::new(),
            passed_over: Vec::new(),
            first: 0,
            placed: Vec::new(),
            state,
            now,
        }
    }

    /// Finds the oldest of those left that have waited too long and might run some day.
    fn find_waited(&mut self, jobs: &[Candidate], classes: &[usize], left: &[usize]) {
        let most = self.state.policy.reservations as usize;
        let too_long = |index: &usize| {
            let job = &jobs[*index];
            self.now.since(job.submitted) >= self.state.policy.reserve_after
                && !job.stands_aside(self.now)
                && self.classes[classes[*index]].never.is_empty()
        };
        let waited = left.iter().filter(|index| too_long(index));
        let mut waited: Vec<_> = waited
            .map(|&index| (jobs[index].submitted, jobs[index].id))
            .collect();
        if waited.len() > most {
            waited.select_nth_unstable(most);
            waited.truncate(most);
        }
        self.waited = waited.into_iter().map(|(_, job)| job).collect();
    }

    /// Those left are gone through once more: reservations are made anew, and who has started waits no longer.
    pub(crate) fn begin_pass(&mut self, jobs: &[Candidate], classes: &[usize], left: &[usize]) {
        self.find_waited(jobs, classes, left);
        self.backfill.begin_pass();
        self.passed_over.clear();
        self.first = 0;
        self.classes
            .iter_mut()
            .for_each(|class| class.spent = false);
    }

    /// The class of a job that runs for `span` at most, made when first met. An elastic one waits for its fewest pods.
    pub(crate) fn class(&mut self, spec: &'a JobSpec, span: Option<Millis>) -> usize {
        self.class_of(spec, spec.least_pods(), span)
    }

    /// The class of so many pods of a job.
    fn class_of(&mut self, spec: &'a JobSpec, pods: u32, span: Option<Millis>) -> usize {
        let key = match ClassKey::of(spec, pods, span, &self.state.topology) {
            Ok(key) => key,
            Err(UnknownLevel(level)) => {
                let names = level.map_or_else(String::new, |level| level.to_string());
                let blocker = Blocker::Misconfigured {
                    field: "topology.level".into(),
                    names,
                };
                return self.add_class(Class::impossible(spec, blocker));
            }
        };
        if let Some(&class) = self.class_index.get(&key) {
            return class;
        }
        let class = Class {
            span,
            ..self.describe(spec, key.shape)
        };
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
        let gpus = spec.gpus_of(shape.pods);
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
            span: None,
            preemptible: spec.preemptible,
            offers,
            never: Vec::new(),
            spent: false,
            told: None,
        };
        class.never = never(self, spec, gpus, &mut class.offers);
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
                exceeds,
                told: None,
                flavour: key.flavour,
            });
            self.spots.len() - 1
        })
    }

    /// Starts a job if it can: charges its quota and takes its room. If it cannot, it may get a planned start.
    pub(crate) fn start(
        &mut self,
        job: &Candidate<'a>,
        class: usize,
        rank: usize,
    ) -> Option<Arc<Placement>> {
        if !self.classes[class].never.is_empty() || job.stands_aside(self.now) {
            return None;
        }
        // Nothing is planned for it either: its limit is not known to end with anybody's time.
        let least = job.spec.least_gpus();
        if !(self.running.passed(job.spec, least, job.owner)).is_empty() {
            return None;
        }
        if !self.classes[class].spent {
            let placement = self
                .start_larger(job, class)
                .or_else(|| self.try_offers(class));
            if let Some(placement) = placement {
                let gpus = job.spec.gpus_of(placement.pods.len() as u32);
                self.running.start(job.spec, gpus, job.owner);
                return Some(placement);
            }
            self.classes[class].spent = true;
        }
        if self.first < self.state.policy.reservations || self.waited.contains(&job.id) {
            self.passed_over.push((job.id, class, rank));
        }
        None
    }

    /// Plans the starts of those that were passed over so far: needed when somebody behind them could start now, or when
    /// all is told. Nothing has started since their turn, so it is as if they had been planned then.
    pub(crate) fn plan_passed_over(&mut self) {
        for (job, class, rank) in std::mem::take(&mut self.passed_over) {
            if self.first < self.state.policy.reservations {
                self.first += u32::from(self.reserve(job, class, rank));
            } else if self.waited.contains(&job) {
                self.reserve(job, class, rank);
            }
        }
    }

    /// Offers by borrowing height, each height in order of preference: a second flavour inside nominal is preferred to
    /// borrowing in the first.
    pub(crate) fn offers_in_order(&self, class: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.classes[class].offers.len()).collect();
        order.sort_by_cached_key(|&offer| self.height(class, offer));
        order
    }

    /// The borrowing height of an offer: 0 inside the team's nominal.
    fn height(&self, class: usize, offer: usize) -> u32 {
        let Class {
            team, gpus, offers, ..
        } = &self.classes[class];
        match (team, offers[offer].flavour) {
            (Some(team), Some((_, flavour))) => self.tree.height(*team, flavour, *gpus),
            (_, None) | (None, _) => 0,
        }
    }

    /// The flavour and GPUs of a class's lowest offer, and its borrowing height.
    pub(crate) fn lowest_offer(&self, class: usize) -> (Option<(usize, MilliGpu)>, u32) {
        let of_class = &self.classes[class];
        let offers = (0..of_class.offers.len()).map(|offer| (self.height(class, offer), offer));
        let Some((height, offer)) = offers.min() else {
            return (None, 0);
        };
        let flavour = of_class.offers[offer].flavour;
        (flavour.map(|(_, flavour)| (flavour, of_class.gpus)), height)
    }

    /// What classes have in common that seek the same victims: all but how long they run.
    pub(crate) fn sought_alike(&self, class: usize) -> (Option<usize>, bool, Vec<usize>) {
        let class = &self.classes[class];
        let spots = class.offers.iter().map(|offer| offer.spot);
        (class.team, class.preemptible, spots.collect())
    }

    /// What a job of a class is charged for an offer; `None` if the offer has no flavour.
    pub(crate) fn charge_of(&self, class: usize, offer: usize) -> Option<Charge> {
        let class = &self.classes[class];
        let ((_, flavour), team) = (class.offers[offer].flavour?, class.team?);
        Some(Charge {
            team,
            flavour,
            gpus: class.gpus,
        })
    }

    fn try_offers(&mut self, class: usize) -> Option<Arc<Placement>> {
        let offers = self.offers_in_order(class).into_iter();
        offers
            .into_iter()
            .find_map(|offer| self.try_offer(class, offer))
    }

    /// Starts an elastic job with as many pods as fit, if those are more than its fewest: `class` is the class of these.
    ///
    /// What has room for more pods has room for fewer, so the most is found by halving.
    fn start_larger(&mut self, job: &Candidate<'a>, class: usize) -> Option<Arc<Placement>> {
        let (spec, step) = (job.spec, job.spec.step_pods());
        let least = spec.least_pods();
        if least >= spec.pods || !self.has_all(class, Held::Ignored) {
            return None;
        }
        self.plan_passed_over();
        let (mut fits, mut too_many) = (0, (spec.pods - least) / step + 1);
        while fits + 1 < too_many {
            let half = fits.midpoint(too_many);
            let pods = least + half * step;
            let larger = self.class_of(spec, pods, job.span);
            let gpus = spec.gpus_of(pods);
            let may = self.running.passed(spec, gpus, job.owner).is_empty();
            match may && self.has_all(larger, Held::KeptOff) {
                true => fits = half,
                false => too_many = half,
            }
        }
        if fits == 0 {
            return None;
        }
        let larger = self.class_of(spec, least + fits * step, job.span);
        self.try_offers(larger)
    }

    /// Quota and room are there in one of a class's flavours.
    fn has_all(&mut self, class: usize, held: Held) -> bool {
        let span = self.classes[class].span;
        self.classes[class].never.is_empty()
            && (0..self.classes[class].offers.len()).any(|offer| {
                let spot = self.classes[class].offers[offer].spot;
                let charge = self.charge_of(class, offer);
                let keeps_off = |cycle: &mut Self| {
                    cycle.quota_held(class, offer).is_none() && cycle.is_off_held(spot, span)
                };
                charge.is_none_or(|charge| self.has_quota(class, charge))
                    && !self.spots[spot].full
                    && self.find(spot).is_ok()
                    && (held == Held::Ignored || keeps_off(self))
            })
    }

    fn try_offer(&mut self, class: usize, offer: usize) -> Option<Arc<Placement>> {
        let Offer { flavour, spot, .. } = self.classes[class].offers[offer];
        let (charge, span) = (self.charge_of(class, offer), self.classes[class].span);
        let has_quota = charge.is_none_or(|charge| self.has_quota(class, charge));
        if self.spots[spot].full || !has_quota {
            return None;
        }
        if self.find(spot).is_err() {
            self.spots[spot].full = true;
            return None;
        }
        self.plan_passed_over();
        if self.quota_held(class, offer).is_some() {
            return None;
        }
        let (found, pods) = self.take_off_held(spot, span)?;
        let Spot { yard, shape, .. } = self.spots[spot];
        let within = within(&self.yards[yard], &self.state.topology, &found);
        if let Some(Charge {
            team,
            flavour,
            gpus,
        }) = charge
        {
            self.tree.charge(team, flavour, gpus);
        }
        let placement = Arc::new(Placement {
            flavour: flavour.map(|(id, _)| id.clone()),
            pods,
            within,
        });
        self.note_start(charge, shape.ask, span, &placement);
        Some(placement)
    }

    pub(crate) fn has_quota(&self, class: usize, charge: Charge) -> bool {
        charge.gpus <= self.left(class, charge.team, charge.flavour)
    }

    /// What a class may still be charged.
    pub(crate) fn left(&self, class: usize, team: usize, flavour: usize) -> MilliGpu {
        let available = self.tree.available(team, flavour);
        if self.classes[class].preemptible {
            available
        } else {
            available.min(self.tree.own_left(team, flavour))
        }
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
            gpus: spec.least_gpus(),
            span: None,
            preemptible: spec.preemptible,
            offers: Vec::new(),
            never: vec![blocker],
            spent: false,
            told: None,
        }
    }
}
