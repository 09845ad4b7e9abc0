//! Placement: best fit by domain.
//!
//! 1. What fits inside one domain of the level asked for takes, among the domains that fit, the one with the least
//!    left over: small jobs fill broken domains and leave whole ones whole.
//! 2. What must be spread takes the fullest use of the fewest domains: the roomiest first, until the rest fits into one,
//!    and then the one with the least left over. (Kueue's BestFit.)
//! 3. Unconstrained work that must be spread takes the least free domains first, so that it uses up fragments.
//!    (Kueue's LeastFreeCapacity.)
//! 4. The same holds inside each domain, level by level, down to the node and the card.
//!
//! Segments are counted whole: at their level and above, room is a number of segments. Ranks run in the order of the
//! topology, so they are consecutive inside every domain, and every segment's too.

use crate::count::{Counted, total};
use crate::room::{PodAsk, Room, Yard};
use crate::{JobSpec, Name, NodeId, Placement, PodPlace, Topology, TopologyMode};
use std::cmp::Reverse;
use std::ops::Range;

/// The shape of a gang, with level names resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Shape {
    /// What each pod asks.
    pub ask: PodAsk,
    /// Pods in all.
    pub pods: u32,
    /// The first thing to try.
    wish: Wish,
    /// What may be tried after it.
    or_else: OrElse,
}

/// One way to lay a gang.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Wish {
    /// All of it inside one domain of the level.
    Within(usize),
    /// Segments of so many pods, each inside one domain of the level.
    Segments(usize, u32),
    /// Anywhere.
    Anywhere,
}

/// What to do when the first wish cannot be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum OrElse {
    /// Wait for it.
    Wait,
    /// Climb a level at a time, at last spread over the fewest domains.
    Climb,
    /// Spread over the least free domains.
    Fragments,
}

/// How domains are chosen when more than one is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spread {
    FewestDomains,
    LeastFree,
}

/// A request names a level that the topology does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnknownLevel(pub Option<Name>);

impl Shape {
    /// Of so many pods of a job.
    pub(crate) fn of(spec: &JobSpec, pods: u32, topology: &Topology) -> Result<Self, UnknownLevel> {
        let request = &spec.topology;
        let named = || {
            let found = request
                .level
                .as_ref()
                .and_then(|name| topology.levels.iter().position(|level| level == name));
            found.ok_or_else(|| UnknownLevel(request.level.clone()))
        };
        let wish = match (request.mode, request.segments) {
            (TopologyMode::Unconstrained, None) => Wish::Within(0),
            (TopologyMode::Required | TopologyMode::Preferred, None) => Wish::Within(named()?),
            (_, Some(segments)) => Wish::Segments(named()?, segments.pods.max(1)),
        };
        let or_else = match (request.mode, request.segments) {
            (TopologyMode::Required, _) => OrElse::Wait,
            (TopologyMode::Preferred, _) => OrElse::Climb,
            // Segments are kept whole even where the gang may lie anywhere.
            (TopologyMode::Unconstrained, _) => OrElse::Fragments,
        };
        // One pod lies inside one node whatever it asks for.
        let wish = if pods == 1 {
            Wish::Within(topology.levels.len().saturating_sub(1))
        } else {
            wish
        };
        let or_else = if pods == 1 { OrElse::Wait } else { or_else };
        Ok(Self {
            ask: PodAsk::of(spec),
            pods,
            wish,
            or_else,
        })
    }

    /// The wishes in the order in which they are tried.
    fn wishes(&self) -> Vec<(Wish, Spread)> {
        let mut wishes = vec![(self.wish, Spread::FewestDomains)];
        match (self.or_else, self.wish) {
            (OrElse::Wait, _) | (_, Wish::Anywhere) => {}
            (OrElse::Climb, Wish::Within(level)) => {
                wishes.extend(
                    (0..level)
                        .rev()
                        .map(|level| (Wish::Within(level), Spread::FewestDomains)),
                );
                wishes.push((Wish::Anywhere, Spread::FewestDomains));
            }
            (OrElse::Climb, Wish::Segments(level, pods)) => {
                wishes.extend(
                    (0..level)
                        .rev()
                        .map(|level| (Wish::Segments(level, pods), Spread::FewestDomains)),
                );
                wishes.push((Wish::Anywhere, Spread::FewestDomains));
            }
            (OrElse::Fragments, Wish::Within(_)) => {
                wishes.push((Wish::Anywhere, Spread::LeastFree))
            }
            (OrElse::Fragments, Wish::Segments(..)) => wishes[0].1 = Spread::LeastFree,
        }
        wishes
    }

