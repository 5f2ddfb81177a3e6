//! Streams against a model that is as simple as can be, and the bytes that they are written as.

mod common;

use common::{decoded, encoded};
use std::collections::BTreeMap;
use syros_types::Prng;
use syros_values::{Garbage, InvalidValue, Stream, StreamId, Value, ValueBuilder, ValueParts};

type Id = (u64, u64);

/// A group as simple as can be.
#[derive(Clone, Debug, Default)]
struct ModelGroup {
    last: Id,
    consumers: BTreeMap<Vec<u8>, u64>,
    /// By id: the consumer, when it was delivered, and how often.
    pending: BTreeMap<Id, (Vec<u8>, u64, u64)>,
}

#[derive(Clone, Debug, Default)]
struct Model {
    entries: BTreeMap<Id, Vec<Vec<u8>>>,
    last: Id,
    max_deleted: Id,
    added: u64,
    groups: BTreeMap<Vec<u8>, ModelGroup>,
}

fn id((ms, sequence): Id) -> StreamId {
    StreamId::new(ms, sequence)
}

fn plain(id: StreamId) -> Id {
    (id.ms(), id.sequence())
}

fn assert_equal(stream: &Stream, model: &Model, context: &str) {
    let entries: Vec<(Id, Vec<Vec<u8>>)> = stream
        .range(StreamId::MIN, StreamId::MAX)
        .map(|(id, fields)| (plain(id), fields.map(<[u8]>::to_vec).collect()))
        .collect();
    let expected: Vec<_> = model.entries.iter().map(|(id, fields)| (*id, fields.clone())).collect();
    assert_eq!(entries, expected, "{context}");
    let counters = (plain(stream.last_id()), plain(stream.max_deleted_id()), stream.entries_added());
    assert_eq!(counters, (model.last, model.max_deleted, model.added), "{context}");
    assert_eq!(stream.groups_len(), model.groups.len() as u64);
    for ((name, group), (expected_name, expected)) in stream.groups().zip(&model.groups) {
        assert_eq!((name, plain(group.last)), (&expected_name[..], expected.last), "{context}");
        let consumers: Vec<(Vec<u8>, u64)> =
            stream.consumers(&group).map(|(name, consumer)| (name.to_vec(), consumer.seen_ms)).collect();
        assert_eq!(consumers, expected.consumers.clone().into_iter().collect::<Vec<_>>(), "{context}");
        let pending: Vec<_> = stream
            .pending_from(&group, StreamId::MIN, StreamId::MAX)
            .map(|(id, pending)| {
                let owner = stream.owner(&group, &pending).to_vec();
                (plain(id), (owner, pending.delivered_ms, pending.deliveries))
            })
            .collect();
        assert_eq!(pending, expected.pending.clone().into_iter().collect::<Vec<_>>(), "{context}");
        assert_eq!(stream.pending_len(&group), pending.len() as u64);
        for (name, consumer) in stream.consumers(&group) {
            let owned: Vec<Id> = stream.owned(&group, &consumer, StreamId::MIN).map(plain).collect();
            let of_model = expected.pending.iter().filter(|(_, (owner, ..))| owner == name);
            assert_eq!(owned, of_model.map(|(id, _)| *id).collect::<Vec<_>>(), "{context}");
            assert_eq!(stream.owned_len(&group, &consumer), owned.len() as u64);
        }
    }
}

fn name(prng: &mut Prng) -> Vec<u8> {
    [&b""[..], b"\0", b"\0\0", b"a", b"a\xff", b"\xff\xff", b"b"][prng.below(7) as usize].to_vec()
}

