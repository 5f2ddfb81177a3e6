//! What hashes and sets have in common: elements that are found by a key, in the order of their addition while they are
//! few and short, and in the order of their keys' hashes from then on.

use crate::fingerprint::Fingerprint;
use crate::packed::{Packed, PackedIter, Place, fits};
use crate::{Kind, form_tag};
use core::ops::Range;
use syros_tree::{ByHash, Iter, Position, Tree};
use syros_types::key_hash;

/// What is behind a key in an element of so many strings, of which the key is the first.
pub(crate) trait Element<const STRINGS: usize>: syros_tree::Form + Sized {
    /// The kind of collections of such elements.
    const KIND: Kind;

    /// The element of these strings.
    fn of_strings(strings: [&[u8]; STRINGS]) -> Self::Item<'_>;

    /// The strings of an element. The bound says nothing of the lifetime. It makes an early-bound one of it where the type
    /// of the element is known, too, which the compiler wants to be alike.
    fn strings<'a: 'a>(item: Self::Item<'a>) -> [&'a [u8]; STRINGS];

    /// What a collection of such elements has beside its tree.
    type Beside: Clone + core::fmt::Debug + Default;

    /// Adds an element to a tree, or replaces the one with its key. True if there was none.
    fn insert(tree: &mut Tree<ByHash<Self>>, strings: [&[u8]; STRINGS]) -> bool;
}

/// How a collection lies in memory.
#[derive(Debug)]
pub(crate) enum Form<const STRINGS: usize, E: Element<STRINGS>> {
    /// Elements in the order in which they were added.
    Packed(Packed<STRINGS>),
    /// Elements in the order of their hashes.
    Tree(Box<Large<STRINGS, E>>),
}

/// A large collection.
#[derive(Debug)]
pub(crate) struct Large<const STRINGS: usize, E: Element<STRINGS>> {
    /// Its elements.
    pub(crate) tree: Tree<ByHash<E>>,
    /// What else there is.
    pub(crate) beside: E::Beside,
}

impl<const STRINGS: usize, E: Element<STRINGS>> Large<STRINGS, E> {
    /// One of these elements, and nothing beside.
    pub(crate) fn new(tree: Tree<ByHash<E>>) -> Self {
        Self { tree, beside: E::Beside::default() }
    }
}

impl<const STRINGS: usize, E: Element<STRINGS>> Clone for Large<STRINGS, E> {
    fn clone(&self) -> Self {
        Self { tree: self.tree.clone(), beside: self.beside.clone() }
    }
}

/// What an allocation costs besides its bytes: counts of references, and the allocator's granularity.
pub(crate) const ALLOCATION_BYTES: usize = 24;

/// Cursors of [`Form::scan`] are the upper bits of hashes, so many of them. Programs in some languages take every
/// number for one of floating point, which has 53 bits to spare.
const CURSOR_BITS: u32 = 53;

/// How far the hash of an element has to be shifted to be a cursor.
const CURSOR_SHIFT: u32 = u64::BITS - CURSOR_BITS;

impl<const STRINGS: usize, E: Element<STRINGS>> Default for Form<STRINGS, E> {
    fn default() -> Self {
        Self::Packed(Packed::default())
    }
}

impl<const STRINGS: usize, E: Element<STRINGS>> Clone for Form<STRINGS, E> {
    fn clone(&self) -> Self {
        match self {
            Self::Packed(packed) => Self::Packed(packed.clone()),
            Self::Tree(tree) => Self::Tree(tree.clone()),
        }
    }
}

impl<const STRINGS: usize, E: Element<STRINGS>> Form<STRINGS, E> {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Packed(packed) => packed.len() as u64,
            Self::Tree(large) => large.tree.len(),
        }
    }

    pub(crate) const fn is_packed(&self) -> bool {
        matches!(self, Self::Packed(_))
    }

    /// Adds an element, or replaces the one with its key. True if there was none. The collection becomes a tree if it has
    /// no room for the element otherwise.
    pub(crate) fn insert(&mut self, strings: [&[u8]; STRINGS]) -> bool {
        if let Self::Packed(packed) = self
            && strings.iter().all(|string| fits(string))
            && let Some(is_new) = insert_packed(packed, strings)
        {
            return is_new;
        }
        E::insert(&mut self.large_mut().tree, strings)
    }

    /// Removes the element with a key. False if there is none.
    pub(crate) fn remove(&mut self, key: &[u8]) -> bool {
        match self {
            Self::Packed(packed) => match find_packed(packed, key) {
                Some((place, _)) => {
                    packed.remove(place);
                    true
                }
                None => false,
            },
            Self::Tree(large) => large.tree.remove(key),
        }
    }

    /// The elements in order.
    pub(crate) fn iter(&self) -> FormIter<'_, STRINGS, E> {
        match self {
            Self::Packed(packed) => FormIter::Packed(packed.iter()),
            Self::Tree(large) => FormIter::Tree(large.tree.iter()),
        }
    }

    /// The element of this rank, without a look at all those before it if there are many.
    pub(crate) fn nth(&self, rank: u64) -> Option<E::Item<'_>> {
        match self {
            Self::Packed(packed) => packed.iter().nth(usize::try_from(rank).ok()?).map(E::of_strings),
            Self::Tree(large) => large.tree.nth(rank),
        }
    }

    /// A step of an iteration that goes on although elements come and go between its steps: about `count` elements from
    /// a cursor on, all of them if the collection is packed. The first step has cursor 0, and each other one that which
    /// the step before it returned; 0 is also the end. What is there from the first step to the last is in one of them.
    pub(crate) fn scan(&self, cursor: u64, count: u64) -> Scan<FormIter<'_, STRINGS, E>> {
        match self {
            Self::Packed(_) => Scan { items: self.iter(), cursor: 0 },
            Self::Tree(large) => {
                let (ranks, cursor) = step::<STRINGS, E>(&large.tree, cursor, count);
                Scan { items: FormIter::Tree(large.tree.range(ranks)), cursor }
            }
        }
    }

    /// See [`Value::memory_bytes`](crate::Value::memory_bytes).
    pub(crate) fn memory_bytes(&self) -> usize {
        ALLOCATION_BYTES
            + match self {
                Self::Packed(packed) => packed.bytes(),
                Self::Tree(large) => {
                    size_of::<Large<STRINGS, E>>() + usize::try_from(large.tree.bytes()).unwrap_or(usize::MAX)
                }
            }
    }

    /// See [`Value::element_bytes`](crate::Value::element_bytes).
    pub(crate) fn element_bytes(&self) -> usize {
        match self {
            Self::Packed(packed) => packed.bytes(),
            Self::Tree(large) => usize::try_from(large.tree.element_bytes()).unwrap_or(usize::MAX),
        }
    }

    /// See [`Value::fingerprint`](crate::Value::fingerprint): the elements in their order, and the form.
    pub(crate) fn fingerprint(&self) -> u64 {
        let form = if self.is_packed() { form_tag::PACKED } else { form_tag::TREE };
        let mut fingerprint = Fingerprint::new(E::KIND, form);
        self.iter().for_each(|item| fingerprint.add(&E::strings(item)));
        fingerprint.finish()
    }

    /// The large collection; makes it one if it is packed.
    pub(crate) fn large_mut(&mut self) -> &mut Large<STRINGS, E> {
        if let Self::Packed(packed) = self {
            let mut tree = Tree::new();
            for strings in packed.iter() {
                E::insert(&mut tree, strings);
            }
            *self = Self::Tree(Box::new(Large::new(tree)));
        }
        match self {
            Self::Tree(large) => large,
            Self::Packed(_) => unreachable!("it has become a tree"),
        }
    }
}

