//! Others in place of the nodes that a gang lost.
//!
//! 1. Gangs that keep their nodes come before the order of the cycle, by first submit time, then id. One whose exit is not
//!    confirmed yet has found room held for it: nobody else starts there.
//! 2. What moves: the pods that are gone, and those on nodes that take no new work any more.
//! 3. Where to, for each: inside the domain that its topology request binds it to (its segment's, or the gang's); a
//!    **spare** of the widest domain in which it was, then a free node there, then one elsewhere; of these the nearest,
//!    then the fullest, then the lowest id. A part of a gang that moves whole may change its domain.
//! 4. All of them or none. What is found takes no quota: the gang is charged all the time.

use crate::cycle::Cycle;
use crate::hold::Closed;
use crate::room::{Free, PodAsk, pool_of, takes_work};
use crate::{
    Event, Fact, FreeNode, Health, Job, Name, Node, NodeId, Placement, PodPlace, State,
    TopologyMode,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Finds replacements, or holds the room for them.
pub(crate) fn replace(cycle: &mut Cycle) -> Vec<Event> {
    let state = cycle.state;
    if state.recovering.is_empty() {
        return Vec::new();
    }
    let jobs = state.recovering.iter().filter_map(|id| state.jobs.get(id));
    let mut jobs: Vec<&Job> = jobs.collect();
    jobs.sort_by_key(|job| (job.submitted, job.id));
    let closed = Closed::by(state, state.node_holds());
    let (mut events, mut spoken_for) = (Vec::new(), BTreeSet::new());
    for job in jobs {
        let holds = &cycle.team_holds;
        if !(holds.blockers(job.hold.as_ref(), &job.spec.team)).is_empty() {
            continue;
        }
        let Some(found) = Search::of(cycle, job, &closed, &spoken_for).and_then(Search::run) else {
            continue;
        };
        let starts = job.stop.is_none();
        spoken_for.extend(found.spares.iter().copied());
        found.take(cycle, job, starts);
        if starts {
            let facts = found.facts(state, job);
            let at = cycle.now;
            events.extend(facts.into_iter().map(|fact| Event { at, fact }));
        }
    }
    events
}

/// Where all of a gang's pods go.
struct Found {
    pods: Vec<PodPlace>,
    moved: Vec<u32>,
    spares: Vec<NodeId>,
    /// What is left of the nodes taken, by index.
    left: BTreeMap<usize, Free>,
}

impl Found {
    /// Takes it in the scratch of the cycle; spares are opened for the rest of it when they are put in service.
    fn take<'a>(&self, cycle: &mut Cycle<'a>, job: &'a Job, starts: bool) {
        for (&index, left) in &self.left {
            let is_spare = self.spares.contains(&cycle.room.ids[index]);
            if starts || !is_spare {
                cycle.room.free[index] = *left;
                cycle.room.taken.push(index as u32);
            }
        }
        let moved = self.moved.iter().map(|&rank| self.pods[rank as usize]);
        let placement = Arc::new(Placement {
            pods: moved.collect(),
            flavour: job
                .allocation
                .as_ref()
                .and_then(|it| it.placement.flavour.clone()),
            within: None,
        });
        let span = job.spec.time_limit.map(|limit| limit.since(job.ran));
        cycle.note_start(None, PodAsk::of(&job.spec), span, &placement);
        cycle.placed.push((&job.spec, placement));
    }

    fn facts(self, state: &State, job: &Job) -> Vec<Fact> {
        let gone = job.allocation.iter().flat_map(|it| &it.gone);
        let names = gone.filter_map(|gone| state.nodes.get(&gone.place.node));
        let name = names.map(|free| free.node.name.to_string()).next();
        let name = name.unwrap_or_else(|| "another node".into());
        let spares = self.spares.iter().map(|&node| Fact::NodeHealthSet {
            node,
            health: Health::Ready,
            why: format!("takes over for {name}"),
        });
        let mut facts: Vec<Fact> = spares.collect();
        let old = job.allocation.as_ref().map(|it| &it.placement);
        facts.push(Fact::GangReplaced {
            job: job.id,
            attempt: job.attempt + 1,
            placement: Arc::new(Placement {
                flavour: old.and_then(|old| old.flavour.clone()),
                within: within(state, &self.pods),
                pods: self.pods,
            }),
            moved: self.moved,
        });
        facts
    }
}

