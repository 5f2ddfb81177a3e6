//! Running nodes: nothing here knows of files, but for the name of the state machine.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use record_append::FileStore;
use syros_runtime::{Durability, FastQuorum, Node, NodeConfig, ReplicaId};

/// Options of every node.
#[derive(Args, Clone, Debug)]
struct Common {
    /// Which updates take one round trip; fixed when the cluster is created
    #[arg(long, value_enum, default_value_t = Mode::Supermajority)]
    fast_quorum: Mode,
    /// When an append is acknowledged; fixed when the cluster is created
    #[arg(long, value_enum, default_value_t = Durable::Fsync)]
    durability: Durable,
    /// Bytes of log after which a snapshot is taken
    #[arg(long, value_name = "BYTES", default_value_t = 256 << 20)]
    snapshot_log: usize,
    /// Bytes of log that stay in memory for nodes that were away
    #[arg(long, value_name = "BYTES", default_value_t = 256 << 20)]
    log_keep: usize,
    /// Print what happens to standard error
    #[arg(long)]
    verbose: bool,
}

/// [`FastQuorum`] on the command line.
#[derive(ValueEnum, Clone, Copy, Debug)]
enum Mode {
    /// Only overwrites: here, `remove`
    Majority,
    /// Every update that returns nothing: `append` and `remove`
    Supermajority,
    /// These, and updates that return something, while nothing else is under way for their file
    SupermajorityComm,
    /// Any update, while nothing else is under way for its file (as CURP has it)
    Curp,
}

/// [`Durability`] on the command line.
#[derive(ValueEnum, Clone, Copy, Debug)]
enum Durable {
    /// When it is on the disks of a quorum
    Fsync,
    /// When it is in the memories of a quorum
    Replicated,
}

/// Options of `record-append node`.
#[derive(Args, Debug)]
pub(crate) struct NodeOptions {
    /// Number of the cluster, the same for all its nodes; never 0
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    cluster: u64,
    /// Addresses of all nodes, as IP:PORT, in the order of their ids: 1, 3, 5, 7 or 9
    #[arg(long, value_name = "IP:PORT,..", value_delimiter = ',', required = true)]
    nodes: Vec<SocketAddr>,
    /// Which of them this one is, from 0
    #[arg(long, value_name = "ID")]
    id: u8,
    /// Data directory
    #[arg(long)]
    dir: PathBuf,
    /// The very first start of this node: makes its data directory
    #[arg(long)]
    bootstrap: bool,
    #[command(flatten)]
    common: Common,
}

/// Options of `record-append cluster`.
#[derive(Args, Debug)]
pub(crate) struct ClusterOptions {
    /// Where the data of the three nodes is
    #[arg(long, default_value = "record-append-data")]
    dir: PathBuf,
    /// The nodes listen on this port and the next two of 127.0.0.1
    #[arg(long, default_value_t = 7500, value_parser = clap::value_parser!(u16).range(1..=65533))]
    port: u16,
    #[command(flatten)]
    common: Common,
}

/// Nodes of the cluster that `record-append cluster` runs.
const CLUSTER_SIZE: u8 = 3;

/// Opens a node.
fn start(options: &NodeOptions) -> Result<Node, String> {
    let NodeOptions { cluster, nodes, id, dir, bootstrap, common } = options;
    let listen = nodes.get(usize::from(*id));
    let listen =
        *listen.ok_or_else(|| format!("--id {id} is not below the number of nodes, {}", nodes.len()))?;
    if *cluster == 0 {
        return Err("--cluster 0: the number of a cluster is never 0".to_owned());
    }
    let addresses = nodes.iter().map(SocketAddr::to_string).collect();
    let mut config = NodeConfig::new(*cluster, addresses, ReplicaId(*id), listen, dir.clone())
        .map_err(|error| format!("--nodes: {error}"))?;
    config.first_start = bootstrap.then_some(syros_runtime::FirstStart::Bootstrap);
    config.replica.configuration.mode = match common.fast_quorum {
        Mode::Majority => FastQuorum::Majority,
        Mode::Supermajority => FastQuorum::Supermajority,
        Mode::SupermajorityComm => FastQuorum::NilextOrCommutative,
        Mode::Curp => FastQuorum::Commutative,
    };
    config.replica.durability = match common.durability {
        Durable::Fsync => Durability::Fsync,
        Durable::Replicated => Durability::Replicated,
    };
    config.replica.settings.snapshot_log_bytes = common.snapshot_log;
    config.replica.settings.log_keep_bytes = common.log_keep.min(config.replica.settings.log_bytes_max / 2);
    Node::start_machine::<FileStore>(config).map_err(|error| error.to_string())
}

