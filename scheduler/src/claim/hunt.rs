//! Where, then whom.
//!
//! What is free, and what is soon free without anybody being taken, counts as room; the rest has to come from victims.
//! For each domain that could hold the request if all that may be taken were gone, a set is sought that makes room there and
//! frees quota enough; the cheapest of these sets is taken: the lowest band, then the least loss, then the fewest jobs,
//! the newest, the ids. Then everybody is given back without whom it still does. Scattered evictions that free no usable
//! shape are none: without a domain there is no claim.
//!
//! On a small field all sets are tried. On a large one a set grows pod by pod: the next pod's room is made where it costs
//! the least for each pod gained, a gang on several nodes counting once.

use super::ground::Ground;
use super::loss::{Loss, together};
use super::prey::{Claimant, Cut, Grounds, Herd, Prey, Right, Verdict, is_closed, with_above};
use super::taken::{Leaving, Named, Taken, is_named, taken};
use crate::count::Counted;
use crate::cycle::Cycle;
use crate::place::{Shape, Target, seek, take, within};
use crate::quota::QuotaTree;
use crate::room::{Free, Room, View, Yard};
use crate::{Job, JobId, JobSpec, MilliGpu, MilliGpuMs, Name, Placement, PodPlace, WithinTeam};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

/// Sets x nodes that are tried one by one, at most; beyond that a set grows.
const TRIED: usize = 100_000;
/// Other sets that are told.
const ALTERNATIVES: usize = 3;

/// The scratch of all claims of one cycle: room and quota as they will be once all that leaves is gone.
pub(crate) struct Hunt<'a> {
    room: Room,
    tree: QuotaTree<'a>,
    /// Those that leave without being taken here, or the pods of a gang that do.
    leaving: Vec<Leaving<'a>>,
    /// By flavour.
    herds: BTreeMap<(usize, Cut), Herd<'a>>,
    /// By spot: what fits where in the room as it is here.
    counted: BTreeMap<usize, Counted>,
    taken: BTreeSet<JobId>,
}

/// Victims for a claimant, and where it will lie.
pub(crate) struct Found<'a> {
    pub right: Right,
    /// True when nobody of another team is taken.
    pub own_team: bool,
    pub team: usize,
    pub flavour: usize,
    pub spec: &'a JobSpec,
    pub placement: Arc<Placement>,
    pub all: Rc<Vec<Prey<'a>>>,
    pub victims: Vec<usize>,
    pub awaits: Vec<JobId>,
    pub alternatives: Vec<Other<'a>>,
}

impl<'a> Found<'a> {
    /// Who is taken, in order of job number.
    pub(crate) fn taken(&self) -> Vec<Taken<'a>> {
        taken(&self.all, &self.victims)
    }

    /// What is taken of all of them.
    pub(crate) fn gpus(&self) -> MilliGpu {
        let victims = self.victims.iter();
        victims.map(|&index| self.all[index].gpus).sum()
    }
}

/// Another set that would do.
pub(crate) struct Other<'a> {
    pub domain: Option<&'a Name>,
    pub victims: Vec<JobId>,
    pub lost: MilliGpuMs,
}

/// A domain: its level, and its place in it.
type Domain = (usize, usize);
/// Where a gang lies: places of nodes in the yard, with their pods.
type Lies = Vec<(usize, u32)>;
/// Whether a claimant borrows, and the depth of the level that it stays inside of: the smaller goes first.
pub(crate) type Reach = (bool, Reverse<Option<usize>>);
/// What sets are compared by.
type Cost = (u8, MilliGpuMs, usize, Reverse<Vec<u64>>);

impl<'a> Hunt<'a> {
    /// After the starts of a cycle.
    pub(crate) fn of(cycle: &mut Cycle<'a>) -> Self {
        let (mut room, mut tree) = (Room::of(cycle.state, View::Now), cycle.tree.clone());
        let leaving = Leaving::all(cycle);
        for Leaving {
            job,
            placement,
            charged,
        } in &leaving
        {
            room.put(&job.spec, placement);
            let flavour = placement.flavour.as_ref();
            let flavour = flavour.and_then(|flavour| tree.flavour(flavour));
            if let (Some(gpus), Some(team), Some(flavour)) =
                (*charged, tree.team(&job.spec.team), flavour)
            {
                tree.give_back(team, flavour, gpus);
            }
        }
        for (spec, placement) in &cycle.placed {
            room.hold(spec, placement);
        }
        Self {
            room,
            tree,
            leaving,
            herds: BTreeMap::new(),
            counted: BTreeMap::new(),
            taken: BTreeSet::new(),
        }
    }

