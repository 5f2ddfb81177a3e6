//! Experiments with distance, in virtual time: the real cores between regions. What takes time is distance and, if it
//! is said what that is, the work of replicas ([`Cost`]).
//!
//! Clients are closed loops: each asks for its next operation when the last one has ended. What they were
//! told is judged like any other history of the simulator.

use crate::clock::VirtualTime;
use crate::history::OperationIndex;
use crate::swarm::{MILLI, SECOND, Swarm};
use crate::verdict;
use crate::workload::ClientCommand;
use crate::world::World;
use core::time::Duration;
use syros_experiment::{
    Blend, Cost, KeyChoice, OperationKind, OperationStream, Part, Paths, Records, Row, VirtualRun,
};
use syros_protocol::client::Outcome;
use syros_protocol::replica::Durability;
use syros_regions::Regions;
use syros_types::{Prng, Protocol};

/// Most clients: there is a line between any two of them and the replicas.
pub const CLIENTS_MAX: usize = 256;

/// Most operations: whether they are linearizable is found out in a time that grows with their square.
pub const OPERATIONS_MAX: u64 = 1_000_000;

/// Most keys: they are told apart from counters and files by the number alone, of 32 bits.
pub const KEYS_MAX: u64 = 1_000_000_000;

/// The numbers of keys that counters and files have, after those of records.
const COUNTERS: u64 = 2 * KEYS_MAX;
const FILES: u64 = 3 * KEYS_MAX;
const _: () = assert!(FILES + KEYS_MAX < 1 << 32 && KEYS_MAX >= OPERATIONS_MAX);

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
    pub blend: Blend,
    /// Of which keys.
    pub choice: KeyChoice,
    /// Number of keys. None has been written before: to a protocol, a value that is missing is one like others.
    pub keys: u64,
    /// Clients in each region that has any; [`CLIENTS_MAX`] altogether at most.
    pub clients: usize,
    /// Operations that are measured, over all clients. A tenth as many come first and are not.
    pub operations: u64,
    /// Bytes that a leader's history may take; `None` for the default.
    pub history_bytes_max: Option<usize>,
    /// What takes replicas time.
    pub cost: Cost,
    /// Followers that end, the last ones, when everybody has connected.
    pub failed: usize,
    /// Seed of all choices.
    pub seed: u64,
}

/// A client's operation, and the request of it that is in flight.
struct Asked {
    step: syros_experiment::WorkloadOperation,
    part: Part,
    request: OperationIndex,
    /// When the operation began.
    began: VirtualTime,
    reads_before: Paths<7>,
    writes_before: Paths<3>,
}

/// A client of a region.
struct RegionClient {
    /// Position of its row.
    row: usize,
    steps: OperationStream,
    asked: Option<Asked>,
}

/// An experiment under way.
struct Experiment<'a> {
    geo: &'a Geo<'a>,
    world: World,
    clients: Vec<RegionClient>,
    records: Records,
    rows: Vec<Row>,
    /// Operations not asked for yet.
    left: u64,
    /// Operations that have ended.
    done: u64,
    /// Operations that come first and are not measured.
    warm_up: u64,
    /// When they had ended, how busy the replicas had been, and how many reads had to wait.
    began: Option<(VirtualTime, Vec<Duration>, u64)>,
    /// What has come of the measurement so far.
    course: VirtualRun,
}

impl Geo<'_> {
    /// Runs it: one row for each region that has clients.
    ///
    /// # Errors
    /// What cannot be, or what is wrong with what came of it, in words.
    pub fn run(&self) -> Result<Vec<Row>, String> {
        self.measure().map(|run| run.rows)
    }

    /// Runs it, and says more of what came of it.
    ///
    /// # Errors
    /// As [`Geo::run`].
    pub fn measure(&self) -> Result<VirtualRun, String> {
        self.check()?;
        let mut experiment = Experiment::new(self, self.clients_in_all())?;
        experiment.run()?;
        verdict::judge(&experiment.world.history, &experiment.world.invariants, None)?;
        Ok(experiment.finish())
    }

    fn clients_in_all(&self) -> usize {
        self.clients.saturating_mul(self.regions.clients().len())
    }

    /// Checks what can be known before anything has happened.
    ///
    /// # Errors
    /// What there is too much of, or nothing, with the limit.
    pub fn check(&self) -> Result<(), String> {
        let count = self.clients_in_all();
        let faults = self.regions.group().faults();
        if self.failed > faults {
            return Err(format!("{} failed replicas are not 0 to {faults}", self.failed));
        }
        let limits = [
            ("clients", count as u64, CLIENTS_MAX as u64),
            ("operations", self.operations, OPERATIONS_MAX),
            ("keys", self.keys, KEYS_MAX),
        ];
        if let Some((name, number, max)) = limits.iter().find(|(_, number, max)| !(1..=*max).contains(number))
        {
            return Err(format!(
                "{number} {name} are not 1 to {max}, for which there is room in virtual time"
            ));
        }
        Ok(())
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
            protocol.replica.history_bytes_max = bytes;
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
}

