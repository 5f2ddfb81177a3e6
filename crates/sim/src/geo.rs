//! Experiments with distance, in virtual time: the real cores between regions, nothing else takes time.
//!
//! Clients are closed loops: each asks for its next operation when the last one has ended. What they were
//! told is judged like any other history of the simulator.

use crate::clock::VirtualTime;
use crate::history::OperationIndex;
use crate::swarm::{MILLI, SECOND, Swarm};
use crate::verdict;
use crate::workload::Step;
use crate::world::World;
use core::time::Duration;
use syros_experiment::{Distribution, Mix, Paths, Protocol, Regions, Row, Workload};
use syros_protocol::client::Outcome;
use syros_protocol::history::ChangeHistory;
use syros_protocol::replica::Durability;
use syros_types::Prng;

/// Most clients: after each event every one of them is looked at.
pub const CLIENTS_MAX: usize = 256;

/// An operation that takes longer is one that never ends.
const PATIENCE: u64 = 60 * SECOND;

/// Replicas' states are compared after every so many entries: there may be many keys, and nothing is broken on purpose.
const COMPARE_EVERY: u64 = 1_000;

/// One experiment.
#[derive(Clone, Debug)]
pub struct Geo<'a> {
    /// Where everybody is.
    pub regions: &'a Regions,
    /// What is measured.
    pub protocol: Protocol,
    /// What clients ask for.
    pub mix: Mix,
    /// Of which keys.
    pub distribution: Distribution,
    /// Number of keys.
    pub keys: u64,
    /// Clients in each region that has any; [`CLIENTS_MAX`] altogether at most.
    pub clients: usize,
    /// Operations that are measured, over all clients. A tenth as many come first and are not.
    pub operations: u64,
    /// Bytes that a leader's history may take; `None` for the default.
    pub history_bytes_max: Option<usize>,
    /// Seed of all choices.
    pub seed: u64,
}

/// A client's operation.
struct Asked {
    operation: OperationIndex,
    is_read: bool,
    reads_before: Paths<7>,
    writes_before: Paths<3>,
}

/// A client of a region.
struct Place {
    /// Position of its row.
    row: usize,
    workload: Workload,
    asked: Option<Asked>,
}

