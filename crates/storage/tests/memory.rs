//! The in-memory engine passes the suite, and its tables' seed cannot be observed.

use syros_commands::{Parsed, parse};
use syros_storage::conformance::{self, Generator};
use syros_storage::{Engine, MemoryEngine};
use syros_types::WallTime;

#[test]
fn passes_the_conformance_suite() {
    conformance::test_all(MemoryEngine::new);
}

#[test]
fn passes_the_conformance_suite_with_another_seed() {
    conformance::test_all(|| MemoryEngine::with_hash_seed(0x5eed));
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
