//! XAUTOCLAIM.

use super::claims::{claim, is_idle};
use super::ids::{Id, parse_start};
use super::now::Now;
use super::{ENTRY_HEAD_BYTES, FAST_UPDATE, notify_consumer, put_id, put_no_key_or_group, stream_of};
use crate::access::{KeyEvent, Keys, KeysMut};
use crate::encoding::{Flag, Key, Unsigned, Value, fields};
use crate::error::CommandError;
use crate::families::definition::{COLLECTION_WORK, Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::elements::LOOKUP_WORK;
use crate::families::indirect::Indirect;
use crate::families::specification::CommandSpec;
use crate::limits::UPDATE_REPLY_BYTES_MAX;
use crate::number::parse_integer;
use crate::reply::put_array;
use crate::stream_error::StreamError;
use crate::words::{Words, is};
use syros_types::limits::KEYS_PER_OPERATION_MAX;
use syros_values::{Group, Stream, StreamId};

/// XAUTOCLAIM: has entries that are pending in a group for a time be pending at another consumer. It answers the id to go on
/// from, those entries, and the ids of entries that do not exist any more, which are not pending any more either.
///
/// It looks at ten times as many entries as it may answer, at most at 65,536, and answers at most as many bytes as an update
/// may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XAutoClaimParts<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The group.
    pub group: &'a [u8],
    /// The consumer, which need not exist.
    pub consumer: &'a [u8],
    /// Entries that were delivered less than so many milliseconds ago stay where they are.
    pub min_idle_ms: u64,
    /// The first id that is looked at.
    pub from: StreamId,
    /// How many ids are answered at most.
    pub count: u64,
    /// JUSTID: ids alone are answered, and a delivery is not counted.
    pub just_id: bool,
    /// See [`Operation::now_mut`](crate::Operation::now_mut).
    pub now_ms: u64,
}

/// The same, read again where it is needed.
pub type XAutoClaim<'a> = Indirect<'a, XAutoClaimParts<'a>>;

fields!(XAutoClaimParts<'a> = 348 {
    key: Key,
    group: Value,
    consumer: Value,
    min_idle_ms: Unsigned,
    from: Id,
    count: Unsigned,
    just_id: Flag,
    now_ms: Now
});

/// How many are answered if COUNT does not say it, as in Redis.
const COUNT_DEFAULT: u64 = 100;

/// How many are looked at for each that may be answered, as in Redis.
const ATTEMPTS_EACH: u64 = 10;

/// The work of looking at an entry that is pending, and at the next one: as long as to read so many bytes in a row.
const ENTRY_WORK: usize = 128;

/// The greatest COUNT, as in Redis.
const COUNT_MAX: i64 = i64::MAX / 16;

impl<'a> Definition<'a> for XAutoClaimParts<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "xautoclaim",
        arity: -6,
        key_flags: &[&["RW", "delete"]],
        tips: &["nondeterministic_output"],
        since: "6.2.0",
        summary: "Has entries that are pending in a group for long be pending at another consumer.",
        parser: |_, words| Indirect::parse(words, parse),
        ..FAST_UPDATE
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }

    /// Any number of them.
    fn values(&self) -> u32 {
        1
    }

    fn now_mut(&mut self) -> Option<&mut u64> {
        Some(&mut self.now_ms)
    }
}