    /// How far a class's nearest offer reaches, for the order of claims: inside nominal first, then inside the deepest level,
    /// as one that lies in another has the right to what is borrowed from it. Inside none comes last.
    pub(crate) fn reach(&self, cycle: &Cycle, class: usize) -> Reach {
        let class = &cycle.classes[class];
        let flavours = class.offers.iter().filter_map(|offer| offer.flavour);
        let levels = flavours
            .filter_map(|(_, flavour)| self.tree.level_inside(class.team?, flavour, class.gpus));
        let reaches = levels.map(|(height, level)| match height {
            0 => (false, Reverse(None)),
            _ => (true, Reverse(Some(self.tree.depth(level)))),
        });
        reaches.min().unwrap_or((true, Reverse(None)))
    }

    /// Seeks again for a claim: among these jobs only, if any are named, and no more of each than leaves it so many pods.
    pub(crate) fn again(
        &mut self,
        cycle: &mut Cycle<'a>,
        claimant: JobId,
        only: Option<&Named>,
    ) -> Option<Found<'a>> {
        let job = cycle.state.jobs.get(&claimant)?;
        let limit = job.spec.time_limit;
        let class = cycle.class(&job.spec, limit.map(|limit| limit.since(job.ran)));
        self.seek(cycle, job, class, only)
    }

    /// Victims for a job of a class: the first offer for which there are any.
    pub(crate) fn seek(
        &mut self,
        cycle: &mut Cycle<'a>,
        job: &'a Job,
        class: usize,
        only: Option<&Named>,
    ) -> Option<Found<'a>> {
        if !cycle.classes[class].never.is_empty() {
            return None;
        }
        let offers = cycle.offers_in_order(class).into_iter();
        let mut tries = offers.flat_map(|offer| Cut::IN_ORDER.map(|cut| (offer, cut)));
        tries.find_map(|(offer, cut)| self.seek_in(cycle, job, (class, offer), cut, only))
    }

    /// The same in one of the class's flavours, of those that are offered so.
    fn seek_in(
        &mut self,
        cycle: &mut Cycle<'a>,
        job: &'a Job,
        (class, offer): (usize, usize),
        cut: Cut,
        only: Option<&Named>,
    ) -> Option<Found<'a>> {
        let spot = cycle.classes[class].offers[offer].spot;
        let (id, flavour) = cycle.classes[class].offers[offer].flavour?;
        let team = cycle.classes[class].team?;
        let claimant = self.claimant(cycle, job, team, flavour);
        let herd = self.herds.entry((flavour, cut));
        let herd = herd.or_insert_with(|| Herd::of(cycle, id, cut));
        if herd.all.is_empty() {
            return None;
        }
        let (all, taken) = (Rc::clone(&herd.all), &self.taken);
        let mut eligible = Grounds::of(&claimant, &mut self.tree).eligible(herd);
        eligible.retain(|&index| {
            let prey = &all[index];
            only.is_none_or(|only| is_named(prey, only)) && !taken.contains(&prey.id)
        });
        if eligible.is_empty() || !self.could_be_enough(&claimant, &all, &eligible) {
            return None;
        }
        let (yard, shape) = (
            &cycle.yards[cycle.spots[spot].yard],
            cycle.spots[spot].shape,
        );
        let mut field = Field {
            yard,
            shape,
            claimant,
            all: &all,
            now: &cycle.room,
            counted: (self.counted.entry(spot))
                .or_insert_with(|| Counted::of(&self.room, yard, &shape.ask)),
            room: &mut self.room,
            tree: &mut self.tree,
        };
        let (victims, alternatives) = field.best(&eligible)?;
        let (pods, lies) = field.lay(&victims)?;
        let placement = Arc::new(Placement {
            flavour: Some(id.clone()),
            pods,
            within: within(yard, &cycle.state.topology, &lies),
        });
        let awaits = self.awaits(cycle, &claimant, (&job.spec, &placement), &all, &victims);
        Some(Found {
            right: claimant.right,
            own_team: victims.iter().all(|&index| all[index].team == team),
            team,
            flavour,
            spec: &job.spec,
            placement,
            all,
            victims,
            awaits,
            alternatives,
        })
    }

    /// False when even all of them together would not free quota enough: nothing more is sought then.
    fn could_be_enough(&mut self, claimant: &Claimant, all: &[Prey], eligible: &[usize]) -> bool {
        let tree = &mut self.tree;
        let prey = || eligible.iter().map(|&index| &all[index]);
        prey().for_each(|prey| tree.give_back(prey.team, claimant.flavour, prey.gpus));
        let enough = claimant.left(tree) >= claimant.gpus;
        prey().for_each(|prey| tree.charge(prey.team, claimant.flavour, prey.gpus));
        enough
    }

    fn claimant(&self, cycle: &Cycle, job: &Job, team: usize, flavour: usize) -> Claimant {
        let (gpus, policy) = (job.spec.least_gpus(), &cycle.state.policy);
        let preemptible = job.spec.preemptible;
        let level = self.tree.level_inside(team, flavour, gpus);
        // Inside a whole tree everybody is inside: what is short there is short by borrowing. What is not preemptible owns
        // its team's nominal and nothing beyond: it may not borrow from a level, so it could not start on what it took.
        let owns = level
            .filter(|&(height, node)| height == 0 || (preemptible && self.tree.root(node) != node));
        let short = self.tree.available(team, flavour) < gpus;
        let right = match owns {
            Some((height, level)) if policy.owner_reclaim => Right::Level(level, height),
            Some(_) => Right::OwnTeam,
            None if policy.fair_reclaim && short && preemptible => Right::Share,
            None => Right::OwnTeam,
        };
        Claimant {
            job: job.id,
            team,
            flavour,
            gpus,
            priority: job.spec.priority,
            right,
            preemptible,
            takes_juniors: policy.within_team == WithinTeam::LowerPriority,
        }
    }

    /// Those on their way out whose room or quota the claimant needs.
    fn awaits(
        &self,
        cycle: &Cycle,
        claimant: &Claimant,
        (spec, placement): (&JobSpec, &Placement),
        all: &[Prey],
        victims: &[usize],
    ) -> Vec<JobId> {
        let mut tree = cycle.tree.clone();
        for &index in victims {
            tree.give_back(all[index].team, claimant.flavour, all[index].gpus);
        }
        let short = claimant.left(&tree) < claimant.gpus;
        let cards = |pods: &Placement| -> BTreeMap<_, u32> {
            let mut cards = BTreeMap::new();
            for pod in &pods.pods {
                *cards.entry(pod.node).or_default() |= pod.cards;
            }
            cards
        };
        let targets = cards(placement);
        let uses = |spec: &JobSpec| spec.cpu_milli_per_pod > 0 || spec.memory_mib_per_pod > 0;
        // Processors and memory are not numbered: on a node that has too little of them all who leave it are awaited.
        let cramped = match uses(spec) {
            true => {
                let mut room = cycle.room.clone();
                for &index in victims {
                    room.put(&all[index].job.spec, &all[index].placement);
                }
                room.cramped(spec, placement)
            }
            false => Vec::new(),
        };
        let leaving = self.leaving.iter().filter(|leaves| {
            let same = leaves.placement.flavour == placement.flavour;
            let lies_there = cards(&leaves.placement).iter().any(|(node, cards)| {
                targets.get(node).is_some_and(|held| held & cards != 0)
                    || (uses(&leaves.job.spec) && cramped.contains(node))
            });
            lies_there || (short && same && leaves.charged.is_some())
        });
        leaving.map(|leaves| leaves.job.id).collect()
    }

    /// What a claim that is made changes for the next one of the cycle.
    pub(crate) fn take(&mut self, cycle: &mut Cycle<'a>, found: &Found<'a>) {
        for &index in &found.victims {
            let prey = &found.all[index];
            self.room.put(&prey.job.spec, &prey.placement);
            self.tree.give_back(prey.team, found.flavour, prey.gpus);
            self.taken.insert(prey.id);
        }
        self.room.hold(found.spec, &found.placement);
        cycle.room.hold(found.spec, &found.placement);
        self.tree
            .charge(found.team, found.flavour, found.spec.least_gpus());
    }
}

