//! The settings that CONFIG knows.

use crate::access::ACL_LOG_LENGTH_MAX;
use crate::info::{ServerInfo, ServerReport};
use crate::keyspace_events::KeyspaceEvents;
use crate::shared::{SLOW_LOG_LENGTH_MAX, Shared};
use core::sync::atomic::Ordering;
use syros_commands::parse_integer;
use syros_types::limits::VALUE_BYTES_MAX;
use syros_types::{Database, EvictionPolicy, EvictionSettings};

/// What CONFIG SET can change, and what it takes.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// A number from here to there.
    Integer(i64, i64),
    /// `yes` or `no`: 1 or 0.
    YesNo,
    /// A number of bytes.
    Memory,
    /// Letters of [`KeyspaceEvents`]: its bits.
    Events,
    /// The name of an eviction policy: its place among all.
    Policy,
}

/// A setting that may change while the process runs.
#[derive(Debug)]
struct Changeable {
    name: &'static str,
    kind: Kind,
    get: fn(&Shared, &ServerReport) -> i64,
    /// Fails with the reason.
    set: fn(&Shared, &dyn ServerInfo, i64) -> Result<(), &'static str>,
}

/// The settings that may change while the process runs, in the order of their names.
const CHANGEABLE: [Changeable; 16] = [
    Changeable {
        name: "acllog-max-len",
        kind: Kind::Integer(0, ACL_LOG_LENGTH_MAX as i64),
        get: |shared, _| shared.settings.acl_log_length.load(Ordering::Relaxed).cast_signed(),
        set: |shared, _, value| {
            shared.settings.acl_log_length.store(value.cast_unsigned(), Ordering::Relaxed);
            Ok(())
        },
    },
    Changeable {
        name: "latency-monitor-threshold",
        kind: Kind::Integer(0, i64::MAX),
        get: |shared, _| shared.settings.latency_millis.load(Ordering::Relaxed).cast_signed(),
        set: |shared, _, value| {
            shared.settings.latency_millis.store(value.cast_unsigned(), Ordering::Relaxed);
            Ok(())
        },
    },
    Changeable {
        name: "latency-tracking",
        kind: Kind::YesNo,
        get: |shared, _| shared.settings.latency_tracking.load(Ordering::Relaxed).cast_signed(),
        set: |shared, _, value| {
            shared.settings.latency_tracking.store(value.cast_unsigned(), Ordering::Relaxed);
            Ok(())
        },
    },
    Changeable {
        name: "lfu-decay-time",
        kind: Kind::Integer(0, EvictionSettings::LFU_MAX as i64),
        get: |_, report| i64::from(report.eviction.lfu_decay_minutes),
        set: |_, info, value| set_eviction(info, |settings| settings.lfu_decay_minutes = value as u32),
    },
    Changeable {
        name: "lfu-log-factor",
        kind: Kind::Integer(0, EvictionSettings::LFU_MAX as i64),
        get: |_, report| i64::from(report.eviction.lfu_log_factor),
        set: |_, info, value| set_eviction(info, |settings| settings.lfu_log_factor = value as u32),
    },
    Changeable {
        name: "lua-undeclared-keys",
        kind: Kind::YesNo,
        get: |shared, _| shared.settings.undeclared_keys.load(Ordering::Relaxed).cast_signed(),
        set: |shared, _, value| {
            shared.settings.undeclared_keys.store(value.cast_unsigned(), Ordering::Relaxed);
            Ok(())
        },
    },
    Changeable {
        name: "maxclients",
        kind: Kind::Integer(1, u32::MAX as i64),
        get: |_, report| report.clients_max.cast_signed(),
        set: |_, info, value| info.set_clients_max(value.cast_unsigned()),
    },
    Changeable {
        name: "maxclients-per-address",
        kind: Kind::Integer(0, u32::MAX as i64),
        get: |_, report| report.clients_per_address_max.cast_signed(),
        set: |_, info, value| info.set_clients_per_address_max(value.cast_unsigned()),
    },
    Changeable {
        name: "maxmemory",
        kind: Kind::Memory,
        get: |_, report| report.maxmemory.cast_signed(),
        set: |_, info, value| info.set_maxmemory(value.cast_unsigned()),
    },
    Changeable {
        name: "maxmemory-policy",
        kind: Kind::Policy,
        get: |_, report| number_of(report.eviction.policy),
        set: |_, info, value| set_eviction(info, |settings| settings.policy = policy_of(value)),
    },
    Changeable {
        name: "maxmemory-samples",
        kind: Kind::Integer(1, EvictionSettings::SAMPLES_MAX as i64),
        get: |_, report| i64::from(report.eviction.samples),
        set: |_, info, value| set_eviction(info, |settings| settings.samples = value as u32),
    },
    Changeable {
        name: "notify-keyspace-events",
        kind: Kind::Events,
        get: |shared, _| i64::from(shared.keyspace_events().bits()),
        set: |shared, _, value| {
            let bits = u16::try_from(value).unwrap_or_default();
            shared.settings.keyspace_events.store(bits, Ordering::Relaxed);
            Ok(())
        },
    },
    Changeable {
        name: "slowlog-log-slower-than",
        kind: Kind::Integer(-1, i64::MAX),
        get: |shared, _| shared.settings.slow_log_micros.load(Ordering::Relaxed),
        set: |shared, _, value| {
            shared.settings.slow_log_micros.store(value, Ordering::Relaxed);
            Ok(())
        },
    },
    Changeable {
        name: "slowlog-max-len",
        kind: Kind::Integer(0, SLOW_LOG_LENGTH_MAX as i64),
        get: |shared, _| shared.settings.slow_log_length.load(Ordering::Relaxed).cast_signed(),
        set: |shared, _, value| {
            shared.settings.slow_log_length.store(value.cast_unsigned(), Ordering::Relaxed);
            shared.slow_log(|log| log.trim(value.cast_unsigned()));
            Ok(())
        },
    },
    Changeable {
        name: "timeout",
        kind: Kind::Integer(0, i32::MAX as i64),
        get: |shared, _| shared.settings.idle_seconds.load(Ordering::Relaxed).cast_signed(),
        set: |shared, _, value| {
            shared.settings.idle_seconds.store(value.cast_unsigned(), Ordering::Relaxed);
            Ok(())
        },
    },
    Changeable {
        name: "tracking-table-max-keys",
        kind: Kind::Integer(1, TRACKING_KEYS_MAX),
        get: |shared, _| shared.settings.tracking_keys_max.load(Ordering::Relaxed).cast_signed(),
        set: |shared, _, value| {
            shared.settings.tracking_keys_max.store(value.cast_unsigned(), Ordering::Relaxed);
            Ok(())
        },
    },
];

