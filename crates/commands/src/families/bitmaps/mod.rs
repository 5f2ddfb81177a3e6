//! Commands on the bits of strings. Bit 0 is the highest bit of the first byte.

pub(crate) mod bitcount;
pub(crate) mod bitfield;
pub(crate) mod bitop;
pub(crate) mod bitpos;
pub(crate) mod field;
pub(crate) mod getbit;
pub(crate) mod operations;
pub(crate) mod range;
pub(crate) mod setbit;

use super::specification::{CommandKind, CommandSpec, KeyPositions};
use crate::access::KeysMut;
use crate::encoding::Field;
use crate::error::{CommandError, ExecutionError};
use crate::families::strings::string_of;
use crate::number::parse_integer;
use crate::primitive::{Malformed, take_u8, take_up_to};
use syros_types::limits::VALUE_BYTES_MAX;
use syros_types::varint::put_varint;

/// Highest offset of a bit that a command may name: Redis's, whose strings have up to 512 MiB unless it is configured
/// otherwise. Beyond the end of a string all bits are 0.
const OFFSET_MAX: u64 = (1 << 32) - 1;

/// Most bits of a string.
const BITS_MAX: u64 = 8 * VALUE_BYTES_MAX as u64;

/// What the rows of this family have in common.
const ROW: CommandSpec = CommandSpec { group: "bitmap", ..CommandSpec::ROW };

/// What the rows of reads have in common that may look at all of a string.
const SLOW_READ: CommandSpec = CommandSpec {
    kind: CommandKind::READ,
    keys: KeyPositions::ONE,
    key_flags: &[&["RO", "access"]],
    flags: &["readonly"],
    categories: &["@read", "@bitmap", "@slow"],
    ..ROW
};

/// What the rows of reads have in common that look at a few bits only.
const FAST_READ: CommandSpec =
    CommandSpec { flags: &["readonly", "fast"], categories: &["@read", "@bitmap", "@fast"], ..SLOW_READ };

/// What the rows of updates have in common.
const UPDATE: CommandSpec = CommandSpec {
    kind: CommandKind::UPDATE,
    flags: &["write", "denyoom"],
    categories: &["@write", "@bitmap", "@slow"],
    ..ROW
};

/// The offset of a bit, which need not be in the string.
enum Offset {}

impl<'a> Field<'a> for Offset {
    type Content = u64;

    fn put(out: &mut Vec<u8>, content: u64) {
        put_varint(out, content);
    }

    fn take(input: &mut &'a [u8]) -> Result<u64, Malformed> {
        take_up_to(input, OFFSET_MAX)
    }
}

/// A bit.
enum Bit {}

impl<'a> Field<'a> for Bit {
    type Content = bool;

    fn put(out: &mut Vec<u8>, content: bool) {
        out.push(u8::from(content));
    }

    fn take(input: &mut &'a [u8]) -> Result<bool, Malformed> {
        match take_u8(input)? {
            bit @ 0..=1 => Ok(bit == 1),
            other => Err(Malformed::Options(other)),
        }
    }
}

/// The offset of a bit that a word is; in units of `unit` bits.
fn parse_offset(word: &[u8], unit: u64) -> Result<u64, CommandError> {
    let number = parse_integer(word).and_then(|number| u64::try_from(number).ok());
    let offset = number.and_then(|number| number.checked_mul(unit));
    offset.filter(|offset| *offset <= OFFSET_MAX).ok_or(CommandError::BitOffset)
}

/// How many bytes a string needs to have its first `bits` bits.
const fn bytes_of(bits: u64) -> usize {
    // Whoever asks has checked that they are few.
    bits.div_ceil(8) as usize
}

/// The bit at an offset; false beyond the end.
fn bit_at(bytes: &[u8], offset: u64) -> bool {
    let byte = usize::try_from(offset / 8).ok().and_then(|index| bytes.get(index));
    byte.is_some_and(|byte| byte >> (7 - offset % 8) & 1 == 1)
}

/// Changes the bit at an offset, which must be in the string.
fn set_bit(bytes: &mut [u8], offset: u64, bit: bool) {
    let mask = 0x80 >> (offset % 8);
    let byte = &mut bytes[(offset / 8) as usize];
    if bit {
        *byte |= mask;
    } else {
        *byte &= !mask;
    }
}

/// True if the string of a key is shorter than that, or there is none; false if nobody asks what happens to keys.
fn grows<K: KeysMut>(keys: &K, key: &[u8], length: usize) -> Result<bool, ExecutionError> {
    if !keys.notifies() {
        return Ok(false);
    }
    let found = keys.get(key);
    Ok(string_of(found.as_ref())?.is_none_or(|string| string.len() < length))
}
