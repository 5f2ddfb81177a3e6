//! The configuration file of `syros server`: docs/syros.sample.toml describes every key.

pub(crate) mod traces;

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use syros_cli::{check_address, check_different, read_text};
use syros_logging::{FilterError, Format};
use syros_protocol::replica::Durability;
use syros_runtime::{
    ClientCertificates, DebugAccess, EngineConfig, EngineKind, FirstStart, FrontConfig, NodeConfig, NodesTls,
    REDIS_ADDRESS, StoreConfig, TlsConfig, TlsFiles,
};
use syros_settings::{ConfigError, Reader};
use syros_types::{
    EvictionPolicy, EvictionSettings, Execution, FastQuorum, Group, Protocol, ReadPolicy, ReplicaId,
    WritePolicy,
};

const MICROSECOND: Duration = Duration::from_micros(1);
const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);

/// A configuration file, read and checked.
#[derive(Debug)]
pub(crate) struct ServerConfig {
    /// What the node needs.
    pub(crate) node: NodeConfig,
    /// What the log shows.
    pub(crate) log: syros_logging::Settings,
    /// Full names of all keys there are.
    #[cfg_attr(not(test), expect(dead_code, reason = "the test of the sample file compares them"))]
    pub(crate) keys: Vec<String>,
}

/// Reads a configuration file.
pub(crate) fn read(path: &Path, first_start: Option<FirstStart>) -> Result<ServerConfig, String> {
    let file = path.display();
    let text = read_text(path).map_err(|error| format!("cannot read {file}: {error}"))?;
    let base = path.parent().unwrap_or(Path::new(""));
    parse(&text, base, first_start).map_err(|error| format!("{file}: {error}"))
}

