//! `syros-lab bench figure`: the papers' figures, reproduced, beside what the papers say.

mod documents;
mod real;
mod simulated;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use syros_bench::compare::{Facts, Sample, machine};
use syros_bench::figure::{Cell, Figure as Shown, Measurements, Storage, catalogue, names, text};
use syros_cli::regions;
use syros_experiment::{Blend, Cost, KeyChoice};
use syros_runtime::EngineKind;
use syros_types::Protocol;

use super::compare::{check_file, command};
use super::options::{Results, Servers};
use super::{directory, parse_time};

/// All of them.
const ALL: &str = "all";

/// Most records of clusters of real processes, which have to write them first.
const REAL_KEYS_MAX: u64 = 100_000;

/// The same of a quick look.
const QUICK_KEYS_MAX: u64 = 2_000;

/// In virtual time, everything has so many operations for each client at least, and so many times as many where storage is
/// slow: there it takes clients some time to find out which replica is free.
const PER_CLIENT: u64 = 50;
const SLOW_TIMES: u64 = 4;

/// Where replicas are far from each other, everything is measured so many times as long.
const FAR_TIMES: u32 = 5;

/// Length of a value of real processes.
const VALUE_BYTES: usize = 100;

/// Options of `syros-lab bench figure`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros-lab bench figure --list
  syros-lab bench figure skyros-8a --virtual
  syros-lab bench figure skyros-8a --quick --svg skyros-8a.svg
  syros-lab bench figure syros-5 syros-6 syros-7 --virtual --json
  syros-lab bench figure skyros-8b-i --rtt-ms 4
  syros-lab bench figure ionia-10 --duration 5s --rounds 3 --html ionia-10.html
  syros-lab bench figure all --virtual --out docs/figures

