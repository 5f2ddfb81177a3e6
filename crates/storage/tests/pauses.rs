//! A large value is given back in steps and read apart, and nobody can tell.

use syros_commands::Reply;
use syros_storage::conformance::{Generator, body_if_data, body_of};
use syros_storage::{Engine, LongRead, MemoryEngine};
use syros_types::{Prng, WallTime};

/// So many fields are some megabytes.
const FIELDS: usize = 60_000;

fn apply(engine: &mut MemoryEngine, words: &[&[u8]]) -> Vec<u8> {
    let mut reply = Vec::new();
    engine.apply(WallTime(1_000), &body_of(words), &mut reply);
    reply
}

fn read(engine: &MemoryEngine, words: &[&[u8]]) -> Vec<u8> {
    let mut reply = Vec::new();
    engine.read(WallTime(1_000), &body_of(words), &mut reply);
    reply
}

/// An engine with a large hash at `h` and a string at `s`.
fn filled() -> MemoryEngine {
    let mut engine = MemoryEngine::new();
    apply(&mut engine, &[b"SET", b"s", b"value"]);
    add_fields(&mut engine, b"h");
    engine
}

fn add_fields(engine: &mut MemoryEngine, key: &[u8]) {
    let fields: Vec<Vec<u8>> = (0..FIELDS).map(|number| format!("field:{number}").into_bytes()).collect();
    let pairs = fields.iter().flat_map(|field| [field.as_slice(), b"the value of the field"]);
    let words: Vec<&[u8]> = [&b"HSET"[..], key].into_iter().chain(pairs).collect();
    apply(engine, &words);
    assert_eq!(engine.garbage_bytes(), 0);
}

/// Gives everything back; how many steps that takes.
fn give_back(engine: &mut MemoryEngine, nodes: usize) -> usize {
    let mut steps = 1;
    while engine.give_back(nodes) {
        steps += 1;
    }
    assert_eq!(engine.garbage_bytes(), 0);
    steps
}

#[test]
fn whatever_ends_a_large_value_leaves_its_memory_to_later_steps() {
    let ends: [(&str, &[&[u8]]); 5] = [
        ("DEL", &[b"DEL", b"h"]),
        ("SET", &[b"SET", b"h", b"value"]),
        ("RENAME", &[b"RENAME", b"s", b"h"]),
        ("MSET", &[b"MSET", b"s", b"value", b"h", b"value"]),
        ("PEXPIREAT", &[b"PEXPIREAT", b"h", b"1"]),
    ];
    for (end, words) in ends {
        let mut engine = filled();
        let data = engine.memory_bytes();
        apply(&mut engine, words);
        engine.advance(WallTime(1_000_000));
        let garbage = engine.garbage_bytes() as usize;
        assert!(engine.memory_bytes() < 1_000 && garbage > data / 10 * 9, "{end}: {garbage} of {data} bytes");
        let digest = engine.digest();
        let steps = give_back(&mut engine, 50);
        assert!((garbage / 1024 / 100..garbage / 512 / 50).contains(&steps), "{end}: {steps} steps");
        assert_eq!(engine.digest(), digest, "{end}");
    }
}

/// Nobody need ask for it: what updates add, they give back first.
#[test]
fn updates_give_back_as_much_as_they_add() {
    let mut engine = filled();
    apply(&mut engine, &[b"DEL", b"h"]);
    let before = engine.garbage_bytes() as usize;
    let most = 2 * before;
    for number in 0..2 * FIELDS {
        let field = number.to_string();
        apply(&mut engine, &[b"HSET", b"other", field.as_bytes(), &[b'v'; 600]]);
        let both = engine.memory_bytes() + engine.garbage_bytes() as usize;
        assert!(both < most || engine.garbage_bytes() == 0, "{both} bytes");
    }
    assert!(engine.memory_bytes() > most && engine.garbage_bytes() == 0);
}

#[test]
fn a_snapshot_keeps_a_large_value_and_leaves_it_to_later_steps() {
    for ends_early in [false, true] {
        let mut engine = filled();
        let (digest, data) = (engine.digest(), engine.memory_bytes());
        engine.begin_snapshot();
        let mut blocks = vec![Vec::new()];
        assert!(engine.snapshot_block(100, &mut blocks[0]));
        apply(&mut engine, &[b"DEL", b"h"]);
        let steps = give_back(&mut engine, 50);
        assert!(steps < 50, "{steps} steps: the snapshot holds it");
        if ends_early {
            engine.end_snapshot();
            assert!(engine.garbage_bytes() as usize > data / 10 * 9 && engine.take_leftover().is_none());
            continue;
        }
        loop {
            let mut block = Vec::new();
            let more = engine.snapshot_block(10_000, &mut block);
            blocks.push(block);
            if !more {
                break;
            }
        }
        assert!(engine.garbage_bytes() as usize > data / 10 * 9);
        assert!(give_back(&mut engine, 50) > 50 && engine.take_leftover().is_none());
        let mut loader = MemoryEngine::loader(0);
        blocks.iter().for_each(|block| loader.block(block).expect("a block of a snapshot"));
        assert_eq!(loader.finish().expect("a whole snapshot").digest(), digest);
    }
}

