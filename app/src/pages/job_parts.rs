//! Panels of the job page.

use crate::forms;
use crate::parts::{
    Block, Col, Mark, Sheet, amount, blank, block_svg, card_key, clock, exact, gpu_hours, gpus,
    month_name, plural, price, rounded, span, span_ms, when,
};
use crate::url::Url;
use contract::{JobState, JobView, MapBlock, MapNode, PlaceView, Span};
use leptos::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The block or blocks that it lies in, with its own cards.
pub fn where_it_runs(job: &JobView, blocks: &[MapBlock]) -> Option<AnyView> {
    let place = job.placement.as_ref()?;
    let ended = job.row.state.ended() || job.row.state == JobState::Queued;
    let mine: BTreeMap<&str, Vec<u8>> =
        place
            .ranks
            .iter()
            .fold(BTreeMap::new(), |mut all, (node, cards)| {
                all.entry(node.as_str())
                    .or_insert_with(Vec::new)
                    .extend(cards);
                all
            });
    let mark = |node: &MapNode, card: usize| {
        let this = mine
            .get(node.name.as_str())
            .is_some_and(|cards| cards.iter().any(|mine| usize::from(*mine) == card));
        match node.cards.get(card).map(|card| Mark::from(*card)) {
            _ if this => Mark::This,
            Some(Mark::Own | Mark::Borrowed | Mark::Shared) => Mark::Other,
            Some(mark) => mark,
            None => Mark::Free,
        }
    };
    let drawings: Vec<_> = blocks
        .iter()
        .map(|block| {
            let said = format!("{}: the cards of this job among {} busy of {}", block.name, gpus(block.busy), gpus(block.total));
            let drawing = block_svg(&Block { block, said, mark: &mark });
            view! { <figure class="place"><figcaption>{block.name.clone()}</figcaption>{drawing}</figure> }
        })
        .collect();
    let key = (!drawings.is_empty())
        .then(|| card_key(&[Mark::This, Mark::Other, Mark::Free, Mark::Broken]));
    let heading = if ended {
        "Where it ran"
    } else {
        "Where it runs"
    };
    Some(
        view! {
            <section class="panel" id="where">
                <h2>{heading}</h2>
                <div class="where">
                    <div class="places">{drawings}</div>
                    <div>
                        <p><b>{place.text.clone()}</b></p>
                        <p class="q">"Worst link crossed: "{place.worst_link.clone()}"."</p>
                        {key}
                        {ranks(place)}
                    </div>
                </div>
            </section>
        }
        .into_any(),
    )
}

fn ranks(place: &PlaceView) -> Option<AnyView> {
    let rows: Vec<_> = place
        .ranks
        .iter()
        .enumerate()
        .map(|(rank, (node, cards))| {
            let cards: Vec<_> = cards.iter().map(ToString::to_string).collect();
            view! { <tr><td class="n">{rank}</td><td>{node.clone()}</td><td>{cards.join(" ")}</td></tr> }.into_any()
        })
        .collect();
    let said = plural(rows.len() as u64, "pod", "pods");
    (!rows.is_empty()).then(|| {
        let table = Sheet {
            caption: "Ranks".to_owned(),
            class: "",
            cols: vec![Col::Number("Rank"), Col::Text("Node"), Col::Text("Cards")],
            rows,
            foot: None,
        }
        .tall(None);
        view! {
            <details class="more" id="ranks">
                <summary>{said}", rank by rank"</summary>
                {table}
            </details>
        }
        .into_any()
    })
}

