//! Commands on lists.

pub(crate) mod index;
pub(crate) mod lindex;
pub(crate) mod linsert;
pub(crate) mod llen;
pub(crate) mod lmove;
pub(crate) mod lmpop;
pub(crate) mod lpop;
pub(crate) mod lpos;
pub(crate) mod lpush;
pub(crate) mod lrange;
pub(crate) mod lrem;
pub(crate) mod lset;
pub(crate) mod ltrim;

mod end;
mod pop;

pub(super) use end::parse_end;
pub(super) use pop::{pop_first, pop_some};

use super::specification::{CommandKind, CommandSpec, KeyPositions};
use crate::access::EntryRef;
use crate::error::ExecutionError;
use syros_values::List;

/// What the rows of this family have in common.
const ROW: CommandSpec =
    CommandSpec { group: "list", keys: KeyPositions::ONE, since: "1.0.0", ..CommandSpec::ROW };

/// What the rows of reads have in common that may look at many elements.
const SLOW_READ: CommandSpec = CommandSpec {
    kind: CommandKind::READ,
    key_flags: &[&["RO", "access"]],
    flags: &["readonly"],
    categories: &["@read", "@list", "@slow"],
    ..ROW
};

/// What the rows of updates have in common that look at the ends of a list only.
const FAST_UPDATE: CommandSpec =
    CommandSpec { kind: CommandKind::UPDATE, categories: &["@write", "@list", "@fast"], ..ROW };

/// What the rows of updates have in common that may look at many elements.
const SLOW_UPDATE: CommandSpec = CommandSpec {
    kind: CommandKind::UPDATE,
    flags: &["write"],
    categories: &["@write", "@list", "@slow"],
    ..ROW
};

/// What the rows of updates have in common that may look at many elements and may make a list grow.
const SLOW_GROWING_UPDATE: CommandSpec = CommandSpec { flags: &["write", "denyoom"], ..SLOW_UPDATE };

/// The work of going through a list, whose length only its key knows, by an update: most are short. A pack, which is executed
/// as a whole, has four of these at most: they take some tenths of a second if the list has a million elements.
const SEARCH_WORK: usize = 256 << 10;

/// The list of a key that may have been found.
fn list_of<E: EntryRef>(found: Option<&E>) -> Result<Option<&List>, ExecutionError> {
    Ok(found.map(EntryRef::list).transpose()?)
}
