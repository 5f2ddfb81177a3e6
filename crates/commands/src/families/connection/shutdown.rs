//! SHUTDOWN.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "shutdown",
    kind: CommandKind::Local(ConnectionCommand::Shutdown),
    arity: -1,
    flags: &["admin", "noscript", "loading", "stale", "no_multi", "allow_busy"],
    categories: &["@admin", "@slow", "@dangerous"],
    since: "1.0.0",
    group: "server",
    summary: "Is refused: a node ends when its operator says so.",
    ..ROW
}];
