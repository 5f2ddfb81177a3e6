//! PING.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "ping",
    kind: CommandKind::Local(ConnectionCommand::Ping),
    arity: -1,
    flags: &["fast"],
    categories: &["@fast", "@connection"],
    tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
    since: "1.0.0",
    summary: "Answers PONG, or its argument.",
    ..ROW
}];
