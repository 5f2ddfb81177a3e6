//! Elements where they were put: lists.

use crate::draft::Draft;
use crate::order::{Element, Order};
use crate::tree::Tree;

/// The order of positions. An element's rank is all that is known of its place.
#[derive(Debug)]
pub struct ByPosition;

/// A list of byte strings.
pub type List = Tree<ByPosition>;

impl Order for ByPosition {
    const FIXED: usize = 0;
    type Head = ();
    const LEAST: () = ();
    const GREATEST: () = ();
    type Item<'a> = &'a [u8];

    fn put_head((): (), _: &mut Vec<u8>) {}

    fn take_head(_: &mut &[u8]) -> Option<()> {
        Some(())
    }

    fn head(_: Element<'_>) {}

    fn tail(_: Element<'_>) -> &[u8] {
        &[]
    }

    fn is_ascending(_: Element<'_>, _: Element<'_>) -> bool {
        true
    }

    #[inline]
    fn item(element: Element<'_>) -> &[u8] {
        element.rest
    }
}

impl List {
    /// An element, for a [`Builder`](crate::Builder).
    #[must_use]
    #[inline]
    pub fn draft(bytes: &[u8]) -> Draft<'_> {
        Draft::new(&[], bytes)
    }

    /// Inserts an element before all others.
    pub fn push_front(&mut self, bytes: &[u8]) {
        self.insert_before(0, &Self::draft(bytes));
    }

    /// Appends an element.
    pub fn push_back(&mut self, bytes: &[u8]) {
        self.append(&Self::draft(bytes));
    }

    /// Inserts an element before the one at `position`, or behind the last one, in O(log n). False, and nothing is
    /// changed, if there are not so many.
    pub fn insert(&mut self, position: u64, bytes: &[u8]) -> bool {
        self.insert_before(position, &Self::draft(bytes))
    }

    /// Replaces the element at `position`, in O(log n). False, and nothing is changed, if there is none.
    pub fn set(&mut self, position: u64, bytes: &[u8]) -> bool {
        self.replace_at(position, &Self::draft(bytes))
    }
}
