//! MULTI.

use super::TRANSACTION;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "multi",
    kind: CommandKind::Local(ConnectionCommand::Multi),
    since: "1.2.0",
    summary: "Queues the commands that follow, until EXEC.",
    ..TRANSACTION
}];
