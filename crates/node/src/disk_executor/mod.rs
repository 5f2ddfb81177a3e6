//! Execution by an engine that is on disk (IONIA 4.1, deferred execution): what is dealt out to which thread, what has
//! to wait for what, and what the replica hears of it.
//!
//! A [`DiskExecutor`] belongs to whoever drives the replica. It deals out log entries, reads and checkpoints. Threads
//! carry them out: one [`LaneWorker`] for each lane, and any number of [`ReadWorker`]s. They report, and
//! [`DiskExecutor::next_news`] says what follows from the reports. The server runs each worker on a thread of its own;
//! the simulator runs all of them step by step, in an order that it draws.

use std::sync::Arc;
use std::time::Duration;

use syros_commands::access::{Announcement, Notification};
use syros_protocol::message::{Body, LogEntry, Message, Payload, Peer};
use syros_protocol::record::{SnapshotHead, Ticket};
use syros_protocol::replica::Event;
#[cfg(feature = "planted-bugs")]
use syros_protocol::replica::PlantedBug;
use syros_storage::execution::{
    ChunkResults, Dispatcher, Executed, Item, ItemProgress, ReadWay, Task, Worker,
};
use syros_storage::{Census, Cut, Pressure, ReadView, Reader, Shared, Store, StoreError};
use syros_types::{Database, Description, Footprint, Instant, Now, OpNumber, OperationId, View, WallTime};

use crate::checkpoints::Checkpoints;
use crate::read_job::{EvaluateJob, ReadJob, ReadOutcome};

/// Reads that have not been answered at most; beyond, clients have to wait.
const READS_WAITING_MAX: usize = 16_384;

/// Where the disk lacks room, the engine may hold so many times as much in memory as else before clients wait: deletions take
/// some, too, and only they make room.
const REMOVING_SHARE: u64 = 4;

/// Bytes of updates that wait for a lane at most; beyond, clients have to wait.
const EXECUTION_WAITING_MAX: usize = 32 << 20;

/// How often it is looked how much the engine owes to the disk.
const PRESSURE_INTERVAL: Duration = Duration::from_millis(5);

/// What an engine may owe to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PressureLimits {
    /// Bytes in memory that are not on disk yet, from which on a checkpoint is due, however little of the log they came from:
    /// one element of a collection may be a short command and some KiB to be written.
    pub checkpoint_bytes: u64,
    /// The same, from which on clients wait. More than those of a checkpoint under way and one that follows.
    pub unflushed_bytes: u64,
    /// Runs that wait to be merged, from which on clients wait.
    pub runs: usize,
}

impl PressureLimits {
    /// Bytes in memory from which on nothing is removed that nobody asked to remove.
    const fn purging_bytes(&self) -> u64 {
        self.checkpoint_bytes.saturating_mul(2)
    }
}

/// What one lane does while others wait for it.
#[derive(Debug)]
enum BarrierJob {
    /// A read that looks up more than once, and has to see what there was at one moment.
    Read(ReadJob, WallTime),
    /// A read that concerns all keys: only the moment is taken while the lanes wait.
    ReadAll(ReadJob, WallTime),
    /// Find out what an update returns.
    Evaluate(EvaluateJob),
    /// End a checkpoint; for a file, keep the state as it is now.
    Seal { head: Box<SnapshotHead>, is_file: bool },
    /// Remove what has expired.
    Purge,
}

/// See [`LaneItem`].
#[derive(Debug)]
pub struct LaneJob(BarrierJob);

/// What the executor gives to the thread of a lane: [`LaneWorker::step`] does it.
pub type LaneItem = Item<Body, LaneJob>;

/// A read for any [`ReadWorker`].
#[derive(Debug)]
pub struct Reading<S: Store>(ReadingKind<S>);

#[derive(Debug)]
enum ReadingKind<S: Store> {
    /// Of what there is when it is carried out.
    Current(ReadJob),
    /// Of what there was at a moment.
    Past(ReadJob, ReadView<S>),
    /// A job that needs a barrier of the lanes, carried out without one.
    #[cfg(feature = "planted-bugs")]
    WithoutBarrier(BarrierJob),
}

impl<S: Store> Reading<S> {
    /// True if it may take long: nobody should wait behind it.
    #[must_use]
    pub const fn is_long(&self) -> bool {
        matches!(self.0, ReadingKind::Past(..))
    }

