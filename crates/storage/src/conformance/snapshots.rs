//! Snapshots taken while bodies are applied, and engines restored from them.

use super::{Generator, body_if_data};
use crate::Engine;
use syros_commands::families::RecordVersions;
use syros_commands::{Operation, Reply};
use syros_types::{Database, OpNumber, Prng, WallTime};

/// Most bytes that a block may have above what was asked for: one record with the longest value that
/// [`Updates`] is likely to make, and the engine's own framing.
const BLOCK_EXCESS_MAX: usize = 32 * 1024;

/// One thing to be done with an engine.
#[derive(Clone, Debug)]
enum EngineCall {
    Apply(OpNumber, WallTime, Vec<u8>),
    Advance(WallTime),
}

impl EngineCall {
    /// Does it, and answers the reply.
    fn run<E: Engine>(&self, engine: &mut E) -> Vec<u8> {
        let mut reply = Vec::new();
        match self {
            Self::Apply(number, time, body) => {
                engine.begin_entry(*number);
                engine.apply(*time, body, &mut reply);
            }
            Self::Advance(time) => engine.advance(*time),
        }
        reply
    }
}

/// Draws steps that keep a few hundred keys coming, changing, moving and going.
#[derive(Debug)]
struct Updates {
    prng: Prng,
    generator: Generator,
    /// Log time, in microseconds.
    now: u64,
    /// The last log entry.
    entry: u64,
    /// Number of key names.
    names: u64,
    /// One command in so many empties the engine.
    flush_one_in: u64,
    /// Some commands are on other databases than the first.
    has_databases: bool,
}

impl Updates {
    fn new(seed: u64) -> Self {
        let mut prng = Prng::new(seed);
        let names = 1 + prng.below(400);
        let flush_one_in = 100 + prng.below(3000);
        let mut generator = Generator::new(!seed, 1..4000, 1..2_000_000);
        generator.has_streams = true;
        generator.has_field_expiry = true;
        let has_databases = !seed.is_multiple_of(3);
        Self { prng, generator, now: 0, entry: 0, names, flush_one_in, has_databases }
    }

    fn next(&mut self) -> EngineCall {
        match self.prng.below(100) {
            // Many keys expire at once.
            0 => self.now += self.prng.below(1_500_000),
            1..30 => self.now += self.prng.below(4_000),
            _ => {}
        }
        let time = WallTime(self.now);
        if self.prng.chance(1, 20) {
            return EngineCall::Advance(time);
        }
        let words = self.words();
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let database = if self.has_databases { self.generator.database() } else { Database::FIRST };
        self.entry += 1;
        // In some rounds versions are recorded from some time on.
        if self.entry == 100 && self.names.is_multiple_of(2) {
            let mut body = Vec::new();
            Operation::new(RecordVersions).encode(&mut body);
            return EngineCall::Apply(OpNumber(self.entry), time, body);
        }
        let apply = |body| EngineCall::Apply(OpNumber(self.entry), time, body);
        body_if_data(&words, database).map_or(EngineCall::Advance(time), apply)
    }

    fn words(&mut self) -> Vec<Vec<u8>> {
        if self.prng.chance(1, self.flush_one_in) {
            let flush = if self.has_databases && self.prng.chance(1, 2) { "FLUSHDB" } else { "FLUSHALL" };
            return vec![flush.into()];
        }
        if self.prng.chance(1, 4) {
            let words = self.generator.command();
            // Emptying has its own rate.
            let is_of_databases = |word: &[u8]| !self.has_databases && (word == b"MOVE" || word == b"SWAPDB");
            let flush = words.iter().any(|word| {
                let word = word.to_ascii_uppercase();
                word.starts_with(b"FLUSH") || is_of_databases(&word)
            });
            return if flush { vec![b"DBSIZE".to_vec()] } else { words };
        }
        if self.prng.chance(1, 100) {
            return self.generator.learning();
        }
        let [key, other] = [self.key(), self.key()];
        let command = match self.prng.below(20) {
            0 => format!("DEL {key} {other}"),
            1 => format!("GETDEL {key}"),
            2 | 3 => format!("RENAME {key} {other}"),
            4 => format!("APPEND {key} tail"),
            5 => format!("SETRANGE {key} {} part", self.prng.below(60)),
            6 => format!("PERSIST {key}"),
            7 => format!("PEXPIRE {key} {}", self.prng.below(3000)),
            8 => format!("INCR {key}"),
            9 => "KEYS *".to_string(),
            10 => format!("SCAN {} COUNT {}", self.prng.below(400), 1 + self.prng.below(30)),
            11 => "RANDOMKEY".to_string(),
            12 => format!("GET {key}"),
            13 => format!("MSET {key} {} {other} 2", self.value()),
            14..17 => format!("SET {key} {} PX {}", self.value(), 1 + self.prng.below(3000)),
            _ => format!("SET {key} {}", self.value()),
        };
        command.split(' ').map(|word| word.as_bytes().to_vec()).collect()
    }

