//! What a server says of itself: INFO and CONFIG GET.

use crate::statistics::Statistics;
use core::fmt::Write as _;
use syros_types::{Database, EvictionSettings, WallTime};

/// Where a connection asks about the server it belongs to.
pub trait ServerInfo {
    /// How the server is. Asked for by INFO and CONFIG GET only: it may take a microsecond or ten.
    fn report(&self) -> ServerReport;

    /// True if the numbers of keys in [`ServerInfo::report`] are those of the last count, and another count has to come
    /// before INFO can tell them: see [`Connection::takes_count`](crate::Connection::takes_count).
    fn has_to_count_keys(&self) -> bool {
        false
    }

    /// CONFIG SET maxmemory: the data of this server may take so many bytes of memory from now on, without a limit if
    /// that is 0.
    ///
    /// # Errors
    /// Why it cannot be set here.
    fn set_maxmemory(&self, _bytes: u64) -> Result<(), &'static str> {
        Err("this server keeps no data")
    }

    /// CONFIG SET maxmemory-policy, maxmemory-samples, lfu-log-factor or lfu-decay-time: what happens from now on when the
    /// data has reached its limit.
    ///
    /// # Errors
    /// Why it cannot be set here.
    fn set_eviction(&self, _settings: EvictionSettings) -> Result<(), &'static str> {
        Err("this server keeps no data")
    }

    /// CONFIG SET maxclients: so many Redis clients may be connected from now on.
    ///
    /// # Errors
    /// Why it cannot be set here.
    fn set_clients_max(&self, _clients: u64) -> Result<(), &'static str> {
        Err("this server has a fixed number of clients")
    }

    /// CONFIG SET maxclients-per-address: so many clients of one kind may be connected from one address from now on; any
    /// number, if that is 0.
    ///
    /// # Errors
    /// Why it cannot be set here.
    fn set_clients_per_address_max(&self, _clients: u64) -> Result<(), &'static str> {
        Err("this server has a fixed number of clients")
    }

    /// Fills bytes with what nobody can guess, for ACL GENPASS. False if the server has no source of that.
    fn fill_with_chance(&self, _bytes: &mut [u8]) -> bool {
        false
    }

    /// CONFIG RESETSTAT: starts the counters of [`ServerReport`] again from zero.
    fn reset_statistics(&self);
}

