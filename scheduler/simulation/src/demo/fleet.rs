//! The hardware and the prices of the demo.
//!
//! Sixteen blocks of H100 and two of A100, each 4 racks x 8 nodes x 8 GPUs, and in each block one machine more: its
//! spare. The spare stands beside the 32, since a gang of 32 pods is meant to take a whole block; it is outside all
//! quota and outside the 4,608 until it takes over for a broken node.

use super::TEAMS;
use super::teams::{cohorts, team_of};
use scheduler::{
    Configure, Flavour, Health, Millis, Name, Node, NodeId, Policy, Pool, RateCard, Topology,
};
use std::collections::BTreeMap;

/// The H100's flavour.
pub const H100: &str = "h100-80g";
/// The A100's flavour.
pub const A100: &str = "a100-80g";
/// Blocks of H100.
pub const H100_BLOCKS: u32 = 16;
/// Blocks of A100.
pub const A100_BLOCKS: u32 = 2;
/// Racks in a block, besides the spare's.
pub const RACKS: u32 = 4;
/// Nodes in a rack. The block's spare stands alone in a rack of its own, so that no rack is larger than the others.
pub const RACK_NODES: u32 = 8;
/// GPUs in a node.
const CARDS: u16 = 8;
/// Nodes of the last H100 block that are for notebooks.
const NOTEBOOK_NODES: u32 = 8;

/// Millionths of a dollar for one own H100-hour: in the middle of what on-demand clouds ask for one in 2026.
const H100_OWN: u64 = 2_950_000;
/// Borrowed time costs a fifth less: it can be taken back, and the owner has paid for the room already.
const H100_BORROWED: u64 = 2_360_000;
/// The same for the A100.
const A100_OWN: u64 = 1_790_000;
/// A fifth less.
const A100_BORROWED: u64 = 1_432_000;

/// Everything that makes the demo's fleet, in an order that the engine takes: levels, flavours, tree, nodes, policy.
/// The prices come apart ([`rate_card`]): they need a start time.
pub fn demo_configuration() -> Vec<Configure> {
    let levels = ["block", "rack", "node"].map(Name::from).to_vec();
    let flavours = [(H100, "H100 80 GB"), (A100, "A100 80 GB")];
    let flavours = flavours.map(|(id, title)| {
        Configure::Flavour(Flavour {
            id: id.into(),
            title: title.into(),
        })
    });
    let mut all = vec![Configure::Topology(Topology { levels })];
    all.extend(flavours);
    all.extend(cohorts().into_iter().map(Configure::Cohort));
    all.extend(TEAMS.iter().map(team_of).map(Configure::Team));
    all.extend(nodes().into_iter().map(Configure::Node));
    all.push(Configure::Policy(Policy::default()));
    all
}

/// The demo's prices from a whole hour on.
pub fn rate_card(from: Millis) -> RateCard {
    RateCard {
        id: "list".into(),
        from: from.hour_floor(),
        currency: "USD".into(),
        own_micros: BTreeMap::from([(H100.into(), H100_OWN), (A100.into(), A100_OWN)]),
        borrowed_micros: BTreeMap::from([
            (H100.into(), H100_BORROWED),
            (A100.into(), A100_BORROWED),
        ]),
    }
}

fn nodes() -> Vec<Node> {
    let blocks = (0..H100_BLOCKS)
        .map(|b| ("h100", H100, b))
        .chain((0..A100_BLOCKS).map(|b| ("a100", A100, b)));
    let mut nodes = Vec::new();
    for (word, flavour, block) in blocks {
        for place in 0..=RACKS * RACK_NODES {
            let id = NodeId(nodes.len() as u32);
            nodes.push(node(id, flavour, format!("{word}-b{block:02}"), place));
        }
    }
    let last_h100 = (H100_BLOCKS - 1) * (RACKS * RACK_NODES + 1);
    for node in &mut nodes[last_h100 as usize..][..NOTEBOOK_NODES as usize] {
        node.pool = Pool::Notebook;
    }
    nodes
}

/// The node at a place of its block; the place after the last one is the spare's.
fn node(id: NodeId, flavour: &str, block: String, place: u32) -> Node {
    let is_spare = place == RACKS * RACK_NODES;
    let (rack, slot) = (place / RACK_NODES, place % RACK_NODES);
    Node {
        id,
        name: format!("{block}-r{rack}-n{slot}").into(),
        flavour: Some(flavour.into()),
        domains: vec![block.as_str().into(), format!("{block}-r{rack}").into()],
        cards: CARDS,
        cpu_milli: 192_000,
        memory_mib: 2 * 1_024 * 1_024,
        health: if is_spare {
            Health::Spare
        } else {
            Health::Ready
        },
        pool: Pool::Batch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpus(of: impl Fn(&Node) -> bool) -> u32 {
        nodes()
            .iter()
            .filter(|node| of(node))
            .map(|node| u32::from(node.cards))
            .sum()
    }

    #[test]
    fn the_fleet_has_4096_h100_and_512_a100_besides_its_spares() {
        let in_service = |node: &Node, flavour: &str| {
            node.flavour == Some(flavour.into()) && node.health == Health::Ready
        };
        assert_eq!(gpus(|node| in_service(node, H100)), 4_096);
        assert_eq!(gpus(|node| in_service(node, A100)), 512);
        assert_eq!(gpus(|node| node.pool == Pool::Notebook), 64);
        assert_eq!(
            nodes()
                .iter()
                .filter(|node| node.health == Health::Spare)
                .count(),
            18
        );
    }

    #[test]
    fn every_block_holds_32_nodes_and_one_spare() {
        let block = Name::from("h100-b07");
        let there: Vec<Node> = nodes()
            .into_iter()
            .filter(|node| node.domains[0] == block)
            .collect();
        assert_eq!(there.len(), 33);
        assert_eq!(there[32].name.as_str(), "h100-b07-r4-n0");
        assert_eq!(there[32].health, Health::Spare);
    }
}
