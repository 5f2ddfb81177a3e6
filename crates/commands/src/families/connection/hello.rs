//! HELLO.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "hello",
    kind: CommandKind::Local(ConnectionCommand::Hello),
    arity: -1,
    flags: &["noscript", "loading", "stale", "fast", "no_auth", "allow_busy"],
    categories: &["@fast", "@connection"],
    since: "6.0.0",
    summary: "Chooses the protocol version and introduces the server.",
    ..ROW
}];
