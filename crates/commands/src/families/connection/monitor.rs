//! MONITOR.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "monitor",
    kind: CommandKind::Local(ConnectionCommand::Monitor),
    arity: 1,
    flags: &["admin", "noscript", "loading", "stale"],
    categories: &["@admin", "@slow", "@dangerous"],
    since: "1.0.0",
    group: "server",
    summary: "Shows every command that this node gets.",
    ..ROW
}];
