//! How much some nodes take, and how much of that their elements.

use core::iter::Sum;
use core::ops::{Add, AddAssign, Sub, SubAssign};

/// Sizes of nodes and of all that is below them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Bytes of memory.
    pub(crate) memory: u64,
    /// Bytes of the elements.
    pub(crate) elements: u64,
}

impl Add for Extent {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        Self { memory: self.memory + other.memory, elements: self.elements + other.elements }
    }
}

impl Sub for Extent {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        Self { memory: self.memory - other.memory, elements: self.elements - other.elements }
    }
}

impl AddAssign for Extent {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Extent {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Sum for Extent {
    fn sum<I: Iterator<Item = Self>>(extents: I) -> Self {
        extents.fold(Self::default(), Self::add)
    }
}
