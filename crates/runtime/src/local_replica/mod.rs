//! The replica of a node: its core, the engine that executes its log, and the write-ahead log.
//!
//! The driver decides, and this carries out. Each module inside owns one concern: how the replica starts (`start`), its log
//! (`log`), a disk that fails and returns (`disk`), what its threads report (`reports`), and what the process logs of it
//! (`notices`).

mod disk;
mod log;
mod notices;
mod reports;
mod start;
mod traced;

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use mio::Waker;
use syros_lsm::DiskStore;
use syros_metrics::{Distribution, ReplicaActivity};
use syros_node::data::ViewFile;
use syros_node::{
    DiskState, ENTRIES_PER_TURN, EntriesJob, Evictions, InMemory as _, KeyEvents, MemoryExecutor,
    MemoryLimit, NoOpAnswer, Output, ReadJob, RecordNumbering, ReplicaDriver, WaitedKeys,
};
use syros_protocol::message::{Describe, Message, Peer, RoleName};
use syros_protocol::record::Ticket;
use syros_protocol::replica::{Durability, Event, Replica, TraceEvent, ViewChangeCause};
use syros_resp::Submission;
use syros_storage::{Census, DiskEngine};
use syros_types::{
    ConfigurationId, Database, EvictionSettings, Instant, Now, OpNumber, Reconfiguration, ReplicaId, View,
};
use syros_wal::{FileDisk, GroupCommit, Options};

pub(crate) use log::DelayedSend;
pub(crate) use start::LocalReplicaParts;

use crate::clock::Clock;
use crate::directory::{DataDirectory, DirectoryError};
use crate::disk_space::DiskWatch;
use crate::durable_sender::DurableSender;
use crate::entries_thread::EntriesThread;
use crate::execution::EngineThreads;
use crate::memory_engine::AnyMemoryEngine;
use crate::other_members::{OtherMembers, RestartPermit};
use crate::scrub::Scrub;
use crate::slow_reads::SlowReads;
use crate::snapshots::SnapshotThread;
use crate::trace;
use crate::traces::ReplicaTraces;

/// How often a node looks whether space has returned to its disk.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// What the event loop is to do for a replica.
pub(crate) enum ReplicaRequest {
    /// Send a message.
    Send(Peer, Message),
    /// Send a message when a record is on disk.
    SendAfter(Ticket, Peer, Message),
    /// Execute a read, as soon as there is room for its answer.
    Read(ReadJob),
    /// End connections to nodes that are not in the configuration that the directory names from now on; if that could not be
    /// written, end the process.
    Reconfigured(Result<(), DirectoryError>),
}

/// What decides for the replica of a process.
type Driver = ReplicaDriver<AnyMemoryEngine, DiskStore, DelayedSend>;

/// A replica and what it drives.
pub(crate) struct LocalReplica {
    pub(crate) me: ReplicaId,
    /// What the replica wants is not done any more: the process is about to end.
    is_halted: bool,
    driver: Driver,
    engine_threads: EngineThreads,
    snapshots: SnapshotThread,
    /// Reads the log for those who copy it.
    log_copies: EntriesThread,
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
    others: OtherMembers,
    waker: Arc<Waker>,
    /// Asked for when the disk has returned and a restart would lose the memory.
    restart_permit: Option<RestartPermit>,
    /// Messages that the log's thread sends.
    durable_sender: Arc<DurableSender>,
    /// Something that was waited for has reached the disk, and nobody has looked since.
    is_overdue: bool,
    view: ViewFile<FileDisk>,
    pub(crate) slow_reads: Option<SlowReads>,
    /// When a snapshot that cannot be made, or a view that cannot be noted, is warned of again.
    warning_at: Instant,
    /// View and role that were logged last.
    logged_role: Option<(View, RoleName)>,
    /// The snapshots' thread has more to tell than what was looked at last.
    has_more_reports: bool,
    scrub: Option<Scrub>,
    /// What is on disk is damaged, and others can repair it.
    is_damaged: bool,
    /// The log is damaged that was to be opened again: the replica has to start anew to get another one.
    is_log_damaged: bool,
    /// When the view is written again, which a replica with a damaged engine needs to start anew.
    renew_at: Instant,
    clock: Clock,
    disk_watch: DiskWatch,
    /// When longer leases that were promised in an earlier life have ended, and the lease since.
    promises_end: Option<(Instant, Duration)>,
    /// The log says that the data directory is not there any more. The replica starts anew if it comes back.
    has_logged_loss: bool,
    /// Most bytes that the data may take in memory; `None` without a limit. Redis clients may set it.
    pub(crate) maxmemory: Cell<Option<u64>>,
    /// What happens then. Redis clients may set it.
    pub(crate) eviction: Cell<EvictionSettings>,
    /// When data above its limit is warned of again.
    memory_warning_at: Instant,
    /// The operator was told that the disk is nearly full.
    was_short: bool,
    /// How often it has left a view, by why: the places of [`ViewChangeCause::NAMES`].
    view_changes: [u64; ViewChangeCause::NAMES.len()],
    /// Requests for a census up to this one have been answered.
    pub(crate) counted: u64,
    /// What it does with the updates that are traced, if any are.
    traces: Option<Box<ReplicaTraces>>,
    /// Locked as long as this exists.
    directory: DataDirectory,
}

