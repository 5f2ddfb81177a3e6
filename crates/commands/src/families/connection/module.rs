//! MODULE.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec, SubcommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "module",
    kind: CommandKind::Local(ConnectionCommand::Module),
    arity: -2,
    categories: &["@slow"],
    since: "4.0.0",
    group: "server",
    summary: "Lists the modules: there are none.",
    subcommands: SUBCOMMANDS,
    ..ROW
}];

const SUBCOMMANDS: &[SubcommandSpec] = &[
    SubcommandSpec {
        name: "module|help",
        arity: 2,
        flags: &["loading", "stale"],
        categories: &["@slow"],
        tips: &[],
    },
    SubcommandSpec {
        name: "module|list",
        arity: 2,
        flags: &["admin", "noscript"],
        categories: &["@admin", "@slow", "@dangerous"],
        tips: &["nondeterministic_output_order"],
    },
    SubcommandSpec {
        name: "module|load",
        arity: -3,
        flags: &["admin", "noscript", "no_async_loading"],
        categories: &["@admin", "@slow", "@dangerous"],
        tips: &[],
    },
    SubcommandSpec {
        name: "module|loadex",
        arity: -3,
        flags: &["admin", "noscript", "no_async_loading"],
        categories: &["@admin", "@slow", "@dangerous"],
        tips: &[],
    },
    SubcommandSpec {
        name: "module|unload",
        arity: 3,
        flags: &["admin", "noscript", "no_async_loading"],
        categories: &["@admin", "@slow", "@dangerous"],
        tips: &[],
    },
];
