//! Streams: their entries in listpacks, numbers, and consumer groups.
//!
//! A listpack of entries begins with how many of them are there and how many were removed, and the fields of the first one.
//! An entry is its flags, the difference of its id from that of the listpack, its fields and values, or its values alone if
//! its fields are those of the first entry, and how many elements that were.

use super::containers::Element;
use super::input::Input;
use super::listpack::{self, Packer};
use super::output::Output;
use super::{InvalidPayload, type_number};
use std::borrow::Cow;
use std::collections::BTreeMap;
use syros_types::limits::BODY_BYTES_MAX;
use syros_values::{Fields, Stream, StreamId, Value};

/// What is said of an entry.
mod flag {
    pub(super) const DELETED: i64 = 1;
    pub(super) const SAME_FIELDS: i64 = 2;
}

/// Elements of an entry besides its fields and values, and the one that counts them: flags, and two differences.
const ENTRY_HEAD: usize = 3;

/// At most as many entries are in a listpack, and as many bytes but for those of the last one: Redis's defaults.
const PACKED_ENTRIES_MAX: usize = 100;
const PACKED_BYTES_MAX: usize = 4096;

/// What Redis writes where it does not know how many entries a group has read, and where a consumer never got anything.
const UNKNOWN: u64 = u64::MAX;

type Bytes<'a> = Cow<'a, [u8]>;

/// Takes a stream of one of the types that streams have.
pub(super) fn take(input: &mut Input<'_>, number: u8) -> Result<Value, InvalidPayload> {
    let mut stream = Stream::default();
    for _ in 0..input.take_length()? {
        let id = input.take_string()?;
        let first = StreamId::from_bytes(id.as_ref().try_into().map_err(|_| InvalidPayload::Format)?);
        let packed = input.take_string()?;
        let mut elements = Elements { rest: &listpack::elements(&packed)? };
        elements.append_to(&mut stream, first, input)?;
    }
    if input.take_length()? != stream.len() {
        return Err(InvalidPayload::Format);
    }
    let last = take_id(input)?;
    if last < stream.last_id() {
        return Err(InvalidPayload::Format);
    }
    let has_counters = number != type_number::STREAM;
    if has_counters {
        // That of the first entry follows from the entries.
        take_id(input)?;
        let max_deleted = take_id(input)?;
        stream.set_counters(last, Some(take_number(input)?), Some(max_deleted));
    } else {
        stream.set_counters(last, None, None);
    }
    let groups = input.take_length()?;
    let groups = (0..groups).map(|_| Group::take(input, number)).collect::<Result<Vec<_>, _>>()?;
    for (name, group) in by_name(groups)? {
        let entries_read = if has_counters { group.entries_read } else { stream.entries_up_to(group.last) };
        group.create_in(&mut stream, &name, entries_read)?;
    }
    Ok(stream.into())
}

