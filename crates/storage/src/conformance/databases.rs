//! Databases: keys of one name in several of them, and what is done to whole databases.

use super::{apply, body_if_data, bulk, evaluate, ms, read};
use crate::Engine;
use syros_commands::families::{RecordVersions, Unchanged, Versions};
use syros_commands::{Arguments, Operation, Reply};
use syros_types::{Database, OpNumber};

/// What engines have to pass.
///
/// # Panics
/// If an engine does not.
pub(super) fn test<E: Engine>(make: &impl Fn() -> E, load: &impl Fn(&[Vec<u8>]) -> E) {
    test_names(make);
    test_whole_databases(make);
    test_expiries(make);
    test_evaluation(make);
    test_versions(make);
    test_snapshots(make, load);
}

/// A body of commands, each behind the number of its database.
fn body(commands: &[&str]) -> Vec<u8> {
    let of_one = |command: &&str| {
        let (number, command) = command.split_once(' ').expect("a number and a command");
        let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        body_if_data(&words, database(number)).expect("a command on data")
    };
    commands.iter().flat_map(of_one).collect()
}

fn database(number: &str) -> Database {
    number.parse().ok().and_then(Database::new).expect("the number of a database")
}

const fn count(count: i64) -> Reply {
    Reply::Integer(count)
}

fn names(names: &[&str]) -> Reply {
    Reply::Array(names.iter().map(|name| bulk(name)).collect())
}

/// Keys of one name in two databases have nothing in common.
fn test_names<E: Engine>(make: &impl Fn() -> E) {
    let mut engine = make();
    apply(&mut engine, ms(1), &body(&["0 SET k zero", "1 SET k one", "15 HSET k f v", "1 SET other 1"]));
    let told = read(&engine, ms(1), &body(&["0 GET k", "1 GET k", "2 GET k", "15 HGET k f", "15 TYPE k"]));
    assert_eq!(told, [bulk("zero"), bulk("one"), Reply::Nil, bulk("v"), Reply::Simple(b"hash".to_vec())]);
    let told = read(&engine, ms(1), &body(&["0 DBSIZE", "1 DBSIZE", "2 DBSIZE", "15 KEYS *", "0 KEYS *"]));
    assert_eq!(told, [count(1), count(2), count(0), names(&["k"]), names(&["k"])]);
    let one_step = |keys: &[&str]| Reply::Array(vec![bulk("0"), names(keys)]);
    let told = read(&engine, ms(1), &body(&["0 SCAN 0", "2 SCAN 0", "15 RANDOMKEY", "2 RANDOMKEY"]));
    assert_eq!(told, [one_step(&["k"]), one_step(&[]), bulk("k"), Reply::Nil]);
    assert_eq!(engine.len(), 4);
    assert_eq!(
        apply(&mut engine, ms(1), &body(&["1 DEL k", "0 EXISTS k", "1 EXISTS k"])),
        [1, 1, 0].map(count)
    );
    let moves = ["0 MOVE k 1", "0 EXISTS k", "1 GET k", "0 MOVE k 1", "1 MOVE k 15", "1 MOVE k 1"];
    let same = Reply::Error(b"ERR source and destination objects are the same".to_vec());
    assert_eq!(
        apply(&mut engine, ms(1), &body(&moves)),
        [count(1), count(0), bulk("zero"), count(0), count(0), same]
    );
    assert_eq!(apply(&mut engine, ms(1), &body(&["15 MOVE k 0", "0 HGET k f"])), [count(1), bulk("v")]);
}

