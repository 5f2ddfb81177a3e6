use super::{InvalidPayload, VERSION_MAX, checksum, dump, restore, type_number};

use syros_values::{Hash, List, ListEnd, Score, Set, SortedSet, Value};

/// What redis-server 7.0.15 answers to DUMP, and what the value is.
fn dumps_of_redis() -> Vec<(&'static str, Value)> {
    let long = [b'x'; 70];
    let list = [&b"a"[..], b"1", b"-300", b"70000", b"5000000000", b"99999999999999", &long];
    vec![
        ("000568656c6c6f0a006372df766534200a", string(b"hello")),
        ("00c118fc0a004602355e70225a90", string(b"-1000")),
        ("00c3094064016161e057000161610a00e8a3b507b06df271", string(&[b'a'; 100])),
        (
            "120102c3314071187100000007008161020101ded402f270110104f400f2052a0120170709f4ff3f7a10f35a20\
             0902e04678e03c000148ff0a002ef9ae446dd84fec",
            list_of(&list),
        ),
        (
            "0b140400000003000000ffffffff03000000701101000a00faf9076ba102fb14",
            set_of(&[b"-1", b"3", b"70000"]),
        ),
        ("0202016201610a0075d99d835ef85f65", set_of(&[b"b", b"a"])),
        (
            "10c317250f25000000040081660201018167029476e00a000115ff0a00cd1da9dc8d500e89",
            hash_of(&[(b"f", b"1"), (b"g", &[b'v'; 20])]),
        ),
        (
            "111d1d0000000600816202842d696e660581610283312e35048163020301ff0a002970c58fcde6fc31",
            sorted_set_of(&[(b"b", f64::NEG_INFINITY), (b"a", 1.5), (b"c", 3.0)]),
        ),
        (
            "05020161000000000000f83f0162000000000000f0ff0a0048977e33659e660b",
            sorted_set_of(&[(b"b", f64::NEG_INFINITY), (b"a", 1.5)]),
        ),
        ("04010166c0010a001a826a5279bf95ce", hash_of(&[(b"f", b"1")])),
    ]
}

/// The bytes of these hexadecimal digits.
fn bytes(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks_exact(2);
    let byte = |pair| u8::from_str_radix(str::from_utf8(pair).expect("digits"), 16).expect("two digits");
    pairs.map(byte).collect()
}

fn string(bytes: &[u8]) -> Value {
    Value::String(bytes.to_vec())
}

fn list_of(elements: &[&[u8]]) -> Value {
    let mut list = List::default();
    elements.iter().for_each(|element| list.push(ListEnd::Right, element));
    list.into()
}

fn set_of(members: &[&[u8]]) -> Value {
    let mut set = Set::default();
    members.iter().for_each(|member| assert!(set.insert(member)));
    set.into()
}

fn hash_of(pairs: &[(&[u8], &[u8])]) -> Value {
    let mut hash = Hash::default();
    pairs.iter().for_each(|(field, value)| assert!(hash.set(field, value)));
    hash.into()
}

fn sorted_set_of(members: &[(&[u8], f64)]) -> Value {
    let mut set = SortedSet::default();
    for (member, score) in members {
        set.set(member, Score::new(*score).expect("a number"));
    }
    set.into()
}

fn encoded(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.put(&mut bytes);
    bytes
}

/// The payload of a typed value, in the newest version.
fn payload(typed: &[u8]) -> Vec<u8> {
    let mut payload = [typed, &VERSION_MAX.to_le_bytes()].concat();
    let sum = checksum(&payload);
    payload.extend_from_slice(&sum.to_le_bytes());
    payload
}

/// A short string with its length in front.
fn with_length(bytes: &[u8]) -> Vec<u8> {
    assert!(bytes.len() < 64);
    [&[bytes.len() as u8], bytes].concat()
}

fn assert_restores(typed: &[u8], value: &Value) {
    let restored = restore(&payload(typed)).map(|value| encoded(&value));
    assert_eq!(restored, Ok(encoded(value)), "{}", typed.escape_ascii());
}

