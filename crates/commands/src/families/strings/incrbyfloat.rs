//! INCRBYFLOAT.

use super::ROW;
use crate::access::{EntryRef as _, KeyEvent, KeysMut};
use crate::encoding::{Field, Key, fields};
use crate::error::{CommandError, ExecutionError};
use crate::extended::Extended;
use crate::families::definition::{
    DECIMAL_BYTES, DECIMAL_WORK, Definition, ExecutionResult, KEY_BYTES, KeyNames, UpdateCommand,
};
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions};
use crate::primitive::Malformed;
use crate::reply::put_bulk;

/// INCRBYFLOAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IncrByFloat<'a> {
    /// The key, whose value is a number; 0 if there is no such key.
    pub key: &'a [u8],
    /// What is added.
    pub delta: Extended,
}

impl<'a> Field<'a> for Extended {
    type Content = Self;

    fn put(out: &mut Vec<u8>, content: Self) {
        out.extend_from_slice(&content.to_bytes());
    }

    fn take(input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let (bytes, rest) = input.split_first_chunk().ok_or(Malformed::Truncated)?;
        *input = rest;
        Self::from_bytes(*bytes).ok_or(Malformed::Number)
    }
}

fields!(IncrByFloat<'a> = 42 { key: Key, delta: Extended });

impl<'a> Definition<'a> for IncrByFloat<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "incrbyfloat",
        kind: CommandKind::UPDATE,
        arity: 3,
        keys: KeyPositions::ONE,
        key_flags: &[&["RW", "access", "update"]],
        flags: &["write", "denyoom", "fast"],
        categories: &["@write", "@string", "@fast"],
        since: "2.6.0",
        summary: "Increments the floating point value of a key by a number.",
        parser: |_, words| {
            let delta = Extended::parse_argument(words[2]).ok_or(CommandError::NotFloat)?;
            Ok(IncrByFloat { key: words[1], delta }.into())
        },
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl<'a> UpdateCommand<'a> for IncrByFloat<'a> {
    fn growth(&self, encoded: usize) -> usize {
        encoded + KEY_BYTES + DECIMAL_BYTES
    }

    fn work(&self) -> usize {
        DECIMAL_WORK
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let old = match keys.get(self.key) {
            Some(found) => Extended::parse(found.string()?).ok_or(ExecutionError::NotFloat)?,
            None => Extended::ZERO,
        };
        let sum = old.checked_add(self.delta).ok_or(ExecutionError::NotFinite)?;
        let mut value = Vec::new();
        sum.write(&mut value);
        put_bulk(reply, &value);
        let expiry = keys.get(self.key).and_then(|found| found.expiry());
        keys.set(self.key, &value, expiry);
        keys.notify(KeyEvent::IncrByFloat, self.key);
        Ok(())
    }
}
