//! What a command does with the first of its keys that has elements.

use crate::access::{EntryRef as _, Keys, KeysMut};
use crate::encoding::{Field, Key};
use crate::error::ExecutionError;
use crate::families::counts::OptionalCount;
use crate::families::definition::{ExecutionResult, UpdateCommand as _};
use crate::families::lists::{pop_first, pop_some};
use crate::families::sorted_sets::{Shape, pop_some as pop_members};
use crate::families::{LMove, ScoreEnd};
use crate::primitive::{Malformed, take_u8};
use crate::reply::{put_array, put_bulk, put_nil, put_nil_array};
use syros_values::{ListEnd, SortedSet};

mod tag {
    pub(super) const POP: u8 = 0;
    pub(super) const MOVE: u8 = 1;
    pub(super) const POP_SOME: u8 = 2;
    pub(super) const POP_MEMBER: u8 = 3;
    pub(super) const POP_MEMBERS: u8 = 4;
}

/// What is done with the first of the keys that has elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeAction<'a> {
    /// BLPOP and BRPOP: takes an element of a list, and answers its key and the element.
    Pop(ListEnd),
    /// BLMOVE and BRPOPLPUSH: takes an element of a list, adds it to another one or to the same, and answers it.
    Move {
        /// The key whose list it is added to, which need not exist.
        to: &'a [u8],
        /// Where it is taken from.
        from_end: ListEnd,
        /// Where it is added.
        to_end: ListEnd,
    },
    /// BLMPOP: takes so many elements of a list at most, and answers its key and the elements.
    PopSome(ListEnd, Option<u64>),
    /// BZPOPMIN and BZPOPMAX: takes a member of a sorted set, and answers its key, the member and its score.
    PopMember(ScoreEnd),
    /// BZMPOP: takes so many members of a sorted set at most, and answers its key and the members with their scores.
    PopMembers(ScoreEnd, Option<u64>),
}

impl<'a> Field<'a> for TakeAction<'a> {
    type Content = Self;

    fn put(out: &mut Vec<u8>, action: Self) {
        match action {
            Self::Pop(end) => {
                out.push(tag::POP);
                ListEnd::put(out, end);
            }
            Self::Move { to, from_end, to_end } => {
                out.push(tag::MOVE);
                Key::put(out, to);
                ListEnd::put(out, from_end);
                ListEnd::put(out, to_end);
            }
            Self::PopSome(end, count) => {
                out.push(tag::POP_SOME);
                ListEnd::put(out, end);
                OptionalCount::put(out, count);
            }
            Self::PopMember(end) => {
                out.push(tag::POP_MEMBER);
                ScoreEnd::put(out, end);
            }
            Self::PopMembers(end, count) => {
                out.push(tag::POP_MEMBERS);
                ScoreEnd::put(out, end);
                OptionalCount::put(out, count);
            }
        }
    }

    fn take(input: &mut &'a [u8]) -> Result<Self, Malformed> {
        Ok(match take_u8(input)? {
            tag::POP => Self::Pop(ListEnd::take(input)?),
            tag::MOVE => Self::Move {
                to: Key::take(input)?,
                from_end: ListEnd::take(input)?,
                to_end: ListEnd::take(input)?,
            },
            tag::POP_SOME => Self::PopSome(ListEnd::take(input)?, OptionalCount::take(input)?),
            tag::POP_MEMBER => Self::PopMember(ScoreEnd::take(input)?),
            tag::POP_MEMBERS => Self::PopMembers(ScoreEnd::take(input)?, OptionalCount::take(input)?),
            other => return Err(Malformed::Options(other)),
        })
    }
}

/// How many elements the list, or the sorted set, of a key has: 0 if there is no such key.
///
/// # Errors
/// If the value is of another kind.
pub(super) fn length_of<K: Keys>(keys: &K, key: &[u8], is_list: bool) -> Result<u64, ExecutionError> {
    let Some(found) = keys.get(key) else { return Ok(0) };
    Ok(if is_list { found.list()?.len() } else { found.collection::<SortedSet>()?.len() })
}

impl TakeAction<'_> {
    /// True if it takes elements of lists, false if members of sorted sets.
    #[must_use]
    pub const fn is_of_lists(self) -> bool {
        matches!(self, Self::Pop(_) | Self::Move { .. } | Self::PopSome(..))
    }

    /// Appends what is answered if there is nothing, and nobody waits.
    pub(super) fn put_nothing(self, reply: &mut Vec<u8>) {
        match self {
            Self::Move { .. } => put_nil(reply),
            _ => put_nil_array(reply),
        }
    }

    /// Carries it out with a key that has elements, of which it may have so many, and appends its reply.
    ///
    /// # Errors
    /// As the command that does not wait; nothing has changed then.
    pub(super) fn carry_out<K: KeysMut>(
        self,
        keys: &mut K,
        key: &[u8],
        available: u64,
        now_ms: u64,
        reply: &mut Vec<u8>,
    ) -> ExecutionResult {
        let of = |count: Option<u64>| count.unwrap_or(1).min(available);
        match self {
            Self::Pop(end) => {
                put_array(reply, 2);
                put_bulk(reply, key);
                let element = pop_first(keys, key, end)?;
                put_bulk(reply, element.as_deref().unwrap_or_default());
                Ok(())
            }
            Self::Move { to, from_end, to_end } => {
                LMove { from: key, to, from_end, to_end }.apply(keys, now_ms, reply)
            }
            Self::PopSome(end, count) => {
                put_array(reply, 2);
                put_bulk(reply, key);
                pop_some(keys, key, end, of(count), reply)
            }
            Self::PopMember(end) => {
                put_array(reply, 3);
                put_bulk(reply, key);
                pop_members(keys, key, end, 1, Shape::Bare, reply)
            }
            Self::PopMembers(end, count) => {
                put_array(reply, 2);
                put_bulk(reply, key);
                pop_members(keys, key, end, of(count), Shape::Nested, reply)
            }
        }
    }
}