fn assert_refused(typed: &[u8]) {
    assert_eq!(
        restore(&payload(typed)).map(|value| encoded(&value)),
        Err(InvalidPayload::Format),
        "{}",
        typed.escape_ascii()
    );
}

#[test]
fn what_redis_dumps_is_restored() {
    for (payload, value) in dumps_of_redis() {
        let restored = restore(&bytes(payload)).map(|value| encoded(&value));
        assert_eq!(restored, Ok(encoded(&value)), "{payload}");
        let dumped = dump(&value, usize::MAX).expect("it is short");
        assert_eq!(restore(&dumped).map(|value| encoded(&value)), Ok(encoded(&value)), "{payload}");
        assert!(dump(&value, dumped.len() - super::FOOTER_BYTES - 1).is_none());
    }
}

#[test]
fn versions_and_checksums_are_looked_at() {
    let whole = bytes("000568656c6c6f0a006372df766534200a");
    let refused = Err(InvalidPayload::VersionOrChecksum);
    for length in 0..whole.len() {
        assert_eq!(restore(&whole[..length]).map(|value| encoded(&value)), refused, "{length}");
    }
    for place in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[place] ^= 1;
        assert_eq!(restore(&damaged).map(|value| encoded(&value)), refused, "{place}");
    }
    let mut newer = [&b"\0\x01a"[..], &(VERSION_MAX + 1).to_le_bytes()].concat();
    newer.extend_from_slice(&checksum(&newer).to_le_bytes());
    assert_eq!(restore(&newer).map(|value| encoded(&value)), refused);
}

#[test]
fn older_encodings_are_restored() {
    let ziplist = b"\x1a\0\0\0\x16\0\0\0\x05\0\0\x01a\x03\xf2\x02\xfe\x9c\x03\xc0\x2c\x01\x04\x01b\xff";
    let elements: [&[u8]; 5] = [b"a", b"1", b"-100", b"300", b"b"];
    assert_restores(&[&[type_number::LIST_ZIPLIST][..], &with_length(ziplist)].concat(), &list_of(&elements));
    let twice =
        [&[type_number::LIST_QUICKLIST, 2][..], &with_length(ziplist), &with_length(ziplist)].concat();
    assert_restores(&twice, &list_of(&[elements, elements].concat()));
    let pairs = b"\x15\0\0\0\x12\0\0\0\x04\0\0\x01f\x03\xf2\x02\x01g\x03\xf4\xff";
    assert_restores(
        &[&[type_number::HASH_ZIPLIST][..], &with_length(pairs)].concat(),
        &hash_of(&[(b"f", b"1"), (b"g", b"3")]),
    );
    assert_restores(
        &[&[type_number::SORTED_SET_ZIPLIST][..], &with_length(pairs)].concat(),
        &sorted_set_of(&[(b"f", 1.0), (b"g", 3.0)]),
    );
    let zipmap = b"\x02\x01f\x02\x0112x\x01g\x00\x00\xff";
    assert_restores(
        &[&[type_number::HASH_ZIPMAP][..], &with_length(zipmap)].concat(),
        &hash_of(&[(b"f", b"12"), (b"g", b"")]),
    );
    let digits = b"\x03\x03\x01a\x031.5\x01b\xff\x01c\xfe";
    let scores = [(&b"b"[..], f64::NEG_INFINITY), (b"a", 1.5), (b"c", f64::INFINITY)];
    assert_restores(digits, &sorted_set_of(&scores));
    assert_restores(b"\x01\x02\x01a\xc0\x05", &list_of(&[b"a", b"5"]));
    let listpack = b"\x0c\0\0\0\x02\0\x81a\x02\x05\x01\xff";
    assert_restores(
        &[&[type_number::SET_LISTPACK][..], &with_length(listpack)].concat(),
        &set_of(&[b"a", b"5"]),
    );
    let plain = [&[type_number::LIST_QUICKLIST_2, 2, 1, 1, b'p', 2][..], &with_length(listpack)].concat();
    assert_restores(&plain, &list_of(&[b"p", b"a", b"5"]));
}