impl<'a> Experiment<'a> {
    fn new(geo: &'a Geo<'a>, count: usize) -> Result<Self, String> {
        let mut world = World::with_room(geo.swarm(), None, false, count);
        world.cost = geo.cost;
        world.cores = vec![0; geo.cost.cores as usize];
        geo.shape(&mut world);
        let mut rows: Vec<Row> = Vec::new();
        for region in geo.regions.clients() {
            rows.push(Row::new(geo.protocol, geo.blend, geo.choice, geo.regions.name(*region)));
        }
        let mut prng = Prng::new(geo.seed);
        let mut clients = Vec::new();
        for row in 0..rows.len() {
            for _ in 0..geo.clients {
                world.add_client();
                let steps = OperationStream::new(geo.blend, geo.choice, geo.keys, prng.fork());
                let steps = steps.map_err(|error| error.to_string())?;
                clients.push(RegionClient { row, steps, asked: None });
            }
        }
        let warm_up = geo.operations / 10;
        Ok(Self {
            geo,
            world,
            clients,
            records: Records::new(if geo.blend.is_load() { 0 } else { geo.keys }),
            rows,
            left: geo.operations + warm_up,
            done: 0,
            warm_up,
            began: None,
            course: VirtualRun::default(),
        })
    }

    fn run(&mut self) -> Result<(), String> {
        // Connections, and the first leader's establishment.
        self.world.run_until(self.world.now() + SECOND);
        let leader = self.world.leader();
        let followers = (0..self.world.replicas.len()).rev().filter(|replica| Some(*replica) != leader);
        for replica in followers.take(self.geo.failed).collect::<Vec<_>>() {
            self.world.crash(replica, false);
        }
        let mut deadline = self.world.now() + PATIENCE;
        if self.warm_up == 0 {
            self.begin();
        }
        for slot in 0..self.clients.len() {
            self.ask(slot);
        }
        while self.clients.iter().any(|client| client.asked.is_some()) {
            // Only what has ended is of interest.
            self.world.run_until_one_ends(deadline)?;
            for slot in 0..self.clients.len() {
                let ended = |asked: &Asked| self.world.history.get(asked.request).finished.is_some();
                if self.clients[slot].asked.as_ref().is_some_and(ended) {
                    deadline = self.world.now() + PATIENCE;
                    self.end(slot);
                }
            }
        }
        Ok(())
    }

    /// The measurement begins.
    fn begin(&mut self) {
        self.began = Some((self.world.now(), self.world.busy(), self.slow_reads()));
    }

    /// Reads that replicas let wait so far.
    fn slow_reads(&self) -> u64 {
        let processes = (0..self.world.replicas.len()).filter_map(|replica| self.world.replica(replica));
        processes.map(|process| process.core().status().slow_reads).sum()
    }

