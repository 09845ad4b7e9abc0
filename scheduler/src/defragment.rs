//! Defragment: which moves would open a whole domain, and what they would cost. Only told, and only when somebody asks.
//!
//! For each domain of the level asked for, everybody who lies in it is sought another place, with what the domain has left
//! out of account. The domain whose emptying loses the least is told; then the fewest moves, then its name. A domain that is
//! open already is told with no moves at all.
//!
//! - What is not preemptible does not move, nor what is still starting or has lost pods: such a domain is left out. What is on its way out
//!   anyway is waited for. A domain with a node that takes no work would not be whole, and where a claim holds cards somebody
//!   is to start.
//! - A move is a save, a stop and a start elsewhere: it loses what taking the job for a claim would (`claim::loss`). Each is
//!   priced alone: moves are made one after another.
//! - Each one's new place is free before anybody moves, or its own: moves wait for nobody, and any of them may be left out.
//! - The largest look for a place first. Up to [`TRIED`] movers are tried in every order, so that none is missed for its
//!   turn: pods that lie on one node each and fit at all fit in some order, the tightest node first.
//!
//! Kubernetes' descheduler and Run:ai's consolidation move first and tell later; Slurm has nothing of the kind.

use crate::claim::loss_of_move;
use crate::count::Counted;
use crate::decide::invalid;
use crate::hold::Closed;
use crate::place::{Shape, seek, take, within};
use crate::room::{Room, View, Yard, YardKey, pool_of, takes_work};
use crate::{
    Cents, FlavourId, Job, JobId, MilliGpu, MilliGpuMs, Millis, Name, NodeId, Phase, Placement,
    Pool, Refusal, Stage, State, TeamId,
};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Movers that are tried in every order, at most.
pub const TRIED: usize = 5;

/// One job that would lie elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// Which.
    pub job: JobId,
    /// Whose.
    pub team: TeamId,
    /// What it has.
    pub gpus: MilliGpu,
    /// Where it lies.
    pub from: Arc<Placement>,
    /// Where it would: free now, or its own.
    pub to: Arc<Placement>,
    /// What it would lose: GPUs x (unsaved work at the stop + save + restart).
    pub lost: MilliGpuMs,
    /// The same in money, as borrowed time at the card in force; `None` without a price.
    pub cents: Option<Cents>,
}

/// How a domain could be opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// The domain.
    pub domain: Name,
    /// GPUs that would be free there, in one piece.
    pub opens: MilliGpu,
    /// Who would move, in order of job number; nobody when it is open already.
    pub moves: Vec<Move>,
    /// What all of them would lose.
    pub lost: MilliGpuMs,
    /// The same in money.
    pub cents: Option<Cents>,
}

/// The cheapest way to open a whole domain of a level for batch work of a flavour; `None` if there is none by moves alone.
///
/// # Errors
/// [`Refusal::Invalid`] for a flavour or a level that there is not.
pub fn defragment(
    state: &State,
    flavour: &FlavourId,
    level: &Name,
    now: Millis,
) -> Result<Option<Proposal>, Refusal> {
    if !state.flavours.contains_key(flavour) {
        let problem = format!("there is no flavour `{flavour}`");
        return Err(invalid("flavour", problem));
    }
    let mut levels = state.topology.levels.iter();
    let Some(level) = levels.position(|known| known == level) else {
        return Err(invalid("level", format!("there is no level `{level}`")));
    };
    let ground = Ground::of(state, flavour, now);
    let level = level.min(ground.yard.levels());
    let ways = (0..ground.yard.domains(level)).filter_map(|domain| ground.open(level, domain));
    Ok(ways.min_by(|a, b| {
        let cost = |way: &Proposal| (way.lost, way.moves.len());
        cost(a).cmp(&cost(b)).then(a.domain.cmp(&b.domain))
    }))
}

/// What is the same for all domains.
struct Ground<'a> {
    state: &'a State,
    now: Millis,
    yard: Yard<'a>,
    /// What is free now, without what claims hold.
    room: Room,
    /// Nodes on which a claim holds cards.
    claimed: BTreeSet<NodeId>,
    closed: Closed<'a>,
}

impl<'a> Ground<'a> {
    fn of(state: &'a State, flavour: &'a FlavourId, now: Millis) -> Self {
        let mut room = Room::of(state, View::Now);
        let mut claimed = BTreeSet::new();
        let claims = state.claims.values();
        for claim in claims.filter(|claim| claim.stage == Stage::Made) {
            claimed.extend(claim.placement.pods.iter().map(|pod| pod.node));
            if let Some(job) = state.jobs.get(&claim.claimant) {
                room.hold(&job.spec, &claim.placement);
            }
        }
        let key = YardKey {
            pool: Pool::Batch,
            flavour: Some(flavour),
        };
        Self {
            yard: Yard::of(state, key),
            closed: Closed::by(state, state.node_holds()),
            now: now.max(state.at),
            room,
            claimed,
            state,
        }
    }

