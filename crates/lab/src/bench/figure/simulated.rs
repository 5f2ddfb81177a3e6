//! Figures in virtual time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use syros_bench::compare::Sample;
use syros_bench::figure::{Figure, SLOW_READS_VIRTUAL, Storage};
use syros_experiment::Cost;
use syros_regions::Regions;
use syros_sim::geo::Geo;

use super::{Figure as Options, Printer, ResolvedCell};
use crate::bench::compare::simulated::RTT_MS;
use crate::bench::progress::Progress;

/// What it takes a slow storage to fetch what is read.
const SLOW: Duration = Duration::from_micros(1_000_000 / SLOW_READS_VIRTUAL as u64);

/// One round of something, which is counted from 0.
fn one(options: &Options, understood: &ResolvedCell, round: u64) -> Result<Sample, String> {
    let ResolvedCell { cell, protocol, blend, choice } = understood;
    let load = &cell.load;
    let replicas = protocol.replicas(load.replicas);
    let regions = match load.regions {
        Some(name) => {
            let text = Regions::shipped_text(name).ok_or_else(|| format!("there are no regions '{name}'"))?;
            Regions::parse(text).map_err(|problem| problem.to_string())?
        }
        None => Regions::one_place(replicas, RTT_MS, load.jitter_us as f64 / 1_000.0)
            .map_err(|problem| problem.to_string())?,
    };
    let cost = match (load.regions, load.storage) {
        // What distance takes is a thousand times more.
        (Some(_), _) => Cost::NONE,
        (None, Storage::Slow) => Cost { fetch: SLOW, ..options.cost },
        (None, _) => options.cost,
    };
    let history = load.history.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    let geo = Geo {
        regions: &regions,
        protocol: *protocol,
        blend: *blend,
        choice: *choice,
        keys: load.keys,
        clients: load.clients,
        operations: options.operations_of(load),
        history_bytes_max: history,
        cost,
        failed: load.failed,
        seed: options.seed.wrapping_add(round),
    };
    let run = geo.measure().map_err(|problem| format!("{protocol}, {}: {problem}", load.workload))?;
    let clients = load.clients * regions.clients().len();
    Ok(Sample::from_virtual(&run, clients, replicas))
}

/// All rounds of all of these, on as many cores as there are. Says how many have ended.
fn all(
    options: &Options,
    wanted: &[ResolvedCell],
    says: &dyn Fn(usize, &ResolvedCell),
) -> Result<Vec<Vec<Sample>>, String> {
    let rounds = options.rounds as usize;
    let count = wanted.len() * rounds;
    let next = AtomicUsize::new(0);
    let (sender, ended) = channel();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut samples: Vec<Vec<Option<Sample>>> = wanted.iter().map(|_| vec![None; rounds]).collect();
    std::thread::scope(|scope| {
        for _ in 0..cores.min(count) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(understood) = wanted.get(number / rounds).filter(|_| number < count) else {
                        return;
                    };
                    let sample = one(options, understood, (number % rounds) as u64);
                    if sender.send((number, sample)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (done, (number, sample)) in ended.into_iter().enumerate() {
            says(done + 1, &wanted[number / rounds]);
            match sample {
                Ok(sample) => samples[number / rounds][number % rounds] = Some(sample),
                Err(problem) => {
                    // The others need not begin anything more.
                    next.store(count, Ordering::Relaxed);
                    return Err(problem);
                }
            }
        }
        Ok(())
    })?;
    Ok(samples.into_iter().map(|rounds| rounds.into_iter().flatten().collect()).collect())
}
/// Simulates.
pub(super) fn run(figures: &[Figure], printer: &mut Printer<'_>) -> Result<(), String> {
    let progress = Progress::new(Duration::ZERO);
    for figure in figures {
        let wanted = printer.missing(figure);
        let count = wanted.len() * printer.options.rounds as usize;
        if count > 0 {
            progress.says(&format!("{}: {count} runs", figure.name));
        }
        let says = |done: usize, understood: &ResolvedCell| {
            if !progress.is_hidden() {
                let load = &understood.cell.load;
                let name = format!("{}, {}, {} clients", understood.protocol, load.workload, load.clients);
                progress.says(&format!("{}: {done} of {count} runs: {name}", figure.name));
            }
        };
        let samples =
            all(printer.options, &wanted, &says).map_err(|problem| format!("{}: {problem}", figure.name))?;
        for (understood, samples) in wanted.iter().zip(samples) {
            samples.into_iter().for_each(|sample| printer.add(&understood.cell, sample));
        }
        progress.suspend(|| printer.finish(figure));
    }
    Ok(())
}
