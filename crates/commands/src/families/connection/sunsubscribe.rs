//! SUNSUBSCRIBE.

use super::{MESSAGES, NOT_KEYS};
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "sunsubscribe",
    kind: CommandKind::Local(ConnectionCommand::SUnsubscribe),
    arity: -1,
    keys: KeyPositions::ALL,
    key_flags: NOT_KEYS,
    since: "7.0.0",
    summary: "Ends subscriptions to shard channels, or all of them.",
    ..MESSAGES
}];
