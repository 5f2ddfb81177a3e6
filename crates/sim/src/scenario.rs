//! Scripted situations on the same world that seeds run in: build one, play it, judge it.

use crate::adapter;
use crate::clock::VirtualTime;
use crate::history::OperationIndex;
use crate::swarm::{FormationSettings, MILLI, SECOND, Swarm};
use crate::verdict;
use crate::workload::ClientCommand;
use crate::world::World;
use core::time::Duration;
use syros_protocol::client::Outcome;
use syros_protocol::message::StatusReport;
use syros_protocol::replica::{Durability, PlantedBug};
use syros_types::{FastQuorum, ReadPolicy};

/// A process, as scenarios name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// A member of the group.
    Replica(usize),
    /// A client, by the number [`Play::client`] gave it.
    Client(usize),
}

/// The settings of a scenario: nothing breaks but what the script breaks.
#[derive(Clone, Debug)]
pub struct Scenario {
    swarm: Swarm,
    planted: Option<PlantedBug>,
    trace: bool,
}

/// One-way delay of every link of a scenario, unless it says otherwise: 1 ms.
pub const DELAY: u64 = MILLI;

impl Scenario {
    /// A group of `replicas`, in majority mode, on disk, every link exactly [`DELAY`] long.
    #[must_use]
    pub fn new(replicas: usize) -> Self {
        let mut swarm = Swarm::quiet(replicas, FastQuorum::Majority, Durability::Fsync, DELAY);
        // Stories are about the answers of leaders, unless they say otherwise.
        swarm.protocol.direct_gain_min = Duration::from_secs(3600);
        Self { swarm, planted: None, trace: false }
    }

    /// The fast quorum mode.
    #[must_use]
    pub const fn fast_quorum(mut self, mode: FastQuorum) -> Self {
        self.swarm.fast_quorum = mode;
        self
    }

    /// When acknowledgements leave.
    #[must_use]
    pub const fn durability(mut self, durability: Durability) -> Self {
        self.swarm.durability = durability;
        self
    }

    /// Runs a known-wrong variant.
    #[must_use]
    pub const fn plant(mut self, bug: PlantedBug) -> Self {
        self.planted = Some(bug);
        self
    }

    /// Keeps a line of text for everything that happens.
    #[must_use]
    pub const fn trace(mut self) -> Self {
        self.trace = true;
        self
    }

    /// The group is to be formed yet, and its last `late` members are started only by [`Play::start_late`].
    #[must_use]
    pub fn unformed(mut self, late: usize) -> Self {
        self.swarm.formation = FormationSettings { unformed: Some(late), late_on_demand: true };
        self
    }

    /// Nothing is ordered unless somebody waits for it, and clients wait long before they ask the leader.
    #[must_use]
    pub fn unhurried(self) -> Self {
        self.with(|swarm| {
            swarm.protocol.replica.order_delay = Duration::from_secs(1);
            swarm.protocol.sync_after = Duration::from_secs(4);
            swarm.protocol.client_resend = Duration::from_secs(4);
        })
    }

    /// Changes any setting.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Swarm)) -> Self {
        change(&mut self.swarm);
        self
    }

    /// Starts the replicas and lets the first leader establish itself.
    #[must_use]
    pub fn start(self) -> Play {
        let mut play = Play { world: World::new(self.swarm, self.planted, self.trace) };
        play.run(100 * MILLI);
        play
    }
}

/// A scenario under way.
#[derive(Debug)]
pub struct Play {
    world: World,
}

impl Play {
    /// The world it plays in.
    pub const fn world(&mut self) -> &mut World {
        &mut self.world
    }

    /// True time, in nanoseconds.
    #[must_use]
    pub const fn now(&self) -> VirtualTime {
        self.world.now()
    }

    /// Adds a client, and has it connect and register its session by one operation on key 99.
    pub fn client(&mut self) -> usize {
        let slot = self.world.add_client();
        self.run(10 * MILLI);
        let first = self.submit(slot, ClientCommand::IncrBy { key: 99, delta: 1, blind: false });
        self.finish(first);
        // Let what this left pending be ordered.
        self.run(100 * MILLI);
        slot
    }

