//! ZMPOP.

use super::zpop::{ScoreEnd, Shape, pop_some};
use super::{SLOW_UPDATE, sorted_set_of};
use crate::access::KeysMut;
use crate::arguments::Arguments;
use crate::encoding::{List, Unsigned, fields};
use crate::error::CommandError;
use crate::families::Command;
use crate::families::counts::parse_pop;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::specification::{CommandSpec, KeyPositions};
use crate::reply::{put_array, put_bulk, put_nil_array};
use crate::words::{Words, is};

/// ZMPOP: takes members from the first sorted set that there is, and answers its key and the members with their scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZMPop<'a> {
    /// The keys, in the order in which they are looked at.
    pub keys: Arguments<'a>,
    /// Where members are taken from.
    pub end: ScoreEnd,
    /// How many are taken at most.
    pub count: u64,
}

fields!(ZMPop<'a> = 241 { keys: List<1>, end: ScoreEnd, count: Unsigned });

impl<'a> Definition<'a> for ZMPop<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "zmpop",
        arity: -4,
        keys: KeyPositions::NONE,
        key_count: 1,
        flags: &["write", "movablekeys"],
        since: "7.0.0",
        summary: "Removes members of the first of several sorted sets that exists and returns them.",
        parser: |_, words| parse(words),
        ..SLOW_UPDATE
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Every { list: self.keys, step: 1 }
    }

    /// All together are not longer than one may be.
    fn values(&self) -> u32 {
        1
    }
}

fn parse(words: Words<'_>) -> Result<Command<'_>, CommandError> {
    let (keys, end, count) = parse_pop(words, parse_score_end)?;
    Ok(ZMPop { keys, end, count: count.unwrap_or(1) }.into())
}

/// The end that a word names.
pub(in crate::families) fn parse_score_end(word: &[u8]) -> Result<ScoreEnd, CommandError> {
    if is(word, "min") {
        Ok(ScoreEnd::Min)
    } else if is(word, "max") {
        Ok(ScoreEnd::Max)
    } else {
        Err(CommandError::Syntax)
    }
}

impl<'a> UpdateCommand<'a> for ZMPop<'a> {
    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        for key in self.keys {
            if sorted_set_of(keys.get(key).as_ref())?.is_some() {
                put_array(reply, 2);
                put_bulk(reply, key);
                return pop_some(keys, key, self.end, self.count, Shape::Nested, reply);
            }
        }
        put_nil_array(reply);
        Ok(())
    }
}
