//! `syros-lab sim`: the deterministic simulation of a whole cluster.

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use syros_protocol::replica::PlantedBug;
use syros_sim::{Options as SimOptions, SeedReport, Shown, Summary, replay_command, run_planted, run_seed};
use syros_types::{Group, Protocol};

/// Options of `syros-lab sim`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros-lab sim --seed 42                       one seed
  syros-lab sim --seed 42 --trace               with everything that happened, line by line
  syros-lab sim --seeds 1..1000                 a range
  syros-lab sim --minutes 60                    new seeds for an hour
  syros-lab sim --seeds 1..1000 --protocol skyros-comm --replicas 9
  syros-lab sim --seeds 1..1000 --plant no-conflict-check    must find a violation
  syros-lab sim --planted                       every known-wrong variant; fails if one is not found
  syros-lab sim --list-planted                  the known-wrong variants

The same seed gives the same run, on every machine. Exit status 1: a violation was found.")]
pub(crate) struct Options {
    /// Run this seed
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Run all seeds from A up to but not including B [default: 1..100]
    #[arg(long, value_name = "A..B", value_parser = parse_range)]
    seeds: Option<std::ops::Range<u64>>,
    /// Run seeds for so long, from a seed that the time of day gives, or from A of --seeds
    #[arg(long, value_name = "M", conflicts_with_all = ["seed", "planted"], value_parser = clap::value_parser!(u64).range(1..=10_000))]
    minutes: Option<u64>,
    /// Give every world the settings of this protocol: vr, skyros-comm, ..; see syros-lab bench compare --help
    #[arg(long, value_name = "NAME")]
    protocol: Option<Protocol>,
    /// Give every world so many replicas: 1, 3, 5, 7 or 9 [default: what each seed draws]
    #[arg(long, value_name = "N", conflicts_with = "planted", value_parser = syros_cli::parse_group)]
    replicas: Option<Group>,
    /// Give every world the mixed mode, the default of clusters; else one of three has it
    #[arg(long, conflicts_with_all = ["planted", "protocol"])]
    mixed: bool,
    /// Give every world permanent faults: replicas stay dead and links stay cut while clients must be served
    #[arg(long, conflicts_with = "planted")]
    permanent: bool,
    /// Judge service in every world: the next update after all repairs takes one round trip, a failover under a
    /// second, and nothing ends as unknown
    #[arg(long, conflicts_with = "planted")]
    service: bool,
    /// Print everything that happens; only with --seed
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Run a known-wrong variant of the protocol
    #[arg(long, value_name = "BUG", value_parser = parse_planted)]
    plant: Option<PlantedBug>,
    /// Run every known-wrong variant until a seed shows it
    #[arg(long, conflicts_with_all = ["seed", "plant"])]
    planted: bool,
    /// Give up on a variant of --planted after this many seeds
    #[arg(long, value_name = "N", default_value = "20000", requires = "planted")]
    within: u64,
    /// Only these variants of --planted
    #[arg(long, value_name = "BUG,..", value_delimiter = ',', value_parser = parse_planted, requires = "planted")]
    only: Vec<PlantedBug>,
    /// List the known-wrong variants
    #[arg(long)]
    list_planted: bool,
}

fn parse_range(text: &str) -> Result<std::ops::Range<u64>, String> {
    let ends = text.split_once("..").and_then(|(first, end)| Some((first.parse().ok()?, end.parse().ok()?)));
    let ends = ends.filter(|(first, end): &(u64, u64)| first < end);
    ends.map(|(first, end)| first..end).ok_or_else(|| "a range such as 1..1000 is expected".to_owned())
}

fn parse_planted(text: &str) -> Result<PlantedBug, String> {
    let found = PlantedBug::ALL.iter().find(|bug| bug.name() == text);
    found.copied().ok_or_else(|| "there is none of this name; --list-planted shows all".to_owned())
}