    /// The operation, of a read.
    #[must_use]
    pub const fn body(&self) -> Option<&Body> {
        match &self.0 {
            ReadingKind::Current(job) | ReadingKind::Past(job, _) => Some(&job.body),
            #[cfg(feature = "planted-bugs")]
            ReadingKind::WithoutBarrier(_) => None,
        }
    }
}

/// What a thread has done.
#[derive(Debug)]
pub enum Report<S: Store> {
    /// A lane has executed and committed its part of a chunk; what came of it.
    Ended(u64, ChunkResults),
    /// A read has ended.
    Read(ReadOutcome),
    /// What to tell the client of an update before it is executed; `None` if that cannot be known.
    Evaluated(EvaluateJob, Option<Message>),
    /// A checkpoint ends here, with the state as it was if a file was asked for.
    Sealed(Box<SnapshotHead>, Result<Option<Cut<S>>, StoreError>),
    /// [`Shared::flush`] has ended for this checkpoint.
    Flushed(OpNumber, Result<(), StoreError>),
    /// What had expired is removed, and this has happened to keys by that.
    Purged(Vec<Notification>),
    /// Keys were counted for all requests up to this one.
    Counted(u64, Result<[Census; Database::COUNT], StoreError>),
}

/// Something that the driver of the replica has to act on.
#[derive(Debug)]
pub enum ExecutorEvent<S: Store> {
    /// A prefix of the log is executed.
    Executed(Executed),
    /// Keys have expired, if it is asked what happens to keys.
    Expired(Vec<Notification>),
    /// A read is answered, or is not.
    Read(ReadOutcome),
    /// A client is to be told what its update returns.
    Evaluated(Peer, Message),
    /// What this update returns cannot be known before it is executed.
    NotEvaluated(Peer, OperationId),
    /// A checkpoint is sealed; with the state as it was, if a file was asked for.
    Sealed(Box<SnapshotHead>, Option<Cut<S>>),
    /// The engine's part of a checkpoint is durable. The length of the checkpoint's file (0 without one), if that is
    /// complete as well, or was not asked for.
    Flushed(OpNumber, Option<u64>),
    /// A checkpoint failed: [`Checkpoints::failed`] is to be called.
    Failed(OpNumber, StoreError),
    /// A census that began after the request with this number; or why there is none.
    Counted(u64, Result<[Census; Database::COUNT], StoreError>),
}

/// What has become of an item.
#[derive(Debug)]
pub enum LaneStep<S: Store> {
    /// It is done.
    Done,
    /// It is done, and the executor is to hear of it.
    Report(Report<S>),
    /// It is done, and what is left of it is for a [`ReadWorker`].
    Reading(Reading<S>),
    /// Other lanes have to come first, or one of them has to finish: the item is to be tried again then.
    Wait,
}

/// Carries out the items of one lane.
#[derive(Debug)]
pub struct LaneWorker<S: Store> {
    shared: Arc<Shared<S>>,
    worker: Worker<S>,
}

impl<S: Store> LaneWorker<S> {
    /// A worker for this engine.
    #[must_use]
    pub fn new(shared: Arc<Shared<S>>) -> Self {
        Self { worker: Worker::new(Arc::clone(&shared)), shared }
    }

    /// Does the next item, or tries again.
    pub fn step(&mut self, item: &LaneItem) -> LaneStep<S> {
        let job = match self.worker.step(item) {
            ItemProgress::Done => return LaneStep::Done,
            ItemProgress::Ended(chunk, results) => return LaneStep::Report(Report::Ended(chunk, results)),
            ItemProgress::Wait => return LaneStep::Wait,
            ItemProgress::Job(LaneJob(job)) => job,
        };
        let step = perform(job, &self.shared);
        if let Item::Barrier(barrier) = item {
            barrier.close();
        }
        step
    }
}

/// Does a job. No lane that it concerns may be at work.
fn perform<S: Store>(job: BarrierJob, shared: &Arc<Shared<S>>) -> LaneStep<S> {
    LaneStep::Report(match job {
        BarrierJob::ReadAll(job, time) => {
            return LaneStep::Reading(Reading(ReadingKind::Past(job, ReadView::new(shared, time))));
        }
        BarrierJob::Read(job, time) => {
            let (mut reader, mut reply) = (Reader::new(Arc::clone(shared)), Vec::new());
            reader.read_at(time, job.now, &job.body, &mut reply);
            Report::Read(job.answer(&reply, reader.first_expiry()))
        }
        BarrierJob::Evaluate(job) => {
            let message = job.perform(shared);
            Report::Evaluated(job, message)
        }
        BarrierJob::Seal { head, is_file } => {
            let sealed = seal(shared, &head, is_file);
            Report::Sealed(head, sealed)
        }
        BarrierJob::Purge => Report::Purged(shared.purge()),
    })
}

