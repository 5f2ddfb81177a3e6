//! Clusters in virtual time: distance takes time, and what replicas do if it is said what; answers are checked.

use std::time::Duration;

use syros_bench::compare::{Sample, order};
use syros_regions::Regions;
use syros_sim::geo::Geo;
use syros_types::Protocol;

use super::{Compare, MeasuredLoad, Printer};
use crate::bench::progress::Progress;

/// There and back in milliseconds, if nothing else is asked for.
pub(in crate::bench) const RTT_MS: f64 = 0.2;

/// Everybody in one place, as far from each other as is asked for.
fn regions(options: &Compare, protocol: Protocol) -> Result<Regions, String> {
    let rtt_ms = options.rtt_ms.unwrap_or(RTT_MS);
    Regions::one_place(protocol.replicas(options.replicas), rtt_ms, options.jitter_ms)
        .map_err(|problem| format!("--virtual: {problem}"))
}

/// An experiment, whose round is counted from 0.
fn geo<'a>(
    options: &Compare,
    job: &MeasuredLoad,
    protocol: Protocol,
    regions: &'a Regions,
    round: usize,
) -> Geo<'a> {
    Geo {
        regions,
        protocol,
        blend: job.load.blend,
        choice: job.load.choice,
        keys: job.load.keys,
        clients: job.load.clients,
        operations: options.operations,
        history_bytes_max: None,
        cost: options.cost,
        failed: 0,
        seed: options.turns.seed.wrapping_add(round as u64),
    }
}

/// Everything that can be known to be wrong before anything is simulated.
pub(super) fn check(options: &Compare, job: &MeasuredLoad) -> Result<(), String> {
    let protocol = Protocol::default();
    let regions = regions(options, protocol)?;
    geo(options, job, protocol, &regions, 0).check().map_err(|problem| format!("--virtual: {problem}"))
}

/// Simulates.
pub(super) fn run(
    options: &Compare,
    jobs: Vec<MeasuredLoad>,
    printer: &mut Printer<'_>,
) -> Result<(), String> {
    let progress = Progress::new(Duration::ZERO);
    for mut job in jobs {
        for round in 0..options.turns.rounds as usize {
            for contender in order(options.protocols.len(), round) {
                let protocol = options.protocols[contender];
                progress.says(&format!("{protocol}: workload {}, round {}", job.workload, round + 1));
                let regions = regions(options, protocol)?;
                let run = geo(options, &job, protocol, &regions, round).measure();
                let run = run.map_err(|problem| format!("{protocol}, {}: {problem}", job.workload))?;
                let replicas = protocol.replicas(options.replicas);
                let sample = Sample::from_virtual(&run, job.load.clients, replicas);
                progress.suspend(|| printer.sample(&mut job, contender, round, sample));
            }
        }
        progress.suspend(|| printer.finish(job));
    }
    Ok(())
}
