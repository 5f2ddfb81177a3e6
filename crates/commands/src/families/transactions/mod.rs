//! What WATCH and EXEC do to keys. Their rows are those of a connection's own commands.
//!
//! Keys have versions only since the first WATCH. Until then no replica takes note of them, and all that is written is as
//! older builds write it.

pub(crate) mod record;
pub(crate) mod unchanged;
pub(crate) mod versions;