/// Most keys that a node remembers to be kept by clients: some gigabytes with the longest names.
const TRACKING_KEYS_MAX: i64 = 16_000_000;

const UNCHANGEABLE: &str = "it can be set only to what it is: a node gets it when it starts, from its configuration file, \
                            if it has it at all";

const UNKNOWN_EVENT: &str = "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.";

const UNKNOWN_POLICY: &str = "argument(s) must be one of the following: volatile-lru, volatile-lfu, volatile-random, \
                              volatile-ttl, allkeys-lru, allkeys-lfu, allkeys-random, noeviction";

/// The place of a policy among all.
fn number_of(policy: EvictionPolicy) -> i64 {
    EvictionPolicy::ALL.iter().position(|other| *other == policy).map_or(0, |place| place as i64)
}

/// The policy at this place.
fn policy_of(number: i64) -> EvictionPolicy {
    let place = usize::try_from(number).ok();
    place.and_then(|place| EvictionPolicy::ALL.get(place).copied()).unwrap_or_default()
}

/// Changes one of the settings of eviction.
fn set_eviction(
    info: &dyn ServerInfo,
    change: impl FnOnce(&mut EvictionSettings),
) -> Result<(), &'static str> {
    let present = info.report().eviction;
    let mut settings = present;
    change(&mut settings);
    if settings == present { Ok(()) } else { info.set_eviction(settings) }
}

/// A change that has been checked and not been made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    setting: &'static Changeable,
    value: i64,
}

impl Change {
    /// The name of the setting.
    pub(crate) const fn name(&self) -> &'static str {
        self.setting.name
    }

    /// Makes the change.
    ///
    /// # Errors
    /// The reason why the process does not.
    pub(crate) fn apply(&self, shared: &Shared, info: &dyn ServerInfo) -> Result<(), &'static str> {
        (self.setting.set)(shared, info, self.value)
    }

    /// The change back to what is.
    pub(crate) fn reverse(&self, shared: &Shared, report: &ServerReport) -> Self {
        Self { setting: self.setting, value: (self.setting.get)(shared, report) }
    }
}

