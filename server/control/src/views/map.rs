//! The map: every card of every block.

use super::fleet::{BlockRoom, blocks, busy_of, spares_of_a_block};
use crate::engine::Live;
use crate::period;
use crate::views::hold;
use crate::words;
use contract::{Gpus, MapBlock, MapCard, MapNode, MapRack, MapView};
use scheduler::{
    FlavourId, FreeNode, Health, Job, JobId, MilliGpu, Millis, Name, NodeId, Pool, State,
    stood_in_for,
};
use std::collections::{BTreeMap, BTreeSet};

/// The map as it is; `sees` says which jobs the reader may see.
pub(crate) fn map(live: &Live, now: Millis, sees: impl Fn(JobId) -> bool) -> MapView {
    let state = &live.state;
    let rooms = blocks(state);
    let spares = spares_of_a_block(&rooms);
    let held = held_cards(state);
    let stood_in_for = stood_in_for(state);
    let mut by_block: BTreeMap<(Name, FlavourId), Vec<&FreeNode>> = BTreeMap::new();
    for free in state.nodes.values() {
        if let (Some(flavour), Some(block)) = (&free.node.flavour, free.node.domains.first()) {
            by_block
                .entry((block.clone(), flavour.clone()))
                .or_default()
                .push(free);
        }
    }
    let blocks = by_block
        .into_iter()
        .map(|((name, flavour), nodes)| {
            let room = rooms
                .get(&(flavour.clone(), name.clone()))
                .copied()
                .unwrap_or_default();
            MapBlock {
                note: note(&room, spares.get(&flavour).copied().unwrap_or_default()),
                total: Gpus(
                    nodes
                        .iter()
                        .filter(|free| {
                            free.node.health != Health::Spare
                                && !stood_in_for.contains(&free.node.id)
                        })
                        .map(|free| MilliGpu::gpus(u64::from(free.node.cards)))
                        .sum(),
                ),
                busy: Gpus(nodes.iter().map(|free| busy_of(free)).sum()),
                racks: racks(&nodes, |free| node(free, state, &held, &sees)),
                name: name.to_string(),
                flavour: flavour.to_string(),
            }
        })
        .collect();
    MapView {
        now: period::instant(now),
        blocks,
    }
}

/// What fits a block, in words.
fn note(room: &BlockRoom, spares: u32) -> String {
    if room.is_whole(spares) {
        "whole and free".to_owned()
    } else if room.free_gpus == 0 {
        "full".to_owned()
    } else if room.empty_gpus * 2 >= room.free_gpus && room.empty_gpus > 0 {
        format!("room for {}", room.empty_gpus)
    } else {
        format!("in pieces, at most {}", room.empty_gpus.max(room.best_node))
    }
}

fn racks(nodes: &[&FreeNode], view: impl Fn(&FreeNode) -> MapNode) -> Vec<MapRack> {
    let mut racks: Vec<MapRack> = Vec::new();
    for free in nodes {
        // The level above the node; without racks the block is its own.
        let name = free
            .node
            .domains
            .last()
            .map(ToString::to_string)
            .unwrap_or_default();
        match racks.iter_mut().find(|rack| rack.name == name) {
            Some(rack) => rack.nodes.push(view(free)),
            None => racks.push(MapRack {
                name,
                nodes: vec![view(free)],
            }),
        }
    }
    racks
}

/// How each held card is held.
fn held_cards(state: &State) -> BTreeMap<(NodeId, u32), MapCard> {
    let mut cards = BTreeMap::new();
    for job in state.jobs.values() {
        let Some(allocation) = &job.allocation else {
            continue;
        };
        // A gang's own part lies on its first ranks, in words of the map; the quota knows no ranks.
        let mut own = allocation.own;
        for pod in &allocation.placement.pods {
            let mut left = pod.cards;
            while left != 0 {
                let card = left.trailing_zeros();
                left &= left - 1;
                let part = MilliGpu(u64::from(pod.milli));
                let kind = match (pod.milli < 1_000, own >= part && own > MilliGpu::ZERO) {
                    (true, _) => MapCard::Shared,
                    (false, true) => MapCard::Own,
                    (false, false) => MapCard::Borrowed,
                };
                own = own.minus(part);
                cards.insert((pod.node, card), kind);
            }
        }
    }
    cards
}

fn node(
    free: &FreeNode,
    state: &State,
    held: &BTreeMap<(NodeId, u32), MapCard>,
    sees: &impl Fn(JobId) -> bool,
) -> MapNode {
    let set_aside = hold::on_node(state, &free.node);
    let idle = match (free.node.pool, free.node.health) {
        _ if free.silent_since.is_some() => MapCard::Broken,
        (_, Health::Spare) => MapCard::Spare,
        _ if set_aside.is_some() => MapCard::Broken,
        (Pool::Notebook, Health::Ready) => MapCard::Notebook,
        (Pool::Batch, Health::Ready) => MapCard::Free,
        (Pool::Batch | Pool::Notebook, _) => MapCard::Broken,
    };
    let cards = (0..u32::from(free.node.cards))
        .map(|card| held.get(&(free.node.id, card)).copied().unwrap_or(idle))
        .collect();
    let jobs = || free.jobs.iter().filter_map(|id| state.jobs.get(id));
    let teams: BTreeSet<&str> = jobs().map(|job: &Job| job.spec.team.as_str()).collect();
    MapNode {
        id: free.node.id.0,
        name: free.node.name.to_string(),
        health: words::health(free.node.health).to_owned(),
        held: set_aside,
        cards,
        teams: teams.into_iter().map(str::to_owned).collect(),
        jobs: free
            .jobs
            .iter()
            .filter(|job| sees(**job))
            .map(|job| job.0)
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocks_note_says_what_fits() {
        let room = |empty_gpus, free_gpus, best_node, busy| BlockRoom {
            empty_nodes: 0,
            empty_gpus,
            ready_nodes: 32,
            free_gpus,
            best_node,
            spares: 1,
            out: 0,
            notebooks: 0,
            busy: MilliGpu::gpus(busy),
        };
        assert_eq!(note(&room(256, 256, 8, 0), 1), "whole and free");
        assert_eq!(note(&room(0, 0, 0, 256), 1), "full");
        assert_eq!(note(&room(80, 82, 8, 174), 1), "room for 80");
        assert_eq!(note(&room(24, 122, 8, 134), 1), "in pieces, at most 24");
        assert_eq!(note(&room(0, 10, 5, 246), 1), "in pieces, at most 5");
    }
}
