//! What every engine has to pass, as ordinary functions that panic where an engine is wrong.

mod databases;
mod evictions;
mod generator;
mod notifications;
mod scripts;
mod sets;
mod snapshots;
mod sorted_sets;
mod twin;
mod versions;
mod waiting;

pub use generator::{Generator, STREAM_NAMES};
pub use twin::Twin;

use crate::Engine;
use std::collections::{BTreeMap, BTreeSet};
use syros_commands::families::{Draws, HRandField, SRandMember, Scan, ZRandMember};
use syros_commands::limits::REPLY_BYTES_MAX;
use syros_commands::{Command, Double, Operation, Parsed, Reply, operations, parse};
use syros_types::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use syros_types::{Database, Prng, WallTime};

/// Runs the whole suite on engines made by `make`, which must be empty and at time 0, and by `load`, which
/// must be restored from the blocks of a snapshot.
///
/// # Panics
/// If an engine breaks the contract of [`Engine`].
pub fn test_all<E: Engine>(make: impl Fn() -> E, load: impl Fn(&[Vec<u8>]) -> E) {
    test_part(make, load, 1);
}

/// The same, with one in so many of the random rounds: for engines to which all of them take too long.
///
/// # Panics
/// If an engine breaks the contract of [`Engine`].
pub fn test_part<E: Engine>(make: impl Fn() -> E, load: impl Fn(&[Vec<u8>]) -> E, one_in: u64) {
    scripts::test(&make);
    test_log_time(&make);
    test_evaluation(&make);
    test_evaluation_of_lists(&make);
    test_bodies(&make);
    test_scan(&make);
    test_scan_among_updates(&make, 600 / one_in);
    test_draws(&make);
    sets::test(&make);
    test_limits(&make);
    test_limits_of_pops(&make);
    test_digest(&make);
    sorted_sets::test(&make);
    databases::test(&make, &load);
    notifications::test(&make);
    evictions::test(&make);
    waiting::test(&make, &load, (2_000 / one_in) as usize);
    versions::test(&make, (3_000 / one_in) as usize);
    snapshots::test(&make, &load, 200 / one_in);
    for seed in 0..4_u64.div_ceil(one_in) {
        test_against_twin(&make, seed, 12_000);
    }
}

/// A script that answers what it learns of a key, and of the time that this takes, by all commands that look at much. Replicas
/// have to agree in it, however they got the key: a script may keep what it learns.
pub const LEARNING: &str = "local learnt = {} \
    local key = KEYS[1] \
    for _, words in ipairs({{'smembers', key}, {'srandmember', key, '-3'}, {'sinter', key, key}, \
            {'hgetall', key}, {'hrandfield', key, '-3'}, {'hscan', key, '0'}, {'lrange', key, '0', '-1'}, \
            {'lpos', key, 'x'}, {'zrange', key, '0', '99'}, {'zunion', '2', key, key}, {'zscan', key, '0'}, \
            {'xrange', key, '-', '+'}, {'sort', key, 'alpha'}, {'dump', key}, {'object', 'encoding', key}, \
            {'xinfo', 'stream', key}, {'xinfo', 'stream', key, 'full'}, {'object', 'idletime', key}}) do \
        redis.pcall(unpack(words)) \
        learnt[#learnt + 1] = string.format('%.9f', os.clock()) \
    end \
    learnt[#learnt + 1] = redis.call('memory', 'usage', key) \
    return learnt";

/// The encoded operation of a command in words.
///
/// # Panics
/// If the words are no operation on data.
#[must_use]
pub fn body_of(words: &[&[u8]]) -> Vec<u8> {
    body_if_data(words, Database::FIRST)
        .unwrap_or_else(|| panic!("{words:?} is no operation: {:?}", parse(words)))
}

/// The encoded operation of a command in words, in this database; `None` if they are no operation on data.
#[must_use]
pub fn body_if_data(words: &[&[u8]], database: Database) -> Option<Vec<u8>> {
    let Ok(Parsed::Data(operation)) = parse(words) else { return None };
    let mut body = Vec::new();
    operation.in_database(database).encode(&mut body);
    Some(body)
}

/// The body of these commands, their words separated by single spaces.
fn body(commands: &[&str]) -> Vec<u8> {
    let words = |command: &&str| body_of(&command.split(' ').map(str::as_bytes).collect::<Vec<_>>());
    commands.iter().flat_map(words).collect()
}

