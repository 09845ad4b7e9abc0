//! Panels of reclaims: what it is about, who would go, what it costs three ways, and the answers.

use crate::forms;
use crate::parts::{
    Col, Sheet, capital, gpu_hours, gpus, plural, price, rounded, span, span_ms, when,
};
use crate::url::Url;
use contract::{ReclaimJob, ReclaimStage, ReclaimVictim, ReclaimView, ReclaimWay};
use control::Actor;
use jiff::Timestamp;
use leptos::prelude::*;

/// In one line: who gets what from whom.
pub fn title(one: &ReclaimView) -> String {
    let verb = match one.stage {
        ReclaimStage::Requested => "asks back",
        ReclaimStage::Approved | ReclaimStage::Made => "takes back",
        ReclaimStage::Started => "took back",
        ReclaimStage::Declined | ReclaimStage::Withdrawn => "asked back",
    };
    format!(
        "{} {verb} {} from {}",
        one.claimant.team,
        contract::gpu_count(one.taken.0),
        one.losing_teams.join(", ")
    )
}

/// A job's name, linked where the reader may open it.
pub fn named(job: &ReclaimJob) -> AnyView {
    let name = job
        .name
        .clone()
        .unwrap_or_else(|| format!("job {}", job.id));
    match job.visible {
        true => view! { <a class="link" href=Url::Job(job.id).to_string()>{name}</a> }.into_any(),
        false => view! { {name} }.into_any(),
    }
}

/// For whom, by what right, and where it would start.
pub fn for_whom(one: &ReclaimView) -> AnyView {
    let owner = one
        .claimant
        .owner
        .clone()
        .map(|owner| format!(" of {owner}"));
    let waits = one
        .claimant_submitted
        .filter(|_| !one.stage.over())
        .map(|since| format!(", waiting {}", span(since, one.now)));
    let starts = match one.stage.over() {
        true => "It was to start on",
        false => "It would start on",
    };
    view! {
        <p class="q">
            "For "{named(&one.claimant)}{owner}" ("{gpus(one.claimant.gpus)}" GPUs, "{one.right.clone()}{waits}"). "
            {starts}" "{one.place.clone()}"."
        </p>
    }
    .into_any()
}

/// Until when a person may answer, and what happens then.
pub fn countdown(one: &ReclaimView) -> Option<AnyView> {
    let deadline = one.deadline?;
    let then = match one.at_deadline.as_deref() {
        Some("approved") => "then: approved, after a save",
        _ => "then: withdrawn",
    };
    Some(
        view! {
            <p class="countdown">
                <b class="nw">{span(one.now, deadline)}" left"</b>
                <span class="q">"until "{when(deadline, one.now)}</span>
                <span class="q">{then}</span>
            </p>
        }
        .into_any(),
    )
}

/// What the reader's own team has at stake.
pub fn at_stake(one: &ReclaimView, actor: &Actor) -> Option<AnyView> {
    let is_mine = |victim: &&ReclaimVictim| actor.role_in(&victim.job.team).is_some();
    let mine: Vec<_> = one.victims.iter().filter(is_mine).collect();
    let first = mine.first()?;
    let team = first.job.team.clone();
    let more = mine.len() as u64 - 1;
    let more = (more > 0).then(|| format!(" and {}", plural(more, "job more", "jobs more")));
    let (would, then) = match one.stage {
        ReclaimStage::Requested => (
            "would lose ",
            " would save, stop, and wait again with its first submit time.",
        ),
        ReclaimStage::Approved | ReclaimStage::Made => (
            "gives back ",
            " saves, stops, and waits again with its first submit time.",
        ),
        ReclaimStage::Started | ReclaimStage::Declined | ReclaimStage::Withdrawn => return None,
    };
    Some(
        view! {
            <p class="notice held">
                <b>"Your team, "{team}", "</b>{would}<b>{named(&first.job)}</b>{more}":"{then}
            </p>
        }
        .into_any(),
    )
}

