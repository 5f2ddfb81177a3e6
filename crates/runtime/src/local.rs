//! The replica of a node: its core, the engine that executes its log, and the write-ahead log.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mio::Waker;
use syros_net::Outlet;
use syros_node::snapshots::{LoadedEngine, SnapshotNews};
use syros_node::{ENTRIES_PER_TURN, News, ReadJob, ReadOutcome, TicketQueue};
use syros_protocol::message::{Body, Describe, Message, Peer, RoleName};
use syros_protocol::record::{Record, SnapshotHead, Ticket};
use syros_protocol::replica::{Boot, Config, Durability, Event, Replica};
use syros_storage::StoreCause;
use syros_types::{Instant, Now, OpNumber, OperationId, ReplicaId, View, WallTime};
use syros_wal::{
    AppendError, Cause, DiskError, DiskOperation, FileDisk, GroupCommit, RecordNumber, Recovery, WalError,
    WriteError,
};

use crate::clock::Clock;
use crate::config::StoreConfig;
use crate::directory::{DataDirectory, DirectoryError};
use crate::disk_space::DiskWatch;
use crate::execution::{self, Execution, Opened, Place};
use crate::log_limit::COMPLAINT_INTERVAL;
use crate::on_disk;
use crate::release::Releases;
use crate::resident::{PieceCutter, Resident, ResidentFiles};
use crate::scrub::{Finding, Plan, Scrub};
use crate::slow_reads::SlowReads;
use crate::snapshots::{Schedule, SnapshotThread};
use crate::store::{Owner, StoreError, ViewFile};

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
    log::info!(
        "{me} starts {} in view {}, with {} records ({} bytes) in the write-ahead log",
        match boot {
            Boot::Fresh => "for the first time",
            Boot::Restored(_) => "again",
            Boot::Amnesiac { .. } => "again, without its memory,",
        },
        view.0,
        (recovery.last.0 + 1).saturating_sub(recovery.first.0),
        recovery.bytes
    );
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
        log::info!(
            "{} promised leases of {before:?} before, and promises {lease:?} from now on: it takes part in no view change \
             before the former have ended",
            config.replica
        );
        (clock.now().instant.after(before), lease)
    }))
}

/// What the disk does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DiskState {
    Works,
    /// No space is left on it.
    Full,
    /// The data directory is not there.
    Missing,
    /// It takes no writes now, for another reason: the process may have no file descriptor left.
    Refusing,
    /// It cannot be relied upon any more.
    Failed,
}

impl DiskState {
    /// After an operation that failed.
    const fn after(error: &DiskError) -> Self {
        // In all other cases what the log holds is in doubt. After a sync that failed, for example, the system may have
        // dropped what it could not write, and still show it to readers.
        if !matches!(error.operation, DiskOperation::Create | DiskOperation::Append) {
            return Self::Failed;
        }
        match error.cause {
            Cause::Full => Self::Full,
            Cause::NotFound => Self::Missing,
            _ => Self::Refusing,
        }
    }

