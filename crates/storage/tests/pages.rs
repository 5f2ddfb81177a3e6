//! Large collections on disk lie in pages: what commands read and write of them, that no page is left, that readers see one
//! moment, and what happens if a page cannot be had.

mod common;

use common::{Counters, Watched, is_page};
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;
use syros_commands::Reply;
use syros_storage::conformance::{Generator, body_if_data, body_of};
use syros_storage::{DiskEngine, Engine, Lane, MemoryStore, Reader, Store};
use syros_types::{Database, OpNumber, Prng, WallTime};

/// What has been counted since this was asked last: lookups, records written, and their bytes.
fn take(counters: &Counters) -> (u64, u64, u64) {
    let take = |counter: &AtomicU64| counter.swap(0, Ordering::Relaxed);
    (take(&counters.reads), take(&counters.written), take(&counters.written_bytes))
}

/// How many pages there are, and how many of these are noted as dead.
fn pages(store: &impl Store) -> (usize, usize) {
    let (mut pages, mut dead) = (0, 0);
    let walked = store.walk(None, b"", |key, _| {
        pages += usize::from(is_page(key));
        dead += usize::from(matches!(key.first(), Some(b'x' | b'X')));
        ControlFlow::Continue(())
    });
    walked.expect("a store in memory");
    (pages, dead)
}

fn words(command: &str) -> Vec<&[u8]> {
    command.split(' ').map(str::as_bytes).collect()
}

fn apply<S: Store>(engine: &mut DiskEngine<S>, words: &[&[u8]]) -> Vec<u8> {
    let mut reply = Vec::new();
    engine.apply(WallTime(0), &body_of(words), &mut reply);
    reply
}

fn ask<S: Store>(engine: &DiskEngine<S>, command: &str) -> Vec<u8> {
    let mut reply = Vec::new();
    engine.read(WallTime(0), &body_of(&words(command)), &mut reply);
    reply
}

/// Gives a key so many elements of some bytes, by a command that takes them in turn with what `extra` says.
fn fill<S: Store>(
    engine: &mut DiskEngine<S>,
    command: &str,
    count: u32,
    element: impl Fn(u32) -> Vec<Vec<u8>>,
) {
    for first in (0..count).step_by(1000) {
        let elements: Vec<Vec<u8>> = (first..count.min(first + 1000)).flat_map(&element).collect();
        let mut all = words(command);
        all.extend(elements.iter().map(Vec::as_slice));
        apply(engine, &all);
    }
}

fn text(number: u32) -> Vec<u8> {
    format!("element:{number:06}").into_bytes()
}

/// A database of large collections of every type, and how many elements each of them has.
fn large(store: &Watched) -> (DiskEngine<Watched>, u32) {
    const COUNT: u32 = 100_000;
    let (mut engine, _) = DiskEngine::open(store.clone()).expect("a store in memory");
    fill(&mut engine, "HSET hash", COUNT, |number| vec![text(number), text(number)]);
    fill(&mut engine, "RPUSH list", COUNT, |number| vec![text(number)]);
    fill(&mut engine, "SADD set", COUNT, |number| vec![text(number)]);
    fill(&mut engine, "ZADD sorted", COUNT, |number| vec![number.to_string().into_bytes(), text(number)]);
    for number in 1..=COUNT / 10 {
        let id = format!("{number}-0");
        apply(&mut engine, &[b"XADD", b"stream", id.as_bytes(), b"field", &text(number)]);
    }
    (engine, COUNT)
}

