//! Holds and drains: set, listed, released.

use super::Done;
use super::client::{Client, ClientArgs};
use super::fleet::segment;
use super::table::{Block, Sheet, print, time, write_out};
use clap::{Args, Subcommand};
use contract::{HoldKind, HoldList, HoldView, SetHold, gpu_count, plural};
use reqwest::Method;
use std::process::ExitCode;

/// `muster hold`.
#[derive(Debug, Subcommand)]
pub enum HoldCommand {
    /// Lists what is set aside, by whom, why, and whom that keeps waiting.
    List {
        #[command(flatten)]
        client: ClientArgs,
    },
    /// Sets something aside: nothing new starts there, what runs goes on. `muster hold set rack h100-b03-r1 --why recabling`.
    Set {
        /// The kind of thing: job, team, cohort, node, or a level above the node, such as rack and block.
        on: String,
        /// Its name or number.
        what: String,
        #[command(flatten)]
        how: How,
    },
    /// Releases it.
    Release {
        /// The kind of thing.
        on: String,
        /// Its name or number.
        what: String,
        /// Why, for those who ask later.
        #[arg(long)]
        why: Option<String>,
        #[command(flatten)]
        client: ClientArgs,
    },
}

/// How something is set aside.
#[derive(Debug, Args)]
pub struct How {
    /// Why, for everybody who waits for it; may be left out for a job.
    #[arg(long)]
    why: Option<String>,
    /// Let those that run leave, too, each with its next durable save.
    #[arg(long)]
    drain: bool,
    #[command(flatten)]
    client: ClientArgs,
}

/// Does it.
pub async fn perform(command: HoldCommand) -> Done {
    match command {
        HoldCommand::List { client: args } => {
            let list: HoldList = Client::new(&args)?.get("/holds", &[]).await?;
            print(args.output, &list, draw)
        }
        HoldCommand::Set { on, what, how } => {
            let mode = match how.drain {
                true => HoldKind::Drain,
                false => HoldKind::Hold,
            };
            set(&how.client, on, what, mode, how.why).await
        }
        HoldCommand::Release {
            on,
            what,
            why,
            client,
        } => release(&client, &on, &what, why).await,
    }
}

/// Sets something aside.
pub async fn set(
    args: &ClientArgs,
    on: String,
    what: String,
    mode: HoldKind,
    why: Option<String>,
) -> Done {
    let body = SetHold {
        on,
        what,
        mode,
        why,
    };
    let hold: HoldView = Client::new(args)?.post("/holds", &body).await?;
    print(args.output, &hold, |hold| {
        let still = plural(hold.running_jobs, "job still runs", "jobs still run");
        let said = match hold.running_jobs {
            0 => "nothing runs there".to_owned(),
            _ => format!("{still} there, on {}", gpu_count(hold.running_gpus.0)),
        };
        vec![format!("{} {} is {}: {said}", hold.on, hold.what, hold.mode.done()).into()]
    })
}

/// Releases what is set aside.
pub async fn release(args: &ClientArgs, on: &str, what: &str, why: Option<String>) -> Done {
    let client = Client::new(args)?;
    let path = format!("/holds/{}/{}", segment(on), segment(what));
    let request = client.request(Method::DELETE, &path);
    let why: Vec<_> = why.iter().map(|why| ("why", why)).collect();
    let () = client.send(request.query(&why)).await?;
    write_out(&format!("{on} {what} is released"))?;
    Ok(ExitCode::SUCCESS)
}

fn draw(list: &HoldList) -> Vec<Block> {
    if list.holds.is_empty() {
        return vec!["nothing is held".to_owned().into()];
    }
    let mut sheet = Sheet::new(&[
        "what",
        "mode",
        "by",
        "since",
        ">still run",
        ">gpus",
        ">wait",
        "why",
    ]);
    for hold in &list.holds {
        sheet.row([
            format!("{} {}", hold.on, hold.what),
            hold.mode.done().to_owned(),
            hold.by.clone(),
            time(hold.since),
            hold.running_jobs.to_string(),
            hold.running_gpus.to_string(),
            hold.waiting_jobs.to_string(),
            hold.why.clone().unwrap_or_default(),
        ]);
    }
    vec![sheet.into()]
}
