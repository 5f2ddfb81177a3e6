//! The `syros` binary: subcommands and wiring, no protocol.
#![forbid(unsafe_code)]

mod backup;
mod certificate;
mod cluster;
mod config;
mod dev;
mod export;
mod gateway;
mod health;
mod import;
mod inspect;
mod lead;
mod logger;
mod member;
mod mode;
mod place;
mod progress;
mod recover;
mod redis_command;
mod restore;
mod secret;
mod server;
mod status;
mod top;
mod wrong_port;

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand};

// Cargo unifies the features of all packages that one command builds. Tests run what comes of that; users must not.
#[cfg(not(debug_assertions))]
const _: () = assert!(
    !syros_protocol::HAS_PLANTED_BUGS,
    "the laboratory's known-wrong variants would be in the server: build it alone, with cargo build --release -p syros"
);

/// A replicated linearizable key-value store that speaks the Redis protocol.
#[derive(Parser, Debug)]
#[command(name = "syros", version = syros_cli::VERSION, max_term_width = 100)]
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
    /// Ask one process whether it lives, or is ready: for whatever starts processes again
    Health(health::Options),
    /// Show what the replicas of a cluster are doing
    Status(status::Options),
    /// Show what the replicas do, with rates, again and again until a key ends it
    Top(top::Options),
    /// Let another replica lead
    Lead(lead::Options),
    /// Show or change which updates take one round trip, while the cluster serves
    Mode(mode::Options),
    /// Show the nodes of a cluster, or have it become smaller
    Member(member::Options),
    /// Make a backup of a cluster while it serves, continue one with the log, or verify one
    Backup(backup::Options),
    /// Make the data directory of a node of a new cluster from a backup
    Restore(restore::Options),
    /// Bring all data of Redis or Valkey, or of an RDB file, into a cluster that serves
    Import(import::Options),
    /// Make an RDB file, which Redis and Valkey load, from a backup
    Export(export::Options),
    /// Tell what is left of a cluster that has lost its majority for good, and make a backup of it
    Recover(recover::Options),
    /// Make certificates, for nodes and clients that speak TLS
    Certificate(certificate::Options),
    /// Show what a data directory holds and what is wrong with it, without changing it
    Inspect(inspect::Options),
}

/// Subcommands of `syros-lab`, of which this program had some once.
const OF_THE_LABORATORY: [&str; 3] = ["bench", "check", "sim"];

/// Where a subcommand is to be found that is not one of this program, if it is one of the laboratory.
fn elsewhere(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let is_ours = error.kind() == ErrorKind::InvalidSubcommand && OF_THE_LABORATORY.contains(&name.as_str());
    is_ours.then(|| {
        format!(
            "'{name}' is a command of syros-lab, the program with all instruments; \
             build it with: cargo build --release -p syros-lab"
        )
    })
}

fn main() -> ExitCode {
    let command = match Cli::try_parse() {
        Ok(Cli { command }) => command,
        Err(error) => match elsewhere(&error) {
            // The status of all mistakes on the command line.
            Some(problem) => {
                syros_cli::say!("syros: {problem}");
                return ExitCode::from(2);
            }
            None => error.exit(),
        },
    };
    // Those that run nodes go on: their clients are elsewhere.
    let is_node = matches!(command, Subcommands::Dev(_) | Subcommands::Server(_) | Subcommands::Gateway(_));
    // What this one finds is its exit status too.
    let is_inspection = matches!(command, Subcommands::Inspect(_));
    if !is_node && !is_inspection {
        syros_cli::end_when_nobody_reads();
    }
    let result = match command {
        Subcommands::Dev(options) => dev::run(&options),
        Subcommands::Server(options) => server::run(&options),
        Subcommands::Gateway(options) => gateway::run(&options),
        Subcommands::Health(options) => health::run(&options),
        Subcommands::Status(options) => status::run(&options),
        Subcommands::Top(options) => top::run(&options),
        Subcommands::Lead(options) => lead::run(&options),
        Subcommands::Mode(options) => mode::run(&options),
        Subcommands::Member(options) => member::run(&options),
        Subcommands::Backup(options) => backup::run(&options),
        Subcommands::Restore(options) => restore::run(&options),
        Subcommands::Import(options) => import::run(&options),
        Subcommands::Export(options) => export::run(&options),
        Subcommands::Recover(options) => recover::run(&options),
        Subcommands::Certificate(options) => certificate::run(&options),
        Subcommands::Inspect(options) => Ok(inspect::run(&options)),
    };
    let status = result.unwrap_or_else(|problem| logger::fail(&problem));
    let status = match syros_cli::unwritten().filter(|_| !is_node) {
        Some(problem) => logger::fail(&problem),
        None => status,
    };
    syros_logging::flush();
    status
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::{CommandFactory, Parser};

    #[test]
    fn who_asks_for_an_instrument_is_told_where_it_is() {
        for name in super::OF_THE_LABORATORY {
            let error = Cli::try_parse_from(["syros", name, "--seed", "17"]).unwrap_err();
            let problem = super::elsewhere(&error).unwrap();
            assert!(problem.contains("cargo build --release -p syros-lab"), "{problem}");
        }
        let typo = Cli::try_parse_from(["syros", "serve"]).unwrap_err();
        assert_eq!(super::elsewhere(&typo), None);
        assert!(typo.to_string().contains("'server'"), "{typo}");
    }

    /// The help of one of them names all.
    #[test]
    fn regions_that_come_with_the_program_are_named() {
        let mut command = Cli::command();
        let help = command.find_subcommand_mut("dev").unwrap().render_long_help().to_string();
        for name in syros_regions::Regions::shipped() {
            assert!(help.contains(name), "{name}");
        }
    }

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
