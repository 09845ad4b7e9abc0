//! The fleet at a glance, and its nodes.

use crate::engine::Live;
use crate::period;
use crate::views::hold;
use crate::words;
use contract::{FlavourUse, FleetView, Gpus, NodeRow};
use scheduler::{
    FlavourId, FreeNode, Health, JobId, MilliGpu, Millis, Name, Phase, Pool, State, hold_over,
    stood_in_for,
};
use std::collections::BTreeMap;

/// Taken thousandths of a node's cards.
pub(crate) fn busy_of(free: &FreeNode) -> MilliGpu {
    MilliGpu(
        free.free_milli
            .iter()
            .map(|left| 1_000 - u64::from(*left))
            .sum(),
    )
}

/// Cards of a node that are wholly free.
pub(crate) fn whole_free(free: &FreeNode) -> u16 {
    free.free_milli
        .iter()
        .filter(|left| **left == 1_000)
        .count() as u16
}

/// A block's nodes for batch work of one flavour, and what of them is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockRoom {
    /// Ready nodes with all cards free.
    pub(crate) empty_nodes: u32,
    /// Cards of these.
    pub(crate) empty_gpus: u64,
    /// Ready nodes.
    pub(crate) ready_nodes: u32,
    /// Free cards of ready nodes, whole ones.
    pub(crate) free_gpus: u64,
    /// The most free cards of one ready node.
    pub(crate) best_node: u64,
    /// Spare nodes.
    pub(crate) spares: u32,
    /// All other nodes that are not ready.
    pub(crate) out: u32,
    /// Nodes that are for notebooks.
    pub(crate) notebooks: u32,
    /// Taken thousandths.
    pub(crate) busy: MilliGpu,
}

impl BlockRoom {
    /// Adds a node; one that is held takes nothing new.
    pub(crate) fn add(&mut self, state: &State, free: &FreeNode) {
        if free.node.pool == Pool::Notebook {
            self.notebooks += 1;
            return;
        }
        self.busy += busy_of(free);
        match free.node.health {
            Health::Ready
                if free.silent_since.is_none() && hold_over(state, &free.node).is_none() => {}
            Health::Spare => {
                self.spares += 1;
                return;
            }
            _ => {
                self.out += 1;
                return;
            }
        }
        let whole = u64::from(whole_free(free));
        self.ready_nodes += 1;
        self.free_gpus += whole;
        self.best_node = self.best_node.max(whole);
        if free.free_milli.iter().all(|left| *left == 1_000) {
            self.empty_nodes += 1;
            self.empty_gpus += whole;
        }
    }

    /// True when nothing is on it and nothing is out, but for as many nodes as a block of this flavour has spares.
    pub(crate) fn is_whole(&self, spares_of_a_block: u32) -> bool {
        let untouched = self.busy == MilliGpu::ZERO && self.notebooks == 0;
        self.ready_nodes > 0 && untouched && self.out + self.spares <= spares_of_a_block
    }
}

/// Blocks by flavour, then name.
pub(crate) fn blocks(state: &State) -> BTreeMap<(FlavourId, Name), BlockRoom> {
    let mut blocks: BTreeMap<(FlavourId, Name), BlockRoom> = BTreeMap::new();
    for free in state.nodes.values() {
        if let (Some(flavour), Some(block)) = (&free.node.flavour, free.node.domains.first()) {
            blocks
                .entry((flavour.clone(), block.clone()))
                .or_default()
                .add(state, free);
        }
    }
    blocks
}

/// Spares that a block of each flavour has, at most.
pub(crate) fn spares_of_a_block(
    blocks: &BTreeMap<(FlavourId, Name), BlockRoom>,
) -> BTreeMap<FlavourId, u32> {
    let mut most: BTreeMap<FlavourId, u32> = BTreeMap::new();
    for ((flavour, _), room) in blocks {
        let spares = most.entry(flavour.clone()).or_default();
        *spares = room.spares.max(*spares);
    }
    most
}

/// The fleet at a glance.
pub(crate) fn fleet(live: &Live, now: Millis, speed: u32) -> FleetView {
    let state = &live.state;
    let never = |job: &JobId| {
        let waiting = live.waiting.get(job);
        waiting.is_some_and(|waiting| waiting.reason.never())
    };
    // What can never run asks for nothing that anybody could give.
    let waiting = || {
        let queued = state.jobs.values().filter(|job| job.phase == Phase::Queued);
        queued.filter(|job| !never(&job.id))
    };
    let mut unhealthy: BTreeMap<Health, u32> = BTreeMap::new();
    for free in state
        .nodes
        .values()
        .filter(|free| !matches!(free.node.health, Health::Ready | Health::Spare))
    {
        *unhealthy.entry(free.node.health).or_default() += 1;
    }
    FleetView {
        now: period::instant(now),
        speed,
        seq: live.seq,
        flavours: flavours(state),
        waiting_jobs: waiting().count() as u64,
        waiting_gpus: Gpus(waiting().map(|job| job.spec.gpus()).sum()),
        never_jobs: live
            .waiting
            .values()
            .filter(|waiting| waiting.reason.never())
            .count() as u64,
        active_jobs: state
            .jobs
            .values()
            .filter(|job| job.phase != Phase::Queued)
            .count() as u64,
        unhealthy: unhealthy
            .into_iter()
            .map(|(health, n)| (words::health(health).to_owned(), n))
            .collect(),
    }
}

