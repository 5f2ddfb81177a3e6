//! Commands that a connection answers by itself. Here is only what the table says of them.

pub(crate) mod acl;
pub(crate) mod auth;
pub(crate) mod bgrewriteaof;
pub(crate) mod bgsave;
pub(crate) mod client;
pub(crate) mod cluster;
pub(crate) mod command;
pub(crate) mod config;
pub(crate) mod debug;
pub(crate) mod discard;
pub(crate) mod echo;
pub(crate) mod exec;
pub(crate) mod failover;
pub(crate) mod hello;
pub(crate) mod help;
pub(crate) mod info;
pub(crate) mod lastsave;
pub(crate) mod latency;
pub(crate) mod lolwut;
pub(crate) mod memory;
pub(crate) mod module;
pub(crate) mod monitor;
pub(crate) mod multi;
pub(crate) mod ping;
pub(crate) mod psubscribe;
pub(crate) mod psync;
pub(crate) mod publish;
pub(crate) mod pubsub;
pub(crate) mod punsubscribe;
pub(crate) mod quit;
pub(crate) mod replicaof;
pub(crate) mod reset;
pub(crate) mod role;
pub(crate) mod save;
pub(crate) mod select;
pub(crate) mod shutdown;
pub(crate) mod slaveof;
pub(crate) mod slowlog;
pub(crate) mod spublish;
pub(crate) mod ssubscribe;
pub(crate) mod subscribe;
pub(crate) mod sunsubscribe;
pub(crate) mod sync;
pub(crate) mod time;
pub(crate) mod unsubscribe;
pub(crate) mod unwatch;
pub(crate) mod wait;
pub(crate) mod waitaof;
pub(crate) mod watch;

use super::specification::CommandSpec;

/// What the rows of this family have in common.
const ROW: CommandSpec = CommandSpec { group: "connection", ..CommandSpec::ROW };

/// What the rows of transactions have in common.
const TRANSACTION: CommandSpec = CommandSpec {
    arity: 1,
    flags: &["noscript", "loading", "stale", "fast", "allow_busy"],
    categories: &["@fast", "@transaction"],
    group: "transactions",
    ..ROW
};

/// What the rows of messages between clients have in common.
const MESSAGES: CommandSpec = CommandSpec {
    flags: &["pubsub", "noscript", "loading", "stale"],
    categories: &["@pubsub", "@slow"],
    group: "pubsub",
    ..ROW
};

/// Shard channels stand where keys do, so that clients of a cluster find their node, and are none.
const NOT_KEYS: &[&[&str]] = &[&["not_key"]];
