//! LASTSAVE.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "lastsave",
    kind: CommandKind::Local(ConnectionCommand::LastSave),
    arity: 1,
    flags: &["loading", "stale", "fast"],
    categories: &["@admin", "@fast", "@dangerous"],
    tips: &["nondeterministic_output"],
    since: "1.0.0",
    group: "server",
    summary: "Returns when data was saved last.",
    ..ROW
}];
