//! The closed loop.

use crate::clients::{Clients, Operations};
use crate::error::Error;
use crate::options::Options;
use crate::process::cpu_time;
use crate::report::{CpuUse, Failures, Latency, Load, Report};
use core::time::Duration;
use hdrhistogram::Histogram;
use std::time::Instant;
use syros_client::{Completion, EmbeddedClient, Outcome};
use syros_experiment::{Asked, Mix, Workload};
use syros_types::Prng;

/// Longest latency told apart from longer ones, in nanoseconds; longer ones count as this.
const LATENCY_NANOS_MAX: u64 = 100_000_000_000;

/// Digits of a latency that are kept.
const LATENCY_DIGITS: u8 = 3;

/// A writer: one operation at a time.
#[derive(Clone, Copy, Debug)]
struct Writer {
    /// Index of its client.
    client: usize,
    /// When its operation was sent.
    sent: Instant,
    is_read: bool,
}

/// What has been measured so far.
struct Measurement {
    started: Instant,
    writes: Histogram<u64>,
    reads: Histogram<u64>,
    failures: Failures,
    /// CPU time at the start: of the replicas, and of this process.
    cpu: Vec<Duration>,
}

impl Measurement {
    fn start(options: &Options) -> Result<Self, Error> {
        let histogram = || {
            Histogram::new_with_bounds(1, LATENCY_NANOS_MAX, LATENCY_DIGITS)
                .expect("the bounds are constants")
        };
        let cpu = cpu_times(options)?;
        let (writes, reads, failures) = (histogram(), histogram(), Failures::default());
        Ok(Self { started: Instant::now(), writes, reads, failures, cpu })
    }

    fn answered(&self) -> u64 {
        self.writes.len() + self.reads.len()
    }

    fn record(&mut self, writer: &Writer, outcome: &Outcome, now: Instant) {
        let latency = u64::try_from(now.duration_since(writer.sent).as_nanos()).unwrap_or(u64::MAX);
        match outcome {
            Outcome::Done | Outcome::Reply(_) if writer.is_read => self.reads.saturating_record(latency),
            Outcome::Done | Outcome::Reply(_) => self.writes.saturating_record(latency),
            Outcome::Refused(_) => self.failures.refused += 1,
            Outcome::Unknown => self.failures.unknown += 1,
            Outcome::TimedOut | Outcome::NoQuorum => self.failures.timed_out += 1,
        }
    }

    fn report(&self, options: &Options) -> Result<Report, Error> {
        let seconds = self.started.elapsed().as_secs_f64();
        let operations = self.answered();
        let pids = options.replica_pids.iter().copied().chain([std::process::id()]);
        let times =
            cpu_times(options)?.into_iter().zip(&self.cpu).map(|(now, then)| now.saturating_sub(*then));
        let mut cpu: Vec<CpuUse> =
            pids.zip(times).map(|(pid, time)| CpuUse::new(pid, time, operations)).collect();
        let client = cpu.pop().expect("this process is the last of them");
        Ok(Report {
            operations,
            seconds,
            throughput: operations as f64 / seconds,
            writes: Latency::of(&self.writes),
            reads: Latency::of(&self.reads),
            failures: self.failures,
            replicas: cpu,
            client,
            load: Load::of(options),
        })
    }
}

fn cpu_times(options: &Options) -> Result<Vec<Duration>, Error> {
    options.replica_pids.iter().copied().chain([std::process::id()]).map(cpu_time).collect()
}

/// Makes the operations of all writers.
struct Work {
    workload: Workload,
    operations: Operations,
}

impl Work {
    fn new(options: &Options) -> Result<Self, Error> {
        let mut prng = Prng::new(options.seed);
        let operations = Operations::new(options.value_bytes, &mut prng);
        let mix = Mix { reads_percent: options.reads_percent };
        let workload = Workload::new(mix, options.distribution, options.keys, prng)?;
        Ok(Self { workload, operations })
    }

    /// Submits the next operation; true if it is a read.
    fn submit(&mut self, client: &mut EmbeddedClient, user_token: u64) -> bool {
        let Asked { key, is_read } = self.workload.draw();
        self.operations.submit(client, key, is_read, user_token);
        is_read
    }
}

fn connected_clients(options: &Options) -> Result<Clients, Error> {
    let mut prng = Prng::new(options.client.seed.unwrap_or_default());
    let settings = (0..options.connections).map(|_| {
        let mut settings = options.client.clone();
        // The closed loop is the limit.
        settings.settings.in_flight_max = usize::MAX;
        // Every client needs a seed of its own.
        settings.seed = settings.seed.map(|_| prng.next_u64());
        (options.endpoints.clone(), settings)
    });
    let mut clients = Clients::new(settings)?;
    clients.connect(options.client.connect_timeout)?;
    Ok(clients)
}

/// Makes the load and measures it, on the calling thread. Connects to every replica first.
///
/// # Errors
/// [`Error`]: the options make no sense, a replica cannot be reached, or the CPU time of a process cannot
/// be read.
pub fn run(options: &Options) -> Result<Report, Error> {
    options.check()?;
    let mut clients = connected_clients(options)?;
    let mut completions = Vec::with_capacity(options.writers);

    let mut work = Work::new(options)?;
    let mut writers: Vec<Writer> = Vec::with_capacity(options.writers);
    for index in 0..options.writers {
        let client = index % options.connections;
        let is_read = work.submit(clients.active(client), index as u64);
        writers.push(Writer { client, sent: Instant::now(), is_read });
    }

    let warm = Instant::now() + options.warm_up;
    let mut end = warm;
    let mut measurement: Option<Measurement> = None;
    loop {
        clients.turn(end, &mut completions)?;
        let now = Instant::now();
        for Completion { user_token, outcome } in completions.drain(..) {
            let writer = &mut writers[user_token as usize];
            if let Some(measurement) = &mut measurement {
                measurement.record(writer, &outcome, now);
            }
            writer.sent = now;
            writer.is_read = work.submit(clients.active(writer.client), user_token);
        }
        match &measurement {
            None if now >= warm => {
                let started = Measurement::start(options)?;
                end = started.started + options.duration;
                measurement = Some(started);
            }
            Some(measurement)
                if now >= end || options.operations.is_some_and(|limit| measurement.answered() >= limit) =>
            {
                return measurement.report(options);
            }
            _ => {}
        }
    }
}