    /// Has a client ask for its next operation, if there are any left.
    fn ask(&mut self, slot: usize) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        let began = self.world.now();
        let step = self.clients[slot].steps.draw(&mut self.records, Duration::from_nanos(began));
        self.request(slot, step, step.kind.first(), began);
    }

    /// Has a client send a request of an operation.
    fn request(
        &mut self,
        slot: usize,
        step: syros_experiment::WorkloadOperation,
        part: Part,
        began: VirtualTime,
    ) {
        let (reads_before, writes_before) = paths(&self.world, slot);
        // A value that nobody else writes.
        let value = || format!("v{}", self.left).into_bytes();
        let command = match (step.kind, part) {
            (OperationKind::Scan, _) => ClientCommand::MGet((step.key..step.key + step.records).collect()),
            (OperationKind::Increment, _) => {
                ClientCommand::IncrBy { key: COUNTERS + step.key, delta: 1, blind: false }
            }
            (OperationKind::Append, _) => {
                ClientCommand::Append { key: FILES + step.key, value: value(), blind: true }
            }
            (_, Part::Read) => ClientCommand::Get(step.key),
            (_, Part::Update) => ClientCommand::Set(step.key, value()),
        };
        let request = self.world.submit(slot, vec![command]);
        self.clients[slot].asked = Some(Asked { step, part, request, began, reads_before, writes_before });
    }

    /// A request of a client has ended.
    fn end(&mut self, slot: usize) {
        let Some(asked) = self.clients[slot].asked.take() else { return };
        let Asked { step, part, began, .. } = asked;
        let is_measured = self.began.is_some();
        let is_good = self.record(slot, &asked, is_measured);
        if is_good && let Some(second) = step.kind.after(part) {
            return self.request(slot, step, second, began);
        }
        let now = Duration::from_nanos(self.world.now());
        self.clients[slot].steps.end(step, &mut self.records, now);
        self.done += 1;
        if let Some((began, before, _)) = &self.began
            && self.left > 0
        {
            // From the first client on that has nothing more to do there is less load than there should be.
            self.course.ended += 1;
            self.course.time = Duration::from_nanos(self.world.now() - began);
            let busy = self.world.busy().into_iter().zip(before);
            self.course.busy = busy.map(|(after, before)| after.saturating_sub(*before)).collect();
        }
        if self.done == self.warm_up {
            self.begin();
        }
        self.ask(slot);
    }

    /// Takes note of how a request ended, if it is measured. False if it failed.
    fn record(&mut self, slot: usize, asked: &Asked, is_measured: bool) -> bool {
        let invocation = self.world.history.get(asked.request);
        let Some(finished) = &invocation.finished else { return false };
        let is_good = matches!(finished.outcome, Outcome::Done | Outcome::Reply(_));
        if !is_measured {
            return is_good;
        }
        let row = self.clients[slot].row;
        let region = self.geo.regions.clients()[row];
        if !is_good {
            self.rows[row].failed += 1;
            return false;
        }
        let (took, all) = (finished.at - invocation.invoked_at, finished.at - asked.began);
        let (reads, writes) = paths(&self.world, slot);
        let at_once = self.at_once(region, took, &asked.reads_before, &reads);
        let row = &mut self.rows[row];
        let is_last = asked.step.kind.after(asked.part).is_none();
        row.of_part(asked.part, took);
        if is_last {
            row.of_kind(asked.step.kind, all);
        }
        match (asked.part, is_last, asked.step.kind) {
            (Part::Read, true, _) => row.read(took, &asked.reads_before, &reads, at_once),
            (Part::Read, false, _) => row.read_paths(&asked.reads_before, &reads, at_once),
            (Part::Update, _, OperationKind::ReadModifyWrite) => row.pair(all, &asked.writes_before, &writes),
            (Part::Update, ..) => row.write(took, &asked.writes_before, &writes),
        }
        true
    }

    /// True if a read took one round trip to those that were asked first. Of the leader alone it is the time
    /// that tells: it may have ordered something first. Where work takes time too, the leader's own count does, in the
    /// end.
    fn at_once(&self, here: usize, took: VirtualTime, before: &Paths<7>, after: &Paths<7>) -> bool {
        let path = after.iter().zip(before).find(|(after, before)| after.1 > before.1);
        match path.map(|(after, _)| after.0) {
            Some("meta" | "quorum" | "stale") => true,
            Some("leader" | "several") if !self.geo.cost.is_none() => true,
            Some("leader" | "several") => {
                let regions = self.geo.regions;
                self.world.leader().is_some_and(|leader| {
                    let leader = regions.replicas()[leader];
                    let jitter = regions.line(here, leader).jitter + regions.line(leader, here).jitter;
                    u128::from(took) <= (regions.round_trip(here, leader) + jitter).as_nanos()
                })
            }
            _ => false,
        }
    }

    fn finish(mut self) -> VirtualRun {
        if !self.geo.cost.is_none()
            && let Some((_, _, before)) = self.began
        {
            // Nobody says which reads those were that waited: they count where reads are.
            let mut waited = self.slow_reads() - before;
            for row in &mut self.rows {
                let here = waited.min(row.reads_at_once);
                row.reads_at_once -= here;
                waited -= here;
            }
        }
        self.course.rows = self.rows;
        self.course.trace_hash = self.world.trace.hash();
        self.course
    }
}

/// How the operations of a client have been answered.
fn paths(world: &World, slot: usize) -> (Paths<7>, Paths<3>) {
    let client = world.clients[slot].process.as_ref().expect("clients do not end");
    (client.core().read_counts().named(), client.core().write_counts().named())
}
