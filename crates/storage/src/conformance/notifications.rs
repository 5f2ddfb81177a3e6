//! What an engine tells of what has happened to keys.

use super::{Generator, apply, body_if_data, ms};
use crate::Engine;
use std::collections::BTreeMap;
use syros_commands::Reply;
use syros_commands::access::{Announcement, KeyEvent, Notification};
use syros_types::{Database, OpNumber, WallTime};

/// What engines have to pass.
///
/// # Panics
/// If an engine does not.
pub(super) fn test<E: Engine>(make: &impl Fn() -> E) {
    test_events(make);
    test_expiry(make);
    test_silent_changes(make);
    test_every_change_is_told(make);
    test_databases(make);
    test_what_is_undone(make);
    test_order_and_silence(make);
}

/// The body of commands with their words between spaces, in the first database.
fn body(commands: &[&str]) -> Vec<u8> {
    body_in(Database::FIRST, commands)
}

fn body_in(database: Database, commands: &[&str]) -> Vec<u8> {
    let of_one = |command: &&str| {
        let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        body_if_data(&words, database).expect("a command on data")
    };
    commands.iter().flat_map(of_one).collect()
}

/// The events since the last call.
fn key_events<E: Engine>(engine: &mut E) -> Vec<Notification> {
    engine.take_announcements().into_iter().filter_map(Announcement::into_key_event).collect()
}

/// What has been told since the last call: events and keys, and databases but for the first.
fn told<E: Engine>(engine: &mut E) -> String {
    let show = |Notification { database, key, event, .. }: Notification| {
        let key = String::from_utf8_lossy(&key).into_owned();
        let place = if database.is_first() { String::new() } else { format!("@{}", database.number()) };
        format!("{} {key}{place}", event.name())
    };
    let told = key_events(engine).into_iter().filter(|one| !one.event.is_silent());
    told.map(show).collect::<Vec<_>>().join(", ")
}

