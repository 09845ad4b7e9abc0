//! An update of firmware: four H100 blocks are emptied, and come back whole.

use super::H100;
use crate::model::{next_report, own_failure, run_time};
use scheduler::{Command, Health, Job, Millis, Name, Node, NodeId, Pool, State};
use std::collections::BTreeMap;

/// How many blocks are updated together.
const BLOCKS: usize = 4;

/// Takes the blocks out of service that will be empty soonest.
pub(super) fn begin(seed: u64, state: &State) -> Vec<Command> {
    let mut empty_at: BTreeMap<&Name, Millis> = BTreeMap::new();
    for free in state.nodes.values() {
        let Some(block) = free.node.domains.first().filter(|_| is_updated(&free.node)) else {
            continue;
        };
        let jobs = free.jobs.iter().filter_map(|job| state.jobs.get(job));
        let last = jobs
            .map(|job| expected_end(seed, job, state.at))
            .max()
            .unwrap_or(state.at);
        let until = empty_at.entry(block).or_default();
        *until = last.max(*until);
    }
    // A block with notebooks is never empty.
    for free in state
        .nodes
        .values()
        .filter(|free| free.node.pool == Pool::Notebook)
    {
        free.node
            .domains
            .first()
            .map(|block| empty_at.remove(block));
    }
    let mut soonest: Vec<(Millis, &Name)> = empty_at
        .into_iter()
        .map(|(block, at)| (at, block))
        .collect();
    soonest.sort_unstable();
    let chosen: Vec<&Name> = soonest
        .into_iter()
        .take(BLOCKS)
        .map(|(_, block)| block)
        .collect();
    let nodes = state.nodes.values().map(|free| &free.node);
    let out = nodes.filter(|node| {
        node.health == Health::Ready
            && node
                .domains
                .first()
                .is_some_and(|block| chosen.contains(&block))
    });
    out.map(|node| {
        set(
            node.id,
            Health::Cordoned,
            "emptied for an update of its firmware",
        )
    })
    .collect()
}

/// The last of the work there is taken off: its gangs stop and go on elsewhere, from their last checkpoint.
pub(super) fn vacate(state: &State) -> Vec<Command> {
    let held = state
        .nodes
        .values()
        .filter(|free| free.node.health == Health::Cordoned && !free.jobs.is_empty());
    held.map(|free| {
        set(
            free.node.id,
            Health::Down,
            "taken out for the update of its firmware",
        )
    })
    .collect()
}

/// Puts them back, all nodes ready but one, the spare: what was broken there has been mended with it. Elsewhere, too,
/// what is broken and has no spare to stand in for it is mended, so that the fleet is as large as it is said to be.
pub(super) fn end(state: &State) -> Vec<Command> {
    let mut blocks: BTreeMap<&Name, Vec<&Node>> = BTreeMap::new();
    for node in state.nodes.values().map(|free| &free.node) {
        let block = node.domains.first().into_iter();
        block.for_each(|block| blocks.entry(block).or_default().push(node));
    }
    blocks
        .into_values()
        .flat_map(|nodes| back(&nodes))
        .collect()
}

fn back(nodes: &[&Node]) -> Vec<Command> {
    let is = |health: Health| {
        nodes
            .iter()
            .copied()
            .filter(move |node| node.health == health)
    };
    let spares = is(Health::Spare).count();
    let updated = is(Health::Cordoned).next().is_some();
    if !updated {
        // One machine of the block is not in service: its spare, or a broken one that the spare stands in for.
        let beyond = is(Health::Down).skip(usize::from(spares == 0));
        return beyond
            .map(|node| set(node.id, Health::Ready, "repaired"))
            .collect();
    }
    let why = "its firmware is updated";
    // What broke comes last, so that it is the spare rather than a node that was well.
    let out: Vec<&Node> = is(Health::Cordoned).chain(is(Health::Down)).collect();
    let in_service = out.len() - usize::from(spares == 0);
    let health = |place| match place < in_service {
        true => Health::Ready,
        false => Health::Spare,
    };
    let back = out.iter().enumerate();
    back.map(|(place, node)| set(node.id, health(place), why))
        .collect()
}

fn is_updated(node: &Node) -> bool {
    node.flavour
        .as_ref()
        .is_some_and(|flavour| flavour.as_str() == H100)
        && node.pool == Pool::Batch
}

fn set(node: NodeId, health: Health, why: &str) -> Command {
    Command::SetHealth {
        node,
        health,
        why: why.to_owned(),
    }
}

/// When the job will be gone if nothing breaks; now for one that is about to fail.
fn expected_end(seed: u64, job: &Job, now: Millis) -> Millis {
    let Some((next, _)) = next_report(seed, job) else {
        return now;
    };
    let work = own_failure(seed, job.id, job.attempt, &job.spec)
        .map_or_else(|| run_time(seed, job.id, &job.spec), |(after, _)| after);
    let done = job.checkpoint.map_or(Millis(0), |saved| saved.progress);
    let started = job
        .allocation
        .as_ref()
        .and_then(|allocation| allocation.started)
        .unwrap_or(next);
    let mark = job
        .checkpoint
        .map_or(started, |saved| saved.at.max(started));
    mark + work.since(done)
}
