//! Free room as integers: the nodes of one cycle in the order of their domains, and what of them is free.

use crate::hold::Closed;
use crate::standby::stood_in_for;
use crate::{
    FlavourId, FreeNode, Health, JobKind, JobSpec, MilliGpu, Name, Node, NodeId, Placement,
    PodPlace, Pool, State,
};
use std::collections::{BTreeMap, BTreeSet};

/// The most pods that a gang may have; also the most that one node is ever counted for.
pub(crate) const MAX_PODS: u32 = 100_000;

/// The most cards that a node may have: one bit each in a placement.
pub(crate) const MAX_CARDS: u16 = 32;

/// Which nodes a yard has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct YardKey<'a> {
    /// What the nodes are for.
    pub pool: Pool,
    /// Their flavour; `None` = any, for work without GPUs.
    pub flavour: Option<&'a FlavourId>,
}

/// The pool that takes a kind of work.
pub(crate) fn pool_of(kind: JobKind) -> Pool {
    match kind {
        JobKind::Train | JobKind::Batch => Pool::Batch,
        JobKind::Notebook => Pool::Notebook,
    }
}

/// What one pod asks of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PodAsk {
    pub gpus: MilliGpu,
    pub cpu_milli: u64,
    pub memory_mib: u64,
}

impl PodAsk {
    /// Of a job's pods.
    pub(crate) fn of(spec: &JobSpec) -> Self {
        Self {
            gpus: spec.gpus_per_pod,
            cpu_milli: spec.cpu_milli_per_pod,
            memory_mib: spec.memory_mib_per_pod,
        }
    }
    /// The share of a card that it asks; `None` = whole cards or none.
    pub(crate) fn share(&self) -> Option<u16> {
        (self.gpus.0 > 0 && self.gpus.0 < 1_000).then_some(self.gpus.0 as u16)
    }
}

/// What is free on one node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Free {
    cards: [u16; MAX_CARDS as usize],
    /// Cards that are wholly free, one bit each.
    whole: u32,
    count: u8,
    /// Takes new work.
    open: bool,
    /// All of its free thousandths.
    pub milli: u32,
    cpu_milli: u64,
    memory_mib: u64,
}

impl Free {
    /// Nothing: a node that takes no new work.
    const NONE: Self = Self {
        cards: [0; MAX_CARDS as usize],
        whole: 0,
        count: 0,
        open: false,
        milli: 0,
        cpu_milli: 0,
        memory_mib: 0,
    };

    /// What is free on a node now.
    pub(crate) fn now(free: &FreeNode) -> Self {
        let mut room = Self {
            cpu_milli: free.free_cpu_milli,
            memory_mib: free.free_memory_mib,
            open: true,
            ..Self::NONE
        };
        let count = free.free_milli.len().min(usize::from(MAX_CARDS));
        let milli = &free.free_milli[..count];
        room.cards[..count].copy_from_slice(milli);
        room.count = count as u8;
        room.milli = milli.iter().map(|&milli| u32::from(milli)).sum();
        let whole = milli.iter().map(|&milli| u32::from(milli == 1_000));
        room.whole = whole
            .enumerate()
            .fold(0, |bits, (card, whole)| bits | whole << card);
        room
    }

    /// What is free on it when nothing runs.
    fn empty(node: &Node) -> Self {
        let count = node.cards.min(MAX_CARDS);
        let mut room = Self {
            cpu_milli: node.cpu_milli,
            memory_mib: node.memory_mib,
            open: true,
            count: count as u8,
            milli: u32::from(count) * 1_000,
            whole: ((1_u64 << count) - 1) as u32,
            ..Self::NONE
        };
        room.cards[..usize::from(count)].fill(1_000);
        room
    }

    fn set(&mut self, card: usize, milli: u16) {
        self.milli = self.milli - u32::from(self.cards[card]) + u32::from(milli);
        self.cards[card] = milli;
        self.count = self.count.max(card as u8 + 1);
        if milli == 1_000 {
            self.whole |= 1 << card;
        } else {
            self.whole &= !(1 << card);
        }
    }

    /// How many such pods fit here.
    pub(crate) fn pods(&self, ask: &PodAsk) -> u32 {
        if !self.open {
            return 0;
        }
        let by_gpu = match (ask.share(), ask.gpus.whole()) {
            (Some(share), _) => self.cards[..usize::from(self.count)]
                .iter()
                .map(|free| u32::from(free / share))
                .sum(),
            (None, 0) => MAX_PODS,
            (None, cards) => (u64::from(self.whole.count_ones()) / cards) as u32,
        };
        let by = |asked: u64, free: u64| {
            free.checked_div(asked)
                .map_or(MAX_PODS, |pods| pods.min(MAX_PODS.into()) as u32)
        };
        by_gpu
            .min(by(ask.cpu_milli, self.cpu_milli))
            .min(by(ask.memory_mib, self.memory_mib))
    }

