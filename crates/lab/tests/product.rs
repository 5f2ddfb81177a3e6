//! What users run has nothing of the laboratory in it.

mod common;

use common::{lab_alone, run, server, text};
use std::collections::BTreeSet;
use std::path::Path;

/// Crates whose code is in the laboratory only, as symbols name them.
const CRATES: [&str; 5] = ["syros_sim", "syros_model", "syros_checker", "syros_bench", "syros_experiment"];

/// Those of the texts that are somewhere in a file.
fn found<'a>(file: &Path, texts: &'a [String]) -> BTreeSet<&'a str> {
    let bytes = std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    // By their first two bytes: the files have a hundred million.
    let mut by_start: Vec<Vec<&str>> = vec![Vec::new(); 1 << 16];
    for text in texts {
        by_start[usize::from(u16::from_be_bytes(text.as_bytes()[..2].try_into().unwrap()))].push(text);
    }
    let mut found = BTreeSet::new();
    for (at, start) in bytes.windows(2).enumerate() {
        for text in &by_start[usize::from(u16::from_be_bytes([start[0], start[1]]))] {
            if bytes[at..].starts_with(text.as_bytes()) {
                found.insert(*text);
            }
        }
    }
    found
}

#[test]
fn the_server_has_no_known_wrong_variant_and_the_laboratory_has_all() {
    let output = run(lab_alone().args(["sim", "--list-planted"]));
    assert!(output.status.success(), "{}", text(&output));
    let list = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut texts: Vec<String> = list.lines().flat_map(|line| line.split_once(' ')).fold(
        CRATES.map(str::to_owned).to_vec(),
        |mut texts, (name, description)| {
            texts.extend([name.to_owned(), description.trim().to_owned()]);
            texts
        },
    );
    texts.sort_unstable();
    texts.dedup();
    assert!(texts.contains(&"quorum-skips-dlog".to_owned()) && texts.len() > 100, "{texts:?}");

    let all: BTreeSet<&str> = texts.iter().map(String::as_str).collect();
    assert_eq!(found(Path::new(lab_alone().get_program()), &texts), all);
    assert_eq!(found(server(), &texts), BTreeSet::new());
}