/// What a server knows of a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatabaseReport {
    /// Keys stored.
    pub keys: u64,
    /// Keys with an expiry.
    pub keys_with_expiry: u64,
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
    /// Port for Redis clients that speak TLS; 0: none.
    pub tls_port: u16,
    /// When the certificate of the process is no longer valid, in seconds since 1970; `None` without TLS.
    pub certificate_expires: Option<i64>,
    /// Seconds since the process started.
    pub uptime_seconds: u64,
    /// It reads back what its disk holds, and takes no commands yet.
    pub is_loading: bool,
    /// It cannot tell whether the users have changed: commands that the group executes wait, or are refused.
    pub users_outdated: bool,
    /// Redis clients connected.
    pub clients: u64,
    /// Most Redis clients.
    pub clients_max: u64,
    /// Most clients of one kind from one address; 0 without a limit.
    pub clients_per_address_max: u64,
    /// Memory that the connections of all clients take, in bytes.
    pub client_memory_bytes: u64,
    /// Most memory that they may take.
    pub client_memory_max: u64,
    /// Connections closed since the start because they held most of it.
    pub clients_evicted: u64,
    /// Channels that clients of this process subscribe to.
    pub pubsub_channels: u64,
    /// Patterns that they subscribe to.
    pub pubsub_patterns: u64,
    /// Shard channels that they subscribe to.
    pub pubsubshard_channels: u64,
    /// Connections closed since the start because they did not take the messages that they subscribe to.
    pub subscribers_closed: u64,
    /// Connections accepted since the start or the last reset.
    pub connections_received: u64,
    /// Connections refused since the start or the last reset, because there were as many as may be.
    pub connections_rejected: u64,
    /// Connections refused since the start or the last reset, because there were as many from their address as may be.
    /// Those of Redis clients count as rejected above, too.
    pub connections_rejected_by_address: u64,
    /// Commands received since the start or the last reset.
    pub commands_processed: u64,
    /// Memory of the process, in bytes.
    pub memory_bytes: u64,
    /// Memory that the data takes, in bytes, of an engine that keeps it in memory.
    pub data_bytes: Option<u64>,
    /// Most memory that the data may take; 0 without a limit.
    pub maxmemory: u64,
    /// What happens when it takes as many.
    pub eviction: EvictionSettings,
    /// Bytes free on the disk, beside the reserve.
    pub disk_free_bytes: u64,
    /// Bytes in reserve, and so many are to be free beside them.
    pub disk_reserve_bytes: u64,
    /// The disk is nearly full: updates that make the data grow are refused.
    pub disk_is_short: bool,
    /// A backup that ends with this log entry, or a later one, can be continued with what this node has.
    pub oldest_entry: u64,
    /// Of each database, by its number.
    pub databases: [DatabaseReport; Database::COUNT],
    /// Keys that have expired since the start, in this process's replica.
    pub keys_expired: u64,
    /// Keys that have gone because memory was short, in this process's replica.
    pub keys_evicted: u64,
    /// Most memory that the process has had, in bytes.
    pub memory_peak_bytes: u64,
    /// Memory of the machine, in bytes.
    pub memory_total_bytes: u64,
    /// Processor time of this process in the system and outside it, in milliseconds.
    pub cpu_millis: [u64; 2],
    /// The operating system, its version, and the processor's architecture.
    pub os: String,
    /// True if an acknowledged update is on disk, false if it is in the memory of several replicas.
    pub fsync: bool,
    /// What this process is in the group: `leader`, `follower`, `gateway`.
    pub role: String,
    /// The protocol's status: `normal`, `no-quorum`, `view-change`, `recovering`, `stopping`.
    pub status: String,
    /// Milliseconds since this process knew of a working majority that it is part of.
    pub silent_ms: u64,
    /// What the disk does: `ok`, `full`, `missing`, `refusing`, `failed`; empty for a process without one.
    pub disk: &'static str,
    /// Files that can still be made on its file system; 0 where that has no limit.
    pub disk_free_inodes: u64,
    /// Fast quorum mode of the cluster.
    pub fast_quorum: String,
    /// Replicas that the view counts as active, where not all have to be.
    pub active: Option<String>,
    /// Members of the group.
    pub group_size: u64,
    /// This replica's position in the group; `None` for a process that is no replica.
    pub replica: Option<u8>,
    /// The number of the view.
    pub view: u64,
    /// The epoch of the configuration that the view is of: it grows with each node that is replaced.
    pub epoch: u64,
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
    /// Microseconds from this process to a replica and back, where it has had an answer from it lately: the replica's
    /// position, and the time.
    pub round_trips: Vec<(u8, u64)>,
    /// Where the replicas listen for each other, as `host:port`, in the order of their positions.
    pub replica_addresses: Vec<String>,
}

/// The version of Redis whose commands, texts and protocol are implemented here: clients decide by it
/// what they may ask for.
pub(crate) const REDIS_VERSION: &str = "7.0.15";

/// What writes a section's lines.
type Section = fn(&ServerReport, &Statistics, WallTime, &mut String);

/// The sections in Redis's order, by title.
const SECTIONS: [(&str, Section); 13] = [
    ("Server", server),
    ("Clients", clients),
    ("Memory", memory),
    ("Persistence", persistence),
    ("Stats", stats),
    ("Replication", replication),
    ("CPU", cpu),
    ("Commandstats", |_, statistics, _, text| statistics.write_commands(text)),
    ("Errorstats", |_, statistics, _, text| statistics.write_errors(text)),
    ("Latencystats", |_, statistics, _, text| statistics.write_latencies(text)),
    ("Cluster", |_, _, _, text| line(text, "cluster_enabled", 0)),
    ("Keyspace", keyspace),
    ("Syros", syros),
];

/// True if INFO with these section names tells the numbers of keys.
pub(crate) fn tells_keys(names: &[&[u8]]) -> bool {
    const TELLING: [&str; 4] = ["keyspace", "all", "everything", "default"];
    let is_telling = |name: &&[u8]| TELLING.iter().any(|word| name.eq_ignore_ascii_case(word.as_bytes()));
    names.is_empty() || names.iter().any(is_telling)
}

/// Sections that are left out if none are named: they are long.
const LONG: [&str; 2] = ["Commandstats", "Latencystats"];

/// The text of INFO with these section names; all sections that are not long if there are none.
pub(crate) fn info_text(
    report: &ServerReport,
    statistics: &Statistics,
    now: WallTime,
    names: &[&[u8]],
) -> String {
    let named = |title: &str| {
        names.iter().any(|name| {
            let is = |word: &str| name.eq_ignore_ascii_case(word.as_bytes());
            is(title) || is("all") || is("everything") || (is("default") && !LONG.contains(&title))
        })
    };
    let mut text = String::new();
    for (title, section) in SECTIONS {
        if named(title) || (names.is_empty() && !LONG.contains(&title)) {
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            text.push_str("# ");
            text.push_str(title);
            text.push_str("\r\n");
            section(report, statistics, now, &mut text);
        }
    }
    text
}

