//! What comes in from outside, read from `cargo metadata` and held against `deny.toml`: licences, sources, and one
//! version of each crate. `cargo deny` checks the same and more, where it is installed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Where crates may come from.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Names, versions, licences and sources of all packages, ours included; those have no source.
fn packages() -> Vec<(String, String, String, Option<String>)> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let arguments = [
        "metadata",
        "--format-version=1",
        "--locked",
        "--all-features",
        "--filter-platform=x86_64-unknown-linux-gnu",
    ];
    let output = Command::new(cargo).args(arguments).current_dir(root()).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let packages = metadata["packages"].as_array().expect("there are packages");
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let package = |package: &serde_json::Value| {
        let field = |name| text(&package[name]).unwrap_or_default();
        (field("name"), field("version"), field("license"), text(&package["source"]))
    };
    packages.iter().map(package).collect()
}

fn rules() -> toml::Table {
    let text = std::fs::read_to_string(root().join("deny.toml")).expect("there is a deny.toml");
    text.parse().expect("it is TOML")
}

/// The words of an SPDX expression, as `a/b` for `a OR b` too.
fn words(expression: &str) -> Vec<String> {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    spaced.split_whitespace().map(str::to_owned).collect()
}

/// Evaluates alternatives from `at` on.
fn alternatives(words: &[String], at: &mut usize, allows: &dyn Fn(&str) -> bool) -> bool {
    let mut any = all(words, at, allows);
    while words.get(*at).is_some_and(|word| word == "OR") {
        *at += 1;
        any |= all(words, at, allows);
    }
    any
}

fn all(words: &[String], at: &mut usize, allows: &dyn Fn(&str) -> bool) -> bool {
    let mut every = one(words, at, allows);
    while words.get(*at).is_some_and(|word| word == "AND") {
        *at += 1;
        every &= one(words, at, allows);
    }
    every
}

fn one(words: &[String], at: &mut usize, allows: &dyn Fn(&str) -> bool) -> bool {
    let Some(word) = words.get(*at) else { return false };
    *at += 1;
    if word == "(" {
        let inner = alternatives(words, at, allows);
        *at += 1;
        return inner;
    }
    if words.get(*at).is_some_and(|word| word == "WITH") {
        *at += 2;
        return allows(&format!("{word} WITH {}", words.get(*at - 1).map_or("", String::as_str)));
    }
    allows(word)
}

/// True if the licences that are allowed suffice for this expression.
fn is_allowed(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    let (words, mut at) = (words(expression), 0);
    alternatives(&words, &mut at, &|licence| allowed.contains(licence)) && at == words.len()
}

#[test]
fn licences_are_allowed_and_crates_come_from_the_registry() {
    let rules = rules();
    let allowed = rules["licenses"]["allow"].as_array().expect("a list");
    let allowed: BTreeSet<&str> = allowed.iter().filter_map(toml::Value::as_str).collect();
    let packages = packages();
    for (name, version, licence, source) in &packages {
        assert!(is_allowed(licence, &allowed), "{name} {version} has the licence '{licence}'");
        assert!(
            source.as_deref().is_none_or(|source| source == REGISTRY),
            "{name} {version} is from {source:?}"
        );
        assert_eq!(source.is_none(), name.starts_with("syros") || name == "record-append", "{name} is ours");
    }
    for licence in &allowed {
        let others = allowed.iter().filter(|other| *other != licence).copied().collect();
        let needed = packages.iter().any(|(_, _, expression, _)| !is_allowed(expression, &others));
        assert!(needed, "nothing needs {licence}: take it off the list");
    }
}

#[test]
fn no_crate_is_there_twice() {
    let rules = rules();
    let skipped = rules["bans"]["skip"].as_array().expect("a list");
    let skipped = skipped.iter().map(|skip| skip["crate"].as_str().expect("a crate").split_once('@'));
    let skipped: BTreeSet<(&str, &str)> = skipped.map(|skip| skip.expect("name and version")).collect();
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, version, ..) in packages() {
        versions.entry(name).or_default().insert(version);
    }
    versions.retain(|_, versions| versions.len() > 1);
    let is_meant = |(skip, of): &(&str, &str), name: &str, version: &str| {
        let rest = version.strip_prefix(of);
        *skip == name && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    for (name, versions) in &versions {
        let is_skipped = |version: &str| skipped.iter().any(|skip| is_meant(skip, name, version));
        let left: Vec<_> = versions.iter().filter(|version| !is_skipped(version)).collect();
        assert!(
            left.len() <= 1,
            "{name} is there as {left:?}: one version will do, or deny.toml says why not"
        );
    }
    let is_there = |skip: &&(&str, &str)| {
        versions.iter().any(|(name, versions)| versions.iter().any(|version| is_meant(skip, name, version)))
    };
    let gone: Vec<_> = skipped.iter().filter(|skip| !is_there(skip)).collect();
    assert!(gone.is_empty(), "not there, or not twice: take it off the list: {gone:?}");
}

#[test]
fn expressions_are_read_as_spdx_has_them() {
    let allowed = BTreeSet::from(["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"]);
    for expression in [
        "MIT",
        "GPL-3.0 OR MIT",
        "GPL-3.0/MIT",
        "MIT AND ISC",
        "(MIT OR X) AND ISC",
        "Apache-2.0 WITH LLVM-exception OR X",
    ] {
        assert!(is_allowed(expression, &allowed), "{expression}");
    }
    for expression in ["", "GPL-3.0", "MIT AND X", "MIT AND (X OR Y)", "Apache-2.0", "MIT X", "MIT OR X) "] {
        assert!(!is_allowed(expression, &allowed), "{expression}");
    }
}