    /// True if the log can be opened again once the disk takes writes.
    const fn may_return(self) -> bool {
        matches!(self, Self::Full | Self::Missing | Self::Refusing)
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

/// A replica and what it drives.
pub(crate) struct Local {
    pub(crate) me: ReplicaId,
    pub(crate) replica: Replica,
    pub(crate) execution: Execution,
    snapshots: SnapshotThread,
    pub(crate) durability: Durability,
    /// What the state machine says of an operation.
    pub(crate) describe: Describe,
    wal: GroupCommit<FileDisk>,
    /// Records before this process: ticket t of the replica is record `records_before + t`.
    records_before: u64,
    /// What the replica has been told to be on disk; more may be.
    persisted: Ticket,
    disk: DiskState,
    /// When to try next whether a disk that refused a write takes writes again.
    pub(crate) probe_at: Instant,
    /// What the event loop sends when records are on disk.
    held: TicketQueue<Ticket, Delayed>,
    /// Messages that the log's thread sends.
    releases: Arc<Releases>,
    /// Something that was waited for has reached the disk, and nobody has looked since.
    is_overdue: bool,
    view: ViewFile,
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
    clock: Clock,
    record: Vec<u8>,
    disk_watch: DiskWatch,
    /// When longer leases that were promised in an earlier life have ended, and the lease since.
    promises_end: Option<(Instant, Duration)>,
    /// The replica has been told that the disk is nearly full.
    disk_is_short: bool,
    /// The log says that the data directory is not there any more. The replica starts anew if it comes back.
    has_told_loss: bool,
    /// Most bytes that the data may take in memory; `None` without a limit. Redis clients may set it.
    pub(crate) maxmemory: Cell<Option<u64>>,
    /// The replica has been told that the data may grow by so much.
    memory_room: i64,
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
    pub(crate) in_memory: ResidentFiles,
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
        let place = Place {
            cluster,
            directory: &directory,
            segment_bytes: settings.segment_bytes,
            reserve: disk_watch.reserve(),
            waker: &waker,
        };
        let Opened { wal, view, recovery, restored, snapshots, mut execution } = match on_disk {
            None => execution::open_in_memory(&config, &place, in_memory)?,
            Some(settings) => execution::open_on_disk(&config, &place, settings)?,
        };
        let (me, durability, describe) = (config.replica, config.durability, config.describe);
        let boot = match durability {
            _ if directory.is_new() => Boot::Fresh,
            Durability::Fsync if !restored.is_amnesiac() => Boot::Restored(Box::new(restored)),
            _ => Boot::Amnesiac { view: view.view() },
        };
        tell_start(me, &boot, view.view(), &recovery);
        if let Some(rate) = settings.emulated_reads {
            log::warn!("{me} emulates a storage that answers {rate} reads a second: for measurements only");
        }
        let promises_end = begin_promises(&mut directory, &mut config, clock).map_err(LogError::Claim)?;
        let plan = settings.scrub_interval.map(|interval| Plan {
            directory: directory.path().to_owned(),
            owner: Owner { cluster, replica: me },
            group: config.group,
            replicas,
            interval,
            rate: settings.scrub_rate,
            seed: in_memory.hash_seed ^ config.seed,
        });
        let scrub = plan.map(|plan| Scrub::start(plan, clock, Arc::clone(&waker)));
        let records_before = wal.appended().0;
        let releases = Arc::<Releases>::default();
        let theirs = Arc::clone(&releases);
        let on_progress = move |progress: Result<RecordNumber, &WalError>| {
            if progress.map_or(true, |persisted| theirs.send(persisted)) {
                // Fails only if the loop is gone, and then nobody waits.
                let _ = waker.wake();
            }
        };
        let mut replica = Replica::new(config, boot, clock.now());
        if let Some(event) = execution.expiry_news() {
            replica.handle(clock.now(), event);
        }
        let mut local = Self {
            me,
            replica,
            execution,
            snapshots,
            durability,
            describe,
            wal: GroupCommit::start(wal, on_progress).map_err(LogError::Thread)?,
            records_before,
            persisted: Ticket(0),
            disk: DiskState::Works,
            has_told_loss: false,
            probe_at: Instant::NEVER,
            held: TicketQueue::default(),
            releases,
            is_overdue: false,
            view,
            slow_reads: settings.emulated_reads.map(SlowReads::new),
            complain_at: Instant(0),
            told: None,
            has_more_news: false,
            scrub: scrub.transpose().map_err(LogError::Thread)?,
            is_damaged: false,
            clock,
            record: Vec::new(),
            disk_watch,
            promises_end,
            disk_is_short: false,
            maxmemory: Cell::new(maxmemory),
            memory_room: i64::MAX,
            memory_complain_at: Instant(0),
            counted: 0,
            directory,
        };
        local.note_memory(local.clock.now());
        local.note_space(local.clock.now());
        Ok(local)
    }

    /// Notes when leases that were promised before this process started have ended.
    pub(crate) fn note_promises(&mut self, now: Now) {
        if let Some((end, lease)) = self.promises_end
            && now.instant >= end
        {
            self.promises_end = None;
            if let Err(error) = self.directory.end_promises(lease) {
                log::warn!("{error}; at its next start {} waits for longer than it has to", self.me);
            }
        }
    }

    /// Tells the replica whether the disk is nearly full, if that has changed.
    fn note_space(&mut self, now: Now) {
        let reserve = self.disk_watch.reserve();
        let is_short = reserve.is_short();
        if is_short == self.disk_is_short {
            return;
        }
        self.disk_is_short = is_short;
        let (directory, free, limit) = (reserve.directory().display(), reserve.free(), reserve.bytes());
        if is_short && reserve.lacks_inodes() {
            let (free_inodes, inodes) = reserve.inodes();
            log::error!(
                "the file system of {directory} is nearly out of inodes: {free_inodes} more files can be made, and {inodes} \
                 have to be possible ({free} bytes are free); {} takes no updates that make the data grow until files \
                 are deleted",
                self.me
            );
        } else if is_short {
            log::error!(
                "the disk of {directory} is nearly full: {free} bytes are free beside the reserve, and disk.reserve is \
                 {limit}; {} takes no updates that make the data grow until there is space",
                self.me
            );
        } else {
            log::info!("the disk of {directory} has space again: {free} bytes beside the reserve of {limit}");
        }
        self.replica.handle(now, Event::DiskShort(is_short));
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
    pub(crate) fn note_memory(&mut self, now: Now) {
        let Some(data) = self.execution.data_bytes() else { return };
        let limit = self.maxmemory.get().and_then(|limit| i64::try_from(limit).ok());
        let room = limit.map_or(i64::MAX, |limit| limit - i64::try_from(data).unwrap_or(i64::MAX));
        if room == self.memory_room {
            return;
        }
        self.memory_room = room;
        self.replica.handle(now, Event::MemoryRoom(room));
        if room < 0 && now.instant >= self.memory_complain_at {
            self.memory_complain_at = now.instant.after(COMPLAINT_INTERVAL);
            log::warn!(
                "the data of {} takes {data} bytes of memory, and memory.maxmemory is {}: updates that make it grow are \
                 refused; what deletes goes on",
                self.me,
                limit.unwrap_or_default()
            );
        }
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
    pub(crate) fn persist(&mut self, ticket: Ticket, record: &Record) {
        if let Record::View { view, .. } | Record::EnterView { view, .. } = record
            && let Err(error) = self.view.note(*view)
        {
            // What the log would say, the file of the view has to say first.
            return self.fail_to_note(&error);
        }
        if self.has_failed() {
            return;
        }
        self.record.clear();
        syros_wire::encode_record(record, &mut self.record);
        loop {
            match self.wal.append(&[&self.record]) {
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
                // Reported by `note_progress`: nothing will ever be persisted again.
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
        if let Execution::OnDisk(disk) = &mut self.execution {
            disk.threads.end_turn();
        }
        has_appended
    }

    /// Lets an engine in memory execute what it was to, and what it is told to until [`Local::pause_execution`].
    pub(crate) fn execute(&mut self, now: Now) {
        let Execution::InMemory(memory) = &mut self.execution else { return };
        if let Some(through) = memory.executor.resume(ENTRIES_PER_TURN) {
            self.apply_in_memory(through, now);
        }
        let Execution::InMemory(memory) = &mut self.execution else { return };
        let clock = self.clock;
        if let Some(reply) = memory.executor.go_on(|| clock.now().instant)
            && let Err(error) = memory.long_replies.put_together(reply)
        {
            log::warn!("cannot start a thread for the reply to KEYS: {error}");
        }
    }

    /// Takes note of reads of all keys that have ended.
    fn note_long_reads(&mut self, now: Now) {
        loop {
            let Execution::InMemory(memory) = &self.execution else { return };
            let Some(outcome) = memory.long_replies.next_finished() else { return };
            self.note_read(outcome, now);
        }
    }

    /// Takes note of a read that has ended elsewhere.
    fn note_read(&mut self, outcome: ReadOutcome, now: Now) {
        match outcome {
            ReadOutcome::Answer(to, message) => match &mut self.slow_reads {
                Some(slow_reads) => slow_reads.hold(now.instant, to, message),
                None => self.held.push(Ticket(0), Delayed::Message(to, message)),
            },
            ReadOutcome::NotRead(event) => self.replica.handle(now, event),
        }
    }

    /// From now on an engine in memory notes what it is to execute, and does not.
    pub(crate) fn pause_execution(&mut self) {
        if let Execution::InMemory(memory) = &mut self.execution {
            memory.executor.pause();
        }
    }

    /// Tells the replica what has reached the disk since the last call, or that the disk has failed. True if something
    /// has reached it.
    pub(crate) fn note_progress(&mut self, now: Now) -> bool {
        let persisted = Ticket(self.wal.persisted().0 - self.records_before);
        let has_advanced = persisted > self.persisted;
        self.is_overdue = false;
        if has_advanced {
            self.persisted = persisted;
            self.replica.handle(now, Event::Persisted(persisted));
        }
        self.note_execution(now);
        self.note_long_reads(now);
        self.note_snapshots(now);
        self.note_findings();
        self.note_space(now);
        self.note_loss();
        if !self.has_failed()
            && let Some(error) = self.wal.error()
        {
            let state = match error {
                WalError::Disk(error) => DiskState::after(error),
                WalError::ThreadPanicked => DiskState::Failed,
            };
            let problem = error.to_string();
            self.fail(&problem, state);
        }
        has_advanced
    }

    /// Logs what the replica has become.
    pub(crate) fn tell_role(&mut self) {
        let now = (self.replica.view(), self.replica.role());
        if self.told == Some(now) {
            return;
        }
        self.told = Some(now);
        let (me, (view, role)) = (self.me, now);
        match role {
            RoleName::Leader => log::info!("{me} leads view {}", view.0),
            RoleName::Follower => log::info!("{me} follows in view {}", view.0),
            // The trace of the core says why.
            RoleName::ViewChange => {}
            RoleName::Recovering => log::info!("{me} waits for a view after {}", view.0),
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
    fn note_loss(&mut self) {
        if self.has_told_loss {
            return;
        }
        let Some(problem) = self.disk_watch.loss() else { return };
        self.has_told_loss = true;
        if self.has_failed() {
            log::error!("{problem}");
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
        let me = self.me;
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
                log::error!("{problem}, because {loss}; {me} takes no updates until {until}");
            }
            None if state == DiskState::Full && self.disk_watch.reserve().lacks_inodes() => log::error!(
                "{problem}: no inodes are left, while {} bytes are free; {me} takes no updates until files are deleted",
                self.disk_watch.reserve().free()
            ),
            None => log::error!("{problem}; {me} takes no updates until {until}"),
        }
        self.replica.handle(now, Event::PersistFailed);
    }

    /// The engine cannot go on.
    fn fail_with_engine(&mut self, problem: &str, cause: StoreCause) {
        if cause == StoreCause::Damaged
            && let Execution::OnDisk(disk) = &self.execution
        {
            match disk.mark_damaged(problem) {
                // The others have what this one lost.
                Ok(()) => {
                    log::error!("{problem}; {} starts anew, to be repaired", self.me);
                    self.disk = DiskState::Failed;
                    self.is_damaged = true;
                    return;
                }
                Err(error) => log::error!("{error}"),
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
    fn note_findings(&mut self) {
        while let Some(finding) = self.scrub.as_ref().and_then(Scrub::next_finding) {
            match finding {
                Finding::View(problem) => {
                    log::error!("{problem}; it is written anew");
                    if let Err(error) = self.view.renew() {
                        self.fail_to_note(&error);
                    }
                }
                // If it takes part in no view now, or its disk fails, there is another round.
                Finding::Store => self.is_damaged |= self.replica.is_normal() && !self.has_failed(),
            }
        }
    }

    /// True if what is on disk is damaged, and the replica should start anew to be repaired by the others.
    pub(crate) fn is_damaged(&mut self) -> bool {
        // Without the view it would never start again.
        if self.is_damaged
            && let Err(error) = self.view.renew()
        {
            self.is_damaged = false;
            self.fail_to_note(&error);
        }
        self.is_damaged
    }

    /// Lets the work on snapshots go on, and tells the replica of it.
    fn note_snapshots(&mut self, now: Now) {
        self.snapshots.decide(Schedule::discard_loaded);
        if let Execution::OnDisk(disk) = &mut self.execution {
            disk.threads.flush_if_due(self.persisted);
        }
        while !self.snapshots.schedule().has_loaded() && self.note_one(now) {}
        // What comes of a snapshot that is loaded has to be carried out before the rest is looked at.
        self.has_more_news = self.snapshots.schedule().has_loaded();
        let (persisted, store) = (self.persisted, self.execution.store());
        if let Some(ticket) = self.snapshots.decide(|schedule| schedule.remove_if_due(persisted, store)) {
            self.wal.remove_before(self.record(ticket));
        }
        self.cut_snapshot(now);
    }

    /// Cuts the next block of the snapshot of an engine in memory, if it is time.
    fn cut_snapshot(&mut self, now: Now) {
        if self.snapshots.schedule().deadline() > now.instant {
            return;
        }
        let Execution::InMemory(memory) = &mut self.execution else { return };
        let Resident::Keys(keys) = memory.executor.engine_mut() else { return };
        let clock = self.clock;
        let time = || clock.now().instant;
        let cut = self.snapshots.decide(|schedule| schedule.cut_next(keys, time(), time));
        if let Some((op_number, took)) = cut {
            log::debug!("snapshot at entry {} cut in {took:?}", op_number.0);
        }
    }

    /// Acts on the next thing that the snapshots' thread has done; false if there is none.
    fn note_one(&mut self, now: Now) -> bool {
        let Some(report) = self.snapshots.next_report() else { return false };
        let state = self.execution.snapshot_state();
        match self.snapshots.decide(|schedule| schedule.on_report(report, state)) {
            None => {}
            Some(SnapshotNews::Event(Event::SnapshotTaken { op_number, bytes })) => {
                self.note_taken(op_number, Some(bytes), now);
            }
            Some(SnapshotNews::Event(event)) => self.replica.handle(now, event),
            Some(SnapshotNews::Failed { op_number, error }) => {
                self.note_failed_snapshot(op_number, &error.to_string(), now);
            }
            // Released at the end of this turn: nothing of it waits for the disk.
            Some(SnapshotNews::Send(to, message)) => {
                self.held.push(Ticket(0), Delayed::Message(Peer::Replica(to), message));
            }
            Some(SnapshotNews::Warning(warning)) => log::warn!("{warning}"),
        }
        true
    }

    /// A snapshot is on disk, if `bytes` is its length.
    fn note_taken(&mut self, op_number: OpNumber, bytes: Option<u64>, now: Now) {
        let Some(bytes) = bytes else { return };
        match &self.execution {
            Execution::OnDisk(_) if bytes == 0 => {
                log::debug!("{} has a checkpoint at entry {}", self.me, op_number.0);
            }
            _ => log::info!("{} has a snapshot at entry {} ({bytes} bytes)", self.me, op_number.0),
        }
        self.replica.handle(now, Event::SnapshotTaken { op_number, bytes });
    }

    fn note_failed_snapshot(&mut self, op_number: OpNumber, error: &str, now: Now) {
        // It is tried again every second.
        if now.instant >= self.complain_at {
            self.complain_at = now.instant.after(COMPLAINT_INTERVAL);
            log::error!("{} cannot make the snapshot at entry {}: {error}", self.me, op_number.0);
        }
        self.replica.handle(now, Event::SnapshotFailed { op_number });
    }

    /// Tells the replica what an engine on disk has done.
    fn note_execution(&mut self, now: Now) {
        let Execution::OnDisk(disk) = &mut self.execution else { return };
        disk.threads.begin(now);
        loop {
            let Execution::OnDisk(disk) = &mut self.execution else { return };
            let Some(news) = disk.threads.next_news() else { break };
            match news {
                News::Executed(executed) => {
                    let replies = executed.replies.into_iter();
                    let replies = replies.map(|(number, reply)| (number, Body::from(reply))).collect();
                    self.replica.handle(now, Event::Applied { through: executed.through, replies });
                }
                News::Read(outcome) => self.note_read(outcome, now),
                News::Evaluated(to, message) => self.held.push(Ticket(0), Delayed::Message(to, message)),
                News::NotEvaluated(to, id) => self.replica.handle(now, Event::NotEvaluated { to, id }),
                News::Sealed(head, cut) => {
                    if let Some(cut) = cut {
                        let bytes = disk.data_bytes();
                        self.snapshots.decide(|schedule| schedule.begin_cut(head, Box::new(cut), bytes));
                    }
                    disk.threads.flush_if_due(self.persisted);
                }
                News::Flushed(op_number, bytes) => self.note_taken(op_number, bytes, now),
                // The commands that need this part of the store find out.
                News::Counted(_, Err(error)) => log::warn!("{error}; keys were not counted"),
                News::Counted(request, Ok(census)) => {
                    disk.census = Some(census);
                    self.counted = request;
                }
                News::Failed(op_number, error) => {
                    let state = self.execution.snapshot_state();
                    self.snapshots.decide(|schedule| schedule.failed(op_number, state));
                    self.note_failed_snapshot(op_number, &error.to_string(), now);
                }
            }
        }
        self.note_expiry(now);
        let Execution::OnDisk(disk) = &self.execution else { return };
        if !self.has_failed()
            && let Some(error) = disk.threads.shared().failure()
        {
            let (problem, cause) = (error.to_string(), error.cause);
            self.fail_with_engine(&problem, cause);
        }
    }

    fn note_expiry(&mut self, now: Now) {
        if let Some(event) = self.execution.expiry_news() {
            self.replica.handle(now, event);
        }
    }

    /// When there is something to do even if nothing happens until then.
    pub(crate) fn deadline(&self) -> Instant {
        let snapshots = match &self.execution {
            Execution::InMemory(memory) if memory.executor.has_work() => Instant(0),
            Execution::InMemory(_) => self.snapshots.schedule().deadline(),
            // Clients that were made to wait are looked at again.
            Execution::OnDisk(disk) if disk.threads.executor().is_behind() => {
                disk.threads.executor().pressure_at()
            }
            Execution::OnDisk(_) => Instant::NEVER,
        };
        if self.has_more_news || self.is_overdue {
            return Instant(0);
        }
        let slow_reads = self.slow_reads.as_ref().map_or(Instant::NEVER, SlowReads::deadline);
        self.replica.deadline().min(self.probe_at).min(snapshots).min(slow_reads)
    }

    /// Begins a snapshot of what has been executed.
    pub(crate) fn take_snapshot(&mut self, head: Box<SnapshotHead>, ticket: Ticket, is_file: bool, now: Now) {
        let (free, reserve, _) = self.disk_space();
        let data = self.execution.data_bytes().unwrap_or(0) as u64;
        if reserve > 0 && data > free {
            // It would take what is there for updates, and the reserve, and not be complete in the end.
            let error = format!("it takes about {data} bytes, and {free} are free on the disk");
            return self.note_failed_snapshot(head.op_number, &error, now);
        }
        match &mut self.execution {
            Execution::InMemory(memory) => {
                let engine = memory.executor.engine_mut();
                self.snapshots.decide(|schedule| match engine {
                    Resident::Keys(keys) => schedule.begin(head, keys, now.instant),
                    Resident::Machine(machine) => {
                        let pieces = PieceCutter::new(machine.snapshot());
                        schedule.begin_cut(head, Box::new(pieces), machine.snapshot_bytes());
                    }
                });
            }
            Execution::OnDisk(disk) => disk.take_snapshot(head, ticket, is_file),
        }
    }

    /// Older snapshots and records go once the record with this ticket is on disk.
    pub(crate) fn keep_from(&mut self, op_number: OpNumber, ticket: Ticket) {
        self.snapshots.decide(|schedule| schedule.keep_from(op_number, ticket));
    }

    /// Reads a part of a snapshot, and sends it.
    pub(crate) fn read_part(&mut self, to: ReplicaId, op_number: OpNumber, offset: u64) {
        self.snapshots.decide(|schedule| schedule.read_part(to, op_number, offset));
    }

    /// Writes a part of a snapshot that is being received.
    pub(crate) fn write_part(&mut self, op_number: OpNumber, offset: u64, part: Body) {
        self.snapshots.decide(|schedule| schedule.write_part(op_number, offset, part));
    }

    /// Loads a snapshot that has been received.
    pub(crate) fn load(&mut self, op_number: OpNumber) {
        self.snapshots.decide(|schedule| schedule.load(op_number));
    }

    /// Has the state of the snapshot that was just loaded take the place of what was executed.
    pub(crate) fn adopt(&mut self, op_number: OpNumber, now: Now) {
        log::info!("{} takes over the state at entry {} from another replica", self.me, op_number.0);
        let loaded = self.snapshots.decide(Schedule::adopt);
        match (&mut self.execution, loaded.expect("a snapshot is adopted when it has been loaded")) {
            (Execution::InMemory(memory), LoadedEngine::InMemory(engine)) => {
                let before = memory.executor.adopt(engine, op_number);
                self.snapshots.decide(|schedule| schedule.discard(before));
            }
            (Execution::OnDisk(disk), LoadedEngine::OnDisk(store, engine)) => {
                match disk.adopt(op_number, (store, *engine)) {
                    Ok(before) => self.snapshots.decide(|schedule| schedule.discard(before)),
                    Err(error) => {
                        let problem = format!("cannot start a thread of the engine: {error}");
                        self.fail(&problem, DiskState::Failed);
                    }
                }
            }
            _ => unreachable!("engines are loaded where the engine is"),
        }
        self.replica.handle(now, self.execution.expiry());
        self.note_memory(now);
    }

    /// True if the disk refused a write and takes writes again: the replica can start anew from what the
    /// disk holds.
    pub(crate) fn disk_has_returned(&mut self, now: Now) -> bool {
        if now.instant < self.probe_at {
            return false;
        }
        self.probe_at = now.instant.after(PROBE_INTERVAL);
        // With a few of them, it would soon be out of inodes again.
        !self.disk_watch.reserve().lacks_inodes() && self.directory.try_writing().is_ok()
    }

    /// True if everything appended is on disk, or never will be.
    pub(crate) fn is_settled(&self) -> bool {
        let is_persisted = self.wal.persisted() == self.wal.appended();
        self.has_failed() || (is_persisted && self.held.first().is_none() && self.releases.is_empty())
    }

    /// True if clients should wait until the disk has caught up.
    pub(crate) fn is_behind(&self) -> bool {
        (self.wal.waiting_bytes() > WAITING_BYTES_PAUSE && !self.has_failed())
            || match &self.execution {
                Execution::InMemory(memory) => match memory.executor.engine() {
                    Resident::Keys(keys) => self.snapshots.schedule().is_behind(keys),
                    Resident::Machine(_) => false,
                },
                Execution::OnDisk(disk) => disk.threads.executor().is_behind(),
            }
    }

    /// True if what waits for this record may leave.
    pub(crate) fn may_leave(&self, after: Ticket) -> bool {
        after <= self.persisted
    }

    /// Keeps something until it may leave.
    pub(crate) fn hold(&mut self, after: Ticket, delayed: Delayed) {
        self.held.push(after, delayed);
    }

    /// Has the log's thread send frames when they may leave.
    pub(crate) fn release(&mut self, after: Ticket, outlet: Outlet, frames: Vec<u8>) {
        self.releases.add(self.record(after), outlet, frames);
    }

    /// True if this record is with the log's thread already.
    pub(crate) fn is_submitted(&self, ticket: Ticket) -> bool {
        self.record(ticket) <= self.wal.submitted()
    }

    /// Has the log's thread wake the event loop for the first record that is waited for here, or for any.
    pub(crate) fn ask_to_be_woken(&mut self, for_any: bool) {
        let held = self.held.first();
        let kept = self.snapshots.schedule().awaited(self.persisted);
        let checkpoint = match &self.execution {
            Execution::InMemory(_) => None,
            Execution::OnDisk(disk) => disk.threads.executor().awaited(),
        };
        let first = [held, kept, checkpoint, self.replica.awaited()].into_iter().flatten().min();
        let first = if for_any { Some(RecordNumber(0)) } else { first.map(|ticket| self.record(ticket)) };
        self.releases.wake_at(first);
        // The thread may have looked just before, for that or for what was left with it.
        let persisted = self.wal.persisted();
        if persisted > self.record(self.persisted) {
            self.is_overdue |= self.releases.send(persisted);
        }
    }

    const fn record(&self, ticket: Ticket) -> RecordNumber {
        RecordNumber(self.records_before + ticket.0)
    }

    /// The next that was held and may leave now.
    pub(crate) fn pop_held(&mut self) -> Option<Delayed> {
        self.held.pop(self.persisted)
    }

    /// Executes the log up to `through`, now or later, and tells the replica.
    pub(crate) fn apply_soon(&mut self, through: OpNumber, now: Now) {
        match &mut self.execution {
            Execution::InMemory(_) => self.apply_in_memory(through, now),
            Execution::OnDisk(disk) => {
                let mut time = WallTime(0);
                for number in disk.threads.executor().dispatched().0 + 1..=through.0 {
                    let number = OpNumber(number);
                    let entry = self.replica.entry(number);
                    time = entry.time;
                    disk.threads.entry(number, entry);
                }
                disk.threads.end_chunk(time);
            }
        }
    }

    fn apply_in_memory(&mut self, through: OpNumber, now: Now) {
        let Execution::InMemory(memory) = &mut self.execution else { return };
        let clock = self.clock;
        let executed = memory.executor.apply(&self.replica, through, || clock.now().instant, &mut ());
        let Some(executed) = executed else { return };
        self.replica.handle(now, executed);
        self.note_expiry(now);
        self.note_memory(now);
    }

    /// The first expiry of the keys of a read on the engine in memory, if that is at `time` or before.
    pub(crate) fn expired(&self, time: Option<WallTime>, body: &[u8]) -> Option<WallTime> {
        let Execution::InMemory(memory) = &self.execution else { return None };
        memory.executor.expired(time, body)
    }

    /// Executes a read, now or later; its answer, if now.
    pub(crate) fn read(&mut self, clock: Now, job: ReadJob) -> Option<Message> {
        match &mut self.execution {
            Execution::InMemory(memory) => match memory.executor.read(job)? {
                ReadOutcome::Answer(_, message) => return Some(message),
                ReadOutcome::NotRead(event) => self.replica.handle(clock, event),
            },
            Execution::OnDisk(disk) => disk.threads.read(job),
        }
        None
    }

    /// Finds out what an update returns, now or later; what to send to the client, if now.
    pub(crate) fn evaluate(
        &mut self,
        now: Now,
        to: Peer,
        view: View,
        id: OperationId,
        body: Body,
    ) -> Option<Message> {
        match &mut self.execution {
            Execution::InMemory(memory) => {
                if let Some(reply) = memory.executor.evaluate(&body) {
                    return Some(Message::Evaluated { view, id, reply });
                }
                self.replica.handle(now, Event::NotEvaluated { to, id });
            }
            Execution::OnDisk(disk) => disk.threads.evaluate(to, view, id, body),
        }
        None
    }

    /// Puts on disk what has been appended, and ends the log's thread.
    pub(crate) fn close(self) -> Result<(), WalError> {
        self.wal.close().map(|_| ())
    }
}
