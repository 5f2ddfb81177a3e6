use super::{InvalidPayload, VERSION_MAX, checksum, dump, restore, type_number};

use syros_values::{Hash, List, ListEnd, Score, Set, SortedSet, Stream, StreamId, Value};

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
        (STREAM, stream().into()),
        ("13000001010000010101000a00cda16212d34bf396", emptied_stream().into()),
    ]
}

/// [`stream`], of which Redis keeps the removed entry.
const STREAM: &str = "130110000000000000000100000000000000014058580000001f000301010102018166028167020001020100010001817602\
                      07010501030100010401817702ded402050100010101dfff020101856f74686572068178020601020104010201846c6173740\
                      5f2701101040501ff03050301010105040205656d707479050304000003677270020081ffffffffffffffff02000000000000\
                      00010000000000000001e8030000000000000300000000000000020000000000000000d007000000000000010305616c69636\
                      518379b1ca2010000010000000000000001000000000000000103626f6218379b1ca201000001000000000000000200000000\
                      000000000469646c6518379b1ca2010000000a005326cbd8a897e62f";

/// A stream with an entry that was removed, and two groups: one of three consumers, two of which have an entry each.
fn stream() -> Stream {
    let mut stream = Stream::default();
    let entries: [(u64, u64, &[&[u8]]); 4] = [
        (1, 1, &[b"f", b"v", b"g", b"7"]),
        (1, 5, &[b"f", b"w", b"g", b"-300"]),
        (2, 0, &[b"other", b"x"]),
        (5, 3, &[b"f", b"last", b"g", b"70000"]),
    ];
    for (ms, sequence, strings) in entries {
        stream.append(StreamId::new(ms, sequence), strings.len(), strings.iter().copied());
    }
    stream.remove(StreamId::new(1, 5));
    stream.create_group(b"empty", StreamId::new(5, 3), Some(4));
    stream.create_group(b"grp", StreamId::new(2, 0), None);
    let group = stream.group(b"grp").expect("it was created");
    for (name, pending) in [
        (&b"alice"[..], Some((StreamId::new(1, 1), (1_000, 3)))),
        (b"bob", Some((StreamId::new(2, 0), (2_000, 1)))),
        (b"idle", None),
    ] {
        let seen_ms = 1_795_776_263_960;
        let mut consumer = stream.see_consumer(&group, name, seen_ms);
        consumer.active_ms = Some(seen_ms);
        stream.set_consumer(&group, name, &consumer);
        if let Some((id, delivery)) = pending {
            stream.deliver(&group, id, &consumer, delivery);
        }
    }
    stream
}

