//! Jobs: a spec from a file and flags, lists, one job whole, its end.

use super::Done;
use super::client::{Client, ClientArgs};
use super::table::{Block, Sheet, print, time};
use clap::{Args, Subcommand};
use contract::{DryRun, JobList, JobRow, JobView, gpu_count, gpus, plural};
use serde_json::{Map, Value, json};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use thiserror::Error;

/// `muster job`.
#[derive(Debug, Subcommand)]
pub enum JobCommand {
    /// Submits a job: a spec from a file, from flags, or both (flags win).
    Submit(Box<SubmitArgs>),
    /// Lists the jobs that you may see, newest first.
    List(ListArgs),
    /// One job with its eight steps from submit to bill.
    Show {
        /// The job's number.
        id: u64,
        #[command(flatten)]
        client: ClientArgs,
    },
    /// Sets a job aside: it does not start, or not again, until it is released. One that runs goes on.
    Hold {
        /// The job's number.
        id: u64,
        /// Why, for everybody who asks why it waits.
        #[arg(long)]
        why: Option<String>,
        /// If it runs, let it leave at its next durable save.
        #[arg(long)]
        drain: bool,
        #[command(flatten)]
        client: ClientArgs,
    },
    /// Releases a job that is held.
    Release {
        /// The job's number.
        id: u64,
        /// Why, for those who ask later.
        #[arg(long)]
        why: Option<String>,
        #[command(flatten)]
        client: ClientArgs,
    },
    /// Suspends a notebook: it gives its GPUs back, costs nothing, and keeps its place until it is resumed.
    Suspend {
        /// The job's number.
        id: u64,
        /// Why, for those who ask later.
        #[arg(long)]
        why: Option<String>,
        #[command(flatten)]
        client: ClientArgs,
    },
    /// Resumes a suspended notebook: it waits with its first submit time, and starts again.
    Resume {
        /// The job's number.
        id: u64,
        /// Why, for those who ask later.
        #[arg(long)]
        why: Option<String>,
        #[command(flatten)]
        client: ClientArgs,
    },
    /// Cancels a job.
    Cancel {
        /// The job's number.
        id: u64,
        /// Why, for those who ask later.
        #[arg(long)]
        why: Option<String>,
        #[command(flatten)]
        client: ClientArgs,
    },
}

/// `muster job submit`. Exit code with --wait: 0 succeeded, 1 failed, 2 cancelled, 3 timed out, 4 can never run.
#[derive(Debug, Args)]
pub struct SubmitArgs {
    /// A spec in TOML, YAML or JSON; `-` reads standard input.
    #[arg(long, short)]
    file: Option<PathBuf>,
    #[command(flatten)]
    flags: SpecFlags,
    /// Only tells what would happen.
    #[arg(long)]
    pub dry_run: bool,
    /// Waits for the job's end, with a line of progress.
    #[arg(long, conflicts_with = "dry_run")]
    pub wait: bool,
    /// Idempotency key: the same key with the same spec is the same job. Made at random when left out.
    #[arg(long, value_parser = key)]
    pub key: Option<String>,
    #[command(flatten)]
    pub client: ClientArgs,
}

