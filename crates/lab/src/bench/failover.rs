//! `syros-lab bench failover`: how long nothing can be written when a leader fails.

use std::process::ExitCode;
use std::sync::mpsc::channel;

use clap::{Args, ValueEnum};
use syros_bench::{FailoverError, FailoverOptions, Fault, Round};
use syros_cli::{DurabilityName, signals};
use syros_runtime::durability_name;
use syros_types::Group;

use super::directory;
use super::options::Servers;
use crate::program::Program;

/// Options of `syros-lab bench failover`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros-lab bench failover --kills 20
  syros-lab bench failover --kills 20 --kind stop --replicas 5 --durability replicated --json
  syros-lab bench failover --kills 20 --timing lease=150ms --timing suspect-after=150ms
  sudo syros-lab bench failover --kills 20 --kind cut       needs root and iproute2

Starts a cluster of its own, with default settings but for those given. Exit status 1: a write that was acknowledged is lost.")]
pub(super) struct Failover {
    /// How often the leader fails
    #[arg(long, value_name = "N")]
    kills: usize,
    /// What happens to it
    #[arg(long, value_enum, default_value = "kill")]
    kind: FaultKind,
    /// Number of replicas: 3, 5, 7 or 9
    #[arg(long, value_name = "N", default_value_t = 3)]
    replicas: usize,
    /// When a write is acknowledged
    #[arg(long, value_enum, default_value = "fsync")]
    durability: DurabilityName,
    /// Clients that write, each one thing at a time
    #[arg(long, value_name = "N", default_value_t = 4)]
    writers: usize,
    /// A setting of the nodes other than the default, from the table timing of docs/syros.sample.toml
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_timing)]
    timing: Vec<String>,
    #[command(flatten)]
    servers: Servers,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// [`Fault`] on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum FaultKind {
    /// SIGKILL; it is started again
    Kill,
    /// SIGSTOP; it goes on later
    Stop,
    /// All its links are cut, and mended later
    Cut,
    /// SIGTERM, which makes it hand over; it is started again
    End,
    /// It hands over to another, as with `syros lead`
    Lead,
}

impl From<FaultKind> for Fault {
    fn from(kind: FaultKind) -> Self {
        match kind {
            FaultKind::Kill => Self::Kill,
            FaultKind::Stop => Self::Stop,
            FaultKind::Cut => Self::Cut,
            FaultKind::End => Self::End,
            FaultKind::Lead => Self::Lead,
        }
    }
}

/// `lease=150ms`, as a line of the configuration file.
fn parse_timing(text: &str) -> Result<String, String> {
    let (key, value) = text.split_once('=').ok_or("KEY=VALUE is expected, such as lease=150ms")?;
    Ok(format!("{} = {}", key.trim(), toml::Value::String(value.trim().to_owned())))
}

/// Measures and prints.
pub(super) fn run(options: &Failover) -> Result<ExitCode, String> {
    let (sender, ended_by) = channel();
    signals::forward(sender)?;
    Group::new(options.replicas).map_err(|error| format!("--replicas: {error}"))?;
    let temporary = || std::env::temp_dir().join(format!("syros-failover-{}", std::process::id()));
    let directory = options.servers.dir.clone().unwrap_or_else(temporary);
    let name = directory.display();
    directory::check(&directory)?;
    let Program { path: program, .. } = options.servers.binary.find()?;
    std::fs::create_dir_all(&directory).map_err(|error| format!("cannot create {name}: {error}"))?;
    let measured = syros_bench::failover(
        &FailoverOptions {
            program,
            directory: directory.clone(),
            replicas: options.replicas,
            durability: durability_name(options.durability.into()).to_owned(),
            settings: format!("[timing]\n{}", options.timing.join("\n")),
            fault: options.kind.into(),
            rounds: options.kills,
            writers: options.writers,
        },
        print_round,
        || ended_by.try_recv().is_ok(),
    );
    let is_worth_keeping = match &measured {
        Ok(report) => report.lost > 0,
        Err(FailoverError::Interrupted) => false,
        Err(_) => true,
    };
    if is_worth_keeping && std::fs::remove_dir(&directory).is_err() {
        // It is not empty.
        eprintln!("syros-lab bench: data and logs of the nodes are in {name}");
    } else if !is_worth_keeping {
        std::fs::remove_dir_all(&directory).map_err(|error| format!("cannot delete {name}: {error}"))?;
    }
    let report = measured.map_err(|error| error.to_string())?;
    if options.json {
        println!("{}", report.json());
    } else {
        println!("{report}");
    }
    Ok(if report.lost == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print_round(number: usize, round: &Round) {
    eprintln!(
        "{number:>4}  node {} failed: {:.1} ms without a write; whole again {:.0} ms after its return",
        round.leader,
        round.outage.as_secs_f64() * 1000.0,
        round.catch_up.as_secs_f64() * 1000.0,
    );
}