impl LocalReplica {
    /// Tells the replica by how much the data may grow, if that has changed.
    pub(crate) fn tell_memory(&mut self, now: Now) {
        let eviction = self.eviction.get();
        // A policy may ask how keys are used before there is a limit.
        let without_limit = || eviction.policy.needs_uses().then_some(u64::MAX);
        let bytes = self.maxmemory.get().or_else(without_limit);
        let limit = bytes.map(|bytes| MemoryLimit::new(bytes, eviction));
        self.driver.tell_memory_room(now, limit);
    }

    /// Where the replica lives.
    pub(crate) const fn directory(&self) -> &DataDirectory {
        &self.directory
    }

    /// The newest configuration that the replica knows, with all nodes that its directory knows.
    pub(crate) fn newest_configuration(&self) -> Reconfiguration {
        let ours = self.directory.configuration();
        let newest = self.driver.replica().newest_configuration();
        if newest.epoch > ours.epoch { newest } else { ours }
    }

    /// Where the replica lives.
    pub(crate) const fn directory_mut(&mut self) -> &mut DataDirectory {
        &mut self.directory
    }

    /// Lets an engine in memory execute what it was to, and what it is told to until [`LocalReplica::pause_execution`].
    pub(crate) fn execute(&mut self, now: Now) {
        let clock = self.clock;
        self.trace_progress();
        self.driver.resume(ENTRIES_PER_TURN, now, || clock.now().instant, &mut ());
        self.trace_progress();
    }

    /// From now on an engine in memory notes what it is to execute, and does not.
    pub(crate) fn pause_execution(&mut self) {
        self.driver.pause();
        self.trace_progress();
        self.trace_end_of_turn();
    }

