//! XREADGROUP.

use super::now::Now;
use super::sources::{GroupStarts, Start, parse_words};
use super::{ENTRY_HEAD_BYTES, FAST_UPDATE, notify_consumer, put_entry, put_no_key_or_group, stream_of};
use crate::access::{KeyEvent, KeysMut};
use crate::arguments::Arguments;
use crate::encoding::{Encoding, Field as _, Flag, List, Opcode, Unsigned, Value};
use crate::error::CommandError;
use crate::families::counts::OptionalCount;
use crate::families::definition::{COLLECTION_WORK, Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::elements::LOOKUP_WORK;
use crate::families::indirect::Indirect;
use crate::families::specification::{CommandSpec, KeyPositions, KeyWord, KeysBehind};
use crate::limits::UPDATE_REPLY_BYTES_MAX;
use crate::primitive::Malformed;
use crate::reply::{put_array, put_bulk, put_keyed, put_nil_array};
use crate::words::Words;
use syros_types::limits::KEYS_PER_OPERATION_MAX;
use syros_values::{Consumer, Fields, Stream, StreamId};

/// XREADGROUP: delivers entries of each stream to a consumer of a group and answers them; or answers what is pending at it.
///
/// Of very many or very long entries it delivers as many as an update may answer, and at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XReadGroupParts<'a> {
    /// The group, which each stream has to have.
    pub group: &'a [u8],
    /// The consumer, which need not exist.
    pub consumer: &'a [u8],
    /// The keys.
    pub keys: Arguments<'a>,
    /// As many ids, as they were written.
    pub starts: Arguments<'a>,
    /// How many entries of each stream are answered at most; 0 is no limit.
    pub count: u64,
    /// BLOCK: how long the client waits if there are none, in milliseconds; 0 is for ever. Executing it does not wait.
    pub block_ms: Option<u64>,
    /// NOACK: what is delivered does not become pending.
    pub no_ack: bool,
    /// See [`Operation::now_mut`](crate::Operation::now_mut).
    pub now_ms: u64,
}

/// The same, read again where it is needed.
pub type XReadGroup<'a> = Indirect<'a, XReadGroupParts<'a>>;

impl<'a> Encoding<'a> for XReadGroupParts<'a> {
    const OPCODE: Opcode = 87;

    fn encode(&self, out: &mut Vec<u8>) {
        Value::put(out, self.group);
        Value::put(out, self.consumer);
        Flag::put(out, self.no_ack);
        Now::put(out, self.now_ms);
        Unsigned::put(out, self.count);
        OptionalCount::put(out, self.block_ms);
        List::<1>::put(out, self.keys);
        GroupStarts::put(out, self.starts);
    }

    fn decode(_: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let (group, consumer) = (Value::take(input)?, Value::take(input)?);
        let (no_ack, now_ms) = (Flag::take(input)?, Now::take(input)?);
        let (count, block_ms) = (Unsigned::take(input)?, OptionalCount::take(input)?);
        let (keys, starts) = (List::<1>::take(input)?, GroupStarts::take(input)?);
        if starts.len() != keys.len() {
            return Err(Malformed::Count(starts.len() as u64));
        }
        Ok(Self { group, consumer, keys, starts, count, block_ms, no_ack, now_ms })
    }
}

impl<'a> Definition<'a> for XReadGroupParts<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "xreadgroup",
        arity: -7,
        keys: KeyPositions::NONE,
        key_words: &[KeyWord { word: "STREAMS", from: 4, keys: KeysBehind::Half }],
        key_flags: &[&["RO", "access"]],
        flags: &["write", "blocking", "movablekeys"],
        categories: &["@write", "@stream", "@slow", "@blocking"],
        summary: "Delivers entries of several streams to a consumer of a group.",
        parser: |_, words| Indirect::parse(words, parse),
        ..FAST_UPDATE
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Every { list: self.keys, step: 1 }
    }

    /// Any number of them, together as many as an update may answer.
    fn values(&self) -> u32 {
        1
    }

    fn now_mut(&mut self) -> Option<&mut u64> {
        Some(&mut self.now_ms)
    }
}

