//! TIME.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "time",
    kind: CommandKind::Local(ConnectionCommand::Time),
    arity: 1,
    flags: &["loading", "stale", "fast"],
    categories: &["@fast"],
    tips: &["nondeterministic_output"],
    since: "2.6.0",
    group: "server",
    summary: "Returns the time of the server.",
    ..ROW
}];