fn line(text: &mut String, name: &str, value: impl core::fmt::Display) {
    // Writing to a string cannot fail.
    let _ = write!(text, "{name}:{value}\r\n");
}

/// A number of bytes as Redis shows it to people.
fn human(bytes: u64) -> String {
    const UNITS: [(&str, u64); 4] = [("T", 1 << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)];
    UNITS.iter().find(|(_, size)| bytes >= *size).map_or_else(
        || format!("{bytes}B"),
        |(unit, size)| format!("{:.2}{unit}", bytes as f64 / *size as f64),
    )
}

fn server(report: &ServerReport, _: &Statistics, now: WallTime, text: &mut String) {
    line(text, "redis_version", REDIS_VERSION);
    line(text, "redis_git_sha1", "00000000");
    line(text, "redis_git_dirty", 0);
    line(text, "redis_mode", "standalone");
    line(text, "multiplexing_api", if cfg!(target_os = "linux") { "epoll" } else { "mio" });
    line(text, "os", &report.os);
    line(text, "syros_version", &report.version);
    line(text, "arch_bits", usize::BITS);
    line(text, "process_id", report.process_id);
    line(text, "run_id", &report.run_id);
    line(text, "tcp_port", report.tcp_port);
    line(text, "server_time_usec", now.0);
    line(text, "uptime_in_seconds", report.uptime_seconds);
    line(text, "uptime_in_days", report.uptime_seconds / 86_400);
    line(text, "executable", "");
    line(text, "config_file", "");
}

fn clients(report: &ServerReport, statistics: &Statistics, _: WallTime, text: &mut String) {
    line(text, "connected_clients", report.clients);
    line(text, "maxclients", report.clients_max);
    line(text, "maxclients_per_address", report.clients_per_address_max);
    line(text, "cluster_connections", 0);
    line(text, "blocked_clients", statistics.blocked());
    line(text, "tracking_clients", statistics.tracking().clients);
}

fn memory(report: &ServerReport, _: &Statistics, _: WallTime, text: &mut String) {
    // What is compared with maxmemory, where that is known.
    let used = report.data_bytes.unwrap_or(report.memory_bytes);
    line(text, "used_memory", used);
    line(text, "used_memory_human", human(used));
    line(text, "used_memory_rss", report.memory_bytes);
    line(text, "used_memory_rss_human", human(report.memory_bytes));
    line(text, "used_memory_peak", report.memory_peak_bytes);
    line(text, "used_memory_peak_human", human(report.memory_peak_bytes));
    line(text, "total_system_memory", report.memory_total_bytes);
    line(text, "total_system_memory_human", human(report.memory_total_bytes));
    line(text, "maxmemory", report.maxmemory);
    line(text, "maxmemory_human", human(report.maxmemory));
    line(text, "maxmemory_policy", report.eviction.policy);
    // What is counted is what is resident.
    line(text, "mem_fragmentation_ratio", "1.00");
    line(text, "mem_clients_normal", report.client_memory_bytes);
    line(text, "mem_clients_limit", report.client_memory_max);
}

fn persistence(report: &ServerReport, _: &Statistics, now: WallTime, text: &mut String) {
    // Clients wait for 0 before they send commands.
    line(text, "loading", u8::from(report.is_loading));
    line(text, "async_loading", 0);
    // The log takes the place of both of Redis's files. It is saved with every acknowledgement.
    line(text, "rdb_changes_since_last_save", 0);
    line(text, "rdb_bgsave_in_progress", 0);
    let started = (now.0 / 1_000_000).saturating_sub(report.uptime_seconds);
    line(text, "rdb_last_save_time", if report.fsync { now.0 / 1_000_000 } else { started });
    line(text, "rdb_last_bgsave_status", "ok");
    // There are no child processes.
    for never in ["rdb_last_bgsave_time_sec", "rdb_current_bgsave_time_sec"] {
        line(text, never, -1);
    }
    line(text, "rdb_saves", 0);
    line(text, "aof_enabled", u8::from(report.fsync));
    line(text, "aof_rewrite_in_progress", 0);
    line(text, "aof_rewrite_scheduled", 0);
    for never in ["aof_last_rewrite_time_sec", "aof_current_rewrite_time_sec"] {
        line(text, never, -1);
    }
    line(text, "aof_last_bgrewrite_status", "ok");
    line(text, "aof_last_write_status", if matches!(report.disk, "" | "ok") { "ok" } else { "err" });
    line(text, "disk_free_bytes", report.disk_free_bytes);
    line(text, "disk_reserve_bytes", report.disk_reserve_bytes);
    line(text, "disk_is_short", u8::from(report.disk_is_short));
    line(text, "log_oldest_entry", report.oldest_entry);
}

