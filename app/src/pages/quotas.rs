//! The quota tree of one flavour: what each team has, uses, borrows and lends.

use super::Page;
use crate::PageContext;
use crate::parts::{Col, PageHead, Sheet, blank, by_size, gpus, plural, quota_bar, quota_key};
use crate::url::{LIVE, Url};
use contract::{CohortView, FlavourUse, Gpus, QuotaView, TeamView};
use control::ServiceError;
use leptos::prelude::*;

/// The page.
pub async fn quotas(context: &PageContext, flavour: Option<&str>) -> Page {
    let everyone = context.everyone()?;
    let (fleet, tree) = (everyone.fleet().await?, everyone.quota_tree().await?);
    let flavours = by_size(&fleet.flavours);
    let chosen = match flavour {
        Some(name) => flavours.iter().copied().find(|known| known.flavour == name),
        None => flavours.first().copied(),
    };
    let Some(chosen) = chosen else {
        let name = flavour.unwrap_or_default();
        return Err(ServiceError::NotFound(format!("flavour {name}")));
    };
    let pills: Vec<_> = flavours
        .iter()
        .map(|known| {
            let here = (known.flavour == chosen.flavour).then_some("true");
            let to = Url::Quotas {
                flavour: Some(known.flavour.clone()),
            };
            view! { <li><a href=to.to_string() aria-current=here>{known.title.clone()}</a></li> }
        })
        .collect();
    let mine = context.actor.as_ref().map(|actor| {
        actor
            .teams()
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    });
    let content = if tree.is_empty() {
        blank("No team has a quota yet.", None).into_any()
    } else {
        table(&tree, &chosen.flavour, &mine.unwrap_or_default()).into_any()
    };
    Ok(view! {
        <PageHead title="Quotas" say=summary(chosen, &tree).into_any() />
        <nav aria-label="Flavour"><ul class="pills">{pills}</ul></nav>
        {quota_key()}
        <div data-live="quotas">{content}</div>
    }
    .into_any())
}

fn of<'a>(quotas: &'a [QuotaView], flavour: &str) -> Option<&'a QuotaView> {
    quotas.iter().find(|quota| quota.flavour == flavour)
}

/// One line: what is promised against what there is, and who lends and borrows.
fn summary(flavour: &FlavourUse, tree: &[CohortView]) -> String {
    let quotas = tree
        .iter()
        .flat_map(|cohort| &cohort.teams)
        .filter_map(|team| of(&team.quotas, &flavour.flavour));
    let quotas: Vec<_> = quotas.collect();
    let some = |part: fn(&QuotaView) -> Gpus| {
        let amounts = quotas
            .iter()
            .map(|quota| part(quota))
            .filter(|amount| amount.0.0 > 0);
        amounts.fold((0_u64, Gpus::default()), |(teams, sum), amount| {
            (teams + 1, Gpus(sum.0 + amount.0))
        })
    };
    let (lenders, lent) = some(|quota| quota.lent);
    let (borrowers, borrowed) = some(|quota| quota.borrowed);
    let flow = match (lenders, borrowers) {
        (0, 0) => "nobody lends or borrows now".to_owned(),
        _ => format!(
            "{} {}, {} {}",
            plural(lenders, "team lends", "teams lend"),
            contract::gpu_count(lent.0),
            plural(borrowers, "team borrows", "teams borrow"),
            gpus(borrowed)
        ),
    };
    format!(
        "Of quota, not of hardware: {} of {} {} GPUs are promised, {} are out of use; {flow}.",
        gpus(flavour.nominal),
        gpus(flavour.total),
        flavour.title,
        gpus(flavour.broken)
    )
}

fn table(tree: &[CohortView], flavour: &str, mine: &[String]) -> AnyView {
    let width = |quota: &QuotaView| quota.nominal.0.0.max(quota.own.0.0) + quota.borrowed.0.0;
    let cohorts = tree.iter().filter_map(|cohort| of(&cohort.quotas, flavour));
    // A root that sums up the whole tree would make every other bar a sliver: its bar has its own scale.
    let widest = |depth_from: u32| {
        let below = tree.iter().filter(|cohort| cohort.depth >= depth_from);
        let sums = below
            .clone()
            .filter_map(|cohort| of(&cohort.quotas, flavour))
            .map(width);
        let teams = below
            .flat_map(|cohort| &cohort.teams)
            .filter_map(|team| of(&team.quotas, flavour))
            .map(width);
        sums.chain(teams).max().unwrap_or(1)
    };
    let (root_scale, scale) = (cohorts.map(width).max().unwrap_or(1), widest(1));
    let rows: Vec<_> = tree
        .iter()
        .flat_map(|cohort| {
            let own = if cohort.depth == 0 { root_scale } else { scale };
            let head = row(&Line::of_cohort(cohort, flavour), own);
            let teams = cohort
                .teams
                .iter()
                .map(|team| row(&Line::of_team(team, cohort.depth, flavour, mine), scale));
            std::iter::once(head).chain(teams).collect::<Vec<_>>()
        })
        .collect();
    Sheet {
        caption: format!("Quotas of {flavour}"),
        class: "quotas",
        cols: vec![
            Col::Text("Cohort and team"),
            Col::Unseen("Use of quota"),
            Col::Number("Nominal"),
            Col::Number("Own use"),
            Col::Number("Borrowed"),
            Col::Number("Lent"),
            Col::Number("Available"),
            Col::Number("May borrow"),
            Col::Number("Lends at most"),
            Col::Number("Waiting"),
        ],
        rows,
        foot: None,
    }
    .view()
}

