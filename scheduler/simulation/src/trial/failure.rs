//! What is told of nodes: silence, and that it is over, repairs; and who gets more time.

use super::Dice;
use scheduler::{Command, Health, Job, Millis, NodeId, State};

/// The next word. Silence strikes where a gang stands still, more often than elsewhere.
pub(super) fn word(dice: &mut Dice, state: &State) -> Option<Command> {
    let still = state.jobs.values().filter_map(|job| {
        let allocation = job.allocation.as_ref()?;
        allocation.no_step_since?;
        Some(allocation.placement.pods.first()?.node)
    });
    let still: Vec<NodeId> = still.collect();
    if let Some(node) = dice.of(&still).filter(|_| dice.happens(700)) {
        return Some(silent(node, state));
    }
    let all = || state.nodes.values();
    let mute = all().filter(|free| free.silent_since.is_some());
    let mute: Vec<NodeId> = mute.map(|free| free.node.id).collect();
    let broken =
        all().filter(|free| matches!(free.node.health, Health::Down | Health::Quarantined));
    let broken: Vec<NodeId> = broken.map(|free| free.node.id).collect();
    let nodes: Vec<NodeId> = state.nodes.keys().copied().collect();
    match dice.below(8) {
        0 | 1 if mute.len() < 3 => Some(silent(dice.of(&nodes)?, state)),
        0..=3 => Some(Command::Heard {
            node: dice.of(&mute)?,
        }),
        4..=6 => Some(Command::Repaired {
            node: dice.of(&broken)?,
            why: "new GPU".into(),
        }),
        _ => {
            let jobs: Vec<&Job> = state.jobs.values().collect();
            let job = dice.of(&jobs)?;
            let limit = job.spec.time_limit.unwrap_or_default();
            Some(Command::ExtendLimit {
                job: job.id,
                limit: limit + Millis::minutes(dice.below(60)),
                by: "bea".into(),
                why: None,
            })
        }
    }
}

fn silent(node: NodeId, state: &State) -> Command {
    Command::Silent {
        node,
        since: state.at,
    }
}
