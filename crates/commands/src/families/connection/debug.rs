//! DEBUG.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "debug",
    kind: CommandKind::Local(ConnectionCommand::Debug),
    arity: -2,
    flags: &["admin", "noscript", "loading", "stale"],
    categories: &["@admin", "@slow", "@dangerous"],
    since: "1.0.0",
    group: "server",
    summary: "Sleeps, and answers what tests of clients ask.",
    ..ROW
}];
