//! What stands between the children of a node.

use crate::tail::Tail;
use core::ops::Range;

/// Something greater than all elements of one node and not greater than those of the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Separator<H> {
    /// What is compared first.
    pub(crate) head: H,
    /// What tells elements with this head apart, if the separator stands between two of them.
    pub(crate) tail: Tail,
}

/// The separators of a node. A search reads the heads, which lie close together, and looks at a tail only where heads
/// are equal.
#[derive(Clone, Debug)]
pub(crate) struct Separators<H> {
    heads: Vec<H>,
    /// As many as heads; or none, if none has bytes.
    tails: Vec<Tail>,
}

impl<H: Copy> Separators<H> {
    /// No separators.
    pub(crate) const fn new() -> Self {
        Self { heads: Vec::new(), tails: Vec::new() }
    }

    /// Number of separators.
    pub(crate) fn len(&self) -> usize {
        self.heads.len()
    }

    /// The heads.
    #[inline]
    pub(crate) fn heads(&self) -> &[H] {
        &self.heads
    }

    /// The bytes of a tail.
    #[inline]
    pub(crate) fn tail(&self, index: usize) -> &[u8] {
        self.tails.get(index).map_or(&[], Tail::bytes)
    }

    /// The separator before the child at `index`.
    pub(crate) fn get(&self, index: usize) -> Separator<H> {
        Separator { head: self.heads[index], tail: self.tails.get(index).cloned().unwrap_or_default() }
    }

    /// Replaces a separator.
    pub(crate) fn set(&mut self, index: usize, new: Separator<H>) {
        self.heads[index] = new.head;
        self.want_tails_for(&new.tail);
        if let Some(tail) = self.tails.get_mut(index) {
            *tail = new.tail;
        }
    }

    /// Inserts a separator.
    pub(crate) fn insert(&mut self, index: usize, new: Separator<H>) {
        self.want_tails_for(&new.tail);
        // The first one of a node that has none yet may have bytes, too.
        if !self.tails.is_empty() || !new.tail.bytes().is_empty() {
            self.tails.insert(index, new.tail);
        }
        self.heads.insert(index, new.head);
    }

    /// Takes separators out.
    pub(crate) fn remove(&mut self, range: Range<usize>) {
        if !self.tails.is_empty() {
            self.tails.drain(range.clone());
        }
        self.heads.drain(range);
    }

    /// Appends all of another node.
    pub(crate) fn append(&mut self, other: &mut Self) {
        if !self.tails.is_empty() || !other.tails.is_empty() {
            self.tails.resize(self.heads.len(), Tail::default());
            other.tails.resize(other.heads.len(), Tail::default());
            self.tails.append(&mut other.tails);
        }
        self.heads.append(&mut other.heads);
    }

    /// Splits off the separators from `at` on.
    pub(crate) fn split_off(&mut self, at: usize) -> Self {
        let tails = if self.tails.is_empty() { Vec::new() } else { self.tails.split_off(at) };
        Self { heads: self.heads.split_off(at), tails }
    }

    /// Makes room for so many more.
    pub(crate) fn reserve(&mut self, more: usize) {
        self.heads.reserve_exact(more);
        if !self.tails.is_empty() {
            self.tails.reserve_exact(more);
        }
    }

    /// Makes a place for each tail, unless there is none and this one has no bytes either.
    fn want_tails_for(&mut self, tail: &Tail) {
        if self.tails.is_empty() && !tail.bytes().is_empty() {
            self.tails.resize(self.heads.len(), Tail::default());
        }
    }

    /// For tests that damage a node.
    #[cfg(test)]
    pub(crate) fn heads_mut(&mut self) -> &mut Vec<H> {
        &mut self.heads
    }
}
