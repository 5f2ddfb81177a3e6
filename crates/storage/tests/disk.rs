//! The disk engine passes the suite on a store in memory; what a crash leaves is what was sealed.

use syros_commands::Reply;
use syros_storage::conformance::{self, Generator, body_if_data, body_of};
use syros_storage::{Census, DiskEngine, Engine, MemoryStore, ReadView, Store as _};
use syros_types::{Database, Prng, WallTime};

fn make() -> DiskEngine<MemoryStore> {
    DiskEngine::open(MemoryStore::new()).expect("a store in memory").0
}

fn load(blocks: &[Vec<u8>]) -> DiskEngine<MemoryStore> {
    let mut loader = DiskEngine::loader(MemoryStore::new());
    for block in blocks {
        loader.block(block).expect("a block of a snapshot");
    }
    loader.finish().expect("all blocks of a snapshot")
}

#[test]
fn passes_the_conformance_suite() {
    conformance::test_all(make, load);
}

/// Whatever was executed after the last checkpoint is gone after a crash, and executing it again leads to the
/// same state and the same answers.
#[test]
fn a_crash_goes_back_to_a_checkpoint() {
    for seed in 0..100 {
        let mut prng = Prng::new(seed);
        let mut generator = Generator::new(seed, 1..4000, 1..2_000_000);
        generator.blind = true;
        generator.has_streams = true;
        generator.has_field_expiry = true;
        let store = MemoryStore::new();
        let (mut engine, head) = DiskEngine::open(store.clone()).expect("an empty store");
        assert_eq!(head, None);
        let (mut done, mut sealed, mut flushed) = (Vec::new(), 0, 0);
        for step in 0..200 + prng.below(400) {
            let Some(body) = generator.body() else { continue };
            let time = WallTime(step * 50_000);
            let mut reply = Vec::new();
            engine.apply(time, &body, &mut reply);
            done.push((time, body, reply, engine.digest()));
            match prng.below(40) {
                0 => {
                    engine.shared().seal(&(done.len() as u64).to_le_bytes()).expect("a store in memory");
                    sealed = done.len();
                }
                1 => {
                    engine.shared().flush().expect("a store in memory");
                    flushed = sealed;
                    while engine.shared().compact().expect("a store in memory") {}
                }
                _ => {}
            }
        }
        let keep_sealed = prng.chance(1, 2);
        let expected = if keep_sealed { sealed } else { flushed };
        let (mut again, head) = DiskEngine::open(store.crash(keep_sealed)).expect("what was sealed");
        let head = head.map_or(0, |head| u64::from_le_bytes(head.try_into().expect("8 bytes")));
        assert_eq!(head, expected as u64, "seed {seed}");
        if expected > 0 {
            assert_eq!(again.digest(), done[expected - 1].3, "seed {seed}: not the state that was sealed");
        }
        for (time, body, reply, digest) in &done[expected..] {
            let mut answer = Vec::new();
            again.apply(*time, body, &mut answer);
            assert_eq!((answer, again.digest()), (reply.clone(), *digest), "seed {seed}");
        }
    }
}

/// The format in a store's state, behind which builds that know of no collections must not look.
fn format_of(store: &MemoryStore) -> Option<u8> {
    store.get(b"mstate").expect("a store in memory").map(|state| state[0])
}

#[test]
fn a_store_with_collections_has_another_format() {
    let apply = |engine: &mut DiskEngine<MemoryStore>, words: &[&[u8]]| {
        engine.apply(WallTime(1), &body_of(words), &mut Vec::new());
        engine.shared().seal(b"").expect("a store in memory");
    };
    let store = MemoryStore::new();
    let (mut engine, _) = DiskEngine::open(store.clone()).expect("an empty store");
    apply(&mut engine, &[b"SET", b"k", b"v"]);
    apply(&mut engine, &[b"HDEL", b"h", b"f"]);
    assert_eq!(format_of(&store), Some(1));
    apply(&mut engine, &[b"HSET", b"h", b"f", b"v"]);
    assert_eq!(format_of(&store), Some(2));
    let (mut engine, _) = DiskEngine::open(store.crash(true)).expect("what was sealed");
    apply(&mut engine, &[b"DEL", b"h"]);
    assert_eq!(format_of(engine.shared().store()), Some(2), "a record may still be there");
    apply(&mut engine, &[b"HSET", b"h", b"f", b"v"]);
    let mut block = Vec::new();
    engine.begin_snapshot();
    while engine.snapshot_block(100, &mut block) {}
    let restored = load(&[block]);
    restored.shared().seal(b"").expect("a store in memory");
    assert_eq!(format_of(restored.shared().store()), Some(2));
}

