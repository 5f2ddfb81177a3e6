//! Front ends with clients that wait for entries of streams, around one log: what they submit is delayed, lost, or executed
//! without an answer; nodes lag behind, die and come back; clients add, wait, and go. One seed is one schedule.
//!
//! A reader gets the first entry behind the one from which it reads. No entry is delivered to two consumers, and none to none,
//! unless the answer was lost or its client had gone. And when nothing goes wrong any more, nobody waits for a stream that has
//! something.

use super::schedule::{Nodes, words};
use super::*;
use syros_storage::{Engine, MemoryEngine};
use syros_types::WallTime;

const KEYS: [&str; 3] = ["a", "b", "c"];

/// What is wrong with a cluster, to show that the test would find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Planted {
    Nothing,
    /// Nobody hears what is executed, and nobody looks by himself.
    NeverLooks,
    /// XREAD is submitted again as it came, and takes the present for its `$`.
    DollarAgain,
    /// A client that is to wait no longer gets nil, whatever its command has got meanwhile.
    LateReplyDropped,
}

/// What a connection has submitted and has no answer to.
#[derive(Clone, Debug)]
struct Flight {
    address: u64,
    body: Body,
    footprint: Footprint,
}

/// A client that has waited, or waits.
#[derive(Clone, Debug)]
struct Client {
    keys: Vec<usize>,
    of_group: bool,
    /// As the client has sent it.
    body: Body,
    footprint: Footprint,
    /// The entries behind which it reads, of each of its keys, once that is decided.
    behind: Option<Vec<u64>>,
}

struct Cluster {
    nodes: Nodes<Flight>,
    clients: Vec<Client>,
    /// The entries of each stream, by the first parts of their ids.
    added: [Vec<u64>; KEYS.len()],
    last: u64,
    /// Entries that clients of the group have got.
    given: Vec<u64>,
    /// Entries that were delivered and whose clients cannot get them.
    lost: Vec<u64>,
    /// How many XREADs have been answered with entries.
    read: usize,
    planted: Planted,
    wrong: Option<String>,
}

/// The streams in a reply, with the numbers of their entries.
fn entries_of(reply: &[u8]) -> Vec<(usize, Vec<u64>)> {
    let replies = Reply::decode_all(reply).unwrap_or_default();
    let [Reply::Keyed(streams)] = &replies[..] else { return Vec::new() };
    let text = |reply: &Reply| match reply {
        Reply::Bulk(text) => String::from_utf8_lossy(text).into_owned(),
        other => panic!("{other:?} is no string"),
    };
    let number = |entry: &Reply| match entry {
        Reply::Array(parts) => text(&parts[0]).trim_end_matches("-0").parse().expect("a number"),
        other => panic!("{other:?} is no entry"),
    };
    let of_stream = |(key, entries): &(Reply, Reply)| {
        let key = KEYS.iter().position(|name| *name == text(key)).expect("a key");
        let Reply::Array(entries) = entries else { panic!("{entries:?} are no entries") };
        (key, entries.iter().map(number).collect())
    };
    streams.iter().map(of_stream).collect()
}

impl Cluster {
    fn new(seed: u64, planted: Planted) -> Self {
        let groups = KEYS.map(|key| format!("XGROUP CREATE {key} g 0 MKSTREAM"));
        Self {
            nodes: Nodes::new(seed, groups),
            clients: Vec::new(),
            added: Default::default(),
            last: 0,
            given: Vec::new(),
            lost: Vec::new(),
            read: 0,
            planted,
            wrong: None,
        }
    }

    fn step(&mut self) {
        self.nodes.now = self.nodes.now.after(Duration::from_micros(self.nodes.prng.below(2_000)));
        let number = self.nodes.below(self.nodes.all.len());
        match self.nodes.prng.below(12) {
            0 => self.add(),
            1 => self.touch(),
            2 => self.begin(number),
            3..8 => self.answer(number, true),
            8 => self.nodes.catch_up(number, false),
            9 if self.nodes.prng.chance(1, 4) => self.go(number),
            10 if self.nodes.prng.chance(1, 20) => self.kill(number),
            11 if self.nodes.prng.chance(1, 10) => self.nodes.start(number),
            _ => {}
        }
        self.run(number);
    }

