//! The elements of a block, and how they are laid out in it.
//!
//! | bytes | what |
//! |---|---|
//! | 2 | number of elements `n`, little-endian as all numbers here |
//! | 2 | zero, so that what follows is aligned |
//! | 4 | length of the rests |
//! | `n` * [`Order::FIXED`] | the fixed parts |
//! | `n` * 2 | where the rest of each element begins, counted from the first rest |
//! | length of the rests | the rests, in the same order; each ends where the next one begins |
//! | any | slack, with nothing in it |
//!
//! What a search compares first lies together at the front, in the few cache lines that the processor has fetched
//! together with the header.

use crate::order::{Element, Order};
use core::marker::PhantomData;

/// Bytes before the fixed parts.
pub(crate) const HEADER_BYTES: usize = 8;

/// Bytes of the place where a rest begins.
pub(crate) const START_BYTES: usize = 2;

/// As how many bytes more an element counts where what elements take is told without a look at where they lie: as many as
/// a short one takes besides its own in a tree, about. It takes as long to read, too.
pub(crate) const EACH_BYTES: usize = 16;

/// The elements of one block.
pub struct Elements<'a, O> {
    pub(crate) bytes: &'a [u8],
    order: PhantomData<fn() -> O>,
}

impl<O> Clone for Elements<'_, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<O> Copy for Elements<'_, O> {}

impl<'a, O: Order> Elements<'a, O> {
    /// The elements that lie in these bytes.
    #[inline]
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, order: PhantomData }
    }

    /// Number of elements.
    #[must_use]
    #[inline]
    pub fn len(self) -> usize {
        usize::from(u16::from_le_bytes([self.bytes[0], self.bytes[1]]))
    }

    /// True if there is none, as in no block of a tree.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The fixed parts of all elements behind each other.
    #[must_use]
    #[inline]
    pub fn fixed_parts(self) -> &'a [u8] {
        &self.bytes[HEADER_BYTES..HEADER_BYTES + self.len() * O::FIXED]
    }

    /// The fixed part of the element at `index`.
    ///
    /// # Panics
    /// If there are not so many elements.
    #[must_use]
    #[inline]
    pub fn fixed(self, index: usize) -> &'a [u8] {
        &self.fixed_parts()[index * O::FIXED..][..O::FIXED]
    }

    /// What follows the fixed part of the element at `index`.
    ///
    /// # Panics
    /// If there are not so many elements.
    #[must_use]
    #[inline]
    pub fn rest(self, index: usize) -> &'a [u8] {
        let rests = self.rests_at();
        &self.bytes[rests + self.start(index)..rests + self.start(index + 1)]
    }

    /// The element at `index`.
    ///
    /// # Panics
    /// If there are not so many elements.
    #[must_use]
    #[inline]
    pub fn get(self, index: usize) -> Element<'a> {
        Element { fixed: self.fixed(index), rest: self.rest(index) }
    }

    /// Bytes in use.
    #[inline]
    pub(crate) fn used(self) -> usize {
        used_bytes::<O>(self.len(), self.rests_length())
    }

    /// Bytes of the elements alone, wherever they are, and [`EACH_BYTES`] for each.
    #[inline]
    pub(crate) fn element_bytes(self) -> usize {
        self.len() * (O::FIXED + EACH_BYTES) + self.rests_length()
    }

    /// Bytes of all rests.
    #[inline]
    pub(crate) fn rests_length(self) -> usize {
        u32::from_le_bytes([self.bytes[4], self.bytes[5], self.bytes[6], self.bytes[7]]) as usize
    }

    /// Where the first rest is.
    #[inline]
    pub(crate) fn rests_at(self) -> usize {
        used_bytes::<O>(self.len(), 0)
    }

    /// Where the rest of the element at `index` begins, counted from the first rest. The element behind the last one
    /// begins where that ends.
    #[inline]
    pub(crate) fn start(self, index: usize) -> usize {
        let count = self.len();
        if index >= count {
            return self.rests_length();
        }
        let at = HEADER_BYTES + count * O::FIXED + index * START_BYTES;
        usize::from(u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]))
    }
}

/// Bytes that so many elements take, the rests of which have `rest` bytes together.
#[inline]
pub(crate) fn used_bytes<O: Order>(count: usize, rest: usize) -> usize {
    HEADER_BYTES + count * (O::FIXED + START_BYTES) + rest
}
