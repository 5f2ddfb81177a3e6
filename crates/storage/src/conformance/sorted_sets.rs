//! What sorted sets have to pass besides scripts and the twin.

use super::{apply, body, body_of, bulk, evaluate, ms};
use crate::Engine;
use syros_commands::{Double, Reply};
use syros_types::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

pub(super) fn test<E: Engine>(make: &impl Fn() -> E) {
    test_evaluation(make);
    test_limits_of_pops(make);
    test_digest(make);
    test_large(make);
}

const fn double(value: f64) -> Reply {
    Reply::Double(Double::new(value))
}

fn error(text: &str) -> Reply {
    Reply::Error(text.as_bytes().to_vec())
}

/// What an update would answer is told without a change.
fn test_evaluation<E: Engine>(make: &impl Fn() -> E) {
    let mut engine = make();
    let long = "m".repeat(65);
    let commands =
        ["ZADD small 1 a 2 b", &format!("ZADD large 0 {long} 1 a 2 b"), "ZADD late 1 a", "SET s v"];
    apply(&mut engine, ms(100), &body(&commands));
    apply(&mut engine, ms(100), &body(&["PEXPIRE late 50"]));
    let before = engine.digest();
    let commands = [
        "ZADD small XX CH 5 a 1 c",
        "ZPOPMIN small",
        "ZINCRBY small 1.5 a",
        "ZREM small a",
        "EXISTS small",
        "ZUNIONSTORE small 2 large s",
        "ZUNIONSTORE s 1 large WEIGHTS 3",
        "ZRANGE s 1 -1 WITHSCORES",
    ];
    let expected = vec![
        Reply::Integer(1),
        Reply::Array(vec![bulk("b"), double(2.0)]),
        double(6.5),
        Reply::Integer(1),
        Reply::Integer(0),
        error("WRONGTYPE Operation against a key holding the wrong kind of value"),
        Reply::Integer(3),
        Reply::Pairs(vec![(bulk("a"), double(3.0)), (bulk("b"), double(6.0))]),
    ];
    assert_eq!(evaluate(&engine, &body(&commands)), Some(expected));
    let commands = ["ZMPOP 2 none large MAX", "ZREMRANGEBYRANK large 0 -1", "ZMPOP 1 large MIN"];
    let popped = Reply::Array(vec![bulk("b"), double(2.0)]);
    let expected = vec![
        Reply::Array(vec![bulk("large"), Reply::Array(vec![popped])]),
        Reply::Integer(2),
        Reply::NilArray,
    ];
    assert_eq!(evaluate(&engine, &body(&commands)), Some(expected));
    // What expires may have gone by then, and chance is another one then.
    let random = &["ZADD large 1 a", "ZRANDMEMBER large"];
    for commands in
        [&["ZADD late 1 b"][..], &["ZUNIONSTORE small 1 late"], &["ZMPOP 2 late large MIN"], random]
    {
        assert_eq!(evaluate(&engine, &body(commands)), None, "{commands:?}");
    }
    assert_eq!(engine.digest(), before);
}

/// Members that are popped are kept with the reply until the client has it: not too many of them at once, and none is
/// lost.
fn test_limits_of_pops<E: Engine>(make: &impl Fn() -> E) {
    let mut engine = make();
    let longest = vec![b'v'; VALUE_BYTES_MAX];
    for (score, member) in [(&b"1"[..], &longest[..]), (b"2", b"a"), (b"3", &longest[..2 * KEY_BYTES_MAX])] {
        apply(&mut engine, ms(0), &body_of(&[b"ZADD", b"z", score, member]));
    }
    let digest = engine.digest();
    let too_long = error("ERR reply to an update exceeds the maximum of 16908288 bytes");
    for command in ["ZPOPMIN z 3", "ZPOPMAX z 5", "ZMPOP 2 none z MIN COUNT 3", "ZMPOP 1 z MAX COUNT 3"] {
        assert_eq!(evaluate(&engine, &body(&[command])), Some(vec![too_long.clone()]), "{command}");
        assert_eq!(
            apply(&mut engine, ms(0), &body(&[command])),
            core::slice::from_ref(&too_long),
            "{command}"
        );
        assert_eq!(engine.digest(), digest, "{command}");
    }
    let popped = apply(&mut engine, ms(0), &body(&["ZPOPMIN z 2"]));
    let pairs = vec![(Reply::Bulk(longest), double(1.0)), (bulk("a"), double(2.0))];
    assert_eq!(popped, [Reply::Pairs(pairs)]);
    assert_eq!(apply(&mut engine, ms(0), &body(&["ZCARD z"])), [Reply::Integer(1)]);
}

