//! BGREWRITEAOF.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "bgrewriteaof",
    kind: CommandKind::Local(ConnectionCommand::BgRewriteAof),
    arity: 1,
    flags: &["admin", "noscript", "no_async_loading"],
    categories: &["@admin", "@slow", "@dangerous"],
    since: "1.0.0",
    group: "server",
    summary: "Says that nothing has to be rewritten.",
    ..ROW
}];
