//! A tree of any order: everything that is asked by rank, and what every order is made of.

use crate::block::{Block, Part};
use crate::dismantle::Dismantle;
use crate::draft::Draft;
use crate::edit::{Action, Outcome, edit};
use crate::elements::EACH_BYTES;
use crate::iter::{Blocks, Iter};
use crate::key_order::KeyOrder;
use crate::node::{Child, Inner, Opened, lowest};
use crate::order::{Element, Order};
use crate::seek::{AtEnd, AtKey, AtRank, BeforeRank, CountingAtKey, Seek, descend, locate};
use core::fmt;
use core::ops::{Bound, Range, RangeBounds};
use std::sync::Arc;

/// A counted, persistent B+ tree. A clone is O(1), and neither sees what is done to the other from then on.
///
/// Ranks count elements from 0 in their order. What is said to take O(log n) looks at one node of each level.
pub struct Tree<O: Order> {
    pub(crate) root: Option<Child<O>>,
    pub(crate) count: u64,
}

impl<O: Order> Clone for Tree<O> {
    fn clone(&self) -> Self {
        Self { root: self.root.clone(), count: self.count }
    }
}

impl<O: Order> Default for Tree<O> {
    fn default() -> Self {
        Self::new()
    }
}

impl<O: Order> fmt::Debug for Tree<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree").field("len", &self.count).field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

impl<O: Order> Dismantle<O> {
    /// Adds a tree.
    pub fn add(&mut self, tree: Tree<O>) {
        let bytes = tree.bytes();
        self.add_root(tree.root, bytes);
    }
}

impl<O: Order> Tree<O> {
    /// A tree without elements, which has no allocation.
    #[must_use]
    pub const fn new() -> Self {
        Self { root: None, count: 0 }
    }