    /// The cheapest way to empty one domain, if there is any.
    fn open(&self, level: usize, domain: usize) -> Option<Proposal> {
        let places = self.yard.nodes_of(level, domain);
        let nodes: BTreeSet<NodeId> = self.yard.nodes[places].iter().map(|node| node.1).collect();
        let mut opens = MilliGpu::ZERO;
        let mut here = BTreeSet::new();
        for id in &nodes {
            let free = self.state.nodes.get(id)?;
            let node = &free.node;
            if node.health == crate::Health::Spare {
                continue;
            }
            let silent = free.silent_since.is_some();
            if silent
                || !takes_work(node.health)
                || self.closed.has(node)
                || self.claimed.contains(id)
            {
                return None;
            }
            opens += MilliGpu::gpus(node.cards.into());
            here.extend(
                free.jobs
                    .iter()
                    .filter_map(|job| self.state.jobs.get(job))
                    .map(|job| job.id),
            );
        }
        if opens == MilliGpu::ZERO {
            return None;
        }
        let here = here.iter().filter_map(|job| self.state.jobs.get(job));
        let stays: Vec<&Job> = here.filter(|job| !leaves(job)).collect();
        if !stays.iter().all(|job| may_move(job)) {
            return None;
        }
        let moves = self.moves(&stays, &nodes)?;
        let cents: Option<Vec<Cents>> = moves.iter().map(|one| one.cents).collect();
        Some(Proposal {
            domain: self.yard.name(level, domain)?.clone(),
            opens,
            lost: moves.iter().map(|one| one.lost).sum(),
            cents: cents.map(|all| Cents(all.iter().map(|cents| cents.0).sum())),
            moves,
        })
    }

    /// Another place for each of them, if there is one.
    fn moves(&self, movers: &[&'a Job], closed: &BTreeSet<NodeId>) -> Option<Vec<Move>> {
        let mut room = self.room.clone();
        for node in closed {
            room.close(*node);
        }
        let mut order: Vec<&Job> = movers.to_vec();
        order.sort_by_key(|job| (Reverse(gpus(job)), job.id));
        let all = match order.len() <= TRIED {
            true => orders(order.len()),
            false => vec![(0..order.len()).collect()],
        };
        let mut places = all.iter().filter_map(|turns| {
            let turns: Vec<&Job> = turns.iter().map(|&turn| order[turn]).collect();
            self.places(&turns, &room)
        });
        let places = places.next()?;
        let mut moves: Vec<Move> = order
            .iter()
            .filter_map(|job| self.priced(job, &places))
            .collect();
        moves.sort_by_key(|one| one.job);
        Some(moves)
    }

    /// New places, sought in this order.
    fn places(&self, turns: &[&Job], room: &Room) -> Option<BTreeMap<JobId, Arc<Placement>>> {
        let mut room = room.clone();
        let mut places = BTreeMap::new();
        for job in turns {
            let from = &job.allocation.as_ref()?.placement;
            // It is gone when it comes back: what it has outside of the domain is there for itself.
            let mut with_own = room.clone();
            with_own.put(&job.spec, from);
            let key = YardKey {
                pool: pool_of(job.spec.kind),
                flavour: from.flavour.as_ref(),
            };
            let yard = Yard::of(self.state, key);
            let shape = Shape::of(
                &job.spec,
                job.allocation.as_ref()?.size(),
                &self.state.topology,
            )
            .ok()?;
            let counted = Counted::of(&with_own, &yard, &shape.ask);
            let found = seek(&yard, &counted, &shape).ok()?;
            let pods = take(&yard, &mut with_own, &shape, &found);
            let placement = Placement {
                flavour: from.flavour.clone(),
                within: within(&yard, &self.state.topology, &found),
                pods,
            };
            room.hold(&job.spec, &placement);
            places.insert(job.id, Arc::new(placement));
        }
        Some(places)
    }

    fn priced(&self, job: &Job, places: &BTreeMap<JobId, Arc<Placement>>) -> Option<Move> {
        let from = job.allocation.as_ref()?.placement.clone();
        let (lost, cents) = loss_of_move(self.state, job, self.now);
        Some(Move {
            job: job.id,
            team: job.spec.team.clone(),
            gpus: gpus(job),
            from,
            to: places.get(&job.id)?.clone(),
            lost,
            cents,
        })
    }
}

/// On its way out anyway.
fn leaves(job: &Job) -> bool {
    job.stop.is_some() || job.phase == Phase::Reclaiming
}

fn may_move(job: &Job) -> bool {
    let whole = (job.allocation.as_ref()).is_some_and(|has| has.gone.is_empty());
    job.spec.preemptible && whole && job.phase == Phase::Running && job.stop.is_none()
}

fn gpus(job: &Job) -> MilliGpu {
    job.allocation
        .as_ref()
        .map_or(MilliGpu::ZERO, |has| has.gpus)
}

/// All orders of so many, the given one first.
fn orders(of: usize) -> Vec<Vec<usize>> {
    let Some(less) = of.checked_sub(1) else {
        return vec![Vec::new()];
    };
    let shorter = orders(less);
    let all = (0..of).flat_map(|first| {
        shorter.iter().map(move |rest| {
            let rest = rest.iter().map(|&turn| turn + usize::from(turn >= first));
            std::iter::once(first).chain(rest).collect()
        })
    });
    all.collect()
}
