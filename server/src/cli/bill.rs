//! Monthly bills.

use super::Done;
use super::client::{Client, ClientArgs};
use super::fleet::segment;
use super::table::{Block, Sheet, print, time};
use clap::Subcommand;
use contract::{BillTotals, BillView};

/// `muster bill`.
#[derive(Debug, Subcommand)]
pub enum BillCommand {
    /// A month's bill: of one team by job, or of all teams that you may read.
    Show {
        /// The team; all that you may read when left out.
        team: Option<String>,
        /// The month, such as 2026-11; this one when left out.
        #[arg(long)]
        month: Option<String>,
        #[command(flatten)]
        client: ClientArgs,
    },
}

/// Does it.
pub async fn perform(command: BillCommand) -> Done {
    let BillCommand::Show {
        team,
        month,
        client: args,
    } = command;
    let path = team.map_or("/bills".to_owned(), |team| {
        format!("/bills/{}", segment(&team))
    });
    let bill: BillView = Client::new(&args)?.get(&path, &[("month", month)]).await?;
    print(args.output, &bill, draw)
}

const SUMS: [&str; 7] = [
    ">own GPU-h",
    ">own amount",
    ">borrowed GPU-h",
    ">borrowed amount",
    ">failed launches GPU-h",
    ">GPU-h",
    ">amount",
];

fn draw(bill: &BillView) -> Vec<Block> {
    let whose = bill.team.as_deref().unwrap_or("all your teams");
    let head = format!(
        "{whose}, {} ({}), in {}, counted up to {}, rates {}",
        bill.month,
        bill.zone,
        bill.currency,
        time(bill.until),
        bill.rate_card
    );
    let first: &[&str] = if bill.team.is_some() {
        &["job", "name", "project", "flavour"]
    } else {
        &["team", ">jobs"]
    };
    let mut sheet = Sheet::new(&[first, &SUMS].concat());
    if bill.team.is_some() {
        for line in &bill.lines {
            sheet.row(cells(
                &[
                    &line.job.to_string(),
                    &line.name,
                    &line.project,
                    &line.flavour,
                ],
                &line.totals,
            ));
        }
        sheet.row(cells(&["total", "", "", ""], &bill.totals));
    } else {
        for team in &bill.teams {
            sheet.row(cells(&[&team.team, &team.jobs.to_string()], &team.totals));
        }
        sheet.row(cells(&["total", ""], &bill.totals));
    }
    vec![head.into(), sheet.into()]
}

fn cells(first: &[&str], totals: &BillTotals) -> Vec<String> {
    let BillTotals {
        own_gpu_hours,
        own_amount,
        borrowed_gpu_hours,
        borrowed_amount,
        failed_launch_gpu_hours,
        gpu_hours,
        amount,
    } = totals;
    let sums = [
        own_gpu_hours,
        own_amount,
        borrowed_gpu_hours,
        borrowed_amount,
        failed_launch_gpu_hours,
        gpu_hours,
        amount,
    ];
    first
        .iter()
        .map(|cell| (*cell).to_owned())
        .chain(sums.into_iter().cloned())
        .collect()
}