/// Each command and what Redis 7.0 tells of it, with flags `KEAn`. One line goes on from the state that the lines before have
/// left.
const EVENTS: &[(&str, &str)] = &[
    ("SET s 1", "new s, set s"),
    ("SET s 2", "set s"),
    ("SET s 3 NX", ""),
    ("SET s 3 XX GET", "set s"),
    ("SET s 3 EX 1000", "set s, expire s"),
    ("SETEX s 1000 3", "set s, expire s"),
    ("PERSIST s", "persist s"),
    ("PERSIST s", ""),
    ("GETEX s EX 1000", "expire s"),
    ("GETEX s PERSIST", "persist s"),
    ("GETEX s PERSIST", ""),
    ("GETEX none EX 1000", ""),
    ("GETSET s 4", "set s"),
    ("SETNX s 5", ""),
    ("SETNX nx 5", "new nx, set nx"),
    ("INCR s", "incrby s"),
    ("DECRBY s 3", "incrby s"),
    ("INCRBYFLOAT s 0.5", "incrbyfloat s"),
    ("APPEND s tail", "append s"),
    ("INCR s", ""),
    ("SETRANGE s 2 x", "setrange s"),
    ("SETRANGE s 9 ", ""),
    ("SET past 1 PXAT 1", "new past, set past, expire past, expired past"),
    ("SET t 1", "new t, set t"),
    ("GETEX t PXAT 1", "del t"),
    ("SET t 1 KEEPTTL", "new t, set t"),
    ("SET t 1 XX PXAT 1", "set t, expire t, expired t"),
    ("PSETEX t 100000 1", "new t, set t, expire t"),
    ("SET t 2 KEEPTTL", "set t"),
    ("DEL t", "del t"),
    ("SETBIT b 7 1", "new b, setbit b"),
    ("SETBIT b 7 1", ""),
    ("SETBIT b 20 0", "setbit b"),
    ("BITFIELD b GET u8 0", ""),
    ("BITFIELD b SET u8 0 3", "setbit b"),
    ("BITFIELD b SET u8 0 3", ""),
    ("BITFIELD b SET u8 32 0", "setbit b"),
    ("BITFIELD b OVERFLOW FAIL INCRBY u8 0 255", ""),
    ("BITOP NOT c b", "new c, set c"),
    ("BITOP AND c none", "del c"),
    ("BITOP AND c none", ""),
    ("MSET m1 1 m2 2", "new m1, set m1, new m2, set m2"),
    ("MSETNX m1 1 m3 2", ""),
    ("GETDEL m1", "del m1"),
    ("GETDEL m1", ""),
    ("DEL m1 m2 nx", "del m2, del nx"),
    ("PFADD p a", "new p, pfadd p"),
    ("PFADD p a", ""),
    ("PFMERGE p p", "pfadd p"),
    ("EXPIRE s 1000", "expire s"),
    ("EXPIRE s 1000 NX", ""),
    ("EXPIRE none 1000", ""),
    ("EXPIRE s -1", "del s"),
    ("RPUSH l a b c b", "new l, rpush l"),
    ("LPUSH l z", "lpush l"),
    ("LPUSHX none z", ""),
    ("LINSERT l BEFORE a y", "linsert l"),
    ("LINSERT l BEFORE none y", ""),
    ("LSET l 0 x", "lset l"),
    ("LREM l 0 b", "lrem l"),
    ("LREM l 0 b", ""),
    ("LTRIM l 0 2", "ltrim l"),
    ("LTRIM none 0 2", ""),
    ("LMOVE l k LEFT RIGHT", "new k, rpush k, lpop l"),
    ("RPOPLPUSH k k", "lpush k, rpop k"),
    ("LPOP l", "lpop l"),
    ("LPOP l 0", ""),
    ("LMPOP 2 none l RIGHT", "rpop l, del l"),
    ("RPOP l", ""),
    ("SORT k ALPHA STORE sorted", "new sorted, sortstore sorted"),
    ("SORT none STORE sorted", "del sorted"),
    ("SORT none STORE sorted", ""),
    ("BLPOP k 0", "lpop k, del k"),
    ("SADD s1 a b c", "new s1, sadd s1"),
    ("SADD s1 a", ""),
    ("SMOVE s1 s2 a", "srem s1, new s2, sadd s2"),
    ("SMOVE s1 s2 none", ""),
    ("SUNIONSTORE u s1 s2", "new u, sunionstore u"),
    ("SINTERSTORE u s1 s1", "sinterstore u"),
    ("SDIFFSTORE u s1 s1", "del u"),
    ("SREM s2 a", "srem s2, del s2"),
    ("SREM s2 a", ""),
    ("SPOP s1 5", "spop s1, del s1"),
    ("SPOP s1", ""),
    ("HSET h f 1 g 2", "new h, hset h"),
    ("HMSET h f 1", "hset h"),
    ("HSETNX h f 1", ""),
    ("HSETNX h e 1", "hset h"),
    ("HINCRBY h f 2", "hincrby h"),
    ("HINCRBYFLOAT h f 0.5", "hincrbyfloat h"),
    ("HEXPIRE h 100 FIELDS 2 f none", "hexpire h"),
    ("HEXPIRE h 100 NX FIELDS 1 f", ""),
    ("HPERSIST h FIELDS 1 f", "hpersist h"),
    ("HPERSIST h FIELDS 2 f none", ""),
    ("HGETEX h EX 100 FIELDS 1 f", "hexpire h"),
    ("HGETEX h FIELDS 1 f", ""),
    ("HGETEX h PERSIST FIELDS 1 f", "hpersist h"),
    ("HSETEX h EX 100 FIELDS 1 x 1", "hset h, hexpire h"),
    ("HSETEX h FNX FIELDS 1 x 1", ""),
    ("HGETDEL h FIELDS 2 x none", "hdel h"),
    ("HGETDEL h FIELDS 1 none", ""),
    ("HSET gone f 1", "new gone, hset gone"),
    ("HEXPIRE gone 0 FIELDS 1 f", "hdel gone, del gone"),
    ("HDEL h none", ""),
    ("HDEL h e f", "hdel h"),
    ("HDEL h g", "hdel h, del h"),
    ("ZADD z 1 a 2 b 3 c 4 d 5 e 6 f", "new z, zadd z"),
    ("ZADD z 1 a", ""),
    ("ZADD z NX 7 a", ""),
    ("ZADD z 7 a", "zadd z"),
    ("ZADD z INCR 1 a", "zincr z"),
    ("ZINCRBY z 0 a", ""),
    ("ZINCRBY z 1 a", "zincr z"),
    ("ZREM z a none", "zrem z"),
    ("ZREM z none", ""),
    ("ZUNIONSTORE zu 1 z", "new zu, zunionstore zu"),
    ("ZINTERSTORE zu 2 z z", "zinterstore zu"),
    ("ZDIFFSTORE zu 2 z z", "del zu"),
    ("ZRANGESTORE zr z 0 1", "new zr, zrangestore zr"),
    ("ZRANGESTORE zr z 9 10", "del zr"),
    ("ZREMRANGEBYRANK z 0 0", "zremrangebyrank z"),
    ("ZREMRANGEBYSCORE z 3 3", "zremrangebyscore z"),
    ("ZREMRANGEBYSCORE z 3 3", ""),
    ("ZPOPMIN z", "zpopmin z"),
    ("ZPOPMAX z", "zpopmax z"),
    ("ZPOPMAX z", "zpopmax z, del z"),
    ("ZPOPMAX z", ""),
    ("ZADD z 0 a 0 b", "new z, zadd z"),
    ("ZREMRANGEBYLEX z [a [a", "zremrangebylex z"),
    ("ZMPOP 2 none z MIN", "zpopmin z, del z"),
    ("GEOADD g 13 38 here", "new g, zadd g"),
    ("GEOADD g 13 38 here", ""),
    ("GEOSEARCHSTORE gs g FROMMEMBER here BYRADIUS 1 km", "new gs, geosearchstore gs"),
    ("XADD x 1-1 f v", "new x, xadd x"),
    ("XADD x NOMKSTREAM MAXLEN 1 2-1 f v", "xadd x, xtrim x"),
    ("XADD none NOMKSTREAM * f v", ""),
    ("XGROUP CREATE x group 0", "xgroup-create x"),
    ("XGROUP CREATE y group 0 MKSTREAM", "new y, xgroup-create y"),
    ("XGROUP SETID x group 0", "xgroup-setid x"),
    ("XGROUP CREATECONSUMER x group one", "xgroup-createconsumer x"),
    ("XGROUP CREATECONSUMER x group one", ""),
    ("XREADGROUP GROUP group two STREAMS x >", "xgroup-createconsumer x"),
    ("XREADGROUP GROUP group two STREAMS x >", ""),
    ("XACK x group 2-1", ""),
    ("XGROUP DELCONSUMER x group two", "xgroup-delconsumer x"),
    ("XGROUP DELCONSUMER x group two", ""),
    ("XGROUP DESTROY x group", "xgroup-destroy x"),
    ("XGROUP DESTROY x group", ""),
    ("XSETID x 3-1", "xsetid x"),
    ("XDEL x 2-1", "xdel x"),
    ("XDEL x 2-1", ""),
    ("XTRIM x MAXLEN 0", ""),
    ("SET from 1", "new from, set from"),
    ("RENAME from to", "new to, rename_from from, rename_to to"),
    ("RENAME to to", ""),
    ("COPY to from", "new from, copy_to from"),
    ("COPY to from", ""),
    ("COPY to from REPLACE", "new from, copy_to from"),
    ("RENAMENX to from", ""),
    ("FLUSHALL", ""),
];

