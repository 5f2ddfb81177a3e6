//! The in-memory engine passes the suite, and its tables' seed cannot be observed.

use std::collections::BTreeMap;

use syros_commands::{Parsed, Reply, lookup, may_be_no_op, operations, parse};
use syros_storage::conformance::{self, Generator, body_if_data};
use syros_storage::{Engine, MemoryEngine, RemovalPace};
use syros_types::{Database, OpNumber, Prng, WallTime};

/// The engine of which these are the blocks.
fn load(hash_seed: u64, blocks: &[Vec<u8>]) -> MemoryEngine {
    load_with_pace(hash_seed, RemovalPace::STANDARD, blocks)
}

fn load_with_pace(hash_seed: u64, pace: RemovalPace, blocks: &[Vec<u8>]) -> MemoryEngine {
    let mut loader = MemoryEngine::loader_with_pace(hash_seed, pace);
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

/// The same while some keys are due most of the time, and their records have not gone.
#[test]
fn passes_the_conformance_suite_at_a_slow_pace() {
    let pace = RemovalPace::SLOW;
    conformance::test_all(|| MemoryEngine::with_pace(2, pace), |blocks| load_with_pace(1, pace, blocks));
}

/// However many keys expire at once, they are gone at once for everybody, and an advance removes no more records than
/// its share; the others go as log time moves on.
#[test]
fn many_keys_that_expire_at_once_go_in_steps() {
    const KEYS: usize = 20_000;
    let mut engine = MemoryEngine::new();
    for number in 0..KEYS {
        let body = conformance::body_of(&[b"SET", format!("k{number}").as_bytes(), b"v", b"PXAT", b"1000"]);
        engine.apply(WallTime(1), &body, &mut Vec::new());
    }
    apply(&mut engine, &[b"SET", b"stays", b"v"]);
    let read = |engine: &MemoryEngine, words: &[&[u8]]| {
        let mut reply = Vec::new();
        engine.read(WallTime(0), &conformance::body_of(words), &mut reply);
        Reply::decode_all(&reply).expect("a reply").remove(0)
    };
    engine.advance(WallTime(1_001_000));
    assert_eq!((engine.len(), engine.expiring_len(Database::FIRST)), (1, 0));
    assert!(engine.expired() <= 1000, "{} at once", engine.expired());
    let stays = || Reply::Bulk(b"stays".to_vec());
    assert_eq!(read(&engine, &[b"DBSIZE"]), Reply::Integer(1));
    assert_eq!(read(&engine, &[b"KEYS", b"*"]), Reply::Array(vec![stays()]));
    assert_eq!(read(&engine, &[b"RANDOMKEY"]), stays());
    assert_eq!(read(&engine, &[b"EXISTS", b"k7", b"k19999"]), Reply::Integer(0));
    let (mut before, mut advances) = (engine.memory_bytes(), 1);
    while let Some(next) = engine.next_expiry() {
        let expired = engine.expired();
        assert!(next > engine.time());
        engine.advance(next);
        advances += 1;
        assert!(engine.memory_bytes() < before && engine.expired() - expired <= 1000);
        before = engine.memory_bytes();
    }
    assert_eq!(engine.expired(), KEYS as u64);
    assert!((KEYS / 1000..KEYS / 500).contains(&advances), "{advances} advances");
}

/// A large value counts as many: freeing it takes long.
#[test]
fn large_values_that_expire_at_once_go_in_steps() {
    let mut engine = MemoryEngine::new();
    let value = vec![b'v'; 1 << 20];
    for number in 0..64 {
        let body = conformance::body_of(&[b"SET", format!("k{number}").as_bytes(), &value, b"PXAT", b"1000"]);
        engine.apply(WallTime(1), &body, &mut Vec::new());
    }
    engine.advance(WallTime(1_001_000));
    assert!((1..=8).contains(&engine.expired()), "{} at once", engine.expired());
    // An update that adds a key whose record has not gone finds none.
    apply(&mut engine, &[b"APPEND", b"k63", b"new"]);
    let mut reply = Vec::new();
    engine.read(WallTime(0), &conformance::body_of(&[b"GET", b"k63"]), &mut reply);
    assert_eq!(Reply::decode_all(&reply), Ok(vec![Reply::Bulk(b"new".to_vec())]));
}

/// Same bodies at the same times, same answers to the byte: RANDOMKEY, SCAN and the order of KEYS too,
/// with any seed, and on a clone taken in the middle.
#[test]
fn equal_histories_give_equal_answers() {
    for pace in [RemovalPace::STANDARD, RemovalPace::SLOW] {
        assert_equal_answers(pace);
    }
}

fn assert_equal_answers(pace: RemovalPace) {
    let mut generator = Generator::new(9, 1..4000, 1..2_000_000);
    generator.has_streams = true;
    generator.has_field_expiry = true;
    let mut engines = [0, 1, 2].map(|seed| MemoryEngine::with_pace(seed, pace));
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
    for has_collections in [false, true] {
        let mut generator = Generator::new(5, 1..4000, 1..2_000_000);
        let mut engine = MemoryEngine::new();
        for step in 0..3000 {
            let words = generator.command();
            let group = lookup(&words[0]).map_or("", |spec| spec.group);
            let is_of_strings = group == "string" || group == "generic";
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            if let Some(body) =
                body_if_data(&words, generator.database()).filter(|_| has_collections || is_of_strings)
            {
                engine.apply(WallTime(step * 50_000), &body, &mut Vec::new());
            }
            engine.begin_snapshot();
            let memory = engine.memory_bytes();
            let blocks = blocks(&mut engine, 100);
            let restored = load(3, &blocks).memory_bytes();
            // The blocks of a tree that was restored are full, others need not be.
            let tolerance = if has_collections { memory / 2 } else { 0 };
            assert!(restored.abs_diff(memory) <= tolerance, "step {step}: {restored} instead of {memory}");
        }
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

/// A body that sets these fields of the hash `h`.
fn set_fields(numbers: std::ops::Range<u32>) -> Vec<Vec<u8>> {
    let mut words = vec![b"HSET".to_vec(), b"h".to_vec()];
    for number in numbers {
        words.push(format!("field:{number:07}").into_bytes());
        words.push(format!("value:{number:07}").into_bytes());
    }
    words
}

fn with_large_hash(fields: u32) -> MemoryEngine {
    let mut engine = MemoryEngine::new();
    for start in (0..fields).step_by(1000) {
        let words = set_fields(start..(start + 1000).min(fields));
        apply(&mut engine, &words.iter().map(Vec::as_slice).collect::<Vec<_>>());
    }
    engine
}

/// A hash of many fields goes into many blocks, as it was when the snapshot began, and may come out of them in any order.
#[test]
fn a_large_hash_is_captured_in_parts() {
    for (number, end) in ["", "HDEL", "DEL", "SET", "RENAME", "FLUSHALL"].into_iter().enumerate() {
        let mut engine = with_large_hash(20_000);
        apply(&mut engine, &[b"PEXPIRE", b"h", b"1000000"]);
        apply(&mut engine, &[b"SET", b"other", b"v"]);
        let digest = engine.digest();
        engine.begin_snapshot();
        let mut blocks = Vec::new();
        loop {
            let mut block = Vec::new();
            let more = engine.snapshot_block(10_000, &mut block);
            assert!(block.len() < 10_200, "a block of {} bytes", block.len());
            blocks.push(block);
            if !more {
                break;
            }
            if blocks.len() % 7 == 3 {
                let words = set_fields(20_000..20_010);
                apply(&mut engine, &words.iter().map(Vec::as_slice).collect::<Vec<_>>());
                apply(&mut engine, &[b"HSET", b"h", b"field:0000077", b"changed"]);
            }
            if blocks.len() == 10 {
                match end {
                    "HDEL" => apply(&mut engine, &[b"HDEL", b"h", b"field:0000100", b"field:0000078"]),
                    "DEL" => apply(&mut engine, &[b"DEL", b"h"]),
                    "SET" => apply(&mut engine, &[b"SET", b"h", b"v"]),
                    "RENAME" => apply(&mut engine, &[b"RENAME", b"h", b"other"]),
                    "FLUSHALL" => apply(&mut engine, &[b"FLUSHALL"]),
                    _ => {}
                }
            }
        }
        assert!(blocks.len() > 50, "{} blocks", blocks.len());
        assert_eq!(engine.snapshot_waiting_bytes(), 0);
        let mut prng = Prng::new(number as u64);
        for last in (1..blocks.len()).rev() {
            blocks.swap(last, prng.below(last as u64 + 1) as usize);
        }
        assert_eq!(load(0, &blocks).digest(), digest, "{end}");
    }
}

/// As of a hash; of a list the order of the parts is that of its elements.
#[test]
fn a_large_list_is_captured_in_parts() {
    for (number, end) in ["", "LTRIM", "DEL", "LMOVE", "RENAME", "FLUSHALL"].into_iter().enumerate() {
        let mut engine = MemoryEngine::new();
        let mut elements = (0..20_000).map(|number| format!("element:{number:07}").into_bytes());
        while let Some(element) = elements.next() {
            let words =
                [vec![b"RPUSH".to_vec(), b"l".to_vec(), element], elements.by_ref().take(999).collect()];
            apply(&mut engine, &words.concat().iter().map(Vec::as_slice).collect::<Vec<_>>());
        }
        apply(&mut engine, &[b"PEXPIRE", b"l", b"1000000"]);
        let digest = engine.digest();
        engine.begin_snapshot();
        let (mut blocks, mut more) = (Vec::new(), true);
        while more {
            let mut block = Vec::new();
            more = engine.snapshot_block(5_000, &mut block);
            assert!(block.len() < 5_200, "a block of {} bytes", block.len());
            blocks.push(block);
            apply(&mut engine, &[b"LPUSH", b"l", b"new"]);
            apply(&mut engine, &[b"LREM", b"l", b"-1", b"element:0000777"]);
            if blocks.len() == 10 {
                match end {
                    "LTRIM" => apply(&mut engine, &[b"LTRIM", b"l", b"5000", b"-5000"]),
                    "DEL" => apply(&mut engine, &[b"DEL", b"l"]),
                    "LMOVE" => apply(&mut engine, &[b"LMOVE", b"l", b"l", b"RIGHT", b"LEFT"]),
                    "RENAME" => apply(&mut engine, &[b"RENAME", b"l", b"other"]),
                    "FLUSHALL" => apply(&mut engine, &[b"FLUSHALL"]),
                    _ => {}
                }
            }
        }
        assert!(blocks.len() > 50, "{} blocks", blocks.len());
        let mut prng = Prng::new(number as u64);
        for last in (1..blocks.len()).rev() {
            blocks.swap(last, prng.below(last as u64 + 1) as usize);
        }
        assert_eq!(load(0, &blocks).digest(), digest, "{end}");
    }
}

/// As of a hash; of a sorted set the order of the parts is that of its scores.
#[test]
fn a_large_sorted_set_is_captured_in_parts() {
    for (number, end) in
        ["", "ZREMRANGEBYRANK", "DEL", "ZUNIONSTORE", "RENAME", "FLUSHALL"].into_iter().enumerate()
    {
        let mut engine = MemoryEngine::new();
        let members = (0..20_000_u32)
            .map(|number| [number % 777, number].map(|number| number.to_string().into_bytes()));
        for part in members.collect::<Vec<_>>().chunks(1000) {
            let words = part.iter().flatten().map(Vec::as_slice);
            apply(&mut engine, &[&b"ZADD"[..], b"z"].into_iter().chain(words).collect::<Vec<_>>());
        }
        apply(&mut engine, &[b"PEXPIRE", b"z", b"1000000"]);
        let digest = engine.digest();
        engine.begin_snapshot();
        let (mut blocks, mut more) = (Vec::new(), true);
        while more {
            let mut block = Vec::new();
            more = engine.snapshot_block(5_000, &mut block);
            assert!(block.len() < 5_200, "a block of {} bytes", block.len());
            blocks.push(block);
            apply(&mut engine, &[b"ZADD", b"z", b"-1", b"new"]);
            apply(&mut engine, &[b"ZINCRBY", b"z", b"1", b"4711"]);
            if blocks.len() == 10 {
                match end {
                    "ZREMRANGEBYRANK" => apply(&mut engine, &[b"ZREMRANGEBYRANK", b"z", b"5000", b"-5000"]),
                    "DEL" => apply(&mut engine, &[b"DEL", b"z"]),
                    "ZUNIONSTORE" => {
                        apply(&mut engine, &[b"ZUNIONSTORE", b"z", b"1", b"z", b"WEIGHTS", b"-1"]);
                    }
                    "RENAME" => apply(&mut engine, &[b"RENAME", b"z", b"other"]),
                    "FLUSHALL" => apply(&mut engine, &[b"FLUSHALL"]),
                    _ => {}
                }
            }
        }
        assert!(blocks.len() > 50, "{} blocks", blocks.len());
        let mut prng = Prng::new(number as u64);
        for last in (1..blocks.len()).rev() {
            blocks.swap(last, prng.below(last as u64 + 1) as usize);
        }
        assert_eq!(load(0, &blocks).digest(), digest, "{end}");
    }
}

/// Memory that a large hash takes is counted, and no more once it is gone; of many that expire at one time, some go with
/// each step.
#[test]
fn large_hashes_are_accounted_for() {
    let mut engine = MemoryEngine::new();
    let before = engine.memory_bytes();
    for key in 0..300 {
        let mut words = set_fields(0..1_000);
        words[1] = format!("h{key}").into_bytes();
        apply(&mut engine, &words.iter().map(Vec::as_slice).collect::<Vec<_>>());
        apply(&mut engine, &[b"PEXPIRE", &words[1], b"10"]);
    }
    let content = 300 * 1_000 * 26;
    let memory = engine.memory_bytes() - before;
    assert!((content..2 * content).contains(&memory), "{memory} bytes for {content}");
    engine.advance(WallTime(1_000_000));
    assert_eq!(engine.len(), 0, "for whoever asks they are gone");
    assert!((50..200).contains(&engine.expired()), "{} at once", engine.expired());
    while let Some(time) = engine.next_expiry() {
        engine.advance(time);
    }
    assert_eq!(engine.memory_bytes(), before);
}

/// The same of a set, of which members are taken meanwhile, or which is overwritten by what becomes of it.
#[test]
fn a_large_set_is_captured_in_parts() {
    let member = |number: u32| format!("member:{number:07}").into_bytes();
    for (number, end) in
        ["", "SPOP s 19000", "SDIFFSTORE s s t", "SINTERSTORE s none", "SMOVE s t x"].into_iter().enumerate()
    {
        let mut engine = MemoryEngine::new();
        let members: Vec<Vec<u8>> = (0..20_000).map(member).collect();
        let words = [&[&b"SADD"[..], b"s"], &members.iter().map(Vec::as_slice).collect::<Vec<_>>()[..]];
        apply(&mut engine, &words.concat());
        apply(&mut engine, &[b"SADD", b"t", &member(1), &member(5)]);
        let digest = engine.digest();
        engine.begin_snapshot();
        let (mut blocks, mut more) = (Vec::new(), true);
        while more {
            let mut block = Vec::new();
            more = engine.snapshot_block(10_000, &mut block);
            blocks.push(block);
            apply(&mut engine, &[b"SPOP", b"s", b"20"]);
            apply(&mut engine, &[b"SADD", b"s", &member(20_000 + blocks.len() as u32)]);
            if blocks.len() == 10 && !end.is_empty() {
                apply(&mut engine, &end.split(' ').map(str::as_bytes).collect::<Vec<_>>());
            }
        }
        assert!(blocks.len() > 25, "{} blocks", blocks.len());
        let mut prng = Prng::new(number as u64);
        for last in (1..blocks.len()).rev() {
            blocks.swap(last, prng.below(last as u64 + 1) as usize);
        }
        assert_eq!(load(0, &blocks).digest(), digest, "{end}");
    }
}

/// One BITOP goes through 1 GiB at most, and changes nothing if it would have to go through more.
#[test]
fn a_bitop_combines_so_many_bytes() {
    let mut engine = MemoryEngine::new();
    let mut answer = |words: &[&[u8]]| {
        let mut reply = Vec::new();
        engine.apply(WallTime(0), &conformance::body_of(words), &mut reply);
        Reply::decode_all(&reply).expect("a reply").remove(0)
    };
    assert_eq!(answer(&[b"SETBIT", b"k", b"134217727", b"1"]), Reply::Integer(0));
    let mut words = vec![&b"BITOP"[..], b"OR", b"d"];
    words.extend([&b"k"[..]; 64]);
    assert_eq!(answer(&words), Reply::Integer(16 << 20));
    assert_eq!(answer(&[b"SET", b"d", b"kept"]), Reply::Ok);
    words.push(b"k");
    let too_long = b"ERR strings of more than 1073741824 bytes in one command".to_vec();
    assert_eq!(answer(&words), Reply::Error(too_long));
    assert_eq!(answer(&[b"GETSET", b"d", b""]), Reply::Bulk(b"kept".to_vec()));
}

/// What is answered for an update that changes nothing is what it would be answered, and nothing changes. The generator draws
/// each command that may be one.
#[test]
fn an_update_that_is_answered_as_a_no_op_changes_nothing() {
    let mut no_ops: BTreeMap<String, u32> = BTreeMap::new();
    let mut possible: BTreeMap<String, u32> = BTreeMap::new();
    for seed in 0..12 {
        let mut generator = Generator::new(seed, 1..4000, 1..2_000_000);
        generator.has_streams = true;
        generator.has_field_expiry = true;
        let mut prng = Prng::new(!seed);
        let mut engine = MemoryEngine::new();
        let mut now = 0;
        for step in 0..20_000_u64 {
            // Sometimes nothing happens for a while.
            let pause_max = if prng.chance(1, 4) { 600_000_000 } else { 40_000 };
            now += prng.below(pause_max);
            let mut body = Vec::new();
            for _ in 0..if prng.chance(1, 8) { 1 + prng.below(3) } else { 1 } {
                let words = generator.command();
                let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
                body.extend(body_if_data(&words, generator.database()).unwrap_or_default());
            }
            let (mut answered, mut replies) = (Vec::new(), Vec::new());
            // Log time has not come to that yet.
            let is_due = engine.first_expiry(&body).is_some_and(|expiry| expiry <= WallTime(now));
            let is_no_op =
                may_be_no_op(&body) && !is_due && engine.answer_no_op(WallTime(now), &body, &mut answered);
            engine.advance(WallTime(now));
            let before = if is_no_op { engine.digest() } else { 0 };
            let (memory, expiry) = (engine.memory_bytes(), engine.next_expiry());
            engine.begin_entry(OpNumber(step + 1));
            engine.apply(WallTime(now), &body, &mut replies);
            let shown: Vec<_> = operations(&body).flatten().map(|operation| operation.command).collect();
            let counts = if is_no_op { &mut no_ops } else { &mut possible };
            if let [command] = &shown[..]
                && may_be_no_op(&body)
            {
                let name = format!("{command:?}");
                *counts.entry(name[..name.find('(').unwrap_or(name.len())].to_owned()).or_default() += 1;
            }
            if is_no_op {
                assert_eq!(answered, replies, "seed {seed}, step {step}: {shown:?}");
                assert_eq!(engine.digest(), before, "seed {seed}, step {step}: {shown:?}");
                let after = (engine.memory_bytes(), engine.next_expiry());
                assert_eq!(after, (memory, expiry), "seed {seed}, step {step}: {shown:?}");
            }
        }
    }
    assert!(no_ops.len() == possible.len() && no_ops.len() == 26, "{no_ops:?} of {possible:?}");
}

/// What is answered as a no-op counts lifetimes from now, and not from the last entry of a log in which nothing happens.
#[test]
fn a_no_op_is_one_now() {
    let body = |command: &str| {
        let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        body_if_data(&words, Database::FIRST).expect("a command on data")
    };
    let mut engine = MemoryEngine::new();
    engine.apply(WallTime(1_000_000), &body("SET k v EX 100"), &mut Vec::new());
    let is_no_op = |seconds: u64, command: &str| {
        engine.answer_no_op(WallTime((1 + seconds) * 1_000_000), &body(command), &mut Vec::new())
    };
    for (seconds, command, expected) in [
        (0, "EXPIRE k 99 GT", true),
        (5, "EXPIRE k 94 GT", true),
        (5, "EXPIRE k 99 GT", false),
        (5, "PEXPIRE k 95001 GT", false),
        (5, "EXPIRE k 95 LT", true),
        (5, "EXPIRE k 94 LT", false),
        (0, "EXPIRE k 99 LT", false),
        (5, "EXPIRE k 10 NX", true),
    ] {
        assert_eq!(is_no_op(seconds, command), expected, "{command} after {seconds} s");
    }
    // For what returns values there may be no room.
    assert!(may_be_no_op(&body("SET k v NX")) && !may_be_no_op(&body("SET k v NX GET")));
}