#[test]
fn commands_read_and_write_the_pages_on_their_way() {
    let store = Watched::default();
    let (mut engine, count) = large(&store);
    // A path of a tree of this size has three nodes, and the widest command here looks at four of them.
    let commands = [
        ("HSET hash element:000500 other", 10),
        ("HSET hash new value", 10),
        ("HDEL hash element:000501", 10),
        ("HINCRBY hash counter 1", 10),
        ("LPUSH list a", 10),
        ("RPUSH list b", 10),
        ("LPOP list", 10),
        ("RPOP list 20", 10),
        ("LSET list 50000 other", 10),
        ("SADD set new", 10),
        ("SREM set element:000700", 10),
        ("SPOP set", 12),
        ("ZADD sorted 50000.5 new", 20),
        ("ZINCRBY sorted 2000 element:000900", 24),
        ("ZREM sorted element:001000", 20),
        ("ZPOPMIN sorted", 20),
        ("XADD stream * field value", 12),
        ("XDEL stream 500-0", 12),
        ("EXPIRE hash 1000", 2),
        ("PERSIST hash", 2),
        ("RENAME hash hash2", 4),
        ("RENAME hash2 hash", 4),
    ];
    for (command, most) in commands {
        take(&store.1);
        let reply = apply(&mut engine, &words(command));
        assert_ne!(reply.first(), Some(&b'-'), "{command}");
        let (reads, written, bytes) = take(&store.1);
        assert!(reads <= most + 3 && written <= most + 2, "{command}: {reads} reads, {written} written");
        assert!(bytes <= most * 4000, "{command}: {bytes} bytes");
    }
    let reads = [
        "HGET hash element:000777",
        "HEXISTS hash absent",
        "HLEN hash",
        "LINDEX list 40000",
        "LRANGE list 70000 70010",
        "LLEN list",
        "SISMEMBER set element:000777",
        "SCARD set",
        "ZSCORE sorted element:000777",
        "ZRANK sorted element:000777",
        "ZRANGE sorted 50000 50010",
        "ZCOUNT sorted 5000 90000",
        "XRANGE stream 5000-0 5010-0",
        "XLEN stream",
        "TYPE sorted",
        "EXISTS set",
    ];
    for command in reads {
        take(&store.1);
        let reply = ask(&engine, command);
        assert_ne!(reply.first(), Some(&b'-'), "{command}");
        let (reads, ..) = take(&store.1);
        assert!(reads <= 14, "{command}: {reads} reads");
    }
    // What goes is not looked at; it is given back in bounded steps.
    let before = pages(&store);
    assert!(before.0 > count as usize / 10 && before.1 == 0, "{before:?}");
    for (command, most) in [
        ("LTRIM list 40000 50000", 100),
        ("DEL hash", 8),
        ("SET set string", 8),
        ("UNLINK list sorted stream", 20),
    ] {
        let mut lane = Lane::new(Arc::clone(engine.shared()));
        take(&store.1);
        lane.begin_entry(OpNumber(1));
        lane.execute(WallTime(0), &body_of(&words(command)), &mut Vec::new());
        lane.commit();
        let (reads, written, _) = take(&store.1);
        assert!(reads + written <= most, "{command}: {reads} reads, {written} written");
    }
    assert!(engine.shared().has_to_purge());
    let mut steps = 0;
    while engine.shared().has_to_purge() {
        engine.shared().purge();
        let (reads, written, _) = take(&store.1);
        assert!(reads <= 16 && written <= 16 * 70, "{reads} reads, {written} written");
        steps += 1;
    }
    assert!(steps > 10, "{steps} steps");
    assert_eq!(pages(&store), (0, 0));
    assert!(engine.shared().failure().is_none());
}

/// A command about large collections.
fn about_large(prng: &mut Prng) -> Vec<Vec<u8>> {
    let key = |prng: &mut Prng| format!("large:{}", prng.below(6)).into_bytes();
    let (first, second) = (key(prng), key(prng));
    let from = prng.below(2000) as u32;
    let many = from..from + prng.below(1500) as u32 + 1;
    let rank = |prng: &mut Prng| prng.below(1200).to_string().into_bytes();
    let with = |name: &str, elements: &mut dyn Iterator<Item = Vec<u8>>| {
        [name.as_bytes().to_vec(), first.clone()].into_iter().chain(elements).collect::<Vec<_>>()
    };
    match prng.below(16) {
        0 => with("HSET", &mut many.flat_map(|number| [text(number), b"value".to_vec()])),
        1 => with("RPUSH", &mut many.map(text)),
        2 => with("SADD", &mut many.map(text)),
        3 => with("ZADD", &mut many.flat_map(|number| [number.to_string().into_bytes(), text(number)])),
        4 => with("HDEL", &mut many.map(text)),
        5 => with("LTRIM", &mut [rank(prng), rank(prng)].into_iter()),
        6 => with("SREM", &mut many.map(text)),
        7 => with("ZREMRANGEBYRANK", &mut [rank(prng), rank(prng)].into_iter()),
        8 => with("RENAME", &mut [second].into_iter()),
        9 => with("COPY", &mut [second, b"REPLACE".to_vec()].into_iter()),
        10 => with("MOVE", &mut [prng.below(3).to_string().into_bytes()].into_iter()),
        11 => with("PEXPIRE", &mut [(prng.below(90_000) + 1).to_string().into_bytes()].into_iter()),
        12 => with("SET", &mut [b"string".to_vec()].into_iter()),
        13 => with("DEL", &mut [].into_iter()),
        14 => with("HEXPIRE", &mut [&b"5"[..], b"FIELDS", b"1", &text(from)].map(<[u8]>::to_vec).into_iter()),
        _ => with("ZUNIONSTORE", &mut [b"1".to_vec(), second].into_iter()),
    }
}

