//! WATCH.

use super::TRANSACTION;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "watch",
    kind: CommandKind::Local(ConnectionCommand::Watch),
    arity: -2,
    keys: KeyPositions::ALL,
    key_flags: &[&["RO"]],
    since: "2.2.0",
    summary: "Has the next EXEC execute nothing if one of the keys has changed until then.",
    ..TRANSACTION
}];
