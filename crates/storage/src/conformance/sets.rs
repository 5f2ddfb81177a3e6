//! What scripts of single commands cannot show of sets: chance, evaluation, limits, and large results.

use super::{apply, body, body_of, bulk, evaluate, ms, read};
use crate::Engine;
use std::collections::BTreeMap;
use syros_commands::families::SPop;
use syros_commands::{Operation, Reply};
use syros_types::{Prng, WallTime};

/// See [`test_all`](super::test_all).
pub(super) fn test<E: Engine>(make: &impl Fn() -> E) {
    test_evaluation(make());
    test_random_members(make);
    test_limits(make());
    test_large(make());
    test_digest(make);
}

/// An engine that has a set `s` of these members.
fn with_set<E: Engine>(make: &impl Fn() -> E, members: impl Iterator<Item = String>) -> E {
    let mut engine = make();
    let words: Vec<String> = ["SADD".to_string(), "s".to_string()].into_iter().chain(members).collect();
    apply(&mut engine, ms(0), &body_of(&words.iter().map(String::as_bytes).collect::<Vec<_>>()));
    engine
}

/// A body that takes members of `s`.
fn pop(seed: u64, count: Option<u64>) -> Vec<u8> {
    let mut body = Vec::new();
    Operation::new(SPop { key: b"s", seed, count }).encode(&mut body);
    body
}

fn test_evaluation<E: Engine>(mut engine: E) {
    let setup = ["SADD s a b c", "SADD t b c d", "SADD late m", "PEXPIRE late 50", "SET string v"];
    apply(&mut engine, ms(0), &body(&setup));
    let before = engine.digest();
    let integer = Reply::Integer;
    let commands =
        ["SADD s d", "SREM s a", "SMOVE s t b", "SINTERSTORE u s t", "SCARD u", "SDIFFSTORE u u u"];
    let expected = vec![integer(1), integer(1), integer(1), integer(2), integer(2), integer(0)];
    assert_eq!(evaluate(&engine, &body(&commands)), Some(expected));
    // Whatever chance an update needs is in its bytes; that of reads is not.
    let popped = evaluate(&engine, &pop(7, Some(2))).expect("the bytes say what is drawn");
    assert_eq!(evaluate(&engine, &body(&["SREM s a", "SRANDMEMBER s"])), None);
    assert_eq!(evaluate(&engine, &body(&["SUNIONSTORE u s late"])), None);
    assert_eq!(engine.digest(), before);
    assert_eq!(apply(&mut engine, ms(0), &pop(7, Some(2))), popped);
}

/// SRANDMEMBER and SPOP draw each member about as often as any other.
fn test_random_members<E: Engine>(make: &impl Fn() -> E) {
    const DRAWS: u64 = 4000;
    for members in [5_u64, 300] {
        let engine = with_set(make, (0..members).map(|number| number.to_string()));
        let mut prng = Prng::new(members);
        let [mut drawn, mut popped] = [(); 2].map(|()| BTreeMap::<Vec<u8>, u64>::new());
        let count = |counts: &mut BTreeMap<Vec<u8>, u64>, replies: &[Reply]| {
            let [Reply::Array(members) | Reply::Set(members)] = replies else { panic!("{replies:?}") };
            assert_eq!(members.len(), 2);
            for member in members {
                let Reply::Bulk(member) = member else { panic!("{members:?}") };
                *counts.entry(member.clone()).or_default() += 1;
            }
        };
        for turn in 0..DRAWS {
            let command = if turn % 2 == 0 { "SRANDMEMBER s 2" } else { "SRANDMEMBER s -2" };
            count(&mut drawn, &read(&engine, WallTime(turn * 1_000), &body(&[command])));
            let pop = pop(prng.next_u64(), Some(2));
            count(&mut popped, &evaluate(&engine, &pop).expect("the bytes say what is drawn"));
        }
        let (expected, tolerance) = (2 * DRAWS / members, 8 * (2 * DRAWS / members).isqrt());
        for counts in [drawn, popped] {
            let is_fair = |count: &u64| count.abs_diff(expected) <= tolerance;
            assert!(counts.len() as u64 == members && counts.values().all(is_fair), "{counts:?}");
        }
    }
}

