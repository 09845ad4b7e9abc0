//! The map: every block, rack, node and card; the same as a table.

use super::Page;
use crate::PageContext;
use crate::islands::MapHover;
use crate::parts::{
    Block, Col, Mark, PageHead, Sheet, blank, block_svg, by_size, card_key, count, gpus, plural,
};
use crate::url::{MapLook, MapUrl, Url};
use contract::{FleetView, MapBlock, MapCard, MapNode, MapView, Role};
use control::{Actor, ServiceError};
use leptos::prelude::*;
use std::collections::BTreeMap;

/// The page.
pub async fn map(context: &PageContext, url: &MapUrl) -> Page {
    let everyone = context.everyone()?;
    let (fleet, mut map) = (everyone.fleet().await?, everyone.map().await?);
    let all: Vec<String> = map.blocks.iter().map(|block| block.name.clone()).collect();
    if let Some(wanted) = &url.block {
        map.blocks.retain(|block| block.name == *wanted);
        if map.blocks.is_empty() {
            return Err(ServiceError::NotFound(format!("block {wanted}")));
        }
    }
    let say = match (&url.block, map.blocks.first()) {
        (Some(_), Some(block)) => of_one(block),
        _ => summary(&fleet, &map),
    };
    let say = say.into_any();
    let other = MapUrl {
        look: match url.look {
            MapLook::Picture => MapLook::Table,
            MapLook::Table => MapLook::Picture,
        },
        block: url.block.clone(),
    };
    let other_word = match url.look {
        MapLook::Picture => "As a table",
        MapLook::Table => "As a picture",
    };
    let whole = url.block.as_ref().map(|_| {
        let url = MapUrl {
            look: url.look,
            block: None,
        };
        view! { <a class="btn quiet" href=Url::Map(url).to_string()>"All blocks"</a> }
    });
    // Who may set machines aside finds the way there beside each.
    let holder = context
        .actor
        .as_ref()
        .filter(|actor| actor.has(Role::Admin));
    let content = match url.look {
        MapLook::Picture => picture(&map).into_any(),
        MapLook::Table => table(&map, &all, url, holder).into_any(),
    };
    let mut crumbs = Vec::new();
    if let Some(block) = &url.block {
        crumbs = vec![
            (Some(Url::Map(MapUrl::default())), "Map".to_owned()),
            (None, block.clone()),
        ];
    }
    Ok(view! {
        <PageHead title="Map" crumbs=crumbs say=say>
            {whole}
            <a class="btn" href=Url::Map(other).to_string()>{other_word}</a>
        </PageHead>
        {content}
    }
    .into_any())
}

fn of_one(block: &MapBlock) -> String {
    format!(
        "Block {} of {}: {} of {} busy; {}.",
        block.name,
        block.flavour,
        gpus(block.busy),
        contract::gpu_count(block.total.0),
        block.note
    )
}

fn summary(fleet: &FleetView, map: &MapView) -> String {
    let flavours: Vec<_> = by_size(&fleet.flavours)
        .into_iter()
        .map(|flavour| {
            let blocks = map
                .blocks
                .iter()
                .filter(|block| block.flavour == flavour.flavour)
                .count() as u64;
            format!(
                "{} {} in {}",
                gpus(flavour.total),
                flavour.title,
                plural(blocks, "block", "blocks")
            )
        })
        .collect();
    let whole: u32 = fleet
        .flavours
        .iter()
        .map(|flavour| flavour.whole_blocks_free)
        .sum();
    let sick: u32 = fleet.unhealthy.iter().map(|(_, nodes)| nodes).sum();
    let whole = match whole {
        0 => "No block is whole and free".to_owned(),
        1 => "One whole block is free".to_owned(),
        n => format!("{n} whole blocks are free"),
    };
    let sick = match sick {
        0 => "every node is well".to_owned(),
        n => format!(
            "{} nothing new",
            plural(n as u64, "node takes", "nodes take")
        ),
    };
    format!("{}. {whole}; {sick}.", flavours.join(", "))
}

/// Blocks by flavour, each a drawing; its heading leads to its table.
fn picture(map: &MapView) -> AnyView {
    let mut flavours: BTreeMap<&str, Vec<&MapBlock>> = BTreeMap::new();
    for block in &map.blocks {
        flavours.entry(&block.flavour).or_default().push(block);
    }
    // The largest part of the fleet comes first.
    let mut flavours: Vec<_> = flavours.into_iter().collect();
    flavours.sort_by_key(|(name, blocks)| (std::cmp::Reverse(blocks.len()), *name));
    let many = flavours.len() > 1;
    let groups: Vec<_> = flavours
        .into_iter()
        .map(|(flavour, blocks)| {
            let heading = many.then(|| view! { <h2 class="group">{flavour.to_owned()}</h2> });
            let drawings: Vec<_> = blocks.into_iter().map(one_block).collect();
            view! { <section>{heading}<ul class="blocks">{drawings}</ul></section> }
        })
        .collect();
    let marks = [
        Mark::Own,
        Mark::Borrowed,
        Mark::Shared,
        Mark::Notebook,
        Mark::Free,
        Mark::Spare,
        Mark::Broken,
    ];
    view! {
        {card_key(&marks)}
        <p class="hint">"One dash is a GPU, one line a node, one column a rack. With the keyboard: Tab to a block, then the arrows."</p>
        <div data-live="map">{groups}</div>
        <MapHover />
    }
    .into_any()
}

