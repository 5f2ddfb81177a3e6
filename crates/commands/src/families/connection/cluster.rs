//! CLUSTER.

use super::ROW;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec, SubcommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "cluster",
    kind: CommandKind::Local(ConnectionCommand::Cluster),
    arity: -2,
    categories: &["@slow"],
    since: "3.0.0",
    group: "cluster",
    summary: "Is refused: this is no cluster of Redis.",
    subcommands: SUBCOMMANDS,
    ..ROW
}];

const SUBCOMMANDS: &[SubcommandSpec] = &[
    SubcommandSpec { name: "cluster|addslots", arity: -3, flags: &["admin", "stale", "no_async_loading"], categories: &["@admin", "@slow", "@dangerous"], tips: &[] },
    SubcommandSpec { name: "cluster|addslotsrange", arity: -4, flags: &["admin", "stale", "no_async_loading"], categories: &["@admin", "@slow", "@dangerous"], tips: &[] },
    SubcommandSpec { name: "cluster|bumpepoch", arity: 2, flags: &["admin", "stale", "no_async_loading"], categories: &["@admin", "@slow", "@dangerous"], tips: &["nondeterministic_output"] },
    SubcommandSpec { name: "cluster|count-failure-reports", arity: 3, flags: &["admin", "stale"], categories: &["@admin", "@slow", "@dangerous"], tips: &["nondeterministic_output"] },
    SubcommandSpec { name: "cluster|countkeysinslot", arity: 3, flags: &["stale"], categories: &["@slow"], tips: &[] },
    SubcommandSpec { name: "cluster|delslots", arity: -3, flags: &["admin", "stale", "no_async_loading"], categories: &["@admin", "@slow", "@dangerous"], tips: &[] },
    SubcommandSpec { name: "cluster|delslotsrange", arity: -4, flags: &["admin", "stale", "no_async_loading"], categories: &["@admin", "@slow", "@dangerous"], tips: &[] },
    SubcommandSpec { name: "cluster|failover", arity: -2, flags: &["admin", "stale", "no_async_loading"], categories: &["@admin", "@slow", "@dangerous"], tips: &[] },
    SubcommandSpec { name: "cluster|flushslots", arity: 2, flags: &["admin", "stale", "no_async_loading"], categories: &["@admin", "@slow", "@dangerous"], tips: &[] },
    SubcommandSpec { name: "cluster|forget", arity: 3, flags: &["admin", "stale", "no_async_loading"], categories: &["@admin", "@slow", "@dangerous"], tips: &[] },
    SubcommandSpec { name: "cluster|getkeysinslot", arity: 4, flags: &["stale"], categories: &["@slow"], tips: &["nondeterministic_output"] },
    SubcommandSpec { name: "cluster|help", arity: 2, flags: &["loading", "stale"], categories: &["@slow"], tips: &[] },
    SubcommandSpec { name: "cluster|info", arity: 2, flags: &["stale"], categories: &["@slow"], tips: &["nondeterministic_output"] },
    SubcommandSpec { name: "cluster|keyslot", arity: 3, flags: &["stale"], categories: &["@slow"], tips: &[] },
    SubcommandSpec { name: "cluster|links", arity: 2, flags: &["stale"], categories: &["@slow"], tips: &["nondeterministic_output"] },
    SubcommandSpec { name: "cluster|meet", arity: -4, flags: &["admin", "stale", "no_async_loading"], categories: &["@admin", "@slow", "@dangerous"], tips: &[] },
    SubcommandSpec { name: "cluster|myid", arity: 2, flags: &["stale"], categories: &["@slow"], tips: &[] },
    SubcommandSpec { name: "cluster|nodes", arity: 2, flags: &["stale"], categories: &["@slow"], tips: &["nondeterministic_output"] },
    SubcommandSpec { name: "cluster|replicas", arity: 3, flags: &["admin", "stale"], categories: &["@admin", "@slow", "@dangerous"], tips: &["nondeterministic_output"] },
    SubcommandSpec { name: "cluster|replicate", arity: 3, flags: &["admin", "stale", "no_async_loading"], categories: &["@admin", "@slow", "@dangerous"], tips: &[] },
    SubcommandSpec { name: "cluster|reset", arity: -2, flags: &["admin", "noscript", "stale"], categories: &["@admin", "@slow", "@dangerous"], tips: &[] },
    SubcommandSpec { name: "cluster|saveconfig", arity: 2, flags: &["admin", "stale", "no_async_loading"], categories: &["@admin", "@slow", "@dangerous"], tips: &[] },
    SubcommandSpec { name: "cluster|set-config-epoch", arity: 3, flags: &["admin", "stale", "no_async_loading"], categories: &["@admin", "@slow", "@dangerous"], tips: &[] },
    SubcommandSpec { name: "cluster|setslot", arity: -4, flags: &["admin", "stale", "no_async_loading"], categories: &["@admin", "@slow", "@dangerous"], tips: &[] },
    SubcommandSpec { name: "cluster|shards", arity: 2, flags: &["stale"], categories: &["@slow"], tips: &["nondeterministic_output"] },
    SubcommandSpec { name: "cluster|slaves", arity: 3, flags: &["admin", "stale"], categories: &["@admin", "@slow", "@dangerous"], tips: &["nondeterministic_output"] },
    SubcommandSpec { name: "cluster|slots", arity: 2, flags: &["stale"], categories: &["@slow"], tips: &["nondeterministic_output"] },
];
