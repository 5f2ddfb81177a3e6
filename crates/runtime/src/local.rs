//! The replica of a node: its core, the engine that executes its log, and the write-ahead log.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mio::Waker;
use syros_protocol::message::{Body, LogEntry, Message, Payload, Peer, RoleName};
use syros_protocol::record::{Record, SnapshotHead, Ticket};
use syros_protocol::replica::{Boot, Config, Durability, Event, Replica};
use syros_snapshot::{Loaded, Stored};
use syros_storage::{Engine, MemoryEngine};
use syros_types::{Class, Instant, Now, OpNumber, ReplicaId, View, WallTime};
use syros_wal::{
    AppendError, DiskError, DiskOperation, FileDisk, GroupCommit, RecordNumber, WalError, WriteError,
};

use crate::clock::Clock;
use crate::config::StoreConfig;
use crate::directory::{DataDirectory, DirectoryError};
use crate::log_limit::COMPLAINT_INTERVAL;
use crate::scrub::{Finding, Plan, Scrub};
use crate::slow_reads::SlowReads;
use crate::snapshots::{Done, Snapshots};
use crate::store::{Owner, Store, StoreError, ViewFile};

/// Clients are not read from while more bytes than this wait for the disk: half of what the log takes,
/// so that what other replicas send in the meantime still fits.
const WAITING_BYTES_PAUSE: usize = syros_wal::WAITING_BYTES_DEFAULT / 2;

/// How often a node looks whether space has returned to its disk.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// Log entries executed in one turn, about: a few milliseconds' worth.
const EXECUTED_PER_TURN: u64 = 16_384;

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
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Claim(error) => error.fmt(f),
            Self::Thread(error) => write!(f, "cannot start a thread of the replica: {error}"),
        }
    }
}

impl std::error::Error for LogError {}

/// Messages whose records are not on disk yet: by ticket, then in the order in which they were sent.
#[derive(Debug, Default)]
struct Held(VecDeque<(Ticket, Peer, Message)>);

impl Held {
    fn push(&mut self, after: Ticket, to: Peer, message: Message) {
        // Nearly always the largest ticket so far.
        let place = match self.0.back() {
            Some((last, ..)) if *last > after => self.0.partition_point(|(ticket, ..)| *ticket <= after),
            _ => self.0.len(),
        };
        self.0.insert(place, (after, to, message));
    }

    /// The next message that need not wait any longer.
    fn pop(&mut self, persisted: Ticket) -> Option<(Peer, Message)> {
        let (after, ..) = self.0.front()?;
        if *after > persisted {
            return None;
        }
        self.0.pop_front().map(|(_, to, message)| (to, message))
    }
}

/// A replica and what it drives.
pub(crate) struct Local {
    pub(crate) me: ReplicaId,
    pub(crate) replica: Replica,
    pub(crate) engine: MemoryEngine,
    pub(crate) durability: Durability,
    wal: GroupCommit<FileDisk>,
    /// Records before this process: ticket t of the replica is record `records_before + t`.
    records_before: u64,
    persisted: Ticket,
    has_failed: bool,
    /// When to try next whether a disk that refused a write takes writes again.
    pub(crate) probe_at: Instant,
    held: Held,
    next_expiry: Option<WallTime>,
    view: ViewFile,
    snapshots: Snapshots,
    pub(crate) slow_reads: Option<SlowReads>,
    /// The engine of a snapshot that the replica has been told of and not yet adopted.
    loaded: Option<MemoryEngine>,
    /// When a snapshot that cannot be made is complained of again.
    complain_at: Instant,
    /// Entries executed in this turn of the event loop.
    executed: u64,
    /// To be executed in the next turn.
    apply_later: Option<OpNumber>,
    /// View and role that were logged last.
    told: Option<(View, RoleName)>,
    /// The snapshots' thread has more to tell than what was looked at last.
    has_more_news: bool,
    /// What becomes needless once this record is on disk.
    keep_from: Option<(OpNumber, Ticket)>,
    scrub: Option<Scrub>,
    /// What is on disk is damaged, and others can repair it.
    is_damaged: bool,
    clock: Clock,
    record: Vec<u8>,
    reply: Vec<u8>,
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
    /// For the engine's tables.
    pub(crate) hash_seed: u64,
    pub(crate) clock: Clock,
    /// Used when records have reached the disk, and when there is news of snapshots or damage.
    pub(crate) waker: Arc<Waker>,
}

