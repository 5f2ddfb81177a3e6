//! What a server says of itself: INFO and CONFIG GET.

use core::fmt::Write as _;
use syros_types::WallTime;
use syros_types::limits::VALUE_BYTES_MAX;

/// Where a connection asks about the server it belongs to.
pub trait ServerInfo {
    /// How the server is. Asked for by INFO and CONFIG GET only: it may take a microsecond or ten.
    fn report(&self) -> ServerReport;

    /// CONFIG RESETSTAT: starts the counters of [`ServerReport`] again from zero.
    fn reset_statistics(&self);
}

/// How a server is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerReport {
    /// Version of Syros.
    pub version: String,
    /// Process id.
    pub process_id: u32,
    /// 40 hexadecimal digits that no other run of any server has.
    pub run_id: String,
    /// Port for Redis clients.
    pub tcp_port: u16,
    /// Seconds since the process started.
    pub uptime_seconds: u64,
    /// Redis clients connected.
    pub clients: u64,
    /// Most Redis clients.
    pub clients_max: u64,
    /// Memory that the connections of all clients take, in bytes.
    pub client_memory_bytes: u64,
    /// Most memory that they may take.
    pub client_memory_max: u64,
    /// Connections closed since the start because they held most of it.
    pub clients_evicted: u64,
    /// Connections accepted since the start or the last reset.
    pub connections_received: u64,
    /// Commands received since the start or the last reset.
    pub commands_processed: u64,
    /// Memory of the process, in bytes.
    pub memory_bytes: u64,
    /// Keys stored.
    pub keys: u64,
    /// Keys with an expiry.
    pub keys_with_expiry: u64,
    /// True if an acknowledged update is on disk, false if it is in the memory of several replicas.
    pub fsync: bool,
    /// What this process is in the group: `leader`, `follower`, `gateway`.
    pub role: String,
    /// The protocol's status: `normal`, `no-quorum`, `view-change`, `recovering`, `stopping`.
    pub status: String,
    /// Milliseconds since this process knew of a working majority that it is part of.
    pub silent_ms: u64,
    /// What the disk does: `ok`, `full`, `failed`; empty for a process without one.
    pub disk: &'static str,
    /// Fast quorum mode of the cluster.
    pub fast_quorum: String,
    /// Members of the group.
    pub group_size: u64,
    /// This replica's position in the group; `None` for a process that is no replica.
    pub replica: Option<u8>,
    /// The view.
    pub view: u64,
    /// Position of the view's leader, if somebody leads.
    pub leader: Option<u8>,
    /// Highest committed op number.
    pub commit: u64,
    /// Highest applied op number.
    pub applied: u64,
    /// Updates in the durability log.
    pub durability_log: u64,
    /// Updates that completed in one round trip.
    pub fast_updates: u64,
    /// Updates that were ordered before they completed.
    pub slow_updates: u64,
    /// Reads completed.
    pub reads: u64,
    /// How the operations of this process's Redis clients were answered, each under its name.
    pub answered: Vec<(&'static str, u64)>,
    /// Where the replicas listen for each other, as `host:port`, in the order of their positions.
    pub replica_addresses: Vec<String>,
}

/// The version of Redis whose commands, texts and protocol are implemented here: clients decide by it
/// what they may ask for.
pub(crate) const REDIS_VERSION: &str = "7.0.15";

/// What writes a section's lines.
type Section = fn(&ServerReport, WallTime, &mut String);

/// The sections in Redis's order, by title.
const SECTIONS: [(&str, Section); 8] = [
    ("Server", server),
    ("Clients", clients),
    ("Memory", memory),
    ("Persistence", persistence),
    ("Stats", stats),
    ("Replication", replication),
    ("Keyspace", keyspace),
    ("Syros", syros),
];

/// The text of INFO with these section names; all sections if there are none.
pub(crate) fn info_text(report: &ServerReport, now: WallTime, names: &[&[u8]]) -> String {
    let named = |title: &str| {
        names.iter().any(|name| {
            name.eq_ignore_ascii_case(title.as_bytes())
                || ["all", "default", "everything"]
                    .iter()
                    .any(|all| name.eq_ignore_ascii_case(all.as_bytes()))
        })
    };
    let mut text = String::new();
    for (title, section) in SECTIONS {
        if names.is_empty() || named(title) {
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            text.push_str("# ");
            text.push_str(title);
            text.push_str("\r\n");
            section(report, now, &mut text);
        }
    }
    text
}

fn line(text: &mut String, name: &str, value: impl core::fmt::Display) {
    // Writing to a string cannot fail.
    let _ = write!(text, "{name}:{value}\r\n");
}

