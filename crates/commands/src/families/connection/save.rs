//! SAVE.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "save",
    kind: CommandKind::Local(ConnectionCommand::Save),
    arity: 1,
    flags: &["admin", "noscript", "no_async_loading", "no_multi"],
    categories: &["@admin", "@slow", "@dangerous"],
    since: "1.0.0",
    group: "server",
    summary: "Says that what is acknowledged is durable.",
    ..ROW
}];
