//! INFO.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "info",
    kind: CommandKind::Local(ConnectionCommand::Info),
    arity: -1,
    flags: &["loading", "stale"],
    categories: &["@slow", "@dangerous"],
    tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
    since: "1.0.0",
    group: "server",
    summary: "Returns information about the server, and statistics.",
    ..ROW
}];
