//! How a place in a tree is found: which child it is below, and where in a leaf it is.

use crate::block::Block;
use crate::elements::Elements;
use crate::key_order::KeyOrder;
use crate::node::{Child, Inner};
use crate::order::Order;
use core::cmp::Ordering;

/// A place that is looked for on the way down from the root.
pub(crate) trait Seek<O: Order> {
    /// The child that the place is in. A place that is counted from the front is from then on counted from the front
    /// of that child.
    fn child(&mut self, inner: &Inner<O>) -> usize;

    /// The index of the element that is looked for, or, as an error, where an element belongs that is not there.
    fn slot(&self, elements: Elements<'_, O>) -> Result<usize, usize>;
}

/// The leaf that a place is in.
#[inline]
pub(crate) fn descend<'a, O: Order>(root: &'a Child<O>, seek: &mut impl Seek<O>) -> &'a Block<O> {
    let mut node = root;
    loop {
        match node {
            Child::Leaf(block) => return block,
            Child::Inner(inner) => node = &inner.children[seek.child(inner)],
            Child::Paged(page) => node = page.node(),
        }
    }
}

/// The leaf with the element of a rank, and the element's index there. There has to be one.
#[inline]
pub(crate) fn locate<O: Order>(root: &Child<O>, rank: u64) -> (&Block<O>, usize) {
    let mut seek = AtRank(rank);
    let block = descend(root, &mut seek);
    (block, seek.0 as usize)
}

/// The element that so many others are before. There has to be one.
pub(crate) struct AtRank(pub(crate) u64);

/// Before the element of this rank, or behind all.
pub(crate) struct BeforeRank(pub(crate) u64);

/// Behind all elements.
pub(crate) struct AtEnd;

/// The element with a key.
pub(crate) struct AtKey<'a, O: KeyOrder> {
    key: O::Key<'a>,
    head: O::Head,
    /// Between which heads the node is that is looked at.
    from: O::Head,
    to: O::Head,
}

/// Like [`AtKey`], and counts the elements before the child that is chosen last.
pub(crate) struct CountingAtKey<'a, O: KeyOrder> {
    pub(crate) at: AtKey<'a, O>,
    pub(crate) before: u64,
}

impl<O: Order> Seek<O> for AtRank {
    #[inline]
    fn child(&mut self, inner: &Inner<O>) -> usize {
        let mut index = 0;
        while self.0 >= inner.counts[index] {
            self.0 -= inner.counts[index];
            index += 1;
        }
        index
    }

    #[inline]
    fn slot(&self, _: Elements<'_, O>) -> Result<usize, usize> {
        Ok(self.0 as usize)
    }
}

impl<O: Order> Seek<O> for BeforeRank {
    #[inline]
    fn child(&mut self, inner: &Inner<O>) -> usize {
        let mut index = 0;
        while self.0 > inner.counts[index] {
            self.0 -= inner.counts[index];
            index += 1;
        }
        index
    }

    #[inline]
    fn slot(&self, _: Elements<'_, O>) -> Result<usize, usize> {
        Err(self.0 as usize)
    }
}

impl<O: Order> Seek<O> for AtEnd {
    #[inline]
    fn child(&mut self, inner: &Inner<O>) -> usize {
        inner.len() - 1
    }

    #[inline]
    fn slot(&self, elements: Elements<'_, O>) -> Result<usize, usize> {
        Err(elements.len())
    }
}

impl<'a, O: KeyOrder> AtKey<'a, O> {
    /// Looks for a key.
    #[inline]
    pub(crate) fn new(key: O::Key<'a>) -> Self {
        Self { key, head: O::key_head(key), from: O::LEAST, to: O::GREATEST }
    }
}

impl<O: KeyOrder> Seek<O> for AtKey<'_, O> {
    /// The last child whose separator is not greater than the key, or the first child.
    #[inline]
    fn child(&mut self, inner: &Inner<O>) -> usize {
        let heads = &inner.separators.heads()[1..];
        let mut index = O::count_less(heads, self.head, self.from, self.to);
        if heads.get(index).is_some_and(|head| *head == self.head) {
            index += count_tails(inner, index, self.head, self.key);
        }
        if index > 0 {
            self.from = heads[index - 1];
        }
        if let Some(next) = heads.get(index) {
            self.to = *next;
        }
        index
    }

    #[inline]
    fn slot(&self, elements: Elements<'_, O>) -> Result<usize, usize> {
        O::search(elements, self.key)
    }
}

/// How many of the separators with this head, before the first of which there are `first` others, are not greater than
/// the key.
fn count_tails<O: KeyOrder>(inner: &Inner<O>, first: usize, head: O::Head, key: O::Key<'_>) -> usize {
    let heads = &inner.separators.heads()[1 + first..];
    let (mut low, mut high) = (0, heads.partition_point(|other| *other == head));
    while low < high {
        let middle = (low + high) / 2;
        match O::compare_tail(key, inner.separators.tail(1 + first + middle)) {
            Ordering::Less => high = middle,
            Ordering::Equal | Ordering::Greater => low = middle + 1,
        }
    }
    low
}

impl<O: KeyOrder> Seek<O> for CountingAtKey<'_, O> {
    #[inline]
    fn child(&mut self, inner: &Inner<O>) -> usize {
        let index = self.at.child(inner);
        self.before += inner.counts[..index].iter().sum::<u64>();
        index
    }

    #[inline]
    fn slot(&self, elements: Elements<'_, O>) -> Result<usize, usize> {
        self.at.slot(elements)
    }
}
