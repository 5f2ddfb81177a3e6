//! Commands on places: members of sorted sets whose scores are the codes of places.

mod cells;
pub(crate) mod geoadd;
pub(crate) mod geodist;
pub(crate) mod geohash;
pub(crate) mod geopos;
pub(crate) mod geosearch;
pub(crate) mod geosearchstore;
pub(crate) mod place;
pub(crate) mod search;
pub(crate) mod unit;

use super::specification::{CommandKind, CommandSpec, KeyPositions};

/// What the rows of this family have in common.
const ROW: CommandSpec =
    CommandSpec { group: "geo", keys: KeyPositions::ONE, since: "3.2.0", ..CommandSpec::ROW };

/// What the rows of reads have in common.
const READ: CommandSpec = CommandSpec {
    kind: CommandKind::READ,
    key_flags: &[&["RO", "access"]],
    flags: &["readonly"],
    categories: &["@read", "@geo", "@slow"],
    ..ROW
};

/// What the rows of updates have in common.
const UPDATE: CommandSpec = CommandSpec {
    kind: CommandKind::UPDATE,
    key_flags: &[&["RW", "update"]],
    flags: &["write", "denyoom"],
    categories: &["@write", "@geo", "@slow"],
    ..ROW
};
