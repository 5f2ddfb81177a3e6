//! Tells the program which commit it is built from, for the reports of measurements: `SYROS_COMMIT` if it is set, else
//! what git says, else "unknown". Runs again only when another commit has been checked out.

use std::path::Path;
use std::process::Command;

/// What git answers, if there is a git and this is a checkout.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=SYROS_COMMIT");
    // Every commit and every checkout writes a line into the log of HEAD. A file that is not there would make
    // every build run this again.
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]).filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let given = std::env::var("SYROS_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = given.or_else(|| git(&["rev-parse", "--short=10", "HEAD"]));
    // It becomes part of reports: one word.
    let commit = commit.filter(|commit| commit.chars().all(|letter| letter.is_ascii_graphic()));
    println!("cargo::rustc-env=SYROS_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
}