#[test]
fn a_table_that_flushall_empties_is_left_to_another_thread() {
    let mut engine = filled();
    apply(&mut engine, &[b"FLUSHALL"]);
    assert_eq!(engine.garbage_bytes(), 0);
    assert!(engine.take_leftover().is_some() && engine.take_leftover().is_none());
    // A small one is not worth it.
    apply(&mut engine, &[b"SET", b"k", b"v"]);
    apply(&mut engine, &[b"FLUSHALL"]);
    assert!(engine.take_leftover().is_none());
    // A snapshot or a KEYS goes on with the table, both with one.
    for (snapshot, keys) in [(true, false), (false, true), (true, true)] {
        let mut engine = filled();
        let digest = engine.digest();
        if keys {
            engine.begin_keys(&body_of(&[b"KEYS", b"*"]));
        }
        if snapshot {
            engine.begin_snapshot();
        }
        apply(&mut engine, &[b"FLUSHALL"]);
        assert!(engine.take_leftover().is_none(), "it is needed");
        let mut loader = MemoryEngine::loader(0);
        let mut more = snapshot;
        while more {
            let mut block = Vec::new();
            more = engine.snapshot_block(100_000, &mut block);
            loader.block(&block).expect("a block of a snapshot");
        }
        assert_eq!(engine.take_leftover().is_some(), snapshot);
        if snapshot {
            assert_eq!(loader.finish().expect("a whole snapshot").digest(), digest);
        }
        if keys {
            let mut reply = Vec::new();
            engine.go_on_keys().expect("few keys").put(&mut reply);
            let replies = Reply::decode_all(&reply).expect("well-formed");
            assert!(matches!(&replies[..], [Reply::Array(names)] if names.len() == 2), "{replies:?}");
        }
    }
}

/// Nobody waits for leftovers that nobody takes.
#[test]
fn leftovers_that_nobody_takes_do_not_add_up() {
    let mut engine = MemoryEngine::new();
    for _ in 0..20 {
        apply(&mut engine, &[b"SET", b"k", &[b'v'; 1 << 20]]);
        apply(&mut engine, &[b"FLUSHALL"]);
    }
    let leftovers = std::iter::from_fn(|| engine.take_leftover()).count();
    assert!((1..=8).contains(&leftovers), "{leftovers}");
}

#[test]
fn reads_of_large_values_are_executed_apart() {
    let engine = filled();
    let how = |command: &str| {
        let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        engine.long_read(&body_of(&words))
    };
    for command in [
        "HGETALL h",
        "HKEYS h",
        "HVALS h",
        "HSCAN h 0 COUNT 1000000",
        "HRANDFIELD h -1000000",
        "HRANDFIELD h 1000000",
        "DUMP h",
    ] {
        assert!(matches!(how(command), Some(LongRead::Detached { .. })), "{command}");
    }
    for command in [
        "HLEN h",
        "HGET h field:1",
        "HSCAN h 0 COUNT 100",
        "HRANDFIELD h 100",
        "HMGET h a b",
        "HGETALL s",
        "HGETALL missing",
        "KEYS *",
        "DEL h",
    ] {
        assert_eq!(how(command), None, "{command}");
    }
    assert_eq!(engine.long_read(&[]), None);
    assert_eq!(engine.long_read(&[0xff; 9]), None);
    let both = [body_of(&[b"GET", b"s"]), body_of(&[b"HGETALL", b"h"])].concat();
    assert!(matches!(engine.long_read(&both), Some(LongRead::Detached { .. })));
}

/// What is executed meanwhile does not show.
#[test]
fn a_read_apart_sees_the_moment_at_which_it_was_taken() {
    let mut engine = filled();
    let words: &[&[u8]] = &[b"HGETALL", b"h"];
    let expected = read(&engine, words);
    let mut put = |end: &[&[u8]]| {
        let detached = engine.detach(WallTime(1_000), &body_of(words));
        apply(&mut engine, end);
        give_back(&mut engine, 1_000);
        let mut reply = Vec::new();
        detached.put(&mut reply);
        reply
    };
    assert_eq!(put(&[b"HDEL", b"h", b"field:1"]), expected);
    assert_ne!(put(&[b"HSET", b"h", b"field:1", b"the value of the field"]), expected);
    assert_eq!(put(&[b"DEL", b"h"]), expected);
    assert_ne!(put(&[b"DEL", b"h"]), expected);
}

/// Any reads of any keys answer apart what they answer in the engine.
#[test]
fn any_reads_answer_the_same_apart() {
    let mut generator = Generator::new(11, 1..4000, 1..2_000_000);
    let mut prng = Prng::new(12);
    let mut engine = MemoryEngine::new();
    let mut compared = 0;
    for step in 0..30_000 {
        let words = generator.command();
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let Some(body) = body_if_data(&words, generator.database()) else { continue };
        let body = if prng.chance(1, 3) { body.repeat(2) } else { body };
        let operations: Vec<_> = syros_commands::operations(&body).flatten().collect();
        let names_keys = operations.iter().all(|operation| !operation.concerns_all_keys());
        if names_keys && operations.iter().all(|operation| operation.command.is_read()) {
            let (mut inside, mut apart) = (Vec::new(), Vec::new());
            engine.read(WallTime(step * 50_000), &body, &mut inside);
            engine.detach(WallTime(step * 50_000), &body).put(&mut apart);
            assert_eq!(inside, apart, "{words:?}");
            compared += 1;
        }
        engine.apply(WallTime(step * 50_000), &body, &mut Vec::new());
    }
    assert!(compared > 3_000, "{compared}");
}
