//! DEBUG. Its subcommand OBJECT reads data; the connection answers the others.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::generic::object::parse_debug;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "debug",
    kind: CommandKind::READ,
    arity: -2,
    flags: &["admin", "noscript", "loading", "stale"],
    categories: &["@admin", "@slow", "@dangerous"],
    since: "1.0.0",
    group: "server",
    summary: "Sleeps, and answers what tests of clients ask.",
    local: Some(ConnectionCommand::Debug),
    parser: |_, words| parse_debug(words),
    ..ROW
}];
