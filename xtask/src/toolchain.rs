//! What must be installed before a build: looked for first, fetched where it may be, and named where not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::place::Place;
use crate::run::{answer, step};

/// The browser's compile target.
pub const WASM: &str = "wasm32-unknown-unknown";

/// The oldest Node that the packages in package.json run on.
const NODE_MAJOR_MIN: u32 = 20;

/// The wasm target is there afterwards.
pub fn need_wasm_target() -> Result<(), Failure> {
    if wasm_target_is_there()? {
        return Ok(());
    }
    step("the wasm target (rustup target add)", || {
        let output = Command::new("rustup")
            .args(["target", "add", WASM])
            .output();
        match output {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(Failure::WasmTarget {
                why: last_line(&output.stderr),
            }),
            Err(e) => Err(Failure::WasmTarget {
                why: Some(format!("rustup: {e}")),
            }),
        }
    })
}

/// Asks rustc, not rustup, since the target may have come from a distribution.
fn wasm_target_is_there() -> Result<bool, Failure> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut ask = Command::new(rustc);
    ask.args(["--print", "target-libdir", "--target", WASM]);
    let folder = PathBuf::from(answer("rustc --print target-libdir", ask)?.trim());
    Ok(folder.is_dir())
}

fn last_line(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    text.lines()
        .map(str::trim)
        .rfind(|line| !line.is_empty())
        .map(str::to_owned)
}

/// A part of the toolchain that a minimal rustup leaves out is there afterwards.
pub fn need_component(component: &'static str, command: &'static str) -> Result<(), Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let is_there = || {
        Command::new(&cargo)
            .args([command, "--version"])
            .output()
            .is_ok_and(|o| o.status.success())
    };
    if is_there() {
        return Ok(());
    }
    let _ = Command::new("rustup")
        .args(["component", "add", component])
        .status();
    if is_there() {
        Ok(())
    } else {
        Err(Failure::Component { component, command })
    }
}

/// The packages of package-lock.json are in node_modules afterwards.
pub fn need_npm_packages(place: &Place) -> Result<(), Failure> {
    need_node()?;
    let lock = read(&place.root.join("package-lock.json"))?;
    let stamp = place.root.join("node_modules/.muster-lock");
    if fs::read(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    step("the npm packages (npm ci)", || {
        let mut npm = Command::new("npm");
        // No package's own script is run: none of ours needs one.
        npm.args([
            "ci",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
        ])
        .current_dir(&place.root);
        match npm.status() {
            Ok(status) if status.success() => {}
            Ok(status) => {
                return Err(Failure::NpmPackages {
                    why: status.to_string(),
                });
            }
            Err(e) => {
                return Err(Failure::Node {
                    found: format!("npm cannot be run ({e})"),
                });
            }
        }
        fs::write(&stamp, &lock).map_err(Failure::disk("write", &stamp))
    })
}

fn need_node() -> Result<(), Failure> {
    let output = Command::new("node").arg("--version").output();
    let output = output.map_err(|e| Failure::Node {
        found: format!("node cannot be run ({e})"),
    })?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match node_major(&version) {
        Some(major) if major >= NODE_MAJOR_MIN => Ok(()),
        _ => Err(Failure::Node {
            found: format!("node says it is `{version}`, and {NODE_MAJOR_MIN} is needed"),
        }),
    }
}

/// The 20 of `v20.11.1`.
fn node_major(version: &str) -> Option<u32> {
    version.strip_prefix('v')?.split('.').next()?.parse().ok()
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(Failure::disk("read", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_of_node_is_read_and_nonsense_is_not_a_version() {
        assert_eq!(node_major("v20.11.1"), Some(20));
        assert_eq!(node_major("v9"), Some(9));
        assert_eq!(node_major("20.1"), None);
        assert_eq!(node_major(""), None);
    }

    #[test]
    fn a_refusal_is_quoted_by_its_last_line() {
        assert_eq!(
            last_line(b"info: downloading\nerror: refused\n\n").as_deref(),
            Some("error: refused")
        );
        assert_eq!(last_line(b""), None);
    }
}
