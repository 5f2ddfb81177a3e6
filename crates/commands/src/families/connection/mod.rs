//! Commands that a connection answers by itself. Here is only what the table says of them.

pub(crate) mod client;
pub(crate) mod command;
pub(crate) mod config;
pub(crate) mod echo;
pub(crate) mod hello;
pub(crate) mod info;
pub(crate) mod ping;
pub(crate) mod quit;
pub(crate) mod reset;
pub(crate) mod select;
pub(crate) mod time;

use super::specification::CommandSpec;

/// What the rows of this family have in common.
const ROW: CommandSpec = CommandSpec { group: "connection", ..CommandSpec::ROW };
