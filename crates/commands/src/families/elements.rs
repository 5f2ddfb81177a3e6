//! What commands on collections have in common.

use crate::access::{EntryRef, Keys};
use crate::arguments::Arguments;
use crate::error::CommandError;
use crate::reply::{put_bulk, put_nil};
use crate::words::Words;
use syros_types::limits::KEYS_PER_OPERATION_MAX;
use syros_values::Kind;

/// What an element takes beside its strings, about: its hash and lengths, and its part of a block.
pub(super) const ELEMENT_BYTES: usize = 32;

/// The work of looking for one element of a large collection, of which little is near: as long as to read so many bytes
/// in a row.
pub(super) const LOOKUP_WORK: usize = 512;

/// The work of reading so many neighbours of the elements of a collection, which takes so many bytes.
pub(super) fn work_of_some(elements: u64, length: u64, bytes: usize) -> usize {
    let share = u128::from(elements.min(length)) * bytes as u128 / u128::from(length.max(1));
    usize::try_from(share).unwrap_or(usize::MAX)
}

/// How long a value is: the bytes of a string, or of a collection's elements.
pub(crate) fn length_of<E: EntryRef>(found: &E, now_ms: u64) -> usize {
    match found.string() {
        Ok(string) => string.len(),
        Err(_) => found.to_value().element_bytes(now_ms),
    }
}

/// The work of reading all elements of the collections that these keys have.
pub(super) fn work_of_all<'a, K: Keys>(keys: &K, names: impl Iterator<Item = &'a [u8]>) -> usize {
    let found = names.filter_map(|name| keys.get(name)).filter(|entry| entry.kind() != Kind::String);
    let bytes = found.map(|entry| length_of(&entry, keys.time_ms()));
    bytes.fold(0, usize::saturating_add)
}

/// The work of looking for all elements of the smallest of these keys' collections in the others: none if a key has none.
pub(super) fn work_of_smallest<'a, K: Keys>(
    keys: &K,
    names: impl ExactSizeIterator<Item = &'a [u8]>,
) -> usize {
    let count = names.len();
    let bytes = names.map(|name| work_of_all(keys, core::iter::once(name)));
    bytes.min().unwrap_or(0).saturating_mul(count)
}

/// Appends a value that may be there, or nil.
pub(super) fn put_optional(reply: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        Some(value) => put_bulk(reply, value),
        None => put_nil(reply),
    }
}

/// The words behind the key, if they are not too many elements of `step` words each.
pub(super) fn elements<'a>(words: Words<'a>, step: usize) -> Result<Arguments<'a>, CommandError> {
    let elements = &words[2..];
    let count = elements.len() / step;
    if count > KEYS_PER_OPERATION_MAX {
        return Err(CommandError::TooManyElements(count));
    }
    Ok(Arguments::new(elements))
}