fn parse(words: Words<'_>) -> Result<XAutoClaimParts<'_>, CommandError> {
    let min_idle = parse_integer(words[4]).ok_or(StreamError::AutoClaimIdleTime)?;
    let from = parse_start(words[5])?;
    let (mut rest, mut count, mut just_id) = (&words[6..], COUNT_DEFAULT, false);
    while !rest.is_empty() {
        rest = match rest {
            [option, number, behind @ ..] if is(option, "count") => {
                let number = parse_integer(number).filter(|number| (1..=COUNT_MAX).contains(number));
                count = number.ok_or(StreamError::AutoClaimCount)?.unsigned_abs();
                behind
            }
            [option, behind @ ..] if is(option, "justid") => {
                just_id = true;
                behind
            }
            _ => return Err(CommandError::Syntax),
        };
    }
    let (key, group, consumer) = (words[1], words[2], words[3]);
    let min_idle_ms = u64::try_from(min_idle).unwrap_or(0);
    Ok(XAutoClaimParts { key, group, consumer, min_idle_ms, from, count, just_id, now_ms: 0 })
}

/// What is to be done to the entries that were looked at.
#[derive(Default)]
struct Selection {
    /// Entries that are claimed, and how often they count as delivered.
    claims: Vec<(StreamId, u64)>,
    /// Entries that do not exist any more.
    deleted: Vec<StreamId>,
    /// The first entry that was not looked at.
    next: Option<StreamId>,
}

impl XAutoClaimParts<'_> {
    /// How many entries it looks at, at most.
    fn attempts(&self) -> u64 {
        self.count.saturating_mul(ATTEMPTS_EACH).min(KEYS_PER_OPERATION_MAX as u64)
    }

    fn select(&self, stream: &Stream, group: &Group) -> Selection {
        let attempts = self.attempts();
        let (mut selection, mut bytes) = (Selection::default(), 0_usize);
        for (attempt, (id, pending)) in (0..).zip(stream.pending_from(group, self.from, StreamId::MAX)) {
            let answered = selection.claims.len() + selection.deleted.len();
            let fields = stream.get(id);
            let strings = fields.filter(|_| !self.just_id).map_or(0, |fields| fields.len() + fields.bytes());
            let needed = ENTRY_HEAD_BYTES + strings;
            // The first one may have as much as there is.
            let is_full = answered > 0 && bytes + needed > UPDATE_REPLY_BYTES_MAX;
            if attempt == attempts || answered as u64 == self.count || is_full {
                selection.next = Some(id);
                break;
            }
            if fields.is_none() {
                selection.deleted.push(id);
            } else if is_idle(&pending, self.min_idle_ms, self.now_ms) {
                selection.claims.push((id, pending.deliveries.saturating_add(u64::from(!self.just_id))));
            } else {
                continue;
            }
            bytes += needed;
        }
        selection
    }

    fn claim_some(&self, stream: &mut Stream, reply: &mut Vec<u8>) {
        let Some(group) = stream.group(self.group) else { return };
        let mut consumer = stream.see_consumer(&group, self.consumer, self.now_ms);
        let Selection { claims, deleted, next } = self.select(stream, &group);
        put_array(reply, 3);
        put_id(reply, next.unwrap_or_default());
        put_array(reply, claims.len());
        for (id, deliveries) in &claims {
            let delivery = (self.now_ms, *deliveries);
            claim(stream, (&group, &consumer), *id, delivery, self.just_id, reply);
        }
        put_array(reply, deleted.len());
        for id in deleted {
            stream.settle(&group, id);
            put_id(reply, id);
        }
        if !claims.is_empty() {
            consumer.active_ms = Some(self.now_ms);
            stream.set_consumer(&group, self.consumer, &consumer);
        }
    }
}

impl<'a> UpdateCommand<'a> for XAutoClaimParts<'a> {
    fn bytes_gone_through<K: Keys>(&self, keys: &K) -> usize {
        let found = keys.get(self.key);
        let stream = stream_of(found.as_ref()).ok().flatten();
        let pending = stream.and_then(|stream| Some(stream.pending_len(&stream.group(self.group)?)));
        let looked_at = self.attempts().min(pending.unwrap_or(0));
        usize::try_from(looked_at).unwrap_or(usize::MAX).saturating_mul(ENTRY_WORK)
    }

    fn work(&self) -> usize {
        usize::try_from(self.count).unwrap_or(usize::MAX).saturating_mul(LOOKUP_WORK).min(COLLECTION_WORK)
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        if stream_of(found.as_ref())?.and_then(|stream| stream.group(self.group)).is_none() {
            return put_no_key_or_group(reply, self.key, self.group, "");
        }
        drop(found);
        notify_consumer(keys, self.key, self.group, self.consumer);
        keys.notify(KeyEvent::Changed, self.key);
        keys.edit_collection(self.key, |stream: &mut Stream| self.claim_some(stream, reply))?;
        Ok(())
    }
}
