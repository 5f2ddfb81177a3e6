//! UNSUBSCRIBE.

use super::MESSAGES;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "unsubscribe",
    kind: CommandKind::Local(ConnectionCommand::Unsubscribe),
    arity: -1,
    since: "2.0.0",
    summary: "Ends subscriptions to channels, or all of them.",
    ..MESSAGES
}];