    /// An entry is added to a stream.
    fn add(&mut self) {
        self.last += 1;
        let (last, key) = (self.last, self.nodes.below(KEYS.len()));
        let (body, footprint) = words(&format!("XADD {} {last}-0 f v", KEYS[key]));
        self.nodes.execute(body, footprint);
        self.added[key].push(last);
    }

    /// Something is done with a stream that gives nobody anything.
    fn touch(&mut self) {
        let key = KEYS[self.nodes.below(KEYS.len())];
        let command = match self.nodes.prng.below(3) {
            0 => format!("XACK {key} g {}-0", self.last),
            1 => format!("EXPIRE {key} 100000"),
            _ => format!("XGROUP CREATECONSUMER {key} g other"),
        };
        let (body, footprint) = words(&command);
        self.nodes.execute(body, footprint);
    }

    fn begin(&mut self, number: usize) {
        let (first, second) = (self.nodes.below(KEYS.len()), self.nodes.below(KEYS.len()));
        let keys =
            if self.nodes.prng.chance(1, 2) || first == second { vec![first] } else { vec![first, second] };
        let timeout = ["0", "0", "20", "200"][self.nodes.below(4)];
        let of_group = self.nodes.prng.chance(1, 2);
        let (start, head) = if of_group {
            (">".to_owned(), format!("XREADGROUP GROUP g c COUNT {}", 1 + self.nodes.prng.below(2)))
        } else {
            let start = self.last.saturating_sub(self.nodes.prng.below(3));
            let start = if self.nodes.prng.chance(1, 2) { "$".to_owned() } else { format!("{start}-0") };
            (start, "XREAD".to_owned())
        };
        let names: Vec<&str> = keys.iter().map(|key| KEYS[*key]).collect();
        let starts = vec![start.as_str(); keys.len()];
        let command = format!("{head} BLOCK {timeout} STREAMS {} {}", names.join(" "), starts.join(" "));
        let (body, footprint) = words(&command);
        if !self.nodes.all[number].is_up {
            return;
        }
        let behind = start.trim_end_matches("-0").parse().ok().map(|id: u64| vec![id; keys.len()]);
        self.clients.push(Client {
            keys,
            of_group,
            body: body.clone(),
            footprint: footprint.clone(),
            behind,
        });
        let address = self.clients.len() as u64;
        let is_ours =
            self.nodes.all[number].waits.begin(self.nodes.now, (address, 1, address), &body, &footprint);
        assert!(!is_ours, "connections submit what reads");
        self.nodes.all[number].in_flight.push(Flight { address, body, footprint });
    }

    /// A client goes, or is unblocked.
    fn go(&mut self, number: usize) {
        let address = 1 + self.nodes.prng.below(self.clients.len().max(1) as u64);
        let waits = &mut self.nodes.all[number].waits;
        match self.nodes.prng.below(3) {
            0 => waits.forget(self.nodes.now, address),
            1 => {
                let end = waits.give_up(self.nodes.now, address);
                self.end_all(end);
            }
            _ => {
                let (_, end) =
                    waits.unblock(self.nodes.now, Unblocking { client: address, with_error: true });
                self.end_all(end);
            }
        }
    }

    /// Executes what a connection has submitted.
    fn execute_flight(&mut self, flight: &Flight) -> Body {
        let client = &mut self.clients[flight.address as usize - 1];
        if client.of_group {
            return self.nodes.execute(flight.body.clone(), flight.footprint.clone());
        }
        if client.behind.is_none() {
            let last = |key: &usize| self.added[*key].last().copied().unwrap_or(0);
            client.behind = Some(client.keys.iter().map(last).collect());
        }
        Body::from(self.nodes.read(&flight.body))
    }