/// Checks that a setting can be given a value; the change that this is. `None`: it has this value and may not have another.
///
/// # Errors
/// The reason why not, as Redis gives it where Redis does.
pub(crate) fn check(name: &str, value: &[u8], present: &str) -> Result<Option<Change>, String> {
    let Some(setting) = CHANGEABLE.iter().find(|setting| setting.name == name) else {
        let is_same = value.eq_ignore_ascii_case(present.as_bytes());
        return if is_same { Ok(None) } else { Err(UNCHANGEABLE.to_owned()) };
    };
    let value = match setting.kind {
        Kind::Integer(least, most) => {
            let number = parse_integer(value).ok_or("argument couldn't be parsed into an integer")?;
            if !(least..=most).contains(&number) {
                return Err(format!("argument must be between {least} and {most} inclusive"));
            }
            number
        }
        Kind::YesNo if value.eq_ignore_ascii_case(b"yes") => 1,
        Kind::YesNo if value.eq_ignore_ascii_case(b"no") => 0,
        Kind::YesNo => return Err("argument must be 'yes' or 'no'".to_owned()),
        Kind::Memory => {
            let bytes = parse_memory(value).and_then(|bytes| i64::try_from(bytes).ok());
            bytes.ok_or("argument must be a memory value")?
        }
        Kind::Events => {
            let events = KeyspaceEvents::parse(value).ok_or(UNKNOWN_EVENT)?;
            i64::from(events.bits())
        }
        Kind::Policy => {
            let name = std::str::from_utf8(value).ok();
            let policy = name.and_then(|name| name.parse::<EvictionPolicy>().ok());
            number_of(policy.ok_or(UNKNOWN_POLICY)?)
        }
    };
    Ok(Some(Change { setting, value }))
}

/// A number of bytes as Redis reads it: digits and one of its units.
fn parse_memory(text: &[u8]) -> Option<u64> {
    const UNITS: [(&str, u64); 8] = [
        ("", 1),
        ("b", 1),
        ("k", 1000),
        ("kb", 1 << 10),
        ("m", 1_000_000),
        ("mb", 1 << 20),
        ("g", 1_000_000_000),
        ("gb", 1 << 30),
    ];
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, unit) = text.split_at(digits);
    let (_, factor) = UNITS.iter().find(|(name, _)| unit.eq_ignore_ascii_case(name.as_bytes()))?;
    std::str::from_utf8(number).ok()?.parse::<u64>().ok()?.checked_mul(*factor)
}

