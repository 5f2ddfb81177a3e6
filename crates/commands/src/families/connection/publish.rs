//! PUBLISH.

use super::MESSAGES;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "publish",
    kind: CommandKind::Local(ConnectionCommand::Publish),
    arity: 3,
    flags: &["pubsub", "loading", "stale", "fast"],
    categories: &["@pubsub", "@fast"],
    since: "2.0.0",
    summary: "Sends a message to the subscribers of a channel, at all nodes.",
    ..MESSAGES
}];
