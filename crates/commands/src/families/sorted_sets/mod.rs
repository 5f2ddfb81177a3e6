//! Commands on sorted sets.

pub(crate) mod combination;
pub(crate) mod condition;
pub(crate) mod interval;
mod score;
pub(crate) mod selection;
pub(crate) mod zadd;
pub(crate) mod zcard;
pub(crate) mod zcombine;
pub(crate) mod zcombinestore;
pub(crate) mod zcount;
pub(crate) mod zincrby;
pub(crate) mod zintercard;
pub(crate) mod zmpop;
pub(crate) mod zmscore;
pub(crate) mod zpop;
pub(crate) mod zrandmember;
pub(crate) mod zrange;
pub(crate) mod zrangestore;
pub(crate) mod zrank;
pub(crate) mod zrem;
pub(crate) mod zremrange;
pub(crate) mod zscan;
pub(crate) mod zscore;

pub(super) use zmpop::parse_score_end;
pub(super) use zpop::{Shape, pop_some};

use super::elements::work_of_some;
use super::specification::{CommandKind, CommandSpec, KeyPositions};
use crate::access::{EntryRef, KeyEvent, Keys, KeysMut};
use crate::error::ExecutionError;
use syros_values::{Score, SortedSet};

/// What a member takes beside its bytes, about: its score, twice, and its parts of two blocks.
pub(super) const MEMBER_BYTES: usize = 64;

/// What the rows of this family have in common.
const ROW: CommandSpec =
    CommandSpec { group: "sorted-set", keys: KeyPositions::ONE, since: "1.2.0", ..CommandSpec::ROW };

/// What the rows of reads have in common that look at a few members only.
const FAST_READ: CommandSpec = CommandSpec {
    kind: CommandKind::READ,
    key_flags: &[&["RO", "access"]],
    flags: &["readonly", "fast"],
    categories: &["@read", "@sortedset", "@fast"],
    ..ROW
};

/// What the rows of reads have in common that may look at many members.
const SLOW_READ: CommandSpec = CommandSpec {
    kind: CommandKind::READ,
    key_flags: &[&["RO", "access"]],
    flags: &["readonly"],
    categories: &["@read", "@sortedset", "@slow"],
    ..ROW
};

/// What the rows of updates have in common that change a few members only.
const FAST_UPDATE: CommandSpec = CommandSpec {
    kind: CommandKind::UPDATE,
    key_flags: &[&["RW", "access", "delete"]],
    flags: &["write", "fast"],
    categories: &["@write", "@sortedset", "@fast"],
    ..ROW
};

/// What the rows of updates have in common that may change many members.
const SLOW_UPDATE: CommandSpec =
    CommandSpec { flags: &["write"], categories: &["@write", "@sortedset", "@slow"], ..FAST_UPDATE };

/// The work of reading so many neighbours of the members of a key, if that has a sorted set.
fn work_of_members<K: Keys>(keys: &K, key: &[u8], members: u64) -> usize {
    let found = keys.get(key);
    let set = sorted_set_of(found.as_ref()).ok().flatten();
    set.map_or(0, |set| work_of_some(members, set.len(), set.element_bytes()))
}

/// The sorted set of a key that may have been found.
pub(super) fn sorted_set_of<E: EntryRef>(found: Option<&E>) -> Result<Option<&SortedSet>, ExecutionError> {
    Ok(found.map(EntryRef::collection).transpose()?)
}

/// Gives a key these members, which are in order, and takes away what it had. A key without members does not exist.
/// Answers how many there are.
pub(super) fn store<K: KeysMut>(
    keys: &mut K,
    key: &[u8],
    members: &[(&[u8], Score)],
    event: KeyEvent,
) -> i64 {
    let stored = SortedSet::from_ascending(members);
    let count = stored.len();
    if count > 0 {
        keys.set_collection(key, stored);
        keys.notify(event, key);
    } else {
        keys.delete(key);
    }
    count as i64
}
