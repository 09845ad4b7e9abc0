//! Reclaims: what owners ask back of those who borrow, and the answers to that.

use super::Done;
use super::client::{Client, ClientArgs};
use super::table::{Block, Sheet, print, time};
use clap::Subcommand;
use contract::{
    DeclineReclaim, ProposeVictims, ReclaimJob, ReclaimList, ReclaimView, ReclaimWay, Span,
    gpu_count, person_span, plural, price,
};
use serde::Serialize;
use serde_json::json;

/// `muster reclaim`.
#[derive(Debug, Subcommand)]
pub enum ReclaimCommand {
    /// Lists the reclaims that you may see, newest first; those that are not over unless a stage is named.
    List {
        /// Only these stages, with commas between: requested, approved, made, started, declined, withdrawn; or any.
        #[arg(long, default_value = "requested,approved,made")]
        stage: String,
        /// Only those of these teams, on either side, with commas between.
        #[arg(long)]
        team: Option<String>,
        /// Rows at most, 1 to 100.
        #[arg(long, default_value_t = 20)]
        limit: u32,
        /// Where the page before ended.
        #[arg(long)]
        after: Option<String>,
        #[command(flatten)]
        client: ClientArgs,
    },
    /// One reclaim with its price, three ways, and who would go.
    Show {
        /// The reclaim's number.
        id: u64,
        #[command(flatten)]
        client: ClientArgs,
    },
    /// Approves it: those who give back save and go. For admins.
    Approve {
        /// The reclaim's number.
        id: u64,
        #[command(flatten)]
        client: ClientArgs,
    },
    /// Declines it. For admins.
    Decline {
        /// The reclaim's number.
        id: u64,
        /// Why, for those who asked.
        #[arg(long)]
        reason: String,
        #[command(flatten)]
        client: ClientArgs,
    },
    /// Puts it off by one more deadline, once. For leads of a team that would lose by it.
    Defer {
        /// The reclaim's number.
        id: u64,
        #[command(flatten)]
        client: ClientArgs,
    },
    /// Proposes other jobs that would go instead. For leads of a team that would lose by it.
    Propose {
        /// The reclaim's number.
        id: u64,
        /// Numbers of these jobs, with commas between.
        #[arg(long, value_delimiter = ',', required = true)]
        victims: Vec<u64>,
        #[command(flatten)]
        client: ClientArgs,
    },
}

/// Does it.
pub async fn perform(command: ReclaimCommand) -> Done {
    match command {
        ReclaimCommand::List {
            stage,
            team,
            limit,
            after,
            client: args,
        } => {
            let query = [
                ("stage", Some(stage).filter(|stage| stage != "any")),
                ("team", team),
                ("limit", Some(limit.to_string())),
                ("after", after),
            ];
            let list: ReclaimList = Client::new(&args)?.get("/reclaims", &query).await?;
            print(args.output, &list, draw_list)
        }
        ReclaimCommand::Show { id, client: args } => {
            let path = format!("/reclaims/{id}");
            let reclaim: ReclaimView = Client::new(&args)?.get(&path, &[]).await?;
            print(args.output, &reclaim, draw)
        }
        ReclaimCommand::Approve { id, client } => answer(&client, id, "approve", &json!({})).await,
        ReclaimCommand::Decline { id, reason, client } => {
            answer(&client, id, "decline", &DeclineReclaim { reason }).await
        }
        ReclaimCommand::Defer { id, client } => answer(&client, id, "defer", &json!({})).await,
        ReclaimCommand::Propose {
            id,
            victims,
            client,
        } => answer(&client, id, "propose", &ProposeVictims { victims }).await,
    }
}

async fn answer(args: &ClientArgs, id: u64, deed: &str, body: &impl Serialize) -> Done {
    let path = format!("/reclaims/{id}/{deed}");
    let reclaim: ReclaimView = Client::new(args)?.post(&path, body).await?;
    print(args.output, &reclaim, |reclaim| {
        let mut said = format!("reclaim {id}: {}", reclaim.outcome);
        if let Some(deadline) = reclaim.deadline {
            said.push_str(&format!("; until {}", time(deadline)));
        }
        vec![said.into()]
    })
}