/// What has names, in their order, whatever order it was in; none twice.
fn by_name<T>(named: Vec<(Bytes<'_>, T)>) -> Result<BTreeMap<Bytes<'_>, T>, InvalidPayload> {
    let count = named.len();
    let ordered: BTreeMap<_, _> = named.into_iter().collect();
    if ordered.len() == count { Ok(ordered) } else { Err(InvalidPayload::Format) }
}

/// A number that Redis has in 64 bits with a sign.
fn take_number(input: &mut Input<'_>) -> Result<u64, InvalidPayload> {
    positive(input.take_length()?)
}

fn positive(number: u64) -> Result<u64, InvalidPayload> {
    if i64::try_from(number).is_ok() { Ok(number) } else { Err(InvalidPayload::Format) }
}

fn take_time(input: &mut Input<'_>) -> Result<u64, InvalidPayload> {
    positive(u64::from_le_bytes(input.take_array()?))
}

fn take_id(input: &mut Input<'_>) -> Result<StreamId, InvalidPayload> {
    Ok(StreamId::new(input.take_length()?, input.take_length()?))
}

fn take_raw_id(input: &mut Input<'_>) -> Result<StreamId, InvalidPayload> {
    input.take_array().map(StreamId::from_bytes)
}

/// What is left of the elements of a listpack.
struct Elements<'e, 'a> {
    rest: &'e [Element<'a>],
}

impl<'e, 'a> Elements<'e, 'a> {
    fn take(&mut self, count: usize) -> Result<&'e [Element<'a>], InvalidPayload> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(InvalidPayload::Format)?;
        self.rest = rest;
        Ok(taken)
    }

    fn take_integer(&mut self) -> Result<i64, InvalidPayload> {
        match self.take(1)? {
            [Element::Integer(number)] => Ok(*number),
            _ => Err(InvalidPayload::Format),
        }
    }

    fn take_count(&mut self) -> Result<usize, InvalidPayload> {
        usize::try_from(self.take_integer()?).map_err(|_| InvalidPayload::Format)
    }

    /// Appends the entries of a listpack to a stream.
    fn append_to(
        &mut self,
        stream: &mut Stream,
        first: StreamId,
        input: &mut Input<'_>,
    ) -> Result<(), InvalidPayload> {
        let (mut present, mut deleted) = (self.take_count()?, self.take_count()?);
        let count = self.take_count()?;
        let common = self.take(count)?;
        if self.take_integer()? != 0 {
            return Err(InvalidPayload::Format);
        }
        while !self.rest.is_empty() {
            let before = self.rest.len();
            let flags = self.take_integer()?;
            let (ms, sequence) = (self.take_integer()?, self.take_integer()?);
            let id = StreamId::new(
                first.ms().wrapping_add_signed(ms),
                first.sequence().wrapping_add_signed(sequence),
            );
            let strings: Vec<Bytes<'a>> = match flags & !flag::DELETED {
                flag::SAME_FIELDS => {
                    let values = self.take(common.len())?;
                    let each = common.iter().zip(values);
                    let strings: Vec<_> =
                        each.flat_map(|(field, value)| [field.bytes(), value.bytes()]).collect();
                    // The payload has the fields once, and what is made of it has them in each entry.
                    let fields = strings.iter().step_by(2);
                    input.expand(fields.map(|field| field.len() + STRING_HEAD).sum())?;
                    strings
                }
                0 => {
                    let count = self.take_count()?;
                    let strings = self.take(count.checked_mul(2).ok_or(InvalidPayload::Format)?)?;
                    strings.iter().map(|string| string.bytes()).collect()
                }
                _ => return Err(InvalidPayload::Format),
            };
            let taken = before - self.rest.len();
            let bytes: usize = strings.iter().map(|string| string.len() + STRING_HEAD).sum();
            if self.take_count()? != taken || strings.is_empty() || bytes + STRING_HEAD > BODY_BYTES_MAX {
                return Err(InvalidPayload::Format);
            }
            let left = if flags & flag::DELETED == 0 { &mut present } else { &mut deleted };
            *left = left.checked_sub(1).ok_or(InvalidPayload::Format)?;
            if flags & flag::DELETED != 0 {
                continue;
            }
            if id <= stream.last_id() {
                return Err(InvalidPayload::Format);
            }
            stream.append(id, strings.len(), strings.iter().map(AsRef::as_ref));
        }
        if (present, deleted) == (0, 0) { Ok(()) } else { Err(InvalidPayload::Format) }
    }
}

/// The most bytes that stand in front of a string of an entry.
const STRING_HEAD: usize = 5;

/// A consumer group, as it is read.
struct Group<'a> {
    last: StreamId,
    entries_read: Option<u64>,
    /// What is pending: when it was delivered last, and how often.
    pending: BTreeMap<StreamId, (u64, u64)>,
    consumers: Vec<(Bytes<'a>, Consumer)>,
}

/// A consumer, as it is read.
struct Consumer {
    seen_ms: u64,
    active_ms: Option<u64>,
    owned: Vec<StreamId>,
}

impl<'a> Group<'a> {
    fn take(input: &mut Input<'a>, number: u8) -> Result<(Bytes<'a>, Self), InvalidPayload> {
        let (name, last) = (input.take_string()?, take_id(input)?);
        let entries_read = match number {
            type_number::STREAM => None,
            _ => match input.take_length()? {
                UNKNOWN => None,
                read => Some(positive(read)?),
            },
        };
        let mut pending = BTreeMap::new();
        for _ in 0..input.take_length()? {
            let id = take_raw_id(input)?;
            let delivery = (take_time(input)?, take_number(input)?);
            if pending.insert(id, delivery).is_some() {
                return Err(InvalidPayload::Format);
            }
        }
        let mut consumers = Vec::new();
        for _ in 0..input.take_length()? {
            let (name, seen_ms) = (input.take_string()?, take_time(input)?);
            let active_ms = match number {
                type_number::STREAM_WITH_ACTIVITY => match u64::from_le_bytes(input.take_array()?) {
                    UNKNOWN => None,
                    active_ms => Some(positive(active_ms)?),
                },
                // Nothing better is known.
                _ => Some(seen_ms),
            };
            let count = input.take_length()?;
            let owned = (0..count).map(|_| take_raw_id(input)).collect::<Result<_, _>>()?;
            consumers.push((name, Consumer { seen_ms, active_ms, owned }));
        }
        Ok((name, Self { last, entries_read, pending, consumers }))
    }

    /// Creates it in a stream. What is pending has to be so at one consumer.
    fn create_in(
        self,
        stream: &mut Stream,
        name: &[u8],
        entries_read: Option<u64>,
    ) -> Result<(), InvalidPayload> {
        let Self { last, entries_read: _, mut pending, consumers } = self;
        stream.create_group(name, last, entries_read);
        let group = stream.group(name).ok_or(InvalidPayload::Format)?;
        for (name, Consumer { seen_ms, active_ms, owned }) in by_name(consumers)? {
            let mut consumer = stream.see_consumer(&group, &name, seen_ms);
            consumer.active_ms = active_ms;
            stream.set_consumer(&group, &name, &consumer);
            for id in owned {
                let delivery = pending.remove(&id).ok_or(InvalidPayload::Format)?;
                stream.deliver(&group, id, &consumer, delivery);
            }
        }
        if pending.is_empty() { Ok(()) } else { Err(InvalidPayload::Format) }
    }
}

