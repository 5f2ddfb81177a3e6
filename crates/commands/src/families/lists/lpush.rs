//! LPUSH and RPUSH, and LPUSHX and RPUSHX, which need a list.

use super::pop::pushed;
use super::{FAST_UPDATE, list_of};
use crate::access::KeysMut;
use crate::arguments::Arguments;
use crate::encoding::{Elements, Encoding, Field as _, Key, Opcode};
use crate::error::CommandError;
use crate::families::Command;
use crate::families::definition::{Definition, ExecutionResult, KEY_BYTES, KeyNames, UpdateCommand};
use crate::families::elements::{ELEMENT_BYTES, elements};
use crate::families::specification::CommandSpec;
use crate::primitive::Malformed;
use crate::reply::put_integer;
use crate::words::Words;
use syros_values::{List, ListEnd};

/// LPUSH, RPUSH, LPUSHX, RPUSHX: answers how many elements the list has then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LPush<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Where the elements are added.
    pub end: ListEnd,
    /// The elements, one by one: of those that are added on the left the last one is the first then.
    pub elements: Arguments<'a>,
    /// LPUSHX and RPUSHX: nothing is added if there is no list.
    pub if_present: bool,
}

impl LPush<'_> {
    /// The opcode of RPUSH.
    pub(crate) const OPCODE_RIGHT: Opcode = 73;

    /// The opcode of LPUSHX.
    pub(crate) const OPCODE_LEFT_IF_PRESENT: Opcode = 275;

    /// The opcode of RPUSHX.
    pub(crate) const OPCODE_RIGHT_IF_PRESENT: Opcode = 276;
}

impl<'a> Encoding<'a> for LPush<'a> {
    const OPCODE: Opcode = 72;

    fn opcode(&self) -> Opcode {
        match (self.end, self.if_present) {
            (ListEnd::Left, false) => Self::OPCODE,
            (ListEnd::Right, false) => Self::OPCODE_RIGHT,
            (ListEnd::Left, true) => Self::OPCODE_LEFT_IF_PRESENT,
            (ListEnd::Right, true) => Self::OPCODE_RIGHT_IF_PRESENT,
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        Key::put(out, self.key);
        Elements::<1>::put(out, self.elements);
    }

    fn decode(opcode: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let is_right = opcode == Self::OPCODE_RIGHT || opcode == Self::OPCODE_RIGHT_IF_PRESENT;
        let if_present = opcode == Self::OPCODE_LEFT_IF_PRESENT || opcode == Self::OPCODE_RIGHT_IF_PRESENT;
        let end = if is_right { ListEnd::Right } else { ListEnd::Left };
        Ok(Self { key: Key::take(input)?, end, elements: Elements::<1>::take(input)?, if_present })
    }
}

/// What the rows have in common.
const ROW: CommandSpec = CommandSpec {
    arity: -3,
    key_flags: &[&["RW", "insert"]],
    flags: &["write", "denyoom", "fast"],
    ..FAST_UPDATE
};

impl<'a> Definition<'a> for LPush<'a> {
    const SPECS: &'static [CommandSpec] = &[
        CommandSpec {
            name: "lpush",
            summary: "Adds elements on the left of a list; creates the key if it does not exist.",
            parser: |_, words| parse(words, ListEnd::Left, false),
            ..ROW
        },
        CommandSpec {
            name: "lpushx",
            since: "2.2.0",
            summary: "Adds elements on the left of a list that exists.",
            parser: |_, words| parse(words, ListEnd::Left, true),
            ..ROW
        },
        CommandSpec {
            name: "rpush",
            summary: "Adds elements on the right of a list; creates the key if it does not exist.",
            parser: |_, words| parse(words, ListEnd::Right, false),
            ..ROW
        },
        CommandSpec {
            name: "rpushx",
            since: "2.2.0",
            summary: "Adds elements on the right of a list that exists.",
            parser: |_, words| parse(words, ListEnd::Right, true),
            ..ROW
        },
    ];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

fn parse(words: Words<'_>, end: ListEnd, if_present: bool) -> Result<Command<'_>, CommandError> {
    Ok(LPush { key: words[1], end, elements: elements(words, 1)?, if_present }.into())
}

impl<'a> UpdateCommand<'a> for LPush<'a> {
    /// LPUSHX says whether it took place.
    fn counts(&self) -> bool {
        !self.if_present
    }

    fn growth(&self, encoded: usize) -> usize {
        encoded + KEY_BYTES + self.elements.len() * ELEMENT_BYTES
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        if self.if_present && list_of(keys.get(self.key).as_ref())?.is_none() {
            put_integer(reply, 0);
            return Ok(());
        }
        let length = keys.edit_collection(self.key, |list: &mut List| {
            self.elements.iter().for_each(|element| list.push(self.end, element));
            list.len()
        })?;
        keys.notify(pushed(self.end), self.key);
        put_integer(reply, length as i64);
        Ok(())
    }
}
