//! The closed loop.

use crate::error::Error;
use crate::options::Options;
use crate::process::cpu_time;
use crate::report::{CpuUse, Failures, Latency, Load, Report};
use core::time::Duration;
use hdrhistogram::Histogram;
use mio::{Events, Poll};
use std::io::{ErrorKind, Write};
use std::time::Instant;
use syros_client::{Completion, EmbeddedClient, Outcome};
use syros_commands::{Command, Condition, Lifetime, Operation};
use syros_types::Prng;

/// Longest latency told apart from longer ones, in nanoseconds; longer ones count as this.
const LATENCY_NANOS_MAX: u64 = 100_000_000_000;

/// Digits of a latency that are kept.
const LATENCY_DIGITS: u8 = 3;

/// Events of one poll. More only come with the next one.
const EVENTS_MAX: usize = 256;

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
            Outcome::TimedOut => self.failures.timed_out += 1,
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

/// Makes the next operation: a key, and what to do with it.
struct Workload {
    prng: Prng,
    keys: u64,
    reads_percent: u64,
    key: Vec<u8>,
    value: Vec<u8>,
    body: Vec<u8>,
}

impl Workload {
    fn new(options: &Options) -> Self {
        let mut prng = Prng::new(options.seed);
        // Bytes that do not compress, in case anything on the way tries.
        let value = (0..options.value_bytes).map(|_| prng.next_u64() as u8).collect();
        let (keys, reads_percent) = (options.keys, u64::from(options.reads_percent));
        Self { prng, keys, reads_percent, key: Vec::new(), value, body: Vec::new() }
    }

    /// True if the next operation is to be a read.
    const fn choose(&mut self) -> bool {
        self.prng.chance(self.reads_percent, 100)
    }

    /// Submits the next operation.
    fn submit(&mut self, client: &mut EmbeddedClient, is_read: bool, user_token: u64) {
        self.key.clear();
        let number = self.prng.below(self.keys);
        write!(self.key, "key:{number:012}").expect("a buffer in memory takes everything");
        let (key, value) = (&self.key[..], &self.value[..]);
        let (condition, lifetime) = (Condition::Always, Lifetime::Forever);
        let operation = Operation::new(if is_read {
            Command::Get { key }
        } else {
            Command::Set { key, value, condition, lifetime, get: false }
        });
        self.body.clear();
        operation.encode(&mut self.body);
        let (class, footprint) = (operation.class(), operation.footprint());
        let submitted = client.submit(self.body.as_slice().into(), class, &footprint, user_token);
        submitted.expect("the client was told to take any number of operations");
    }
}

/// All clients on one event queue. A turn costs only what the clients cost that something happened to.
struct Clients {
    poll: Poll,
    events: Events,
    clients: Vec<Client>,
    /// Replicas in the group, and so tokens of each client.
    replicas: usize,
}

/// A client, and what must be known of it to leave it alone.
struct Client {
    client: EmbeddedClient,
    /// When it must have a turn even if nothing happens to it.
    deadline: Option<Instant>,
    /// Something has happened to it since its last flush.
    is_active: bool,
}

impl Clients {
    fn new(options: &Options) -> Result<Self, Error> {
        let poll = Poll::new().map_err(Error::System)?;
        let replicas = options.endpoints.len();
        let mut prng = Prng::new(options.client.seed.unwrap_or_default());
        let mut clients = Vec::with_capacity(options.connections);
        for index in 0..options.connections {
            let mut settings = options.client.clone();
            // The closed loop is the limit.
            settings.in_flight_max = usize::MAX;
            // Every client needs a seed of its own.
            settings.seed = settings.seed.map(|_| prng.next_u64());
            let endpoints = options.endpoints.clone();
            let client = EmbeddedClient::new(endpoints, settings, poll.registry(), index * replicas)?;
            clients.push(Client { client, deadline: None, is_active: true });
        }
        Ok(Self { poll, events: Events::with_capacity(EVENTS_MAX), clients, replicas })
    }

    /// One turn of all clients: sends, waits until something comes or until `until`, and reads.
    fn turn(&mut self, until: Instant, completions: &mut Vec<Completion>) -> Result<(), Error> {
        let now = Instant::now();
        let mut wake = until;
        for client in &mut self.clients {
            if core::mem::take(&mut client.is_active) {
                client.client.flush();
                client.deadline = client.client.wait().map(|wait| now + wait);
            }
            wake = client.deadline.map_or(wake, |deadline| deadline.min(wake));
        }
        match self.poll.poll(&mut self.events, Some(wake.saturating_duration_since(now))) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(Error::System(error)),
            _ => {}
        }
        for event in &self.events {
            let client = &mut self.clients[event.token().0 / self.replicas];
            client.is_active |= client.client.note(event);
        }
        let now = Instant::now();
        for client in &mut self.clients {
            if client.is_active || client.deadline.is_some_and(|deadline| now >= deadline) {
                client.is_active = true;
                client.client.turn(completions);
            }
        }
        Ok(())
    }
}

/// Makes the load and measures it, on the calling thread. Connects to every replica first.
///
/// # Errors
/// [`Error`]: the options make no sense, a replica cannot be reached, or the CPU time of a process cannot
/// be read.
pub fn run(options: &Options) -> Result<Report, Error> {
    options.check()?;
    let mut clients = Clients::new(options)?;
    let mut completions = Vec::with_capacity(options.writers);
    connect(options, &mut clients, &mut completions)?;

    let mut workload = Workload::new(options);
    let mut writers: Vec<Writer> = Vec::with_capacity(options.writers);
    for index in 0..options.writers {
        let (client, is_read) = (index % options.connections, workload.choose());
        let target = &mut clients.clients[client];
        workload.submit(&mut target.client, is_read, index as u64);
        target.is_active = true;
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
            writer.is_read = workload.choose();
            writer.sent = now;
            // The client is active, since it has just had a turn.
            workload.submit(&mut clients.clients[writer.client].client, writer.is_read, user_token);
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

/// Runs the clients until every one of them can talk to every replica.
fn connect(options: &Options, clients: &mut Clients, completions: &mut Vec<Completion>) -> Result<(), Error> {
    let until = Instant::now() + options.client.connect_timeout;
    loop {
        let mut links = clients.clients.iter().flat_map(|client| client.client.links());
        let Some(link) = links.find(|link| !link.is_connected) else { return Ok(()) };
        if Instant::now() >= until {
            return Err(Error::Unreachable(link.address, link.last_error));
        }
        drop(links);
        clients.turn(until, completions)?;
    }
}
