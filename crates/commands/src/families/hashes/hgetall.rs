//! HGETALL, and HKEYS and HVALS, which answer one half of it.

use super::{SLOW_READ, hash_of, work_of_fields};
use crate::access::Keys;
use crate::encoding::{Encoding, Field as _, Key, Opcode};
use crate::error::ExecutionError;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::CommandSpec;
use crate::primitive::Malformed;
use crate::reply::{put_array, put_bulk, put_map};

/// HGETALL, HKEYS, HVALS: in the order of the hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HGetAll<'a> {
    /// The key.
    pub key: &'a [u8],
    /// What is answered of each field.
    pub part: FieldPart,
}

/// What of a field is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldPart {
    /// HGETALL: both.
    Both,
    /// HKEYS: its name.
    Name,
    /// HVALS: its value.
    Value,
}

impl HGetAll<'_> {
    /// The opcode of HKEYS.
    pub(crate) const OPCODE_NAMES: Opcode = 128;

    /// The opcode of HVALS.
    pub(crate) const OPCODE_VALUES: Opcode = 129;
}

impl<'a> Encoding<'a> for HGetAll<'a> {
    const OPCODE: Opcode = 17;

    fn opcode(&self) -> Opcode {
        match self.part {
            FieldPart::Both => Self::OPCODE,
            FieldPart::Name => Self::OPCODE_NAMES,
            FieldPart::Value => Self::OPCODE_VALUES,
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        Key::put(out, self.key);
    }

    fn decode(opcode: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let part = match opcode {
            Self::OPCODE_NAMES => FieldPart::Name,
            Self::OPCODE_VALUES => FieldPart::Value,
            _ => FieldPart::Both,
        };
        Ok(Self { key: Key::take(input)?, part })
    }
}

/// What the rows have in common.
const ROW: CommandSpec = CommandSpec { arity: 2, tips: &["nondeterministic_output_order"], ..SLOW_READ };

impl<'a> Definition<'a> for HGetAll<'a> {
    const SPECS: &'static [CommandSpec] = &[
        CommandSpec {
            name: "hgetall",
            summary: "Returns all fields of a hash with their values.",
            parser: |_, words| Ok(HGetAll { key: words[1], part: FieldPart::Both }.into()),
            ..ROW
        },
        CommandSpec {
            name: "hkeys",
            summary: "Returns all fields of a hash.",
            parser: |_, words| Ok(HGetAll { key: words[1], part: FieldPart::Name }.into()),
            ..ROW
        },
        CommandSpec {
            name: "hvals",
            summary: "Returns the values of all fields of a hash.",
            parser: |_, words| Ok(HGetAll { key: words[1], part: FieldPart::Value }.into()),
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

impl ReadCommand for HGetAll<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let hash = hash_of(keys, found.as_ref())?;
        let count = hash.as_ref().map_or(0, |hash| hash.len() as usize);
        match self.part {
            FieldPart::Both => put_map(reply, count),
            FieldPart::Name | FieldPart::Value => put_array(reply, count),
        }
        for (field, value) in hash.iter().flatten() {
            if self.part != FieldPart::Value {
                put_bulk(reply, field);
            }
            if self.part != FieldPart::Name {
                put_bulk(reply, value);
            }
            if reply.len() > view.reply_end {
                return Err(ExecutionError::ReplyTooLong);
            }
        }
        Ok(())
    }

    fn work_on<K: Keys>(&self, keys: &K) -> usize {
        work_of_fields(keys, self.key, u64::MAX)
    }
}
