//! Front ends with commands that wait, around one log: what they submit is delayed, lost, or executed without an answer; nodes
//! lag behind, die and come back; clients push, wait, and go. One seed is one schedule.
//!
//! No element may be given twice. None may be lost, unless the answer to the operation that took it was, or its client had
//! gone. And when nothing goes wrong any more, nobody waits for a key that has elements.

use super::schedule::{NODES, Nodes, words};
use super::*;

const KEYS: [&str; 3] = ["a", "b", "c"];

/// What is wrong with a cluster, to show that the test would find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Planted {
    Nothing,
    /// Nobody hears what is executed, and nobody looks by himself.
    NeverLooks,
    /// An operation whose fate is unknown is submitted again as another one's.
    GivenTwice,
}

struct Cluster {
    nodes: Nodes<Errand>,
    clients: u64,
    pushed: u64,
    /// Elements that clients have got.
    given: Vec<String>,
    /// Elements that were taken and whose clients cannot get them.
    lost: Vec<String>,
    planted: Planted,
}

/// The element in the answer to BLPOP.
fn element_of(reply: &[u8]) -> Option<String> {
    match Reply::decode_all(reply).ok()?.pop()? {
        Reply::Array(parts) => match parts.last()? {
            Reply::Bulk(element) => Some(String::from_utf8_lossy(element).into_owned()),
            _ => None,
        },
        _ => None,
    }
}

impl Cluster {
    fn new(seed: u64, planted: Planted) -> Self {
        let nodes = Nodes::new(seed, []);
        Self { nodes, clients: 0, pushed: 0, given: Vec::new(), lost: Vec::new(), planted }
    }

    fn step(&mut self) {
        self.nodes.now = self.nodes.now.after(Duration::from_micros(self.nodes.prng.below(2_000)));
        let number = self.nodes.below(self.nodes.all.len());
        match self.nodes.prng.below(12) {
            0 | 1 => self.push(),
            2 => self.begin(number),
            3..8 => self.answer(number, true),
            8 => self.nodes.catch_up(number, false),
            9 if self.nodes.prng.chance(1, 4) => {
                let address = 1 + self.nodes.prng.below(self.clients.max(1));
                let end = self.nodes.all[number].waits.give_up(self.nodes.now, address);
                self.end(end);
            }
            10 if self.nodes.prng.chance(1, 20) => self.kill(number),
            11 if self.nodes.prng.chance(1, 10) => self.nodes.start(number),
            _ => {}
        }
        self.run(number);
    }

    fn push(&mut self) {
        self.pushed += 1;
        let key = KEYS[self.nodes.below(KEYS.len())];
        let (body, footprint) = words(&format!("RPUSH {key} e{}", self.pushed));
        self.nodes.execute(body, footprint);
    }

    fn begin(&mut self, number: usize) {
        self.clients += 1;
        let (first, second) = (self.nodes.below(KEYS.len()), self.nodes.below(KEYS.len()));
        let timeout = ["0", "0", "0.02", "0.2"][self.nodes.below(4)];
        let command = match self.nodes.prng.below(2) {
            0 => format!("BLPOP {} {timeout}", KEYS[first]),
            _ => format!("BLPOP {} {} {timeout}", KEYS[first], KEYS[second]),
        };
        let (body, footprint) = words(&command);
        let (now, address) = (self.nodes.now, self.clients);
        let node = &mut self.nodes.all[number];
        if node.is_up {
            node.waits.begin(now, (address, 1, address), &body, &footprint);
        }
    }

    /// Something that a node has submitted is executed, or not, and it hears of it, or not.
    fn answer(&mut self, number: usize, may_fail: bool) {
        let Some(Errand { kind, body, footprint, .. }) = self.nodes.take_one(number) else { return };
        let fate = if may_fail { self.nodes.prng.below(20) } else { 19 };
        let outcome = match fate {
            0 => Outcome::TimedOut,
            1 => {
                let reply = self.nodes.execute(body, footprint);
                self.lost.extend(element_of(&reply));
                if self.planted == Planted::GivenTwice {
                    self.given.extend(element_of(&reply));
                    self.given.extend(element_of(&reply));
                }
                Outcome::Unknown
            }
            _ => Outcome::Reply(self.nodes.execute(body, footprint)),
        };
        match kind {
            ErrandKind::Ask(command) => {
                let element = if let Outcome::Reply(reply) = &outcome { element_of(reply) } else { None };
                let is_gone =
                    self.nodes.all[number].waits.waits.get(&command).is_some_and(|wait| wait.ends.is_some());
                let end = self.nodes.all[number].waits.on_asked(self.nodes.now, command, outcome);
                if is_gone && element.is_some() {
                    // It may have been its client that has gone.
                    self.lost.extend(element);
                } else {
                    assert!(
                        element.is_none() || end.is_some(),
                        "what has been taken is not given to anybody"
                    );
                    self.end(end);
                }
            }
            ErrandKind::Leave(command) => {
                self.nodes.all[number].waits.on_left(self.nodes.now, command, &outcome);
            }
            ErrandKind::Look(_) => unreachable!("nodes look at their own states"),
            ErrandKind::Evict | ErrandKind::Settle(_) => unreachable!("nothing is evicted"),
            ErrandKind::Users | ErrandKind::OldLeader | ErrandKind::FirstUser => {
                unreachable!("users are not looked at")
            }
        }
    }

