//! HINCRBY.

use super::GROWING_UPDATE;
use crate::access::{KeyEvent, KeysMut};
use crate::encoding::{Key, Signed, Value, fields};
use crate::error::ExecutionError;
use crate::families::definition::{Definition, ExecutionResult, KEY_BYTES, KeyNames, UpdateCommand};
use crate::families::elements::ELEMENT_BYTES;
use crate::families::specification::CommandSpec;
use crate::number::{parse_integer, write_integer};
use crate::reply::put_integer;
use crate::words::integer;
use syros_values::Hash;

/// HINCRBY: answers the sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HIncrBy<'a> {
    /// The key, which need not exist.
    pub key: &'a [u8],
    /// The field, whose value is a number; 0 if there is no such field.
    pub field: &'a [u8],
    /// What is added.
    pub delta: i64,
}

fields!(HIncrBy<'a> = 52 { key: Key, field: Value, delta: Signed });

impl<'a> Definition<'a> for HIncrBy<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "hincrby",
        arity: 4,
        summary: "Increments the integer value of a field of a hash by a number.",
        parser: |_, words| Ok(HIncrBy { key: words[1], field: words[2], delta: integer(words[3])? }.into()),
        ..GROWING_UPDATE
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl<'a> UpdateCommand<'a> for HIncrBy<'a> {
    fn growth(&self, encoded: usize) -> usize {
        encoded + KEY_BYTES + ELEMENT_BYTES
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let sum = keys.edit_collection(self.key, |hash: &mut Hash| {
            let old = hash.at(now_ms).get(self.field).map_or(Some(0), parse_integer);
            let old = old.ok_or(ExecutionError::FieldNotInteger)?;
            let sum = old.checked_add(self.delta).ok_or(ExecutionError::IncrementOverflow)?;
            let mut value = Vec::new();
            write_integer(&mut value, sum);
            hash.replace_at(self.field, &value, now_ms);
            Ok::<_, ExecutionError>(sum)
        })?;
        put_integer(reply, sum?);
        keys.notify(KeyEvent::HIncrBy, self.key);
        Ok(())
    }
}
