//! Listpacks: strings and integers behind each other, each with its length behind it.

use super::InvalidPayload;
use super::containers::{Element, little_endian};
use super::input::Input;
use crate::number::parse_integer;

/// Bytes of the head: of its own length, and of the number of elements.
const HEAD_BYTES: usize = 6;

/// The number of elements of those that have too many for it.
const MANY: u16 = u16::MAX;

/// What the last byte is.
const END: u8 = 0xff;

/// The elements of a listpack that is all of these bytes.
pub(super) fn elements(bytes: &[u8]) -> Result<Vec<Element<'_>>, InvalidPayload> {
    let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>().ok_or(InvalidPayload::Format)?;
    let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
    let count = u16::from_le_bytes([head[4], head[5]]);
    let (&end, mut rest) = rest.split_last().ok_or(InvalidPayload::Format)?;
    if length as usize != bytes.len() || end != END {
        return Err(InvalidPayload::Format);
    }
    let mut elements = Vec::new();
    while !rest.is_empty() {
        let mut input = Input::new(rest);
        let (element, taken) = take(&mut input)?;
        let backwards = length_behind(taken);
        rest = rest[taken..].strip_prefix(backwards.as_slice()).ok_or(InvalidPayload::Format)?;
        elements.push(element);
    }
    if count == MANY || usize::from(count) == elements.len() {
        Ok(elements)
    } else {
        Err(InvalidPayload::Format)
    }
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
    let low = u32::from(first & 0x1f);
    match first {
        0..0x80 => Ok((Element::Integer(i64::from(first)), 1)),
        0x80..0xc0 => string(input, u32::from(first & 0x3f), 1),
        0xc0..0xe0 => {
            let number = i64::from(low << 8 | u32::from(input.take_u8()?));
            // Thirteen bits, the first of which is the sign.
            Ok((Element::Integer((number ^ 1 << 12) - (1 << 12)), 2))
        }
        0xe0..0xf0 => {
            let length = u32::from(first & 0x0f) << 8 | u32::from(input.take_u8()?);
            string(input, length, 2)
        }
        0xf0 => {
            let length = u32::from_le_bytes(input.take_array()?);
            string(input, length, 5)
        }
        0xf1 => integer(input, 2),
        0xf2 => integer(input, 3),
        0xf3 => integer(input, 4),
        0xf4 => integer(input, 8),
        _ => Err(InvalidPayload::Format),
    }
}

/// A listpack that is being written.
pub(super) struct Packer {
    bytes: Vec<u8>,
    elements: usize,
}

impl Packer {
    pub(super) fn new() -> Self {
        Self { bytes: vec![0; HEAD_BYTES], elements: 0 }
    }

    /// Appends a string; as Redis does, as an integer if it is the digits of one.
    pub(super) fn string(&mut self, string: &[u8]) {
        if let Some(number) = parse_integer(string) {
            return self.integer(number);
        }
        let start = self.bytes.len();
        match string.len() {
            length @ ..0x40 => self.bytes.push(0x80 | length as u8),
            length @ ..0x1000 => self.bytes.extend_from_slice(&[0xe0 | (length >> 8) as u8, length as u8]),
            length => {
                self.bytes.push(0xf0);
                // No string has four gibibytes.
                self.bytes.extend_from_slice(&(length as u32).to_le_bytes());
            }
        }
        self.bytes.extend_from_slice(string);
        self.close(start);
    }

    /// Appends an integer, in as few bytes as it can have.
    pub(super) fn integer(&mut self, number: i64) {
        let start = self.bytes.len();
        let bytes = number.to_le_bytes();
        match number {
            0..0x80 => self.bytes.push(bytes[0]),
            -0x1000..0x1000 => self.bytes.extend_from_slice(&[0xc0 | (bytes[1] & 0x1f), bytes[0]]),
            _ => {
                let (form, width) = match number {
                    -0x8000..0x8000 => (0xf1, 2),
                    -0x80_0000..0x80_0000 => (0xf2, 3),
                    -0x8000_0000..0x8000_0000 => (0xf3, 4),
                    _ => (0xf4, 8),
                };
                self.bytes.push(form);
                self.bytes.extend_from_slice(&bytes[..width]);
            }
        }
        self.close(start);
    }

    fn close(&mut self, start: usize) {
        let behind = length_behind(self.bytes.len() - start);
        self.bytes.extend_from_slice(&behind);
        self.elements += 1;
    }

    /// All of it.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(END);
        let (length, count) = (self.bytes.len() as u32, u16::try_from(self.elements).unwrap_or(MANY));
        self.bytes[..4].copy_from_slice(&length.to_le_bytes());
        self.bytes[4..HEAD_BYTES].copy_from_slice(&count.to_le_bytes());
        self.bytes
    }
}

/// The length of an element as it is written behind it: seven bits a byte, to be read from the last one on.
fn length_behind(length: usize) -> Vec<u8> {
    // Redis leaves out the largest length of each number of bytes but of one.
    let bytes = match length {
        0..=0x7f => 1,
        0x80..0x3fff => 2,
        0x3fff..0x1f_ffff => 3,
        0x1f_ffff..0xfff_ffff => 4,
        _ => 5,
    };
    (0..bytes)
        .rev()
        .map(|place| {
            let bits = (length >> (7 * place)) as u8 & 0x7f;
            if place == bytes - 1 { bits } else { bits | 0x80 }
        })
        .collect()
}