fn draw_list(list: &ReclaimList) -> Vec<Block> {
    let mut sheet = Sheet::new(&[
        "reclaim",
        "stage",
        "for",
        "team",
        ">GPUs",
        "of",
        ">lost GPU-h",
        ">amount",
        "until",
        "what of it",
    ]);
    for one in &list.reclaims {
        let way = &one.price.after_save;
        sheet.row([
            one.id.to_string(),
            one.stage.to_string(),
            named(&one.claimant),
            one.claimant.team.clone(),
            one.taken.to_string(),
            one.losing_teams.join(", "),
            way.lost_gpu_hours.clone(),
            amount(way, &one.price.currency),
            one.deadline.map(time).unwrap_or_default(),
            one.outcome.clone(),
        ]);
    }
    let mut foot = format!(
        "{} of {}; {} for you to answer",
        list.reclaims.len(),
        list.total,
        list.for_you
    );
    if let Some(next) = &list.next {
        foot.push_str(&format!("; the next ones with --after {next}"));
    }
    vec![sheet.into(), foot.into()]
}

fn named(job: &ReclaimJob) -> String {
    match &job.name {
        Some(name) => format!("{name} ({})", job.id),
        None => format!("job {}", job.id),
    }
}

fn amount(way: &ReclaimWay, currency: &str) -> String {
    let amount = way.amount.as_ref();
    amount.map_or_else(|| "n/a".to_owned(), |amount| price(currency, amount))
}

fn span(ms: u64) -> String {
    person_span(Span::from_millis(ms).0)
}

/// A reclaim, whole.
fn draw(one: &ReclaimView) -> Vec<Block> {
    let mut head = format!(
        "reclaim {}  {}  {} of {} for {}, {}\n{}; it would start on {}",
        one.id,
        one.stage,
        gpu_count(one.taken.0),
        one.losing_teams.join(", "),
        named(&one.claimant),
        one.claimant.team,
        one.right,
        one.place
    );
    head.push_str(&format!("\n{}", one.outcome));
    if let Some(deadline) = one.deadline {
        head.push_str(&format!(
            "\nan answer may be given until {}",
            time(deadline)
        ));
    }
    for (said, by) in [
        ("put off by", &one.deferred_by),
        ("these jobs proposed by", &one.proposed_by),
    ] {
        if let Some(by) = by {
            head.push_str(&format!("\n{said} {by}"));
        }
    }
    head.push_str(&format!("\n{}", one.may.said));
    let mut who = Sheet::new(&[
        "would stop",
        "team",
        "owner",
        ">GPUs",
        "last checkpoint",
        ">saves in",
        ">lost GPU-h",
    ]);
    for victim in &one.victims {
        who.row([
            named(&victim.job),
            victim.job.team.clone(),
            victim.job.owner.clone().unwrap_or_default(),
            match victim.keeps_pods {
                Some(pods) => format!("{}, keeps {pods} pods", victim.job.gpus),
                None => victim.job.gpus.to_string(),
            },
            victim
                .last_checkpoint
                .map_or_else(|| "none".to_owned(), time),
            victim.save_ms.map_or_else(|| "never".to_owned(), span),
            victim.lost_gpu_hours.clone(),
        ]);
    }
    let mut ways = Sheet::new(&["way", ">lost GPU-h", ">amount", ">room in"]);
    for (name, way) in [
        ("now", &one.price.now),
        ("after a save (what a yes does)", &one.price.after_save),
        ("at the next save", &one.price.next_save),
    ] {
        ways.row([
            name.to_owned(),
            way.lost_gpu_hours.clone(),
            amount(way, &one.price.currency),
            way.wait_ms.map_or_else(|| "never".to_owned(), span),
        ]);
    }
    let mut blocks: Vec<Block> = vec![head.into(), who.into(), ways.into()];
    let others: Vec<_> = one
        .alternatives
        .iter()
        .map(|other| {
            let jobs: Vec<_> = other.jobs.iter().map(|job| job.id.to_string()).collect();
            let place = other.domain.as_ref();
            let place = place.map_or(String::new(), |place| format!(" on {place}"));
            format!(
                "another set: --victims {}{place}, {} GPU-h lost",
                jobs.join(","),
                other.lost_gpu_hours
            )
        })
        .collect();
    if !others.is_empty() {
        let count = plural(
            others.len() as u64,
            "other set would do",
            "other sets would do",
        );
        blocks.push(format!("{count}\n{}", others.join("\n")).into());
    }
    blocks
}
