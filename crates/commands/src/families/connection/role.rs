//! ROLE.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "role",
    kind: CommandKind::Local(ConnectionCommand::Role),
    arity: 1,
    flags: &["noscript", "loading", "stale", "fast"],
    categories: &["@admin", "@fast", "@dangerous"],
    since: "2.8.12",
    group: "server",
    summary: "Returns the role of this server: to its clients every node is a master.",
    ..ROW
}];
