//! Inner nodes: what they hold, and how children are split, merged and counted.

use crate::block::{ALLOCATION_BYTES, Block, MERGED_BYTES_MAX, Part};
use crate::elements::HEADER_BYTES;
use crate::extent::Extent;
use crate::order::{Element, Order};
use crate::page::{About, Source, Subtree, take_separator};
use crate::separators::{Separator, Separators};
use crate::tail::Tail;
use core::mem::size_of;
use core::ops::Range;
use std::sync::{Arc, OnceLock};
use syros_types::varint::take_varint;

/// Most children of a node. A copy of a node touches the reference counts of all its children, so more of them would
/// make the first update behind a clone dearer; fewer make trees higher.
#[cfg(not(test))]
pub(crate) const CHILDREN_MAX: usize = 64;

/// In unit tests trees are high before they are large.
#[cfg(test)]
pub(crate) const CHILDREN_MAX: usize = 6;

/// Neighbours that have no more children than this together are merged.
pub(crate) const MERGED_CHILDREN_MAX: usize = CHILDREN_MAX / 4 * 3;

/// By how many children a full node's room grows. Nodes of small trees are small.
const ROOM_STEP: usize = 8;

/// A node of either kind. A clone shares it.
pub(crate) enum Child<O: Order> {
    /// Elements.
    Leaf(Block<O>),
    /// Nodes, all at the same distance from the elements.
    Inner(Arc<Inner<O>>),
    /// Either, which lies elsewhere as it is.
    Paged(Arc<Page<O>>),
}

/// A node that nobody else has, to be changed.
pub(crate) enum Opened<'a, O: Order> {
    /// Elements; they may be shared.
    Leaf(&'a mut Block<O>),
    /// Nodes.
    Inner(&'a mut Inner<O>),
}

/// A node that is new, to stand behind the one that it was split from.
pub(crate) struct Sibling<O: Order> {
    /// Not greater than its elements, and greater than those before it.
    pub(crate) separator: Separator<O::Head>,
    /// The node.
    pub(crate) child: Child<O>,
}

/// A node above others. The three lists have equal lengths, and apart from each other because searches read only one.
pub(crate) struct Inner<O: Order> {
    /// Of all nodes below.
    pub(crate) extent: Extent,
    /// For each child, what is greater than the elements before it and not greater than its own. Nothing is known of
    /// the first one, and nothing compared with it.
    pub(crate) separators: Separators<O::Head>,
    /// For each child, how many elements it has.
    pub(crate) counts: Vec<u64>,
    /// At least one.
    pub(crate) children: Vec<Child<O>>,
}

impl<O: Order> Clone for Child<O> {
    fn clone(&self) -> Self {
        match self {
            Self::Leaf(block) => Self::Leaf(block.clone()),
            Self::Inner(inner) => Self::Inner(Arc::clone(inner)),
            Self::Paged(page) => Self::Paged(Arc::clone(page)),
        }
    }
}

impl<O: Order> Child<O> {
    /// Number of elements below. An inner node adds up its children's.
    pub(crate) fn count(&self) -> u64 {
        match self {
            Self::Leaf(block) => block.elements().len() as u64,
            Self::Inner(inner) => inner.counts.iter().sum(),
            Self::Paged(page) => page.about.count,
        }
    }

    /// Of this node and all below it.
    #[inline]
    pub(crate) fn extent(&self) -> Extent {
        match self {
            Self::Leaf(block) => Extent {
                memory: (block.allocated() + ALLOCATION_BYTES) as u64,
                elements: block.elements().element_bytes() as u64,
            },
            Self::Inner(inner) => inner.extent + Extent { memory: inner.own_bytes(), elements: 0 },
            Self::Paged(page) => page.about.extent,
        }
    }

    /// What decides whether it is merged: its length, or its number of children.
    #[inline]
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Leaf(block) => block.allocated(),
            Self::Inner(inner) => inner.children.len(),
            Self::Paged(page) => page.about.size,
        }
    }

    /// True if both fit into one node with room to spare.
    #[inline]
    pub(crate) fn fits_with(&self, next: &Self) -> bool {
        if self.is_leaf() {
            self.size() + next.size() - HEADER_BYTES <= MERGED_BYTES_MAX
        } else {
            self.size() + next.size() <= MERGED_CHILDREN_MAX
        }
    }

    /// True if it has elements, and no nodes below it.
    #[inline]
    pub(crate) fn is_leaf(&self) -> bool {
        match self {
            Self::Leaf(_) => true,
            Self::Inner(_) => false,
            Self::Paged(page) => page.about.height == 0,
        }
    }

    /// The first of its elements.
    pub(crate) fn first(&self) -> Element<'_> {
        match self {
            Self::Leaf(block) => block.elements().get(0),
            Self::Inner(inner) => inner.children[0].first(),
            Self::Paged(page) => page.node().first(),
        }
    }

    /// The last of its elements.
    pub(crate) fn last(&self) -> Element<'_> {
        match self {
            Self::Leaf(block) => block.elements().get(block.elements().len() - 1),
            Self::Inner(inner) => inner.children[inner.children.len() - 1].last(),
            Self::Paged(page) => page.node().last(),
        }
    }

    /// The node, taken out of its page if it lies elsewhere.
    fn into_own(mut self) -> Self {
        if let Self::Paged(page) = &mut self { Page::take(page) } else { self }
    }

    /// The node to be changed: one of its own if it lies elsewhere.
    #[inline]
    pub(crate) fn opened(&mut self) -> Opened<'_, O> {
        if let Self::Paged(page) = self {
            let node = Page::take(page);
            *self = node;
        }
        match self {
            Self::Leaf(block) => Opened::Leaf(block),
            Self::Inner(inner) => Opened::Inner(Arc::make_mut(inner)),
            Self::Paged(_) => unreachable!("a page has a node, and no page"),
        }
    }
}