fn server(report: &ServerReport, now: WallTime, text: &mut String) {
    line(text, "redis_version", REDIS_VERSION);
    line(text, "redis_mode", "standalone");
    line(text, "syros_version", &report.version);
    line(text, "arch_bits", usize::BITS);
    line(text, "process_id", report.process_id);
    line(text, "run_id", &report.run_id);
    line(text, "tcp_port", report.tcp_port);
    line(text, "server_time_usec", now.0);
    line(text, "uptime_in_seconds", report.uptime_seconds);
    line(text, "uptime_in_days", report.uptime_seconds / 86_400);
}

fn clients(report: &ServerReport, _: WallTime, text: &mut String) {
    line(text, "connected_clients", report.clients);
    line(text, "maxclients", report.clients_max);
    line(text, "blocked_clients", 0);
}

fn memory(report: &ServerReport, _: WallTime, text: &mut String) {
    line(text, "used_memory", report.memory_bytes);
    line(text, "used_memory_rss", report.memory_bytes);
    line(text, "maxmemory", 0);
    line(text, "maxmemory_policy", "noeviction");
    line(text, "mem_clients_normal", report.client_memory_bytes);
    line(text, "mem_clients_limit", report.client_memory_max);
}

fn persistence(report: &ServerReport, _: WallTime, text: &mut String) {
    // Clients wait for 0 before they send commands; this server answers none while it is not ready.
    line(text, "loading", 0);
    line(text, "aof_enabled", u8::from(report.fsync));
}

fn stats(report: &ServerReport, _: WallTime, text: &mut String) {
    line(text, "total_connections_received", report.connections_received);
    line(text, "total_commands_processed", report.commands_processed);
    line(text, "evicted_clients", report.clients_evicted);
}

fn replication(report: &ServerReport, _: WallTime, text: &mut String) {
    // To a Redis client every process is a master: it takes updates, and its reads are never stale.
    line(text, "role", "master");
    line(text, "connected_slaves", 0);
    line(text, "master_replid", &report.run_id);
    line(text, "master_repl_offset", report.commit);
}

fn keyspace(report: &ServerReport, _: WallTime, text: &mut String) {
    if report.keys > 0 {
        let (keys, expires) = (report.keys, report.keys_with_expiry);
        line(text, "db0", format_args!("keys={keys},expires={expires},avg_ttl=0"));
    }
}

fn syros(report: &ServerReport, _: WallTime, text: &mut String) {
    line(text, "replica_role", &report.role);
    line(text, "status", &report.status);
    line(text, "fast_quorum", &report.fast_quorum);
    line(text, "durability", if report.fsync { "fsync" } else { "replicated" });
    line(text, "group_size", report.group_size);
    if let Some(replica) = report.replica {
        line(text, "replica", replica);
    }
    line(text, "view", report.view);
    match report.leader {
        Some(leader) => line(text, "leader", leader),
        None => line(text, "leader", "none"),
    }
    line(text, "quorum_silent_ms", report.silent_ms);
    if !report.disk.is_empty() {
        line(text, "disk", report.disk);
    }
    line(text, "commit", report.commit);
    line(text, "applied", report.applied);
    line(text, "durability_log", report.durability_log);
    line(text, "fast_updates", report.fast_updates);
    line(text, "slow_updates", report.slow_updates);
    line(text, "reads", report.reads);
    for (how, count) in &report.answered {
        line(text, how, *count);
    }
    for (replica, address) in report.replica_addresses.iter().enumerate() {
        line(text, &format!("replica_{replica}_address"), address);
    }
}

/// The settings that CONFIG GET knows: what clients and tools ask for before they start.
pub(crate) fn settings(report: &ServerReport) -> [(&'static str, String); 15] {
    let durable = |yes: &str, no: &str| String::from(if report.fsync { yes } else { no });
    [
        ("appendfsync", durable("always", "no")),
        ("appendonly", durable("yes", "no")),
        ("cluster-enabled", String::from("no")),
        ("databases", String::from("1")),
        ("maxclients", report.clients_max.to_string()),
        ("maxmemory", String::from("0")),
        ("maxmemory-clients", report.client_memory_max.to_string()),
        ("maxmemory-policy", String::from("noeviction")),
        ("notify-keyspace-events", String::new()),
        ("port", report.tcp_port.to_string()),
        ("proto-max-bulk-len", VALUE_BYTES_MAX.to_string()),
        ("requirepass", String::new()),
        ("save", String::new()),
        ("tcp-keepalive", String::from("300")),
        ("timeout", String::from("0")),
    ]
}