fn test_events<E: Engine>(make: &impl Fn() -> E) {
    let mut engine = make();
    engine.set_notifying(true);
    for (command, expected) in EVENTS {
        // Later than the moments in the past that some of them name.
        apply(&mut engine, ms(10), &body(&[command]));
        assert_eq!(told(&mut engine), *expected, "{command}");
    }
    // Blind operations are executed as the others are, and what fails tells nothing.
    let blind = |command: &str| {
        let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        let Ok(syros_commands::Parsed::Data(mut operation)) = syros_commands::parse(&words) else {
            panic!("{command}")
        };
        operation.blind = true;
        let mut body = Vec::new();
        operation.encode(&mut body);
        body
    };
    for (command, expected) in [
        ("APPEND a x", "new a, append a"),
        ("INCR a", ""),
        ("INCR i", "new i, incrby i"),
        ("INCR i", "incrby i"),
    ] {
        apply(&mut engine, ms(1), &blind(command));
        assert_eq!(told(&mut engine), expected, "blind {command}");
    }
}

/// A key expires once, however its record goes.
fn test_expiry<E: Engine>(make: &impl Fn() -> E) {
    let mut engine = make();
    engine.set_notifying(true);
    apply(&mut engine, ms(1), &body(&["MSET a 1 b 2 c 3", "SADD d m", "SET e 1 PXAT 1", "SET e 1 EXAT 1"]));
    engine.take_announcements();
    let expires = ["PEXPIRE a 10", "PEXPIRE b 10", "PEXPIRE c 10", "PEXPIRE d 10", "EXPIRE e 1000"];
    apply(&mut engine, ms(1), &body(&expires));
    assert_eq!(told(&mut engine), "expire a, expire b, expire c, expire d, expire e");
    let mut all = Vec::new();
    let commands = ["SET a 2", "SINTERSTORE b none", "DEL c", "SADD d n", "GETDEL e"];
    for (time, command) in (100..).zip(commands) {
        apply(&mut engine, ms(time), &body(&[command]));
        all.extend(key_events(&mut engine));
    }
    // Long before its record goes, it is told that a key has changed by expiring.
    let due = |key: &[u8]| all.iter().any(|one| one.event == KeyEvent::Changed && *one.key == *key);
    assert!([b"a", b"b", b"c", b"d"].iter().all(|key| due(*key)));
    for time in 1..100 {
        engine.advance(ms(1_000 * time));
        all.extend(key_events(&mut engine));
    }
    all.retain(|one| !one.event.is_silent());
    let of = |event: KeyEvent| {
        let keys = all.iter().filter(|one| one.event == event);
        let mut keys: Vec<_> = keys.map(|one| String::from_utf8_lossy(&one.key).into_owned()).collect();
        keys.sort();
        keys.join(" ")
    };
    assert_eq!(of(KeyEvent::Expired), "a b c d");
    assert_eq!((of(KeyEvent::New), of(KeyEvent::Del)), ("a d".to_owned(), "e".to_owned()));
    let shown: Vec<_> = all.iter().filter(|one| *one.key == *b"a").map(|one| one.event).collect();
    assert_eq!(shown, [KeyEvent::Expired, KeyEvent::New, KeyEvent::Set]);
    // A key that is set with an expiry in the past is set, and expires.
    apply(&mut engine, ms(100_000), &body(&["SET a 1 PXAT 5"]));
    assert_eq!(told(&mut engine), "set a, expire a, expired a");
}

