//! Elements in the order of ids of 128 bits: streams.

use crate::draft::Draft;
use crate::elements::Elements;
use crate::key_order::KeyOrder;
use crate::order::{Element, Order, take_chunk};
use crate::tree::Tree;
use core::cmp::Ordering;

/// The order of ids. The id of a stream's entry is its time in milliseconds, shifted left by 64 bits, and its sequence
/// number.
#[derive(Debug)]
pub struct ById;

/// Byte strings with ids.
pub type Log = Tree<ById>;

/// The id of an element.
#[inline]
fn id(element: Element<'_>) -> u128 {
    let bytes = element.fixed.try_into().expect("the fixed part of an element has the length of an id");
    u128::from_le_bytes(bytes)
}

impl Order for ById {
    const FIXED: usize = size_of::<u128>();
    type Head = u128;
    const LEAST: u128 = 0;
    const GREATEST: u128 = u128::MAX;
    type Item<'a> = (u128, &'a [u8]);

    fn put_head(head: u128, out: &mut Vec<u8>) {
        out.extend_from_slice(&head.to_le_bytes());
    }

    fn take_head(input: &mut &[u8]) -> Option<u128> {
        take_chunk(input).map(u128::from_le_bytes)
    }

    #[inline]
    fn head(element: Element<'_>) -> u128 {
        id(element)
    }

    #[inline]
    fn tail(_: Element<'_>) -> &[u8] {
        &[]
    }

    #[inline]
    fn item(element: Element<'_>) -> (u128, &[u8]) {
        (id(element), element.rest)
    }
}

impl KeyOrder for ById {
    type Key<'a> = u128;

    #[inline]
    fn key_head(key: u128) -> u128 {
        key
    }

    /// Ids differ, so no separator has a tail.
    #[inline]
    fn compare_tail(_: u128, tail: &[u8]) -> Ordering {
        [][..].cmp(tail)
    }

    #[inline]
    fn search(elements: Elements<'_, Self>, key: u128) -> Result<usize, usize> {
        let ids = elements.fixed_parts().as_chunks::<{ size_of::<u128>() }>().0;
        // Ids that are new are the greatest.
        match ids.last() {
            Some(last) if u128::from_le_bytes(*last) < key => return Err(ids.len()),
            _ => {}
        }
        let index = ids.partition_point(|id| u128::from_le_bytes(*id) < key);
        match ids.get(index).map(|id| u128::from_le_bytes(*id).cmp(&key)) {
            Some(Ordering::Equal) => Ok(index),
            _ => Err(index),
        }
    }
}

impl Log {
    /// An id with its value, for a [`Builder`](crate::Builder).
    #[must_use]
    #[inline]
    pub fn draft(id: u128, value: &[u8]) -> Draft<'_> {
        Draft::new(&id.to_le_bytes(), value)
    }

    /// The value of an id.
    #[must_use]
    pub fn get(&self, id: u128) -> Option<&[u8]> {
        self.find(id).map(|element| element.rest)
    }

    /// Gives an id a value. True if it had none.
    pub fn insert(&mut self, id: u128, value: &[u8]) -> bool {
        self.put(id, &Self::draft(id, value), &mut |_| ())
    }

    /// Removes an id. False if it has no value.
    pub fn remove(&mut self, id: u128) -> bool {
        self.take(id, &mut |_| ())
    }
}