/// A node that somebody may have to fetch.
pub(crate) struct Page<O: Order> {
    source: Source,
    pub(crate) about: About,
    node: OnceLock<Child<O>>,
}

impl<O: Order> Page<O> {
    /// The node of this page.
    pub(crate) const fn new(source: Source, about: About) -> Self {
        Self { source, about, node: OnceLock::new() }
    }

    /// True if it is one of these pages.
    pub(crate) fn is_of(&self, source: Option<&Source>) -> bool {
        source.is_some_and(|source| source.is(&self.source))
    }

    /// The node, if it has been fetched.
    pub(crate) fn fetched(&self) -> Option<&Child<O>> {
        self.node.get()
    }

    /// The node.
    pub(crate) fn node(&self) -> &Child<O> {
        self.node.get_or_init(|| self.fetch())
    }

    /// The node out of its page, or a clone of it if somebody else has the page, too.
    pub(crate) fn take(page: &mut Arc<Self>) -> Child<O> {
        let own = Arc::get_mut(page).and_then(|page| page.node.take());
        own.unwrap_or_else(|| page.node().clone())
    }

    fn fetch(&self) -> Child<O> {
        let About { number, height, .. } = self.about;
        let node =
            self.source.read(number, |bytes| if height == 0 { self.leaf(bytes) } else { self.inner(bytes) });
        let children = if let Child::Inner(inner) = &node { inner.children.as_slice() } else { &[] };
        let pages = children.iter().filter_map(|child| match child {
            Child::Paged(page) => Some(Subtree { number: page.about.number, height: height - 1 }),
            Child::Leaf(_) | Child::Inner(_) => None,
        });
        self.source.has_fetched(number, pages);
        node
    }

    /// The leaf of these bytes, if it is what its parent says.
    fn leaf(&self, bytes: &[u8]) -> Option<Child<O>> {
        let About { count, size, extent, .. } = self.about;
        if extent.memory != (size + ALLOCATION_BYTES) as u64 {
            return None;
        }
        let block = Block::<O>::of_bytes(bytes, size)?;
        let elements = block.elements();
        let is_same = elements.len() as u64 == count && elements.element_bytes() as u64 == extent.elements;
        is_same.then_some(Child::Leaf(block))
    }

    /// The inner node of these bytes, if it is what its parent says.
    fn inner(&self, bytes: &[u8]) -> Option<Child<O>> {
        let About { height, count, size, extent, .. } = self.about;
        let mut rest = bytes;
        let length = usize::try_from(take_varint(&mut rest).ok()?).ok()?;
        if length != size || length == 0 || length > CHILDREN_MAX {
            return None;
        }
        let children: Option<Vec<_>> = (0..length).map(|_| About::take(height - 1, &mut rest)).collect();
        let mut inner = Inner::empty();
        for (index, about) in children?.into_iter().enumerate() {
            let separator = take_separator::<O>(&mut rest)?;
            let child = Child::Paged(Arc::new(Self::new(self.source.clone(), about)));
            inner.insert(index, Sibling { separator, child });
        }
        let is_same = inner.counts.iter().sum::<u64>() == count
            && inner.extent + Extent { memory: inner.own_bytes(), elements: 0 } == extent
            && rest.is_empty();
        is_same.then(|| Child::Inner(Arc::new(inner)))
    }
}

impl<O: Order> Clone for Inner<O> {
    fn clone(&self) -> Self {
        Self {
            extent: self.extent,
            separators: self.separators.clone(),
            counts: self.counts.clone(),
            children: self.children.clone(),
        }
    }
}

impl<O: Order> Inner<O> {
    /// A node without children, which is to get some.
    pub(crate) const fn empty() -> Self {
        Self {
            extent: Extent { memory: 0, elements: 0 },
            separators: Separators::new(),
            counts: Vec::new(),
            children: Vec::new(),
        }
    }

