//! Versions of keys, and conditions on them.

use super::{Generator, apply, body, body_if_data, body_of, bulk, ms, read};
use crate::Engine;
use crate::removals::part_of;
use std::collections::BTreeMap;
use syros_commands::access::Version;
use syros_commands::families::{RecordVersions, Unchanged, Versions};
use syros_commands::{Arguments, Operation, Reply, operations};
use syros_types::{Database, OpNumber, Prng, WallTime};

/// Keys that the generator knows, of every type, and one that nothing ever happens to.
const KEYS: [&str; 14] =
    ["a", "b", "c", "ab", "h", "hash:1", "key:h", "l", "list:1", "s", "set:1", "z", "zset:1", "never"];

/// What engines have to pass.
///
/// # Panics
/// If an engine does not.
pub(super) fn test<E: Engine>(make: &impl Fn() -> E, steps: usize) {
    test_changes(make);
    test_conditions(make);
    test_evaluated_conditions(make);
    for seed in 0..3 {
        test_at_random(make, seed, steps);
    }
}

/// The body that asks for the versions of keys.
fn question(keys: &[&str]) -> Vec<u8> {
    let words: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes()).collect();
    let mut body = Vec::new();
    Operation::new(Versions { keys: Arguments::new(&words) }).encode(&mut body);
    body
}

/// Versions are recorded from this entry on.
fn record<E: Engine>(engine: &mut E, number: u64) {
    let mut body = Vec::new();
    Operation::new(RecordVersions).encode(&mut body);
    engine.begin_entry(OpNumber(number));
    assert_eq!(apply(engine, ms(0), &body), [Reply::Ok]);
}

fn versions<E: Engine>(engine: &E, keys: &[&str]) -> Vec<Version> {
    let replies = read(engine, WallTime(0), &question(keys));
    let [Reply::Array(versions)] = &replies[..] else { panic!("{replies:?}") };
    let number = |reply: &Reply| match reply {
        Reply::Integer(number) => Version(number.cast_unsigned()),
        other => panic!("a version {other:?}"),
    };
    versions.iter().map(number).collect()
}

fn version<E: Engine>(engine: &E, key: &str) -> Version {
    versions(engine, &[key])[0]
}

/// The body that begins with a condition.
fn conditional(conditions: &[(&str, Version)], commands: &[&str]) -> Vec<u8> {
    let bytes: Vec<[u8; 8]> = conditions.iter().map(|(_, version)| version.to_bytes()).collect();
    let mut words: Vec<&[u8]> = Vec::new();
    for ((key, _), bytes) in conditions.iter().zip(&bytes) {
        words.extend([key.as_bytes(), bytes]);
    }
    let mut condition = Vec::new();
    Operation::new(Unchanged { pairs: Arguments::new(&words) }).encode(&mut condition);
    [condition, body(commands)].concat()
}

/// Which command is a change of which key.
fn test_changes<E: Engine>(make: &impl Fn() -> E) {
    let mut engine = make();
    engine.begin_entry(OpNumber(1));
    apply(&mut engine, ms(0), &body(&["SET before 1", "SET k 1", "DEL k"]));
    assert_eq!(versions(&engine, &["before", "k"]), [Version::UNKNOWN; 2]);
    assert_eq!(super::evaluate(&engine, &conditional(&[("k", Version::UNKNOWN)], &[])), None);
    record(&mut engine, 2);
    assert_eq!(versions(&engine, &["before", "k"]), [Version::of_present(0), Version::of_absent(0)]);
    record(&mut engine, 3);
    let mut number = 3;
    let mut run = |engine: &mut E, command: &str| {
        number += 1;
        engine.begin_entry(OpNumber(number));
        apply(engine, ms(number), &body(&[command]));
        number
    };
    for command in [
        "SET k 1",
        "SET k 1",
        "INCR k",
        "BLIND INCR k",
        "BLIND APPEND k 2",
        "GETSET k 5",
        "SETRANGE k 1 x",
        "EXPIRE k 1000",
        "PERSIST k",
        "GETEX k EX 1000",
        "MSET k 1 l 1",
        "RENAME l k",
    ] {
        let number = run(&mut engine, command);
        assert_eq!(version(&engine, "k"), Version::of_present(number), "{command}");
    }
    let last = version(&engine, "k");
    for command in
        ["SET other 1", "GET k", "DEL never", "SET k 1 NX", "HSET k f v", "EXPIRE k 5 XX", "GETEX k"]
    {
        run(&mut engine, command);
        assert_eq!(version(&engine, "k"), last, "{command}");
    }
    let removed = run(&mut engine, "DEL k");
    assert_eq!(version(&engine, "k"), Version::of_absent(removed));
    run(&mut engine, "SET other 1");
    assert_eq!(version(&engine, "k"), Version::of_absent(removed));
    for command in
        ["HSET k f v", "HDEL k f", "SET k 1", "GETDEL k", "SET k 1", "RENAME k l", "SET k 1", "FLUSHALL"]
    {
        let number = run(&mut engine, command);
        let is_there = command.contains("SET");
        let expected = if is_there { Version::of_present(number) } else { Version::of_absent(number) };
        assert_eq!(version(&engine, "k"), expected, "{command}");
    }
    run(&mut engine, "SADD source a b");
    let added = run(&mut engine, "SADD k a");
    run(&mut engine, "SMOVE source k a");
    assert_eq!(version(&engine, "k"), Version::of_present(added), "it has the member");
    let moved = run(&mut engine, "SMOVE source k b");
    assert_eq!(version(&engine, "k"), Version::of_present(moved));
}