/// A line of the table.
struct Line<'a> {
    name: String,
    id: String,
    class: String,
    quota: Option<&'a QuotaView>,
    /// Jobs waiting, and the list of them; only of a team.
    waiting: Option<(u64, Url)>,
    mine: bool,
}

impl<'a> Line<'a> {
    fn of_cohort(cohort: &'a CohortView, flavour: &str) -> Self {
        Self {
            name: cohort.id.clone(),
            id: format!("cohort-{}", cohort.id),
            class: format!("cohort depth-{}", cohort.depth.min(3)),
            quota: of(&cohort.quotas, flavour),
            waiting: None,
            mine: false,
        }
    }

    fn of_team(team: &'a TeamView, depth: u32, flavour: &str, mine: &[String]) -> Self {
        Self {
            name: team.id.clone(),
            id: format!("team-{}", team.id),
            class: format!("depth-{}", (depth + 1).min(4)),
            quota: of(&team.quotas, flavour),
            waiting: Some((team.waiting, Url::team_queue(&team.id, &LIVE))),
            mine: mine.contains(&team.id),
        }
    }
}

/// An amount that is empty when nought, as in the mock: a column of noughts hides the figures.
fn some(amount: Gpus) -> Option<String> {
    (amount.0.0 > 0).then(|| gpus(amount))
}

/// A limit in words: none is "no limit", and never 0.
fn limit(amount: Option<Gpus>) -> String {
    amount.map_or_else(|| "no limit".to_owned(), gpus)
}

fn row(line: &Line<'_>, scale: u64) -> AnyView {
    let mine = line
        .mine
        .then(|| view! { <span class="tag">"yours"</span> });
    let (id, class, name) = (line.id.clone(), line.class.clone(), line.name.clone());
    let Some(quota) = line.quota else {
        return view! {
            <tr id=id class=class>
                <th scope="row">{name}{mine}</th>
                <td class="q" colspan="9">"no quota of this flavour"</td>
            </tr>
        }
        .into_any();
    };
    let waiting = line.waiting.as_ref().filter(|(jobs, _)| *jobs > 0);
    let waiting = waiting.map(|(jobs, list)| view! { <a class="link" href=list.to_string()>{plural(*jobs, "job", "jobs")}</a> });
    let is_team = line.waiting.is_some();
    view! {
        <tr id=id class=class>
            <th scope="row">{name}{mine}</th>
            <td class="bar-cell">{quota_bar(quota, scale)}</td>
            <td class="n">{gpus(quota.nominal)}</td>
            <td class="n">{gpus(quota.own)}</td>
            <td class="n">{some(quota.borrowed)}</td>
            <td class="n">{some(quota.lent)}</td>
            <td class="n">{gpus(quota.available)}</td>
            <td class="n q">{is_team.then(|| limit(quota.borrowing_limit))}</td>
            <td class="n q">{is_team.then(|| limit(quota.lending_limit))}</td>
            <td class="n">{waiting}</td>
        </tr>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unlimited_is_no_limit_and_not_nought() {
        let quota = |limit: Option<Gpus>| QuotaView {
            flavour: "h100-80g".into(),
            nominal: Gpus::whole(64),
            charged: Gpus::whole(8),
            own: Gpus::whole(8),
            borrowed: Gpus::default(),
            lent: Gpus::default(),
            held: Gpus::whole(8),
            available: Gpus::whole(56),
            borrowing_limit: limit,
            lending_limit: Some(Gpus::whole(32)),
        };
        let team = |limit| TeamView {
            id: "fraud-ml".into(),
            cohort: None,
            quotas: vec![quota(limit)],
            waiting: 0,
            active: 1,
            people: Vec::new(),
            default_time_limit_ms: None,
        };
        // Without the markers that stand where views meet.
        let html = |limit| {
            let row = row(&Line::of_team(&team(limit), 0, "h100-80g", &[]), 64_000);
            row.to_html().replace("<!>", "")
        };
        assert!(html(None).contains("no limit"), "{}", html(None));
        let none_at_all = html(Some(Gpus::default()));
        assert!(
            !none_at_all.contains("no limit"),
            "a limit of 0 is a limit: {none_at_all}"
        );
        assert!(none_at_all.contains(">0</td>"), "{none_at_all}");
    }
}
