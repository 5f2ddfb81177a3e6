//! The in-memory engine passes the suite, and its tables' seed cannot be observed.

use syros_commands::{Parsed, parse};
use syros_storage::conformance::{self, Generator};
use syros_storage::{Engine, MemoryEngine};
use syros_types::WallTime;

/// The engine of which these are the blocks.
fn load(hash_seed: u64, blocks: &[Vec<u8>]) -> MemoryEngine {
    let mut loader = MemoryEngine::loader(hash_seed);
    for block in blocks {
        loader.block(block).expect("a block of a snapshot");
    }
    loader.finish().expect("all blocks of a snapshot")
}

#[test]
fn passes_the_conformance_suite() {
    conformance::test_all(MemoryEngine::new, |blocks| load(1, blocks));
}

#[test]
fn passes_the_conformance_suite_with_another_seed() {
    conformance::test_all(|| MemoryEngine::with_hash_seed(0x5eed), |blocks| load(0, blocks));
}

/// Same bodies at the same times, same answers to the byte: RANDOMKEY, SCAN and the order of KEYS too,
/// with any seed, and on a clone taken in the middle.
#[test]
fn equal_histories_give_equal_answers() {
    let mut generator = Generator::new(9, 1..4000, 1..2_000_000);
    let mut engines = [MemoryEngine::new(), MemoryEngine::with_hash_seed(1), MemoryEngine::with_hash_seed(2)];
    for step in 0..20_000u64 {
        if step == 10_000 {
            engines[2] = engines[0].clone();
        }
        let words = generator.command();
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let Ok(Parsed::Data(operation)) = parse(&words) else { continue };
        let mut body = Vec::new();
        operation.encode(&mut body);
        let time = WallTime(step * 20_000);
        let replies = engines.each_mut().map(|engine| {
            let mut reply = Vec::new();
            if operation.command.is_read() {
                engine.read(time, &body, &mut reply);
            } else {
                engine.apply(time, &body, &mut reply);
            }
            reply
        });
        assert!(replies.iter().all(|reply| *reply == replies[0]), "step {step}: {words:?}");
    }
    assert_eq!(engines[0].digest(), engines[1].digest());
    assert_eq!(engines[0].digest(), engines[2].digest());
}

#[test]
fn a_clone_is_independent() {
    let mut original = MemoryEngine::new();
    original.apply(WallTime(1), &conformance::body_of(&[b"SETEX", b"k", b"10", b"v"]), &mut Vec::new());
    let digest = original.digest();
    let mut clone = original.clone();
    assert_eq!(clone.digest(), digest);
    clone.apply(WallTime(1), &conformance::body_of(&[b"APPEND", b"k", b"w"]), &mut Vec::new());
    clone.advance(WallTime(20_000_000));
    assert_eq!((original.digest(), original.len(), clone.len()), (digest, 1, 0));
    assert!(clone.memory_bytes() < original.memory_bytes());
}

fn apply(engine: &mut MemoryEngine, words: &[&[u8]]) {
    engine.apply(engine.time(), &conformance::body_of(words), &mut Vec::new());
}

/// An engine with `count` keys, and values of 1000 bytes.
fn filled(count: usize) -> MemoryEngine {
    let mut engine = MemoryEngine::new();
    for number in 0..count {
        apply(&mut engine, &[b"SET", number.to_string().as_bytes(), &[b'v'; 1000]]);
    }
    engine
}

/// All blocks of the snapshot under way.
fn blocks(engine: &mut MemoryEngine, bytes: usize) -> Vec<Vec<u8>> {
    let (mut blocks, mut more) = (Vec::new(), true);
    while more {
        let mut block = Vec::new();
        more = engine.snapshot_block(bytes, &mut block);
        blocks.push(block);
    }
    blocks
}

#[test]
fn what_waits_for_a_snapshot_is_what_has_changed() {
    let mut engine = filled(100);
    let (digest, memory) = (engine.digest(), engine.memory_bytes());
    engine.begin_snapshot();
    assert_eq!(engine.snapshot_waiting_bytes(), 0);
    for _ in 0..3 {
        apply(&mut engine, &[b"SET", b"7", b"x"]);
    }
    let one = engine.snapshot_waiting_bytes();
    assert!((1000..1100).contains(&one), "{one} bytes wait");
    // The key and the last one, which takes its place.
    apply(&mut engine, &[b"DEL", b"8"]);
    let three = engine.snapshot_waiting_bytes();
    assert!((3000..3300).contains(&three), "{three} bytes wait");
    apply(&mut engine, &[b"SET", b"new", b"x"]);
    apply(&mut engine, &[b"GET", b"9"]);
    assert_eq!(engine.snapshot_waiting_bytes(), three);
    // What waits is taken first.
    let mut block = Vec::new();
    assert!(engine.snapshot_block(three, &mut block));
    assert_eq!(engine.snapshot_waiting_bytes(), 0);
    let mut copies = engine.clone();
    // All that is left waits; its memory goes back as it is taken.
    apply(&mut engine, &[b"FLUSHALL"]);
    let mut before = engine.snapshot_waiting_bytes();
    assert!(before > 97 * 1000 && before < memory && engine.memory_bytes() < 1000, "{before} bytes wait");
    let mut taken = vec![block.clone()];
    loop {
        let mut block = Vec::new();
        let more = engine.snapshot_block(1, &mut block);
        taken.push(block);
        if !more {
            break;
        }
        let after = engine.snapshot_waiting_bytes();
        assert!(after < before, "{after} bytes wait, {before} before");
        before = after;
    }
    let restored = load(0, &taken);
    assert_eq!((restored.digest(), restored.memory_bytes()), (digest, memory));
    // A clone taken in the middle goes on by itself.
    let mut of_clone = vec![block];
    of_clone.extend(blocks(&mut copies, 500));
    assert_eq!(load(0, &of_clone).digest(), digest);
}

#[test]
fn restored_memory_is_accounted_for() {
    let mut generator = Generator::new(5, 1..4000, 1..2_000_000);
    let mut engine = MemoryEngine::new();
    for step in 0..3000 {
        if let Some(body) = generator.body() {
            engine.apply(WallTime(step * 50_000), &body, &mut Vec::new());
        }
        engine.begin_snapshot();
        let memory = engine.memory_bytes();
        let blocks = blocks(&mut engine, 100);
        assert_eq!(load(3, &blocks).memory_bytes(), memory, "step {step}");
    }
}

#[test]
fn memory_is_given_back() {
    let mut engine = MemoryEngine::new();
    let value = vec![b'v'; 1 << 20];
    engine.apply(WallTime(0), &conformance::body_of(&[b"SET", b"k", &value]), &mut Vec::new());
    assert!(engine.memory_bytes() > value.len());
    engine.apply(WallTime(0), &conformance::body_of(&[b"FLUSHALL"]), &mut Vec::new());
    assert!(engine.memory_bytes() < value.len());
}
