//! The bytes of operations are fixed for ever: a change of any golden value is a change of format.

mod golden;

use syros_commands::access::Version;
use syros_commands::families::{
    Append, Evict, FlushAll, Get, Keys, Leave, Persist, RecordVersions, Rename, SetRange, Turns, Unchanged,
    UserDelete, UserLook, UserQuestion, UserSet, Versions, WaiterId, XNews,
};
use syros_commands::limits::{SCRIPT_FUEL, SCRIPTS_FUEL_MAX, SCRIPTS_PER_BODY_MAX};
use syros_commands::{
    Arguments, Command, Generation, Malformed, Operation, Parsed, ScriptUse, describe, limits, operations,
    overwrites, parse,
};
use syros_types::limits::{BODY_BYTES_MAX, KEY_BYTES_MAX, KEYS_PER_OPERATION_MAX, VALUE_BYTES_MAX};
use syros_types::{Class, Database, Footprint, Prng, key_hash, key_hash_in};

/// The body of a command given as words separated by spaces.
fn body(command: &str) -> Vec<u8> {
    let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
    let Ok(Parsed::Data(operation)) = parse(&words) else { panic!("{command} is no operation") };
    let mut out = Vec::new();
    operation.encode(&mut out);
    out
}

/// The body of a command that may wait, as it is submitted.
fn to_wait(command: &str) -> Vec<u8> {
    let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
    let Ok(Parsed::Data(operation)) = parse(&words) else { panic!("{command} is no operation") };
    assert!(operation.may_wait(), "{command}");
    let mut out = Vec::new();
    operation.encode_to_wait(&mut out);
    out
}

fn encoded<'a>(command: impl Into<Command<'a>>) -> Vec<u8> {
    let mut out = Vec::new();
    Operation::new(command).encode(&mut out);
    out
}

#[test]
fn operations_have_golden_bytes_and_classes() {
    for (command, class, bytes) in golden::all() {
        assert_eq!(body(command), bytes, "{command}");
        assert_eq!(describe(&bytes).map(|description| description.class), Ok(class), "{command}");
        let mut rest = &bytes[..];
        let operation = Operation::decode(&mut rest).unwrap();
        assert!(rest.is_empty(), "{command}");
        let mut again = Vec::new();
        operation.encode(&mut again);
        assert_eq!(again, bytes, "{command}");
    }
}

#[test]
fn commands_that_their_clients_want_to_wait_for_are_known() {
    for (command, waits) in [
        ("BLPOP k 0", true),
        ("XREAD BLOCK 0 STREAMS k $", true),
        ("XREAD STREAMS k $", false),
        ("XREADGROUP GROUP g c BLOCK 5 STREAMS k >", true),
        ("XREADGROUP GROUP g c STREAMS k >", false),
        ("BLIND XREADGROUP GROUP g c BLOCK 5 STREAMS k >", false),
        ("GET k", false),
    ] {
        let body = body(command);
        let operation = operations(&body).next().unwrap().unwrap();
        assert_eq!(operation.may_wait(), waits, "{command}");
        let mut to_wait = Vec::new();
        operation.encode_to_wait(&mut to_wait);
        assert_eq!(to_wait != body, command.starts_with("XREAD BLOCK"), "{command}");
    }
}

