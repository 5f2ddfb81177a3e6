//! QUIT.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "quit",
    kind: CommandKind::Local(ConnectionCommand::Quit),
    arity: -1,
    flags: &["noscript", "loading", "stale", "fast", "no_auth", "allow_busy"],
    categories: &["@fast", "@connection"],
    since: "1.0.0",
    summary: "Closes the connection.",
    ..ROW
}];
