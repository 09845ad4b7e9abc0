//! What an operator does about a node that breaks or comes back: the block's spare takes over, and the repaired node
//! becomes the spare.

use crate::model::Turn;
use scheduler::{Command, Health, Node, NodeId, Pool, State};

/// The commands for a turn in a node's fate, as the state stands.
pub fn fates(state: &State, node: NodeId, turn: Turn) -> Vec<Command> {
    let Some(free) = state.nodes.get(&node) else {
        return Vec::new();
    };
    match turn {
        Turn::Breaks(cause) => breaks(state, &free.node, cause),
        Turn::Returns => returns(state, &free.node),
    }
}

fn set(node: NodeId, health: Health, why: String) -> Command {
    Command::SetHealth { node, health, why }
}

fn breaks(state: &State, node: &Node, cause: &str) -> Vec<Command> {
    let mut all = vec![set(node.id, Health::Down, cause.to_owned())];
    let was_in_service = matches!(node.health, Health::Ready | Health::Degraded);
    if was_in_service && node.pool == Pool::Batch {
        let spare = peers(state, node).find(|peer| peer.health == Health::Spare);
        all.extend(spare.map(|spare| {
            set(
                spare.id,
                Health::Ready,
                format!("takes over for {}", node.name),
            )
        }));
    }
    all
}

fn returns(state: &State, node: &Node) -> Vec<Command> {
    // Somebody has decided otherwise meanwhile.
    if node.health != Health::Down {
        return Vec::new();
    }
    let count = |health| {
        peers(state, node)
            .filter(|peer| peer.health == health)
            .count()
    };
    let is_needed = count(Health::Down) > 0 || count(Health::Spare) > 0;
    let (health, why) = if node.pool == Pool::Batch && !is_needed {
        (Health::Spare, "repaired: the block's spare now")
    } else if count(Health::Cordoned) > 0 && count(Health::Ready) == 0 {
        (Health::Cordoned, "repaired: out of service as its block is")
    } else {
        (Health::Ready, "repaired")
    };
    vec![set(node.id, health, why.to_owned())]
}

/// The other nodes of its block and pool.
fn peers<'a>(state: &'a State, node: &'a Node) -> impl Iterator<Item = &'a Node> {
    let all = state.nodes.values().map(|free| &free.node);
    all.filter(move |peer| {
        peer.id != node.id && peer.pool == node.pool && peer.domains.first() == node.domains.first()
    })
}