/// A body with a condition that does not hold does nothing else.
fn test_conditions<E: Engine>(make: &impl Fn() -> E) {
    let mut engine = make();
    record(&mut engine, 1);
    apply(&mut engine, ms(1), &body(&["SET a 1", "SET b 2 PX 100", "HSET h f v"]));
    let watched = ["a", "b", "h", "none"];
    let before: Vec<(&str, Version)> = watched.into_iter().zip(versions(&engine, &watched)).collect();
    let transaction = conditional(&before, &["INCR a", "GET b"]);
    engine.begin_entry(OpNumber(2));
    let replies = [Reply::Ok, Reply::Integer(2), bulk("2")];
    assert_eq!(apply(&mut engine, ms(2), &transaction), replies);
    for (step, change) in
        ["SET a 1", "SET none 1", "HSET h f v", "DEL b", "SET none 1 PX 10"].iter().enumerate()
    {
        let number = 10 + 10 * step as u64;
        let now: Vec<(&str, Version)> = watched.into_iter().zip(versions(&engine, &watched)).collect();
        let transaction = conditional(&now, &["SET a 7", "SET none 7"]);
        engine.begin_entry(OpNumber(number));
        apply(&mut engine, ms(number), &body(&[change]));
        let digest = engine.digest();
        engine.begin_entry(OpNumber(number + 1));
        assert_eq!(apply(&mut engine, ms(number), &transaction), [Reply::Nil], "{change}");
        assert_eq!(engine.digest(), digest, "{change}");
    }
    // What has come and expired meanwhile has changed; so has what has expired.
    engine.begin_entry(OpNumber(100));
    apply(&mut engine, ms(100), &body(&["DEL none", "SET b 1 PX 10"]));
    let now: Vec<(&str, Version)> =
        ["none", "b"].into_iter().zip(versions(&engine, &["none", "b"])).collect();
    engine.begin_entry(OpNumber(101));
    apply(&mut engine, ms(101), &body(&["SET none 1 PX 5"]));
    engine.advance(ms(200));
    for condition in &now {
        assert_eq!(apply(&mut engine, ms(200), &conditional(&[*condition], &[])), [Reply::Nil]);
    }
    // What cannot be known before it is executed is not said.
    engine.begin_entry(OpNumber(102));
    apply(&mut engine, ms(200), &body(&["SET a 1", "SET b 1 PX 10"]));
    let evaluated = |keys: &[&str], commands: &[&str]| {
        let now: Vec<(&str, Version)> = keys.iter().copied().zip(versions(&engine, keys)).collect();
        super::evaluate(&engine, &conditional(&now, commands))
    };
    assert_eq!(evaluated(&["a"], &["INCR a"]), Some(vec![Reply::Ok, Reply::Integer(2)]));
    assert_eq!(evaluated(&["a", "b"], &["INCR a"]), None);
    // The version of a key that does not exist depends on keys that the body does not name.
    assert_eq!(evaluated(&["a", "none"], &["INCR a"]), None);
    let other = conditional(&[("a", Version::UNKNOWN)], &["INCR a"]);
    assert_eq!(super::evaluate(&engine, &other), Some(vec![Reply::Nil]));
}

