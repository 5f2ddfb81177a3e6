//! XCLAIM.

use super::claims::{claim, is_idle};
use super::ids::{Id, parse_id, parse_ids};
use super::now::Now;
use super::{ENTRY_HEAD_BYTES, FAST_UPDATE, notify_consumer, put_no_key_or_group, stream_of};
use crate::access::{KeyEvent, KeysMut};
use crate::arguments::Arguments;
use crate::encoding::{Encoding, Field as _, Key, Opcode, OptionalElements, Unsigned, Value};
use crate::error::{CommandError, ExecutionError};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::elements::LOOKUP_WORK;
use crate::families::indirect::Indirect;
use crate::families::specification::CommandSpec;
use crate::limits::UPDATE_REPLY_BYTES_MAX;
use crate::number::parse_integer;
use crate::primitive::{Malformed, take_u8};
use crate::reply::put_array;
use crate::stream_error::StreamError;
use crate::words::{Words, is};
use syros_types::limits::KEYS_PER_OPERATION_MAX;
use syros_values::{Stream, StreamId};

/// XCLAIM: has entries that are pending in a group be pending at another consumer, and answers those that are now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XClaimParts<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The group.
    pub group: &'a [u8],
    /// The consumer, which need not exist.
    pub consumer: &'a [u8],
    /// Entries that were delivered less than so many milliseconds ago stay where they are.
    pub min_idle_ms: u64,
    /// The ids.
    pub ids: Arguments<'a>,
    /// When they count as delivered.
    pub delivered: Delivered,
    /// RETRYCOUNT: how often they count as delivered.
    pub deliveries: Option<u64>,
    /// FORCE: what is not pending becomes it, if the entry exists.
    pub force: bool,
    /// JUSTID: ids alone are answered, and a delivery is not counted.
    pub just_id: bool,
    /// LASTID: the last entry that was delivered to the group, if that is not known better.
    pub last_id: Option<StreamId>,
    /// See [`Operation::now_mut`](crate::Operation::now_mut).
    pub now_ms: u64,
}

/// The same, read again where it is needed.
pub type XClaim<'a> = Indirect<'a, XClaimParts<'a>>;

/// When an entry counts as delivered. What would be in the future, or before all time, is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// Now.
    Now,
    /// So many milliseconds ago.
    Ago(u64),
    /// At this time, in milliseconds since the Unix epoch.
    At(u64),
}

impl Delivered {
    fn at(self, now_ms: u64) -> u64 {
        match self {
            Self::Now => now_ms,
            Self::Ago(ms) => now_ms.checked_sub(ms).unwrap_or(now_ms),
            Self::At(ms) => Some(ms).filter(|ms| *ms <= now_ms).unwrap_or(now_ms),
        }
    }
}

mod flag {
    pub(super) const FORCE: u8 = 1;
    pub(super) const JUST_ID: u8 = 2;
    pub(super) const LAST_ID: u8 = 4;
    pub(super) const DELIVERIES: u8 = 8;
    pub(super) const AGO: u8 = 16;
    pub(super) const AT: u8 = 32;
    pub(super) const ALL: u8 = 63;
}

impl<'a> Encoding<'a> for XClaimParts<'a> {
    const OPCODE: Opcode = 347;

    fn encode(&self, out: &mut Vec<u8>) {
        Key::put(out, self.key);
        Value::put(out, self.group);
        Value::put(out, self.consumer);
        Unsigned::put(out, self.min_idle_ms);
        Now::put(out, self.now_ms);
        let set = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let (time_flag, time) = match self.delivered {
            Delivered::Now => (0, None),
            Delivered::Ago(ms) => (flag::AGO, Some(ms)),
            Delivered::At(ms) => (flag::AT, Some(ms)),
        };
        out.push(
            set(self.force, flag::FORCE)
                | set(self.just_id, flag::JUST_ID)
                | set(self.last_id.is_some(), flag::LAST_ID)
                | set(self.deliveries.is_some(), flag::DELIVERIES)
                | time_flag,
        );
        time.into_iter().for_each(|ms| Unsigned::put(out, ms));
        self.deliveries.into_iter().for_each(|count| Unsigned::put(out, count));
        self.last_id.into_iter().for_each(|id| Id::put(out, id));
        OptionalElements::put(out, self.ids);
    }

    fn decode(_: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let (key, group, consumer) = (Key::take(input)?, Value::take(input)?, Value::take(input)?);
        let (min_idle_ms, now_ms) = (Unsigned::take(input)?, Now::take(input)?);
        let flags = take_u8(input)?;
        if flags & !flag::ALL != 0 || flags & (flag::AGO | flag::AT) == flag::AGO | flag::AT {
            return Err(Malformed::Options(flags));
        }
        let delivered = match flags & (flag::AGO | flag::AT) {
            flag::AGO => Delivered::Ago(Unsigned::take(input)?),
            flag::AT => Delivered::At(Unsigned::take(input)?),
            _ => Delivered::Now,
        };
        let deliveries = (flags & flag::DELIVERIES != 0).then(|| Unsigned::take(input)).transpose()?;
        let last_id = (flags & flag::LAST_ID != 0).then(|| Id::take(input)).transpose()?;
        let (force, just_id) = (flags & flag::FORCE != 0, flags & flag::JUST_ID != 0);
        let ids = OptionalElements::take(input)?;
        Ok(Self {
            key,
            group,
            consumer,
            min_idle_ms,
            ids,
            delivered,
            deliveries,
            force,
            just_id,
            last_id,
            now_ms,
        })
    }
}