    /// The wish that has to be met for it to start at all.
    fn last_wish(&self) -> Wish {
        self.wishes()
            .last()
            .map_or(Wish::Anywhere, |&(wish, _)| wish)
    }

    /// What has to be there for it to start at all.
    pub(crate) fn least(&self, levels: usize) -> Least {
        match self.last_wish() {
            Wish::Within(level) => Least {
                level: level.min(levels),
                size: self.pods,
                units: 1,
            },
            Wish::Segments(level, pods) => Least {
                level: level.min(levels),
                size: pods,
                units: u64::from(self.pods / pods),
            },
            Wish::Anywhere => Least {
                level: 0,
                size: 1,
                units: u64::from(self.pods),
            },
        }
    }

    /// What has to be met, in a yard of so many levels.
    pub(crate) fn target(&self, levels: usize) -> Target {
        match self.last_wish() {
            Wish::Within(level) => Target::Within(level.min(levels)),
            Wish::Segments(level, pods) => Target::Segments(level.min(levels), pods),
            Wish::Anywhere => Target::Anywhere,
        }
    }

    /// True when one pod is all there is.
    fn is_single(&self) -> bool {
        self.pods == 1
    }
}

/// The least that must be there for a gang: units of some pods, each inside one domain of a level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Least {
    pub level: usize,
    /// Pods of a unit.
    size: u32,
    /// Units asked.
    pub units: u64,
}

impl Least {
    /// How many units fit where so many pods do.
    pub(crate) fn units_in(&self, pods: u32) -> u64 {
        u64::from(pods / self.size.max(1))
    }
}

/// What a request must have, whatever it would prefer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// All of it inside one domain of the level.
    Within(usize),
    /// Segments of so many pods, each inside one domain of the level.
    Segments(usize, u32),
    /// Anywhere.
    Anywhere,
}

/// Room that is too small: what was asked for and the best there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shortage<'a> {
    /// The level that must hold it; `None` = anywhere.
    pub level: Option<usize>,
    /// Pods asked, of one segment if there are any.
    pub asks_pods: u32,
    /// The most pods that one domain of the level has room for (that all have, when anywhere).
    pub best_pods: u32,
    /// That domain.
    pub best_domain: Option<&'a Name>,
    /// Segments asked, and how many fit at once.
    pub segments: Option<(u32, u32)>,
}

/// Finds room for a gang: nodes of the yard with their number of pods, in order of rank.
pub(crate) fn seek<'a>(
    yard: &Yard<'a>,
    counted: &Counted,
    shape: &Shape,
) -> Result<Vec<(usize, u32)>, Shortage<'a>> {
    for (wish, spread) in shape.wishes() {
        if let Some(found) = meet(yard, counted, shape, wish, spread) {
            return Ok(found);
        }
    }
    Err(shortage(yard, counted, shape))
}

/// What is missing for the last wish.
fn shortage<'a>(yard: &Yard<'a>, counted: &Counted, shape: &Shape) -> Shortage<'a> {
    let best = |level: usize| {
        let level = level.min(yard.levels());
        let domains = counted.pods[level].iter().enumerate();
        let (domain, pods) = domains
            .max_by_key(|&(domain, pods)| (*pods, Reverse(domain)))
            .unzip();
        (
            pods.copied().unwrap_or(0),
            domain.and_then(|domain| yard.name(level, domain)),
        )
    };
    match shape.last_wish() {
        Wish::Within(level) => {
            let (best_pods, best_domain) = best(level);
            Shortage {
                level: Some(level),
                asks_pods: shape.pods,
                best_pods,
                best_domain,
                segments: None,
            }
        }
        Wish::Segments(level, pods) => {
            let (best_pods, best_domain) = best(level);
            let whole = counted.pods[level.min(yard.levels())]
                .iter()
                .map(|room| room / pods);
            let fit = whole.fold(0, u32::saturating_add);
            let segments = Some((shape.pods / pods, fit));
            Shortage {
                level: Some(level),
                asks_pods: pods,
                best_pods,
                best_domain,
                segments,
            }
        }
        Wish::Anywhere => {
            let best_pods = total(&counted.pods[0]);
            Shortage {
                level: None,
                asks_pods: shape.pods,
                best_pods,
                best_domain: None,
                segments: None,
            }
        }
    }
}

