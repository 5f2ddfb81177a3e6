//! Byte strings with values, in the order of the strings: what is kept of the consumer groups of a stream.

use crate::by_hash::{Form as _, Pairs};
use crate::draft::Draft;
use crate::elements::Elements;
use crate::key_order::KeyOrder;
use crate::order::{Element, Order, take_chunk};
use crate::tree::Tree;
use core::cmp::Ordering;

/// Bytes of a key that a block keeps in front.
const HEAD_BYTES: usize = size_of::<u128>();

/// The order of the bytes of keys. A key comes before those that it is the beginning of.
#[derive(Debug)]
pub struct ByBytes;

/// Keys with values.
pub type Dictionary = Tree<ByBytes>;

/// The first bytes of a key as a number: keys with different numbers are in the order of these. What a short key lacks is
/// zeros.
#[inline]
fn head_of(key: &[u8]) -> u128 {
    let mut bytes = [0; HEAD_BYTES];
    let length = key.len().min(HEAD_BYTES);
    bytes[..length].copy_from_slice(&key[..length]);
    u128::from_be_bytes(bytes)
}

/// The number that lies in a block.
#[inline]
const fn head_in(bytes: [u8; HEAD_BYTES]) -> u128 {
    u128::from_le_bytes(bytes)
}

impl Order for ByBytes {
    const FIXED: usize = HEAD_BYTES;
    type Head = u128;
    const LEAST: u128 = 0;
    const GREATEST: u128 = u128::MAX;
    type Item<'a> = (&'a [u8], &'a [u8]);

    fn put_head(head: u128, out: &mut Vec<u8>) {
        out.extend_from_slice(&head.to_le_bytes());
    }

    fn take_head(input: &mut &[u8]) -> Option<u128> {
        take_chunk(input).map(u128::from_le_bytes)
    }

    #[inline]
    fn head(element: Element<'_>) -> u128 {
        head_in(element.fixed.try_into().expect("the fixed part of an element has the length of a head"))
    }

    #[inline]
    fn tail(element: Element<'_>) -> &[u8] {
        Pairs::split(element.rest).0
    }

    fn is_sound(element: Element<'_>) -> bool {
        Self::head(element) == head_of(Self::tail(element))
    }

    #[inline]
    fn item(element: Element<'_>) -> (&[u8], &[u8]) {
        Pairs::split(element.rest)
    }
}

impl KeyOrder for ByBytes {
    type Key<'a> = &'a [u8];

    #[inline]
    fn key_head(key: &[u8]) -> u128 {
        head_of(key)
    }

    #[inline]
    fn compare_tail(key: &[u8], tail: &[u8]) -> Ordering {
        key.cmp(tail)
    }

    #[inline]
    fn search(elements: Elements<'_, Self>, key: &[u8]) -> Result<usize, usize> {
        let heads = elements.fixed_parts().as_chunks::<HEAD_BYTES>().0;
        let wanted = head_of(key);
        let mut low = heads.partition_point(|head| head_in(*head) < wanted);
        let mut high = low + heads[low..].partition_point(|head| head_in(*head) == wanted);
        while low < high {
            let middle = usize::midpoint(low, high);
            match key.cmp(Pairs::split(elements.rest(middle)).0) {
                Ordering::Less => high = middle,
                Ordering::Equal => return Ok(middle),
                Ordering::Greater => low = middle + 1,
            }
        }
        Err(low)
    }
}

impl Dictionary {
    /// A key and its value, for a [`Builder`](crate::Builder).
    #[must_use]
    pub fn draft<'a>(key: &'a [u8], value: &'a [u8]) -> Draft<'a> {
        Draft::pair(&head_of(key).to_le_bytes(), key, value)
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.find(key).map(|element| Pairs::split(element.rest).1)
    }

    /// Gives a key a value. True if it had none.
    pub fn insert(&mut self, key: &[u8], value: &[u8]) -> bool {
        self.put(key, &Self::draft(key, value), &mut |_| ())
    }

    /// Removes a key. False if it has no value.
    pub fn remove(&mut self, key: &[u8]) -> bool {
        self.take(key, &mut |_| ())
    }
}
