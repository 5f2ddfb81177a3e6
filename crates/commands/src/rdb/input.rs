//! Lengths, numbers and strings, as they are read.

use super::{InvalidPayload, lzf};
use crate::limits::RESTORED_BYTES_MAX;
use std::borrow::Cow;
use syros_types::limits::VALUE_BYTES_MAX;

/// What is left of a payload, and how many bytes its compressed strings, and what is repeated, may still become.
pub(super) struct Input<'a> {
    rest: &'a [u8],
    expansion_left: usize,
}

/// What stands where a length is expected.
enum Length {
    Bytes(u64),
    /// A string in one of these forms.
    Form(u8),
}

/// Forms of strings that are no bytes behind their length.
mod form {
    pub(super) const INTEGER_8: u8 = 0;
    pub(super) const INTEGER_16: u8 = 1;
    pub(super) const INTEGER_32: u8 = 2;
    pub(super) const COMPRESSED: u8 = 3;
}

impl<'a> Input<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self::expanding(bytes, RESTORED_BYTES_MAX)
    }

    /// What is compressed or repeated in it may become so many bytes.
    pub(super) const fn expanding(bytes: &'a [u8], expansion_max: usize) -> Self {
        Self { rest: bytes, expansion_left: expansion_max }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// So many bytes.
    pub(super) fn take(&mut self, count: u64) -> Result<&'a [u8], InvalidPayload> {
        let count = usize::try_from(count).map_err(|_| InvalidPayload::Format)?;
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or(InvalidPayload::Format)?;
        self.rest = rest;
        Ok(bytes)
    }

    pub(super) fn take_array<const BYTES: usize>(&mut self) -> Result<[u8; BYTES], InvalidPayload> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(InvalidPayload::Format)?;
        self.rest = rest;
        Ok(*bytes)
    }

    pub(super) fn take_u8(&mut self) -> Result<u8, InvalidPayload> {
        self.take_array().map(|[byte]| byte)
    }

    fn take_length_or_form(&mut self) -> Result<Length, InvalidPayload> {
        let first = self.take_u8()?;
        let low = first & 0x3f;
        Ok(match (first >> 6, low) {
            (0, _) => Length::Bytes(u64::from(low)),
            (1, _) => Length::Bytes(u64::from(low) << 8 | u64::from(self.take_u8()?)),
            (2, 0) => Length::Bytes(u64::from(u32::from_be_bytes(self.take_array()?))),
            (2, 1) => Length::Bytes(u64::from_be_bytes(self.take_array()?)),
            (3, form) => Length::Form(form),
            _ => return Err(InvalidPayload::Format),
        })
    }

    /// A length or a count. No memory may be set aside for it: it says more than the payload may have.
    pub(super) fn take_length(&mut self) -> Result<u64, InvalidPayload> {
        match self.take_length_or_form()? {
            Length::Bytes(length) => Ok(length),
            Length::Form(_) => Err(InvalidPayload::Format),
        }
    }

    /// A string.
    pub(super) fn take_string(&mut self) -> Result<Cow<'a, [u8]>, InvalidPayload> {
        let number = match self.take_length_or_form()? {
            Length::Bytes(length) => return self.take(length).map(Cow::Borrowed),
            Length::Form(form::COMPRESSED) => return self.take_compressed().map(Cow::Owned),
            Length::Form(form::INTEGER_8) => i32::from(i8::from_le_bytes(self.take_array()?)),
            Length::Form(form::INTEGER_16) => i32::from(i16::from_le_bytes(self.take_array()?)),
            Length::Form(form::INTEGER_32) => i32::from_le_bytes(self.take_array()?),
            Length::Form(_) => return Err(InvalidPayload::Format),
        };
        Ok(Cow::Owned(number.to_string().into_bytes()))
    }

    /// So many bytes are made of what the payload has once: together with its compressed strings no more than may be.
    pub(super) fn expand(&mut self, bytes: usize) -> Result<(), InvalidPayload> {
        self.expansion_left = self.expansion_left.checked_sub(bytes).ok_or(InvalidPayload::Format)?;
        Ok(())
    }

    fn take_compressed(&mut self) -> Result<Vec<u8>, InvalidPayload> {
        let compressed = self.take_length()?;
        let length = usize::try_from(self.take_length()?).map_err(|_| InvalidPayload::Format)?;
        if length > VALUE_BYTES_MAX {
            return Err(InvalidPayload::Format);
        }
        self.expand(length)?;
        lzf::decompress(self.take(compressed)?, length)
    }
}
