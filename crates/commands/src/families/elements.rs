//! What commands on collections have in common.

use crate::arguments::Arguments;
use crate::error::CommandError;
use crate::reply::{put_bulk, put_nil};
use crate::words::Words;
use syros_types::limits::KEYS_PER_OPERATION_MAX;

/// What an element takes beside its strings, about: its hash and lengths, and its part of a block.
pub(super) const ELEMENT_BYTES: usize = 32;

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
