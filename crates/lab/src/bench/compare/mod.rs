//! `syros-lab bench compare`: protocols side by side, under the same loads, in turns.

pub(super) mod real;
pub(super) mod simulated;

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use syros_bench::compare::{CompareLoad, Comparison, Entry, Facts, Line, Sample, WAITING_MAX, machine, page};
use syros_cli::{DurabilityName, EngineName, regions};
use syros_experiment::{Blends, Cost, KeyChoice};
use syros_runtime::{EngineKind, durability_name};
use syros_types::{Group, Protocol};

use super::directory;
use super::options::{Results, Servers, Turns};

/// Options of `syros-lab bench compare`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros-lab bench compare --protocols vr,skyros,default --replicas 5 --clients 10 --workload nilext --rounds 3 --duration 5s
  syros-lab bench compare --protocols vr,default --workload a,b,c,d,e,f,load --distribution zipfian --json
  syros-lab bench compare --protocols vr,default --workload load --rate 20000 --html report.html
  syros-lab bench compare --protocols vr,skyros-comm,curp-c --workload mix:45,45,10 --clients 1,4,16 --html sweep.html
  syros-lab bench compare --protocols vr,default --workload a --virtual
  syros-lab bench compare --protocols vr,skyros --virtual --cost measured --clients 1,10,50,200 --html curve.html
  syros-lab bench compare --protocols default --replicas 9 --virtual --jitter-ms 0.1

Protocols: unreplicated, vr-nobatch, vr, vr-pe, pqr, skyros, skyros-comm, curp-c, syros, ionia-lr, ionia, default; each
also with another way to read or to write, as in default+quorum or skyros+writes=auto. One that is named twice
shows how much is noise.

Workloads: YCSB's a (half reads, half updates), b (95 % reads), c (reads), d (95 % reads of what is latest, 5 % inserts), e
(95 % scans, 5 % inserts; a scan is a MGET of 1 to 100 consecutive records, as there is no ordered scan), f (half reads,
half read-modify-write) and load (inserts, from an empty store); nilext (SETs only); record-append:F (BLIND APPENDs to F files, 1 if F is left out);
read-latest:S/W (half SETs, half GETs, of which S percent go to what was acknowledged as set in the last W, as in
read-latest:50/200us); mix:N,M,R with the percentages of SETs, INCRs and GETs; or a share of reads such as 75%.

Distributions: uniform, sequential, zipfian:S, latest:S, hotspot:O/K (O percent of the operations on K percent of the keys). d
is always latest, load always sequential.

Starts a cluster for each protocol on this machine and puts the load on one at a time, in rounds whose order changes. '1 RTT'
is the share of requests answered in one round trip. Exit status 1: an operation failed.")]
pub(super) struct Compare {
    /// What to compare
    #[arg(long, value_name = "P,..", value_delimiter = ',', default_value = "vr,skyros,default")]
    protocols: Vec<Protocol>,
    /// Number of replicas: 1, 3, 5, 7 or 9
    #[arg(long, value_name = "N", default_value_t = 3)]
    replicas: usize,
    /// Clients, each with one operation at a time; several numbers are a sweep
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "10")]
    clients: Vec<usize>,
    /// Sessions that clients share, as the threads of an application do [default: each has its own]
    #[arg(long, value_name = "N")]
    connections: Option<usize>,
    /// What they ask for
    #[arg(long, value_name = "W,..", default_value = "nilext")]
    workload: Blends,
    /// How often each record is chosen
    #[arg(long, value_name = "D,..", value_delimiter = ',', default_value = "uniform")]
    distribution: Vec<KeyChoice>,
    #[command(flatten)]
    turns: Turns,
    /// When an update is acknowledged
    #[arg(long, value_enum, default_value = "replicated")]
    durability: DurabilityName,
    /// Where the data is kept
    #[arg(long, value_enum, default_value = "memory")]
    engine: EngineName,
    /// Operations per second in all, at constant intervals; latencies count from when an operation falls due
    /// [default: each client asks when the last operation has ended]
    #[arg(long, value_name = "N")]
    rate: Option<u64>,
    /// To which protocol the others are related [default: the first one]
    #[arg(long, value_name = "P")]
    baseline: Option<Protocol>,
    #[command(flatten)]
    servers: Servers,
    #[command(flatten)]
    results: Results,
    /// Simulate, in virtual time, in which nothing but distance takes any, and what --cost says
    #[arg(long = "virtual", conflicts_with_all = ["dir", "binary", "value_bytes", "connections", "duration", "warm_up", "rate", "durability", "engine"])]
    is_virtual: bool,
    /// With --virtual: operations in each round, over all clients
    #[arg(long, value_name = "N", default_value_t = 20_000, requires = "is_virtual",
        value_parser = clap::value_parser!(u64).range(1..))]
    operations: u64,
    /// With --virtual: what takes replicas time: none, measured (as on the machine of docs/BENCHMARKS.md), or some of
    /// receive=Tus,send=Tus,entry=Tus,execute=Tus,fetch=Tus
    #[arg(long, value_name = "C", default_value = "none", requires = "is_virtual")]
    cost: Cost,
    /// From anybody to anybody and back, in milliseconds, of which a relay takes care; 0.2 with --virtual [default: what this
    /// machine takes]
    #[arg(long, value_name = "MS")]
    rtt_ms: Option<f64>,
    /// With --virtual or --rtt-ms: each way takes up to so many milliseconds longer, all alike
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    jitter_ms: f64,
}