    /// As [`Self::client`], for one that reads in another way than the leader's.
    pub fn reader(&mut self, policy: ReadPolicy) -> usize {
        let before = self.world.swarm.workload.read_policy.replace(policy);
        let slot = self.client();
        self.world.swarm.workload.read_policy = before;
        slot
    }

    /// Lets time pass until something holds.
    ///
    /// # Panics
    /// If it never does.
    pub fn until(&mut self, what: &str, mut holds: impl FnMut(&mut Self) -> bool) {
        for _ in 0..100_000 {
            if holds(self) {
                return;
            }
            self.run(MILLI / 100);
        }
        panic!("never: {what}");
    }

    /// What a replica that runs says of itself.
    ///
    /// # Panics
    /// If it does not run.
    pub fn status(&mut self, replica: usize) -> StatusReport {
        self.world.replica(replica).expect("the replica runs").core().status()
    }

    /// Cuts a client off from these replicas: what it sends them is lost.
    pub fn cut_client(&mut self, client: usize, replicas: &[usize]) {
        replicas.iter().for_each(|replica| self.cut(Node::Client(client), Node::Replica(*replica)));
    }

    /// Lets time pass.
    pub fn run(&mut self, duration: u64) {
        self.world.run_until(self.world.now() + duration);
    }

    /// A client asks for an operation.
    pub fn submit(&mut self, client: usize, step: ClientCommand) -> OperationIndex {
        self.world.submit(client, vec![step])
    }

    /// How an operation ended, if it has.
    #[must_use]
    pub fn outcome(&self, operation: OperationIndex) -> Option<Outcome> {
        self.world.history().get(operation).finished.as_ref().map(|finished| finished.outcome.clone())
    }

    /// Lets time pass until an operation ends; returns how long it took, in nanoseconds.
    ///
    /// # Panics
    /// If it does not end within 30 virtual seconds, or an invariant breaks meanwhile.
    pub fn finish(&mut self, operation: OperationIndex) -> u64 {
        let deadline = self.world.now() + 30 * SECOND;
        while self.world.history().get(operation).finished.is_none() {
            assert!(
                self.world.step(deadline),
                "operation {operation} does not end: {}",
                self.world.statuses()
            );
            if let Some(violation) = self.world.violation() {
                panic!("{violation}");
            }
        }
        let invocation = self.world.history().get(operation);
        invocation.finished.as_ref().map_or(0, |finished| finished.at - invocation.invoked_at)
    }

    /// Asks for an operation and waits for its end.
    pub fn call(&mut self, client: usize, step: ClientCommand) -> Outcome {
        let operation = self.submit(client, step);
        self.finish(operation);
        self.outcome(operation).expect("it has ended")
    }

    /// Reads a key: its bytes, or `None` if there is no such key.
    ///
    /// # Panics
    /// If the read does not succeed.
    pub fn get(&mut self, client: usize, key: u64) -> Option<Vec<u8>> {
        match self.call(client, ClientCommand::Get(key)) {
            Outcome::Reply(body) => adapter::bulk(&body),
            other => panic!("the read ended as {other:?}"),
        }
    }

