//! Generated commands on collections of all sizes at an engine on disk and at the engine in memory, by way of restarts and
//! snapshots: the answers are the same, and when everything has gone no page is left.

use core::ops::ControlFlow;
use std::collections::VecDeque;
use std::sync::Arc;
use syros_commands::Reply;
use syros_storage::conformance::{Generator, body_if_data};
use syros_storage::{DiskEngine, Engine, Lane, MemoryEngine, MemoryStore, Reader, Shared, Store};
use syros_types::{Database, OpNumber, Prng, WallTime};

/// Worlds of a run, and what happens in each.
const SEEDS: u64 = 40;
const STEPS: usize = 400;

/// So many commands are shown when something differs.
const SHOWN: usize = 60;

/// The databases that commands are for.
const DATABASES: usize = 3;

/// What the name of a key begins with, by the type that it mostly has.
const TYPES: [&str; 5] = ["hash", "list", "set", "sorted", "stream"];

/// Keys of each type.
const KEYS_OF_TYPE: u64 = 3;

/// Commands with places that are filled by chance (see [`World::fill`]): a third of all. Collections grow by them.
const GROWTH: &[&str] = &[
    "HSET <hash> <pairs>",
    "RPUSH <list> <elements>",
    "SADD <set> <elements>",
    "ZADD <sorted> <scored>",
    "XADD <stream> * field <element>",
];

/// The others.
const TEMPLATES: &[&str] = &[
    "HDEL <hash> <elements>",
    "HPEXPIRE <hash> <milliseconds> FIELDS 3 <element> <element> <element>",
    "HGETDEL <hash> FIELDS 2 <element> <element>",
    "LPUSH <list> <elements>",
    "LINSERT <list> BEFORE <element> <element>",
    "LREM <list> <rank> <element>",
    "LSET <list> <rank> <element>",
    "LTRIM <list> <rank> <rank>",
    "LMOVE <list> <same> LEFT RIGHT",
    "LMOVE <list> <list> RIGHT LEFT",
    "SREM <set> <elements>",
    "SPOP <set> <count>",
    "SMOVE <set> <set> <element>",
    "SUNIONSTORE <set> <same> <set>",
    "SDIFFSTORE <set> <same> <set>",
    "SINTERSTORE <set> <same> <set>",
    "ZREM <sorted> <elements>",
    "ZPOPMIN <sorted> <count>",
    "ZREMRANGEBYRANK <sorted> <rank> <rank>",
    "ZUNIONSTORE <sorted> 2 <same> <sorted> WEIGHTS 1 2",
    "ZINTERSTORE <sorted> 2 <same> <sorted>",
    "ZDIFFSTORE <sorted> 2 <same> <sorted>",
    "ZRANGESTORE <sorted> <same> <rank> <rank>",
    "GEOADD <sorted> <count> 10 <element>",
    "GEOSEARCHSTORE <sorted> <same> FROMLONLAT 10 10 BYRADIUS 5000 km",
    "XTRIM <stream> MAXLEN <count>",
    "XGROUP CREATE <stream> group 0 MKSTREAM",
    "XGROUP DESTROY <stream> group",
    "XREADGROUP GROUP group consumer COUNT <count> STREAMS <stream> >",
    "XAUTOCLAIM <stream> group other 0 0 COUNT <count>",
    "RENAME <any> <any>",
    "RENAME <any> <same>",
    "COPY <any> <any> DB <database> REPLACE",
    "MOVE <any> <database>",
    "SWAPDB <database> <database>",
    "SORT <list> ALPHA STORE <list>",
    "SORT <set> ALPHA STORE <list>",
    "PEXPIRE <any> <milliseconds>",
    "PERSIST <any>",
    "SET <any> string",
    "APPEND <any> tail",
    "INCRBYFLOAT <any> 1.5",
    "DEL <any>",
    "UNLINK <any>",
    "DBSIZE",
];