/// Reads the configuration in `text`. Relative directories are relative to `base`.
pub(crate) fn parse(
    text: &str,
    base: &Path,
    first_start: Option<FirstStart>,
) -> Result<ServerConfig, ConfigError> {
    let mut root = Reader::parse(text)?;
    let mut keys = Vec::new();

    let cluster = root.required_integer("cluster", 1..=i64::MAX as u64)?;
    let replicas = root.required_texts("replicas")?;
    let group = check_addresses(&root, &replicas)?;
    let id = root.required_integer("replica", 0..=group.size() as u64 - 1)?;
    let replica = ReplicaId(u8::try_from(id).unwrap_or(u8::MAX));
    let directory = root.required_text("directory")?;
    if directory.is_empty() {
        return Err(root.error("directory", "\"\" names no directory"));
    }
    let directory = base.join(PathBuf::from(directory));
    let secret_file = root.text("secret-file")?.filter(|file| !file.is_empty()).map(|file| base.join(file));
    let secret = secret_file.map(|file| crate::secret::read(&file)).transpose();
    let secret = secret.map_err(|problem| root.error("secret-file", problem))?;
    let quorums = FastQuorum::ALL.map(|mode| (mode.name(), mode));
    let durabilities = [("fsync", Durability::Fsync), ("replicated", Durability::Replicated)];

    let protocols = Protocol::ALL.map(|protocol| (protocol.name, protocol));
    let protocol = root.choice("protocol", &protocols, Protocol::default())?;
    if protocol.is_alone && group.size() > 1 {
        let problem = format!("\"{protocol}\" has 1 replica, not {}", group.size());
        return Err(root.error("protocol", problem));
    }

    let mut core = syros_runtime::replica_config(group, replica);
    core.configuration.mode = root.choice("fast-quorum", &quorums, protocol.fast_quorum)?;
    if group.size() == 1 {
        // There is no other member that could lack what has been applied.
        core.settings.log_keep_bytes = 0;
    }
    core.settings.batch_max = protocol.batch.map_or(core.settings.batch_max, usize::from);
    core.durability = root.choice("durability", &durabilities, core.durability)?;
    let mut engine = EngineConfig::default();
    if protocol.execution == Execution::Serial {
        engine.execution_threads = 1;
    }
    engine.kind = root.choice("engine", &EngineKind::ALL.map(|kind| (kind.name(), kind)), engine.kind)?;
    let mut front = FrontConfig::default();
    let policies = ReadPolicy::ALL.map(|policy| (policy.name(), policy));
    front.client.read_policy = root.choice("reads", &policies, protocol.reads)?;
    let policies = WritePolicy::ALL.map(|policy| (policy.name(), policy));
    front.client.write_policy = root.choice("writes", &policies, protocol.writes)?;
    if let Some(file) = root.text("password-file")?.filter(|file| !file.is_empty()) {
        let rules = crate::secret::read_password(&base.join(file));
        front.first_rules = rules.map_err(|problem| root.error("password-file", problem))?;
    }

    let mut listen = root.section("listen")?;
    let ports = read_ports(&mut listen, &replicas[replica.index()])?;
    front.listen_metrics = ports.metrics;
    front.protected = listen.boolean("protected-mode")?.unwrap_or(front.protected);
    front.debug = listen.choice("enable-debug-command", &DebugAccess::ALL, front.debug)?;
    keys.extend(listen.finish()?);

    let mut section = root.section("tls")?;
    let tls = read_tls(&mut section, base, ports.redis_tls)?;
    keys.extend(section.finish()?);

    let mut timing = root.section("timing")?;
    read_timing(&mut timing, &mut core.settings, &mut front)?;
    keys.extend(timing.finish()?);

    let mut limits = root.section("limits")?;
    read_limits(&mut limits, &mut core.settings, &mut front)?;
    keys.extend(limits.finish()?);

    let mut memory = root.section("memory")?;
    let maxmemory = memory.automatic_bytes("maxmemory", 0..=1 << 50)?;
    let eviction = read_eviction(&mut memory)?;
    keys.extend(memory.finish()?);

    let mut store = StoreConfig::default();
    let mut disk = root.section("disk")?;
    read_disk(&mut disk, &mut store)?;
    keys.extend(disk.finish()?);

    let mut section = root.section("disk-engine")?;
    read_engine(&mut section, &mut engine)?;
    keys.extend(section.finish()?);

    let mut emulate = root.section("emulate")?;
    let reads = emulate.integer("reads-per-second", 0..=1_000_000, 0)?;
    store.emulated_reads = u32::try_from(reads).ok().filter(|reads| *reads > 0);
    keys.extend(emulate.finish()?);

    let mut section = root.section("traces")?;
    front.traces = traces::read(&mut section)?;
    keys.extend(section.finish()?);

    let mut section = root.section("log")?;
    let log = read_log(&mut section)?;
    keys.extend(section.finish()?);
    keys.extend(root.finish()?);

    let node = NodeConfig {
        cluster,
        replicas,
        listen_redis: ports.redis,
        listen_replicas: ports.replicas,
        directory,
        first_start,
        secret,
        tls,
        replica: core,
        front,
        store,
        engine,
        maxmemory,
        eviction,
    };
    Ok(ServerConfig { node, log, keys })
}

/// Where a node listens.
struct Ports {
    redis: Option<SocketAddr>,
    redis_tls: Option<SocketAddr>,
    replicas: SocketAddr,
    metrics: Option<SocketAddr>,
}

/// Reads where a node listens; `own` is its entry in the list of replicas.
fn read_ports(listen: &mut Reader, own: &str) -> Result<Ports, ConfigError> {
    let redis_tls = optional_address(listen, "redis-tls")?;
    let redis = match listen.text("redis")? {
        Some(text) if text.is_empty() && redis_tls.is_some() => None,
        Some(text) => Some(parse_address(listen, "redis", &text)?),
        None => Some(REDIS_ADDRESS),
    };
    let replicas = address(listen, "replicas", || own.parse().ok())?;
    let metrics = optional_address(listen, "metrics")?;
    let all =
        [("replicas", Some(replicas)), ("redis", redis), ("redis-tls", redis_tls), ("metrics", metrics)];
    for (position, (key, address)) in all.iter().enumerate() {
        let same = |(_, other): &&(&str, Option<SocketAddr>)| address.is_some() && other == address;
        if let (Some((other, _)), Some(address)) = (all[..position].iter().find(same), address) {
            return Err(listen.error(key, format!("{address} is listen.{other}, too")));
        }
    }
    Ok(Ports { redis, redis_tls, replicas, metrics })
}

