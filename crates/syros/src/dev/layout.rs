//! The directory of a development cluster.
//!
//! ```text
//! DIR/dev.toml      what the cluster is; made by syros dev, and how it knows its own directories
//! DIR/lock          locked while syros dev runs
//! DIR/secret        what the nodes know and nobody else
//! DIR/tls/          certificates, if the cluster speaks TLS: of the authority, and in directories of their own of
//!                   the nodes, of a client and of an administrator
//! DIR/node-I.toml   configuration of node I, written anew at every start
//! DIR/node-I.log    what node I logged
//! DIR/node-I/       data of node I
//! ```

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use syros_cli::read_text;
use syros_cli::tls::files_in;
use syros_protocol::replica::Durability;
use syros_relay::Relay;
use syros_runtime::{EngineKind, TlsFiles, durability_name, read_formation, read_identity};
use syros_settings::Reader;
use syros_tls::{Identity, Role, ValidityDays};
use syros_types::{FastQuorum, Group, ReadPolicy, WritePolicy};

use crate::{certificate, config, logger, secret};

/// Version of `dev.toml`.
const FORMAT: u64 = 1;

/// What never changes about a development cluster, and the ports it had last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cluster {
    pub(super) id: u64,
    pub(super) group: Group,
    pub(super) fast_quorum: FastQuorum,
    pub(super) durability: Durability,
    pub(super) engine: EngineKind,
    /// All nodes have started once: from now on a node without its data has lost it.
    pub(super) is_complete: bool,
    /// Redis port of node 0; node i has the i-th after it.
    pub(super) redis_port: u16,
    /// Where the replicas listen for each other.
    pub(super) replica_ports: Vec<u16>,
}

/// What the nodes are told at every start, besides what the cluster is.
pub(super) struct Settings<'a> {
    /// The name of the protocol.
    pub(super) protocol: &'static str,
    pub(super) reads: ReadPolicy,
    pub(super) writes: WritePolicy,
    pub(super) emulate_reads: Option<u32>,
    /// Port of node 0 for metrics; node i has the i-th after it.
    pub(super) metrics: Option<u16>,
    /// Port of node 0 for Redis clients that speak TLS, if nodes do; node i has the i-th after it.
    pub(super) tls: Option<u16>,
    pub(super) limits: &'a [(String, String)],
    /// Keys of the table `disk-engine`.
    pub(super) disk_engine: &'a [(String, String)],
    /// The table `timing`, or nothing.
    pub(super) timing: String,
    /// Through which they reach each other.
    pub(super) relay: Option<&'a Relay>,
    /// What the nodes log.
    pub(super) log: &'a logger::LogOptions,
}

/// A directory that this process has locked.
pub(super) struct Layout {
    pub(super) path: PathBuf,
    _lock: File,
}

impl Cluster {
    /// A cluster that has never existed.
    pub(super) fn new(
        group: Group,
        fast_quorum: FastQuorum,
        durability: Durability,
        engine: EngineKind,
    ) -> Self {
        // RandomState is seeded by the system; the id need only differ from that of other clusters.
        let id = (RandomState::new().hash_one("cluster") >> 1).max(1);
        let (redis_port, replica_ports) = (0, Vec::new());
        Self { id, group, fast_quorum, durability, engine, is_complete: false, redis_port, replica_ports }
    }

    fn to_text(&self) -> String {
        format!(
            "# Made by syros dev, which uses and deletes only directories with this file. Not to be edited.\n\
             format = {FORMAT}\ncluster = 0x{:016x}\nreplicas = {}\nfast-quorum = \"{}\"\ndurability = \"{}\"\n\
             engine = \"{}\"\ncomplete = {}\nport = {}\nreplica-ports = \"{}\"\n",
            self.id,
            self.group.size(),
            self.fast_quorum,
            durability_name(self.durability),
            self.engine.name(),
            u8::from(self.is_complete),
            self.redis_port,
            self.replica_ports.iter().map(u16::to_string).collect::<Vec<_>>().join(","),
        )
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut reader = Reader::parse(text).map_err(|error| error.to_string())?;
        let mut read = || {
            let format = reader.required_integer("format", 0..=u64::MAX)?;
            if format != FORMAT {
                return Err(
                    reader.error("format", format!("{format} is not {FORMAT}, which this version reads"))
                );
            }
            let size = reader.required_integer("replicas", 1..=Group::SIZE_MAX as u64)?;
            let group = Group::new(usize::try_from(size).unwrap_or(0))
                .map_err(|error| reader.error("replicas", error.to_string()))?;
            let quorums = FastQuorum::ALL.map(|mode| (mode.name(), mode));
            let durabilities = [("fsync", Durability::Fsync), ("replicated", Durability::Replicated)];
            let engines = EngineKind::ALL.map(|kind| (kind.name(), kind));
            let ports = reader.required_text("replica-ports")?;
            let ports: Result<Vec<u16>, _> = ports.split(',').map(str::parse).collect();
            Ok(Self {
                id: reader.required_integer("cluster", 1..=i64::MAX as u64)?,
                group,
                fast_quorum: reader.choice("fast-quorum", &quorums, FastQuorum::Majority)?,
                durability: reader.choice("durability", &durabilities, Durability::Fsync)?,
                engine: reader.choice("engine", &engines, EngineKind::Memory)?,
                is_complete: reader.required_integer("complete", 0..=1)? == 1,
                redis_port: u16::try_from(reader.required_integer("port", 1..=65_535)?).unwrap_or(u16::MAX),
                replica_ports: ports.unwrap_or_default(),
            })
        };
        let cluster = read().map_err(|error| error.to_string())?;
        if cluster.replica_ports.len() != cluster.group.size() {
            return Err("key 'replica-ports': not one port per replica".to_owned());
        }
        Ok(cluster)
    }
}