/// The settings that CONFIG GET knows: what clients and tools ask for before they start.
pub(crate) fn settings(shared: &Shared, report: &ServerReport) -> Vec<(&'static str, String)> {
    let durable = |yes: &str, no: &str| String::from(if report.fsync { yes } else { no });
    let mut settings: Vec<(&'static str, String)> =
        FIXED_SETTINGS.iter().map(|(name, value)| (*name, String::from(*value))).collect();
    settings.extend([
        ("appendfsync", durable("always", "no")),
        ("appendonly", durable("yes", "no")),
        ("cluster-enabled", String::from("no")),
        ("databases", Database::COUNT.to_string()),
        ("enable-debug-command", shared.debug_access().name().to_owned()),
        ("maxmemory-clients", report.client_memory_max.to_string()),
        ("port", report.tcp_port.to_string()),
        ("proto-max-bulk-len", VALUE_BYTES_MAX.to_string()),
        ("protected-mode", String::from(if shared.users.is_protected() { "yes" } else { "no" })),
        ("requirepass", default_password(shared)),
        ("save", String::new()),
        ("tls-port", report.tls_port.to_string()),
        ("tcp-keepalive", String::from("300")),
    ]);
    settings.extend(CHANGEABLE.iter().map(|setting| {
        let value = (setting.get)(shared, report);
        let text = match setting.kind {
            Kind::YesNo => String::from(if value > 0 { "yes" } else { "no" }),
            Kind::Integer(..) | Kind::Memory => value.to_string(),
            Kind::Events => shared.keyspace_events().letters(),
            Kind::Policy => policy_of(value).to_string(),
        };
        (setting.name, text)
    }));
    settings.sort_unstable_by_key(|(name, _)| *name);
    settings
}

/// What is known of the password of the default user: its hash, as in ACL LIST; nothing, if it needs none.
fn default_password(shared: &Shared) -> String {
    let users = shared.known_users();
    let hash = users.and_then(|users| {
        let password = users.default_user().user().passwords().first().copied();
        password.map(|password| format!("#{}", password.hexadecimal()))
    });
    hash.unwrap_or_default()
}

/// Settings of Redis that have one value here, which says how this server behaves. Limits of Redis's encodings are among
/// them where there is a small form here, too: it has the limits of Redis's sample configuration. Limits of buffers are
/// not: there is nothing here that they could be true of.
const FIXED_SETTINGS: [(&str, &str); 67] = [
    ("aclfile", ""),
    ("activedefrag", "no"),
    ("activerehashing", "no"),
    ("always-show-logo", "no"),
    ("aof-load-truncated", "yes"),
    ("aof-use-rdb-preamble", "no"),
    ("auto-aof-rewrite-min-size", "0"),
    ("auto-aof-rewrite-percentage", "0"),
    ("bind-source-addr", ""),
    ("cluster-announce-ip", ""),
    ("cluster-announce-port", "0"),
    ("crash-log-enabled", "no"),
    ("daemonize", "no"),
    ("disable-thp", "no"),
    ("enable-module-command", "no"),
    ("enable-protected-configs", "no"),
    ("hash-max-listpack-entries", "128"),
    ("hash-max-listpack-value", "64"),
    ("hash-max-ziplist-entries", "128"),
    ("hash-max-ziplist-value", "64"),
    ("io-threads", "1"),
    ("io-threads-do-reads", "no"),
    ("jemalloc-bg-thread", "no"),
    ("latency-tracking-info-percentiles", "50 99 99.9"),
    ("lazyfree-lazy-eviction", "no"),
    ("lazyfree-lazy-expire", "no"),
    ("lazyfree-lazy-server-del", "no"),
    ("lazyfree-lazy-user-del", "no"),
    ("lazyfree-lazy-user-flush", "no"),
    ("list-max-listpack-size", "128"),
    ("list-max-ziplist-size", "128"),
    ("masterauth", ""),
    ("masteruser", ""),
    ("min-replicas-max-lag", "0"),
    ("min-replicas-to-write", "0"),
    ("min-slaves-max-lag", "0"),
    ("min-slaves-to-write", "0"),
    ("no-appendfsync-on-rewrite", "no"),
    ("oom-score-adj", "no"),
    ("pidfile", ""),
    ("rdbcompression", "no"),
    ("repl-diskless-load", "disabled"),
    ("repl-diskless-sync", "no"),
    ("replica-announced", "no"),
    ("replica-lazy-flush", "no"),
    ("replica-priority", "0"),
    ("replica-read-only", "no"),
    ("replica-serve-stale-data", "no"),
    ("replicaof", ""),
    ("set-max-listpack-entries", "128"),
    ("set-max-listpack-value", "64"),
    ("set-proc-title", "no"),
    ("slave-priority", "0"),
    ("slave-read-only", "no"),
    ("slave-serve-stale-data", "no"),
    ("slaveof", ""),
    ("stop-writes-on-bgsave-error", "yes"),
    ("supervised", "no"),
    ("syslog-enabled", "no"),
    ("tls-cluster", "no"),
    ("tls-replication", "no"),
    ("unixsocket", ""),
    ("unixsocketperm", "0"),
    ("zset-max-listpack-entries", "128"),
    ("zset-max-listpack-value", "64"),
    ("zset-max-ziplist-entries", "128"),
    ("zset-max-ziplist-value", "64"),
];

#[cfg(test)]
mod tests {
    use super::parse_memory;

    #[test]
    fn memory_is_read_as_by_redis() {
        for (text, expected) in [
            ("0", Some(0)),
            ("100", Some(100)),
            ("7b", Some(7)),
            ("2k", Some(2_000)),
            ("2KB", Some(2_048)),
            ("3m", Some(3_000_000)),
            ("3Mb", Some(3 << 20)),
            ("1g", Some(1_000_000_000)),
            ("1gb", Some(1 << 30)),
            ("", None),
            ("mb", None),
            ("-1", None),
            ("1.5mb", None),
            ("1tb", None),
            ("99999999999gb", None),
        ] {
            assert_eq!(parse_memory(text.as_bytes()), expected, "{text}");
        }
    }
}