fn apply<E: Engine>(engine: &mut E, time: WallTime, body: &[u8]) -> Vec<Reply> {
    // What is in the buffer already must stay there.
    let mut reply = b"before".to_vec();
    engine.apply(time, body, &mut reply);
    assert!(reply.starts_with(b"before"));
    Reply::decode_all(&reply[6..]).expect("an engine wrote a malformed reply")
}

fn read<E: Engine>(engine: &E, now: WallTime, body: &[u8]) -> Vec<Reply> {
    let mut reply = b"before".to_vec();
    engine.read(now, body, &mut reply);
    assert!(reply.starts_with(b"before"));
    Reply::decode_all(&reply[6..]).expect("an engine wrote a malformed reply")
}

fn evaluate<E: Engine>(engine: &E, body: &[u8]) -> Option<Vec<Reply>> {
    let mut reply = b"before".to_vec();
    let is_certain = engine.evaluate(body, &mut reply);
    assert!(reply.starts_with(b"before") && (is_certain || reply.len() == 6));
    is_certain.then(|| Reply::decode_all(&reply[6..]).expect("an engine wrote a malformed reply"))
}

const fn ms(ms: u64) -> WallTime {
    WallTime(ms * 1000)
}

fn bulk(text: &str) -> Reply {
    Reply::Bulk(text.as_bytes().to_vec())
}

/// Existence follows log time, which never goes back; only TTL looks at the clock. A key is there in all of the
/// millisecond at which it expires, so never for less time than it was given.
fn test_log_time<E: Engine>(make: &impl Fn() -> E) {
    let mut engine = make();
    assert_eq!((engine.time(), engine.next_expiry(), engine.len()), (ms(0), None, 0));
    apply(&mut engine, WallTime(100_999), &body(&["SET a 1 PX 50", "SET b 2 PX 70", "SET c 3"]));
    assert_eq!((engine.time(), engine.next_expiry()), (WallTime(100_999), Some(ms(151))));
    assert_eq!(engine.len(), 3);
    let ttl = body(&["PTTL a", "TTL a", "GET a"]);
    let at = |engine: &E, now| read(engine, now, &ttl);
    assert_eq!(at(&engine, ms(0)), [Reply::Integer(50), Reply::Integer(0), bulk("1")]);
    assert_eq!(at(&engine, ms(120))[0], Reply::Integer(30));
    // The clock says expired, the log does not: the key is there, with nothing left.
    assert_eq!(at(&engine, ms(10_000)), [Reply::Integer(0), Reply::Integer(0), bulk("1")]);
    // An earlier time counts as the latest.
    assert_eq!(apply(&mut engine, ms(1), &body(&["PTTL a"])), [Reply::Integer(50)]);
    engine.advance(ms(2));
    assert_eq!(engine.time(), WallTime(100_999));
    // 50 ms and a little after it was set: not less.
    engine.advance(WallTime(150_999));
    assert_eq!(engine.len(), 3);
    assert_eq!(at(&engine, ms(0)), [Reply::Integer(0), Reply::Integer(0), bulk("1")]);
    engine.advance(ms(151));
    assert_eq!(engine.len(), 2);
    assert_expiry(&engine, Some(ms(171)), "one of two has expired");
    assert_eq!(at(&engine, ms(0)), [Reply::Integer(-2), Reply::Integer(-2), Reply::Nil]);
    // Applying removes what has expired before it executes.
    assert_eq!(
        apply(&mut engine, ms(171), &body(&["EXISTS b", "SET b 3 NX"])),
        [Reply::Integer(0), Reply::Ok]
    );
    assert_eq!(engine.len(), 2);
    assert_expiry(&engine, None, "both have expired");
    // Absolute times are told as they were given.
    let absolute = body(&["SET a 1 PXAT 500", "PEXPIRETIME a", "PEXPIREAT a 500 GT", "PEXPIREAT a 501 GT"]);
    let [ok, rest @ ..] = &apply(&mut engine, ms(200), &absolute)[..] else { panic!("four replies") };
    assert_eq!((ok, rest), (&Reply::Ok, &[500, 0, 1].map(Reply::Integer)[..]));
}