/// What empties databases, and what exchanges them.
fn test_whole_databases<E: Engine>(make: &impl Fn() -> E) {
    let mut engine = make();
    let fill = body(&["0 SET k zero", "1 SET k one", "1 HSET h f v", "2 SET k two"]);
    apply(&mut engine, ms(1), &fill);
    let digest = engine.digest();
    let sizes = |engine: &E| read(engine, ms(1), &body(&["0 DBSIZE", "1 DBSIZE", "2 DBSIZE", "3 DBSIZE"]));
    apply(&mut engine, ms(1), &body(&["0 SWAPDB 1 3"]));
    assert_eq!(sizes(&engine), [1, 0, 1, 2].map(count));
    assert_ne!(engine.digest(), digest);
    let told = apply(&mut engine, ms(1), &body(&["3 HGET h f", "1 SET k new", "3 GET k", "0 SWAPDB 3 3"]));
    assert_eq!(told, [bulk("v"), Reply::Ok, bulk("one"), Reply::Ok]);
    apply(&mut engine, ms(1), &body(&["1 FLUSHDB", "0 SWAPDB 3 1"]));
    assert_eq!(sizes(&engine), [1, 2, 1, 0].map(count));
    assert_eq!(engine.digest(), digest, "an empty database is one that was never used");
    apply(&mut engine, ms(1), &body(&["0 SWAPDB 0 1", "0 DEL h"]));
    assert_eq!(read(&engine, ms(1), &body(&["0 GET k", "1 GET k"])), [bulk("one"), bulk("zero")]);
    // What comes behind in one body finds them as they are.
    let told = apply(
        &mut engine,
        ms(1),
        &body(&["2 SET l 1", "2 FLUSHDB", "2 SET m 1", "0 SWAPDB 2 0", "0 KEYS *", "2 GET k", "1 DBSIZE"]),
    );
    assert_eq!(told[4..], [names(&["m"]), bulk("one"), count(1)]);
    apply(&mut engine, ms(1), &body(&["2 FLUSHDB"]));
    assert_eq!(sizes(&engine), [1, 1, 0, 0].map(count));
    apply(&mut engine, ms(1), &body(&["5 SET k 5", "1 FLUSHALL", "5 SET l 5"]));
    assert_eq!(sizes(&engine), [0; 4].map(count));
    assert_eq!((engine.len(), read(&engine, ms(1), &body(&["5 KEYS *"]))), (1, vec![names(&["l"])]));
}

/// Keys expire wherever they are.
fn test_expiries<E: Engine>(make: &impl Fn() -> E) {
    let mut engine = make();
    let commands = ["3 SET k 3 PX 100", "0 SET k 0 PX 200", "4 SET l 4", "4 SET m 4 PX 50", "4 MOVE m 0"];
    apply(&mut engine, ms(1), &body(&commands));
    let first = engine.next_expiry();
    assert!(first.is_some_and(|next| next > ms(1) && next <= ms(52)), "{first:?}");
    engine.advance(ms(60));
    assert_eq!((engine.len(), read(&engine, ms(60), &body(&["0 DBSIZE"]))), (3, vec![count(1)]));
    apply(&mut engine, ms(60), &body(&["0 SWAPDB 3 4"]));
    assert_eq!(read(&engine, ms(60), &body(&["4 PTTL k", "3 DBSIZE"])), [count(41), count(1)]);
    engine.advance(ms(150));
    assert_eq!(
        read(&engine, ms(150), &body(&["4 GET k", "4 DBSIZE", "0 GET k"])),
        [Reply::Nil, count(0), bulk("0")]
    );
    engine.advance(ms(300));
    assert_eq!((engine.len(), engine.next_expiry().is_none_or(|next| next > ms(300))), (1, true));
}

/// What an update would answer is told of the keys of its own database.
fn test_evaluation<E: Engine>(make: &impl Fn() -> E) {
    let mut engine = make();
    apply(&mut engine, ms(1), &body(&["0 SET k 10", "1 SET k 20", "1 SET e 1 PX 10"]));
    let commands = ["1 INCR k", "0 INCR k", "2 INCR k", "1 MOVE k 3", "3 INCR k", "1 GET k", "0 MOVE k 2"];
    let expected: Vec<Reply> =
        vec![count(21), count(11), count(1), count(1), count(22), Reply::Nil, count(0)];
    assert_eq!(evaluate(&engine, &body(&commands)), Some(expected.clone()));
    for uncertain in ["1 INCR e", "0 SWAPDB 1 2", "1 FLUSHDB", "0 FLUSHALL", "1 DBSIZE", "1 MOVE e 2"] {
        assert_eq!(evaluate(&engine, &body(&[uncertain])), None, "{uncertain}");
    }
    assert_eq!(evaluate(&engine, &body(&["0 INCR e"])), Some(vec![count(1)]));
    assert_eq!(apply(&mut engine, ms(1), &body(&commands)), expected);
}

