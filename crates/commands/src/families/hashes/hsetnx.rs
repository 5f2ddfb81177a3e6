//! HSETNX.

use super::{GROWING_UPDATE, hash_of};
use crate::access::{KeyEvent, KeysMut};
use crate::encoding::{Key, Value, fields};
use crate::families::definition::{Definition, ExecutionResult, KEY_BYTES, KeyNames, UpdateCommand};
use crate::families::elements::ELEMENT_BYTES;
use crate::families::specification::CommandSpec;
use crate::reply::put_integer;
use syros_values::Hash;

/// HSETNX: answers 1 or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HSetNx<'a> {
    /// The key, which need not exist.
    pub key: &'a [u8],
    /// The field.
    pub field: &'a [u8],
    /// Its value, if it has none.
    pub value: &'a [u8],
}

fields!(HSetNx<'a> = 53 { key: Key, field: Value, value: Value });

impl<'a> Definition<'a> for HSetNx<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "hsetnx",
        arity: 4,
        key_flags: &[&["RW", "insert"]],
        summary: "Sets a field of a hash if it does not exist.",
        parser: |_, words| Ok(HSetNx { key: words[1], field: words[2], value: words[3] }.into()),
        ..GROWING_UPDATE
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl<'a> UpdateCommand<'a> for HSetNx<'a> {
    fn growth(&self, encoded: usize) -> usize {
        encoded + KEY_BYTES + ELEMENT_BYTES
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let is_free = hash_of(keys, found.as_ref())?.is_none_or(|hash| hash.get(self.field).is_none());
        drop(found);
        if is_free {
            keys.edit_collection(self.key, |hash: &mut Hash| hash.set_at(self.field, self.value, now_ms))?;
            keys.notify(KeyEvent::HSet, self.key);
        }
        put_integer(reply, i64::from(is_free));
        Ok(())
    }
}