    /// The leader of the newest view that has one.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn leader(&self) -> usize {
        self.world.leader().expect("there is a leader")
    }

    fn index(&self, node: Node) -> usize {
        match node {
            Node::Replica(replica) => replica,
            Node::Client(slot) => self.world.client_node(slot),
        }
    }

    /// Cuts one direction between two processes.
    pub fn cut(&mut self, from: Node, to: Node) {
        let (from, to) = (self.index(from), self.index(to));
        self.world.network.set_cut(from, to, true);
    }

    /// Mends one direction between two processes.
    pub fn mend(&mut self, from: Node, to: Node) {
        let (from, to) = (self.index(from), self.index(to));
        self.world.network.set_cut(from, to, false);
    }

    /// Sets the delay of one direction between two processes, in nanoseconds.
    pub fn set_delay(&mut self, from: Node, to: Node, delay: u64) {
        let (from, to) = (self.index(from), self.index(to));
        self.world.network.set_delay(from, to, delay);
    }

    /// Makes both directions between two processes lines of a bandwidth: messages follow each other, and each takes as long
    /// as its bytes do.
    pub fn set_bandwidth(&mut self, one: Node, other: Node, bytes_per_second: u64) {
        let (one, other) = (self.index(one), self.index(other));
        let delay = Duration::from_nanos(DELAY);
        let line = syros_regions::Line { delay, bytes_per_second, ..syros_regions::Line::default() };
        for (from, to) in [(one, other), (other, one)] {
            self.world.network.set_line(from, to, line);
        }
    }

    /// Cuts the replicas into these pieces; clients reach everybody.
    pub fn partition(&mut self, pieces: &[&[usize]]) {
        self.world.partition(pieces);
    }

    /// Cuts a replica off from the other replicas; clients still reach it.
    pub fn isolate(&mut self, replica: usize) {
        self.world.isolate(replica, false);
    }

    /// Mends every link.
    pub fn mend_all(&mut self) {
        self.world.network.heal();
    }

    /// Starts a replica again with the lease that all are to have after the swarm's `lease_change`.
    pub fn reconfigure(&mut self, replica: usize) {
        self.world.reconfigure(replica);
    }

    /// Every sync of a replica's disk takes `delay` nanoseconds longer from now on.
    pub fn slow_disk(&mut self, replica: usize, delay: u64) {
        self.world.slow_disk(replica, delay, u64::MAX / 2);
    }

    /// Fills the disk of a replica, all but what it keeps in reserve, or gives the space back.
    pub fn fill_disk(&mut self, replica: usize, is_short: bool) {
        self.world.fill_disk(replica, if is_short { VirtualTime::MAX } else { 0 });
    }

    /// Moves the wall clock of a replica's machine by `micros`.
    pub fn jump_clock(&mut self, replica: usize, micros: i64) {
        self.world.jump_replica_clock(replica, micros);
    }

    /// Moves the wall clock of a client's machine by `micros`.
    pub fn jump_client_clock(&mut self, client: usize, micros: i64) {
        self.world.jump_client_clock(client, micros);
    }

    /// Breaks the connection between a client and a replica; the client opens another 50 ms later.
    pub fn break_connection(&mut self, client: usize, replica: usize) {
        let _ = self.world.break_connection(client, replica);
    }

    /// Asks a replica to let the group go by another mode.
    pub fn change_mode(&mut self, replica: usize, mode: FastQuorum) {
        self.world.change_mode(replica, mode);
    }

    /// Ends a replica process as a power failure does.
    pub fn crash(&mut self, replica: usize) {
        self.world.crash(replica, true);
    }

    /// Replaces the disk of a crashed replica by an empty one; somebody knows what view it had reached.
    pub fn lose_disk(&mut self, replica: usize) {
        self.world.replicas[replica].lost_disk = true;
    }

    /// Starts a crashed replica with an empty disk and `--bootstrap`. When it is refused, its own disk is put back.
    pub fn bootstrap(&mut self, replica: usize) {
        self.world.bootstrap(replica);
    }

    /// Takes the disk of a crashed replica away, and starts a new node that is to take its place.
    pub fn replace_node(&mut self, replica: usize) {
        self.world.begin_replacement(replica);
    }

    /// Starts the two nodes that the group is to grow by.
    pub fn join(&mut self) {
        self.world.grow();
    }

    /// Ends the node that is to take a place, or has taken it, and starts the one that was there before; or the other way.
    pub fn exchange_nodes(&mut self, replica: usize) {
        self.world.exchange_nodes(replica);
    }

    /// Starts a member for the first time.
    pub fn start_late(&mut self, replica: usize) {
        self.world.greet_soon(replica);
    }

    /// Starts a crashed replica.
    pub fn restart(&mut self, replica: usize) {
        self.world.restart(replica);
    }

    /// Repairs everything, and judges: the group gets going again, all replicas become equal, and the
    /// history is linearizable.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn judge(mut self) -> Result<(), String> {
        let settled = self.world.liveness_phase();
        self.world.violation().map_or(Ok(()), Err)?;
        verdict::judge(&self.world.history, &self.world.invariants, None)?;
        settled
    }
}