impl Local {
    /// Reads back what is on disk and boots the replica.
    pub(crate) fn start(parts: Parts) -> Result<Self, LogError> {
        let Parts { config, cluster, replicas, directory, store: settings, hash_seed, clock, waker } = parts;
        let store = Store::open(&config, cluster, &directory, settings.segment_bytes, hash_seed)
            .map_err(LogError::Store)?;
        let Store { wal, stored, view } = store;
        let Stored { recovery, restored, depot, engine, .. } = stored;
        let (me, durability) = (config.replica, config.durability);
        let boot = match durability {
            _ if directory.is_new() => Boot::Fresh,
            Durability::Fsync if !restored.is_amnesiac() => Boot::Restored(Box::new(restored)),
            _ => Boot::Amnesiac { view: view.view() },
        };
        log::info!(
            "{me} starts {} in view {}, with {} records ({} bytes) in the write-ahead log",
            match &boot {
                Boot::Fresh => "for the first time",
                Boot::Restored(_) => "again",
                Boot::Amnesiac { .. } => "again, without its memory,",
            },
            view.view().0,
            (recovery.last.0 + 1).saturating_sub(recovery.first.0),
            recovery.bytes
        );
        if let Some(rate) = settings.emulated_reads {
            log::warn!("{me} emulates a storage that answers {rate} reads a second: for measurements only");
        }
        directory.claim().map_err(LogError::Claim)?;
        let plan = settings.scrub_interval.map(|interval| Plan {
            directory: directory.path().to_owned(),
            owner: Owner { cluster, replica: me },
            group: config.group,
            replicas,
            interval,
            rate: settings.scrub_rate,
            seed: hash_seed ^ config.seed,
        });
        let scrub = plan.map(|plan| Scrub::start(plan, clock, Arc::clone(&waker)));
        let records_before = wal.appended().0;
        let snapshots = Snapshots::start(depot, directory.snapshots(), hash_seed, Arc::clone(&waker))
            .map_err(LogError::Thread)?;
        let wake = move || {
            // Fails only if the loop is gone, and then nobody waits.
            let _ = waker.wake();
        };
        let engine = engine.unwrap_or_else(|| MemoryEngine::with_hash_seed(hash_seed));
        let mut replica = Replica::new(config, boot, clock.now());
        let next_expiry = engine.next_expiry();
        if next_expiry.is_some() {
            replica.handle(clock.now(), Event::NextExpiry(next_expiry));
        }
        Ok(Self {
            me,
            replica,
            engine,
            durability,
            wal: GroupCommit::start(wal, wake).map_err(LogError::Thread)?,
            records_before,
            persisted: Ticket(0),
            has_failed: false,
            probe_at: Instant::NEVER,
            held: Held::default(),
            next_expiry,
            view,
            snapshots,
            slow_reads: settings.emulated_reads.map(SlowReads::new),
            loaded: None,
            complain_at: Instant(0),
            executed: 0,
            apply_later: None,
            told: None,
            has_more_news: false,
            keep_from: None,
            scrub: scrub.transpose().map_err(LogError::Thread)?,
            is_damaged: false,
            clock,
            record: Vec::new(),
            reply: Vec::new(),
            directory,
        })
    }

    /// Appends a record to the log.
    pub(crate) fn persist(&mut self, ticket: Ticket, record: &Record) {
        if let Record::View { view, .. } | Record::EnterView { view, .. } = record
            && let Err(error) = self.view.note(*view)
        {
            // What the log would say, the file of the view has to say first.
            return self.fail_to_note(&error);
        }
        if self.has_failed {
            return;
        }
        self.record.clear();
        syros_wire::encode_record(record, &mut self.record);
        loop {
            match self.wal.append(&[&self.record]) {
                Ok(number) => {
                    assert_eq!(number.0, self.records_before + ticket.0, "records are numbered like tickets");
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
                    return self.fail(&error.to_string(), false);
                }
            }
        }
    }

    /// Lets the log's thread write what has been appended.
    pub(crate) fn submit(&mut self) {
        self.wal.submit();
    }

    /// Begins a turn of the event loop: goes on with what the last one left.
    pub(crate) fn begin_turn(&mut self, now: Now) {
        self.executed = 0;
        if let Some(through) = self.apply_later.take() {
            self.apply(through, now);
        }
    }

