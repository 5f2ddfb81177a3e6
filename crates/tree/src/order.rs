//! What a tree has to know of its elements.

use core::fmt;

/// An element as it lies in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// The part that has [`Order::FIXED`] bytes in every element.
    pub fixed: &'a [u8],
    /// All other bytes.
    pub rest: &'a [u8],
}

/// What a tree's elements are ordered by, and how they are packed. Elements have a *head*, a number by which they are
/// compared first, and a *tail*, bytes by which those are compared whose heads are equal.
pub trait Order: Sized + Send + Sync + 'static {
    /// Bytes of the part of fixed length, at most [`Draft::FIXED_MAX`](crate::Draft::FIXED_MAX). The fixed parts of a
    /// block lie together, so what a search looks at first belongs there.
    const FIXED: usize;

    /// What elements are compared by first. Any two are comparable. Nodes keep one for each child.
    type Head: Copy + PartialOrd + fmt::Debug + Send + Sync;

    /// No head is less.
    const LEAST: Self::Head;

    /// No head is greater.
    const GREATEST: Self::Head;

    /// An element as the user sees it.
    type Item<'a>;

    /// The head of an element.
    fn head(element: Element<'_>) -> Self::Head;

    /// The tail of an element.
    fn tail(element: Element<'_>) -> &[u8];

    /// True if `right` may follow `left`.
    fn is_ascending(left: Element<'_>, right: Element<'_>) -> bool {
        (Self::head(left), Self::tail(left)) < (Self::head(right), Self::tail(right))
    }

    /// True if the parts of an element agree with each other.
    fn is_sound(_element: Element<'_>) -> bool {
        true
    }

    /// What the user sees of an element.
    fn item(element: Element<'_>) -> Self::Item<'_>;
}
