//! XRANGE, and XREVRANGE.

use super::ids::{Id, parse_end, parse_start};
use super::{SLOW_READ, put_entry, stream_of};
use crate::access::Keys;
use crate::encoding::{Flag, Key, fields};
use crate::error::{CommandError, ExecutionError};
use crate::families::counts::OptionalCount;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::elements::work_of_some;
use crate::families::indirect::Indirect;
use crate::families::specification::CommandSpec;
use crate::reply::{put_array, put_nil_array};
use crate::words::{Words, integer, is};
use syros_values::StreamId;

/// XRANGE or XREVRANGE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XRangeParts<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The least id.
    pub from: StreamId,
    /// The greatest id.
    pub to: StreamId,
    /// How many entries are answered at most.
    pub count: Option<u64>,
    /// True for XREVRANGE, which begins with the greatest id.
    pub is_reversed: bool,
}

/// The same, read again where it is needed.
pub type XRange<'a> = Indirect<'a, XRangeParts<'a>>;

fields!(XRangeParts<'a> = 342 { key: Key, from: Id, to: Id, count: OptionalCount, is_reversed: Flag });

impl<'a> Definition<'a> for XRangeParts<'a> {
    const SPECS: &'static [CommandSpec] = &[
        CommandSpec {
            name: "xrange",
            arity: -4,
            summary: "Returns the entries of a stream from one id to another.",
            parser: |_, words| Indirect::parse(words, |words| parse(words, (words[2], words[3]), false)),
            ..SLOW_READ
        },
        CommandSpec {
            name: "xrevrange",
            arity: -4,
            summary: "Returns the entries of a stream from one id back to another.",
            parser: |_, words| Indirect::parse(words, |words| parse(words, (words[3], words[2]), true)),
            ..SLOW_READ
        },
    ];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }

    /// Any number of them.
    fn values(&self) -> u32 {
        1
    }
}

fn parse<'a>(
    words: Words<'a>,
    (from, to): (&[u8], &[u8]),
    is_reversed: bool,
) -> Result<XRangeParts<'a>, CommandError> {
    let (from, to) = (parse_start(from)?, parse_end(to)?);
    let (mut rest, mut count) = (&words[4..], None);
    while !rest.is_empty() {
        let [option, number, behind @ ..] = rest else { return Err(CommandError::Syntax) };
        if !is(option, "count") {
            return Err(CommandError::Syntax);
        }
        count = Some(u64::try_from(integer(number)?).unwrap_or(0));
        rest = behind;
    }
    Ok(XRangeParts { key: words[1], from, to, count, is_reversed })
}

impl ReadCommand for XRangeParts<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let Some(stream) = stream_of(found.as_ref())? else {
            put_array(reply, 0);
            return Ok(());
        };
        if self.count == Some(0) {
            put_nil_array(reply);
            return Ok(());
        }
        let mut entries = stream.range(self.from, self.to);
        let count = entries.len().min(usize::try_from(self.count.unwrap_or(u64::MAX)).unwrap_or(usize::MAX));
        put_array(reply, count);
        for _ in 0..count {
            let next = if self.is_reversed { entries.next_back() } else { entries.next() };
            next.into_iter().for_each(|(id, fields)| put_entry(reply, id, Some(fields)));
            if reply.len() > view.reply_end {
                return Err(ExecutionError::ReplyTooLong);
            }
        }
        Ok(())
    }

    fn work_on<K: Keys>(&self, keys: &K) -> usize {
        let found = keys.get(self.key);
        let Ok(Some(stream)) = stream_of(found.as_ref()) else { return 0 };
        let count = (stream.range(self.from, self.to).len() as u64).min(self.count.unwrap_or(u64::MAX));
        work_of_some(count, stream.len(), stream.element_bytes())
    }
}