/// The spec's fields as flags.
#[derive(Debug, Args)]
struct SpecFlags {
    /// Team whose queue and quota it uses.
    #[arg(long)]
    team: Option<String>,
    /// Name: lower case letters, digits, dashes.
    #[arg(long)]
    name: Option<String>,
    /// Kinds of GPU in order of preference, with commas between.
    #[arg(long, value_delimiter = ',')]
    flavour: Option<Vec<String>>,
    /// Pods in the gang.
    #[arg(long)]
    pods: Option<u32>,
    /// Fewest pods with which it starts and goes on: it is elastic. All of them when left out.
    #[arg(long)]
    min_pods: Option<u32>,
    /// GPUs of each pod: whole cards, or a share of one such as 0.25.
    #[arg(long)]
    gpus_per_pod: Option<String>,
    /// `any`, a level such as block, or preferred:block.
    #[arg(long)]
    topology: Option<String>,
    /// Pods of one segment that lies inside one domain.
    #[arg(long)]
    segment_pods: Option<u32>,
    /// Longest running time: 8h, 90m, 1d12h.
    #[arg(long)]
    time_limit: Option<String>,
    /// Container image.
    #[arg(long)]
    image: Option<String>,
    /// low, normal or high.
    #[arg(long)]
    priority: Option<String>,
    /// What the money is spent for.
    #[arg(long)]
    project: Option<String>,
    /// Jobs that have to end first, with commas between: `7` after it has succeeded, `7:any` after any end of it.
    #[arg(long, value_name = "ID[:any]", value_delimiter = ',')]
    after: Option<Vec<String>>,
    /// Simulated fleet only: how long its work takes.
    #[arg(long)]
    run_time: Option<String>,
    /// Time between two saves.
    #[arg(long)]
    checkpoint_period: Option<String>,
    /// How long one save stalls it.
    #[arg(long)]
    checkpoint_save: Option<String>,
    /// Saves when asked, too; yes when left out.
    #[arg(long)]
    checkpoint_on_demand: Option<YesNo>,
    /// train, batch or notebook.
    #[arg(long)]
    kind: Option<String>,
    /// May be taken back for an owner of what it borrows; yes when left out.
    #[arg(long)]
    preemptible: Option<YesNo>,
    /// Failures it survives; the fleet's default when left out.
    #[arg(long)]
    restart_budget: Option<u32>,
    /// Cores of each pod, in thousandths.
    #[arg(long)]
    cpu_milli_per_pod: Option<u64>,
    /// Memory of each pod, in MiB.
    #[arg(long)]
    memory_mib_per_pod: Option<u64>,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum YesNo {
    Yes,
    No,
}

/// `muster job list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only these teams, with commas between.
    #[arg(long)]
    team: Option<String>,
    /// Only these states, with commas between.
    #[arg(long)]
    state: Option<String>,
    /// Only this owner.
    #[arg(long)]
    owner: Option<String>,
    /// Only names that contain this.
    #[arg(long)]
    search: Option<String>,
    /// newest or oldest first.
    #[arg(long)]
    sort: Option<String>,
    /// Rows at most, 1 to 200.
    #[arg(long, default_value_t = 50)]
    limit: u32,
    /// Where the page before ended.
    #[arg(long)]
    after: Option<String>,
    #[command(flatten)]
    client: ClientArgs,
}

/// Why a spec cannot be sent.
#[derive(Debug, Error)]
pub enum SpecError {
    #[error("{path} cannot be read: {problem}")]
    File {
        path: String,
        problem: std::io::Error,
    },
    #[error("{path} is no {format}: {problem}")]
    Syntax {
        path: String,
        format: &'static str,
        problem: String,
    },
    #[error("{path} must hold named fields, such as team and image")]
    NoFields { path: String },
}

/// An idempotency key as a header takes it.
fn key(text: &str) -> Result<String, String> {
    let visible = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    match (1..=200).contains(&text.len()) && visible {
        true => Ok(text.to_owned()),
        false => Err("1 to 200 visible ASCII characters".to_owned()),
    }
}

/// Does it.
pub async fn perform(command: JobCommand) -> Done {
    match command {
        JobCommand::Submit(args) => super::submit::submit(&args).await,
        JobCommand::List(args) => list(args).await,
        JobCommand::Show { id, client: args } => {
            let job: JobView = Client::new(&args)?.get(&format!("/jobs/{id}"), &[]).await?;
            print(args.output, &job, draw_job)
        }
        JobCommand::Cancel {
            id,
            why,
            client: args,
        } => {
            let job: JobView = Client::new(&args)?
                .post(&format!("/jobs/{id}/cancel"), &json!({ "why": why }))
                .await?;
            print(args.output, &job, |job| {
                vec![format!("job {id} is {}", now_is(&job.row)).into()]
            })
        }
        JobCommand::Hold {
            id,
            why,
            drain,
            client: args,
        } => {
            let job: JobView = Client::new(&args)?
                .post(
                    &format!("/jobs/{id}/hold"),
                    &json!({ "why": why, "drain": drain }),
                )
                .await?;
            print_hold(&args, id, &job)
        }
        JobCommand::Release { id, why, client } => set("release", id, why, client).await,
        JobCommand::Suspend { id, why, client } => set("suspend", id, why, client).await,
        JobCommand::Resume { id, why, client } => set("resume", id, why, client).await,
    }
}

/// One deed with a job that takes nothing but a reason.
async fn set(deed: &str, id: u64, why: Option<String>, args: ClientArgs) -> Done {
    let job: JobView = Client::new(&args)?
        .post(&format!("/jobs/{id}/{deed}"), &json!({ "why": why }))
        .await?;
    print_hold(&args, id, &job)
}

/// A held, released, suspended or resumed job, in a line.
fn print_hold(args: &ClientArgs, id: u64, job: &JobView) -> Done {
    print(args.output, job, |job| {
        let said = job.row.reason.as_ref();
        let said = said.map_or(String::new(), |reason| format!(": {}", reason.text));
        vec![format!("job {id} is {}{said}", now_is(&job.row)).into()]
    })
}

