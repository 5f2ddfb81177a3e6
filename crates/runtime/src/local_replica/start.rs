//! How a replica comes up with what its disk holds.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use mio::Waker;
use syros_node::data::{Owner, boot};
use syros_node::snapshots::SnapshotSizes;
use syros_node::{DiskState, EntriesReader, RecordNumbering, ReplicaDriver};
use syros_protocol::message::Describe;
use syros_protocol::record::Ticket;
use syros_protocol::replica::{Boot, Config, Replica, ViewChangeCause};
use syros_types::{ConfigurationId, EvictionSettings, Instant, Now, ReplicaId, View};
use syros_wal::{GroupCommit, Options, ReadOnlyDisk, RecordNumber, Recovery};

use super::LocalReplica;
use super::log::on_progress;
use crate::clock::Clock;
use crate::config::StoreConfig;
use crate::directory::{DataDirectory, DirectoryError, WAL};
use crate::disk_engine;
use crate::disk_space::DiskWatch;
use crate::durable_sender::DurableSender;
use crate::entries_thread::EntriesThread;
use crate::execution::{self, NodeFiles, Opened};
use crate::memory_engine::MemoryEngineFiles;
use crate::other_members::OtherMembers;
use crate::scrub::{Scrub, ScrubPlan};
use crate::slow_reads::SlowReads;
use crate::start_error::LogError;
use crate::store::{self};
use crate::tls::LinksTls;
use crate::traces::{ReplicaTraces, SyncTimes, Tracing};

/// What a [`LocalReplica`] is made of.
pub(crate) struct LocalReplicaParts {
    pub(crate) config: Config,
    pub(crate) cluster: u64,
    /// Where the replicas listen, in the order of their ids.
    pub(crate) replicas: Vec<String>,
    /// With what this node shows them by TLS who it is.
    pub(crate) links_tls: Option<LinksTls>,
    pub(crate) directory: DataDirectory,
    pub(crate) store: StoreConfig,
    /// The engine on disk, if that is where it is.
    pub(crate) on_disk: Option<disk_engine::DiskEngineSettings>,
    /// The engine in memory, if that is where it is.
    pub(crate) in_memory: MemoryEngineFiles,
    pub(crate) clock: Clock,
    /// Most bytes that the data may take in memory.
    pub(crate) maxmemory: Option<u64>,
    /// What happens when it takes as many.
    pub(crate) eviction: EvictionSettings,
    /// With what operations are traced, if they are.
    pub(crate) tracing: Option<Tracing>,
    /// Used when records that are waited for have reached the disk, and when there is news of snapshots or damage.
    pub(crate) waker: Arc<Waker>,
}

impl LocalReplica {
    /// Reads back what is on disk and boots the replica.
    #[expect(clippy::too_many_lines, reason = "most lines fill a field")]
    pub(crate) fn start(parts: LocalReplicaParts) -> Result<Self, LogError> {
        let LocalReplicaParts {
            mut config,
            cluster,
            replicas,
            links_tls,
            mut directory,
            store: settings,
            on_disk,
            in_memory,
            clock,
            ..
        } = parts;
        let (maxmemory, eviction, waker) = (parts.maxmemory, parts.eviction, parts.waker);
        let watch = |presence| DiskWatch::start(presence, settings.reserve_bytes, Arc::clone(&waker));
        let disk_watch = directory.presence().and_then(watch).map_err(LogError::Space)?;
        let files = NodeFiles {
            cluster,
            directory: &directory,
            segment_bytes: settings.segment_bytes,
            keep_bytes: settings.keep_log_bytes,
            reserve: disk_watch.reserve(),
            waker: &waker,
        };
        let Opened { wal, view, recovery, restored, snapshots, execution, engine_threads } = match on_disk {
            None => execution::open_in_memory(&config, &files, in_memory)?,
            Some(settings) => execution::open_on_disk(&config, &files, settings)?,
        };
        let (me, configuration) = (config.replica, config.configuration.id.of_group());
        let (durability, describe) = (config.durability, config.describe);
        check_identity(&directory, view.view())?;
        let boot = boot(durability, !directory.holds_state(), restored, view.view());
        log_start(me, &boot, view.view(), &recovery);
        if let Some(rate) = settings.emulated_reads {
            tracing::warn!(
                node = me.0,
                reads_per_second = rate,
                "this replica emulates a slow storage, for measurements only"
            );
        }
        let promises_end = begin_promises(&mut directory, &mut config, clock).map_err(LogError::Claim)?;
        let others = OtherMembers { group: config.configuration.group(), me, replicas, tls: links_tls };
        let plan = settings.scrub_interval.map(|interval| ScrubPlan {
            directory: directory.open_directory().clone(),
            owner: Owner { cluster, replica: me },
            others: others.clone(),
            interval,
            rate: settings.scrub_rate,
            seed: in_memory.hash_seed ^ config.seed,
        });
        let scrub = plan.map(|plan| Scrub::start(plan, clock, Arc::clone(&waker)));
        let numbering = RecordNumbering::new(wal.appended(), Ticket(0));
        let durable_sender = Arc::<DurableSender>::default();
        let has_log = config.durability == syros_protocol::replica::Durability::Fsync;
        let traces = parts.tracing.map(|tracing| traces_of(tracing, me, &directory, clock, has_log));
        let on_progress = on_progress(&durable_sender, &waker, traces.as_deref());
        let log_options =
            store::log_options(&config, cluster, settings.segment_bytes, settings.keep_log_bytes);
        let log_copies =
            start_log_copies(&directory, &log_options, configuration, describe, wal.persisted(), &waker)?;
        let now = clock.now();
        let replica = Replica::new(config, boot, now);
        let mut local = Self {
            me,
            is_halted: false,
            driver: ReplicaDriver::new(replica, execution, SnapshotSizes::SERVER, now),
            engine_threads,
            snapshots,
            log_copies,
            durability,
            describe,
            configuration,
            wal: GroupCommit::start(wal, on_progress).map_err(LogError::Thread)?,
            log_options,
            numbering,
            disk: DiskState::Works,
            has_logged_loss: false,
            probe_at: Instant::NEVER,
            others,
            waker,
            restart_permit: None,
            durable_sender,
            is_overdue: false,
            view,
            slow_reads: settings.emulated_reads.map(SlowReads::new),
            warning_at: Instant(0),
            logged_role: None,
            has_more_reports: false,
            scrub: scrub.transpose().map_err(LogError::Thread)?,
            is_damaged: false,
            is_log_damaged: false,
            renew_at: Instant(0),
            clock,
            disk_watch,
            promises_end,
            maxmemory: Cell::new(maxmemory),
            eviction: Cell::new(eviction),
            memory_warning_at: Instant(0),
            was_short: false,
            view_changes: [0; ViewChangeCause::NAMES.len()],
            counted: 0,
            traces,
            directory,
        };
        local.tell_memory(local.clock.now());
        local.tell_space(local.clock.now());
        Ok(local)
    }