    /// Something that a connection has submitted is executed, or not, and its node hears of it, or not.
    fn answer(&mut self, number: usize, may_fail: bool) {
        let Some(flight) = self.nodes.take_one(number) else { return };
        let of_group = self.clients[flight.address as usize - 1].of_group;
        let fate = if may_fail { self.nodes.prng.below(20) } else { 19 };
        let mut completion = match fate {
            0 => Completion::TimedOut,
            1 if of_group => {
                let reply = self.execute_flight(&flight);
                self.lose(&reply);
                Completion::Unknown
            }
            _ => Completion::Reply(self.execute_flight(&flight)),
        };
        let wait = self.nodes.all[number].waits.waits.values().find(|wait| wait.address == flight.address);
        let ends = wait.is_some_and(|wait| wait.ends.is_some());
        let has_gone = wait.is_none();
        if ends && self.planted == Planted::LateReplyDropped {
            let mut nil = Vec::new();
            syros_commands::put_nil_array(&mut nil);
            completion = Completion::Reply(nil.into());
        }
        let completion =
            self.nodes.all[number].waits.on_read(self.nodes.now, (flight.address, 1), completion);
        match completion {
            Some(Completion::Reply(reply)) if has_gone && of_group => self.lose(&reply),
            Some(Completion::Reply(reply)) => self.give(flight.address, &reply),
            _ => {}
        }
    }

    fn lose(&mut self, reply: &[u8]) {
        self.lost.extend(entries_of(reply).into_iter().flat_map(|(_, entries)| entries));
    }

    /// A client gets a reply.
    fn give(&mut self, address: u64, reply: &[u8]) {
        let client = &self.clients[address as usize - 1];
        let streams = entries_of(reply);
        if client.of_group {
            return self.given.extend(streams.into_iter().flat_map(|(_, entries)| entries));
        }
        self.read += usize::from(!streams.is_empty());
        let Some(behind) = &client.behind else { return };
        for (key, entries) in streams {
            let at = client.keys.iter().position(|of| *of == key).expect("one of its keys");
            let next = self.added[key].iter().find(|id| **id > behind[at]);
            if entries.first() != next {
                let first = entries.first();
                self.wrong =
                    Some(format!("client {address} gets {first:?} and not {next:?} of {}", KEYS[key]));
            }
        }
    }

    fn end_all(&mut self, ends: impl IntoIterator<Item = WaitEnd>) {
        for WaitEnd { address, completion, .. } in ends {
            if let Completion::Reply(reply) = completion {
                self.give(address, &reply);
            }
        }
    }

    fn kill(&mut self, number: usize) {
        for flight in self.nodes.kill(number) {
            if self.nodes.prng.chance(1, 2) && self.clients[flight.address as usize - 1].of_group {
                let reply = self.execute_flight(&flight);
                self.lose(&reply);
            }
        }
    }

    /// A turn of a node.
    fn run(&mut self, number: usize) {
        if !self.nodes.all[number].is_up {
            return;
        }
        self.nodes.exchange(number);
        let now = self.nodes.time();
        let waits = &mut self.nodes.all[number].waits;
        let ends = waits.tick(now.instant);
        assert!(waits.next_errand(now).is_none(), "there is no queue");
        self.nodes.look(number, self.planted != Planted::NeverLooks);
        let node = &mut self.nodes.all[number];
        while let Some(Resubmission { address, body, .. }) = node.waits.next_resubmission(now) {
            let client = &self.clients[address as usize - 1];
            let body = if self.planted == Planted::DollarAgain { client.body.clone() } else { body };
            node.in_flight.push(Flight { address, body, footprint: client.footprint.clone() });
        }
        self.end_all(ends);
    }

