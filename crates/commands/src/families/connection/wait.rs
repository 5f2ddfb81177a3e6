//! WAIT.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "wait",
    kind: CommandKind::Local(ConnectionCommand::Wait),
    arity: 3,
    flags: &["noscript"],
    categories: &["@slow", "@connection"],
    tips: &["request_policy:all_shards", "response_policy:agg_min"],
    since: "3.0.0",
    group: "generic",
    summary: "Waits until enough other replicas have the earlier updates of this connection.",
    ..ROW
}];
