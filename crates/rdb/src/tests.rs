//! Files that are read back, cut short, changed, and that lie.

use crate::*;
use std::convert::Infallible;
use syros_commands::rdb::{Format, extended_checksum, type_number, typed, value_of};
use syros_values::{Hash, List, ListEnd, Score, Set, SortedSet, Stream, StreamId, Value};

/// A value of each kind, each with so many elements.
fn values(elements: u32) -> Vec<Value> {
    let each = |n: u32| format!("element {n}").into_bytes();
    let (mut list, mut set, mut hash) = (List::default(), Set::default(), Hash::default());
    let (mut sorted, mut stream) = (SortedSet::default(), Stream::default());
    for n in 0..elements {
        list.push(ListEnd::Right, &each(n));
        set.insert(&each(n));
        hash.set(&each(n), b"value");
        sorted.set(&each(n), Score::new(f64::from(n) / 2.0).unwrap());
        stream.append(StreamId::new(5, u64::from(n)), 2, [&b"field"[..], &each(n)].into_iter());
    }
    stream.create_group(b"group", StreamId::new(5, 0), Some(1));
    let group = stream.group(b"group").unwrap();
    let consumer = stream.see_consumer(&group, b"consumer", 77);
    stream.deliver(&group, StreamId::new(5, 0), &consumer, (70, 2));
    vec![Value::String(each(elements)), list.into(), set.into(), hash.into(), sorted.into(), stream.into()]
}

fn file(values: &[Value]) -> Vec<u8> {
    let mut writer = FileWriter::create(Vec::new(), Format::Redis70, "a test").unwrap();
    writer.library(b"#!lua name=lib\n").unwrap();
    for (number, value) in (0..).zip(values) {
        let expiry = (number % 2 == 1).then_some(1000 + number);
        let typed = typed(value, Format::Redis70).unwrap();
        writer.key(number / 4, format!("key {number}").as_bytes(), expiry, &typed).unwrap();
    }
    writer.finish().unwrap()
}

/// The checksum of what was changed.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = extended_checksum(0, &bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

fn read(bytes: &[u8]) -> Result<(FileSummary, Vec<String>), RdbError> {
    let mut found = Vec::new();
    let summary = read_file(bytes, |item| {
        found.push(match item {
            Item::Piece(place, piece) => {
                let value = value_of(&piece.typed, usize::MAX).expect("it is a value");
                let (first, last) = (piece.is_first, piece.is_last);
                format!("{place:?} {:016x} {first} {last}", value.fingerprint())
            }
            other => format!("{other:?}"),
        });
        Ok::<(), RdbError>(())
    })?;
    Ok((summary, found))
}

#[test]
fn what_was_written_is_read_back() {
    for elements in [1, 300] {
        let values = values(elements);
        let bytes = file(&values);
        let (summary, found) = read(&bytes).unwrap();
        assert_eq!((summary.version, summary.bytes, summary.is_checked), (10, bytes.len() as u64, true));
        assert_eq!(found.len(), 1 + values.len());
        for (number, (value, found)) in (0..).zip(values.iter().zip(&found[1..])) {
            let place = Place {
                database: number / 4,
                key: format!("key {number}").into_bytes(),
                expiry_ms: (number % 2 == 1).then_some(1000 + number),
            };
            let mut value = value.clone();
            if let Value::Stream(_) = value {
                // What the format does not say: when a consumer got something last.
                value = value_of(&typed(&value, Format::Redis70).unwrap(), usize::MAX).unwrap();
            }
            assert_eq!(*found, format!("{place:?} {:016x} true true", value.fingerprint()));
        }
    }
}

#[test]
fn every_cut_and_every_flipped_bit_is_found() {
    let bytes = file(&values(3));
    for end in 0..bytes.len() {
        let refused = read(&bytes[..end]).unwrap_err();
        assert!(matches!(refused, RdbError::Truncated { .. } | RdbError::NoRdb), "{end}: {refused}");
    }
    assert!(matches!(read(&[&bytes[..], b"x"].concat()), Err(RdbError::Trailing { .. })));
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        // What is handed on before the checksum is looked at may be anything.
        let found = read_file(&flipped[..], |_| Ok::<(), RdbError>(()));
        assert!(found.is_err(), "bit {bit}");
    }
}

#[test]
fn a_file_without_a_checksum_says_so() {
    let mut bytes = file(&values(3));
    let length = bytes.len();
    bytes[length - 8..].fill(0);
    assert!(!read(&bytes).unwrap().0.is_checked);
    assert!(!read(b"REDIS0003\xfe\x00\x00\x01k\x01v\xff").unwrap().0.is_checked);
}