/// Who would go.
pub fn victims(one: &ReclaimView) -> AnyView {
    let now = one.now;
    let rows: Vec<_> = one
        .victims
        .iter()
        .map(|victim| {
            let saved = victim
                .last_checkpoint
                .map(|at| format!("{} ago", span(at, now)));
            let saves = victim.save_ms.map(span_ms);
            let runs = victim.started.map(|at| span(at, now));
            let owner = victim.job.owner.clone().unwrap_or_default();
            let stays = victim.keeps_pods.map(|pods| {
                let pods = plural(pods.into(), "pod", "pods");
                view! { <span class="under q">{format!("goes on with {pods}")}</span> }
            });
            view! {
                <tr>
                    <th scope="row">{named(&victim.job)}<span class="under q">{victim.job.team.clone()}</span></th>
                    <td class="q">{owner}</td>
                    <td class="n">{gpus(victim.job.gpus)}{stays}</td>
                    <td class="n">{saved.unwrap_or_else(|| "none known".to_owned())}</td>
                    <td class="n">{saves.unwrap_or_else(|| "never".to_owned())}</td>
                    <td class="n">{runs.unwrap_or_else(|| "n/a".to_owned())}</td>
                    <td class="n">{rounded(&victim.lost_gpu_hours, 1)}<span class="unit-s">" GPU-h"</span></td>
                </tr>
            }
            .into_any()
        })
        .collect();
    let would = match one.stage {
        ReclaimStage::Requested => "Would stop",
        ReclaimStage::Approved | ReclaimStage::Made => "Gives back",
        ReclaimStage::Started => "Gave back",
        ReclaimStage::Declined | ReclaimStage::Withdrawn => "Was asked",
    };
    let sheet = Sheet {
        caption: format!("Jobs of reclaim {}", one.id),
        class: "victims",
        cols: vec![
            Col::Text(would),
            Col::Text("Owner"),
            Col::Number("GPUs"),
            Col::Number("Last checkpoint"),
            Col::Number("Saves in"),
            Col::Number("Runs for"),
            Col::Number("Loses, GPU-h"),
        ],
        rows,
        foot: None,
    };
    match one.victims.len() {
        0..=12 => sheet.view(),
        _ => sheet.tall(None),
    }
}

fn money(way: &ReclaimWay, currency: &str) -> String {
    let amount = way.amount.as_ref();
    amount.map_or_else(|| "no price".to_owned(), |text| price(currency, text))
}

/// How long until the room is there, in words.
fn room_in(way: &ReclaimWay, never: &'static str) -> String {
    match way.wait_ms {
        None => never.to_owned(),
        Some(ms) if ms < 1_000 => "room at once".to_owned(),
        Some(ms) => format!("room in {}", span_ms(ms)),
    }
}

/// What it costs, three ways.
pub fn ways(one: &ReclaimView) -> AnyView {
    let price = &one.price;
    let lost = |way: &ReclaimWay| format!("{} GPU-hours", rounded(&way.lost_gpu_hours, 1));
    let idle = price.idle_gpu_hours.as_ref().map(|idle| {
        format!(
            "; {} GPU-hours of waiting for {}",
            rounded(idle, 1),
            one.claimant.team
        )
    });
    let at = match one.stage {
        ReclaimStage::Requested => None,
        _ => Some(view! { <p class="hint">"As worked out "{when(price.at, one.now)}"."</p> }),
    };
    view! {
        <div class="ways">
            <div>
                <span class="q">"Killed now"</span>
                <b>{lost(&price.now)}" lost"</b>
                <span class="q">{money(&price.now, &price.currency)}", "{room_in(&price.now, "no room")}</span>
            </div>
            <div class="best">
                <span class="q">"After a save (what a yes does)"</span>
                <b>{lost(&price.after_save)}" lost"</b>
                <span class="q">
                    {money(&price.after_save, &price.currency)}", "{room_in(&price.after_save, "room at once")}
                </span>
            </div>
            <div>
                <span class="q">"At its next own save"</span>
                <b>{lost(&price.next_save)}" lost"</b>
                <span class="q">
                    {money(&price.next_save, &price.currency)}", "
                    {room_in(&price.next_save, "which never comes")}{idle}
                </span>
            </div>
        </div>
        {at}
    }
    .into_any()
}

