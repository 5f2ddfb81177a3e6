//! What a snapshot of a million keys costs: `cargo run --release -p syros-storage --example snapshot_speed`.

use std::hint::black_box;
use std::time::{Duration, Instant};
use syros_commands::{Parsed, parse};
use syros_storage::{Engine, MemoryEngine};
use syros_types::{Prng, WallTime};

const KEYS: u64 = 1_000_000;
const BLOCK_BYTES: usize = 256 * 1024;

fn set(number: u64) -> Vec<u8> {
    let key = format!("key:{number:020}");
    let words: [&[u8]; 3] = [b"SET", key.as_bytes(), &[b'v'; 100]];
    let mut body = Vec::new();
    if let Ok(Parsed::Data(operation)) = parse(&words) {
        operation.encode(&mut body);
    }
    body
}

fn apply(engine: &mut MemoryEngine, body: &[u8], reply: &mut Vec<u8>) {
    reply.clear();
    engine.apply(WallTime(1), body, reply);
}

fn report(what: &str, elapsed: Duration) {
    println!("{what:<48} {:>8.0} ns per key", elapsed.as_nanos() as f64 / KEYS as f64);
}

/// All blocks of a snapshot, and the longest time that one took.
fn take(engine: &mut MemoryEngine) -> (Vec<Vec<u8>>, Duration) {
    let (mut blocks, mut longest, mut more) = (Vec::new(), Duration::ZERO, true);
    while more {
        let start = Instant::now();
        let mut block = Vec::with_capacity(BLOCK_BYTES + 1024);
        more = engine.snapshot_block(BLOCK_BYTES, &mut block);
        blocks.push(block);
        longest = longest.max(start.elapsed());
    }
    (blocks, longest)
}

fn main() {
    let mut prng = Prng::new(1);
    let random: Vec<Vec<u8>> = (0..KEYS).map(|_| set(prng.below(KEYS))).collect();
    let mut reply = Vec::new();
    let mut engine = MemoryEngine::new();
    let start = Instant::now();
    (0..KEYS).for_each(|number| apply(&mut engine, &set(number), &mut reply));
    report("filling, with making the bodies", start.elapsed());

    let overwrite = |engine: &mut MemoryEngine, reply: &mut Vec<u8>| {
        let start = Instant::now();
        random.iter().for_each(|body| apply(engine, body, reply));
        start.elapsed()
    };
    overwrite(&mut engine, &mut reply);
    for _ in 0..3 {
        report("overwriting at random, no snapshot", overwrite(&mut engine, &mut reply));
    }
    for _ in 0..2 {
        let start = Instant::now();
        engine.begin_snapshot();
        println!("beginning a snapshot: {:?}", start.elapsed());
        let elapsed = overwrite(&mut engine, &mut reply);
        report("overwriting at random, copying ahead of a snapshot", elapsed);
        println!("bytes that wait: {}", engine.snapshot_waiting_bytes());
        let start = Instant::now();
        let (blocks, longest) = take(&mut engine);
        report("taking its blocks", start.elapsed());
        println!("longest block: {longest:?}; bytes: {}", blocks.iter().map(Vec::len).sum::<usize>());
        load("loading it", &blocks, engine.digest());

        engine.begin_snapshot();
        let start = Instant::now();
        let (blocks, longest) = take(&mut engine);
        report("taking the blocks of a snapshot without changes", start.elapsed());
        println!("longest block: {longest:?}; blocks: {}", blocks.len());
        load("loading it", &blocks, engine.digest());
    }
}

fn load(what: &str, blocks: &[Vec<u8>], digest: u64) {
    let (start, mut longest) = (Instant::now(), Duration::ZERO);
    let mut loader = MemoryEngine::loader(7);
    for block in blocks {
        let start = Instant::now();
        loader.block(block).expect("a block of a snapshot");
        longest = longest.max(start.elapsed());
    }
    let restored = black_box(loader.finish().expect("all blocks of a snapshot"));
    report(what, start.elapsed());
    println!("longest block: {longest:?}");
    assert_eq!(restored.digest(), digest);
}