#[test]
fn what_is_no_value_is_refused() {
    let listpack = |bytes: &[u8]| [&[type_number::SET_LISTPACK][..], &with_length(bytes)].concat();
    let ziplist = |bytes: &[u8]| [&[type_number::LIST_ZIPLIST][..], &with_length(bytes)].concat();
    let typed = |number: u8, bytes: &[u8]| [&[number][..], &with_length(bytes)].concat();
    for typed in [
        &b""[..],
        b"\x63\x01a",
        // Streams and modules.
        b"\x0f\0",
        b"\x06\0",
        b"\0\x02a",
        b"\0\x01aa",
        b"\x01\0",
        b"\x01\x82\xff\xff\xff\xff",
        b"\x01\x81\xff\xff\xff\xff\xff\xff\xff\xff\x01a",
        b"\0\x81\xff\xff\xff\xff\xff\xff\xff\xff",
        // A member, a field, twice.
        b"\x02\x02\x01a\x01a",
        b"\x04\x02\x01f\x01a\x01f\x01b",
        b"\x05\x02\x01a\0\0\0\0\0\0\0\0\x01a\0\0\0\0\0\0\xf8\x3f",
        // Scores that are none.
        b"\x05\x01\x01a\0\0\0\0\0\0\xf8\x7f",
        b"\x03\x01\x01a\xfd",
        b"\x03\x01\x01a\x01x",
        // A field without a value.
        b"\x04\x01\x01f",
        // Nodes of lists.
        b"\x12\x01\x03\x01a",
        // Compressed to what would not fit.
        b"\0\xc3\x01\x80\x7f\xff\xff\xff\0",
    ] {
        assert_refused(typed);
    }
    for bytes in [
        // Counts, lengths, ends, backward lengths, elements twice.
        &b"\x0c\0\0\0\x03\0\x81a\x02\x05\x01\xff"[..],
        b"\x0d\0\0\0\x02\0\x81a\x02\x05\x01\xff",
        b"\x0c\0\0\0\x02\0\x81a\x02\x05\x01\xfe",
        b"\x0c\0\0\0\x02\0\x81a\x03\x05\x01\xff",
        b"\x0c\0\0\0\x02\0\x05\x01\x8fa\x02\xff",
        b"\x0b\0\0\0\x02\0\x05\x01\x05\x01\xff",
        b"\x07\0\0\0\0\0\xff",
        b"\x08\0\0\0\x01\0\xf5\xff",
        b"\x06\0\0\0\0\0",
    ] {
        assert_refused(&listpack(bytes));
    }
    for bytes in [
        &b"\x0f\0\0\0\x0a\0\0\0\x01\0\0\x01a\xff"[..],
        b"\x0e\0\0\0\x0b\0\0\0\x01\0\0\x01a\xff",
        b"\x0e\0\0\0\x0a\0\0\0\x02\0\0\x01a\xff",
        b"\x0e\0\0\0\x0a\0\0\0\x01\0\x01\x01a\xff",
        b"\x0e\0\0\0\x0a\0\0\0\x01\0\0\x02a\xff",
        b"\x0b\0\0\0\x0a\0\0\0\0\0\xff",
    ] {
        assert_refused(&ziplist(bytes));
    }
    for bytes in [
        // Out of order, twice, of no width, of other counts.
        &b"\x02\0\0\0\x02\0\0\0\x02\0\x01\0"[..],
        b"\x02\0\0\0\x02\0\0\0\x01\0\x01\0",
        b"\x03\0\0\0\x01\0\0\0\x01\0\0",
        b"\x02\0\0\0\x03\0\0\0\x01\0\x02\0",
        b"\x08\0\0\0\xff\xff\xff\xff\x01\0\x02\0",
    ] {
        assert_refused(&typed(type_number::SET_INTSET, bytes));
    }
    // Members out of their order.
    let pairs = b"\x15\0\0\0\x12\0\0\0\x04\0\0\x01f\x03\xf4\x02\x01g\x03\xf2\xff";
    assert_refused(&typed(type_number::SORTED_SET_ZIPLIST, pairs));
    assert_refused(&typed(type_number::HASH_ZIPMAP, b"\x01\x01f\x02\x011"));
    assert_refused(&typed(type_number::HASH_ZIPMAP, b"\x02\x01f\x01\x001\xff"));
}