/// The two answers that need no words, as forms of their own.
pub fn plain_answers(one: &ReclaimView) -> AnyView {
    let (id, may) = (one.id, &one.may);
    // A yes is to the jobs that are shown here: others may be proposed meanwhile.
    let shown: Vec<_> = one
        .victims
        .iter()
        .map(|one| one.job.id.to_string())
        .collect();
    let seen = shown.join(",");
    let button = |deed: &'static str, class: &'static str, word: &'static str, label: String| {
        view! {
            <form method="post" action=forms::answer_reclaim(id, deed)>
                <input type="hidden" name="seen" value=seen.clone() />
                <button class=class aria-label=label>{word}</button>
            </form>
        }
        .into_any()
    };
    let approve = may.approve.then(|| {
        let word = "Approve, after a save";
        button("approve", "btn go", word, format!("{word}: reclaim {id}"))
    });
    let defer = may.defer.then(|| {
        let word = "Defer once";
        button("defer", "btn", word, format!("{word}: reclaim {id}"))
    });
    view! { {approve}{defer} }.into_any()
}

/// What was said of it so far, beside its outcome.
pub fn said(one: &ReclaimView) -> AnyView {
    let deferred = one
        .deferred_by
        .clone()
        .map(|by| view! { <li>"Put off once by "{by}"."</li> });
    let proposed = one
        .proposed_by
        .clone()
        .map(|by| view! { <li>"These jobs were proposed by "{by}"."</li> });
    let decided = one.decided.map(|at| {
        let outcome = capital(&one.outcome);
        view! { <li>{when(at, one.now)}" "{outcome}"."</li> }
    });
    let else_outcome = (one.decided.is_none() && one.stage != ReclaimStage::Requested)
        .then(|| view! { <li>{capital(&one.outcome)}"."</li> });
    let over = one
        .ended
        .map(|at| view! { <li>"Over since "{when(at, one.now)}"."</li> });
    view! { <ul class="plain said">{deferred}{proposed}{decided}{else_outcome}{over}</ul> }
        .into_any()
}

/// Those that are over, a row each.
pub fn over(list: &[ReclaimView], now: Timestamp) -> AnyView {
    let rows: Vec<_> = list
        .iter()
        .map(|one| {
            let at = one.ended.unwrap_or(one.requested);
            let lost = (one.stage == ReclaimStage::Started).then(|| {
                let lost = &one.price.after_save.lost_gpu_hours;
                view! { <span title=gpu_hours(lost)>{rounded(lost, 1)}</span>" GPU-h" }
            });
            view! {
                <tr id=format!("reclaim-{}", one.id)>
                    <td class="n q">{when(at, now)}</td>
                    <th scope="row"><a href=Url::Reclaim(one.id).to_string()>{title(one)}</a></th>
                    <td class="q">{capital(&one.outcome)}</td>
                    <td class="n">{lost}</td>
                </tr>
            }
            .into_any()
        })
        .collect();
    Sheet {
        caption: "Reclaims that are over".to_owned(),
        class: "over",
        cols: vec![
            Col::Number("Over"),
            Col::Text("Reclaim"),
            Col::Text("What became of it"),
            Col::Number("Lost"),
        ],
        rows,
        foot: None,
    }
    .view()
}

/// The other sets that would do, as text for a form.
pub fn numbers(jobs: &[ReclaimJob]) -> String {
    let ids: Vec<_> = jobs.iter().map(|job| job.id.to_string()).collect();
    ids.join(", ")
}
