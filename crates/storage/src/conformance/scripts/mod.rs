//! What each command answers, as lists of commands and replies.

mod bitmaps;
mod generic;
mod geo;
mod hashes;
mod hyperloglog;
mod lists;
mod sets;
mod sorted_sets;
mod streams;
mod waiting;

use super::{apply, body_of, ms, read};
use crate::Engine;
use syros_commands::{Parsed, Reply, parse, write_decimal, write_double};

/// A reply as the scripts write it.
fn show(reply: &Reply) -> String {
    match reply {
        Reply::Nil => "nil".to_string(),
        Reply::NilArray => "nil array".to_string(),
        Reply::Waits => "waits".to_string(),
        Reply::Ok => "OK".to_string(),
        Reply::Integer(value) => value.to_string(),
        Reply::Double(number) => format!(",{}", written(number.value(), write_double)),
        Reply::Decimal(number) => format!(",{}", written(number.value(), write_decimal)),
        Reply::Bulk(bytes) => format!("'{}'", bytes.escape_ascii()),
        Reply::Simple(text) => format!("+{}", text.escape_ascii()),
        Reply::Error(text) => String::from_utf8_lossy(text).into_owned(),
        Reply::Boolean(flag) => format!("#{flag}"),
        Reply::BigNumber(digits) => format!("({}", digits.escape_ascii()),
        Reply::Verbatim(text, kind) => format!("={}:{}", kind.escape_ascii(), text.escape_ascii()),
        Reply::Array(replies) => format!("[{}]", replies.iter().map(show).collect::<Vec<_>>().join(" ")),
        Reply::Set(members) => format!("#{{{}}}", members.iter().map(show).collect::<Vec<_>>().join(" ")),
        Reply::Map(pairs) => format!("{{{}}}", show_pairs(pairs)),
        Reply::Keyed(pairs) => format!("<{}>", show_pairs(pairs)),
        Reply::Pairs(pairs) => format!("({})", show_pairs(pairs)),
    }
}

fn written(value: f64, write: fn(&mut Vec<u8>, f64)) -> String {
    let mut text = Vec::new();
    write(&mut text, value);
    String::from_utf8_lossy(&text).into_owned()
}

fn show_pairs(pairs: &[(Reply, Reply)]) -> String {
    let shown = pairs.iter().map(|(first, second)| format!("{}: {}", show(first), show(second)));
    shown.collect::<Vec<_>>().join(" ")
}

/// Runs every script on an engine of its own. Words are separated by spaces, `''` is an empty one.
/// `wait N` moves log time on by N ms; the rest is executed at log time, which starts at 1000 ms.
pub(super) fn test<E: Engine>(make: &impl Fn() -> E) {
    for script in [
        SCRIPTS,
        bitmaps::SCRIPTS,
        generic::SCRIPTS,
        hashes::SCRIPTS,
        hyperloglog::SCRIPTS,
        lists::SCRIPTS,
        sets::SCRIPTS,
        sorted_sets::SCRIPTS,
        streams::SCRIPTS,
        geo::SCRIPTS,
        waiting::SCRIPTS,
    ]
    .concat()
    {
        let (mut engine, mut now) = (make(), 1000);
        engine.advance(ms(now));
        for (command, expected) in script {
            let words: Vec<&[u8]> =
                command.split(' ').map(|word| if word == "''" { b"" } else { word.as_bytes() }).collect();
            if words[0] == b"wait" {
                now += expected.parse::<u64>().expect("a number of milliseconds");
                engine.advance(ms(now));
                continue;
            }
            let answer = match parse(&words) {
                Ok(Parsed::Data(operation)) if operation.command.is_read() => {
                    read(&engine, ms(now), &body_of(&words))
                }
                Ok(Parsed::Data(mut operation)) => {
                    if let Some(now_ms) = operation.now_mut() {
                        *now_ms = now;
                    }
                    let mut body = Vec::new();
                    operation.encode(&mut body);
                    apply(&mut engine, ms(now), &body)
                }
                Ok(_) => apply(&mut engine, ms(now), &body_of(&words)),
                Err(error) => vec![Reply::Error(error.text())],
            };
            let [reply] = &answer[..] else { panic!("{command}: {} replies", answer.len()) };
            assert_eq!(show(reply), *expected, "{command}, in the script of {:?}", script[0]);
        }
    }
}

