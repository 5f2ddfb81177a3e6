//! Figures of clusters of real processes.

use std::path::Path;

use syros_bench::compare::{CompareError, CompareLoad, Contender, Sample, order};
use syros_bench::figure::{Figure, Load, SLOW_READS, Storage};
use syros_bench::geo::{GeoCluster, GeoError, GeoLoad};
use syros_cli::{BytesText, regions};
use syros_experiment::{Distribution, Mix};
use syros_regions::Regions;
use syros_runtime::EngineKind;

use super::{FAR_TIMES, Figure as Options, Printer, ResolvedCell, VALUE_BYTES};
use crate::bench::directory::in_directory;
use crate::bench::progress::{Progress, REPETITIONS_MAX};

/// What of a load makes a cluster another one.
#[derive(PartialEq, Eq)]
struct ClusterShape {
    replicas: usize,
    regions: Option<&'static str>,
    storage: Storage,
    history: Option<u64>,
}

impl ClusterShape {
    const fn of(load: &Load) -> Self {
        let Load { replicas, regions, storage, history, .. } = load;
        Self { replicas: *replicas, regions: *regions, storage: *storage, history: *history }
    }

    /// Lines of the configuration of every node.
    fn settings(&self) -> String {
        let engine = match self.storage {
            Storage::Disk => EngineKind::Disk,
            Storage::Memory | Storage::Slow => EngineKind::Memory,
        };
        let mut settings = format!("durability = \"replicated\"\nengine = \"{}\"\n", engine.name());
        if let Some(bytes) = self.history {
            settings += &format!("\n[limits]\nhistory = \"{}\"\n", BytesText(bytes));
        }
        if self.storage == Storage::Slow {
            settings += &format!("\n[emulate]\nreads-per-second = {SLOW_READS}\n");
        }
        settings
    }
}

/// A cluster, near or far.
enum Cluster {
    Near(Box<Contender>),
    Far(Box<GeoCluster>, Regions),
}

/// Why a measurement came to nothing.
enum Problem {
    /// Another replica came to lead.
    Leader(String),
    Other(String),
}

/// Everything that runs.
struct ComparisonRun<'a> {
    options: &'a Options,
    directory: &'a Path,
    program: &'a Path,
    progress: Progress,
    is_interrupted: &'a dyn Fn() -> bool,
    /// Clusters started so far.
    started: usize,
}

/// Measures.
pub(super) fn run(figures: &[Figure], program: &Path, printer: &mut Printer<'_>) -> Result<(), String> {
    let options = printer.options;
    in_directory(options.servers.dir.as_ref(), "figure", |directory, is_interrupted| {
        let mut cells: Vec<_> = figures.iter().flat_map(Figure::cells).collect();
        cells.sort_unstable();
        cells.dedup();
        let runs = u32::try_from(cells.len() * options.rounds as usize).unwrap_or(u32::MAX);
        let whole = (options.warm_up() + options.duration()).saturating_mul(runs);
        let (progress, is_interrupted) = (Progress::new(whole), &*is_interrupted);
        let mut arena = ComparisonRun { options, directory, program, progress, is_interrupted, started: 0 };
        for figure in figures {
            let wanted = printer.missing(figure);
            arena.figure(figure, &wanted, printer)?;
            arena.progress.suspend(|| printer.finish(figure));
        }
        Ok(())
    })
}

