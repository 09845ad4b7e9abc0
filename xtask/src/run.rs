//! Running programs and telling about it.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// The cargo that runs this xtask, in the workspace.
pub fn cargo(root: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    // What `cargo run` sets for xtask is not meant for the crates it builds.
    for name in ["CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH"] {
        command.env_remove(name);
    }
    command
}

/// Runs with the output shown; anything but success is a failure.
pub fn run(deed: &str, mut command: Command) -> Result<(), Failure> {
    let failed = |how: String| Failure::Command {
        deed: deed.to_owned(),
        how,
    };
    let status = command.status().map_err(|e| failed(e.to_string()))?;
    if status.success() {
        Ok(())
    } else {
        Err(failed(status.to_string()))
    }
}

/// Runs and gives back what it wrote on its standard output.
pub fn answer(deed: &str, mut command: Command) -> Result<String, Failure> {
    let failed = |how: String| Failure::Command {
        deed: deed.to_owned(),
        how,
    };
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| failed(e.to_string()))?;
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    String::from_utf8(output.stdout).map_err(|e| failed(e.to_string()))
}

/// Says what begins, does it, says how long it took.
pub fn step<T>(name: &str, deed: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    eprintln!("==> {name}");
    let start = Instant::now();
    let done = deed()?;
    eprintln!("    {name}: {}", seconds(start.elapsed()));
    Ok(done)
}

/// `3.2 s`.
pub fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// A number of bytes as people read it: `148.2 KB`, of 1,000 bytes.
pub fn kilobytes(bytes: usize) -> String {
    format!("{}.{} KB", bytes / 1000, bytes % 1000 / 100)
}
