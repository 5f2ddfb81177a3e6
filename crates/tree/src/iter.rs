//! Elements in order, forwards and backwards, without copying them.

use crate::block::Block;
use crate::elements::Elements;
use crate::node::Child;
use crate::order::Order;
use crate::seek::locate;
use core::iter::FusedIterator;
use core::ops::Range;

/// The elements of some ranks, in order, from either end.
///
/// It keeps the block that it is in at each end, and finds the next one from the root when that is used up. So it has
/// no allocation, and dropping it early costs nothing.
pub struct Iter<'a, O: Order> {
    /// None if there is no element.
    root: Option<&'a Child<O>>,
    /// Ranks that are still to come.
    ranks: Range<u64>,
    front: Option<Place<'a, O>>,
    back: Option<Place<'a, O>>,
}

/// Elements of one block that are still to come.
struct Place<'a, O> {
    elements: Elements<'a, O>,
    slots: Range<usize>,
}

impl<O> Clone for Place<'_, O> {
    fn clone(&self) -> Self {
        Self { elements: self.elements, slots: self.slots.clone() }
    }
}

impl<O: Order> Clone for Iter<'_, O> {
    fn clone(&self) -> Self {
        Self {
            root: self.root,
            ranks: self.ranks.clone(),
            front: self.front.clone(),
            back: self.back.clone(),
        }
    }
}

impl<'a, O: Order> Iter<'a, O> {
    /// The elements of these ranks, all of which exist.
    pub(crate) fn new(root: Option<&'a Child<O>>, ranks: Range<u64>) -> Self {
        Self { root, ranks, front: None, back: None }
    }

    /// The rank of the element that comes next; behind the last one if none does.
    #[must_use]
    pub fn rank(&self) -> u64 {
        self.ranks.start
    }
}

impl<'a, O: Order> Iterator for Iter<'a, O> {
    type Item = O::Item<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.ranks.is_empty() {
            return None;
        }
        loop {
            if let Some(place) = &mut self.front
                && let Some(slot) = place.slots.next()
            {
                self.ranks.start += 1;
                return Some(O::item(place.elements.get(slot)));
            }
            let (block, slot) = locate(self.root?, self.ranks.start);
            let elements = block.elements();
            self.front = Some(Place { elements, slots: slot..elements.len() });
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.ranks.end - self.ranks.start);
        (left.unwrap_or(usize::MAX), left.ok())
    }

    /// Passes over elements in O(log n).
    fn nth(&mut self, count: usize) -> Option<Self::Item> {
        self.ranks.start = self.ranks.start.saturating_add(count as u64).min(self.ranks.end);
        if count > 0 {
            self.front = None;
        }
        self.next()
    }
}

impl<O: Order> DoubleEndedIterator for Iter<'_, O> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.ranks.is_empty() {
            return None;
        }
        loop {
            if let Some(place) = &mut self.back
                && let Some(slot) = place.slots.next_back()
            {
                self.ranks.end -= 1;
                return Some(O::item(place.elements.get(slot)));
            }
            let (block, slot) = locate(self.root?, self.ranks.end - 1);
            self.back = Some(Place { elements: block.elements(), slots: 0..slot + 1 });
        }
    }
}

impl<O: Order> ExactSizeIterator for Iter<'_, O> {}

impl<O: Order> FusedIterator for Iter<'_, O> {}

/// The blocks of a tree from a rank on.
pub struct Blocks<'a, O: Order> {
    root: Option<&'a Child<O>>,
    /// Ranks that are still to come.
    ranks: Range<u64>,
}

impl<'a, O: Order> Blocks<'a, O> {
    /// The blocks of the elements of these ranks, behind which there are no others.
    pub(crate) fn new(root: Option<&'a Child<O>>, ranks: Range<u64>) -> Self {
        Self { root, ranks }
    }
}

impl<'a, O: Order> Iterator for Blocks<'a, O> {
    type Item = Leaf<'a, O>;

    fn next(&mut self) -> Option<Leaf<'a, O>> {
        if self.ranks.is_empty() {
            return None;
        }
        let (block, slot) = locate(self.root?, self.ranks.start);
        let leaf = Leaf { block, slot, rank: self.ranks.start };
        self.ranks.start += leaf.len() as u64;
        Some(leaf)
    }
}

/// Elements that lie in one block: all of them, or those from some rank on. Where blocks end is no property of the
/// elements: whatever is made of it must come out equal however they lie.
pub struct Leaf<'a, O> {
    block: &'a Block<O>,
    slot: usize,
    rank: u64,
}

impl<'a, O: Order> Leaf<'a, O> {
    /// The rank of the first element.
    #[must_use]
    pub fn rank(&self) -> u64 {
        self.rank
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.block.elements().len() - self.slot
    }

    /// False: there is no leaf without elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the elements.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let elements = self.block.elements();
        elements.rests_length() - elements.start(self.slot) + self.len() * O::FIXED
    }

    /// The elements.
    pub fn items(&self) -> impl DoubleEndedIterator<Item = O::Item<'a>> + ExactSizeIterator + use<'a, O> {
        let elements = self.block.elements();
        (self.slot..elements.len()).map(move |index| O::item(elements.get(index)))
    }
}
