//! Lengths, numbers and strings, as they are written.

use crate::number::parse_integer;

/// A length above this has two bytes.
const SHORT_MAX: usize = 0x3f;

/// The shortest length of two bytes.
const MEDIUM_MIN: usize = SHORT_MAX + 1;

/// A length above this has four bytes.
const MEDIUM_MAX: usize = 0x3fff;

/// Texts, each behind this number.
pub(super) fn texts<'a>(number: u8, texts: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut out = Output::new(usize::MAX);
    for text in texts {
        out.put_head(number, text.len() as u64);
        out.bytes.extend_from_slice(text);
    }
    out.bytes
}

/// A payload that is being written, and how many bytes it may have.
pub(super) struct Output {
    pub(super) bytes: Vec<u8>,
    pub(super) bytes_max: usize,
}

impl Output {
    pub(super) const fn new(bytes_max: usize) -> Self {
        Self { bytes: Vec::new(), bytes_max }
    }

    pub(super) fn put_head(&mut self, number: u8, count: u64) {
        self.bytes.push(number);
        self.put_number(count);
    }

    /// Appends a number where it is no string.
    pub(super) fn put_number(&mut self, number: u64) {
        self.put_length(usize::try_from(number).unwrap_or(usize::MAX));
    }

    /// Appends bytes whose number is known; `None` if there is too much.
    pub(super) fn put_raw(&mut self, bytes: &[u8]) -> Option<()> {
        self.bytes.extend_from_slice(bytes);
        (self.bytes.len() <= self.bytes_max).then_some(())
    }

    fn put_length(&mut self, length: usize) {
        let bytes = (length as u64).to_be_bytes();
        match length {
            0..=SHORT_MAX => self.bytes.push(bytes[7]),
            MEDIUM_MIN..=MEDIUM_MAX => self.bytes.extend_from_slice(&[bytes[6] | 0x40, bytes[7]]),
            _ => match u32::try_from(length) {
                Ok(length) => {
                    self.bytes.push(0x80);
                    self.bytes.extend_from_slice(&length.to_be_bytes());
                }
                Err(_) => {
                    self.bytes.push(0x81);
                    self.bytes.extend_from_slice(&bytes);
                }
            },
        }
    }

    /// Appends a string, as a number if it is one of at most 32 bits; `None` if there is too much.
    pub(super) fn put_string(&mut self, string: &[u8]) -> Option<()> {
        match parse_integer(string).and_then(|number| i32::try_from(number).ok()) {
            Some(number) => self.put_integer(number),
            None => {
                self.put_length(string.len());
                self.bytes.extend_from_slice(string);
            }
        }
        (self.bytes.len() <= self.bytes_max).then_some(())
    }

    fn put_integer(&mut self, number: i32) {
        let bytes = number.to_le_bytes();
        let (form, length) = if i8::try_from(number).is_ok() {
            (0xc0, 1)
        } else if i16::try_from(number).is_ok() {
            (0xc1, 2)
        } else {
            (0xc2, 4)
        };
        self.bytes.push(form);
        self.bytes.extend_from_slice(&bytes[..length]);
    }
}
