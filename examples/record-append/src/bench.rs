//! `record-append bench`: clients that append to one file, by protocol (Skyros 5.7.1). Nodes and clients are threads of
//! this process, so its figures are for comparing protocols with each other, in one run.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use clap::Args;
use record_append::{FileStore, Files};
use syros_client::{Options, Settings};
use syros_experiment::Measured;
use syros_runtime::{Durability, Node, NodeConfig, ReplicaId, Stopper};
use syros_types::Protocol;

use crate::nodes::install_logger;

/// How long a new cluster may take until it answers.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// What comes first and is not measured.
const WARM_UP: Duration = Duration::from_millis(500);

/// The file that all clients append to.
const FILE: &[u8] = b"log";

/// Options of `record-append bench`.
#[derive(Args, Debug)]
pub(crate) struct BenchOptions {
    /// What to compare, each with the first
    #[arg(long, value_name = "P,..", value_delimiter = ',', default_value = "vr,curp-c,skyros")]
    protocols: Vec<Protocol>,
    /// Nodes: 1, 3, 5, 7 or 9
    #[arg(long, value_name = "N", default_value_t = 5)]
    replicas: usize,
    /// Clients, each with one append under way
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    clients: u16,
    /// Length of a record
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u32).range(..=1 << 20))]
    record_bytes: u32,
    /// Seconds of each measurement
    #[arg(long, value_name = "S", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// How often each protocol is measured, in turn
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..))]
    rounds: u8,
    /// Append to the disk before acknowledging
    #[arg(long)]
    fsync: bool,
    /// Where the nodes' data is; deleted in the end [default: a new directory for temporary files]
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// Nodes that run in threads, until they are dropped.
struct Cluster {
    addresses: Vec<SocketAddr>,
    nodes: Vec<(Stopper, JoinHandle<()>)>,
    directory: PathBuf,
}

impl Cluster {
    fn start(protocol: &Protocol, options: &BenchOptions, directory: PathBuf) -> Result<Self, String> {
        let addresses = free_addresses(protocol.replicas(options.replicas))?;
        let texts: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
        let mut cluster = Self { addresses, nodes: Vec::new(), directory };
        for (id, address) in cluster.addresses.iter().enumerate() {
            let replica = ReplicaId(u8::try_from(id).unwrap_or(u8::MAX));
            let directory = cluster.directory.join(format!("node-{id}"));
            let mut config = NodeConfig::new(1, texts.clone(), replica, *address, directory)
                .map_err(|error| format!("--replicas: {error}"))?;
            config.first_start = Some(syros_runtime::FirstStart::Bootstrap);
            config.replica.configuration.mode = protocol.fast_quorum;
            config.replica.settings.batch_max =
                protocol.batch.map_or(config.replica.settings.batch_max, usize::from);
            let durability = if options.fsync { Durability::Fsync } else { Durability::Replicated };
            config.replica.durability = durability;
            let node = Node::start_machine::<FileStore>(config).map_err(|error| error.to_string())?;
            let stopper = node.stopper();
            let run = move || {
                if let Err(error) = node.run() {
                    tracing::error!(node = id, error = %error, "the node has ended");
                }
            };
            cluster.nodes.push((stopper, thread::spawn(run)));
        }
        Ok(cluster)
    }