/// What scripts call. Every other script is undone, because it never ends.
const CALLS: &[&str] = &[
    "'rename', KEYS[1], KEYS[2]",
    "'del', KEYS[1]",
    "'copy', KEYS[1], KEYS[2], 'replace'",
    "'set', KEYS[2], 'value'",
    "'pexpire', KEYS[1], 100",
    "'hset', KEYS[1], 'field', string.rep('q', 500)",
    "'ltrim', KEYS[1], 3, 40",
    "'sadd', KEYS[1], string.rep('q', 500), 'member'",
    "'zunionstore', KEYS[2], 2, KEYS[1], KEYS[2]",
    "'sunionstore', KEYS[2], KEYS[1], KEYS[2]",
    "'xadd', KEYS[1], '*', 'field', string.rep('z', 300)",
    "'lmove', KEYS[1], KEYS[1], 'left', 'right'",
];

/// Commands whose answers do not follow from the data alone.
const NOT_COMPARED: [&str; 6] = ["SCAN", "KEYS", "RANDOMKEY", "OBJECT", "MEMORY", "SORT_RO"];

/// Both engines, and what is to come.
struct World {
    prng: Prng,
    others: Generator,
    memory: MemoryEngine,
    store: MemoryStore,
    shared: Arc<Shared<MemoryStore>>,
    lane: Lane<MemoryStore>,
    time: WallTime,
    entry: u64,
    /// The last commands, for who looks at a failure.
    past: VecDeque<String>,
}

fn text(command: &[Vec<u8>]) -> String {
    let words: Vec<_> =
        command.iter().map(|word| String::from_utf8_lossy(&word[..word.len().min(60)])).collect();
    words.join(" ")
}

/// Sets have no order.
fn sorted(body: &[u8]) -> Vec<Reply> {
    let mut replies = Reply::decode_all(body).expect("replies");
    for reply in &mut replies {
        if let Reply::Array(parts) = reply {
            parts.sort_by_key(|part| format!("{part:?}"));
        }
    }
    replies
}

impl World {
    fn new(seed: u64) -> Self {
        let store = MemoryStore::new();
        let shared = DiskEngine::open(store.clone()).expect("an empty store").0.into_shared();
        let mut others = Generator::new(seed, 1..4_000, 1..2_000_000);
        others.has_streams = true;
        others.has_field_expiry = true;
        Self {
            prng: Prng::new(seed),
            others,
            memory: MemoryEngine::new(),
            lane: Lane::new(Arc::clone(&shared)),
            store,
            shared,
            time: WallTime(1_000_000),
            entry: 0,
            past: VecDeque::new(),
        }
    }

