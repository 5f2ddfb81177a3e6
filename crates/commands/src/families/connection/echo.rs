//! ECHO.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "echo",
    kind: CommandKind::Local(ConnectionCommand::Echo),
    arity: 2,
    flags: &["loading", "stale", "fast"],
    categories: &["@fast", "@connection"],
    since: "1.0.0",
    summary: "Returns its argument.",
    ..ROW
}];