    /// The card that a share fits best, by what would be left on it: `(left, card)`.
    pub(crate) fn best_card(&self, share: u16) -> Option<(u16, usize)> {
        let cards = self.cards[..usize::from(self.count)].iter().enumerate();
        cards
            .filter_map(|(card, free)| Some((free.checked_sub(share)?, card)))
            .min()
    }

    /// What is free in both.
    pub(crate) fn least(self, other: &Self) -> Self {
        if !self.open || !other.open {
            return Self::NONE;
        }
        let mut least = self;
        for card in 0..usize::from(self.count) {
            least.set(card, self.cards[card].min(other.cards[card]));
        }
        least.cpu_milli = self.cpu_milli.min(other.cpu_milli);
        least.memory_mib = self.memory_mib.min(other.memory_mib);
        least
    }

    /// True when the same of every card is free.
    pub(crate) fn same_cards(&self, other: &Self) -> bool {
        self.cards == other.cards
    }

    /// Takes a pod's cards; what is not free of them is taken already.
    pub(crate) fn take_place(&mut self, pod: PodPlace, ask: &PodAsk) {
        self.cpu_milli = self.cpu_milli.saturating_sub(ask.cpu_milli);
        self.memory_mib = self.memory_mib.saturating_sub(ask.memory_mib);
        self.each_card(pod, |free| free.saturating_sub(pod.milli));
    }

    /// Gives a pod's cards back; a node that takes no new work stays closed.
    pub(crate) fn give_back(&mut self, pod: PodPlace, ask: &PodAsk) {
        if self.open {
            self.cpu_milli += ask.cpu_milli;
            self.memory_mib += ask.memory_mib;
            self.each_card(pod, |free| (free + pod.milli).min(1_000));
        }
    }

    fn each_card(&mut self, pod: PodPlace, change: impl Fn(u16) -> u16) {
        let mut left = pod.cards;
        while left != 0 {
            let card = left.trailing_zeros() as usize;
            left &= left - 1;
            self.set(card, change(self.cards[card]));
        }
    }

    /// True when a pod's very cards are free.
    fn has(&self, pod: PodPlace, ask: &PodAsk) -> bool {
        let mut cards = (0..usize::from(MAX_CARDS)).filter(|card| pod.cards & (1 << card) != 0);
        self.open
            && cards.all(|card| self.cards[card] >= pod.milli)
            && self.cpu_milli >= ask.cpu_milli
            && self.memory_mib >= ask.memory_mib
    }

    /// Takes one pod; the caller knows that it fits.
    pub(crate) fn take(&mut self, node: NodeId, ask: &PodAsk) -> PodPlace {
        self.cpu_milli = self.cpu_milli.saturating_sub(ask.cpu_milli);
        self.memory_mib = self.memory_mib.saturating_sub(ask.memory_mib);
        if let Some(share) = ask.share() {
            let (left, card) = self.best_card(share).unwrap_or_default();
            self.set(card, left);
            return PodPlace {
                node,
                cards: 1 << card,
                milli: share,
            };
        }
        let mut cards = 0;
        for _ in 0..ask.gpus.whole() {
            let card = self.whole.trailing_zeros() as usize;
            cards |= 1 << card;
            self.set(card, 0);
        }
        PodPlace {
            node,
            cards,
            milli: if cards == 0 { 0 } else { 1_000 },
        }
    }
}

/// Which hardware counts, and how full it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// Healthy nodes that are heard, as they are; those under a hold apart.
    Now,
    /// All nodes but spares and those that spares stand in for, when nothing runs: what repair can bring, too.
    WholeEmpty,
}

/// What is free on every node, in order of id: the scratch of one cycle.
#[derive(Clone)]
pub(crate) struct Room {
    pub free: Vec<Free>,
    /// Nodes that something was taken from, in order: what was counted before catches up with it.
    pub taken: Vec<u32>,
    /// Ids of the nodes.
    pub ids: Vec<NodeId>,
}

impl Room {
    /// As the view says; what is held takes no new work, but comes back.
    pub(crate) fn of(state: &State, view: View) -> Self {
        let closed = match view {
            View::Now => Closed::by(state, state.node_holds()),
            View::WholeEmpty => Closed::default(),
        };
        Self::but(state, view, &closed)
    }

