//! The replica of a node: its core, the engine that executes its log, and the write-ahead log.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mio::Waker;
use syros_lsm::DiskStore;
use syros_net::Outlet;
use syros_node::data::{Owner, ViewFile, boot};
use syros_node::snapshots::SnapshotSizes;
use syros_node::{
    DiskState, ENTRIES_PER_TURN, InMemory as _, MemoryExecutor, Notice, Output, ReadJob, RecordNumbering,
    ReplicaDriver,
};
use syros_protocol::message::{Describe, Message, Peer, RoleName};
use syros_protocol::record::{Record, Ticket};
use syros_protocol::replica::{Boot, Config, Durability, Event, Replica};
use syros_storage::{Census, DiskEngine, StoreCause};
use syros_types::{ConfigurationId, Instant, Now, OpNumber, ReplicaId, View};
use syros_wal::{AppendError, FileDisk, GroupCommit, Options, RecordNumber, Recovery, WalError, WriteError};

use crate::clock::Clock;
use crate::config::StoreConfig;
use crate::directory::{DataDirectory, DirectoryError};
use crate::disk_space::DiskWatch;
use crate::durable_sender::DurableSender;
use crate::execution::{self, EngineThreads, NodeFiles, Opened};
use crate::memory_engine::{AnyMemoryEngine, MemoryEngineFiles};
use crate::on_disk;
use crate::others::{Others, RestartPermit};
use crate::scrub::{Finding, Plan, Scrub};
use crate::slow_reads::SlowReads;
use crate::snapshots::SnapshotThread;
use crate::store::{self, StoreError};
use crate::trace::{self, COMPLAINT_INTERVAL};

/// Clients are not read from while more bytes than this wait for the disk: half of what the log takes,
/// so that what other replicas send in the meantime still fits.
const WAITING_BYTES_PAUSE: usize = syros_wal::WAITING_BYTES_DEFAULT / 2;

/// How often a node looks whether space has returned to its disk.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// How long to wait for room in a log that is full.
const FULL_LOG_PAUSE: Duration = Duration::from_millis(1);

/// Why a replica cannot start with what it has on disk.
#[derive(Debug)]
#[non_exhaustive]
pub enum LogError {
    /// What is on disk cannot be used.
    Store(StoreError),
    /// The directory cannot be made the replica's.
    Claim(DirectoryError),
    /// The system gives no thread.
    Thread(std::io::Error),
    /// The store of the engine cannot be created.
    Engine(syros_storage::StoreError),
    /// The space of the file system cannot be asked for.
    Space(std::io::Error),
    /// The data cannot fit into memory.
    TooLargeForMemory {
        /// Length of the snapshot.
        bytes: u64,
        /// Memory that the process may take.
        memory: u64,
    },
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Claim(error) => error.fmt(f),
            Self::Thread(error) => write!(f, "cannot start a thread of the replica: {error}"),
            Self::Engine(error) => error.fmt(f),
            Self::Space(error) => write!(f, "cannot look after the space of the file system: {error}"),
            Self::TooLargeForMemory { bytes, memory } => write!(
                f,
                "the snapshot has {bytes} bytes, and this process may take {memory} bytes of memory: start it where \
                 there is more"
            ),
        }
    }
}

impl std::error::Error for LogError {}

/// Logs how a replica starts.
fn tell_start(me: ReplicaId, boot: &Boot, view: View, recovery: &Recovery) {
    let boot = match boot {
        Boot::Fresh => "for the first time",
        Boot::Restored(_) => "again",
        Boot::Amnesiac { .. } => "again, without its memory",
    };
    let records = (recovery.last.0 + 1).saturating_sub(recovery.first.0);
    tracing::info!(node = me.0, view = view.0, records, bytes = recovery.bytes, "this replica starts {boot}");
}

