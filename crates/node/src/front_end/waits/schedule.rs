//! Nodes with front ends around one log, for tests in which what they submit is delayed, lost, or executed without an answer.
//! Nodes lag behind, die and come back. What clients do, each test says.

use super::*;
use syros_commands::{Parsed, parse};
use syros_storage::{Engine, MemoryEngine};
use syros_types::{Prng, WallTime};

pub(super) const NODES: u8 = 3;

/// A node, of which this is in flight.
pub(super) struct Node<F> {
    pub(super) waits: Waits,
    waited: WaitedKeys,
    engine: MemoryEngine,
    /// Entries of the log that the engine has executed.
    executed: usize,
    /// What has left and has no answer.
    pub(super) in_flight: Vec<F>,
    pub(super) is_up: bool,
}

/// Nodes around one log, and the time.
pub(super) struct Nodes<F> {
    pub(super) all: Vec<Node<F>>,
    leader: MemoryEngine,
    log: Vec<(WallTime, Body, Footprint)>,
    pub(super) now: Instant,
    pub(super) prng: Prng,
    lives: u64,
}

/// The operation of these words, and how it is submitted.
pub(super) fn words(command: &str) -> (Body, Footprint) {
    let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
    let Ok(Parsed::Data(operation)) = parse(&words) else { panic!("{command} is no operation") };
    let mut body = Vec::new();
    operation.encode_to_wait(&mut body);
    (Body::from(body), operation.footprint())
}

impl<F> Nodes<F> {
    /// Nodes whose log begins with these commands.
    pub(super) fn new(seed: u64, commands: impl IntoIterator<Item = String>) -> Self {
        let (leader, prng) = (MemoryEngine::new(), Prng::new(seed));
        let mut nodes = Self { all: Vec::new(), leader, log: Vec::new(), now: Instant(0), prng, lives: 0 };
        for command in commands {
            let (body, footprint) = words(&command);
            nodes.execute(body, footprint);
        }
        for number in 0..NODES {
            let node = nodes.node(number);
            nodes.all.push(node);
        }
        nodes
    }

    /// A node that begins a life.
    fn node(&mut self, number: u8) -> Node<F> {
        self.lives += 1;
        Node {
            waits: Waits::new(Some(ReplicaId(number)), self.lives << 8, Duration::from_secs(10), self.now),
            waited: WaitedKeys::default(),
            engine: self.leader.clone(),
            executed: self.log.len(),
            in_flight: Vec::new(),
            is_up: true,
        }
    }

    pub(super) fn wall(&self) -> WallTime {
        WallTime(self.now.0 / 1000)
    }

    pub(super) fn time(&self) -> Now {
        Now { instant: self.now, wall: self.wall() }
    }

    /// Executes an entry of the log; what is answered.
    pub(super) fn execute(&mut self, body: Body, footprint: Footprint) -> Body {
        let (time, mut reply) = (self.wall(), Vec::new());
        self.leader.apply(time, &body, &mut reply);
        self.log.push((time, body, footprint));
        Body::from(reply)
    }

    /// What the state of the log answers.
    pub(super) fn read(&self, body: &[u8]) -> Vec<u8> {
        let mut reply = Vec::new();
        self.leader.read(self.wall(), body, &mut reply);
        reply
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.prng.below(bound as u64) as usize
    }

    /// Takes something out of what a node has in flight.
    pub(super) fn take_one(&mut self, number: usize) -> Option<F> {
        let count = self.all[number].in_flight.len();
        if count == 0 {
            return None;
        }
        let at = self.below(count);
        Some(self.all[number].in_flight.swap_remove(at))
    }

    /// A node executes some entries that it has not executed, or all; or takes over the state of another one.
    pub(super) fn catch_up(&mut self, number: usize, all: bool) {
        let behind = self.log.len() - self.all[number].executed;
        let count = if all { behind } else { self.below(behind + 1) };
        if !all && self.prng.chance(1, 10) {
            let node = &mut self.all[number];
            (node.engine, node.executed) = (self.leader.clone(), self.log.len());
            return node.waited.on_state_replaced();
        }
        let node = &mut self.all[number];
        for (time, body, footprint) in &self.log[node.executed..node.executed + count] {
            node.engine.apply(*time, body, &mut Vec::new());
            node.waited.touch(footprint);
        }
        node.executed += count;
    }

    /// A node dies, unless another one is dead: what it had in flight.
    pub(super) fn kill(&mut self, number: usize) -> Vec<F> {
        if self.all.iter().any(|node| !node.is_up) {
            return Vec::new();
        }
        let node = &mut self.all[number];
        node.is_up = false;
        node.waits.waits.clear();
        std::mem::take(&mut node.in_flight)
    }

    pub(super) fn start(&mut self, number: usize) {
        if !self.all[number].is_up {
            self.all[number] = self.node(number as u8);
        }
    }

    /// A node that is up looks at its own state, and hears the answers.
    pub(super) fn look(&mut self, number: usize, hears: bool) {
        let (now, wall) = (self.now, self.wall());
        let node = &mut self.all[number];
        while let Some(Errand { kind: ErrandKind::Look(key), body, .. }) = node.waits.next_look() {
            let mut reply = Vec::new();
            node.engine.read(wall, &body, &mut reply);
            if hears {
                node.waits.on_look(now, key, Some(&reply));
            }
        }
    }

    /// What a node has executed changes what it looks at.
    pub(super) fn exchange(&mut self, number: usize) {
        let node = &mut self.all[number];
        node.waits.exchange(&mut node.waited);
    }

    /// The front ends that are up.
    pub(super) fn waits(&self) -> impl Iterator<Item = &Waits> {
        self.all.iter().filter(|node| node.is_up).map(|node| &node.waits)
    }
}
