//! INCR, DECR, INCRBY and DECRBY: all of them add a number.

use super::alter;
use crate::access::{KeysMut, Operand};
use crate::encoding::{Key, Signed, fields};
use crate::error::CommandError;
use crate::families::definition::{Definition, ExecutionResult, KEY_BYTES, KeyNames, UpdateCommand};
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions};
use crate::reply::put_integer;
use crate::words::integer;

/// INCR, DECR, INCRBY, DECRBY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IncrBy<'a> {
    /// The key, whose value is a number; 0 if there is no such key.
    pub key: &'a [u8],
    /// What is added.
    pub delta: i64,
}

fields!(IncrBy<'a> = 41 { key: Key, delta: Signed });

/// What the rows have in common.
const ROW: CommandSpec = CommandSpec {
    kind: CommandKind::UPDATE,
    keys: KeyPositions::ONE,
    key_flags: &[&["RW", "access", "update"]],
    flags: &["write", "denyoom", "fast"],
    categories: &["@write", "@string", "@fast"],
    since: "1.0.0",
    ..super::ROW
};

impl<'a> Definition<'a> for IncrBy<'a> {
    const SPECS: &'static [CommandSpec] = &[
        CommandSpec {
            name: "decr",
            arity: 2,
            summary: "Decrements the integer value of a key by one.",
            parser: |_, words| Ok(IncrBy { key: words[1], delta: -1 }.into()),
            ..ROW
        },
        CommandSpec {
            name: "decrby",
            arity: 3,
            summary: "Decrements the integer value of a key by a number.",
            parser: |_, words| {
                let delta = integer(words[2])?.checked_neg().ok_or(CommandError::DecrementOverflow)?;
                Ok(IncrBy { key: words[1], delta }.into())
            },
            ..ROW
        },
        CommandSpec {
            name: "incr",
            arity: 2,
            summary: "Increments the integer value of a key by one.",
            parser: |_, words| Ok(IncrBy { key: words[1], delta: 1 }.into()),
            ..ROW
        },
        CommandSpec {
            name: "incrby",
            arity: 3,
            summary: "Increments the integer value of a key by a number.",
            parser: |_, words| Ok(IncrBy { key: words[1], delta: integer(words[2])? }.into()),
            ..ROW
        },
    ];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl<'a> UpdateCommand<'a> for IncrBy<'a> {
    fn growth(&self, encoded: usize) -> usize {
        encoded + KEY_BYTES
    }

    fn operand(&self) -> Option<(&'a [u8], Operand<'a>)> {
        Some((self.key, Operand::Add(self.delta)))
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        put_integer(reply, alter(keys, self.key, Operand::Add(self.delta))?);
        Ok(())
    }
}
