//! Requests that can never be met, whatever ends or is given back: told as such, not as waiting.

use crate::count::{Counted, total};
use crate::cycle::{Cycle, Offer};
use crate::place::{Shape, seek};
use crate::room::{PodAsk, Room, View, Yard};
use crate::{Blocker, FlavourId, Health, JobSpec, MilliGpu, Scope, State, Topology, stood_in_for};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The hardware as it is bought: it does not change within a cycle, nor with the load.
pub(crate) struct Hardware<'a> {
    /// GPUs of each flavour: all pools, all nodes but spares, which stand in for others and add nothing.
    gpus: BTreeMap<&'a FlavourId, Total>,
    /// The most that one node has: GPUs of each flavour, CPU, memory.
    widest: BTreeMap<&'a FlavourId, MilliGpu>,
    cpu_milli: u64,
    memory_mib: u64,
    /// All nodes but spares, when nothing runs.
    empty: Room,
}

/// GPUs of one flavour, in all pools.
#[derive(Clone, Copy, Default)]
struct Total {
    /// Of all of them, whatever their health: the most there could be, since what is lost may come back.
    most: MilliGpu,
    /// Of those for which no spare stands in: what is told, so that a fleet of 4,096 GPUs is not said to have 4,104.
    told: MilliGpu,
}

impl<'a> Hardware<'a> {
    /// All of it.
    pub(crate) fn of(state: &'a State) -> Self {
        let (mut gpus, mut widest) = (BTreeMap::<_, Total>::new(), BTreeMap::new());
        let (mut cpu_milli, mut memory_mib) = (0, 0);
        let stood_in_for = stood_in_for(state);
        for free in state.nodes.values() {
            let node = &free.node;
            cpu_milli = cpu_milli.max(node.cpu_milli);
            memory_mib = memory_mib.max(node.memory_mib);
            if let Some(flavour) = &node.flavour
                && node.health != Health::Spare
            {
                let cards = MilliGpu::gpus(node.cards.into());
                let total = gpus.entry(flavour).or_default();
                total.most += cards;
                if !stood_in_for.contains(&node.id) {
                    total.told += cards;
                }
                let widest: &mut MilliGpu = widest.entry(flavour).or_default();
                *widest = cards.max(*widest);
            }
        }
        Self {
            gpus,
            widest,
            cpu_milli,
            memory_mib,
            empty: Room::of(state, View::WholeEmpty),
        }
    }
}

/// Why jobs of this spec can never run with so many GPUs; nothing if one of the offers may do some day. Offers that cannot are dropped.
///
/// A gang lies in one flavour, so each flavour is judged by itself; told is the one that comes closest.
pub(crate) fn never<'a>(
    cycle: &Cycle<'a>,
    spec: &JobSpec,
    gpus: MilliGpu,
    offers: &mut Vec<Offer<'a>>,
) -> Vec<Blocker> {
    let mut all: Vec<_> = offers
        .iter()
        .map(|offer| exceeded(cycle, spec, gpus, offer))
        .collect();
    if all.iter().all(|blockers| !blockers.is_empty()) {
        let limit = |blockers: &[Blocker]| match blockers.first() {
            Some(Blocker::ExceedsMaximum { limit, .. }) => *limit,
            Some(_) | None => MilliGpu::ZERO,
        };
        all.sort_by_key(|blockers| (blockers.len(), Reverse(limit(blockers))));
        return all.into_iter().next().unwrap_or_default();
    }
    let mut possible = all.iter().map(Vec::is_empty);
    offers.retain(|_| possible.next().unwrap_or(true));
    Vec::new()
}