/// What an update would answer is told without a change, unless it could be another answer later.
fn test_evaluation<E: Engine>(make: &impl Fn() -> E) {
    let mut engine = make();
    apply(&mut engine, ms(100), &body(&["SET a 1", "SET b 2 PX 50", "SET c 3"]));
    let before = engine.digest();
    let told = evaluate(&engine, &body(&["INCR a", "INCR a", "DEL c", "GET c", "SET d 4 NX", "GET d"]));
    let integer = Reply::Integer;
    assert_eq!(told, Some(vec![integer(2), integer(3), integer(1), Reply::Nil, Reply::Ok, bulk("4")]));
    // A lock that expires is free now, and will be until somebody takes it.
    assert_eq!(evaluate(&engine, &body(&["SET lock me NX PX 10"])), Some(vec![Reply::Ok]));
    for uncertain in ["INCR b", "GETSET b 5", "RENAME b e", "RANDOMKEY", "DBSIZE", "FLUSHALL"] {
        assert_eq!(evaluate(&engine, &body(&[uncertain])), None, "{uncertain}");
    }
    // What the body itself makes expire may have expired when its next operation looks.
    assert_eq!(evaluate(&engine, &body(&["SET e 5 PX 10", "GET e"])), None);
    assert_eq!(engine.digest(), before);
    // What has expired stays away.
    engine.advance(ms(151));
    assert_eq!(evaluate(&engine, &body(&["INCR b"])), Some(vec![integer(1)]));
    test_evaluation_of_hashes(engine);
}

fn test_evaluation_of_hashes<E: Engine>(mut engine: E) {
    let long = "x".repeat(65);
    apply(
        &mut engine,
        ms(160),
        &body(&["HSET small f 1", &format!("HSET large f {long} g 2"), "HSET late f 1"]),
    );
    apply(&mut engine, ms(160), &body(&["PEXPIRE late 50"]));
    let before = engine.digest();
    let integer = Reply::Integer;
    let told = evaluate(
        &engine,
        &body(&[
            "HSET small f 2 h 3",
            "HINCRBY small f 5",
            "HDEL small f h",
            "EXISTS small",
            "HSET small n 1",
        ]),
    );
    assert_eq!(told, Some(vec![integer(1), integer(7), integer(2), integer(0), integer(1)]));
    let commands = ["HDEL large f", "RENAME large moved", "HGETALL moved", "HSETNX new f 1", "HGET new f"];
    let map = Reply::Map(vec![(bulk("g"), bulk("2"))]);
    let expected = vec![integer(1), Reply::Ok, map, integer(1), bulk("1")];
    assert_eq!(evaluate(&engine, &body(&commands)), Some(expected));
    let wrong = Reply::Error(b"WRONGTYPE Operation against a key holding the wrong kind of value".to_vec());
    let commands = ["HSET a f 1", "APPEND small x", "SET small x", "APPEND small y"];
    let expected = vec![wrong.clone(), wrong, Reply::Ok, integer(2)];
    assert_eq!(evaluate(&engine, &body(&commands)), Some(expected));
    // What expires may have gone by then, and chance is another one then.
    for commands in [&["HSET late f 2"][..], &["HDEL late f"], &["HSET large a 1", "HRANDFIELD large"]] {
        assert_eq!(evaluate(&engine, &body(commands)), None, "{commands:?}");
    }
    assert_eq!(engine.digest(), before);
}

/// Of lists, what is taken from one key and put under another one included.
fn test_evaluation_of_lists<E: Engine>(make: &impl Fn() -> E) {
    let mut engine = make();
    let long = "x".repeat(65);
    let commands = ["RPUSH small a b", &format!("RPUSH large {long} a b"), "RPUSH late a", "SET s v"];
    apply(&mut engine, ms(100), &body(&commands));
    apply(&mut engine, ms(100), &body(&["PEXPIRE late 50"]));
    let before = engine.digest();
    let commands = [
        "LMOVE small large LEFT RIGHT",
        "LRANGE large 1 -1",
        "LPOP small 5",
        "EXISTS small",
        "LPUSH small c",
    ];
    let expected = vec![
        bulk("a"),
        Reply::Array(vec![bulk("a"), bulk("b"), bulk("a")]),
        Reply::Array(vec![bulk("b")]),
        Reply::Integer(0),
        Reply::Integer(1),
    ];
    assert_eq!(evaluate(&engine, &body(&commands)), Some(expected));
    let wrong = Reply::Error(b"WRONGTYPE Operation against a key holding the wrong kind of value".to_vec());
    let commands = ["LMPOP 2 none large RIGHT", "LTRIM large 5 9", "LLEN large", "LPUSH s a", "LPOP none 1"];
    let popped = Reply::Array(vec![bulk("large"), Reply::Array(vec![bulk("b")])]);
    let expected = vec![popped, Reply::Ok, Reply::Integer(0), wrong, Reply::NilArray];
    assert_eq!(evaluate(&engine, &body(&commands)), Some(expected));
    for uncertain in ["RPUSH late b", "LMOVE late small LEFT LEFT", "LMPOP 2 late small LEFT"] {
        assert_eq!(evaluate(&engine, &body(&[uncertain])), None, "{uncertain}");
    }
    assert_eq!(engine.digest(), before);
}

