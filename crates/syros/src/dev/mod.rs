//! `syros dev`: a whole cluster on this machine, one process per node.

mod children;
mod layout;
mod places;
mod ports;

use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use syros_cli::tls::credentials_in;
use syros_cli::{BytesText, DurabilityName, EngineName, parse_bytes, regions, signals};
use syros_client::{Access, Credentials};
use syros_logging::Format;
use syros_protocol::message::RoleName;
use syros_protocol::replica::Durability;
use syros_regions::Regions;
use syros_runtime::{EngineKind, REDIS_ADDRESS, durability_name};
use syros_types::{FastQuorum, Group, Protocol, ReadPolicy, WritePolicy};

use crate::config::LOG_MEMORY_MIN;
use crate::{logger, status};
use children::{Children, Ended, ShownLogs};
use layout::{Cluster, Layout, Settings, comma_separated, redis_port, replica_addresses};
use places::Places;

/// How long the cluster may take to become ready.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// How often nodes are looked after.
const WATCH_INTERVAL: Duration = Duration::from_millis(20);

/// How long a command started by --exec may go on after it was asked to end.
const EXEC_PATIENCE: Duration = Duration::from_secs(5);

/// Default of `--port`: Redis's.
const DEFAULT_PORT: u16 = REDIS_ADDRESS.port();

/// Options of `syros dev`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros dev                                     three nodes, Redis ports 6379, 6380, 6381
  syros dev --replicas 5 --port 7000            five nodes, Redis ports 7000 to 7004
  syros dev --durability replicated --fresh     in memory, starting empty
  syros dev --protocol vr --fresh               as Viewstamped Replication does it, to compare
  syros dev --metrics 9121                      with a dashboard: http://127.0.0.1:9121/
  syros dev --tls 6479                          nodes speak TLS, and Redis clients at ports 6479, 6480, 6481 do
  syros dev --engine disk --fresh               data on disk, which may exceed the memory
  syros dev --exec 'redis-benchmark -p {port} -t set,get -q'
  syros dev --regions far-leader --fresh        five nodes, one of them on another continent
  syros dev --regions my.toml --exec 'syros-lab bench write --cluster {cluster:paris} --writers 1'

The data is in ./syros-data and is there again the next time. kill -9 a node: the others go on, and it is
started again and catches up.")]
pub(crate) struct Options {
    /// Number of replicas: 1, 3, 5, 7 or 9 [default: 3, or what the directory or the regions have]
    #[arg(long, value_name = "N")]
    replicas: Option<usize>,
    /// Redis port of node 0; node i has the i-th after it [default: 6379, or what the directory had]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Where the cluster lives
    #[arg(long, value_name = "DIR", default_value = "syros-data")]
    dir: PathBuf,
    /// When a write is acknowledged [default: fsync, or what the directory has]
    #[arg(long, value_enum)]
    durability: Option<DurabilityName>,
    /// A protocol by the name that the literature has for it: unreplicated, vr-nobatch, vr, vr-pe, pqr, skyros,
    /// skyros-comm, curp-c, syros, ionia-lr, ionia, majority or default; decides what the defaults of --fast-quorum, --reads,
    /// --writes and some limits are
    #[arg(long, value_name = "NAME", default_value_t)]
    protocol: Protocol,
    /// What completes a write in one round trip [default: what the protocol says, or what the directory has]
    #[arg(long, value_enum)]
    fast_quorum: Option<FastQuorumName>,
    /// Where the data is kept [default: memory, or what the directory has]
    #[arg(long, value_enum)]
    engine: Option<EngineName>,
    /// A key of the section disk-engine in every node's configuration, such as cache=64MiB; see
    /// docs/syros.sample.toml
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_limit)]
    disk_engine: Vec<(String, String)>,
    /// Start with an empty cluster: deletes the one in the directory, if syros dev made it
    #[arg(long)]
    fresh: bool,
    /// Memory for the log of each node, such as 256MiB [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_log_memory)]
    log_memory: Option<u64>,
    /// A limit in every node's configuration, such as snapshot-log=16MiB; see docs/syros.sample.toml
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_limit)]
    limit: Vec<(String, String)>,
    /// How nodes answer reads that do not say: auto, leader, meta, quorum or stale [default: auto]
    #[arg(long, value_name = "POLICY")]
    reads: Option<ReadPolicy>,
    /// How nodes send updates that may be fast: auto, fast, thrifty or leader [default: auto]
    #[arg(long, value_name = "POLICY")]
    writes: Option<WritePolicy>,
    /// Port of node 0 for HTTP clients: a dashboard, /metrics, /livez, /readyz; node i has the i-th after it [default: none]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    metrics: Option<u16>,
    /// Have the nodes speak TLS, with certificates that are made in DIR/tls. Port of node 0 for Redis clients with TLS; node i
    /// has the i-th after it [default: no TLS]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    tls: Option<u16>,
    /// Emulate storage that answers N random reads a second on each node, to measure where it is the limit
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    emulate_reads: Option<u32>,
    /// Place the nodes in regions that are as far from each other as described by a file (for its format see
    /// crates/regions/regions), or by far-leader, near-majority, five-continents, one-data-center or three-zones, which come
    /// with the program. Redis clients of a node are where the node is
    #[arg(long, value_name = "FILE|NAME")]
    regions: Option<String>,
    /// Run CMD in a shell once the cluster is ready, end with it, and exit with its status. {port} is the
    /// first Redis port, {ports} all of them, {cluster} the replicas' addresses, with commas; {cluster:REGION}
    /// those for native clients in a region
    #[arg(long, value_name = "CMD")]
    exec: Option<String>,
    /// Do not start nodes again that end by themselves
    #[arg(long)]
    no_restart: bool,
    /// Keep the nodes' log lines out of the terminal; they are in DIR/node-I.log
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    log: logger::LogOptions,
}

