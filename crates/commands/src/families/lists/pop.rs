//! Elements that are taken from an end of a list.

use crate::access::{KeyEvent, KeysMut};
use crate::error::ExecutionError;
use crate::families::definition::ExecutionResult;
use crate::limits::UPDATE_REPLY_BYTES_MAX;
use crate::reply::{put_array, put_bulk};
use syros_values::{List, ListEnd};

/// Removes the element at an end.
pub(super) fn pop_one(list: &mut List, end: ListEnd) -> Option<Vec<u8>> {
    let last = list.len().checked_sub(1)?;
    let rank = if end == ListEnd::Left { 0 } else { last };
    let element = list.nth(rank).map(<[u8]>::to_vec);
    list.remove_range(rank..rank + 1);
    element
}

/// Appends an array of the first elements from an end, at most so many, and removes them.
///
/// # Errors
/// If that is too much for the reply of an update; nothing is removed then.
fn pop_many(list: &mut List, end: ListEnd, count_max: u64, reply: &mut Vec<u8>) -> ExecutionResult {
    let length = list.len();
    let count = count_max.min(length);
    let ranks = if end == ListEnd::Left { 0..count } else { length - count..length };
    let (start, mut elements) = (reply.len(), list.range(ranks.clone()));
    put_array(reply, elements.len());
    while let Some(element) = if end == ListEnd::Left { elements.next() } else { elements.next_back() } {
        put_bulk(reply, element);
        if reply.len() - start > UPDATE_REPLY_BYTES_MAX {
            return Err(ExecutionError::UpdateReplyTooLong);
        }
    }
    list.remove_range(ranks);
    Ok(())
}

/// Removes the first or last element of the list of a key, if it has one, tells of that, and returns the element.
///
/// # Errors
/// If the value is of another kind.
pub(in crate::families) fn pop_first<K: KeysMut>(
    keys: &mut K,
    key: &[u8],
    end: ListEnd,
) -> Result<Option<Vec<u8>>, ExecutionError> {
    let element = keys.edit_collection(key, |list: &mut List| pop_one(list, end))?;
    if element.is_some() {
        keys.notify_removal(popped(end), key);
    }
    Ok(element)
}

/// Removes at most so many of the first or last elements of the list of a key that exists, tells of that, and appends them.
///
/// # Errors
/// If the value is of another kind, or they are more than an update may answer; nothing has changed then.
pub(in crate::families) fn pop_some<K: KeysMut>(
    keys: &mut K,
    key: &[u8],
    end: ListEnd,
    count_max: u64,
    reply: &mut Vec<u8>,
) -> ExecutionResult {
    keys.edit_collection(key, |list: &mut List| pop_many(list, end, count_max, reply))??;
    if count_max > 0 {
        keys.notify_removal(popped(end), key);
    }
    Ok(())
}

/// The event that elements have been taken from this end of a list.
pub(super) const fn popped(end: ListEnd) -> KeyEvent {
    match end {
        ListEnd::Left => KeyEvent::LPop,
        ListEnd::Right => KeyEvent::RPop,
    }
}

/// The event that elements have been added at this end of a list.
pub(super) const fn pushed(end: ListEnd) -> KeyEvent {
    match end {
        ListEnd::Left => KeyEvent::LPush,
        ListEnd::Right => KeyEvent::RPush,
    }
}
