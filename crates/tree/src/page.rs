//! Trees whose nodes lie elsewhere, and are fetched when somebody looks at them.
//!
//! A node that is not in memory is a [`Page`]: its parent knows its number, how many elements it has and how large it is, so
//! whatever is decided by these needs no look at it. Whoever looks at it has [`Pages`] read it, once. An update of an element
//! fetches one page of each level, and takes these nodes out of their pages: they are new nodes from then on, which
//! [`Saver`](crate::Saver) writes.
//!
//! | bytes | what |
//! |---|---|
//! | a leaf | the block, without its slack: see `elements` |
//! | an inner node | number of children, the reference to each, then of each the head of its separator, and the tail with its length before it |
//! | reference | number, number of elements, size (bytes of a leaf's block with its slack, or number of children), bytes of memory, bytes of elements |
//! | tree | number of elements; if there are any, the height of the root above the leaves, and the reference to it |
//!
//! Numbers are varints, a head has the fixed length of its order. Fixed for ever, like a file format.

use crate::block::{ALLOCATION_BYTES, Block};
use crate::extent::Extent;
use crate::node::{CHILDREN_MAX, Child, Inner, Sibling};
use crate::order::Order;
use crate::separators::Separator;
use crate::tail::Tail;
use crate::tree::Tree;
use core::fmt;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use syros_types::varint::{put_varint, take_varint};

/// Highest tree: what is written of a height beyond it is damaged.
const HEIGHT_MAX: u8 = 32;

/// Where the pages of a collection lie.
pub trait Pages: Send + Sync {
    /// The page of this number. Must not return if it cannot be had: trees have no way to say so.
    fn read(&self, number: u64) -> Vec<u8>;

    /// What was read is not what was written. Must not return either.
    fn damaged(&self, number: u64) -> !;
}

/// The pages that the trees of one value are made of. A clone is another handle to the same ones.
#[derive(Clone)]
pub struct Source(Arc<Inside>);

struct Inside {
    pages: Box<dyn Pages>,
    known: Mutex<Known>,
}

/// Pages of which the trees have said that they are theirs, with their heights, and whether they have been fetched. Not those
/// below pages that have not been fetched.
#[derive(Default)]
struct Known(BTreeMap<u64, Seen>);

#[derive(Clone, Copy)]
struct Seen {
    height: u8,
    is_fetched: bool,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("known", &self.known().0.len()).finish_non_exhaustive()
    }
}

impl Source {
    /// The pages of a value.
    #[must_use]
    pub fn new(pages: Box<dyn Pages>) -> Self {
        Self(Arc::new(Inside { pages, known: Mutex::default() }))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn damaged(&self, number: u64) -> ! {
        self.0.pages.damaged(number)
    }

    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Pages that are known and that nobody keeps: those that have been fetched, or are leaves, and the roots of the others.
    pub(crate) fn left_by(&self, keeps: impl Fn(u64) -> bool) -> (Vec<u64>, Vec<Subtree>) {
        let known = self.known();
        let (mut pages, mut subtrees) = (Vec::new(), Vec::new());
        for (number, seen) in known.0.iter().filter(|(number, _)| !keeps(**number)) {
            if seen.is_fetched || seen.height == 0 {
                pages.push(*number);
            } else {
                subtrees.push(Subtree { number: *number, height: seen.height });
            }
        }
        (pages, subtrees)
    }

    /// Takes a tree off the front of `input`. `None` if there is none.
    pub fn take_tree<O: Order>(&self, input: &mut &[u8]) -> Option<Tree<O>> {
        let count = take_varint(input).ok()?;
        if count == 0 {
            return Some(Tree::new());
        }
        let height = u8::try_from(take_varint(input).ok()?).ok().filter(|height| *height <= HEIGHT_MAX)?;
        let about = About::take(height, input)?;
        if about.count != count {
            return None;
        }
        self.known().0.insert(about.number, Seen { height, is_fetched: false });
        Some(Tree { root: Some(Child::Paged(Arc::new(Page::new(self.clone(), about)))), count })
    }
}

/// A page, and all below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subtree {
    /// The number of its page.
    pub number: u64,
    /// How far it is above the leaves.
    pub height: u8,
}

impl Subtree {
    /// The nodes right below it, of whose root this is the page. `None` if it is no inner page.
    #[must_use]
    pub fn children(self, page: &[u8]) -> Option<Vec<Self>> {
        let height = self.height.checked_sub(1)?;
        let mut rest = page;
        let length = take_varint(&mut rest).ok()?;
        let child = |_| About::take(height, &mut rest).map(|about| Self { number: about.number, height });
        (0..length).map(child).collect()
    }
}

/// What a parent knows of a node without a look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) number: u64,
    /// How far it is above the leaves.
    pub(crate) height: u8,
    /// Number of elements below.
    pub(crate) count: u64,
    /// Bytes of the block of a leaf, or number of children.
    pub(crate) size: usize,
    /// Of this node and all below it.
    pub(crate) extent: Extent,
}

impl About {
    /// Appends all but the height.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let Extent { memory, elements } = self.extent;
        for number in [self.number, self.count, self.size as u64, memory, elements] {
            put_varint(out, number);
        }
    }

    fn take(height: u8, input: &mut &[u8]) -> Option<Self> {
        let mut number = || take_varint(input).ok();
        Some(Self {
            number: number()?,
            height,
            count: number()?,
            size: usize::try_from(number()?).ok()?,
            extent: Extent { memory: number()?, elements: number()? },
        })
    }
}

/// A node that somebody may have to fetch.
pub(crate) struct Page<O: Order> {
    source: Source,
    pub(crate) about: About,
    node: OnceLock<Child<O>>,
}

impl<O: Order> Page<O> {
    const fn new(source: Source, about: About) -> Self {
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
        let bytes = self.source.0.pages.read(number);
        let node = if height == 0 { self.leaf(&bytes) } else { self.inner(&bytes) };
        let Some(node) = node else { self.source.damaged(number) };
        let mut known = self.source.known();
        if let Some(seen) = known.0.get_mut(&number) {
            seen.is_fetched = true;
        }
        if let Child::Inner(inner) = &node {
            for child in &inner.children {
                if let Child::Paged(page) = child {
                    known.0.insert(page.about.number, Seen { height: height - 1, is_fetched: false });
                }
            }
        }
        drop(known);
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

/// Appends a separator, as pages have it.
pub(crate) fn put_separator<O: Order>(separator: &Separator<O::Head>, out: &mut Vec<u8>) {
    O::put_head(separator.head, out);
    let tail = separator.tail.bytes();
    put_varint(out, tail.len() as u64);
    out.extend_from_slice(tail);
}

fn take_separator<O: Order>(input: &mut &[u8]) -> Option<Separator<O::Head>> {
    let head = O::take_head(input)?;
    let length = usize::try_from(take_varint(input).ok()?).ok()?;
    let (tail, rest) = input.split_at_checked(length)?;
    *input = rest;
    Some(Separator { head, tail: Tail::of_bytes(tail) })
}