    /// Number of elements.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.count
    }

    /// True if there is no element.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of memory of all nodes, those included that clones hold too. Unlike all else that a tree tells, this
    /// depends on how the elements came to be where they are.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.root.as_ref().map_or(0, |root| root.extent().memory)
    }

    /// About how many bytes the elements take: a function of the elements alone, wherever they are.
    #[must_use]
    pub fn element_bytes(&self) -> u64 {
        self.root.as_ref().map_or(0, |root| root.extent().elements)
    }

    /// How many of [these bytes](Self::element_bytes) are those of the element of this rank, in O(log n); 0 if there is none.
    #[must_use]
    pub fn element_bytes_at(&self, rank: u64) -> u64 {
        self.element(rank).map_or(0, |element| (element.fixed.len() + element.rest.len() + EACH_BYTES) as u64)
    }

    /// The element of this rank, in O(log n).
    #[must_use]
    pub fn nth(&self, rank: u64) -> Option<O::Item<'_>> {
        self.element(rank).map(O::item)
    }

    /// The first element.
    #[must_use]
    pub fn first(&self) -> Option<O::Item<'_>> {
        self.root.as_ref().map(|root| O::item(root.first()))
    }

    /// The last element.
    #[must_use]
    pub fn last(&self) -> Option<O::Item<'_>> {
        self.root.as_ref().map(|root| O::item(root.last()))
    }

    /// All elements in order, from either end.
    #[must_use]
    pub fn iter(&self) -> Iter<'_, O> {
        self.range(..)
    }

    /// The elements of these ranks in order, from either end. Ranks that no element has are left out. Nothing is looked
    /// up before the first element is asked for, which takes O(log n).
    #[must_use]
    pub fn range(&self, ranks: impl RangeBounds<u64>) -> Iter<'_, O> {
        Iter::new(self.root.as_ref(), self.clamped(ranks))
    }

    /// The blocks of the elements from a rank on. The first one has only those of its elements that are not before it.
    #[must_use]
    pub fn blocks(&self, rank: u64) -> Blocks<'_, O> {
        Blocks::new(self.root.as_ref(), self.clamped(rank..))
    }

    /// Removes the element of this rank and gives it to `see` before that, in O(log n). None if there is none.
    pub fn remove_at<R>(&mut self, rank: u64, see: impl FnOnce(O::Item<'_>) -> R) -> Option<R> {
        if rank >= self.count {
            return None;
        }
        let (mut see, mut seen) = (Some(see), None);
        self.edit(&mut AtRank(rank), Action::Remove, &mut |element| {
            seen = see.take().map(|see| see(O::item(element)));
        });
        seen
    }

    /// Removes the first element and gives it to `see` before that.
    pub fn pop_first<R>(&mut self, see: impl FnOnce(O::Item<'_>) -> R) -> Option<R> {
        self.remove_at(0, see)
    }

    /// Removes the last element and gives it to `see` before that.
    pub fn pop_last<R>(&mut self, see: impl FnOnce(O::Item<'_>) -> R) -> Option<R> {
        self.remove_at(self.count.checked_sub(1)?, see)
    }

    /// Removes the elements of these ranks, in O(log n). What they took is given back with what is returned.
    pub fn remove_range(&mut self, ranks: impl RangeBounds<u64>) -> Dismantle<O> {
        let Range { start, end } = self.clamped(ranks);
        let mut removed = Vec::new();
        if start == 0 && end == self.count {
            removed.extend(self.root.take());
        } else if start < end
            && let Some(root) = &mut self.root
        {
            cut(root, start..end, &mut removed);
        }
        self.count -= end - start;
        self.lower_root();
        Dismantle::new(removed)
    }

    /// Splits off the elements from a rank on, in O(log n).
    #[must_use]
    pub fn split_off(&mut self, rank: u64) -> Self {
        let mut rest = self.clone();
        drop(rest.remove_range(..rank));
        drop(self.remove_range(rank..));
        rest
    }

    /// The tree as something to be given back in bounded steps.
    pub fn dismantle(self) -> Dismantle<O> {
        let mut dismantle = Dismantle::default();
        dismantle.add(self);
        dismantle
    }

    /// The element of this rank as it is packed.
    pub(crate) fn element(&self, rank: u64) -> Option<Element<'_>> {
        let (block, index) = locate(self.root.as_ref().filter(|_| rank < self.count)?, rank);
        Some(block.elements().get(index))
    }

    /// Ranks that elements have.
    fn clamped(&self, ranks: impl RangeBounds<u64>) -> Range<u64> {
        let end = match ranks.end_bound() {
            Bound::Included(end) => end.saturating_add(1),
            Bound::Excluded(end) => *end,
            Bound::Unbounded => self.count,
        };
        let end = end.min(self.count);
        let start = match ranks.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(start) => start.saturating_add(1),
            Bound::Unbounded => 0,
        };
        start.min(end)..end
    }

    /// Inserts an element before that of a rank. False, and nothing is changed, if there are not so many.
    pub(crate) fn insert_before(&mut self, rank: u64, draft: &Draft<'_>) -> bool {
        if rank > self.count {
            return false;
        }
        self.edit(&mut BeforeRank(rank), Action::Insert(draft), &mut |_| ());
        true
    }

    /// Appends an element.
    pub(crate) fn append(&mut self, draft: &Draft<'_>) {
        self.edit(&mut AtEnd, Action::Insert(draft), &mut |_| ());
    }

    /// Replaces the element of a rank. False, and nothing is changed, if there is none.
    pub(crate) fn replace_at(&mut self, rank: u64, draft: &Draft<'_>) -> bool {
        rank < self.count
            && self.edit(&mut AtRank(rank), Action::Replace(draft), &mut |_| ()) == Outcome::Replaced
    }

    /// Carries out an action at a place. `see` gets the element that is replaced or removed, before that.
    fn edit<S: Seek<O>, F: FnMut(Element<'_>)>(
        &mut self,
        seek: &mut S,
        action: Action<'_>,
        see: &mut F,
    ) -> Outcome {
        let Some(root) = &mut self.root else {
            let (Action::Put(draft) | Action::Insert(draft)) = action else { return Outcome::Nothing };
            self.root = Some(Child::Leaf(Block::compose(&[Part::New(draft)])));
            self.count = 1;
            return Outcome::Inserted;
        };
        let mut grown = Vec::new();
        let outcome = edit(root, seek, action, &mut grown, see);
        self.count = outcome.applied_to(self.count);
        if !grown.is_empty()
            && let Some(root) = self.root.take()
        {
            let mut above = Inner::above(lowest::<O>(), root);
            for new in grown {
                above.insert(above.len(), new);
            }
            self.root = Some(Child::Inner(Arc::new(above)));
        } else {
            self.lower_root();
        }
        outcome
    }

    /// Takes away a root without elements, and roots with a single child.
    pub(crate) fn lower_root(&mut self) {
        if self.count == 0 {
            self.root = None;
        }
        while let Some(Child::Inner(inner)) = &self.root
            && inner.len() == 1
        {
            self.root = inner.children.first().cloned();
        }
    }
}

impl<'a, O: Order> IntoIterator for &'a Tree<O> {
    type Item = O::Item<'a>;
    type IntoIter = Iter<'a, O>;

