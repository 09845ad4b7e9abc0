//! The command line. What concerns jobs, teams and bills goes through the REST interface like any other client; `token create`,
//! `team show --data` and `journal verify` work on the box, in the data folder, also while the server runs.

mod bill;
mod client;
mod fleet;
mod hold;
mod job;
mod offline;
mod reclaim;
mod replay;
mod setting;
mod start;
mod submit;
mod table;
mod wait;

use clap::{Args, CommandFactory, Parser, Subcommand};
use client::{ClientArgs, Output};
use contract::HoldKind;
use std::error::Error;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

/// Shares one GPU fleet among many teams: submit a job, watch it wait and run, read its bill.
#[derive(Debug, Parser)]
#[command(
    name = "muster",
    version,
    propagate_version = true,
    after_help = "Exit codes: 0 done, 1 refused or failed, 2 wrong usage. `job submit --wait`: 0 succeeded, 1 failed, 2 cancelled, 3 timed out."
)]
struct Muster {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Starts the portal with the demo fleet: simulated machines and a month of history.
    Demo(start::DemoArgs),
    /// Starts the portal over what the data folder holds.
    Serve(start::ServeArgs),
    /// Jobs: submit, list, show, cancel.
    #[command(subcommand)]
    Job(job::JobCommand),
    /// Teams and their quotas.
    #[command(subcommand)]
    Team(TeamCommand),
    /// The quota tree.
    #[command(subcommand)]
    Quota(QuotaCommand),
    /// Holds and drains: of jobs, teams, cohorts, nodes, racks and blocks. List, set, release.
    #[command(subcommand)]
    Hold(hold::HoldCommand),
    /// Nodes of the fleet: list, hold, drain, release.
    #[command(subcommand)]
    Node(NodeCommand),
    /// Reclaims: what owners ask back of those who borrow. List, show, answer.
    #[command(subcommand)]
    Reclaim(reclaim::ReclaimCommand),
    /// Policies: the rules that every cycle goes by. List, set.
    #[command(subcommand)]
    Policy(setting::PolicyCommand),
    /// Limits on what runs and waits at once, of teams and their members. List, set.
    #[command(subcommand)]
    Limit(setting::LimitCommand),
    /// Monthly bills.
    #[command(subcommand)]
    Bill(bill::BillCommand),
    /// API tokens.
    #[command(subcommand)]
    Token(TokenCommand),
    /// The journal on disk.
    #[command(subcommand)]
    Journal(JournalCommand),
    /// Replays a public trace and prints one table.
    Replay(replay::ReplayArgs),
    /// Prints a completion script: `muster completions bash > /etc/bash_completion.d/muster`.
    Completions {
        /// For which shell.
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Args)]
struct DataArgs {
    /// The data folder; made when absent.
    #[arg(long, value_name = "DIR", default_value = "./muster-data")]
    data: PathBuf,
}

#[derive(Debug, Subcommand)]
enum TeamCommand {
    /// All teams with their quotas.
    List {
        #[command(flatten)]
        client: ClientArgs,
    },
    /// One team; with --data on the box, without a token.
    Show {
        /// The team's name.
        team: String,
        /// Read it from this data folder instead of from the server.
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
        #[command(flatten)]
        client: ClientArgs,
    },
}

#[derive(Debug, Subcommand)]
enum QuotaCommand {
    /// Cohorts and teams: nominal, used, borrowed, lent.
    Show {
        #[command(flatten)]
        client: ClientArgs,
    },
    /// What a team deserves now, and why, in sentences.
    Explain {
        /// The team.
        team: String,
        #[command(flatten)]
        client: ClientArgs,
    },
}

#[derive(Debug, Subcommand)]
enum NodeCommand {
    /// All nodes with their health and what is free.
    List {
        #[command(flatten)]
        client: ClientArgs,
    },
    /// Nothing new starts on it; what runs goes on. For admins.
    Hold(NodeHold),
    /// Nothing new starts on it, and what runs leaves with its next durable save. For admins.
    Drain(NodeHold),
    /// Takes a hold or a drain back. For admins.
    Release(NodeHold),
}