    /// Notes when leases that were promised before this process started have ended.
    pub(crate) fn record_promises_end(&mut self, now: Now) {
        if let Some((end, lease)) = self.promises_end
            && now.instant >= end
        {
            self.promises_end = None;
            if let Err(error) = self.directory.end_promises(lease) {
                tracing::warn!(
                    node = self.me.0,
                    error = %error,
                    "this replica cannot note that its longer leases have ended: at its next start it waits for them again"
                );
            }
        }
    }
}

/// Starts the thread that reads the log for those who copy it.
fn start_log_copies(
    directory: &DataDirectory,
    options: &Options,
    configuration: ConfigurationId,
    describe: Describe,
    durable: RecordNumber,
    waker: &Arc<Waker>,
) -> Result<EntriesThread, LogError> {
    let open = || {
        let log = directory.open_directory().open_directory(WAL)?;
        let reader = EntriesReader::new(ReadOnlyDisk::of(log), options.clone(), configuration, describe);
        EntriesThread::start(reader, durable, Arc::clone(waker))
    };
    open().map_err(LogError::Thread)
}

/// Checks that the configuration in the identity file is not older than the view that the replica has reached.
fn check_identity(directory: &DataDirectory, reached: View) -> Result<(), LogError> {
    let epoch = directory.configuration().epoch;
    if reached.epoch() <= epoch {
        return Ok(());
    }
    let problem = format!(
        "it names epoch {}, and the view that the replica has reached is {reached}: the file was put back from an older \
         copy. A new node can take its place (--replace)",
        epoch.0
    );
    Err(LogError::Claim(DirectoryError::Damaged { path: directory.path().join("identity"), problem }))
}

/// Logs how a replica starts.
fn log_start(me: ReplicaId, boot: &Boot, view: View, recovery: &Recovery) {
    let boot = match boot {
        Boot::Fresh => "for the first time",
        Boot::Restored(_) => "again",
        Boot::Amnesiac { .. } => "again, without its memory",
    };
    let records = (recovery.last.0 + 1).saturating_sub(recovery.first.0);
    tracing::info!(
        node = me.0,
        view = view.number(),
        records,
        bytes = recovery.bytes,
        "this replica starts {boot}"
    );
}

/// What follows the updates of a replica that are traced.
fn traces_of(
    tracing: Tracing,
    me: ReplicaId,
    directory: &DataDirectory,
    clock: Clock,
    has_log: bool,
) -> Box<ReplicaTraces> {
    let syncs = Arc::new(SyncTimes::new(clock));
    Box::new(ReplicaTraces::new(tracing, me, directory.node().number(), syncs, has_log))
}

/// Makes the directory the replica's, and notes there which leases it promises from now on. When longer ones end that it
/// promised before, and what it promises now.
fn begin_promises(
    directory: &mut DataDirectory,
    config: &mut Config,
    clock: Clock,
) -> Result<Option<(Instant, Duration)>, DirectoryError> {
    config.promised_before = directory.begin_promises(config.settings.lease)?;
    directory.claim()?;
    let (before, lease) = (config.promised_before, config.settings.lease);
    Ok((before > lease).then(|| {
        tracing::info!(
            node = config.replica.0,
            before_ms = before.as_millis(),
            lease_ms = lease.as_millis(),
            "this replica promised longer leases before: it takes part in no view change until they have ended"
        );
        (clock.now().instant.after(before), lease)
    }))
}
