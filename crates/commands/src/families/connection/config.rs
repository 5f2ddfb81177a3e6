//! CONFIG.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec, SubcommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "config",
    kind: CommandKind::Local(ConnectionCommand::Config),
    arity: -2,
    flags: &[],
    categories: &["@slow"],
    since: "2.0.0",
    group: "server",
    summary: "Reads and changes settings of the server.",
    subcommands: SUBCOMMANDS,
    ..ROW
}];

const SUBCOMMANDS: &[SubcommandSpec] = &[
    SubcommandSpec {
        name: "config|get",
        arity: -3,
        flags: &["admin", "noscript", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous"],
        tips: &[],
    },
    SubcommandSpec {
        name: "config|help",
        arity: 2,
        flags: &["loading", "stale"],
        categories: &["@slow"],
        tips: &[],
    },
    SubcommandSpec {
        name: "config|resetstat",
        arity: 2,
        flags: &["admin", "noscript", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous"],
        tips: &[],
    },
    SubcommandSpec {
        name: "config|rewrite",
        arity: 2,
        flags: &["admin", "noscript", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous"],
        tips: &[],
    },
    SubcommandSpec {
        name: "config|set",
        arity: -4,
        flags: &["admin", "noscript", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous"],
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
    },
];