/// What a connection sends for WATCH and EXEC, or a front end for commands that wait, and no client.
#[test]
fn conditions_have_golden_bytes_and_classes() {
    let version = Version::of_present(300).to_bytes();
    assert_eq!((version, Version::of_absent(300).0), ([0, 0, 0, 0, 0, 0, 2, 0x59], 600));
    let pairs: [&[u8]; 4] = [b"k", &version, b"l", &version];
    let both = Footprint::of(vec![key_hash(b"k"), key_hash(b"l")]);
    let waiter = WaiterId { owner: WaiterId::owner(Some(2), 0), sequence: 300 };
    let of_pair = |name: u8| [&[1, name, 8][..], &version].concat();
    for (bytes, class, footprint, golden) in [
        (
            encoded(Versions { keys: Arguments::new(&[b"k", b"l"]) }),
            Class::Read,
            both.clone(),
            vec![127, 162, 2, 1, b'k', 1, b'l'],
        ),
        (
            encoded(Unchanged { pairs: Arguments::new(&pairs) }),
            Class::Update,
            both.clone(),
            [&[127, 163, 4][..], &of_pair(b'k'), &of_pair(b'l')].concat(),
        ),
        (
            encoded(Evict { chosen_after: 300, of_expiring: true, keys: Arguments::new(&[b"k", b"l"]) }),
            Class::Update,
            both.clone(),
            vec![127, 248, 0xac, 2, 1, 2, 1, b'k', 1, b'l'],
        ),
        (
            encoded(UserSet { name: b"u", rules: Arguments::new(&[b"on", b"~k"]), if_untouched: true }),
            Class::Update,
            Footprint::All,
            vec![127, 249, 1, b'u', 2, 2, b'o', b'n', 2, b'~', b'k', 1],
        ),
        (
            encoded(UserDelete { names: Arguments::new(&[b"u"]) }),
            Class::Update,
            Footprint::All,
            vec![127, 250, 1, 1, b'u'],
        ),
        (
            encoded(UserLook { question: UserQuestion::Table, name: b"", known: 300 }),
            Class::Read,
            Footprint::One(key_hash(b"")),
            vec![127, 251, 3, 0, 0xac, 2],
        ),
        (encoded(RecordVersions), Class::Merge, Footprint::All, vec![127, 164]),
        (
            encoded(Leave { waiter, is_list: true, keys: Arguments::new(&[b"k", b"l"]) }),
            Class::Merge,
            both.clone(),
            vec![83, 1, 0, 0, 0, 0, 0, 0, 2, 0xac, 2, 1, 2, 1, b'k', 1, b'l'],
        ),
        (
            encoded(Turns { owner: waiter.owner, absent: 4, is_list: false, key: b"k" }),
            Class::Read,
            Footprint::One(key_hash(b"k")),
            vec![127, 202, 1, 0, 0, 0, 0, 0, 0, 2, 4, 0, 1, b'k'],
        ),
        (
            to_wait("XREAD COUNT 3 BLOCK 5 STREAMS k l $ 1-2"),
            Class::Read,
            both.clone(),
            [&[127, 224, 0, 3, 6, 2, 1, b'k', 1, b'l', 2, 1, b'$', 3][..], b"1-2"].concat(),
        ),
        (
            encoded(XNews { key: b"k", of_group: true, group: b"g" }),
            Class::Read,
            Footprint::One(key_hash(b"k")),
            vec![127, 225, 1, b'k', 1, 1, b'g'],
        ),
    ] {
        assert_eq!(bytes, golden);
        let description = describe(&bytes).unwrap();
        assert_eq!((description.class, description.footprint, description.growth), (class, footprint, 0));
        let again: Vec<_> = operations(&bytes).collect::<Result<_, _>>().unwrap();
        let mut encoded = Vec::new();
        again.iter().for_each(|operation| operation.encode(&mut encoded));
        assert_eq!(encoded, golden);
    }
    // A transaction that watches keys is an update of all of them, even if it only reads.
    let watching = [encoded(Unchanged { pairs: Arguments::new(&pairs[..2]) }), body("GET l")].concat();
    let description = describe(&watching).unwrap();
    assert_eq!((description.class, description.footprint), (Class::Update, both));
}

