//! A block of machines as a drawing: racks side by side, a line a node, a dash a card.
//!
//! A run of equal cards is one line with a dashed stroke, so that 4,608 cards are about a thousand short paths and not 4,608
//! elements. States differ in shape as well as in colour: a bar through borrowed cards, a cross over broken ones, thin dashes
//! for spares, half height for shared cards.

use contract::{MapBlock, MapCard, MapNode};
use leptos::prelude::*;
use std::fmt::Write as _;

/// Tenths of a pixel, so that the arithmetic stays whole.
const CARD: usize = 64;
const CARD_STEP: usize = 76;
const NODE_STEP: usize = 120;
const NODE_HIGH: usize = 86;
const RACK_GAP: usize = 72;

/// How a card is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// Nobody's.
    Free,
    /// Inside nominal.
    Own,
    /// Beyond nominal.
    Borrowed,
    /// In part.
    Shared,
    /// Takes nothing new.
    Broken,
    /// On a spare node.
    Spare,
    /// On a notebook node.
    Notebook,
    /// Of the job that the page is about.
    This,
    /// Of other jobs, where only one job matters.
    Other,
}

const MARKS: [(Mark, &str, &str); 9] = [
    (Mark::Free, "k-free", "free"),
    (Mark::Own, "k-own", "own quota"),
    (Mark::Borrowed, "k-borrowed", "borrowed"),
    (Mark::Shared, "k-shared", "shared in part"),
    (Mark::Broken, "k-broken", "broken or held"),
    (Mark::Spare, "k-spare", "spare"),
    (Mark::Notebook, "k-note", "notebooks"),
    (Mark::This, "k-own", "this job"),
    (Mark::Other, "k-other", "other jobs"),
];

impl Mark {
    fn class(self) -> &'static str {
        MARKS[self as usize].1
    }
}

impl From<MapCard> for Mark {
    fn from(card: MapCard) -> Self {
        match card {
            MapCard::Free => Self::Free,
            MapCard::Own => Self::Own,
            MapCard::Borrowed => Self::Borrowed,
            MapCard::Shared => Self::Shared,
            MapCard::Broken => Self::Broken,
            MapCard::Spare => Self::Spare,
            MapCard::Notebook => Self::Notebook,
        }
    }
}

/// A block and how to draw it.
pub struct Block<'a> {
    /// The block.
    pub block: &'a MapBlock,
    /// What the drawing says in words.
    pub said: String,
    /// The mark of a card: node and index.
    pub mark: &'a dyn Fn(&MapNode, usize) -> Mark,
}

/// Paths of one drawing: one for each mark.
#[derive(Default)]
struct Paths([String; MARKS.len()]);

impl Paths {
    fn run(&mut self, mark: Mark, x: usize, y: usize, cards: usize) {
        let path = &mut self.0[mark as usize];
        let long = cards * CARD_STEP - (CARD_STEP - CARD);
        let written = match mark {
            Mark::Broken => {
                let (top, bottom) = (y - NODE_HIGH / 2, y + NODE_HIGH / 2);
                write!(
                    path,
                    "M{} {}h{}M{} {}L{} {}M{} {}L{} {}",
                    t(x),
                    t(y),
                    t(long),
                    t(x),
                    t(top),
                    t(x + long),
                    t(bottom),
                    t(x),
                    t(bottom),
                    t(x + long),
                    t(top)
                )
            }
            _ => write!(path, "M{} {}h{}", t(x), t(y), t(long)),
        };
        written.expect("a String takes all text");
    }
}

/// Tenths as a number without a needless nought.
fn t(tenths: usize) -> String {
    match tenths % 10 {
        0 => (tenths / 10).to_string(),
        rest => format!("{}.{rest}", tenths / 10),
    }
}

