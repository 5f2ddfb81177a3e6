//! SETBIT.

use super::{BITS_MAX, Bit, UPDATE, bit_at, bytes_of, grows, parse_offset, set_bit};
use crate::access::{KeyEvent, KeysMut};
use crate::encoding::{Field, Key, fields};
use crate::error::CommandError;
use crate::families::definition::{Definition, ExecutionResult, KEY_BYTES, KeyNames, UpdateCommand};
use crate::families::specification::{CommandSpec, KeyPositions};
use crate::families::strings::edit_grown;
use crate::number::parse_integer;
use crate::primitive::{Malformed, take_up_to};
use crate::reply::put_integer;
use crate::words::Words;
use syros_types::varint::put_varint;

/// SETBIT: answers the bit that was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetBit<'a> {
    /// The key, which need not exist.
    pub key: &'a [u8],
    /// Which bit is changed. The string grows to there.
    pub offset: u64,
    /// The new bit.
    pub bit: bool,
}

fields!(SetBit<'a> = 54 { key: Key, offset: OffsetInString, bit: Bit });

/// The offset of a bit that a string may have.
enum OffsetInString {}

impl<'a> Field<'a> for OffsetInString {
    type Content = u64;

    fn put(out: &mut Vec<u8>, content: u64) {
        put_varint(out, content);
    }

    fn take(input: &mut &'a [u8]) -> Result<u64, Malformed> {
        take_up_to(input, BITS_MAX - 1)
    }
}

impl<'a> Definition<'a> for SetBit<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "setbit",
        arity: 4,
        keys: KeyPositions::ONE,
        key_flags: &[&["RW", "access", "update"]],
        since: "2.2.0",
        summary: "Sets or clears a bit of the value of a key; creates the key if it does not exist.",
        parser: |_, words| Ok(parse(words)?.into()),
        ..UPDATE
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

fn parse<'a>(words: Words<'a>) -> Result<SetBit<'a>, CommandError> {
    let offset = parse_offset(words[2], 1)?;
    if offset >= BITS_MAX {
        return Err(CommandError::ValueTooLong);
    }
    match parse_integer(words[3]) {
        Some(bit @ 0..=1) => Ok(SetBit { key: words[1], offset, bit: bit == 1 }),
        _ => Err(CommandError::NotBit),
    }
}

impl<'a> UpdateCommand<'a> for SetBit<'a> {
    fn counts(&self) -> bool {
        true
    }

    fn growth(&self, encoded: usize) -> usize {
        bytes_of(self.offset) + encoded + KEY_BYTES
    }

    fn work(&self) -> usize {
        // The value grows to there.
        bytes_of(self.offset)
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let is_longer = grows(keys, self.key, bytes_of(self.offset + 1))?;
        let old = edit_grown(keys, self.key, bytes_of(self.offset + 1), |bytes| {
            let old = bit_at(bytes, self.offset);
            set_bit(bytes, self.offset, self.bit);
            old
        })?;
        if is_longer || old != self.bit {
            keys.notify(KeyEvent::SetBit, self.key);
        }
        put_integer(reply, i64::from(old));
        Ok(())
    }
}
