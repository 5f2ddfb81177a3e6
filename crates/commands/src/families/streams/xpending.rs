//! XPENDING.

use super::claims::is_idle;
use super::ids::{Id, parse_end, parse_start};
use super::{SLOW_READ, put_id, put_no_key_or_group, stream_of};
use crate::access::Keys;
use crate::encoding::{Encoding, Field as _, Flag, Key, Opcode, Unsigned, Value};
use crate::error::{CommandError, ExecutionError};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::elements::LOOKUP_WORK;
use crate::families::indirect::Indirect;
use crate::families::specification::CommandSpec;
use crate::primitive::Malformed;
use crate::reply::{put_array, put_bulk, put_integer, put_nil, put_nil_array};
use crate::words::{Words, integer, is};
use syros_values::{Group, Pending, Stream, StreamId};

/// XPENDING: answers what is pending in a group: how much, or which entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XPendingParts<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The group.
    pub group: &'a [u8],
    /// Which entries; none if only their number is asked for.
    pub range: Option<PendingRange<'a>>,
}

/// The same, read again where it is needed.
pub type XPending<'a> = Indirect<'a, XPendingParts<'a>>;

/// Which pending entries are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingRange<'a> {
    /// Those that were delivered at least so many milliseconds ago.
    pub min_idle_ms: u64,
    /// The least id.
    pub from: StreamId,
    /// The greatest id.
    pub to: StreamId,
    /// At most so many.
    pub count: u64,
    /// Those at this consumer.
    pub consumer: Option<&'a [u8]>,
}

impl<'a> Encoding<'a> for XPendingParts<'a> {
    const OPCODE: Opcode = 349;

    fn encode(&self, out: &mut Vec<u8>) {
        Key::put(out, self.key);
        Value::put(out, self.group);
        Flag::put(out, self.range.is_some());
        if let Some(range) = self.range {
            Unsigned::put(out, range.min_idle_ms);
            Id::put(out, range.from);
            Id::put(out, range.to);
            Unsigned::put(out, range.count);
            Flag::put(out, range.consumer.is_some());
            range.consumer.into_iter().for_each(|consumer| Value::put(out, consumer));
        }
    }

    fn decode(_: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let (key, group) = (Key::take(input)?, Value::take(input)?);
        let has_range = Flag::take(input)?;
        Ok(Self { key, group, range: has_range.then(|| take_range(input)).transpose()? })
    }
}

fn take_range<'a>(input: &mut &'a [u8]) -> Result<PendingRange<'a>, Malformed> {
    let min_idle_ms = Unsigned::take(input)?;
    let (from, to, count) = (Id::take(input)?, Id::take(input)?, Unsigned::take(input)?);
    let consumer = Flag::take(input)?.then(|| Value::take(input)).transpose()?;
    Ok(PendingRange { min_idle_ms, from, to, count, consumer })
}

impl<'a> Definition<'a> for XPendingParts<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "xpending",
        arity: -3,
        tips: &["nondeterministic_output"],
        summary: "Returns what was delivered to consumers of a group and not acknowledged.",
        parser: |_, words| Indirect::parse(words, parse),
        ..SLOW_READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }

    /// Names of any number of consumers.
    fn values(&self) -> u32 {
        1
    }
}

fn parse(words: Words<'_>) -> Result<XPendingParts<'_>, CommandError> {
    let (key, group) = (words[1], words[2]);
    let range = match &words[3..] {
        [] => None,
        rest @ ([_, _, _] | [_, _, _, _] | [_, _, _, _, _] | [_, _, _, _, _, _]) => Some(parse_range(rest)?),
        _ => return Err(CommandError::Syntax),
    };
    Ok(XPendingParts { key, group, range })
}

fn parse_range<'a>(mut words: Words<'a>) -> Result<PendingRange<'a>, CommandError> {
    let mut min_idle_ms = 0;
    if is(words[0], "idle") {
        min_idle_ms = u64::try_from(integer(words[1])?).unwrap_or(0);
        words = &words[2..];
    }
    let [from, to, count, consumer @ ..] = words else { return Err(CommandError::Syntax) };
    let count = u64::try_from(integer(count)?).unwrap_or(0);
    let (from, to) = (parse_start(from)?, parse_end(to)?);
    Ok(PendingRange { min_idle_ms, from, to, count, consumer: consumer.first().copied() })
}

