//! HINCRBYFLOAT.

use super::GROWING_UPDATE;
use crate::access::{KeyEvent, KeysMut};
use crate::encoding::{Key, Value, fields};
use crate::error::{CommandError, ExecutionError};
use crate::extended::Extended;
use crate::families::definition::{
    DECIMAL_BYTES, DECIMAL_WORK, Definition, ExecutionResult, KEY_BYTES, KeyNames, UpdateCommand,
};
use crate::families::elements::ELEMENT_BYTES;
use crate::families::specification::CommandSpec;
use crate::reply::put_bulk;
use syros_values::Hash;

/// HINCRBYFLOAT: answers the sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HIncrByFloat<'a> {
    /// The key, which need not exist.
    pub key: &'a [u8],
    /// The field, whose value is a number; 0 if there is no such field.
    pub field: &'a [u8],
    /// What is added.
    pub delta: Extended,
}

fields!(HIncrByFloat<'a> = 160 { key: Key, field: Value, delta: Extended });

impl<'a> Definition<'a> for HIncrByFloat<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "hincrbyfloat",
        arity: 4,
        since: "2.6.0",
        summary: "Increments the floating point value of a field of a hash by a number.",
        parser: |_, words| {
            let delta = Extended::parse_argument(words[3]).ok_or(CommandError::NotFloat)?;
            if !delta.is_finite() {
                return Err(CommandError::NotFiniteArgument);
            }
            Ok(HIncrByFloat { key: words[1], field: words[2], delta }.into())
        },
        ..GROWING_UPDATE
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl<'a> UpdateCommand<'a> for HIncrByFloat<'a> {
    fn growth(&self, encoded: usize) -> usize {
        encoded + KEY_BYTES + ELEMENT_BYTES + DECIMAL_BYTES
    }

    fn work(&self) -> usize {
        DECIMAL_WORK
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        keys.edit_collection(self.key, |hash: &mut Hash| {
            let old = hash.at(now_ms).get(self.field).map_or(Some(Extended::ZERO), Extended::parse_argument);
            let old = old.ok_or(ExecutionError::FieldNotFloat)?;
            let sum = old.checked_add(self.delta).ok_or(ExecutionError::NotFinite)?;
            let mut value = Vec::new();
            sum.write(&mut value);
            hash.replace_at(self.field, &value, now_ms);
            put_bulk(reply, &value);
            Ok::<_, ExecutionError>(())
        })??;
        keys.notify(KeyEvent::HIncrByFloat, self.key);
        Ok(())
    }
}
