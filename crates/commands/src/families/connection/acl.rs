//! ACL: its subcommands. Those that concern all nodes are operations, and have a row in `users/set.rs`.

use crate::families::specification::{CommandSpec, SubcommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[];

pub(crate) const SUBCOMMANDS: &[SubcommandSpec] = &[
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
