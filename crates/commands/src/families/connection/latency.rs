//! LATENCY.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec, SubcommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "latency",
    kind: CommandKind::Local(ConnectionCommand::Latency),
    arity: -2,
    categories: &["@slow"],
    since: "2.8.13",
    group: "server",
    summary: "Tells when commands took long.",
    subcommands: SUBCOMMANDS,
    ..ROW
}];

const SUBCOMMANDS: &[SubcommandSpec] = &[
    SubcommandSpec {
        name: "latency|doctor",
        arity: 2,
        flags: &["admin", "noscript", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous"],
        tips: &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"],
    },
    SubcommandSpec {
        name: "latency|graph",
        arity: 3,
        flags: &["admin", "noscript", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous"],
        tips: &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"],
    },
    SubcommandSpec {
        name: "latency|help",
        arity: 2,
        flags: &["loading", "stale"],
        categories: &["@slow"],
        tips: &[],
    },
    SubcommandSpec {
        name: "latency|histogram",
        arity: -2,
        flags: &["admin", "noscript", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous"],
        tips: &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"],
    },
    SubcommandSpec {
        name: "latency|history",
        arity: 3,
        flags: &["admin", "noscript", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous"],
        tips: &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"],
    },
    SubcommandSpec {
        name: "latency|latest",
        arity: 2,
        flags: &["admin", "noscript", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous"],
        tips: &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"],
    },
    SubcommandSpec {
        name: "latency|reset",
        arity: -2,
        flags: &["admin", "noscript", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous"],
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
    },
];
