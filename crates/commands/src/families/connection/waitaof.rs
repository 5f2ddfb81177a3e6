//! WAITAOF.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "waitaof",
    kind: CommandKind::Local(ConnectionCommand::WaitAof),
    arity: 4,
    flags: &["noscript"],
    categories: &["@slow", "@blocking", "@connection"],
    tips: &["request_policy:all_shards", "response_policy:agg_min"],
    since: "7.2.0",
    group: "generic",
    summary: "Waits until enough other replicas have the earlier updates of this connection on disk.",
    ..ROW
}];
