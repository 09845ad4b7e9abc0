//! `muster demo` and `muster serve`.

use super::{DataArgs, Done};
use crate::serve;
use clap::Args;
use control::{Mode, Options, Progress, Tuning};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;

/// `muster demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Where to listen; loopback only, since the demo signs anybody in. Port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:3000")]
    addr: String,
    #[command(flatten)]
    data: DataArgs,
    /// Seed of everything drawn; two runs of one seed are equal. A data folder keeps the seed that it was made with.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How fast the demo's clock runs, 1 to 10000.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    speed: u32,
    /// Forgets the earlier demo of this data folder.
    #[arg(long)]
    fresh: bool,
    /// Days of history generated at the first start.
    #[arg(long, hide = true)]
    history_days: Option<u32>,
}

/// `muster serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Where to listen.
    #[arg(long, default_value = "127.0.0.1:3000")]
    addr: String,
    #[command(flatten)]
    data: DataArgs,
}

/// Runs the demo until it is stopped.
pub async fn demo(args: DemoArgs) -> Done {
    let mode = Mode::Demo {
        seed: args.seed,
        speed: args.speed,
        fresh: args.fresh,
    };
    let options = Options {
        data: args.data.data,
        mode,
    };
    let mut tuning = Tuning {
        progress: Arc::new(show_progress),
        ..Tuning::default()
    };
    if let Some(days) = args.history_days {
        tuning.history_days = days;
    }
    serve::run(&args.addr, options, tuning).await?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the server until it is stopped.
pub async fn serve(args: ServeArgs) -> Done {
    let options = Options {
        data: args.data.data,
        mode: Mode::Serve,
    };
    serve::run(&args.addr, options, Tuning::default()).await?;
    Ok(ExitCode::SUCCESS)
}

/// How far the first start has come: one line on a terminal, a line every ten days elsewhere.
fn show_progress(progress: Progress) {
    let Progress { day, days, events } = progress;
    let text = format!("Making the demo's history: day {day} of {days}, {events} events");
    let mut err = std::io::stderr().lock();
    // A progress line that cannot be written is no reason to stop.
    let _ = if err.is_terminal() {
        let end = if day == days { "\n" } else { "" };
        write!(err, "\r\x1b[K{text}{end}").and_then(|()| err.flush())
    } else if day == days || day.is_multiple_of(10) {
        writeln!(err, "{text}")
    } else {
        Ok(())
    };
}
