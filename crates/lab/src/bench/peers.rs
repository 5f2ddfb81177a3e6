//! `syros-lab bench peers`: Syros beside etcd and Redis under the same load, each through its own protocol.

use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;

use clap::{Args, ValueEnum};
use rustix::fs::statfs;
use syros_bench::compare::{CompareError, CompareLoad, Comparison, Entry, Facts, Sample, machine, order};
use syros_bench::peers::{Peer, PeerError, PeerKind, PeerOptions, Promises};
use syros_cli::DurabilityName;
use syros_experiment::{Blends, KeyChoice};
use syros_runtime::durability_name;
use syros_types::{Group, Protocol};

use super::compare::{check_file, command, shared};
use super::directory::{self, in_directory};
use super::options::{Results, Servers, Turns};
use super::progress::Progress;

/// What statfs(2) says of file systems in memory: tmpfs and ramfs.
const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];

/// Options of `syros-lab bench peers`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros-lab bench peers --systems etcd,syros,syros-resp --replicas 3 --clients 50
  syros-lab bench peers --systems redis,redis-wait,redis-fsync,syros-resp --workload nilext,a,b --json
  syros-lab bench peers --systems redis-async,syros-resp --durability replicated --clients 50 --connections 5
  syros-lab bench peers --durability replicated --clients 1,10,50 --workload a --html peers.html
  syros-lab bench peers --systems syros,etcd --baseline etcd --dir /mnt/disk/peers --rounds 5 --duration 10s

Systems: etcd (members that replicate by Raft, asked through gRPC); redis (one redis-server, in memory); redis-async (a primary
with replicas, which nothing waits for); redis-wait (the same; each SET is followed by WAIT for as many as make a majority with
the primary); redis-fsync (one redis-server with appendfsync always); syros (this program, by its own clients); syros-resp (this
program, by the same Redis clients as redis).

Workloads are of reads and overwrites of records that are there: YCSB's a, b, c and f, nilext (overwrites only), or a share of
reads such as 75%. Starts all systems on loopback, and puts the load on one at a time, in rounds whose order changes. Needs the
Debian packages etcd-server and redis-server for those of them that are asked for; what cannot be made equal stands below
the table. Exit status 1: an operation failed.")]
pub(super) struct Peers {
    /// What to compare
    #[arg(
        long,
        value_name = "S,..",
        value_delimiter = ',',
        default_value = "etcd,redis,redis-async,redis-wait,redis-fsync,syros,syros-resp"
    )]
    systems: Vec<PeerKind>,
    /// Number of replicas, of those that have any: 1, 3, 5, 7 or 9
    #[arg(long, value_name = "N", default_value_t = 3)]
    replicas: usize,
    /// Clients, each with connections of its own and one operation at a time; several numbers are a sweep
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "50")]
    clients: Vec<usize>,
    /// What they ask for
    #[arg(long, value_name = "W,..", default_value = "nilext")]
    workload: Blends,
    /// How often each record is chosen: uniform, zipfian:S or hotspot:O/K
    #[arg(long, value_name = "D", default_value = "uniform")]
    distribution: KeyChoice,
    #[command(flatten)]
    turns: Turns,
    /// When an update is acknowledged, by those that can be told
    #[arg(long, value_enum, default_value = "fsync")]
    durability: DurabilityName,
    /// Which nodes clients of etcd and of syros-resp connect to
    #[arg(long, value_enum, default_value = "leader")]
    connect: Connect,
    /// Connections that clients of etcd and of Redis's protocol share (these make pipelines), and sessions, with a connection
    /// to each replica, that those of syros do [default: each has its own]
    #[arg(long, value_name = "N")]
    connections: Option<usize>,
    /// What syros and syros-resp run, as with `bench compare`; how its clients read and write is for syros only
    #[arg(long, value_name = "P", default_value_t)]
    protocol: Protocol,
    /// To which system the others are related [default: the first one]
    #[arg(long, value_name = "S")]
    baseline: Option<PeerKind>,
    #[command(flatten)]
    servers: Servers,
    #[command(flatten)]
    results: Results,
}

/// Which nodes clients connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Connect {
    /// The leader only, which is the shortest way
    Leader,
    /// All nodes in turn
    All,
}

/// One load, and what the systems have come to under it so far.
struct MeasuredLoad {
    load: CompareLoad,
    entries: Vec<Entry>,
}

impl MeasuredLoad {
    /// The names of workload and distribution, and the number of clients.
    fn names(&self) -> (String, String, usize) {
        (self.load.blend.to_string(), self.load.choice.to_string(), self.load.clients)
    }
}

