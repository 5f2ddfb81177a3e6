//! What DUMP and RESTORE exchange with Redis.

use super::{Answer, Server, compare_one, content, execute, random_bytes};
use syros_commands::{Parsed, ReplyRef, parse};
use syros_storage::MemoryEngine;
use syros_types::Prng;

/// Each server restores what the other has dumped, and finds the same in it.
#[test]
fn payloads_are_understood_by_redis() {
    let Some(mut server) = Server::start() else { return };
    let (mut engine, mut prng) = (MemoryEngine::new(), Prng::new(21));
    for step in 0..1_500_u64 {
        let words = random_value(&mut prng, step);
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        server.call(&[b"FLUSHALL"]);
        execute_words(&mut engine, &[b"FLUSHALL"]);
        compare_one(&mut server, &mut engine, &words);
        let dumped = content(&server.call(&[b"DUMP", b"k"]));
        let restored = execute_words(&mut engine, &[b"RESTORE", b"theirs", b"0", &dumped]);
        assert_eq!(restored, Answer::of(ReplyRef::Ok), "{}", dumped.escape_ascii());
        let ours = content(&execute_words(&mut engine, &[b"DUMP", b"k"]));
        let options: &[&[u8]] = if step % 2 == 0 { &[] } else { &[b"REPLACE"] };
        let restored = server.call(&[&[&b"RESTORE"[..], b"ours", b"0", &ours], options].concat());
        assert_eq!(restored, Answer::of(ReplyRef::Ok), "{}", ours.escape_ascii());
        let question = |key: &'static [u8]| -> Vec<&[u8]> {
            match words[0] {
                b"SET" => vec![b"GET", key],
                b"RPUSH" => vec![b"LRANGE", key, b"0", b"-1"],
                b"SADD" => vec![b"SMEMBERS", key],
                b"HSET" => vec![b"HGETALL", key],
                _ => vec![b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"],
            }
        };
        let expected = execute_words(&mut engine, &question(b"k")).sorted();
        assert_eq!(execute_words(&mut engine, &question(b"theirs")).sorted(), expected);
        assert_eq!(server.call(&question(b"ours")).sorted(), expected);
        // What Redis makes of it is restored, too.
        let dumped = content(&server.call(&[b"DUMP", b"ours"]));
        execute_words(&mut engine, &[b"RESTORE", b"theirs", b"0", &dumped, b"REPLACE"]);
        assert_eq!(execute_words(&mut engine, &question(b"theirs")).sorted(), expected);
    }
}

