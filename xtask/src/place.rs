//! Where things are: the workspace, cargo's target folder, the site that is embedded.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::run::{answer, cargo};

/// The folders a build reads and writes.
pub struct Place {
    /// The repository.
    pub root: PathBuf,
    /// Where cargo builds, wherever CARGO_TARGET_DIR or a config puts it.
    pub target: PathBuf,
}

impl Place {
    /// Finds the workspace of this xtask and asks cargo for its target folder.
    pub fn find() -> Result<Place, Failure> {
        let root = workspace_root();
        let mut ask = cargo(&root);
        ask.args(["metadata", "--no-deps", "--format-version", "1"]);
        let metadata = metadata_of(ask)?;
        let target = metadata["target_directory"]
            .as_str()
            .map(PathBuf::from)
            .ok_or(Failure::Answer {
                deed: "cargo metadata",
                why: "no target_directory".into(),
            })?;
        Ok(Place { root, target })
    }

    /// What the server embeds. Always below the workspace, since `server` names it relative to itself.
    pub fn site(&self) -> PathBuf {
        self.root.join("target/site")
    }

    /// Scratch of the bundle, and the stamp that tells whether anything changed.
    pub fn work(&self) -> PathBuf {
        self.root.join("target/site-work")
    }

    /// A program that npm installed.
    pub fn npm_program(&self, name: &str) -> PathBuf {
        self.root.join("node_modules/.bin").join(name)
    }

    /// The release server.
    pub fn muster(&self) -> PathBuf {
        self.target.join("release/muster")
    }
}

/// The folder above this crate. Known from the build, so that any working directory will do.
pub fn workspace_root() -> PathBuf {
    let here = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let here = here.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
    here.parent().map(Path::to_path_buf).unwrap_or(here)
}

/// Runs a `cargo metadata` and reads its answer.
pub fn metadata_of(ask: Command) -> Result<serde_json::Value, Failure> {
    let text = answer("cargo metadata", ask)?;
    serde_json::from_str(&text).map_err(|e| Failure::Answer {
        deed: "cargo metadata",
        why: e.to_string(),
    })
}
