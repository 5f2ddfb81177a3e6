//! The import rules of ARCHITECTURE.md, read from the manifests: what a crate may import is a test,
//! not a wish.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Each crate with those of ours that it may import.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("types", &[]),
    ("logging", &[]),
    ("machine", &["types"]),
    ("protocol", &["types"]),
    ("scripts", &[]),
    ("commands", &["types", "values", "scripts"]),
    ("wire", &["types", "protocol"]),
    ("wal", &["types"]),
    ("tree", &["types"]),
    ("values", &["types", "tree"]),
    ("storage", &["types", "values", "commands"]),
    ("lsm", &["types", "storage"]),
    ("tls", &["types"]),
    ("s3", &["tls"]),
    ("net", &["types", "wire"]),
    ("client", &["types", "machine", "protocol", "wire", "net", "tls", "commands"]),
    ("resp", &["types", "commands", "scripts"]),
    ("metrics", &["resp"]),
    ("traces", &["types"]),
    ("snapshot", &["types", "protocol", "wire", "wal", "storage"]),
    ("backup", &["types", "protocol", "wire", "wal", "storage", "snapshot", "s3"]),
    ("rdb", &["types", "commands", "values"]),
    ("node", &["types", "protocol", "commands", "wire", "wal", "storage", "snapshot", "resp"]),
    (
        "runtime",
        &[
            "types", "machine", "protocol", "wire", "net", "tls", "wal", "commands", "storage", "lsm",
            "snapshot", "backup", "node", "resp", "metrics", "traces", "client",
        ],
    ),
    ("checker", &["types"]),
    ("settings", &[]),
    ("regions", &["types", "settings"]),
    ("relay", &["types", "regions"]),
    ("experiment", &["types"]),
    (
        "sim",
        &[
            "types",
            "protocol",
            "wire",
            "wal",
            "commands",
            "storage",
            "snapshot",
            "node",
            "resp",
            "checker",
            "regions",
            "experiment",
        ],
    ),
    ("model", &["types", "protocol", "node", "storage"]),
    (
        "fuzz",
        &["types", "protocol", "wire", "values", "commands", "storage", "wal", "resp", "rdb", "scripts"],
    ),
    ("bench", &["types", "protocol", "wire", "net", "client", "commands", "regions", "relay", "experiment"]),
    ("cli", &["types", "protocol", "runtime", "tls", "regions", "settings"]),
    (
        "syros",
        &[
            "types", "logging", "protocol", "commands", "storage", "resp", "backup", "rdb", "runtime",
            "client", "tls", "cli", "regions", "relay", "settings", "s3",
        ],
    ),
    (
        "lab",
        &[
            "types",
            "protocol",
            "runtime",
            "client",
            "cli",
            "regions",
            "bench",
            "checker",
            "sim",
            "model",
            "experiment",
        ],
    ),
];

/// What the core may use from outside: nothing that could do I/O.
const CORE_MAY_USE: &[&str] = &["hashbrown", "xxhash-rust"];

/// What is not to be in the server: the instruments, and what only they need.
const OF_THE_LABORATORY: &[&str] = &[
    "h2",
    "hdrhistogram",
    "indicatif",
    "stateright",
    "syros-bench",
    "syros-checker",
    "syros-experiment",
    "syros-model",
    "syros-sim",
    "tokio",
];

/// Features with which our crates have more than servers need: known-wrong variants, and what models look at.
const FEATURES_OF_THE_LABORATORY: &[&str] = &["planted-bugs", "model"];

/// All packages that are in a program if cargo builds it alone, with their features.
fn packages_in(program: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--locked", "--offline", "--edges", "normal,build", "--prefix", "none"]);
    let output = tree.args(["--package", program, "--format", "{p}|{f}"]).output().expect("cargo is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut packages: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let (package, features) = line.split_once('|').expect("it has the format that was asked for");
        let name = package.split(' ').next().unwrap_or_default().to_owned();
        // A package that is in the tree twice is marked the second time.
        let features = features.trim_end_matches("(*)").split(',').map(str::trim);
        let features = features.filter(|feature| !feature.is_empty()).map(str::to_owned);
        packages.entry(name).or_default().extend(features);
    }
    packages
}

/// Those packages and features in a program that are of the laboratory.
fn instruments_in(program: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (name, features) in packages_in(program) {
        if name.starts_with("syros-") {
            let known = |feature: &String| FEATURES_OF_THE_LABORATORY.contains(&feature.as_str());
            found.extend(features.into_iter().filter(known));
        }
        found.extend(Some(name).filter(|name| OF_THE_LABORATORY.contains(&name.as_str())));
    }
    found
}

#[test]
fn the_server_has_no_instrument_and_the_laboratory_has_all() {
    let everything = OF_THE_LABORATORY.iter().chain(FEATURES_OF_THE_LABORATORY);
    assert_eq!(instruments_in("syros-lab"), everything.map(|name| (*name).to_owned()).collect());
    assert_eq!(instruments_in("syros"), BTreeSet::new());
    assert!(packages_in("syros").contains_key("syros-runtime"), "the list is that of the server");
}

fn dependencies(name: &str) -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("Cargo.toml");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let manifest: toml::Table = text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let table = manifest.get("dependencies").and_then(toml::Value::as_table);
    table.map(|table| table.keys().cloned().collect()).unwrap_or_default()
}

#[test]
fn crates_import_only_what_they_may() {
    for (name, allowed) in MAY_IMPORT {
        for dependency in dependencies(name) {
            if let Some(ours) = dependency.strip_prefix("syros-") {
                assert!(allowed.contains(&ours), "crates/{name} may not import crates/{ours}");
            }
        }
    }
}

#[test]
fn every_crate_has_a_rule() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for entry in std::fs::read_dir(crates).expect("the crates are there") {
        let name = entry.expect("it can be read").file_name().to_string_lossy().into_owned();
        assert!(MAY_IMPORT.iter().any(|(known, _)| *known == name), "crates/{name} has no import rule");
    }
}

#[test]
fn the_core_cannot_do_io() {
    for name in ["types", "protocol"] {
        for dependency in dependencies(name) {
            let ours = dependency == "syros-types";
            assert!(
                ours || CORE_MAY_USE.contains(&dependency.as_str()),
                "crates/{name} may not use {dependency}"
            );
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src/lib.rs");
        let text = std::fs::read_to_string(root).expect("it has a root");
        assert!(text.lines().any(|line| line == "#![no_std]"), "crates/{name} is no_std");
    }
}
