//! FAILOVER.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "failover",
    kind: CommandKind::Local(ConnectionCommand::Failover),
    arity: -1,
    flags: &["admin", "noscript", "stale"],
    categories: &["@admin", "@slow", "@dangerous"],
    since: "6.2.0",
    group: "server",
    summary: "Is refused: the members agree on a leader by themselves.",
    ..ROW
}];
