//! `cargo demo`: from a fresh clone to a running portal.

use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::bundle;
use crate::failure::Failure;
use crate::place::Place;
use crate::run::{cargo, run, step};

/// Builds the site and the server, then becomes `muster demo` with the flags given.
///
/// Returns only when that could not be done.
pub fn demo(place: &Place, flags: &[String]) -> Result<(), Failure> {
    bundle::bundle(place)?;
    release_server(place)?;
    let program = place.muster();
    eprintln!("==> muster demo");
    let error = Command::new(&program).arg("demo").args(flags).exec();
    Err(Failure::Command {
        deed: format!("{}", program.display()),
        how: error.to_string(),
    })
}

/// Builds `target/release/muster`, with the site inside.
pub fn release_server(place: &Place) -> Result<(), Failure> {
    step("the server (cargo build --release)", || {
        let mut build = cargo(&place.root);
        build.args(["build", "--release", "--package", "server"]);
        run("cargo build --release --package server", build)
    })
}