impl Layout {
    /// Makes the directory if need be, and locks it.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let name = path.display();
        // A directory with other things in it is not ours to fill.
        if let Ok(mut entries) = fs::read_dir(path)
            && !path.join("dev.toml").exists()
            && let Some(Ok(entry)) = entries.find(|e| e.as_ref().is_ok_and(|e| e.file_name() != "lock"))
        {
            return Err(format!(
                "directory {name} was not made by syros dev: it has no dev.toml, but {}; choose another with --dir",
                entry.file_name().display()
            ));
        }
        fs::create_dir_all(path).map_err(|error| format!("cannot create directory {name}: {error}"))?;
        let path = path.canonicalize().map_err(|error| format!("cannot find directory {name}: {error}"))?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(path.join("lock"));
        let lock = lock.map_err(|error| format!("cannot open {name}/lock: {error}"))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            format!("directory {name} is in use by another syros dev; choose another with --dir")
        })?;
        Ok(Self { path, _lock: lock })
    }

    /// The cluster in the directory, if there is one.
    pub(super) fn load(&self) -> Result<Option<Cluster>, String> {
        let file = self.path.join("dev.toml");
        match read_text(&file) {
            Ok(text) => {
                Cluster::parse(&text).map(Some).map_err(|problem| format!("{}: {problem}", file.display()))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("cannot read {}: {error}", file.display())),
        }
    }

    /// Writes down what the cluster is.
    pub(super) fn store(&self, cluster: &Cluster) -> Result<(), String> {
        let (new, file) = (self.path.join("dev.toml.new"), self.path.join("dev.toml"));
        fs::write(&new, cluster.to_text())
            .and_then(|()| fs::rename(&new, &file))
            .map_err(|error| format!("cannot write {}: {error}", file.display()))
    }

    /// Deletes the cluster, and nothing that is not its own.
    pub(super) fn delete(&self, cluster: &Cluster) -> Result<(), String> {
        let failed = |path: &Path, error| format!("cannot delete {}: {error}", path.display());
        let nodes: Vec<PathBuf> = (0..cluster.group.size()).map(|node| self.data(node)).collect();
        for data in nodes.iter().filter(|data| data.exists()) {
            let owner = read_identity(data).and_then(|owner| match owner {
                None => read_formation(data),
                owner => Ok(owner),
            });
            let owner = owner.map_err(|error| format!("not deleted: {error}"))?;
            let is_empty = fs::read_dir(data).is_ok_and(|mut entries| entries.next().is_none());
            if !is_empty && owner.is_none_or(|owner| owner.cluster != cluster.id) {
                return Err(format!(
                    "not deleted: {} does not belong to cluster {:016x}",
                    data.display(),
                    cluster.id
                ));
            }
        }
        for (node, data) in nodes.iter().enumerate() {
            match fs::remove_dir_all(data) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(data, error)),
                _ => {}
            }
            for file in [self.config(node), self.log(node)] {
                let _ = fs::remove_file(file);
            }
        }
        let _ = fs::remove_file(self.secret());
        match fs::remove_dir_all(self.path.join("tls")) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(failed(&self.path.join("tls"), error));
            }
            _ => {}
        }
        let marker = self.path.join("dev.toml");
        fs::remove_file(&marker).map_err(|error| failed(&marker, error))
    }

    /// File with the secret of the cluster.
    pub(super) fn secret(&self) -> PathBuf {
        self.path.join("secret")
    }

    /// Data directory of a node.
    pub(super) fn data(&self, node: usize) -> PathBuf {
        self.path.join(format!("node-{node}"))
    }

    /// Configuration file of a node.
    pub(super) fn config(&self, node: usize) -> PathBuf {
        self.path.join(format!("node-{node}.toml"))
    }

    /// Log file of a node.
    pub(super) fn log(&self, node: usize) -> PathBuf {
        self.path.join(format!("node-{node}.log"))
    }

    /// True if the node must be started with `--bootstrap`.
    pub(super) fn needs_bootstrap(&self, cluster: &Cluster, node: usize) -> Result<bool, String> {
        let data = self.data(node);
        let has_identity = read_identity(&data).map_err(|error| error.to_string())?.is_some();
        if !has_identity && cluster.is_complete {
            return Err(format!(
                "{} is gone. A replica that lost its data must not come back under its old identity; \
                 start a new cluster with --fresh",
                data.display()
            ));
        }
        Ok(!has_identity)
    }

    /// Writes the configuration files of all nodes.
    ///
    /// # Errors
    /// If the nodes would not take them, or they cannot be written.
    pub(super) fn write_configs(&self, cluster: &Cluster, settings: &Settings<'_>) -> Result<(), String> {
        let Settings {
            protocol,
            reads,
            writes,
            emulate_reads,
            metrics,
            tls,
            limits,
            disk_engine,
            timing,
            relay,
            log,
        } = settings;
        secret::make(&self.secret())?;
        if tls.is_some() {
            self.make_certificates(cluster)?;
        }
        let secret_file = toml::Value::String(self.secret().display().to_string());
        for node in 0..cluster.group.size() {
            let replicas = match relay {
                Some(relay) => relay.addresses_for_replica(node),
                None => replica_addresses(cluster),
            };
            let list: Vec<String> = replicas.iter().map(|address| format!("\"{address}\"")).collect();
            let list = list.join(", ");
            let directory = toml::Value::String(self.data(node).display().to_string());
            let mut text = format!(
                "# Written by syros dev at every start.\ncluster = 0x{:016x}\nreplicas = [{list}]\nreplica = {node}\n\
                 directory = {directory}\nsecret-file = {secret_file}\nprotocol = \"{protocol}\"\nfast-quorum = \"{}\"\ndurability = \"{}\"\nengine = \"{}\"\n\
                 reads = \"{reads}\"\nwrites = \"{writes}\"\n\n\
                 [listen]\nredis = \"127.0.0.1:{}\"\n",
                cluster.id,
                cluster.fast_quorum,
                durability_name(cluster.durability),
                cluster.engine.name(),
                redis_port(cluster, node),
            );
            if let Some(first) = metrics {
                text += &format!("metrics = \"127.0.0.1:{}\"\n", usize::from(*first) + node);
            }
            if let Some(first) = tls {
                text += &format!("redis-tls = \"127.0.0.1:{}\"\n", usize::from(*first) + node);
                text += &self.tls_table(node);
            }
            text += &table("limits", limits);
            text += &table("disk-engine", disk_engine);
            text += &table("log", &log_keys(log));
            text += timing;
            if let Some(rate) = emulate_reads {
                text += &format!("\n[emulate]\nreads-per-second = {rate}\n");
            }
            config::parse(&text, Path::new("/"), None)
                .map_err(|error| format!("--limit or --disk-engine: {error}"))?;
            let file = self.config(node);
            fs::write(&file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        }
        Ok(())
    }
}