/// How it saves, how old the last durable checkpoint is, and what is at risk now.
pub fn checkpoints(job: &JobView) -> Option<AnyView> {
    if job.row.started.is_none() && job.checkpoint_count == 0 {
        return None;
    }
    let (now, live) = (job.now, !job.row.state.ended());
    let contract = job.spec.checkpoint.map(|how| {
        let (saves, stalls) = if live {
            ("Saves", "stalls")
        } else {
            ("Saved", "stalled")
        };
        format!(
            "{saves} every {} and {stalls} {}.",
            span_ms(how.period.0.0),
            span_ms(how.save.0.0)
        )
    });
    let none = if live {
        "It saves nothing: an interruption costs all of its work."
    } else {
        "It saved nothing."
    };
    let last = job.checkpoints.first().map(|last| {
        if live {
            view! { " The last durable one is "<b title=exact(last.at)>{span(last.at, now)}</b>" old." }
                .into_any()
        } else {
            view! { " The last durable one was of "{when(last.at, now)}"." }.into_any()
        }
    });
    let at_risk = rounded(&job.at_risk_gpu_hours, 1);
    let risk = (live && job.at_risk_ms > 0)
        .then(|| view! { " At risk now: "<b class="nw">{at_risk}" GPU-hours"</b>"." });
    let rows: Vec<_> = job
        .checkpoints
        .iter()
        .map(|one| {
            view! {
                <tr>
                    <td class="n">{one.number}</td>
                    <td>{when(one.at, now)}</td>
                    <td class="n">{one.attempt}</td>
                    <td class="n">{span_ms(one.progress_ms)}</td>
                    <td class="n">{span_ms(one.stall_ms)}</td>
                    <td class="n">{bytes(one.bytes)}</td>
                </tr>
            }
            .into_any()
        })
        .collect();
    let table = (!rows.is_empty()).then(|| {
        let table = Sheet {
            caption: "Checkpoints".to_owned(),
            class: "",
            cols: vec![
                Col::Number("No."),
                Col::Text("Durable at"),
                Col::Number("Attempt"),
                Col::Number("Holds"),
                Col::Number("Stall"),
                Col::Number("Size"),
            ],
            rows,
            foot: None,
        }
        .tall(None);
        view! {
            <details class="more" id="checkpoints-table">
                <summary>{plural(job.checkpoint_count, "checkpoint", "checkpoints")}", as a table"</summary>
                {table}
            </details>
        }
    });
    Some(
        view! {
            <section class="panel" id="checkpoints">
                <h2>"Checkpoints"</h2>
                {risk_chart(job)}
                <p class="q">{contract.unwrap_or_else(|| none.to_owned())}{last}{risk}</p>
                {table}
            </section>
        }
        .into_any(),
    )
}

/// Work at risk over time: it rises while the job runs, and falls to nought with each durable checkpoint.
fn risk_chart(job: &JobView) -> Option<AnyView> {
    let mut ramps: Vec<(i64, i64)> = Vec::new();
    let mut saved = None;
    for one in job.checkpoints.iter().rev() {
        let before = saved.unwrap_or({
            if job.checkpoint_count > job.checkpoints.len() as u64 {
                one.progress_ms
            } else {
                0
            }
        });
        let end = one.at.as_millisecond();
        ramps.push((
            end - i64::try_from(one.progress_ms.saturating_sub(before)).unwrap_or(0),
            end,
        ));
        saved = Some(one.progress_ms);
    }
    let cuts: Vec<i64> = job
        .interruptions
        .iter()
        .map(|cut| cut.at.as_millisecond())
        .collect();
    let now = job.row.ended.unwrap_or(job.now).as_millisecond();
    if matches!(job.row.state, JobState::Running | JobState::Reclaiming) {
        ramps.push((now - i64::try_from(job.at_risk_ms).unwrap_or(0), now));
    }
    let from = ramps.iter().map(|(start, _)| *start).min()?;
    let highest = ramps
        .iter()
        .map(|(start, end)| end - start)
        .max()
        .filter(|high| *high > 0)?;
    let wide = (now - from).max(1);
    let x = |at: i64| (at - from) * 720 / wide;
    let (mut path, mut last) = (format!("M{} 96", x(from)), x(from));
    for (start, end) in &ramps {
        let top = 96 - (end - start) * 84 / highest;
        // A save's own time is no work: the next ramp begins where it ended.
        let start = x(*start).max(last);
        last = x(*end);
        let _ = write!(path, "L{start} 96L{last} {top}");
        if *end < now {
            path.push_str("V96");
        }
    }
    let lines: Vec<_> = cuts
        .iter()
        .filter(|at| **at >= from)
        .map(|at| view! { <line class="cut" x1=x(*at) x2=x(*at) y1="6" y2="96" /> })
        .collect();
    let start = jiff::Timestamp::from_millisecond(from).ok()?;
    let end = jiff::Timestamp::from_millisecond(now).ok()?;
    let said = format!(
        "Work at risk over time: {} and {} since {}",
        plural(job.checkpoints.len() as u64, "checkpoint", "checkpoints"),
        plural(cuts.len() as u64, "interruption", "interruptions"),
        clock(start, job.now)
    );
    Some(view! {
        <figure class="risk">
            <svg viewBox="0 0 720 98" width="100%" height="98" preserveAspectRatio="none" role="img" aria-label=said>
                <line class="axis" x1="0" x2="720" y1="96.5" y2="96.5" />
                <path class="stroke" d=path />
                {lines}
            </svg>
            <figcaption class="ends"><span>{when(start, job.now)}</span><span>"work at risk"</span><span>{when(end, job.now)}</span></figcaption>
        </figure>
    }
    .into_any())
}

