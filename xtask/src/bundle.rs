//! `cargo bundle`: everything that the browser gets, made ready for the server to embed.
//!
//! 1. what is missing is installed: the wasm target, the npm packages
//! 2. `hydrate` is built for wasm, alone
//! 3. wasm-bindgen writes its JavaScript, wasm-opt makes it small
//! 4. esbuild makes one file of Chart.js and one of the styles, with the font beside it
//! 5. all of it lands in `target/site/pkg/<hash>/`, compressed, with a manifest
//!
//! The folder carries the hash of all contents, so nothing inside needs rewriting, and a browser may keep it for ever. Steps 3 to 5
//! are left out while nothing they read has changed.

use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};
use wasm_bindgen_cli_support::Bindgen;

use crate::failure::Failure;
use crate::files;
use crate::place::Place;
use crate::run::{cargo, kilobytes, run, step};
use crate::site::{self, Manifest};
use crate::toolchain::{WASM, need_npm_packages, need_wasm_target};

/// The stem of the script, the wasm and the style sheet; the page names it too.
pub const OUTPUT_NAME: &str = "muster";

/// What wasm-opt may take for granted: what rustc's own target has switched on.
const WASM_FEATURES: [&str; 6] = [
    "--enable-bulk-memory",
    "--enable-multivalue",
    "--enable-mutable-globals",
    "--enable-nontrapping-float-to-int",
    "--enable-reference-types",
    "--enable-sign-ext",
];

/// Makes `target/site` current and tells what is in it.
pub fn bundle(place: &Place) -> Result<Manifest, Failure> {
    need_wasm_target()?;
    need_npm_packages(place)?;
    let wasm = step("the browser's part (cargo build -p hydrate)", || {
        wasm_build(place)
    })?;
    let inputs = fingerprint(place, &wasm)?;
    let stamp = place.work().join("inputs");
    if fs::read_to_string(&stamp).is_ok_and(|last| last == inputs)
        && let Some(manifest) = Manifest::read(&place.site())
    {
        eprintln!("    the site is as it was: /{}", manifest.pkg());
        return Ok(manifest);
    }
    let made = place.work().join("pkg");
    files::renew(&made)?;
    step("wasm-bindgen", || bind(&wasm, &made))?;
    step("wasm-opt -Oz", || shrink(place, &made))?;
    step("esbuild (Chart.js)", || charts(place, &made))?;
    step("esbuild (styles)", || styles(place, &made))?;
    let manifest = step("the site (hash, brotli, gzip)", || {
        site::write(&made, &place.root.join("public"), &place.site())
    })?;
    fs::write(&stamp, inputs).map_err(Failure::disk("write", &stamp))?;
    eprintln!(
        "    /{}: wasm {} and Chart.js {} as brotli",
        manifest.pkg(),
        kilobytes(manifest.wasm_br_bytes),
        kilobytes(manifest.chart_br_bytes)
    );
    Ok(manifest)
}

/// Builds `hydrate` in a call of its own: beside the server its features would unite with `ssr`.
fn wasm_build(place: &Place) -> Result<PathBuf, Failure> {
    let mut build = cargo(&place.root);
    build.args([
        "build",
        "--package",
        "hydrate",
        "--target",
        WASM,
        "--profile",
        "wasm-release",
    ]);
    run("cargo build --package hydrate", build)?;
    Ok(place.target.join(WASM).join("wasm-release/hydrate.wasm"))
}

/// One hash over everything that steps 3 to 5 read, this program included.
fn fingerprint(place: &Place, wasm: &Path) -> Result<String, Failure> {
    let mut hash = Sha256::new();
    let mut inputs = vec![wasm.to_path_buf()];
    for folder in ["style", "public", "app/src/chart", "xtask"] {
        inputs.extend(files::below(&place.root.join(folder))?);
    }
    for file in ["package-lock.json", "Cargo.lock"] {
        inputs.push(place.root.join(file));
    }
    for input in inputs {
        let bytes = fs::read(&input).map_err(Failure::disk("read", &input))?;
        hash.update(input.as_os_str().as_encoded_bytes());
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(&bytes);
    }
    Ok(files::hex(&hash.finalize()))
}

fn bind(wasm: &Path, made: &Path) -> Result<(), Failure> {
    let mut bindgen = Bindgen::new();
    bindgen
        .input_path(wasm)
        .out_name(OUTPUT_NAME)
        .typescript(false);
    bindgen
        .remove_name_section(true)
        .remove_producers_section(true);
    bindgen.web(true).map_err(refused)?;
    bindgen.generate(made).map_err(refused)
}

/// wasm-bindgen tells its causes over several lines.
fn refused(error: impl Debug) -> Failure {
    let text = format!("{error:?}");
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    Failure::WasmBindgen {
        why: lines.join(" "),
    }
}

fn shrink(place: &Place, made: &Path) -> Result<(), Failure> {
    let wasm = made.join(format!("{OUTPUT_NAME}_bg.wasm"));
    let mut optimise = Command::new(place.npm_program("wasm-opt"));
    optimise
        .arg("-Oz")
        .args(WASM_FEATURES)
        .arg(&wasm)
        .arg("-o")
        .arg(&wasm);
    run("wasm-opt", optimise)
}

fn charts(place: &Place, made: &Path) -> Result<(), Failure> {
    let mut esbuild = esbuild(place);
    esbuild.arg("app/src/chart/chart.js").args([
        "--format=esm",
        "--target=es2022",
        "--legal-comments=inline",
    ]);
    esbuild.arg(format!("--outfile={}", made.join("chart.js").display()));
    run("esbuild of Chart.js", esbuild)
}

/// From the general to the particular: a later sheet may refine an earlier one.
const SHEETS: [&str; 4] = ["tokens.css", "base.css", "parts.css", "pages.css"];

/// Bundles the font's faces, then the sheets of `style/` in their order, and any other by name after them.
fn styles(place: &Place, made: &Path) -> Result<(), Failure> {
    let mut found = files::below(&place.root.join("style"))?;
    found.retain(|file| file.extension().is_some_and(|e| e == "css"));
    found.sort_by_key(|file| {
        let known = SHEETS.iter().position(|name| file.ends_with(name));
        known.unwrap_or(SHEETS.len())
    });
    let sheets = std::iter::once(place.root.join("xtask/font.css")).chain(found);
    let entry = place.work().join("entry.css");
    let imports: String = sheets
        .map(|sheet| format!("@import {:?};\n", sheet.display().to_string()))
        .collect();
    fs::write(&entry, imports).map_err(Failure::disk("write", &entry))?;
    let mut esbuild = esbuild(place);
    esbuild
        .arg(&entry)
        .args(["--loader:.woff2=file", "--asset-names=[name]"]);
    esbuild.arg(format!(
        "--outfile={}",
        made.join(format!("{OUTPUT_NAME}.css")).display()
    ));
    run("esbuild of style/", esbuild)
}

fn esbuild(place: &Place) -> Command {
    let mut command = Command::new(place.npm_program("esbuild"));
    command
        .current_dir(&place.root)
        .args(["--bundle", "--minify", "--log-level=warning"]);
    command
}