/// The drawing. Each node carries its own words, which a hover shows.
pub fn block_svg(drawn: &Block<'_>) -> AnyView {
    let block = drawn.block;
    let widest = block
        .racks
        .iter()
        .flat_map(|rack| &rack.nodes)
        .map(|node| node.cards.len())
        .max()
        .unwrap_or(0);
    let rack_wide = widest.max(1) * CARD_STEP - (CARD_STEP - CARD);
    let columns = columns(block);
    let (mut paths, mut nodes, mut high) = (Paths::default(), Vec::new(), 0);
    for (column, in_column) in columns.iter().enumerate() {
        let x = column * (rack_wide + RACK_GAP);
        for (y, node) in in_column {
            draw_node(&mut paths, node, drawn.mark, x, y + NODE_HIGH / 2);
            high = high.max(y + NODE_HIGH);
            let words = node_words(node);
            nodes.push(view! {
                <rect class="nd" x=t(x) y=t(*y) width=t(rack_wide) height=t(NODE_HIGH)><title>{words}</title></rect>
            });
        }
    }
    let wide = (columns.len() * (rack_wide + RACK_GAP)).saturating_sub(RACK_GAP);
    let lines: Vec<_> = MARKS
        .iter()
        .map(|(mark, class, _)| (mark, class, std::mem::take(&mut paths.0[*mark as usize])))
        .filter(|(.., d)| !d.is_empty())
        .map(|(mark, class, d)| {
            let bar =
                (*mark == Mark::Borrowed).then(|| view! { <path class="k k-bar" d=d.clone() /> });
            view! { <path class=format!("k {class}") d=d />{bar} }
        })
        .collect();
    view! {
        <svg
            class="block"
            viewBox=format!("0 0 {} {}", t(wide), t(high))
            width=t(wide)
            height=t(high)
            role="img"
            aria-label=drawn.said.clone()
        >
            {lines}
            {nodes}
        </svg>
    }
    .into_any()
}

/// A column a rack, each node with its place from the top. A rack that is much shorter than the others (a spare that stands
/// alone) goes below its neighbour, apart, so that it costs no width.
fn columns(block: &MapBlock) -> Vec<Vec<(usize, &MapNode)>> {
    let tallest = block
        .racks
        .iter()
        .map(|rack| rack.nodes.len())
        .max()
        .unwrap_or(0);
    let mut columns: Vec<Vec<(usize, &MapNode)>> = Vec::new();
    for rack in &block.racks {
        let below = columns
            .last_mut()
            .filter(|_| rack.nodes.len() * 2 < tallest);
        let from = below
            .as_ref()
            .and_then(|column| column.last())
            .map_or(0, |(y, _)| y + NODE_STEP + RACK_GAP / 2);
        let nodes = rack
            .nodes
            .iter()
            .enumerate()
            .map(|(row, node)| (from + row * NODE_STEP, node));
        match below {
            Some(column) => column.extend(nodes),
            None => columns.push(nodes.collect()),
        }
    }
    columns
}

fn draw_node(
    paths: &mut Paths,
    node: &MapNode,
    mark: &dyn Fn(&MapNode, usize) -> Mark,
    x: usize,
    y: usize,
) {
    let marks: Vec<Mark> = (0..node.cards.len()).map(|card| mark(node, card)).collect();
    let mut at = 0;
    for run in marks.chunk_by(|a, b| a == b) {
        // A shared card is half filled: the other half is free.
        if run[0] == Mark::Shared {
            paths.run(Mark::Free, x + at * CARD_STEP, y, run.len());
        }
        paths.run(run[0], x + at * CARD_STEP, y, run.len());
        at += run.len();
    }
}

