//! PSUBSCRIBE.

use super::MESSAGES;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "psubscribe",
    kind: CommandKind::Local(ConnectionCommand::PSubscribe),
    arity: -2,
    since: "2.0.0",
    summary: "Subscribes to all channels whose names match patterns.",
    ..MESSAGES
}];
