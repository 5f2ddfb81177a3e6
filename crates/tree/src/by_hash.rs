//! Elements in the order of the hashes of their keys: maps and sets.
//!
//! A block keeps the upper half of each hash. Where these are equal, which in a million keys they hardly ever are, the
//! whole hash is computed again from the key.

use crate::draft::Draft;
use crate::elements::Elements;
use crate::iter::Iter;
use crate::key_order::KeyOrder;
use crate::order::{Element, Order, take_chunk};
use crate::tree::Tree;
use core::cmp::Ordering;
use core::marker::PhantomData;
use syros_types::key_hash;
use syros_types::varint::take_varint;

/// Bytes that a block keeps of a hash.
const HASH_BYTES: usize = 4;

/// A hash of keys. It has no seed, so that all replicas have the same order: keys that were made to collide are
/// neighbours and are told apart by their bytes.
pub trait Hashing: Send + Sync + 'static {
    /// The hash of a key, fixed for ever.
    fn hash(key: &[u8]) -> u64;
}

/// The hash of everything else in Syros that is found by its key.
#[derive(Debug)]
pub struct KeyHash;

impl Hashing for KeyHash {
    #[inline]
    fn hash(key: &[u8]) -> u64 {
        key_hash(key)
    }
}

/// What an element is besides its key.
pub trait Form: Send + Sync + 'static {
    /// An element as the user sees it.
    type Item<'a>;

    /// The key, and what is behind it.
    fn split(rest: &[u8]) -> (&[u8], &[u8]);

    /// What the user sees.
    fn item(rest: &[u8]) -> Self::Item<'_>;
}

/// A key and its value.
#[derive(Debug)]
pub struct Pairs;

/// A key alone.
#[derive(Debug)]
pub struct Members;

impl Form for Pairs {
    type Item<'a> = (&'a [u8], &'a [u8]);

    #[inline]
    fn split(mut rest: &[u8]) -> (&[u8], &[u8]) {
        let length = take_varint(&mut rest).expect("an element of a map begins with the length of its key");
        rest.split_at(length as usize)
    }

    #[inline]
    fn item(rest: &[u8]) -> Self::Item<'_> {
        Self::split(rest)
    }
}

impl Form for Members {
    type Item<'a> = &'a [u8];

    #[inline]
    fn split(rest: &[u8]) -> (&[u8], &[u8]) {
        (rest, &[])
    }

    #[inline]
    fn item(rest: &[u8]) -> Self::Item<'_> {
        rest
    }
}

/// The order of (hash, key).
#[derive(Debug)]
pub struct ByHash<F, H = KeyHash>(PhantomData<(F, H)>);

/// Keys with values: the fields of a hash, the members of a sorted set with their scores.
pub type Map<H = KeyHash> = Tree<ByHash<Pairs, H>>;

/// Keys alone.
pub type Set<H = KeyHash> = Tree<ByHash<Members, H>>;

/// A place in the order of (hash, key).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position<'a> {
    /// The key's, or any number if the key is empty.
    hash: u64,
    key: &'a [u8],
}

impl Position<'_> {
    /// The place before all keys with this hash.
    #[must_use]
    pub const fn first_of(hash: u64) -> Self {
        Self { hash, key: &[] }
    }
}

impl<F: Form, H: Hashing> Order for ByHash<F, H> {
    const FIXED: usize = HASH_BYTES;
    type Head = u64;
    const LEAST: u64 = 0;
    const GREATEST: u64 = u64::MAX;
    type Item<'a> = F::Item<'a>;

    fn put_head(head: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&head.to_le_bytes());
    }

    fn take_head(input: &mut &[u8]) -> Option<u64> {
        take_chunk(input).map(u64::from_le_bytes)
    }

    #[inline]
    fn head(element: Element<'_>) -> u64 {
        H::hash(F::split(element.rest).0)
    }

    #[inline]
    fn tail(element: Element<'_>) -> &[u8] {
        F::split(element.rest).0
    }

    fn is_sound(element: Element<'_>) -> bool {
        *element.fixed == upper_half(position::<F, H>(element).hash).to_le_bytes()
    }

    #[inline]
    fn item(element: Element<'_>) -> F::Item<'_> {
        F::item(element.rest)
    }
}

impl<F: Form, H: Hashing> KeyOrder for ByHash<F, H> {
    type Key<'a> = Position<'a>;

    #[inline]
    fn key_head(key: Position<'_>) -> u64 {
        key.hash
    }

    #[inline]
    fn compare_tail(key: Position<'_>, tail: &[u8]) -> Ordering {
        key.key.cmp(tail)
    }

    /// Hashes are spread evenly, so the place of one among others is near to where it should be.
    #[inline]
    fn count_less(heads: &[u64], head: u64, from: u64, to: u64) -> usize {
        let (offset, width) = (head.saturating_sub(from), (to - from).max(1));
        // Both are made shorter, so that a product with the number of heads does not overflow.
        let shift = (u64::BITS - width.leading_zeros()).saturating_sub(32);
        let mut index = ((offset >> shift) * heads.len() as u64 / (width >> shift)) as usize;
        index = index.min(heads.len());
        while index < heads.len() && heads[index] < head {
            index += 1;
        }
        while index > 0 && heads[index - 1] >= head {
            index -= 1;
        }
        index
    }

