//! What commands on lists cost, at the ends and in the middle: `cargo run --release -p syros-storage --example list_speed`.
//! Times are those of the thread's own processor time.

mod speed;

use speed::{measure, once};
use syros_storage::conformance::body_of;
use syros_storage::{Engine, MemoryEngine};
use syros_types::{Prng, WallTime};

/// Elements of the large list.
const ELEMENTS: u64 = 1_000_000;

/// Commands that are measured at a time.
const COMMANDS: usize = 100_000;

fn words(command: &str) -> Vec<u8> {
    body_of(&command.split(' ').map(str::as_bytes).collect::<Vec<_>>())
}

fn filled(elements: u64) -> MemoryEngine {
    let mut engine = MemoryEngine::new();
    for number in 0..elements {
        engine.apply(WallTime(1), &words(&format!("RPUSH l element:{number:07}")), &mut Vec::new());
    }
    engine
}

fn main() {
    for elements in [8, 128, 1_000, ELEMENTS] {
        let empty = MemoryEngine::new().memory_bytes();
        let mut engine = filled(elements);
        let bytes = (engine.memory_bytes() - empty) as f64 / elements as f64;
        println!("{:<48} {bytes:>9.1} bytes", format!("an element of {elements}, of 15 bytes"));
        measure_commands(elements, &mut engine);
    }
    large();
}

/// Prints what commands on a list of so many elements take, which leave it as long as it is.
fn measure_commands(elements: u64, engine: &mut MemoryEngine) {
    let mut prng = Prng::new(1);
    let middle = elements / 2;
    let mut index = || prng.below(elements);
    let queue: Vec<_> = ["LPUSH l element:1111111", "RPOP l"].repeat(COMMANDS / 2);
    let queue: Vec<_> = queue.into_iter().map(words).collect();
    measure(&format!("LPUSH or RPOP, {elements}"), engine, &queue);
    let moves = vec![words("LMOVE l l LEFT RIGHT"); COMMANDS];
    measure(&format!("LMOVE to the other end, {elements}"), engine, &moves);
    let reads: Vec<_> = (0..COMMANDS).map(|_| words(&format!("LINDEX l {}", index()))).collect();
    measure(&format!("LINDEX, {elements}"), engine, &reads);
    let sets: Vec<_> = (0..COMMANDS).map(|_| words(&format!("LSET l {} element:2222222", index()))).collect();
    measure(&format!("LSET, {elements}"), engine, &sets);
    for (place, range) in [
        ("front", "LRANGE l 0 99".to_string()),
        ("middle", format!("LRANGE l {middle} {}", middle + 99)),
        ("end", "LRANGE l -100 -1".to_string()),
    ] {
        let reads = vec![words(&range); COMMANDS / 2];
        measure(&format!("LRANGE of 100 at the {place}, {elements}"), engine, &reads);
    }
}

/// What takes long, or must not.
fn large() {
    let mut engine = filled(ELEMENTS);
    let mut run = |command: &str| {
        let body = words(command);
        once(command, || engine.apply(WallTime(1), &body, &mut Vec::new()));
    };
    run("LPOS l none");
    run("LINSERT l AFTER element:0500000 new");
    run("LREM l 0 none");
    run("LREM l -1 element:0400000");
    run("LTRIM l 100000 -100001");
    run("LPOP l 400000");
    run("LRANGE l 0 -1");
    run("DEL l");
    let mut engine = filled(ELEMENTS);
    for index in (0..ELEMENTS).step_by(2) {
        engine.apply(WallTime(1), &words(&format!("LSET l {index} equal")), &mut Vec::new());
    }
    for count in [10_000, 60_000, 120_000, 0] {
        let body = words(&format!("LREM l {count} equal"));
        once(&format!("LREM of {count} of every second one"), || {
            engine.apply(WallTime(1), &body, &mut Vec::new());
        });
    }
}