    /// The same, where just these are closed.
    pub(crate) fn but(state: &State, view: View, closed: &Closed) -> Self {
        let stood_in_for = match view {
            View::WholeEmpty => stood_in_for(state),
            View::Now => BTreeSet::new(),
        };
        let nodes = state.nodes.values().map(|free| {
            if stood_in_for.contains(&free.node.id) || closed.has(&free.node) {
                Free::NONE
            } else {
                seen(free, view)
            }
        });
        Self {
            free: nodes.collect(),
            taken: Vec::new(),
            ids: state.nodes.keys().copied().collect(),
        }
    }

    /// A node's index.
    pub(crate) fn index(&self, node: NodeId) -> Option<usize> {
        self.ids.binary_search(&node).ok()
    }

    /// Nothing new is placed on a node.
    pub(crate) fn close(&mut self, node: NodeId) {
        if let Some(index) = self.index(node) {
            self.free[index] = Free::NONE;
        }
    }

    /// Gives a gang's cards back.
    pub(crate) fn put(&mut self, spec: &JobSpec, placement: &Placement) {
        self.each_pod(spec, placement, Free::give_back);
    }

    /// Takes a gang's very cards, as far as they are free: nobody else gets them.
    pub(crate) fn hold(&mut self, spec: &JobSpec, placement: &Placement) {
        self.each_pod(spec, placement, Free::take_place);
    }

    fn each_pod(
        &mut self,
        spec: &JobSpec,
        placement: &Placement,
        change: fn(&mut Free, PodPlace, &PodAsk),
    ) {
        let ask = PodAsk::of(spec);
        for &pod in &placement.pods {
            if let Some(index) = self.index(pod.node) {
                change(&mut self.free[index], pod, &ask);
                self.taken.push(index as u32);
            }
        }
    }

    /// True when all of a gang's very cards are free.
    pub(crate) fn is_free(&self, spec: &JobSpec, placement: &Placement) -> bool {
        let ask = PodAsk::of(spec);
        let mut left = self.free.clone();
        placement.pods.iter().all(|&pod| {
            let Some(index) = self.index(pod.node) else {
                return false;
            };
            let free = left[index].has(pod, &ask);
            left[index].take_place(pod, &ask);
            free
        })
    }

    /// Nodes of a placement that have too few processors or too little memory for its pods, in order of id.
    pub(crate) fn cramped(&self, spec: &JobSpec, placement: &Placement) -> Vec<NodeId> {
        let mut pods = BTreeMap::<NodeId, u64>::new();
        for pod in &placement.pods {
            *pods.entry(pod.node).or_default() += 1;
        }
        let ask = PodAsk::of(spec);
        let lacks = |&(node, pods): &(NodeId, u64)| {
            let free = self.index(node).map(|index| &self.free[index]);
            free.is_none_or(|free| {
                free.cpu_milli < ask.cpu_milli.saturating_mul(pods)
                    || free.memory_mib < ask.memory_mib.saturating_mul(pods)
            })
        };
        let cramped = pods.into_iter().filter(lacks);
        cramped.map(|(node, _)| node).collect()
    }

    /// Takes a pod on a node of the yard, by its index there.
    pub(crate) fn take(&mut self, yard: &Yard, node: usize, ask: &PodAsk) -> PodPlace {
        let (index, id) = yard.nodes[node];
        self.taken.push(index);
        self.free[index as usize].take(id, ask)
    }
}

impl Room {
    /// Takes a pod where it was laid, by the node's index.
    pub(crate) fn take_place(&mut self, node: u32, pod: PodPlace, ask: &PodAsk) {
        self.taken.push(node);
        self.free[node as usize].take_place(pod, ask);
    }
}

fn seen(free: &FreeNode, view: View) -> Free {
    match view {
        View::Now if takes_work(free.node.health) && free.silent_since.is_none() => Free::now(free),
        View::WholeEmpty if free.node.health != Health::Spare => Free::empty(&free.node),
        View::Now | View::WholeEmpty => Free::NONE,
    }
}

/// True when new work is placed on nodes of this health.
pub(crate) fn takes_work(health: Health) -> bool {
    match health {
        Health::Ready => true,
        Health::Degraded | Health::Cordoned | Health::Draining => false,
        Health::Down | Health::Quarantined | Health::Spare => false,
    }
}

