//! `syros-lab bench families`: which share of the updates of each family of commands takes one round trip.

use std::process::ExitCode;

use clap::Args;
use syros_experiment::{Distribution, KeyChoice};
use syros_sim::families::{Families, Place, RoundTrips, UPDATE_KINDS};

/// Options of `syros-lab bench families`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros-lab bench families
  syros-lab bench families --replicas 5 --gateways 3 --distribution uniform,zipfian:0.99

In virtual time, and exact: every link is as long as every other, nothing else takes time, and nothing fails. Eight updates of
each node, or gateway, are in flight at any time. Shares are in percent.")]
pub(super) struct Options {
    /// Size of the group: 1, 3, 5, 7 or 9
    #[arg(long, value_name = "N", default_value = "3", value_parser = ["1", "3", "5", "7", "9"])]
    replicas: String,
    /// Ask through so many gateways (or native clients), instead of through the Redis ports of all nodes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    gateways: Option<u16>,
    /// How keys are chosen: uniform, or zipfian:S with the exponent S (zipfian alone: 0.99)
    #[arg(long, value_name = "D,..", value_delimiter = ',', default_value = "uniform,zipfian")]
    distribution: Vec<Distribution>,
    /// Number of keys
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    keys: u64,
    /// Updates of each kind that are counted
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    updates: u64,
    /// Seed of the choice of keys
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Measures and prints.
pub(super) fn run(options: &Options) -> Result<ExitCode, String> {
    println!("| keys | family | update | 1 round trip | 1.5 | 2 | more |\n|---|---|---|---|---|---|---|");
    for distribution in &options.distribution {
        let families = Families {
            replicas: options.replicas.parse().map_err(|error| format!("--replicas: {error}"))?,
            place: options.gateways.map_or(Place::Nodes, |count| Place::Gateways(usize::from(count))),
            choice: KeyChoice::Of(*distribution),
            keys: options.keys,
            updates: options.updates,
            seed: options.seed,
        };
        for kind in &UPDATE_KINDS {
            let RoundTrips { updates, one, one_and_a_half, two } = families.measure(kind)?;
            let percent = |count: u64| count as f64 * 100.0 / updates.max(1) as f64;
            println!(
                "| {distribution} | {} | {} | {:.1} | {:.1} | {:.1} | {:.1} |",
                kind.family,
                kind.name,
                percent(one),
                percent(one_and_a_half),
                percent(two),
                percent(updates - one - one_and_a_half - two)
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}
