//! Commands on sets.

pub(crate) mod sadd;
pub(crate) mod scard;
pub(crate) mod sinter;
pub(crate) mod sintercard;
pub(crate) mod sinterstore;
pub(crate) mod sismember;
pub(crate) mod smembers;
pub(crate) mod smismember;
pub(crate) mod smove;
pub(crate) mod spop;
pub(crate) mod srandmember;
pub(crate) mod srem;
pub(crate) mod sscan;

use super::definition::{ExecutionResult, View};
use super::elements::work_of_some;
use super::specification::{CommandKind, CommandSpec, KeyPositions};
use crate::access::{EntryRef, Keys};
use crate::error::ExecutionError;
use crate::reply::{put_bulk, put_set};
use syros_values::Set;

/// What the rows of this family have in common.
const ROW: CommandSpec =
    CommandSpec { group: "set", keys: KeyPositions::ONE, since: "1.0.0", ..CommandSpec::ROW };

/// What the rows of reads have in common that look at a few members only.
const FAST_READ: CommandSpec = CommandSpec {
    kind: CommandKind::READ,
    key_flags: &[&["RO"]],
    flags: &["readonly", "fast"],
    categories: &["@read", "@set", "@fast"],
    ..ROW
};

/// What the rows of reads have in common that may look at many members.
const SLOW_READ: CommandSpec = CommandSpec {
    kind: CommandKind::READ,
    key_flags: &[&["RO", "access"]],
    flags: &["readonly"],
    categories: &["@read", "@set", "@slow"],
    ..ROW
};

/// What the rows of updates have in common that look at a few members only, and make nothing grow.
const FAST_UPDATE: CommandSpec = CommandSpec {
    kind: CommandKind::UPDATE,
    flags: &["write", "fast"],
    categories: &["@write", "@set", "@fast"],
    ..ROW
};

/// The work of reading so many neighbours of the members of a key, if that has a set.
fn work_of_members<K: Keys>(keys: &K, key: &[u8], members: u64) -> usize {
    let found = keys.get(key);
    let set = set_of(found.as_ref()).ok().flatten();
    set.map_or(0, |set| work_of_some(members, set.len(), set.element_bytes()))
}

/// The set of a key that may have been found.
fn set_of<E: EntryRef>(found: Option<&E>) -> Result<Option<&Set>, ExecutionError> {
    Ok(found.map(EntryRef::set).transpose()?)
}

/// Gives the sets of these keys to `run`. A key that does not exist is an empty set.
fn with_sets<'k, K: Keys, R>(
    keys: &K,
    names: impl Iterator<Item = &'k [u8]>,
    run: impl FnOnce(&[&Set]) -> R,
) -> Result<R, ExecutionError> {
    let found: Vec<_> = names.map(|name| keys.get(name)).collect();
    let empty = Set::default();
    let sets = found.iter().map(|entry| Ok(set_of(entry.as_ref())?.unwrap_or(&empty)));
    let sets: Vec<&Set> = sets.collect::<Result<_, ExecutionError>>()?;
    Ok(run(&sets))
}

/// Appends the members of a set.
fn put_members(reply: &mut Vec<u8>, set: &Set, view: View) -> ExecutionResult {
    let members = set.iter();
    put_set(reply, members.len());
    for member in members {
        put_bulk(reply, member);
        if reply.len() > view.reply_end {
            return Err(ExecutionError::ReplyTooLong);
        }
    }
    Ok(())
}
