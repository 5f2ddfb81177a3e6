//! Clusters in virtual time: nothing takes any but distance, and answers are checked.

use syros_experiment::{Distribution, KeyChoice, Mix};

use super::{Compare, Job, Printer};

/// From a client to a replica and back, and from a replica to another: that of `one-data-center`.
#[cfg(feature = "sim")]
const ROUND_TRIP_MS: f64 = 0.2;

/// A load as the simulator knows loads.
///
/// # Errors
/// It is more than that.
pub(super) fn known(job: &Job) -> Result<(Mix, Distribution), String> {
    let Job { workload, distribution, load, .. } = job;
    let mix = load.blend.as_mix().ok_or_else(|| {
        format!("--virtual: workload {workload} is more than reads and updates of single records")
    })?;
    match load.choice {
        KeyChoice::Of(distribution) => Ok((mix, distribution)),
        KeyChoice::Latest { .. } | KeyChoice::Hotspot { .. } => {
            Err(format!("--virtual: {distribution} is none of uniform, sequential and zipfian"))
        }
    }
}

/// Simulates.
#[cfg(feature = "sim")]
pub(super) fn run(options: &Compare, jobs: Vec<Job>, printer: &mut Printer<'_>) -> Result<(), String> {
    use super::progress::Progress;
    use syros_bench::compare::{Sample, order};
    use syros_experiment::{Protocol, Regions};

    let regions = |protocol: &Protocol| {
        let replicas = vec!["\"here\""; protocol.replicas(options.replicas)].join(", ");
        let text = format!(
            "replicas = [{replicas}]\nclients = [\"here\"]\n[[line]]\nwithin-each = true\nrtt-ms = {ROUND_TRIP_MS}\n"
        );
        Regions::parse(&text).map_err(|problem| format!("{protocol}: {problem}"))
    };
    let progress = Progress::new(std::time::Duration::ZERO);
    for mut job in jobs {
        let (mix, distribution) = known(&job)?;
        for round in 0..options.rounds as usize {
            for contender in order(options.protocols.len(), round) {
                let protocol = options.protocols[contender];
                progress.says(&format!("{protocol}: workload {}, round {}", job.workload, round + 1));
                let geo = syros_sim::geo::Geo {
                    regions: &regions(&protocol)?,
                    protocol,
                    mix,
                    distribution,
                    keys: job.load.keys,
                    clients: job.load.clients,
                    operations: options.operations,
                    history_bytes_max: None,
                    seed: options.seed.wrapping_add(round as u64),
                };
                let rows = geo.run().map_err(|problem| format!("{protocol}, {}: {problem}", job.workload))?;
                let replicas = protocol.replicas(options.replicas);
                let sample = Sample::from_rows(&rows, job.load.clients, replicas);
                progress.suspend(|| printer.sample(&mut job, contender, round, sample));
            }
        }
        progress.suspend(|| printer.finish(job));
    }
    Ok(())
}

#[cfg(not(feature = "sim"))]
pub(super) fn run(_options: &Compare, _jobs: Vec<Job>, _printer: &mut Printer<'_>) -> Result<(), String> {
    Err("--virtual: this program was built without the simulator".to_owned())
}
