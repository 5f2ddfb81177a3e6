//! BITPOS.

use super::range::BitRange;
use super::{Bit, SLOW_READ};
use crate::access::Keys;
use crate::encoding::{Key, fields};
use crate::error::{CommandError, ExecutionError};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, VALUE_WORK, View};
use crate::families::specification::CommandSpec;
use crate::families::strings::string_of;
use crate::number::parse_integer;
use crate::reply::put_integer;
use crate::words::{Words, integer};

/// BITPOS: the offset of the first bit of a range that is 0 or 1, -1 if there is none. Behind the end of a string all
/// bits are 0, unless the range has an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitPos<'a> {
    /// The key; one that does not exist has only zeros, whatever the range.
    pub key: &'a [u8],
    /// Which bit is looked for.
    pub bit: bool,
    /// Where it is looked for.
    pub range: BitRange,
}

fields!(BitPos<'a> = 140 { key: Key, bit: Bit, range: BitRange });

impl<'a> Definition<'a> for BitPos<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "bitpos",
        arity: -3,
        since: "2.8.7",
        summary: "Finds the first bit that is set, or clear, in the value of a key or in a part of it.",
        parser: |_, words| Ok(parse(words)?.into()),
        ..SLOW_READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

fn parse<'a>(words: Words<'a>) -> Result<BitPos<'a>, CommandError> {
    let bit = match integer(words[2])? {
        bit @ 0..=1 => bit == 1,
        _ => return Err(CommandError::SoughtBit),
    };
    Ok(BitPos { key: words[1], bit, range: range(&words[3..]) })
}

fn range(words: &[&[u8]]) -> BitRange {
    let (first, rest) = match *words {
        [] => return BitRange::Whole,
        [_, _, _, _, ..] => return BitRange::Syntax,
        [first, ref rest @ ..] => (first, rest),
    };
    let Some(start) = parse_integer(first) else { return BitRange::NotInteger };
    let (end, unit) = match *rest {
        [] => return BitRange::From { start },
        [end, ref unit @ ..] => (parse_integer(end), unit.first().copied()),
    };
    // A unit that there is not is noticed before an end that is no number.
    match (end, BitRange::of_unit(start, end.unwrap_or_default(), unit)) {
        (None, BitRange::Bytes { .. } | BitRange::Bits { .. }) => BitRange::NotInteger,
        (_, range) => range,
    }
}

impl ReadCommand for BitPos<'_> {
    fn work(&self) -> usize {
        VALUE_WORK
    }

    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let position = match (string_of(found.as_ref())?, self.range) {
            (None, _) => (!self.bit).then_some(0),
            (Some(_), BitRange::Syntax) => return Err(ExecutionError::Syntax),
            (Some(_), BitRange::NotInteger) => return Err(ExecutionError::NotInteger),
            (Some(bytes), range) => range.bits(bytes.len()).and_then(|(first, last)| {
                let found = first_between(bytes, self.bit, first, last);
                let is_open = matches!(range, BitRange::Whole | BitRange::From { .. });
                found.or_else(|| (is_open && !self.bit).then_some(last + 1))
            }),
        };
        put_integer(reply, position.map_or(-1, |position| position as i64));
        Ok(())
    }
}

/// The offset of the first bit like this from `first` to `last`, which are in the string.
fn first_between(bytes: &[u8], bit: bool, first: u64, last: u64) -> Option<u64> {
    // Such bits are 1 here.
    let wanted = |byte: u8| if bit { byte } else { !byte };
    let (start, end) = ((first / 8) as usize, (last / 8) as usize);
    let head = wanted(bytes[start]) & (0xff >> (first % 8));
    let (index, byte) = if head == 0 {
        let others = &bytes[start + 1..=end];
        let index = first_other(others, wanted(0))?;
        (start + 1 + index, wanted(others[index]))
    } else {
        (start, head)
    };
    let position = 8 * index as u64 + u64::from(byte.leading_zeros());
    (position <= last).then_some(position)
}

/// The index of the first byte that is another one than `common`.
fn first_other(bytes: &[u8], common: u8) -> Option<usize> {
    let (words, _) = bytes.as_chunks();
    let skipped = words.iter().take_while(|word| **word == [common; 16]).count() * 16;
    let index = bytes[skipped..].iter().position(|byte| *byte != common)?;
    Some(skipped + index)
}
