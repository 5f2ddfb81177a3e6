//! MEMORY, but for MEMORY USAGE, which is an operation on data: its row stands there.

use crate::families::specification::CommandSpec;

pub(crate) const SPECS: &[CommandSpec] = &[];