/// The narrowest level whose one domain holds all pods.
pub(crate) fn within(state: &State, pods: &[PodPlace]) -> Option<u8> {
    let nodes: Vec<&Node> = pods
        .iter()
        .filter_map(|pod| state.nodes.get(&pod.node).map(|free| &free.node))
        .collect();
    let first = nodes.first()?;
    let levels = 0..state.topology.levels.len();
    let same = |level: &usize| {
        nodes
            .iter()
            .all(|node| domain(node, *level) == domain(first, *level))
    };
    levels.rev().find(same).map(|level| level as u8)
}

/// A node's domain at a level; its own name at the last one.
fn domain(node: &Node, level: usize) -> &Name {
    node.domains.get(level).unwrap_or(&node.name)
}

/// The search for one gang.
struct Search<'s, 'a> {
    state: &'a State,
    job: &'a Job,
    ask: PodAsk,
    /// Where each rank was, and whether it moves.
    places: Vec<PodPlace>,
    moves: Vec<bool>,
    /// Nodes that may take its pods, with their index; spares among them.
    nodes: Vec<(usize, &'a FreeNode)>,
    free: BTreeMap<usize, Free>,
    cycle: &'s Cycle<'a>,
    spares: BTreeSet<NodeId>,
}

impl<'s, 'a> Search<'s, 'a> {
    fn of(
        cycle: &'s Cycle<'a>,
        job: &'a Job,
        closed: &Closed,
        spoken_for: &BTreeSet<NodeId>,
    ) -> Option<Self> {
        let state = cycle.state;
        let allocation = job.allocation.as_ref()?;
        let opens = |free: &FreeNode| free.silent_since.is_none() && !closed.has(&free.node);
        let stays = |node: NodeId| {
            let free = state.nodes.get(&node);
            free.is_some_and(|free| takes_work(free.node.health) && opens(free))
        };
        let places = allocation.places();
        let gone: BTreeSet<u32> = allocation.gone.iter().map(|gone| gone.rank).collect();
        let moves = (0_u32..).zip(&places);
        let moves = moves.map(|(rank, place)| gone.contains(&rank) || !stays(place.node));
        let (pool, flavour) = (pool_of(job.spec.kind), &allocation.placement.flavour);
        let fits = |free: &FreeNode| {
            let node = &free.node;
            let takes = takes_work(node.health) || node.health == Health::Spare;
            takes
                && opens(free)
                && node.pool == pool
                && (flavour.is_none() || node.flavour == *flavour)
                && !spoken_for.contains(&node.id)
        };
        let nodes = state.nodes.values().enumerate();
        Some(Self {
            ask: PodAsk::of(&job.spec),
            moves: moves.collect(),
            nodes: nodes.filter(|(_, free)| fits(free)).collect(),
            free: BTreeMap::new(),
            spares: BTreeSet::new(),
            places,
            state,
            job,
            cycle,
        })
    }

    fn node(&self, id: NodeId) -> Option<&'a Node> {
        self.state.nodes.get(&id).map(|free| &free.node)
    }

    /// The level whose domain binds each part of the gang, and the part's size; `None` = it may lie anywhere.
    fn bound(&self) -> (Option<usize>, usize) {
        let request = &self.job.spec.topology;
        let levels = &self.state.topology.levels;
        let named = request.level.as_ref();
        let named = named.and_then(|name| levels.iter().position(|level| level == name));
        let all = self.places.len().max(1);
        let part = request
            .segments
            .map(|segments| segments.pods.max(1) as usize);
        match (request.mode, part) {
            (TopologyMode::Required, part) => (named, part.unwrap_or(all)),
            (TopologyMode::Unconstrained, None) => (None, all),
            (TopologyMode::Unconstrained, Some(part)) => (named, part),
            // What a preference has met stays met; what it could not meet it does not have to meet now.
            (TopologyMode::Preferred, Some(part)) => {
                let met = named.filter(|&level| self.is_met(level, part));
                (met, part)
            }
            (TopologyMode::Preferred, None) => {
                let has = within(self.state, &self.places).map(usize::from);
                (has.zip(named).map(|(has, named)| has.min(named)), all)
            }
        }
    }

