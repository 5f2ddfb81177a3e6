//! Hashes: fields with values.

use crate::fingerprint::Fingerprint;
use crate::packed::{Packed, PackedIter, fits};
use crate::{ALLOCATION_BYTES, Kind, form_tag};
use syros_tree::{Iter, Map, Pairs, Position};
use syros_types::key_hash;

/// Fields with values. Fields have an order: a packed hash has that in which they were added, a tree that of their
/// hashes.
#[derive(Clone, Debug)]
pub struct Hash(pub(crate) Form);

/// How a hash lies in memory.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    /// Fields in the order in which they were added.
    Packed(Packed<2>),
    Tree(Box<Map>),
}

/// What a field takes in a tree, about: for what has to be the same on all replicas, which the bytes of blocks are not.
const FIELD_WEIGHT: usize = 64;

/// Cursors of [`Hash::scan`] are the upper bits of hashes, so many of them. Programs in some languages take every
/// number for one of floating point, which has 53 bits to spare.
const CURSOR_BITS: u32 = 53;

/// How far the hash of a field has to be shifted to be a cursor.
const CURSOR_SHIFT: u32 = u64::BITS - CURSOR_BITS;

impl Default for Hash {
    fn default() -> Self {
        Self(Form::Packed(Packed::default()))
    }
}

impl Hash {
    /// Number of fields.
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.0 {
            Form::Packed(packed) => packed.len() as u64,
            Form::Tree(tree) => tree.len(),
        }
    }

    /// True if there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if it lies in one allocation.
    #[must_use]
    pub const fn is_packed(&self) -> bool {
        matches!(self.0, Form::Packed(_))
    }

    /// The value of a field.
    #[must_use]
    pub fn get(&self, field: &[u8]) -> Option<&[u8]> {
        match &self.0 {
            Form::Packed(packed) => packed.find(|[found, _]| *found == field).map(|(_, [_, value])| value),
            Form::Tree(tree) => tree.get(field),
        }
    }

    /// Gives a field a value. True if it had none.
    pub fn set(&mut self, field: &[u8], value: &[u8]) -> bool {
        if let Form::Packed(packed) = &mut self.0
            && fits(field)
            && fits(value)
            && let Some(is_new) = set_packed(packed, field, value)
        {
            return is_new;
        }
        self.tree_mut().insert(field, value)
    }

    /// Removes a field. False if there is none.
    pub fn remove(&mut self, field: &[u8]) -> bool {
        match &mut self.0 {
            Form::Packed(packed) => match packed.find(|[found, _]| *found == field) {
                Some((place, _)) => {
                    packed.remove(place);
                    true
                }
                None => false,
            },
            Form::Tree(tree) => tree.remove(field),
        }
    }

    /// Fields and values in order.
    #[must_use]
    pub fn iter(&self) -> HashIter<'_> {
        HashIter(match &self.0 {
            Form::Packed(packed) => FormIter::Packed(packed.iter()),
            Form::Tree(tree) => FormIter::Tree(tree.iter()),
        })
    }

    /// The field of this rank and its value, without a look at all those before it if there are many.
    #[must_use]
    pub fn nth(&self, rank: u64) -> Option<(&[u8], &[u8])> {
        match &self.0 {
            Form::Packed(packed) => packed.iter().nth(usize::try_from(rank).ok()?).map(Into::into),
            Form::Tree(tree) => tree.nth(rank),
        }
    }

    /// A step of an iteration that goes on although fields are set and removed between its steps: about `count` fields
    /// from a cursor on, all of them if the hash is packed. The first step has cursor 0, and each other one that which
    /// the step before it returned; 0 is also the end. What is there from the first step to the last is in one of them.
    #[must_use]
    pub fn scan(&self, cursor: u64, count: u64) -> HashScan<'_> {
        let tree = match &self.0 {
            Form::Packed(_) => return HashScan { items: self.iter(), cursor: 0 },
            Form::Tree(tree) => tree,
        };
        // The rank of the first field whose cursor is not below this one.
        let rank_of = |cursor: u64| match cursor.checked_shl(CURSOR_SHIFT) {
            Some(hash) if cursor >> CURSOR_BITS == 0 => tree.count_before(Position::first_of(hash)),
            _ => tree.len(),
        };
        let cursor_at = |rank: u64| Some(key_hash(tree.nth(rank)?.0) >> CURSOR_SHIFT);
        let start = rank_of(cursor);
        let end = start.saturating_add(count.max(1)).min(tree.len());
        // Fields with one cursor cannot be told apart by it: they all belong to one step.
        let end = end.checked_sub(1).and_then(cursor_at).map_or(end, |last| rank_of(last + 1).max(start));
        let items = HashIter(FormIter::Tree(tree.range(start..end)));
        HashScan { items, cursor: cursor_at(end).unwrap_or(0) }
    }

    /// See [`Value::memory_bytes`](crate::Value::memory_bytes).
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        ALLOCATION_BYTES
            + match &self.0 {
                Form::Packed(packed) => packed.bytes(),
                Form::Tree(tree) => size_of::<Map>() + usize::try_from(tree.bytes()).unwrap_or(usize::MAX),
            }
    }

    /// See [`Value::weight`](crate::Value::weight).
    #[must_use]
    pub fn weight(&self) -> usize {
        match &self.0 {
            Form::Packed(packed) => packed.bytes(),
            Form::Tree(tree) => {
                usize::try_from(tree.len()).unwrap_or(usize::MAX).saturating_mul(FIELD_WEIGHT)
            }
        }
    }

    /// See [`Value::fingerprint`](crate::Value::fingerprint): the fields and values in their order, and the form.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let form = if self.is_packed() { form_tag::PACKED } else { form_tag::TREE };
        let mut fingerprint = Fingerprint::new(Kind::Hash, form);
        self.iter().for_each(|(field, value)| fingerprint.add(&[field, value]));
        fingerprint.finish()
    }

    /// The tree; makes it one if it is packed.
    fn tree_mut(&mut self) -> &mut Map {
        if let Form::Packed(packed) = &self.0 {
            let mut tree = Map::new();
            for [field, value] in packed.iter() {
                tree.insert(field, value);
            }
            self.0 = Form::Tree(Box::new(tree));
        }
        match &mut self.0 {
            Form::Tree(tree) => tree,
            Form::Packed(_) => unreachable!("it has become a tree"),
        }
    }
}

