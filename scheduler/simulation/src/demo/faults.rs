//! What an operator does about a node that breaks or comes back: the block's spare takes over for one that was empty, since
//! the engine finds it for a gang by itself; and the repaired node becomes the spare.

use crate::model::Turn;
use scheduler::{Command, FreeNode, Health, Job, Node, NodeId, Phase, Pool, Report, State};

/// The cause that shows as silence: the machine is not seen to be lost, and the gang on it stands still.
const SILENT: &str = "NCCL Watchdog Timeouts";

/// The commands for a turn in a node's fate, as the state stands.
pub fn fates(state: &State, node: NodeId, turn: Turn) -> Vec<Command> {
    let Some(free) = state.nodes.get(&node) else {
        return Vec::new();
    };
    match turn {
        Turn::Breaks(SILENT) => falls_silent(state, free),
        Turn::Breaks(cause) => breaks(state, &free.node, cause),
        Turn::Returns if free.silent_since.is_some() => is_heard(state, free),
        Turn::Returns => returns(state, &free.node),
    }
}

/// Gangs that run on a node, and a word of each.
fn words(state: &State, free: &FreeNode, report: Report, fits: fn(&Job) -> bool) -> Vec<Command> {
    let jobs = free.jobs.iter().filter_map(|job| state.jobs.get(job));
    let jobs = jobs.filter(|job| job.phase == Phase::Running && job.stop.is_none() && fits(job));
    jobs.map(|job| Command::Report {
        job: job.id,
        attempt: job.attempt,
        report: report.clone(),
    })
    .collect()
}

fn stands_still(job: &Job) -> bool {
    let allocation = job.allocation.as_ref();
    allocation.is_some_and(|allocation| allocation.no_step_since.is_some())
}

/// It misses its heartbeats, and no step of its gangs is heard.
fn falls_silent(state: &State, free: &FreeNode) -> Vec<Command> {
    let (node, since) = (free.node.id, state.at);
    let mut all = vec![Command::Silent { node, since }];
    let still = Report::NoStep { since };
    all.extend(words(state, free, still, |job| !stands_still(job)));
    all
}

/// Its software was restarted: gangs that have not been taken off meanwhile go on, and nothing of the others is left.
fn is_heard(state: &State, free: &FreeNode) -> Vec<Command> {
    let node = free.node.id;
    let mut all = vec![Command::Heard { node }];
    all.extend(words(state, free, Report::Stepped, stands_still));
    if free.node.health == Health::Quarantined {
        all.push(Command::Repaired {
            node,
            why: "restarted: nothing runs there any more".to_owned(),
        });
    }
    all
}

fn set(node: NodeId, health: Health, why: String) -> Command {
    Command::SetHealth { node, health, why }
}

fn breaks(state: &State, node: &Node, cause: &str) -> Vec<Command> {
    let mut all = vec![set(node.id, Health::Down, cause.to_owned())];
    let was_in_service = matches!(node.health, Health::Ready | Health::Degraded);
    // A gang that loses it finds the spare by itself.
    let is_empty = state.nodes[&node.id].jobs.is_empty();
    if was_in_service && is_empty && node.pool == Pool::Batch {
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
    let lost = count(Health::Down) + count(Health::Quarantined);
    let is_needed = lost > 0 || count(Health::Spare) > 0;
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