/// As for other values: what a stream answers to all questions that do not ask for times of use.
#[test]
fn payloads_of_streams_are_understood_by_redis() {
    let Some(mut server) = Server::start() else { return };
    let (mut engine, mut prng) = (MemoryEngine::new(), Prng::new(22));
    for _ in 0..400 {
        server.call(&[b"FLUSHALL"]);
        execute_words(&mut engine, &[b"FLUSHALL"]);
        let (mut ms, mut count) = (prng.below(3) << 40, 0);
        for _ in 0..prng.below(400) {
            let mut words: Vec<String> = match prng.below(16) {
                0 => ["XGROUP", "CREATE", "k", &format!("g{}", prng.below(3)), "0", "MKSTREAM"]
                    .map(str::to_owned)
                    .into(),
                1 => ["XTRIM", "k", "MAXLEN", &prng.below(300).to_string()].map(str::to_owned).into(),
                2 => ["XGROUP", "CREATECONSUMER", "k", "g1", &prng.below(40).to_string()]
                    .map(str::to_owned)
                    .into(),
                3..6 => {
                    let group = format!("g{}", prng.below(3));
                    let consumer = prng.below(4).to_string();
                    let most = (1 + prng.below(5)).to_string();
                    let words =
                        ["XREADGROUP", "GROUP", &group, &consumer, "COUNT", &most, "STREAMS", "k", ">"];
                    words.map(str::to_owned).into()
                }
                6 if count > 0 => {
                    let id = format!("{}-{}", prng.below(4) + ms.saturating_sub(3), prng.below(3));
                    let words =
                        if prng.chance(1, 2) { vec!["XDEL", "k", &id] } else { vec!["XACK", "k", "g0", &id] };
                    words.into_iter().map(str::to_owned).collect()
                }
                _ => {
                    let bits = prng.below(34);
                    (ms, count) = (ms + prng.below(2) * prng.below(1 << bits), count + 1);
                    ["XADD", "k", &format!("{ms}-{count}")].map(str::to_owned).into()
                }
            };
            if words[0] == "XADD" {
                for field in 0..1 + prng.below(2) {
                    let bits = prng.below(40);
                    let value = match prng.below(3) {
                        0 => prng.below(1 << bits).to_string(),
                        1 => "value".repeat(1 + prng.below(30) as usize),
                        _ => String::new(),
                    };
                    words.extend([format!("field{}", field + prng.below(20) / 19), value]);
                }
            }
            let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
            server.call(&words);
        }
        let Answer::Plain(dumped) = server.call(&[b"DUMP", b"k"]) else { panic!("a payload") };
        if dumped.starts_with(b"$-1") {
            continue;
        }
        let dumped = content(&Answer::Plain(dumped));
        let restored = execute_words(&mut engine, &[b"RESTORE", b"k", b"0", &dumped]);
        assert_eq!(restored, Answer::of(ReplyRef::Ok), "{}", dumped.escape_ascii());
        let ours = content(&execute_words(&mut engine, &[b"DUMP", b"k"]));
        let questions: [&[&[u8]]; 6] = [
            &[b"XRANGE", b"k", b"-", b"+"],
            &[b"XLEN", b"k"],
            &[b"XINFO", b"GROUPS", b"k"],
            &[b"XPENDING", b"k", b"g0"],
            &[b"XPENDING", b"k", b"g1"],
            &[b"XPENDING", b"k", b"g2"],
        ];
        let expected = questions.map(|question| server.call(question));
        let restored = server.call(&[b"RESTORE", b"k", b"0", &ours, b"REPLACE"]);
        assert_eq!(restored, Answer::of(ReplyRef::Ok), "{}", ours.escape_ascii());
        for (question, expected) in questions.into_iter().zip(expected) {
            assert_eq!(execute_words(&mut engine, question), expected, "{question:?}");
            assert_eq!(server.call(question), expected, "{question:?}");
        }
    }
}

fn execute_words(engine: &mut MemoryEngine, words: &[&[u8]]) -> Answer {
    let Ok(Parsed::Data(operation)) = parse(words) else { panic!("{words:?}: {:?}", parse(words)) };
    execute(engine, &operation)
}

/// A command that makes a value of any kind, with few or with many elements that are numbers, short, long or repetitive.
fn random_value(prng: &mut Prng, step: u64) -> Vec<Vec<u8>> {
    let string = |prng: &mut Prng| match prng.below(8) {
        0 | 1 => (prng.next_u64() as i64 >> prng.below(64)).to_string().into_bytes(),
        2 => {
            vec![
                b'a' + prng.below(26) as u8;
                prng.below(if step.is_multiple_of(10) { 20_000 } else { 300 }) as usize
            ]
        }
        3 => random_bytes(prng, b"0123456789.-", 12),
        4 => random_bytes(prng, b"ab", 200),
        _ => random_bytes(prng, b"abcdefgh\0\xff", 20),
    };
    let count = 1 + prng.below([5, 40, 200, 700][(step / 5 % 4) as usize]);
    let name = ["SET", "RPUSH", "SADD", "HSET", "ZADD"][(step % 5) as usize];
    let mut words = vec![name.as_bytes().to_vec(), b"k".to_vec()];
    for number in 0..if name == "SET" { 1 } else { count } {
        if name == "ZADD" {
            words.push((prng.below(4000) as f64 / 16.0 - 100.0).to_string().into_bytes());
        }
        if name == "SADD" && step.is_multiple_of(3) {
            words.push((prng.next_u64() as i64 >> (step % 60)).to_string().into_bytes());
        } else {
            words.push(string(prng));
        }
        if name == "HSET" {
            words.push([&string(prng)[..], number.to_string().as_bytes()].concat());
        }
    }
    words
}