impl<'a> Definition<'a> for XClaimParts<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "xclaim",
        arity: -6,
        key_flags: &[&["RW", "update"]],
        tips: &["nondeterministic_output"],
        summary: "Has entries that are pending in a group be pending at another consumer.",
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

/// The number that a word is, or 0 if it is negative.
fn not_negative(word: &[u8], error: StreamError) -> Result<Option<u64>, StreamError> {
    Ok(u64::try_from(parse_integer(word).ok_or(error)?).ok())
}

fn parse(words: Words<'_>) -> Result<XClaimParts<'_>, CommandError> {
    let min_idle_ms = not_negative(words[4], StreamError::ClaimIdleTime)?.unwrap_or(0);
    let ids = words[5..].iter().take_while(|word| parse_id(word).is_ok()).count();
    if ids > KEYS_PER_OPERATION_MAX {
        return Err(CommandError::TooManyElements(ids));
    }
    let (ids, mut rest) = words[5..].split_at(ids);
    let mut operation = XClaimParts {
        key: words[1],
        group: words[2],
        consumer: words[3],
        min_idle_ms,
        ids: Arguments::new(ids),
        delivered: Delivered::Now,
        deliveries: None,
        force: false,
        just_id: false,
        last_id: None,
        now_ms: 0,
    };
    while !rest.is_empty() {
        rest = operation.take_option(rest)?;
    }
    Ok(operation)
}

impl XClaimParts<'_> {
    /// Takes an option off the front of the words; the words behind it.
    fn take_option<'w>(&mut self, words: Words<'w>) -> Result<Words<'w>, CommandError> {
        match words {
            [option, rest @ ..] if is(option, "force") => {
                self.force = true;
                Ok(rest)
            }
            [option, rest @ ..] if is(option, "justid") => {
                self.just_id = true;
                Ok(rest)
            }
            [option, ms, rest @ ..] if is(option, "idle") => {
                let ago = not_negative(ms, StreamError::ClaimIdle)?;
                self.delivered = ago.map_or(Delivered::Now, Delivered::Ago);
                Ok(rest)
            }
            [option, ms, rest @ ..] if is(option, "time") => {
                let at = not_negative(ms, StreamError::ClaimTime)?;
                self.delivered = at.map_or(Delivered::Now, Delivered::At);
                Ok(rest)
            }
            [option, count, rest @ ..] if is(option, "retrycount") => {
                self.deliveries = not_negative(count, StreamError::ClaimRetryCount)?;
                Ok(rest)
            }
            [option, id, rest @ ..] if is(option, "lastid") => {
                self.last_id = Some(parse_id(id)?);
                Ok(rest)
            }
            [option, ..] => Err(CommandError::UnrecognizedClaimOption(option.to_vec())),
            [] => Ok(words),
        }
    }

    /// How many bytes its reply may have, at most.
    fn reply_bytes(&self, stream: &Stream, ids: &[StreamId]) -> usize {
        let bytes = ids.iter().map(|id| {
            let fields = stream.get(*id).filter(|_| !self.just_id);
            ENTRY_HEAD_BYTES + fields.map_or(0, |fields| fields.len() + fields.bytes())
        });
        bytes.fold(0, usize::saturating_add)
    }

    fn claim_all(&self, stream: &mut Stream, ids: &[StreamId], reply: &mut Vec<u8>) {
        let Some(mut group) = stream.group(self.group) else { return };
        if let Some(last) = self.last_id.filter(|last| *last > group.last) {
            group.last = last;
            stream.set_group(self.group, &group);
        }
        let mut consumer = stream.see_consumer(&group, self.consumer, self.now_ms);
        let delivered_ms = self.delivered.at(self.now_ms);
        let (mut claimed, mut parts) = (0, Vec::new());
        for id in ids {
            let pending = stream.pending(&group, *id);
            if stream.get(*id).is_none() {
                // It is of no use to anybody any more.
                stream.settle(&group, *id);
                continue;
            }
            let before = match pending {
                Some(pending) if is_idle(&pending, self.min_idle_ms, self.now_ms) => pending.deliveries,
                None if self.force => 1,
                _ => continue,
            };
            let counted = before.saturating_add(u64::from(!self.just_id));
            let delivery = (delivered_ms, self.deliveries.unwrap_or(counted));
            claim(stream, (&group, &consumer), *id, delivery, self.just_id, &mut parts);
            claimed += 1;
        }
        if claimed > 0 {
            consumer.active_ms = Some(self.now_ms);
            stream.set_consumer(&group, self.consumer, &consumer);
        }
        put_array(reply, claimed);
        reply.extend_from_slice(&parts);
    }
}

impl<'a> UpdateCommand<'a> for XClaimParts<'a> {
    fn work(&self) -> usize {
        self.ids.len().saturating_mul(LOOKUP_WORK)
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let stream = stream_of(found.as_ref())?.filter(|stream| stream.group(self.group).is_some());
        let Some(stream) = stream else {
            return put_no_key_or_group(reply, self.key, self.group, "");
        };
        let ids = parse_ids(self.ids)?;
        if ids.len() > 1 && self.reply_bytes(stream, &ids) > UPDATE_REPLY_BYTES_MAX {
            return Err(ExecutionError::UpdateReplyTooLong);
        }
        drop(found);
        notify_consumer(keys, self.key, self.group, self.consumer);
        keys.notify(KeyEvent::Changed, self.key);
        keys.edit_collection(self.key, |stream: &mut Stream| self.claim_all(stream, &ids, reply))?;
        Ok(())
    }
}
