//! One way to build, run and test everything.
//!
//! - `cargo demo`: builds the browser's part and the server, then runs the demo. What follows `--` goes to `muster demo`.
//! - `cargo bundle`: the browser's part alone, into `target/site`.
//! - `cargo verify`: all checks and tests, with a closing count.
//! - `cargo xtask sim [--seeds N] [--events M] [--from SEED]`: many seeded lives of the engine under faults, each twice.
//! - `cargo xtask bench [--growth | ROW]`: how long the engine takes, in one table; with `--growth`, how that grows.
//!
//! A library does the work of the wasm-bindgen program, since its version is then the lockfile's own; programs come from npm
//! where they are small to fetch; nothing is downloaded by hand. Deliberately absent: a watch mode, a release upload.

use std::env;
use std::process::ExitCode;

use failure::Failure;
use place::Place;

mod bundle;
mod demo;
mod failure;
mod files;
mod place;
mod run;
mod site;
mod toolchain;
mod verify;

#[cfg(test)]
mod tidy;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[String]) -> Result<ExitCode, Failure> {
    let (command, flags) = match args.split_first() {
        Some((command, [dashes, flags @ ..])) if dashes == "--" => (command.as_str(), flags),
        Some((command, flags)) => (command.as_str(), flags),
        None => ("", &[][..]),
    };
    let place = Place::find()?;
    match command {
        "demo" => demo::demo(&place, flags).map(|()| ExitCode::SUCCESS),
        "bundle" => bundle::bundle(&place).map(|_| ExitCode::SUCCESS),
        "sim" => example(&place, "trial", flags),
        "bench" => example(&place, "bench", flags),
        "verify" => Ok(verify::verify(&place)),
        other => Err(Failure::Usage(other.to_owned())),
    }
}

/// A program of the simulation, in release, since it has much to do; its exit code is the answer.
fn example(place: &Place, name: &str, flags: &[String]) -> Result<ExitCode, Failure> {
    let mut program = run::cargo(&place.root);
    program.args(["run", "--release", "--package", "simulation", "--example"]);
    program.args([name, "--"]).args(flags);
    run::run(&format!("cargo run --example {name}"), program).map(|()| ExitCode::SUCCESS)
}