    fn into_iter(self) -> Iter<'a, O> {
        self.iter()
    }
}

impl<O: KeyOrder> Tree<O> {
    /// The element with a key, as it is packed, in O(log n).
    #[must_use]
    #[inline]
    pub fn find(&self, key: O::Key<'_>) -> Option<Element<'_>> {
        let elements = descend(self.root.as_ref()?, &mut AtKey::new(key)).elements();
        O::search(elements, key).ok().map(|index| elements.get(index))
    }

    /// The rank of the element with a key, in O(log n).
    ///
    /// # Errors
    /// If there is none: the number of elements that are less.
    pub fn rank(&self, key: O::Key<'_>) -> Result<u64, u64> {
        let Some(root) = &self.root else { return Err(0) };
        let mut seek = CountingAtKey { at: AtKey::new(key), before: 0 };
        match O::search(descend(root, &mut seek).elements(), key) {
            Ok(index) => Ok(seek.before + index as u64),
            Err(index) => Err(seek.before + index as u64),
        }
    }

    /// Number of elements that are less than a key, in O(log n).
    #[must_use]
    pub fn count_before(&self, key: O::Key<'_>) -> u64 {
        self.rank(key).unwrap_or_else(|rank| rank)
    }

    /// Inserts the element with a key, or replaces it, in O(log n). The key has to be the draft's. `see` gets the
    /// element that is replaced, before that. True if there was none.
    #[inline]
    pub fn put(&mut self, key: O::Key<'_>, draft: &Draft<'_>, see: &mut impl FnMut(Element<'_>)) -> bool {
        self.edit(&mut AtKey::new(key), Action::Put(draft), see) == Outcome::Inserted
    }

    /// Inserts the element with a key, in O(log n). The key has to be the draft's. False, and nothing is changed, if
    /// there is one already.
    #[inline]
    pub fn insert_new(&mut self, key: O::Key<'_>, draft: &Draft<'_>) -> bool {
        if self.is_root_shared() && self.find(key).is_some() {
            return false;
        }
        self.edit(&mut AtKey::new(key), Action::Insert(draft), &mut |_| ()) == Outcome::Inserted
    }

    /// Removes the element with a key, in O(log n). `see` gets it before that. False if there is none.
    #[inline]
    pub fn take(&mut self, key: O::Key<'_>, see: &mut impl FnMut(Element<'_>)) -> bool {
        if self.is_root_shared() && self.find(key).is_none() {
            return false;
        }
        self.edit(&mut AtKey::new(key), Action::Remove, see) == Outcome::Removed
    }

    /// True if a clone has the same root, or it lies elsewhere. Then an action that does not apply should not copy a path for
    /// nothing.
    fn is_root_shared(&self) -> bool {
        match &self.root {
            Some(Child::Inner(inner)) => Arc::strong_count(inner) > 1,
            Some(Child::Paged(_)) => true,
            Some(Child::Leaf(_)) | None => false,
        }
    }
}

/// Removes elements of a node, some but not all, by their ranks there. Nodes of which nothing is left are appended to
/// `removed`.
fn cut<O: Order>(child: &mut Child<O>, ranks: Range<u64>, removed: &mut Vec<Child<O>>) {
    let inner = match child.opened() {
        Opened::Leaf(block) => {
            let elements = block.elements();
            let (start, end) = (ranks.start as usize, ranks.end as usize);
            let parts = [Part::Old(elements, 0..start), Part::Old(elements, end..elements.len())];
            *block = Block::compose(&parts);
            return;
        }
        Opened::Inner(inner) => inner,
    };
    let mut before = 0;
    let (mut whole, mut touched) = (inner.len()..0, inner.len()..0);
    for index in 0..inner.len() {
        let here = before..before + inner.counts[index];
        before = here.end;
        let (start, end) = (ranks.start.max(here.start), ranks.end.min(here.end));
        if start >= end {
            continue;
        }
        touched = touched.start.min(index)..index + 1;
        if (start..end) == here {
            whole = whole.start.min(index)..index + 1;
            continue;
        }
        let extent = inner.children[index].extent();
        cut(&mut inner.children[index], start - here.start..end - here.start, removed);
        inner.counts[index] -= end - start;
        inner.extent = inner.extent - extent + inner.children[index].extent();
    }
    let mut end = touched.end;
    if whole.start < whole.end {
        end -= whole.len();
        inner.remove_range(whole, removed);
    }
    inner.settle(touched.start..end.max(touched.start));
}
