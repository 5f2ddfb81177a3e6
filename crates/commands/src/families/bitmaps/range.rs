//! Ranges of bytes or bits, as BITCOUNT and BITPOS take them.

use crate::encoding::Field;
use crate::primitive::{Malformed, put_signed, take_signed, take_u8};
use crate::words::is;

/// A part of a string: both ends inclusive, negative ones count from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitRange {
    /// All of it.
    Whole,
    /// From a byte to the end: of BITPOS only.
    From {
        /// Index of the first byte.
        start: i64,
    },
    /// Bytes.
    Bytes {
        /// Index of the first one.
        start: i64,
        /// Index of the last one.
        end: i64,
    },
    /// Bits.
    Bits {
        /// Offset of the first one.
        start: i64,
        /// Offset of the last one.
        end: i64,
    },
    /// The words are no range: an error if the key exists. Redis looks for the key first.
    Syntax,
    /// An end is no integer: an error if the key exists.
    NotInteger,
}

/// The byte that a range begins with where it is written.
mod tag {
    pub(super) const WHOLE: u8 = 0;
    pub(super) const BYTES: u8 = 1;
    pub(super) const BITS: u8 = 2;
    pub(super) const SYNTAX: u8 = 3;
    pub(super) const NOT_INTEGER: u8 = 4;
    pub(super) const FROM: u8 = 5;
}

impl BitRange {
    /// The range from `start` to `end` in the unit that a third word says, BYTE if there is none.
    pub(super) fn of_unit(start: i64, end: i64, unit: Option<&[u8]>) -> Self {
        match unit {
            None => Self::Bytes { start, end },
            Some(unit) if is(unit, "byte") => Self::Bytes { start, end },
            Some(unit) if is(unit, "bit") => Self::Bits { start, end },
            Some(_) => Self::Syntax,
        }
    }

    /// The offsets of the first and the last bit in a string of so many bytes; none of an empty range.
    pub(super) fn bits(self, length: usize) -> Option<(u64, u64)> {
        let bytes = length as i64;
        let whole = |(first, last): (u64, u64)| (8 * first, 8 * last + 7);
        match self {
            Self::Whole => between(0, -1, bytes).map(whole),
            Self::From { start } => between(start, -1, bytes).map(whole),
            Self::Bytes { start, end } => between(start, end, bytes).map(whole),
            Self::Bits { start, end } => between(start, end, 8 * bytes),
            Self::Syntax | Self::NotInteger => None,
        }
    }
}

/// The first and the last index of `start` to `end` among `length`; none if there is nothing between them.
fn between(start: i64, end: i64, length: i64) -> Option<(u64, u64)> {
    let absolute = |index: i64| if index < 0 { (length + index).max(0) } else { index };
    let (start, end) = (absolute(start), absolute(end).min(length - 1));
    if start > end { None } else { Some((start as u64, end as u64)) }
}

impl<'a> Field<'a> for BitRange {
    type Content = Self;

    fn put(out: &mut Vec<u8>, content: Self) {
        let (tag, ends): (u8, &[i64]) = match content {
            Self::Whole => (tag::WHOLE, &[]),
            Self::From { start } => (tag::FROM, &[start]),
            Self::Bytes { start, end } => (tag::BYTES, &[start, end]),
            Self::Bits { start, end } => (tag::BITS, &[start, end]),
            Self::Syntax => (tag::SYNTAX, &[]),
            Self::NotInteger => (tag::NOT_INTEGER, &[]),
        };
        out.push(tag);
        ends.iter().for_each(|end| put_signed(out, *end));
    }

    fn take(input: &mut &'a [u8]) -> Result<Self, Malformed> {
        Ok(match take_u8(input)? {
            tag::WHOLE => Self::Whole,
            tag::FROM => Self::From { start: take_signed(input)? },
            tag::BYTES => Self::Bytes { start: take_signed(input)?, end: take_signed(input)? },
            tag::BITS => Self::Bits { start: take_signed(input)?, end: take_signed(input)? },
            tag::SYNTAX => Self::Syntax,
            tag::NOT_INTEGER => Self::NotInteger,
            other => return Err(Malformed::Options(other)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_count_from_either_side() {
        for (start, end, bits) in [
            (0, 0, Some((0, 7))),
            (1, -1, Some((8, 23))),
            (-2, -2, Some((8, 15))),
            (-100, 100, Some((0, 23))),
            (i64::MIN, i64::MIN, Some((0, 7))),
            (i64::MIN, i64::MAX, Some((0, 23))),
            (2, 1, None),
            (3, 5, None),
            (i64::MAX, i64::MAX, None),
        ] {
            assert_eq!(BitRange::Bytes { start, end }.bits(3), bits, "{start} to {end}");
        }
        assert_eq!(BitRange::Bits { start: -3, end: -2 }.bits(3), Some((21, 22)));
        assert_eq!(BitRange::Whole.bits(0), None);
        assert_eq!(BitRange::From { start: 0 }.bits(0), None);
    }
}