    fn key(&mut self) -> String {
        let number = self.prng.below(self.names);
        // Some too long for a place in a table itself.
        if number.is_multiple_of(7) { format!("key:{number:040}") } else { format!("key:{number}") }
    }

    fn value(&mut self) -> String {
        let length = if self.prng.chance(1, 50) { self.prng.below(2000) } else { self.prng.below(40) };
        format!("{:x>1$}", self.prng.below(100), length as usize)
    }
}

/// The reply to a command in a database.
fn ask<E: Engine>(engine: &E, words: &[&[u8]], database: Database) -> Vec<u8> {
    let body = body_if_data(words, database).expect("a command on data");
    let mut reply = Vec::new();
    engine.read(WallTime(0), &body, &mut reply);
    reply
}

/// The first expiry of any key, as PEXPIRETIME tells it.
fn first_expiry<E: Engine>(engine: &E) -> Option<WallTime> {
    Database::all().filter_map(|database| first_expiry_in(engine, database)).min()
}

fn first_expiry_in<E: Engine>(engine: &E, database: Database) -> Option<WallTime> {
    let ask = |words: &[&[u8]]| {
        Reply::decode_all(&ask(engine, words, database)).ok().and_then(|mut replies| replies.pop())
    };
    let Some(Reply::Array(keys)) = ask(&[b"KEYS", b"*"]) else { panic!("KEYS: no array") };
    let expiry = |key: Reply| match key {
        Reply::Bulk(key) => match ask(&[b"PEXPIRETIME", &key]) {
            Some(Reply::Integer(ms)) => u64::try_from(ms).ok(),
            other => panic!("PEXPIRETIME: {other:?}"),
        },
        other => panic!("KEYS: {other:?}"),
    };
    keys.into_iter().filter_map(expiry).min().map(|ms| WallTime((ms + 1).saturating_mul(1000)))
}

/// Everything about the state, positions included, that anybody can ask for.
fn observe<E: Engine>(engine: &E) -> (u64, WallTime, usize, Vec<Vec<u8>>) {
    let length = engine.len() as u64;
    let scans = |database| (0..length + 1).map(move |cursor| (database, format!("SCAN {cursor} COUNT 3")));
    let all = |database| scans(database).chain([(database, "KEYS *".to_string())]);
    let read = |(database, command): (Database, String)| {
        let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        ask(engine, &words, database)
    };
    // The generator uses no others.
    let replies = Database::all().take(3).flat_map(all).map(read).collect();
    (engine.digest(), engine.time(), engine.len(), replies)
}

/// What happened while snapshots were under way: a suite in which nothing happens would pass anyway.
#[derive(Debug, Default)]
struct Seen {
    emptied: usize,
    expired: usize,
    long: usize,
}

/// Takes snapshots at random moments, in blocks of random sizes, while random bodies are applied. What
/// `load` makes of the blocks has to be what the engine was when the snapshot began, in every answer from
/// then on; and the engine itself what it is without a snapshot.
///
/// # Panics
/// If it is not so.
pub(super) fn test<E: Engine>(make: &impl Fn() -> E, load: &impl Fn(&[Vec<u8>]) -> E, rounds: u64) {
    let mut seen = Seen::default();
    for seed in 0..rounds {
        test_round(make, load, seed, &mut seen);
    }
    let enough = |number: usize, of_200: u64| number as u64 * 200 > of_200 * rounds;
    let seen_enough = enough(seen.emptied, 10) && enough(seen.expired, 100) && enough(seen.long, 50);
    assert!(seen_enough, "too little happened: {seen:?}");
}