fn flavours(state: &State) -> Vec<FlavourUse> {
    let mut uses: BTreeMap<&FlavourId, FlavourUse> = state
        .flavours
        .values()
        .map(|flavour| {
            let none = Gpus(MilliGpu::ZERO);
            let use_of = FlavourUse {
                flavour: flavour.id.to_string(),
                title: flavour.title.clone(),
                total: none,
                busy: none,
                borrowed: none,
                free: none,
                spare: none,
                notebook: none,
                broken: none,
                whole_blocks_free: 0,
                nominal: none,
            };
            (&flavour.id, use_of)
        })
        .collect();
    let stood_in_for = stood_in_for(state);
    for free in state.nodes.values() {
        if let Some(sum) = free
            .node
            .flavour
            .as_ref()
            .and_then(|flavour| uses.get_mut(flavour))
        {
            // A spare stands in for a lost node: one of the two adds nothing to what the fleet can hold.
            let beside = free.node.health == Health::Spare || stood_in_for.contains(&free.node.id);
            if beside {
                // What a gang still holds there is busy until its exit is confirmed.
                let busy = busy_of(free);
                sum.busy.0 += busy;
                sum.spare.0 += MilliGpu::gpus(u64::from(free.node.cards)).minus(busy);
            } else {
                add_node(sum, state, free);
            }
        }
    }
    for allocation in state
        .jobs
        .values()
        .filter_map(|job| job.allocation.as_ref())
    {
        if let Some(sum) = allocation
            .placement
            .flavour
            .as_ref()
            .and_then(|flavour| uses.get_mut(flavour))
        {
            sum.borrowed.0 += allocation.borrowed;
        }
    }
    for (flavour, quota) in state.teams.values().flat_map(|team| &team.quotas) {
        if let Some(sum) = uses.get_mut(flavour) {
            sum.nominal.0 += quota.nominal;
        }
    }
    let blocks = blocks(state);
    let spares = spares_of_a_block(&blocks);
    for ((flavour, _), room) in &blocks {
        if let Some(sum) = uses
            .get_mut(flavour)
            .filter(|_| room.is_whole(spares[flavour]))
        {
            sum.whole_blocks_free += 1;
        }
    }
    uses.into_values().collect()
}

/// Adds a node that counts for the fleet.
fn add_node(sum: &mut FlavourUse, state: &State, free: &FreeNode) {
    let all = MilliGpu::gpus(u64::from(free.node.cards));
    let busy = busy_of(free);
    sum.total.0 += all;
    match (free.node.health, free.node.pool) {
        // What runs there goes on, nothing new starts.
        _ if free.silent_since.is_some() => {
            sum.busy.0 += busy;
            sum.broken.0 += all.minus(busy);
        }
        // Who uses what of a notebook's card is not told apart yet.
        (Health::Ready, Pool::Notebook) => sum.notebook.0 += all,
        (Health::Ready, Pool::Batch) if hold_over(state, &free.node).is_none() => {
            sum.busy.0 += busy;
            sum.free.0 += all.minus(busy);
        }
        (
            Health::Ready
            | Health::Spare
            | Health::Degraded
            | Health::Cordoned
            | Health::Draining
            | Health::Down
            | Health::Quarantined,
            _,
        ) => {
            sum.busy.0 += busy;
            sum.broken.0 += all.minus(busy);
        }
    }
}

/// All nodes, by number; `sees` says which jobs the reader may see.
pub(crate) fn nodes(state: &State, sees: impl Fn(JobId) -> bool) -> Vec<NodeRow> {
    state
        .nodes
        .values()
        .map(|free| {
            let jobs: Vec<u64> = free
                .jobs
                .iter()
                .filter(|job| sees(**job))
                .map(|job| job.0)
                .collect();
            NodeRow {
                id: free.node.id.0,
                name: free.node.name.to_string(),
                flavour: free.node.flavour.as_ref().map(ToString::to_string),
                domains: free.node.domains.iter().map(ToString::to_string).collect(),
                health: words::health_of(free).to_owned(),
                held: hold::on_node(state, &free.node),
                pool: words::pool(free.node.pool).to_owned(),
                gpus: free.node.cards,
                free: whole_free(free),
                other_jobs: (free.jobs.len() - jobs.len()) as u32,
                jobs,
            }
        })
        .collect()
}
