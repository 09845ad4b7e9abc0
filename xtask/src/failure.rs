//! What can go wrong while building, each in one line that names the way out.

use std::io;
use std::path::PathBuf;

/// A step that could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The browser's compile target is absent and rustup did not bring it.
    #[error(
        "the wasm target is missing and `rustup target add wasm32-unknown-unknown` was refused{}; way out: check the network or \
         proxy, or set RUSTUP_DIST_SERVER to a mirror you may use, then run this again",
        why.as_ref().map(|w| format!(" ({w})")).unwrap_or_default()
    )]
    WasmTarget {
        /// rustup's last line, if it ran.
        why: Option<String>,
    },
    /// Node is absent or too old.
    #[error(
        "{found}; way out: install Node 20 or newer with npm (https://nodejs.org, or `apt-get install nodejs npm`), then run this again"
    )]
    Node {
        /// What was looked for and what was there.
        found: String,
    },
    /// The npm packages could not be installed.
    #[error(
        "`npm ci` failed ({why}); way out: check the network, proxy or registry setting of npm, then run this again"
    )]
    NpmPackages {
        /// npm's exit.
        why: String,
    },
    /// A program of the toolchain ended badly; its own output stands above.
    #[error("{deed} failed ({how}); its output above says why")]
    Command {
        /// What was being done.
        deed: String,
        /// Exit status or the reason it did not start.
        how: String,
    },
    /// wasm-bindgen refused the module.
    #[error(
        "wasm-bindgen could not read the browser's module: {why}; way out: `cargo update -p wasm-bindgen` must not move it off the version pinned in xtask/Cargo.toml"
    )]
    WasmBindgen {
        /// wasm-bindgen's own words.
        why: String,
    },
    /// A program answered something that cannot be read.
    #[error("{deed} answered something unexpected: {why}; way out: run it by hand and look")]
    Answer {
        /// What was asked.
        deed: &'static str,
        /// What is odd about the answer.
        why: String,
    },
    /// The disk refused.
    #[error(
        "cannot {deed} {path}: {source}; way out: check that the folder exists, is writable and has room"
    )]
    Disk {
        /// read, write, remove...
        deed: &'static str,
        /// Which file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A part of the Rust toolchain is absent and rustup did not bring it.
    #[error("`cargo {command}` is not installed; way out: `rustup component add {component}`")]
    Component {
        /// rustup's name of it.
        component: &'static str,
        /// What was to be run.
        command: &'static str,
    },
    /// No browser for the browser tests.
    #[error("there is no Chromium; way out: run `{apt}` as root, or set CHROMIUM_PATH to one")]
    Chromium {
        /// The command that installs it on Debian.
        apt: &'static str,
    },
    /// The browser tests have no server to talk to.
    #[error(
        "{path} is not there; way out: `cargo build --release --package server` must succeed first"
    )]
    NoServer {
        /// Where the server was looked for.
        path: PathBuf,
    },
    /// The command line is not understood.
    #[error(
        "unknown command `{0}`; there are: cargo demo, cargo verify, cargo bundle, cargo xtask sim, cargo xtask bench"
    )]
    Usage(String),
}

impl Failure {
    /// An adaptor for `map_err` on file operations.
    pub fn disk(deed: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Failure {
        let path = path.into();
        move |source| Failure::Disk { deed, path, source }
    }
}
