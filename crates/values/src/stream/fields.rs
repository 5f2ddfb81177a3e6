//! The fields of a stream's entry, packed.

use crate::primitive::{InvalidValue, put_string, take_string};
use syros_types::limits::VALUE_BYTES_MAX;
use syros_types::varint::{put_varint, take_varint};

/// Fields and their values in turn, in the order in which they were given. A field may be there several times.
///
/// They lie behind each other: their number, then each string behind its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields<'a> {
    strings: usize,
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Packs fields and their values, of which there are so many strings together.
    pub(super) fn pack<'s>(strings: usize, each: impl Iterator<Item = &'s [u8]>) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_varint(&mut bytes, strings as u64);
        each.take(strings).for_each(|string| put_string(&mut bytes, string));
        bytes
    }

    /// The fields that are packed in these bytes of a stream.
    pub(super) fn unpack(mut bytes: &'a [u8]) -> Self {
        let strings = take_varint(&mut bytes).expect("an entry begins with the number of its strings");
        Self { strings: strings as usize, rest: bytes }
    }

    /// Fails if bytes are not the only way to pack some fields.
    pub(super) fn check(mut bytes: &[u8]) -> Result<(), InvalidValue> {
        let strings = take_varint(&mut bytes)?;
        if strings == 0 || !strings.is_multiple_of(2) {
            return Err(InvalidValue::Count(strings));
        }
        for _ in 0..strings {
            take_string(&mut bytes, VALUE_BYTES_MAX)?;
        }
        if bytes.is_empty() { Ok(()) } else { Err(InvalidValue::Record) }
    }

    /// How many bytes they take with their lengths.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.rest.len()
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.strings = self.strings.checked_sub(1)?;
        take_string(&mut self.rest, VALUE_BYTES_MAX).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.strings, Some(self.strings))
    }
}

impl ExactSizeIterator for Fields<'_> {}
