//! What commands on hashes cost, and what a large one does to whoever else has to wait: `cargo run --release -p
//! syros-storage --example hash_speed`. Times are those of the thread's own processor time.

mod speed;

use speed::{measure, once, timed};
use std::hint::black_box;
use syros_storage::conformance::body_of;
use syros_storage::{Engine, MemoryEngine};
use syros_types::{Prng, WallTime};

/// Fields of the large hash.
const FIELDS: u64 = 1_000_000;

/// Commands that are measured at a time.
const COMMANDS: usize = 20_000;

fn field(number: u64) -> Vec<u8> {
    format!("field:{number:07}").into_bytes()
}

fn main() {
    let mut prng = Prng::new(1);
    for fields in [8, 128, FIELDS] {
        let mut engine = MemoryEngine::new();
        let fill: Vec<Vec<u8>> =
            (0..fields).map(|number| body_of(&[b"HSET", b"h", &field(number), b"value:0000000"])).collect();
        let before = engine.memory_bytes();
        if fields == FIELDS {
            measure("HSET of a new field", &mut engine, &fill);
        } else {
            fill.iter().for_each(|body| engine.apply(WallTime(1), body, &mut Vec::new()));
        }
        let bytes = (engine.memory_bytes() - before) as f64 / fields as f64;
        println!("{:<48} {bytes:>9.1} bytes", format!("a field of {fields}"));
        let mut bodies = |command: &[u8], rest: &[&[u8]]| -> Vec<Vec<u8>> {
            let mut body = |()| {
                let name = field(prng.below(fields));
                body_of(&[&[command, b"h", &name], rest].concat())
            };
            (0..COMMANDS).map(|_| body(())).collect()
        };
        let (gets, same, other) =
            (bodies(b"HGET", &[]), bodies(b"HSET", &[b"value:1111111"]), bodies(b"HSET", &[b"value:22"]));
        measure(&format!("HGET of {fields}"), &mut engine, &gets);
        measure(&format!("HSET, same length, of {fields}"), &mut engine, &same);
        measure(&format!("HSET, another length, of {fields}"), &mut engine, &other);
    }
    large();
}

/// What takes long, or must not.
fn large() {
    let mut engine = MemoryEngine::new();
    for number in 0..FIELDS {
        let body = body_of(&[b"HSET", b"h", &field(number), b"value:0000000"]);
        engine.apply(WallTime(1), &body, &mut Vec::new());
    }
    let mut reply = Vec::new();
    once("HGETALL", || engine.read(WallTime(1), &body_of(&[b"HGETALL", b"h"]), &mut reply));
    let set = body_of(&[b"HSET", b"h", b"f", b"v"]);
    let mut repeated = |what: &str, run: &mut dyn FnMut(&mut MemoryEngine, &mut Vec<u8>)| {
        let mut reply = Vec::new();
        let all = timed(|| (0..COMMANDS).for_each(|_| run(&mut engine, &mut reply)));
        println!("{what:<48} {:>9.0} ns", all / COMMANDS as f64);
    };
    repeated("evaluate HSET", &mut |engine, reply| {
        engine.evaluate(&set, reply);
    });
    // The first change after it copies the nodes on its path.
    repeated("begin a snapshot, HSET", &mut |engine, reply| {
        engine.begin_snapshot();
        engine.apply(WallTime(1), &set, reply);
    });
    let (mut blocks, mut more) = (Vec::new(), true);
    let all = timed(|| {
        while more {
            let mut block = Vec::new();
            more = engine.snapshot_block(64 << 10, &mut block);
            blocks.push(block);
        }
    });
    println!("{:<48} {:>9.3} ms", "a block of 64 KiB", all / blocks.len() as f64 / 1e6);
    once("restore", || {
        let mut loader = MemoryEngine::loader(0);
        blocks.iter().for_each(|block| loader.block(block).expect("a block"));
        drop(black_box(loader.finish().expect("a snapshot")));
    });
    once("DEL", || engine.apply(WallTime(1), &body_of(&[b"DEL", b"h"]), &mut reply));
}