#[test]
fn every_prefix_is_truncated_and_every_byte_is_read() {
    for (command, _, bytes) in golden::all() {
        for length in 0..bytes.len() {
            assert_eq!(describe(&bytes[..length]), Err(Malformed::Truncated), "{command} cut to {length}");
        }
        for index in 0..bytes.len() {
            let mut other = bytes.clone();
            other[index] ^= 0x41;
            let decoded: Result<Vec<_>, _> = operations(&other).collect();
            let original: Result<Vec<_>, _> = operations(&bytes).collect();
            assert_ne!(decoded, original, "{command} with another byte {index}");
        }
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "most of it is the list of bodies")]
fn malformed_bodies_are_refused() {
    for (bytes, error) in [
        (&[][..], Malformed::Truncated),
        (&[0], Malformed::Opcode(0)),
        (&[31], Malformed::Opcode(31)),
        (&[57, 0], Malformed::Opcode(57)),
        (&[19, 1, b'k', 6], Malformed::Options(6)),
        (
            &[18, 1, b'k', 0x80, 0x80, 0x80, 0x80, 16],
            Malformed::TooLong { length: 1 << 32, limit: (1 << 32) - 1 },
        ),
        (&[54, 1, b'k', 0, 2], Malformed::Options(2)),
        (
            &[54, 1, b'k', 0x80, 0x80, 0x80, 0x40, 0],
            Malformed::TooLong { length: 1 << 27, limit: (1 << 27) - 1 },
        ),
        (&[56, 1, b'k', 1, 0, 8, 0], Malformed::Count(0)),
        (&[56, 1, b'k', 1, 7, 8, 0, 0], Malformed::Options(7)),
        (&[56, 1, b'k', 1, 1, 64, 0, 0], Malformed::Options(64)),
        (&[56, 1, b'k', 1, 1, 0x80, 0, 0], Malformed::Options(0x80)),
        (
            &[56, 1, b'k', 1, 1, 2, 0xff, 0xff, 0xff, 0x3f, 0],
            Malformed::TooLong { length: (1 << 27) + 1, limit: 1 << 27 },
        ),
        (&[127, 13, 1, b'k', 1, 5, 8, 0, 0], Malformed::Options(5)),
        (&[127, 15, 0, 0, 4], Malformed::Options(4)),
        (&[127, 34, 4, 2, 1, b'd', 1, b'k'], Malformed::Options(4)),
        (&[127, 34, 0, 1, 1, b'd'], Malformed::Count(1)),
        (&[127, 34, 3, 3, 1, b'd', 1, b'k', 1, b'l'], Malformed::Count(3)),
        (&[127], Malformed::Truncated),
        (&[127, 255, 0], Malformed::Opcode(383)),
        (&[82, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2], Malformed::Options(2)),
        (&[82, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5], Malformed::Options(5)),
        (
            &[82, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x80, 0x80, 0x80, 1],
            Malformed::TooLong { length: 1 << 28, limit: limits::LEASE_MS_MAX },
        ),
        (&[1, 7, 0, b's', b'y', b'r', b'o', b's', 0], Malformed::HiddenKey),
        (&[0xff, 0, 1, b'k'], Malformed::BlindRead(128)),
        (&[16, 1, b'k', 0], Malformed::Count(0)),
        (&[49, 1, b'k', 1, 1, b'f'], Malformed::Count(1)),
        (&[127, 5, 1, b'k', 3, 0], Malformed::Options(3)),
        (
            &[127, 5, 1, b'k', 1, 0x81, 0x80, 0x80, 1],
            Malformed::TooLong { length: (1 << 20) + 1, limit: 1 << 20 },
        ),
        (&[127, 63, 1, b'k', 2, 9], Malformed::Options(2)),
        (&[127, 77, 1, 1, b'd'], Malformed::Count(1)),
        (&[127, 6, 1, b'k', 0, 4], Malformed::Options(4)),
        (&[127, 6, 1, b'k', 0, 0, 0], Malformed::Count(0)),
        (&[30, 1, b'k', 2], Malformed::Options(2)),
        (&[72, 1, b'k', 0], Malformed::Count(0)),
        (&[79, 1, b'k', 1, b'l', 0, 2], Malformed::Options(2)),
        (&[127, 149, 1, b'k', 2, 1, b'p', 1, b'e'], Malformed::Options(2)),
        (&[127, 150, 0, 0, 0], Malformed::Count(0)),
        (&[24, 1, b'k', 4, 0, 0, 0, 0], Malformed::Options(4)),
        (&[24, 1, b'k', 2, 0, 0, 0, 0], Malformed::Options(2)),
        (&[24, 1, b'k', 0, 3, 0, 0, 0], Malformed::Options(3)),
        (&[24, 1, b'k', 0, 2, 4, 0, 0], Malformed::Options(4)),
        (&[24, 1, b'k', 0, 0, 0, 0, 2], Malformed::Options(2)),
        (&[64, 1, b'k', 1, 1, b'm'], Malformed::Count(1)),
        (&[67, 0, 1, b'k', 2, 0, 0], Malformed::Options(0)),
        (&[67, 7, 1, b'k', 2, 0, 0], Malformed::Options(7)),
        (&[68, 0, 1, b'k'], Malformed::Options(0)),
        (&[66, 1, b'k', 0, 0, 0, 0, 0, 0, 0xf8, 0x7f, 0], Malformed::Number),
        (&[127, 95, 3, 1, 1, b'a', 0], Malformed::Options(3)),
        (&[127, 95, 6, 1, 1, b'a', 0], Malformed::Options(6)),
        (&[127, 95, 12, 1, 1, b'a', 0], Malformed::Options(12)),
        (&[127, 95, 32, 1, 1, b'a', 0], Malformed::Options(32)),
        (&[127, 95, 16, 1, 1, b'a', 2, 0, 0, 0], Malformed::Count(2)),
        (&[127, 113, 0, 0, 1], Malformed::Count(0)),
        (&[127, 182, 3, 1, b'k', 3, 0, 0, 0], Malformed::Options(3)),
        (&[127, 182, 0, 1, b'k', 2, 0, 0], Malformed::Count(2)),
        (&[127, 173, 0, 0, 0, 4], Malformed::Options(4)),
        (&[127, 175, 0, 12], Malformed::Options(12)),
        (&[127, 175, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xf0, 0xbf], Malformed::Number),
        (&[0x81, 1, b'k'], Malformed::BlindRead(1)),
        (&[1, 0x81, 0, b'k'], Malformed::Number),
        (&[2, 0], Malformed::Count(0)),
        (&[34, 1, 1, b'k'], Malformed::Count(1)),
        (&[33, 0, 1, b'k', 1, b'v'], Malformed::Options(0)),
        (&[33, 3, 1, b'k', 1, b'v'], Malformed::Truncated),
        (&[33, 0x20, 1, b'k', 1, b'v'], Malformed::Options(0x20)),
        (&[11, 4, 0, 1], Malformed::Options(4)),
        (&[11, 0, 0, 0], Malformed::Count(0)),
        (&[38, 1, b'k', 5, 3], Malformed::Options(5)),
        (&[46, 1, b'k', 0, 3, 0], Malformed::Options(0)),
        (&[46, 1, b'k', 1, 3, 6], Malformed::Options(6)),
        (&[42, 1, b'k', 1, 0, 0, 0, 0, 0, 0, 0, 0xff, 0x3f], Malformed::Number),
        (&[41, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2], Malformed::Number),
        (&[1, 0, 0], Malformed::Opcode(0)),
        (&[127, 187, 1, b'k', 1, b'l', 2], Malformed::Options(2)),
        (&[127, 188, 5, 1, b'k'], Malformed::Options(5)),
        (&[80, 1, b'k', 3, 1, 0], Malformed::Options(3)),
        (&[127, 192, 1, b'k', 1, 1, b'x'], Malformed::Options(0)),
        (&[127, 192, 1, b'k', 2, 5, b's', b't', b'o', b'r', b'e', 1, b'l'], Malformed::Options(0)),
        (&[127, 193, 1, b'k', 0], Malformed::Options(0)),
        (&[86, 1, b'k', 3, 0], Malformed::Options(3)),
        (&[127, 212, 1, b'k', 1, 5, 0, 4], Malformed::Options(0)),
        (&[127, 216, 1, b'k', 4], Malformed::Options(4)),
        (&[89, 0, 0, 1, 1, b'k', 1, 1, b'>'], Malformed::Number),
        (&[89, 0, 0, 1, 1, b'k', 2, 1, b'1', 1, b'2'], Malformed::Count(2)),
        (&[127, 218, 1, b'k', 1, b'g', 5], Malformed::Options(5)),
        (&[127, 219, 1, b'k', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64], Malformed::Options(64)),
        (&[127, 219, 1, b'k', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 48], Malformed::Options(48)),
        (&[127, 222, 1, b'k', 4], Malformed::Options(4)),
        (&[127, 223, 2], Malformed::Options(2)),
        (&[14; 9], Malformed::WholeKeyspace),
        (&[1, 0, 48, 14, 14, 14, 14, 14, 14, 14, 14], Malformed::WholeKeyspace),
    ] {
        assert_eq!(describe(bytes), Err(error), "{bytes:?}");
    }
}

