//! One element is put into a tree or taken out: the only code that does so, whatever the order.

use crate::block::{BLOCK_BYTES_MAX, Block, Part};
use crate::draft::Draft;
use crate::elements::{Elements, used_bytes};
use crate::node::{CHILDREN_MAX, Child, Inner, Opened, Sibling, between};
use crate::order::{Element, Order};
use crate::seek::Seek;
use core::ops::Range;

/// What is to be done at a place.
#[derive(Clone, Copy)]
pub(crate) enum Action<'a> {
    /// Replace the element that is there, or insert one if there is none.
    Put(&'a Draft<'a>),
    /// Replace the element that is there; nothing if there is none.
    Replace(&'a Draft<'a>),
    /// Insert an element; nothing if there is one.
    Insert(&'a Draft<'a>),
    /// Remove the element that is there; nothing if there is none.
    Remove,
}

/// What has become of the number of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// There is one more.
    Inserted,
    /// Another one is in its place.
    Replaced,
    /// There is one less.
    Removed,
    /// The action did not apply.
    Nothing,
}

impl Outcome {
    /// The number of elements after it.
    pub(crate) fn applied_to(self, count: u64) -> u64 {
        match self {
            Self::Inserted => count + 1,
            Self::Removed => count - 1,
            Self::Replaced | Self::Nothing => count,
        }
    }
}

/// Carries out an action below a node. `see` gets the element that is replaced or removed, before that.
///
/// The node may be left without elements, and then has to be taken out. It may be split; those to stand behind it are
/// appended to `grown`.
pub(crate) fn edit<O: Order, S: Seek<O>, F: FnMut(Element<'_>)>(
    child: &mut Child<O>,
    seek: &mut S,
    action: Action<'_>,
    grown: &mut Vec<Sibling<O>>,
    see: &mut F,
) -> Outcome {
    let inner = match child.opened() {
        Opened::Leaf(block) => return edit_leaf(block, seek, action, grown, see),
        Opened::Inner(inner) => inner,
    };
    let index = seek.child(inner);
    let (extent, size) = (inner.children[index].extent(), inner.children[index].size());
    let outcome = edit(&mut inner.children[index], seek, action, grown, see);
    inner.counts[index] = outcome.applied_to(inner.counts[index]);
    inner.extent = inner.extent - extent + inner.children[index].extent();
    if !grown.is_empty() {
        absorb(inner, index, grown);
    } else if inner.counts[index] == 0 {
        inner.remove(index);
        inner.settle(index..index);
    } else if inner.children[index].size() < size {
        inner.settle(index..index + 1);
    }
    outcome
}

fn edit_leaf<O: Order, S: Seek<O>, F: FnMut(Element<'_>)>(
    block: &mut Block<O>,
    seek: &S,
    action: Action<'_>,
    grown: &mut Vec<Sibling<O>>,
    see: &mut F,
) -> Outcome {
    let elements = block.elements();
    match (seek.slot(elements), action) {
        (Ok(index), Action::Remove) => {
            see(elements.get(index));
            if !block.remove_in_place(index) {
                let elements = block.elements();
                let parts = [Part::Old(elements, 0..index), Part::Old(elements, index + 1..elements.len())];
                *block = Block::compose(&parts);
            }
            Outcome::Removed
        }
        (Ok(index), Action::Put(draft) | Action::Replace(draft)) => {
            see(elements.get(index));
            if !block.replace_in_place(index, draft) {
                let spliced = Spliced { old: block.elements(), replaced: index..index + 1, draft };
                *block = spliced.pieces(grown);
            }
            Outcome::Replaced
        }
        (Err(index), Action::Put(draft) | Action::Insert(draft)) => {
            if !block.insert_in_place(index, draft) {
                let spliced = Spliced { old: block.elements(), replaced: index..index, draft };
                *block = spliced.pieces(grown);
            }
            Outcome::Inserted
        }
        (Ok(_), Action::Insert(_)) | (Err(_), Action::Remove | Action::Replace(_)) => Outcome::Nothing,
    }
}

/// Inserts the nodes that the child at `index` was split into, and splits this node if it has too many children then.
fn absorb<O: Order>(inner: &mut Inner<O>, index: usize, grown: &mut Vec<Sibling<O>>) {
    inner.counts[index] = inner.children[index].count();
    let mut last = index;
    for new in grown.drain(..) {
        last += 1;
        inner.insert(last, new);
    }
    let (at_front, at_end) = (index == 0, last + 1 == inner.len());
    inner.settle(index..last + 1);
    let length = inner.len();
    if length <= CHILDREN_MAX {
        return;
    }
    // Whoever inserts in order, up or down, leaves full nodes behind.
    let at = match (at_front, at_end) {
        (_, true) => CHILDREN_MAX,
        (true, false) => length - CHILDREN_MAX,
        (false, false) => length / 2,
    };
    grown.push(inner.split_off(at));
}