impl Geo<'_> {
    /// Runs it: one row for each region that has clients.
    ///
    /// # Errors
    /// What cannot be, or what is wrong with what came of it, in words.
    pub fn run(&self) -> Result<Vec<Row>, String> {
        let count = self.clients * self.regions.clients().len();
        if !(1..=CLIENTS_MAX).contains(&count) {
            return Err(format!(
                "{count} clients are not 1 to {CLIENTS_MAX}, for which there is room in virtual time"
            ));
        }
        let mut world = World::with_room(self.swarm(), None, false, count);
        self.shape(&mut world);
        let mut rows: Vec<Row> = Vec::new();
        for region in self.regions.clients() {
            let name = self.regions.name(*region);
            rows.push(Row::new(self.protocol, self.mix, self.distribution, name));
        }
        let mut prng = Prng::new(self.seed);
        let mut places = Vec::new();
        for row in 0..rows.len() {
            for _ in 0..self.clients {
                world.add_client();
                let workload = Workload::new(self.mix, self.distribution, self.keys, prng.fork());
                let workload = workload.map_err(|error| error.to_string())?;
                places.push(Place { row, workload, asked: None });
            }
        }
        // Connections, and the first leader's establishment.
        world.run_until(world.now() + SECOND);
        let warm_up = self.operations / 10;
        let (mut left, mut done) = (self.operations + warm_up, 0);
        let mut deadline = world.now() + PATIENCE;
        for (slot, place) in places.iter_mut().enumerate() {
            ask(&mut world, slot, place, &mut left);
        }
        while places.iter().any(|place| place.asked.is_some()) {
            if !world.step(deadline) {
                return Err(format!("operations do not end: {}", world.statuses()));
            }
            if let Some(violation) = world.violation() {
                return Err(violation);
            }
            for (slot, place) in places.iter_mut().enumerate() {
                let ended = |asked: &Asked| world.history.get(asked.operation).finished.is_some();
                if !place.asked.as_ref().is_some_and(ended) {
                    continue;
                }
                deadline = world.now() + PATIENCE;
                done += 1;
                if let Some(asked) = place.asked.take()
                    && done > warm_up
                {
                    let region = self.regions.clients()[place.row];
                    self.record(&world, slot, &asked, region, &mut rows[place.row]);
                }
                ask(&mut world, slot, place, &mut left);
            }
        }
        verdict::judge(&world.history, &world.invariants)?;
        Ok(rows)
    }

    fn swarm(&self) -> Swarm {
        let replicas = self.regions.group().size();
        let mut swarm = Swarm::quiet(replicas, self.protocol.fast_quorum, Durability::Replicated, MILLI);
        swarm.seed = self.seed;
        swarm.follow(&self.protocol);
        swarm.compare_every = COMPARE_EVERY;
        let protocol = &mut swarm.protocol;
        protocol.patience = self.regions.patience();
        protocol.client_resend *= self.regions.patience_of_clients();
        protocol.give_up_after = Duration::from_secs(30);
        if let Some(bytes) = self.history_bytes_max {
            protocol.history_changes_max = bytes / ChangeHistory::CHANGE_BYTES;
        }
        swarm
    }

    /// Gives every link the length it has between its ends' regions.
    fn shape(&self, world: &mut World) {
        let of_clients =
            self.regions.clients().iter().flat_map(|region| core::iter::repeat_n(region, self.clients));
        let nodes: Vec<usize> = self.regions.replicas().iter().chain(of_clients).copied().collect();
        for (from, from_region) in nodes.iter().enumerate() {
            for (to, to_region) in nodes.iter().enumerate().filter(|(to, _)| *to != from) {
                world.network.set_line(from, to, self.regions.line(*from_region, *to_region));
            }
        }
    }

    fn record(&self, world: &World, slot: usize, asked: &Asked, region: usize, row: &mut Row) {
        let invocation = world.history.get(asked.operation);
        let Some(finished) = &invocation.finished else { return };
        if !matches!(finished.outcome, Outcome::Done | Outcome::Reply(_)) {
            row.failed += 1;
            return;
        }
        let took = finished.at - invocation.invoked_at;
        let (reads, writes) = paths(world, slot);
        if asked.is_read {
            let at_once = self.at_once(world, region, took, &asked.reads_before, &reads);
            row.read(took, &asked.reads_before, &reads, at_once);
        } else {
            row.write(took, &asked.writes_before, &writes);
        }
    }

    /// True if a read took one round trip to those that were asked first. Of the leader alone it is the time
    /// that tells: it may have ordered something first.
    fn at_once(
        &self,
        world: &World,
        here: usize,
        took: VirtualTime,
        before: &Paths<7>,
        after: &Paths<7>,
    ) -> bool {
        let path = after.iter().zip(before).find(|(after, before)| after.1 > before.1);
        match path.map(|(after, _)| after.0) {
            Some("meta" | "quorum" | "stale") => true,
            Some("leader") => {
                let regions = self.regions;
                world.leader().is_some_and(|leader| {
                    let leader = regions.replicas()[leader];
                    let jitter = regions.line(here, leader).jitter + regions.line(leader, here).jitter;
                    u128::from(took) <= (regions.round_trip(here, leader) + jitter).as_nanos()
                })
            }
            _ => false,
        }
    }
}

/// How the operations of a client have been answered.
fn paths(world: &World, slot: usize) -> (Paths<7>, Paths<3>) {
    let client = world.clients[slot].process.as_ref().expect("clients do not end");
    (client.core.read_counts().named(), client.core.write_counts().named())
}

/// Has a client ask for its next operation, if there are any left.
fn ask(world: &mut World, slot: usize, place: &mut Place, left: &mut u64) {
    if *left == 0 {
        return;
    }
    *left -= 1;
    let (reads_before, writes_before) = paths(world, slot);
    let drawn = place.workload.draw();
    // A value that nobody else writes.
    let value = || format!("v{left}").into_bytes();
    let step = if drawn.is_read { Step::Get(drawn.key) } else { Step::Set(drawn.key, value()) };
    let operation = world.submit(slot, vec![step]);
    place.asked = Some(Asked { operation, is_read: drawn.is_read, reads_before, writes_before });
}
