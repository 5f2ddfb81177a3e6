//! The closed loops.

use super::{GeoCluster, GeoError, GeoLoad};
use crate::clients::{Clients, Operations};
use core::time::Duration;
use std::time::Instant;
use syros_client::{Completion, Endpoint, Options, Outcome};
use syros_experiment::{Row, Workload};
use syros_protocol::client::{ReadCounts, WriteCounts};
use syros_types::Prng;

/// How often it is asked whether anybody wants more of it.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(100);

/// A client with one operation at a time.
struct ClosedLoopClient {
    /// Position of its region among those that have clients.
    row: usize,
    workload: Workload,
    is_read: bool,
    sent: Instant,
    /// How its operations had been answered when this one was sent.
    reads: ReadCounts,
    writes: WriteCounts,
}

/// All of it.
struct Experiment {
    clients: Clients,
    loops: Vec<ClosedLoopClient>,
    operations: Operations,
    rows: Vec<Row>,
}

/// Runs the clients and measures.
pub(super) fn run(
    cluster: &GeoCluster,
    load: &GeoLoad,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<Vec<Row>, GeoError> {
    let mut experiment = Experiment::new(cluster, load)?;
    let waited_before = cluster.slow_reads()?;
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
            let waited = cluster.slow_reads()?.saturating_sub(waited_before);
            return Ok(experiment.finish(waited));
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
            loops.push(ClosedLoopClient {
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
        let row = |region: &usize| Row::new(protocol, load.mix, load.distribution, regions.name(*region));
        Ok(Self {
            clients,
            loops,
            operations: Operations::new(load.value_bytes, &mut prng),
            rows: regions.clients().iter().map(row).collect(),
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

    /// The rows, when so many of the reads had to wait that the leader was asked for. It does not say of which
    /// they are: those that it answered at once are spread as evenly as there are.
    fn finish(mut self, waited: u64) -> Vec<Row> {
        let counts = (0..self.loops.len()).map(|client| self.clients.client(client).read_counts());
        let asked: u64 = counts.map(|counts| counts.leader + counts.referred).sum();
        for row in &mut self.rows {
            let by_leader = row.read_paths.get("leader").copied().unwrap_or_default();
            let at_once = u128::from(by_leader) * u128::from(asked.saturating_sub(waited));
            row.reads_at_once += (at_once / u128::from(asked.max(1))) as u64;
        }
        self.rows
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
            row.read(nanos, &before.named(), &after.named(), by_others);
        } else {
            row.write(nanos, &one.writes.named(), &client.write_counts().named());
        }
    }
}