const NOT_INTEGER: &str = "ERR value is not an integer or out of range";
const NOT_FLOAT: &str = "ERR value is not a valid float";
const OVERFLOW: &str = "ERR increment or decrement would overflow";
const NOT_FINITE: &str = "ERR increment would produce NaN or Infinity";
const SYNTAX: &str = "ERR syntax error";
const WRONGTYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
const NO_SUCH_KEY: &str = "ERR no such key";

type Script = &'static [(&'static str, &'static str)];

const SCRIPTS: &[Script] = &[
    SET,
    SET_IF_EQUAL,
    SET_EXPIRY,
    GETEX,
    SEVERAL_KEYS,
    GETRANGE,
    LCS,
    SETRANGE,
    INCR,
    INCRBYFLOAT,
    RENAME,
    EXPIRE,
    EXPIRE_IF,
    KEYS,
    BLIND,
];

const SET: Script = &[
    ("GET k", "nil"),
    ("SET k v XX", "nil"),
    ("EXISTS k", "0"),
    ("SET k v NX", "OK"),
    ("SET k w NX", "nil"),
    ("GET k", "'v'"),
    ("SET k w XX", "OK"),
    ("SET k x GET", "'w'"),
    ("SET k y NX GET", "'x'"),
    ("GET k", "'x'"),
    ("SET k y XX GET", "'x'"),
    ("SET l 1 NX GET", "nil"),
    ("GET l", "'1'"),
    ("SET m 1 XX GET", "nil"),
    ("EXISTS m", "0"),
    ("SET k ''", "OK"),
    ("GET k", "''"),
    ("STRLEN k", "0"),
    ("STRLEN l", "1"),
    ("STRLEN none", "0"),
    ("TYPE k", "+string"),
    ("TYPE none", "+none"),
    ("SETNX k v", "0"),
    ("SETNX n v", "1"),
    ("GETSET n w", "'v'"),
    ("GETSET o w", "nil"),
    ("GETDEL n", "'w'"),
    ("GETDEL n", "nil"),
    ("APPEND n ''", "0"),
    ("EXISTS n", "1"),
    ("APPEND n ab", "2"),
    ("APPEND n c", "3"),
    ("GET n", "'abc'"),
];

/// As in Valkey 8.1.
const SET_IF_EQUAL: Script = &[
    ("SET k v IFEQ ''", "nil"),
    ("EXISTS k", "0"),
    ("SET k v", "OK"),
    ("SET k w IFEQ x", "nil"),
    ("SET k w IFEQ v", "OK"),
    ("SET k x GET IFEQ v", "'w'"),
    ("GET k", "'w'"),
    ("SET k x IFEQ w GET PX 100", "'w'"),
    ("GET k", "'x'"),
    ("PTTL k", "100"),
    ("SET k y KEEPTTL IFEQ x", "OK"),
    ("PTTL k", "100"),
    ("SET none x GET IFEQ w", "nil"),
    ("BLIND SET k z IFEQ y", "OK"),
    ("GET k", "'z'"),
    ("HSET h f v", "1"),
    ("SET h x IFEQ v", WRONGTYPE),
    ("SET h x IFEQ v GET", WRONGTYPE),
    ("BLIND SET h x IFEQ v", "OK"),
    ("HGETALL h", "{'f': 'v'}"),
];

