//! HELP behind the name of a command whose other subcommands are operations on data. It has no row of its own.

use crate::families::specification::CommandSpec;

pub(crate) const SPECS: &[CommandSpec] = &[];
