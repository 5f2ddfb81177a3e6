//! Commands on keys of any type.

pub(crate) mod blind;
pub(crate) mod del;
pub(crate) mod exists;
pub(crate) mod expire;
pub(crate) mod key_type;
pub(crate) mod keys;
pub(crate) mod move_key;
pub(crate) mod persist;
pub(crate) mod randomkey;
pub(crate) mod rename;
pub(crate) mod scan;
pub(crate) mod ttl;

use super::specification::CommandSpec;

/// What the rows of this family have in common.
const ROW: CommandSpec = CommandSpec { group: "generic", ..CommandSpec::ROW };