const SET_EXPIRY: Script = &[
    ("SET k v PX 100", "OK"),
    ("PTTL k", "100"),
    ("SET k w KEEPTTL", "OK"),
    ("PTTL k", "100"),
    ("APPEND k x", "2"),
    ("PTTL k", "100"),
    ("SETRANGE k 0 y", "2"),
    ("PTTL k", "100"),
    ("SET k w", "OK"),
    ("PTTL k", "-1"),
    ("SET k w KEEPTTL", "OK"),
    ("PTTL k", "-1"),
    ("SETEX k 3 v", "OK"),
    ("TTL k", "3"),
    ("PSETEX k 1499 v", "OK"),
    ("TTL k", "1"),
    ("PEXPIRETIME k", "2499"),
    ("EXPIRETIME k", "2"),
    ("GETSET k w", "'v'"),
    ("PTTL k", "-1"),
    ("SET k v PXAT 1001", "OK"),
    ("GET k", "'v'"),
    ("SET k v PXAT 1000", "OK"),
    ("GET k", "'v'"),
    ("SET k v PXAT 999", "OK"),
    ("GET k", "nil"),
    ("SET l v EXAT 1", "OK"),
    ("EXISTS l", "1"),
    ("SET m 1 PX 50", "OK"),
    ("INCR m", "2"),
    ("INCRBYFLOAT m 1", "'3'"),
    ("PTTL m", "50"),
    ("wait", "49"),
    ("GET m", "'3'"),
    ("PTTL m", "1"),
    ("wait", "1"),
    ("GET m", "'3'"),
    ("PTTL m", "0"),
    ("wait", "1"),
    ("EXISTS l", "0"),
    ("GET m", "nil"),
    ("PTTL m", "-2"),
    ("PEXPIRETIME m", "-2"),
    ("INCR m", "1"),
    ("PTTL m", "-1"),
    ("EXPIRETIME m", "-1"),
    ("DBSIZE", "1"),
    ("MSET m 2", "OK"),
];

const GETEX: Script = &[
    ("GETEX k EX 10", "nil"),
    ("SET k v", "OK"),
    ("GETEX k", "'v'"),
    ("TTL k", "-1"),
    ("GETEX k EX 10", "'v'"),
    ("PTTL k", "10000"),
    ("GETEX k", "'v'"),
    ("PTTL k", "10000"),
    ("GETEX k PX 70", "'v'"),
    ("PTTL k", "70"),
    ("GETEX k PERSIST", "'v'"),
    ("PTTL k", "-1"),
    ("GETEX k EXAT 3", "'v'"),
    ("PTTL k", "2000"),
    ("GETEX k PXAT 1500", "'v'"),
    ("PTTL k", "500"),
    ("GETEX k PXAT 999", "'v'"),
    ("GET k", "nil"),
];

const SEVERAL_KEYS: Script = &[
    ("MSET a 1 b 2 a 3", "OK"),
    ("MGET a b c a", "['3' '2' nil '3']"),
    ("MSETNX c 1 a 2", "0"),
    ("EXISTS c", "0"),
    ("MSETNX c 1 d 2 c 3", "1"),
    ("MGET c d", "['3' '2']"),
    ("EXISTS a a b x", "3"),
    ("DEL a a x", "1"),
    ("UNLINK b c", "2"),
    ("DBSIZE", "1"),
    ("SET a 1 PX 5", "OK"),
    ("MSET a 2", "OK"),
    ("PTTL a", "-1"),
    ("FLUSHALL", "OK"),
    ("DBSIZE", "0"),
    ("FLUSHDB SYNC", "OK"),
];

const GETRANGE: Script = &[
    ("SET k 0123456789", "OK"),
    ("GETRANGE k 0 3", "'0123'"),
    ("GETRANGE k 3 0", "''"),
    ("GETRANGE k -3 -1", "'789'"),
    ("GETRANGE k -1 -3", "''"),
    ("GETRANGE k 5 100", "'56789'"),
    ("GETRANGE k 10 20", "''"),
    ("GETRANGE k -100 2", "'012'"),
    ("GETRANGE k 0 -100", "'0'"),
    ("GETRANGE k -200 -100", "'0'"),
    ("GETRANGE k -9223372036854775808 9223372036854775807", "'0123456789'"),
    ("SUBSTR k 8 8", "'8'"),
    ("GETRANGE none 0 -1", "''"),
    ("SET k ''", "OK"),
    ("GETRANGE k 0 -1", "''"),
];

const LCS: Script = &[
    ("MSET a ohmytext b mynewtext", "OK"),
    ("LCS a b", "'mytext'"),
    ("LCS a b LEN", "6"),
    ("LCS b a LEN", "6"),
    ("LCS a b IDX", "{'matches': [[[4 7] [5 8]] [[2 3] [0 1]]] 'len': 6}"),
    ("LCS a b idx MINMATCHLEN 4 WITHMATCHLEN", "{'matches': [[[4 7] [5 8] 4]] 'len': 6}"),
    ("LCS a b IDX MINMATCHLEN 5", "{'matches': [] 'len': 6}"),
    ("LCS a none", "''"),
    ("LCS a none LEN", "0"),
    ("LCS none none IDX", "{'matches': [] 'len': 0}"),
    ("LCS a a", "'ohmytext'"),
    ("SETRANGE c 2046 x", "2047"),
    ("LCS c c LEN", "2047"),
    ("SETRANGE c 2047 x", "2048"),
    ("LCS c c LEN", "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"),
    ("LCS c b LEN", "1"),
    ("HSET h f v", "1"),
    ("LCS a h", "ERR The specified keys must contain string values"),
    ("LCS h none", "ERR The specified keys must contain string values"),
];