/// Where one claimant seeks.
struct Field<'f, 'a> {
    yard: &'f Yard<'a>,
    shape: Shape,
    claimant: Claimant,
    all: &'f [Prey<'a>],
    /// What is free already.
    now: &'f Room,
    room: &'f mut Room,
    /// What fits where in it.
    counted: &'f mut Counted,
    tree: &'f mut QuotaTree<'a>,
}

impl<'a> Field<'_, 'a> {
    /// The cheapest set that does, and others that would.
    fn best(&mut self, eligible: &[usize]) -> Option<(Vec<usize>, Vec<Other<'a>>)> {
        // With nobody taken it would do: what leaves already is enough, so it is waited for.
        if self.does(&[]) || !self.has_room(eligible) {
            return None;
        }
        let mut sets = self.by_domain(eligible);
        if let Some(all) = self.try_all(eligible) {
            sets.push((None, all));
        }
        let mut sets: Vec<_> = sets
            .into_iter()
            .map(|(domain, set)| (self.cost(&set), domain, set))
            .collect();
        sets.sort_by(|a, b| a.0.cmp(&b.0));
        let mut seen = BTreeSet::new();
        sets.retain(|(_, _, set)| seen.insert(set.clone()));
        let others = sets.iter().skip(1).take(ALTERNATIVES);
        let others = others.map(|(cost, domain, set)| Other {
            domain: domain.and_then(|(level, domain)| self.yard.name(level, domain)),
            victims: taken(self.all, set)
                .iter()
                .map(|taken| taken.job.id)
                .collect(),
            lost: cost.1,
        });
        let others = others.collect();
        Some((sets.into_iter().next()?.2, others))
    }

    /// All sets, on a small field. `None` on a large one, or if none does.
    fn try_all(&mut self, eligible: &[usize]) -> Option<Vec<usize>> {
        let few = eligible.len() < usize::BITS as usize - 1
            && (1_usize << eligible.len().min(20)).saturating_mul(self.yard.nodes.len()) <= TRIED;
        if !few {
            return None;
        }
        let sets = (1..1_usize << eligible.len()).map(|mask| {
            let set = (0..eligible.len()).filter(|bit| mask & (1 << bit) != 0);
            set.map(|bit| eligible[bit]).collect::<Vec<_>>()
        });
        let sets = sets.filter(|set| is_closed(self.all, set));
        let mut sets: Vec<_> = sets.map(|set| (self.cost(&set), set)).collect();
        sets.sort();
        let found = sets.into_iter().find(|(_, set)| self.does(set))?;
        // The cheapest one could still hold somebody who loses nothing.
        Some(self.give_back(found.1))
    }

    /// The best set for each domain that could hold the request.
    fn by_domain(&mut self, eligible: &[usize]) -> Vec<(Option<Domain>, Vec<usize>)> {
        let target = self.shape.target(self.yard.levels());
        let ground = Ground::of(self.yard, self.room, &self.shape, self.all, eligible);
        let mut sets = Vec::new();
        match target {
            Target::Within(level) => {
                for domain in 0..self.yard.domains(level) {
                    let range = self.yard.nodes_of(level, domain);
                    let set = ground.clear(range, self.shape.pods, &BTreeSet::new());
                    sets.extend(set.map(|set| (Some((level, domain)), set)));
                }
            }
            Target::Segments(level, pods) => {
                let set = ground.clear_segments(self.yard, level, pods, self.shape.pods / pods);
                sets.extend(set.map(|set| (None, set)));
            }
            Target::Anywhere => {
                let all = 0..self.yard.nodes.len();
                let set = ground.clear(all, self.shape.pods, &BTreeSet::new());
                sets.extend(set.map(|set| (None, set)));
            }
        }
        let complete = sets.into_iter().filter_map(|(domain, set)| {
            let set = self.top_up(set.into_iter().collect(), eligible)?;
            let set = self.give_back(set);
            (!set.is_empty() && self.does(&set)).then_some((domain, set))
        });
        complete.collect()
    }

    /// Adds victims until the quota is enough: the lowest band first, then the least loss for each GPU, the newest, the id.
    fn top_up(&mut self, mut set: Vec<usize>, eligible: &[usize]) -> Option<Vec<usize>> {
        let mut rest: Vec<usize> = eligible
            .iter()
            .copied()
            .filter(|index| !set.contains(index))
            .collect();
        rest.sort_by(|&a, &b| {
            let (a, b) = (&self.all[a], &self.all[b]);
            let per_gpu =
                (a.alone.0 * u128::from(b.gpus.0)).cmp(&(b.alone.0 * u128::from(a.gpus.0)));
            let bands = a.band().cmp(&b.band());
            bands.then(per_gpu).then(b.order.cmp(&a.order))
        });
        let mut rest = rest.into_iter();
        while self.verdict(&set) != Verdict::Enough {
            // One who may not be taken beside the others is passed over.
            let mut with = set.clone();
            let goes = with_above(self.all, rest.next()?);
            with.extend(goes.filter(|index| !set.contains(index)));
            if self.verdict(&with) != Verdict::NotAllowed
                || self.verdict(&set) == Verdict::NotAllowed
            {
                set = with;
            }
        }
        Some(set)
    }

    /// Gives back everybody without whom it still does, the dearest first.
    fn give_back(&mut self, mut set: Vec<usize>) -> Vec<usize> {
        let all = self.all;
        set.sort_by_key(|&index| {
            let prey = &all[index];
            (
                Reverse(prey.band()),
                Reverse(prey.alone),
                prey.order,
                prey.id,
                Reverse(index),
            )
        });
        let mut index = 0;
        while index < set.len() {
            let mut without = set.clone();
            without.remove(index);
            if is_closed(all, &without) && self.does(&without) {
                set = without;
                index = 0;
            } else {
                index += 1;
            }
        }
        set.sort_unstable();
        set
    }

    fn cost(&self, set: &[usize]) -> Cost {
        let prey = || set.iter().map(|&index| &self.all[index]);
        let taken = taken(self.all, set);
        let losses: Vec<&Loss> = taken.iter().map(|taken| &taken.loss).collect();
        let mut newest: Vec<u64> = prey().map(|prey| prey.order).collect();
        newest.sort_unstable_by_key(|&order| Reverse(order));
        (
            prey().map(Prey::band).max().unwrap_or(0),
            together(&losses).into_iter().sum(),
            taken.len(),
            Reverse(newest),
        )
    }

    fn verdict(&mut self, set: &[usize]) -> Verdict {
        let set: Vec<&Prey> = set.iter().map(|&index| &self.all[index]).collect();
        self.claimant.judge(&set, self.tree)
    }

    /// Quota and room suffice once these are gone.
    fn does(&mut self, set: &[usize]) -> bool {
        self.verdict(set) == Verdict::Enough && self.has_room(set)
    }

    fn has_room(&mut self, set: &[usize]) -> bool {
        self.lies(set).is_some()
    }

    /// Where it would lie once these are gone.
    fn lies(&mut self, set: &[usize]) -> Option<Lies> {
        let ask = self.shape.ask;
        self.counted.catch_up(self.room, self.yard, &ask);
        let before = self.room.taken.len();
        let kept = self.put(set);
        self.counted.catch_up(self.room, self.yard, &ask);
        let lies = seek(self.yard, self.counted, &self.shape).ok();
        self.restore(kept);
        self.counted.catch_up(self.room, self.yard, &ask);
        // The room is as it was: sets that were only tried leave nothing for others to catch up with.
        self.room.taken.truncate(before);
        self.counted.rewind(before);
        lies
    }

    /// The same with its cards: on what is free already if that is enough, then on what is soon.
    fn lay(&mut self, set: &[usize]) -> Option<(Vec<PodPlace>, Lies)> {
        let counted = Counted::of(self.now, self.yard, &self.shape.ask);
        if let Ok(lies) = seek(self.yard, &counted, &self.shape) {
            let mut now = self.now.clone();
            return Some((take(self.yard, &mut now, &self.shape, &lies), lies));
        }
        let set = if self.has_room(&[]) { &[] } else { set };
        let lies = self.lies(set)?;
        let mut kept = self.put(set);
        for &(node, _) in &lies {
            let index = self.yard.nodes[node].0;
            kept.entry(index).or_insert(self.room.free[index as usize]);
        }
        let pods = take(self.yard, self.room, &self.shape, &lies);
        self.restore(kept);
        Some((pods, lies))
    }

    /// Gives the room of a set back; what was there before is returned.
    fn put(&mut self, set: &[usize]) -> BTreeMap<u32, Free> {
        let mut kept = BTreeMap::new();
        for prey in set.iter().map(|&index| &self.all[index]) {
            for pod in &prey.placement.pods {
                if let Some(index) = self.room.index(pod.node) {
                    kept.entry(index as u32).or_insert(self.room.free[index]);
                }
            }
            self.room.put(&prey.job.spec, &prey.placement);
        }
        kept
    }

    fn restore(&mut self, kept: BTreeMap<u32, Free>) {
        for (index, free) in kept {
            self.room.free[index as usize] = free;
            self.room.taken.push(index);
        }
    }
}
