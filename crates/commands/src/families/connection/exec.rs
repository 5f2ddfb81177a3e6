//! EXEC.

use super::TRANSACTION;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "exec",
    kind: CommandKind::Local(ConnectionCommand::Exec),
    flags: &["noscript", "loading", "stale", "skip_slowlog"],
    categories: &["@slow", "@transaction"],
    since: "1.2.0",
    summary: "Executes what was queued since MULTI, as one.",
    ..TRANSACTION
}];
