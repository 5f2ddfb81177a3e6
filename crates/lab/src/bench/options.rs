//! Options that several commands of `syros-lab bench` have.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{parse_size, parse_time};
use crate::program::Binary;

/// What the servers of a measurement run, and where their data is.
#[derive(Args, Debug)]
pub(super) struct Servers {
    /// Where the servers' data is, on a disk for what fsyncs; deleted in the end [default: a new directory for temporary
    /// files]
    #[arg(long, value_name = "DIR")]
    pub(super) dir: Option<PathBuf>,
    #[command(flatten)]
    pub(super) binary: Binary,
}

/// What is the same in all loads that are put on several systems in turns.
#[derive(Args, Debug)]
pub(super) struct Turns {
    /// Number of records; all are written first, but for load
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(super) keys: u64,
    /// Length of a value
    #[arg(long, value_name = "SIZE", default_value = "100", value_parser = parse_size)]
    pub(super) value_bytes: u64,
    /// Load that comes first and is not measured
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_time)]
    pub(super) warm_up: Duration,
    /// How long to measure, in each round
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_time)]
    pub(super) duration: Duration,
    /// How often everything is measured
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) rounds: u32,
    /// Seed of the choice of operations; each round has another one
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,
}

/// In which form results are given.
#[derive(Args, Debug)]
pub(super) struct Results {
    /// One JSON object a line for each round of each load, and for each statement that is checked
    #[arg(long)]
    pub(super) json: bool,
    /// Write a page with the plots
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
}
