//! ZUNION, ZINTER and ZDIFF.

use super::SLOW_READ;
use super::combination::{Combination, SetOperation, Sources};
use super::score::put_member;
use crate::access::Keys;
use crate::encoding::{Flag, fields};
use crate::error::{CommandError, ExecutionError};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::elements::work_of_all;
use crate::families::indirect::Indirect;
use crate::families::specification::{CommandSpec, KeyPositions};
use crate::reply::{put_array, put_pairs};
use crate::words::{Words, is};

/// ZUNION, ZINTER, ZDIFF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZCombineParts<'a> {
    /// What is answered.
    pub combination: Combination<'a>,
    /// WITHSCORES: pairs.
    pub with_scores: bool,
}

/// The same, read again where it is needed.
pub type ZCombine<'a> = Indirect<'a, ZCombineParts<'a>>;

fields!(ZCombineParts<'a> = 223 { combination: Combination<'a>, with_scores: Flag });

/// What the rows have in common.
const ROW: CommandSpec = CommandSpec {
    arity: -3,
    keys: KeyPositions::NONE,
    key_count: 1,
    flags: &["readonly", "movablekeys"],
    since: "6.2.0",
    ..SLOW_READ
};

impl<'a> Definition<'a> for ZCombineParts<'a> {
    const SPECS: &'static [CommandSpec] = &[
        CommandSpec {
            name: "zdiff",
            summary: "Returns the members of a sorted set that no other one has.",
            parser: |_, words| {
                Indirect::parse(words, |words| parse("zdiff", words, SetOperation::Difference))
            },
            ..ROW
        },
        CommandSpec {
            name: "zinter",
            summary: "Returns the members that several sorted sets have in common.",
            parser: |_, words| {
                Indirect::parse(words, |words| parse("zinter", words, SetOperation::Intersection))
            },
            ..ROW
        },
        CommandSpec {
            name: "zunion",
            summary: "Returns the members of several sorted sets.",
            parser: |_, words| Indirect::parse(words, |words| parse("zunion", words, SetOperation::Union)),
            ..ROW
        },
    ];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Every { list: self.combination.keys, step: 1 }
    }

    /// Any number of them.
    fn values(&self) -> u32 {
        1
    }
}

fn parse<'a>(
    name: &'static str,
    words: Words<'a>,
    operation: SetOperation,
) -> Result<ZCombineParts<'a>, CommandError> {
    let mut with_scores = false;
    let combination = Combination::parse(operation, name, &words[1..], |option| {
        with_scores |= is(option, "withscores");
        is(option, "withscores")
    })?;
    Ok(ZCombineParts { combination, with_scores })
}

impl ReadCommand for ZCombineParts<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let sources = Sources::of(keys, self.combination.keys)?;
        let members = self.combination.members(&sources)?;
        let put_head = if self.with_scores { put_pairs } else { put_array };
        put_head(reply, members.len());
        members.into_iter().try_for_each(|member| {
            put_member(reply, member, self.with_scores);
            if reply.len() > view.reply_end { Err(ExecutionError::ReplyTooLong) } else { Ok(()) }
        })
    }

    fn work_on<K: Keys>(&self, keys: &K) -> usize {
        work_of_all(keys, self.combination.keys.iter())
    }
}
