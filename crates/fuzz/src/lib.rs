//! Everything that Syros reads from outside, as functions of bytes that must not panic, and a runner that feeds them
//! with mutated inputs.
//!
//! The runner needs no instrumented build, so it runs on every toolchain and with every change. An input that a target
//! accepts joins the inputs that are mutated next; that leads it past the first checks of a decoder. `fuzz/` at the root
//! hands the same targets to libFuzzer, which sees more and needs a nightly toolchain.
#![forbid(unsafe_code)]

mod mutation;
mod runner;
mod seeds;
pub mod targets;

pub use runner::{Failure, Report, fuzz};
pub use targets::{TARGETS, Target};