    /// Nothing goes wrong any more.
    fn settle(&mut self) {
        for _ in 0..1_000 {
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

    /// The last entry of a stream that its group has got.
    fn delivered(&self, key: &str) -> u64 {
        let (body, _) = words(&format!("XINFO GROUPS {key}"));
        let reply = self.nodes.read(&body);
        let shown = String::from_utf8_lossy(&reply).into_owned();
        let at = shown.find("last-delivered-id").expect("a group") + "last-delivered-id".len();
        let digits: String = shown[at..]
            .chars()
            .skip_while(|one| !one.is_ascii_digit())
            .take_while(char::is_ascii_digit)
            .collect();
        digits.parse().expect("a number")
    }

    /// What is wrong.
    fn verdict(&self) -> Result<(), String> {
        if let Some(wrong) = &self.wrong {
            return Err(wrong.clone());
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = self.given.iter().find(|entry| !seen.insert(**entry)) {
            return Err(format!("{twice} has been delivered twice"));
        }
        for (key, name) in KEYS.iter().enumerate() {
            let delivered = self.delivered(name);
            let is_missing =
                |entry: &&u64| **entry <= delivered && !seen.contains(entry) && !self.lost.contains(entry);
            if let Some(missing) = self.added[key].iter().find(is_missing) {
                return Err(format!("{missing} is delivered to nobody"));
            }
            let last = self.added[key].last().copied().unwrap_or(0);
            let waits_in_vain = |wait: &Wait| {
                let client = &self.clients[wait.address as usize - 1];
                let at = client.keys.iter().position(|of| *of == key);
                let behind = at.and_then(|at| client.behind.as_ref().map(|behind| behind[at]));
                at.is_some() && last > if client.of_group { delivered } else { behind.unwrap_or(last) }
            };
            if self.nodes.waits().any(|waits| waits.waits.values().any(waits_in_vain)) {
                return Err(format!("a client waits for {name}, which has entries"));
            }
        }
        Ok(())
    }
}

/// What is wrong with the schedule of a seed, how many entries consumers have got, and how many reads something.
fn run(seed: u64, planted: Planted) -> (Result<(), String>, (usize, usize)) {
    let mut cluster = Cluster::new(seed, planted);
    for _ in 0..1_500 {
        cluster.step();
    }
    cluster.settle();
    (cluster.verdict(), (cluster.given.len(), cluster.read))
}

#[test]
fn readers_miss_nothing_and_consumers_get_each_entry_once() {
    let (mut given, mut read) = (0, 0);
    for seed in 0..150 {
        let (verdict, (entries, reads)) = run(seed, Planted::Nothing);
        assert_eq!(verdict, Ok(()), "seed {seed}");
        (given, read) = (given + entries, read + reads);
    }
    assert!(
        given > 150 * 10 && read > 150 * 10,
        "only {given} entries were delivered, and {read} reads answered"
    );
}

#[test]
fn known_wrong_clusters_are_found() {
    for planted in [Planted::NeverLooks, Planted::DollarAgain, Planted::LateReplyDropped] {
        let found = (0..150).find(|seed| run(*seed, planted).0.is_err());
        assert!(found.is_some(), "{planted:?} is not found");
    }
}

/// A front end of one node, and its state.
struct Bench {
    waits: Waits,
    waited: WaitedKeys,
    engine: MemoryEngine,
    now: Now,
}

impl Bench {
    fn new() -> Self {
        let mut waits = Waits::new(Some(ReplicaId(0)), 7 << 8, Duration::from_secs(10), Instant(0));
        let mut waited = WaitedKeys::default();
        waits.exchange(&mut waited);
        let now = Now { instant: Instant(0), wall: WallTime(5_000_000) };
        Self { waits, waited, engine: MemoryEngine::new(), now }
    }

    fn apply(&mut self, command: &str) -> Reply {
        let (body, footprint) = words(command);
        let mut reply = Vec::new();
        self.engine.apply(self.now.wall, &body, &mut reply);
        self.waits.exchange(&mut self.waited);
        self.waited.touch(&footprint);
        self.waits.exchange(&mut self.waited);
        Reply::decode_all(&reply).expect("a reply").remove(0)
    }

    /// A command comes, and is executed.
    fn begin(&mut self, address: u64, command: &str) -> Option<Reply> {
        let (body, footprint) = words(command);
        assert!(!self.waits.begin(self.now.instant, (address, 1, address), &body, &footprint));
        self.submit(address, &body)
    }

    fn submit(&mut self, address: u64, body: &Body) -> Option<Reply> {
        let mut reply = Vec::new();
        self.engine.apply(self.now.wall, body, &mut reply);
        match self.waits.on_read(self.now.instant, (address, 1), Completion::Reply(reply.into()))? {
            Completion::Reply(reply) => Some(Reply::decode_all(&reply).expect("a reply").remove(0)),
            other => panic!("it ends with {other:?}"),
        }
    }

    /// Submits what is to be submitted again: the clients that have got something, and what.
    fn go_on(&mut self) -> Vec<(u64, Reply)> {
        self.now.instant = self.now.instant.after(Duration::from_millis(1));
        let mut ended = Vec::new();
        loop {
            assert!(self.waits.tick(self.now.instant).is_empty());
            while let Some(Errand { kind: ErrandKind::Look(key), body, .. }) = self.waits.next_look() {
                let mut reply = Vec::new();
                self.engine.read(self.now.wall, &body, &mut reply);
                self.waits.on_look(self.now.instant, key, Some(&reply));
            }
            let Some(Resubmission { address, body, .. }) = self.waits.next_resubmission(self.now) else {
                return ended;
            };
            if let Some(reply) = self.submit(address, &body) {
                ended.push((address, reply));
            }
        }
    }
}

/// The clients that have got something.
fn served(ended: &[(u64, Reply)]) -> Vec<u64> {
    ended.iter().map(|(address, _)| *address).collect()
}

fn error_of(reply: &Reply) -> String {
    let Reply::Error(text) = reply else { panic!("{reply:?} is no error") };
    String::from_utf8_lossy(text).into_owned()
}

#[test]
fn an_entry_is_read_by_all_and_delivered_to_the_consumer_that_has_waited_longest() {
    let mut bench = Bench::new();
    bench.apply("XGROUP CREATE s g $ MKSTREAM");
    for address in 1..=3 {
        assert_eq!(bench.begin(address, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >"), None);
        assert_eq!(bench.begin(10 + address, "XREAD BLOCK 0 STREAMS s t $ $"), None);
    }
    assert!(bench.go_on().is_empty());
    bench.apply("XADD s 5-1 f v");
    let mut first = served(&bench.go_on());
    first.sort_unstable();
    assert_eq!(first, [1, 11, 12, 13]);
    // Two entries that come together are delivered to two.
    assert_eq!(bench.begin(4, "XREADGROUP GROUP g c COUNT 1 BLOCK 0 STREAMS s >"), None);
    bench.apply("XADD s 5-2 f v");
    bench.apply("XADD s 5-3 f v");
    assert_eq!(served(&bench.go_on()), [2], "which takes all there are");
    bench.apply("XADD s 5-4 f v");
    assert_eq!(served(&bench.go_on()), [3]);
    assert_eq!(bench.begin(5, "XREADGROUP GROUP g c COUNT 1 BLOCK 0 STREAMS s >"), None);
    bench.apply("XADD s 5-5 f v");
    bench.apply("XADD s 5-6 f v");
    assert_eq!(served(&bench.go_on()), [4, 5]);
    // What is delivered late is delivered at the present.
    bench.now.wall = WallTime(9_000_000);
    assert_eq!(bench.begin(6, "XREADGROUP GROUP g late BLOCK 0 STREAMS s >"), None);
    bench.apply("XADD s 5-7 f v");
    bench.go_on();
    bench.now.wall = WallTime(9_005_000);
    let pending = bench.apply("XPENDING s g 5-7 5-7 10");
    assert!(format!("{pending:?}").contains("Integer(5)"), "{pending:?}");
    assert_eq!(bench.waits.len(), 0);
    bench.waits.exchange(&mut bench.waited);
    assert!(bench.waited.is_empty());
}

#[test]
fn consumers_of_what_has_gone_are_told_and_readers_go_on() {
    let mut bench = Bench::new();
    bench.apply("XGROUP CREATE s g $ MKSTREAM");
    for address in 1..=2 {
        assert_eq!(bench.begin(address, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >"), None);
    }
    assert_eq!(bench.begin(3, "XREAD BLOCK 0 STREAMS s t 0 0"), None);
    bench.apply("DEL s");
    let ended = bench.go_on();
    assert_eq!(served(&ended), [1, 2]);
    assert_eq!(
        error_of(&ended[0].1),
        "NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option"
    );
    bench.apply("XGROUP CREATE s g $ MKSTREAM");
    assert_eq!(bench.begin(4, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >"), None);
    bench.apply("SET s text");
    let ended = bench.go_on();
    assert_eq!(served(&ended), [4]);
    assert!(error_of(&ended[0].1).starts_with("WRONGTYPE"), "{ended:?}");
    // XREAD does not mind, unless it comes now.
    bench.apply("XADD t 1-1 f v");
    assert_eq!(served(&bench.go_on()), [3]);
    let refused = bench.begin(5, "XREAD BLOCK 0 STREAMS s 0");
    assert!(refused.is_some_and(|reply| error_of(&reply).starts_with("WRONGTYPE")));
    assert_eq!(bench.waits.len(), 0);
}

#[test]
fn what_ends_while_it_is_on_its_way_ends_when_its_fate_is_known() {
    let mut bench = Bench::new();
    let (body, footprint) = words("XREAD BLOCK 50 STREAMS s $");
    assert!(!bench.waits.begin(bench.now.instant, (5, 1, 5), &body, &footprint));
    let unblocking = Unblocking { client: 5, with_error: true };
    assert_eq!(bench.waits.unblock(bench.now.instant, unblocking), (true, None));
    assert_eq!(
        error_of(&bench.submit(5, &body).expect("it ends")),
        "UNBLOCKED client unblocked via CLIENT UNBLOCK"
    );
    // Time.
    assert_eq!(bench.begin(6, "XREAD BLOCK 50 STREAMS s $"), None);
    bench.now.instant = bench.now.instant.after(Duration::from_millis(50));
    let ends = bench.waits.tick(bench.now.instant);
    assert_eq!(ends.iter().map(|end| end.address).collect::<Vec<_>>(), [6]);
    // What could not be submitted again is tried later; the first time, the client is told.
    assert_eq!(bench.begin(7, "XREAD BLOCK 0 STREAMS s $"), None);
    bench.apply("XADD s 1-1 f v");
    while let Some(Errand { kind: ErrandKind::Look(key), body, .. }) = bench.waits.next_look() {
        let mut reply = Vec::new();
        bench.engine.read(bench.now.wall, &body, &mut reply);
        bench.waits.on_look(bench.now.instant, key, Some(&reply));
    }
    assert!(bench.waits.next_resubmission(bench.now).is_some());
    assert_eq!(bench.waits.on_read(bench.now.instant, (7, 1), Completion::NoQuorum), None);
    bench.now.instant = bench.now.instant.after(Duration::from_millis(100));
    assert_eq!(served(&bench.go_on()), [7]);
    assert!(!bench.waits.begin(bench.now.instant, (8, 1, 8), &body, &footprint));
    let refused = bench.waits.on_read(bench.now.instant, (8, 1), Completion::NoQuorum);
    assert_eq!(refused, Some(Completion::NoQuorum));
    // A client that has gone is forgotten at once.
    assert!(!bench.waits.begin(bench.now.instant, (9, 1, 9), &body, &footprint));
    bench.waits.forget(bench.now.instant, 9);
    assert_eq!(bench.waits.len(), 0);
}
