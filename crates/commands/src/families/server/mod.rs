//! Commands on all the data there is.

pub(crate) mod dbsize;
pub(crate) mod flushall;

use super::specification::CommandSpec;

/// What the rows of this family have in common.
const ROW: CommandSpec = CommandSpec { group: "server", ..CommandSpec::ROW };
