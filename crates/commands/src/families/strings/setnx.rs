//! SETNX.

use super::ROW;
use crate::access::{KeyEvent, KeysMut};
use crate::encoding::{Key, Value, fields};
use crate::families::definition::{Definition, ExecutionResult, KEY_BYTES, KeyNames, UpdateCommand};
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions};
use crate::reply::put_integer;

/// SETNX: SET NX that answers 1 or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetNx<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Its value, if it has none.
    pub value: &'a [u8],
}

fields!(SetNx<'a> = 36 { key: Key, value: Value });

impl<'a> Definition<'a> for SetNx<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "setnx",
        kind: CommandKind::UPDATE,
        arity: 3,
        keys: KeyPositions::ONE,
        key_flags: &[&["OW", "insert"]],
        flags: &["write", "denyoom", "fast"],
        categories: &["@write", "@string", "@fast"],
        since: "1.0.0",
        summary: "Sets the value of a key if it does not exist.",
        parser: |_, words| Ok(SetNx { key: words[1], value: words[2] }.into()),
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl<'a> UpdateCommand<'a> for SetNx<'a> {
    fn growth(&self, encoded: usize) -> usize {
        encoded + KEY_BYTES
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let free = keys.get(self.key).is_none();
        if free {
            keys.set(self.key, self.value, None);
            keys.notify(KeyEvent::Set, self.key);
        }
        put_integer(reply, i64::from(free));
        Ok(())
    }
}