fn stats(report: &ServerReport, statistics: &Statistics, now: WallTime, text: &mut String) {
    line(text, "total_connections_received", report.connections_received);
    line(text, "total_commands_processed", report.commands_processed);
    statistics.write_stats(now, text);
    line(text, "rejected_connections", report.connections_rejected);
    line(text, "rejected_connections_by_address", report.connections_rejected_by_address);
    line(text, "expired_keys", report.keys_expired);
    line(text, "evicted_keys", report.keys_evicted);
    let never = ["sync_full", "sync_partial_ok", "sync_partial_err", "migrate_cached_sockets", "total_forks"];
    for never in never.into_iter().chain(["latest_fork_usec"]) {
        line(text, never, 0);
    }
    let tracking = statistics.tracking();
    line(text, "tracking_total_keys", tracking.keys);
    line(text, "tracking_total_items", tracking.items);
    line(text, "tracking_total_prefixes", tracking.prefixes);
    line(text, "pubsub_channels", report.pubsub_channels);
    line(text, "pubsub_patterns", report.pubsub_patterns);
    line(text, "pubsubshard_channels", report.pubsubshard_channels);
    line(text, "client_output_buffer_limit_disconnections", report.subscribers_closed);
    line(text, "evicted_clients", report.clients_evicted);
}

fn cpu(report: &ServerReport, _: &Statistics, _: WallTime, text: &mut String) {
    let [system, user] = report.cpu_millis.map(|millis| millis as f64 / 1000.0);
    line(text, "used_cpu_sys", format_args!("{system:.6}"));
    line(text, "used_cpu_user", format_args!("{user:.6}"));
    // There are no child processes.
    line(text, "used_cpu_sys_children", "0.000000");
    line(text, "used_cpu_user_children", "0.000000");
}

fn replication(report: &ServerReport, _: &Statistics, _: WallTime, text: &mut String) {
    // To a Redis client every process is a master: it takes updates, and its reads are never stale.
    line(text, "role", "master");
    line(text, "connected_slaves", 0);
    line(text, "master_failover_state", "no-failover");
    line(text, "master_replid", &report.run_id);
    line(text, "master_replid2", "0000000000000000000000000000000000000000");
    line(text, "master_repl_offset", report.commit);
    line(text, "second_repl_offset", -1);
    line(text, "repl_backlog_active", 0);
}

fn keyspace(report: &ServerReport, _: &Statistics, _: WallTime, text: &mut String) {
    for (number, DatabaseReport { keys, keys_with_expiry }) in report.databases.iter().enumerate() {
        if *keys > 0 {
            let values = format_args!("keys={keys},expires={keys_with_expiry},avg_ttl=0");
            line(text, &format!("db{number}"), values);
        }
    }
}

fn syros(report: &ServerReport, _: &Statistics, _: WallTime, text: &mut String) {
    line(text, "replica_role", &report.role);
    line(text, "status", &report.status);
    line(text, "fast_quorum", &report.fast_quorum);
    if let Some(active) = &report.active {
        line(text, "active_replicas", active);
    }
    line(text, "durability", if report.fsync { "fsync" } else { "replicated" });
    line(text, "group_size", report.group_size);
    if let Some(replica) = report.replica {
        line(text, "replica", replica);
    }
    line(text, "view", report.view);
    line(text, "configuration_epoch", report.epoch);
    match report.leader {
        Some(leader) => line(text, "leader", leader),
        None => line(text, "leader", "none"),
    }
    line(text, "quorum_silent_ms", report.silent_ms);
    if let Some(expires) = report.certificate_expires {
        line(text, "tls_certificate_expires", expires);
    }
    if !report.disk.is_empty() {
        line(text, "disk", report.disk);
        line(text, "disk_free_inodes", report.disk_free_inodes);
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
    for (replica, microseconds) in &report.round_trips {
        line(text, &format!("round_trip_us_{replica}"), microseconds);
    }
    for (replica, address) in report.replica_addresses.iter().enumerate() {
        line(text, &format!("replica_{replica}_address"), address);
    }
}
