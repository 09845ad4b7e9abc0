//! Making room in a range of nodes: pod by pod, where it costs the least for each pod gained.

use super::prey::{Prey, with_above};
use crate::place::Shape;
use crate::room::{Free, PodAsk, Room, Yard};
use crate::{MilliGpuMs, PodPlace};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The nodes of a yard with those who may be taken there.
pub(super) struct Ground<'g, 'a> {
    ask: PodAsk,
    free: Vec<Free>,
    on: Vec<Vec<usize>>,
    all: &'g [Prey<'a>],
    /// Where each one's pods are: index in the yard.
    pods: BTreeMap<usize, Vec<(usize, PodPlace)>>,
}

impl<'g, 'a> Ground<'g, 'a> {
    /// Of those who may be taken.
    pub(super) fn of(
        yard: &Yard,
        room: &Room,
        shape: &Shape,
        all: &'g [Prey<'a>],
        eligible: &[usize],
    ) -> Self {
        let mut on = vec![Vec::new(); yard.nodes.len()];
        let mut pods = BTreeMap::new();
        for &index in eligible {
            let places = all[index].placement.pods.iter().filter_map(|pod| {
                let node = yard.place(room.index(pod.node)? as u32)?;
                Some((node, *pod))
            });
            let places: Vec<_> = places.collect();
            for &(node, _) in &places {
                if on[node].last() != Some(&index) {
                    on[node].push(index);
                }
            }
            pods.insert(index, places);
        }
        for here in &mut on {
            here.sort_by_key(|&index| {
                let prey = &all[index];
                (prey.band(), prey.alone, Reverse(prey.order), prey.id)
            });
        }
        let nodes = yard.nodes.iter();
        Self {
            ask: shape.ask,
            free: nodes.map(|&(index, _)| room.free[index as usize]).collect(),
            on,
            all,
            pods,
        }
    }

    /// Puts the pods of one back into a copy of the nodes from `first` on.
    fn put(&self, free: &mut [Free], first: usize, index: usize) {
        let ask = PodAsk::of(&self.all[index].job.spec);
        for &(node, pod) in self.pods.get(&index).into_iter().flatten() {
            let here = node.checked_sub(first).and_then(|at| free.get_mut(at));
            if let Some(free) = here {
                free.give_back(pod, &ask);
            }
        }
    }

    fn count(&self, free: &[Free]) -> u32 {
        free.iter()
            .fold(0, |sum, free| sum.saturating_add(free.pods(&self.ask)))
    }

    /// Who has to go besides those who go already, so that so many pods fit into a range of nodes.
    pub(super) fn clear(
        &self,
        range: Range<usize>,
        pods: u32,
        gone: &BTreeSet<usize>,
    ) -> Option<BTreeSet<usize>> {
        let (first, was) = (range.start, &self.free[range.clone()]);
        let mut most = was.to_vec();
        let here: BTreeSet<usize> = range
            .clone()
            .flat_map(|node| &self.on[node])
            .copied()
            .collect();
        gone.union(&here)
            .for_each(|&index| self.put(&mut most, first, index));
        if self.count(&most) < pods {
            return None;
        }
        let mut free = was.to_vec();
        gone.iter()
            .for_each(|&index| self.put(&mut free, first, index));
        let mut set = BTreeSet::new();
        let mut has = self.count(&free);
        while has < pods {
            let options = range.clone().filter_map(|node| {
                let go = self.next_pod(free[node - first], node, |index| {
                    gone.contains(&index) || set.contains(&index)
                })?;
                let gain = self.gain(&free, first, &go).min(pods - has);
                Some((go, gain))
            });
            let best = options.min_by(|(a, gains_a), (b, gains_b)| {
                let loss = |set: &[usize]| set.iter().map(|&i| self.all[i].alone.0).sum::<u128>();
                let band = |set: &[usize]| set.iter().map(|&i| self.all[i].band()).max();
                let per_pod =
                    (loss(a) * u128::from(*gains_b)).cmp(&(loss(b) * u128::from(*gains_a)));
                band(a)
                    .cmp(&band(b))
                    .then(per_pod)
                    .then(a.len().cmp(&b.len()))
            });
            let (go, _) = best?;
            for index in go {
                self.put(&mut free, first, index);
                set.insert(index);
            }
            has = self.count(&free);
        }
        Some(set)
    }

    /// Who has to go from a node so that at least one pod more fits there; `None` if nobody's going helps.
    fn next_pod(
        &self,
        mut left: Free,
        node: usize,
        is_gone: impl Fn(usize) -> bool,
    ) -> Option<Vec<usize>> {
        let before = left.pods(&self.ask);
        let mut go = Vec::new();
        for &index in self.on[node].iter().filter(|&&index| !is_gone(index)) {
            let ask = PodAsk::of(&self.all[index].job.spec);
            for &(at, pod) in self.pods.get(&index).into_iter().flatten() {
                if at == node {
                    left.give_back(pod, &ask);
                }
            }
            go.extend(with_above(self.all, index).filter(|&above| !is_gone(above)));
            if left.pods(&self.ask) > before {
                go.sort_unstable();
                go.dedup();
                return Some(go);
            }
        }
        None
    }

    /// Pods more that fit into the nodes from `first` on once these are gone.
    fn gain(&self, free: &[Free], first: usize, go: &[usize]) -> u32 {
        let mut touched = BTreeMap::<usize, Free>::new();
        for &index in go {
            let ask = PodAsk::of(&self.all[index].job.spec);
            for &(node, pod) in self.pods.get(&index).into_iter().flatten() {
                let here = node.checked_sub(first).filter(|&at| at < free.len());
                if let Some(at) = here {
                    touched.entry(at).or_insert(free[at]).give_back(pod, &ask);
                }
            }
        }
        let gains = touched.iter();
        gains
            .map(|(&at, now)| now.pods(&self.ask) - free[at].pods(&self.ask))
            .sum()
    }

    /// Who has to go so that so many segments fit, each into one domain: the next segment's room is made where it costs
    /// the least.
    pub(super) fn clear_segments(
        &self,
        yard: &Yard,
        level: usize,
        pods: u32,
        segments: u32,
    ) -> Option<BTreeSet<usize>> {
        let mut gone = BTreeSet::new();
        let mut next: BTreeMap<usize, Option<BTreeSet<usize>>> = BTreeMap::new();
        loop {
            let mut free = self.free.clone();
            gone.iter().for_each(|&index| self.put(&mut free, 0, index));
            let ranges = (0..yard.domains(level)).map(|domain| yard.nodes_of(level, domain));
            let fit: Vec<u32> = ranges
                .map(|range| self.count(&free[range]) / pods)
                .collect();
            if fit.iter().fold(0, |sum: u32, fit| sum.saturating_add(*fit)) >= segments {
                return Some(gone);
            }
            for (domain, fit) in fit.iter().enumerate() {
                next.entry(domain).or_insert_with(|| {
                    let range = yard.nodes_of(level, domain);
                    self.clear(range, (fit + 1) * pods, &gone)
                });
            }
            let options = next.iter();
            let options = options.filter_map(|(domain, set)| Some((*domain, set.as_ref()?)));
            let cost = |set: &BTreeSet<usize>| {
                let prey = || set.iter().map(|&index| &self.all[index]);
                let loss = prey().map(|prey| prey.alone).sum::<MilliGpuMs>();
                (prey().map(Prey::band).max(), loss, set.len())
            };
            let (_, set) = options.min_by_key(|(domain, set)| (cost(set), *domain))?;
            let set = set.clone();
            // Whoever lies in other domains, too, changes what they cost.
            let touched = |domain: &usize| {
                let range = yard.nodes_of(level, *domain);
                let lies = |index: &usize| {
                    let pods = self.pods.get(index).into_iter().flatten();
                    pods.into_iter().any(|(node, _)| range.contains(node))
                };
                set.iter().any(lies)
            };
            next.retain(|domain, _| !touched(domain));
            gone.extend(set);
        }
    }
}
