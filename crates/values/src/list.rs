//! Lists: elements where they were put.

use crate::fingerprint::Fingerprint;
use crate::packed::{ELEMENTS_MAX, Packed, PackedIter, fits};
use crate::{ALLOCATION_BYTES, Kind, form_tag};
use core::ops::Range;
use syros_tree::{Builder, ByPosition, Iter, List as Tree};

/// Elements in the order of their places. An element's rank counts those on its left.
#[derive(Clone, Debug)]
pub struct List(pub(crate) Form);

/// How a list lies in memory.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    Packed(Packed<1>),
    Tree(Box<Tree>),
}

/// One of the two ends of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListEnd {
    /// Where the first element is.
    Left,
    /// Where the last element is.
    Right,
}

/// Of the elements of a tree, one in so many can be removed one by one in the time in which the tree can be built anew
/// without them.
const REMOVED_ONE_BY_ONE: u64 = 10;

impl Default for List {
    fn default() -> Self {
        Self(Form::Packed(Packed::default()))
    }
}

impl List {
    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.0 {
            Form::Packed(packed) => packed.len() as u64,
            Form::Tree(tree) => tree.len(),
        }
    }

    /// True if there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if it lies in one allocation.
    #[must_use]
    pub const fn is_packed(&self) -> bool {
        matches!(self.0, Form::Packed(_))
    }

    /// The element of this rank, without a look at all those before it if there are many.
    #[must_use]
    pub fn nth(&self, rank: u64) -> Option<&[u8]> {
        match &self.0 {
            Form::Packed(packed) => packed.iter().nth(usize::try_from(rank).ok()?).map(|[element]| element),
            Form::Tree(tree) => tree.nth(rank),
        }
    }

    /// All elements in order, from either end.
    #[must_use]
    pub fn iter(&self) -> ListIter<'_> {
        self.range(0..self.len())
    }

    /// The elements of these ranks in order, from either end, without a look at others if there are many. Ranks that no
    /// element has are left out.
    #[must_use]
    pub fn range(&self, ranks: Range<u64>) -> ListIter<'_> {
        ListIter(match &self.0 {
            Form::Packed(packed) => FormIter::Packed(packed.range(packed_indexes(&ranks))),
            Form::Tree(tree) => FormIter::Tree(tree.range(ranks)),
        })
    }

    /// All elements with their ranks, from this end on.
    pub fn ranked_from(&self, end: ListEnd) -> impl Iterator<Item = (u64, &[u8])> {
        let (mut elements, length) = (self.iter(), self.len());
        (0..length).map_while(move |step| match end {
            ListEnd::Left => elements.next().map(|element| (step, element)),
            ListEnd::Right => elements.next_back().map(|element| (length - 1 - step, element)),
        })
    }

    /// Adds an element at this end.
    pub fn push(&mut self, end: ListEnd, element: &[u8]) {
        self.insert(if end == ListEnd::Left { 0 } else { self.len() }, element);
    }

    /// Inserts an element before that of this rank, or behind the last one. False, without a change, if there are not so
    /// many.
    pub fn insert(&mut self, rank: u64, element: &[u8]) -> bool {
        if rank > self.len() {
            return false;
        }
        if let Form::Packed(packed) = &mut self.0
            && fits(element)
            && packed.insert(packed.place(rank as usize), [element])
        {
            return true;
        }
        self.tree_mut().insert(rank, element)
    }

    /// Replaces the element of this rank. False, without a change, if there is none.
    pub fn set(&mut self, rank: u64, element: &[u8]) -> bool {
        if rank >= self.len() {
            return false;
        }
        match &mut self.0 {
            Form::Packed(packed) if fits(element) => packed.replace(packed.place(rank as usize), [element]),
            _ => return self.tree_mut().set(rank, element),
        }
        true
    }

    /// Removes the elements of these ranks. Ranks that no element has are left out.
    pub fn remove_range(&mut self, ranks: Range<u64>) {
        match &mut self.0 {
            Form::Packed(packed) => packed.remove_range(packed_indexes(&ranks)),
            Form::Tree(tree) => drop(tree.remove_range(ranks)),
        }
    }

    /// Removes the elements that are equal to this one: the first ones from an end, at most so many. How many it were.
    pub fn remove_equal(&mut self, element: &[u8], end: ListEnd, count_max: u64) -> u64 {
        let one_by_one = if self.is_packed() { 0 } else { self.len() / REMOVED_ONE_BY_ONE };
        let found = self.ranked_from(end).filter(|(_, found)| *found == element).map(|(rank, _)| rank);
        let few_max = usize::try_from(count_max.min(one_by_one + 1)).unwrap_or(usize::MAX);
        let mut ranks: Vec<u64> = found.take(few_max).collect();
        if ranks.len() as u64 > one_by_one {
            return self.rebuild_without(element, end, count_max);
        }
        if end == ListEnd::Left {
            // What is removed must not change the ranks of those that are still to be removed.
            ranks.reverse();
        }
        ranks.iter().for_each(|rank| self.remove_range(*rank..rank + 1));
        ranks.len() as u64
    }

    /// See [`Value::memory_bytes`](crate::Value::memory_bytes).
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        ALLOCATION_BYTES
            + match &self.0 {
                Form::Packed(packed) => packed.bytes(),
                Form::Tree(tree) => size_of::<Tree>() + usize::try_from(tree.bytes()).unwrap_or(usize::MAX),
            }
    }

    /// See [`Value::element_bytes`](crate::Value::element_bytes).
    #[must_use]
    pub fn element_bytes(&self) -> usize {
        match &self.0 {
            Form::Packed(packed) => packed.bytes(),
            Form::Tree(tree) => usize::try_from(tree.element_bytes()).unwrap_or(usize::MAX),
        }
    }

    /// See [`Value::fingerprint`](crate::Value::fingerprint): the elements in their order, and the form.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let form = if self.is_packed() { form_tag::PACKED } else { form_tag::TREE };
        let mut fingerprint = Fingerprint::new(Kind::List, form);
        self.iter().for_each(|element| fingerprint.add(&[element]));
        fingerprint.finish()
    }

    /// As [`remove_equal`](Self::remove_equal), in time proportional to all elements.
    fn rebuild_without(&mut self, element: &[u8], end: ListEnd, count_max: u64) -> u64 {
        let equal = self.iter().filter(|found| *found == element).count() as u64;
        let removed = equal.min(count_max);
        // Which of the equal ones are removed, counted from the left.
        let gone = if end == ListEnd::Left { 0..removed } else { equal - removed..equal };
        let mut seen = 0..;
        let kept =
            self.iter().filter(|found| *found != element || seen.next().is_none_or(|at| !gone.contains(&at)));
        self.0 = match &self.0 {
            Form::Packed(_) => Form::Packed(Packed::of(&kept.map(|kept| [kept]).collect::<Vec<_>>())),
            Form::Tree(_) => Form::Tree(Box::new(tree_of(kept))),
        };
        removed
    }

    /// The tree; makes it one if it is packed.
    fn tree_mut(&mut self) -> &mut Tree {
        if self.is_packed() {
            self.0 = Form::Tree(Box::new(tree_of(self.iter())));
        }
        match &mut self.0 {
            Form::Tree(tree) => tree,
            Form::Packed(_) => unreachable!("it has become a tree"),
        }
    }
}