/// Runs one node, until the process is killed.
pub(crate) fn run_node(options: &NodeOptions) -> Result<(), String> {
    install_logger(options.common.verbose)?;
    start(options)?.run().map_err(|error| format!("node {}: {error}", options.id))
}

/// Runs three nodes, until the process is killed.
pub(crate) fn run_cluster(options: &ClusterOptions) -> Result<(), String> {
    let ClusterOptions { dir, port, common } = options;
    install_logger(common.verbose)?;
    let number = cluster_number(dir)?;
    // From then on a node without its data has lost it, and must not begin as a new one.
    let complete = dir.join("complete");
    let is_complete = complete.exists();
    let nodes: Vec<SocketAddr> =
        (0..CLUSTER_SIZE).map(|id| SocketAddr::from(([127, 0, 0, 1], port + u16::from(id)))).collect();
    let mut started = Vec::new();
    for id in 0..CLUSTER_SIZE {
        let node = dir.join(format!("node-{id}"));
        let bootstrap = !is_complete && !node.join("identity").exists();
        let (nodes, common) = (nodes.clone(), common.clone());
        let node = start(&NodeOptions { cluster: number, nodes, id, dir: node, bootstrap, common });
        started.push(node.map_err(|error| format!("node {id}: {error}"))?);
    }
    fs::write(&complete, "").map_err(|error| format!("cannot write {}: {error}", complete.display()))?;
    let list: Vec<String> = nodes.iter().map(SocketAddr::to_string).collect();
    println!("three nodes listen on {}; the data is in {}", list.join(","), dir.display());
    println!("record-append append log 'hello' --nodes {}", list.join(","));
    let threads: Vec<_> = started.into_iter().map(|node| std::thread::spawn(move || node.run())).collect();
    for (id, thread) in threads.into_iter().enumerate() {
        match thread.join() {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(format!("node {id}: {error}")),
            Err(_) => return Err(format!("node {id} has panicked")),
        }
    }
    Ok(())
}

/// The number of the cluster whose data is in the directory; a new one, if there is none.
fn cluster_number(dir: &Path) -> Result<u64, String> {
    let file = dir.join("cluster");
    let failed = |doing: &str, error: std::io::Error| format!("cannot {doing} {}: {error}", file.display());
    match fs::read_to_string(&file) {
        Ok(text) => u64::from_str_radix(text.trim(), 16)
            .ok()
            .filter(|number| *number > 0)
            .ok_or_else(|| format!("{}: \"{}\" is no cluster's number", file.display(), text.trim())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            // Seeded by the system: no two clusters are taken for one another.
            let number = RandomState::new().hash_one("record-append").max(1);
            fs::create_dir_all(dir).map_err(|error| failed("create", error))?;
            fs::write(&file, format!("{number:016x}\n")).map_err(|error| failed("write", error))?;
            Ok(number)
        }
        Err(error) => Err(failed("read", error)),
    }
}

/// Sends log lines to standard error: warnings and errors, or all that nodes tell of themselves.
pub(crate) fn install_logger(verbose: bool) -> Result<(), String> {
    let filter = if verbose { "info" } else { "warn" };
    let filter = filter.parse().map_err(|error: syros_logging::FilterError| error.to_string())?;
    syros_logging::install(&syros_logging::Settings { filter, ..Default::default() })
}