#[test]
fn other_files_are_refused() {
    for (bytes, words) in [
        (&b""[..], "does not begin with REDIS or VALKEY"),
        (b"*2\r\n$6\r\nSELECT", "does not begin with REDIS or VALKEY"),
        (b"REDIS00x1", "does not begin with REDIS or VALKEY"),
        (b"REDIS0013\xff", "version 13"),
        (b"REDIS0000\xff", "version 0"),
        (b"VALKEY081\xff", "version 81"),
        (b"REDIS0010\x63\x01k", "no value has the type 99"),
        (b"REDIS0010\x06\x01k", "a module"),
        (b"REDIS0010\x00\x90", "no length begins with 0x90"),
        (b"REDIS0010\xfe\xc0\x01", "a string stands where a length should"),
        (b"REDIS0010\x00\x01k\xc4\x01", "no string has form 4"),
        (b"REDIS0010\x00\xc3\x01\x05ab", "a key is no string"),
        // A string of 2^60 bytes, and a set of 2^60 members.
        (b"REDIS0010\x00\x01k\x81\x10\0\0\0\0\0\0\0", "a string of 1152921504606846976 bytes"),
        (b"REDIS0010\x02\x01k\x81\x10\0\0\0\0\0\0\0\x01a", "cut short"),
        (b"REDIS0010\x00\x81\0\0\0\0\x7f\0\0\0a", "cut short"),
    ] {
        let refused = read_file(bytes, |_| Ok::<(), RdbError>(())).unwrap_err().to_string();
        assert!(refused.contains(words), "{}: {refused}", bytes.escape_ascii());
    }
}

#[test]
fn what_syros_cannot_hold_is_named_and_the_rest_is_read() {
    let mut bytes = b"REDIS0010\xfe\x02".to_vec();
    // A module's value: its identity, numbers, a float, a double, a string.
    bytes.extend_from_slice(b"\x07\x06module\x81");
    let name = b"ReJSON-RL".iter().fold(0_u64, |sum, letter| {
        let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        sum << 6 | letters.iter().position(|other| other == letter).unwrap() as u64
    });
    bytes.extend_from_slice(&(name << 10 | 3).to_be_bytes());
    bytes.extend_from_slice(b"\x01\x05\x02\x06\x03abcd\x04abcdefgh\x05\x02xy\0");
    // A list with an element that is too long, and elements that are not.
    let long = vec![b'x'; STRING_BYTES_MAX as usize + 1];
    bytes.extend_from_slice(b"\x01\x04list\x02\x01a\x80");
    bytes.extend_from_slice(&(long.len() as u32).to_be_bytes());
    bytes.extend_from_slice(&long);
    // A key that is too long, and one that is not.
    bytes.extend_from_slice(b"\x00\x80\0\x01\0\x01");
    bytes.extend_from_slice(&long[..0x1_0001]);
    bytes.extend_from_slice(b"\x01v\x00\x01k\x01v\xff");
    let (_, found) = read(&sealed(bytes)).unwrap();
    let expected =
        ["type ReJSON-RL of a module", "16777217 bytes in one piece", "name has 65537 bytes", "true true"];
    assert_eq!(found.len(), expected.len());
    for (found, words) in found.iter().zip(expected) {
        assert!(found.contains(words), "{}", &found[found.len().saturating_sub(200)..]);
        assert!(found.contains("database: 2"));
    }
}

#[test]
fn a_long_value_comes_in_pieces_that_make_the_same_value() {
    let element = vec![b'e'; 100_000];
    let (mut list, mut hash) = (List::default(), Hash::default());
    for n in 0..300_u32 {
        let element = [&n.to_be_bytes(), &element[..]].concat();
        list.push(ListEnd::Right, &element);
        hash.set(&n.to_be_bytes(), &element);
    }
    for value in [Value::from(list), hash.into()] {
        let bytes = typed(&value, Format::Redis70).unwrap();
        let payload = syros_commands::rdb::payload(bytes);
        let (mut strings, mut pieces) = (Vec::new(), 0);
        let refused = read_value(&payload[..], |piece| {
            assert_eq!((piece.is_first, piece.is_last), (pieces == 0, pieces == 3));
            assert!(piece.typed.len() < PIECE_BYTES + 200_000);
            pieces += 1;
            commands(b"key", &value_of(&piece.typed, usize::MAX).unwrap(), &mut |command| {
                assert!(command.words.iter().map(Vec::len).sum::<usize>() < 2 << 20);
                strings.extend(command.words.into_iter().skip(2));
                Ok::<(), RdbError>(())
            })
        });
        assert_eq!((refused.unwrap(), pieces), (None, 4));
        let expected: Vec<Vec<u8>> = match &value {
            Value::List(list) => list.iter().map(<[u8]>::to_vec).collect(),
            Value::Hash(hash) => {
                hash.iter().flat_map(|(field, value)| [field.to_vec(), value.to_vec()]).collect()
            }
            _ => unreachable!("there is no other one"),
        };
        assert!(strings == expected || matches!(value, Value::Hash(_)) && strings.len() == expected.len());
        for end in [0, 5, payload.len() / 2, payload.len() - 1] {
            assert!(read_value(&payload[..end], |_| Ok::<(), RdbError>(())).is_err(), "{end}");
        }
    }
}

