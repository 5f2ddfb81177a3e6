//! BITFIELD and BITFIELD_RO.

use super::field::BitfieldSlot;
use super::operations::{BitfieldAction, BitfieldSteps};
use super::{FAST_READ, UPDATE, bytes_of, grows};
use crate::access::{KeyEvent, Keys, KeysMut};
use crate::encoding::{Encoding, Field as _, Key, Opcode};
use crate::error::CommandError;
use crate::families::Command;
use crate::families::definition::{
    Definition, ExecutionResult, KEY_BYTES, KeyNames, ReadCommand, UpdateCommand, View,
};
use crate::families::specification::{CommandSpec, KeyPositions};
use crate::families::strings::{edit_grown, string_of};
use crate::primitive::Malformed;
use crate::reply::{put_array, put_integer, put_nil};
use crate::words::Words;

/// BITFIELD with a step that writes: the string grows to the last bit that is written, whether it is or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitField<'a> {
    /// The key, which need not exist.
    pub key: &'a [u8],
    /// What is done; at least one step writes.
    pub steps: BitfieldSteps<'a>,
}

/// BITFIELD_RO, and BITFIELD without a step that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitFieldRo<'a> {
    /// The key.
    pub key: &'a [u8],
    /// What is answered; no step writes.
    pub steps: BitfieldSteps<'a>,
}

impl<'a> Encoding<'a> for BitField<'a> {
    const OPCODE: Opcode = 56;

    fn encode(&self, out: &mut Vec<u8>) {
        Key::put(out, self.key);
        BitfieldSteps::put(out, self.steps);
    }

    fn decode(_: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let this = Self { key: Key::take(input)?, steps: BitfieldSteps::take(input)? };
        if this.steps.writing_byte().is_some() { Ok(this) } else { Err(Malformed::Count(0)) }
    }
}

impl<'a> Encoding<'a> for BitFieldRo<'a> {
    const OPCODE: Opcode = 141;

    fn encode(&self, out: &mut Vec<u8>) {
        Key::put(out, self.key);
        BitfieldSteps::put(out, self.steps);
    }

    fn decode(_: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let this = Self { key: Key::take(input)?, steps: BitfieldSteps::take(input)? };
        this.steps.writing_byte().map_or(Ok(this), |byte| Err(Malformed::Options(byte)))
    }
}

impl<'a> Definition<'a> for BitField<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "bitfield",
        arity: -2,
        keys: KeyPositions::ONE,
        key_flags: &[&["RW", "access", "update", "variable_flags"]],
        key_notes: "This command allows both access and modification of the key",
        since: "3.2.0",
        summary: "Reads and changes numbers of any length at any bit of the value of a key.",
        parser: |_, words| {
            let (key, steps) = parse(words)?;
            Ok(match steps.writing_byte() {
                None => Command::from(BitFieldRo { key, steps }),
                Some(_) => BitField { key, steps }.into(),
            })
        },
        ..UPDATE
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl<'a> Definition<'a> for BitFieldRo<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "bitfield_ro",
        arity: -2,
        since: "6.0.0",
        summary: "Returns numbers of any length at any bit of the value of a key.",
        parser: |_, words| {
            let (key, steps) = parse(words)?;
            match steps.writing_byte() {
                None => Ok(BitFieldRo { key, steps }.into()),
                Some(_) => Err(CommandError::BitfieldReadOnly),
            }
        },
        ..FAST_READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

fn parse<'a>(words: Words<'a>) -> Result<(&'a [u8], BitfieldSteps<'a>), CommandError> {
    Ok((words[1], BitfieldSteps::parse(&words[2..])?))
}

impl ReadCommand for BitFieldRo<'_> {
    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let bytes = string_of(found.as_ref())?.unwrap_or_default();
        put_array(reply, self.steps.iter().count());
        self.steps.iter().for_each(|step| put_integer(reply, step.slot.get(bytes)));
        Ok(())
    }
}

impl BitField<'_> {
    /// How long the string becomes at least.
    fn written_bytes(&self) -> usize {
        bytes_of(self.steps.written_end().unwrap_or_default())
    }
}

impl<'a> UpdateCommand<'a> for BitField<'a> {
    fn growth(&self, encoded: usize) -> usize {
        self.written_bytes() + encoded + KEY_BYTES
    }

    fn work(&self) -> usize {
        // The value grows to there.
        self.written_bytes()
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let is_longer = grows(keys, self.key, self.written_bytes())?;
        let has_written = edit_grown(keys, self.key, self.written_bytes(), |bytes| {
            put_array(reply, self.steps.iter().count());
            let mut has_written = false;
            for step in self.steps.iter() {
                let before = step.slot.get(bytes);
                match execute(bytes, step.slot, step.action) {
                    Some(number) => {
                        put_integer(reply, number);
                        let is_write = step.action != BitfieldAction::Get;
                        has_written |= is_write && (is_longer || step.slot.get(bytes) != before);
                    }
                    None => put_nil(reply),
                }
            }
            has_written
        })?;
        // The string may be longer than it was.
        keys.notify(if has_written { KeyEvent::SetBit } else { KeyEvent::Changed }, self.key);
        Ok(())
    }
}

/// What a step answers; none if it fails, which changes nothing.
fn execute(bytes: &mut [u8], slot: BitfieldSlot, action: BitfieldAction) -> Option<i64> {
    let old = slot.get(bytes);
    let (new, answer) = match action {
        BitfieldAction::Get => return Some(old),
        BitfieldAction::Set(number, overflow) => (slot.fit(number, overflow)?, old),
        BitfieldAction::Add(delta, overflow) => {
            let sum = slot.fit_sum(old, delta, overflow)?;
            (sum, sum)
        }
    };
    slot.set(bytes, new);
    Some(answer)
}