/// The elements of a block with one of them replaced by another, or one more inserted.
struct Spliced<'a, O> {
    old: Elements<'a, O>,
    /// One index, or none, and then the new element belongs before that index.
    replaced: Range<usize>,
    draft: &'a Draft<'a>,
}

impl<'a, O: Order> Spliced<'a, O> {
    /// Number of elements.
    fn len(&self) -> usize {
        self.old.len() + 1 - self.replaced.len()
    }

    /// Bytes of the rests of the elements before `index`.
    #[inline]
    fn start(&self, index: usize) -> usize {
        if index <= self.replaced.start {
            return self.old.start(index);
        }
        let removed = self.old.start(self.replaced.end) - self.old.start(self.replaced.start);
        self.old.start(index - 1 + self.replaced.len()) - removed + self.draft.rest_length()
    }

    /// Bytes of a block of these elements.
    fn bytes(&self, range: Range<usize>) -> usize {
        used_bytes::<O>(range.len(), self.start(range.end) - self.start(range.start))
    }

    /// True if these elements may be one block.
    fn fits(&self, range: Range<usize>) -> bool {
        range.len() == 1 || self.bytes(range) <= BLOCK_BYTES_MAX
    }

    /// A block of these elements.
    fn compose(&self, range: Range<usize>) -> Block<O> {
        let new = self.replaced.start;
        let back = |index: usize| index - 1 + self.replaced.len();
        if range.end <= new {
            return Block::compose(&[Part::Old(self.old, range)]);
        }
        if range.start > new {
            return Block::compose(&[Part::Old(self.old, back(range.start)..back(range.end))]);
        }
        Block::compose(&[
            Part::Old(self.old, range.start..new),
            Part::New(self.draft),
            Part::Old(self.old, self.replaced.end..back(range.end)),
        ])
    }

    /// Where to cut so that each piece may be one block: one place or two, or none if no cut is needed.
    fn cuts(&self) -> ([usize; 2], usize) {
        let (length, new) = (self.len(), self.replaced.start);
        if self.fits(0..length) {
            return ([0; 2], 0);
        }
        // Whoever inserts in order, up or down, leaves full blocks behind.
        if self.replaced.is_empty() && new + 1 == length && self.fits(0..new) {
            return ([new, 0], 1);
        }
        if self.replaced.is_empty() && new == 0 && self.fits(1..length) {
            return ([1, 0], 1);
        }
        // The more elements are before a cut, the fewer bytes are behind it: the best cut is on either side of where
        // both are equal. If no cut fits there, none does.
        let (mut low, mut high) = (1, length);
        while low < high {
            let middle = (low + high) / 2;
            if self.bytes(0..middle) < self.bytes(middle..length) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let larger = |at: usize| self.bytes(0..at).max(self.bytes(at..length));
        let near = [low - 1, low].into_iter().filter(|at| (1..length).contains(at));
        let fitting = near.filter(|at| self.fits(0..*at) && self.fits(*at..length));
        match fitting.min_by_key(|at| larger(*at)) {
            Some(at) => ([at, 0], 1),
            // The new element fits in with neither those before it nor those behind it, and is between them.
            None => ([new, new + 1], 2),
        }
    }

    /// Makes blocks of all elements: the one to be where the old one was is returned, and those behind it are appended.
    fn pieces(&self, grown: &mut Vec<Sibling<O>>) -> Block<O> {
        let (cuts, count) = self.cuts();
        if count == 0 {
            return self.compose(0..self.len());
        }
        let mut blocks = Vec::with_capacity(count + 1);
        let mut start = 0;
        for end in cuts[..count].iter().copied().chain([self.len()]) {
            blocks.push(self.compose(start..end));
            start = end;
        }
        for pair in blocks.windows(2) {
            let (left, right) = (pair[0].elements(), pair[1].elements());
            let separator = between::<O>(left.get(left.len() - 1), right.get(0));
            grown.push(Sibling { separator, child: Child::Leaf(pair[1].clone()) });
        }
        blocks.swap_remove(0)
    }
}