Without --virtual, clusters of real processes on this machine, which all share its cores, so that messages count more than
round trips do unless --rtt-ms makes those longer; with it, the simulator, in which
each process has a machine of its own, a round trip takes 0.2 ms, what replicas do takes what --cost says, and every history is
judged. Each figure has what the paper says as ratios, and whether they hold here. Exit status 1: an operation failed; a
statement that does not hold is no failure.")]
pub(super) struct Figure {
    /// Figures by their names, or all
    #[arg(value_name = "NAME", required_unless_present = "list")]
    names: Vec<String>,
    /// Print the names of all figures, and what they show
    #[arg(long)]
    list: bool,
    /// Simulate, in virtual time
    #[arg(long = "virtual", conflicts_with_all = ["dir", "binary", "duration", "warm_up"])]
    is_virtual: bool,
    /// A few points with little load: to see that it works, not what the figure is about
    #[arg(long)]
    quick: bool,
    /// How often everything is measured
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// How long to measure each point, in each round [default: 2s, with --quick 200ms]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    duration: Option<Duration>,
    /// Load that comes first and is not measured [default: 500ms, with --quick 100ms]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    warm_up: Option<Duration>,
    /// With --virtual: operations for each point, over all clients [default: 5000, with --quick 400]
    #[arg(long, value_name = "N", requires = "is_virtual", value_parser = clap::value_parser!(u64).range(1..))]
    operations: Option<u64>,
    /// With --virtual: what takes replicas time, where they are in one place: none, measured (as on the machine of
    /// docs/BENCHMARKS.md), or some of receive=Tus,send=Tus,entry=Tus,execute=Tus,fetch=Tus
    #[arg(long, value_name = "C", default_value = "measured", requires = "is_virtual")]
    cost: Cost,
    /// Where all are in one place: from anybody to anybody and back, in milliseconds, of which a relay takes care [default:
    /// what this machine takes; 0.2 with --virtual]
    #[arg(long, value_name = "MS", conflicts_with = "is_virtual")]
    rtt_ms: Option<f64>,
    /// Seed of the choice of operations; each round has another one
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    servers: Servers,
    #[command(flatten)]
    results: Results,
    /// Write the plot of the only figure
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write a plot for each figure, and a README.md with all of them, into this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Figure {
    /// The figures that are asked for, in the papers' order.
    fn figures(&self) -> Result<Vec<Shown>, String> {
        let known = names();
        if let Some(unknown) = self.names.iter().find(|name| *name != ALL && !known.contains(&name.as_str()))
        {
            return Err(format!("there is no figure '{unknown}'; there are {ALL}, {}", known.join(", ")));
        }
        let is_asked = |figure: &Shown| self.names.iter().any(|name| name == ALL || name == figure.name);
        let figures = catalogue().into_iter().filter(is_asked);
        Ok(figures.map(|figure| if self.quick { figure.quick() } else { figure }).collect())
    }

    fn duration(&self) -> Duration {
        self.duration.unwrap_or(Duration::from_millis(if self.quick { 200 } else { 2_000 }))
    }

    fn warm_up(&self) -> Duration {
        self.warm_up.unwrap_or(Duration::from_millis(if self.quick { 100 } else { 500 }))
    }

    fn operations(&self) -> u64 {
        self.operations.unwrap_or(if self.quick { 400 } else { 5_000 })
    }

    /// Operations of a load in virtual time.
    fn operations_of(&self, load: &syros_bench::figure::Load) -> u64 {
        let asked = self.operations();
        match load.storage {
            _ if self.quick => asked,
            Storage::Slow => asked.saturating_mul(SLOW_TIMES),
            Storage::Memory | Storage::Disk => asked.max(PER_CLIENT * load.clients as u64),
        }
    }

    /// Records of a load.
    fn keys(&self, asked: u64) -> u64 {
        match (self.is_virtual, self.quick) {
            (true, _) => asked,
            (false, true) => asked.min(QUICK_KEYS_MAX),
            (false, false) => asked.min(REAL_KEYS_MAX),
        }
    }

    /// What does not change; servers are of this commit.
    fn facts(&self, commit: &str) -> Facts {
        let Self { rounds, cost, .. } = self;
        let s = if *rounds == 1 { "" } else { "s" };
        let load = if self.is_virtual {
            let operations = self.operations();
            let more = if self.quick {
                String::new()
            } else {
                format!(
                    " (at least {PER_CLIENT} for each client, {SLOW_TIMES} times as many where storage is slow)"
                )
            };
            format!(
                "Virtual time: {rounds} round{s} of {operations} operations for each point{more}, 0.2 ms there and back where all are \
                 in one place, cost {cost}"
            )
        } else {
            let (warm_up, duration) = (self.warm_up(), self.duration());
            let keys = self.keys(u64::MAX);
            let distance = self.rtt_ms.map_or_else(String::new, |rtt_ms| {
                format!("{rtt_ms} ms there and back by a relay where all are in one place, ")
            });
            format!(
                "Real processes: {distance}{rounds} round{s} of {duration:?} after {warm_up:?} for each point ({FAR_TIMES} times as long \
                 where replicas are far), at most {keys} records with values of {VALUE_BYTES} bytes"
            )
        };
        Facts {
            durability: "replicated".to_owned(),
            value_bytes: (!self.is_virtual).then_some(VALUE_BYTES as u64),
            load,
            commit: commit.to_owned(),
            machine: machine(),
            command: command(),
            ..Facts::default()
        }
    }

    /// Everything that can be known to be wrong before anything is started.
    fn check(&self, figures: &[Shown]) -> Result<(), String> {
        regions::one_place(3, self.rtt_ms, 0.0)?;
        if self.svg.is_some() && figures.len() != 1 {
            return Err(format!("--svg: one plot is not {} figures; --out writes them all", figures.len()));
        }
        if self.duration().is_zero() {
            return Err("--duration: 0 s is no time to measure anything in".to_owned());
        }
        for (name, path) in [("--svg", &self.svg), ("--html", &self.results.html)] {
            path.as_deref().map_or(Ok(()), |path| check_file(name, path))?;
        }
        self.servers.dir.as_deref().map_or(Ok(()), directory::check)?;
        if let Some(out) = self.out.as_ref().filter(|out| out.exists() && !out.is_dir()) {
            return Err(format!("--out: {} is no directory", out.display()));
        }
        Ok(())
    }
}

/// A cell whose names have been understood.
struct ResolvedCell {
    cell: Cell,
    protocol: Protocol,
    blend: Blend,
    choice: KeyChoice,
}

/// Takes the names of a cell for what they mean, if this program knows them.
fn understand(cell: &Cell) -> Result<ResolvedCell, String> {
    let protocol = cell.protocol.parse::<Protocol>().map_err(|error| error.to_string())?;
    let blend = cell.load.workload.parse::<Blend>().map_err(|error| error.to_string())?;
    let asked = cell.load.distribution.parse::<KeyChoice>().map_err(|error| error.to_string())?;
    Ok(ResolvedCell { cell: cell.clone(), protocol, blend, choice: blend.choice(asked) })
}

/// What has been measured so far, and how that is said.
struct Printer<'a> {
    options: &'a Figure,
    facts: Facts,
    measurements: Measurements,
}

