//! A tree from elements that come in order: faster than insertions, and with full nodes.

use crate::block::{Block, Part};
use crate::draft::Draft;
use crate::node::{CHILDREN_MAX, Child, Inner, Sibling, between, lowest};
use crate::order::{Element, Order};
use crate::tree::Tree;
use core::fmt;
use core::mem::replace;
use std::sync::Arc;

/// An element that may not follow the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfOrder;

impl fmt::Display for OutOfOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an element is not greater than the one before it")
    }
}

impl core::error::Error for OutOfOrder {}

/// Makes a tree of elements that are pushed in ascending order.
pub struct Builder<O: Order> {
    /// The block that is being filled.
    open: Block<O>,
    /// The last block that is full.
    full: Option<Block<O>>,
    /// The nodes at the right edge, from the lowest level up. Those before them are children of the next level.
    edge: Vec<Inner<O>>,
    /// The last element that was pushed, without its fixed part.
    rest: Vec<u8>,
    count: u64,
}

impl<O: Order> Default for Builder<O> {
    fn default() -> Self {
        Self::new()
    }
}

impl<O: Order> Builder<O> {
    /// A builder without elements.
    #[must_use]
    pub fn new() -> Self {
        Self { open: Block::with_room(), full: None, edge: vec![], rest: vec![], count: 0 }
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.count
    }

    /// True if nothing was pushed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Appends an element.
    ///
    /// # Errors
    /// If it may not follow the one before it. Then nothing is changed.
    pub fn push(&mut self, draft: &Draft<'_>) -> Result<(), OutOfOrder> {
        self.rest.resize(draft.rest_length(), 0);
        draft.write_rest(&mut self.rest);
        let element = Element { fixed: draft.fixed(), rest: &self.rest };
        let elements = self.open.elements();
        let before = match &self.full {
            _ if !elements.is_empty() => Some(elements.get(elements.len() - 1)),
            Some(full) => Some(full.elements().get(full.elements().len() - 1)),
            None => None,
        };
        if before.is_some_and(|before| !O::is_ascending(before, element)) {
            return Err(OutOfOrder);
        }
        self.count += 1;
        if self.open.insert_in_place(elements.len(), draft) {
            return Ok(());
        }
        self.close();
        if !self.open.insert_in_place(0, draft) {
            self.add_block(Block::compose(&[Part::New(draft)]));
        }
        Ok(())
    }

    /// The tree of all elements that were pushed.
    #[must_use]
    pub fn finish(mut self) -> Tree<O> {
        self.close();
        let mut level = 0;
        while level + 1 < self.edge.len() {
            let inner = replace(&mut self.edge[level], Inner::empty());
            level += 1;
            self.add_node(level, sibling(inner));
        }
        let root = self.edge.pop().map(|inner| Child::Inner(Arc::new(inner)));
        let mut tree = Tree { root, count: self.count };
        tree.lower_root();
        tree
    }

    /// Ends the block that is being filled.
    fn close(&mut self) {
        let elements = self.open.elements();
        if elements.is_empty() {
            return;
        }
        let block = Block::compose(&[Part::Old(elements, 0..elements.len())]);
        self.open = Block::with_room();
        self.add_block(block);
    }

    /// Appends a block to the lowest level.
    fn add_block(&mut self, block: Block<O>) {
        let separator = self.full.as_ref().map_or_else(lowest::<O>, |full| {
            between::<O>(full.elements().get(full.elements().len() - 1), block.elements().get(0))
        });
        self.full = Some(block.clone());
        self.add_node(0, Sibling { separator, child: Child::Leaf(block) });
    }

    /// Appends a node to those of a level.
    fn add_node(&mut self, level: usize, new: Sibling<O>) {
        let Some(inner) = self.edge.get_mut(level) else {
            self.edge.push(Inner::above(new.separator, new.child));
            return;
        };
        if inner.len() < CHILDREN_MAX {
            inner.insert(inner.len(), new);
            return;
        }
        let inner = replace(inner, Inner::above(new.separator, new.child));
        self.add_node(level + 1, sibling(inner));
    }
}

/// A node with what it begins with.
fn sibling<O: Order>(inner: Inner<O>) -> Sibling<O> {
    Sibling { separator: inner.separators.get(0), child: Child::Inner(Arc::new(inner)) }
}