/// What a collection is equal in shows: elements, their order, and the form.
impl<const STRINGS: usize, E: Element<STRINGS>> PartialEq for Form<STRINGS, E> {
    fn eq(&self, other: &Self) -> bool {
        self.is_packed() == other.is_packed() && self.iter().map(E::strings).eq(other.iter().map(E::strings))
    }
}

impl<const STRINGS: usize, E: Element<STRINGS>> Eq for Form<STRINGS, E> {}

/// The element with a key, and its place.
pub(crate) fn find_packed<'a, const STRINGS: usize>(
    packed: &'a Packed<STRINGS>,
    key: &[u8],
) -> Option<(Place, [&'a [u8]; STRINGS])> {
    packed.find(|strings| strings.first() == Some(&key))
}

/// Adds an element, or replaces the one with its key. True if there was none, and `None`, without a change, if there is
/// no room for it.
fn insert_packed<const STRINGS: usize>(
    packed: &mut Packed<STRINGS>,
    strings: [&[u8]; STRINGS],
) -> Option<bool> {
    match find_packed(packed, strings.first()?) {
        Some((place, _)) => {
            packed.replace(place, strings);
            Some(false)
        }
        None => packed.insert(packed.end(), strings).then_some(true),
    }
}

/// The ranks of the elements of a step of an iteration, and the cursor of the next one: see [`Form::scan`].
pub(crate) fn step<const STRINGS: usize, E: Element<STRINGS>>(
    tree: &Tree<ByHash<E>>,
    cursor: u64,
    count: u64,
) -> (Range<u64>, u64) {
    // The rank of the first element whose cursor is not below this one.
    let rank_of = |cursor: u64| match cursor.checked_shl(CURSOR_SHIFT) {
        Some(hash) if cursor >> CURSOR_BITS == 0 => tree.count_before(Position::first_of(hash)),
        _ => tree.len(),
    };
    let cursor_at = |rank: u64| Some(key_hash(E::strings(tree.nth(rank)?).first()?) >> CURSOR_SHIFT);
    let start = rank_of(cursor);
    let end = start.saturating_add(count.max(1)).min(tree.len());
    // Elements with one cursor cannot be told apart by it: they all belong to one step.
    let end = end.checked_sub(1).and_then(cursor_at).map_or(end, |last| rank_of(last + 1).max(start));
    (start..end, cursor_at(end).unwrap_or(0))
}

/// A step of an iteration: see [`Hash::scan`](crate::Hash::scan) and [`Set::scan`](crate::Set::scan).
pub struct Scan<I> {
    /// The elements of this step.
    pub items: I,
    /// What the next step begins with; 0 if this was the last one.
    pub cursor: u64,
}

impl<I> Scan<I> {
    /// The same, with its elements as something else.
    #[must_use]
    pub fn map<J>(self, wrap: impl FnOnce(I) -> J) -> Scan<J> {
        Scan { items: wrap(self.items), cursor: self.cursor }
    }
}

/// The elements of a collection in order.
pub(crate) enum FormIter<'a, const STRINGS: usize, E: Element<STRINGS>> {
    Packed(PackedIter<'a, STRINGS>),
    Tree(Iter<'a, ByHash<E>>),
}

impl<'a, const STRINGS: usize, E: Element<STRINGS>> Iterator for FormIter<'a, STRINGS, E> {
    type Item = E::Item<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Packed(elements) => elements.next().map(E::of_strings),
            Self::Tree(elements) => elements.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Self::Packed(elements) => elements.size_hint(),
            Self::Tree(elements) => elements.size_hint(),
        }
    }
}

impl<const STRINGS: usize, E: Element<STRINGS>> ExactSizeIterator for FormIter<'_, STRINGS, E> {}
