//! PSYNC.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "psync",
    kind: CommandKind::Local(ConnectionCommand::PSync),
    arity: -3,
    flags: &["admin", "noscript", "no_async_loading", "no_multi"],
    categories: &["@admin", "@slow", "@dangerous"],
    since: "2.8.0",
    group: "server",
    summary: "Is refused: replication is not that of Redis.",
    ..ROW
}];