impl ComparisonRun<'_> {
    /// Measures what is wanted of a figure, cluster by cluster: those of all its protocols run at the same time, and have
    /// something to do in turns.
    fn figure(
        &mut self,
        figure: &Figure,
        wanted: &[ResolvedCell],
        printer: &mut Printer<'_>,
    ) -> Result<(), String> {
        let mut places: Vec<ClusterShape> = Vec::new();
        for understood in wanted {
            let place = ClusterShape::of(&understood.cell.load);
            if !places.contains(&place) {
                places.push(place);
            }
        }
        for place in &places {
            let here: Vec<&ResolvedCell> = wanted
                .iter()
                .filter(|understood| ClusterShape::of(&understood.cell.load) == *place)
                .collect();
            let mut clusters: Vec<(&'static str, Cluster)> = Vec::new();
            for understood in &here {
                if !clusters.iter().any(|(name, _)| *name == understood.cell.protocol) {
                    clusters.push((understood.cell.protocol, self.start(place, understood)?));
                }
            }
            let mut loads: Vec<&Load> = Vec::new();
            for load in here.iter().map(|understood| &understood.cell.load) {
                if !loads.contains(&load) {
                    loads.push(load);
                }
            }
            for load in loads {
                let contenders: Vec<&&ResolvedCell> =
                    here.iter().filter(|understood| understood.cell.load == *load).collect();
                for round in 0..self.options.rounds as usize {
                    for contender in order(contenders.len(), round) {
                        let understood = contenders[contender];
                        let name = understood.cell.protocol;
                        let Some((_, cluster)) = clusters.iter_mut().find(|(of, _)| *of == name) else {
                            continue;
                        };
                        let sample = self.measure(figure.name, place, cluster, understood, round)?;
                        printer.add(&understood.cell, sample);
                    }
                }
            }
        }
        Ok(())
    }

    fn start(&mut self, place: &ClusterShape, understood: &ResolvedCell) -> Result<Cluster, String> {
        if (self.is_interrupted)() {
            return Err(CompareError::Interrupted.to_string());
        }
        let protocol = understood.protocol;
        self.progress.says(&format!("{protocol}: starting {} replicas", protocol.replicas(place.replicas)));
        let directory = self.directory.join(format!("{}-{protocol}", self.started));
        self.started += 1;
        let program = self.program.to_owned();
        match place.regions {
            None => {
                let replicas = protocol.replicas(place.replicas);
                let regions = regions::one_place(replicas, self.options.rtt_ms, 0.0)?;
                let settings = place.settings() + &regions::timing_of(regions.as_ref());
                let started =
                    Contender::start(program, directory, protocol, place.replicas, &settings, regions);
                let started = started.map_err(|error| format!("{protocol}: {error}"))?;
                Ok(Cluster::Near(Box::new(started)))
            }
            Some(name) => {
                let regions = regions::load(name)?;
                let settings = regions::timing_of(Some(&regions));
                let started = GeoCluster::start(program, directory, &regions, protocol, &settings);
                let started = started.map_err(|error| format!("{protocol}: {error}"))?;
                Ok(Cluster::Far(Box::new(started), regions))
            }
        }
    }

    /// A run in which another replica came to lead is made again, with a new cluster.
    fn measure(
        &mut self,
        figure: &str,
        place: &ClusterShape,
        cluster: &mut Cluster,
        understood: &ResolvedCell,
        round: usize,
    ) -> Result<Sample, String> {
        let load = &understood.cell.load;
        let name = format!(
            "{figure}: {}, workload {}, {}, clients: {}, round {} of {}",
            understood.protocol,
            load.workload,
            understood.choice,
            load.clients,
            round + 1,
            self.options.rounds
        );
        for repetition in 0.. {
            self.progress.run(&name);
            match self.once(cluster, understood, round) {
                Ok(sample) => {
                    self.progress.ran(self.options.warm_up() + self.options.duration());
                    return Ok(sample);
                }
                Err(Problem::Leader(problem)) if repetition < REPETITIONS_MAX => {
                    self.progress.warns(&format!("{name}: once more, with a new cluster: {problem}"));
                    *cluster = self.start(place, understood)?;
                }
                Err(Problem::Leader(problem) | Problem::Other(problem)) => {
                    return Err(format!("{name}: {problem}"));
                }
            }
        }
        Err(name)
    }

    fn once(
        &self,
        cluster: &mut Cluster,
        understood: &ResolvedCell,
        round: usize,
    ) -> Result<Sample, Problem> {
        let (options, load) = (self.options, &understood.cell.load);
        let seed = options.seed.wrapping_add(round as u64);
        let (warm_up, duration, keys) = (options.warm_up(), options.duration(), options.keys(load.keys));
        let times = if load.regions.is_some() { FAR_TIMES } else { 1 };
        let (warm_up, duration) = (warm_up * times, duration * times);
        let longest = warm_up + duration;
        let is_over = || {
            self.progress.goes_on(longest);
            (self.is_interrupted)()
        };
        match cluster {
            Cluster::Near(contender) => {
                let load = CompareLoad {
                    blend: understood.blend,
                    choice: understood.choice,
                    clients: load.clients,
                    connections: None,
                    keys,
                    value_bytes: VALUE_BYTES,
                    rate: None,
                    warm_up,
                    duration,
                    failed: load.failed,
                    seed,
                };
                contender.run(&load, &|_| is_over()).map_err(|error| match error {
                    CompareError::Leader { .. } => Problem::Leader(error.to_string()),
                    error => Problem::Other(error.to_string()),
                })
            }
            Cluster::Far(cluster, regions) => {
                let other = |error: syros_experiment::InvalidWorkload| Problem::Other(error.to_string());
                let geo = GeoLoad {
                    mix: load.workload.parse::<Mix>().map_err(other)?,
                    distribution: load.distribution.parse::<Distribution>().map_err(other)?,
                    keys,
                    value_bytes: VALUE_BYTES,
                    clients: load.clients,
                    warm_up,
                    duration,
                    operations: None,
                    seed,
                };
                let rows = cluster.run(&geo, &is_over).map_err(|error| match error {
                    GeoError::Leader(_) => Problem::Leader(error.to_string()),
                    error => Problem::Other(error.to_string()),
                })?;
                Ok(Sample::from_rows(&rows, load.clients * regions.clients().len(), load.replicas))
            }
        }
    }
}