/// FLUSHALL, SWAPDB and many keys that expire at once change any key; what no event tells of changes its key.
fn test_silent_changes<E: Engine>(make: &impl Fn() -> E) {
    let mut engine = make();
    engine.set_notifying(true);
    let silent = |engine: &mut E| -> Vec<(KeyEvent, String)> {
        let told = key_events(engine).into_iter().filter(|one| one.event.is_silent());
        told.map(|one| (one.event, String::from_utf8_lossy(&one.key).into_owned())).collect()
    };
    for command in ["FLUSHALL", "FLUSHDB", "SWAPDB 0 1"] {
        apply(&mut engine, ms(1), &body(&[command]));
        assert_eq!(silent(&mut engine), [(KeyEvent::Flushed, String::new())], "{command}");
    }
    let changed = |key: &str| vec![(KeyEvent::Changed, key.to_owned())];
    apply(&mut engine, ms(1), &body(&["XGROUP CREATE x g 0 MKSTREAM", "XADD x 1-1 f v"]));
    assert_eq!(silent(&mut engine), []);
    for command in [
        "XREADGROUP GROUP g one STREAMS x >",
        "XCLAIM x g two 0 1-1",
        "XAUTOCLAIM x g one 0 0",
        "XACK x g 1-1",
    ] {
        apply(&mut engine, ms(1), &body(&[command]));
        assert_eq!(silent(&mut engine), changed("x"), "{command}");
    }
    for key in 0..300 {
        apply(&mut engine, ms(2), &body(&[&format!("SET k{key} 1 PXAT {}", if key < 2 { 10 } else { 20 })]));
    }
    // PXAT names the last millisecond.
    engine.advance(ms(11));
    assert_eq!(silent(&mut engine), [changed("k0"), changed("k1")].concat());
    engine.advance(ms(21));
    assert_eq!(silent(&mut engine), [(KeyEvent::Flushed, String::new())]);
    apply(&mut engine, ms(30), &body(&["HSET h one 1 two 2 three 3", "HPEXPIRE h 10 FIELDS 1 one"]));
    apply(&mut engine, ms(30), &body(&["HPEXPIRE h 12 FIELDS 1 two"]));
    assert_eq!(silent(&mut engine), []);
    for time in [41, 43] {
        engine.advance(ms(time));
        assert_eq!(silent(&mut engine), changed("h"), "{time}");
    }
}

