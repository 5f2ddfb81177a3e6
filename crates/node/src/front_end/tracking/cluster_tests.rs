//! Clients that keep copies, at nodes around one log: nodes lag, reads are answered by their own replica or by others, replies
//! come late, states are replaced. One seed is one schedule.
//!
//! A reply must never show another value than the client's copy, which an invalidation should have removed before. And when
//! all nodes have executed everything, every copy is what the key is.

use super::*;
use std::collections::VecDeque;
use syros_commands::{Parsed, parse};
use syros_resp::TrackingChoice;
use syros_storage::{Engine, MemoryEngine};
use syros_types::{Prng, WallTime};

const NODES: usize = 3;
const CLIENTS: u64 = 3;
const KEYS: [&str; 4] = ["a", "b", "c", "cc"];

/// A command that a client waits for.
#[derive(Debug)]
struct UnderWay {
    body: Vec<u8>,
    keys: Vec<&'static str>,
    /// Entries that were committed when it was submitted.
    committed: usize,
    is_update: bool,
    /// What it is answered, once it has been executed, and whether by the client's own node.
    answer: Option<(Vec<Vec<u8>>, bool)>,
}

#[derive(Debug, Default)]
struct Client {
    copies: BTreeMap<&'static str, Vec<u8>>,
    under_way: Option<UnderWay>,
}

struct Node {
    tracking: Tracking,
    engine: MemoryEngine,
    executed: usize,
    /// What has been executed and not been told.
    untold: VecDeque<Vec<Announcement>>,
    is_exact: bool,
    clients: Vec<Client>,
}

struct Cluster {
    nodes: Vec<Node>,
    leader: MemoryEngine,
    log: Vec<(WallTime, Vec<u8>)>,
    time: u64,
    prng: Prng,
    planted: Option<Planted>,
    /// Replies that had a copy to be compared with.
    compared: u64,
    invalidated: u64,
}

fn body_of(words: &[&str]) -> Vec<u8> {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    let Ok(Parsed::Data(operation)) = parse(&words) else { panic!("{words:?}") };
    let mut body = Vec::new();
    operation.encode(&mut body);
    body
}

fn request(is_broadcast: bool) -> TrackingRequest {
    let prefixes = if is_broadcast { vec![b"c".to_vec()] } else { Vec::new() };
    TrackingRequest { is_broadcast, prefixes, choice: TrackingChoice::All, no_loop: false, redirect: None }
}

impl Node {
    fn new(leader: &MemoryEngine, executed: usize, is_exact: bool, planted: Option<Planted>) -> Self {
        let mut tracking = Tracking::new(3);
        tracking.planted = planted;
        let mut engine = leader.clone();
        engine.take_announcements();
        engine.set_notifying(false);
        for client in 0..CLIENTS {
            tracking.begin(client, request(client == 0), None);
        }
        let clients = (0..CLIENTS).map(|_| Client::default()).collect();
        tracking.set_told(false, is_exact);
        Self { tracking, engine, executed, untold: VecDeque::new(), is_exact, clients }
    }

    /// Hands clients what there is to be told.
    fn deliver(&mut self) -> u64 {
        let mut count = 0;
        for Invalidation { address, keys } in self.tracking.take() {
            count += 1;
            let copies = &mut self.clients[address as usize].copies;
            match keys {
                None => copies.clear(),
                Some(keys) => copies.retain(|copy, _| !keys.iter().any(|key| **key == *copy.as_bytes())),
            }
        }
        count
    }

    fn read(&self, keys: &[&str], now: WallTime) -> Vec<Vec<u8>> {
        keys.iter().map(|key| read(&self.engine, key, now)).collect()
    }
}

fn read(engine: &MemoryEngine, key: &str, now: WallTime) -> Vec<u8> {
    let mut reply = Vec::new();
    engine.read(now, &body_of(&["GET", key]), &mut reply);
    reply
}

