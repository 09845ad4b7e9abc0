//! The fate of a node: when it breaks, of what, and how long it is out.

use crate::draw::Draws;
use scheduler::{Millis, NodeId};

/// What brings a node back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mend {
    /// A restart of its software.
    Restart,
    /// Somebody with a part in the hand.
    Repair,
}

/// A cause of interruptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Its name in the source.
    pub name: &'static str,
    /// How often it struck: unexpected interruptions in 54 days on 16,384 GPUs.
    pub count: u64,
    /// What brings the node back: our own reading of the cause, the source does not say.
    pub mend: Mend,
}

const fn cause(name: &'static str, count: u64, mend: Mend) -> Cause {
    Cause { name, count, mend }
}

/// Causes of unexpected interruptions with their counts: table 5 of "The Llama 3 Herd of Models" (arXiv 2407.21783).
/// The counts are used, not the printed shares, which contradict them for the first row.
pub const CAUSES: [Cause; 18] = [
    cause("Faulty GPU", 148, Mend::Repair),
    cause("GPU HBM3 Memory", 72, Mend::Repair),
    cause("Software Bug", 54, Mend::Restart),
    cause("Network Switch/Cable", 35, Mend::Repair),
    cause("Host Maintenance", 32, Mend::Repair),
    cause("GPU SRAM Memory", 19, Mend::Repair),
    cause("GPU System Processor", 17, Mend::Repair),
    cause("NIC", 7, Mend::Repair),
    cause("NCCL Watchdog Timeouts", 7, Mend::Restart),
    cause("Silent Data Corruption", 6, Mend::Repair),
    cause("GPU Thermal Interface + Sensor", 6, Mend::Repair),
    cause("SSD", 3, Mend::Repair),
    cause("Power Supply", 3, Mend::Repair),
    cause("Server Chassis", 2, Mend::Repair),
    cause("IO Expansion Board", 2, Mend::Repair),
    cause("Dependency", 2, Mend::Restart),
    cause("CPU", 2, Mend::Repair),
    cause("System Memory", 2, Mend::Repair),
];

/// Mean time between failures of one node: 6.50 failures in 1,000 node-days, as Meta's RSC-1 is reported to have had
/// (arXiv 2410.21680, from a restatement).
pub const NODE_MTBF: Millis = Millis(1_000 * Millis::DAY.0 * 100 / 650);

/// Median repair: 20.4 h, from the fault trace of 400 GPU servers over 349 days that was published with InfiniteHBD.
const REPAIR_MEDIAN: Millis = Millis(20 * Millis::HOUR.0 + 24 * Millis::MINUTE.0);
/// Its spread. The trace's mean of 129.3 h would be 1.92; its tail is cut at [`REPAIR_LONGEST`], when the machine is replaced.
const REPAIR_SIGMA_MILLI: u32 = 1_920;
/// Own choice: a machine that is out for five days is replaced.
const REPAIR_LONGEST: Millis = Millis(5 * Millis::DAY.0);
/// Own choice: the shortest repair takes somebody there.
const REPAIR_SHORTEST: Millis = Millis::minutes(30);

fn draws(seed: u64, node: NodeId, nth: u64) -> Draws {
    Draws::new(seed)
        .of(0x6e6f_6465)
        .of(u64::from(node.0))
        .of(nth)
}

fn nth_cause(draws: Draws) -> Cause {
    CAUSES[draws.weighted(1, CAUSES.iter().map(|cause| cause.count))]
}

/// The `nth` failure of a node, from 0: how long after it was last put in service, and its cause.
pub fn next_failure(seed: u64, node: NodeId, nth: u64) -> (Millis, &'static str) {
    let draws = draws(seed, node, nth);
    (draws.exponential(0, NODE_MTBF), nth_cause(draws).name)
}

/// How long the node is out after its `nth` failure.
pub fn repair(seed: u64, node: NodeId, nth: u64) -> Millis {
    let draws = draws(seed, node, nth);
    match nth_cause(draws).mend {
        Mend::Restart => draws.between(2, Millis::minutes(8), Millis::minutes(30)),
        Mend::Repair => {
            let span = Millis(draws.lognormal(2, REPAIR_MEDIAN.0, REPAIR_SIGMA_MILLI));
            span.clamp(REPAIR_SHORTEST, REPAIR_LONGEST)
        }
    }
}

/// What happens to a node next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It breaks, of this cause.
    Breaks(&'static str),
    /// It is mended.
    Returns,
}

/// The first turn in a node's fate after `now`, when it was put in service at `epoch`.
///
/// Needs no memory: the fate is told anew from the epoch, which costs one step for each failure so far.
pub fn next_turn(seed: u64, node: NodeId, epoch: Millis, now: Millis) -> (Millis, Turn) {
    let mut in_service = epoch;
    let mut nth = 0;
    loop {
        let (after, cause) = next_failure(seed, node, nth);
        // A failure and its repair are at least a moment apart, so that the next turn is always a later one.
        let breaks = in_service + after.max(Millis(1));
        if breaks > now {
            return (breaks, Turn::Breaks(cause));
        }
        in_service = breaks + repair(seed, node, nth);
        if in_service > now {
            return (in_service, Turn::Returns);
        }
        nth += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_adds_up_to_its_419_interruptions() {
        assert_eq!(CAUSES.iter().map(|cause| cause.count).sum::<u64>(), 419);
    }

    #[test]
    fn nodes_fail_at_the_published_rate() {
        let spans: u64 = (0..20_000)
            .map(|node| next_failure(1, NodeId(node), 0).0.0)
            .sum();
        let per_1000_node_days_e2 = 20_000 * 1_000 * Millis::DAY.0 / (spans / 100);
        assert!(
            (630..670).contains(&per_1000_node_days_e2),
            "{per_1000_node_days_e2}"
        );
    }

    #[test]
    fn a_fate_told_from_any_moment_is_the_same() {
        let epoch = Millis::hours(1_000);
        let mut now = epoch;
        let mut told = Vec::new();
        for _ in 0..6 {
            let (at, turn) = next_turn(5, NodeId(9), epoch, now);
            assert!(at > now);
            assert_eq!(next_turn(5, NodeId(9), epoch, Millis(at.0 - 1)), (at, turn));
            told.push(turn == Turn::Returns);
            now = at;
        }
        assert_eq!(told, [false, true, false, true, false, true]);
    }

    #[test]
    fn causes_come_in_proportion() {
        let faulty = (0..10_000)
            .filter(|node| next_failure(1, NodeId(*node), 3).1 == "Faulty GPU")
            .count();
        assert!(
            (3_400..3_660).contains(&faulty),
            "{faulty} of 10,000, 35.32 % expected"
        );
    }

    #[test]
    fn half_of_the_repairs_take_less_than_twenty_hours_and_none_more_than_five_days() {
        let mut spans: Vec<u64> = (0..4_000)
            .map(NodeId)
            .filter(|node| next_failure(1, *node, 0).1 == "Faulty GPU")
            .map(|node| repair(1, node, 0).0)
            .collect();
        spans.sort_unstable();
        let median_minutes = spans[spans.len() / 2] / Millis::MINUTE.0;
        assert!(
            (1_100..1_360).contains(&median_minutes),
            "{median_minutes} min, 1,224 expected"
        );
        assert_eq!(spans.last(), Some(&REPAIR_LONGEST.0));
    }
}