#[test]
fn limits_are_enforced() {
    fn too_long(length: usize, limit: usize) -> Malformed {
        Malformed::TooLong { length: length as u64, limit: limit as u64 }
    }
    let long = vec![b'x'; VALUE_BYTES_MAX + 1];
    let get = |length| describe(&encoded(Get { key: &long[..length] })).map(|_| ());
    assert_eq!(get(KEY_BYTES_MAX), Ok(()));
    assert_eq!(get(KEY_BYTES_MAX + 1), Err(too_long(KEY_BYTES_MAX + 1, KEY_BYTES_MAX)));
    let append = |length| describe(&encoded(Append { key: b"k", value: &long[..length] })).map(|_| ());
    assert_eq!(append(VALUE_BYTES_MAX), Ok(()));
    assert_eq!(append(VALUE_BYTES_MAX + 1), Err(too_long(VALUE_BYTES_MAX + 1, VALUE_BYTES_MAX)));
    let set_range = encoded(SetRange { key: b"k", offset: VALUE_BYTES_MAX as u64, value: b"v" });
    assert_eq!(describe(&set_range), Err(too_long(VALUE_BYTES_MAX + 1, VALUE_BYTES_MAX)));
    let keys = encoded(Keys { pattern: &long[..limits::PATTERN_BYTES_MAX + 1] });
    let too_long_pattern = too_long(limits::PATTERN_BYTES_MAX + 1, limits::PATTERN_BYTES_MAX);
    assert_eq!(describe(&keys), Err(too_long_pattern));
    // A count that promises more than is there must not make anybody allocate.
    let many = [2, 0x81, 0x80, 0x04];
    assert_eq!(describe(&many), Err(too_long(KEYS_PER_OPERATION_MAX + 1, KEYS_PER_OPERATION_MAX)));
    assert_eq!(describe(&[1, 0].repeat(limits::OPERATIONS_PER_BODY_MAX)).map(|_| ()), Ok(()));
    let packed = [1, 0].repeat(limits::OPERATIONS_PER_BODY_MAX + 1);
    let limit = limits::OPERATIONS_PER_BODY_MAX;
    assert_eq!(describe(&packed), Err(too_long(limit + 1, limit)));
    let huge = vec![14; BODY_BYTES_MAX + 1];
    assert_eq!(describe(&huge), Err(too_long(BODY_BYTES_MAX + 1, BODY_BYTES_MAX)));
}

