//! APPEND.

use super::{ROW, alter};
use crate::access::{KeysMut, Operand};
use crate::encoding::{Key, Value, fields};
use crate::families::definition::{Definition, ExecutionResult, KEY_BYTES, KeyNames, UpdateCommand};
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions};
use crate::reply::put_integer;

/// APPEND: answers the length of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Append<'a> {
    /// The key, which need not exist.
    pub key: &'a [u8],
    /// What goes behind its value.
    pub value: &'a [u8],
}

fields!(Append<'a> = 39 { key: Key, value: Value });

impl<'a> Definition<'a> for Append<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "append",
        kind: CommandKind::UPDATE,
        arity: 3,
        keys: KeyPositions::ONE,
        key_flags: &[&["RW", "insert"]],
        flags: &["write", "denyoom", "fast"],
        categories: &["@write", "@string", "@fast"],
        since: "2.0.0",
        summary: "Appends a string to the value of a key; creates the key if it does not exist.",
        parser: |_, words| Ok(Append { key: words[1], value: words[2] }.into()),
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl<'a> UpdateCommand<'a> for Append<'a> {
    fn counts(&self) -> bool {
        true
    }

    fn growth(&self, encoded: usize) -> usize {
        encoded + KEY_BYTES
    }

    fn operand(&self) -> Option<(&'a [u8], Operand<'a>)> {
        Some((self.key, Operand::Append(self.value)))
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        put_integer(reply, alter(keys, self.key, Operand::Append(self.value))?);
        Ok(())
    }
}
