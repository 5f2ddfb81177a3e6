//! What one BITFIELD does, step by step.

use super::field::{BitfieldOverflow, BitfieldSlot};
use super::{BITS_MAX, OFFSET_MAX, parse_offset};
use crate::encoding::Field;
use crate::error::CommandError;
use crate::number::parse_integer;
use crate::primitive::{Malformed, put_signed, take_signed, take_u8, take_up_to};
use crate::words::{integer, is};
use core::fmt;
use syros_types::limits::KEYS_PER_OPERATION_MAX;
use syros_types::varint::put_varint;

/// One step of a BITFIELD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitfieldStep {
    /// Which number it is about.
    pub slot: BitfieldSlot,
    /// What it does with the number.
    pub action: BitfieldAction,
}

/// What is done with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitfieldAction {
    /// It is answered.
    Get,
    /// It becomes this one; the old one is answered.
    Set(i64, BitfieldOverflow),
    /// This is added to it; the sum is answered.
    Add(i64, BitfieldOverflow),
}

/// The steps of a BITFIELD, borrowed from a client's words or from an encoded body, in which they have been checked.
#[derive(Clone, Copy)]
pub struct BitfieldSteps<'a>(Source<'a>);

#[derive(Clone, Copy)]
enum Source<'a> {
    Words(&'a [&'a [u8]]),
    Encoded { count: usize, bytes: &'a [u8] },
}

impl<'a> BitfieldSteps<'a> {
    /// The steps that these words say.
    pub(super) fn parse(words: &'a [&'a [u8]]) -> Result<Self, CommandError> {
        let (mut rest, mut overflow, mut count) = (words, BitfieldOverflow::default(), 0);
        while take_words(&mut rest, &mut overflow)?.is_some() {
            count += 1;
        }
        if count > KEYS_PER_OPERATION_MAX {
            return Err(CommandError::TooManyElements(count));
        }
        Ok(Self(Source::Words(words)))
    }

    /// The steps in their order.
    #[must_use]
    pub const fn iter(&self) -> BitfieldStepsIter<'a> {
        BitfieldStepsIter { source: self.0, overflow: BitfieldOverflow::Wrap }
    }

    /// The byte of the first step that writes; none if none does.
    pub(super) fn writing_byte(&self) -> Option<u8> {
        self.iter().map(|step| byte_of(step.action)).find(|byte| *byte != step_byte::GET)
    }

    /// The offset behind the last bit that is written; none if nothing is.
    pub(super) fn written_end(&self) -> Option<u64> {
        self.iter().filter(|step| step.action != BitfieldAction::Get).map(|step| step.slot.end()).max()
    }
}

impl PartialEq for BitfieldSteps<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for BitfieldSteps<'_> {}

impl fmt::Debug for BitfieldSteps<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Iterator over [`BitfieldSteps`].
#[derive(Clone)]
pub struct BitfieldStepsIter<'a> {
    source: Source<'a>,
    /// What the last OVERFLOW among the words has said.
    overflow: BitfieldOverflow,
}

impl Iterator for BitfieldStepsIter<'_> {
    type Item = BitfieldStep;

    fn next(&mut self) -> Option<BitfieldStep> {
        match &mut self.source {
            Source::Words(words) => take_words(words, &mut self.overflow).ok()?,
            Source::Encoded { count, bytes } => {
                *count = count.checked_sub(1)?;
                take_step(bytes).ok()
            }
        }
    }
}

/// Takes a step off the front of `words`, with what is said of overflow before it; none if there is no more.
fn take_words(
    words: &mut &[&[u8]],
    overflow: &mut BitfieldOverflow,
) -> Result<Option<BitfieldStep>, CommandError> {
    loop {
        let (name, arguments) = match **words {
            [] => return Ok(None),
            [name, ref arguments @ ..] => (name, arguments),
        };
        let (step, taken) = match *arguments {
            [kind, ..] if is(name, "overflow") => {
                *overflow = parse_overflow(kind)?;
                (None, 1)
            }
            [kind, offset, ..] if is(name, "get") => {
                (Some(BitfieldStep { slot: parse_slot(kind, offset)?, action: BitfieldAction::Get }), 2)
            }
            [kind, offset, number, ..] if is(name, "set") => {
                let action = |number| BitfieldAction::Set(number, *overflow);
                (Some(parse_change([kind, offset, number], action)?), 3)
            }
            [kind, offset, number, ..] if is(name, "incrby") => {
                let action = |number| BitfieldAction::Add(number, *overflow);
                (Some(parse_change([kind, offset, number], action)?), 3)
            }
            _ => return Err(CommandError::Syntax),
        };
        *words = &arguments[taken..];
        if step.is_some() {
            return Ok(step);
        }
    }
}