/// Versions are those of keys in their databases; a database that is exchanged has changed.
fn test_versions<E: Engine>(make: &impl Fn() -> E) {
    let mut engine = make();
    let mut number = 1;
    let mut run = |engine: &mut E, commands: &[u8]| {
        number += 1;
        engine.begin_entry(OpNumber(number));
        apply(engine, ms(1), commands)
    };
    let mut record = Vec::new();
    Operation::new(RecordVersions).encode(&mut record);
    run(&mut engine, &record);
    // Whether something is a change of k, in each of three databases.
    for (commands, expected) in [
        (&["1 SET k 1"][..], [false, true, false]),
        (&["0 SET l 1"], [false; 3]),
        (&["1 MOVE k 2"], [false, true, true]),
        (&["0 SWAPDB 0 2"], [true, false, true]),
        (&["0 SWAPDB 0 2"], [true, false, true]),
        (&["0 SWAPDB 1 1"], [false; 3]),
        (&["0 SWAPDB 1 3"], [false; 3]),
        (&["0 SET k 1", "2 SET k 1"], [true, false, true]),
        (&["0 SWAPDB 0 2"], [true, false, true]),
        (&["2 FLUSHDB"], [false, false, true]),
        (&["0 FLUSHALL"], [true, false, false]),
    ] {
        let versions = |engine: &E| ["0", "1", "2"].map(|number| version(engine, database(number)));
        let before = versions(&engine);
        run(&mut engine, &body(commands));
        let after = versions(&engine);
        assert_eq!([0, 1, 2].map(|place| before[place] != after[place]), expected, "{commands:?}");
    }
    // A condition holds in the database in which it is asked.
    run(&mut engine, &body(&["1 SET k 1"]));
    let bytes = version(&engine, database("1"));
    let condition = |number: &str| {
        let words: [&[u8]; 2] = [b"k", &bytes];
        let unchanged = Unchanged { pairs: Arguments::new(&words) };
        let mut out = Vec::new();
        Operation::new(unchanged).in_database(database(number)).encode(&mut out);
        out
    };
    let conditional = |number: &str| [condition(number), body(&["0 SET done 1"])].concat();
    assert_eq!(run(&mut engine, &conditional("0")), [Reply::Nil]);
    assert_eq!(run(&mut engine, &conditional("1")), [Reply::Ok, Reply::Ok]);
    let both = [condition("1"), conditional("2")].concat();
    assert_eq!(run(&mut engine, &both), [Reply::Ok, Reply::Nil]);
}

/// The version of k, as a condition has it.
fn version<E: Engine>(engine: &E, database: Database) -> [u8; 8] {
    let mut question = Vec::new();
    let words: [&[u8]; 1] = [b"k"];
    let versions = Versions { keys: Arguments::new(&words) };
    Operation::new(versions).in_database(database).encode(&mut question);
    let replies = read(engine, ms(0), &question);
    match &replies[..] {
        [Reply::Array(versions)] => match versions[..] {
            [Reply::Integer(version)] => version.to_be_bytes(),
            _ => panic!("{versions:?}"),
        },
        _ => panic!("{replies:?}"),
    }
}

/// A snapshot has the databases as they were when it began, under the numbers that they had.
fn test_snapshots<E: Engine>(make: &impl Fn() -> E, load: &impl Fn(&[Vec<u8>]) -> E) {
    let mut engine = make();
    for number in 0..50 {
        let commands = [
            format!("0 SET a:{number} {number}"),
            format!("3 SET a:{number} {}", number + 1),
            format!("7 HSET h:{number} f {number}"),
        ];
        apply(&mut engine, ms(1), &body(&commands.each_ref().map(String::as_str)));
    }
    let (digest, keys) = (engine.digest(), body(&["0 DBSIZE", "3 GET a:7", "7 HGET h:9 f", "5 DBSIZE"]));
    let told = read(&engine, ms(1), &keys);
    engine.begin_snapshot();
    let mut blocks = Vec::new();
    for commands in [
        &["0 SWAPDB 0 7"][..],
        &["0 SET k 1", "3 DEL a:1", "3 MOVE a:2 5"],
        &["3 FLUSHDB", "0 SWAPDB 3 5"],
        &["0 FLUSHALL"],
    ] {
        apply(&mut engine, ms(1), &body(commands));
        let mut block = Vec::new();
        assert!(engine.snapshot_block(100, &mut block), "there is more");
        blocks.push(block);
    }
    let mut block = Vec::new();
    while engine.snapshot_block(700, &mut block) {
        blocks.push(std::mem::take(&mut block));
    }
    blocks.push(block);
    blocks.rotate_left(2);
    let restored = load(&blocks);
    assert_eq!((restored.digest(), read(&restored, ms(1), &keys)), (digest, told));
    assert_eq!(restored.len(), 150);
}
