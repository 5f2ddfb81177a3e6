//! What clients ask for of collections. Each type of them has a file of its own, and an arm in each function here.

mod hashes;
mod lists;
mod sets;
mod sorted_sets;

use syros_checker::collections::CollectionOperation;
use syros_checker::history::Output;
use syros_checker::transfer::Transfer;
use syros_commands::Reply;
use syros_types::Prng;

/// Types of collections, the length of [`CollectionSettings::weights`](super::CollectionSettings::weights).
pub(crate) const KINDS: usize = 4;

/// The number of sets among them.
pub(crate) const SETS: usize = 2;

/// Longest string of a collection that is packed, in bytes, is below this: it becomes a tree.
pub(super) const LONG_BYTES: usize = 80;

/// The words of a command.
pub(super) fn words(key: &[u8], operation: &CollectionOperation) -> Vec<Vec<u8>> {
    match operation {
        CollectionOperation::Hash(operation) => hashes::words(key, operation),
        CollectionOperation::List(operation) => lists::words(key, operation),
        CollectionOperation::Set(operation) => sets::words(key, operation),
        CollectionOperation::SortedSet(operation) => sorted_sets::words(key, operation),
    }
}

/// True if its answer may be an error though the key holds a collection of this type.
pub(super) const fn may_fail(operation: &CollectionOperation) -> bool {
    match operation {
        CollectionOperation::Hash(operation) => hashes::may_fail(operation),
        CollectionOperation::List(_) | CollectionOperation::Set(_) | CollectionOperation::SortedSet(_) => {
            false
        }
    }
}

/// What a reply that is neither OK nor an error about types says; `None` if it is no answer.
pub(crate) fn answer(operation: &CollectionOperation, reply: Reply) -> Option<Output> {
    match operation {
        CollectionOperation::Hash(operation) => hashes::answer(operation, reply),
        CollectionOperation::List(operation) => lists::answer(operation, reply),
        CollectionOperation::Set(operation) => sets::answer(operation, reply),
        CollectionOperation::SortedSet(operation) => sorted_sets::answer(operation, reply),
    }
}

/// Draws an update on a collection of the type with this number; `value` makes a value that nobody has written before.
/// Of a hundred members of sets, so many are too long for a packed one.
pub(super) fn draw_update(
    kind: usize,
    prng: &mut Prng,
    value: &mut dyn FnMut(&mut Prng) -> Vec<u8>,
    long_percent: u64,
) -> CollectionOperation {
    match kind {
        0 => CollectionOperation::Hash(hashes::draw_update(prng, value)),
        1 => CollectionOperation::List(lists::draw_update(prng, value)),
        2 => CollectionOperation::Set(sets::draw_update(prng, long_percent)),
        3 => CollectionOperation::SortedSet(sorted_sets::draw_update(prng, long_percent)),
        _ => unreachable!("there are {KINDS} types"),
    }
}

/// Draws what goes from one key to another; both mostly hold collections of the type with this number.
pub(super) fn draw_transfer(kind: usize, prng: &mut Prng) -> Transfer {
    match kind {
        0 => Transfer::Sorted,
        1 => lists::draw_transfer(prng),
        2 => sets::draw_transfer(prng),
        3 => Transfer::Range,
        _ => unreachable!("there are {KINDS} types"),
    }
}

/// Draws a read of a collection of the type with this number.
pub(super) fn draw_read(kind: usize, prng: &mut Prng) -> CollectionOperation {
    match kind {
        0 => CollectionOperation::Hash(hashes::draw_read(prng)),
        1 => CollectionOperation::List(lists::draw_read(prng)),
        2 => CollectionOperation::Set(sets::draw_read(prng)),
        3 => CollectionOperation::SortedSet(sorted_sets::draw_read(prng)),
        _ => unreachable!("there are {KINDS} types"),
    }
}

/// The read that shows all of a collection of the type with this number.
pub(crate) fn read_all(kind: usize) -> CollectionOperation {
    match kind {
        0 => CollectionOperation::Hash(hashes::READ_ALL),
        1 => CollectionOperation::List(lists::READ_ALL),
        2 => CollectionOperation::Set(sets::READ_ALL),
        3 => CollectionOperation::SortedSet(sorted_sets::READ_ALL),
        _ => unreachable!("there are {KINDS} types"),
    }
}

/// A value in a reply, or none. Scores are numbers, whose text is the value.
fn value(reply: Reply) -> Option<Option<Vec<u8>>> {
    match reply {
        Reply::Nil => Some(None),
        Reply::Bulk(bytes) => Some(Some(bytes)),
        Reply::Double(number) => Some(Some(format!("{}", number.value()).into_bytes())),
        _ => None,
    }
}

/// Values in a reply, and places without one; pairs of them in turn.
fn values(reply: Reply) -> Option<Vec<Option<Vec<u8>>>> {
    match reply {
        Reply::Array(replies) | Reply::Set(replies) => replies.into_iter().map(value).collect(),
        Reply::Map(pairs) | Reply::Pairs(pairs) | Reply::Keyed(pairs) => {
            pairs.into_iter().flat_map(<[Reply; 2]>::from).map(value).collect()
        }
        _ => None,
    }
}