/// Reads where the certificate is, and who has to show one.
fn read_tls(
    section: &mut Reader,
    base: &Path,
    listen_redis: Option<SocketAddr>,
) -> Result<Option<TlsConfig>, ConfigError> {
    // Whoever writes more than that there is no certificate wants one.
    let has_none = section.has("certificate");
    let has_wishes = !has_none && ["nodes", "client-certificates"].iter().any(|key| section.has(key));
    let mut file = |key| -> Result<Option<PathBuf>, ConfigError> {
        let text = section.text(key)?.filter(|text| !text.is_empty());
        Ok(text.map(|text| base.join(text)))
    };
    let files = [file("certificate")?, file("key")?, file("authorities")?];
    let nodes = section.choice("nodes", &NodesTls::ALL, NodesTls::default())?;
    let redis_clients =
        section.choice("client-certificates", &ClientCertificates::ALL, ClientCertificates::default())?;
    match files {
        [Some(certificate), Some(key), Some(authorities)] => {
            let files = TlsFiles { certificate, key, authorities };
            Ok(Some(TlsConfig { files, listen_redis, redis_clients, nodes }))
        }
        [None, None, None] if listen_redis.is_none() && !has_wishes => Ok(None),
        [None, None, None] => {
            let who = if listen_redis.is_some() { "listen.redis-tls" } else { "what else stands in [tls]" };
            let problem = format!("missing; {who} needs certificate, key and authorities");
            Err(section.error("certificate", problem))
        }
        [certificate, key, _] => {
            let missing = match (certificate, key) {
                (None, _) => "certificate",
                (_, None) => "key",
                _ => "authorities",
            };
            Err(section.error(missing, "missing; certificate, key and authorities belong together"))
        }
    }
}

/// Reads what happens when the data has reached its limit.
fn read_eviction(memory: &mut Reader) -> Result<EvictionSettings, ConfigError> {
    let default = EvictionSettings::DEFAULT;
    let policies = EvictionPolicy::ALL.map(|policy| (policy.name(), policy));
    let mut number = |name, range: RangeInclusive<u32>, default: u32| {
        let range = u64::from(*range.start())..=u64::from(*range.end());
        let value = memory.integer(name, range, default.into())?;
        Ok(u32::try_from(value).unwrap_or(default))
    };
    Ok(EvictionSettings {
        samples: number("maxmemory-samples", 1..=EvictionSettings::SAMPLES_MAX, default.samples)?,
        lfu_log_factor: number("lfu-log-factor", 0..=EvictionSettings::LFU_MAX, default.lfu_log_factor)?,
        lfu_decay_minutes: number(
            "lfu-decay-time",
            0..=EvictionSettings::LFU_MAX,
            default.lfu_decay_minutes,
        )?,
        policy: memory.choice("maxmemory-policy", &policies, default.policy)?,
    })
}

/// Checks the list of replicas: 1, 3, 5, 7 or 9 different `host:port`.
fn check_addresses(root: &Reader, replicas: &[String]) -> Result<Group, ConfigError> {
    let group = Group::new(replicas.len()).map_err(|error| root.error("replicas", error.to_string()))?;
    let checked = replicas.iter().try_for_each(|address| check_address(address));
    checked.and_then(|()| check_different(replicas)).map_err(|problem| root.error("replicas", problem))?;
    Ok(group)
}

/// As [`address`], of a port that a node has only if it is told to.
fn optional_address(reader: &mut Reader, key: &'static str) -> Result<Option<SocketAddr>, ConfigError> {
    let Some(text) = reader.text(key)?.filter(|text| !text.is_empty()) else { return Ok(None) };
    parse_address(reader, key, &text).map(Some)
}

/// An address to listen on, if this is one. A port that the system chooses is another one after every start.
pub(crate) fn listening_address(text: &str) -> Option<SocketAddr> {
    text.parse().ok().filter(|address: &SocketAddr| address.port() > 0)
}

fn parse_address(reader: &Reader, key: &'static str, text: &str) -> Result<SocketAddr, ConfigError> {
    listening_address(text).ok_or_else(|| {
        let problem = "is not an IP address and port, such as \"0.0.0.0:6379\", with a port from 1 to 65535";
        reader.error(key, format!("\"{text}\" {problem}"))
    })
}