/// The same ranks as far as a packed list can have them.
fn packed_indexes(ranks: &Range<u64>) -> Range<usize> {
    let index = |rank: u64| rank.min(ELEMENTS_MAX as u64) as usize;
    index(ranks.start)..index(ranks.end)
}

/// The tree of these elements.
fn tree_of<'a>(elements: impl Iterator<Item = &'a [u8]>) -> Tree {
    let mut builder = Builder::<ByPosition>::new();
    elements.for_each(|element| {
        builder.push(&Tree::draft(element)).expect("any element may follow any other");
    });
    builder.finish()
}

/// What a list is equal in shows: elements, their order, and the form.
impl PartialEq for List {
    fn eq(&self, other: &Self) -> bool {
        self.is_packed() == other.is_packed() && self.iter().eq(other.iter())
    }
}

impl Eq for List {}

impl<'a> IntoIterator for &'a List {
    type Item = &'a [u8];
    type IntoIter = ListIter<'a>;

    fn into_iter(self) -> ListIter<'a> {
        self.iter()
    }
}

/// Elements in order, from either end.
pub struct ListIter<'a>(FormIter<'a>);

enum FormIter<'a> {
    Packed(PackedIter<'a, 1>),
    Tree(Iter<'a, ByPosition>),
}

impl<'a> Iterator for ListIter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            FormIter::Packed(elements) => elements.next().map(|[element]| element),
            FormIter::Tree(elements) => elements.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            FormIter::Packed(elements) => elements.size_hint(),
            FormIter::Tree(elements) => elements.size_hint(),
        }
    }
}

impl DoubleEndedIterator for ListIter<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            FormIter::Packed(elements) => elements.next_back().map(|[element]| element),
            FormIter::Tree(elements) => elements.next_back(),
        }
    }
}

impl ExactSizeIterator for ListIter<'_> {}