/// HRANDFIELD and its like draw each element about as often as any other, and as many as they are asked for.
fn test_draws<E: Engine>(make: &impl Fn() -> E) {
    test_draws_of(make, |number| format!("HSET h f:{number} v:{number}"), "HRANDFIELD h 2 WITHVALUES");
    test_draws_of(make, |number| format!("ZADD z {number} m:{number}"), "ZRANDMEMBER z 2 WITHSCORES");
}

/// Draws two elements at a time, with repetitions and without, that were added by one command each.
fn test_draws_of<E: Engine>(make: &impl Fn() -> E, addition: impl Fn(u64) -> String, draw: &str) {
    const DRAWS: u64 = 4000;
    let with_repetitions = draw.replace(" 2 ", " -2 ");
    for elements in [5_u64, 300] {
        let mut engine = make();
        (0..elements).for_each(|number| drop(apply(&mut engine, ms(0), &body(&[&addition(number)]))));
        let mut drawn: BTreeMap<String, u64> = BTreeMap::new();
        for (turn, command) in (0..DRAWS).zip([draw, &with_repetitions].iter().cycle()) {
            let replies = read(&engine, WallTime(turn * 1_000), &body(&[command]));
            let [Reply::Pairs(pairs)] = &replies[..] else { panic!("{command}: {replies:?}") };
            assert_eq!(pairs.len(), 2);
            for (element, value) in pairs {
                let Reply::Bulk(element) = element else { panic!("{pairs:?}") };
                let element = String::from_utf8_lossy(element).into_owned();
                let number = element[2..].parse().expect("a number");
                let is_own = match value {
                    Reply::Bulk(value) => value[2..] == element.as_bytes()[2..],
                    other => *other == Reply::Double(Double::new(number)),
                };
                assert!(is_own, "{element}: {value:?}");
                *drawn.entry(element).or_default() += 1;
            }
        }
        let (expected, tolerance) = (2 * DRAWS / elements, 8 * (2 * DRAWS / elements).isqrt());
        let is_fair = |count: &u64| count.abs_diff(expected) <= tolerance;
        assert!(drawn.len() as u64 == elements && drawn.values().all(is_fair), "{drawn:?}");
    }
}

/// Bodies of several operations, malformed ones, and updates where only reads are allowed.
fn test_bodies<E: Engine>(make: &impl Fn() -> E) {
    let mut engine = make();
    let packed =
        body(&["SET k 1", "INCR k", "BLIND INCR k", "APPEND k x", "INCR k", "BLIND INCR k", "GET k"]);
    let not_integer = Reply::Error(b"ERR value is not an integer or out of range".to_vec());
    assert_eq!(
        apply(&mut engine, ms(1), &packed),
        [Reply::Ok, Reply::Integer(2), Reply::Ok, Reply::Integer(2), not_integer, Reply::Ok, bulk("3x")]
    );
    let digest = engine.digest();
    let malformed = [Reply::Error(b"ERR malformed operation".to_vec())];
    let mut broken = body(&["SET k 5", "SET l 6"]);
    for bytes in [vec![], vec![0], vec![0xff; 40], {
        broken.pop();
        broken
    }] {
        assert_eq!(apply(&mut engine, ms(1), &bytes), malformed, "{bytes:?}");
        assert_eq!(read(&engine, ms(1), &bytes), malformed, "{bytes:?}");
    }
    let not_read = Reply::Error(b"ERR update where only a read is allowed".to_vec());
    let mixed = body(&["GET k", "SET k 9", "MSET k 1", "BLIND DEL k", "STRLEN k"]);
    let expected = [bulk("3x"), not_read.clone(), not_read.clone(), not_read, Reply::Integer(2)];
    assert_eq!(read(&engine, ms(1), &mixed), expected);
    assert_eq!(engine.digest(), digest, "malformed bodies and reads change nothing");
}