/// What there is of every key: by its name and database, what DUMP and PEXPIRETIME say.
fn state_of<E: Engine>(engine: &E, time: WallTime) -> BTreeMap<(Database, Vec<u8>), Vec<Reply>> {
    let ask = |database: Database, words: &[&[u8]]| {
        let mut reply = Vec::new();
        engine.read(time, &body_if_data(words, database).expect("a command on data"), &mut reply);
        Reply::decode_all(&reply).expect("a reply").pop()
    };
    let mut state = BTreeMap::new();
    for database in Database::all() {
        let Some(Reply::Array(keys)) = ask(database, &[b"KEYS", b"*"]) else { continue };
        for key in keys {
            let Reply::Bulk(key) = key else { panic!("{key:?} is no key") };
            let said = [&b"DUMP"[..], b"PEXPIRETIME"].map(|command| ask(database, &[command, &key]));
            state.insert((database, key), said.into_iter().flatten().collect());
        }
    }
    state
}

/// Nothing changes a key without telling of it, not even time. What clients keep copies of depends on it.
fn test_every_change_is_told<E: Engine>(make: &impl Fn() -> E) {
    for seed in 0..2 {
        let mut engine = make();
        engine.set_notifying(true);
        let mut generator = Generator::new(seed, 1..4_000, 1..2_000_000);
        generator.mixes_sketches = true;
        generator.has_streams = true;
        generator.has_field_expiry = true;
        let mut before = BTreeMap::new();
        let (mut changes, mut silent) = (0, 0);
        for step in 0..1_500 {
            let Some(body) = generator.body() else { continue };
            let time = ms(step * 50);
            apply(&mut engine, time, &body);
            let after = state_of(&engine, time);
            let told = key_events(&mut engine);
            if told.iter().any(|one| one.event == KeyEvent::Flushed) {
                before = after;
                continue;
            }
            let of_both = before.keys().chain(after.keys());
            let mut changed = of_both.filter(|key| before.get(key) != after.get(key));
            // That a record goes whose key has expired comes too late.
            let told: Vec<_> = told.iter().filter(|one| one.event != KeyEvent::Expired).collect();
            let is_told = |(_, name): &(Database, Vec<u8>)| told.iter().any(|one| *one.key == **name);
            silent += usize::from(changed.clone().any(|(_, name)| {
                told.iter().filter(|one| *one.key == **name).all(|one| one.event.is_silent())
            }));
            if let Some((database, key)) = changed.clone().find(|key| !is_told(key)) {
                let operations: Vec<_> = syros_commands::operations(&body).collect();
                let key = key.escape_ascii();
                panic!("seed {seed}, step {step}: {operations:?} changes {key} of {database:?} silently");
            }
            changes += usize::from(changed.next().is_some());
            before = after;
        }
        assert!(changes > 250 && silent > 10, "{changes}, of which only silent events tell {silent}");
    }
}

fn test_databases<E: Engine>(make: &impl Fn() -> E) {
    let mut engine = make();
    engine.set_notifying(true);
    let third = Database::new(3).expect("a database");
    let commands =
        [body(&["SET k 1"]), body_in(third, &["SET j 1"]), body(&["MOVE k 3", "SET k 2"])].concat();
    apply(&mut engine, ms(1), &commands);
    let expected = "new k, set k, new j@3, set j@3, new k@3, move_from k, move_to k@3, new k, set k";
    assert_eq!(told(&mut engine), expected);
    apply(&mut engine, ms(1), &body(&["SET a 1", "SWAPDB 0 3", "DEL a", "DEL k", "COPY j j DB 3"]));
    assert_eq!(told(&mut engine), "new a, set a, del k, new j@3, copy_to j@3");
}