/// The digest tells states apart, and nothing else.
fn test_digest<E: Engine>(make: &impl Fn() -> E) {
    let state = |commands: &[&str]| {
        let mut engine = make();
        apply(&mut engine, ms(0), &body(commands));
        engine.digest()
    };
    let base = state(&["ZADD z 1 a 2 b", "ZADD y 1 a"]);
    assert_eq!(base, state(&["ZADD y 0.5 a", "ZADD z 2 b 1 a 3 x", "ZPOPMAX z", "ZINCRBY y 0.5 a"]));
    assert_eq!(base, state(&["ZADD x 1 a 2 b", "ZRANGESTORE z x 0 -1", "ZRANGESTORE y x 0 0", "DEL x"]));
    let long = format!("ZADD y 9 {}", "m".repeat(65));
    for other in [
        &["ZADD z 1 a 2 b"][..],
        &["ZADD z 2 a 1 b", "ZADD y 1 a"],
        &["ZADD z 1 a 2 b", "ZADD y 1.5 a"],
        &["ZADD z 1 a 2 b", "ZADD y 1 b"],
        &["ZADD z 1 a 2 b", "HSET y a 1"],
        &["ZADD z 1 a 2 b", "ZADD y 1 a", "PEXPIRE y 100"],
        // It is a tree now, and keeps the sign of zero from now on.
        &["ZADD z 1 a 2 b", "ZADD y 1 a", &long, "ZPOPMAX y"],
    ] {
        assert_ne!(base, state(other), "{other:?}");
    }
}

/// Ranks, scores and members of one that is far from small.
fn test_large<E: Engine>(make: &impl Fn() -> E) {
    let mut engine = make();
    let names: Vec<[String; 2]> =
        (0..3000).map(|number| [(number / 2).to_string(), format!("m:{number:04}")]).collect();
    for part in names.chunks(500) {
        let words = part.iter().flatten().map(String::as_bytes);
        apply(
            &mut engine,
            ms(0),
            &body_of(&[&b"ZADD"[..], b"z"].into_iter().chain(words).collect::<Vec<_>>()),
        );
    }
    for (command, expected) in [
        ("ZRANK z m:1234", Reply::Integer(1234)),
        ("ZREVRANK z m:1234", Reply::Integer(2999 - 1234)),
        ("ZCOUNT z 100 (200", Reply::Integer(200)),
        ("ZRANGE z 2000 2001", Reply::Array(vec![bulk("m:2000"), bulk("m:2001")])),
        ("ZRANGE z (700 0 BYSCORE REV LIMIT 0 1", Reply::Array(vec![bulk("m:1399")])),
        ("ZREMRANGEBYRANK z 10 2989", Reply::Integer(2980)),
        ("ZSCORE z m:2990", double(1495.0)),
        ("ZSCORE z m:0010", Reply::Nil),
        ("ZCARD z", Reply::Integer(20)),
        ("ZINTERCARD 2 z z", Reply::Integer(20)),
        ("ZUNIONSTORE z 1 z WEIGHTS -1", Reply::Integer(20)),
        ("ZRANGE z 0 0 WITHSCORES", Reply::Pairs(vec![(bulk("m:2998"), double(-1499.0))])),
    ] {
        assert_eq!(apply(&mut engine, ms(0), &body(&[command])), [expected], "{command}");
    }
}
