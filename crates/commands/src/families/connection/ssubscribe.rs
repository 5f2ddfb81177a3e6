//! SSUBSCRIBE.

use super::{MESSAGES, NOT_KEYS};
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "ssubscribe",
    kind: CommandKind::Local(ConnectionCommand::SSubscribe),
    arity: -2,
    keys: KeyPositions::ALL,
    key_flags: NOT_KEYS,
    since: "7.0.0",
    summary: "Subscribes to shard channels.",
    ..MESSAGES
}];