/// [`FastQuorum`] on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum FastQuorumName {
    /// f + 1 replicas, for overwrites of one key
    Majority,
    /// f + ceil(f/2) + 1 replicas, for every update that returns nothing
    Supermajority,
    /// As many, also for updates that return something where nothing pending concerns their keys
    #[value(name = "supermajority-comm")]
    NilextOrCommutative,
    /// As many, for every update, but only where nothing pending concerns its keys
    #[value(name = "curp")]
    Commutative,
    /// f + 1 replicas for overwrites of one key, and all that are active for every other update
    Mixed,
}

impl From<FastQuorumName> for FastQuorum {
    fn from(name: FastQuorumName) -> Self {
        match name {
            FastQuorumName::Majority => Self::Majority,
            FastQuorumName::Supermajority => Self::Supermajority,
            FastQuorumName::NilextOrCommutative => Self::NilextOrCommutative,
            FastQuorumName::Commutative => Self::Commutative,
            FastQuorumName::Mixed => Self::Mixed,
        }
    }
}

fn parse_log_memory(text: &str) -> Result<u64, String> {
    parse_bytes(text)
        .filter(|bytes| (LOG_MEMORY_MIN..=1 << 40).contains(bytes))
        .ok_or_else(|| "a size from 64MiB to 1TiB, such as 256MiB, is expected".to_owned())
}

fn parse_limit(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => {
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("KEY=VALUE is expected, such as snapshot-log=16MiB".to_owned()),
    }
}

