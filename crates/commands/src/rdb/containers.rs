//! What small collections are packed in besides ziplists and listpacks: zipmaps, and arrays of integers.

use super::InvalidPayload;
use super::input::Input;
use std::borrow::Cow;

/// An element of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element<'a> {
    String(&'a [u8]),
    Integer(i64),
}

impl<'a> Element<'a> {
    /// Its bytes, which for an integer are digits.
    pub(super) fn bytes(self) -> Cow<'a, [u8]> {
        match self {
            Self::String(bytes) => Cow::Borrowed(bytes),
            Self::Integer(number) => Cow::Owned(number.to_string().into_bytes()),
        }
    }
}

/// The number with a sign that these at most eight bytes are, the lowest of them first.
pub(super) fn little_endian(bytes: &[u8]) -> i64 {
    let fill = if bytes.last().is_some_and(|last| *last >= 0x80) { -1 } else { 0 };
    bytes.iter().rev().fold(fill, |number: i64, byte| number << 8 | i64::from(*byte))
}

/// The integers of a set that is all of these bytes: in ascending order.
pub(super) fn integers(bytes: &[u8]) -> Result<Vec<i64>, InvalidPayload> {
    let mut input = Input::new(bytes);
    let width = u32::from_le_bytes(input.take_array()?);
    let count = u32::from_le_bytes(input.take_array()?);
    if !matches!(width, 2 | 4 | 8) {
        return Err(InvalidPayload::Format);
    }
    let content = input.take(u64::from(width) * u64::from(count))?;
    let integers: Vec<i64> = content.chunks_exact(width as usize).map(little_endian).collect();
    let is_valid = input.is_empty() && integers.is_sorted_by(|left, right| left < right);
    if is_valid { Ok(integers) } else { Err(InvalidPayload::Format) }
}

/// What stands in front of a length of four bytes in a zipmap.
const LONG: u8 = 0xfe;

/// What the last byte of a zipmap is.
const END: u8 = 0xff;

/// The most fields that the first byte of a zipmap can count.
const COUNTED_MAX: u8 = 253;

/// Fields, each with its value.
type Pairs<'a> = Vec<(&'a [u8], &'a [u8])>;

/// The fields and values of a zipmap that is all of these bytes.
pub(super) fn zipmap(bytes: &[u8]) -> Result<Pairs<'_>, InvalidPayload> {
    let mut input = Input::new(bytes);
    let count = input.take_u8()?;
    let mut pairs = Vec::new();
    loop {
        let length = match input.take_u8()? {
            END => break,
            first => take_length(&mut input, first)?,
        };
        let field = input.take(length)?;
        let first = input.take_u8()?;
        let length = take_length(&mut input, first)?;
        let unused = input.take_u8()?;
        let value = input.take(length)?;
        input.take(u64::from(unused))?;
        pairs.push((field, value));
    }
    let is_counted = count > COUNTED_MAX || usize::from(count) == pairs.len();
    if is_counted && input.is_empty() { Ok(pairs) } else { Err(InvalidPayload::Format) }
}

fn take_length(input: &mut Input<'_>, first: u8) -> Result<u64, InvalidPayload> {
    match first {
        LONG => Ok(u64::from(u32::from_le_bytes(input.take_array()?))),
        END => Err(InvalidPayload::Format),
        short => Ok(u64::from(short)),
    }
}