    /// Tells the replica what has reached the disk since the last call, or that the disk has failed.
    pub(crate) fn note_progress(&mut self, now: Now) {
        let persisted = Ticket(self.wal.persisted().0 - self.records_before);
        if persisted > self.persisted {
            self.persisted = persisted;
            self.replica.handle(now, Event::Persisted(persisted));
        }
        self.note_snapshots(now);
        self.note_findings();
        if !self.has_failed
            && let Some(error) = self.wal.error()
        {
            let returns = matches!(error, WalError::Disk(error) if may_return(error));
            let problem = error.to_string();
            self.fail(&problem, returns);
        }
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
            RoleName::ViewChange => log::info!("{me} has left its view for view {}", view.0),
            RoleName::Recovering => log::info!("{me} waits for a view after {}", view.0),
        }
    }

    /// The disk cannot be relied upon any more, at least for now.
    fn fail(&mut self, problem: &str, may_return: bool) {
        if self.has_failed {
            return;
        }
        self.has_failed = true;
        let now = self.clock.now();
        if may_return {
            log::error!("{problem}; {} takes no updates until the disk takes writes again", self.me);
            self.probe_at = now.instant.after(PROBE_INTERVAL);
        } else {
            log::error!(
                "{problem}; {} takes no updates until it is started again with a working disk",
                self.me
            );
        }
        self.replica.handle(now, Event::PersistFailed);
    }

    /// The file of the view cannot be written.
    fn fail_to_note(&mut self, error: &WriteError) {
        let returns = matches!(error, WriteError::Disk(error) if may_return(error));
        self.fail(&format!("cannot note the view: {error}"), returns);
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
                Finding::Store => self.is_damaged |= self.replica.is_normal() && !self.has_failed,
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
        self.has_more_news = false;
        if let Some(engine) = self.loaded.take() {
            self.snapshots.discard(engine);
        }
        if let Some((op_number, ticket)) = self.keep_from
            && ticket <= self.persisted
        {
            self.keep_from = None;
            self.snapshots.remove_before(op_number);
            self.wal.remove_before(RecordNumber(self.records_before + ticket.0));
        }
        while let Some(done) = self.snapshots.next_done() {
            let event = match done {
                Done::State(_) => continue,
                Done::Taken { op_number, bytes } => {
                    log::info!("{} has a snapshot at entry {} ({bytes} bytes)", self.me, op_number.0);
                    Event::SnapshotTaken { op_number, bytes }
                }
                Done::PartRead { to, op_number, offset, part } => {
                    let message = Message::SnapshotPart { op_number, offset, part: part.into() };
                    // Released at the end of this turn: nothing of it waits for the disk.
                    self.held.push(Ticket(0), Peer::Replica(to), message);
                    continue;
                }
                Done::PartWritten { op_number, received } => {
                    Event::SnapshotPartWritten { op_number, received }
                }
                Done::Loaded(loaded) => {
                    let Loaded { head, engine, bytes } = *loaded;
                    self.loaded = Some(engine);
                    self.replica.handle(now, Event::SnapshotLoaded { head: Box::new(head), bytes });
                    // What comes of it has to be carried out first.
                    self.has_more_news = true;
                    return;
                }
                Done::Failed { op_number, error } => {
                    // It is tried again every second.
                    if now.instant >= self.complain_at {
                        self.complain_at = now.instant.after(COMPLAINT_INTERVAL);
                        log::error!("{} cannot make the snapshot at entry {}: {error}", self.me, op_number.0);
                    }
                    self.engine.end_snapshot();
                    Event::SnapshotFailed { op_number }
                }
            };
            self.replica.handle(now, event);
        }
        let clock = self.clock;
        self.snapshots.go_on(&mut self.engine, || clock.now().instant);
    }

    /// When there is something to do even if nothing happens until then.
    pub(crate) fn deadline(&self) -> Instant {
        if self.has_more_news || self.apply_later.is_some() {
            return Instant(0);
        }
        let slow_reads = self.slow_reads.as_ref().map_or(Instant::NEVER, SlowReads::deadline);
        self.replica.deadline().min(self.probe_at).min(self.snapshots.deadline()).min(slow_reads)
    }

    /// Begins a snapshot of what has been executed.
    pub(crate) fn take_snapshot(&mut self, head: Box<SnapshotHead>, now: Now) {
        self.snapshots.begin(&mut self.engine, head, now);
    }

    /// Older snapshots and records go once the record with this ticket is on disk.
    pub(crate) const fn keep_from(&mut self, op_number: OpNumber, ticket: Ticket) {
        self.keep_from = Some((op_number, ticket));
    }

    /// The thread that has the snapshots.
    pub(crate) const fn snapshots(&self) -> &Snapshots {
        &self.snapshots
    }

    /// Has the state of the snapshot that was just loaded take the place of what was executed.
    pub(crate) fn adopt(&mut self, op_number: OpNumber, now: Now) {
        let engine = self.loaded.take().expect("a snapshot is adopted when it has been loaded");
        log::info!("{} takes over the state at entry {} from another replica", self.me, op_number.0);
        self.snapshots.give_up();
        let before = std::mem::replace(&mut self.engine, engine);
        self.snapshots.discard(before);
        self.next_expiry = self.engine.next_expiry();
        self.replica.handle(now, Event::NextExpiry(self.next_expiry));
    }

    /// True if the disk refused a write and takes writes again: the replica can start anew from what the
    /// disk holds.
    pub(crate) fn disk_has_returned(&mut self, now: Now) -> bool {
        if now.instant < self.probe_at {
            return false;
        }
        self.probe_at = now.instant.after(PROBE_INTERVAL);
        self.directory.try_writing().is_ok()
    }

    /// True if everything appended is on disk, or never will be.
    pub(crate) fn is_settled(&self) -> bool {
        self.has_failed || (self.wal.persisted() == self.wal.appended() && self.held.0.is_empty())
    }

    /// True if clients should wait until the disk has caught up.
    pub(crate) fn is_behind(&self) -> bool {
        (self.wal.waiting_bytes() > WAITING_BYTES_PAUSE && !self.has_failed)
            || self.snapshots.is_behind(&self.engine)
    }

    /// The message, if it may leave now; else it is kept until it may.
    pub(crate) fn release_or_hold(&mut self, to: Peer, message: Message, after: Ticket) -> Option<Message> {
        if after <= self.persisted {
            return Some(message);
        }
        self.held.push(after, to, message);
        None
    }

    /// The next message that was held and may leave now.
    pub(crate) fn pop_released(&mut self) -> Option<(Peer, Message)> {
        self.held.pop(self.persisted)
    }

    /// Executes the log up to `through`, now or in the next turn, and tells the replica.
    pub(crate) fn apply_soon(&mut self, through: OpNumber, now: Now) {
        // After a restart there may be millions to execute. Heartbeats must not wait for that.
        if self.executed < EXECUTED_PER_TURN {
            self.apply(through, now);
        } else {
            self.apply_later = Some(through);
        }
    }

    fn apply(&mut self, through: OpNumber, now: Now) {
        self.executed += through.0 - self.replica.applied().0;
        let mut replies: Vec<(OpNumber, Body)> = Vec::new();
        for number in self.replica.applied().0 + 1..=through.0 {
            let number = OpNumber(number);
            let LogEntry { time, payload, .. } = self.replica.entry(number);
            match payload {
                Payload::Update(update) => {
                    self.reply.clear();
                    self.engine.apply(*time, &update.request.body, &mut self.reply);
                    if update.class == Class::Update {
                        replies.push((number, Body::from(self.reply.as_slice())));
                    }
                }
                Payload::Recovered(updates) => {
                    for update in updates {
                        self.reply.clear();
                        self.engine.apply(*time, &update.request.body, &mut self.reply);
                    }
                }
                Payload::Register { .. } | Payload::Expire(_) | Payload::Tick => self.engine.advance(*time),
            }
        }
        self.replica.handle(now, Event::Applied { through, replies });
        let next_expiry = self.engine.next_expiry();
        if next_expiry != self.next_expiry {
            self.next_expiry = next_expiry;
            self.replica.handle(now, Event::NextExpiry(next_expiry));
        }
    }

    /// Executes a read for a client of this process.
    pub(crate) fn read(&mut self, now: Now, body: &[u8]) -> Body {
        self.reply.clear();
        self.engine.read(now.wall, body, &mut self.reply);
        Body::from(self.reply.as_slice())
    }

    /// Puts on disk what has been appended, and ends the log's thread.
    pub(crate) fn close(self) -> Result<(), WalError> {
        self.wal.close().map(|_| ())
    }
}

/// True if nothing that the log holds is in doubt, so that it can be opened again once the disk takes
/// writes. After a sync that failed it would be: the system may have dropped what it could not write, and
/// still show it to readers.
const fn may_return(error: &DiskError) -> bool {
    matches!(error.operation, DiskOperation::Create | DiskOperation::Append)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_leave_when_their_own_records_are_on_disk() {
        let mut held = Held::default();
        for (after, view) in [(3, 1), (5, 2), (4, 3), (3, 4), (5, 5)] {
            held.push(Ticket(after), Peer::Client(1), Message::WrongView { view: View(view) });
        }
        let mut released = |persisted| {
            let mut views = Vec::new();
            while let Some((_, Message::WrongView { view })) = held.pop(Ticket(persisted)) {
                views.push(view.0);
            }
            views
        };
        assert_eq!(released(2), []);
        assert_eq!(released(3), [1, 4]);
        assert_eq!(released(9), [3, 2, 5]);
    }
}