/// Runs the cluster until it is asked to end.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    let (sender, ended_by) = channel();
    signals::forward(sender)?;
    let regions = options.regions.as_deref().map(regions::load).transpose()?;
    let replicas = check_regions(options, regions.as_ref())?;
    let layout = Layout::open(&options.dir)?;
    let mut cluster = prepare(options, replicas, &layout)?;
    let count = cluster.group.size();
    let others = [("--metrics", options.metrics), ("--tls", options.tls)];
    let others = others.into_iter().filter_map(|(option, first)| Some((option, first?)));
    let ports: Vec<_> = [("--port", cluster.redis_port)].into_iter().chain(others).collect();
    ports::check_all(&ports, count)?;
    let taken: Vec<u16> = ports.iter().map(|(_, first)| *first).collect();
    cluster.replica_ports = ports::for_replicas(&cluster.replica_ports, &taken, count)?;
    layout.store(&cluster)?;
    let mut limits = options.limit.clone();
    if let Some(bytes) = options.log_memory {
        limits.push(("log-memory".to_owned(), BytesText(bytes).to_string()));
    }
    // Lives longer than the nodes.
    let places = regions.map(|regions| Places::new(regions, &cluster)).transpose()?;
    let timing = places.as_ref().map(|places| regions::timing(&places.regions)).unwrap_or_default();
    let settings = Settings {
        protocol: options.protocol.name,
        reads: options.reads.unwrap_or(options.protocol.reads),
        writes: options.writes.unwrap_or(options.protocol.writes),
        emulate_reads: options.emulate_reads,
        metrics: options.metrics,
        tls: options.tls,
        limits: &limits,
        disk_engine: &options.disk_engine,
        timing: regions::timing_table(&timing),
        relay: places.as_ref().map(|places| &places.relay),
        log: &options.log,
    };
    layout.write_configs(&cluster, &settings)?;
    let credentials = options.tls.map(|_| credentials_in(&layout.administrator())).transpose()?;

    let shown = match options.log.log_format.unwrap_or_default() {
        _ if options.quiet || options.exec.is_some() => ShownLogs::None,
        Format::Human => ShownLogs::WithNode,
        Format::Json => ShownLogs::AsTheyAre,
    };
    let mut children = Children::new(&layout, cluster.clone(), shown);
    children.start_all()?;
    let leader = match wait_until_ready(&mut children, &cluster, &layout, credentials.as_ref(), &ended_by)? {
        Ready::Leader(leader) => leader,
        Ready::Interrupted(signal) => return Ok(exit_by_signal(signal)),
    };
    if !cluster.is_complete {
        cluster.is_complete = true;
        layout.store(&cluster)?;
        children.set_complete();
    }
    match &options.exec {
        Some(command) => {
            let command = places.as_ref().map_or_else(|| command.clone(), |places| places.fill_in(command));
            execute(&command, &cluster, &mut children, options, &ended_by)
        }
        None => {
            print_how_to_connect(&layout, &cluster, &children, leader, places.as_ref());
            options.tls.into_iter().for_each(|port| print_how_to_connect_by_tls(&layout, port));
            syros_cli::tell!("Ctrl-C stops all nodes.");
            let signal = watch(&mut children, !options.no_restart, &ended_by, || None)?;
            syros_cli::say!("syros dev: stopping the nodes");
            drop(children);
            match signal {
                Watched::Signal(signal) => Ok(exit_by_signal(signal)),
                Watched::Command(_) => Ok(ExitCode::SUCCESS),
            }
        }
    }
}

/// The number of replicas, if options or regions say.
fn check_regions(options: &Options, regions: Option<&Regions>) -> Result<Option<usize>, String> {
    let alone = options.protocol.is_alone.then_some(1);
    let asked = regions.map(|regions| regions.group().size()).or(options.replicas);
    if let (Some(_), Some(asked @ 2..)) = (alone, asked) {
        return Err(format!("--protocol {} has 1 replica, not {asked}", options.protocol));
    }
    let Some(regions) = regions else {
        if options.exec.as_ref().is_some_and(|command| command.contains("{cluster:")) {
            return Err("--exec: {cluster:REGION} needs --regions".to_owned());
        }
        return Ok(options.replicas.or(alone));
    };
    let (name, size) = (options.regions.as_deref().unwrap_or_default(), regions.group().size());
    if let Some(replicas) = options.replicas.filter(|replicas| *replicas != size) {
        return Err(format!(
            "--replicas {replicas}: --regions {name} has {size} replicas; leave one of them out"
        ));
    }
    places::check_command(options.exec.as_deref().unwrap_or_default(), regions)?;
    Ok(Some(size))
}

/// The cluster to run: the one in the directory, or a new one.
fn prepare(options: &Options, replicas: Option<usize>, layout: &Layout) -> Result<Cluster, String> {
    let mut stored = layout.load()?;
    if options.fresh
        && let Some(old) = stored.take()
    {
        layout.delete(&old)?;
    }
    let directory = layout.path.display();
    if let Some(mut cluster) = stored {
        let same = |name: &str, asked: Option<String>, has: String, remedy: &str| match asked {
            Some(asked) if asked != has => {
                Err(format!("the cluster in {directory} was made with --{name} {has}, not {asked}; {remedy}"))
            }
            _ => Ok(()),
        };
        let another = "choose another directory with --dir, or delete this cluster with --fresh";
        same("replicas", replicas.map(|n| n.to_string()), cluster.group.size().to_string(), another)?;
        let durability = options.durability.map(|d| durability_name(d.into()).to_owned());
        same("durability", durability, durability_name(cluster.durability).to_owned(), another)?;
        let engine = options.engine.map(|engine| EngineKind::from(engine).name().to_owned());
        same("engine", engine, cluster.engine.name().to_owned(), another)?;
        let by_protocol = (options.protocol != Protocol::default()).then_some(options.protocol.fast_quorum);
        let quorum = options.fast_quorum.map(FastQuorum::from).or(by_protocol);
        let change = quorum.filter(|quorum| cluster.fast_quorum.may_become(*quorum)).map(|quorum| {
            format!(
                "start it without this option, and then change it with: syros mode {quorum} --secret-file {}",
                layout.secret().display()
            )
        });
        let quorum = quorum.map(|mode| mode.to_string());
        same("fast-quorum", quorum, cluster.fast_quorum.to_string(), change.as_deref().unwrap_or(another))?;
        if cluster.durability == Durability::Replicated {
            return Err(format!(
                "the cluster in {directory} kept its data in memory only (--durability replicated), and all of \
                 its nodes have been stopped: there is nothing to go on with. Start an empty one with --fresh"
            ));
        }
        cluster.redis_port = options.port.unwrap_or(cluster.redis_port);
        return Ok(cluster);
    }
    let group = Group::new(replicas.unwrap_or(3)).map_err(|error| format!("--replicas: {error}"))?;
    let quorum = options.fast_quorum.map_or(options.protocol.fast_quorum, Into::into);
    let durability = options.durability.map_or(Durability::Fsync, Into::into);
    let redis_port = options.port.unwrap_or(DEFAULT_PORT);
    let engine = options.engine.map_or(EngineKind::Memory, Into::into);
    if !engine.is_built_in() {
        let name = engine.name();
        return Err(format!(
            "--engine {name}: this program was built without it; build it with --features {name}"
        ));
    }
    Ok(Cluster { redis_port, ..Cluster::new(group, quorum, durability, engine) })
}

