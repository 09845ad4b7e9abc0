//! What is billed is what was held: an account of every pod, from the facts alone.

use super::World;
use scheduler::*;
use std::collections::{BTreeMap, BTreeSet};

/// What one job holds at a moment, from the facts alone.
#[derive(Default)]
struct Holding {
    attempt: u32,
    nodes: Vec<NodeId>,
    held: BTreeSet<u32>,
    since: Millis,
}

/// GPU-time that each attempt held: from bind to confirmed exit, without pods that are gone.
fn held(world: &World, gpus: &BTreeMap<JobId, MilliGpu>) -> BTreeMap<(JobId, u32), MilliGpuMs> {
    let mut open = BTreeMap::<JobId, Holding>::new();
    let mut all = BTreeMap::<(JobId, u32), MilliGpuMs>::new();
    let mut count = |job: JobId, of: &mut Holding, at: Millis| {
        let span = at.since(of.since);
        let held = all.entry((job, of.attempt)).or_default();
        *held += (gpus[&job] * of.held.len() as u64).over(span);
        of.since = at;
    };
    for event in &world.journal {
        let Some(job) = event.fact.job() else {
            continue;
        };
        let of = open.entry(job).or_default();
        if !of.held.is_empty() {
            count(job, of, event.at);
        }
        of.since = event.at;
        match &event.fact {
            Fact::JobAdmitted {
                attempt, placement, ..
            } => {
                of.attempt = *attempt;
                of.nodes = placement.pods.iter().map(|pod| pod.node).collect();
            }
            Fact::GangReplaced {
                attempt,
                placement,
                moved,
                ..
            } => {
                of.attempt = *attempt;
                of.nodes = placement.pods.iter().map(|pod| pod.node).collect();
                of.held.retain(|rank| !moved.contains(rank));
            }
            Fact::GangBound { .. } => {
                let gone = |rank: &u32| of.nodes[*rank as usize] != NodeId(u32::MAX);
                of.held = (0..of.nodes.len() as u32).filter(gone).collect();
            }
            Fact::PodsLost { node, .. } => {
                let ranks = (0_u32..).zip(of.nodes.iter_mut());
                for (rank, at) in ranks.filter(|(_, at)| **at == *node) {
                    of.held.remove(&rank);
                    *at = NodeId(u32::MAX);
                }
            }
            Fact::PodSucceeded { rank, .. } => {
                of.held.remove(rank);
                of.nodes[*rank as usize] = NodeId(u32::MAX);
            }
            Fact::GangShrunk { keeps, cause, .. } => {
                match cause {
                    StopCause::NodeLost { node, .. } => of.nodes.retain(|at| at != node),
                    _ => of.nodes.truncate(*keeps as usize),
                }
                // Of those that are left, some may have ended.
                let there = (0_u32..).zip(&of.nodes);
                let there = there.filter(|(_, at)| **at != NodeId(u32::MAX));
                of.held = there.map(|(rank, _)| rank).collect();
            }
            Fact::JobRequeued { .. } | Fact::JobEnded { .. } => of.held.clear(),
            _ => {}
        }
    }
    for (job, mut of) in open {
        if !of.held.is_empty() {
            count(job, &mut of, world.now);
        }
    }
    all
}

pub(super) fn check_lines(world: &World) {
    let submitted = world.journal.iter().filter_map(|event| match &event.fact {
        Fact::JobSubmitted { job, spec, .. } => Some((*job, spec.gpus_per_pod)),
        _ => None,
    });
    let held = held(world, &submitted.collect());
    let mut by_attempt = BTreeMap::<(JobId, u32), Vec<UsageLine>>::new();
    let open = world.meter.open_lines(world.now);
    for line in world.lines.iter().cloned().chain(open) {
        assert!(line.from < line.to, "no line is empty: {line:?}");
        assert!(
            line.to <= line.from.hour_floor() + Millis::HOUR,
            "no line spans an hour mark: {line:?}"
        );
        by_attempt
            .entry((line.job, line.attempt))
            .or_default()
            .push(line);
    }
    for ((job, attempt), lines) in &mut by_attempt {
        lines.sort_by_key(|line| (line.from, line.entitlement));
        // Own and borrowed are cut together, so the attempt is a row of stretches.
        let mut until = Millis(0);
        for stretch in lines.chunk_by(|a, b| a.from == b.from) {
            assert!(
                stretch[0].from >= until,
                "no overlap in attempt {attempt} of job {job}"
            );
            assert!(
                stretch
                    .iter()
                    .all(|line| line.to == stretch[0].to && line.phase == stretch[0].phase)
            );
            until = stretch[0].to;
        }
        let billed: MilliGpuMs = lines.iter().map(UsageLine::held).sum();
        let held = held.get(&(*job, *attempt)).copied().unwrap_or_default();
        assert_eq!(billed, held, "attempt {attempt} of job {job}");
    }
    for (attempt, held) in held {
        let none = held == MilliGpuMs::default();
        assert!(
            none || by_attempt.contains_key(&attempt),
            "{attempt:?} held and is not billed"
        );
    }
}
