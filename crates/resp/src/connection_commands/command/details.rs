//! What `COMMAND INFO` of Redis 7.0 says of a command beyond its row in the table: made from the answers of redis-server
//! 7.0, with which a test compares it.

/// Of one command.
pub(super) struct Details {
    /// Its name.
    pub(super) name: &'static str,
    /// What proxies and clients of a cluster may want to know.
    pub(super) tips: &'static [&'static str],
    /// What it does to each of its keys, in the order of the key specifications.
    pub(super) keys: &'static [&'static [&'static str]],
    /// An explanation of that.
    pub(super) notes: &'static str,
}

/// Of one subcommand.
pub(super) struct SubcommandInfo {
    /// The name of its group, a bar, and its own.
    pub(super) name: &'static str,
    pub(super) arity: i8,
    pub(super) flags: &'static [&'static str],
    pub(super) categories: &'static [&'static str],
    pub(super) tips: &'static [&'static str],
}

/// The commands of which there is something to say, in the order of their names.
pub(super) const DETAILS: [Details; 46] = [
    Details { name: "append", tips: &[], keys: &[&["RW", "insert"]], notes: "" },
    Details { name: "command", tips: &["nondeterministic_output_order"], keys: &[], notes: "" },
    Details {
        name: "dbsize",
        tips: &["request_policy:all_shards", "response_policy:agg_sum"],
        keys: &[],
        notes: "",
    },
    Details { name: "decr", tips: &[], keys: &[&["RW", "access", "update"]], notes: "" },
    Details { name: "decrby", tips: &[], keys: &[&["RW", "access", "update"]], notes: "" },
    Details {
        name: "del",
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        keys: &[&["RM", "delete"]],
        notes: "",
    },
    Details {
        name: "exists",
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        keys: &[&["RO"]],
        notes: "",
    },
    Details { name: "expire", tips: &[], keys: &[&["RW", "update"]], notes: "" },
    Details { name: "expireat", tips: &[], keys: &[&["RW", "update"]], notes: "" },
    Details { name: "expiretime", tips: &[], keys: &[&["RO", "access"]], notes: "" },
    Details {
        name: "flushall",
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        keys: &[],
        notes: "",
    },
    Details {
        name: "flushdb",
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        keys: &[],
        notes: "",
    },
    Details { name: "get", tips: &[], keys: &[&["RO", "access"]], notes: "" },
    Details { name: "getdel", tips: &[], keys: &[&["RW", "access", "delete"]], notes: "" },
    Details {
        name: "getex",
        tips: &[],
        keys: &[&["RW", "access", "update"]],
        notes: "RW and UPDATE because it changes the TTL",
    },
    Details { name: "getrange", tips: &[], keys: &[&["RO", "access"]], notes: "" },
    Details { name: "getset", tips: &[], keys: &[&["RW", "access", "update"]], notes: "" },
    Details { name: "incr", tips: &[], keys: &[&["RW", "access", "update"]], notes: "" },
    Details { name: "incrby", tips: &[], keys: &[&["RW", "access", "update"]], notes: "" },
    Details { name: "incrbyfloat", tips: &[], keys: &[&["RW", "access", "update"]], notes: "" },
    Details {
        name: "info",
        tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
        keys: &[],
        notes: "",
    },
    Details {
        name: "keys",
        tips: &["request_policy:all_shards", "nondeterministic_output_order"],
        keys: &[],
        notes: "",
    },
    Details { name: "mget", tips: &["request_policy:multi_shard"], keys: &[&["RO", "access"]], notes: "" },
    Details {
        name: "mset",
        tips: &["request_policy:multi_shard", "response_policy:all_succeeded"],
        keys: &[&["OW", "update"]],
        notes: "",
    },
    Details {
        name: "msetnx",
        tips: &["request_policy:multi_shard", "response_policy:agg_min"],
        keys: &[&["OW", "insert"]],
        notes: "",
    },
    Details { name: "persist", tips: &[], keys: &[&["RW", "update"]], notes: "" },
    Details { name: "pexpire", tips: &[], keys: &[&["RW", "update"]], notes: "" },
    Details { name: "pexpireat", tips: &[], keys: &[&["RW", "update"]], notes: "" },
    Details { name: "pexpiretime", tips: &[], keys: &[&["RO", "access"]], notes: "" },
    Details {
        name: "ping",
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        keys: &[],
        notes: "",
    },
    Details { name: "psetex", tips: &[], keys: &[&["OW", "update"]], notes: "" },
    Details { name: "pttl", tips: &["nondeterministic_output"], keys: &[&["RO", "access"]], notes: "" },
    Details {
        name: "randomkey",
        tips: &["request_policy:all_shards", "nondeterministic_output"],
        keys: &[],
        notes: "",
    },
    Details { name: "rename", tips: &[], keys: &[&["RW", "access", "delete"], &["OW", "update"]], notes: "" },
    Details {
        name: "renamenx",
        tips: &[],
        keys: &[&["RW", "access", "delete"], &["OW", "insert"]],
        notes: "",
    },
    Details {
        name: "scan",
        tips: &["nondeterministic_output", "request_policy:special"],
        keys: &[],
        notes: "",
    },
    Details {
        name: "set",
        tips: &[],
        keys: &[&["RW", "access", "update", "variable_flags"]],
        notes: "RW and ACCESS due to the optional `GET` argument",
    },
    Details { name: "setex", tips: &[], keys: &[&["OW", "update"]], notes: "" },
    Details { name: "setnx", tips: &[], keys: &[&["OW", "insert"]], notes: "" },
    Details { name: "setrange", tips: &[], keys: &[&["RW", "update"]], notes: "" },
    Details { name: "strlen", tips: &[], keys: &[&["RO"]], notes: "" },
    Details { name: "substr", tips: &[], keys: &[&["RO", "access"]], notes: "" },
    Details { name: "time", tips: &["nondeterministic_output"], keys: &[], notes: "" },
    Details { name: "ttl", tips: &["nondeterministic_output"], keys: &[&["RO", "access"]], notes: "" },
    Details { name: "type", tips: &[], keys: &[&["RO"]], notes: "" },
    Details {
        name: "unlink",
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        keys: &[&["RM", "delete"]],
        notes: "",
    },
];

