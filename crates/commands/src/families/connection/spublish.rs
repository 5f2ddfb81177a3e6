//! SPUBLISH.

use super::{MESSAGES, NOT_KEYS};
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "spublish",
    kind: CommandKind::Local(ConnectionCommand::SPublish),
    arity: 3,
    keys: KeyPositions::ONE,
    key_flags: NOT_KEYS,
    flags: &["pubsub", "loading", "stale", "fast"],
    categories: &["@pubsub", "@fast"],
    since: "7.0.0",
    summary: "Sends a message to the subscribers of a shard channel, at all nodes.",
    ..MESSAGES
}];