impl Peers {
    /// Every load, in the order in which they are measured.
    fn measured_loads(&self) -> Vec<MeasuredLoad> {
        let loads = self.clients.iter().flat_map(|clients| {
            self.workload.0.iter().map(|blend| CompareLoad {
                blend: *blend,
                choice: blend.choice(self.distribution),
                clients: *clients,
                connections: self.connections,
                keys: self.turns.keys,
                // Longer than memory is far longer than the limit, which is checked by whom it is passed to.
                value_bytes: usize::try_from(self.turns.value_bytes).unwrap_or(usize::MAX),
                rate: None,
                warm_up: self.turns.warm_up,
                duration: self.turns.duration,
                failed: 0,
                seed: self.turns.seed,
            })
        });
        let entries = self.systems.iter().map(|kind| Entry {
            protocol: kind.to_string(),
            replicas: kind.replicas(self.replicas),
            samples: Vec::new(),
        });
        let entries: Vec<Entry> = entries.collect();
        loads.map(|load| MeasuredLoad { load, entries: entries.clone() }).collect()
    }

    /// Whether updates are to be on disks when they are acknowledged.
    const fn fsyncs(&self) -> bool {
        matches!(self.durability, DurabilityName::Fsync)
    }

    fn options(&self) -> Result<PeerOptions, String> {
        let program = self.servers.binary.path()?;
        let spread = self.connect == Connect::All;
        let Self { replicas, protocol, .. } = *self;
        Ok(PeerOptions { program, replicas, fsync: self.fsyncs(), spread, protocol })
    }

    /// Position of the system that the others are related to.
    fn baseline(&self) -> Result<usize, String> {
        let Some(baseline) = self.baseline else { return Ok(0) };
        self.systems.iter().position(|kind| *kind == baseline).ok_or_else(|| {
            let names: Vec<&str> = self.systems.iter().map(|kind| kind.name()).collect();
            format!("--baseline: {baseline} is none of {}", names.join(", "))
        })
    }

    /// What does not change; servers of Syros are of this commit.
    fn facts(&self, commit: String) -> Facts {
        let Turns { rounds, warm_up, duration, .. } = &self.turns;
        let connect = if self.connect == Connect::All { "all nodes" } else { "the leader" };
        Facts {
            replicas: self.replicas,
            durability: durability_name(self.durability.into()).to_owned(),
            engine: "each system's own".to_owned(),
            value_bytes: Some(self.turns.value_bytes),
            keys: self.turns.keys,
            load: format!(
                "closed loop, clients at {connect}{}; {rounds} x {duration:?} after {warm_up:?}",
                shared(self.connections)
            ),
            commit,
            machine: machine(),
            command: command(),
        }
    }

    /// Everything that can be known to be wrong before anything is started.
    fn check(&self, jobs: &[MeasuredLoad], options: &PeerOptions) -> Result<(), String> {
        Group::new(self.replicas).map_err(|error| format!("--replicas: {error}"))?;
        for job in jobs {
            options.check(&self.systems, &job.load).map_err(|error| error.to_string())?;
        }
        self.servers.dir.as_deref().map_or(Ok(()), directory::check)?;
        self.results.html.as_deref().map_or(Ok(()), |html| check_file("--html", html))
    }
}

impl Peers {
    /// Fails if data that is to be on disks would be in a directory in memory, and says so where only some would.
    fn check_disk(&self, directory: &Path) -> Result<(), String> {
        if !is_in_memory(directory)? {
            return Ok(());
        }
        let name = directory.display();
        if self.fsyncs() {
            return Err(format!(
                "{name} is in memory, where fsync does nothing; choose a directory on a disk with --dir, or --durability \
                 replicated"
            ));
        }
        for kind in self.systems.iter().filter(|kind| kind.always_fsyncs()) {
            eprintln!("syros-lab bench: {name} is in memory: what {kind} fsyncs gets to no disk");
        }
        Ok(())
    }
}

/// True if a directory is in memory, so that nothing in it gets to a disk.
fn is_in_memory(directory: &Path) -> Result<bool, String> {
    let statistics = statfs(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    Ok(IN_MEMORY.contains(&statistics.f_type))
}

/// What is measured, and what has come of it.
struct ComparisonRun<'a> {
    options: &'a Peers,
    facts: Facts,
    promises: Promises,
    peers: Vec<Peer>,
    progress: Progress,
    is_interrupted: Rc<dyn Fn() -> bool>,
    failed: u64,
}