/// Room by unit: pods, or whole segments at their level and above.
struct Units<'y, 'a> {
    yard: &'y Yard<'a>,
    counted: &'y Counted,
    /// Level x domain.
    room: Vec<Vec<u32>>,
    /// The segments' level and size; pods below it.
    segments: Option<(usize, u32)>,
    spread: Spread,
}

fn meet(
    yard: &Yard,
    counted: &Counted,
    shape: &Shape,
    wish: Wish,
    spread: Spread,
) -> Option<Vec<(usize, u32)>> {
    let mut units = Units {
        yard,
        counted,
        room: Vec::new(),
        segments: None,
        spread,
    };
    let mut found = Vec::new();
    match wish {
        Wish::Within(level) => {
            let level = level.min(yard.levels());
            let domain = units.best_domain(level, shape)?;
            units.fill(level, domain, shape.pods, &mut found);
        }
        Wish::Segments(level, pods) => {
            let level = level.min(yard.levels());
            units.count_segments(level, pods);
            if total(&units.room[0]) < shape.pods / pods {
                return None;
            }
            units.share(0, 0..yard.domains(0), shape.pods / pods, &mut found);
        }
        Wish::Anywhere => {
            if total(&counted.pods[0]) < shape.pods {
                return None;
            }
            units.share(0, 0..yard.domains(0), shape.pods, &mut found);
        }
    }
    Some(found)
}

impl Units<'_, '_> {
    /// Counts whole segments at their level and above.
    fn count_segments(&mut self, level: usize, pods: u32) {
        self.segments = Some((level, pods));
        self.room = vec![Vec::new(); level + 1];
        self.room[level] = self.counted.pods[level]
            .iter()
            .map(|room| room / pods)
            .collect();
        for above in (0..level).rev() {
            let domains =
                (0..self.yard.domains(above)).map(|domain| self.yard.children(above, domain));
            self.room[above] = domains
                .map(|children| total(&self.room[above + 1][children]))
                .collect();
        }
    }

    fn room(&self, level: usize, domain: usize) -> u32 {
        self.room.get(level).unwrap_or(&self.counted.pods[level])[domain]
    }

    /// The domain that holds the whole gang and has the least left over; then the one in the fullest surroundings.
    fn best_domain(&self, level: usize, shape: &Shape) -> Option<usize> {
        let fits =
            (0..self.yard.domains(level)).filter(|&domain| self.room(level, domain) >= shape.pods);
        let at_node = level == self.yard.levels();
        fits.min_by_key(|&domain| {
            let card = if at_node && shape.is_single() {
                self.counted.card_left.get(domain).copied()
            } else {
                None
            };
            // On one node, free GPUs say more than free pods: three GPUs leave more behind on eight than on six.
            let over = if at_node {
                0
            } else {
                self.room(level, domain) - shape.pods
            };
            (
                card,
                over,
                self.counted.milli[level][domain],
                self.around(level, domain),
                domain,
            )
        })
    }

    /// Free GPUs of the domains around one, the nearest first.
    fn around(&self, level: usize, domain: usize) -> [u64; 2] {
        let parent = self.yard.parent(level, domain);
        let grandparent = parent.and_then(|parent| self.yard.parent(level - 1, parent));
        let free = |level: usize, domain: Option<usize>| {
            domain.map_or(0, |domain| self.counted.milli[level][domain])
        };
        [
            free(level.saturating_sub(1), parent),
            free(level.saturating_sub(2), grandparent),
        ]
    }