    fn is_met(&self, level: usize, part: usize) -> bool {
        self.places.chunks(part).all(|places| {
            let nodes = places.iter().filter_map(|pod| self.node(pod.node));
            let domains: BTreeSet<_> = nodes.map(|node| domain(node, level)).collect();
            domains.len() <= 1
        })
    }

    fn run(mut self) -> Option<Found> {
        let (level, part) = self.bound();
        let mut pods = self.places.clone();
        for first in (0..pods.len()).step_by(part) {
            let ranks: Vec<usize> = (first..pods.len().min(first + part)).collect();
            let moving: Vec<usize> = ranks
                .iter()
                .copied()
                .filter(|&rank| self.moves[rank])
                .collect();
            if moving.is_empty() {
                continue;
            }
            let stays = ranks.iter().find(|rank| !self.moves[**rank]);
            let anchor = stays.and_then(|&rank| self.node(self.places[rank].node));
            let laid = match (level, anchor) {
                (None, _) => self.lay(&moving, None)?,
                (Some(level), Some(anchor)) => {
                    self.lay(&moving, Some((level, domain(anchor, level))))?
                }
                (Some(level), None) => self.lay_whole(&moving, level)?,
            };
            moving
                .iter()
                .zip(laid)
                .for_each(|(&rank, place)| pods[rank] = place);
        }
        let moved = (0_u32..).zip(&self.moves).filter(|(_, moves)| **moves);
        Some(Found {
            pods,
            moved: moved.map(|(rank, _)| rank).collect(),
            spares: self.spares.into_iter().collect(),
            left: self.free,
        })
    }

    /// A part of which nothing stays: the nearest domain that takes all of it.
    fn lay_whole(&mut self, moving: &[usize], level: usize) -> Option<Vec<PodPlace>> {
        let was = self.node(self.places[*moving.first()?].node)?;
        let mut domains: Vec<(usize, &Name)> = (self.nodes.iter())
            .map(|(_, free)| (distance(was, &free.node), domain(&free.node, level)))
            .collect();
        domains.sort_unstable();
        let mut seen = BTreeSet::new();
        domains.retain(|(_, name)| seen.insert(*name));
        domains
            .into_iter()
            .find_map(|(_, name)| self.lay(moving, Some((level, name))))
    }

    /// Lays pods on nodes, one by one, inside one domain if it is named; all of them or none.
    fn lay(&mut self, moving: &[usize], inside: Option<(usize, &Name)>) -> Option<Vec<PodPlace>> {
        let (free, spares) = (self.free.clone(), self.spares.clone());
        let laid: Option<Vec<_>> = moving
            .iter()
            .map(|&rank| self.lay_one(rank, inside))
            .collect();
        if laid.is_none() {
            (self.free, self.spares) = (free, spares);
        }
        laid
    }

    fn lay_one(&mut self, rank: usize, inside: Option<(usize, &Name)>) -> Option<PodPlace> {
        let was = self.node(self.places[rank].node)?;
        let near = |node: &Node| node.domains.first() == was.domains.first();
        let candidates = self.nodes.iter().filter_map(|&(index, of_node)| {
            let node = &of_node.node;
            let is_spare = node.health == Health::Spare;
            let binds = inside.is_none_or(|(level, name)| domain(node, level) == name);
            if !binds || (is_spare && !near(node)) {
                return None;
            }
            let free = self.free_on(index, of_node);
            let key = (
                !near(node),
                !is_spare,
                distance(was, node),
                free.milli,
                node.id,
            );
            (free.pods(&self.ask) > 0).then_some((key, index, free))
        });
        let (key, index, mut free) = candidates.min_by_key(|&(key, _, _)| key)?;
        let place = free.take(key.4, &self.ask);
        if !key.1 {
            self.spares.insert(key.4);
        }
        self.free.insert(index, free);
        Some(place)
    }

    fn free_on(&self, index: usize, node: &FreeNode) -> Free {
        if let Some(free) = self.free.get(&index) {
            return *free;
        }
        match node.node.health {
            Health::Spare => Free::now(node),
            _ => self.cycle.room.free[index],
        }
    }
}

/// How many levels two nodes do not share; 0 = the same node.
fn distance(a: &Node, b: &Node) -> usize {
    if a.id == b.id {
        return 0;
    }
    let pairs = a.domains.iter().zip(&b.domains);
    let shared = pairs.take_while(|(a, b)| a == b).count();
    1 + a.domains.len() - shared
}