const SETRANGE: Script = &[
    ("SETRANGE k 3 ''", "0"),
    ("EXISTS k", "0"),
    ("SETRANGE k 3 ab", "5"),
    ("GET k", r"'\x00\x00\x00ab'"),
    ("SETRANGE k 0 xy", "5"),
    ("SETRANGE k 4 ccc", "7"),
    ("GET k", r"'xy\x00accc'"),
    ("SETRANGE k 100 ''", "7"),
    ("SETRANGE k 9223372036854775807 ''", "7"),
    ("SETRANGE l 16777216 x", "ERR string exceeds maximum allowed size (proto-max-bulk-len)"),
];

const INCR: Script = &[
    ("INCR k", "1"),
    ("INCRBY k 41", "42"),
    ("DECR k", "41"),
    ("DECRBY k -1", "42"),
    ("GET k", "'42'"),
    ("SET k 9223372036854775806", "OK"),
    ("INCR k", "9223372036854775807"),
    ("INCR k", OVERFLOW),
    ("GET k", "'9223372036854775807'"),
    ("SET k -9223372036854775807", "OK"),
    ("DECRBY k 2", OVERFLOW),
    ("DECR k", "-9223372036854775808"),
    ("SET k 1x", "OK"),
    ("INCR k", NOT_INTEGER),
    ("SET k ''", "OK"),
    ("INCR k", NOT_INTEGER),
    ("SET k 01", "OK"),
    ("DECR k", NOT_INTEGER),
    ("SET k 9223372036854775808", "OK"),
    ("DECR k", NOT_INTEGER),
    ("INCRBY new -9223372036854775808", "-9223372036854775808"),
];

const INCRBYFLOAT: Script = &[
    ("INCRBYFLOAT k 3.0", "'3'"),
    ("INCRBYFLOAT k 0.1", "'3.1'"),
    ("GET k", "'3.1'"),
    ("INCRBYFLOAT k -5.0e3", "'-4996.89999999999999991'"),
    ("INCRBYFLOAT k 1e-30", "'-4996.89999999999999991'"),
    ("INCRBYFLOAT k inf", NOT_FINITE),
    ("GET k", "'-4996.89999999999999991'"),
    ("SET k x", "OK"),
    ("INCRBYFLOAT k inf", NOT_FLOAT),
    ("SET k -inf", "OK"),
    ("INCRBYFLOAT k 1", NOT_FINITE),
    ("SET k 5", "OK"),
    ("INCRBYFLOAT k -5", "'0'"),
    ("INCR k", "1"),
    ("INCRBYFLOAT k 1e18", "'1000000000000000001'"),
    ("INCRBYFLOAT k 1e22", "'10001000000000000000000'"),
];

const RENAME: Script = &[
    ("RENAME a b", NO_SUCH_KEY),
    ("RENAME a a", NO_SUCH_KEY),
    ("RENAMENX a b", NO_SUCH_KEY),
    ("SET a 1 PX 100", "OK"),
    ("SET b 2", "OK"),
    ("RENAME a a", "OK"),
    ("RENAMENX a a", "0"),
    ("RENAMENX a b", "0"),
    ("RENAME a b", "OK"),
    ("MGET a b", "[nil '1']"),
    ("PTTL b", "100"),
    ("RENAMENX b c", "1"),
    ("SET d 4 PX 50", "OK"),
    ("SET e 5", "OK"),
    ("RENAME e d", "OK"),
    ("wait", "51"),
    ("MGET b c d e", "[nil '1' '5' nil]"),
    ("PTTL d", "-1"),
    ("DBSIZE", "2"),
];