fn bytes(n: u64) -> String {
    match n {
        0..1_000_000_000 => format!("{} MB", n / 1_000_000),
        _ => format!("{}.{} GB", n / 1_000_000_000, n / 100_000_000 % 10),
    }
}

/// Interruptions first, then everything, newest on top.
pub fn what_happened(job: &JobView) -> AnyView {
    let now = job.now;
    let cuts: Vec<_> = job
        .interruptions
        .iter()
        .rev()
        .map(|cut| {
            view! {
                <tr class="cut">
                    <td class="q nw">{when(cut.at, now)}</td>
                    <td><span class="reason">{cut.cause.clone()}</span></td>
                    <td class="n q">"lost "{rounded(&cut.lost_gpu_hours, 1)}" GPU-hours"</td>
                </tr>
            }
        })
        .collect();
    let cuts = (!cuts.is_empty()).then(|| {
        view! {
            <h3>{plural(cuts.len() as u64, "interruption", "interruptions")}</h3>
            <table><tbody>{cuts}</tbody></table>
            <h3>"Everything"</h3>
        }
    });
    let events: Vec<_> = job
        .events
        .iter()
        .map(|event| {
            view! {
                <tr id=format!("event-{}", event.seq)>
                    <td class="q nw">{when(event.at, now)}</td>
                    <td><span class="reason">{event.text.clone()}</span></td>
                </tr>
            }
        })
        .collect();
    let events = if events.is_empty() {
        blank("Nothing yet.", None).into_any()
    } else {
        view! { <div class="scroll tall" tabindex="0" role="region" aria-label="Events"><table class="events"><tbody>{events}</tbody></table></div> }.into_any()
    };
    view! { <section class="panel" id="events"><h2>"What happened"</h2>{cuts}{events}</section> }
        .into_any()
}

/// What it cost so far, with own and borrowed apart.
pub fn cost(job: &JobView) -> AnyView {
    let (bill, totals) = (&job.bill, &job.bill.totals);
    let currency = bill.currency.as_str();
    let line = |word: &'static str, rate: &Option<String>, hours: &str, sum: &str| {
        let rate = rate
            .as_ref()
            .map(|rate| view! { <span class="u">" at "{price(currency, rate)}</span> });
        view! {
            <tr>
                <th scope="row">{word}{rate}</th>
                <td class="n">{gpu_hours(hours)}<span class="u">" GPU-h"</span></td>
                <td class="n">{price(currency, sum)}</td>
            </tr>
        }
    };
    let failed = (!totals.failed_launch_gpu_hours.trim_matches(['0', '.']).is_empty()).then(|| {
        view! {
            <tr>
                <th scope="row">"Failed launches"</th>
                <td class="n">{gpu_hours(&totals.failed_launch_gpu_hours)}<span class="u">" GPU-h"</span></td>
                <td class="n q">"not charged"</td>
            </tr>
        }
    });
    let several = bill.months.len() > 1;
    let months: Vec<_> = bill
        .months
        .iter()
        .map(|part| {
            let to = Url::Bill {
                team: job.row.team.clone(),
                month: Some(part.month.clone()),
            };
            let amount = several.then(|| format!(": {}", price(currency, &part.amount)));
            view! {
                <p class="more-link">
                    <a class="link" href=to.to_string()>"On the bill of "{job.row.team.clone()}", "{month_name(&part.month)}</a>
                    <span class="nw">{amount}</span>
                </p>
            }
        })
        .collect();
    let heading = if job.row.state.ended() {
        "Cost"
    } else {
        "Cost so far"
    };
    view! {
        <section class="panel" id="cost">
            <h2>{heading}</h2>
            <p class="figure">{price(currency, &totals.amount)}</p>
            <p class="q nw">{amount(&totals.gpu_hours)}" GPU-hours"</p>
            <table class="plain">
                <tbody>
                    {line("Own", &bill.own_rate, &totals.own_gpu_hours, &totals.own_amount)}
                    {line("Borrowed", &bill.borrowed_rate, &totals.borrowed_gpu_hours, &totals.borrowed_amount)}
                    {failed}
                </tbody>
            </table>
            {months}
        </section>
    }
    .into_any()
}

