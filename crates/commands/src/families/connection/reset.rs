//! RESET.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "reset",
    kind: CommandKind::Local(ConnectionCommand::Reset),
    arity: 1,
    flags: &["noscript", "loading", "stale", "fast", "no_auth", "allow_busy"],
    categories: &["@fast", "@connection"],
    since: "6.2.0",
    summary: "Brings the connection back to its first state.",
    ..ROW
}];