#[test]
fn what_parse_accepts_within_limits_decodes() {
    let key = vec![b'k'; KEY_BYTES_MAX];
    let value = vec![b'v'; VALUE_BYTES_MAX];
    let words: [&[u8]; 5] = [b"SET", &key, &value, b"PXAT", b"9223372036854775807"];
    let Ok(Parsed::Data(operation)) = parse(&words) else { panic!("the largest SET is refused") };
    let mut out = Vec::new();
    operation.encode(&mut out);
    assert_eq!(describe(&out).map(|description| description.class), Ok(Class::Overwrite));
}

#[test]
fn footprints_name_the_keys() {
    let hash = |key: &str| key_hash(key.as_bytes());
    for (command, footprint) in [
        ("GET k", Footprint::One(hash("k"))),
        ("MGET k", Footprint::One(hash("k"))),
        ("MGET k k", Footprint::One(hash("k"))),
        ("MSET a x b y", Footprint::of(vec![hash("a"), hash("b")])),
        ("RENAME a b", Footprint::of(vec![hash("b"), hash("a")])),
        ("LMOVE a b LEFT LEFT", Footprint::of(vec![hash("a"), hash("b")])),
        ("LMPOP 1 a LEFT", Footprint::One(hash("a"))),
        ("LMPOP 2 a b LEFT", Footprint::of(vec![hash("a"), hash("b")])),
        ("DEL a b a", Footprint::of(vec![hash("a"), hash("b")])),
        ("BLIND DEL a", Footprint::One(hash("a"))),
        ("SMOVE a b m", Footprint::of(vec![hash("a"), hash("b")])),
        ("SINTERCARD 2 a b LIMIT 5", Footprint::of(vec![hash("a"), hash("b")])),
        ("SUNIONSTORE a b b", Footprint::of(vec![hash("a"), hash("b")])),
        ("SUNIONSTORE a a", Footprint::One(hash("a"))),
        ("ZUNIONSTORE d 2 a b", Footprint::of(vec![hash("a"), hash("b"), hash("d")])),
        ("ZUNION 1 a", Footprint::One(hash("a"))),
        ("ZMPOP 2 a b MIN", Footprint::of(vec![hash("a"), hash("b")])),
        ("BITOP OR d a b", Footprint::of(vec![hash("d"), hash("a"), hash("b")])),
        ("SCAN 0", Footprint::All),
        ("KEYS a", Footprint::All),
        ("DBSIZE", Footprint::All),
        ("RANDOMKEY", Footprint::All),
        ("FLUSHALL", Footprint::All),
        ("FLUSHDB", Footprint::All),
        ("SWAPDB 0 1", Footprint::All),
        ("MOVE a 0", Footprint::One(hash("a"))),
        ("COPY a b", Footprint::of(vec![hash("a"), hash("b")])),
        ("SORT a GET # BY nosort", Footprint::One(hash("a"))),
        ("SORT a STORE b", Footprint::of(vec![hash("a"), hash("b")])),
        ("SORT a BY w_*", Footprint::All),
        ("SORT a GET w_* STORE b", Footprint::All),
    ] {
        assert_eq!(describe(&body(command)).unwrap().footprint, footprint, "{command}");
    }
}

#[test]
fn scripts_that_declare_no_key_have_a_footprint_together_as_each_has_alone() {
    let script: &[&[u8]] = &[b"EVAL", b"return 1", b"0"];
    let Ok(Parsed::Data(mut operation)) = parse(script) else { panic!("a script is refused") };
    if let Some(ScriptUse::Text { loads, .. }) = operation.script_mut() {
        *loads = false;
    }
    let mut body = Vec::new();
    operation.encode(&mut body);
    let alone = describe(&body).unwrap().footprint;
    assert_eq!(alone.keys().map(<[u64]>::len), Some(1));
    operation.encode(&mut body);
    assert_eq!(describe(&body).unwrap().footprint, alone);
}

/// The database of this number.
fn database(number: u8) -> Database {
    Database::new(number).expect("below 16")
}

/// The body of a command in a database.
fn body_in(number: u8, command: &str) -> Vec<u8> {
    let bytes = body(command);
    let mut out = Vec::new();
    operations(&bytes)
        .flatten()
        .for_each(|operation| operation.in_database(database(number)).encode(&mut out));
    out
}

