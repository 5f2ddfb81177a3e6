//! What a process needs to be told.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use syros_machine::MachineName;
use syros_protocol::{client, replica};
use syros_resp::DebugAccess;
use syros_traces::TraceSettings;
use syros_types::{Configuration, EvictionSettings, FastQuorum, Group, InvalidGroupSize, ReplicaId};
use syros_wire::Secret;

use crate::tls_config::TlsConfig;

/// Where Redis clients are listened for by default: Redis's own port, and nobody outside this machine.
pub const REDIS_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 6379);

/// Why a node starts without a data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstStart {
    /// The cluster is new, and this is one of its first nodes.
    Bootstrap,
    /// The node takes the place of one of the cluster that has lost its disk.
    Replace,
    /// The node is one of the two that the cluster grows by.
    Join,
}

impl FirstStart {
    /// True if it asks a cluster that exists for a place.
    #[must_use]
    pub const fn asks_for_place(self) -> bool {
        matches!(self, Self::Replace | Self::Join)
    }

    /// The option that says so.
    #[must_use]
    pub const fn option(self) -> &'static str {
        match self {
            Self::Bootstrap => "--bootstrap",
            Self::Replace => "--replace",
            Self::Join => "--join",
        }
    }
}

/// Settings of a node: one replica with its Redis front end.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// The cluster; never 0. All nodes of a cluster have the same, and refuse others.
    pub cluster: u64,
    /// Where each replica listens for the others and for clients, as `host:port`, in the order of
    /// their ids. Host names are resolved anew at every attempt to connect.
    pub replicas: Vec<String>,
    /// Where this node listens for Redis clients that do not speak TLS; `None`: nowhere. Not used where a state machine of
    /// somebody's own takes the place of the store of keys.
    pub listen_redis: Option<SocketAddr>,
    /// Where this node listens for replicas and Syros clients.
    pub listen_replicas: SocketAddr,
    /// The data directory.
    pub directory: PathBuf,
    /// The data directory is to be made: the node starts for the first time. `None`: it has one.
    pub first_start: Option<FirstStart>,
    /// What all nodes of the cluster know and nobody else. Without one, anybody who reaches `listen_replicas` may
    /// say that it is a replica.
    pub secret: Option<Secret>,
    /// TLS, if the node speaks it.
    pub tls: Option<TlsConfig>,
    /// Settings of the replica.
    pub replica: replica::Config,
    /// Settings of the front end.
    pub front: FrontConfig,
    /// Settings of what is on disk.
    pub store: StoreConfig,
    /// Settings of the engine.
    pub engine: EngineConfig,
    /// Most memory that the data of an engine in memory may take, keys, values and what goes with them, in bytes;
    /// beyond, updates that make it grow are refused. 0: without limit. `None`: what the memory that the process may take
    /// leaves beside log, snapshots and clients.
    pub maxmemory: Option<u64>,
    /// What happens when the data has reached that limit.
    pub eviction: EvictionSettings,
}

impl NodeConfig {
    /// The defaults for member `replica` of a cluster, with its data in `directory`: everything as `syros server` has it.
    ///
    /// # Errors
    /// [`InvalidGroupSize`]: `replicas` are not 1, 3, 5, 7 or 9.
    pub fn new(
        cluster: u64,
        replicas: Vec<String>,
        replica: ReplicaId,
        listen_replicas: SocketAddr,
        directory: PathBuf,
    ) -> Result<Self, InvalidGroupSize> {
        let group = Group::new(replicas.len())?;
        Ok(Self {
            cluster,
            replicas,
            listen_redis: Some(REDIS_ADDRESS),
            listen_replicas,
            directory,
            first_start: None,
            secret: None,
            tls: None,
            replica: replica_config(group, replica),
            front: FrontConfig::default(),
            store: StoreConfig::default(),
            engine: EngineConfig::default(),
            maxmemory: None,
            eviction: EvictionSettings::DEFAULT,
        })
    }
}

impl NodeConfig {
    /// The limit of the data, in bytes, where the process may take so much memory; `None`: there is none.
    pub(crate) fn maxmemory_of(&self, machine_memory: u64) -> Option<u64> {
        if self.engine.kind != EngineKind::Memory {
            return None;
        }
        let chosen = self.maxmemory.unwrap_or_else(|| {
            let others = self.replica.settings.log_bytes_max as u64
                + self.front.client_memory_of(machine_memory) as u64
                + SNAPSHOT_MEMORY;
            // Of what is left, a quarter is for what the allocator cannot use. Where the log alone may take nearly all, the
            // data may take an eighth: most logs are far from their limit.
            let left = machine_memory.saturating_sub(others) / 4 * 3;
            left.min(machine_memory / 2).max(machine_memory / 8)
        });
        (chosen > 0).then_some(chosen)
    }
}

