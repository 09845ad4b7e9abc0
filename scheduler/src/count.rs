//! How many pods of one shape fit where; counted once, then kept up with what is taken.

use crate::room::{Free, PodAsk, Room, Yard};

/// How many pods of one shape fit where, and how much is free there at all.
pub(crate) struct Counted {
    /// Level x domain, the node last: pods.
    pub pods: Vec<Vec<u32>>,
    /// Level x domain: free thousandths of GPUs.
    pub milli: Vec<Vec<u64>>,
    /// Node: thousandths left on the card that a share fits best, so that broken cards fill up first; empty for whole
    /// cards.
    pub card_left: Vec<u16>,
    /// How much of what was taken is in here.
    seen: usize,
}

impl Counted {
    /// Of all nodes of a yard.
    pub(crate) fn of(room: &Room, yard: &Yard, ask: &PodAsk) -> Self {
        let levels = yard.levels();
        let (mut pods, mut milli) = (vec![Vec::new(); levels + 1], vec![Vec::new(); levels + 1]);
        let nodes = || {
            yard.nodes
                .iter()
                .map(|&(index, _)| &room.free[index as usize])
        };
        pods[levels] = nodes().map(|free| free.pods(ask)).collect();
        milli[levels] = nodes().map(|free| u64::from(free.milli)).collect();
        for level in (0..levels).rev() {
            let domains = || (0..yard.domains(level)).map(|domain| yard.children(level, domain));
            pods[level] = domains()
                .map(|children| total(&pods[level + 1][children]))
                .collect();
            milli[level] = domains()
                .map(|children| milli[level + 1][children].iter().sum())
                .collect();
        }
        let card_left = match ask.share() {
            Some(share) => nodes().map(|free| left(free, share)).collect(),
            None => Vec::new(),
        };
        Self {
            pods,
            milli,
            card_left,
            seen: room.taken.len(),
        }
    }

    /// Counts the nodes again that something was taken from since.
    pub(crate) fn catch_up(&mut self, room: &Room, yard: &Yard, ask: &PodAsk) {
        let taken = &room.taken[self.seen..];
        if taken.len() > yard.nodes.len() / 2 {
            *self = Self::of(room, yard, ask);
            return;
        }
        for (index, &node) in taken.iter().enumerate() {
            // Pods of a gang are taken node by node: the last one on a node says it all.
            if taken.get(index + 1) != Some(&node)
                && let Some(place) = yard.place(node)
            {
                self.recount(&room.free[node as usize], yard, place, ask);
            }
        }
        self.seen = room.taken.len();
    }

    /// What was taken after `seen` and is counted here has been put back: it is not told of again.
    pub(crate) fn rewind(&mut self, seen: usize) {
        self.seen = seen;
    }

    /// Counts a node again, and the domains around it.
    pub(crate) fn recount(&mut self, free: &Free, yard: &Yard, node: usize, ask: &PodAsk) {
        let levels = yard.levels();
        self.pods[levels][node] = free.pods(ask);
        self.milli[levels][node] = u64::from(free.milli);
        if let Some(share) = ask.share() {
            self.card_left[node] = left(free, share);
        }
        let mut domain = node;
        for level in (0..levels).rev() {
            let Some(above) = yard.parent(level + 1, domain) else {
                return;
            };
            let children = yard.children(level, above);
            self.pods[level][above] = total(&self.pods[level + 1][children.clone()]);
            self.milli[level][above] = self.milli[level + 1][children].iter().sum();
            domain = above;
        }
    }
}

fn left(free: &Free, share: u16) -> u16 {
    free.best_card(share).map_or(0, |(left, _)| left)
}

/// The sum, without overflow.
pub(crate) fn total(pods: &[u32]) -> u32 {
    pods.iter().fold(0, |sum, &pods| sum.saturating_add(pods))
}