/// Nodes of one pool and flavour, each domain's nodes side by side. The level after the last one is the node.
pub(crate) struct Yard<'a> {
    /// Index in a [`Room`] and id, in order of the domains' names, then id.
    pub nodes: Vec<(u32, NodeId)>,
    /// Where each node of a [`Room`] is in here, if it is.
    places: Vec<Option<u32>>,
    /// Names of the nodes.
    node_names: Vec<&'a Name>,
    /// Per level: where the children of each domain begin in the level below; one more at the end.
    starts: Vec<Vec<u32>>,
    /// Per level, the node's last: the domain above.
    parents: Vec<Vec<u32>>,
    /// Per level: the domain's name.
    names: Vec<Vec<&'a Name>>,
}

impl<'a> Yard<'a> {
    /// The nodes of a pool and flavour.
    pub(crate) fn of(state: &'a State, key: YardKey) -> Self {
        let levels = state.topology.levels.len().saturating_sub(1);
        let fits = |node: &Node| {
            node.pool == key.pool
                && (key.flavour.is_none() || node.flavour.as_ref() == key.flavour)
                && node.domains.len() == levels
        };
        let all = state.nodes.values().map(|free| &free.node).enumerate();
        let mut all: Vec<(usize, &Node)> = all.filter(|(_, node)| fits(node)).collect();
        // Stable, and nearly free on an inventory that is in this order already.
        all.sort_by(|(_, a), (_, b)| a.domains.cmp(&b.domains));
        let mut yard = Self {
            nodes: all
                .iter()
                .map(|&(index, node)| (index as u32, node.id))
                .collect(),
            places: vec![None; state.nodes.len()],
            node_names: all.iter().map(|&(_, node)| &node.name).collect(),
            starts: vec![Vec::new(); levels],
            parents: vec![Vec::new(); levels + 1],
            names: vec![Vec::new(); levels],
        };
        for (place, &(index, _)) in yard.nodes.iter().enumerate() {
            yard.places[index as usize] = Some(place as u32);
        }
        yard.group(&all, levels);
        yard
    }

    fn group(&mut self, all: &[(usize, &'a Node)], levels: usize) {
        for (index, (_, node)) in all.iter().enumerate() {
            let before = index.checked_sub(1).map(|before| &all[before].1.domains);
            let same = before.map_or(0, |before| {
                let pairs = before.iter().zip(&node.domains);
                pairs.take_while(|(a, b)| a == b).count()
            });
            for level in same..levels {
                let below = if level + 1 < levels {
                    self.names[level + 1].len()
                } else {
                    index
                };
                self.starts[level].push(below as u32);
                self.names[level].push(&node.domains[level]);
            }
        }
        for level in 0..levels {
            let below = if level + 1 < levels {
                self.names[level + 1].len()
            } else {
                all.len()
            };
            self.starts[level].push(below as u32);
            for domain in 0..self.names[level].len() {
                let children = self.children(level, domain).len();
                self.parents[level + 1].extend(std::iter::repeat_n(domain as u32, children));
            }
        }
    }

    /// Levels above the node; also the number of the node's level.
    pub(crate) fn levels(&self) -> usize {
        self.starts.len()
    }
    /// Domains of a level.
    pub(crate) fn domains(&self, level: usize) -> usize {
        self.names.get(level).map_or(self.nodes.len(), Vec::len)
    }
    /// Children of a domain, in the level below.
    pub(crate) fn children(&self, level: usize, domain: usize) -> std::ops::Range<usize> {
        self.starts[level][domain] as usize..self.starts[level][domain + 1] as usize
    }
    /// The nodes of a domain.
    pub(crate) fn nodes_of(&self, level: usize, domain: usize) -> std::ops::Range<usize> {
        let (mut first, mut last) = (domain, domain + 1);
        for level in level..self.levels() {
            let starts = &self.starts[level];
            (first, last) = (starts[first] as usize, starts[last] as usize);
        }
        first..last
    }
    /// Where a node of a [`Room`] is in here, if it is.
    pub(crate) fn place(&self, index: u32) -> Option<usize> {
        self.places[index as usize].map(|place| place as usize)
    }
    /// The domain of the level above that a domain lies in.
    pub(crate) fn parent(&self, level: usize, domain: usize) -> Option<usize> {
        self.parents[level]
            .get(domain)
            .map(|&parent| parent as usize)
    }
    /// A domain's name.
    pub(crate) fn name(&self, level: usize, domain: usize) -> Option<&'a Name> {
        self.names
            .get(level)
            .unwrap_or(&self.node_names)
            .get(domain)
            .copied()
    }
}
