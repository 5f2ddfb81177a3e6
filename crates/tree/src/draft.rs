//! An element that is about to be written into a block.

use crate::order::Element;
use syros_types::varint::put_varint;

/// Most bytes of a fixed part: an id of 128 bits.
const FIXED_MAX: usize = 16;

/// Most bytes of a length.
const PREFIX_MAX: usize = 10;

/// The parts of an element before they are packed: what the caller has of it is copied once, into the block.
#[derive(Clone, Copy, Debug)]
pub struct Draft<'a> {
    fixed: [u8; FIXED_MAX],
    fixed_length: usize,
    prefix: [u8; PREFIX_MAX],
    prefix_length: usize,
    parts: [&'a [u8]; 2],
}

impl<'a> Draft<'a> {
    /// Most bytes of a fixed part.
    pub const FIXED_MAX: usize = FIXED_MAX;

    /// An element of a fixed part and one string.
    ///
    /// # Panics
    /// If the fixed part is longer than [`Self::FIXED_MAX`], which no order allows.
    #[must_use]
    #[inline]
    pub fn new(fixed: &[u8], rest: &'a [u8]) -> Self {
        assert!(fixed.len() <= FIXED_MAX, "a fixed part of {} bytes", fixed.len());
        let mut draft = Self {
            fixed: [0; FIXED_MAX],
            fixed_length: fixed.len(),
            prefix: [0; PREFIX_MAX],
            prefix_length: 0,
            parts: [rest, &[]],
        };
        draft.fixed[..fixed.len()].copy_from_slice(fixed);
        draft
    }

    /// An element of a fixed part and two strings. The length of the first one is written before it; the second one
    /// ends where the element does.
    #[must_use]
    #[inline]
    pub fn pair(fixed: &[u8], first: &'a [u8], second: &'a [u8]) -> Self {
        let mut draft = Self::new(fixed, first);
        draft.parts[1] = second;
        if first.len() < 0x80 {
            draft.prefix[0] = first.len() as u8;
            draft.prefix_length = 1;
        } else {
            let mut length = Vec::with_capacity(PREFIX_MAX);
            put_varint(&mut length, first.len() as u64);
            draft.prefix[..length.len()].copy_from_slice(&length);
            draft.prefix_length = length.len();
        }
        draft
    }

    /// An element that lies in a block already, to be copied into another one.
    #[must_use]
    pub fn of(element: Element<'a>) -> Self {
        Self::new(element.fixed, element.rest)
    }

    /// The part of fixed length.
    #[inline]
    pub(crate) fn fixed(&self) -> &[u8] {
        &self.fixed[..self.fixed_length]
    }

    /// How many bytes follow the fixed part.
    #[inline]
    pub(crate) fn rest_length(&self) -> usize {
        self.prefix_length + self.parts[0].len() + self.parts[1].len()
    }

    /// Writes what follows the fixed part. `target` has exactly its length.
    #[inline]
    pub(crate) fn write_rest(&self, target: &mut [u8]) {
        let (prefix, target) = target.split_at_mut(self.prefix_length);
        prefix.copy_from_slice(&self.prefix[..self.prefix_length]);
        let (first, second) = target.split_at_mut(self.parts[0].len());
        first.copy_from_slice(self.parts[0]);
        second.copy_from_slice(self.parts[1]);
    }
}
