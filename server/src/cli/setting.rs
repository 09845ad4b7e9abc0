//! Policies and limits: shown, and changed over a version that was looked at.

use super::Done;
use super::client::{Client, ClientArgs};
use super::fleet::segment;
use super::table::{Block, Sheet, print};
use clap::{Args, Subcommand};
use contract::{
    ChangeView, Gpus, LimitList, LimitSet, PolicyView, SetLimits, SetPolicy, TeamLimitsView,
    limit_text, parse_limit,
};
use reqwest::Method;
use std::str::FromStr;

/// `muster policy`.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Lists the policies: what each is, its default, its range, and who last changed it. For admins.
    List {
        #[command(flatten)]
        client: ClientArgs,
    },
    /// Changes one: `muster policy set grace 8m --why "saves are slow this week"`. For admins.
    Set {
        /// Its name.
        name: String,
        /// Its new value.
        value: String,
        /// Why, for those who meet it later.
        #[arg(long)]
        why: String,
        /// Only if it still is this; otherwise nothing is changed.
        #[arg(long, value_name = "VALUE")]
        was: Option<String>,
        #[command(flatten)]
        client: ClientArgs,
    },
}

/// `muster limit`.
#[derive(Debug, Subcommand)]
pub enum LimitCommand {
    /// Lists limits of your teams, and how far they are used.
    List {
        #[command(flatten)]
        client: ClientArgs,
    },
    /// Changes limits of a team; what is not named stays as it is, `none` takes a limit away. For admins.
    Set(Box<SetArgs>),
}

/// `muster limit set`.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// The team.
    team: String,
    /// Jobs of the team that may run at once.
    #[arg(long, value_name = "N|none")]
    running_jobs: Option<String>,
    /// Jobs of the team that may wait at once.
    #[arg(long, value_name = "N|none")]
    waiting_jobs: Option<String>,
    /// GPUs of the team's running jobs.
    #[arg(long, value_name = "N|none")]
    running_gpus: Option<String>,
    /// Jobs of each member that may run at once.
    #[arg(long, value_name = "N|none")]
    member_running_jobs: Option<String>,
    /// Jobs of each member that may wait at once.
    #[arg(long, value_name = "N|none")]
    member_waiting_jobs: Option<String>,
    /// GPUs of each member's running jobs.
    #[arg(long, value_name = "N|none")]
    member_running_gpus: Option<String>,
    /// Why, for those who meet it later.
    #[arg(long)]
    why: String,
    #[command(flatten)]
    client: ClientArgs,
}

/// Does it.
pub async fn policy(command: PolicyCommand) -> Done {
    match command {
        PolicyCommand::List { client: args } => {
            let all: Vec<PolicyView> = Client::new(&args)?.get("/policies", &[]).await?;
            print(args.output, &all, |all| draw_policies(all))
        }
        PolicyCommand::Set {
            name,
            value,
            why,
            was,
            client: args,
        } => {
            let client = Client::new(&args)?;
            let all: Vec<PolicyView> = client.get("/policies", &[]).await?;
            let now = all.iter().find(|one| one.name == name);
            if let (Some(was), Some(now)) = (&was, now)
                && *was != now.value
            {
                return Err(
                    format!("{name} is {}, not {was}: nothing was changed", now.value).into(),
                );
            }
            // The server names one that is not there.
            let version = now.map_or(0, |now| now.version);
            let path = format!("/policies/{}", segment(&name));
            let body = SetPolicy {
                value,
                version,
                why,
            };
            let request = client.request(Method::PUT, &path).json(&body);
            let set: PolicyView = client.send(request).await?;
            print(args.output, &set, |set| {
                let before = now.map_or("", |now| now.value.as_str());
                vec![format!("{}: {before} to {}", set.name, set.value).into()]
            })
        }
    }
}

/// Does it.
pub async fn limit(command: LimitCommand) -> Done {
    match command {
        LimitCommand::List { client: args } => {
            let list: LimitList = Client::new(&args)?.get("/limits", &[]).await?;
            print(args.output, &list, draw_limits)
        }
        LimitCommand::Set(args) => set_limits(&args).await,
    }
}