impl ReadCommand for XPendingParts<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let stream = stream_of(found.as_ref())?;
        let Some((stream, group)) = stream.and_then(|stream| Some((stream, stream.group(self.group)?)))
        else {
            return put_no_key_or_group(reply, self.key, self.group, "");
        };
        match &self.range {
            Some(range) => {
                // How long something has been pending depends on the time of execution.
                keys.before_draw();
                put_range(stream, &group, range, view, reply)
            }
            None => put_summary(stream, &group, view, reply),
        }
    }

    fn work_on<K: Keys>(&self, keys: &K) -> usize {
        let found = keys.get(self.key);
        let Ok(Some(stream)) = stream_of(found.as_ref()) else { return 0 };
        let Some(group) = stream.group(self.group) else { return 0 };
        let looks = match &self.range {
            None => stream.consumers_len(&group),
            Some(PendingRange { min_idle_ms: 0, consumer: None, from, to, count }) => {
                (stream.pending_from(&group, *from, *to).len() as u64).min(*count)
            }
            // Those that are left out are looked at, too.
            Some(PendingRange { from, to, .. }) => stream.pending_from(&group, *from, *to).len() as u64,
        };
        usize::try_from(looks).unwrap_or(usize::MAX).saturating_mul(LOOKUP_WORK / 4)
    }
}

/// How many entries are pending, the first and the last one, and how many at each consumer.
fn put_summary(stream: &Stream, group: &Group, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
    put_array(reply, 4);
    put_integer(reply, stream.pending_len(group) as i64);
    let mut pending = stream.pending_from(group, StreamId::MIN, StreamId::MAX);
    let Some((first, _)) = pending.next() else {
        put_nil(reply);
        put_nil(reply);
        put_nil_array(reply);
        return Ok(());
    };
    put_id(reply, first);
    put_id(reply, pending.next_back().map_or(first, |(last, _)| last));
    let (mut count, mut parts) = (0, Vec::new());
    for (name, consumer) in stream.consumers(group) {
        let owned = stream.owned_len(group, &consumer);
        if owned > 0 {
            count += 1;
            put_array(&mut parts, 2);
            put_bulk(&mut parts, name);
            put_bulk(&mut parts, owned.to_string().as_bytes());
        }
        if reply.len() + parts.len() > view.reply_end {
            return Err(ExecutionError::ReplyTooLong);
        }
    }
    put_array(reply, count);
    reply.extend_from_slice(&parts);
    Ok(())
}

/// The entries of a range.
fn put_range(
    stream: &Stream,
    group: &Group,
    range: &PendingRange<'_>,
    view: View,
    reply: &mut Vec<u8>,
) -> ExecutionResult {
    let now_ms = view.now.as_millis();
    let (mut count, mut parts) = (0, Vec::new());
    let mut put = |id: StreamId, pending: Pending| {
        if !is_idle(&pending, range.min_idle_ms, now_ms) {
            return Ok(count < range.count);
        }
        if count >= range.count {
            return Ok(false);
        }
        count += 1;
        put_array(&mut parts, 4);
        put_id(&mut parts, id);
        put_bulk(&mut parts, stream.owner(group, &pending));
        put_integer(&mut parts, now_ms.saturating_sub(pending.delivered_ms) as i64);
        put_integer(&mut parts, pending.deliveries as i64);
        if parts.len() > view.reply_end { Err(ExecutionError::ReplyTooLong) } else { Ok(count < range.count) }
    };
    let at_consumer = range.consumer.map(|name| stream.consumer(group, name));
    match at_consumer.filter(|_| range.count > 0) {
        Some(Some(consumer)) => {
            for id in stream.owned(group, &consumer, range.from).take_while(|id| *id <= range.to) {
                if let Some(pending) = stream.pending(group, id)
                    && !put(id, pending)?
                {
                    break;
                }
            }
        }
        // There is no such consumer, or nothing is asked for.
        Some(None) => {}
        None => {
            for (id, pending) in stream.pending_from(group, range.from, range.to) {
                if !put(id, pending)? {
                    break;
                }
            }
        }
    }
    put_array(reply, usize::try_from(count).unwrap_or(usize::MAX));
    reply.extend_from_slice(&parts);
    Ok(())
}
