//! SLOWLOG.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec, SubcommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "slowlog",
    kind: CommandKind::Local(ConnectionCommand::SlowLog),
    arity: -2,
    categories: &["@slow"],
    since: "2.2.12",
    group: "server",
    summary: "Tells which commands took long.",
    subcommands: SUBCOMMANDS,
    ..ROW
}];

const SUBCOMMANDS: &[SubcommandSpec] = &[
    SubcommandSpec {
        name: "slowlog|get",
        arity: -2,
        flags: &["admin", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous"],
        tips: &["request_policy:all_nodes", "nondeterministic_output"],
    },
    SubcommandSpec {
        name: "slowlog|help",
        arity: 2,
        flags: &["loading", "stale"],
        categories: &["@slow"],
        tips: &[],
    },
    SubcommandSpec {
        name: "slowlog|len",
        arity: 2,
        flags: &["admin", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous"],
        tips: &["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"],
    },
    SubcommandSpec {
        name: "slowlog|reset",
        arity: 2,
        flags: &["admin", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous"],
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
    },
];