/// The type of a stream: the oldest one that has all there is to be said of it.
pub(super) fn type_of(stream: &Stream) -> u8 {
    let mut groups = stream.groups();
    let is_implied = groups.all(|(_, group)| {
        stream.consumers(&group).all(|(_, consumer)| consumer.active_ms == Some(consumer.seen_ms))
    });
    if is_implied { type_number::STREAM_WITH_COUNTERS } else { type_number::STREAM_WITH_ACTIVITY }
}

/// Appends a type's number and the stream as this type; `None` if there is too much.
pub(super) fn put(out: &mut Output, stream: &Stream, number: u8) -> Option<()> {
    let nodes = nodes(stream, out.bytes_max)?;
    out.put_head(number, nodes.len() as u64);
    for (first, packed) in nodes {
        out.put_string(&first.to_bytes())?;
        out.put_string(&packed)?;
    }
    out.put_number(stream.len());
    for id in [stream.last_id(), stream.first_id(), stream.max_deleted_id()] {
        put_id(out, id);
    }
    out.put_number(stream.entries_added());
    out.put_number(stream.groups_len());
    for (name, group) in stream.groups() {
        out.put_string(name)?;
        put_id(out, group.last);
        out.put_number(group.entries_read.unwrap_or(UNKNOWN));
        out.put_number(stream.pending_len(&group));
        for (id, pending) in stream.pending_from(&group, StreamId::MIN, StreamId::MAX) {
            out.put_raw(&id.to_bytes())?;
            out.put_raw(&pending.delivered_ms.to_le_bytes())?;
            out.put_number(pending.deliveries);
        }
        out.put_number(stream.consumers_len(&group));
        for (name, consumer) in stream.consumers(&group) {
            out.put_string(name)?;
            out.put_raw(&consumer.seen_ms.to_le_bytes())?;
            if number == type_number::STREAM_WITH_ACTIVITY {
                out.put_raw(&consumer.active_ms.unwrap_or(UNKNOWN).to_le_bytes())?;
            }
            out.put_number(stream.owned_len(&group, &consumer));
            stream.owned(&group, &consumer, StreamId::MIN).try_for_each(|id| out.put_raw(&id.to_bytes()))?;
        }
    }
    Some(())
}

fn put_id(out: &mut Output, id: StreamId) {
    out.put_number(id.ms());
    out.put_number(id.sequence());
}

/// The entries of a stream in listpacks, each with the id of its first one; `None` if they have more bytes together.
fn nodes(stream: &Stream, bytes_max: usize) -> Option<Vec<(StreamId, Vec<u8>)>> {
    let mut nodes = Vec::new();
    let (mut entries, mut bytes) = (stream.range(StreamId::MIN, StreamId::MAX).peekable(), 0);
    while entries.peek().is_some() {
        let mut node: Vec<(StreamId, Fields<'_>)> = Vec::new();
        let mut length = 0;
        while node.len() < PACKED_ENTRIES_MAX
            && length < PACKED_BYTES_MAX
            && let Some((id, fields)) = entries.next()
        {
            length += fields.bytes();
            node.push((id, fields));
        }
        let packed = packed(&node);
        bytes += packed.len();
        if bytes > bytes_max {
            return None;
        }
        nodes.push((node[0].0, packed));
    }
    Some(nodes)
}

/// The listpack of some entries.
fn packed(entries: &[(StreamId, Fields<'_>)]) -> Vec<u8> {
    let (first, fields) = entries[0];
    let common: Vec<&[u8]> = fields.step_by(2).collect();
    let mut packer = Packer::new();
    packer.integer(entries.len() as i64);
    packer.integer(0);
    packer.integer(common.len() as i64);
    common.iter().for_each(|field| packer.string(field));
    packer.integer(0);
    for (id, fields) in entries {
        let has_same = fields.step_by(2).eq(common.iter().copied());
        packer.integer(if has_same { flag::SAME_FIELDS } else { 0 });
        packer.integer(id.ms().wrapping_sub(first.ms()).cast_signed());
        packer.integer(id.sequence().wrapping_sub(first.sequence()).cast_signed());
        let strings = fields.len();
        let elements = if has_same {
            fields.skip(1).step_by(2).for_each(|value| packer.string(value));
            ENTRY_HEAD + strings / 2
        } else {
            packer.integer((strings / 2) as i64);
            fields.for_each(|string| packer.string(string));
            ENTRY_HEAD + 1 + strings
        };
        packer.integer(elements as i64);
    }
    packer.finish()
}