fn test_round<E: Engine>(make: &impl Fn() -> E, load: &impl Fn(&[Vec<u8>]) -> E, seed: u64, seen: &mut Seen) {
    let mut updates = Updates::new(seed);
    let mut prng = Prng::new(seed ^ 0x5eed);
    // The second never takes a snapshot, the third stops when it begins.
    let [mut engine, mut plain, mut witness] = [make(), make(), make()];
    let mut block = Vec::new();
    for _ in 0..prng.below(1500) {
        match prng.below(300) {
            // None of these completes the snapshot that counts.
            0 => engine.begin_snapshot(),
            1 => engine.end_snapshot(),
            2..30 => drop(engine.snapshot_block(prng.below(300) as usize, &mut block)),
            _ => {}
        }
        let step = updates.next();
        let reply = step.run(&mut engine);
        assert_eq!(reply, step.run(&mut plain), "seed {seed}: {step:?}");
        assert_eq!(reply, step.run(&mut witness), "seed {seed}: {step:?}");
    }
    if prng.chance(1, 4) {
        engine.end_snapshot();
        assert_eq!(engine.snapshot_waiting_bytes(), 0);
        let mut block = vec![7];
        assert!(!engine.snapshot_block(100, &mut block), "no snapshot is under way");
        assert_eq!(block, [7], "no snapshot is under way");
    }

    engine.begin_snapshot();
    let mut blocks = Vec::new();
    let bytes_max = [1, 100, 1000, 10_000][prng.below(4) as usize];
    let pause_max = [1, 10, 100][prng.below(3) as usize];
    loop {
        for _ in 0..prng.below(pause_max) {
            let (length, step) = (engine.len(), updates.next());
            assert_eq!(step.run(&mut engine), step.run(&mut plain), "seed {seed}: {step:?}");
            seen.emptied += usize::from(length > 10 && engine.is_empty());
            seen.expired += usize::from(matches!(step, EngineCall::Advance(_)) && engine.len() < length);
        }
        let bytes = prng.below(bytes_max) as usize;
        // What is in the buffer already must stay there.
        let mut block = b"before".to_vec();
        let more = engine.snapshot_block(bytes, &mut block);
        assert!(block.starts_with(b"before"));
        block.drain(..6);
        assert!(block.len() >= if more { bytes.max(1) } else { 0 }, "a block of {} bytes", block.len());
        assert!(block.len() <= bytes + BLOCK_EXCESS_MAX, "a block of {} bytes, not {bytes}", block.len());
        blocks.push(block);
        if !more {
            break;
        }
    }
    seen.long += usize::from(blocks.len() > 20);
    assert_eq!(engine.snapshot_waiting_bytes(), 0, "seed {seed}");
    assert!(!engine.snapshot_block(1, &mut blocks[0].clone()), "seed {seed}: the snapshot is complete");
    if prng.chance(1, 3) {
        for end in (1..blocks.len()).rev() {
            blocks.swap(end, prng.below(end as u64 + 1) as usize);
        }
    }

    assert_eq!(observe(&engine), observe(&plain), "seed {seed}: a snapshot changed the engine");
    let mut restored = load(&blocks);
    assert_eq!(observe(&restored), observe(&witness), "seed {seed}: the snapshot is of another state");
    assert_eq!(restored.snapshot_waiting_bytes(), 0);
    for _ in 0..200 {
        let step = updates.next();
        assert_eq!(step.run(&mut restored), step.run(&mut witness), "seed {seed}: {step:?}");
        // One of them may take a key that has lost its expiry for one that has it.
        let context = format!("seed {seed}: {step:?}");
        for engine in [&restored, &witness] {
            super::assert_expiry(engine, first_expiry(engine), &context);
        }
    }
    assert_eq!(observe(&restored), observe(&witness), "seed {seed}");
}