#[test]
fn operations_in_other_databases_have_golden_bytes() {
    assert_eq!(body_in(0, "GET k"), body("GET k"));
    assert_eq!(body_in(3, "GET k"), [94, 3, 1, 1, b'k']);
    assert_eq!(body_in(15, "BLIND DEL k"), [&[94, 15][..], &body("BLIND DEL k")].concat());
    assert_eq!(body_in(2, "HGET h f"), [&[94, 2][..], &body("HGET h f")].concat());
    assert_eq!(body_in(2, "FLUSHDB"), [94, 2, 48]);
    // They concern all databases, or name their own.
    for command in ["FLUSHALL", "SWAPDB 1 2"] {
        assert_eq!(body_in(2, command), body(command));
    }
    for (bytes, malformed) in [
        (&[94][..], Malformed::Truncated),
        (&[94, 1], Malformed::Truncated),
        (&[94, 0, 1, 1, b'k'], Malformed::Database(0)),
        (&[94, 16, 1, 1, b'k'], Malformed::Database(16)),
        (&[94, 1, 94, 1, 1, 1, b'k'], Malformed::Opcode(94)),
        (&[94 | 128, 1, 1, 1, b'k'], Malformed::Opcode(94)),
        (&[94, 1, 127, 247], Malformed::Database(1)),
        (&[94, 1, 127, 246, 1, 2], Malformed::Database(1)),
        (&[127, 246, 1, 16], Malformed::Database(16)),
    ] {
        assert_eq!(describe(bytes).map(|_| ()), Err(malformed), "{bytes:?}");
    }
}

/// Keys of one name in two databases are two keys, wherever keys are told apart.
#[test]
fn the_database_belongs_to_the_key() {
    let footprint = |body: &[u8]| describe(body).expect("a body").footprint;
    let hash = |number, key: &str| key_hash_in(database(number), key.as_bytes());
    assert_eq!(footprint(&body_in(1, "GET k")), Footprint::One(hash(1, "k")));
    assert_eq!(footprint(&body_in(1, "MGET k l")), Footprint::of(vec![hash(1, "k"), hash(1, "l")]));
    assert_eq!(footprint(&body_in(1, "MOVE k 2")), Footprint::of(vec![hash(1, "k"), hash(2, "k")]));
    assert_eq!(footprint(&body_in(1, "MOVE k 0")), Footprint::of(vec![hash(1, "k"), hash(0, "k")]));
    let pack = [body_in(0, "SET k 1"), body_in(1, "SET k 1"), body_in(1, "SET k 2")].concat();
    let description = describe(&pack).expect("a body");
    assert_eq!(description.footprint, Footprint::of(vec![hash(0, "k"), hash(1, "k")]));
    assert_eq!(description.class, Class::Merge, "it overwrites two keys");
    let one = [body_in(1, "SET k 1"), body_in(1, "SET k 2")].concat();
    assert_eq!(describe(&one).map(|description| description.class), Ok(Class::Overwrite));
    assert!(overwrites(&body_in(1, "SET k 1"), &one));
    assert!(!overwrites(&body_in(1, "SET k 1"), &body_in(2, "SET k 1")));
    assert!(!overwrites(&body_in(1, "SET k 1"), &body("SET k 1")));
}

#[test]
fn older_builds_get_nothing_of_other_databases() {
    assert_eq!(Generation::of_body(&body("SET k 1")), Generation::Strings);
    assert_eq!(Generation::of_body(&body("FLUSHDB")), Generation::Strings);
    assert_eq!(Generation::of_body(&body("HGET k f")), Generation::Collections);
    for newer in [
        body_in(1, "SET k 1"),
        body_in(1, "FLUSHDB"),
        [body("SET k 1"), body_in(1, "GET k")].concat(),
        body("MOVE k 1"),
        body("SWAPDB 0 1"),
        body("FLUSHALL"),
    ] {
        assert_eq!(Generation::of_body(&newer), Generation::Programs, "{newer:?}");
    }
}

