//! `syros-lab bench`: load on a cluster, and what it costs; protocols side by side, and Syros beside others; and what failures and distance
//! cost.

mod compare;
mod directory;
mod failover;
mod families;
mod figure;
mod geo;
mod options;
mod peers;
mod progress;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use syros_bench::Report;
use syros_cli::tls::TlsOptions;
use syros_cli::{check_address, parse_bytes, parse_duration};
use syros_client::{Endpoint, ReadPolicy, Settings, WritePolicy};
use syros_experiment::Distribution;

/// Options of `syros-lab bench`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros-lab bench write --cluster 127.0.0.1:6479,127.0.0.1:6480,127.0.0.1:6481
  syros-lab bench compare --protocols vr,skyros,default --replicas 5 --clients 10 --workload nilext
  syros-lab bench peers --systems etcd,syros --clients 50
  syros-lab bench failover --kills 20
  syros-lab bench figure skyros-8a --virtual
  syros-lab bench geo --regions far-leader --workload a,b,c --protocols vr,skyros,default
  syros dev --quiet --exec 'syros-lab bench write --cluster {cluster} --writers 50 --duration 10s'")]
pub(crate) struct Options {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Subcommand, Debug)]
enum Workload {
    /// Closed-loop writers of random keys, over native connections to every replica
    Write(WriteOptions),
    /// Protocols side by side under the same loads, in clusters of its own
    Compare(Box<compare::Compare>),
    /// Syros beside etcd and Redis under the same load, each through its own protocol
    Peers(Box<peers::Peers>),
    /// Time without a successful write when the leader fails, in a cluster of its own
    Failover(failover::Failover),
    /// Which updates of which family of commands take one round trip, in virtual time
    Families(families::Options),
    /// The papers' figures, reproduced, beside what the papers say
    Figure(Box<figure::Figure>),
    /// Latency in regions that are far from each other, by protocol, in clusters of its own
    Geo(geo::Geo),
}

/// Options of `syros-lab bench write`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros-lab bench write --cluster 127.0.0.1:6479,127.0.0.1:6480,127.0.0.1:6481
  syros-lab bench write --cluster .. --reads-percent 95 --value-bytes 1KiB --json")]
struct WriteOptions {
    /// Where the replicas listen for each other, in the order of their ids, as host:port
    #[arg(long, value_name = "H:P,..", value_delimiter = ',', required = true, value_parser = resolve)]
    cluster: Vec<Endpoint>,
    /// Operations in flight at any time
    #[arg(long, value_name = "N", default_value_t = 50)]
    writers: usize,
    /// Sessions that the writers are spread over, each with a connection to every replica
    #[arg(long, value_name = "N", default_value_t = 10)]
    connections: usize,
    /// Length of a value
    #[arg(long, value_name = "SIZE", default_value = "16", value_parser = parse_size)]
    value_bytes: u64,
    /// Number of different keys
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    keys: u64,
    /// How keys are chosen: uniform, or zipfian:S with the exponent S (zipfian alone: 0.99)
    #[arg(long, value_name = "D", default_value = "uniform")]
    distribution: Distribution,
    /// How reads are answered: auto, leader, meta, quorum or stale
    #[arg(long, value_name = "POLICY", default_value_t = ReadPolicy::Auto)]
    reads: ReadPolicy,
    /// How updates go: auto, fast, thrifty or leader
    #[arg(long, value_name = "POLICY", default_value_t = WritePolicy::Auto)]
    writes: WritePolicy,
    /// Share of reads
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=100))]
    reads_percent: u8,
    /// Load that comes first and is not measured
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_time)]
    warm_up: Duration,
    /// How long to measure
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_time)]
    duration: Duration,
    /// End after so many operations, if that is earlier
    #[arg(long, value_name = "N")]
    operations: Option<u64>,
    /// Seed of the choice of keys
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    tls: TlsOptions,
    /// Processes on this machine whose CPU time is measured: those of the replicas
    #[arg(long, value_name = "PID,..", value_delimiter = ',')]
    replica_pids: Vec<u32>,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

fn resolve(text: &str) -> Result<Endpoint, String> {
    check_address(text)?;
    Endpoint::resolve(text).map_err(|error| error.to_string())
}

fn parse_size(text: &str) -> Result<u64, String> {
    parse_bytes(text).ok_or_else(|| "a size such as 16 or 1KiB is expected".to_owned())
}

fn parse_time(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "a duration such as 10s is expected".to_owned())
}

/// Makes the load and prints what it cost.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    match &options.workload {
        Workload::Write(options) => write(options),
        Workload::Compare(options) => compare::run(options),
        Workload::Peers(options) => peers::run(options),
        Workload::Failover(options) => failover::run(options),
        Workload::Families(options) => families::run(options),
        Workload::Figure(options) => figure::run(options),
        Workload::Geo(options) => geo::run(options),
    }
}

fn write(write: &WriteOptions) -> Result<ExitCode, String> {
    let load = syros_bench::Options {
        writers: write.writers,
        connections: write.connections,
        // Longer than memory is far longer than the limit, which is checked by whom it is passed to.
        value_bytes: usize::try_from(write.value_bytes).unwrap_or(usize::MAX),
        keys: write.keys,
        distribution: write.distribution,
        client: syros_client::Options {
            credentials: write.tls.credentials()?.map(Arc::new),
            ..Settings { read_policy: write.reads, write_policy: write.writes, ..Settings::default() }.into()
        },
        reads_percent: write.reads_percent,
        warm_up: write.warm_up,
        duration: write.duration,
        operations: write.operations,
        seed: write.seed,
        replica_pids: write.replica_pids.clone(),
        ..syros_bench::Options::new(write.cluster.clone())
    };
    let report: Report = syros_bench::run(&load).map_err(|error| error.to_string())?;
    if write.json {
        println!("{}", report.json());
    } else {
        println!("{report}");
    }
    Ok(if report.failures.total() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    /// What is wrong with a command line of `syros-lab bench`, given without these two words.
    pub(super) fn problem(words: &[&str]) -> String {
        match crate::Cli::try_parse_from(["syros-lab", "bench"].iter().chain(words)) {
            Err(error) => error.to_string(),
            Ok(crate::Cli { command: crate::Subcommands::Bench(options) }) => {
                super::run(&options).map_or_else(|problem| problem, |_| "nothing".to_owned())
            }
            Ok(_) => "another command".to_owned(),
        }
    }
}