#[derive(Debug, Args)]
struct NodeHold {
    /// The node's name.
    node: String,
    /// Why, for everybody who meets it later; a release needs none.
    #[arg(long)]
    why: Option<String>,
    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Makes an API token on the box; its secret alone is on the last line.
    Create {
        /// Whose token: a person's id, such as fraud-ml.engineer.
        #[arg(long = "as", value_name = "PERSON")]
        person: String,
        /// What it is for.
        #[arg(long, default_value = "command line")]
        name: String,
        /// Days until it ends.
        #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=365))]
        days: u32,
        #[command(flatten)]
        data: DataArgs,
    },
}

#[derive(Debug, Subcommand)]
enum JournalCommand {
    /// Folds the journal, checks it, and prints event count, job count and a hash of the state.
    Verify {
        #[command(flatten)]
        data: DataArgs,
        /// How to print.
        #[arg(long, value_enum, default_value_t = Output::Table)]
        output: Output,
    },
}

/// What a command ends with when nothing broke: its exit code.
type Done = Result<ExitCode, Box<dyn Error>>;

/// Reads the command line, does it, and says what went wrong in a line each.
pub fn run() -> ExitCode {
    log_to_stderr();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error),
    };
    let done = runtime.block_on(perform(Muster::parse().command));
    // What is still computed when nobody waits for it any more, such as a demo's history, is left behind.
    runtime.shutdown_background();
    match done {
        Ok(code) => code,
        Err(error) => fail(error.as_ref()),
    }
}

fn fail(error: &dyn Error) -> ExitCode {
    eprintln!("muster: {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        eprintln!("  because: {cause}");
        source = cause.source();
    }
    ExitCode::FAILURE
}

/// What is logged when MUSTER_LOG says nothing. sqlx warns of every statement that takes a second, which on a busy machine
/// is any.
pub const USUAL_LOG: &str = "warn,sqlx=error";

fn log_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("MUSTER_LOG")
        .unwrap_or_else(|_| USUAL_LOG.into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
}

async fn perform(command: Command) -> Done {
    match command {
        Command::Demo(args) => start::demo(args).await,
        Command::Serve(args) => start::serve(args).await,
        Command::Job(command) => job::perform(command).await,
        Command::Team(TeamCommand::List { client }) => fleet::teams(&client).await,
        Command::Team(TeamCommand::Show {
            team,
            data: Some(data),
            client,
        }) => offline::team(&data, &team, client.output).await,
        Command::Team(TeamCommand::Show {
            team,
            data: None,
            client,
        }) => fleet::team(&client, &team).await,
        Command::Quota(QuotaCommand::Show { client }) => fleet::quotas(&client).await,
        Command::Quota(QuotaCommand::Explain { team, client }) => {
            fleet::share(&client, &team).await
        }
        Command::Node(command) => node(command).await,
        Command::Hold(command) => hold::perform(command).await,
        Command::Reclaim(command) => reclaim::perform(command).await,
        Command::Policy(command) => setting::policy(command).await,
        Command::Limit(command) => setting::limit(command).await,
        Command::Bill(command) => bill::perform(command).await,
        Command::Token(TokenCommand::Create {
            person,
            name,
            days,
            data,
        }) => offline::create_token(&data.data, &person, &name, days).await,
        Command::Journal(JournalCommand::Verify { data, output }) => {
            offline::verify(&data.data, output).await
        }
        Command::Replay(args) => replay::perform(&args),
        Command::Completions { shell } => {
            clap_complete::generate(
                shell,
                &mut Muster::command(),
                "muster",
                &mut std::io::stdout(),
            );
            Ok(ExitCode::SUCCESS)
        }
    }
}

async fn node(command: NodeCommand) -> Done {
    let set = async |of: NodeHold, mode| {
        hold::set(&of.client, "node".to_owned(), of.node, mode, of.why).await
    };
    match command {
        NodeCommand::List { client } => fleet::nodes(&client).await,
        NodeCommand::Hold(of) => set(of, HoldKind::Hold).await,
        NodeCommand::Drain(of) => set(of, HoldKind::Drain).await,
        NodeCommand::Release(of) => hold::release(&of.client, "node", &of.node, of.why).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Muster::command().debug_assert();
    }
}
