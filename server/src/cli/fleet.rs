//! Teams, quotas and nodes.

use super::Done;
use super::client::{Client, ClientArgs};
use super::table::{Block, Sheet, print};
use contract::{CohortView, Gpus, NodeRow, QuotaView, TeamShareView, TeamView};

/// `team list`.
pub async fn teams(args: &ClientArgs) -> Done {
    let teams: Vec<TeamView> = Client::new(args)?.get("/teams", &[]).await?;
    print(args.output, &teams, |teams| {
        let mut sheet = Sheet::new(&[
            "team",
            "cohort",
            "flavour",
            ">nominal",
            ">used",
            ">own",
            ">borrowed",
            ">lent",
            ">available",
            ">waiting",
            ">active",
        ]);
        for team in teams {
            for (index, quota) in team.quotas.iter().enumerate() {
                let once = |text: String| if index == 0 { text } else { String::new() };
                sheet.row([
                    once(team.id.clone()),
                    once(team.cohort.clone().unwrap_or_default()),
                    quota.flavour.clone(),
                    quota.nominal.to_string(),
                    quota.charged.to_string(),
                    quota.own.to_string(),
                    quota.borrowed.to_string(),
                    quota.lent.to_string(),
                    quota.available.to_string(),
                    once(team.waiting.to_string()),
                    once(team.active.to_string()),
                ]);
            }
        }
        vec![sheet.into()]
    })
}

/// `team show`.
pub async fn team(args: &ClientArgs, team: &str) -> Done {
    let team: TeamView = Client::new(args)?
        .get(&format!("/teams/{}", segment(team)), &[])
        .await?;
    print(args.output, &team, draw_team)
}

/// A team with its quotas and, where one may see them, its people.
pub fn draw_team(team: &TeamView) -> Vec<Block> {
    let cohort = team.cohort.as_deref().unwrap_or("no cohort");
    let head = format!(
        "{} in {cohort}: {} waiting, {} active",
        team.id, team.waiting, team.active
    );
    let mut quotas = quota_sheet(&["flavour"]);
    for quota in &team.quotas {
        quotas.row(quota_cells([], quota));
    }
    let mut people = Sheet::new(&["person", "name", "role"]);
    for person in &team.people {
        let role = person.role.as_str().to_owned();
        people.row([person.id.clone(), person.name.clone(), role]);
    }
    let mut blocks = vec![head.into(), quotas.into()];
    if !team.people.is_empty() {
        blocks.push(people.into());
    }
    blocks
}

/// `quota show`.
pub async fn quotas(args: &ClientArgs) -> Done {
    let cohorts: Vec<CohortView> = Client::new(args)?.get("/quotas", &[]).await?;
    print(args.output, &cohorts, |cohorts| {
        let mut sheet = quota_sheet(&["cohort or team", "flavour"]);
        for cohort in cohorts {
            let indent = "  ".repeat(cohort.depth as usize);
            for quota in &cohort.quotas {
                sheet.row(quota_cells([format!("{indent}{}", cohort.id)], quota));
            }
            for (team, quota) in cohort
                .teams
                .iter()
                .flat_map(|team| team.quotas.iter().map(move |quota| (team, quota)))
            {
                sheet.row(quota_cells([format!("{indent}  {}", team.id)], quota));
            }
        }
        vec![sheet.into()]
    })
}

/// `quota explain`.
pub async fn share(args: &ClientArgs, team: &str) -> Done {
    let share: TeamShareView = Client::new(args)?
        .get(&format!("/teams/{}/share", segment(team)), &[])
        .await?;
    print(args.output, &share, |share| {
        let mut sheet = Sheet::new(&[
            "flavour",
            ">deserved",
            ">own",
            ">surplus",
            ">used",
            ">borrowed",
            ">lent",
            ">exposed",
        ]);
        let mut why = String::new();
        for part in &share.flavours {
            let lent = part.lent_to.iter().map(|loan| loan.gpus.0).sum();
            let figures = [
                part.deserved,
                part.nominal,
                part.surplus_part,
                part.charged,
                part.borrowed,
                Gpus(lent),
                part.exposed,
            ];
            let mut cells = vec![part.flavour.clone()];
            cells.extend(figures.map(|gpus| gpus.to_string()));
            sheet.row(cells);
            why = format!("{why}{}: {}\n", part.flavour, part.why.join(" "));
        }
        vec![sheet.into(), why.trim_end().to_owned().into()]
    })
}

fn quota_sheet(first: &[&'static str]) -> Sheet {
    let mut header = first.to_vec();
    header.extend([
        ">nominal",
        ">used",
        ">own",
        ">borrowed",
        ">lent",
        ">held",
        ">available",
        ">borrow limit",
        ">lend limit",
    ]);
    Sheet::new(&header)
}

fn quota_cells<const N: usize>(first: [String; N], quota: &QuotaView) -> Vec<String> {
    // No limit is not the limit 0.
    let limit =
        |limit: Option<Gpus>| limit.map_or("no limit".to_owned(), |limit| limit.to_string());
    let mut cells = first.to_vec();
    cells.push(quota.flavour.clone());
    cells.extend(
        [
            quota.nominal,
            quota.charged,
            quota.own,
            quota.borrowed,
            quota.lent,
            quota.held,
            quota.available,
        ]
        .map(|gpus| gpus.to_string()),
    );
    cells.extend([limit(quota.borrowing_limit), limit(quota.lending_limit)]);
    cells
}

/// `node list`.
pub async fn nodes(args: &ClientArgs) -> Done {
    let nodes: Vec<NodeRow> = Client::new(args)?.get("/nodes", &[]).await?;
    print(args.output, &nodes, |nodes| {
        let mut sheet = Sheet::new(&[
            "node", "domains", "flavour", "pool", "health", ">free", ">gpus", "jobs", "held",
        ]);
        for node in nodes {
            let mut jobs: Vec<_> = node.jobs.iter().map(u64::to_string).collect();
            if node.other_jobs > 0 {
                jobs.push(format!("and {} of others", node.other_jobs));
            }
            sheet.row([
                node.name.clone(),
                node.domains.join("/"),
                node.flavour.clone().unwrap_or_default(),
                node.pool.clone(),
                node.health.clone(),
                node.free.to_string(),
                node.gpus.to_string(),
                jobs.join(" "),
                node.held.clone().unwrap_or_default(),
            ]);
        }
        vec![sheet.into()]
    })
}

/// One segment of an address, whatever it holds.
pub fn segment(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.bytes()
        .map(|byte| {
            if plain(byte) {
                (byte as char).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}
