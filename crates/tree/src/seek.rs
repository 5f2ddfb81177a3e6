//! How a place in a tree is found: which child it is below, and where in a leaf it is.

use crate::block::Elements;
use crate::node::Inner;
use crate::order::{KeyOrder, Order};

/// A place that is looked for on the way down from the root.
pub(crate) trait Seek<O: Order> {
    /// The child that the place is in. A place that is counted from the front is from then on counted from the front
    /// of that child.
    fn child(&mut self, inner: &Inner<O>) -> usize;

    /// The index of the element that is looked for, or, as an error, where an element belongs that is not there.
    fn slot(&self, elements: Elements<'_, O>) -> Result<usize, usize>;
}

/// The element that so many others are before. There has to be one.
pub(crate) struct AtRank(pub(crate) u64);

/// Before the element of this rank, or behind all.
pub(crate) struct BeforeRank(pub(crate) u64);

/// Behind all elements.
pub(crate) struct AtEnd;

/// The element with a key.
pub(crate) struct AtKey<'a, O: KeyOrder>(pub(crate) O::Key<'a>);

/// Like [`AtKey`], and notes how many elements are before the child that is chosen last.
pub(crate) struct CountingAtKey<'a, O: KeyOrder> {
    pub(crate) key: O::Key<'a>,
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

/// The last child whose separator is not greater than the key, or the first child.
#[inline]
fn child_of<O: KeyOrder>(inner: &Inner<O>, key: O::Key<'_>) -> usize {
    inner.separators[1..].partition_point(|separator| !O::is_after(separator, key))
}

impl<O: KeyOrder> Seek<O> for AtKey<'_, O> {
    #[inline]
    fn child(&mut self, inner: &Inner<O>) -> usize {
        child_of(inner, self.0)
    }

    #[inline]
    fn slot(&self, elements: Elements<'_, O>) -> Result<usize, usize> {
        O::search(elements, self.0)
    }
}

impl<O: KeyOrder> Seek<O> for CountingAtKey<'_, O> {
    #[inline]
    fn child(&mut self, inner: &Inner<O>) -> usize {
        let index = child_of(inner, self.key);
        self.before += inner.counts[..index].iter().sum::<u64>();
        index
    }

    #[inline]
    fn slot(&self, elements: Elements<'_, O>) -> Result<usize, usize> {
        O::search(elements, self.key)
    }
}
