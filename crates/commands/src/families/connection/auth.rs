//! AUTH.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "auth",
    kind: CommandKind::Local(ConnectionCommand::Auth),
    arity: -2,
    flags: &["noscript", "loading", "stale", "fast", "no_auth", "allow_busy"],
    categories: &["@fast", "@connection"],
    since: "1.0.0",
    summary: "Names a user and a password: there are none.",
    ..ROW
}];