/// Goes through all of SCAN, changing the engine after every step by `disturb`.
fn scan_all<E: Engine>(
    engine: &mut E,
    count: u64,
    pattern: Option<&[u8]>,
    mut disturb: impl FnMut(&mut E),
) -> Vec<Vec<u8>> {
    let (mut cursor, mut found) = (0, Vec::new());
    for _ in 0..100_000 {
        let mut body = Vec::new();
        Operation::new(Scan { cursor, pattern, count, only_type: None }).encode(&mut body);
        let Some(Reply::Array(parts)) = read(engine, ms(0), &body).pop() else { panic!("SCAN: no array") };
        let [Reply::Bulk(next), Reply::Array(keys)] = &parts[..] else { panic!("SCAN: {parts:?}") };
        found.extend(keys.iter().map(|key| match key {
            Reply::Bulk(key) => key.clone(),
            other => panic!("SCAN: {other:?}"),
        }));
        cursor = String::from_utf8_lossy(next).parse().expect("a cursor is a number");
        assert!(cursor < 1 << 53, "clients keep cursors in floating point numbers: {cursor}");
        if cursor == 0 {
            return found;
        }
        disturb(engine);
    }
    panic!("SCAN does not end");
}

/// SCAN visits every key that is there from start to end, whatever else comes and goes.
fn test_scan<E: Engine>(make: &impl Fn() -> E) {
    assert_eq!(scan_all(&mut make(), 10, None, |_| ()), Vec::<Vec<u8>>::new());
    let mut prng = Prng::new(11);
    for round in 0..60 {
        let mut engine = make();
        for number in 0..200 {
            apply(
                &mut engine,
                ms(0),
                &body(&[&format!("SET stay:{number} x"), &format!("SET go:{number} x")]),
            );
        }
        let stay: BTreeSet<Vec<u8>> = (0..200).map(|number| format!("stay:{number}").into_bytes()).collect();
        if round == 0 {
            let found = scan_all(&mut engine, 7, None, |_| ());
            assert_eq!(found.len(), 400, "without changes every key comes once");
            let matching = scan_all(&mut engine, 7, Some(b"stay:*"), |_| ());
            assert_eq!((matching.len(), matching.into_iter().collect::<BTreeSet<_>>()), (200, stay.clone()));
        }
        let found = scan_all(&mut engine, 1 + prng.below(20), None, |engine| {
            for _ in 0..prng.below(8) {
                let number = prng.below(200);
                let command = match prng.below(5) {
                    0 => format!("SET new:{number} x"),
                    1 => format!("RENAME go:{number} moved:{number}"),
                    2 => format!("SET stay:{number} again PX 100000"),
                    3 => format!("SET go:{number} x EXAT 1"),
                    _ => format!("DEL go:{number} new:{number}"),
                };
                apply(engine, ms(0), &body(&[&command]));
            }
        });
        let found: BTreeSet<Vec<u8>> = found.into_iter().collect();
        assert!(found.is_superset(&stay), "SCAN missed {:?}", stay.difference(&found).next());
    }
}

/// The same among all updates that the generator knows: each key that exists after every one of them is visited.
fn test_scan_among_updates<E: Engine>(make: &impl Fn() -> E, rounds: u64) {
    let mut prng = Prng::new(12);
    for round in 0..rounds {
        let mut engine = make();
        let mut generator = Generator::new(round, 1..40, 0..400);
        let (mut time, mut lasting) = (0, BTreeSet::new());
        for body in core::iter::repeat_with(|| generator.body()).flatten().take(60) {
            apply(&mut engine, ms(0), &body);
        }
        lasting.extend(keys_of(&engine));
        let found = scan_all(&mut engine, 1 + round % 3, None, |engine| {
            for body in core::iter::repeat_with(|| generator.body()).flatten().take(2) {
                time += prng.below(3);
                // What expires is gone, even if the body adds it anew.
                engine.advance(ms(time));
                lasting = lasting.intersection(&keys_of(engine)).cloned().collect();
                apply(engine, ms(time), &body);
                lasting = lasting.intersection(&keys_of(engine)).cloned().collect();
            }
        });
        let found: BTreeSet<Vec<u8>> = found.into_iter().collect();
        let missed = lasting.difference(&found).next();
        assert_eq!(missed, None, "SCAN missed a key, round {round}");
    }
}

