//! SYNC.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "sync",
    kind: CommandKind::Local(ConnectionCommand::Sync),
    arity: 1,
    flags: &["admin", "noscript", "no_async_loading", "no_multi"],
    categories: &["@admin", "@slow", "@dangerous"],
    since: "1.0.0",
    group: "server",
    summary: "Is refused: replication is not that of Redis.",
    ..ROW
}];