/// What cannot be answered is not taken away, but for a single member, however long.
fn test_limits<E: Engine>(mut engine: E) {
    for (name, length) in [(b'a', 9 << 20), (b'b', 9 << 20), (b'c', 16 << 20)] {
        assert_eq!(
            apply(&mut engine, ms(0), &body_of(&[b"SADD", b"s", &vec![name; length]])),
            [Reply::Integer(1)]
        );
    }
    let digest = engine.digest();
    let too_long = Reply::Error(b"ERR reply to an update exceeds the maximum of 16908288 bytes".to_vec());
    for count in [2, 3, u64::MAX] {
        assert_eq!(apply(&mut engine, ms(0), &pop(1, Some(count))), std::slice::from_ref(&too_long));
    }
    assert_eq!(engine.digest(), digest);
    for _ in 0..3 {
        let [Reply::Bulk(member)] = &apply(&mut engine, ms(0), &pop(1, None))[..] else {
            panic!("no member")
        };
        assert!(member.len() >= 9 << 20);
    }
    assert_eq!(engine.len(), 0);
}

/// What becomes of large sets is the same whatever way is taken.
fn test_large<E: Engine>(mut engine: E) {
    let add = |engine: &mut E, key: &str, numbers: std::ops::Range<u32>| {
        let words: Vec<String> = numbers.map(|number| number.to_string()).collect();
        let words = [&[b"SADD", key.as_bytes()], &words.iter().map(String::as_bytes).collect::<Vec<_>>()[..]];
        apply(engine, ms(0), &body_of(&words.concat()));
    };
    add(&mut engine, "all", 0..3000);
    add(&mut engine, "most", 100..3000);
    add(&mut engine, "few", 2900..3100);
    let integers = |numbers: &[i64]| numbers.iter().copied().map(Reply::Integer).collect::<Vec<_>>();
    let commands = [
        "SDIFFSTORE small all most",
        "SDIFFSTORE large all few",
        "SINTERSTORE both most all few",
        "SUNIONSTORE any few most all",
        "SINTERCARD 3 most all few LIMIT 70",
        "SADD small x",
        "SREM large 5",
    ];
    assert_eq!(apply(&mut engine, ms(0), &body(&commands)), integers(&[100, 2900, 100, 3100, 70, 1, 1]));
    // The sources are what they were, and what was stored has the right form: a small one has the order of additions.
    let commands = ["SCARD all", "SCARD few", "SISMEMBER all 5"];
    assert_eq!(read(&engine, ms(0), &body(&commands)), integers(&[3000, 200, 1]));
    let [Reply::Set(members)] = &read(&engine, ms(0), &body(&["SMEMBERS small"]))[..] else {
        panic!("no set")
    };
    assert_eq!(members.last(), Some(&bulk("x")));
}

fn test_digest<E: Engine>(make: &impl Fn() -> E) {
    let state = |commands: &[&str]| {
        let mut engine = make();
        apply(&mut engine, ms(10), &body(commands));
        engine.digest()
    };
    let set = state(&["SADD s a b"]);
    assert_eq!(set, state(&["SADD s no a", "SADD s b", "SREM s no"]));
    assert_eq!(set, state(&["SADD t a", "SADD u b", "SUNIONSTORE s t u", "DEL t u"]));
    let long = format!("SADD s {}", "x".repeat(65));
    let (remove, hash) = (format!("SREM s {}", "x".repeat(65)), ["HSET s a b"]);
    for other in [&["SADD s a"][..], &["SADD s b a"], &["SADD s a b", &long, &remove], &hash] {
        assert_ne!(set, state(other), "{other:?}");
    }
}