fn emptied_stream() -> Stream {
    let mut stream = Stream::default();
    stream.append(StreamId::new(1, 1), 2, [&b"f"[..], b"v"].into_iter());
    stream.remove(StreamId::new(1, 1));
    stream
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
        // Modules, and a stream without numbers.
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

/// What [`stream`] is without its groups, but for the type's number.
const ENTRIES: &str = "0110000000000000000100000000000000014058580000001f0003010101020181660281670200010201000100018176020701\
                       0501030100010401817702ded402050100010101dfff020101856f74686572068178020601020104010201846c61737405f270\
                       1101040501ff030503";

/// A group of one consumer that has the entry 1-1: the type's number decides what else is said.
fn group(entries_read: &[u8], active: &[u8]) -> Vec<u8> {
    let id = StreamId::new(1, 1).to_bytes();
    let (delivered, seen) = (5u64.to_le_bytes(), 9u64.to_le_bytes());
    let pending = [&[1][..], &id, &delivered, &[2]].concat();
    let consumer = [&[1, 1, b'c'][..], &seen, active, &[1], &id].concat();
    [&[1, 1, b'g', 1, 1][..], entries_read, &pending, &consumer].concat()
}

#[test]
fn streams_of_other_versions_are_restored() {
    let mut expected = stream();
    expected.destroy_group(b"grp");
    expected.destroy_group(b"empty");
    let with_group = |mut stream: Stream, entries_read, active_ms| {
        stream.create_group(b"g", StreamId::new(1, 1), entries_read);
        let group = stream.group(b"g").expect("it was created");
        let mut consumer = stream.see_consumer(&group, b"c", 9);
        consumer.active_ms = active_ms;
        stream.set_consumer(&group, b"c", &consumer);
        stream.deliver(&group, StreamId::new(1, 1), &consumer, (5, 2));
        stream
    };
    let questions = |stream: &Stream| {
        let dumped = dump(&stream.clone().into(), usize::MAX).expect("it is short");
        (
            stream.entries_added(),
            stream.max_deleted_id(),
            stream.group(b"g").map(|group| group.entries_read),
            dumped,
        )
    };
    let restored = |typed: &[u8]| match restore(&payload(typed)) {
        Ok(Value::Stream(stream)) => stream,
        other => panic!("{other:?}"),
    };
    let counters = [1, 1, 1, 5, 4];
    let activity = [&[21][..], &bytes(ENTRIES), &counters, &group(&[1], &7u64.to_le_bytes())].concat();
    let stream = with_group(expected.clone(), Some(1), Some(7));
    assert_eq!(questions(&restored(&activity)), questions(&stream));
    let dumped = dump(&stream.into(), usize::MAX).expect("it is short");
    assert_eq!((dumped[0], &dumped[dumped.len() - 10..][..2]), (21, &11u16.to_le_bytes()[..]));
    let never = [&[21][..], &bytes(ENTRIES), &counters, &group(&[1], &[0xff; 8])].concat();
    assert_eq!(questions(&restored(&never)), questions(&with_group(expected.clone(), Some(1), None)));
    // What Redis 5 and 6 did not know is what Redis 7 makes of their payloads.
    let oldest = [&[15][..], &bytes(ENTRIES), &group(&[], &[])].concat();
    expected.set_counters(StreamId::new(5, 3), Some(3), Some(StreamId::MIN));
    assert_eq!(questions(&restored(&oldest)), questions(&with_group(expected, Some(1), Some(9))));
}

#[test]
fn what_is_no_stream_is_refused() {
    let counters = [1, 1, 1, 5, 4];
    let typed =
        |entries: &[u8], counters: &[u8], groups: &[u8]| [&[19][..], entries, counters, groups].concat();
    let entries = bytes(ENTRIES);
    assert!(restore(&payload(&typed(&entries, &counters, &group(&[1], &[])))).is_ok());
    let changed = |place: usize, byte: u8| {
        let mut changed = entries.clone();
        assert_ne!(changed[place], byte);
        changed[place] = byte;
        typed(&changed, &counters, &[0])
    };
    for (place, byte) in [
        // The lengths of the id and of the listpack, how many entries are there and were removed, how many fields there are.
        (1, 0x0f),
        (19, 0x57),
        (26, 2),
        (28, 0),
        (30, 1),
        // The end of the first fields, flags that are none, an id of an earlier entry, how many elements an entry has.
        (38, 1),
        (40, 4),
        (61, 0),
        (50, 6),
        // How many entries there are, and the last id, which is before an entry.
        (106, 4),
        (107, 4),
    ] {
        assert_refused(&changed(place, byte));
    }
    // Nobody has read so many entries, or added so many.
    let most = [&[0x81, 0x80][..], &[0; 7]].concat();
    assert_refused(&typed(&entries, &[&[1, 1, 1, 5][..], &most].concat(), &[0]));
    assert_refused(&typed(&entries, &counters, &group(&most, &[])));
    // A group twice, a consumer's entry that is not pending, and one that is pending nowhere.
    let one = group(&[1], &[]);
    assert_refused(&typed(&entries, &counters, &[&[2][..], &one[1..], &one[1..]].concat()));
    let (mut unknown, mut unowned) = (one.clone(), one);
    let last = unknown.len() - 1;
    unknown[last] = 2;
    assert_refused(&typed(&entries, &counters, &unknown));
    unowned.truncate(last - 16);
    unowned.push(0);
    assert_refused(&typed(&entries, &counters, &unowned));
}

/// Fields that many entries share are there once in a payload, and in each entry of what is made of it.
#[test]
fn shared_fields_do_not_fill_the_memory() {
    let mut packer = super::listpack::Packer::new();
    let field = vec![b'f'; 1 << 20];
    let entries = 1_000;
    [entries, 0, 1].into_iter().for_each(|number| packer.integer(number));
    packer.string(&field);
    packer.integer(0);
    for number in 0..entries {
        [2, 0, number, 0, 4].into_iter().for_each(|number| packer.integer(number));
    }
    let packed = packer.finish();
    let length = [&[0x80][..], &(packed.len() as u32).to_be_bytes()].concat();
    let id = StreamId::new(1, 1).to_bytes();
    let typed = [&[15, 1, 16][..], &id, &length, &packed, &[0x43, 0xe8, 1, 0x43, 0xe8, 0]].concat();
    assert_refused(&typed);
}

#[test]
fn integers_are_packed_as_they_are_read() {
    let mut numbers = vec![0, 0x7f, -1, i64::MIN, i64::MAX];
    for bits in 7..63 {
        numbers.extend([1, -1].iter().flat_map(|sign| [-1, 0, 1].map(|near| sign * (1_i64 << bits) + near)));
    }
    let lengths = [0, 1, 0x3f, 0x40, 0xfff, 0x1000, 0x3ffa, 0x3ffb, 0x3ffc, 0x1f_fff9, 0x1f_fffa, 0x1f_fffb];
    let mut packer = super::listpack::Packer::new();
    numbers.iter().for_each(|number| packer.integer(*number));
    lengths.iter().for_each(|length| packer.string(&vec![b'x'; *length]));
    let packed = packer.finish();
    let elements = super::listpack::elements(&packed).expect("a listpack");
    assert_eq!(elements.len(), numbers.len() + lengths.len());
    for (number, element) in numbers.iter().zip(&elements) {
        assert_eq!(*element, super::containers::Element::Integer(*number));
    }
    for (length, element) in lengths.iter().zip(&elements[numbers.len()..]) {
        assert_eq!(element.bytes().len(), *length);
    }
}
