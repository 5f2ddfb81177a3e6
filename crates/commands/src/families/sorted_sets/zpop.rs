//! ZPOPMIN and ZPOPMAX, and what ZMPOP has in common with them.

use super::FAST_UPDATE;
use super::score::put_member;
use crate::access::{KeyEvent, KeysMut};
use crate::encoding::{Field, Flag, Key, fields};
use crate::error::{CommandError, ExecutionError};
use crate::families::Command;
use crate::families::counts::{OptionalCount, parse_count};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::specification::CommandSpec;
use crate::limits::UPDATE_REPLY_BYTES_MAX;
use crate::primitive::Malformed;
use crate::reply::{put_array, put_pairs};
use crate::words::Words;
use syros_values::{Score, SortedSet};

/// The end of a sorted set that members are taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreEnd {
    /// The lowest scores.
    Min,
    /// The highest scores.
    Max,
}

impl Field<'_> for ScoreEnd {
    type Content = Self;

    fn put(out: &mut Vec<u8>, end: Self) {
        Flag::put(out, end == ScoreEnd::Max);
    }

    fn take(input: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(if Flag::take(input)? { Self::Max } else { Self::Min })
    }
}

/// ZPOPMIN and ZPOPMAX: answers the members with their scores. With its last member the key goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZPop<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Where members are taken from.
    pub end: ScoreEnd,
    /// How many are taken at most; one if it is not said.
    pub count: Option<u64>,
}

fields!(ZPop<'a> = 69 { key: Key, end: ScoreEnd, count: OptionalCount });

/// What the rows have in common.
const ROW: CommandSpec = CommandSpec { arity: -2, since: "5.0.0", ..FAST_UPDATE };

impl<'a> Definition<'a> for ZPop<'a> {
    const SPECS: &'static [CommandSpec] = &[
        CommandSpec {
            name: "zpopmax",
            summary: "Removes the members of a sorted set with the highest scores and returns them.",
            parser: |_, words| parse(words, ScoreEnd::Max),
            ..ROW
        },
        CommandSpec {
            name: "zpopmin",
            summary: "Removes the members of a sorted set with the lowest scores and returns them.",
            parser: |_, words| parse(words, ScoreEnd::Min),
            ..ROW
        },
    ];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }

    /// All together are not longer than one may be.
    fn values(&self) -> u32 {
        1
    }
}

fn parse(words: Words<'_>, end: ScoreEnd) -> Result<Command<'_>, CommandError> {
    let count = match words[2..] {
        [] => None,
        [count] => Some(parse_count(count).ok_or(CommandError::CountNotPositive)?),
        _ => return Err(CommandError::Syntax),
    };
    Ok(ZPop { key: words[1], end, count }.into())
}

impl<'a> UpdateCommand<'a> for ZPop<'a> {
    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let shape = if self.count.is_some() { Shape::Pairs } else { Shape::Flat };
        pop_some(keys, self.key, self.end, self.count.unwrap_or(1), shape, reply)
    }
}

/// What members with their scores look like in a reply.
#[derive(Clone, Copy, Debug)]
pub(in crate::families) enum Shape {
    /// One array.
    Flat,
    /// Pairs.
    Pairs,
    /// An array of arrays of two, also in RESP2.
    Nested,
    /// One member and its score, parts of an array whose head is there.
    Bare,
}

impl Shape {
    fn put_head(self, reply: &mut Vec<u8>, count: u64) {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        match self {
            Self::Flat => put_array(reply, count.saturating_mul(2)),
            Self::Pairs => put_pairs(reply, count),
            Self::Nested => put_array(reply, count),
            Self::Bare => {}
        }
    }

    fn put(self, reply: &mut Vec<u8>, member: (&[u8], Score)) {
        if matches!(self, Self::Nested) {
            put_array(reply, 2);
        }
        put_member(reply, member, true);
    }
}

/// Appends the first members from an end, at most so many, with their scores, and removes them.
///
/// # Errors
/// If that is too much for the reply of an update; nothing is removed then.
fn pop(
    set: &mut SortedSet,
    end: ScoreEnd,
    count_max: u64,
    shape: Shape,
    reply: &mut Vec<u8>,
) -> ExecutionResult {
    let (start, length) = (reply.len(), set.len());
    let count = count_max.min(length);
    let ranks = if end == ScoreEnd::Min { 0..count } else { length - count..length };
    shape.put_head(reply, count);
    let put = |member: (&[u8], Score)| {
        shape.put(reply, member);
        let is_too_long = reply.len() - start > UPDATE_REPLY_BYTES_MAX;
        if is_too_long { Err(ExecutionError::UpdateReplyTooLong) } else { Ok(()) }
    };
    let mut members = set.range(ranks.clone());
    match end {
        ScoreEnd::Min => members.try_for_each(put)?,
        ScoreEnd::Max => members.rev().try_for_each(put)?,
    }
    set.remove_range(ranks);
    Ok(())
}

/// Takes at most so many members of the sorted set of a key, which need not exist, tells of that, and appends them.
///
/// # Errors
/// If the value is of another kind, or they are more than an update may answer; nothing has changed then.
pub(in crate::families) fn pop_some<K: KeysMut>(
    keys: &mut K,
    key: &[u8],
    end: ScoreEnd,
    count_max: u64,
    shape: Shape,
    reply: &mut Vec<u8>,
) -> ExecutionResult {
    let has_any = keys.edit_collection(key, |set: &mut SortedSet| {
        let has_any = !set.is_empty() && count_max > 0;
        pop(set, end, count_max, shape, reply).map(|()| has_any)
    })??;
    if has_any {
        let event = match end {
            ScoreEnd::Min => KeyEvent::ZPopMin,
            ScoreEnd::Max => KeyEvent::ZPopMax,
        };
        keys.notify_removal(event, key);
    }
    Ok(())
}
