//! What the tests of the laboratory share: its program, and the servers that it starts.
#![allow(dead_code, reason = "every test file uses a part of it")]

#[path = "../../../syros/tests/common/support.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

pub(crate) use support::*;

/// The program under test, without servers beside it: they may be those of another commit.
pub(crate) fn lab_alone() -> Command {
    Command::new(env!("CARGO_BIN_EXE_syros-lab"))
}

/// The program under test, with servers beside it.
pub(crate) fn lab() -> Command {
    server();
    lab_alone()
}

/// The program `syros` beside the one under test, made of the present sources. It is built alone, as users build it: tests of
/// the whole workspace leave one with the features of all packages in its place.
///
/// Cargo builds for one process at a time, and does nothing if there is nothing to do.
pub(crate) fn server() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let directory = Path::new(env!("CARGO_BIN_EXE_syros-lab")).parent().unwrap();
        let profile = match directory.file_name().unwrap().to_str().unwrap() {
            "debug" => "dev",
            profile => profile,
        };
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--locked", "--quiet", "--package", "syros", "--profile", profile]);
        build.arg("--target-dir").arg(directory.parent().unwrap());
        let output = build.output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        directory.join("syros")
    })
}
