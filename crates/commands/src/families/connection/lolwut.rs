//! LOLWUT.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "lolwut",
    kind: CommandKind::Local(ConnectionCommand::Lolwut),
    arity: -1,
    flags: &["readonly", "fast"],
    categories: &["@read", "@fast"],
    since: "5.0.0",
    group: "server",
    summary: "Shows the version.",
    ..ROW
}];
