//! LPOP and RPOP.

use super::pop::{pop_first, pop_some};
use super::{FAST_UPDATE, list_of};
use crate::access::KeysMut;
use crate::encoding::{Encoding, Field as _, Key, Opcode};
use crate::error::CommandError;
use crate::families::Command;
use crate::families::counts::{OptionalCount, parse_count};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::elements::put_optional;
use crate::families::specification::CommandSpec;
use crate::primitive::Malformed;
use crate::reply::put_nil_array;
use crate::words::Words;
use syros_values::ListEnd;

/// LPOP and RPOP: answers the element, or, with a count, an array of elements. With its last element the key goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LPop<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Where elements are taken from.
    pub end: ListEnd,
    /// How many are taken at most.
    pub count: Option<u64>,
}

impl LPop<'_> {
    /// The opcode of RPOP.
    pub(crate) const OPCODE_RIGHT: Opcode = 75;
}

impl<'a> Encoding<'a> for LPop<'a> {
    const OPCODE: Opcode = 74;

    fn opcode(&self) -> Opcode {
        match self.end {
            ListEnd::Left => Self::OPCODE,
            ListEnd::Right => Self::OPCODE_RIGHT,
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        Key::put(out, self.key);
        OptionalCount::put(out, self.count);
    }

    fn decode(opcode: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let end = if opcode == Self::OPCODE { ListEnd::Left } else { ListEnd::Right };
        Ok(Self { key: Key::take(input)?, end, count: OptionalCount::take(input)? })
    }
}

/// What the rows have in common.
const ROW: CommandSpec = CommandSpec {
    arity: -2,
    key_flags: &[&["RW", "access", "delete"]],
    flags: &["write", "fast"],
    ..FAST_UPDATE
};

impl<'a> Definition<'a> for LPop<'a> {
    const SPECS: &'static [CommandSpec] = &[
        CommandSpec {
            name: "lpop",
            summary: "Removes elements from the left of a list and returns them.",
            parser: |name, words| parse(name, words, ListEnd::Left),
            ..ROW
        },
        CommandSpec {
            name: "rpop",
            summary: "Removes elements from the right of a list and returns them.",
            parser: |name, words| parse(name, words, ListEnd::Right),
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

fn parse<'a>(name: &'static str, words: Words<'a>, end: ListEnd) -> Result<Command<'a>, CommandError> {
    let count = match words[2..] {
        [] => None,
        [count] => Some(parse_count(count).ok_or(CommandError::CountNotPositive)?),
        _ => return Err(CommandError::Arity(name)),
    };
    Ok(LPop { key: words[1], end, count }.into())
}

impl<'a> UpdateCommand<'a> for LPop<'a> {
    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let Some(count) = self.count else {
            put_optional(reply, pop_first(keys, self.key, self.end)?.as_deref());
            return Ok(());
        };
        if list_of(keys.get(self.key).as_ref())?.is_none() {
            put_nil_array(reply);
            return Ok(());
        }
        pop_some(keys, self.key, self.end, count, reply)
    }
}
