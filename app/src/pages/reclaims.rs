//! The inbox: reclaims that wait for an answer, those under way, and those that are over.

use super::Page;
use super::reclaim_parts::{
    at_stake, countdown, for_whom, over, plain_answers, said, title, victims, ways,
};
use crate::PageContext;
use crate::parts::{PageHead, blank, count, plural, span};
use crate::url::Url;
use contract::{JobPage, ReclaimFilter, ReclaimList, ReclaimStage, ReclaimView};
use control::{Actor, ServiceError};
use leptos::prelude::*;

/// Open ones on the page; there are hardly ever more than a handful.
const OPEN: u32 = 50;
/// Rows of those that are over.
const OVER: u32 = 20;

/// The page.
pub async fn reclaims(context: &PageContext, after: Option<&str>) -> Page {
    let everyone = context.everyone()?;
    let actor = context
        .actor
        .as_ref()
        .ok_or(ServiceError::Unauthenticated)?;
    let of = |stages: &[ReclaimStage]| ReclaimFilter {
        stages: stages.to_vec(),
        teams: Vec::new(),
    };
    let page = |limit, after: Option<&str>| JobPage {
        limit,
        after: after.map(str::to_owned),
    };
    let asked = [ReclaimStage::Requested];
    let moving = [ReclaimStage::Approved, ReclaimStage::Made];
    let open = everyone.reclaims(&of(&asked), &page(OPEN, None)).await?;
    let under_way = everyone.reclaims(&of(&moving), &page(OPEN, None)).await?;
    let past = everyone
        .reclaims(&of(&ReclaimStage::OVER), &page(OVER, after))
        .await?;
    let say = summary(&open, &under_way, actor).into_any();
    // The soonest deadline first.
    let mut waiting: Vec<&ReclaimView> = open.reclaims.iter().collect();
    waiting.sort_by_key(|one| (one.deadline, one.id));
    let cards: Vec<_> = waiting.iter().map(|one| card(one, actor)).collect();
    let none = cards.is_empty().then(|| {
        blank(
            "No reclaim that concerns you waits for an answer. When an owner needs what others borrow, it is asked for here, \
             with its price and a deadline.",
            None,
        )
    });
    let moving: Vec<_> = under_way
        .reclaims
        .iter()
        .map(|one| card(one, actor))
        .collect();
    let moving = (!moving.is_empty()).then(|| {
        view! { <section class="reclaims"><h2>"Under way"</h2>{moving}</section> }
    });
    Ok(view! {
        <PageHead title="Reclaims" say=say />
        <div data-live="reclaims">
            <section class="reclaims" aria-label="Waiting for an answer">{none}{cards}{more(&open)}</section>
            {moving}
            {finished(&past, after)}
        </div>
    }
    .into_any())
}

/// One line: how many wait, whose answer they wait for, and what happens first.
fn summary(open: &ReclaimList, under_way: &ReclaimList, actor: &Actor) -> String {
    let moving = match under_way.total {
        0 => String::new(),
        n => format!(" {} under way.", count(n)),
    };
    if open.total == 0 {
        return format!("None waits for an answer.{moving}");
    }
    let waits = plural(open.total, "waits", "wait");
    let yours = match open.for_you {
        0 => String::new(),
        n if n == open.total => ", for you to give".to_owned(),
        n => format!(", {} of them for you to give", count(n)),
    };
    let first = open
        .reclaims
        .iter()
        .filter_map(|one| Some((one.deadline?, one)))
        .min_by_key(|(deadline, _)| *deadline);
    let first = first.map(|(deadline, one)| {
        let then = one.at_deadline.clone().unwrap_or_default();
        format!(
            " The first is {then} by its deadline in {}.",
            span(one.now, deadline)
        )
    });
    let teams = actor.teams();
    let loses = |one: &&ReclaimView| {
        one.losing_teams
            .iter()
            .any(|team| teams.contains(&team.as_str()))
    };
    let mine = open.reclaims.iter().filter(loses).count() as u64;
    let mine = (mine > 0).then(|| {
        format!(
            " Your team would lose by {}.",
            if mine == open.total && mine == 1 {
                "it".to_owned()
            } else {
                format!("{} of them", count(mine))
            }
        )
    });
    format!(
        "{waits} for an answer{yours}.{}{}{moving}",
        first.unwrap_or_default(),
        mine.unwrap_or_default()
    )
}

fn card(one: &ReclaimView, actor: &Actor) -> AnyView {
    let id = one.id;
    let here = Url::Reclaim(id).to_string();
    let asked = one.stage == ReclaimStage::Requested;
    let others = one.alternatives.len();
    let another = one.may.propose.then(|| {
        let href = format!("{here}#another-set");
        let known = (others > 0).then(|| format!(" ({others})"));
        view! { <a class="btn" href=href>"Another set"{known}</a> }
    });
    let decline = one.may.decline.then(|| {
        let href = format!("{here}#decline");
        view! { <a class="btn quiet" href=href>"Decline…"</a> }
    });
    let who = asked.then(|| {
        let said = crate::parts::capital(&one.may.said);
        view! { <span class="q">{said}"."</span> }
    });
    let answers = asked
        .then(|| view! { <div class="answers">{plain_answers(one)}{another}{decline}{who}</div> });
    let ways = asked.then(|| ways(one));
    view! {
        <article class="panel reclaim" id=format!("reclaim-{id}")>
            <div class="reclaim-head">
                <div>
                    <h3><a href=here>{title(one)}</a></h3>
                    {for_whom(one)}
                    {said(one)}
                </div>
                {countdown(one)}
            </div>
            {at_stake(one, actor)}
            {victims(one)}
            {ways}
            {answers}
        </article>
    }
    .into_any()
}

/// Said when there are more than the page shows.
fn more(open: &ReclaimList) -> Option<AnyView> {
    open.next.as_ref().map(|_| {
        let text = format!(
            "The newest {} of {}; `muster reclaim list` has all.",
            count(open.reclaims.len() as u64),
            count(open.total)
        );
        view! { <p class="hint">{text}</p> }.into_any()
    })
}

fn finished(past: &ReclaimList, after: Option<&str>) -> AnyView {
    let list = if past.reclaims.is_empty() {
        blank("None yet.", None)
    } else {
        over(&past.reclaims, past.now)
    };
    let first = after.map(|_| {
        let newest = Url::Reclaims { after: None }.to_string();
        view! { <a class="btn" href=newest>"Newest"</a> }
    });
    let next = past.next.clone().map(|next| {
        let older = Url::Reclaims { after: Some(next) }.to_string();
        view! { <a class="btn" href=older>"Older"</a> }
    });
    let total = (past.total > 0).then(|| {
        let total = plural(past.total, "reclaim is over", "reclaims are over");
        view! { <p class="q">{total}"."</p> }
    });
    view! {
        <section class="reclaims">
            <h2>"Decided and over"</h2>
            {list}
            <nav class="pager" aria-label="Pages">{total}{first}{next}</nav>
        </section>
    }
    .into_any()
}
