//! The `syros` binary: subcommands and wiring, no protocol.
#![forbid(unsafe_code)]

mod bench;
mod check;
mod config;
mod dev;
mod gateway;
mod inspect;
mod lead;
mod logger;
#[cfg(feature = "model")]
mod model;
mod regions;
mod secret;
mod server;
mod signals;
#[cfg(feature = "sim")]
mod sim;
mod status;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A replicated linearizable key-value store that speaks the Redis protocol.
#[derive(Parser, Debug)]
#[command(name = "syros", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Subcommand, Debug)]
enum Subcommands {
    /// Run a whole cluster on this machine, to try things out
    Dev(dev::Options),
    /// Run one node of a cluster
    Server(server::Options),
    /// Run a Redis front end next to an application, without a replica
    Gateway(gateway::Options),
    /// Show what the replicas of a cluster are doing
    Status(status::Options),
    /// Let another replica lead
    Lead(lead::Options),
    /// Show what a data directory holds and what is wrong with it, without changing it
    Inspect(inspect::Options),
    /// Put load on a cluster and measure what it costs
    Bench(bench::Options),
    /// Check parts of the protocol exhaustively
    Check(check::Options),
    /// Run whole clusters in a deterministic simulation with faults
    #[cfg(feature = "sim")]
    Sim(sim::Options),
}

/// Ends a command that only prints when nobody reads what it prints any more, as `| head` does: with the exit status of a
/// process that SIGPIPE ends, and without a word.
fn end_when_nobody_reads() {
    const ENDED_BY_SIGPIPE: i32 = 128 + 13;
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        // What `println!` says.
        let is_unread = info.payload().downcast_ref::<String>().is_some_and(|text| {
            text.starts_with("failed printing to stdout") && text.contains("Broken pipe")
        });
        if is_unread {
            std::process::exit(ENDED_BY_SIGPIPE);
        }
        before(info);
    }));
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    // Those that run nodes go on: their clients are elsewhere.
    let is_node = matches!(command, Subcommands::Dev(_) | Subcommands::Server(_) | Subcommands::Gateway(_));
    if !is_node {
        end_when_nobody_reads();
    }
    let result = match command {
        Subcommands::Dev(options) => dev::run(&options),
        Subcommands::Server(options) => server::run(&options),
        Subcommands::Gateway(options) => gateway::run(&options),
        Subcommands::Status(options) => status::run(&options),
        Subcommands::Lead(options) => lead::run(&options),
        Subcommands::Inspect(options) => Ok(inspect::run(&options)),
        Subcommands::Bench(options) => bench::run(&options),
        Subcommands::Check(options) => check::run(&options),
        #[cfg(feature = "sim")]
        Subcommands::Sim(options) => sim::run(&options),
    };
    result.unwrap_or_else(|problem| {
        eprintln!("syros: {problem}");
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
            assert!(help.contains("Examples:"), "syros {name} --help has no examples");
        }
    }
}
