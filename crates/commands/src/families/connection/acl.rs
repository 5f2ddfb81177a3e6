//! ACL.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec, SubcommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "acl",
    kind: CommandKind::Local(ConnectionCommand::Acl),
    arity: -2,
    categories: &["@slow"],
    since: "6.0.0",
    group: "server",
    summary: "Describes the users: there is only the default user, who may do everything.",
    subcommands: SUBCOMMANDS,
    ..ROW
}];

const SUBCOMMANDS: &[SubcommandSpec] = &[
    SubcommandSpec {
        name: "acl|cat",
        arity: -2,
        flags: &["noscript", "loading", "stale"],
        categories: &["@slow"],
        tips: &[],
    },
    SubcommandSpec {
        name: "acl|deluser",
        arity: -3,
        flags: &["admin", "noscript", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous"],
        tips: &[],
    },
    SubcommandSpec {
        name: "acl|dryrun",
        arity: -4,
        flags: &["admin", "noscript", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous"],
        tips: &[],
    },
    SubcommandSpec {
        name: "acl|genpass",
        arity: -2,
        flags: &["noscript", "loading", "stale"],
        categories: &["@slow"],
        tips: &[],
    },
    SubcommandSpec {
        name: "acl|getuser",
        arity: 3,
        flags: &["admin", "noscript", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous"],
        tips: &[],
    },
    SubcommandSpec {
        name: "acl|help",
        arity: 2,
        flags: &["loading", "stale"],
        categories: &["@slow"],
        tips: &[],
    },
    SubcommandSpec {
        name: "acl|list",
        arity: 2,
        flags: &["admin", "noscript", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous"],
        tips: &[],
    },
    SubcommandSpec {
        name: "acl|load",
        arity: 2,
        flags: &["admin", "noscript", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous"],
        tips: &[],
    },
    SubcommandSpec {
        name: "acl|log",
        arity: -2,
        flags: &["admin", "noscript", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous"],
        tips: &[],
    },
    SubcommandSpec {
        name: "acl|save",
        arity: 2,
        flags: &["admin", "noscript", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous"],
        tips: &[],
    },
    SubcommandSpec {
        name: "acl|setuser",
        arity: -3,
        flags: &["admin", "noscript", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous"],
        tips: &[],
    },
    SubcommandSpec {
        name: "acl|users",
        arity: 2,
        flags: &["admin", "noscript", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous"],
        tips: &[],
    },
    SubcommandSpec {
        name: "acl|whoami",
        arity: 2,
        flags: &["noscript", "loading", "stale"],
        categories: &["@slow"],
        tips: &[],
    },
];
