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

    /// Appends a head, in as many bytes as any other. Fixed for ever, like a file format.
    fn put_head(head: Self::Head, out: &mut Vec<u8>);

    /// Takes a head off the front of `input`. `None` if there is none.
    fn take_head(input: &mut &[u8]) -> Option<Self::Head>;

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

/// Takes so many bytes off the front of `input`.
pub(crate) fn take_chunk<const BYTES: usize>(input: &mut &[u8]) -> Option<[u8; BYTES]> {
    let (chunk, rest) = input.split_first_chunk()?;
    *input = rest;
    Some(*chunk)
}