/// All keys.
fn keys_of<E: Engine>(engine: &E) -> BTreeSet<Vec<u8>> {
    let Some(Reply::Array(keys)) = read(engine, ms(0), &body(&["KEYS *"])).pop() else {
        panic!("KEYS: no array")
    };
    let name = |key| if let Reply::Bulk(key) = key { key } else { panic!("KEYS: {key:?}") };
    keys.into_iter().map(name).collect()
}

/// Values and replies stay within their limits.
fn test_limits<E: Engine>(make: &impl Fn() -> E) {
    let mut engine = make();
    let value = vec![b'v'; VALUE_BYTES_MAX];
    assert_eq!(apply(&mut engine, ms(0), &body_of(&[b"SET", b"k", &value])), [Reply::Ok]);
    let too_long = Reply::Error(b"ERR string exceeds maximum allowed size (proto-max-bulk-len)".to_vec());
    assert_eq!(apply(&mut engine, ms(0), &body(&["APPEND k x"])), [too_long]);
    assert_eq!(apply(&mut engine, ms(0), &body(&["STRLEN k"])), [Reply::Integer(VALUE_BYTES_MAX as i64)]);
    let times = REPLY_BYTES_MAX / VALUE_BYTES_MAX;
    let reply_too_long = Reply::Error(b"ERR reply exceeds the maximum of 134217728 bytes".to_vec());
    let mut words = vec![&b"k"[..]; times + 2];
    words[0] = b"MGET";
    assert_eq!(read(&engine, ms(0), &body_of(&words)), std::slice::from_ref(&reply_too_long));
    // Packed reads stop once they are over the limit; what answers OK alone is still executed.
    let mut commands = vec!["GET k"; times];
    commands.extend(["STRLEN k", "INCR n", "SET m 1", "BLIND INCR n"]);
    let replies = apply(&mut engine, ms(0), &body(&commands));
    let expected = [reply_too_long.clone(), reply_too_long, Reply::Ok, Reply::Ok];
    assert_eq!(replies[times..], expected);
    assert_eq!(apply(&mut engine, ms(0), &body(&["MGET n m"])), [Reply::Array(vec![bulk("1"), bulk("1")])]);
}

/// Elements that are popped are kept with the reply until the client has it: not too many of them at once, and none is
/// lost.
fn test_limits_of_pops<E: Engine>(make: &impl Fn() -> E) {
    let mut engine = make();
    let longest = vec![b'v'; VALUE_BYTES_MAX];
    for element in [&longest[..], b"a", &longest[..2 * KEY_BYTES_MAX]] {
        apply(&mut engine, ms(0), &body_of(&[b"RPUSH", b"l", element]));
    }
    let digest = engine.digest();
    let too_long = || Reply::Error(b"ERR reply to an update exceeds the maximum of 16908288 bytes".to_vec());
    for command in ["LPOP l 3", "RPOP l 5", "LMPOP 2 none l LEFT COUNT 3", "LMPOP 1 l RIGHT COUNT 3"] {
        assert_eq!(evaluate(&engine, &body(&[command])), Some(vec![too_long()]), "{command}");
        assert_eq!(apply(&mut engine, ms(0), &body(&[command])), [too_long()], "{command}");
        assert_eq!(engine.digest(), digest, "{command}");
    }
    let popped = apply(&mut engine, ms(0), &body(&["LPOP l 2"]));
    assert_eq!(popped, [Reply::Array(vec![Reply::Bulk(longest), bulk("a")])]);
    assert_eq!(apply(&mut engine, ms(0), &body(&["LLEN l"])), [Reply::Integer(1)]);
}