/// No bytes make it panic, and what is taken for a value can be dumped and restored again.
#[test]
fn damaged_values_are_no_panic() {
    let mut prng = syros_types::Prng::new(3);
    for (payload_of_redis, _) in dumps_of_redis() {
        let whole = bytes(payload_of_redis);
        let typed = &whole[..whole.len() - super::FOOTER_BYTES];
        for _ in 0..2_000 {
            let mut typed = typed.to_vec();
            for _ in 0..1 + prng.below(3) {
                let place = prng.below(typed.len() as u64) as usize;
                typed[place] = prng.next_u64() as u8;
            }
            if let Ok(value) = restore(&payload(&typed)) {
                let dumped = dump(&value, usize::MAX).expect("it is short");
                assert_eq!(restore(&dumped).map(|value| encoded(&value)), Ok(encoded(&value)));
            }
        }
    }
}

/// A field "f" of "v" that is there at 1000 ms for the last time, "g" of "w" that stays, "h" of "x" until 1002 ms.
fn expiring() -> Hash {
    let mut hash = Hash::default();
    for (field, value, last) in [(b"f", b"v", 1000), (b"g", b"w", 0), (b"h", b"x", 1002)] {
        hash.set(field, value);
        if last > 0 {
            hash.set_expiry(field, core::num::NonZeroU64::new(last + 1));
        }
    }
    hash
}

#[test]
fn fields_that_expire_are_restored() {
    let hash = expiring();
    let first = 1000u64.to_le_bytes();
    let dumped = dump(&hash.clone().into(), usize::MAX).expect("it is short");
    assert_eq!(dumped[..9], [&[type_number::EXPIRING_HASH][..], &first].concat());
    assert_eq!(dumped[dumped.len() - 10..][..2], 12u16.to_le_bytes(), "no Redis before 7.4 reads it");
    assert_eq!(restore(&dumped).map(|value| encoded(&value)), Ok(encoded(&hash.clone().into())));
    let typed = [&[24][..], &first, b"\x03\x01\x01f\x01v\0\x01g\x01w\x03\x01h\x01x"].concat();
    assert_eq!(restore(&payload(&typed)).map(|value| encoded(&value)), Ok(encoded(&hash.clone().into())));
    // A listpack: strings of one byte, and numbers of 13 bits.
    let number = |last: u16| [0xc0 | (last >> 8) as u8, last as u8, 2];
    let text = |byte: u8| [0x81, byte, 2];
    let elements =
        [text(b'f'), text(b'v'), number(1000), text(b'h'), text(b'x'), number(1002), text(b'g'), text(b'w')];
    let mut listpack = [elements.as_flattened(), &[0, 1, 0xff]].concat();
    let length = listpack.len() as u32 + 6;
    listpack.splice(0..0, [&length.to_le_bytes()[..], &9u16.to_le_bytes()].concat());
    let typed = [&[25][..], &first, &[listpack.len() as u8], &listpack].concat();
    assert_eq!(restore(&payload(&typed)).map(|value| encoded(&value)), Ok(encoded(&hash.into())));
}

#[test]
fn fields_expire_when_they_can() {
    let typed = |first: u64, rest: &[u8]| [&[24][..], &first.to_le_bytes(), rest].concat();
    assert!(restore(&payload(&typed((1 << 46) - 1, b"\x01\x01\x01f\x01v"))).is_ok());
    assert_refused(&typed(1 << 46, b"\x01\x01\x01f\x01v"));
    assert_refused(&typed(u64::MAX, b"\x01\x01\x01f\x01v"));
    assert_refused(&typed(1, b"\x02\x01\x01f\x01v\x01\x01f\x01v"));
    assert_refused(&typed(1, b"\0"));
    assert_refused(&typed(1, b"\x01\x01\x01f"));
}
