//! Commands on hashes.

pub(crate) mod hdel;
pub(crate) mod hexists;
pub(crate) mod hget;
pub(crate) mod hgetall;
pub(crate) mod hincrby;
pub(crate) mod hincrbyfloat;
pub(crate) mod hlen;
pub(crate) mod hmget;
pub(crate) mod hrandfield;
pub(crate) mod hscan;
pub(crate) mod hset;
pub(crate) mod hsetnx;
pub(crate) mod hstrlen;

use super::specification::{CommandKind, CommandSpec, KeyPositions};
use crate::access::EntryRef;
use crate::arguments::Arguments;
use crate::error::{CommandError, ExecutionError};
use crate::reply::{put_bulk, put_nil};
use crate::words::Words;
use syros_types::limits::KEYS_PER_OPERATION_MAX;
use syros_values::Hash;

/// What the rows of this family have in common.
const ROW: CommandSpec =
    CommandSpec { group: "hash", keys: KeyPositions::ONE, since: "2.0.0", ..CommandSpec::ROW };

/// What the rows of reads have in common that look at a few fields only.
const FAST_READ: CommandSpec = CommandSpec {
    kind: CommandKind::READ,
    key_flags: &[&["RO", "access"]],
    flags: &["readonly", "fast"],
    categories: &["@read", "@hash", "@fast"],
    ..ROW
};

/// What the rows of reads have in common that may look at many fields.
const SLOW_READ: CommandSpec = CommandSpec {
    kind: CommandKind::READ,
    key_flags: &[&["RO", "access"]],
    flags: &["readonly"],
    categories: &["@read", "@hash", "@slow"],
    ..ROW
};

/// What the rows of updates have in common that may make a hash grow.
const GROWING_UPDATE: CommandSpec = CommandSpec {
    kind: CommandKind::UPDATE,
    key_flags: &[&["RW", "access", "update"]],
    flags: &["write", "denyoom", "fast"],
    categories: &["@write", "@hash", "@fast"],
    ..ROW
};

/// What a field takes beside its name and its value, about: its hash and lengths, and its part of a block.
const FIELD_BYTES: usize = 32;

/// The hash of a key that may have been found.
fn hash_of<E: EntryRef>(found: Option<&E>) -> Result<Option<&Hash>, ExecutionError> {
    Ok(found.map(EntryRef::hash).transpose()?)
}

/// Appends a value that may be there, or nil.
fn put_optional(reply: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        Some(value) => put_bulk(reply, value),
        None => put_nil(reply),
    }
}

/// The words behind the key, if they are not too many elements of `step` words each.
fn elements<'a>(words: Words<'a>, step: usize) -> Result<Arguments<'a>, CommandError> {
    let elements = &words[2..];
    let count = elements.len() / step;
    if count > KEYS_PER_OPERATION_MAX {
        return Err(CommandError::TooManyElements(count));
    }
    Ok(Arguments::new(elements))
}
