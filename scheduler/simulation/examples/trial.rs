//! Many seeded lives under faults, each twice: `cargo xtask sim [--seeds N] [--events M] [--from SEED]`.

use simulation::trial::{Finding, Outcome, Seen, run};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Instant;

struct Request {
    from: u64,
    seeds: u64,
    events: u64,
}

fn request() -> Result<Request, String> {
    let mut request = Request {
        from: 1,
        seeds: 200,
        events: 20_000,
    };
    let mut args = std::env::args().skip(1);
    while let Some(flag) = args.next() {
        let place = match flag.as_str() {
            "--seeds" => &mut request.seeds,
            "--events" => &mut request.events,
            "--from" => &mut request.from,
            other => return Err(format!("`{other}` is none of --seeds, --events, --from")),
        };
        let number = args.next().and_then(|number| number.parse().ok());
        *place = number.ok_or(format!("{flag} takes a whole number"))?;
    }
    Ok(request)
}

/// A life that is the same when lived again.
fn twice(seed: u64, events: u64) -> Result<Outcome, Finding> {
    let (one, other) = (run(seed, events)?, run(seed, events)?);
    if one == other {
        return Ok(one);
    }
    Err(Finding {
        seed,
        events: one.events,
        what: "lived again it is another life".to_owned(),
    })
}

fn main() -> ExitCode {
    let Request {
        from,
        seeds,
        events,
    } = match request() {
        Ok(request) => request,
        Err(problem) => {
            eprintln!("error: {problem}");
            return ExitCode::FAILURE;
        }
    };
    let (started, next) = (Instant::now(), AtomicU64::new(0));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (send, lived) = mpsc::channel();
    let (mut seen, mut total, mut restarts, mut findings) = (Seen::default(), 0, 0, 0);
    let mut claims = (0, 0, 0, 0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (send, next) = (send.clone(), &next);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= seeds || send.send(twice(from + index, events)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(send);
        for life in lived {
            match life {
                Ok(outcome) => {
                    seen.add(&outcome.seen);
                    (total, restarts) = (total + outcome.events, restarts + outcome.restarts);
                    let of = outcome.claims;
                    claims.0 += of.made;
                    claims.1 += of.victims;
                    claims.2 += of.fulfilled;
                    claims.3 += of.withdrawn;
                }
                Err(finding) => {
                    findings += 1;
                    println!("{finding}");
                }
            }
        }
    });
    println!("{:<34} {:>10}", "rule", "times");
    for (rule, times) in seen.counts() {
        println!("{:<34} {times:>10}", rule.to_string());
    }
    let missing = seen.missing();
    for rule in &missing {
        println!("{:<34} {:>10}", rule.to_string(), "never");
    }
    println!(
        "{seeds} seeds x {events} events, each twice: {total} events, {restarts} restarts, {} claims \
         ({} victims, {} fulfilled, {} withdrawn), {findings} findings, {} rules never seen, {:.1} s",
        claims.0,
        claims.1,
        claims.2,
        claims.3,
        missing.len(),
        started.elapsed().as_secs_f64(),
    );
    if findings == 0 && missing.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
