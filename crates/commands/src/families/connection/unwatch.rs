//! UNWATCH.

use super::TRANSACTION;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "unwatch",
    kind: CommandKind::Local(ConnectionCommand::Unwatch),
    since: "2.2.0",
    summary: "Watches no key any more.",
    ..TRANSACTION
}];