#[test]
fn packed_operations_are_joined() {
    let hash = |key: &str| key_hash(key.as_bytes());
    let one = Footprint::One(hash("k"));
    let both = Footprint::of(vec![hash("k"), hash("l")]);
    for (commands, class, footprint) in [
        (&["SET k 1", "SET k 2"][..], Class::Overwrite, one.clone()),
        (&["SET k 1", "BLIND DEL k"], Class::Overwrite, one.clone()),
        (&["SET k 1", "BLIND INCR k"], Class::Merge, one.clone()),
        (&["SET k 1", "INCR k"], Class::Update, one.clone()),
        (&["SET k 1", "GET k"], Class::Update, one.clone()),
        (&["GET k", "TTL k"], Class::Read, one),
        (&["SET k 1", "SET l 2"], Class::Merge, both.clone()),
        (&["SET k 1", "SET l 2", "SET k 3"], Class::Merge, both.clone()),
        (&["MGET k l", "GET k"], Class::Read, both.clone()),
        (&["SET k 1", "INCR l", "GET k"], Class::Update, both),
        (&["FLUSHALL", "SET k 1"], Class::Merge, Footprint::All),
        (&["SET k 1", "DBSIZE"], Class::Update, Footprint::All),
        (&["KEYS *", "GET k"], Class::Read, Footprint::All),
    ] {
        let packed: Vec<u8> = commands.iter().flat_map(|command| body(command)).collect();
        let description = describe(&packed).unwrap();
        assert_eq!((description.class, description.footprint), (class, footprint), "{commands:?}");
        assert_eq!(operations(&packed).count(), commands.len());
    }
}

#[test]
fn random_bytes_never_panic_and_reencode_to_themselves() {
    let golden = golden::all();
    let mut prng = Prng::new(1);
    let mut accepted = 0;
    for _ in 0..200_000 {
        let (_, _, bytes) = &golden[prng.below(golden.len() as u64) as usize];
        let mut bytes = bytes.clone();
        for _ in 0..prng.below(3) {
            let index = prng.below(bytes.len() as u64) as usize;
            bytes[index] = prng.next_u64() as u8;
        }
        let decoded: Result<Vec<_>, _> = operations(&bytes).collect();
        let described = describe(&bytes);
        assert_eq!(decoded.as_ref().err(), described.as_ref().err(), "{bytes:?}");
        let Ok(decoded) = decoded else { continue };
        let mut again = Vec::new();
        decoded.iter().for_each(|operation| operation.encode(&mut again));
        assert_eq!(again, bytes, "an operation has exactly one encoding");
        accepted += 1;
    }
    assert!(accepted > 50_000, "only {accepted} bodies were accepted");
}

#[test]
fn only_an_overwrite_of_the_same_key_overwrites() {
    let body = |words: &[&[u8]]| {
        let mut body = Vec::new();
        let Ok(Parsed::Data(operation)) = parse(words) else { panic!("{words:?}") };
        operation.encode(&mut body);
        body
    };
    let set = body(&[b"SET", b"k", b"1"]);
    let delete = body(&[b"BLIND", b"DEL", b"k"]);
    let other = body(&[b"SET", b"l", b"1"]);
    let increment = body(&[b"BLIND", b"INCR", b"k"]);
    assert!(overwrites(&set, &delete) && overwrites(&delete, &set) && overwrites(&set, &set));
    assert!(!overwrites(&set, &other) && !overwrites(&set, &increment) && !overwrites(&increment, &set));
    assert!(!overwrites(&set, b"garbage") && !overwrites(b"", b""));
}

/// What a replica with little room goes by before it takes an operation.
#[test]
fn operations_say_by_how_much_the_data_may_grow() {
    fn growth<'a>(command: impl Into<Command<'a>>) -> usize {
        describe(&encoded(command)).unwrap().growth
    }
    let (key, long) = (&b"k"[..], &[b'l'; 60_000][..]);
    for command in [Command::Get(Get { key }), Command::Persist(Persist { key }), Command::FlushAll(FlushAll)]
    {
        assert_eq!(growth(command), 0, "{command:?}");
    }
    // A few bytes ask for megabytes of zeros.
    assert!(growth(SetRange { key, offset: 16_000_000, value: b"x" }) > 16_000_000);
    assert!(growth(Append { key, value: &[7; 1000] }) > 1000);
    assert_eq!(growth(Rename { from: long, to: key }), 0);
    assert!(growth(Rename { from: key, to: long }) > 59_000);
    let words = [&b"HSET"[..], key, b"f", &[7; 1000], b"g", b""];
    let Ok(Parsed::Data(set_fields)) = parse(&words) else { panic!("HSET is refused") };
    assert!(growth(set_fields.command) > 1000 + 2 * 16);
    let words = [&b"RPUSH"[..], key, &[7; 1000], b""];
    let Ok(Parsed::Data(push)) = parse(&words) else { panic!("RPUSH is refused") };
    assert!(growth(push.command) > 1000 + 2 * 16);
    assert_eq!(describe(&body("LTRIM k 0 0")).map(|description| description.growth), Ok(0));
    let words = [&b"ZADD"[..], key, b"1", &[7; 1000], b"2", b""];
    let Ok(Parsed::Data(add_members)) = parse(&words) else { panic!("ZADD is refused") };
    assert!(growth(add_members.command) > 1000 + 2 * 32);
    assert_eq!(describe(&body("ZREM k m")).map(|description| description.growth), Ok(0));
    assert!(describe(&body("SETBIT k 134217727 0")).unwrap().growth >= 16 << 20);
    assert!(describe(&body("BITFIELD k SET u8 8000000 1")).unwrap().growth > 1_000_000);
    // Two bits may be all that there is of 16 MiB in the end.
    assert!(describe(&body("BITOP OR d k l")).unwrap().growth > 16 << 20);
    assert!(describe(&body("PFADD k a")).unwrap().growth > 12_304);
    assert_eq!(describe(&body("HDEL k f")).map(|description| description.growth), Ok(0));
    let growth_of = |command| describe(&body(command)).unwrap().growth;
    assert_eq!(growth_of("HDEL k f"), 0);
    assert!(growth_of("SADD k m") > 0 && growth_of("SINTERSTORE d k") > 0 && growth_of("SMOVE k l m") > 0);
    assert_eq!((growth_of("SREM k m"), growth_of("SPOP k 5")), (0, 0));
    // Those of a body count together.
    let twice = encoded(SetRange { key, offset: 1 << 20, value: b"x" }).repeat(2);
    assert!(describe(&twice).unwrap().growth > 2 << 20);
}