    /// A client with a session of its own.
    fn client(&self, protocol: &Protocol) -> Result<Files, String> {
        let options = Options::from(Settings { write_policy: protocol.writes, ..Settings::default() });
        let end = Instant::now() + READY_WITHIN;
        loop {
            let connected =
                Files::connect(&self.addresses, options.clone()).map_err(|error| error.to_string());
            let ready = connected.and_then(|files| match files.length(FILE) {
                Ok(_) => Ok(files),
                Err(error) => Err(error.to_string()),
            });
            match ready {
                Err(error) if Instant::now() >= end => return Err(format!("{protocol}: {error}")),
                Err(_) => thread::sleep(Duration::from_millis(20)),
                ready => return ready,
            }
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for (stopper, _) in &self.nodes {
            stopper.stop("the measurement is over");
        }
        for (_, thread) in self.nodes.drain(..) {
            let _ = thread.join();
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Ports that nobody listens on at the moment.
fn free_addresses(count: usize) -> Result<Vec<SocketAddr>, String> {
    let bind = |_| {
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| {
            let address = listener.local_addr()?;
            Ok((listener, address))
        })
    };
    let bound: Result<Vec<_>, _> = (0..count).map(bind).collect();
    let bound = bound.map_err(|error| format!("cannot listen on 127.0.0.1: {error}"))?;
    Ok(bound.into_iter().map(|(_, address)| address).collect())
}

/// One measurement: how long the appends took, and that all of them are there.
fn measure(protocol: &Protocol, options: &BenchOptions, directory: PathBuf) -> Result<Measured, String> {
    let cluster = Cluster::start(protocol, options, directory)?;
    let clients: Result<Vec<Files>, String> =
        (0..options.clients).map(|_| cluster.client(protocol)).collect();
    let record = vec![b'r'; options.record_bytes as usize];
    let (is_measured, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    let appending = |files: &Files| -> Result<(Measured, u64), String> {
        let (mut measured, mut appended) = (Measured::default(), 0);
        while !is_over.load(Ordering::Relaxed) {
            let counts = is_measured.load(Ordering::Relaxed);
            let began = Instant::now();
            files.append(FILE, &record).map_err(|error| format!("{protocol}: {error}"))?;
            appended += 1;
            if counts {
                measured.record(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
            }
        }
        Ok((measured, appended))
    };
    let clients = clients?;
    let results: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = clients.iter().map(|files| scope.spawn(|| appending(files))).collect();
        thread::sleep(WARM_UP);
        is_measured.store(true, Ordering::Relaxed);
        thread::sleep(Duration::from_secs(options.seconds));
        is_over.store(true, Ordering::Relaxed);
        let panicked = || Err(format!("{protocol}: a client has panicked"));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| panicked())).collect()
    });
    let (mut all, mut appended) = (Measured::default(), 0);
    for result in results {
        let (measured, count) = result?;
        all.add(&measured);
        appended += count;
    }
    let length = clients[0].length(FILE).map_err(|error| format!("{protocol}: {error}"))?;
    if length != appended {
        return Err(format!("{protocol}: the file has {length} records, of {appended} that were appended"));
    }
    Ok(all)
}

/// The value in the middle, with the lowest and the highest.
fn middle(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[values.len() / 2], values[0], values[values.len() - 1])
}

/// Measures and prints.
pub(crate) fn run(options: &BenchOptions) -> Result<(), String> {
    install_logger(false)?;
    if let Some(there) = options.dir.as_ref().filter(|directory| directory.exists()) {
        return Err(format!(
            "--dir {}: it is there already, and would be deleted in the end",
            there.display()
        ));
    }
    let base = options
        .dir
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join(format!("record-append-bench-{}", std::process::id())));
    let mut measured: Vec<Vec<Measured>> = options.protocols.iter().map(|_| Vec::new()).collect();
    for round in 0..options.rounds {
        for (number, protocol) in options.protocols.iter().enumerate() {
            eprintln!("round {} of {}: {protocol}", round + 1, options.rounds);
            let directory = base.join(format!("{round}-{protocol}"));
            measured[number].push(measure(protocol, options, directory)?);
        }
    }
    // What others have put there stays.
    let _ = std::fs::remove_dir(&base);
    let seconds = options.seconds as f64;
    let throughputs = |rounds: &[Measured]| rounds.iter().map(|one| one.count() as f64 / seconds).collect();
    let (first, ..) = middle(throughputs(&measured[0]));
    println!("protocol        appends/s    (min .. max)        times    mean us    p50 us    p99 us");
    for (protocol, rounds) in options.protocols.iter().zip(&measured) {
        let (throughput, least, most) = middle(throughputs(rounds));
        let (mean, ..) = middle(rounds.iter().map(Measured::mean_us).collect());
        let quantile = |quantile| middle(rounds.iter().map(|one| one.quantile_us(quantile)).collect()).0;
        let (half, high) = (quantile(0.5), quantile(0.99));
        println!(
            "{:14} {throughput:10.0}    ({least:.0} .. {most:.0}) {:>10.2} {mean:10.0} {half:9.0} {high:9.0}",
            protocol.to_string(),
            throughput / first
        );
    }
    Ok(())
}
