//! PUBSUB.

use super::MESSAGES;
use crate::families::ConnectionCommand;
use crate::families::specification::{CommandKind, CommandSpec, SubcommandSpec};

pub(crate) const SPECS: &[CommandSpec] = &[CommandSpec {
    name: "pubsub",
    kind: CommandKind::Local(ConnectionCommand::PubSub),
    arity: -2,
    flags: &[],
    categories: &["@slow"],
    since: "2.8.0",
    summary: "Tells which channels have subscribers, and how many, at all nodes.",
    subcommands: SUBCOMMANDS,
    ..MESSAGES
}];

/// What most of them have in common: they look at subscriptions.
const LOOK: SubcommandSpec = SubcommandSpec {
    name: "",
    arity: -2,
    flags: &["pubsub", "loading", "stale"],
    categories: &["@pubsub", "@slow"],
    tips: &[],
};

const SUBCOMMANDS: &[SubcommandSpec] = &[
    SubcommandSpec { name: "pubsub|channels", ..LOOK },
    SubcommandSpec {
        name: "pubsub|help",
        arity: 2,
        flags: &["loading", "stale"],
        categories: &["@slow"],
        tips: &[],
    },
    SubcommandSpec { name: "pubsub|numpat", arity: 2, ..LOOK },
    SubcommandSpec { name: "pubsub|numsub", ..LOOK },
    SubcommandSpec { name: "pubsub|shardchannels", ..LOOK },
    SubcommandSpec { name: "pubsub|shardnumsub", ..LOOK },
];