/// The default settings of member `replica` of `group`, with the operations of `syros-commands`.
#[must_use]
pub fn replica_config(group: Group, replica: ReplicaId) -> replica::Config {
    replica::Config::new(
        Configuration::first(group, FastQuorum::default()),
        replica,
        describe,
        syros_commands::overwrites,
    )
}

/// What the protocol needs to know of an operation, from its bytes alone.
#[must_use]
pub fn describe(body: &[u8]) -> Option<syros_types::Description> {
    syros_commands::describe(body).ok()
}

/// What a snapshot puts aside at most, in bytes.
const SNAPSHOT_MEMORY: u64 = 256 << 20;

/// Where a node keeps what its log led to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineKind {
    /// In memory.
    #[default]
    Memory,
    /// On disk, in a log-structured merge tree written in Rust.
    Disk,
    /// On disk, in RocksDB. Only if it was built in.
    RocksDb,
    /// In memory, in a state machine of somebody's own. Not for configuration files: the program has it or not.
    Machine(MachineName),
}

impl EngineKind {
    /// All there are for keys.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Disk, Self::RocksDb];

    /// The name in configuration and identity files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk => "disk",
            Self::RocksDb => "rocksdb",
            Self::Machine(_) => "machine",
        }
    }

    /// The engine for keys with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// True if this program has it.
    #[must_use]
    pub const fn is_built_in(self) -> bool {
        match self {
            Self::Memory | Self::Disk | Self::Machine(_) => true,
            Self::RocksDb => syros_lsm::HAS_ROCKSDB,
        }
    }

    /// True if it is on disk.
    #[must_use]
    pub const fn is_on_disk(self) -> bool {
        matches!(self, Self::Disk | Self::RocksDb)
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine(name) => write!(f, "machine {name}"),
            kind => f.write_str(kind.name()),
        }
    }
}

/// Settings of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// Which one.
    pub kind: EngineKind,
    /// On disk: bytes of what was read that are kept in memory.
    pub cache_bytes: u64,
    /// On disk: a checkpoint is made after so many bytes of log; until then, what they led to is in memory.
    pub memtable_bytes: u64,
    /// On disk: threads that execute updates.
    pub execution_threads: usize,
    /// On disk: threads that execute reads.
    pub read_threads: usize,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            kind: EngineKind::Memory,
            cache_bytes: 256 << 20,
            memtable_bytes: 64 << 20,
            execution_threads: 2,
            read_threads: 4,
        }
    }
}

/// Settings of what a node keeps on its disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreConfig {
    /// Length of a segment of the write-ahead log, in bytes: so much more than needed is kept at most.
    pub segment_bytes: u64,
    /// Bytes of the write-ahead log that are kept beside it for those who copy it, when the log needs them no more; 0: none.
    pub keep_log_bytes: u64,
    /// What is on disk and not read otherwise is read and verified this often, or up to twice as often;
    /// never if `None`.
    pub scrub_interval: Option<Duration>,
    /// How fast it is read, in bytes per second; never 0.
    pub scrub_rate: u64,
    /// Space on the disk that is kept for when it is full, in bytes, and as much beside it below which updates that make
    /// the data grow are refused; less where the file system is small. 0: none.
    pub reserve_bytes: u64,
    /// For measurements: a storage is emulated that answers so many random reads a second.
    pub emulated_reads: Option<u32>,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            segment_bytes: syros_wal::SEGMENT_BYTES_DEFAULT,
            keep_log_bytes: 1 << 30,
            scrub_interval: Some(Duration::from_secs(12 * 3600)),
            scrub_rate: 8 << 20,
            reserve_bytes: 64 << 20,
            emulated_reads: None,
        }
    }
}

/// Settings of a gateway: a Redis front end without a replica.
#[derive(Clone, Debug)]
pub struct GatewayConfig {
    /// The cluster; 0: whichever it is.
    pub cluster: u64,
    /// As in [`NodeConfig`].
    pub replicas: Vec<String>,
    /// Where the gateway listens for Redis clients that do not speak TLS; `None`: nowhere.
    pub listen_redis: Option<SocketAddr>,
    /// TLS, if the gateway speaks it.
    pub tls: Option<TlsConfig>,
    /// How long the first replica may take to tell what cluster this is.
    pub connect_timeout: Duration,
    /// Settings of the front end.
    pub front: FrontConfig,
}