/// Makes the directory the replica's, and notes there which leases it promises from now on. When longer ones end that it
/// promised before, and what it promises now.
fn begin_promises(
    directory: &mut DataDirectory,
    config: &mut Config,
    clock: Clock,
) -> Result<Option<(Instant, Duration)>, DirectoryError> {
    config.promised_before = directory.begin_promises(config.lease)?;
    directory.claim()?;
    let (before, lease) = (config.promised_before, config.lease);
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

/// What the log's thread does when records are durable, or never will be.
fn on_progress(
    durable_sender: &Arc<DurableSender>,
    waker: &Arc<Waker>,
) -> impl FnMut(Result<RecordNumber, &WalError>) + Send + use<> {
    let (durable_sender, waker) = (Arc::clone(durable_sender), Arc::clone(waker));
    move |progress: Result<RecordNumber, &WalError>| {
        if progress.map_or(true, |persisted| durable_sender.send(persisted)) {
            // Fails only if the loop is gone, and then nobody waits.
            let _ = waker.wake();
        }
    }
}

/// Something to be sent when its record is on disk.
#[derive(Debug)]
pub(crate) enum Delayed {
    /// A message.
    Message(Peer, Message),
    /// Frames for the connection with this address.
    Frames(u64, Vec<u8>),
}

/// What the event loop is to do for a replica.
pub(crate) enum Wanted {
    /// Send a message.
    Send(Peer, Message),
    /// Send a message when a record is on disk.
    SendAfter(Ticket, Peer, Message),
    /// Execute a read, as soon as there is room for its answer.
    Read(ReadJob),
}

/// What decides for the replica of a process.
type Driver = ReplicaDriver<AnyMemoryEngine, DiskStore, Delayed>;

/// A replica and what it drives.
pub(crate) struct Local {
    pub(crate) me: ReplicaId,
    driver: Driver,
    engine_threads: EngineThreads,
    snapshots: SnapshotThread,
    pub(crate) durability: Durability,
    /// What the state machine says of an operation.
    pub(crate) describe: Describe,
    /// What its records are of.
    configuration: ConfigurationId,
    wal: GroupCommit<FileDisk>,
    /// How the log is opened.
    log_options: Options,
    /// Which record a ticket of the replica is.
    numbering: RecordNumbering,
    disk: DiskState,
    /// When to try next whether a disk that refused a write takes writes again.
    pub(crate) probe_at: Instant,
    others: Others,
    waker: Arc<Waker>,
    /// Asked for when the disk has returned and a restart would lose the memory.
    restart_permit: Option<RestartPermit>,
    /// Messages that the log's thread sends.
    durable_sender: Arc<DurableSender>,
    /// Something that was waited for has reached the disk, and nobody has looked since.
    is_overdue: bool,
    view: ViewFile<FileDisk>,
    pub(crate) slow_reads: Option<SlowReads>,
    /// When a snapshot that cannot be made is complained of again.
    complain_at: Instant,
    /// View and role that were logged last.
    told: Option<(View, RoleName)>,
    /// The snapshots' thread has more to tell than what was looked at last.
    has_more_news: bool,
    scrub: Option<Scrub>,
    /// What is on disk is damaged, and others can repair it.
    is_damaged: bool,
    /// When the view is written again, which a replica with a damaged engine needs to start anew.
    renew_at: Instant,
    clock: Clock,
    disk_watch: DiskWatch,
    /// When longer leases that were promised in an earlier life have ended, and the lease since.
    promises_end: Option<(Instant, Duration)>,
    /// The log says that the data directory is not there any more. The replica starts anew if it comes back.
    has_told_loss: bool,
    /// Most bytes that the data may take in memory; `None` without a limit. Redis clients may set it.
    pub(crate) maxmemory: Cell<Option<u64>>,
    /// When data above its limit is complained of again.
    memory_complain_at: Instant,
    /// Requests for a census up to this one have been answered.
    pub(crate) counted: u64,
    /// Locked as long as this exists.
    directory: DataDirectory,
}

/// What a [`Local`] is made of.
pub(crate) struct Parts {
    pub(crate) config: Config,
    pub(crate) cluster: u64,
    /// Where the replicas listen, in the order of their ids.
    pub(crate) replicas: Vec<String>,
    pub(crate) directory: DataDirectory,
    pub(crate) store: StoreConfig,
    /// The engine on disk, if that is where it is.
    pub(crate) on_disk: Option<on_disk::Settings>,
    /// The engine in memory, if that is where it is.
    pub(crate) in_memory: MemoryEngineFiles,
    pub(crate) clock: Clock,
    /// Most bytes that the data may take in memory.
    pub(crate) maxmemory: Option<u64>,
    /// Used when records that are waited for have reached the disk, and when there is news of snapshots or damage.
    pub(crate) waker: Arc<Waker>,
}

impl Local {
    /// Reads back what is on disk and boots the replica.
    pub(crate) fn start(parts: Parts) -> Result<Self, LogError> {
        let Parts {
            mut config,
            cluster,
            replicas,
            mut directory,
            store: settings,
            on_disk,
            in_memory,
            clock,
            ..
        } = parts;
        let (maxmemory, waker) = (parts.maxmemory, parts.waker);
        let watch = |anchor| DiskWatch::start(anchor, settings.reserve_bytes, Arc::clone(&waker));
        let disk_watch = directory.anchor().and_then(watch).map_err(LogError::Space)?;
        let files = NodeFiles {
            cluster,
            directory: &directory,
            segment_bytes: settings.segment_bytes,
            reserve: disk_watch.reserve(),
            waker: &waker,
        };
        let Opened { wal, view, recovery, restored, snapshots, execution, engine_threads } = match on_disk {
            None => execution::open_in_memory(&config, &files, in_memory)?,
            Some(settings) => execution::open_on_disk(&config, &files, settings)?,
        };
        let (me, configuration) = (config.replica, config.configuration.id);
        let (durability, describe) = (config.durability, config.describe);
        let boot = boot(durability, directory.is_new(), restored, view.view());
        tell_start(me, &boot, view.view(), &recovery);
        if let Some(rate) = settings.emulated_reads {
            tracing::warn!(
                node = me.0,
                reads_per_second = rate,
                "this replica emulates a slow storage, for measurements only"
            );
        }
        let promises_end = begin_promises(&mut directory, &mut config, clock).map_err(LogError::Claim)?;
        let others = Others { group: config.configuration.group(), me, replicas };
        let plan = settings.scrub_interval.map(|interval| Plan {
            directory: directory.path().to_owned(),
            owner: Owner { cluster, replica: me },
            others: others.clone(),
            interval,
            rate: settings.scrub_rate,
            seed: in_memory.hash_seed ^ config.seed,
        });
        let scrub = plan.map(|plan| Scrub::start(plan, clock, Arc::clone(&waker)));
        let numbering = RecordNumbering::new(wal.appended(), Ticket(0));
        let durable_sender = Arc::<DurableSender>::default();
        let on_progress = on_progress(&durable_sender, &waker);
        let log_options = store::log_options(&config, cluster, settings.segment_bytes);
        let now = clock.now();
        let replica = Replica::new(config, boot, now);
        let mut local = Self {
            me,
            driver: ReplicaDriver::new(replica, execution, SnapshotSizes::SERVER, now),
            engine_threads,
            snapshots,
            durability,
            describe,
            configuration,
            wal: GroupCommit::start(wal, on_progress).map_err(LogError::Thread)?,
            log_options,
            numbering,
            disk: DiskState::Works,
            has_told_loss: false,
            probe_at: Instant::NEVER,
            others,
            waker,
            restart_permit: None,
            durable_sender,
            is_overdue: false,
            view,
            slow_reads: settings.emulated_reads.map(SlowReads::new),
            complain_at: Instant(0),
            told: None,
            has_more_news: false,
            scrub: scrub.transpose().map_err(LogError::Thread)?,
            is_damaged: false,
            renew_at: Instant(0),
            clock,
            disk_watch,
            promises_end,
            maxmemory: Cell::new(maxmemory),
            memory_complain_at: Instant(0),
            counted: 0,
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

    /// Tells the replica whether the disk is nearly full, if that has changed.
    fn tell_space(&mut self, now: Now) {
        let reserve = self.disk_watch.reserve();
        let is_short = reserve.is_short();
        let room = (reserve.bytes() > 0).then(|| reserve.free());
        self.driver.set_snapshot_room(room);
        if !self.driver.tell_disk_short(now, is_short) {
            return;
        }
        let (node, directory) = (self.me.0, reserve.directory().display());
        let (free_bytes, limit) = (reserve.free(), reserve.bytes());
        if is_short && reserve.lacks_inodes() {
            let (free_inodes, inodes) = reserve.inodes();
            tracing::error!(
                node,
                directory = %directory,
                free_inodes,
                limit = inodes,
                free_bytes,
                "the file system is nearly out of inodes: this replica takes no updates that make the data grow until files are \
                 deleted"
            );
        } else if is_short {
            tracing::error!(
                node,
                directory = %directory,
                free_bytes,
                limit,
                "the disk is nearly full: fewer bytes are free than disk.reserve says, and this replica takes no updates that \
                 make the data grow until there is space"
            );
        } else {
            tracing::info!(node, directory = %directory, free_bytes, limit, "the disk has space again");
        }
    }

    /// Space on the disk: bytes free at the last look, the limit, and whether the disk is nearly full.
    pub(crate) fn disk_space(&self) -> (u64, u64, bool) {
        let reserve = self.disk_watch.reserve();
        (reserve.free(), reserve.bytes(), reserve.is_short())
    }

    /// Files that can still be made on the disk; 0 where the file system has no limit.
    pub(crate) fn free_inodes(&self) -> u64 {
        self.disk_watch.reserve().inodes().0
    }

    /// Tells the replica by how much the data may grow, if that has changed.
    pub(crate) fn tell_memory(&mut self, now: Now) {
        self.driver.tell_memory_room(now, self.maxmemory.get());
    }

    /// Where the replica lives.
    pub(crate) const fn directory(&self) -> &DataDirectory {
        &self.directory
    }

    /// Where the replica lives.
    pub(crate) const fn directory_mut(&mut self) -> &mut DataDirectory {
        &mut self.directory
    }

    /// Appends a record to the log.
    fn append(&mut self, ticket: Ticket, record: &Record) {
        loop {
            let configuration = self.configuration;
            match self.wal.append_with(|out| syros_wire::encode_record_of(configuration, record, out)) {
                Ok(number) => {
                    assert_eq!(number, self.record(ticket), "records are numbered like tickets");
                    return;
                }
                // Reading from clients stops long before this, so it is other replicas that are too fast
                // for this disk; everything has to wait for it.
                Err(AppendError::Full { .. }) => {
                    self.wal.submit();
                    std::thread::sleep(FULL_LOG_PAUSE);
                }
                // Reported by `on_progress`: nothing will ever be persisted again.
                Err(AppendError::Failed(_)) => return,
                // A record is bounded like the message it came with; if one is not, this is not the
                // moment to find out by falling over.
                Err(error @ (AppendError::Empty | AppendError::TooLong { .. })) => {
                    return self.fail(&error.to_string(), DiskState::Failed);
                }
            }
        }
    }

    /// Ends a turn of the event loop: lets the other threads do what it has come to. True if the log's thread has got
    /// something to do.
    pub(crate) fn submit(&mut self) -> bool {
        let has_appended = self.wal.appended() > self.wal.submitted();
        self.wal.submit();
        if let (EngineThreads::OnDisk(disk), Some(executor)) =
            (&self.engine_threads, self.driver.executor_mut())
        {
            disk.threads.end_turn(executor);
        }
        has_appended
    }

    /// Lets an engine in memory execute what it was to, and what it is told to until [`Local::pause_execution`].
    pub(crate) fn execute(&mut self, now: Now) {
        let clock = self.clock;
        self.driver.resume(ENTRIES_PER_TURN, now, || clock.now().instant, &mut ());
    }

    /// From now on an engine in memory notes what it is to execute, and does not.
    pub(crate) fn pause_execution(&mut self) {
        self.driver.pause();
    }

    /// Takes note of reads of all keys that have ended.
    fn on_finished_reads(&mut self, now: Now) {
        while let EngineThreads::InMemory(long_replies) = &self.engine_threads
            && let Some(outcome) = long_replies.next_finished()
        {
            self.driver.on_read(now, outcome);
        }
    }

    /// The next thing that the event loop is to do for the replica; what concerns the log and the threads is done here.
    pub(crate) fn poll(&mut self, now: Now) -> Option<Wanted> {
        let clock = self.clock;
        while let Some(output) = self.driver.poll(now, || clock.now().instant, &mut ()) {
            match output {
                Output::Send { to, message } | Output::Evaluated { to, message } => {
                    return Some(Wanted::Send(to, message));
                }
                Output::SendAfter { after, to, message } => {
                    return Some(Wanted::SendAfter(after, to, message));
                }
                Output::Answer { to, message } => match &mut self.slow_reads {
                    Some(slow_reads) => slow_reads.hold(now.instant, to, message),
                    None => return Some(Wanted::Send(to, message)),
                },
                Output::Read(job) => return Some(Wanted::Read(job)),
                Output::NoteView(view) => {
                    if let Err(error) = self.view.record(view) {
                        self.fail_to_note(&error);
                    }
                }
                Output::Append { ticket, record } => self.append(ticket, &record),
                Output::Deal => self.hand_out(),
                Output::SnapshotJobs => {
                    while let Some(job) = self.driver.next_snapshot_job() {
                        self.snapshots.work(job);
                    }
                }
                Output::Flush(op_number) => {
                    if let EngineThreads::OnDisk(disk) = &self.engine_threads {
                        disk.threads.flush(op_number);
                    }
                }
                Output::RemoveBefore(ticket) => {
                    if let Some(record) = self.numbering.first_needed(ticket) {
                        self.wal.remove_before(record);
                    }
                }
                Output::Adopted { op_number, engine } => self.on_adopted(op_number, engine),
                Output::PutTogether(reply) => {
                    if let EngineThreads::InMemory(long_replies) = &self.engine_threads
                        && let Err(error) = long_replies.put_together(reply)
                    {
                        tracing::warn!(node = self.me.0, error = %error, "cannot start a thread for the reply to KEYS");
                    }
                }
                // The commands that need this part of the store find out.
                Output::Counted(_, Err(error)) => {
                    tracing::warn!(node = self.me.0, error = %error, "this replica cannot count its keys");
                }
                Output::Counted(request, Ok(census)) => {
                    if let EngineThreads::OnDisk(disk) = &mut self.engine_threads {
                        disk.census = Some(census);
                    }
                    self.counted = request;
                }
                Output::Notice(notice) => self.log(&notice, now),
                Output::Trace(event) => trace::log(self.me, event),
                Output::Nothing => {}
            }
        }
        None
    }

    /// Gives the threads of an engine on disk what has been dealt out.
    fn hand_out(&mut self) {
        if let (EngineThreads::OnDisk(disk), Some(executor)) =
            (&self.engine_threads, self.driver.executor_mut())
        {
            disk.threads.hand_out(executor);
        }
    }

    /// The state of the snapshot that was just loaded has taken the place of what was executed.
    fn on_adopted(&mut self, op_number: OpNumber, engine: Option<Box<DiskEngine<DiskStore>>>) {
        tracing::info!(
            node = self.me.0,
            entry = op_number.0,
            "this replica takes over the state of another replica"
        );
        let (EngineThreads::OnDisk(disk), Some(engine)) = (&mut self.engine_threads, engine) else { return };
        match disk.adopt(*engine) {
            Ok(before) => self.driver.discard(before),
            Err(error) => {
                let problem = format!("cannot start a thread of the engine: {error}");
                self.fail(&problem, DiskState::Failed);
            }
        }
    }

    fn log(&mut self, notice: &Notice, now: Now) {
        let node = self.me.0;
        match notice {
            Notice::SnapshotTaken { op_number, bytes: 0 } if self.driver.executor().is_some() => {
                tracing::debug!(node, entry = op_number.0, "this replica has a checkpoint");
            }
            Notice::SnapshotTaken { op_number, bytes } => {
                tracing::info!(node, entry = op_number.0, bytes, "this replica has a snapshot");
            }
            Notice::SnapshotCut { op_number, took } => {
                let duration_us = took.as_micros();
                tracing::debug!(
                    node,
                    entry = op_number.0,
                    duration_us,
                    "this replica has cut its state for a snapshot"
                );
            }
            Notice::SnapshotFailed { op_number, problem } => {
                // It is tried again every second.
                if now.instant >= self.complain_at {
                    self.complain_at = now.instant.after(COMPLAINT_INTERVAL);
                    tracing::error!(
                        node,
                        entry = op_number.0,
                        error = problem,
                        "this replica cannot make a snapshot; it tries again"
                    );
                }
            }
            Notice::MemoryExceeded { data, limit } => {
                if now.instant >= self.memory_complain_at {
                    self.memory_complain_at = now.instant.after(COMPLAINT_INTERVAL);
                    tracing::warn!(
                        node,
                        bytes = data,
                        limit,
                        "the data takes more memory than memory.maxmemory allows: this replica refuses updates that make it \
                         grow, and takes those that delete"
                    );
                }
            }
            Notice::Warning(warning) => tracing::warn!(node, "{warning}"),
            Notice::SnapshotBegun { .. } | Notice::Flushed(_) => {}
        }
    }

    /// Tells the replica what has reached the disk since the last call, or that the disk has failed. True if something
    /// has reached it.
    pub(crate) fn on_progress(&mut self, now: Now) -> bool {
        self.is_overdue = false;
        self.driver.on_durable(self.numbering.ticket(self.wal.persisted()));
        let has_advanced = self.driver.tell_durable(now);
        self.on_execution_reports(now);
        self.on_finished_reads(now);
        self.on_snapshot_reports(now);
        self.on_scrub_findings();
        self.tell_space(now);
        self.on_directory_loss();
        self.on_end_of_log(now);
        has_advanced
    }

    /// Notices a log that has stopped.
    fn on_end_of_log(&mut self, now: Now) {
        let Some(error) = self.wal.error() else { return };
        if !self.has_failed() {
            let state = match error {
                WalError::Disk(error) => DiskState::after(error),
                WalError::ThreadPanicked | WalError::Closed => DiskState::Failed,
            };
            let problem = error.to_string();
            self.fail(&problem, state);
        }
        self.driver.end_log(now);
    }

    /// Logs what the replica has become.
    pub(crate) fn tell_role(&mut self) {
        let now = (self.replica().view(), self.replica().role());
        if self.told == Some(now) {
            return;
        }
        self.told = Some(now);
        let (node, (view, role)) = (self.me.0, now);
        match role {
            RoleName::Leader => tracing::info!(node, view = view.0, "this replica leads"),
            RoleName::Follower => tracing::info!(node, view = view.0, "this replica follows"),
            // The trace of the core says why.
            RoleName::ViewChange => {}
            RoleName::Recovering => {
                tracing::info!(node, view = view.0, "this replica has no memory, and waits for a later view");
            }
        }
    }

    /// What the disk does, for INFO.
    pub(crate) const fn disk_state(&self) -> &'static str {
        match self.disk {
            DiskState::Works => "ok",
            DiskState::Full => "full",
            DiskState::Missing => "missing",
            DiskState::Refusing => "refusing",
            DiskState::Failed => "failed",
        }
    }

    const fn has_failed(&self) -> bool {
        !matches!(self.disk, DiskState::Works)
    }

    /// Takes note of a data directory that is not there any more: what the log's thread still writes, no restart finds.
    fn on_directory_loss(&mut self) {
        if self.has_told_loss {
            return;
        }
        let Some(problem) = self.disk_watch.loss() else { return };
        self.has_told_loss = true;
        if self.has_failed() {
            tracing::error!(node = self.me.0, error = problem, "the data directory of this replica is lost");
            if self.disk.may_return() {
                self.disk = DiskState::Missing;
            }
        } else {
            self.fail(&problem, DiskState::Missing);
        }
    }

    /// The disk cannot be relied upon any more, at least for now.
    fn fail(&mut self, problem: &str, state: DiskState) {
        if self.has_failed() {
            return;
        }
        // A write may fail before the watch has noticed that the directory is gone.
        let may_be_news = state.may_return() && !self.has_told_loss;
        let loss = may_be_news.then(|| self.disk_watch.look_for_loss()).flatten();
        let state = if loss.is_some() { DiskState::Missing } else { state };
        self.has_told_loss |= loss.is_some();
        self.disk = state;
        let now = self.clock.now();
        let node = self.me.0;
        let until = match state {
            DiskState::Missing => "it is back",
            DiskState::Full | DiskState::Refusing => "the disk takes writes again",
            DiskState::Works | DiskState::Failed => "it is started again with a working disk",
        };
        if state.may_return() {
            self.probe_at = now.instant.after(PROBE_INTERVAL);
        }
        match loss {
            Some(loss) => {
                tracing::error!(
                    node,
                    error = problem,
                    cause = loss,
                    "this replica takes no updates until {until}"
                );
            }
            None if state == DiskState::Full && self.disk_watch.reserve().lacks_inodes() => tracing::error!(
                node,
                error = problem,
                free_bytes = self.disk_watch.reserve().free(),
                "no inodes are left: this replica takes no updates until files are deleted"
            ),
            None => tracing::error!(node, error = problem, "this replica takes no updates until {until}"),
        }
        self.driver.fail(now);
    }

    /// The engine cannot go on.
    fn fail_with_engine(&mut self, problem: &str, cause: StoreCause) {
        if cause == StoreCause::Damaged
            && let EngineThreads::OnDisk(disk) = &self.engine_threads
        {
            match disk.mark_damaged(problem) {
                // The others have what this one lost.
                Ok(()) => {
                    let node = self.me.0;
                    tracing::error!(
                        node,
                        error = problem,
                        "this replica starts anew, to be repaired from the others"
                    );
                    self.disk = DiskState::Failed;
                    self.driver.fail(self.clock.now());
                    self.is_damaged = true;
                    return;
                }
                Err(error) => {
                    tracing::error!(node = self.me.0, error = %error, "this replica cannot mark its store as damaged");
                }
            }
        }
        self.fail(problem, if cause == StoreCause::Full { DiskState::Full } else { DiskState::Failed });
    }

    /// The file of the view cannot be written.
    fn fail_to_note(&mut self, error: &WriteError) {
        let state = match error {
            WriteError::Disk(error) => DiskState::after(error),
            _ => DiskState::Failed,
        };
        self.fail(&format!("cannot note the view: {error}"), state);
    }

    /// Takes note of what was found to be damaged on disk.
    fn on_scrub_findings(&mut self) {
        while let Some(finding) = self.scrub.as_ref().and_then(Scrub::next_finding) {
            match finding {
                Finding::View(problem) => {
                    let node = self.me.0;
                    tracing::error!(
                        node,
                        error = problem,
                        "the file of the view is damaged; it is written anew"
                    );
                    if let Err(error) = self.view.renew() {
                        self.fail_to_note(&error);
                    }
                }
                // If it takes part in no view now, or its disk fails, there is another round.
                Finding::Store => self.is_damaged |= self.replica().is_normal() && !self.has_failed(),
            }
        }
    }

    /// True if what is on disk is damaged, and the replica should start anew to be repaired by the others.
    pub(crate) fn is_damaged(&mut self, now: Now) -> bool {
        if !self.is_damaged || now.instant < self.renew_at {
            return false;
        }
        // Without the view it would never start again.
        let Err(error) = self.view.renew() else { return true };
        if self.driver.engine_failure().is_none() {
            // The replica can do without what is damaged for now.
            self.is_damaged = false;
            self.fail_to_note(&error);
            return false;
        }
        self.renew_at = now.instant.after(PROBE_INTERVAL);
        if now.instant >= self.complain_at {
            self.complain_at = now.instant.after(COMPLAINT_INTERVAL);
            tracing::error!(
                node = self.me.0,
                error = %error,
                "this replica cannot note its view; it starts anew when it can"
            );
        }
        false
    }

    /// Lets the work on snapshots go on, and tells the replica of it.
    fn on_snapshot_reports(&mut self, now: Now) {
        self.driver.begin_reports();
        while self.driver.takes_reports()
            && let Some(report) = self.snapshots.next_report()
        {
            self.driver.on_snapshot_report(now, report);
        }
        // What comes of a snapshot that is loaded has to be carried out before the rest is looked at.
        self.has_more_news = !self.driver.takes_reports();
        self.driver.look_at_records();
        if self.driver.cut_at() <= now.instant {
            let clock = self.clock;
            self.driver.cut_snapshot(clock.now().instant, || clock.now().instant);
        }
    }

    /// Tells the replica what an engine on disk has done.
    fn on_execution_reports(&mut self, now: Now) {
        let (EngineThreads::OnDisk(disk), Some(executor)) =
            (&self.engine_threads, self.driver.executor_mut())
        else {
            return;
        };
        disk.threads.begin(executor, now);
        self.driver.on_execution(now, None, &mut ());
        while let Some(report) = disk.threads.next_report() {
            self.driver.on_execution(now, Some(report), &mut ());
        }
        self.driver.tell_expiry(now);
        // What had expired may have to be removed.
        self.hand_out();
        if !self.has_failed()
            && let Some(error) = self.driver.engine_failure()
        {
            let (problem, cause) = (error.to_string(), error.cause);
            self.fail_with_engine(&problem, cause);
        }
    }

    /// When there is something to do even if nothing happens until then.
    pub(crate) fn deadline(&self) -> Instant {
        if self.has_more_news || self.is_overdue {
            return Instant(0);
        }
        let slow_reads = self.slow_reads.as_ref().map_or(Instant::NEVER, SlowReads::deadline);
        let renew_at = if self.is_damaged { self.renew_at } else { Instant::NEVER };
        self.driver.deadline().min(self.probe_at).min(renew_at).min(slow_reads)
    }

    /// The replica.
    pub(crate) const fn replica(&self) -> &Replica {
        self.driver.replica()
    }

    /// Tells the replica of something.
    pub(crate) fn handle(&mut self, now: Now, event: Event) {
        self.driver.handle(now, event);
    }

    /// The engine, if it is in memory.
    pub(crate) const fn memory(&self) -> Option<&MemoryExecutor<AnyMemoryEngine>> {
        self.driver.memory()
    }

    /// How many keys there are, and how many of these have an expiry; of an engine on disk, when they were counted last.
    pub(crate) fn census(&self) -> Census {
        match (self.memory(), self.driver.executor(), &self.engine_threads) {
            (Some(memory), ..) => memory.engine().census(),
            (_, Some(executor), EngineThreads::OnDisk(disk)) => disk.census(executor.shared()),
            _ => Census::default(),
        }
    }

    /// True if keys have to be counted before it is known how many there are.
    pub(crate) fn has_to_count_keys(&self) -> bool {
        self.driver.executor().is_some() && self.driver.engine_failure().is_none()
    }

    /// Has an engine on disk count its keys.
    pub(crate) fn count_keys(&self, request: u64) {
        if let EngineThreads::OnDisk(disk) = &self.engine_threads {
            disk.threads.count(request);
        }
    }

    /// How many keys have expired.
    pub(crate) fn expired_keys(&self) -> u64 {
        let in_memory = self.memory().map(|memory| memory.engine().expired());
        in_memory.or_else(|| self.driver.executor().map(|executor| executor.shared().expired())).unwrap_or(0)
    }

    /// Bytes of memory that the data takes, of an engine that keeps it in memory.
    pub(crate) fn data_bytes(&self) -> Option<usize> {
        self.memory()?.engine().data_bytes()
    }

    /// Looks now and then whether a disk that refused a write takes writes again. The replica then goes on with its memory
    /// if it can; true if it should start anew from what the disk and the other replicas hold.
    pub(crate) fn disk_has_returned(&mut self, now: Now) -> bool {
        if now.instant < self.probe_at {
            return false;
        }
        self.probe_at = now.instant.after(PROBE_INTERVAL);
        // With a few of them, it would soon be out of inodes again.
        if self.disk_watch.reserve().lacks_inodes() || self.directory.try_writing().is_err() {
            // The others may fare as this one does: they are asked again when it returns.
            self.restart_permit = None;
            return false;
        }
        if !self.driver.outlives_log() {
            return self.may_lose_memory();
        }
        // The watch may not have seen yet that the directory is back.
        if self.disk_watch.loss().is_none() {
            self.reopen_log(now);
        }
        false
    }

    /// Has the replica go on with a log that takes records again.
    fn reopen_log(&mut self, now: Now) {
        let durable_sender = Arc::<DurableSender>::default();
        let on_progress = on_progress(&durable_sender, &self.waker);
        let Self { wal, view, directory, disk_watch, log_options, .. } = self;
        let open = || store::reopen_log(directory, log_options, disk_watch.reserve(), view);
        let node = self.me.0;
        if let Err(error) = wal.reopen(open, on_progress) {
            if now.instant >= self.complain_at {
                self.complain_at = now.instant.after(COMPLAINT_INTERVAL);
                tracing::error!(node, error = %error, "the disk takes writes again, and the log cannot be opened; this replica \
                    tries again");
            }
            return;
        }
        // What waited for records of the log before may be lost, as messages may.
        self.durable_sender = durable_sender;
        self.numbering = RecordNumbering::new(self.wal.appended(), self.driver.reopen_log(now));
        self.disk = DiskState::Works;
        self.probe_at = Instant::NEVER;
        self.has_told_loss = false;
        tracing::info!(node, "the disk takes writes again: this replica goes on with the data in its memory");
    }

    /// An engine that cannot go on: true if a restart loses nothing, or nothing that enough other replicas do not have.
    fn may_lose_memory(&mut self) -> bool {
        if self.durability == Durability::Fsync {
            return true;
        }
        if self.restart_permit.is_none() {
            let permit = RestartPermit::request(self.others.clone(), self.clock, Arc::clone(&self.waker));
            let node = self.me.0;
            let warn = |error: &std::io::Error| tracing::warn!(node, error = %error, "cannot start the thread restart");
            self.restart_permit = permit.inspect_err(warn).ok();
        }
        self.restart_permit.as_ref().is_some_and(RestartPermit::is_granted)
    }

    /// True if everything appended is on disk, or never will be.
    pub(crate) fn is_drained(&self) -> bool {
        let is_persisted = self.wal.persisted() == self.wal.appended();
        self.has_failed() || (is_persisted && self.driver.holds_nothing() && self.durable_sender.is_empty())
    }

    /// True if clients should wait until the disk has caught up.
    pub(crate) fn is_behind(&self) -> bool {
        (self.wal.waiting_bytes() > WAITING_BYTES_PAUSE && !self.has_failed()) || self.driver.is_behind()
    }

    /// Keeps something until it may leave.
    pub(crate) fn hold(&mut self, after: Ticket, delayed: Delayed) {
        self.driver.hold(after, delayed);
    }

    /// Has the log's thread send frames when they may leave.
    pub(crate) fn send_when_durable(&mut self, after: Ticket, outlet: Outlet, frames: Vec<u8>) {
        self.durable_sender.add(self.record(after), outlet, frames);
    }

    /// True if this record is with the log's thread already.
    pub(crate) fn is_submitted(&self, ticket: Ticket) -> bool {
        self.record(ticket) <= self.wal.submitted()
    }

    /// Has the log's thread wake the event loop for the first record that is waited for here, or for any.
    pub(crate) fn ask_to_be_woken(&mut self, for_any: bool) {
        let first = self.driver.awaited();
        let first = if for_any { Some(RecordNumber(0)) } else { first.map(|ticket| self.record(ticket)) };
        self.durable_sender.wake_at(first);
        // The thread may have looked just before, for that or for what was left with it.
        let persisted = self.wal.persisted();
        if persisted > self.record(self.driver.durable()) {
            self.is_overdue |= self.durable_sender.send(persisted);
        }
    }

    const fn record(&self, ticket: Ticket) -> RecordNumber {
        self.numbering.record(ticket)
    }

    /// The next that was held and may leave now.
    pub(crate) fn pop_held(&mut self) -> Option<Delayed> {
        self.driver.pop_held()
    }

    /// Executes a read, now or later; its answer, if now.
    pub(crate) fn read(&mut self, now: Now, job: ReadJob) -> Option<Message> {
        let answer = self.driver.read(now, job);
        self.hand_out();
        answer.map(|(_, message)| message)
    }

    /// Puts on disk what has been appended, and ends the log's thread.
    pub(crate) fn close(self) -> Result<(), WalError> {
        self.wal.close().map(|_| ())
    }
}
