//! COMMAND.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec, SubcommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "command",
    kind: CommandKind::Local(ConnectionCommand::Command),
    arity: -1,
    flags: &["loading", "stale"],
    categories: &["@slow", "@connection"],
    tips: &["nondeterministic_output_order"],
    since: "2.8.13",
    group: "server",
    summary: "Describes the commands.",
    subcommands: SUBCOMMANDS,
    ..ROW
}];

/// What they have in common: they tell what the table says.
const TABLE: SubcommandSpec = SubcommandSpec {
    name: "",
    arity: 0,
    flags: &["loading", "stale"],
    categories: &["@slow", "@connection"],
    tips: &[],
};

const SUBCOMMANDS: &[SubcommandSpec] = &[
    SubcommandSpec { name: "command|count", arity: 2, ..TABLE },
    SubcommandSpec { name: "command|docs", arity: -2, tips: &["nondeterministic_output_order"], ..TABLE },
    SubcommandSpec { name: "command|getkeys", arity: -4, ..TABLE },
    SubcommandSpec { name: "command|getkeysandflags", arity: -4, ..TABLE },
    SubcommandSpec { name: "command|help", arity: 2, ..TABLE },
    SubcommandSpec { name: "command|info", arity: -2, tips: &["nondeterministic_output_order"], ..TABLE },
    SubcommandSpec { name: "command|list", arity: -2, tips: &["nondeterministic_output_order"], ..TABLE },
];
