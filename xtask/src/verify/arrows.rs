//! Which crate may use which, and what the browser's part must never carry.

use std::collections::{BTreeMap, BTreeSet};

use crate::failure::Failure;
use crate::place::{Place, metadata_of};
use crate::run::{answer, cargo};
use crate::toolchain::WASM;

/// From user to used, tests included. There are no others.
const ARROWS: [(&str, &[&str]); 8] = [
    ("scheduler", &[]),
    ("simulation", &["scheduler"]),
    ("contract", &["scheduler"]),
    ("control", &["contract", "scheduler", "simulation"]),
    ("app", &["contract", "control"]),
    ("hydrate", &["app"]),
    // `muster replay` reads a trace and runs the engine without a control plane.
    (
        "server",
        &["app", "contract", "control", "scheduler", "simulation"],
    ),
    ("xtask", &["simulation"]),
];

/// Packages that would tell that the server's side has come into the browser.
const HEAVY: [&str; 8] = [
    "axum",
    "control",
    "hyper",
    "leptos_axum",
    "simulation",
    "sqlx",
    "sqlx-core",
    "tokio",
];

/// Package and the workspace's packages it uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Every arrow that should not be, and every crate that the table does not know.
pub fn wrong_arrows(place: &Place) -> Result<Vec<String>, Failure> {
    let mut ask = cargo(&place.root);
    ask.args(["metadata", "--no-deps", "--format-version", "1"]);
    let uses = uses_of(&metadata_of(ask)?);
    if uses.is_empty() {
        return Err(Failure::Answer {
            deed: "cargo metadata",
            why: "it names no package".into(),
        });
    }
    Ok(wrong(&uses))
}

fn uses_of(metadata: &serde_json::Value) -> Uses {
    let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    let name = |value: &serde_json::Value| value["name"].as_str().unwrap_or_default().to_owned();
    let packages = list(&metadata["packages"]);
    packages
        .iter()
        .map(|package| {
            // Only ours have a path.
            let ours = list(&package["dependencies"])
                .into_iter()
                .filter(|d| d["path"].is_string());
            (name(package), ours.map(|d| name(&d)).collect())
        })
        .collect()
}

fn wrong(uses: &Uses) -> Vec<String> {
    let allowed: BTreeMap<&str, &[&str]> = ARROWS.into_iter().collect();
    let mut found = Vec::new();
    for (user, used) in uses {
        let Some(allowed) = allowed.get(user.as_str()) else {
            found.push(format!(
                "{user} is not in the ground plan (xtask/src/verify/arrows.rs)"
            ));
            continue;
        };
        let wrong = used.iter().filter(|name| !allowed.contains(&name.as_str()));
        found.extend(wrong.map(|name| format!("{user} -> {name} is not in the ground plan")));
    }
    found
}

/// What of the server's side the browser's part would carry.
pub fn heavy_packages(place: &Place) -> Result<Vec<String>, Failure> {
    let mut ask = cargo(&place.root);
    ask.args([
        "tree",
        "--package",
        "hydrate",
        "--target",
        WASM,
        "--edges",
        "normal",
        "--prefix",
        "none",
    ]);
    let tree = answer("cargo tree", ask)?;
    if !tree.contains("leptos ") {
        return Err(Failure::Answer {
            deed: "cargo tree",
            why: "it does not even name leptos".into(),
        });
    }
    Ok(heavy(&tree))
}

fn heavy(tree: &str) -> Vec<String> {
    let names: BTreeSet<&str> = tree
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let found = HEAVY.into_iter().filter(|name| names.contains(name));
    found
        .map(|name| format!("{name} is in the browser's part"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(user: &str, used: &[&str]) -> Uses {
        BTreeMap::from([(
            user.to_owned(),
            used.iter().map(|&name| name.to_owned()).collect(),
        )])
    }

    #[test]
    fn an_arrow_of_the_plan_passes_and_its_reverse_does_not() {
        assert_eq!(
            wrong(&uses("control", &["scheduler"])),
            Vec::<String>::new()
        );
        assert_eq!(
            wrong(&uses("scheduler", &["control"])),
            ["scheduler -> control is not in the ground plan"]
        );
        assert_eq!(wrong(&uses("stray", &[])).len(), 1);
    }

    #[test]
    fn only_packages_with_a_path_are_ours() {
        let metadata = serde_json::json!({"packages": [{"name": "app", "dependencies": [
            {"name": "contract", "path": "app/contract"}, {"name": "leptos", "path": null}
        ]}]});
        assert_eq!(uses_of(&metadata), uses("app", &["contract"]));
    }

    #[test]
    fn a_database_in_the_browser_is_seen_and_a_name_that_only_begins_alike_is_not() {
        assert_eq!(
            heavy("hydrate v0.1.0\nleptos v0.8.23\ntokio-util v0.7.1\n"),
            Vec::<String>::new()
        );
        assert_eq!(
            heavy("hydrate v0.1.0\nsqlx v0.8.6\n"),
            ["sqlx is in the browser's part"]
        );
    }
}
