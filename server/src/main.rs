//! `muster`: the server and its command line in one file to deploy.
//!
//! Three doors lead into one room: `web` (the portal), `rest` (`/api/v1`) and `cli` (which goes through `rest`, but for what is done
//! on the box). Each identifies who acts, makes the same call of `control`, and answers. No rule of the trade is in here.

#![forbid(unsafe_code)]

mod assets;
mod cli;
mod connections;
mod door;
mod rest;
mod serve;
mod web;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