/// One load, and what the contenders have come to under it so far.
struct MeasuredLoad {
    load: CompareLoad,
    workload: String,
    distribution: String,
    entries: Vec<Entry>,
}

impl Compare {
    /// Every load, in the order in which they are measured.
    fn measured_loads(&self) -> Vec<MeasuredLoad> {
        let mut jobs: Vec<MeasuredLoad> = Vec::new();
        for clients in &self.clients {
            for blend in &self.workload.0 {
                for asked in &self.distribution {
                    let choice = blend.choice(*asked);
                    let load = CompareLoad {
                        blend: *blend,
                        choice,
                        clients: *clients,
                        connections: self.connections,
                        keys: self.turns.keys,
                        // Longer than memory is far longer than the limit, which is checked by whom it is passed to.
                        value_bytes: usize::try_from(self.turns.value_bytes).unwrap_or(usize::MAX),
                        rate: self.rate,
                        warm_up: self.turns.warm_up,
                        duration: self.turns.duration,
                        failed: 0,
                        seed: self.turns.seed,
                    };
                    let (workload, distribution) = (blend.to_string(), choice.to_string());
                    // Whatever distribution is asked for, some workloads have one of their own.
                    let is_there = jobs.iter().any(|job| {
                        let same = (&job.workload, &job.distribution) == (&workload, &distribution);
                        same && job.load.clients == *clients
                    });
                    if !is_there {
                        let entries = self.protocols.iter().map(|protocol| self.entry(*protocol)).collect();
                        jobs.push(MeasuredLoad { load, workload, distribution, entries });
                    }
                }
            }
        }
        jobs
    }

    fn entry(&self, protocol: Protocol) -> Entry {
        let replicas = protocol.replicas(self.replicas);
        Entry { protocol: protocol.to_string(), replicas, samples: Vec::new() }
    }