    /// Lays so many units into one domain, which has room for them.
    fn fill(&self, level: usize, domain: usize, units: u32, found: &mut Vec<(usize, u32)>) {
        let pods = match self.segments {
            Some((at, pods)) if at == level => units * pods,
            Some(_) | None => units,
        };
        if level == self.yard.levels() {
            found.push((domain, pods));
        } else {
            self.share(level + 1, self.yard.children(level, domain), pods, found);
        }
    }

    /// Lays so many units into domains of one level, which have room for them together.
    fn share(
        &self,
        level: usize,
        domains: Range<usize>,
        units: u32,
        found: &mut Vec<(usize, u32)>,
    ) {
        let mut chosen = match self.spread {
            Spread::FewestDomains => self.fewest(level, domains, units),
            Spread::LeastFree => self.least_free(level, domains, units),
        };
        // Ranks follow the topology, not the order of choice.
        chosen.sort_unstable();
        for (domain, units) in chosen {
            self.fill(level, domain, units, found);
        }
    }

    fn fewest(&self, level: usize, domains: Range<usize>, mut units: u32) -> Vec<(usize, u32)> {
        let room = |domain: usize| self.room(level, domain);
        let least_free_first = |domain: usize| (self.counted.milli[level][domain], domain);
        let mut order: Vec<usize> = domains.filter(|&domain| room(domain) > 0).collect();
        // One domain is enough for most: no need to sort them all.
        let enough = order
            .iter()
            .copied()
            .filter(|&domain| room(domain) >= units);
        if let Some(best) = enough.min_by_key(|&domain| (room(domain), least_free_first(domain))) {
            return vec![(best, units)];
        }
        order.sort_unstable_by_key(|&domain| (Reverse(room(domain)), least_free_first(domain)));
        let mut chosen = Vec::new();
        for (index, &domain) in order.iter().enumerate() {
            if room(domain) >= units {
                // The rest fits into one: the roomiest ones are kept for others.
                let enough = order[index..]
                    .iter()
                    .copied()
                    .take_while(|&domain| room(domain) >= units);
                let best = enough.min_by_key(|&domain| (room(domain), least_free_first(domain)));
                chosen.push((best.unwrap_or(domain), units));
                break;
            }
            chosen.push((domain, room(domain)));
            units -= room(domain);
        }
        chosen
    }

    fn least_free(&self, level: usize, domains: Range<usize>, mut units: u32) -> Vec<(usize, u32)> {
        let room = |domain: usize| self.room(level, domain);
        let mut order: Vec<usize> = domains.filter(|&domain| room(domain) > 0).collect();
        order.sort_unstable_by_key(|&domain| {
            (room(domain), self.counted.milli[level][domain], domain)
        });
        let mut chosen = Vec::new();
        for domain in order {
            let taken = room(domain).min(units);
            chosen.push((domain, taken));
            units -= taken;
            if units == 0 {
                break;
            }
        }
        chosen
    }
}

/// Takes the cards of what [`seek`] found.
pub(crate) fn take(
    yard: &Yard,
    room: &mut Room,
    shape: &Shape,
    found: &[(usize, u32)],
) -> Vec<PodPlace> {
    let pods = found
        .iter()
        .flat_map(|&(node, pods)| std::iter::repeat_n(node, pods as usize));
    pods.map(|node| room.take(yard, node, &shape.ask)).collect()
}

/// The narrowest level whose one domain holds all of the nodes; `None` = they cross the widest one.
pub(crate) fn within(yard: &Yard, topology: &Topology, found: &[(usize, u32)]) -> Option<u8> {
    let nodes = || found.iter().map(|&(node, _)| node);
    let (mut first, mut last) = (nodes().min()?, nodes().max()?);
    let mut level = yard.levels();
    while first != last {
        (first, last) = (yard.parent(level, first)?, yard.parent(level, last)?);
        level -= 1;
    }
    (level < topology.levels.len()).then_some(level as u8)
}

/// The nodes of a placement, each once.
pub(crate) fn nodes(placement: &Placement) -> Vec<NodeId> {
    let mut nodes: Vec<NodeId> = placement.pods.iter().map(|pod| pod.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}
