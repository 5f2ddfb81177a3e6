//! What values are written with: numbers and strings.

use core::fmt;
use syros_types::varint::{InvalidVarint, put_varint, take_varint};

/// Why bytes are no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidValue {
    /// They end too early.
    Truncated,
    /// A number is not in its shortest form, or exceeds 64 bits.
    Number,
    /// There is no kind of value with this tag.
    Kind(u8),
    /// There is no form of a collection with this tag.
    Form(u8),
    /// A string is longer than it may be here.
    TooLong {
        /// What was found, in bytes.
        length: u64,
        /// The most that is allowed, in bytes.
        limit: usize,
    },
    /// No collection of this form has so many elements.
    Count(u64),
    /// An element is there twice, or in the wrong place.
    Order,
    /// A score is no number, or one that no collection of this form has.
    Score,
    /// A field of a hash expires at no moment that is possible, or when the head of the hash says otherwise.
    Expiry,
    /// A record of a stream is none, or names what the stream does not have.
    Record,
}

impl fmt::Display for InvalidValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("a value ends too early"),
            Self::Number => f.write_str("a number of a value exceeds 64 bits or is longer than it needs"),
            Self::Kind(tag) => write!(f, "no kind of value has tag {tag}"),
            Self::Form(tag) => write!(f, "no form of a collection has tag {tag}"),
            Self::TooLong { length, limit } => {
                write!(f, "a string of {length} bytes in a value exceeds the limit of {limit}")
            }
            Self::Count(count) => write!(f, "no collection of this form has {count} elements"),
            Self::Order => f.write_str("an element of a collection is twice there or out of order"),
            Self::Record => f.write_str("a record of a stream is none, or names what is not there"),
            Self::Expiry => f.write_str("a field of a hash expires at a moment at which it cannot"),
            Self::Score => f.write_str("a score is no number, or not one that it can be here"),
        }
    }
}

impl core::error::Error for InvalidValue {}

impl From<InvalidVarint> for InvalidValue {
    fn from(error: InvalidVarint) -> Self {
        match error {
            InvalidVarint::Truncated => Self::Truncated,
            InvalidVarint::TooLong => Self::Number,
        }
    }
}

/// Appends a string behind its length.
pub(crate) fn put_string(out: &mut Vec<u8>, string: &[u8]) {
    put_varint(out, string.len() as u64);
    out.extend_from_slice(string);
}

/// Takes a byte off the front of `input`.
pub(crate) fn take_u8(input: &mut &[u8]) -> Result<u8, InvalidValue> {
    let (&first, rest) = input.split_first().ok_or(InvalidValue::Truncated)?;
    *input = rest;
    Ok(first)
}

/// Takes a string that is not longer than a limit.
pub(crate) fn take_string<'a>(input: &mut &'a [u8], limit: usize) -> Result<&'a [u8], InvalidValue> {
    let length = take_varint(input)?;
    if length > limit as u64 {
        return Err(InvalidValue::TooLong { length, limit });
    }
    let (string, rest) = input.split_at_checked(length as usize).ok_or(InvalidValue::Truncated)?;
    *input = rest;
    Ok(string)
}