    /// A node above one child.
    pub(crate) fn above(separator: Separator<O::Head>, child: Child<O>) -> Self {
        let mut inner = Self::empty();
        inner.insert(0, Sibling { separator, child });
        inner
    }

    /// Bytes of this node alone. The tails of separators are not counted.
    #[inline]
    pub(crate) fn own_bytes(&self) -> u64 {
        let entry = size_of::<O::Head>() + size_of::<u64>() + size_of::<Child<O>>();
        (size_of::<Self>() + 4 * ALLOCATION_BYTES + self.children.len() * entry) as u64
    }

    /// Number of children.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.children.len()
    }

    /// Inserts a child before the one at `index`.
    pub(crate) fn insert(&mut self, index: usize, new: Sibling<O>) {
        if self.len() == self.children.capacity() {
            self.separators.reserve(ROOM_STEP);
            self.counts.reserve_exact(ROOM_STEP);
            self.children.reserve_exact(ROOM_STEP);
        }
        self.extent += new.child.extent();
        self.counts.insert(index, new.child.count());
        self.separators.insert(index, new.separator);
        self.children.insert(index, new.child);
    }

    /// Takes out the child at `index`.
    pub(crate) fn remove(&mut self, index: usize) -> Child<O> {
        self.separators.remove(index..index + 1);
        self.counts.remove(index);
        let child = self.children.remove(index);
        self.extent -= child.extent();
        child
    }

    /// Takes out many children, and gives them to `out`.
    pub(crate) fn remove_range(&mut self, range: Range<usize>, out: &mut Vec<Child<O>>) {
        self.separators.remove(range.clone());
        self.counts.drain(range.clone());
        self.extent -= self.children[range.clone()].iter().map(Child::extent).sum();
        out.extend(self.children.drain(range));
    }

    /// Merges those of the children around these that fit into one node with their neighbours: each pair of neighbours
    /// of which one is in the range.
    pub(crate) fn settle(&mut self, around: Range<usize>) {
        let first = around.start.saturating_sub(1);
        let mut left = (around.end + 1).min(self.len());
        // What is merged loses slack, and may be smaller than the larger of both was. So it is compared again with its
        // neighbours, also with those beyond the range.
        let mut merged = false;
        while left > 0 && (left > first || merged) {
            left -= 1;
            merged = false;
            while left + 1 < self.len() && self.children[left].fits_with(&self.children[left + 1]) {
                self.merge(left);
                merged = true;
            }
        }
    }

    /// Merges the child at `left` with the next one.
    fn merge(&mut self, left: usize) {
        let separator = self.separators.get(left + 1);
        let count = self.counts[left + 1];
        let next = self.remove(left + 1);
        let child = &mut self.children[left];
        self.extent -= child.extent();
        match (child.opened(), next.into_own()) {
            (Opened::Leaf(block), Child::Leaf(next)) => {
                let (a, b) = (block.elements(), next.elements());
                *block = Block::compose(&[Part::Old(a, 0..a.len()), Part::Old(b, 0..b.len())]);
            }
            (Opened::Inner(inner), Child::Inner(next)) => {
                inner.append(separator, Arc::unwrap_or_clone(next));
            }
            _ => unreachable!("all children of a node are of one kind"),
        }
        self.extent += child.extent();
        self.counts[left] += count;
    }

    /// Appends the children of another node, which follows this one. `separator` is between both.
    fn append(&mut self, separator: Separator<O::Head>, mut next: Self) {
        let seam = self.len();
        next.separators.set(0, separator);
        self.separators.append(&mut next.separators);
        self.counts.append(&mut next.counts);
        self.children.append(&mut next.children);
        self.extent += next.extent;
        // The last child of one and the first of the other were no neighbours until now.
        self.settle(seam..seam);
    }

    /// Splits off the children from `at` on.
    pub(crate) fn split_off(&mut self, at: usize) -> Sibling<O> {
        let children = self.children.split_off(at);
        let extent = children.iter().map(Child::extent).sum();
        self.extent -= extent;
        let separators = self.separators.split_off(at);
        let separator = separators.get(0);
        let inner = Self { extent, separators, counts: self.counts.split_off(at), children };
        Sibling { separator, child: Child::Inner(Arc::new(inner)) }
    }
}

/// The lowest of all separators.
pub(crate) fn lowest<O: Order>() -> Separator<O::Head> {
    Separator { head: O::LEAST, tail: Tail::default() }
}

/// A separator between two elements that follow each other.
pub(crate) fn between<O: Order>(left: Element<'_>, right: Element<'_>) -> Separator<O::Head> {
    let head = O::head(right);
    let same = O::head(left) == head;
    let tail = if same { Tail::between(O::tail(left), O::tail(right)) } else { Tail::default() };
    Separator { head, tail }
}
