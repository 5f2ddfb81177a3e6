//! The closed loops.

use super::{GeoCluster, GeoError, GeoLoad, LEADER};
use crate::clients::{Clients, Operations};
use core::time::Duration;
use std::time::Instant;
use syros_client::{Completion, Endpoint, Options, Outcome};
use syros_experiment::{Regions, Row, Workload};
use syros_protocol::client::{ReadCounts, WriteCounts};
use syros_types::Prng;

/// How often it is asked whether anybody wants more of it.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(100);

/// A read that the leader answers takes one round trip if it takes no longer than that, a tenth more, and this:
/// what processes and relay take.
const OVERHEAD: Duration = Duration::from_millis(1);

/// A client with one operation at a time.
struct Loop {
    /// Position of its region among those that have clients.
    row: usize,
    workload: Workload,
    is_read: bool,
    sent: Instant,
    /// How its operations had been answered when this one was sent.
    reads: ReadCounts,
    writes: WriteCounts,
}

/// What leaders' answers are compared with.
fn leader_takes(regions: &Regions, region: usize) -> Duration {
    let leader = regions.replicas()[LEADER];
    let jitter = regions.line(region, leader).jitter + regions.line(leader, region).jitter;
    (regions.round_trip(region, leader) + jitter).mul_f64(1.1) + OVERHEAD
}

/// All of it.
struct Experiment {
    clients: Clients,
    loops: Vec<Loop>,
    operations: Operations,
    rows: Vec<Row>,
    /// The longest that a read of the leader takes in one round trip, of each row.
    leader_takes: Vec<Duration>,
}

/// Runs the clients and measures.
pub(super) fn run(
    cluster: &GeoCluster,
    load: &GeoLoad,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<Vec<Row>, GeoError> {
    let mut experiment = Experiment::new(cluster, load)?;
    for client in 0..experiment.loops.len() {
        experiment.ask(client);
    }
    let warm = Instant::now() + load.warm_up;
    let end = warm + load.duration;
    let mut completions = Vec::new();
    let mut measured = 0;
    loop {
        let now = Instant::now();
        let is_enough = load.operations.is_some_and(|operations| measured >= operations);
        if now >= end || is_enough {
            return Ok(experiment.rows);
        }
        if is_interrupted() {
            return Err(GeoError::Interrupted);
        }
        experiment.clients.turn(end.min(now + INTERRUPT_INTERVAL), &mut completions)?;
        let now = Instant::now();
        for Completion { user_token, outcome } in completions.drain(..) {
            let client = user_token as usize;
            if experiment.loops[client].sent >= warm {
                experiment.record(client, &outcome, now);
                measured += 1;
            }
            experiment.ask(client);
        }
    }
}

impl Experiment {
    fn new(cluster: &GeoCluster, load: &GeoLoad) -> Result<Self, GeoError> {
        let (regions, protocol) = (&cluster.regions, cluster.protocol);
        let places: Vec<usize> =
            regions.clients().iter().flat_map(|region| core::iter::repeat_n(*region, load.clients)).collect();
        let mut prng = Prng::new(load.seed);
        let (now, mut loops) = (Instant::now(), Vec::new());
        for client in 0..places.len() {
            loops.push(Loop {
                row: client / load.clients,
                workload: Workload::new(load.mix, load.distribution, load.keys, prng.fork())?,
                is_read: false,
                sent: now,
                reads: ReadCounts::default(),
                writes: WriteCounts::default(),
            });
        }
        let options = cluster.client_options();
        let settings = places.iter().map(|region| {
            let endpoints = cluster.cluster.addresses_from(*region).into_iter().map(Endpoint::from).collect();
            (endpoints, Options { seed: Some(prng.next_u64()), ..options.clone() })
        });
        let mut clients = Clients::new(settings)?;
        clients.connect(options.connect_timeout)?;
        let row = |region: &usize| Row {
            protocol: protocol.to_string(),
            workload: load.mix.to_string(),
            distribution: load.distribution.to_string(),
            region: regions.name(*region).to_owned(),
            ..Row::default()
        };
        Ok(Self {
            clients,
            loops,
            operations: Operations::new(load.value_bytes, &mut prng),
            rows: regions.clients().iter().map(row).collect(),
            leader_takes: regions.clients().iter().map(|region| leader_takes(regions, *region)).collect(),
        })
    }

    /// Has a client ask for its next operation.
    fn ask(&mut self, client: usize) {
        let (reads, writes) =
            (self.clients.client(client).read_counts(), self.clients.client(client).write_counts());
        let one = &mut self.loops[client];
        let asked = one.workload.draw();
        (one.is_read, one.reads, one.writes) = (asked.is_read, reads, writes);
        one.sent = Instant::now();
        let target = self.clients.active(client);
        self.operations.submit(target, asked.key, asked.is_read, client as u64);
    }

    fn record(&mut self, client: usize, outcome: &Outcome, now: Instant) {
        let one = &self.loops[client];
        let row = &mut self.rows[one.row];
        if !matches!(outcome, Outcome::Done | Outcome::Reply(_)) {
            row.failed += 1;
            return;
        }
        let took = now - one.sent;
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let client = self.clients.client(client);
        if one.is_read {
            let (before, after) = (&one.reads, client.read_counts());
            let by_others =
                after.meta + after.quorum + after.stale > before.meta + before.quorum + before.stale;
            let by_leader = after.leader > before.leader && took <= self.leader_takes[one.row];
            row.read(nanos, &before.named(), &after.named(), by_others || by_leader);
        } else {
            row.write(nanos, &one.writes.named(), &client.write_counts().named());
        }
    }
}
