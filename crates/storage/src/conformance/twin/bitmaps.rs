//! Commands on bits, bit by bit.

use super::{Twin, error, one_if};
use syros_commands::families::{
    BitCount, BitField, BitFieldRo, BitOp, BitOperator, BitPos, BitRange, BitfieldAction, BitfieldOverflow,
    BitfieldSlot, GetBit, SetBit,
};
use syros_commands::{Command, Reply};

/// The key that must be a string, if it exists, for these commands.
pub(super) const fn string_key<'a>(command: &Command<'a>) -> Option<&'a [u8]> {
    match *command {
        Command::GetBit(GetBit { key, .. })
        | Command::BitCount(BitCount { key, .. })
        | Command::BitPos(BitPos { key, .. })
        | Command::BitFieldRo(BitFieldRo { key, .. })
        | Command::SetBit(SetBit { key, .. })
        | Command::BitField(BitField { key, .. }) => Some(key),
        _ => None,
    }
}

fn bits_of(bytes: &[u8]) -> Vec<bool> {
    bytes.iter().flat_map(|byte| (0..8).map(move |place| byte & (1 << (7 - place)) != 0)).collect()
}

fn bytes_of(bits: &[bool]) -> Vec<u8> {
    bits.chunks(8).map(|byte| byte.iter().fold(0, |byte, bit| 2 * byte + u8::from(*bit))).collect()
}

/// The offsets in a range, of a string of so many bits, or what is wrong with the range.
fn offsets(range: BitRange, length: usize) -> Result<Vec<usize>, Reply> {
    let (unit, start, end) = match range {
        BitRange::Whole => return Ok((0..length).collect()),
        BitRange::From { start } => (8, start, i64::MAX),
        BitRange::Bytes { start, end } => (8, start, end),
        BitRange::Bits { start, end } => (1, start, end),
        BitRange::Syntax => return Err(error("ERR syntax error")),
        BitRange::NotInteger => return Err(error("ERR value is not an integer or out of range")),
    };
    let count = (length / unit) as i128;
    let absolute = |index: i64| {
        let index = i128::from(index);
        if index < 0 { (count + index).max(0) } else { index }
    };
    let is_inside = |offset: &usize| {
        let index = (offset / unit) as i128;
        absolute(start) <= index && index <= absolute(end)
    };
    Ok((0..length).filter(is_inside).collect())
}

/// The number in a slot, by the weights of its bits.
fn number(bits: &[bool], slot: BitfieldSlot) -> i128 {
    let mut number = 0;
    for place in 0..u32::from(slot.bits) {
        let offset = slot.offset as usize + slot.bits as usize - 1 - place as usize;
        if bits.get(offset).copied().unwrap_or_default() {
            let is_sign = slot.is_signed && place + 1 == u32::from(slot.bits);
            number += if is_sign { -(1 << place) } else { 1 << place };
        }
    }
    number
}

/// What is stored for a number, if anything is.
fn fitting(number: i128, slot: BitfieldSlot, overflow: BitfieldOverflow) -> Option<i128> {
    let count = 1_i128 << slot.bits;
    let least = if slot.is_signed { -count / 2 } else { 0 };
    let most = least + count - 1;
    match overflow {
        _ if least <= number && number <= most => Some(number),
        BitfieldOverflow::Wrap => Some((number - least).rem_euclid(count) + least),
        BitfieldOverflow::Saturate => Some(if number < least { least } else { most }),
        BitfieldOverflow::Fail => None,
    }
}

impl Twin {
    fn bits(&self, key: &[u8]) -> Option<Vec<bool>> {
        self.value(key).map(|value| bits_of(value))
    }

    /// What a command on bits that only reads answers.
    pub(super) fn read_bits(&self, command: &Command<'_>) -> Option<Reply> {
        Some(match *command {
            Command::GetBit(GetBit { key, offset }) => {
                one_if(self.bits(key).unwrap_or_default().get(offset as usize).copied().unwrap_or_default())
            }
            Command::BitCount(BitCount { key, range }) => self.bit_count(key, range),
            Command::BitPos(BitPos { key, bit, range }) => self.bit_pos(key, bit, range),
            Command::BitFieldRo(BitFieldRo { key, steps }) => {
                let bits = self.bits(key).unwrap_or_default();
                Reply::Array(
                    steps.iter().map(|step| Reply::Integer(number(&bits, step.slot) as i64)).collect(),
                )
            }
            _ => return None,
        })
    }

    fn bit_count(&self, key: &[u8], range: BitRange) -> Reply {
        let Some(bits) = self.bits(key) else { return Reply::Integer(0) };
        let is_upside_down = match range {
            BitRange::Bytes { start, end } | BitRange::Bits { start, end } => {
                start < 0 && end < 0 && start > end
            }
            _ => false,
        };
        match offsets(range, bits.len()) {
            Err(error) => error,
            Ok(_) if is_upside_down => Reply::Integer(0),
            Ok(offsets) => Reply::Integer(offsets.iter().filter(|offset| bits[**offset]).count() as i64),
        }
    }