/// Measures and prints.
pub(super) fn run(options: &Peers) -> Result<ExitCode, String> {
    let (jobs, mut peer_options) = (options.measured_loads(), options.options()?);
    options.check(&jobs, &peer_options)?;
    let baseline = options.baseline()?;
    let mut commit = syros_cli::COMMIT.to_owned();
    if options.systems.iter().any(|kind| kind.is_syros()) {
        let program = options.servers.binary.find()?;
        (peer_options.program, commit) = (program.path, program.commit);
    }
    let facts = options.facts(commit);
    let promises =
        Promises::of(&options.systems, &peer_options, &facts.commit).map_err(|error| error.to_string())?;
    in_directory(options.servers.dir.as_ref(), "peers", |directory, is_interrupted| {
        options.check_disk(directory)?;
        if !options.results.json {
            let Facts { replicas, durability, load, commit, machine, .. } = &facts;
            println!("{replicas} replicas, {durability}, {}; {load}", facts.records());
            println!("commit {commit}; {machine}\n\n{promises}");
        }
        let runs = jobs.len() * options.systems.len() * options.turns.rounds as usize;
        let runs = u32::try_from(runs).unwrap_or(u32::MAX);
        let progress = Progress::new((options.turns.warm_up + options.turns.duration).saturating_mul(runs));
        let mut arena = ComparisonRun {
            options,
            facts,
            promises,
            peers: Vec::new(),
            progress,
            is_interrupted,
            failed: 0,
        };
        let finished = arena.measure(jobs, baseline, &peer_options, directory)?;
        if let Some(path) = &options.results.html {
            std::fs::write(path, arena.promises.page(&arena.facts, &finished))
                .map_err(|error| format!("--html: cannot write {}: {error}", path.display()))?;
        }
        Ok(if arena.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

impl ComparisonRun<'_> {
    fn measure(
        &mut self,
        jobs: Vec<MeasuredLoad>,
        baseline: usize,
        peer_options: &PeerOptions,
        directory: &Path,
    ) -> Result<Vec<Comparison>, String> {
        for (number, kind) in self.options.systems.iter().enumerate() {
            if (self.is_interrupted)() {
                return Err(CompareError::Interrupted.to_string());
            }
            self.progress.says(&format!("{kind}: starting"));
            let (directory, is_interrupted) =
                (directory.join(format!("{number}-{kind}")), Rc::clone(&self.is_interrupted));
            let peer = Peer::start(*kind, &directory, peer_options, is_interrupted);
            self.peers.push(peer.map_err(|error| format!("{kind}: {error}"))?);
        }
        let mut finished = Vec::new();
        for mut job in jobs {
            for round in 0..self.options.turns.rounds as usize {
                for system in order(self.peers.len(), round) {
                    let sample = self.run(system, &job.load, round)?;
                    self.failed += sample.failed;
                    if self.options.results.json {
                        let (workload, distribution, clients) = job.names();
                        let load = (workload.as_str(), distribution.as_str(), clients);
                        let line = self.promises.json(system, &self.facts, load, round + 1, &sample);
                        self.progress.suspend(|| println!("{line}"));
                    }
                    job.entries[system].samples.push(sample);
                }
            }
            let (workload, distribution, clients) = job.names();
            let comparison = Comparison { workload, distribution, clients, entries: job.entries, baseline };
            if !self.options.results.json {
                self.progress.suspend(|| println!("{comparison}"));
            }
            finished.push(comparison);
        }
        Ok(finished)
    }

    fn run(&mut self, system: usize, load: &CompareLoad, round: usize) -> Result<Sample, String> {
        let Self { options, peers, progress, is_interrupted, .. } = self;
        let peer = &mut peers[system];
        let load = CompareLoad { seed: options.turns.seed.wrapping_add(round as u64), ..load.clone() };
        let CompareLoad { blend, choice, clients, warm_up, duration, .. } = &load;
        let (kind, longest) = (peer.kind(), *warm_up + *duration);
        let name = format!(
            "{kind}: workload {blend}, {choice}, clients: {clients}, round {} of {}",
            round + 1,
            options.turns.rounds
        );
        let is_interrupted = &**is_interrupted;
        progress.measure(&name, longest, is_interrupted, PeerError::is_passing, |is_over| {
            peer.run(&load, is_over)
        })
    }
}

#[cfg(test)]
mod tests {
    /// The command line, and what is wrong with it.
    fn problem(more: &[&str]) -> String {
        crate::bench::tests::problem(&[&["peers", "--systems", "syros"], more].concat())
    }

    #[test]
    fn what_cannot_be_is_named_with_its_limit_and_nothing_is_started() {
        for (more, complaint) in [
            (&["--systems", "consul"][..], "there is no system 'consul'"),
            (&["--replicas", "4"], "--replicas: "),
            (&["--clients", "0"], "clients: 0 is not from 1 to 4096"),
            (&["--workload", "d"], "workload d: all systems can be asked for reads and overwrites only"),
            (&["--workload", "x"], "'x' is no workload"),
            (&["--value-bytes", "2GiB"], "value-bytes: 2147483648 is not from 0 to"),
            (&["--duration", "0s"], "duration: 0 s is no time"),
            (&["--rounds", "0"], "0 is not in 1..=1000"),
            (&["--baseline", "etcd"], "--baseline: etcd is none of syros"),
            (&["--html", "/no/such/place/page.html"], "--html: /no/such/place/page.html cannot be a file"),
            (&["--dir", "/"], "/ exists already"),
        ] {
            let problem = problem(more);
            assert!(problem.contains(complaint), "'{complaint}' is not in: {problem}");
        }
    }

    #[test]
    fn what_is_in_memory_is_known() {
        assert!(!super::is_in_memory(std::path::Path::new("/proc")).unwrap());
        assert!(super::is_in_memory(std::path::Path::new("/no/such/place")).is_err());
    }
}
