//! Hashes: fields with values.

use crate::Kind;
use crate::by_hash::{Element, Form, FormIter, Scan, find_packed};
use syros_tree::{Map, Pairs};

/// Fields with values. Fields have an order: a packed hash has that in which they were added, a tree that of their
/// hashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hash(pub(crate) Form<2, Pairs>);

impl Element<2> for Pairs {
    const KIND: Kind = Kind::Hash;
    const WEIGHT: usize = 64;

    fn of_strings([field, value]: [&[u8]; 2]) -> (&[u8], &[u8]) {
        (field, value)
    }

    fn strings<'a: 'a>((field, value): (&'a [u8], &'a [u8])) -> [&'a [u8]; 2] {
        [field, value]
    }

    fn insert(tree: &mut Map, [field, value]: [&[u8]; 2]) -> bool {
        tree.insert(field, value)
    }
}

impl Hash {
    /// Number of fields.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// True if there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if it lies in one allocation.
    #[must_use]
    pub const fn is_packed(&self) -> bool {
        self.0.is_packed()
    }

    /// The value of a field.
    #[must_use]
    pub fn get(&self, field: &[u8]) -> Option<&[u8]> {
        match &self.0 {
            Form::Packed(packed) => find_packed(packed, field).map(|(_, [_, value])| value),
            Form::Tree(tree) => tree.get(field),
        }
    }

    /// Gives a field a value. True if it had none.
    pub fn set(&mut self, field: &[u8], value: &[u8]) -> bool {
        self.0.insert([field, value])
    }

    /// Removes a field. False if there is none.
    pub fn remove(&mut self, field: &[u8]) -> bool {
        self.0.remove(field)
    }

    /// Fields and values in order.
    #[must_use]
    pub fn iter(&self) -> HashIter<'_> {
        HashIter(self.0.iter())
    }

    /// The field of this rank and its value, without a look at all those before it if there are many.
    #[must_use]
    pub fn nth(&self, rank: u64) -> Option<(&[u8], &[u8])> {
        self.0.nth(rank)
    }

    /// A step of an iteration that goes on although fields are set and removed between its steps: about `count` fields
    /// from a cursor on, all of them if the hash is packed. The first step has cursor 0, and each other one that which
    /// the step before it returned; 0 is also the end. What is there from the first step to the last is in one of them.
    #[must_use]
    pub fn scan(&self, cursor: u64, count: u64) -> Scan<HashIter<'_>> {
        self.0.scan(cursor, count).map(HashIter)
    }

    /// See [`Value::memory_bytes`](crate::Value::memory_bytes).
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }

    /// See [`Value::weight`](crate::Value::weight).
    #[must_use]
    pub fn weight(&self) -> usize {
        self.0.weight()
    }

    /// See [`Value::fingerprint`](crate::Value::fingerprint).
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        self.0.fingerprint()
    }
}

impl<'a> IntoIterator for &'a Hash {
    type Item = (&'a [u8], &'a [u8]);
    type IntoIter = HashIter<'a>;

    fn into_iter(self) -> HashIter<'a> {
        self.iter()
    }
}

/// Fields and values in order.
pub struct HashIter<'a>(FormIter<'a, 2, Pairs>);

impl<'a> Iterator for HashIter<'a> {
    type Item = (&'a [u8], &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for HashIter<'_> {}