fn address(
    reader: &mut Reader,
    key: &'static str,
    default: impl FnOnce() -> Option<SocketAddr>,
) -> Result<SocketAddr, ConfigError> {
    match reader.text(key)? {
        Some(text) => parse_address(reader, key, &text),
        None => default().ok_or_else(|| {
            let problem =
                "missing; without a default because this replica's entry in 'replicas' is a host name";
            reader.error(key, problem)
        }),
    }
}

fn read_timing(
    timing: &mut Reader,
    core: &mut syros_protocol::replica::Settings,
    front: &mut FrontConfig,
) -> Result<(), ConfigError> {
    core.heartbeat = timing.duration("heartbeat", MILLISECOND..=10 * SECOND, core.heartbeat)?;
    core.lease = timing.duration("lease", MILLISECOND..=60 * SECOND, core.lease)?;
    core.suspect_after = timing.duration("suspect-after", MILLISECOND..=120 * SECOND, core.suspect_after)?;
    if core.lease < 2 * core.heartbeat {
        let problem = format!("{:?} is not at least twice the heartbeat, {:?}", core.lease, core.heartbeat);
        return Err(timing.error("lease", problem));
    }
    if core.suspect_after < core.lease {
        let problem = format!("{:?} is less than the lease, {:?}", core.suspect_after, core.lease);
        return Err(timing.error("suspect-after", problem));
    }
    core.view_change_timeout =
        timing.duration("view-change-timeout", MILLISECOND..=120 * SECOND, core.view_change_timeout)?;
    core.slow_disk_after =
        timing.duration("slow-disk-after", MILLISECOND..=60 * SECOND, core.slow_disk_after)?;
    core.resend = timing.duration("resend", MILLISECOND..=60 * SECOND, core.resend)?;
    core.order_delay = timing.duration("order-delay", Duration::ZERO..=SECOND, core.order_delay)?;
    core.fetch_delay = timing.duration("fetch-delay", MICROSECOND..=SECOND, core.fetch_delay)?;
    core.forward_after = timing.duration("forward-after", MILLISECOND..=60 * SECOND, core.forward_after)?;
    core.clock_skew_max = timing.duration("clock-skew", MILLISECOND..=DAY, core.clock_skew_max)?;
    let drift = timing.integer("clock-drift-ppm", 0..=500_000, u64::from(core.clock_drift_ppm))?;
    core.clock_drift_ppm = u32::try_from(drift).unwrap_or(u32::MAX);
    core.session_timeout = timing.duration("session-timeout", 10 * SECOND..=7 * DAY, core.session_timeout)?;
    front.client.session_idle_max = core.session_timeout / 2;
    front.client.give_up_after = timing.duration(
        "operation-timeout",
        100 * MILLISECOND..=10 * 60 * SECOND,
        front.client.give_up_after,
    )?;
    // A view change must not look like the loss of a majority.
    let least = 4 * core.suspect_after.max(250 * MILLISECOND);
    front.quorum_timeout = front.quorum_timeout.max(least);
    front.quorum_timeout =
        timing.duration("quorum-timeout", least..=10 * 60 * SECOND, front.quorum_timeout)?;
    front.drain_timeout =
        timing.duration("drain-timeout", Duration::ZERO..=10 * 60 * SECOND, front.drain_timeout)?;
    front.client.sync_after =
        timing.duration("sync-after", MILLISECOND..=10 * SECOND, front.client.sync_after)?;
    Ok(())
}

