//! Runs seeds: `seeds A..B`, `seeds N --trace`, `seeds A..B --plant NAME`.

use std::process::ExitCode;
use std::time::Instant;
use syros_protocol::replica::PlantedBug;
use syros_sim::{Options, replay_command, run_range, run_seed};

fn main() -> ExitCode {
    let mut options = Options::default();
    let mut seeds = 0..100;
    let mut single = None;
    let mut stop = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--trace" => options.trace = true,
            "--stop" => stop = true,
            "--plant" => {
                let name = arguments.next().unwrap_or_default();
                options.planted = PlantedBug::ALL.iter().copied().find(|bug| bug.name() == name);
                assert!(options.planted.is_some(), "no planted bug is called {name:?}");
            }
            other => match other.split_once("..") {
                Some((from, to)) => seeds = from.parse().unwrap()..to.parse().unwrap(),
                None => single = Some(other.parse().unwrap()),
            },
        }
    }
    if let Some(seed) = single {
        let report = run_seed(seed, &options);
        report.trace.iter().for_each(|line| println!("{line}"));
        println!("operations {} faults {} hash {:016x} time {} ms", report.operations, report.faults, report.trace_hash, report.virtual_time / 1_000_000);
        if let Some(violation) = report.violation {
            println!("seed {seed}: {violation}");
            return ExitCode::FAILURE;
        }
        return ExitCode::SUCCESS;
    }
    let began = Instant::now();
    let summary = run_range(seeds, &options, |report| {
        if let Some(violation) = &report.violation {
            println!("seed {}: {violation}\n  {}", report.seed, replay_command(report.seed, &options));
            if stop { std::process::exit(1) }
        }
    });
    let seconds = began.elapsed().as_secs_f64();
    println!("{summary}");
    println!("{seconds:.2} s, {:.0} operations/s, {:.1} ms/seed", summary.operations as f64 / seconds, 1e3 * seconds / summary.seeds as f64);
    if summary.violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
