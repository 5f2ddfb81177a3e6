//! Trees whose nodes lie elsewhere, and are fetched when somebody looks at them.
//!
//! A node that is not in memory is a page: its parent knows its number, how many elements it has and how large it is, so
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

use crate::extent::Extent;
use crate::order::Order;
use crate::separators::Separator;
use crate::tail::Tail;
use core::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use syros_types::varint::{put_varint, take_varint};

/// Highest tree: what is written of a height beyond it is damaged.
pub(crate) const HEIGHT_MAX: u8 = 32;

/// Where the pages of a collection lie.
pub trait Pages: Send + Sync {
    /// Gives the page of this number to `see`. Must not return if it cannot be had: trees have no way to say so.
    fn read(&self, number: u64, see: &mut dyn FnMut(&[u8]));

    /// What was read is not what was written. Must not return either.
    fn damaged(&self, number: u64) -> !;
}

/// The pages that the trees of one value are made of. A clone is another handle to the same ones.
///
/// It is of one value and its clones, which share what has been fetched: a value that is taken out of the same bytes a second time
/// needs a source of its own. [`Saver`](crate::Saver) would give back what only the other one has looked at.
#[derive(Clone)]
pub struct Source(Arc<Inside>);

struct Inside {
    pages: Box<dyn Pages>,
    known: Mutex<Known>,
}

/// What trees have said of their pages. Lists, because most are short and are looked at once.
#[derive(Default)]
struct Known {
    /// Pages that are theirs, but for those below pages that have not been fetched. One may be there twice.
    pages: Vec<Subtree>,
    /// Those of them that have been fetched.
    fetched: Vec<u64>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("known", &self.known().pages.len()).finish_non_exhaustive()
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

    /// Gives a page to `see`, and never returns if it has no use for it.
    pub(crate) fn read<N>(&self, number: u64, see: impl Fn(&[u8]) -> Option<N>) -> N {
        let mut node = None;
        self.0.pages.read(number, &mut |bytes| node = see(bytes));
        node.unwrap_or_else(|| self.0.pages.damaged(number))
    }

    /// A page is that of a node of the value.
    pub(crate) fn knows(&self, number: u64, height: u8) {
        self.known().pages.push(Subtree { number, height });
    }

    /// A page has been fetched, below which there are these.
    pub(crate) fn has_fetched(&self, number: u64, below: impl Iterator<Item = Subtree>) {
        let mut known = self.known();
        known.fetched.push(number);
        known.pages.extend(below);
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The roots of the trees that have been taken, if nobody has looked at a page.
    #[must_use]
    pub fn roots(&self) -> Vec<Subtree> {
        self.known().pages.clone()
    }

    /// Pages that are known and not among `kept`: those that have been fetched, or are leaves, and the roots of the others.
    pub(crate) fn left_by(&self, kept: &mut [u64]) -> (Vec<u64>, Vec<Subtree>) {
        let known = &mut *self.known();
        kept.sort_unstable();
        known.fetched.sort_unstable();
        known.pages.sort_unstable_by_key(|page| page.number);
        known.pages.dedup_by_key(|page| page.number);
        let (mut pages, mut subtrees) = (Vec::new(), Vec::new());
        for page in known.pages.iter().filter(|page| kept.binary_search(&page.number).is_err()) {
            if page.height == 0 || known.fetched.binary_search(&page.number).is_ok() {
                pages.push(page.number);
            } else {
                subtrees.push(*page);
            }
        }
        (pages, subtrees)
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

    pub(crate) fn take(height: u8, input: &mut &[u8]) -> Option<Self> {
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

/// Appends a separator, as pages have it.
pub(crate) fn put_separator<O: Order>(separator: &Separator<O::Head>, out: &mut Vec<u8>) {
    O::put_head(separator.head, out);
    let tail = separator.tail.bytes();
    put_varint(out, tail.len() as u64);
    out.extend_from_slice(tail);
}

/// Takes a separator off the front of `input`.
pub(crate) fn take_separator<O: Order>(input: &mut &[u8]) -> Option<Separator<O::Head>> {
    let head = O::take_head(input)?;
    let length = usize::try_from(take_varint(input).ok()?).ok()?;
    let (tail, rest) = input.split_at_checked(length)?;
    *input = rest;
    Some(Separator { head, tail: Tail::of_bytes(tail) })
}
