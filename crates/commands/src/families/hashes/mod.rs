//! Commands on hashes.

pub(crate) mod field_options;
pub(crate) mod hdel;
pub(crate) mod hexists;
pub(crate) mod hexpire;
pub(crate) mod hget;
pub(crate) mod hgetall;
pub(crate) mod hgetdel;
pub(crate) mod hgetex;
pub(crate) mod hincrby;
pub(crate) mod hincrbyfloat;
pub(crate) mod hlen;
pub(crate) mod hmget;
pub(crate) mod hpersist;
pub(crate) mod hrandfield;
pub(crate) mod hscan;
pub(crate) mod hset;
pub(crate) mod hsetex;
pub(crate) mod hsetnx;
pub(crate) mod hstrlen;
pub(crate) mod httl;

use super::elements::work_of_some;
use super::specification::{CommandKind, CommandSpec, KeyPositions};
use crate::access::{EntryRef, Keys};
use crate::error::ExecutionError;
use syros_values::{Hash, LiveHash};

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

/// The work of reading so many neighbours of the fields of a key, if that has a hash.
fn work_of_fields<K: Keys>(keys: &K, key: &[u8], fields: u64) -> usize {
    let found = keys.get(key);
    let hash = hash_of(keys, found.as_ref()).ok().flatten();
    hash.map_or(0, |hash| work_of_some(fields, hash.len(), hash.element_bytes()))
}

/// The hash of a key that may have been found, without the fields that have expired.
fn hash_of<'a, K: Keys, E: EntryRef>(
    keys: &K,
    found: Option<&'a E>,
) -> Result<Option<LiveHash<'a>>, ExecutionError> {
    let hash: Option<&Hash> = found.map(EntryRef::hash).transpose()?;
    Ok(hash.map(|hash| hash.at(keys.time_ms())))
}
