//! How long a large hash keeps whoever drives an engine in memory from doing other things: `cargo run --release -p
//! syros-storage --example pauses [FIELDS]`. Of everything that is done in steps, the longest step is shown; of each step,
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

/// An engine with a hash of so many fields at `h`, and a string at `s`.
fn filled(fields: u64) -> MemoryEngine {
    let mut engine = MemoryEngine::new();
    apply(&mut engine, &[b"SET", b"s", b"value"]);
    for number in 0..fields {
        let field = format!("field:{number:08}");
        apply(&mut engine, &[b"HSET", b"h", field.as_bytes(), b"value:0000000"]);
    }
    engine
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

/// Prints what `step` takes on new engines, called until it answers false.
fn measure(what: &str, fields: u64, mut step: impl FnMut(&mut MemoryEngine, usize) -> bool) {
    let mut steps = Steps::default();
    for _ in 0..RUNS {
        let mut engine = filled(fields);
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
fn measure_command(what: &str, fields: u64, words: &[&[u8]]) {
    let body = body_of(words);
    measure(what, fields, |engine, number| {
        if number == 0 {
            engine.apply(WallTime(1), black_box(&body), &mut Vec::new());
            return engine.garbage_bytes() > 0;
        }
        engine.give_back(NODES_PER_TURN)
    });
}

fn main() {
    let fields = std::env::args().nth(1).and_then(|number| number.parse().ok()).unwrap_or(1_000_000);
    let bytes = filled(fields).memory_bytes() - MemoryEngine::new().memory_bytes();
    println!("{fields} fields of {:.1} bytes", bytes as f64 / fields as f64);
    measure_command("DEL", fields, &[b"DEL", b"h"]);
    measure_command("SET", fields, &[b"SET", b"h", b"v"]);
    measure_command("RENAME", fields, &[b"RENAME", b"s", b"h"]);
    measure("expiry", fields, |engine, number| {
        if number == 0 {
            apply(engine, &[b"PEXPIREAT", b"h", b"1"]);
            engine.advance(WallTime(1_000_000));
        }
        engine.give_back(NODES_PER_TURN)
    });
    let mut leftovers = Vec::new();
    measure("FLUSHALL", fields, |engine, _| {
        apply(engine, &[b"FLUSHALL"]);
        leftovers.extend(engine.take_leftover());
        false
    });
    let start = Instant::now();
    drop(leftovers);
    let each = start.elapsed() / u32::try_from(RUNS).unwrap_or(1);
    println!("{:<44} {:>9.3} ms", "  its table, by another thread", each.as_secs_f64() * 1e3);
    measure("a snapshot and DEL", fields, |engine, number| {
        if number == 0 {
            engine.begin_snapshot();
        }
        if number == 3 {
            apply(engine, &[b"DEL", b"h"]);
        }
        engine.give_back(NODES_PER_TURN);
        engine.snapshot_block(BLOCK_BYTES, &mut Vec::with_capacity(2 * BLOCK_BYTES))
            || engine.garbage_bytes() > 0
    });
    measure("HGETALL", fields, |engine, _| {
        let body = body_of(&[b"HGETALL", b"h"]);
        black_box(engine.long_read(&body).map(|_| engine.detach(WallTime(1), &body)));
        false
    });
    measure("  its reply, by another thread", fields, |engine, _| {
        engine.detach(WallTime(1), &body_of(&[b"HGETALL", b"h"])).put(&mut Vec::new());
        false
    });
    let field = |number: u64| format!("new:{number:08}").into_bytes();
    let new: Vec<Vec<u8>> = (0..65_536).flat_map(|number| [field(number), b"value".to_vec()]).collect();
    let words: Vec<&[u8]> = [&b"HSET"[..], b"h"].into_iter().chain(new.iter().map(Vec::as_slice)).collect();
    measure_command("HSET of 65,536 fields", fields, &words);
    let names = new.iter().step_by(2).map(Vec::as_slice);
    let words: Vec<&[u8]> = [&b"HDEL"[..], b"h"].into_iter().chain(names).collect();
    measure_command("HDEL of 65,536 fields", fields, &words);
}