fn exceeded(cycle: &Cycle, spec: &JobSpec, gpus: MilliGpu, offer: &Offer) -> Vec<Blocker> {
    let mut all = Vec::new();
    let hardware = &cycle.hardware;
    let mut exceeds = |asks: MilliGpu, limit: MilliGpu, of: Scope| {
        if asks > limit {
            all.push(Blocker::ExceedsMaximum { asks, limit, of });
        }
    };
    let mut pod_fits = true;
    if let Some((flavour, index)) = offer.flavour {
        let of_fleet = hardware.gpus.get(flavour).copied().unwrap_or_default();
        if gpus > of_fleet.most {
            exceeds(gpus, of_fleet.told, Scope::Fleet);
        }
        if let Some(team) = cycle.tree.team(&spec.team) {
            let maximum = match spec.preemptible {
                true => cycle.tree.maximum(team, index),
                false => (cycle.tree.maximum(team, index)).min(cycle.tree.nominal(team, index)),
            };
            exceeds(
                gpus,
                maximum,
                Scope::Team {
                    team: spec.team.clone(),
                },
            );
        }
        let widest = hardware.widest.get(flavour).copied().unwrap_or_default();
        pod_fits = spec.gpus_per_pod <= widest;
        exceeds(spec.gpus_per_pod, widest, Scope::Node);
    }
    if let (true, Some(blocker)) = (pod_fits, &cycle.spots[offer.spot].exceeds) {
        all.push(blocker.clone());
    }
    all.sort_by_key(precedence);
    // A fleet that is too small says it all for a shape that is too big for it.
    all.dedup_by_key(|blocker| precedence(blocker));
    all
}

fn precedence(blocker: &Blocker) -> u8 {
    match blocker {
        Blocker::Misconfigured { .. } => 0,
        Blocker::ExceedsMaximum {
            of: Scope::Fleet, ..
        } => 1,
        Blocker::ExceedsMaximum {
            of: Scope::Team { .. },
            ..
        } => 2,
        Blocker::ExceedsMaximum {
            of: Scope::Domain { .. },
            ..
        } => 3,
        Blocker::ExceedsMaximum {
            of: Scope::Node, ..
        } => 4,
        Blocker::Held(_)
        | Blocker::Suspended { .. }
        | Blocker::Dependency { .. }
        | Blocker::Limit { .. }
        | Blocker::NoMatchingFlavour { .. }
        | Blocker::BackOff { .. }
        | Blocker::Claim { .. }
        | Blocker::Quota { .. }
        | Blocker::BehindReservation { .. }
        | Blocker::Room { .. } => 5,
    }
}

/// Why the empty hardware cannot hold a shape.
pub(crate) fn of_shape(
    hardware: &Hardware,
    yard: &Yard,
    shape: &Shape,
    topology: &Topology,
) -> Option<Blocker> {
    let counted = Counted::of(&hardware.empty, yard, &shape.ask);
    let short = seek(yard, &counted, shape).err()?;
    if total(&counted.pods[0]) == 0
        && let Some(blocker) = too_wide(hardware, &shape.ask)
    {
        return Some(blocker);
    }
    let of_pods = |pods: u32| shape.ask.gpus * u64::from(pods);
    let level = short.level.and_then(|level| topology.levels.get(level));
    let in_one = level.filter(|_| short.best_pods < short.asks_pods).cloned();
    let (asks, limit, of) = match (in_one, short.segments) {
        (Some(level), _) => (
            of_pods(short.asks_pods),
            of_pods(short.best_pods),
            Scope::Domain { level },
        ),
        // Each segment fits, and not all of them do.
        (None, Some((_, fit))) => (
            of_pods(shape.pods),
            of_pods(short.asks_pods) * u64::from(fit),
            Scope::Fleet,
        ),
        (None, None) => (of_pods(shape.pods), of_pods(short.best_pods), Scope::Fleet),
    };
    Some(Blocker::ExceedsMaximum { asks, limit, of })
}

/// A pod that asks more CPU or memory than any node has.
fn too_wide(hardware: &Hardware, ask: &PodAsk) -> Option<Blocker> {
    let asks = [
        ("cpu_milli_per_pod", ask.cpu_milli, hardware.cpu_milli),
        ("memory_mib_per_pod", ask.memory_mib, hardware.memory_mib),
    ];
    let (field, asked, most) = asks.into_iter().find(|&(_, asked, most)| asked > most)?;
    Some(Blocker::Misconfigured {
        field: field.into(),
        names: format!("{asked}, more than the {most} of the largest node"),
    })
}
