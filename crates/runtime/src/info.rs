//! What INFO tells.

use std::cell::Cell;
use std::time::Duration;

use syros_node::front_end::{ClientMemory, SubscriptionCounts};
use syros_protocol::client::Client;
use syros_protocol::message::RoleName;
use syros_protocol::replica::Durability;
use syros_resp::{DatabaseReport, ServerInfo, ServerReport};
use syros_types::{Configuration, EvictionSettings, Instant, Now, ReplicaId, View};

use crate::local_replica::LocalReplica;
use crate::statistics::Statistics;
use crate::tls::ProcessTls;

/// Where Redis clients are listened for; 0 for nowhere.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RedisPorts {
    pub(crate) plain: u16,
    /// Those that speak TLS.
    pub(crate) tls: u16,
}

/// What about a process never changes.
#[derive(Clone, Debug)]
pub(crate) struct ProcessDescription {
    pub(crate) run_id: String,
    pub(crate) redis_ports: RedisPorts,
    pub(crate) tls: ProcessTls,
    pub(crate) configuration: Configuration,
    /// When the cluster acknowledges updates.
    pub(crate) durability: Durability,
    /// Where the replicas listen.
    pub(crate) replicas: Vec<String>,
    /// Most Redis clients: no more than there may be connections, and fewer if a client says so.
    pub(crate) clients_max: Cell<usize>,
    /// Most clients of one kind from one address, if there is a limit.
    pub(crate) clients_per_address_max: Cell<Option<usize>>,
}

impl ProcessDescription {
    /// The process as it is now.
    pub(crate) fn state<'a>(
        &'a self,
        local: Option<&'a LocalReplica>,
        (client, statistics): (&'a Client, &'a Statistics),
        (clients, clients_max): (usize, usize),
        (memory, subscriptions, own_reads): (&'a ClientMemory, SubscriptionCounts, u64),
        (is_cut_off, is_stopping): (bool, bool),
        now: Now,
    ) -> ProcessState<'a> {
        ProcessState {
            description: self,
            local,
            client,
            statistics,
            clients,
            clients_max,
            memory,
            subscriptions,
            own_reads,
            is_cut_off,
            is_stopping,
            now,
        }
    }
}

/// Everything that INFO asks about.
pub(crate) struct ProcessState<'a> {
    description: &'a ProcessDescription,
    local: Option<&'a LocalReplica>,
    client: &'a Client,
    statistics: &'a Statistics,
    clients: usize,
    clients_max: usize,
    memory: &'a ClientMemory,
    subscriptions: SubscriptionCounts,
    /// Reads that no client has asked for.
    own_reads: u64,
    /// No majority can be reached.
    is_cut_off: bool,
    is_stopping: bool,
    now: Now,
}

