//! ZRANGE, and its older relatives, each of which is a part of it.

use super::interval::IntervalKind;
use super::score::put_member;
use super::selection::{Dialect, Selection};
use super::{SLOW_READ, sorted_set_of};
use crate::access::Keys;
use crate::encoding::{Flag, Key, fields};
use crate::error::{CommandError, ExecutionError};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::elements::work_of_some;
use crate::families::indirect::Indirect;
use crate::families::specification::CommandSpec;
use crate::reply::{put_array, put_pairs};
use crate::words::Words;

/// ZRANGE, ZREVRANGE, ZRANGEBYSCORE, ZREVRANGEBYSCORE, ZRANGEBYLEX, ZREVRANGEBYLEX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZRangeParts<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Which members are answered.
    pub selection: Selection<'a>,
    /// WITHSCORES: pairs.
    pub with_scores: bool,
}

/// The same, read again where it is needed.
pub type ZRange<'a> = Indirect<'a, ZRangeParts<'a>>;

fields!(ZRangeParts<'a> = 24 { key: Key, selection: Selection<'a>, with_scores: Flag });

/// What the rows have in common.
const ROW: CommandSpec = CommandSpec { arity: -4, ..SLOW_READ };

impl<'a> Definition<'a> for ZRangeParts<'a> {
    const SPECS: &'static [CommandSpec] = &[
        CommandSpec {
            name: "zrange",
            summary: "Returns members of a sorted set by rank, by score or by themselves.",
            parser: |_, words| Indirect::parse(words, |words| parse(words, None, None)),
            ..ROW
        },
        CommandSpec {
            name: "zrangebylex",
            since: "2.8.9",
            summary: "Returns the members of a sorted set between two members, if all have one score.",
            parser: |_, words| {
                Indirect::parse(words, |words| parse(words, Some(IntervalKind::Members), Some(false)))
            },
            ..ROW
        },
        CommandSpec {
            name: "zrangebyscore",
            since: "1.0.5",
            summary: "Returns the members of a sorted set between two scores.",
            parser: |_, words| {
                Indirect::parse(words, |words| parse(words, Some(IntervalKind::Scores), Some(false)))
            },
            ..ROW
        },
        CommandSpec {
            name: "zrevrange",
            summary: "Returns members of a sorted set by rank, the last one first.",
            parser: |_, words| {
                Indirect::parse(words, |words| parse(words, Some(IntervalKind::Ranks), Some(true)))
            },
            ..ROW
        },
        CommandSpec {
            name: "zrevrangebylex",
            since: "2.8.9",
            summary: "Returns the members of a sorted set between two members, the last one first.",
            parser: |_, words| {
                Indirect::parse(words, |words| parse(words, Some(IntervalKind::Members), Some(true)))
            },
            ..ROW
        },
        CommandSpec {
            name: "zrevrangebyscore",
            since: "2.2.0",
            summary: "Returns the members of a sorted set between two scores, the last one first.",
            parser: |_, words| {
                Indirect::parse(words, |words| parse(words, Some(IntervalKind::Scores), Some(true)))
            },
            ..ROW
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

fn parse(
    words: Words<'_>,
    kind: Option<IntervalKind>,
    is_reversed: Option<bool>,
) -> Result<ZRangeParts<'_>, CommandError> {
    let dialect = Dialect { kind, is_reversed, answers: true };
    let (selection, with_scores) = Selection::parse(&words[2..], dialect)?;
    Ok(ZRangeParts { key: words[1], selection, with_scores })
}

impl ReadCommand for ZRangeParts<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let Some(set) = sorted_set_of(found.as_ref())? else {
            put_array(reply, 0);
            return Ok(());
        };
        let ranks = self.selection.ranks(set);
        let put_head = if self.with_scores { put_pairs } else { put_array };
        put_head(reply, usize::try_from(ranks.end - ranks.start).unwrap_or(usize::MAX));
        self.selection.try_each(set, |member| {
            put_member(reply, member, self.with_scores);
            if reply.len() > view.reply_end { Err(ExecutionError::ReplyTooLong) } else { Ok(()) }
        })
    }

    fn work_on<K: Keys>(&self, keys: &K) -> usize {
        let found = keys.get(self.key);
        let Ok(Some(set)) = sorted_set_of(found.as_ref()) else { return 0 };
        let ranks = self.selection.ranks(set);
        work_of_some(ranks.end - ranks.start, set.len(), set.element_bytes())
    }
}