/// Settings of the part that serves Redis clients, the same in a node and in a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontConfig {
    /// Most connections of Redis clients at a time, and most of Syros clients. Each costs a file descriptor and a few
    /// kilobytes; fewer where the limit of open files does not allow so many.
    pub connections_max: usize,
    /// Most connections of Redis clients from one address at a time, and most of Syros clients without a certificate;
    /// `None`: as many as [`connections_max`](Self::connections_max). Not the default, because many clients may share an
    /// address: behind a translation of addresses, a proxy, or on one machine.
    pub connections_per_address_max: Option<usize>,
    /// Most connections to the port for replicas whose other end has not said who it is.
    pub unidentified_max: usize,
    /// Most TLS handshakes under way at a time, at both ports together.
    pub handshakes_max: usize,
    /// A client that does not read its replies is disconnected when more bytes than this wait for it. It is
    /// no longer read from long before that, at a few MiB; but what it had asked for by then may come.
    pub output_bytes_max: usize,
    /// Most memory of all clients' connections together, in bytes: their input, operations under way and replies.
    /// `None`: an eighth of the memory that the process may take, from 64 MiB to 1 GiB.
    pub client_memory: Option<usize>,
    /// When no majority of the replicas has been heard of for this long, operations end with an error at once. Longer
    /// than a view change takes.
    pub quorum_timeout: Duration,
    /// A process that stops answers what its Redis clients have in flight for this long at most.
    pub drain_timeout: Duration,
    /// Which Redis clients may use DEBUG.
    pub debug: DebugAccess,
    /// Rules of ACL SETUSER for the default user of a cluster whose users have never been changed, without passwords in clear.
    pub first_rules: Vec<Vec<u8>>,
    /// While the default user needs no password, only Redis clients on the same machine are served.
    pub protected: bool,
    /// Where HTTP clients get metrics, and learn whether the process lives and is ready; `None`: nowhere.
    pub listen_metrics: Option<SocketAddr>,
    /// Where traces of operations go, and of which operations; `None`: nothing is traced.
    pub traces: Option<TraceSettings>,
    /// The session that carries the operations of all Redis clients of this process. Beyond its `in_flight_max`, further
    /// operations wait in their sockets.
    pub client: client::Settings,
}

/// The front end sends an operation without an answer again after this long. Connections lose nothing,
/// and a new one, or a new view, makes it send again at once; this is for what a replica dropped. Much
/// less would let large answers be asked for again while they are on their way.
const RESEND: Duration = Duration::from_secs(2);

/// See [`FrontConfig::unidentified_max`]. They take no place of clients, nor of members; beyond, the oldest gives way to the
/// newest, so that a member always gets in: it needs one round trip, and many of these last until they are closed.
const UNIDENTIFIED_MAX: usize = 256;

/// See [`FrontConfig::handshakes_max`]. At a thousand a second, as many as take a whole round trip around the earth. Beyond,
/// the oldest one is given up, so that nobody is kept out by those who begin and do not go on.
const HANDSHAKES_MAX: usize = 512;

impl FrontConfig {
    /// The budget of all clients' connections, in bytes, where the process may take so much memory.
    pub(crate) fn client_memory_of(&self, machine_memory: u64) -> usize {
        let share = (machine_memory / 8).clamp(64 << 20, 1 << 30);
        self.client_memory.unwrap_or(usize::try_from(share).unwrap_or(usize::MAX))
    }
}

impl Default for FrontConfig {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            connections_per_address_max: None,
            unidentified_max: UNIDENTIFIED_MAX,
            handshakes_max: HANDSHAKES_MAX,
            output_bytes_max: syros_resp::limits::REPLY_BYTES_MAX,
            client_memory: None,
            quorum_timeout: Duration::from_secs(2),
            drain_timeout: Duration::from_secs(5),
            debug: DebugAccess::default(),
            first_rules: Vec::new(),
            protected: true,
            listen_metrics: None,
            traces: None,
            client: client::Settings { resend: RESEND, ..client::Settings::new() },
        }
    }
}

/// A connection that has not said who it is after this long is closed. Ample for any round trip on
/// earth and one lost packet.
pub const GREETING_TIMEOUT: Duration = Duration::from_secs(5);