/// Whatever is done to keys, the pages of those that are not there any more are gone.
#[test]
fn no_page_is_left() {
    let mut most = 0;
    for seed in 0..60 {
        let mut prng = Prng::new(seed);
        let mut generator = Generator::new(seed, 1..4000, 1..2_000_000);
        generator.blind = true;
        generator.has_streams = true;
        generator.has_field_expiry = true;
        let mut store = MemoryStore::new();
        let (mut engine, _) = DiskEngine::open(store.clone()).expect("a store in memory");
        let mut time = 0;
        for step in 0..600 {
            let database = generator.database();
            let command = if prng.chance(1, 6) { about_large(&mut prng) } else { generator.command() };
            let command: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
            let Some(body) = body_if_data(&command, database) else { continue };
            time = step * 20_000;
            engine.begin_entry(OpNumber(step + 1));
            engine.apply(WallTime(time), &body, &mut Vec::new());
            most = most.max(pages(&store).0);
            if step % 20 == 0 {
                assert_eq!(engine.shared().check_pages(), Ok(()), "seed {seed}, step {step}");
            }
            if prng.chance(1, 100) {
                engine.shared().seal(b"head").expect("a store in memory");
                engine.shared().flush().expect("a store in memory");
                engine = DiskEngine::open(store.crash(true)).expect("what was sealed").0;
                assert_eq!(pages(engine.shared().store()), pages(&store), "seed {seed}, step {step}");
                store = engine.shared().store().clone();
            }
        }
        for database in Database::all() {
            let mut reply = Vec::new();
            engine.read(
                WallTime(time),
                &body_if_data(&[b"KEYS", b"*"], database).expect("it is"),
                &mut reply,
            );
            let Ok(Reply::Array(keys)) = Reply::decode(&mut reply.as_slice()) else {
                panic!("not a list of keys")
            };
            for key in keys {
                let Reply::Bulk(key) = key else { panic!("not a key") };
                engine.apply(
                    WallTime(time),
                    &body_if_data(&[b"DEL", &key], database).expect("it is"),
                    &mut Vec::new(),
                );
            }
        }
        // Those that have expired as well.
        engine.advance(WallTime(u64::MAX >> 20));
        // Those of databases that were emptied go with the next checkpoint.
        engine.shared().seal(b"head").expect("a store in memory");
        engine.shared().flush().expect("a store in memory");
        while engine.shared().compact().expect("a store in memory") {}
        assert_eq!(pages(engine.shared().store()), (0, 0), "seed {seed}");
    }
    assert!(most > 300, "{most} pages are too few");
}