async fn set_limits(args: &SetArgs) -> Done {
    let client = Client::new(&args.client)?;
    let list: LimitList = client.get("/limits", &[]).await?;
    let now = list.teams.iter().find(|one| one.team == args.team);
    let mut body = SetLimits {
        limits: now.map(|now| now.limits).unwrap_or_default(),
        member: now.map(|now| now.member).unwrap_or_default(),
        version: now.map_or(0, |now| now.version),
        why: args.why.clone(),
    };
    let (team, member) = (&mut body.limits, &mut body.member);
    put("--running-jobs", &args.running_jobs, &mut team.running_jobs)?;
    put("--waiting-jobs", &args.waiting_jobs, &mut team.waiting_jobs)?;
    put::<Gpus>("--running-gpus", &args.running_gpus, &mut team.running_gpus)?;
    put(
        "--member-running-jobs",
        &args.member_running_jobs,
        &mut member.running_jobs,
    )?;
    put(
        "--member-waiting-jobs",
        &args.member_waiting_jobs,
        &mut member.waiting_jobs,
    )?;
    put::<Gpus>(
        "--member-running-gpus",
        &args.member_running_gpus,
        &mut member.running_gpus,
    )?;
    let path = format!("/teams/{}/limits", segment(&args.team));
    let request = client.request(Method::PUT, &path).json(&body);
    let set: TeamLimitsView = client.send(request).await?;
    print(args.client.output, &set, |set| {
        let said = set
            .last
            .as_ref()
            .map_or("as they were", |last| last.what.as_str());
        vec![format!("limits of {}: {said}", set.team).into()]
    })
}

/// Puts a limit that was named in its place.
fn put<T: FromStr>(flag: &str, given: &Option<String>, to: &mut Option<T>) -> Result<(), String> {
    if let Some(text) = given {
        *to = parse_limit(text).map_err(|wrong| format!("{flag}: {wrong}"))?;
    }
    Ok(())
}

fn draw_policies(all: &[PolicyView]) -> Vec<Block> {
    let mut sheet = Sheet::new(&[
        "policy",
        ">value",
        ">default",
        "allowed",
        "last change",
        "elsewhere",
    ]);
    for one in all {
        sheet.row([
            one.name.clone(),
            one.value.clone(),
            one.default.clone(),
            one.allowed.clone(),
            changed(one.last.as_ref()),
            one.elsewhere.clone(),
        ]);
    }
    vec![sheet.into()]
}

fn changed(last: Option<&ChangeView>) -> String {
    last.map_or(String::new(), |last| {
        let why = last
            .why
            .as_ref()
            .map_or(String::new(), |why| format!(": {why}"));
        format!("{} by {}{why}", last.what, last.by)
    })
}

fn draw_limits(list: &LimitList) -> Vec<Block> {
    let mut sheet = Sheet::new(&[
        "team",
        "of",
        ">running jobs",
        ">limit",
        ">waiting jobs",
        ">limit",
        ">running GPUs",
        ">limit",
        "last change",
    ]);
    for team in &list.teams {
        let load = &team.load;
        let of = |limits: &LimitSet| {
            [
                limit_text(limits.running_jobs),
                limit_text(limits.waiting_jobs),
                limit_text(limits.running_gpus),
            ]
        };
        let [running, waiting, gpus] = of(&team.limits);
        sheet.row([
            team.team.clone(),
            "the team".to_owned(),
            load.running_jobs.to_string(),
            running,
            load.waiting_jobs.to_string(),
            waiting,
            load.running_gpus.to_string(),
            gpus,
            changed(team.last.as_ref()),
        ]);
        let [running, waiting, gpus] = of(&team.member);
        let none = String::new;
        sheet.row([
            none(),
            "each member".to_owned(),
            none(),
            running,
            none(),
            waiting,
            none(),
            gpus,
            none(),
        ]);
    }
    let person = &list.person;
    let foot = format!(
        "each person over all teams: running jobs {}, waiting jobs {}, running GPUs {}",
        limit_text(person.running_jobs),
        limit_text(person.waiting_jobs),
        limit_text(person.running_gpus)
    );
    vec![sheet.into(), foot.into()]
}
