//! PUNSUBSCRIBE.

use super::MESSAGES;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "punsubscribe",
    kind: CommandKind::Local(ConnectionCommand::PUnsubscribe),
    arity: -1,
    since: "2.0.0",
    summary: "Ends subscriptions to patterns, or all of them.",
    ..MESSAGES
}];
