//! The byte that says of which form a collection is where it is written. Fixed for ever.

pub(crate) const PACKED: u8 = 1;
pub(crate) const TREE: u8 = 2;
/// A hash that is a tree, and of which fields expire.
pub(crate) const EXPIRING: u8 = 3;
/// A collection whose trees lie in pages: of records on disk only.
pub(crate) const PAGED: u8 = 4;
