//! BITOP.

use super::UPDATE;
use crate::access::{KeyEvent, KeysMut};
use crate::arguments::Arguments;
use crate::encoding::{Encoding, Field as _, List, Opcode};
use crate::error::{CommandError, ExecutionError};
use crate::families::definition::{
    Definition, ExecutionResult, KEY_BYTES, KeyNames, UpdateCommand, VALUE_WORK,
};
use crate::families::specification::{CommandSpec, KeyPositions};
use crate::families::strings::string_of;
use crate::limits::SOURCE_BYTES_MAX;
use crate::primitive::{Malformed, take_u8};
use crate::reply::put_integer;
use crate::words::{Words, is};
use syros_types::limits::VALUE_BYTES_MAX;

/// BITOP: answers the length of the result. A key whose string would be empty is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitOp<'a> {
    /// What is done with the sources.
    pub operator: BitOperator,
    /// The key that gets the result, whatever it was, and the sources behind it: exactly one of NOT. Shorter ones, and
    /// keys that do not exist, count as if filled with zeros.
    pub keys: Arguments<'a>,
}

/// What is done with bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum BitOperator {
    /// 1 where all of them are.
    And = 0,
    /// 1 where one of them is.
    Or = 1,
    /// 1 where an odd number of them is.
    Xor = 2,
    /// 1 where the one of them is 0.
    Not = 3,
}

impl<'a> Encoding<'a> for BitOp<'a> {
    const OPCODE: Opcode = 162;

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.operator as u8);
        List::<1>::put(out, self.keys);
    }

    fn decode(_: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let operator = match take_u8(input)? {
            0 => BitOperator::And,
            1 => BitOperator::Or,
            2 => BitOperator::Xor,
            3 => BitOperator::Not,
            other => return Err(Malformed::Options(other)),
        };
        let keys = List::<1>::take(input)?;
        let is_complete = if operator == BitOperator::Not { keys.len() == 2 } else { keys.len() >= 2 };
        if is_complete { Ok(Self { operator, keys }) } else { Err(Malformed::Count(keys.len() as u64)) }
    }
}

impl<'a> Definition<'a> for BitOp<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "bitop",
        arity: -4,
        keys: KeyPositions { first: 2, last: -1, step: 1 },
        key_flags: &[&["OW", "update"], &["RO", "access"]],
        since: "2.6.0",
        summary: "Combines the bits of the values of keys, and stores the result in a key.",
        parser: |_, words| Ok(parse(words)?.into()),
        ..UPDATE
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Every { list: self.keys, step: 1 }
    }
}

fn parse<'a>(words: Words<'a>) -> Result<BitOp<'a>, CommandError> {
    let operator = match words[1] {
        name if is(name, "and") => BitOperator::And,
        name if is(name, "or") => BitOperator::Or,
        name if is(name, "xor") => BitOperator::Xor,
        name if is(name, "not") => BitOperator::Not,
        _ => return Err(CommandError::Syntax),
    };
    if operator == BitOperator::Not && words.len() > 4 {
        return Err(CommandError::NotOfSeveral);
    }
    Ok(BitOp { operator, keys: Arguments::new(&words[2..]) })
}

impl<'a> UpdateCommand<'a> for BitOp<'a> {
    fn growth(&self, encoded: usize) -> usize {
        // Only the sources know how long they are.
        VALUE_BYTES_MAX + encoded + KEY_BYTES
    }

    fn work(&self) -> usize {
        self.keys.len() * VALUE_WORK
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let mut names = self.keys.iter();
        let destination = names.next().ok_or(ExecutionError::Malformed)?;
        let result = self.combined(keys, names)?;
        if result.is_empty() {
            keys.delete(destination);
        } else {
            keys.set(destination, &result, None);
            keys.notify(KeyEvent::Set, destination);
        }
        put_integer(reply, result.len() as i64);
        Ok(())
    }
}

impl<'a> BitOp<'a> {
    fn combined<K: KeysMut>(
        &self,
        keys: &K,
        sources: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Vec<u8>, ExecutionError> {
        let mut result = Vec::new();
        let mut length_of_all = 0;
        for (number, source) in sources.enumerate() {
            let found = keys.get(source);
            let bytes = string_of(found.as_ref())?.unwrap_or_default();
            length_of_all += bytes.len();
            if length_of_all > SOURCE_BYTES_MAX {
                return Err(ExecutionError::SourcesTooLong);
            }
            if number == 0 {
                result.extend_from_slice(bytes);
            } else {
                self.operator.combine(&mut result, bytes);
            }
        }
        if self.operator == BitOperator::Not {
            result.iter_mut().for_each(|byte| *byte = !*byte);
        }
        Ok(result)
    }
}

impl BitOperator {
    /// Combines `bytes` with another string. The shorter of the two counts as if filled with zeros.
    fn combine(self, bytes: &mut Vec<u8>, other: &[u8]) {
        bytes.resize(bytes.len().max(other.len()), 0);
        let (common, rest) = bytes.split_at_mut(other.len());
        let pairs = common.iter_mut().zip(other);
        match self {
            Self::And => {
                pairs.for_each(|(byte, other)| *byte &= other);
                rest.fill(0);
            }
            Self::Or => pairs.for_each(|(byte, other)| *byte |= other),
            Self::Xor => pairs.for_each(|(byte, other)| *byte ^= other),
            Self::Not => {}
        }
    }
}