/// Ends a checkpoint; the state as it is now comes back if a file is to be made of it. No lane may be at work, and
/// nothing uncommitted.
fn seal<S: Store>(
    shared: &Arc<Shared<S>>,
    head: &SnapshotHead,
    is_file: bool,
) -> Result<Option<Cut<S>>, StoreError> {
    let mut bytes = Vec::new();
    syros_wire::encode_snapshot_head(head, &mut bytes);
    shared.seal(&bytes)?;
    Ok(is_file.then(|| Cut::new(shared)))
}

/// Carries out reads, whatever the lanes do meanwhile.
#[derive(Debug)]
pub struct ReadWorker<S: Store> {
    shared: Arc<Shared<S>>,
    reader: Reader<S>,
    reply: Vec<u8>,
}

impl<S: Store> ReadWorker<S> {
    /// A worker for this engine.
    #[must_use]
    pub fn new(shared: Arc<Shared<S>>) -> Self {
        Self { reader: Reader::new(Arc::clone(&shared)), shared, reply: Vec::new() }
    }

    /// Carries out one.
    pub fn perform(&mut self, reading: Reading<S>) -> Report<S> {
        let Self { shared, reader, reply } = self;
        reply.clear();
        match reading.0 {
            ReadingKind::Current(job) => {
                reader.read(job.now, &job.body, reply);
                Report::Read(job.answer(reply, reader.first_expiry()))
            }
            ReadingKind::Past(job, moment) => {
                let expiry = moment.read(shared, job.now, &job.body, reply);
                Report::Read(job.answer(reply, expiry))
            }
            #[cfg(feature = "planted-bugs")]
            ReadingKind::WithoutBarrier(job) => match perform(job, shared) {
                LaneStep::Report(report) => report,
                _ => unreachable!("no planted bug does this to a read of all keys"),
            },
        }
    }
}

/// The known-wrong variants of this module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Planted {
    ReadOfSeveralInPassing,
    StaleOfSeveralInPassing,
    EvaluatedInPassing,
    CheckpointInPassing,
    CheckpointBeforeRecord,
    CheckpointByLogAlone,
}

/// Deals out to the threads of an engine on disk, and collects what they report.
#[derive(Debug)]
pub struct DiskExecutor<S: Store> {
    shared: Arc<Shared<S>>,
    dispatcher: Dispatcher<Body, LaneJob>,
    /// The last entry that was dealt out.
    dispatched: OpNumber,
    /// The last entry that was executed, as all before it.
    executed: OpNumber,
    /// Reads that no worker has been given yet.
    readings: Vec<Reading<S>>,
    /// Reads that have not been answered.
    unanswered: usize,
    is_purging: bool,
    /// Something is to be removed when more of what is in memory is on disk.
    purge_waits: bool,
    /// What the replica has been told that no key expires before.
    next_expiry: Option<WallTime>,
    checkpoints: Checkpoints,
    limits: PressureLimits,
    pressure: Pressure,
    pressure_at: Instant,
    #[cfg(feature = "planted-bugs")]
    planted: Option<Planted>,
}

impl<S: Store> DiskExecutor<S> {
    /// For an engine whose last checkpoint holds all up to `applied`, and that has so many lanes.
    #[must_use]
    pub fn new(shared: Arc<Shared<S>>, applied: OpNumber, lanes: usize, limits: PressureLimits) -> Self {
        Self {
            shared,
            dispatcher: Dispatcher::new(lanes),
            dispatched: applied,
            executed: applied,
            readings: Vec::new(),
            unanswered: 0,
            is_purging: false,
            purge_waits: false,
            next_expiry: None,
            checkpoints: Checkpoints::default(),
            limits,
            pressure: Pressure::default(),
            pressure_at: Instant(0),
            #[cfg(feature = "planted-bugs")]
            planted: None,
        }
    }