impl Printer<'_> {
    /// What of a figure is still to be measured; what cannot be is skipped.
    fn missing(&mut self, figure: &Shown) -> Vec<ResolvedCell> {
        let mut missing = Vec::new();
        for cell in figure.cells().into_iter().filter(|cell| !self.measurements.has(cell)).collect::<Vec<_>>()
        {
            match understand(&cell) {
                Ok(_) if self.options.is_virtual && cell.load.storage == Storage::Disk => {
                    self.measurements.skip(&cell, "there are no disks in virtual time".to_owned());
                }
                Ok(understood) => missing.push(understood),
                Err(problem) => self.measurements.skip(&cell, problem),
            }
        }
        missing
    }

    /// A round of something has ended.
    fn add(&mut self, cell: &Cell, sample: Sample) {
        self.measurements.add(cell, sample);
    }

    /// Everything of a figure has been measured.
    fn finish(&self, figure: &Shown) {
        if !self.options.results.json {
            println!("{}", text(figure, &self.measurements));
            return;
        }
        for cell in figure.cells() {
            let facts = Facts {
                replicas: cell.load.replicas,
                keys: self.options.keys(cell.load.keys),
                engine: match cell.load.storage {
                    Storage::Disk => EngineKind::Disk.name().to_owned(),
                    Storage::Memory | Storage::Slow => EngineKind::Memory.name().to_owned(),
                },
                ..self.facts.clone()
            };
            for (round, sample) in self.measurements.samples(&cell).iter().enumerate() {
                let is_virtual = self.options.is_virtual;
                println!("{}", Measurements::json(figure.name, is_virtual, &facts, &cell, round + 1, sample));
            }
        }
        for judged in figure.judge(&self.measurements) {
            println!("{}", judged.json(figure.name, self.options.is_virtual));
        }
    }
}

fn list() {
    for figure in catalogue() {
        let missing = if figure.panels.is_empty() { " (not reproduced)" } else { "" };
        println!("{:<14} {}{missing}", figure.name, figure.heading());
    }
}

/// Writes a file, and says which if it cannot be.
fn write(option: &str, path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{option}: cannot write {}: {error}", path.display()))
}

/// Measures and prints.
pub(super) fn run(options: &Figure) -> Result<ExitCode, String> {
    if options.list {
        list();
        return Ok(ExitCode::SUCCESS);
    }
    let figures = options.figures()?;
    options.check(&figures)?;
    let program = if options.is_virtual { None } else { Some(options.servers.binary.find()?) };
    let commit = program.as_ref().map_or(syros_cli::COMMIT, |program| &program.commit);
    let facts = options.facts(commit);
    let mut printer = Printer { options, facts, measurements: Measurements::new(options.is_virtual) };
    if !options.results.json {
        let Facts { load, commit, machine, .. } = &printer.facts;
        println!("{load}\nCommit {commit}; {machine}\n");
    }
    let measured = match &program {
        Some(program) => real::run(&figures, &program.path, &mut printer),
        None => simulated::run(&figures, &mut printer),
    };
    // What was measured before something went wrong may have taken long.
    if measured.is_ok() || !printer.measurements.is_empty() {
        documents::write_all(options, &figures, &printer)?;
    }
    measured?;
    Ok(if printer.measurements.failed() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    /// The command line, and what is wrong with it.
    fn problem(more: &[&str]) -> String {
        crate::bench::tests::problem(&[&["figure"], more].concat())
    }

    #[test]
    fn what_cannot_be_is_named_and_nothing_is_started() {
        for (more, complaint) in [
            (&[][..], "<NAME>"),
            (&["skyros-7"], "there is no figure 'skyros-7'; there are all, skyros-8a, skyros-8b-i"),
            (&["all", "--svg", "x.svg"], "--svg: one plot is not 33 figures"),
            (&["skyros-8a", "--svg", "/no/such/place/x.svg"], "/no/such/place/x.svg cannot be a file"),
            (&["skyros-8a", "--html", "/"], "--html: / cannot be a file"),
            (&["skyros-8a", "--out", "/dev/null"], "--out: /dev/null is no directory"),
            (&["skyros-8a", "--duration", "0s"], "--duration: 0 s is no time"),
            (&["skyros-8a", "--rounds", "0"], "0 is not in 1..=1000"),
            (&["skyros-8a", "--virtual", "--duration", "1s"], "cannot be used with"),
            (&["skyros-8a", "--operations", "10"], "--virtual"),
            (
                &["skyros-8a", "--virtual", "--operations", "2000000"],
                "2000000 operations are not 1 to 1000000",
            ),
            (&["skyros-8a", "--virtual", "--cost", "cheap"], "'cheap' is no cost"),
            (&["skyros-8a", "--dir", "/"], "/ exists already"),
        ] {
            let problem = problem(more);
            assert!(problem.contains(complaint), "'{complaint}' is not in: {problem}");
        }
    }
}