/// The digest is that of the state, whatever way led to it.
fn test_digest<E: Engine>(make: &impl Fn() -> E) {
    let state = |commands: &[&str]| {
        let mut engine = make();
        apply(&mut engine, ms(10), &body(commands));
        engine.digest()
    };
    let base = state(&["SET a 1", "SET b 2 PX 100"]);
    assert_eq!(base, state(&["SET c 3", "SET b x", "SET b 2 PXAT 110", "SET a 0", "INCR a", "DEL c"]));
    for other in [
        &["SET a 1"][..],
        &["SET a 2", "SET b 1 PX 100"],
        &["SET a 1", "SET b 2"],
        &["SET a 1", "SET b 2 PX 101"],
        &["SET a 1 PX 100", "SET b 2 PX 100"],
    ] {
        assert_ne!(base, state(other), "{other:?}");
    }
    let hash = state(&["HSET h f 1 g 2", "HSET i f 1"]);
    assert_eq!(
        hash,
        state(&["SET i x", "DEL i", "HSET i f 1 no 2", "HSET h f 1", "HINCRBY h g 2", "HDEL i no"])
    );
    let long = format!("HSET i f {}", "x".repeat(65));
    for other in [
        &["HSET h f 1 g 2"][..],
        &["HSET h g 2 f 1", "HSET i f 1"],
        &["HSET h f 1 g 3", "HSET i f 1"],
        &["HSET h f 1 g 2", "HSET i f 1", "PEXPIRE i 100"],
        &["HSET h f 1 g 2", "SET i f"],
        // It is a tree now, and answers in another order from now on.
        &["HSET h f 1 g 2", &long, "HSET i f 1"],
    ] {
        assert_ne!(hash, state(other), "{other:?}");
    }
    let list = state(&["RPUSH l a b", "RPUSH m a"]);
    assert_eq!(list, state(&["LPUSH m a", "LPUSH l b x a", "LREM l 0 x"]));
    let long = format!("LSET m 0 {}", "x".repeat(65));
    for other in [
        &["RPUSH l a b"][..],
        &["RPUSH l b a", "RPUSH m a"],
        &["RPUSH l a b", "RPUSH m b"],
        &["RPUSH l ab", "RPUSH m a"],
        &["RPUSH l a b", "HSET m a a"],
        &["RPUSH l a b", "RPUSH m a", &long, "LSET m 0 a"],
    ] {
        assert_ne!(list, state(other), "{other:?}");
    }
    let (mut earlier, later) = (make(), {
        let mut engine = make();
        engine.advance(ms(1));
        engine
    });
    assert_ne!(earlier.digest(), later.digest());
    earlier.advance(ms(1));
    assert_eq!(earlier.digest(), later.digest());
}

/// Compares an engine with the [`Twin`] on `steps` random bodies.
///
/// # Panics
/// If they ever differ in a reply, their number of keys, the next expiry or the digest.
pub fn test_against_twin<E: Engine>(make: &impl Fn() -> E, seed: u64, steps: usize) {
    let mut generator = Generator::new(seed, 1..4000, 1..2_000_000);
    generator.blind = true;
    generator.mixes_sketches = true;
    generator.has_streams = true;
    generator.has_field_expiry = true;
    let mut prng = Prng::new(!seed);
    let (mut engine, mut twin, mut now) = (make(), Twin::default(), 0u64);
    let mut succeeded: BTreeMap<String, usize> = BTreeMap::new();
    let mut certain = 0;
    for step in 0..steps {
        match prng.below(20) {
            0 => now += prng.below(2_000_000),
            1 => now = now.saturating_sub(prng.below(5_000)),
            2..10 => now += prng.below(20_000),
            _ => {}
        }
        let mut body = Vec::new();
        let mut shown = String::new();
        for _ in 0..1 + prng.below(4).saturating_sub(1) {
            let words = generator.command();
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            if let Ok(Parsed::Data(mut operation)) = parse(&words) {
                if let Some(seed) = operation.seed_mut() {
                    *seed = prng.next_u64();
                }
                let mut operation = operation.in_database(generator.database());
                if let Some(now_ms) = operation.now_mut() {
                    // The clocks of nodes differ.
                    *now_ms = time_of(now, &mut prng);
                }
                operation.encode(&mut body);
                shown += &format!("{operation:?}; ");
            }
        }
        if body.is_empty() {
            continue;
        }
        let time = WallTime(now);
        let only_reads = operations(&body).flatten().all(|operation| operation.command.is_read());
        let replies = if only_reads && prng.chance(9, 10) {
            read(&engine, time, &body)
        } else {
            twin.advance(time);
            // Said before time moves on, and before anything is changed.
            let evaluated = evaluate(&engine, &body);
            let replies = apply(&mut engine, time, &body);
            if let Some(evaluated) = evaluated {
                certain += 1;
                assert_eq!(evaluated, replies, "seed {seed}, step {step}: {shown}");
            }
            replies
        };
        let expected: Vec<Reply> = operations(&body).flatten().map(|op| twin.execute(time, &op)).collect();
        assert_eq!(replies.len(), expected.len());
        for ((operation, reply), expected) in operations(&body).flatten().zip(replies).zip(expected) {
            let reply = normalized(&operation, reply, &twin, &expected);
            assert_eq!(reply, expected, "seed {seed}, step {step}: {operation:?} in {shown}");
            if !matches!(reply, Reply::Error(_) | Reply::Nil | Reply::NilArray) {
                let name = format!("{:?}", operation.command);
                let end = name.find(' ').unwrap_or(name.len());
                *succeeded.entry(name[..end].to_string()).or_default() += 1;
            }
        }
        assert_eq!(engine.len(), twin.len(), "seed {seed}, step {step}: {shown}");
        assert_expiry(&engine, twin.next_expiry(), &shown);
        assert_eq!(engine.digest(), twin.digest(), "seed {seed}, step {step}: {shown}");
    }
    assert!(certain > steps / 10, "only {certain} answers could be told before");
    // Every kind of command but RANDOMKEY, whose answers are not compared, those on places, which scripts and redis-server
    // check, and those that only WATCH and EXEC send.
    assert!(steps < 10_000 || succeeded.len() == 121, "too few commands succeeded: {succeeded:?}");
}