/// Gives a field of a packed hash a value. True if it had none, and `None`, without a change, if there is no room for it.
fn set_packed(packed: &mut Packed<2>, field: &[u8], value: &[u8]) -> Option<bool> {
    match packed.find(|[found, _]| *found == field) {
        Some((place, _)) => {
            packed.replace(place, [field, value]);
            Some(false)
        }
        None => packed.insert(packed.end(), [field, value]).then_some(true),
    }
}

/// What a hash is equal in shows: fields, values, their order, and the form.
impl PartialEq for Hash {
    fn eq(&self, other: &Self) -> bool {
        self.is_packed() == other.is_packed() && self.iter().eq(other.iter())
    }
}

impl Eq for Hash {}

impl<'a> IntoIterator for &'a Hash {
    type Item = (&'a [u8], &'a [u8]);
    type IntoIter = HashIter<'a>;

    fn into_iter(self) -> HashIter<'a> {
        self.iter()
    }
}

/// A step of an iteration: see [`Hash::scan`].
pub struct HashScan<'a> {
    /// The fields of this step, with their values.
    pub items: HashIter<'a>,
    /// What the next step begins with; 0 if this was the last one.
    pub cursor: u64,
}

/// Fields and values in order.
pub struct HashIter<'a>(FormIter<'a>);

enum FormIter<'a> {
    Packed(PackedIter<'a, 2>),
    Tree(Iter<'a, syros_tree::ByHash<Pairs>>),
}

impl<'a> Iterator for HashIter<'a> {
    type Item = (&'a [u8], &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            FormIter::Packed(pairs) => pairs.next().map(Into::into),
            FormIter::Tree(pairs) => pairs.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            FormIter::Packed(pairs) => pairs.size_hint(),
            FormIter::Tree(pairs) => pairs.size_hint(),
        }
    }
}

impl ExactSizeIterator for HashIter<'_> {}