fn test_what_is_undone<E: Engine>(make: &impl Fn() -> E) {
    let script = |text: &str| {
        let words: [&[u8]; 4] = [b"EVAL", text.as_bytes(), b"1", b"k"];
        let Ok(syros_commands::Parsed::Data(mut operation)) = syros_commands::parse(&words) else {
            panic!("{text}")
        };
        if let syros_commands::Command::Eval(eval) = &mut operation.command {
            eval.terms.owns_everything = false;
            eval.fuel = 100_000;
        }
        let mut body = Vec::new();
        operation.encode(&mut body);
        body
    };
    let mut engine = make();
    engine.set_notifying(true);
    apply(&mut engine, ms(1), &body(&["SET before 1"]));
    apply(&mut engine, ms(1), &script("redis.call('SET', KEYS[1], 1)"));
    assert_eq!(told(&mut engine), "new before, set before, new k, set k");
    apply(&mut engine, ms(1), &body(&["SET before 1"]));
    apply(&mut engine, ms(1), &script("redis.call('DEL', KEYS[1]) redis.call('SET', 'other', 1)"));
    apply(&mut engine, ms(1), &script("redis.call('DEL', KEYS[1]) while true do end"));
    apply(&mut engine, ms(1), &body(&["SET k 1"]));
    assert_eq!(told(&mut engine), "set before, set k", "what is undone has not happened");
    // Of several databases, too.
    apply(&mut engine, ms(1), &body_in(Database::new(3).expect("a database"), &["SET before 1"]));
    assert_eq!(told(&mut engine), "new before@3, set before@3");
    let wandering = "#!lua flags=allow-undeclared-keys
redis.call('SET', 'a', 1) redis.call('SELECT', '3') redis.call('DEL', 'before') redis.call('SELECT', '0') \
redis.call('DEL', 'a')";
    apply(&mut engine, ms(1), &script(&format!("{wandering} while true do end")));
    assert_eq!(told(&mut engine), "", "what is undone in several databases has not happened");
    apply(&mut engine, ms(1), &script(wandering));
    assert_eq!(told(&mut engine), "new a, set a, del before@3, del a");
    engine.evaluate(&body(&["SET k 1", "DEL k"]), &mut Vec::new());
    assert_eq!(told(&mut engine), "", "what is evaluated has not happened");
}

/// Answers and state do not depend on whether it is told what happens, and what is told has the number of its entry.
fn test_order_and_silence<E: Engine>(make: &impl Fn() -> E) {
    for seed in 0..2 {
        let (mut quiet, mut talking) = (make(), make());
        talking.set_notifying(true);
        let mut generator = Generator::new(seed, 1..4_000, 1..2_000_000);
        let mut events = 0;
        for step in 0..1_500 {
            let Some(body) = generator.body() else { continue };
            let replies = [&mut quiet, &mut talking].map(|engine| {
                engine.begin_entry(OpNumber(step + 1));
                apply(engine, ms(step * 50), &body)
            });
            assert_eq!(replies[0], replies[1], "seed {seed}, step {step}");
            let told = talking.take_announcements();
            let is_of_entry = |one: &Announcement| match one {
                Announcement::KeyEvent(Notification { event, .. })
                    if *event == KeyEvent::Expired || event.is_silent() =>
                {
                    true
                }
                of_entry => of_entry.entry() == step + 1,
            };
            assert!(told.iter().all(is_of_entry));
            events += told.len();
        }
        assert_eq!(quiet.digest(), talking.digest(), "seed {seed}");
        assert!(events > 500 && quiet.take_announcements().is_empty(), "{events}");
        talking.set_notifying(false);
        talking.take_announcements();
        apply(&mut talking, ms(100_000_000), &body(&["SET k 1"]));
        assert_eq!(told(&mut talking), "");
    }
}