impl ProcessState<'_> {
    /// How the operations of this process's clients have been answered.
    fn answered(&self) -> Vec<(&'static str, u64)> {
        let (reads, writes) = (self.client.read_counts(), self.client.write_counts());
        vec![
            ("reads_by_leader", reads.leader),
            ("reads_by_meta", reads.meta),
            ("reads_by_quorum", reads.quorum),
            ("reads_rinsed", reads.rinsed),
            ("reads_referred", reads.referred),
            ("reads_of_several_keys", reads.several),
            ("reads_stale", reads.stale),
            // Counted among those above.
            ("own_reads", self.own_reads),
            ("writes_by_quorum", writes.fast),
            ("writes_by_leader", writes.leader),
            ("writes_referred", writes.ordered),
            ("damaged_frames", self.statistics.damaged_frames.get()),
        ]
    }

    /// How far each replica is from this process, which is no distance from its own.
    fn round_trips(&self, configuration: Configuration) -> Vec<(u8, u64)> {
        let own = self.local.map(|local| local.me);
        let to = |replica: ReplicaId| {
            let time = if own == Some(replica) { Duration::ZERO } else { self.client.round_trip(replica)? };
            Some((replica.0, time.as_micros() as u64))
        };
        configuration.members().filter_map(to).collect()
    }

    /// What there is to tell about the replica of this process; the view that it is in.
    fn report_replica(&self, local: &LocalReplica, report: &mut ServerReport) -> View {
        let configuration = &self.description.configuration;
        let status = local.replica().status();
        report.fast_quorum = status.fast_quorum.to_string();
        let rule = local.replica().rule();
        report.active = rule.mode.has_active_members().then(|| {
            let members = configuration.members().filter(|member| rule.active.contains(*member));
            members.map(|member| member.0.to_string()).collect::<Vec<_>>().join(",")
        });
        report.data_bytes = local.data_bytes().map(|bytes| bytes as u64);
        (report.disk_free_bytes, report.disk_reserve_bytes, report.disk_is_short) = local.disk_space();
        report.oldest_entry = local.oldest_entry().0;
        report.maxmemory = local.maxmemory.get().unwrap_or(0);
        report.eviction = local.eviction.get();
        report.keys_evicted = local.evicted_keys();
        report.databases = local
            .census()
            .map(|census| DatabaseReport { keys: census.keys, keys_with_expiry: census.expiring });
        report.keys_expired = local.expired_keys();
        (report.role, report.status) = match status.role {
            RoleName::Leader | RoleName::Follower if status.no_quorum => {
                (status.role.to_string(), "no-quorum".to_owned())
            }
            RoleName::Leader | RoleName::Follower => (status.role.to_string(), "normal".to_owned()),
            RoleName::ViewChange | RoleName::Recovering => ("follower".to_owned(), status.role.to_string()),
        };
        report.replica = Some(status.replica);
        let view = View(status.view);
        let leads = matches!(status.role, RoleName::Leader | RoleName::Follower) && !status.no_quorum;
        report.leader = Some(configuration.leader(view).0).filter(|_| leads);
        report.silent_ms = status.silent_ms;
        report.disk = local.disk_state();
        report.disk_free_inodes = local.free_inodes();
        report.commit = status.commit;
        report.applied = status.applied;
        report.durability_log = status.dlog_length;
        report.fast_updates = status.fast_updates;
        report.slow_updates = status.slow_updates;
        report.reads = status.fast_reads + status.slow_reads;
        report
            .answered
            .extend([("divergences", status.divergences), ("diverged", u64::from(status.diverged))]);
        view
    }
}