/// The subcommands that there are, in the order of their names.
pub(super) const SUBCOMMANDS: [SubcommandInfo; 19] = [
    SubcommandInfo {
        name: "client|getname",
        arity: 2,
        flags: &["noscript", "loading", "stale"],
        categories: &["@slow", "@connection"],
        tips: &[],
    },
    SubcommandInfo {
        name: "client|help",
        arity: 2,
        flags: &["loading", "stale"],
        categories: &["@slow", "@connection"],
        tips: &[],
    },
    SubcommandInfo {
        name: "client|id",
        arity: 2,
        flags: &["noscript", "loading", "stale"],
        categories: &["@slow", "@connection"],
        tips: &[],
    },
    SubcommandInfo {
        name: "client|info",
        arity: 2,
        flags: &["noscript", "loading", "stale"],
        categories: &["@slow", "@connection"],
        tips: &["nondeterministic_output"],
    },
    SubcommandInfo {
        name: "client|no-evict",
        arity: 3,
        flags: &["admin", "noscript", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous", "@connection"],
        tips: &[],
    },
    SubcommandInfo {
        name: "client|setinfo",
        arity: 4,
        flags: &["noscript", "loading", "stale"],
        categories: &["@slow", "@connection"],
        tips: &[],
    },
    SubcommandInfo {
        name: "client|setname",
        arity: 3,
        flags: &["noscript", "loading", "stale"],
        categories: &["@slow", "@connection"],
        tips: &[],
    },
    SubcommandInfo {
        name: "command|count",
        arity: 2,
        flags: &["loading", "stale"],
        categories: &["@slow", "@connection"],
        tips: &[],
    },
    SubcommandInfo {
        name: "command|docs",
        arity: -2,
        flags: &["loading", "stale"],
        categories: &["@slow", "@connection"],
        tips: &["nondeterministic_output_order"],
    },
    SubcommandInfo {
        name: "command|getkeys",
        arity: -4,
        flags: &["loading", "stale"],
        categories: &["@slow", "@connection"],
        tips: &[],
    },
    SubcommandInfo {
        name: "command|getkeysandflags",
        arity: -4,
        flags: &["loading", "stale"],
        categories: &["@slow", "@connection"],
        tips: &[],
    },
    SubcommandInfo {
        name: "command|help",
        arity: 2,
        flags: &["loading", "stale"],
        categories: &["@slow", "@connection"],
        tips: &[],
    },
    SubcommandInfo {
        name: "command|info",
        arity: -2,
        flags: &["loading", "stale"],
        categories: &["@slow", "@connection"],
        tips: &["nondeterministic_output_order"],
    },
    SubcommandInfo {
        name: "command|list",
        arity: -2,
        flags: &["loading", "stale"],
        categories: &["@slow", "@connection"],
        tips: &["nondeterministic_output_order"],
    },
    SubcommandInfo {
        name: "config|get",
        arity: -3,
        flags: &["admin", "noscript", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous"],
        tips: &[],
    },
    SubcommandInfo {
        name: "config|help",
        arity: 2,
        flags: &["loading", "stale"],
        categories: &["@slow"],
        tips: &[],
    },
    SubcommandInfo {
        name: "config|resetstat",
        arity: 2,
        flags: &["admin", "noscript", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous"],
        tips: &[],
    },
    SubcommandInfo {
        name: "config|rewrite",
        arity: 2,
        flags: &["admin", "noscript", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous"],
        tips: &[],
    },
    SubcommandInfo {
        name: "config|set",
        arity: -4,
        flags: &["admin", "noscript", "loading", "stale"],
        categories: &["@admin", "@slow", "@dangerous"],
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
    },
];
