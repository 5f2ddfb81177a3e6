//! Numbers of variable length: 7 bits a byte, low bits first, the high bit set on all but the last byte. A number is
//! written in its shortest form and read in no other.

use alloc::vec::Vec;
use core::fmt;

/// Most bytes of a number.
const BYTES_MAX: usize = 10;

/// A number below this takes at most 8 bytes, and so fits into a machine word with its marks.
const WORD_MAX: u64 = 1 << 56;

/// The high bit of every byte.
const MARKS: u64 = 0x8080_8080_8080_8080;

/// Why bytes do not begin with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidVarint {
    /// The bytes end before the number does.
    Truncated,
    /// The number has more than 64 bits, or needless bytes at its end.
    TooLong,
}

impl fmt::Display for InvalidVarint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "the bytes end inside a number",
            Self::TooLong => "a variable-length number is longer than it needs or may be",
        })
    }
}

impl core::error::Error for InvalidVarint {}

/// Appends a number.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, value: u64) {
    if value < 0x80 {
        return out.push(value as u8);
    }
    if value >= WORD_MAX {
        return put_long(out, value);
    }
    // Without a loop, for the lengths of numbers vary and loops over them are mispredicted: groups
    // of 7 bits are moved apart by halves, then all but the last are marked.
    let spread = ((value & 0x00ff_ffff_f000_0000) << 4) | (value & 0x0fff_ffff);
    let spread = ((spread & 0x0fff_c000_0fff_c000) << 2) | (spread & 0x0000_3fff_0000_3fff);
    let spread = ((spread & 0x3f80_3f80_3f80_3f80) << 1) | (spread & 0x007f_007f_007f_007f);
    let length = (70 - value.leading_zeros() as usize) / 7;
    let marks = MARKS & ((1 << (8 * (length - 1))) - 1);
    let end = out.len() + length;
    out.extend_from_slice(&(spread | marks).to_le_bytes());
    out.truncate(end);
}

#[cold]
fn put_long(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a number off the front of the input.
///
/// # Errors
/// [`InvalidVarint`]; the input stays as it was.
#[inline]
pub fn take_varint(input: &mut &[u8]) -> Result<u64, InvalidVarint> {
    if let [first, rest @ ..] = *input
        && *first < 0x80
    {
        *input = rest;
        return Ok(u64::from(*first));
    }
    let Some((word, _)) = input.split_first_chunk() else { return take_long(input) };
    let word = u64::from_le_bytes(*word);
    let ends = !word & MARKS;
    if ends == 0 {
        return take_long(input);
    }
    // The reverse of what the writer does, for the bytes up to the first without a mark.
    let length = ends.trailing_zeros() as usize / 8 + 1;
    let word = word & (u64::MAX >> (64 - 8 * length));
    if word >> (8 * (length - 1)) == 0 {
        return Err(InvalidVarint::TooLong);
    }
    let spread = word & !MARKS;
    let value = ((spread & 0x7f00_7f00_7f00_7f00) >> 1) | (spread & 0x007f_007f_007f_007f);
    let value = ((value & 0x3fff_0000_3fff_0000) >> 2) | (value & 0x0000_3fff_0000_3fff);
    let value = ((value & 0x0fff_ffff_0000_0000) >> 4) | (value & 0x0fff_ffff);
    *input = &input[length..];
    Ok(value)
}

/// A number of nine or ten bytes, or so near to the end of the input that no word can be read.
fn take_long(input: &mut &[u8]) -> Result<u64, InvalidVarint> {
    let mut value = 0;
    for (index, byte) in input.iter().take(BYTES_MAX).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if *byte < 0x80 {
            // The tenth byte holds one bit; a last byte of zero was not needed.
            if (index == BYTES_MAX - 1 && *byte > 1) || (index > 0 && *byte == 0) {
                return Err(InvalidVarint::TooLong);
            }
            *input = &input[index + 1..];
            return Ok(value);
        }
    }
    Err(if input.len() < BYTES_MAX { InvalidVarint::Truncated } else { InvalidVarint::TooLong })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prng;

    fn written(value: u64) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, value);
        out
    }

    #[test]
    fn the_form_is_fixed_for_ever() {
        for (value, bytes) in [
            (0, &[0][..]),
            (127, &[0x7f]),
            (128, &[0x80, 1]),
            (300, &[0xac, 2]),
            ((1 << 56) - 1, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
            (1 << 56, &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1]),
            (u64::MAX, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
        ] {
            assert_eq!(written(value), bytes, "{value}");
        }
    }

    #[test]
    fn every_length_is_read_as_it_was_written_whatever_follows() {
        let mut prng = Prng::new(1);
        for bits in 0..=64 {
            for _ in 0..200 {
                let value = prng.next_u64().checked_shr(64 - bits).unwrap_or(0);
                let mut plain = Vec::new();
                put_long(&mut plain, value);
                let mut bytes = written(value);
                assert_eq!(bytes, plain);
                let length = bytes.len();
                for cut in 0..length {
                    let mut input = &bytes[..cut];
                    assert_eq!(take_varint(&mut input), Err(InvalidVarint::Truncated), "{value}");
                    assert_eq!(input.len(), cut);
                }
                for _ in 0..=prng.below(12) {
                    bytes.push(prng.next_u64() as u8);
                }
                let mut input = &bytes[..];
                assert_eq!(take_varint(&mut input), Ok(value));
                assert_eq!(input, &bytes[length..]);
            }
        }
    }

    #[test]
    fn other_forms_are_refused_near_the_end_and_far_from_it() {
        for wrong in [
            &[0x80, 0][..],
            &[0xff, 0x80, 0],
            &[0x80; 10],
            &[0xff; 11],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2],
            &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0],
        ] {
            for more in [0, 1, 16] {
                let bytes = [wrong, &[1; 16][..more]].concat();
                assert_eq!(take_varint(&mut &bytes[..]), Err(InvalidVarint::TooLong), "{bytes:?}");
            }
        }
    }
}
