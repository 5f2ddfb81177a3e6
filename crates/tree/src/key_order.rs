//! What a tree has to know of elements that are found by what they are.

use crate::elements::Elements;
use crate::order::Order;
use core::cmp::Ordering;

/// An order in which elements have their place by what they are, and not by where they were put.
pub trait KeyOrder: Order {
    /// What an element is found by.
    type Key<'a>: Copy;

    /// The head of the elements that a key is among.
    fn key_head(key: Self::Key<'_>) -> Self::Head;

    /// How a key compares with the tail of an element that has its head.
    fn compare_tail(key: Self::Key<'_>, tail: &[u8]) -> Ordering;

    /// The index of the element with this key, or, as an error, of the first element that is greater.
    ///
    /// # Errors
    /// Where the key would be, if it is not there.
    fn search(elements: Elements<'_, Self>, key: Self::Key<'_>) -> Result<usize, usize>;

    /// How many of these heads, which are in order, are less than `head`. All that is looked for here is at least
    /// `from` and at most `to`.
    #[inline]
    fn count_less(heads: &[Self::Head], head: Self::Head, _from: Self::Head, _to: Self::Head) -> usize {
        heads.partition_point(|other| *other < head)
    }
}