/// One random change of both.
fn change(stream: &mut Stream, model: &mut Model, prng: &mut Prng) {
    let some_id = |prng: &mut Prng, model: &Model| (prng.below(model.last.0 + 2), prng.below(3));
    match prng.below(14) {
        0..5 => {
            let new =
                if prng.chance(1, 2) { (model.last.0, model.last.1 + 1) } else { (model.last.0 + 1, 0) };
            let strings: Vec<Vec<u8>> =
                (0..2 + 2 * prng.below(2)).map(|_| vec![b'x'; prng.below(60) as usize]).collect();
            stream.append(id(new), strings.len(), strings.iter().map(Vec::as_slice));
            model.entries.insert(new, strings);
            (model.last, model.added) = (new, model.added + 1);
        }
        5 => {
            let gone = some_id(prng, model);
            let existed = model.entries.remove(&gone).is_some();
            assert_eq!(stream.remove(id(gone)), existed);
            if existed {
                model.max_deleted = model.max_deleted.max(gone);
            }
        }
        6 if prng.chance(1, 4) => {
            let count = prng.below(model.entries.len() as u64 + 1);
            stream.trim(count);
            (0..count).for_each(|_| drop(model.entries.pop_first()));
        }
        7 => {
            let (name, last) = (name(prng), some_id(prng, model));
            let is_new = !model.groups.contains_key(&name);
            assert_eq!(stream.create_group(&name, id(last), None), is_new);
            model.groups.entry(name).or_insert_with(|| ModelGroup { last, ..ModelGroup::default() });
        }
        8 if prng.chance(1, 8) => {
            let name = name(prng);
            assert_eq!(stream.destroy_group(&name), model.groups.remove(&name).is_some());
        }
        _ => change_group(stream, model, prng),
    }
}

/// One random change of a group, if there is one of that name.
fn change_group(stream: &mut Stream, model: &mut Model, prng: &mut Prng) {
    let (group_name, consumer_name, now) = (name(prng), name(prng), prng.below(1000));
    let pending = (prng.below(model.last.0 + 2), prng.below(3));
    let (Some(group), Some(model)) = (stream.group(&group_name), model.groups.get_mut(&group_name)) else {
        return;
    };
    match prng.below(8) {
        0 => {
            let owned = model.pending.values().filter(|(owner, ..)| *owner == consumer_name).count() as u64;
            let existed = model.consumers.remove(&consumer_name).is_some();
            assert_eq!(stream.delete_consumer(&group, &consumer_name), existed.then_some(owned));
            model.pending.retain(|_, (owner, ..)| *owner != consumer_name);
        }
        1..4 => assert_eq!(stream.settle(&group, id(pending)), model.pending.remove(&pending).is_some()),
        _ => {
            let consumer = stream.see_consumer(&group, &consumer_name, now);
            stream.deliver(&group, id(pending), &consumer, (now, 7));
            model.consumers.insert(consumer_name.clone(), now);
            model.pending.insert(pending, (consumer_name, now, 7));
        }
    }
}

#[test]
fn streams_do_what_the_model_does() {
    for seed in 0..40 {
        let mut prng = Prng::new(seed);
        let (mut stream, mut model) = (Stream::default(), Model::default());
        assert!(stream.is_untouched());
        let mut kept: Vec<(Stream, Model)> = Vec::new();
        for step in 0..600 {
            let context = format!("seed {seed}, step {step}");
            change(&mut stream, &mut model, &mut prng);
            if prng.chance(1, 30) {
                assert_equal(&stream, &model, &context);
                kept.push((stream.clone(), model.clone()));
                stream = written_and_read(&stream, &context);
                assert_equal(&stream, &model, &context);
            }
        }
        for (stream, model) in kept {
            assert_equal(&stream, &model, "a clone");
            let mut garbage = Garbage::default();
            garbage.add(stream.into());
            while garbage.step(3) {}
        }
    }
}

/// What is read of what was written is the same in all that it says of itself, and it is written in parts as at once.
fn written_and_read(stream: &Stream, context: &str) -> Stream {
    let value = Value::from(stream.clone());
    let bytes = encoded(&value);
    let Ok(Value::Stream(again)) = decoded(&bytes) else { panic!("{context}: {:?}", decoded(&bytes)) };
    assert_eq!(&again, stream, "{context}");
    assert_eq!(
        (again.fingerprint(), again.element_bytes()),
        (stream.fingerprint(), stream.element_bytes()),
        "{context}"
    );
    assert_eq!(encoded(&again.into()), bytes, "{context}");
    let mut parts = ValueParts::of(&value).expect("a stream has parts");
    let mut written = Vec::new();
    parts.put_head(&mut written);
    let mut builder = ValueBuilder::take_head(&mut &written[..]).expect("a head");
    while !parts.is_complete() {
        assert_eq!((builder.rank(), builder.is_complete()), (parts.rank(), false), "{context}");
        let mut part = Vec::new();
        parts.put_part(100, &mut part);
        builder.part(&part).expect("a part");
        written.extend_from_slice(&part);
    }
    assert!(
        builder.is_complete() && written == bytes && parts.fingerprint() == stream.fingerprint(),
        "{context}"
    );
    let Value::Stream(again) = builder.finish() else { panic!("{context}") };
    again
}