/// `h100-b07-r1-n3, ready: 8 of 8 in use by fraud-ml; job 412`.
fn node_words(node: &MapNode) -> String {
    let free = node
        .cards
        .iter()
        .filter(|card| **card == MapCard::Free)
        .count();
    let taken =
        |card: &&MapCard| matches!(card, MapCard::Own | MapCard::Borrowed | MapCard::Shared);
    let busy = node.cards.iter().filter(taken).count();
    let borrowed = node
        .cards
        .iter()
        .filter(|card| **card == MapCard::Borrowed)
        .count();
    let mut words = format!("{}, {}", node.name, node.health);
    if busy > 0 {
        let _ = write!(words, ": {busy} of {} in use", node.cards.len());
        if borrowed > 0 {
            let _ = write!(words, ", {borrowed} borrowed");
        }
        if !node.teams.is_empty() {
            let _ = write!(words, " by {}", node.teams.join(", "));
        }
    } else if free == node.cards.len() {
        words.push_str(": all free");
    }
    if !node.jobs.is_empty() {
        let jobs: Vec<_> = node.jobs.iter().map(ToString::to_string).collect();
        let word = if jobs.len() == 1 { "job" } else { "jobs" };
        let _ = write!(words, "; {word} {}", jobs.join(", "));
    }
    words
}

/// What the marks of a map mean.
pub fn card_key(marks: &[Mark]) -> AnyView {
    let items: Vec<_> = marks
        .iter()
        .map(|mark| {
            let mut paths = Paths::default();
            if *mark == Mark::Shared {
                paths.run(Mark::Free, 0, NODE_HIGH / 2, 2);
            }
            paths.run(*mark, 0, NODE_HIGH / 2, 2);
            let free = std::mem::take(&mut paths.0[Mark::Free as usize]);
            let d = if *mark == Mark::Free { free.clone() } else { std::mem::take(&mut paths.0[*mark as usize]) };
            let under = (*mark == Mark::Shared).then(|| view! { <path class="k k-free" d=free /> });
            let bar = (*mark == Mark::Borrowed).then(|| view! { <path class="k k-bar" d=d.clone() /> });
            view! {
                <li>
                    <svg width="14" height="8.6" aria-hidden="true">{under}<path class=format!("k {}", mark.class()) d=d />{bar}</svg>
                    {MARKS[*mark as usize].2}
                </li>
            }
        })
        .collect();
    view! { <ul class="key">{items}</ul> }.into_any()
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::{Gpus, MapRack};

    fn block() -> MapBlock {
        let node = |id: u32, cards: [MapCard; 8]| MapNode {
            id,
            name: format!("n{id}"),
            health: "ready".into(),
            held: None,
            cards: cards.to_vec(),
            teams: vec!["fraud-ml".into()],
            jobs: vec![412],
        };
        use MapCard::{Borrowed, Broken, Free, Own};
        MapBlock {
            name: "b0".into(),
            flavour: "h100-80g".into(),
            total: Gpus::whole(24),
            busy: Gpus::whole(12),
            note: "room for 4".into(),
            racks: vec![MapRack {
                name: "r0".into(),
                nodes: vec![
                    node(0, [Own, Own, Own, Own, Borrowed, Borrowed, Free, Free]),
                    node(1, [Broken; 8]),
                ],
            }],
        }
    }

    #[test]
    fn a_run_of_equal_cards_is_one_line_and_broken_ones_are_crossed() {
        let block = block();
        let html = block_svg(&Block {
            block: &block,
            said: "b0".into(),
            mark: &|node, card| node.cards[card].into(),
        })
        .to_html();
        assert!(html.contains("d=\"M0 4.3h29.2\""), "four own cards: {html}");
        assert!(html.contains("k-bar"), "borrowed cards have a bar: {html}");
        let broken = html
            .split("<path ")
            .find(|path| path.contains("k-broken"))
            .expect("broken cards are drawn");
        assert!(
            broken.contains("d=\"M0 16.3h59.6M0 12L59.6 20.6M0 20.6L59.6 12"),
            "{broken}"
        );
        assert!(
            html.contains("n0, ready: 6 of 8 in use, 2 borrowed by fraud-ml; job 412"),
            "{html}"
        );
    }

    #[test]
    fn marks_are_found_by_their_number() {
        for (index, (mark, ..)) in MARKS.iter().enumerate() {
            assert_eq!(*mark as usize, index);
        }
    }
}