enum Ready {
    Leader(usize),
    Interrupted(i32),
}

/// Waits until one node leads, all others follow it, and all answer Redis clients.
fn wait_until_ready(
    children: &mut Children<'_>,
    cluster: &Cluster,
    layout: &Layout,
    credentials: Option<&Credentials>,
    ended_by: &Receiver<i32>,
) -> Result<Ready, String> {
    let deadline = Instant::now() + READY_WITHIN;
    loop {
        match ended_by.recv_timeout(WATCH_INTERVAL) {
            Ok(signal) => return Ok(Ready::Interrupted(signal)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err("the signal watcher has ended".to_owned()),
        }
        if let Some(Ended { node, status, last_lines, .. }) = children.take_ended(false) {
            let words = last_lines.join("\n  ");
            return Err(format!("node {node} did not start ({status}); its last words:\n  {words}"));
        }
        let problem = match leader_of(cluster, credentials) {
            Ok(leader) => return Ok(Ready::Leader(leader)),
            Err(problem) => problem,
        };
        if Instant::now() > deadline {
            let logs = layout.path.join("node-*.log");
            return Err(format!(
                "the cluster was not ready within {READY_WITHIN:?}: {problem}; the nodes' logs are in {}",
                logs.display()
            ));
        }
    }
}

/// The leader, if the cluster is ready; else what is missing.
fn leader_of(cluster: &Cluster, credentials: Option<&Credentials>) -> Result<usize, String> {
    let access = Access { credentials, secret: None };
    let mut leader = None;
    let mut views = Vec::new();
    for (node, address) in replica_addresses(cluster).iter().enumerate() {
        let report = status::query(&address.to_string(), access);
        let report = report.map_err(|problem| format!("node {node}: {problem}"))?;
        match report.role {
            RoleName::Leader => leader = Some(node),
            RoleName::Follower => {}
            RoleName::ViewChange | RoleName::Recovering => {
                return Err(format!("node {node}: {}", report.role));
            }
        }
        views.push(report.view);
        status::ping(redis_port(cluster, node)).map_err(|problem| format!("node {node}: {problem}"))?;
    }
    if views.iter().any(|view| *view != views[0]) {
        return Err("the nodes are in different views".to_owned());
    }
    leader.ok_or_else(|| "no node leads".to_owned())
}

fn print_how_to_connect(
    layout: &Layout,
    cluster: &Cluster,
    children: &Children<'_>,
    leader: usize,
    places: Option<&Places>,
) {
    syros_cli::tell!(
        "Syros is ready: {} replicas, fast quorum {}, durability {}, engine {}",
        cluster.group.size(),
        cluster.fast_quorum,
        durability_name(cluster.durability),
        cluster.engine.name()
    );
    for (node, address) in replica_addresses(cluster).iter().enumerate() {
        let pid = children.pid(node).map_or_else(|| "-".to_owned(), |pid| pid.to_string());
        let role = if node == leader { "  leader" } else { "" };
        let place = places.map(|places| format!("  in {}", places.of_node(node))).unwrap_or_default();
        syros_cli::tell!(
            "  node {node}  redis 127.0.0.1:{}  replica {address}  pid {pid}{place}{role}",
            redis_port(cluster, node)
        );
    }
    for (region, addresses) in places.iter().flat_map(|places| places.of_clients()) {
        syros_cli::tell!("  native clients in {region}  --cluster {addresses}");
    }
    syros_cli::tell!("  data     {}", layout.path.display());
    syros_cli::tell!("  connect  redis-cli -p {}", cluster.redis_port);
    syros_cli::tell!("  status   syros status --addr 127.0.0.1:{}", cluster.redis_port);
    syros_cli::tell!("  secret   {} (for syros lead --secret-file)", layout.secret().display());
}

/// How to connect where nodes speak TLS.
fn print_how_to_connect_by_tls(layout: &Layout, port: u16) {
    let (authority, administrator) = (layout.authority(), layout.administrator());
    syros_cli::tell!("  TLS      redis-cli --tls --cacert {} -p {port}", authority.display());
    syros_cli::tell!(
        "           syros status --tls {}; native clients and gateways: {}",
        administrator.display(),
        layout.client().display()
    );
}

/// Why watching ended.
enum Watched {
    Signal(i32),
    Command(ExitStatus),
}

/// Looks after the nodes until a signal comes or `command` has ended.
fn watch(
    children: &mut Children<'_>,
    restart: bool,
    ended_by: &Receiver<i32>,
    mut command: impl FnMut() -> Option<ExitStatus>,
) -> Result<Watched, String> {
    loop {
        match ended_by.recv_timeout(WATCH_INTERVAL) {
            Ok(signal) => return Ok(Watched::Signal(signal)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err("the signal watcher has ended".to_owned()),
        }
        if let Some(status) = command() {
            return Ok(Watched::Command(status));
        }
        while let Some(Ended { node, pid, status, last_lines }) = children.take_ended(restart) {
            let words = if status.code().is_some() { last_lines.last().map(String::as_str) } else { None };
            let words = words.map(|words| format!(": {words}")).unwrap_or_default();
            let then = if restart { "it is started again" } else { "it stays down (--no-restart)" };
            syros_cli::say!("syros dev: node {node} (pid {pid}) ended by itself, {status}{words}; {then}");
        }
        for node in children.restart_due()? {
            if let Some(pid) = children.pid(node) {
                syros_cli::say!("syros dev: node {node} started again, pid {pid}");
            }
        }
    }
}

/// Runs the command of `--exec`, and ends with it.
fn execute(
    command: &str,
    cluster: &Cluster,
    children: &mut Children<'_>,
    options: &Options,
    ended_by: &Receiver<i32>,
) -> Result<ExitCode, String> {
    let ports: Vec<_> = (0..cluster.group.size()).map(|node| redis_port(cluster, node).to_string()).collect();
    let command = command
        .replace("{port}", &ports[0])
        .replace("{ports}", &ports.join(","))
        .replace("{cluster}", &comma_separated(&replica_addresses(cluster)));
    let mut shell = Command::new("sh")
        .arg("-c")
        .arg(&command)
        .spawn()
        .map_err(|error| format!("cannot run '{command}': {error}"))?;
    let watched = watch(children, !options.no_restart, ended_by, || shell.try_wait().ok().flatten());
    match watched {
        Ok(Watched::Command(status)) => Ok(exit_with(status)),
        Ok(Watched::Signal(signal)) => {
            end(&mut shell);
            Ok(exit_by_signal(signal))
        }
        Err(error) => {
            end(&mut shell);
            Err(error)
        }
    }
}

/// Asks the command to end, and kills it if it does not.
fn end(shell: &mut Child) {
    let pid = i32::try_from(shell.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let (Some(pid), Ok(None)) = (pid, shell.try_wait()) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
    let deadline = Instant::now() + EXEC_PATIENCE;
    while matches!(shell.try_wait(), Ok(None)) && Instant::now() < deadline {
        std::thread::sleep(WATCH_INTERVAL);
    }
    let _ = shell.kill();
    let _ = shell.wait();
}

/// The exit code that shells give to a command with this status.
fn exit_with(status: ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// Ctrl-C and SIGTERM are how this command is meant to end.
fn exit_by_signal(signal: i32) -> ExitCode {
    match signal {
        signal_hook::consts::SIGINT | signal_hook::consts::SIGTERM => ExitCode::SUCCESS,
        other => ExitCode::from(u8::try_from(128 + other).unwrap_or(1)),
    }
}
