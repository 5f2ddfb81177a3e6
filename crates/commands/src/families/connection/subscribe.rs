//! SUBSCRIBE.

use super::MESSAGES;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "subscribe",
    kind: CommandKind::Local(ConnectionCommand::Subscribe),
    arity: -2,
    since: "2.0.0",
    summary: "Subscribes to channels.",
    ..MESSAGES
}];
