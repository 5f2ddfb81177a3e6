//! What the commands that clients send most cost besides their memory: `cargo run --release -p syros-storage --example
//! command_speed`.

use std::hint::black_box;
use std::time::Instant;
use syros_commands::{Parsed, describe, parse};
use syros_storage::{Engine, MemoryEngine};
use syros_types::WallTime;

/// Few enough that the processor's caches hold them all.
const KEYS: u64 = 1000;

/// Each so short that some of them have a processor for themselves.
const ROUNDS: u64 = 3000;

fn encode(words: &[&[u8]], body: &mut Vec<u8>) {
    body.clear();
    if let Ok(Parsed::Data(operation)) = parse(words) {
        operation.encode(body);
    }
}

/// Prints the nanoseconds that `run` takes for one of `KEYS` things, in the fastest round.
fn measure(command: &str, what: &str, mut run: impl FnMut()) {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed().as_nanos() as f64 / KEYS as f64);
    }
    println!("{command:<8} {what:<20} {best:>7.1} ns");
}

fn main() {
    let names: Vec<String> = (0..KEYS).map(|number| format!("key:{number:012}")).collect();
    let mut engine = MemoryEngine::new();
    for (command, arguments) in [
        ("SET", &[&b"123456789012345678"[..]][..]),
        ("GET", &[]),
        ("INCRBY", &[b"7"]),
        ("APPEND", &[b""]),
        ("EXPIRE", &[b"1000"]),
        ("MGET", &[b"key:000000000001", b"key:000000000002"]),
        ("MSET", &[b"123", b"key:000000000001", b"123"]),
        ("DEL", &[]),
    ] {
        let words: Vec<Vec<&[u8]>> = names
            .iter()
            .map(|name| [&[command.as_bytes(), name.as_bytes()][..], arguments].concat())
            .collect();
        let bodies: Vec<Vec<u8>> = words
            .iter()
            .map(|words| {
                let mut body = Vec::new();
                encode(words, &mut body);
                body
            })
            .collect();
        let mut out = Vec::new();
        measure(command, "parse and encode", || {
            words.iter().for_each(|words| encode(black_box(words), &mut out));
        });
        measure(command, "describe", || {
            bodies.iter().for_each(|body| {
                let _ = black_box(describe(black_box(body)));
            });
        });
        measure(command, "long or not", || {
            bodies.iter().for_each(|body| {
                black_box(engine.long_read(black_box(body)));
            });
        });
        measure(command, "apply", || {
            for body in &bodies {
                out.clear();
                engine.apply(WallTime(1), black_box(body), &mut out);
            }
        });
    }
}
