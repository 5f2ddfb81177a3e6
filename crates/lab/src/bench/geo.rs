//! `syros-lab bench geo`: what distance costs, by protocol.

use std::cell::Cell;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::channel;
use std::time::Duration;

use clap::Args;
use syros_bench::geo::{GeoCluster, GeoError, GeoLoad};
use syros_cli::{regions, signals};
use syros_experiment::{Distribution, Mix, Row};
use syros_regions::Regions;
use syros_types::Protocol;

use super::options::Servers;
use super::{directory, parse_size, parse_time};
use crate::program::Program;

/// A cluster in which another replica came to lead is replaced by a new one; so often for each protocol.
const REPLACEMENTS_MAX: usize = 3;

/// Options of `syros-lab bench geo`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros-lab bench geo --regions far-leader
  syros-lab bench geo --regions far-leader --distribution zipfian --virtual
  syros-lab bench geo --regions five-continents --workload a,90% --protocols vr,default --json
  syros-lab bench geo --regions my.toml --distribution uniform,zipfian:0.99 --clients 8 --duration 30s

Protocols: vr-nobatch, vr, vr-pe, pqr, skyros, skyros-comm, curp-c, syros, ionia-lr, ionia, default; each also with another way to read or to write, as in
default+quorum or skyros+writes=auto. Starts a cluster of its own for each, on this machine, in memory, with a relay
that delays what is sent between regions; or simulates them (--virtual), which is exact: nothing takes time but
distance, and the answers are checked. The format of files: see crates/regions/regions. Times are in microseconds; '1 RTT' is the share of reads that took one round trip to those that were asked first. Exit
status 1: an operation failed.")]
pub(super) struct Geo {
    /// Where replicas and clients are: a file, or far-leader, near-majority, five-continents, one-data-center or
    /// three-zones
    #[arg(long, value_name = "FILE|NAME")]
    regions: String,
    /// YCSB's a (half reads), b (95 % reads), c (reads only), or a share of reads such as 75%
    #[arg(long, value_name = "W,..", value_delimiter = ',', default_value = "a,b,c")]
    workload: Vec<Mix>,
    /// What to compare
    #[arg(
        long,
        value_name = "P,..",
        value_delimiter = ',',
        default_value = "vr,pqr,skyros,syros,ionia,default"
    )]
    protocols: Vec<Protocol>,
    /// How keys are chosen: uniform, or zipfian:S with the exponent S (zipfian alone: 0.99)
    #[arg(long, value_name = "D,..", value_delimiter = ',', default_value = "uniform")]
    distribution: Vec<Distribution>,
    /// Number of keys; all are written first
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    keys: u64,
    /// Length of a value
    #[arg(long, value_name = "SIZE", default_value = "100", value_parser = parse_size)]
    value_bytes: u64,
    /// Clients in each region that has any, each doing one thing at a time
    #[arg(long, value_name = "N", default_value_t = 4)]
    clients: usize,
    /// Load that comes first and is not measured
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_time)]
    warm_up: Duration,
    /// How long to measure
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_time)]
    duration: Duration,
    /// Bytes for the leader's history of changes, which reads by "meta" rely on [default: 4MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    history: Option<u64>,
    /// Simulate, in virtual time
    #[arg(long = "virtual", conflicts_with_all = ["dir", "binary", "value_bytes", "duration", "warm_up"])]
    is_virtual: bool,
    /// End after so many operations, over all clients, if that is earlier [default with --virtual: 20000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    operations: Option<u64>,
    /// Seed of the choice of operations
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    servers: Servers,
    /// One JSON object for each line
    #[arg(long)]
    json: bool,
}

impl Geo {
    /// What a load of the given kind is like.
    fn load(&self, mix: Mix, distribution: Distribution) -> GeoLoad {
        GeoLoad {
            mix,
            distribution,
            keys: self.keys,
            // Longer than memory is far longer than the limit, which is checked by whom it is passed to.
            value_bytes: usize::try_from(self.value_bytes).unwrap_or(usize::MAX),
            clients: self.clients,
            warm_up: self.warm_up,
            duration: self.duration,
            operations: self.operations,
            seed: self.seed,
        }
    }

    /// Every kind of load, in the order of the lines that are printed for each protocol.
    fn loads(&self) -> impl Iterator<Item = GeoLoad> {
        let kinds =
            self.workload.iter().flat_map(|mix| self.distribution.iter().map(move |keys| (mix, keys)));
        kinds.map(|(mix, distribution)| self.load(*mix, *distribution))
    }
}

/// Prints rows as they come.
struct Printer {
    json: bool,
    has_heading: bool,
    failed: u64,
}

impl Printer {
    fn print(&mut self, rows: &[Row]) {
        if !self.json && !core::mem::replace(&mut self.has_heading, true) {
            println!("{}", Row::heading());
        }
        for row in rows {
            self.failed += row.failed;
            if self.json {
                println!("{}", row.json());
            } else {
                println!("{row}");
            }
        }
    }
}