/// What a node takes for the present, in milliseconds: not quite log time.
fn time_of(now: u64, prng: &mut Prng) -> u64 {
    (now / 1000).saturating_add_signed(prng.below(7) as i64 - 3)
}

/// The next expiry of an engine is after log time, and no later than the first that there is.
fn assert_expiry<E: Engine>(engine: &E, first: Option<WallTime>, context: &str) {
    let (next, time) = (engine.next_expiry(), engine.time());
    assert!(next.is_none_or(|next| next > time), "{next:?} is not after {time:?}: {context}");
    if let Some(first) = first {
        assert!(next.is_some_and(|next| next <= first), "{next:?} is later than {first:?}: {context}");
    }
}

/// How many elements were drawn. What was drawn without repetitions has none.
fn number_drawn(draws: Draws, reply: Reply) -> Reply {
    let drawn: Vec<Reply> = match reply {
        Reply::Array(elements) => elements,
        Reply::Pairs(pairs) => pairs.into_iter().map(|(element, _)| element).collect(),
        Reply::Bulk(_) => return Reply::Integer(1),
        other => return other,
    };
    let Draws::Many { count, .. } = draws else { panic!("{draws:?} draws one element") };
    let mut distinct: Vec<String> = drawn.iter().map(|element| format!("{element:?}")).collect();
    distinct.sort_unstable();
    distinct.dedup();
    assert!(count < 0 || distinct.len() == drawn.len(), "{draws:?} has drawn an element twice");
    Reply::Integer(drawn.len() as i64)
}

/// What engines may answer differently, reduced to what they must agree in.
fn normalized(operation: &Operation<'_>, reply: Reply, twin: &Twin, expected: &Reply) -> Reply {
    match (operation.command, reply) {
        // A step that need not visit all elements.
        (Command::HScan(_) | Command::SScan(_) | Command::ZScan(_), Reply::Array(_))
            if *expected == Reply::Nil =>
        {
            Reply::Nil
        }
        (
            Command::HRandField(HRandField { draws, .. })
            | Command::SRandMember(SRandMember { draws, .. })
            | Command::ZRandMember(ZRandMember { draws, .. }),
            reply,
        ) => number_drawn(draws, reply),
        (Command::Keys(_), Reply::Array(mut keys)) => {
            keys.sort_by_key(|key| format!("{key:?}"));
            Reply::Array(keys)
        }
        // One step visits everything if the cursor is 0 and the count large enough.
        (Command::Scan(Scan { cursor: 0, count, .. }), Reply::Array(mut parts)) if count > 1000 => {
            if let Some(Reply::Array(keys)) = parts.get_mut(1) {
                keys.sort_by_key(|key| format!("{key:?}"));
            }
            Reply::Array(parts)
        }
        (Command::Scan(_), Reply::Array(_)) => Reply::Nil,
        (Command::RandomKey(_), Reply::Bulk(key)) => {
            assert!(twin.contained_lately(&key), "RANDOMKEY invented {key:?}");
            Reply::Nil
        }
        (_, reply) => reply,
    }
}
