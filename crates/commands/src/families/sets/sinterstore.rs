//! SINTERSTORE, SUNIONSTORE and SDIFFSTORE.

use super::sinter::SetOperator;
use super::{ROW, with_sets};
use crate::access::KeysMut;
use crate::arguments::Arguments;
use crate::encoding::{Encoding, Field as _, List, Opcode};
use crate::families::definition::{
    Definition, ExecutionResult, KEY_BYTES, KeyNames, RESULT_WORK, UpdateCommand,
};
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions};
use crate::primitive::Malformed;
use crate::reply::put_integer;
use crate::words::{Words, arguments};

/// SINTERSTORE, SUNIONSTORE, SDIFFSTORE: gives a key what becomes of sets, whatever it was before, and no expiry. Without
/// members the key goes. Answers their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SInterStore<'a> {
    /// What becomes of the sets.
    pub operator: SetOperator,
    /// The key that gets the result, and then the keys of at least one set. One that does not exist is an empty set.
    pub keys: Arguments<'a>,
}

impl SInterStore<'_> {
    /// The opcode of SUNIONSTORE.
    pub(crate) const OPCODE_UNION: Opcode = 206;

    /// The opcode of SDIFFSTORE.
    pub(crate) const OPCODE_DIFFERENCE: Opcode = 207;

    const OPCODES: [Opcode; 3] = [Self::OPCODE, Self::OPCODE_UNION, Self::OPCODE_DIFFERENCE];
}

impl<'a> Encoding<'a> for SInterStore<'a> {
    const OPCODE: Opcode = 205;

    fn opcode(&self) -> Opcode {
        self.operator.opcode(Self::OPCODES)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        List::<1>::put(out, self.keys);
    }

    fn decode(opcode: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let operator = SetOperator::of_opcode(opcode, Self::OPCODES);
        let keys = List::<1>::take(input)?;
        if keys.len() == 1 { Err(Malformed::Count(1)) } else { Ok(Self { operator, keys }) }
    }
}

/// What the result takes, about: the bytes of the operation do not say it. Where there is no room for so much, the
/// operation is refused; where there is, the result may take more, as in Redis.
const RESULT_BYTES: usize = 64 << 10;

/// What the rows have in common.
const STORE_ROW: CommandSpec = CommandSpec {
    kind: CommandKind::UPDATE,
    arity: -3,
    keys: KeyPositions::ALL,
    key_flags: &[&["OW", "update"], &["RO", "access"]],
    flags: &["write", "denyoom"],
    categories: &["@write", "@set", "@slow"],
    ..ROW
};

fn of(operator: SetOperator, words: Words<'_>) -> SInterStore<'_> {
    SInterStore { operator, keys: arguments(words) }
}

impl<'a> Definition<'a> for SInterStore<'a> {
    const SPECS: &'static [CommandSpec] = &[
        CommandSpec {
            name: "sinterstore",
            key_flags: &[&["RW", "update"], &["RO", "access"]],
            summary: "Stores the members that all of several sets have.",
            parser: |_, words| Ok(of(SetOperator::Intersection, words).into()),
            ..STORE_ROW
        },
        CommandSpec {
            name: "sunionstore",
            summary: "Stores the members that any of several sets has.",
            parser: |_, words| Ok(of(SetOperator::Union, words).into()),
            ..STORE_ROW
        },
        CommandSpec {
            name: "sdiffstore",
            summary: "Stores the members of a set that no other set has.",
            parser: |_, words| Ok(of(SetOperator::Difference, words).into()),
            ..STORE_ROW
        },
    ];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Every { list: self.keys, step: 1 }
    }
}

impl<'a> UpdateCommand<'a> for SInterStore<'a> {
    fn counts(&self) -> bool {
        true
    }

    fn growth(&self, encoded: usize) -> usize {
        encoded + KEY_BYTES + RESULT_BYTES
    }

    fn work(&self) -> usize {
        RESULT_WORK
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let mut names = self.keys.iter();
        let Some(destination) = names.next() else { return Ok(()) };
        let result = with_sets(keys, names, |sets| self.operator.result(sets))?;
        put_integer(reply, result.len() as i64);
        if result.is_empty() {
            keys.delete(destination);
        } else {
            keys.set_collection(destination, result);
            keys.notify(self.operator.stored(), destination);
        }
        Ok(())
    }
}