impl ServerInfo for ProcessState<'_> {
    fn fill_with_chance(&self, bytes: &mut [u8]) -> bool {
        getrandom::fill(bytes).is_ok()
    }

    fn report(&self) -> ServerReport {
        let ProcessDescription {
            run_id,
            redis_ports,
            tls,
            configuration,
            durability,
            replicas,
            clients_max,
            clients_per_address_max,
        } = self.description;
        let statistics = self.statistics;
        let mut view = self.client.view();
        let mut report = ServerReport {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            process_id: std::process::id(),
            run_id: run_id.clone(),
            tcp_port: redis_ports.plain,
            tls_port: redis_ports.tls,
            certificate_expires: tls.expires(),
            // The clock counts from the start of the process.
            uptime_seconds: self.now.instant.since(Instant(0)).as_secs(),
            clients: self.clients as u64,
            clients_max: clients_max.get() as u64,
            clients_per_address_max: clients_per_address_max.get().unwrap_or(0) as u64,
            client_memory_bytes: self.memory.used() as u64,
            client_memory_max: self.memory.limit() as u64,
            clients_evicted: self.memory.evicted(),
            pubsub_channels: self.subscriptions.channels as u64,
            pubsub_patterns: self.subscriptions.patterns as u64,
            pubsubshard_channels: self.subscriptions.shard_channels as u64,
            subscribers_closed: statistics.subscribers_closed.get(),
            connections_received: statistics.connections_since_reset(),
            connections_rejected: statistics.rejected.get(),
            connections_rejected_by_address: statistics.rejected_by_address.get(),
            commands_processed: statistics.commands.get(),
            memory_bytes: resident_bytes().unwrap_or(0),
            memory_peak_bytes: kilobytes("/proc/self/status", "VmHWM:").unwrap_or(0),
            memory_total_bytes: kilobytes("/proc/meminfo", "MemTotal:").unwrap_or(0),
            cpu_millis: cpu_millis().unwrap_or_default(),
            os: operating_system(),
            fsync: *durability == Durability::Fsync,
            role: "gateway".to_owned(),
            status: "normal".to_owned(),
            fast_quorum: self.client.rule().mode.to_string(),
            group_size: configuration.size() as u64,
            replica_addresses: replicas.iter().take(configuration.size()).cloned().collect(),
            answered: self.answered(),
            round_trips: self.round_trips(*configuration),
            leader: Some(configuration.leader(view).0).filter(|_| !self.is_cut_off),
            ..ServerReport::default()
        };
        if let Some(local) = self.local {
            view = self.report_replica(local, &mut report);
        } else if self.is_cut_off {
            report.status = "no-quorum".to_owned();
        }
        (report.view, report.epoch) = (view.number(), view.epoch().0);
        if self.is_stopping {
            report.status = "stopping".to_owned();
        }
        report
    }

    fn has_to_count_keys(&self) -> bool {
        self.local.is_some_and(LocalReplica::has_to_count_keys)
    }

    fn set_maxmemory(&self, bytes: u64) -> Result<(), &'static str> {
        let local = self.local.ok_or("this process keeps no data: set it at each node")?;
        if local.data_bytes().is_none() {
            return Err("it limits the data of the engine in memory, and this node has another one");
        }
        tracing::info!(
            node = local.me.0,
            bytes,
            "a client has set memory.maxmemory of this node, until the node ends"
        );
        local.maxmemory.set((bytes > 0).then_some(bytes));
        Ok(())
    }

    fn set_eviction(&self, settings: EvictionSettings) -> Result<(), &'static str> {
        let local = self.local.ok_or("this process keeps no data: set it at each node")?;
        if local.data_bytes().is_none() {
            return Err("it concerns the engine in memory, and this node has another one");
        }
        tracing::info!(
            node = local.me.0,
            policy = settings.policy.name(),
            "a client has set memory.maxmemory-policy, or what goes with it, of this node, until the node ends"
        );
        local.eviction.set(settings);
        Ok(())
    }

    fn set_clients_max(&self, clients: u64) -> Result<(), &'static str> {
        let clients = usize::try_from(clients).ok().filter(|clients| *clients <= self.clients_max);
        let text = "there may be only as many as the node has had file descriptors for when it started, and as its \
                    configuration allows: limits.connections";
        self.description.clients_max.set(clients.ok_or(text)?);
        Ok(())
    }

    fn set_clients_per_address_max(&self, clients: u64) -> Result<(), &'static str> {
        let limit = usize::try_from(clients).unwrap_or(usize::MAX);
        self.description.clients_per_address_max.set((limit > 0).then_some(limit));
        Ok(())
    }

    fn reset_statistics(&self) {
        self.statistics.reset();
    }
}

/// A figure of a file of proc(5), in bytes.
fn kilobytes(path: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Processor time of this process in milliseconds, in the system and outside it.
fn cpu_millis() -> Option<[u64; 2]> {
    // proc(5): the name, which may hold anything, is in parentheses; user and system time are the 14th and 15th field.
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut millis = || {
        let ticks: u64 = fields.next()?.parse().ok()?;
        (ticks * 1000).checked_div(rustix::param::clock_ticks_per_second())
    };
    let user = millis()?;
    Some([millis()?, user])
}

/// The operating system as Redis names it: `Linux 6.1.0 x86_64`.
fn operating_system() -> String {
    let part = |name: &str| {
        std::fs::read_to_string(format!("/proc/sys/kernel/{name}"))
            .map_or_else(|_| std::env::consts::OS.to_owned(), |text| text.trim().to_owned())
    };
    format!("{} {} {}", part("ostype"), part("osrelease"), std::env::consts::ARCH)
}

/// Memory of this process, as the system counts it.
fn resident_bytes() -> Option<u64> {
    // The second number is the resident pages (proc(5)); elsewhere there is no such file.
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    pages.checked_mul(rustix::param::page_size() as u64)
}