fn read_limits(
    limits: &mut Reader,
    core: &mut syros_protocol::replica::Settings,
    front: &mut FrontConfig,
) -> Result<(), ConfigError> {
    let mut count = |key, range, value: &mut usize| -> Result<(), ConfigError> {
        let number = limits.integer(key, range, *value as u64)?;
        *value = usize::try_from(number).unwrap_or(usize::MAX);
        Ok(())
    };
    count("connections", CONNECTIONS, &mut front.connections_max)?;
    let mut per_address = front.connections_per_address_max.unwrap_or(0);
    count("connections-per-address", 0..=*CONNECTIONS.end(), &mut per_address)?;
    front.connections_per_address_max = (per_address > 0).then_some(per_address);
    count("unidentified", 16..=65_536, &mut front.unidentified_max)?;
    count("handshakes", 16..=65_536, &mut front.handshakes_max)?;
    count("in-flight", 1..=16_777_216, &mut front.client.in_flight_max)?;
    count("sessions", 1..=16_777_216, &mut core.sessions_max)?;
    count("batch", 1..=65_536, &mut core.batch_max)?;
    count("dlog-length", 1..=16_777_216, &mut core.dlog_length_max)?;
    count("waiting", 1..=16_777_216, &mut core.waiting_max)?;
    let mut bytes = |key, range, value: &mut usize| -> Result<(), ConfigError> {
        let number = limits.bytes(key, range, *value as u64)?;
        *value = usize::try_from(number).unwrap_or(usize::MAX);
        Ok(())
    };
    bytes("history", 0..=1 << 30, &mut core.history_bytes_max)?;
    bytes("log-memory", LOG_MEMORY_MIN..=1 << 40, &mut core.log_bytes_max)?;
    // What stays of the log must leave room for what comes.
    let most = core.log_bytes_max as u64 / 2;
    core.log_keep_bytes = core.log_keep_bytes.min(core.log_bytes_max / 4);
    bytes("log-keep", 0..=most, &mut core.log_keep_bytes)?;
    bytes("snapshot-log", 1 << 20..=1 << 40, &mut core.snapshot_log_bytes)?;
    let mut rate = usize::try_from(core.transfer_rate).unwrap_or(usize::MAX);
    bytes("snapshot-rate", 1 << 20..=1 << 40, &mut rate)?;
    core.transfer_rate = rate as u64;
    bytes("client-output", 1 << 20..=1 << 30, &mut front.output_bytes_max)?;
    let client_memory = limits.automatic_bytes("client-memory", 64 << 20..=1 << 40)?;
    front.client_memory = client_memory.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    Ok(())
}

fn read_disk(disk: &mut Reader, store: &mut StoreConfig) -> Result<(), ConfigError> {
    store.segment_bytes = disk.bytes("wal-segment", 64 << 10..=1 << 30, store.segment_bytes)?;
    store.keep_log_bytes = disk.bytes("keep-log", 0..=1 << 40, store.keep_log_bytes)?;
    let interval = store.scrub_interval.unwrap_or_default();
    let interval = disk.duration("scrub-interval", Duration::ZERO..=365 * DAY, interval)?;
    store.scrub_interval = Some(interval).filter(|interval| !interval.is_zero());
    store.scrub_rate = disk.bytes("scrub-rate", 64 << 10..=1 << 40, store.scrub_rate)?;
    store.reserve_bytes = disk.bytes("reserve", 0..=1 << 40, store.reserve_bytes)?;
    Ok(())
}

fn read_engine(section: &mut Reader, engine: &mut EngineConfig) -> Result<(), ConfigError> {
    engine.cache_bytes = section.bytes("cache", 1 << 20..=1 << 40, engine.cache_bytes)?;
    engine.memtable_bytes = section.bytes("memtable", 1 << 20..=1 << 30, engine.memtable_bytes)?;
    let mut count = |key, most, value: &mut usize| -> Result<(), ConfigError> {
        let number = section.integer(key, 1..=most, *value as u64)?;
        *value = usize::try_from(number).unwrap_or(usize::MAX);
        Ok(())
    };
    count("execution-threads", 64, &mut engine.execution_threads)?;
    count("read-threads", 256, &mut engine.read_threads)
}

fn read_log(section: &mut Reader) -> Result<syros_logging::Settings, ConfigError> {
    let mut log = syros_logging::Settings::default();
    if let Some(text) = section.text("level")? {
        log.filter = text.parse().map_err(|error: FilterError| section.error("level", error.to_string()))?;
    }
    log.format = section.choice("format", &Format::ALL.map(|format| (format.name(), format)), log.format)?;
    let lines = section.integer("lines", 0..=1_000_000, u64::from(log.rate_limit.lines))?;
    log.rate_limit.lines = u32::try_from(lines).unwrap_or(u32::MAX);
    log.rate_limit.window = section.duration("window", SECOND..=DAY, log.rate_limit.window)?;
    Ok(log)
}

/// Connections of Redis clients that a node or a gateway may be given as their limit.
pub(crate) const CONNECTIONS: RangeInclusive<u64> = 1..=1_000_000;

/// Smallest limit of the log: room for a few of the largest operations.
pub(crate) const LOG_MEMORY_MIN: u64 = 64 << 20;

#[cfg(test)]
mod tests;