/// A reader never sees some pages of a commit and not the others, though a store shows them one after the other, though the
/// collection gets another name in between, and though fields that have expired are removed meanwhile.
#[test]
fn readers_see_one_moment() {
    const COUNT: u32 = 2000;
    let store = Watched::default();
    let (mut engine, _) = DiskEngine::open(store.clone()).expect("a store in memory");
    fill(&mut engine, "HSET hash:0", COUNT, |number| vec![text(number), b"0".to_vec()]);
    fill(&mut engine, "HSET expiring", COUNT, |number| vec![text(number), b"0".to_vec()]);
    store.1.is_torn.store(true, Ordering::Relaxed);
    let shared = engine.into_shared();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for reader in 0..2u64 {
            let (shared, is_over) = (Arc::clone(&shared), &is_over);
            scope.spawn(move || {
                let (mut prng, mut reads) = (Prng::new(reader), 0);
                let mut reader = Reader::new(shared);
                while !is_over.load(Ordering::Relaxed) || reads < 20 {
                    let key: &[u8] = [&b"hash:0"[..], b"hash:1", b"expiring"][prng.below(3) as usize];
                    // Half of the fields of one never expire.
                    let fields = (0..20).map(|_| text(2 * prng.below(u64::from(COUNT) / 2) as u32));
                    let fields: Vec<Vec<u8>> = fields.collect();
                    let mut command: Vec<&[u8]> = vec![b"HMGET", key];
                    command.extend(fields.iter().map(Vec::as_slice));
                    let mut reply = Vec::new();
                    reader.read(WallTime(0), &body_of(&command), &mut reply);
                    let Ok(Reply::Array(values)) = Reply::decode(&mut reply.as_slice()) else {
                        panic!("not values: {reply:?}")
                    };
                    assert!(values.windows(2).all(|pair| pair[0] == pair[1]), "values of two moments");
                    reads += 1;
                }
            });
        }
        let mut lane = Lane::new(Arc::clone(&shared));
        let run = |lane: &mut Lane<Watched>, time: u64, command: &[&[u8]]| {
            lane.execute(WallTime(time), &body_of(command), &mut Vec::new());
        };
        for round in 1..=30u32 {
            lane.begin_entry(OpNumber(round.into()));
            let time = u64::from(round) * 10_000;
            let names = [format!("hash:{}", (round + 1) % 2), format!("hash:{}", round % 2)];
            let value = round.to_string().repeat(1 + round as usize % 7);
            for first in (0..COUNT).step_by(500) {
                let fields: Vec<Vec<u8>> = (first..first + 500).map(text).collect();
                let mut command: Vec<&[u8]> = vec![b"HSET", names[0].as_bytes()];
                fields.iter().for_each(|field| command.extend([field.as_slice(), value.as_bytes()]));
                run(&mut lane, time, &command);
            }
            run(&mut lane, time, &[b"RENAME", names[0].as_bytes(), names[1].as_bytes()]);
            let fields: Vec<Vec<u8>> = (0..20).map(|number| text(60 * number + 2 * round + 1)).collect();
            let mut command: Vec<&[u8]> = vec![b"HPEXPIRE", b"expiring", b"5", b"FIELDS", b"20"];
            command.extend(fields.iter().map(Vec::as_slice));
            run(&mut lane, time, &command);
            lane.commit();
            shared.advance(WallTime(time + 9_000));
            while shared.has_to_purge() {
                shared.purge();
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(shared.failure().is_none(), "{:?}", shared.failure());
    assert_eq!(shared.check_pages(), Ok(()));
    let mut reply = Vec::new();
    Reader::new(shared).read(WallTime(0), &body_of(&[b"HLEN", b"expiring"]), &mut reply);
    let left = Reply::decode(&mut reply.as_slice());
    assert_eq!(left, Ok(Reply::Integer(i64::from(COUNT) - 600)));
}

/// A reader whose read began before a key expired sees all of its collection, or nothing, while that is removed.
#[test]
fn readers_see_what_expires_or_nothing() {
    let store = Watched::default();
    let (engine, _) = DiskEngine::open(store.clone()).expect("a store in memory");
    store.1.is_torn.store(true, Ordering::Relaxed);
    let shared = engine.into_shared();
    let is_over = AtomicBool::new(false);
    // One page: it goes at once, and is not noted as dead.
    let value = vec![b'v'; 9_000];
    thread::scope(|scope| {
        for _ in 0..2 {
            let (shared, is_over) = (Arc::clone(&shared), &is_over);
            scope.spawn(move || {
                let mut reader = Reader::new(shared);
                while !is_over.load(Ordering::Relaxed) {
                    let mut reply = Vec::new();
                    reader.read(WallTime(0), &body_of(&words("HVALS hash")), &mut reply);
                }
            });
        }
        let mut lane = Lane::new(Arc::clone(&shared));
        for round in 1..=2_000u64 {
            let time = WallTime(round * 10_000);
            lane.begin_entry(OpNumber(round));
            lane.execute(time, &body_of(&[b"HSET", b"hash", b"field", &value]), &mut Vec::new());
            lane.execute(time, &body_of(&words("PEXPIRE hash 5")), &mut Vec::new());
            lane.commit();
            shared.advance(WallTime(time.0 + 9_000));
            while shared.has_to_purge() {
                shared.purge();
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(shared.failure(), None);
    assert_eq!(pages(&store), (0, 0));
}

/// When a reader has found the record of a collection, all keys are removed, and their pages forgotten.
#[test]
fn pages_that_are_forgotten_are_not_missed() {
    let store = Watched::default();
    let (mut engine, _) = DiskEngine::open(store.clone()).expect("a store in memory");
    fill(&mut engine, "HSET hash", 2000, |number| vec![text(number), text(number)]);
    let shared = engine.into_shared();
    let others = Arc::clone(&shared);
    *store.1.meanwhile.lock().expect("nothing panicked") = Some(Box::new(move || {
        let mut lane = Lane::new(Arc::clone(&others));
        lane.begin_entry(OpNumber(1));
        lane.execute(WallTime(0), &body_of(&[b"FLUSHALL"]), &mut Vec::new());
        lane.commit();
        others.seal(b"head").expect("a store in memory");
        others.flush().expect("a store in memory");
        while others.compact().expect("a store in memory") {}
    }));
    let mut reply = Vec::new();
    Reader::new(Arc::clone(&shared)).read(WallTime(0), &body_of(&words("HLEN hash")), &mut reply);
    Reader::new(Arc::clone(&shared)).read(WallTime(0), &body_of(&words("HVALS hash")), &mut reply);
    assert!(store.1.meanwhile.lock().expect("nothing panicked").is_none());
    assert_eq!(shared.failure(), None);
    assert_eq!(Reply::decode_all(&reply), Ok(vec![Reply::Integer(0), Reply::Array(vec![])]));
}

/// However many fields of however many hashes expire at one moment, a step of their removal writes little, and all are removed.
#[test]
fn expired_fields_are_removed_in_small_steps() {
    let store = Watched::default();
    let (mut engine, _) = DiskEngine::open(store.clone()).expect("a store in memory");
    for hash in 0..20 {
        let name = format!("HSET hash:{hash}");
        fill(&mut engine, &name, 1000, |number| vec![text(number), vec![b'v'; 100]]);
        let fields: Vec<Vec<u8>> = (0..1000).step_by(2).map(text).collect();
        let (key, count) = (format!("hash:{hash}"), fields.len().to_string());
        let mut command: Vec<&[u8]> = vec![b"HPEXPIRE", key.as_bytes(), b"5", b"FIELDS", count.as_bytes()];
        command.extend(fields.iter().map(Vec::as_slice));
        apply(&mut engine, &command);
    }
    let shared = engine.into_shared();
    take(&store.1);
    shared.advance(WallTime(10_000));
    let mut steps = 0;
    while shared.has_to_purge() {
        shared.purge();
        let (.., bytes) = take(&store.1);
        assert!(bytes <= 1 << 20, "{bytes} bytes");
        steps += 1;
    }
    assert!(steps > 20, "{steps} steps");
    assert_eq!(shared.check_pages(), Ok(()));
    let mut reply = Vec::new();
    let mut reader = Reader::new(Arc::clone(&shared));
    (0..20).for_each(|hash| {
        reader.read(WallTime(10_000), &body_of(&words(&format!("HLEN hash:{hash}"))), &mut reply);
    });
    assert_eq!(Reply::decode_all(&reply), Ok(vec![Reply::Integer(500); 20]));
    let mut pages_of_fields = 0;
    let walked = store.walk(None, b"e", |key, _| {
        pages_of_fields += usize::from(key.first() == Some(&b'e'));
        ControlFlow::Continue(())
    });
    walked.expect("a store in memory");
    assert_eq!(pages_of_fields, 0, "entries of expiries are left");
}

/// A page that cannot be had is a failure of the engine, and no panic, whoever asks for it.
#[test]
fn a_page_that_cannot_be_had_ends_the_engine() {
    for is_lost in [false, true] {
        let looks: [fn(&mut DiskEngine<Watched>); 5] = [
            |engine| drop(apply(engine, &words("HSET hash element:000500 other"))),
            |engine| drop(ask(engine, "HGET hash element:000500")),
            |engine| {
                engine.begin_snapshot();
                while engine.snapshot_block(1000, &mut Vec::new()) {}
            },
            |engine| {
                let mut reader = Reader::new(Arc::clone(engine.shared()));
                let is_certain =
                    reader.evaluate(WallTime(0), &body_of(&words("HINCRBY hash counter 1")), &mut Vec::new());
                assert!(!is_certain || engine.shared().failure().is_none());
            },
            |engine| drop(apply(engine, &words("COPY hash other"))),
        ];
        for (number, look) in looks.into_iter().enumerate() {
            let store = Watched::default();
            let (mut engine, _) = DiskEngine::open(store.clone()).expect("a store in memory");
            fill(&mut engine, "HSET hash", 2000, |number| vec![text(number), text(number)]);
            let flag = if is_lost { &store.1.lost } else { &store.1.refuses };
            flag.store(true, Ordering::Relaxed);
            look(&mut engine);
            let failure = engine.shared().failure().map(ToString::to_string);
            let expected = if is_lost { "is not what was written" } else { "the disk is gone" };
            assert!(failure.is_some_and(|failure| failure.contains(expected)), "{number}, {is_lost}");
        }
    }
}

/// What a lane has not committed is not seen by others, and a script that is undone leaves nothing of it.
#[test]
fn pages_are_undone_with_their_script() {
    let store = Watched::default();
    let (mut engine, _) = DiskEngine::open(store.clone()).expect("a store in memory");
    fill(&mut engine, "HSET hash", 2000, |number| vec![text(number), text(number)]);
    let script = "redis.call('HSET', KEYS[1], 'new', 'value') redis.call('RENAME', KEYS[1], KEYS[2]) \
                  redis.call('SET', KEYS[2], 'string') redis.call('HSET', KEYS[1], unpack(ARGV)) while true do end";
    let long = vec![b'v'; 3000];
    let mut command: Vec<&[u8]> = vec![b"EVAL", script.as_bytes(), b"2", b"hash", b"other"];
    let fields: Vec<Vec<u8>> = (0..20).map(text).collect();
    fields.iter().for_each(|field| command.extend([field.as_slice(), long.as_slice()]));
    let state = |engine: &DiskEngine<Watched>| {
        (ask(engine, "HGETALL hash"), ask(engine, "EXISTS hash other"), pages(&store))
    };
    let before = state(&engine);
    let reply = apply(&mut engine, &command);
    assert!(reply.windows(10).any(|text| text == b"was undone"), "{}", reply.escape_ascii());
    assert_eq!(state(&engine), before);
    assert_eq!(apply(&mut engine, &words("DEL hash other")), apply(&mut engine, &words("SADD set one")));
    engine.advance(WallTime(0));
    assert_eq!(pages(&store), (0, 0));
}

/// Builds that know no pages refuse a store that has any.
#[test]
fn a_store_with_pages_has_another_format() {
    let store = MemoryStore::new();
    let (mut engine, _) = DiskEngine::open(store.clone()).expect("a store in memory");
    let format = |engine: &DiskEngine<MemoryStore>| {
        engine.shared().seal(b"").expect("a store in memory");
        store.get(b"mstate").expect("a store in memory").map(|state| state[0])
    };
    apply(&mut engine, &words("HSET hash field value"));
    assert_eq!(format(&engine), Some(2));
    fill(&mut engine, "HSET hash", 200, |number| vec![text(number), text(number)]);
    assert_eq!(format(&engine), Some(4));
    engine.shared().flush().expect("a store in memory");
    let (again, _) = DiskEngine::open(store.crash(false)).expect("what was sealed");
    assert_eq!(again.digest(), engine.digest());
}
