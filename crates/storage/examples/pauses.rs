//! How long a large collection keeps whoever drives an engine in memory from doing other things: `cargo run --release -p
//! syros-storage --example pauses [ELEMENTS] [TYPES]`, types being of `hash,set,zset,list,stream`. Of
//! everything that is done in steps, the longest step is shown; of each step,
//! the shortest of several runs, so that what other programs do on the machine does not show.

use std::hint::black_box;
use std::time::{Duration, Instant};
use syros_storage::conformance::body_of;
use syros_storage::{Engine, MemoryEngine};
use syros_types::WallTime;

/// Runs of which the shortest counts.
const RUNS: usize = 3;

/// As many nodes as a server gives back in one turn.
const NODES_PER_TURN: usize = 512;

/// As long as the blocks of a server's snapshots.
const BLOCK_BYTES: usize = 128 << 10;

fn apply(engine: &mut MemoryEngine, words: &[&[u8]]) {
    engine.apply(WallTime(1), &body_of(words), &mut Vec::new());
}

/// What is kept in the collection.
#[derive(Clone, Copy)]
struct Collection {
    name: &'static str,
    /// What adds an element, but for the element.
    add: [&'static str; 2],
    /// What reads all of it.
    read: &'static [&'static str],
}

const COLLECTIONS: [Collection; 5] = [
    Collection { name: "hash", add: ["HSET", "c"], read: &["HGETALL", "c"] },
    Collection { name: "set", add: ["SADD", "c"], read: &["SMEMBERS", "c"] },
    Collection { name: "zset", add: ["ZADD", "c"], read: &["ZRANGE", "c", "0", "-1", "WITHSCORES"] },
    Collection { name: "list", add: ["RPUSH", "c"], read: &["LRANGE", "c", "0", "-1"] },
    Collection { name: "stream", add: ["XADD", "c"], read: &["XRANGE", "c", "-", "+"] },
];

impl Collection {
    /// What adds the elements, each of 12 bytes, in another order than they are kept in.
    fn addition(self, numbers: std::ops::Range<u64>) -> Vec<Vec<u8>> {
        let mut words: Vec<Vec<u8>> = self.add.iter().map(|word| word.as_bytes().to_vec()).collect();
        for number in numbers {
            let element = format!("{:012x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16).into_bytes();
            match self.name {
                "hash" => words.extend([element, b"value:000000".to_vec()]),
                "zset" => words.extend([(number * 7919 % 1_000_000_007).to_string().into_bytes(), element]),
                "stream" => {
                    words.extend([format!("{}-1", number + 1).into_bytes(), b"field".to_vec(), element]);
                }
                _ => words.push(element),
            }
        }
        words
    }

    /// An engine with the collection at `c`, and a string at `s`.
    fn filled(self, elements: u64) -> MemoryEngine {
        let mut engine = MemoryEngine::new();
        apply(&mut engine, &[b"SET", b"s", b"value"]);
        let each = if self.name == "stream" { 1 } else { 64 };
        for first in (0..elements).step_by(each as usize) {
            let words = self.addition(first..elements.min(first + each));
            apply(&mut engine, &words.iter().map(Vec::as_slice).collect::<Vec<_>>());
        }
        engine
    }
}

/// Times of steps, each the shortest of all runs.
#[derive(Default)]
struct Steps(Vec<Duration>);

impl Steps {
    fn record(&mut self, step: usize, took: Duration) {
        match self.0.get_mut(step) {
            Some(shortest) => *shortest = took.min(*shortest),
            None => self.0.push(took),
        }
    }

    fn print(&self, what: &str) {
        let longest = self.0.iter().max().copied().unwrap_or_default().as_secs_f64() * 1e3;
        let all = self.0.iter().sum::<Duration>().as_secs_f64() * 1e3;
        println!("{what:<44} {longest:>9.3} ms of {:>6} steps, {all:>9.1} ms", self.0.len());
    }
}

/// A collection of so many elements.
#[derive(Clone, Copy)]
struct Case {
    collection: Collection,
    elements: u64,
}

/// Prints what `step` takes on new engines, called until it answers false.
fn measure(what: &str, case: Case, mut step: impl FnMut(&mut MemoryEngine, usize) -> bool) {
    let mut steps = Steps::default();
    for _ in 0..RUNS {
        let mut engine = case.collection.filled(case.elements);
        for number in 0.. {
            let start = Instant::now();
            let more = step(&mut engine, number);
            steps.record(number, start.elapsed());
            if !more {
                break;
            }
        }
    }
    steps.print(what);
}

/// Prints what a command takes and what is given back behind it.
fn measure_command(what: &str, case: Case, words: &[&[u8]]) {
    let body = body_of(words);
    measure(what, case, |engine, number| {
        if number == 0 {
            engine.apply(WallTime(1), black_box(&body), &mut Vec::new());
            return engine.garbage_bytes() > 0;
        }
        engine.give_back(NODES_PER_TURN)
    });
}

fn measure_collection(case: Case) {
    let Case { collection, elements } = case;
    let bytes = collection.filled(elements).memory_bytes() - MemoryEngine::new().memory_bytes();
    println!(
        "\n{} of {elements} elements, {:.1} bytes each",
        collection.name,
        bytes as f64 / elements as f64
    );
    measure_command("DEL", case, &[b"DEL", b"c"]);
    measure_command("SET", case, &[b"SET", b"c", b"v"]);
    measure_command("RENAME", case, &[b"RENAME", b"s", b"c"]);
    measure("expiry", case, |engine, number| {
        if number == 0 {
            apply(engine, &[b"PEXPIREAT", b"c", b"1"]);
            engine.advance(WallTime(1_000_000));
        }
        engine.give_back(NODES_PER_TURN)
    });
    let mut leftovers = Vec::new();
    measure("FLUSHALL", case, |engine, _| {
        apply(engine, &[b"FLUSHALL"]);
        leftovers.extend(engine.take_leftover());
        false
    });
    let start = Instant::now();
    drop(leftovers);
    let each = start.elapsed() / u32::try_from(RUNS).unwrap_or(1);
    println!("{:<44} {:>9.3} ms", "  its table, by another thread", each.as_secs_f64() * 1e3);
    measure("a snapshot and DEL", case, |engine, number| {
        if number == 0 {
            engine.begin_snapshot();
        }
        if number == 3 {
            apply(engine, &[b"DEL", b"c"]);
        }
        engine.give_back(NODES_PER_TURN);
        engine.snapshot_block(BLOCK_BYTES, &mut Vec::with_capacity(2 * BLOCK_BYTES))
            || engine.garbage_bytes() > 0
    });
    let read: Vec<&[u8]> = collection.read.iter().map(|word| word.as_bytes()).collect();
    measure("all of it is read", case, |engine, _| {
        let body = body_of(&read);
        black_box(engine.long_read(&body).map(|_| engine.detach(WallTime(1), &body)));
        false
    });
    measure("  its reply, by another thread", case, |engine, _| {
        engine.detach(WallTime(1), &body_of(&read)).put(&mut Vec::new());
        false
    });
    if collection.name != "stream" {
        let words = collection.addition(elements..elements + 65_536);
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        measure_command("65,536 new ones in one command", case, &words);
    }
}

fn main() {
    let elements = std::env::args().nth(1).and_then(|number| number.parse().ok()).unwrap_or(1_000_000);
    let names = std::env::args().nth(2).unwrap_or_else(|| "hash,set,zset,list,stream".to_owned());
    for collection in COLLECTIONS {
        if names.split(',').any(|name| name == collection.name) {
            measure_collection(Case { collection, elements });
        }
    }
}