impl Cluster {
    fn new(seed: u64, planted: Option<Planted>) -> Self {
        let leader = MemoryEngine::new();
        let nodes = (0..NODES).map(|place| Node::new(&leader, 0, place != 0, planted)).collect();
        Self {
            nodes,
            leader,
            log: Vec::new(),
            time: 1,
            prng: Prng::new(seed),
            planted,
            compared: 0,
            invalidated: 0,
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.prng.below(bound as u64) as usize
    }

    fn now(&self) -> WallTime {
        WallTime(self.time * 1000)
    }

    fn commit(&mut self, body: Vec<u8>) {
        let now = self.now();
        self.leader.apply(now, &body, &mut Vec::new());
        self.log.push((now, body));
    }

    /// A node executes some entries, and tells of what it has executed, but for the last of that if it is not exact.
    fn execute(&mut self, place: usize, most: usize) {
        let lag = if self.nodes[place].is_exact { 0 } else { self.below(3) };
        let node = &mut self.nodes[place];
        for _ in 0..most {
            let Some((time, body)) = self.log.get(node.executed) else { break };
            node.engine.apply(*time, body, &mut Vec::new());
            node.executed += 1;
            node.untold.push_back(node.engine.take_announcements());
        }
        while node.untold.len() > lag
            && let Some(happened) = node.untold.pop_front()
        {
            node.tracking.on_changes(&happened, &BTreeMap::new());
        }
        if !node.engine.take_announcements().is_empty() {
            panic!("all was taken");
        }
        node.engine.set_notifying(true);
        let is_exact = node.is_exact;
        node.tracking.set_told(true, is_exact);
        self.invalidated += self.nodes[place].deliver();
    }

    /// A node gets another state instead of the entries.
    fn replace_state(&mut self, place: usize) {
        let node = &mut self.nodes[place];
        node.engine = self.leader.clone();
        node.engine.take_announcements();
        node.engine.set_notifying(true);
        node.executed = self.log.len();
        node.untold.clear();
        node.tracking.on_state_replaced();
        node.deliver();
    }

    fn submit(&mut self, place: usize, client: usize) {
        let key = KEYS[self.below(KEYS.len())];
        let other = KEYS[self.below(KEYS.len())];
        let value = self.log.len().to_string();
        let (words, keys): (Vec<&str>, Vec<&'static str>) = match self.below(12) {
            0 => (vec!["SET", key, &value], vec![]),
            1 => (vec!["DEL", key, other], vec![]),
            2 => (vec!["PEXPIRE", key, "3"], vec![]),
            3 => (vec!["RENAME", key, other], vec![]),
            4 if self.below(4) == 0 => (vec!["FLUSHALL"], vec![]),
            5 => (vec!["APPEND", key, "x"], vec![]),
            _ if key == other => (vec!["GET", key], vec![key]),
            _ => (vec!["MGET", key, other], vec![key, other]),
        };
        let (body, is_update) = (body_of(&words), keys.is_empty());
        let committed = self.log.len();
        let node = &mut self.nodes[place];
        node.tracking.on_submit(client as u64, &body, Freshness::Current, (true, false));
        node.clients[client].under_way = Some(UnderWay { body, keys, committed, is_update, answer: None });
    }

    /// A command is executed: an update at the leader, a read at any replica that has executed what was committed before.
    fn answer(&mut self, place: usize, client: usize) {
        let (now, is_own) = (self.now(), self.below(2) == 0);
        let node = &mut self.nodes[place];
        let Some(under_way) = &mut node.clients[client].under_way else { return };
        if under_way.answer.is_some() {
            return;
        }
        let (keys, body, committed) = (under_way.keys.clone(), under_way.body.clone(), under_way.committed);
        if under_way.is_update {
            under_way.answer = Some((Vec::new(), false));
            return self.commit(body);
        }
        let answer = match is_own {
            true if node.executed < committed => return,
            true => node.read(&keys, now),
            false => keys.iter().map(|key| read(&self.leader, key, now)).collect(),
        };
        let under_way = self.nodes[place].clients[client].under_way.as_mut();
        under_way.expect("it is under way").answer = Some((answer, is_own));
    }

    /// A reply arrives, or is lost.
    fn complete(&mut self, place: usize, client: usize) -> Result<(), String> {
        let is_lost = self.below(20) == 0;
        let node = &mut self.nodes[place];
        let address = client as u64;
        let Some(under_way) = node.clients[client].under_way.take_if(|one| one.answer.is_some()) else {
            return Ok(());
        };
        let Some((answers, is_own)) = under_way.answer else { return Ok(()) };
        if is_lost {
            node.tracking.after_reply(address, false);
            self.invalidated += node.deliver();
            return Ok(());
        }
        if !under_way.is_update {
            node.tracking.on_answer(address, is_own);
        }
        node.tracking.before_reply(address);
        self.invalidated += node.deliver();
        for (key, answer) in under_way.keys.iter().zip(answers) {
            let is_tracked = client > 0 || key.starts_with('c');
            let copy = node.clients[client].copies.get(key);
            self.compared += u64::from(copy.is_some());
            if copy.is_some_and(|copy| *copy != answer) {
                return Err(format!("node {place}, client {client}: {key} is another one than the copy"));
            }
            if is_tracked {
                node.clients[client].copies.insert(key, answer);
            }
        }
        node.tracking.after_reply(address, true);
        self.invalidated += node.deliver();
        Ok(())
    }

    fn step(&mut self) -> Result<(), String> {
        let (place, client) = (self.below(NODES), self.below(CLIENTS as usize));
        match self.below(12) {
            0 | 1 => {
                let most = 1 + self.below(6);
                self.execute(place, most);
            }
            2 if self.below(20) == 0 => self.replace_state(place),
            3 if self.below(40) == 0 => {
                let node = Node::new(&self.leader, self.log.len(), place != 0, self.planted);
                self.nodes[place] = node;
            }
            4 => {
                // Log time moves on.
                self.time += 1;
                if self.below(3) == 0 {
                    self.commit(Vec::new());
                }
            }
            5..=7 if self.nodes[place].clients[client].under_way.is_none() => self.submit(place, client),
            8 | 9 => self.answer(place, client),
            _ => self.complete(place, client)?,
        }
        Ok(())
    }

    /// Everything comes to rest: then every copy is right.
    fn rest(&mut self) -> Result<(), String> {
        for place in 0..NODES {
            for client in 0..CLIENTS as usize {
                while self.nodes[place].clients[client].under_way.is_some() {
                    self.execute(place, usize::MAX);
                    self.answer(place, client);
                    self.complete(place, client)?;
                }
            }
        }
        for place in 0..NODES {
            while self.nodes[place].executed < self.log.len() || !self.nodes[place].untold.is_empty() {
                self.execute(place, usize::MAX);
            }
            let now = self.now();
            for (client, held) in self.nodes[place].clients.iter().enumerate() {
                for (key, copy) in &held.copies {
                    if *copy != read(&self.leader, key, now) {
                        return Err(format!("node {place}, client {client}: the copy of {key} is old"));
                    }
                }
            }
        }
        Ok(())
    }
}

/// One schedule; how many replies had a copy to be compared with, and how many invalidations there were.
fn run(seed: u64, planted: Option<Planted>) -> Result<(u64, u64), String> {
    let mut cluster = Cluster::new(seed, planted);
    for step in 0..600 {
        cluster.step().map_err(|problem| format!("step {step}: {problem}"))?;
        if step % 200 == 199 {
            cluster.rest().map_err(|problem| format!("at rest after step {step}: {problem}"))?;
        }
    }
    Ok((cluster.compared, cluster.invalidated))
}

#[test]
fn copies_are_invalidated_in_time() {
    let (mut compared, mut invalidated) = (0, 0);
    for seed in 0..400 {
        let counts = run(seed, None).unwrap_or_else(|problem| panic!("seed {seed}: {problem}"));
        (compared, invalidated) = (compared + counts.0, invalidated + counts.1);
    }
    assert!(compared > 300 && invalidated > 10_000, "{compared} compared, {invalidated} invalidated");
}

/// The simulator has three of them, too: `InvalidationLate`, `InvalidationForgotten` and `CopiesOutliveState`.
#[test]
fn wrong_variants_are_found() {
    for planted in [
        Planted::ForeignReplyFirst,
        Planted::ReadingForgotten,
        Planted::TakenForTold,
        Planted::StateReplacedSilently,
    ] {
        assert!((0..400).any(|seed| run(seed, Some(planted)).is_err()), "{planted:?} is not found");
    }
}