/// Runs the seeds asked for.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    if options.list_planted {
        for bug in PlantedBug::ALL {
            println!("{:28} {}", bug.name(), bug.description());
        }
        return Ok(ExitCode::SUCCESS);
    }
    if options.planted {
        return Ok(find_planted(&options.only, options.protocol, options.within));
    }
    let settings = SimOptions {
        trace: options.trace,
        planted: options.plant,
        protocol: options.protocol,
        replicas: options.replicas,
        mixed: options.mixed,
        permanent: options.permanent,
        service: options.service,
    };
    let started = Instant::now();
    let summary = match options.seed {
        Some(seed) => {
            let report = run_seed(seed, &settings);
            report.trace.iter().for_each(|line| println!("{line}"));
            println!("seed {seed}: trace hash {:016x}", report.trace_hash);
            let mut summary = Summary::default();
            summary.add(&report);
            tell(&report, &settings);
            summary
        }
        None => {
            let summary = run_many(options, &settings);
            print!("{}", summary.table());
            summary
        }
    };
    println!("{:.1} s", started.elapsed().as_secs_f64());
    println!("{summary}");
    Ok(if summary.violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs a range of seeds, or new ones for some time, and tells how far it is.
fn run_many(options: &Options, settings: &SimOptions) -> Summary {
    const TELL_EVERY: Duration = Duration::from_secs(30);
    let started = Instant::now();
    let (seeds, end) = match (options.minutes, &options.seeds) {
        (None, seeds) => (seeds.clone().unwrap_or(1..100), None),
        (Some(minutes), seeds) => {
            let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let first = seeds.as_ref().map_or(since_epoch.as_secs() * 1_000_000, |seeds| seeds.start);
            println!("seeds from {first}");
            (first..u64::MAX, Some(Duration::from_secs(60 * minutes)))
        }
    };
    let mut summary = Summary::default();
    let mut told = started;
    for seed in seeds {
        if end.is_some_and(|end| started.elapsed() >= end) {
            break;
        }
        let report = run_seed(seed, settings);
        summary.add(&report);
        tell(&report, settings);
        if told.elapsed() >= TELL_EVERY {
            told = Instant::now();
            eprintln!("{:.0} s, seed {seed}: {summary}", started.elapsed().as_secs_f64());
        }
    }
    summary
}

/// Runs these planted bugs, or every one, on as many cores as there are; each must be found.
fn find_planted(only: &[PlantedBug], protocol: Option<Protocol>, seeds_max: u64) -> ExitCode {
    let bugs = if only.is_empty() { PlantedBug::ALL } else { only };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let [next, passed, failed] = [0; 3].map(AtomicUsize::new);
    std::thread::scope(|scope| {
        for _ in 0..cores.min(bugs.len()) {
            scope.spawn(|| {
                while let Some(bug) = bugs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let count = if find_one(*bug, protocol, seeds_max) { &passed } else { &failed };
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let (passed, failed) = (passed.into_inner(), failed.into_inner());
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs a planted bug, and says how it was found. False if it was not.
fn find_one(bug: PlantedBug, protocol: Option<Protocol>, seeds_max: u64) -> bool {
    let started = Instant::now();
    let found = run_planted(bug, protocol, seeds_max);
    let seconds = started.elapsed().as_secs_f64();
    let name = bug.name();
    match &found {
        Some(Shown::Seed(seed)) => println!("{name:28} found by seed {seed} ({seconds:.1} s)"),
        Some(Shown::Tests(file)) => println!("{name:28} shown by the tests in {file}"),
        Some(Shown::Story(story)) => println!("{name:28} shown by the story {story} ({seconds:.1} s)"),
        None => println!("{name:28} NOT found within {seeds_max} seeds ({seconds:.1} s)"),
    }
    found.is_some()
}

/// Tells of a violation, and how to see it again.
fn tell(report: &SeedReport, settings: &SimOptions) {
    if let Some(violation) = &report.violation {
        println!(
            "seed {}: {violation}\n  replay with: {} --trace",
            report.seed,
            replay_command(report.seed, settings)
        );
    }
}