    fn engine_name(&self) -> &'static str {
        EngineKind::from(self.engine).name()
    }

    /// Position of the protocol that the others are related to.
    fn baseline(&self) -> Result<usize, String> {
        let Some(baseline) = self.baseline else { return Ok(0) };
        self.protocols.iter().position(|protocol| *protocol == baseline).ok_or_else(|| {
            let names: Vec<String> = self.protocols.iter().map(Protocol::to_string).collect();
            format!("--baseline: {baseline} is none of {}", names.join(", "))
        })
    }

    /// How far everybody is from everybody, if somebody takes care of that.
    fn distance(&self) -> String {
        let Self { rtt_ms, jitter_ms, .. } = self;
        rtt_ms.map_or_else(String::new, |rtt| {
            format!("; {rtt} ms there and back by a relay, jitter {jitter_ms} ms each way")
        })
    }

    /// What does not change; servers are of this commit.
    fn facts(&self, commit: &str) -> Facts {
        let Turns { rounds, warm_up, duration, .. } = &self.turns;
        let load = match self.rate {
            _ if self.is_virtual => format!(
                "{} operations a round, in virtual time; {} ms there and back, jitter {} ms each way, cost {}",
                self.operations,
                self.rtt_ms.unwrap_or(simulated::RTT_MS),
                self.jitter_ms,
                self.cost
            ),
            None => format!(
                "closed loop{}{}; {rounds} x {duration:?} after {warm_up:?}",
                shared(self.connections),
                self.distance()
            ),
            Some(rate) => format!(
                "open loop, {rate} operations/s, of which {WAITING_MAX} may wait for a client{}{}; {rounds} x \
                 {duration:?} after {warm_up:?}",
                shared(self.connections),
                self.distance()
            ),
        };
        // In virtual time there is no disk.
        let engine = if self.is_virtual { EngineKind::Memory.name() } else { self.engine_name() };
        Facts {
            replicas: self.replicas,
            durability: durability_name(self.durability.into()).to_owned(),
            engine: engine.to_owned(),
            value_bytes: (!self.is_virtual).then_some(self.turns.value_bytes),
            keys: self.turns.keys,
            load,
            commit: commit.to_owned(),
            machine: machine(),
            command: command(),
        }
    }

    /// Everything that can be known to be wrong before anything is started.
    fn check(&self, jobs: &[MeasuredLoad]) -> Result<(), String> {
        Group::new(self.replicas).map_err(|error| format!("--replicas: {error}"))?;
        if !self.is_virtual {
            if self.rtt_ms.is_none() && self.jitter_ms != 0.0 {
                return Err("--jitter-ms: there is none without --rtt-ms or --virtual".to_owned());
            }
            regions::one_place(self.replicas, self.rtt_ms, self.jitter_ms)?;
            self.servers.dir.as_deref().map_or(Ok(()), directory::check)?;
        }
        for job in jobs {
            let are_far = !self.is_virtual && self.rtt_ms.is_some();
            job.load.check(self.replicas, are_far).map_err(|error| format!("--{error}"))?;
            if self.is_virtual {
                simulated::check(self, job)?;
            }
        }
        self.results.html.as_deref().map_or(Ok(()), |html| check_file("--html", html))
    }
}

/// Checks that what an option asks for can be written there.
pub(super) fn check_file(option: &str, path: &Path) -> Result<(), String> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if path.is_dir() || parent.is_some_and(|parent| !parent.is_dir()) {
        return Err(format!("{option}: {} cannot be a file", path.display()));
    }
    Ok(())
}

/// What is said of clients that share connections.
pub(super) fn shared(connections: Option<usize>) -> String {
    connections.map_or_else(String::new, |connections| format!(", over {connections} shared connections"))
}

/// The command line, with quotes where a shell needs them.
pub(super) fn command() -> String {
    let words = std::env::args_os().skip(1).map(|word| {
        let word = word.to_string_lossy().into_owned();
        let is_plain = |letter: char| letter.is_alphanumeric() || "-_./,:=+%@".contains(letter);
        match !word.is_empty() && word.chars().all(is_plain) {
            true => word,
            false => format!("'{}'", word.replace('\'', r"'\''")),
        }
    });
    core::iter::once("syros-lab".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// Prints what comes, as it comes, and writes the page in the end.
struct Printer<'a> {
    options: &'a Compare,
    facts: Facts,
    baseline: usize,
    finished: Vec<Comparison>,
    failed: u64,
}

impl Printer<'_> {
    /// A contender has ended a round, which is counted from 0.
    fn sample(&mut self, job: &mut MeasuredLoad, contender: usize, round: usize, sample: Sample) {
        self.failed += sample.failed;
        let Some(entry) = job.entries.get_mut(contender) else { return };
        if self.options.results.json {
            let load = (job.workload.as_str(), job.distribution.as_str(), job.load.clients);
            let line = Line::new(&self.facts, load, (&entry.protocol, entry.replicas), round + 1, &sample);
            println!("{}", line.json());
        }
        entry.samples.push(sample);
    }

    /// A load has had all its rounds.
    fn finish(&mut self, job: MeasuredLoad) {
        let MeasuredLoad { load, workload, distribution, entries } = job;
        let (clients, baseline) = (load.clients, self.baseline);
        let comparison = Comparison { workload, distribution, clients, entries, baseline };
        if !self.options.results.json {
            println!("{comparison}");
        }
        self.finished.push(comparison);
    }

    /// Writes the page, if one is wanted.
    fn page(&self) -> Result<(), String> {
        let Some(path) = &self.options.results.html else { return Ok(()) };
        std::fs::write(path, page(&self.facts, &self.finished))
            .map_err(|error| format!("--html: cannot write {}: {error}", path.display()))
    }
}

