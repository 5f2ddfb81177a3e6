//! What a tree has to know of its elements.

use crate::block::Elements;
use core::fmt;

/// An element as it lies in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// The part that has [`Order::FIXED`] bytes in every element.
    pub fixed: &'a [u8],
    /// All other bytes.
    pub rest: &'a [u8],
}

/// What a tree's elements are ordered by, and how they are packed.
pub trait Order: Sized + Send + Sync + 'static {
    /// Bytes of the part of fixed length, at most [`Draft::FIXED_MAX`](crate::Draft::FIXED_MAX). The fixed parts of a
    /// block lie together, so what a search looks at first belongs there.
    const FIXED: usize;

    /// Something greater than all elements of one node and not greater than those of the next. It is short, for
    /// nodes are full of them.
    type Separator: Clone + fmt::Debug + Send + Sync;

    /// An element as the user sees it.
    type Item<'a>;

    /// A separator that no element is below.
    fn lowest() -> Self::Separator;

    /// A separator between two elements that follow each other.
    fn separator(left: Element<'_>, right: Element<'_>) -> Self::Separator;

    /// True if an element belongs before a separator.
    fn is_before(element: Element<'_>, separator: &Self::Separator) -> bool;

    /// True if `right` may follow `left`.
    fn is_ascending(left: Element<'_>, right: Element<'_>) -> bool;

    /// True if the parts of an element agree with each other.
    fn is_sound(_element: Element<'_>) -> bool {
        true
    }

    /// What the user sees of an element.
    fn item(element: Element<'_>) -> Self::Item<'_>;
}

/// An order in which elements have their place by what they are, and not by where they were put.
pub trait KeyOrder: Order {
    /// What an element is found by.
    type Key<'a>: Copy;

    /// True if a separator is greater than a key, so that the key is to be looked for before it.
    fn is_after(separator: &Self::Separator, key: Self::Key<'_>) -> bool;

    /// The index of the element with this key, or, as an error, of the first element that is greater.
    ///
    /// # Errors
    /// Where the key would be, if it is not there.
    fn search(elements: Elements<'_, Self>, key: Self::Key<'_>) -> Result<usize, usize>;
}