impl Layout {
    /// Directory with the certificate of an administrator.
    pub(super) fn administrator(&self) -> PathBuf {
        self.path.join("tls").join("admin")
    }

    /// Directory with the certificate of a client.
    pub(super) fn client(&self) -> PathBuf {
        self.path.join("tls").join("client")
    }

    /// Directory with the certificate of a node.
    fn node_certificate(&self, node: usize) -> PathBuf {
        self.path.join("tls").join(format!("node-{node}"))
    }

    /// The file with the certificate of the authority.
    pub(super) fn authority(&self) -> PathBuf {
        self.path.join("tls").join(certificate::AUTHORITY)
    }

    /// Makes certificates for everybody, and the authority if there is none yet.
    fn make_certificates(&self, cluster: &Cluster) -> Result<(), String> {
        let directory = self.path.join("tls");
        if !self.authority().exists() {
            certificate::make_authority(&directory, "syros dev", ValidityDays::AUTHORITY)?;
        }
        let hosts = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let issue = |role, to: &Path| {
            let identity = Identity { cluster: cluster.id, role };
            certificate::issue(&directory, identity, &hosts, ValidityDays::HOLDER, to)
        };
        for node in cluster.group.members() {
            issue(Role::Node(node), &self.node_certificate(node.index()))?;
        }
        issue(Role::Client, &self.client())?;
        issue(Role::Administrator, &self.administrator())
    }