/// Older builds read a store as long as another database than the first has not been written to.
#[test]
fn a_store_with_databases_has_another_format() {
    let database = |number| Database::new(number).expect("below 16");
    let apply = |engine: &mut DiskEngine<MemoryStore>, number, words: &[&[u8]]| {
        let body = body_if_data(words, database(number)).expect("a command on data");
        let mut reply = Vec::new();
        engine.apply(WallTime(1), &body, &mut reply);
        engine.shared().seal(b"").expect("a store in memory");
        Reply::decode_all(&reply).expect("replies")
    };
    let store = MemoryStore::new();
    let (mut engine, _) = DiskEngine::open(store.clone()).expect("an empty store");
    apply(&mut engine, 0, &[b"SET", b"k", b"0"]);
    let read = body_if_data(&[b"GET", b"k"], database(3)).expect("a read");
    engine.read(WallTime(1), &read, &mut Vec::new());
    apply(&mut engine, 0, &[b"FLUSHDB"]);
    apply(&mut engine, 0, &[b"FLUSHALL"]);
    apply(&mut engine, 0, &[b"SET", b"k", b"0"]);
    assert_eq!(format_of(&store), Some(1));
    apply(&mut engine, 3, &[b"SET", b"k", b"3", b"PX", b"100"]);
    assert_eq!(format_of(&store), Some(3));
    apply(&mut engine, 0, &[b"SWAPDB", b"0", b"3"]);
    apply(&mut engine, 3, &[b"FLUSHDB"]);
    apply(&mut engine, 3, &[b"SET", b"l", b"3"]);
    let (digest, next) = (engine.digest(), engine.next_expiry());
    let (mut engine, _) = DiskEngine::open(store.crash(true)).expect("what was sealed");
    assert_eq!((engine.digest(), engine.next_expiry()), (digest, next));
    assert_eq!(apply(&mut engine, 0, &[b"GET", b"k"]), [Reply::Bulk(b"3".to_vec())]);
    assert_eq!(apply(&mut engine, 3, &[b"KEYS", b"*"]), [Reply::Array(vec![Reply::Bulk(b"l".to_vec())])]);
    let census = Census::take_all(engine.shared(), 10).expect("memory");
    assert_eq!((census[0].keys, census[0].expiring, census[3].keys, census[4].keys), (1, 1, 1, 0));
    engine.shared().flush().expect("memory");
    engine.shared().compact().expect("memory");
    assert_eq!(engine.digest(), digest);
    engine.advance(WallTime(1_000_000));
    assert_eq!(apply(&mut engine, 0, &[b"DBSIZE"]), [Reply::Integer(0)]);
}

/// Keys that a store could not take are no different.
#[test]
fn long_keys_are_keys() {
    let mut engine = make();
    let keys: Vec<Vec<u8>> = [1000, 32 * 1024, 32 * 1024 + 1, 64 * 1024]
        .into_iter()
        .flat_map(|length| [0, 1].map(|last| [vec![b'k'; length - 1], vec![last]].concat()))
        .collect();
    let apply = |engine: &mut DiskEngine<MemoryStore>, time, words: &[&[u8]]| {
        let mut reply = Vec::new();
        engine.apply(WallTime(time), &body_of(words), &mut reply);
        Reply::decode_all(&reply).expect("replies")
    };
    for (number, key) in keys.iter().enumerate() {
        let value = number.to_string();
        apply(&mut engine, 1, &[b"SET", key, value.as_bytes(), b"PX", b"100"]);
        apply(&mut engine, 1, &[b"BLIND", b"INCR", key]);
    }
    // A hash of such a key, which becomes a string again.
    for (number, key) in keys.iter().enumerate() {
        let value = (number + 1).to_string();
        apply(&mut engine, 1, &[b"DEL", key]);
        apply(&mut engine, 1, &[b"HSET", key, b"f", value.as_bytes()]);
        let found = apply(&mut engine, 1, &[b"HGET", key, b"f"]);
        assert_eq!(found, [Reply::Bulk(value.clone().into_bytes())]);
        apply(&mut engine, 1, &[b"SET", key, value.as_bytes(), b"PX", b"100"]);
    }
    for (number, key) in keys.iter().enumerate() {
        let expected = Reply::Bulk((number + 1).to_string().into_bytes());
        assert_eq!(apply(&mut engine, 1, &[b"GET", key]), [expected]);
    }
    let found = apply(&mut engine, 1, &[b"KEYS", b"*"]);
    let mut names: Vec<Vec<u8>> = keys.clone();
    let [Reply::Array(found)] = &found[..] else { panic!("KEYS: {found:?}") };
    let mut found: Vec<Vec<u8>> =
        found.iter().map(|key| if let Reply::Bulk(key) = key { key.clone() } else { Vec::new() }).collect();
    found.sort();
    names.sort();
    assert!(found == names, "KEYS tells the keys, not their names");
    let mut blocks = Vec::new();
    engine.begin_snapshot();
    loop {
        let mut block = Vec::new();
        let more = engine.snapshot_block(1, &mut block);
        blocks.push(block);
        if !more {
            break;
        }
    }
    assert_eq!(load(&blocks).digest(), engine.digest());
    engine.advance(WallTime(200_000));
    assert_eq!(engine.len(), 0, "they expire");
}

