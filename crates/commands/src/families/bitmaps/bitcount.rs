//! BITCOUNT.

use super::SLOW_READ;
use super::range::BitRange;
use crate::access::Keys;
use crate::encoding::{Key, fields};
use crate::error::ExecutionError;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, VALUE_WORK, View};
use crate::families::specification::CommandSpec;
use crate::families::strings::string_of;
use crate::number::parse_integer;
use crate::reply::put_integer;

/// BITCOUNT: how many bits of a range are 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitCount<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Which bits are counted.
    pub range: BitRange,
}

fields!(BitCount<'a> = 19 { key: Key, range: BitRange });

impl<'a> Definition<'a> for BitCount<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "bitcount",
        arity: -2,
        since: "2.6.0",
        summary: "Counts the bits that are set in the value of a key, or in a part of it.",
        parser: |_, words| Ok(BitCount { key: words[1], range: range(&words[2..]) }.into()),
        ..SLOW_READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

fn range(words: &[&[u8]]) -> BitRange {
    let (start, end, unit) = match *words {
        [] => return BitRange::Whole,
        [start, end] => (start, end, None),
        [start, end, unit] => (start, end, Some(unit)),
        _ => return BitRange::Syntax,
    };
    match (parse_integer(start), parse_integer(end)) {
        // Of what is upside down Redis asks no more.
        (Some(start), Some(end)) if start < 0 && end < 0 && start > end => BitRange::Bytes { start, end },
        (Some(start), Some(end)) => BitRange::of_unit(start, end, unit),
        _ => BitRange::NotInteger,
    }
}

impl ReadCommand for BitCount<'_> {
    fn work(&self) -> usize {
        VALUE_WORK
    }

    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let count = match (string_of(found.as_ref())?, self.range) {
            (None, _) => 0,
            (Some(_), BitRange::Syntax) => return Err(ExecutionError::Syntax),
            (Some(_), BitRange::NotInteger) => return Err(ExecutionError::NotInteger),
            (Some(_), BitRange::Bytes { start, end } | BitRange::Bits { start, end })
                if start < 0 && end < 0 && start > end =>
            {
                0
            }
            (Some(bytes), range) => {
                range.bits(bytes.len()).map_or(0, |(first, last)| count_between(bytes, first, last))
            }
        };
        put_integer(reply, count as i64);
        Ok(())
    }
}

/// How many bits from `first` to `last`, which are in the string, are 1.
fn count_between(bytes: &[u8], first: u64, last: u64) -> u64 {
    let part = &bytes[(first / 8) as usize..=(last / 8) as usize];
    let before = part[0] & !(0xff_u8 >> (first % 8));
    let behind = part[part.len() - 1] & !(0xff_u8 << (7 - last % 8));
    count(part) - u64::from(before.count_ones()) - u64::from(behind.count_ones())
}

fn count(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks();
    let in_words: u64 = words.iter().map(|word| u64::from(u64::from_ne_bytes(*word).count_ones())).sum();
    in_words + rest.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>()
}