pub fn now_is(row: &JobRow) -> String {
    if row.stopping {
        format!("{}, stopping", row.state)
    } else {
        row.state.to_string()
    }
}

/// The file's fields, and over them the flags.
pub fn spec(args: &SubmitArgs) -> Result<Value, SpecError> {
    let mut fields = match &args.file {
        Some(path) => read_spec(path)?,
        None => Map::new(),
    };
    let flags = &args.flags;
    let given = [
        ("team", flags.team.as_ref().map(|text| json!(text))),
        ("name", flags.name.as_ref().map(|text| json!(text))),
        ("flavours", flags.flavour.as_ref().map(|names| json!(names))),
        ("pods", flags.pods.map(|pods| json!(pods))),
        ("min_pods", flags.min_pods.map(|pods| json!(pods))),
        (
            "gpus_per_pod",
            flags.gpus_per_pod.as_ref().map(|text| json!(text)),
        ),
        ("topology", flags.topology.as_ref().map(|text| json!(text))),
        ("segment_pods", flags.segment_pods.map(|pods| json!(pods))),
        (
            "time_limit",
            flags.time_limit.as_ref().map(|text| json!(text)),
        ),
        ("image", flags.image.as_ref().map(|text| json!(text))),
        ("priority", flags.priority.as_ref().map(|text| json!(text))),
        ("project", flags.project.as_ref().map(|text| json!(text))),
        ("run_time", flags.run_time.as_ref().map(|text| json!(text))),
        ("after", flags.after.as_ref().map(|jobs| json!(jobs))),
        ("kind", flags.kind.as_ref().map(|text| json!(text))),
        (
            "preemptible",
            flags.preemptible.map(|answer| json!(answer == YesNo::Yes)),
        ),
        ("restart_budget", flags.restart_budget.map(|n| json!(n))),
        (
            "cpu_milli_per_pod",
            flags.cpu_milli_per_pod.map(|n| json!(n)),
        ),
        (
            "memory_mib_per_pod",
            flags.memory_mib_per_pod.map(|n| json!(n)),
        ),
    ];
    fields.extend(
        given
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?))),
    );
    let saves = [
        (
            "period",
            flags.checkpoint_period.as_ref().map(|text| json!(text)),
        ),
        (
            "save",
            flags.checkpoint_save.as_ref().map(|text| json!(text)),
        ),
        (
            "on_demand",
            flags
                .checkpoint_on_demand
                .map(|answer| json!(answer == YesNo::Yes)),
        ),
    ];
    for (name, value) in saves
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    {
        let checkpoint = fields.entry("checkpoint").or_insert_with(|| json!({}));
        if let Some(checkpoint) = checkpoint.as_object_mut() {
            checkpoint.insert(name.to_owned(), value);
        }
    }
    Ok(Value::Object(fields))
}

fn read_spec(path: &Path) -> Result<Map<String, Value>, SpecError> {
    let shown = path.display().to_string();
    let mut text = String::new();
    let read = if shown == "-" {
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(path)
    };
    let text = read.map_err(|problem| SpecError::File {
        path: shown.clone(),
        problem,
    })?;
    let ending = path
        .extension()
        .and_then(|ending| ending.to_str())
        .unwrap_or_default();
    let format = match ending {
        "json" => "JSON",
        "toml" => "TOML",
        "yaml" | "yml" => "YAML",
        _ if text.trim_start().starts_with('{') => "JSON",
        _ if toml::from_str::<Value>(&text).is_ok() => "TOML",
        _ => "YAML",
    };
    let value: Result<Value, String> = match format {
        "JSON" => serde_json::from_str(&text).map_err(|error| error.to_string()),
        "TOML" => toml::from_str(&text).map_err(|error| error.to_string()),
        _ => serde_norway::from_str(&text).map_err(|error| error.to_string()),
    };
    match value.map_err(|problem| SpecError::Syntax {
        path: shown.clone(),
        format,
        problem,
    })? {
        Value::Object(fields) => Ok(fields),
        _ => Err(SpecError::NoFields { path: shown }),
    }
}

async fn list(args: ListArgs) -> Done {
    let ListArgs {
        team,
        state,
        owner,
        search,
        sort,
        limit,
        after,
        client: args,
    } = args;
    let query = [
        ("team", team),
        ("state", state),
        ("owner", owner),
        ("search", search),
        ("sort", sort),
        ("limit", Some(limit.to_string())),
        ("after", after),
    ];
    let list: JobList = Client::new(&args)?.get("/jobs", &query).await?;
    print(args.output, &list, draw_list)
}