fn one_block(block: &MapBlock) -> AnyView {
    let said = format!(
        "{}: {} of {} GPUs busy, {}",
        block.name,
        gpus(block.busy),
        gpus(block.total),
        block.note
    );
    let table = Url::Map(MapUrl {
        look: MapLook::Table,
        block: Some(block.name.clone()),
    });
    let drawing = block_svg(&Block {
        block,
        said,
        mark: &|node, card| {
            node.cards
                .get(card)
                .map_or(Mark::Free, |card| (*card).into())
        },
    });
    view! {
        <li id=format!("block-{}", block.name)>
            <p class="block-head">
                <a href=table.to_string()>{block.name.clone()}</a>
                <span class="q">{block.note.clone()}</span>
                <span class="n">{gpus(block.busy)}<span class="u">" / "{gpus(block.total)}</span></span>
            </p>
            {drawing}
        </li>
    }
    .into_any()
}

/// A row a node; all blocks only as counts, since 600 rows help nobody.
fn table(map: &MapView, all: &[String], url: &MapUrl, holder: Option<&Actor>) -> AnyView {
    let links: Vec<_> = all
        .iter()
        .map(|name| {
            let here = (url.block.as_ref() == Some(name)).then_some("true");
            let to = Url::Map(MapUrl {
                look: MapLook::Table,
                block: Some(name.clone()),
            });
            view! { <li><a href=to.to_string() aria-current=here>{name.clone()}</a></li> }
        })
        .collect();
    let content = match (&url.block, map.blocks.first()) {
        (Some(_), Some(block)) => nodes(block, holder).into_any(),
        _ => blocks(map).into_any(),
    };
    view! {
        <nav aria-label="Blocks"><ul class="pills">{links}</ul></nav>
        <div data-live="map">{content}</div>
    }
    .into_any()
}

fn blocks(map: &MapView) -> AnyView {
    let rows: Vec<_> = map
        .blocks
        .iter()
        .map(|block| {
            let to = Url::Map(MapUrl {
                look: MapLook::Table,
                block: Some(block.name.clone()),
            });
            let cards = |wanted: MapCard| {
                let nodes = block.racks.iter().flat_map(|rack| &rack.nodes);
                nodes.flat_map(|node| &node.cards).filter(|card| **card == wanted).count() as u64
            };
            view! {
                <tr id=format!("block-{}", block.name)>
                    <th scope="row"><a class="link" href=to.to_string()>{block.name.clone()}</a></th>
                    <td class="q">{block.flavour.clone()}</td>
                    <td>{block.note.clone()}</td>
                    <td class="n">{gpus(block.total)}</td>
                    <td class="n">{gpus(block.busy)}</td>
                    <td class="n">{count(cards(MapCard::Borrowed))}</td>
                    <td class="n">{count(cards(MapCard::Free))}</td>
                    <td class="n">{count(cards(MapCard::Broken))}</td>
                </tr>
            }
            .into_any()
        })
        .collect();
    Sheet {
        caption: "Blocks".to_owned(),
        class: "",
        cols: vec![
            Col::Text("Block"),
            Col::Text("Flavour"),
            Col::Text("Room"),
            Col::Number("GPUs"),
            Col::Number("Busy"),
            Col::Number("Borrowed"),
            Col::Number("Free"),
            Col::Number("Out of use"),
        ],
        rows,
        foot: None,
    }
    .view()
}

fn nodes(block: &MapBlock, holder: Option<&Actor>) -> AnyView {
    if block.racks.iter().all(|rack| rack.nodes.is_empty()) {
        return blank("This block has no node.", None).into_any();
    }
    let rows: Vec<_> = block
        .racks
        .iter()
        .flat_map(|rack| rack.nodes.iter().map(move |node| (rack, node)))
        .map(|(rack, node)| node_row(&rack.name, node, holder))
        .collect();
    Sheet {
        caption: format!("Nodes of {}", block.name),
        class: "",
        cols: vec![
            Col::Text("Node"),
            Col::Text("Rack"),
            Col::Text("Health"),
            Col::Number("In use"),
            Col::Number("Free"),
            Col::Text("Teams"),
            Col::Text("Jobs that you may see"),
            Col::Unseen("Hold it"),
        ],
        rows,
        foot: None,
    }
    .view()
}

fn node_row(rack: &str, node: &MapNode, holder: Option<&Actor>) -> AnyView {
    let cards = |wanted: &[MapCard]| {
        node.cards
            .iter()
            .filter(|card| wanted.contains(card))
            .count()
    };
    let jobs: Vec<_> = node
        .jobs
        .iter()
        .map(|id| view! { <a class="link" href=Url::Job(*id).to_string()>{*id}</a>" " })
        .collect();
    let held = node
        .held
        .clone()
        .map(|held| view! { <span class="under q">{held}</span> });
    let to = Url::Holds {
        on: Some("node".to_owned()),
        what: Some(node.name.clone()),
    };
    let label = format!("Hold {}", node.name);
    let hold = holder.map(|_| {
        view! { <a class="btn small" href=format!("{to}#set") aria-label=label>"Hold…"</a> }
    });
    view! {
        <tr id=format!("node-{}", node.id)>
            <th scope="row">{node.name.clone()}</th>
            <td class="q">{rack.to_owned()}</td>
            <td>{node.health.clone()}{held}</td>
            <td class="n">{cards(&[MapCard::Own, MapCard::Borrowed, MapCard::Shared])}</td>
            <td class="n">{cards(&[MapCard::Free])}</td>
            <td>{node.teams.join(", ")}</td>
            <td>{jobs}</td>
            <td class="n">{hold}</td>
        </tr>
    }
    .into_any()
}