    /// Makes it wrong in a known way, if the bug is one of this module.
    #[cfg(feature = "planted-bugs")]
    pub fn plant(&mut self, bug: Option<PlantedBug>) {
        self.dispatcher.nobody_meets = bug == Some(PlantedBug::NobodyMeets);
        self.planted = match bug {
            Some(PlantedBug::ReadOfSeveralInPassing) => Some(Planted::ReadOfSeveralInPassing),
            Some(PlantedBug::StaleOfSeveralInPassing) => Some(Planted::StaleOfSeveralInPassing),
            Some(PlantedBug::EvaluatedInPassing) => Some(Planted::EvaluatedInPassing),
            Some(PlantedBug::CheckpointInPassing) => Some(Planted::CheckpointInPassing),
            Some(PlantedBug::CheckpointBeforeRecord) => Some(Planted::CheckpointBeforeRecord),
            Some(PlantedBug::CheckpointByLogAlone) => Some(Planted::CheckpointByLogAlone),
            _ => None,
        };
    }

    #[cfg(feature = "planted-bugs")]
    fn planted(&self, bug: Planted) -> bool {
        self.planted == Some(bug)
    }

    #[cfg(not(feature = "planted-bugs"))]
    #[expect(clippy::unused_self, reason = "with planted bugs it is used")]
    const fn planted(&self, _: Planted) -> bool {
        false
    }

    /// From now on it is for another engine, whose last checkpoint holds all up to `applied`. What the threads of the one
    /// before still report must not reach it.
    pub fn begin_again(&mut self, shared: Arc<Shared<S>>, applied: OpNumber) {
        let next = Self::new(shared, applied, self.lanes(), self.limits);
        #[cfg(feature = "planted-bugs")]
        let next = {
            let mut next = next;
            next.dispatcher.nobody_meets = self.dispatcher.nobody_meets;
            next.planted = self.planted;
            next
        };
        *self = next;
    }

    /// The engine.
    #[must_use]
    pub const fn shared(&self) -> &Arc<Shared<S>> {
        &self.shared
    }

    /// Number of lanes.
    #[must_use]
    pub fn lanes(&self) -> usize {
        self.dispatcher.lanes()
    }

    /// The lane that has the keys of this hash.
    #[must_use]
    pub fn lane_of(&self, hash: u64) -> usize {
        self.dispatcher.lane_of(hash)
    }

    /// The last entry that was dealt out.
    #[must_use]
    pub const fn dispatched(&self) -> OpNumber {
        self.dispatched
    }