#[test]
fn values_as_commands() {
    let mut all = Vec::new();
    for value in values(2) {
        let done = commands(b"k", &value, &mut |command| {
            let words: Vec<_> = command.words.iter().map(|word| word.escape_ascii().to_string()).collect();
            all.push(words.join(" "));
            Ok::<(), Infallible>(())
        });
        assert_eq!(done, Ok(()));
    }
    let expected = [
        "SET k element 2",
        "RPUSH k element 0 element 1",
        "SADD k element 0 element 1",
        "HSET k element 0 value element 1 value",
        "ZADD k 0 element 0 0.5 element 1",
        "XADD k 5-0 field element 0",
        "XADD k 5-1 field element 1",
        "XSETID k 5-1 ENTRIESADDED 2 MAXDELETEDID 0-0",
        "XGROUP CREATE k group 5-0 ENTRIESREAD 1",
        "XGROUP CREATECONSUMER k group consumer",
        "XCLAIM k group consumer 0 5-0 TIME 70 RETRYCOUNT 2 FORCE JUSTID",
    ];
    assert_eq!(all, expected);
    assert_eq!(expiry_command(b"k", 7).words.join(&b' '), b"PEXPIREAT k 7");
}

#[test]
fn hashes_whose_fields_expire_need_a_newer_format() {
    let mut hash = Hash::default();
    hash.set(b"f", b"v");
    hash.set_expiry(b"f", core::num::NonZeroU64::new(300));
    let value = Value::from(hash);
    assert_eq!(typed(&value, Format::Redis70), None);
    assert_eq!(typed(&value, Format::Redis72), None);
    let bytes = typed(&value, Format::Redis74).unwrap();
    assert_eq!(bytes[0], type_number::EXPIRING_HASH);
    let mut words = Vec::new();
    let done = commands(b"k", &value, &mut |command| {
        words.push(command.words.join(&b' '));
        Ok::<(), Infallible>(())
    });
    assert_eq!(done, Ok(()));
    assert_eq!(words, [&b"HSET k f v"[..], b"HPEXPIREAT k 299 FIELDS 1 f"]);
}

/// Of valkey-server 9.1.2: a hash of which a field expires, and a string.
#[test]
fn what_valkey_9_writes_is_read() {
    let file = b"VALKEY080\xfe\x00\xfb\x02\x00\x16\x01h\x02\x01f\x01v{\xd8\xc3,\xbb\x03\x00\x00\x01g\x01w\xff\xff\xff\xff\xff\xff\xff\xff\
        \x00\x01k\x01v\xff";
    let mut pieces = Vec::new();
    let summary = read_file(&sealed(file.to_vec())[..], |item| {
        if let Item::Piece(_, piece) = item {
            pieces.push(piece.typed);
        }
        Ok::<(), RdbError>(())
    });
    assert_eq!(summary.unwrap().version, 80);
    let Ok(Value::Hash(hash)) = value_of(&pieces[0], 1000) else { panic!("it is a hash") };
    assert_eq!((hash.get(b"f"), hash.get(b"g")), (Some(&b"v"[..]), Some(&b"w"[..])));
    assert_eq!(hash.expiry(b"f").map(u64::from), Some(4_102_444_800_124), "it is gone one millisecond later");
    assert_eq!(hash.expiry(b"g"), None);
    assert_eq!(pieces[1], b"\0\x01v");
    // And what it answers to DUMP.
    let payload = b"\x16\x02\x01f\x01v{\xd8\xc3,\xbb\x03\x00\x00\x01g\x01w\xff\xff\xff\xff\xff\xff\xff\xffP\x00\xec\xe4J\x89\xdb\x95\xf06";
    let mut typed = Vec::new();
    let refused = read_value(&payload[..], |piece| {
        typed = piece.typed;
        Ok::<(), RdbError>(())
    });
    assert!(refused.unwrap().is_none() && typed == pieces[0] && !has_known_version(payload));
    let renewed = with_known_version(b"\0\x01v\x50\0abcdefgh".to_vec()).unwrap();
    assert!(has_known_version(&renewed) && syros_commands::rdb::restore(&renewed).is_ok());
    assert_eq!(with_known_version(b"\0\x01v\x51\0abcdefgh".to_vec()), None);
}
