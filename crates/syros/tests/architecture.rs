//! The import rules of ARCHITECTURE.md, read from the manifests: what a crate may import is a test,
//! not a wish.

use std::collections::BTreeSet;
use std::path::Path;

/// Each crate with those of ours that it may import.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("types", &[]),
    ("machine", &["types"]),
    ("protocol", &["types"]),
    ("commands", &["types"]),
    ("wire", &["types", "protocol"]),
    ("wal", &["types"]),
    ("storage", &["types", "commands"]),
    ("lsm", &["types", "storage"]),
    ("net", &["types", "wire"]),
    ("client", &["types", "machine", "protocol", "wire", "net", "commands"]),
    ("resp", &["types", "commands"]),
    ("snapshot", &["types", "protocol", "wire", "wal", "storage"]),
    ("node", &["types", "protocol", "commands", "wire", "wal", "storage", "snapshot"]),
    (
        "runtime",
        &[
            "types", "machine", "protocol", "wire", "net", "wal", "commands", "storage", "lsm", "snapshot",
            "node", "resp", "client",
        ],
    ),
    ("checker", &["types"]),
    ("regions", &["types"]),
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
            "checker",
            "regions",
            "experiment",
        ],
    ),
    ("model", &["types", "protocol"]),
    ("fuzz", &["types", "protocol", "wire", "commands", "storage", "wal", "resp"]),
    ("bench", &["types", "protocol", "wire", "net", "client", "commands", "regions", "relay", "experiment"]),
    (
        "syros",
        &[
            "types",
            "protocol",
            "runtime",
            "client",
            "regions",
            "relay",
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
