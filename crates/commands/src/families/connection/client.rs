//! CLIENT.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec, SubcommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "client",
    kind: CommandKind::Local(ConnectionCommand::Client),
    arity: -2,
    flags: &[],
    categories: &["@slow"],
    since: "2.4.0",
    summary: "Concerns this connection: its name, its id, its settings.",
    subcommands: SUBCOMMANDS,
    ..ROW
}];

/// What most of them have in common: they concern the connection that sends them.
const OWN: SubcommandSpec = SubcommandSpec {
    name: "",
    arity: 0,
    flags: &["noscript", "loading", "stale"],
    categories: &["@slow", "@connection"],
    tips: &[],
};

const SUBCOMMANDS: &[SubcommandSpec] = &[
    SubcommandSpec { name: "client|blind", arity: 3, ..OWN },
    SubcommandSpec { name: "client|caching", arity: 3, ..OWN },
    SubcommandSpec { name: "client|getname", arity: 2, ..OWN },
    SubcommandSpec { name: "client|getredir", arity: 2, ..OWN },
    SubcommandSpec { name: "client|help", arity: 2, flags: &["loading", "stale"], ..OWN },
    SubcommandSpec { name: "client|id", arity: 2, ..OWN },
    SubcommandSpec { name: "client|info", arity: 2, tips: &["nondeterministic_output"], ..OWN },
    SubcommandSpec {
        name: "client|kill",
        arity: -3,
        flags: &["admin", "noscript", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous", "@connection"],
        tips: &[],
    },
    SubcommandSpec {
        name: "client|list",
        arity: -2,
        flags: &["admin", "noscript", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous", "@connection"],
        tips: &["nondeterministic_output"],
    },
    SubcommandSpec {
        name: "client|no-evict",
        arity: 3,
        flags: &["admin", "noscript", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous", "@connection"],
        tips: &[],
    },
    SubcommandSpec { name: "client|no-touch", arity: 3, ..OWN },
    SubcommandSpec {
        name: "client|pause",
        arity: -3,
        flags: &["admin", "noscript", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous", "@connection"],
        tips: &[],
    },
    SubcommandSpec { name: "client|reply", arity: 3, ..OWN },
    SubcommandSpec { name: "client|setinfo", arity: 4, ..OWN },
    SubcommandSpec { name: "client|setname", arity: 3, ..OWN },
    SubcommandSpec { name: "client|tracking", arity: -3, ..OWN },
    SubcommandSpec { name: "client|trackinginfo", arity: 2, ..OWN },
    SubcommandSpec {
        name: "client|unblock",
        arity: -3,
        flags: &["admin", "noscript", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous", "@connection"],
        tips: &[],
    },
    SubcommandSpec {
        name: "client|unpause",
        arity: 2,
        flags: &["admin", "noscript", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous", "@connection"],
        tips: &[],
    },
];
