//! BLIND, which makes of another command an update without a reply. It is no operation of its own.

use super::ROW;
use crate::families::specification::{CommandKind, CommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "blind",
    kind: CommandKind::Blind,
    arity: -2,
    flags: &["write", "denyoom", "movablekeys"],
    categories: &["@keyspace", "@write", "@fast"],
    since: "7.0.0",
    summary: "Runs an update without its reply, in one round trip: BLIND <command> [argument ...].",
    ..ROW
}];