/// Measures and prints.
pub(super) fn run(options: &Compare) -> Result<ExitCode, String> {
    let jobs = options.measured_loads();
    options.check(&jobs)?;
    let baseline = options.baseline()?;
    let program = if options.is_virtual { None } else { Some(options.servers.binary.find()?) };
    let commit = program.as_ref().map_or(syros_cli::COMMIT, |program| &program.commit);
    let facts = options.facts(commit);
    let mut printer = Printer { options, facts, baseline, finished: Vec::new(), failed: 0 };
    if !options.results.json {
        let Facts { replicas, load, durability, engine, commit, machine, .. } = &printer.facts;
        let records = printer.facts.records();
        println!("{replicas} replicas, {durability}, engine {engine}, {records}; {load}");
        println!("commit {commit}; {machine}\n");
    }
    match &program {
        Some(program) => real::run(options, &program.path, jobs, &mut printer)?,
        None => simulated::run(options, jobs, &mut printer)?,
    }
    printer.page()?;
    Ok(if printer.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    /// The command line, and what is wrong with it.
    fn problem(more: &[&str]) -> String {
        crate::bench::tests::problem(&[&["compare"], more].concat())
    }

    #[test]
    fn what_cannot_be_is_named_with_its_limit_and_nothing_is_started() {
        for (more, complaint) in [
            (&["--protocols", "raft"][..], "there is no protocol 'raft'"),
            (&["--replicas", "4"], "--replicas: "),
            (&["--clients", "10,0"], "--clients: 0 is not from 1 to 4096"),
            (&["--workload", "a,x"], "'x' is no workload"),
            (&["--workload", "mix:50,40,20"], "adds up to 110 percent"),
            (&["--distribution", "hotspot:3"], "'hotspot:3' is no distribution"),
            (&["--connections", "11"], "--connections: 11 is not from 1 to 10"),
            (&["--keys", "0"], "--keys: 0 is not from 1 to 1000000000"),
            (&["--value-bytes", "2GiB"], "--value-bytes: 2147483648 is not from 0 to"),
            (&["--rate", "0"], "--rate: 0 is not from 1 to 10000000"),
            (&["--duration", "0s"], "--duration: 0 s is no time"),
            (&["--rounds", "0"], "0 is not in 1..=1000"),
            (&["--baseline", "pqr"], "--baseline: pqr is none of vr, skyros, default"),
            (&["--html", "/no/such/place/page.html"], "--html: /no/such/place/page.html cannot be a file"),
            (&["--jitter-ms", "1"], "--jitter-ms: there is none without --rtt-ms"),
            (&["--rtt-ms=-1"], "--rtt-ms: "),
            (&["--dir", "/"], "/ exists already"),
            (&["--virtual", "--rate", "5"], "cannot be used with"),
            (&["--operations", "5"], "--virtual"),
            (&["--cost", "none"], "--virtual"),
            (&["--virtual", "--cost", "cheap"], "'cheap' is no cost"),
            (&["--virtual", "--rtt-ms=-1"], "--virtual: "),
            (&["--virtual", "--clients", "1,300"], "--virtual: 300 clients are not 1 to 256"),
            (&["--virtual", "--operations", "2000000"], "2000000 operations are not 1 to 1000000"),
            (&["--virtual", "--jitter-ms", "NaN"], "--virtual: "),
            (&["--workload", "record-append", "--value-bytes", "20000"], "20000 is not from 0 to 16777"),
        ] {
            let problem = problem(more);
            assert!(problem.contains(complaint), "'{complaint}' is not in: {problem}");
        }
    }
}
