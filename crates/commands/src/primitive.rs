//! What operations and replies are written with: numbers and byte strings.

use core::fmt;
use syros_types::varint::{InvalidVarint, put_varint, take_varint};

/// Why bytes are no operation, body or reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// They end in the middle of something, or a body is empty.
    Truncated,
    /// No operation has this opcode.
    Opcode(u16),
    /// An operation that only reads is marked as blind.
    BlindRead(u16),
    /// No reply has this tag.
    Tag(u8),
    /// A number is not in its shortest form, or exceeds 64 bits.
    Number,
    /// This byte of options or flags means nothing here, or has a shorter form.
    Options(u8),
    /// A length or count is above its limit.
    TooLong {
        /// What was found.
        length: u64,
        /// The most that is allowed.
        limit: u64,
    },
    /// A list that needs strings has none, or half a pair.
    Count(u64),
    /// More operations on all keys than [`WHOLE_KEYSPACE_OPERATIONS_MAX`](crate::limits::WHOLE_KEYSPACE_OPERATIONS_MAX)
    /// are in one body: it could ask for unlimited work.
    WholeKeyspace,
    /// The scripts of one body may use more fuel than [`SCRIPTS_FUEL_MAX`](crate::limits::SCRIPTS_FUEL_MAX), or are more than
    /// [`SCRIPTS_PER_BODY_MAX`](crate::limits::SCRIPTS_PER_BODY_MAX).
    Scripts,
    /// There is no database of this number, or the operation does not say where it is executed like this.
    Database(u8),
    /// Replies nested deeper than any command answers.
    TooDeep,
    /// It names a key that is the store's own.
    HiddenKey,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the bytes end too early"),
            Self::Opcode(opcode) => write!(f, "no operation has opcode {opcode}"),
            Self::BlindRead(opcode) => write!(f, "opcode {opcode} only reads and cannot be blind"),
            Self::Tag(tag) => write!(f, "no reply has tag {tag}"),
            Self::Number => f.write_str("a number is not in its shortest form or too large"),
            Self::Options(byte) => write!(f, "option byte {byte:#04x} is not allowed here"),
            Self::TooLong { length, limit } => write!(f, "length {length} exceeds the limit of {limit}"),
            Self::Count(count) => write!(f, "a list of {count} strings is not allowed here"),
            Self::WholeKeyspace => f.write_str("too many operations on all keys in one body"),
            Self::Scripts => f.write_str("too many scripts in one body, or too much fuel for them"),
            Self::Database(number) => write!(f, "database {number} is not allowed here"),
            Self::TooDeep => f.write_str("replies are nested too deep"),
            Self::HiddenKey => f.write_str("a key is the store's own"),
        }
    }
}

impl core::error::Error for Malformed {}

impl From<InvalidVarint> for Malformed {
    fn from(error: InvalidVarint) -> Self {
        match error {
            InvalidVarint::Truncated => Self::Truncated,
            InvalidVarint::TooLong => Self::Number,
        }
    }
}

pub(crate) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put_varint(out, ((value << 1) ^ (value >> 63)) as u64);
}

pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub(crate) fn take_u8(input: &mut &[u8]) -> Result<u8, Malformed> {
    let (&first, rest) = input.split_first().ok_or(Malformed::Truncated)?;
    *input = rest;
    Ok(first)
}

/// Takes so many bytes off the front of `input`.
pub(crate) fn take_fixed<const LENGTH: usize>(input: &mut &[u8]) -> Result<[u8; LENGTH], Malformed> {
    let (bytes, rest) = input.split_first_chunk().ok_or(Malformed::Truncated)?;
    *input = rest;
    Ok(*bytes)
}

pub(crate) fn take_signed(input: &mut &[u8]) -> Result<i64, Malformed> {
    let raw = take_varint(input)?;
    Ok((raw >> 1) as i64 ^ -((raw & 1) as i64))
}

pub(crate) fn take_bytes<'a>(input: &mut &'a [u8]) -> Result<&'a [u8], Malformed> {
    take_bytes_up_to(input, u64::MAX)
}

pub(crate) fn take_bytes_up_to<'a>(input: &mut &'a [u8], limit: u64) -> Result<&'a [u8], Malformed> {
    let length = take_varint(input)?;
    if length > limit {
        return Err(Malformed::TooLong { length, limit });
    }
    let length = usize::try_from(length).map_err(|_| Malformed::Truncated)?;
    let (bytes, rest) = input.split_at_checked(length).ok_or(Malformed::Truncated)?;
    *input = rest;
    Ok(bytes)
}

pub(crate) fn take_up_to(input: &mut &[u8], limit: u64) -> Result<u64, Malformed> {
    let length = take_varint(input)?;
    if length > limit { Err(Malformed::TooLong { length, limit }) } else { Ok(length) }
}