    /// True if all entries that were dealt out are executed, and have been told of.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.dispatcher.is_idle()
    }

    /// What the replica is to be told before which no key expires, if that has changed.
    pub fn expiry_news(&mut self) -> Option<Event> {
        let before = self.next_expiry;
        let event = self.expiry();
        (self.next_expiry != before).then_some(event)
    }

    /// What the replica is to be told before which no key expires, whether or not that has changed.
    pub fn expiry(&mut self) -> Event {
        self.next_expiry = self.shared.next_expiry();
        Event::NextExpiry(self.next_expiry)
    }

    // ---- Dealing out.

    /// Deals out one log entry, the one after the last.
    pub fn entry(&mut self, number: OpNumber, entry: &LogEntry) {
        self.dispatched = number;
        let task =
            |body: &Body, wants_reply| Task { number, time: entry.time, body: Arc::clone(body), wants_reply };
        match &entry.payload {
            Payload::Update(update) => {
                let task = task(&update.request.body, !update.class.is_nilext());
                self.dispatcher.task(&update.footprint, task);
            }
            Payload::Recovered(updates) => {
                let footprints = updates.iter().map(|update| &update.footprint);
                let tasks =
                    updates.iter().map(|update| task(&update.request.body, !update.class.is_nilext()));
                self.dispatcher.indivisible(footprints, tasks.collect());
            }
            Payload::Register { .. } | Payload::Expire(_) | Payload::Tick | Payload::Reconfigure(_) => {}
        }
    }

    /// The end of what is dealt out at a time; `time` is the log time of the last entry.
    pub fn end_chunk(&mut self, time: WallTime) {
        self.dispatcher.end_chunk(self.dispatched, time);
    }

    /// Has a read answered.
    pub fn read(&mut self, job: ReadJob) {
        self.unanswered += 1;
        let time = self.dispatcher.time();
        match ReadWay::of(&job.body) {
            ReadWay::InPassing => self.readings.push(Reading(ReadingKind::Current(job))),
            _ if self.planted(Planted::ReadOfSeveralInPassing)
                // Members are asked for several keys by stale reads only.
                || (self.planted(Planted::StaleOfSeveralInPassing) && job.freshness.is_some()) =>
            {
                self.readings.push(Reading(ReadingKind::Current(job)));
            }
            ReadWay::OfReadView => self.barrier(&Footprint::All, BarrierJob::ReadAll(job, time)),
            ReadWay::AtBarrier(keys) => self.barrier(&keys, BarrierJob::Read(job, time)),
        }
    }

    /// Has it found out what an update returns, before anything is executed that is dealt out later.
    pub fn evaluate(&mut self, to: Peer, view: View, id: OperationId, body: Body) {
        let Ok(Description { footprint, .. }) = syros_commands::describe(&body) else { return };
        let job = BarrierJob::Evaluate(EvaluateJob { to, view, id, body, time: self.dispatcher.time() });
        self.barrier_unless(Planted::EvaluatedInPassing, &footprint, job);
    }

    /// Begins a checkpoint of what has been dealt out, and a file of it if one is wanted.
    pub fn take_snapshot(&mut self, head: Box<SnapshotHead>, ticket: Ticket, is_file: bool) {
        self.checkpoints.begin(head.op_number, ticket, is_file);
        let job = BarrierJob::Seal { head, is_file };
        self.barrier_unless(Planted::CheckpointInPassing, &Footprint::All, job);
    }

    fn purge_if_due(&mut self) {
        // What is removed is written, too, and a checkpoint needs an entry of the log that it ends with. Clients must not have to
        // wait for a checkpoint that waits for their entries.
        if self.is_purging || !self.shared.has_to_purge() {
            return;
        }
        self.purge_waits = self.shared.store().pressure().unflushed_bytes > self.limits.purging_bytes();
        if !self.purge_waits {
            self.is_purging = true;
            self.barrier(&Footprint::All, BarrierJob::Purge);
        }
    }

    /// Goes on with what has waited for a checkpoint.
    fn purge_if_waiting(&mut self) {
        if self.purge_waits {
            self.purge_if_due();
        }
    }

    fn barrier(&mut self, footprint: &Footprint, job: BarrierJob) {
        self.dispatcher.job(footprint, LaneJob(job));
    }

    fn barrier_unless(&mut self, bug: Planted, footprint: &Footprint, job: BarrierJob) {
        #[cfg(feature = "planted-bugs")]
        if self.planted(bug) {
            return self.readings.push(Reading(ReadingKind::WithoutBarrier(job)));
        }
        let _ = bug;
        self.barrier(footprint, job);
    }

    /// The next item for the thread of a lane, and the number of that lane.
    pub fn next_item(&mut self) -> Option<(usize, LaneItem)> {
        self.dispatcher.next_item()
    }

    /// Reads for threads of readers: to be taken from here.
    pub const fn readings(&mut self) -> &mut Vec<Reading<S>> {
        &mut self.readings
    }

    // ---- Collecting.

    /// The next thing that has happened. `next_report` gives the threads' reports in the order of each thread. What was
    /// executed is visible to readers when this returns it.
    pub fn next_news(
        &mut self,
        mut next_report: impl FnMut() -> Option<Report<S>>,
    ) -> Option<ExecutorEvent<S>> {
        loop {
            // Nothing that was executed since it failed counts.
            if self.shared.failure().is_some() {
                return None;
            }
            if let Some(mut executed) = self.dispatcher.next_executed() {
                let entry = executed.through.0;
                let due = self.shared.advance(executed.time);
                let due = due.into_iter().map(|one| Notification { entry, ..one });
                executed.announcements.extend(due.map(Announcement::KeyEvent));
                self.executed = executed.through;
                self.purge_if_due();
                return Some(ExecutorEvent::Executed(executed));
            }
            let report = next_report()?;
            if self.shared.failure().is_some() {
                return None;
            }
            if let Some(news) = self.on_report(report) {
                return Some(news);
            }
        }
    }

    fn on_report(&mut self, report: Report<S>) -> Option<ExecutorEvent<S>> {
        Some(match report {
            Report::Ended(chunk, results) => {
                self.dispatcher.ended(chunk, results);
                return None;
            }
            Report::Purged(expired) => {
                self.is_purging = false;
                self.purge_if_due();
                if expired.is_empty() {
                    return None;
                }
                let entry = self.executed.0;
                let expired = expired.into_iter().map(|it| Notification { entry, ..it });
                ExecutorEvent::Expired(expired.collect())
            }
            Report::Read(outcome) => {
                self.unanswered -= 1;
                ExecutorEvent::Read(outcome)
            }
            Report::Evaluated(EvaluateJob { to, .. }, Some(message)) => ExecutorEvent::Evaluated(to, message),
            Report::Evaluated(EvaluateJob { to, id, .. }, None) => ExecutorEvent::NotEvaluated(to, id),
            Report::Sealed(head, Ok(cut)) => {
                self.checkpoints.sealed(head.op_number);
                ExecutorEvent::Sealed(head, cut)
            }
            Report::Flushed(op_number, Ok(())) => {
                let bytes = self.checkpoints.flushed(op_number);
                self.purge_if_waiting();
                ExecutorEvent::Flushed(op_number, bytes)
            }
            Report::Sealed(head, Err(error)) => ExecutorEvent::Failed(head.op_number, error),
            Report::Flushed(op_number, Err(error)) => ExecutorEvent::Failed(op_number, error),
            Report::Counted(request, census) => ExecutorEvent::Counted(request, census),
        })
    }

    // ---- Checkpoints.

    /// The checkpoint that [`Shared::flush`] is to be called for now, told once: it is sealed, and its record is durable,
    /// because the log may never end before a checkpoint.
    pub fn flush_if_due(&mut self, persisted: Ticket) -> Option<OpNumber> {
        let early = self.planted(Planted::CheckpointBeforeRecord);
        self.checkpoints.flush_if_due(if early { Ticket(u64::MAX) } else { persisted })
    }

    /// The record that has to be on disk before a checkpoint can be made durable, if one waits.
    #[must_use]
    pub fn awaited(&self) -> Option<Ticket> {
        self.checkpoints.awaited()
    }

    /// The checkpoint that is being made durable.
    #[must_use]
    pub fn flushing(&self) -> Option<OpNumber> {
        self.checkpoints.flushing()
    }

    /// The checkpoint that is being made, for its file: see [`StateOf::Checkpoints`](crate::snapshots::StateOf).
    pub const fn checkpoints(&mut self) -> &mut Checkpoints {
        &mut self.checkpoints
    }

    // ---- What clients wait for.

    /// Looks how much the engine owes to the disk, now and then. True if compaction has to catch up.
    pub fn look_at_pressure(&mut self, now: Now) -> bool {
        if now.instant < self.pressure_at {
            return false;
        }
        self.pressure_at = now.instant.after(PRESSURE_INTERVAL);
        self.pressure = self.shared.store().pressure();
        self.purge_if_waiting();
        self.is_compaction_behind()
    }

    /// True if a checkpoint is due because of what is in memory. Not as long as one is being made: what it is of is still in
    /// memory.
    #[must_use]
    pub fn needs_checkpoint(&self) -> bool {
        let is_due = self.pressure.unflushed_bytes > self.limits.checkpoint_bytes;
        is_due && self.checkpoints.is_idle() && !self.planted(Planted::CheckpointByLogAlone)
    }

    /// When to look next.
    #[must_use]
    pub const fn pressure_at(&self) -> Instant {
        self.pressure_at
    }

    const fn is_compaction_behind(&self) -> bool {
        self.pressure.runs > self.limits.runs
    }

    /// True if the disk lacks room for what the engine owes to it. Nothing that makes the data grow is to be executed then.
    #[must_use]
    pub fn lacks_room(&self) -> bool {
        self.shared.lacks_room()
    }

    /// True if clients should wait until the engine has caught up. Where it lacks room it does not before they have removed
    /// something: they may do that, and read.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        let lacks_room = self.lacks_room();
        let most = self.limits.unflushed_bytes.saturating_mul(if lacks_room { REMOVING_SHARE } else { 1 });
        self.pressure.unflushed_bytes > most
            || (self.is_compaction_behind() && !lacks_room)
            || self.dispatcher.waiting_bytes() > EXECUTION_WAITING_MAX
            || self.unanswered > READS_WAITING_MAX
    }
}

#[cfg(test)]
mod tests;