fn parse_overflow(word: &[u8]) -> Result<BitfieldOverflow, CommandError> {
    match word {
        kind if is(kind, "wrap") => Ok(BitfieldOverflow::Wrap),
        kind if is(kind, "sat") => Ok(BitfieldOverflow::Saturate),
        kind if is(kind, "fail") => Ok(BitfieldOverflow::Fail),
        _ => Err(CommandError::BitfieldOverflow),
    }
}

fn parse_change(
    [kind, offset, number]: [&[u8]; 3],
    action: impl FnOnce(i64) -> BitfieldAction,
) -> Result<BitfieldStep, CommandError> {
    let slot = parse_slot(kind, offset)?;
    let action = action(integer(number)?);
    if slot.end() > BITS_MAX { Err(CommandError::ValueTooLong) } else { Ok(BitfieldStep { slot, action }) }
}

/// A slot of a type such as `u8`, at an offset in bits or, behind a `#`, in slots.
fn parse_slot(kind: &[u8], offset: &[u8]) -> Result<BitfieldSlot, CommandError> {
    let (is_signed, digits, most) = match kind {
        [b'i', digits @ ..] => (true, digits, 64),
        [b'u', digits @ ..] => (false, digits, 63),
        _ => return Err(CommandError::BitfieldType),
    };
    let bits =
        parse_integer(digits).filter(|bits| (1..=most).contains(bits)).ok_or(CommandError::BitfieldType)?;
    let offset = match offset {
        [b'#', number @ ..] => parse_offset(number, bits as u64)?,
        number => parse_offset(number, 1)?,
    };
    Ok(BitfieldSlot { is_signed, bits: bits as u8, offset })
}

/// A step is a byte that says what it does and what of overflow, a byte with the number's bits and its sign, its offset
/// and, unless it only answers it, the other number.
mod step_byte {
    pub(super) const GET: u8 = 0;
    pub(super) const SET: u8 = 1;
    pub(super) const ADD: u8 = 4;
    pub(super) const SIGNED: u8 = 0x80;
}

impl<'a> Field<'a> for BitfieldSteps<'a> {
    type Content = Self;

    fn put(out: &mut Vec<u8>, content: Self) {
        put_varint(out, content.iter().count() as u64);
        content.iter().for_each(|step| put_step(out, step));
    }

    fn take(input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let count = take_up_to(input, KEYS_PER_OPERATION_MAX as u64)? as usize;
        let start = *input;
        for _ in 0..count {
            take_step(input)?;
        }
        Ok(Self(Source::Encoded { count, bytes: &start[..start.len() - input.len()] }))
    }
}

const fn byte_of(action: BitfieldAction) -> u8 {
    match action {
        BitfieldAction::Get => step_byte::GET,
        BitfieldAction::Set(_, overflow) => step_byte::SET + overflow as u8,
        BitfieldAction::Add(_, overflow) => step_byte::ADD + overflow as u8,
    }
}

fn put_step(out: &mut Vec<u8>, BitfieldStep { slot, action }: BitfieldStep) {
    let sign = if slot.is_signed { step_byte::SIGNED } else { 0 };
    out.extend_from_slice(&[byte_of(action), slot.bits | sign]);
    put_varint(out, slot.offset);
    if let BitfieldAction::Set(number, _) | BitfieldAction::Add(number, _) = action {
        put_signed(out, number);
    }
}

fn take_step(input: &mut &[u8]) -> Result<BitfieldStep, Malformed> {
    let byte = take_u8(input)?;
    let slot = take_slot(input)?;
    if byte == step_byte::GET {
        return Ok(BitfieldStep { slot, action: BitfieldAction::Get });
    }
    let number = take_signed(input)?;
    let action = match byte {
        1 => BitfieldAction::Set(number, BitfieldOverflow::Wrap),
        2 => BitfieldAction::Set(number, BitfieldOverflow::Saturate),
        3 => BitfieldAction::Set(number, BitfieldOverflow::Fail),
        4 => BitfieldAction::Add(number, BitfieldOverflow::Wrap),
        5 => BitfieldAction::Add(number, BitfieldOverflow::Saturate),
        6 => BitfieldAction::Add(number, BitfieldOverflow::Fail),
        other => return Err(Malformed::Options(other)),
    };
    if slot.end() > BITS_MAX {
        return Err(Malformed::TooLong { length: slot.end(), limit: BITS_MAX });
    }
    Ok(BitfieldStep { slot, action })
}

fn take_slot(input: &mut &[u8]) -> Result<BitfieldSlot, Malformed> {
    let byte = take_u8(input)?;
    let (is_signed, bits) = (byte & step_byte::SIGNED != 0, byte & !step_byte::SIGNED);
    match (is_signed, bits) {
        (true, 1..=64) | (false, 1..=63) => {}
        _ => return Err(Malformed::Options(byte)),
    }
    Ok(BitfieldSlot { is_signed, bits, offset: take_up_to(input, OFFSET_MAX)? })
}
