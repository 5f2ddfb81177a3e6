//! SLAVEOF.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "slaveof",
    kind: CommandKind::Local(ConnectionCommand::SlaveOf),
    arity: 3,
    flags: &["admin", "noscript", "stale", "no_async_loading"],
    categories: &["@admin", "@slow", "@dangerous"],
    since: "1.0.0",
    group: "server",
    summary: "Is refused: the members of a group are given in its configuration.",
    ..ROW
}];
