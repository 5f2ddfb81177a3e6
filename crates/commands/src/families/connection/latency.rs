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

/// What the rows of subcommands have in common.
const SUBCOMMAND: SubcommandSpec = SubcommandSpec {
    name: "",
    arity: 2,
    flags: &["admin", "noscript", "loading", "stale"],
    categories: &["@admin", "@slow", "@dangerous"],
    tips: &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"],
};

const SUBCOMMANDS: &[SubcommandSpec] = &[
    SubcommandSpec { name: "latency|doctor", ..SUBCOMMAND },
    SubcommandSpec { name: "latency|graph", arity: 3, ..SUBCOMMAND },
    SubcommandSpec {
        name: "latency|help",
        flags: &["loading", "stale"],
        categories: &["@slow"],
        tips: &[],
        ..SUBCOMMAND
    },
    SubcommandSpec { name: "latency|histogram", arity: -2, ..SUBCOMMAND },
    SubcommandSpec { name: "latency|history", arity: 3, ..SUBCOMMAND },
    SubcommandSpec { name: "latency|latest", ..SUBCOMMAND },
    SubcommandSpec {
        name: "latency|reset",
        arity: -2,
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        ..SUBCOMMAND
    },
];