const EXPIRE: Script = &[
    ("EXPIRE k 10", "0"),
    ("PERSIST k", "0"),
    ("SET k v", "OK"),
    ("PERSIST k", "0"),
    ("EXPIRE k 10", "1"),
    ("PTTL k", "10000"),
    ("PEXPIRE k 20", "1"),
    ("PTTL k", "20"),
    ("EXPIREAT k 5", "1"),
    ("PTTL k", "4000"),
    ("PEXPIREAT k 1300", "1"),
    ("PTTL k", "300"),
    ("PERSIST k", "1"),
    ("PTTL k", "-1"),
    ("EXPIRE k 0", "1"),
    ("EXISTS k", "0"),
    ("SET k v", "OK"),
    ("PEXPIRE k -5", "1"),
    ("EXISTS k", "0"),
    ("SET k v", "OK"),
    ("PEXPIREAT k 999", "1"),
    ("EXISTS k", "0"),
    ("SET k v", "OK"),
    ("PEXPIREAT k 9223372036854775807", "1"),
    ("PEXPIRETIME k", "9223372036854775807"),
    ("TTL k", "9223372036854775"),
    ("PEXPIRE k 9223367638808264703", "1"),
    ("PEXPIRETIME k", "9223367638808265703"),
    ("PEXPIRE k 9223372036854775807", "ERR invalid expire time in 'pexpire' command"),
];

const EXPIRE_IF: Script = &[
    ("EXPIRE k 10 NX", "0"),
    ("SET k v", "OK"),
    ("PEXPIRE k 10 XX", "0"),
    ("PEXPIRE k 10 GT", "0"),
    ("PEXPIRE k 10 XX LT", "0"),
    ("PTTL k", "-1"),
    ("PEXPIRE k 50 LT", "1"),
    ("PEXPIRE k 50 LT", "0"),
    ("PEXPIRE k 50 GT", "0"),
    ("PEXPIRE k 60 NX", "0"),
    ("PTTL k", "50"),
    ("PEXPIRE k 60 GT", "1"),
    ("PEXPIRE k 40 GT XX", "0"),
    ("PEXPIRE k 40 XX LT", "1"),
    ("PEXPIRE k 70 XX", "1"),
    ("PTTL k", "70"),
    ("PEXPIRE k -1 GT", "0"),
    ("PEXPIRE k -1 NX", "0"),
    ("EXISTS k", "1"),
    ("PEXPIRE k -1 LT", "1"),
    ("EXISTS k", "0"),
    ("SET k v", "OK"),
    ("PEXPIRE k 5 NX", "1"),
    ("wait", "6"),
    ("EXISTS k", "0"),
];

const KEYS: Script = &[
    ("KEYS *", "[]"),
    ("RANDOMKEY", "nil"),
    ("SCAN 0", "['0' []]"),
    ("SCAN 17", "['0' []]"),
    ("SET key:1 v", "OK"),
    ("RANDOMKEY", "'key:1'"),
    ("KEYS *", "['key:1']"),
    ("KEYS k[d-f]y:?", "['key:1']"),
    ("KEYS key", "[]"),
    ("KEYS ''", "[]"),
    ("SCAN 0", "['0' ['key:1']]"),
    ("SCAN 0 MATCH x* COUNT 1", "['0' []]"),
    ("SCAN 0 TYPE STRING MATCH k*", "['0' ['key:1']]"),
    ("SCAN 0 TYPE list", "['0' []]"),
    ("SET '' v", "OK"),
    ("KEYS ''", "['']"),
    ("DEL ''", "1"),
];

const BLIND: Script = &[
    ("BLIND SET k 5 GET", "OK"),
    ("BLIND INCRBY k 2", "OK"),
    ("GET k", "'7'"),
    ("BLIND APPEND k x", "OK"),
    ("BLIND INCR k", "OK"),
    ("GET k", "'7x'"),
    ("BLIND SET k 9 NX", "OK"),
    ("GET k", "'7x'"),
    ("BLIND RENAME none other", "OK"),
    ("BLIND GETDEL k", "OK"),
    ("EXISTS k", "0"),
    ("BLIND DEL k", "OK"),
    ("BLIND MSETNX a 1 b 2", "OK"),
    ("BLIND EXPIRE a 10", "OK"),
    ("TTL a", "10"),
    ("BLIND UNLINK a b", "OK"),
    ("DBSIZE", "0"),
    ("BLIND FLUSHALL", "OK"),
];