    /// The table `tls` of a node. Redis clients show no certificate: that is to try things out.
    fn tls_table(&self, node: usize) -> String {
        let TlsFiles { certificate, key, authorities } = files_in(&self.node_certificate(node));
        let keys = [("certificate", certificate), ("key", key), ("authorities", authorities)];
        let keys = keys.map(|(key, path)| (key.to_owned(), path.display().to_string()));
        table("tls", &keys) + "client-certificates = \"optional\"\n"
    }
}

/// The keys of the table `log` that options set.
fn log_keys(log: &logger::LogOptions) -> Vec<(String, String)> {
    let keys = [
        ("level", log.log_level.as_ref().map(ToString::to_string)),
        ("format", log.log_format.map(|format| format.to_string())),
        ("lines", log.log_lines.map(|lines| lines.to_string())),
    ];
    keys.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

/// A table of a configuration file; nothing if it has no keys.
fn table(name: &str, keys: &[(String, String)]) -> String {
    let mut text = if keys.is_empty() { String::new() } else { format!("\n[{name}]\n") };
    for (key, value) in keys {
        let value = match value.parse::<i64>() {
            Ok(number) => toml::Value::Integer(number),
            Err(_) => toml::Value::String(value.clone()),
        };
        text += &format!("{key} = {value}\n");
    }
    text
}

/// Redis port of a node.
pub(super) fn redis_port(cluster: &Cluster, node: usize) -> u16 {
    cluster.redis_port.saturating_add(u16::try_from(node).unwrap_or(u16::MAX))
}

/// Where the replicas listen, in order.
pub(super) fn replica_addresses(cluster: &Cluster) -> Vec<SocketAddr> {
    cluster.replica_ports.iter().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, *port))).collect()
}

/// Addresses as options take them.
pub(super) fn comma_separated(addresses: &[SocketAddr]) -> String {
    addresses.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster() -> Cluster {
        let mut cluster = Cluster::new(
            Group::new(3).unwrap(),
            FastQuorum::Supermajority,
            Durability::Fsync,
            EngineKind::Disk,
        );
        (cluster.redis_port, cluster.replica_ports) = (7000, vec![7100, 7101, 7102]);
        cluster
    }

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("syros-layout-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    #[test]
    fn what_a_cluster_is_survives_and_damage_is_named() {
        let text = cluster().to_text();
        let read = Cluster::parse(&text).unwrap();
        assert_eq!(Cluster { id: read.id, ..cluster() }, read);
        for (from, to, complaint) in [
            ("format = 1", "format = 2", "2 is not 1"),
            ("replicas = 3", "replicas = 4", "1, 3, 5, 7 or 9"),
            ("7100,", "", "one port per replica"),
            ("cluster =", "clutter =", "'cluster': missing"),
        ] {
            let error = Cluster::parse(&text.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(complaint), "{error}");
        }
    }

    #[test]
    fn a_strange_directory_is_neither_used_nor_deleted() {
        let path = scratch("strange");
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("letters.txt"), "dear").unwrap();
        let error = Layout::open(&path).map(|_| ()).unwrap_err();
        assert!(error.contains("letters.txt"), "{error}");
        fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn fresh_deletes_only_what_is_its_own() {
        let path = scratch("fresh");
        let layout = Layout::open(&path).unwrap();
        assert_eq!(layout.load(), Ok(None));
        layout.store(&cluster()).unwrap();
        let busy = Layout::open(&path).map(|_| ()).unwrap_err();
        assert!(busy.contains("in use"), "{busy}");

        let stored = layout.load().unwrap().unwrap();
        fs::write(path.join("notes.txt"), "mine").unwrap();
        fs::create_dir_all(path.join("node-1")).unwrap();
        fs::write(path.join("node-1").join("thesis.tex"), "mine").unwrap();
        let refused = layout.delete(&stored).unwrap_err();
        assert!(refused.contains("node-1"), "{refused}");
        assert!(path.join("node-1").join("thesis.tex").exists());

        fs::remove_file(path.join("node-1").join("thesis.tex")).unwrap();
        layout.delete(&stored).unwrap();
        assert_eq!(layout.load(), Ok(None));
        assert!(path.join("notes.txt").exists());
        fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn lost_data_is_not_replaced_silently() {
        let path = scratch("lost");
        let layout = Layout::open(&path).unwrap();
        assert_eq!(layout.needs_bootstrap(&cluster(), 1), Ok(true));
        let complete = Cluster { is_complete: true, ..cluster() };
        let refused = layout.needs_bootstrap(&complete, 1).unwrap_err();
        assert!(refused.contains("node-1 is gone"), "{refused}");
        fs::remove_dir_all(&path).unwrap();
    }
}
