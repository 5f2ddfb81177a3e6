//! MEMORY.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec, SubcommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "memory",
    kind: CommandKind::Local(ConnectionCommand::Memory),
    arity: -2,
    categories: &["@slow"],
    since: "4.0.0",
    group: "server",
    summary: "Tells what memory is used for.",
    subcommands: SUBCOMMANDS,
    ..ROW
}];

const SUBCOMMANDS: &[SubcommandSpec] = &[
    SubcommandSpec {
        name: "memory|doctor",
        arity: 2,
        flags: &[],
        categories: &["@slow"],
        tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
    },
    SubcommandSpec {
        name: "memory|help",
        arity: 2,
        flags: &["loading", "stale"],
        categories: &["@slow"],
        tips: &[],
    },
    SubcommandSpec {
        name: "memory|malloc-stats",
        arity: 2,
        flags: &[],
        categories: &["@slow"],
        tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
    },
    SubcommandSpec {
        name: "memory|purge",
        arity: 2,
        flags: &[],
        categories: &["@slow"],
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
    },
    SubcommandSpec {
        name: "memory|stats",
        arity: 2,
        flags: &[],
        categories: &["@slow"],
        tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
    },
];
