//! SELECT.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "select",
    kind: CommandKind::Local(ConnectionCommand::Select),
    arity: 2,
    flags: &["loading", "stale", "fast"],
    categories: &["@fast", "@connection"],
    since: "1.0.0",
    summary: "Chooses the database of the connection.",
    ..ROW
}];