/// A stream of one entry with a group, a consumer and what is pending there.
fn small() -> Stream {
    let mut stream = Stream::default();
    stream.append(StreamId::new(5, 1), 2, [&b"f"[..], b"v"].into_iter());
    stream.create_group(b"g", StreamId::new(5, 1), Some(1));
    let group = stream.group(b"g").expect("it was created");
    let consumer = stream.see_consumer(&group, b"c", 300);
    stream.deliver(&group, StreamId::new(5, 1), &consumer, (300, 2));
    stream
}

fn small_bytes() -> Vec<u8> {
    let entry_id = [0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 1];
    let mut bytes = vec![5, 2, 5];
    // Its numbers: the last id, none that was deleted, one entry that was added, two numbers, one entry.
    bytes.extend([&[35][..], &entry_id, &[0; 16], &[1, 2, 1]].concat());
    bytes.extend([&[16][..], &entry_id, &[5, 2, 1, b'f', 1, b'v']].concat());
    bytes.extend([&[2, 0, b'g', 18, 1][..], &entry_id, &[2]].concat());
    bytes.extend([4, 1, 1, 1, b'c', 4, 2, 0xac, 2, 0]);
    bytes.extend([&[19, 1, 1, 2][..], &entry_id, &[4, 2, 0xac, 2, 2]].concat());
    bytes
}

#[test]
fn streams_have_golden_bytes() {
    assert_eq!(encoded(&small().into()), small_bytes());
    let mut empty = Stream::default();
    empty.trim(0);
    assert!(!empty.is_untouched(), "a key may have it");
    let mut expected = vec![5, 2, 1, 35];
    expected.extend([0; 35]);
    assert_eq!(encoded(&empty.into()), expected);
}

#[test]
fn bytes_that_are_no_stream_are_refused() {
    use InvalidValue as I;
    let bytes = small_bytes();
    let changed = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        decoded(&bytes).map(|_| ())
    };
    assert_eq!(changed(1, 1), Err(I::Form(1)), "a stream is never packed");
    assert_eq!(changed(2, 0), Err(I::Count(0)));
    assert_eq!(changed(2, 1), Err(I::Count(1)), "there are more entries than elements");
    let last = bytes.len() - 1;
    assert_eq!(changed(last - 3, 1), Err(I::Record), "no consumer has this number");
    let name = bytes.iter().position(|byte| *byte == b'c').expect("the name of the consumer");
    assert_eq!(changed(name - 2, 2), Err(I::Record), "no group has this number");
    assert_eq!(changed(name + 2, 3), Err(I::Record), "the number was not given yet");
    let id = 3 + 36;
    assert_eq!(changed(id + 8, 6), Err(I::Order), "an entry behind the last one");
    assert_eq!(changed(id + 18, 1), Err(I::Count(1)), "a field without a value");
    for length in 0..bytes.len() {
        assert!(Value::take(&mut &bytes[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn what_is_left_to_be_read_is_told_where_it_can_be() {
    let mut stream = Stream::default();
    for sequence in 1..=10 {
        stream.append(StreamId::new(1, sequence), 2, [&b"f"[..], b"v"].into_iter());
    }
    let at = |sequence| StreamId::new(1, sequence);
    assert_eq!([at(0), at(1), at(10)].map(|id| stream.entries_up_to(id)), [Some(0), Some(1), Some(10)]);
    assert_eq!((stream.entries_up_to(at(5)), stream.entries_up_to(at(11))), (None, None));
    stream.create_group(b"g", at(4), Some(4));
    let group = stream.group(b"g").expect("it was created");
    assert_eq!(stream.lag(&group), Some(6));
    let next = stream.advanced(&group, at(5));
    assert_eq!((next.entries_read, stream.lag(&next)), (Some(5), Some(5)));
    stream.remove(at(7));
    assert_eq!(stream.lag(&group), None, "there is a gap ahead");
    assert_eq!(stream.advanced(&group, at(8)).entries_read, Some(5), "and none behind it");
    stream.trim(7);
    assert_eq!(stream.lag(&group), Some(6), "the gap is before all entries");
}
