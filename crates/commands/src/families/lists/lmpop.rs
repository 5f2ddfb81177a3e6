//! LMPOP.

use super::end::parse_end;
use super::pop::pop_some;
use super::{SLOW_UPDATE, list_of};
use crate::access::KeysMut;
use crate::arguments::Arguments;
use crate::encoding::{List as KeyList, fields};
use crate::error::CommandError;
use crate::families::Command;
use crate::families::counts::{OptionalCount, parse_pop};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::specification::{CommandSpec, KeyPositions};
use crate::reply::{put_array, put_bulk, put_nil_array};
use crate::words::Words;
use syros_values::ListEnd;

/// LMPOP: takes elements from the first list that there is, and answers its key and the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LMPop<'a> {
    /// The keys, in the order in which they are looked at.
    pub keys: Arguments<'a>,
    /// Where elements are taken from.
    pub end: ListEnd,
    /// How many are taken at most; one if it is not said.
    pub count: Option<u64>,
}

fields!(LMPop<'a> = 278 { keys: KeyList<1>, end: ListEnd, count: OptionalCount });

impl<'a> Definition<'a> for LMPop<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "lmpop",
        arity: -4,
        keys: KeyPositions::NONE,
        key_count: 1,
        key_flags: &[&["RW", "access", "delete"]],
        flags: &["write", "movablekeys"],
        since: "7.0.0",
        summary: "Removes elements from the first of several lists that exists and returns them.",
        parser: parse,
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

fn parse<'a>(_: &'static str, words: Words<'a>) -> Result<Command<'a>, CommandError> {
    let (keys, end, count) = parse_pop(words, parse_end)?;
    Ok(LMPop { keys, end, count }.into())
}

impl<'a> UpdateCommand<'a> for LMPop<'a> {
    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        for key in self.keys {
            if list_of(keys.get(key).as_ref())?.is_some() {
                put_array(reply, 2);
                put_bulk(reply, key);
                let count = self.count.unwrap_or(1);
                return pop_some(keys, key, self.end, count, reply);
            }
        }
        put_nil_array(reply);
        Ok(())
    }
}