/// SPOP draws, and scripts that may change something.
#[test]
fn a_seed_is_what_is_drawn_from() {
    for (command, _, bytes) in golden::all() {
        let mut operation = Operation::decode(&mut &bytes[..]).unwrap();
        let seed = operation.seed_mut();
        let is_script = ["EVAL ", "EVALSHA ", "FCALL "].iter().any(|name| command.contains(name));
        assert_eq!(seed.is_some(), is_script || command.contains("SPOP"), "{command}");
        let Some(seed) = seed else { continue };
        *seed = 0x0807_0605_0403_0201;
        let mut again = Vec::new();
        operation.encode(&mut again);
        assert!(again.windows(8).any(|bytes| bytes == [1, 2, 3, 4, 5, 6, 7, 8]), "{command}");
    }
}

/// Those commands on streams whose result depends on the present have it in their bodies.
#[test]
fn the_present_is_a_part_of_the_body() {
    let named = ["XADD k *", "XREADGROUP", "XCLAIM", "XAUTOCLAIM", "XGROUP CREATECONSUMER"];
    for (command, _, bytes) in golden::all() {
        let mut operation = Operation::decode(&mut &bytes[..]).unwrap();
        let now = operation.now_mut();
        assert_eq!(now.is_some(), named.iter().any(|name| command.starts_with(name)), "{command}");
        let Some(now) = now else { continue };
        *now = 0x0807_0605_0403_0201;
        let mut again = Vec::new();
        operation.encode(&mut again);
        let place = again.windows(8).position(|window| window == [1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(place.is_some() && again.len() == bytes.len(), "{command}");
        // It is the same whether the operation was made of bytes or of words.
        let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        let Ok(Parsed::Data(mut operation)) = parse(&words) else { panic!("{command} is no operation") };
        *operation.now_mut().expect("it has a time") = 0x0807_0605_0403_0201;
        let mut of_words = Vec::new();
        operation.encode(&mut of_words);
        assert_eq!(of_words, again, "{command}");
        assert_eq!(Ok(operation), Operation::decode(&mut &again[..]), "{command}");
    }
}

/// Scripts stop everything else while they run: together, those of one body may not do so for longer than eight may.
#[test]
fn scripts_of_one_body_share_their_fuel() {
    let body_of = |count: usize, fuel: u64| {
        let Ok(Parsed::Data(mut one)) = parse(&[b"EVAL", b"return 0", b"0"]) else { panic!("a script") };
        let mut body = Vec::new();
        one.limit_fuel(fuel);
        (0..count).for_each(|_| one.encode(&mut body));
        body
    };
    assert!(describe(&body_of(8, SCRIPT_FUEL)).is_ok());
    assert_eq!(describe(&body_of(9, SCRIPT_FUEL)), Err(Malformed::Scripts));
    assert_eq!(Generation::of_body(&body_of(8, SCRIPT_FUEL)), Generation::Programs);
    let share = SCRIPTS_FUEL_MAX / SCRIPTS_PER_BODY_MAX as u64;
    let most = body_of(SCRIPTS_PER_BODY_MAX, share);
    assert!(describe(&most).is_ok());
    assert_eq!(Generation::of_body(&most), Generation::StreamPayloads);
    let told = syros_commands::without_memory(&most).expect("scripts").body;
    assert_eq!(Generation::of_body(&told), Generation::ScriptTerms);
    assert_eq!(told.len(), most.len());
    assert_eq!(describe(&body_of(SCRIPTS_PER_BODY_MAX + 1, 1)), Err(Malformed::Scripts));
}
