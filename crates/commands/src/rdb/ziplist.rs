//! Ziplists: strings and integers behind each other, each with the length of the one before it in front.

use super::InvalidPayload;
use super::containers::{Element, little_endian};
use super::input::Input;

/// Bytes of the head: of its own length, of where the last element is, and of the number of elements.
const HEAD_BYTES: usize = 10;

/// The number of elements of those that have too many for it.
const MANY: u16 = u16::MAX;

/// What the last byte is.
const END: u8 = 0xff;

/// What stands in front of a length of four bytes.
const LONG: u8 = 0xfe;

/// The elements of a ziplist that is all of these bytes.
pub(super) fn elements(bytes: &[u8]) -> Result<Vec<Element<'_>>, InvalidPayload> {
    let mut input = Input::new(bytes);
    let length = u32::from_le_bytes(input.take_array()?);
    let last = u32::from_le_bytes(input.take_array()?);
    let count = u16::from_le_bytes(input.take_array()?);
    let (&end, content) = bytes.split_last().ok_or(InvalidPayload::Format)?;
    let mut rest = content.get(HEAD_BYTES..).ok_or(InvalidPayload::Format)?;
    if length as usize != bytes.len() || end != END {
        return Err(InvalidPayload::Format);
    }
    let (mut elements, mut before, mut start) = (Vec::new(), 0, HEAD_BYTES);
    while !rest.is_empty() {
        start = content.len() - rest.len();
        let mut input = Input::new(rest);
        let head = take_length_before(&mut input, before)?;
        let (element, taken) = take(&mut input)?;
        before = head + taken;
        rest = rest.get(before..).ok_or(InvalidPayload::Format)?;
        elements.push(element);
    }
    let is_counted = count == MANY || usize::from(count) == elements.len();
    if is_counted && last as usize == start { Ok(elements) } else { Err(InvalidPayload::Format) }
}

/// Takes the length of the element before, which has to be this; how many bytes it took.
fn take_length_before(input: &mut Input<'_>, before: usize) -> Result<usize, InvalidPayload> {
    let (length, taken) = match input.take_u8()? {
        LONG => (u32::from_le_bytes(input.take_array()?) as usize, 5),
        END => return Err(InvalidPayload::Format),
        short => (usize::from(short), 1),
    };
    if length == before { Ok(taken) } else { Err(InvalidPayload::Format) }
}

/// An element, and how many bytes it takes.
fn take<'a>(input: &mut Input<'a>) -> Result<(Element<'a>, usize), InvalidPayload> {
    let first = input.take_u8()?;
    let string = |input: &mut Input<'a>, length: u32, head: usize| {
        let bytes = input.take(u64::from(length))?;
        Ok((Element::String(bytes), head + bytes.len()))
    };
    let integer = |input: &mut Input<'a>, bytes: usize| {
        Ok((Element::Integer(little_endian(input.take(bytes as u64)?)), 1 + bytes))
    };
    let low = u32::from(first & 0x3f);
    match first {
        0..0x40 => string(input, low, 1),
        0x40..0x80 => {
            let length = low << 8 | u32::from(input.take_u8()?);
            string(input, length, 2)
        }
        0x80 => {
            let length = u32::from_be_bytes(input.take_array()?);
            string(input, length, 5)
        }
        0xc0 => integer(input, 2),
        0xd0 => integer(input, 4),
        0xe0 => integer(input, 8),
        0xf0 => integer(input, 3),
        0xfe => integer(input, 1),
        0xf1..=0xfd => Ok((Element::Integer(i64::from(first & 0x0f) - 1), 1)),
        _ => Err(InvalidPayload::Format),
    }
}
