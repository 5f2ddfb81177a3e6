//! SETRANGE.

use super::{ROW, edit_grown, length};
use crate::access::{KeyEvent, KeysMut};
use crate::encoding::{Encoding, Field as _, Key, Opcode, Value};
use crate::error::{CommandError, ExecutionError};
use crate::families::definition::{Definition, ExecutionResult, KEY_BYTES, KeyNames, UpdateCommand};
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions};
use crate::primitive::Malformed;
use crate::reply::put_integer;
use crate::words::integer;
use syros_types::limits::VALUE_BYTES_MAX;
use syros_types::varint::{put_varint, take_varint};

/// SETRANGE. `offset + value.len()` is a legal length, unless the value is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetRange<'a> {
    /// The key, which need not exist.
    pub key: &'a [u8],
    /// Where `value` goes. A gap before it is filled with zeros.
    pub offset: u64,
    /// The part of the key's value that is overwritten.
    pub value: &'a [u8],
}

impl SetRange<'_> {
    /// How long the key's value becomes at least.
    const fn end(&self) -> u64 {
        self.offset.saturating_add(self.value.len() as u64)
    }

    /// True if the value does not become too long.
    const fn is_legal(&self) -> bool {
        self.value.is_empty() || self.end() <= VALUE_BYTES_MAX as u64
    }
}

impl<'a> Encoding<'a> for SetRange<'a> {
    const OPCODE: Opcode = 40;

    fn encode(&self, out: &mut Vec<u8>) {
        Key::put(out, self.key);
        put_varint(out, self.offset);
        Value::put(out, self.value);
    }

    fn decode(_: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let this = Self { key: Key::take(input)?, offset: take_varint(input)?, value: Value::take(input)? };
        if this.is_legal() {
            Ok(this)
        } else {
            Err(Malformed::TooLong { length: this.end(), limit: VALUE_BYTES_MAX as u64 })
        }
    }
}

impl<'a> Definition<'a> for SetRange<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "setrange",
        kind: CommandKind::UPDATE,
        arity: 4,
        keys: KeyPositions::ONE,
        key_flags: &[&["RW", "update"]],
        flags: &["write", "denyoom"],
        categories: &["@write", "@string", "@slow"],
        since: "2.2.0",
        summary: "Overwrites a part of the value of a key, from an offset on.",
        parser: |_, words| {
            let offset = u64::try_from(integer(words[2])?).map_err(|_| CommandError::OffsetOutOfRange)?;
            let this = SetRange { key: words[1], offset, value: words[3] };
            if this.is_legal() { Ok(this.into()) } else { Err(CommandError::ValueTooLong) }
        },
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl<'a> UpdateCommand<'a> for SetRange<'a> {
    fn counts(&self) -> bool {
        true
    }

    fn growth(&self, encoded: usize) -> usize {
        // The gap before the value is filled with zeros.
        self.offset.min(VALUE_BYTES_MAX as u64) as usize + encoded + KEY_BYTES
    }

    fn work(&self) -> usize {
        // The value grows to there.
        usize::try_from(self.offset).unwrap_or(usize::MAX)
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        put_integer(reply, set_range(keys, self.key, self.offset, self.value)?);
        Ok(())
    }
}

/// Decoding has checked that `offset` and the length of `part` stay below the limit.
fn set_range<K: KeysMut>(keys: &mut K, key: &[u8], offset: u64, part: &[u8]) -> Result<i64, ExecutionError> {
    if part.is_empty() {
        return length(keys, key);
    }
    let start = offset as usize;
    let end = start + part.len();
    let length = edit_grown(keys, key, end, |value| {
        value[start..end].copy_from_slice(part);
        value.len() as i64
    })?;
    keys.notify(KeyEvent::SetRange, key);
    Ok(length)
}
