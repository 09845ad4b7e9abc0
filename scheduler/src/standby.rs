//! Which lost nodes are stood in for by a spare of their block, so that a fleet of 4,096 GPUs is said to have 4,096.

use crate::{FlavourId, Health, Name, Node, NodeId, Pool, State};
use std::collections::{BTreeMap, BTreeSet};

/// Lost and quarantined nodes for which a spare of their block has taken over: once repaired they are the spare, and until then they add
/// as little to the fleet as a spare does. The lowest ids of a block come first.
pub fn stood_in_for(state: &State) -> BTreeSet<NodeId> {
    // Asked in every cycle: only blocks that have lost something are looked at.
    let nodes = || state.nodes.values().map(|free| &free.node);
    let mut lost: BTreeMap<(&FlavourId, &Name), Vec<NodeId>> = BTreeMap::new();
    let is_lost = |node: &&Node| matches!(node.health, Health::Down | Health::Quarantined);
    for node in nodes().filter(is_lost) {
        if let Some(block) = block_of(node) {
            lost.entry(block).or_default().push(node.id);
        }
    }
    let stood = lost.into_iter().flat_map(|((flavour, block), lost)| {
        let is_spare =
            |node: &&Node| node.health == Health::Spare && block_of(node) == Some((flavour, block));
        let spares = nodes().filter(is_spare).count() as u32;
        let places = state.spare_places.get(flavour);
        let places = places.and_then(|blocks| blocks.get(block)).copied();
        let used = places.unwrap_or(0).saturating_sub(spares);
        lost.into_iter().take(used as usize)
    });
    stood.collect()
}

/// Where a node of the batch pool could be stood in for.
fn block_of(node: &Node) -> Option<(&FlavourId, &Name)> {
    let batch = node.pool == Pool::Batch;
    batch
        .then(|| node.flavour.as_ref().zip(node.domains.first()))
        .flatten()
}

/// A node's health was set: a block that has more spares than ever before is meant to have them.
pub(crate) fn note_health(state: &mut State, node: NodeId) {
    let Some(node) = state.nodes.get(&node).map(|free| &free.node) else {
        return;
    };
    let Some(block) = block_of(node).filter(|_| node.health == Health::Spare) else {
        return;
    };
    let nodes = state.nodes.values().map(|free| &free.node);
    let spares = nodes.filter(|node| node.health == Health::Spare && block_of(node) == Some(block));
    let spares = spares.count() as u32;
    let (flavour, block) = (block.0.clone(), block.1.clone());
    let places = state.spare_places.entry(flavour).or_default();
    let places = places.entry(block).or_default();
    *places = (*places).max(spares);
}

/// A node was configured anew: one that was a spare and is none any more takes its place with it.
pub(crate) fn note_node(state: &mut State, before: Option<&Node>, node: NodeId) {
    let health = state.nodes.get(&node).map(|free| free.node.health);
    if let Some(before) = before.filter(|before| before.health == Health::Spare)
        && health != Some(Health::Spare)
        && let Some((flavour, block)) = block_of(before)
        && let Some(places) = state
            .spare_places
            .get_mut(flavour)
            .and_then(|blocks| blocks.get_mut(block))
    {
        *places = places.saturating_sub(1);
    }
    note_health(state, node);
}