    fn one_of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.prng.below(choices.len() as u64) as usize]
    }

    /// Mostly short, some so long that a page has one or two.
    fn element(&mut self) -> String {
        let number = self.prng.below(400);
        let rest = match number {
            _ if number.is_multiple_of(37) => 700,
            _ if number.is_multiple_of(5) => 60,
            _ => 0,
        };
        format!("{number:03}{}", "x".repeat(rest))
    }

    /// A key that mostly has this type.
    fn key(&mut self, of_type: &str) -> String {
        let of_type = if self.prng.chance(1, 12) { self.one_of(&TYPES) } else { of_type };
        format!("{of_type}{}", self.prng.below(KEYS_OF_TYPE))
    }

    /// What stands in a place of a template: one word or more.
    fn fill(&mut self, place: &str, named: &mut String) -> Vec<String> {
        let several = if self.prng.chance(1, 4) { self.prng.below(200) + 1 } else { self.prng.below(3) + 1 };
        match place {
            "same" => vec![named.clone()],
            "any" => {
                let of_type = self.one_of(&TYPES);
                *named = self.key(of_type);
                vec![named.clone()]
            }
            "element" => vec![self.element()],
            "elements" => (0..several).map(|_| self.element()).collect(),
            "pairs" => (0..2 * several).map(|_| self.element()).collect(),
            "scored" => {
                (0..several).flat_map(|_| [self.prng.below(50).to_string(), self.element()]).collect()
            }
            "rank" => vec![(self.prng.below(400) as i64 - 100).to_string()],
            "count" => vec![self.prng.below(40).to_string()],
            "milliseconds" => vec![(self.prng.below(30_000) + 1).to_string()],
            "database" => vec![self.prng.below(DATABASES as u64).to_string()],
            of_type => {
                *named = self.key(of_type);
                vec![named.clone()]
            }
        }
    }

    fn command(&mut self) -> Vec<Vec<u8>> {
        if self.prng.chance(1, 6) {
            return self.others.command();
        }
        if self.prng.chance(1, 40) {
            return self.script();
        }
        if self.prng.chance(1, 400) {
            return vec![self.one_of(&["FLUSHDB", "FLUSHALL"]).into()];
        }
        let templates = if self.prng.chance(1, 3) { GROWTH } else { TEMPLATES };
        let (template, mut named) = (self.one_of(templates), String::new());
        let mut words = Vec::new();
        for word in template.split(' ') {
            match word.strip_prefix('<').and_then(|word| word.strip_suffix('>')) {
                Some(place) => words.extend(self.fill(place, &mut named).into_iter().map(String::into_bytes)),
                None => words.push(word.into()),
            }
        }
        words
    }

    fn script(&mut self) -> Vec<Vec<u8>> {
        let mut script = String::new();
        for _ in 0..=self.prng.below(6) {
            script += &format!("redis.pcall({}) ", self.one_of(CALLS));
        }
        script += self.one_of(&["return 1", "while true do end"]);
        let of_type = self.one_of(&TYPES);
        let keys = [self.key(of_type), self.key(of_type)].map(String::into_bytes);
        let [first, second] = keys;
        vec!["EVAL".into(), script.into_bytes(), "2".into(), first, second]
    }

    /// The body of some commands; empty if none of them is about data, or may be compared.
    fn body(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        for _ in 0..if self.prng.chance(1, 4) { self.prng.below(6) + 1 } else { 1 } {
            let index = self.prng.below(DATABASES as u64) as usize;
            let database = Database::all().nth(index).expect("a database");
            let command = self.command();
            let is_named =
                |name: &&str| command.iter().any(|word| word.eq_ignore_ascii_case(name.as_bytes()));
            if NOT_COMPARED.iter().any(is_named) {
                continue;
            }
            let words: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
            if let Some(one) = body_if_data(&words, database) {
                body.extend(one);
                self.past.push_back(format!(
                    "{} in {}: {}",
                    self.time.as_millis(),
                    database.index(),
                    text(&command)
                ));
                if self.past.len() > SHOWN {
                    self.past.pop_front();
                }
            }
        }
        body
    }

    fn fail(&self, what: &str) -> ! {
        self.past.iter().for_each(|command| println!("{command}"));
        panic!("{what} at entry {}", self.entry);
    }

    /// Executes a body at both engines.
    fn apply(&mut self, body: &[u8]) {
        self.entry += 1;
        let (mut expected, mut answer) = (Vec::new(), Vec::new());
        self.memory.begin_entry(OpNumber(self.entry));
        self.memory.apply(self.time, body, &mut expected);
        self.lane.begin_entry(OpNumber(self.entry));
        self.lane.execute(self.time, body, &mut answer);
        if answer != expected && sorted(&answer) != sorted(&expected) {
            println!("{:?}\n{:?}", sorted(&answer), sorted(&expected));
            self.fail("the engine on disk answers otherwise than the one in memory");
        }
    }

    fn commit(&mut self) {
        self.lane.commit();
        self.shared.advance(self.time);
        assert!(self.shared.failure().is_none(), "{:?}", self.shared.failure());
    }

    /// A checkpoint, now and then with all of the store made smaller.
    fn checkpoint(&mut self) {
        self.shared.seal(b"head").expect("a checkpoint");
        self.shared.flush().expect("a checkpoint");
        if self.prng.chance(1, 2) {
            while self.shared.compact().expect("a compaction") {}
        }
    }

    fn go_on_with(&mut self, engine: DiskEngine<MemoryStore>, store: MemoryStore) {
        self.store = store;
        self.shared = engine.into_shared();
        self.lane = Lane::new(Arc::clone(&self.shared));
    }

    /// The process ends, and starts again.
    fn restart(&mut self) {
        self.checkpoint();
        let engine = DiskEngine::open(self.store.crash(true)).expect("what was written").0;
        let store = engine.shared().store().clone();
        self.go_on_with(engine, store);
    }

    /// Another member takes a snapshot, and is looked at from now on.
    fn snapshot(&mut self) {
        self.checkpoint();
        let mut engine = DiskEngine::open(self.store.crash(true)).expect("what was written").0;
        let store = MemoryStore::new();
        let mut loader = DiskEngine::loader(store.clone());
        engine.begin_snapshot();
        let mut has_more = true;
        while has_more {
            let mut block = Vec::new();
            has_more = engine.snapshot_block(3_000, &mut block);
            loader.block(&block).expect("a block");
        }
        let loaded = loader.finish().expect("a snapshot");
        assert_eq!(loaded.digest(), engine.digest(), "after entry {}", self.entry);
        self.go_on_with(loaded, store);
    }

    /// Reads of every key, beside the lane.
    fn look(&self) {
        let mut reader = Reader::new(Arc::clone(&self.shared));
        for database in Database::all().take(DATABASES) {
            for key in
                TYPES.iter().flat_map(|of_type| (0..KEYS_OF_TYPE).map(move |n| format!("{of_type}{n}")))
            {
                for command in ["DUMP", "PTTL", "TYPE"] {
                    let body = body_if_data(&[command.as_bytes(), key.as_bytes()], database).expect("a read");
                    let (mut expected, mut answer) = (Vec::new(), Vec::new());
                    self.memory.read(self.time, &body, &mut expected);
                    reader.read(self.time, &body, &mut answer);
                    if answer != expected {
                        self.fail(&format!("{command} {key} in {} differs", database.index()));
                    }
                }
            }
        }
    }

    fn step(&mut self) {
        self.time = WallTime(self.time.0 + self.prng.below(200_000));
        let body = self.body();
        if body.is_empty() {
            return;
        }
        self.apply(&body);
        if !self.prng.chance(1, 3) {
            return;
        }
        self.commit();
        for _ in 0..self.prng.below(3) {
            self.shared.purge();
        }
        match self.prng.below(60) {
            0..10 => self.look(),
            10..12 => self.restart(),
            12 => self.snapshot(),
            _ => {}
        }
    }

    /// Everything goes: some keys are overwritten, the others are deleted.
    fn clear(&mut self) {
        for database in Database::all() {
            let mut reply = Vec::new();
            let all = body_if_data(&[b"KEYS", b"*"], database).expect("a read");
            Reader::new(Arc::clone(&self.shared)).read(self.time, &all, &mut reply);
            let Ok(Reply::Array(keys)) = Reply::decode(&mut reply.as_slice()) else { panic!("an array") };
            for key in keys {
                let Reply::Bulk(key) = key else { panic!("a name") };
                let command: &[&[u8]] =
                    if self.prng.chance(1, 2) { &[b"SET", &key, b"x"] } else { &[b"DEL", &key] };
                self.apply(&body_if_data(command, database).expect("an update"));
            }
        }
        // Keys that had expired were not among them.
        self.time = WallTime(u64::MAX >> 20);
        self.commit();
        while self.shared.has_to_purge() {
            self.shared.purge();
        }
        // What FLUSHALL has left goes when the store is made smaller.
        self.shared.seal(b"head").expect("a checkpoint");
        self.shared.flush().expect("a checkpoint");
        while self.shared.compact().expect("a compaction") {}
    }

    /// Records of pages, and of page sets that are to be purged.
    fn pages(&self) -> usize {
        let mut pages = 0;
        let walked = self.shared.store().walk(None, b"", |key, _| {
            pages += usize::from(matches!(key.first(), Some(b'p' | b'P' | b'x' | b'X')));
            ControlFlow::Continue(())
        });
        walked.expect("a walk");
        pages
    }
}

#[test]
fn engines_on_disk_and_in_memory_answer_alike() {
    let mut pages_max = 0;
    for seed in 0..SEEDS {
        println!("seed {seed}");
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            world.step();
            pages_max = pages_max.max(world.pages());
        }
        world.commit();
        world.look();
        world.clear();
        assert_eq!(world.pages(), 0, "seed {seed}");
    }
    // Otherwise this was no test of pages.
    assert!(pages_max > 150, "{pages_max}");
}
