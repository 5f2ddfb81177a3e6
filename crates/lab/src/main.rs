//! The `syros-lab` binary: the instruments of Syros. Simulator, models and benchmarks are kept out of the server, with the
//! known-wrong variants of the protocol that simulator and models must find.
#![forbid(unsafe_code)]

mod bench;
mod check;
mod model;
mod program;
mod sim;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The instruments of Syros: simulations, exhaustive checks and measurements.
#[derive(Parser, Debug)]
#[command(name = "syros-lab", version = syros_cli::VERSION, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Subcommand, Debug)]
enum Subcommands {
    /// Run whole clusters in a deterministic simulation with faults
    Sim(sim::Options),
    /// Check parts of the protocol exhaustively
    Check(check::Options),
    /// Put load on clusters and measure what it costs
    Bench(bench::Options),
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    syros_cli::end_when_nobody_reads();
    let result = match command {
        Subcommands::Sim(options) => sim::run(&options),
        Subcommands::Check(options) => check::run(&options),
        Subcommands::Bench(options) => bench::run(&options),
    };
    result.unwrap_or_else(|problem| {
        eprintln!("syros-lab: {problem}");
        ExitCode::FAILURE
    })
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;

    #[test]
    fn options_are_consistent_and_every_subcommand_has_examples() {
        let mut command = Cli::command();
        command.clone().debug_assert();
        for subcommand in command.get_subcommands_mut() {
            let name = subcommand.get_name().to_owned();
            let help = subcommand.render_long_help().to_string();
            assert!(help.contains("Examples:"), "syros-lab {name} --help has no examples");
        }
    }
}