fn parse(words: Words<'_>) -> Result<XReadGroupParts<'_>, CommandError> {
    let read = parse_words(words, true)?;
    let (group, consumer) = read.group.unwrap_or_default();
    let (keys, starts, count, block_ms) = (read.keys, read.starts, read.count, read.block_ms);
    Ok(XReadGroupParts { group, consumer, keys, starts, count, block_ms, no_ack: read.no_ack, now_ms: 0 })
}

impl<'a> UpdateCommand<'a> for XReadGroupParts<'a> {
    fn work(&self) -> usize {
        let each = match usize::try_from(self.count) {
            Ok(count @ 1..) => count.saturating_mul(LOOKUP_WORK).min(COLLECTION_WORK),
            _ => COLLECTION_WORK,
        };
        self.keys.len().saturating_mul(each)
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        // Nothing may have been changed if one of the last streams turns out to be none.
        for key in self.keys {
            let found = keys.get(key);
            if stream_of(found.as_ref())?.and_then(|stream| stream.group(self.group)).is_none() {
                return put_no_key_or_group(reply, key, self.group, " in XREADGROUP with GROUP option");
            }
        }
        let (mut answered, mut parts) = (0, Vec::new());
        for (key, start) in self.keys.iter().zip(self.starts) {
            let start = Start::of_group(start)?;
            let room = Room::new(self.count, UPDATE_REPLY_BYTES_MAX.saturating_sub(parts.len()));
            let before = parts.len();
            notify_consumer(keys, key, self.group, self.consumer);
            keys.notify(KeyEvent::Changed, key);
            put_bulk(&mut parts, key);
            let has_answered =
                keys.edit_collection(key, |stream: &mut Stream| self.read(stream, start, room, &mut parts))?;
            if has_answered {
                answered += 1;
            } else {
                parts.truncate(before);
            }
        }
        if answered == 0 {
            put_nil_array(reply);
        } else {
            put_keyed(reply, answered);
            reply.extend_from_slice(&parts);
        }
        Ok(())
    }
}

impl XReadGroupParts<'_> {
    /// Delivers entries of one stream, and appends them. False if there is nothing to be answered.
    fn read(&self, stream: &mut Stream, start: Start, room: Room, reply: &mut Vec<u8>) -> bool {
        let Some(group) = stream.group(self.group) else { return false };
        let consumer = stream.see_consumer(&group, self.consumer, self.now_ms);
        match start {
            Start::Behind(id) => {
                self.read_pending(stream, &consumer, id, room, reply);
                true
            }
            Start::New | Start::AtLast | Start::BehindLast => self.read_new(stream, consumer, room, reply),
        }
    }

    /// What has not been delivered to the group.
    fn read_new(
        &self,
        stream: &mut Stream,
        mut consumer: Consumer,
        mut room: Room,
        reply: &mut Vec<u8>,
    ) -> bool {
        let Some(mut group) = stream.group(self.group) else { return false };
        let Some(first) = group.last.next() else { return false };
        let entries = stream.range(first, StreamId::MAX);
        let mut delivered = Vec::new();
        let mut answer = Vec::new();
        for (id, fields) in entries {
            if !room.take(Some(fields)) {
                break;
            }
            put_entry(&mut answer, id, Some(fields));
            delivered.push(id);
        }
        if delivered.is_empty() {
            return false;
        }
        put_array(reply, delivered.len());
        reply.extend_from_slice(&answer);
        for id in &delivered {
            group = stream.advanced(&group, *id);
        }
        stream.set_group(self.group, &group);
        if !self.no_ack {
            for id in delivered {
                stream.deliver(&group, id, &consumer, (self.now_ms, 1));
            }
            consumer.active_ms = Some(self.now_ms);
            stream.set_consumer(&group, self.consumer, &consumer);
        }
        true
    }

    /// What is pending at the consumer, once more.
    fn read_pending(
        &self,
        stream: &mut Stream,
        consumer: &Consumer,
        behind: StreamId,
        mut room: Room,
        reply: &mut Vec<u8>,
    ) {
        let (mut ids, mut answer) = (Vec::new(), Vec::new());
        let Some(group) = stream.group(self.group) else { return };
        if let Some(first) = behind.next() {
            for id in stream.owned(&group, consumer, first) {
                let fields = stream.get(id);
                if !room.take(fields) {
                    break;
                }
                put_entry(&mut answer, id, fields);
                ids.push((id, fields.is_some()));
            }
        }
        put_array(reply, ids.len());
        reply.extend_from_slice(&answer);
        for (id, _) in ids.iter().filter(|(_, exists)| *exists) {
            if let Some(pending) = stream.pending(&group, *id) {
                stream.deliver(&group, *id, consumer, (self.now_ms, pending.deliveries.saturating_add(1)));
            }
        }
    }
}

/// How much an answer may still have.
#[derive(Clone, Copy)]
struct Room {
    entries: u64,
    bytes: usize,
    is_first: bool,
}

impl Room {
    fn new(count: u64, bytes: usize) -> Self {
        let most = KEYS_PER_OPERATION_MAX as u64;
        Self { entries: if count == 0 { most } else { count.min(most) }, bytes, is_first: true }
    }

    /// Takes the room of an entry; false if there is none.
    fn take(&mut self, fields: Option<Fields<'_>>) -> bool {
        let strings = fields.map_or(0, |fields| fields.len() + fields.bytes());
        let needed = ENTRY_HEAD_BYTES + strings;
        // The first entry of the first stream has as much as there is.
        let fits = needed <= self.bytes || (self.is_first && self.bytes == UPDATE_REPLY_BYTES_MAX);
        if self.entries == 0 || !fits {
            return false;
        }
        self.entries -= 1;
        self.bytes = self.bytes.saturating_sub(needed);
        self.is_first = false;
        true
    }
}