/// What was said of a body before it was executed is so, although keys that it does not name have been removed between the
/// two: such updates do not wait for each other.
fn test_evaluated_conditions<E: Engine>(make: &impl Fn() -> E) {
    let mut engine = make();
    record(&mut engine, 1);
    let absent = "absent";
    let same_part = |name: &String| {
        part_of(Database::FIRST, name.as_bytes()) == part_of(Database::FIRST, absent.as_bytes())
    };
    let neighbour = (0..).map(|number| format!("n{number}")).find(same_part).unwrap_or_default();
    let removals = [format!("DEL {neighbour}"), format!("SET {neighbour} 1 PX 10")];
    for (number, removal) in (2..).step_by(3).zip(&removals) {
        engine.begin_entry(OpNumber(number));
        apply(&mut engine, ms(number), &body(&[&format!("SET {neighbour} 1")]));
        let transaction = conditional(&[(absent, version(&engine, absent))], &["INCR other"]);
        let evaluated = super::evaluate(&engine, &transaction);
        engine.begin_entry(OpNumber(number + 1));
        apply(&mut engine, ms(number), &body(&[removal]));
        engine.begin_entry(OpNumber(number + 2));
        let executed = apply(&mut engine, ms(number), &transaction);
        assert!(evaluated.is_none_or(|evaluated| evaluated == executed), "{removal}: {executed:?}");
    }
}

/// Everything that a client can see of a key.
fn content<E: Engine>(engine: &E, key: &str) -> Vec<Reply> {
    let key = key.as_bytes();
    let mut questions = ["GET", "HGETALL", "SMEMBERS", "PEXPIRETIME"]
        .map(|command| body_of(&[command.as_bytes(), key]))
        .concat();
    questions.extend(body_of(&[b"LRANGE", key, b"0", b"-1"]));
    questions.extend(body_of(&[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"]));
    read(engine, WallTime(0), &questions)
}

/// Two equal versions of a key: nothing has happened to it between them.
fn test_at_random<E: Engine>(make: &impl Fn() -> E, seed: u64, steps: usize) {
    let mut generator = Generator::new(seed, 1..400, 1..2_000_000);
    generator.blind = true;
    let mut prng = Prng::new(!seed);
    let mut engine = make();
    record(&mut engine, 1);
    // When the content of a key has changed last, and when it had with which version.
    let mut changed = [0; KEYS.len()];
    let mut contents: Vec<Vec<Reply>> = KEYS.iter().map(|key| content(&engine, key)).collect();
    let mut seen: Vec<BTreeMap<u64, u64>> = vec![BTreeMap::new(); KEYS.len()];
    let (mut now, mut changes) = (0, 0);
    for number in 2..2 + steps as u64 {
        now += prng.below(20_000);
        let mut body = Vec::new();
        for _ in 0..1 + prng.below(4).saturating_sub(1) {
            let words = generator.command();
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            body.extend(body_if_data(&words, generator.database()).unwrap_or_default());
        }
        engine.begin_entry(OpNumber(number));
        if body.is_empty() {
            engine.advance(WallTime(now));
        } else {
            apply(&mut engine, WallTime(now), &body);
        }
        let versions = versions(&engine, &KEYS);
        for (place, key) in KEYS.iter().enumerate() {
            let content = content(&engine, key);
            if content != contents[place] {
                (changed[place], contents[place]) = (number, content);
                changes += 1;
            }
            let shown = || operations(&body).map(|operation| format!("{operation:?}; ")).collect::<String>();
            let Version(version) = versions[place];
            let before = *seen[place].entry(version).or_insert(changed[place]);
            assert_eq!(before, changed[place], "seed {seed}, step {number}: {key} {version}: {}", shown());
            assert!(version >> 1 <= number);
        }
    }
    // Four in ten commands are reads or mistakes, and others change keys that are not looked at, or in other databases.
    assert!(changes > steps / 8, "{changes} changes");
}