    fn bit_pos(&self, key: &[u8], bit: bool, range: BitRange) -> Reply {
        let Some(bits) = self.bits(key) else { return Reply::Integer(if bit { -1 } else { 0 }) };
        let offsets = match offsets(range, bits.len()) {
            Err(error) => return error,
            Ok(offsets) => offsets,
        };
        let is_open = matches!(range, BitRange::Whole | BitRange::From { .. });
        Reply::Integer(match offsets.iter().find(|offset| bits[**offset] == bit) {
            Some(offset) => *offset as i64,
            None if is_open && !bit && !offsets.is_empty() => bits.len() as i64,
            None => -1,
        })
    }

    /// What a command on bits that changes them answers, and what it does.
    pub(super) fn update_bits(&mut self, command: &Command<'_>) -> Option<Reply> {
        Some(match *command {
            Command::SetBit(SetBit { key, offset, bit }) => {
                let mut bits = self.bits(key).unwrap_or_default();
                while bits.len() <= offset as usize {
                    bits.extend([false; 8]);
                }
                let old = core::mem::replace(&mut bits[offset as usize], bit);
                self.insert(key, bytes_of(&bits), self.expiry(key));
                one_if(old)
            }
            Command::BitField(operation) => self.bit_field(operation),
            Command::BitOp(operation) => self.bit_op(operation),
            _ => return None,
        })
    }

    fn bit_field(&mut self, BitField { key, steps }: BitField<'_>) -> Reply {
        let mut bits = self.bits(key).unwrap_or_default();
        let written = steps.iter().filter(|step| step.action != BitfieldAction::Get);
        let end = written.map(|step| step.slot.offset + u64::from(step.slot.bits)).max();
        while (bits.len() as u64) < end.unwrap_or_default() {
            bits.extend([false; 8]);
        }
        let mut answers = Vec::new();
        for step in steps.iter() {
            let old = number(&bits, step.slot);
            let (new, answer) = match step.action {
                BitfieldAction::Get => (Some(old), Some(old)),
                BitfieldAction::Set(new, overflow) => {
                    let exact = if step.slot.is_signed { i128::from(new) } else { i128::from(new as u64) };
                    // Redis takes what is so far below it for too large.
                    let most = (1_i128 << (step.slot.bits - 1)) - 1;
                    let is_taken_for_large =
                        step.slot.is_signed && step.slot.bits < 64 && most - exact > i128::from(i64::MAX);
                    let new = match overflow {
                        BitfieldOverflow::Saturate if is_taken_for_large => Some(most),
                        _ => fitting(exact, step.slot, overflow),
                    };
                    (new, new.map(|_| old))
                }
                BitfieldAction::Add(delta, overflow) => {
                    let sum = fitting(old + i128::from(delta), step.slot, overflow);
                    (sum, sum)
                }
            };
            if let Some(new) = new {
                for place in 0..usize::from(step.slot.bits) {
                    let offset = step.slot.offset as usize + usize::from(step.slot.bits) - 1 - place;
                    if let Some(bit) = bits.get_mut(offset) {
                        *bit = new >> place & 1 == 1;
                    }
                }
            }
            answers.push(answer.map_or(Reply::Nil, |answer| Reply::Integer(answer as i64)));
        }
        self.insert(key, bytes_of(&bits), self.expiry(key));
        Reply::Array(answers)
    }

    fn bit_op(&mut self, BitOp { operator, keys }: BitOp<'_>) -> Reply {
        let names: Vec<&[u8]> = keys.iter().collect();
        if names[1..].iter().any(|name| self.is_collection(name)) {
            return error("WRONGTYPE Operation against a key holding the wrong kind of value");
        }
        let sources: Vec<Vec<bool>> =
            names[1..].iter().map(|name| self.bits(name).unwrap_or_default()).collect();
        let length = sources.iter().map(Vec::len).max().unwrap_or_default();
        let ones = |offset: usize| sources.iter().filter(|bits| bits.get(offset) == Some(&true)).count();
        let result = (0..length).map(|offset| match operator {
            BitOperator::And => ones(offset) == sources.len(),
            BitOperator::Or => ones(offset) > 0,
            BitOperator::Xor => ones(offset) % 2 == 1,
            BitOperator::Not => ones(offset) == 0,
        });
        let result = bytes_of(&result.collect::<Vec<_>>());
        let length = result.len();
        if result.is_empty() {
            self.keys.remove(names[0]);
        } else {
            self.insert(names[0], result, None);
        }
        Reply::Integer(length as i64)
    }
}
