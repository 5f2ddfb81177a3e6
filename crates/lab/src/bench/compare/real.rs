//! Clusters of real processes.

use std::path::Path;

use syros_bench::compare::{CompareError, CompareLoad, Contender, Sample, order};
use syros_cli::regions::{self, timing_of};
use syros_runtime::durability_name;
use syros_types::Protocol;

use super::{Compare, MeasuredLoad, Printer};
use crate::bench::directory::in_directory;
use crate::bench::progress::Progress;

/// Everything that runs.
struct ComparisonRun<'a> {
    options: &'a Compare,
    contenders: Vec<Contender>,
    progress: Progress,
    is_interrupted: &'a dyn Fn() -> bool,
}

/// Measures.
pub(super) fn run(
    options: &Compare,
    program: &Path,
    jobs: Vec<MeasuredLoad>,
    printer: &mut Printer<'_>,
) -> Result<(), String> {
    in_directory(options.servers.dir.as_ref(), "compare", |directory, is_interrupted| {
        measure(options, program, jobs, directory, printer, &*is_interrupted)
    })
}

fn measure(
    options: &Compare,
    program: &Path,
    jobs: Vec<MeasuredLoad>,
    directory: &Path,
    printer: &mut Printer<'_>,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<(), String> {
    let runs = jobs.len() * options.protocols.len() * options.turns.rounds as usize;
    let runs = u32::try_from(runs).unwrap_or(u32::MAX);
    let whole = (options.turns.warm_up + options.turns.duration).saturating_mul(runs);
    let mut arena =
        ComparisonRun { options, contenders: Vec::new(), progress: Progress::new(whole), is_interrupted };
    for (number, protocol) in options.protocols.iter().enumerate() {
        arena.start(*protocol, program, &directory.join(format!("{number}-{protocol}")))?;
    }
    for mut job in jobs {
        for round in 0..options.turns.rounds as usize {
            for contender in order(arena.contenders.len(), round) {
                let seed = options.turns.seed.wrapping_add(round as u64);
                let load = CompareLoad { seed, ..job.load.clone() };
                let sample = arena.run(contender, &load, round)?;
                arena.progress.suspend(|| printer.sample(&mut job, contender, round, sample));
            }
        }
        arena.progress.suspend(|| printer.finish(job));
    }
    Ok(())
}

impl ComparisonRun<'_> {
    fn start(&mut self, protocol: Protocol, program: &Path, directory: &Path) -> Result<(), String> {
        if (self.is_interrupted)() {
            return Err(CompareError::Interrupted.to_string());
        }
        let replicas = self.options.replicas;
        let s = if protocol.replicas(replicas) == 1 { "" } else { "s" };
        self.progress.says(&format!("{protocol}: starting {} replica{s}", protocol.replicas(replicas)));
        let settings = format!(
            "durability = \"{}\"\nengine = \"{}\"\n",
            durability_name(self.options.durability.into()),
            self.options.engine_name()
        );
        let Compare { rtt_ms, jitter_ms, .. } = *self.options;
        let regions = regions::one_place(protocol.replicas(replicas), rtt_ms, jitter_ms)?;
        let settings = settings + &timing_of(regions.as_ref());
        let (program, directory) = (program.to_owned(), directory.to_owned());
        let started = Contender::start(program, directory, protocol, replicas, &settings, regions);
        self.contenders.push(started.map_err(|error| format!("{protocol}: {error}"))?);
        Ok(())
    }

    fn run(&mut self, contender: usize, load: &CompareLoad, round: usize) -> Result<Sample, String> {
        let Self { options, contenders, progress, is_interrupted } = self;
        let longest = load.warm_up + load.duration;
        let contender = &mut contenders[contender];
        let protocol = contender.protocol();
        let CompareLoad { blend, choice, clients, .. } = load;
        let name = format!(
            "{protocol}: workload {blend}, {choice}, clients: {clients}, round {} of {}",
            round + 1,
            options.turns.rounds
        );
        let is_passing = |error: &CompareError| matches!(error, CompareError::Leader { .. });
        progress.measure(&name, longest, *is_interrupted, is_passing, |is_over| contender.run(load, is_over))
    }
}
