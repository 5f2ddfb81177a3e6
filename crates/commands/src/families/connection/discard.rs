//! DISCARD.

use super::TRANSACTION;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "discard",
    kind: CommandKind::Local(ConnectionCommand::Discard),
    since: "2.0.0",
    summary: "Forgets what was queued since MULTI.",
    ..TRANSACTION
}];