    fn end(&mut self, end: impl IntoIterator<Item = WaitEnd>) {
        for WaitEnd { completion, .. } in end {
            if let Completion::Reply(reply) = completion {
                self.given.extend(element_of(&reply));
            }
        }
    }

    fn kill(&mut self, number: usize) {
        for Errand { body, footprint, .. } in self.nodes.kill(number) {
            if self.nodes.prng.chance(1, 2) {
                let reply = self.nodes.execute(body, footprint);
                self.lost.extend(element_of(&reply));
            }
        }
    }

    /// A turn of a node.
    fn run(&mut self, number: usize) {
        let members = || (0..NODES).map(ReplicaId);
        let is_up = |member: &ReplicaId| self.nodes.all[member.index()].is_up;
        let reachable = members().filter(is_up).fold(ReplicaSet(0), ReplicaSet::with);
        if !self.nodes.all[number].is_up {
            return;
        }
        self.nodes.exchange(number);
        let now = self.nodes.time();
        let node = &mut self.nodes.all[number];
        node.waits.set_reachable(now.instant, reachable, members());
        let ends = node.waits.tick(now.instant);
        while let Some(errand) = node.waits.next_errand(now) {
            node.in_flight.push(errand);
        }
        self.nodes.look(number, self.planted != Planted::NeverLooks);
        self.end(ends);
    }

    /// Nothing goes wrong any more.
    fn settle(&mut self) {
        for _ in 0..2_000 {
            self.nodes.now = self.nodes.now.after(Duration::from_millis(5));
            for number in 0..self.nodes.all.len() {
                self.nodes.catch_up(number, true);
                self.run(number);
                while !self.nodes.all[number].in_flight.is_empty() {
                    self.answer(number, false);
                }
            }
        }
    }

    /// The elements of a list.
    fn elements(&self, key: &str) -> Vec<String> {
        let (body, _) = words(&format!("LRANGE {key} 0 -1"));
        let reply = self.nodes.read(&body);
        let Ok(Some(Reply::Array(elements))) = Reply::decode_all(&reply).map(|mut replies| replies.pop())
        else {
            panic!("{key} is no list")
        };
        let text = |element: &Reply| match element {
            Reply::Bulk(element) => String::from_utf8_lossy(element).into_owned(),
            other => panic!("{other:?} is no element"),
        };
        elements.iter().map(text).collect()
    }

    /// What is wrong.
    fn verdict(&self) -> Result<(), String> {
        let left: Vec<String> = KEYS.iter().flat_map(|key| self.elements(key)).collect();
        let mut seen = BTreeSet::new();
        if let Some(twice) = self.given.iter().chain(&left).find(|element| !seen.insert(*element)) {
            return Err(format!("{twice} is there twice"));
        }
        let is_missing = |element: &String| !seen.contains(element) && !self.lost.contains(element);
        if let Some(missing) = (1..=self.pushed).map(|number| format!("e{number}")).find(is_missing) {
            return Err(format!("{missing} is lost"));
        }
        for key in KEYS.iter().filter(|key| !self.elements(key).is_empty()) {
            let waited = WaitedKey { hash: key_hash(key.as_bytes()), kind: WaitedKind::List };
            let waits = |waits: &Waits| waits.waits.values().any(|wait| wait.keys.contains(&waited));
            if self.nodes.waits().any(waits) {
                return Err(format!("a client waits for {key}, which has elements"));
            }
        }
        Ok(())
    }
}

/// What is wrong with the schedule of a seed, and how many elements clients have got.
fn run(seed: u64, planted: Planted) -> (Result<(), String>, usize) {
    let mut cluster = Cluster::new(seed, planted);
    for _ in 0..1_500 {
        cluster.step();
    }
    cluster.settle();
    (cluster.verdict(), cluster.given.len())
}

#[test]
fn no_element_is_lost_or_given_twice_and_nobody_waits_in_vain() {
    let mut given = 0;
    for seed in 0..150 {
        let (verdict, elements) = run(seed, Planted::Nothing);
        assert_eq!(verdict, Ok(()), "seed {seed}");
        given += elements;
    }
    assert!(given > 150 * 30, "only {given} elements have been given");
}

#[test]
fn known_wrong_clusters_are_found() {
    for planted in [Planted::NeverLooks, Planted::GivenTwice] {
        let found = (0..150).find(|seed| run(*seed, planted).0.is_err());
        assert!(found.is_some(), "{planted:?} is not found");
    }
}