/// A read of all keys sees one moment, whatever happens before it is done.
#[test]
fn a_moment_stays_as_it_was() {
    for seed in 0..30 {
        let mut generator = Generator::new(seed, 1..4000, 1..2_000_000);
        let mut engine = make();
        let mut run = |engine: &mut DiskEngine<MemoryStore>, steps: std::ops::Range<u64>| {
            for step in steps {
                let Some(body) = generator.body() else { continue };
                engine.apply(WallTime(step * 20_000), &body, &mut Vec::new());
            }
        };
        run(&mut engine, 0..300);
        let moment = ReadView::new(engine.shared(), WallTime(0));
        let bodies = ["DBSIZE", "KEYS *", "SCAN 0 COUNT 50", "SCAN 77 COUNT 3"];
        let mut bodies: Vec<Vec<u8>> =
            bodies.map(|command| body_of(&command.split(' ').map(str::as_bytes).collect::<Vec<_>>())).into();
        bodies.push([bodies[0].clone(), body_of(&[b"GET", b"key:3"])].concat());
        let now = engine.time();
        let expected: Vec<Vec<u8>> = bodies
            .iter()
            .map(|body| {
                let mut reply = Vec::new();
                engine.read(now, body, &mut reply);
                reply
            })
            .collect();
        run(&mut engine, 300..600);
        for (body, expected) in bodies.iter().zip(&expected) {
            let mut reply = Vec::new();
            moment.read(engine.shared(), now, body, &mut reply);
            assert_eq!(reply, *expected, "seed {seed}");
        }
    }
}

/// A census counts each key that exists once, whatever the store still holds of it; beyond its limit, it comes close.
#[test]
fn a_census_counts_the_keys_that_exist() {
    let mut engine = make();
    let apply = |engine: &mut DiskEngine<MemoryStore>, time, words: &[&str]| {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        engine.apply(WallTime(time), &body_of(&words), &mut Vec::new());
    };
    let census = |engine: &DiskEngine<MemoryStore>, most| {
        Census::take(engine.shared(), Database::FIRST, most).expect("memory")
    };
    assert_eq!(census(&engine, 9), Census { keys: 0, expiring: 0, is_exact: true });
    for turn in 0..2 {
        for number in 0..5_000 {
            apply(&mut engine, turn, &["SET", &format!("key:{number}"), &format!("value {turn}")]);
        }
    }
    for number in 0..1_000 {
        apply(&mut engine, 2, &["DEL", &format!("key:{number}")]);
        apply(&mut engine, 2, &["PEXPIRE", &format!("key:{}", 1_000 + number), "60000"]);
        apply(&mut engine, 2, &["PEXPIRE", &format!("key:{}", 2_000 + number), "10"]);
    }
    // An expiry that is taken back leaves its entry in the index.
    apply(&mut engine, 2, &["PERSIST", "key:1000"]);
    assert_eq!(census(&engine, 4_000), Census { keys: 4_000, expiring: 1_999, is_exact: true });
    assert_eq!(engine.len(), 4_000);
    // Those whose records nobody has removed yet do not count, either.
    engine.shared().advance(WallTime(20_000_000));
    let exact = Census { keys: 3_000, expiring: 999, is_exact: true };
    assert_eq!(census(&engine, u64::MAX), exact);

    let part = census(&engine, 1_000);
    assert!(!part.is_exact);
    assert!((2_700..=3_300).contains(&part.keys), "{part:?}: more than three standard errors off");
    assert!((850..=1_150).contains(&part.expiring), "{part:?}");

    apply(&mut engine, 20_000_001, &["FLUSHALL"]);
    assert_eq!(census(&engine, 9), Census { keys: 0, expiring: 0, is_exact: true });
}