fn draw_list(list: &JobList) -> Vec<Block> {
    let mut sheet = Sheet::new(&[
        ">job",
        "name",
        "team",
        "owner",
        "state",
        ">gpus",
        "submitted",
        "where or why",
    ]);
    for job in &list.jobs {
        let reason = job.reason.as_ref().map(|reason| reason.text.clone());
        let said = reason
            .or_else(|| job.end_cause.clone())
            .or_else(|| job.place.clone())
            .unwrap_or_default();
        sheet.row([
            job.id.to_string(),
            job.name.clone(),
            job.team.clone(),
            job.owner.clone(),
            now_is(job),
            job.gpus.to_string(),
            time(job.submitted),
            said,
        ]);
    }
    let counts = list.counts;
    let mut foot = format!(
        "{} of {}: {} queued, {} active, {} ended",
        list.jobs.len(),
        list.total,
        counts.queued,
        counts.active,
        counts.ended
    );
    if let Some(next) = &list.next {
        foot.push_str(&format!("; the next ones with --after {next}"));
    }
    vec![sheet.into(), foot.into()]
}

pub fn draw_dry_run(dry: &DryRun) -> Vec<Block> {
    let preview = &dry.preview;
    let fits = match (&preview.place, &preview.reason) {
        (Some(place), _) if preview.fits => format!("would start now on {}", place.text),
        (_, Some(reason)) if reason.never => format!("can never run: {}", reason.text),
        (_, Some(reason)) => format!("would wait: {}", reason.text),
        _ if preview.fits => "would start now".to_owned(),
        _ => "would wait".to_owned(),
    };
    let mut price = match &preview.per_hour {
        Some(hour) => format!("{hour} {} an hour", preview.currency),
        None => "no price, since it can never run".to_owned(),
    };
    if let Some(limit) = &preview.at_limit {
        price.push_str(&format!(
            ", {limit} {} if it runs to its time limit",
            preview.currency
        ));
    }
    vec![
        format!(
            "{fits}\n{} own, {} borrowed\n{price}",
            gpu_count(preview.own.0),
            gpus(preview.borrowed.0)
        )
        .into(),
    ]
}

/// A job, whole.
pub fn draw_job(job: &JobView) -> Vec<Block> {
    let row = &job.row;
    let pods = plural(job.spec.pods.into(), "pod", "pods");
    let pods = match row.pods < job.spec.pods {
        true => format!("{} of {pods}", row.pods),
        false => pods,
    };
    let mut head = format!(
        "job {}  {}  {}  {} in {}  {}",
        row.id,
        row.name,
        row.team,
        gpu_count(row.gpus.0),
        pods,
        now_is(row)
    );
    for said in [
        row.reason.as_ref().map(|reason| &reason.text),
        row.place.as_ref(),
        row.end_cause.as_ref(),
        idle(job).as_ref(),
    ]
    .into_iter()
    .flatten()
    {
        head.push_str(&format!("\n{said}"));
    }
    let mut steps = Sheet::new(&["step", "at", "by", "figure", "note"]);
    for step in &job.steps {
        let at = step.at.map(time).unwrap_or_default();
        steps.row([
            step.name.clone(),
            at,
            step.actor.clone(),
            step.figure.clone(),
            step.note.clone(),
        ]);
    }
    let bill = &job.bill;
    let cost = format!(
        "cost so far: {} {} = {} GPU-h own ({}) + {} GPU-h borrowed ({})",
        bill.totals.amount,
        bill.currency,
        bill.totals.own_gpu_hours,
        bill.totals.own_amount,
        bill.totals.borrowed_gpu_hours,
        bill.totals.borrowed_amount
    );
    vec![head.into(), steps.into(), cost.into()]
}

/// What becomes of a notebook that is not used.
fn idle(job: &JobView) -> Option<String> {
    let notebook = job.notebook.as_ref()?;
    let (since, at) = (notebook.idle_since?, notebook.suspend_at?);
    let told = notebook.warned_at.map_or_else(
        || "its people were warned".to_owned(),
        |at| format!("its people are warned at {}", time(at)),
    );
    Some(format!(
        "not used since {}: suspended at {}, unless it is used before; {told}",
        time(since),
        time(at)
    ))
}

/// The exit code that tells a job's end to a script.
pub fn exit_code(state: contract::JobState) -> ExitCode {
    use contract::JobState::{Cancelled, Succeeded, TimedOut};
    ExitCode::from(match state {
        Succeeded => 0,
        Cancelled => 2,
        TimedOut => 3,
        _ => 1,
    })
}