    #[inline]
    fn search(elements: Elements<'_, Self>, key: Position<'_>) -> Result<usize, usize> {
        let upper = upper_half(key.hash);
        let hashes = elements.fixed_parts().as_chunks::<HASH_BYTES>().0;
        // Counting has no branch to be mispredicted, and is done for several hashes at a time.
        let mut index =
            hashes.iter().map(|hash| u32::from(u32::from_le_bytes(*hash) < upper)).sum::<u32>() as usize;
        while index < hashes.len() && u32::from_le_bytes(hashes[index]) == upper {
            let found = F::split(elements.rest(index)).0;
            if found == key.key && !found.is_empty() {
                return Ok(index);
            }
            match (Position { hash: H::hash(found), key: found }).cmp(&key) {
                Ordering::Less => index += 1,
                Ordering::Equal => return Ok(index),
                Ordering::Greater => break,
            }
        }
        Err(index)
    }
}

/// What a block keeps of a hash.
#[inline]
const fn upper_half(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// Where an element belongs.
#[inline]
fn position<F: Form, H: Hashing>(element: Element<'_>) -> Position<'_> {
    let key = F::split(element.rest).0;
    Position { hash: H::hash(key), key }
}

/// One step of an iteration that goes on although elements are inserted and removed between its steps.
pub struct Scan<'a, O: Order> {
    /// The elements of this step.
    pub items: Iter<'a, O>,
    /// What the next step begins with; 0 if this was the last one.
    pub cursor: u64,
}

impl<F: Form, H: Hashing> Tree<ByHash<F, H>> {
    /// The place of a key.
    #[must_use]
    #[inline]
    pub fn position(key: &[u8]) -> Position<'_> {
        Position { hash: H::hash(key), key }
    }

    /// True if there is an element with this key.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.find(Self::position(key)).is_some()
    }

    /// Removes the element with this key. False if there is none.
    pub fn remove(&mut self, key: &[u8]) -> bool {
        self.take(Self::position(key), &mut |_| ())
    }

    /// A step of an iteration: `count` elements from a cursor on, and those beyond that have the hash of the last one.
    /// The first step has cursor 0, and each other one that which the step before it returned. Whatever is there from
    /// the first step to the last is in exactly one of them. A count of 0 counts as 1.
    ///
    /// A cursor is the hash of the next element, so steps depend on nothing but the elements.
    #[must_use]
    pub fn scan(&self, cursor: u64, count: u64) -> Scan<'_, ByHash<F, H>> {
        let start = self.count_before(Position::first_of(cursor));
        let mut end = start.saturating_add(count.max(1)).min(self.len());
        let hash_at = |rank: u64| Some(position::<F, H>(self.element(rank)?).hash);
        let mut cursor = hash_at(end);
        if let (Some(last), Some(next)) = (end.checked_sub(1).and_then(hash_at), cursor)
            && last == next
        {
            let behind = last.checked_add(1);
            end = behind.map_or(self.len(), |hash| self.count_before(Position::first_of(hash)));
            cursor = hash_at(end);
        }
        Scan { items: self.range(start..end), cursor: cursor.unwrap_or(0) }
    }
}

impl<H: Hashing> Map<H> {
    /// A key and its value, for a [`Builder`](crate::Builder).
    #[must_use]
    pub fn draft<'a>(key: &'a [u8], value: &'a [u8]) -> Draft<'a> {
        Self::draft_at(Self::position(key), value)
    }

    #[inline]
    fn draft_at<'a>(position: Position<'a>, value: &'a [u8]) -> Draft<'a> {
        Draft::pair(&upper_half(position.hash).to_le_bytes(), position.key, value)
    }

    /// The value of a key.
    #[must_use]
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.find(Self::position(key)).map(|element| Pairs::split(element.rest).1)
    }

    /// Gives a key a value. True if it had none.
    pub fn insert(&mut self, key: &[u8], value: &[u8]) -> bool {
        self.insert_with(key, value, |_| ())
    }

    /// Gives a key a value, and the value that it had to `see`. True if it had none.
    pub fn insert_with(&mut self, key: &[u8], value: &[u8], mut see: impl FnMut(&[u8])) -> bool {
        let position = Self::position(key);
        let draft = Self::draft_at(position, value);
        self.put(position, &draft, &mut |old| see(Pairs::split(old.rest).1))
    }

    /// Removes a key, and gives the value that it had to `see`. False if it had none.
    pub fn remove_with(&mut self, key: &[u8], mut see: impl FnMut(&[u8])) -> bool {
        self.take(Self::position(key), &mut |old| see(Pairs::split(old.rest).1))
    }
}

impl<H: Hashing> Set<H> {
    /// A member, for a [`Builder`](crate::Builder).
    #[must_use]
    pub fn draft(member: &[u8]) -> Draft<'_> {
        Draft::new(&upper_half(H::hash(member)).to_le_bytes(), member)
    }

    /// Adds a member. True if it was not there.
    pub fn insert(&mut self, member: &[u8]) -> bool {
        let position = Self::position(member);
        self.insert_new(position, &Draft::new(&upper_half(position.hash).to_le_bytes(), member))
    }
}
