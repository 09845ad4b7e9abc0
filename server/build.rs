//! Builds the server anew when the site it embeds has changed.

use std::path::Path;

fn main() -> std::io::Result<()> {
    // A build without `cargo bundle` before it embeds an empty site. The folder must exist, or cargo would take it for changed at
    // each build.
    let site = Path::new("../target/site");
    std::fs::create_dir_all(site)?;
    println!("cargo::rerun-if-changed={}", site.display());
    println!("cargo::rerun-if-changed=build.rs");
    Ok(())
}
