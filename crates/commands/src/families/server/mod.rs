//! Commands on all keys of one database, or of several.

pub(crate) mod dbsize;
pub(crate) mod flushall;
pub(crate) mod swapdb;

use super::specification::CommandSpec;

/// What the rows of this family have in common.
const ROW: CommandSpec = CommandSpec { group: "server", ..CommandSpec::ROW };