/// What was asked for.
pub fn asked_for(job: &JobView) -> AnyView {
    let spec = &job.spec;
    let topology = match (spec.topology.as_str(), spec.segment_pods) {
        ("any", _) => "anywhere, packed tight".to_owned(),
        (level, Some(pods)) => {
            let pods = plural(pods.into(), "pod", "pods");
            match level.strip_prefix("preferred:") {
                Some(level) => format!("segments of {pods}, one {level} each if it can be"),
                None => format!("segments of {pods}, one {level} each"),
            }
        }
        (level, None) => match level.strip_prefix("preferred:") {
            Some(level) => format!("one {level}, preferred"),
            None => format!("one {level}, required"),
        },
    };
    let or = |span: Option<Span>, none: &str| {
        span.map_or_else(|| none.to_owned(), |span| span_ms(span.0.0))
    };
    let least = spec.min_pods.filter(|least| *least < spec.pods);
    let least = least.map_or_else(String::new, |least| format!(", at least {least}"));
    let pods = format!(
        "{}{least} × {} {}",
        plural(spec.pods.into(), "pod", "pods"),
        gpus(spec.gpus_per_pod),
        spec.flavours.join(", else ")
    );
    let restarts = spec
        .restart_budget
        .map(|budget| plural(budget.into(), "failure", "failures"));
    let lines = [
        ("Asks", pods),
        ("Together in", topology),
        ("Priority", spec.priority.clone()),
        ("Time limit", or(spec.time_limit, "no limit")),
        (
            "Survives",
            restarts.unwrap_or_else(|| "as the policy says".to_owned()),
        ),
        (
            "May be reclaimed",
            if spec.preemptible {
                "yes, what it borrows"
            } else {
                "no"
            }
            .to_owned(),
        ),
        ("Project", spec.project.clone()),
        ("Image", spec.image.clone()),
        ("Owner", job.row.owner.clone()),
    ];
    let lines = lines.map(|(word, value)| view! { <div><dt>{word}</dt><dd>{value}</dd></div> });
    view! { <section class="panel" id="asked"><h2>"Asked for"</h2><dl class="lines">{lines.into_iter().collect_view()}</dl></section> }.into_any()
}

/// The same request from a shell and over HTTP.
pub fn same_elsewhere(job: &JobView) -> AnyView {
    let form = forms::like(&job.spec, String::new());
    let id = job.row.id;
    let show = format!(
        "muster job show {id}\ncurl \"$MUSTER_URL/api/v1/jobs/{id}\" -H \"Authorization: Bearer $MUSTER_TOKEN\""
    );
    view! {
        <section class="panel" id="elsewhere">
            <h2>"The same from a shell"</h2>
            <pre tabindex="0">{show}</pre>
            <details class="more" id="as-command"><summary>"Submit it again, as a command"</summary><pre tabindex="0">{forms::command(&form)}</pre></details>
            <details class="more" id="as-call"><summary>"Submit it again, as a call"</summary><pre tabindex="0">{forms::call_of(&job.spec)}</pre></details>
        </section>
    }
    .into_any()
}