    /// The next thing that the event loop is to do for the replica; what concerns the log and the threads is done here.
    pub(crate) fn poll(&mut self, now: Now) -> Option<ReplicaRequest> {
        let clock = self.clock;
        if self.is_halted {
            return None;
        }
        while let Some(output) = self.driver.poll(now, || clock.now().instant, &mut ()) {
            match output {
                Output::Send { to, message } | Output::Evaluated { to, message } => {
                    self.trace_answer(to, &message, None);
                    return Some(ReplicaRequest::Send(to, message));
                }
                Output::SendAfter { after, to, message } => {
                    self.trace_answer(to, &message, Some(after));
                    return Some(ReplicaRequest::SendAfter(after, to, message));
                }
                Output::Answer { to, message } => match &mut self.slow_reads {
                    Some(slow_reads) => slow_reads.hold(now.instant, to, message),
                    None => return Some(ReplicaRequest::Send(to, message)),
                },
                Output::Read(job) => return Some(ReplicaRequest::Read(job)),
                Output::NoteView(view) => {
                    if let Err(error) = self.view.record(view) {
                        self.on_view_write_error(&error);
                    }
                }
                Output::NoteConfiguration(configuration) => {
                    let noted = self.directory.adopt(configuration.reconfiguration());
                    // Nothing of what follows may be done: the replica would act in a configuration that it forgets.
                    self.is_halted = noted.is_err();
                    return Some(ReplicaRequest::Reconfigured(noted));
                }
                Output::Append { ticket, record } => {
                    self.trace_record(ticket, &record);
                    self.append(ticket, &record);
                }
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
                Output::DropKept => self.wal.drop_kept(),
                Output::ReadEntries(wanted) => {
                    let (emitted, durable) = (self.record(wanted.ticket), self.wal.persisted());
                    self.log_copies.read(EntriesJob { wanted, emitted, durable });
                }
                Output::Adopted { op_number, engine } => self.on_adopted(op_number, engine),
                Output::PutTogether(reply) => {
                    if let EngineThreads::InMemory(long_replies) = &self.engine_threads
                        && let Err(error) = long_replies.put_together(reply)
                    {
                        tracing::warn!(node = self.me.0, error = %error, "cannot start a thread for a long reply");
                        self.driver.on_put_together(now, None);
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
                Output::Notice(notice) => self.log_notice(&notice, now),
                Output::Trace(event) => {
                    if let TraceEvent::LeftView { cause, .. } = event {
                        self.view_changes[cause.place()] += 1;
                    }
                    trace::log(self.me, event);
                }
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

    /// When there is something to do even if nothing happens until then.
    pub(crate) fn deadline(&self) -> Instant {
        if self.has_more_reports || self.is_overdue {
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
        self.trace_event(now, &event);
        self.driver.handle(now, event);
    }

    /// A backup that ends with this entry, or a later one, can be continued with what this node has.
    pub(crate) fn oldest_entry(&self) -> OpNumber {
        let in_memory = self.replica().log_base();
        let on_disk = self.log_copies.oldest().filter(|_| self.durability == Durability::Fsync);
        on_disk.map_or(in_memory, |on_disk| on_disk.min(in_memory))
    }

    /// What the replica has done since it started.
    pub(crate) fn activity(&self) -> ReplicaActivity {
        let (status, log) = (self.replica().status(), self.wal.activity());
        let told = |wal: syros_wal::Distribution| Distribution { sum: wal.sum, buckets: wal.buckets };
        ReplicaActivity {
            last_entry: status.op_number,
            sessions: status.sessions,
            log_bytes: status.log_bytes,
            conflicts: status.conflicts,
            reads: [status.fast_reads, status.slow_reads],
            views_entered: status.view_changes,
            refused: status.refused,
            refusals: self.replica().refusals().map(|(refusal, count)| (refusal.name(), count)).collect(),
            view_changes: ViewChangeCause::NAMES.into_iter().zip(self.view_changes).collect(),
            syncs: told(log.syncs),
            sync_records: told(log.records),
            sync_bytes: told(log.bytes),
        }
    }

    /// What commands wait for at this node, and what has been executed of that.
    pub(crate) const fn waited_mut(&mut self) -> &mut WaitedKeys {
        self.driver.waited_mut()
    }

    /// Removals that the front end of this process is to submit.
    pub(crate) const fn evictions_mut(&mut self) -> &mut Evictions {
        self.driver.evictions_mut()
    }

    /// What has happened to keys, if anybody listens.
    pub(crate) const fn key_events_mut(&mut self) -> &mut KeyEvents {
        self.driver.key_events_mut()
    }

    /// What an update answers that changes nothing: see [`Driver::answer_no_op`].
    pub(crate) fn answer_no_op(&mut self, now: Now, submission: &Submission) -> NoOpAnswer {
        self.driver.answer_no_op(now, &submission.footprint, &submission.body)
    }

    /// The engine, if it is in memory.
    pub(crate) const fn memory(&self) -> Option<&MemoryExecutor<AnyMemoryEngine>> {
        self.driver.memory()
    }

    /// How many keys there are, and how many of these have an expiry; of an engine on disk, when they were counted last.
    pub(crate) fn census(&self) -> [Census; Database::COUNT] {
        match (self.memory(), self.driver.executor(), &self.engine_threads) {
            (Some(memory), ..) => memory.engine().census(),
            (_, Some(executor), EngineThreads::OnDisk(disk)) => disk.census(executor.shared()),
            _ => [Census::default(); Database::COUNT],
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

    /// How many keys have gone because memory was short.
    pub(crate) fn evicted_keys(&self) -> u64 {
        self.memory().map_or(0, |memory| memory.engine().evicted())
    }

    /// Bytes of memory that the data takes, of an engine that keeps it in memory.
    pub(crate) fn data_bytes(&self) -> Option<usize> {
        self.memory()?.engine().data_bytes()
    }

    /// Executes a read, now or later; its answer, if now.
    pub(crate) fn read(&mut self, now: Now, job: ReadJob) -> Option<Message> {
        let answer = self.driver.read(now, job);
        self.hand_out();
        answer.map(|(_, message)| message)
    }
}