/// Measures and prints.
pub(super) fn run(options: &Geo) -> Result<ExitCode, String> {
    let regions = regions::load(&options.regions)?;
    let size = regions.group().size();
    if let Some(alone) = options.protocols.iter().find(|protocol| protocol.replicas(size) != size) {
        return Err(format!("{alone} has 1 replica, and {} has {size}", options.regions));
    }
    let mut printer = Printer { json: options.json, has_heading: false, failed: 0 };
    if options.is_virtual {
        simulate(options, &regions, &mut printer)?;
    } else {
        measure(options, &regions, &mut printer)?;
    }
    Ok(if printer.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Operations of an experiment in virtual time, unless told otherwise.
const OPERATIONS: u64 = 20_000;

/// Runs everything in virtual time.
fn simulate(options: &Geo, regions: &Regions, printer: &mut Printer) -> Result<(), String> {
    for load in options.loads() {
        for protocol in &options.protocols {
            let GeoLoad { mix, distribution, keys, clients, seed, .. } = load;
            eprintln!("{protocol}: workload {mix}, {distribution}");
            let geo = syros_sim::geo::Geo {
                regions,
                protocol: *protocol,
                blend: mix.into(),
                choice: distribution.into(),
                keys,
                clients,
                operations: options.operations.unwrap_or(OPERATIONS),
                history_bytes_max: options.history.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
                cost: syros_experiment::Cost::NONE,
                failed: 0,
                seed,
            };
            let mut rows =
                geo.run().map_err(|problem| format!("{protocol}, {mix}, {distribution}: {problem}"))?;
            // As it was asked for: a mix has several names.
            rows.iter_mut().for_each(|row| row.workload = mix.to_string());
            printer.print(&rows);
        }
    }
    Ok(())
}

/// Measures real processes.
fn measure(options: &Geo, regions: &Regions, printer: &mut Printer) -> Result<(), String> {
    for load in options.loads() {
        load.check(regions).map_err(|error| error.to_string())?;
    }
    let (sender, ended_by) = channel();
    signals::forward(sender)?;
    let is_ended = Cell::new(false);
    let is_interrupted = || {
        is_ended.set(is_ended.get() || ended_by.try_recv().is_ok());
        is_ended.get()
    };
    let temporary = || std::env::temp_dir().join(format!("syros-geo-{}", std::process::id()));
    let directory = options.servers.dir.clone().unwrap_or_else(temporary);
    let name = directory.display();
    directory::check(&directory)?;
    let Program { path: program, .. } = options.servers.binary.find()?;
    std::fs::create_dir_all(&directory).map_err(|error| format!("cannot create {name}: {error}"))?;
    let measured = options.protocols.iter().enumerate().try_for_each(|(number, protocol)| {
        let directory = directory.join(number.to_string());
        one_protocol(*protocol, options, regions, &program, &directory, printer, &is_interrupted)
    });
    if matches!(measured, Ok(()) | Err(GeoError::Interrupted)) {
        std::fs::remove_dir_all(&directory).map_err(|error| format!("cannot delete {name}: {error}"))?;
    } else {
        eprintln!("syros-lab bench: data and logs of the nodes are in {name}");
    }
    measured.map_err(|error| error.to_string())
}

fn one_protocol(
    protocol: Protocol,
    options: &Geo,
    regions: &Regions,
    program: &Path,
    directory: &Path,
    printer: &mut Printer,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<(), GeoError> {
    let mut settings = regions::timing_of(Some(regions));
    if let Some(bytes) = options.history {
        settings += &format!("\n[limits]\nhistory = \"{}\"\n", syros_cli::BytesText(bytes));
    }
    let mut cluster = None;
    let mut replacements = 0;
    let mut loads = options.loads().peekable();
    while let Some(load) = loads.peek() {
        if is_interrupted() {
            return Err(GeoError::Interrupted);
        }
        let mut attempt = || {
            let cluster = match &mut cluster {
                Some(cluster) => cluster,
                none => {
                    eprintln!("{protocol}: starting {} replicas", regions.group().size());
                    let directory = directory.join(format!("{protocol}-{replacements}"));
                    none.insert(GeoCluster::start(
                        program.to_owned(),
                        directory,
                        regions,
                        protocol,
                        &settings,
                    )?)
                }
            };
            let GeoLoad { mix, distribution, warm_up, duration, .. } = load;
            eprintln!("{protocol}: workload {mix}, {distribution}: {duration:?} after {warm_up:?}");
            cluster.run(load, is_interrupted)
        };
        match attempt() {
            Ok(rows) => {
                printer.print(&rows);
                loads.next();
            }
            Err(error @ GeoError::Leader(_)) if replacements < REPLACEMENTS_MAX => {
                eprintln!("{protocol}: once more, with a new cluster: {error}");
                cluster = None;
                replacements += 1;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
