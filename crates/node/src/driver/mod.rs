//! A replica and what it drives: the engine that executes its log, the write-ahead log, and its snapshots.
//!
//! A [`ReplicaDriver`] carries out what the core asks for ([`Action`]), as far as that needs neither socket nor file nor
//! thread, and asks the process around it for the rest ([`Output`]). It decides what may leave before which record is
//! durable, what is executed when, and what the core hears of all this. The server and the simulator drive the same one.

mod execution;
#[cfg(feature = "model")]
mod model;
mod output;
#[cfg(test)]
mod tests;

pub use execution::{Execution, OnDisk};
pub use output::{DriverObserver, Notice, Output};

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use syros_commands::access::Announcement;
use syros_commands::may_be_no_op;
use syros_protocol::message::{Asked, Body, Message, Payload, Peer};
use syros_protocol::record::{Record, SnapshotHead, Ticket};
#[cfg(feature = "planted-bugs")]
use syros_protocol::replica::PlantedBug;
use syros_protocol::replica::{Action, Event, ReadAtOnce, Replica, Returned};
use syros_storage::execution::ExecutedUpdate;
use syros_storage::{Store, StoreError};
use syros_types::{Footprint, Instant, Now, OpNumber, OperationId, View, WallTime};

use crate::disk_executor::{DiskExecutor, ExecutorEvent, Report};
use crate::entries_reader::EntriesReport;
use crate::evictions::{Evictions, MemoryLimit};
use crate::in_memory::{InMemory, SnapshotState};
use crate::key_events::KeyEvents;
use crate::memory_executor::MemoryExecutor;
use crate::no_op_answer::NoOpAnswer;
use crate::read_job::{ReadJob, ReadOutcome};
use crate::snapshots::{
    LoadedEngine, SnapshotJob, SnapshotNews, SnapshotReport, SnapshotSchedule, SnapshotSizes, StateOf,
};
use crate::ticket_queue::TicketQueue;
use crate::waited_keys::WaitedKeys;

/// While the disk has less room than this beside the reserve, nothing is kept beside the log for those who copy it: a quarter of a
/// gigabyte is for updates, a snapshot's beginning, and the next segments of the log.
const KEEPING_ROOM_MIN: u64 = 256 << 20;

/// A snapshot is due when executing the entries after the last one has taken so long: a restart executes them again before it
/// answers anything, and expensive ones make little log. A few seconds are no longer than what else a restart does; a group under load
/// that executes half the time takes a snapshot every twenty seconds for that reason.
const EXECUTING_MAX: Duration = Duration::from_secs(10);

/// And it has taken as long as loading the data does, about, at so many bytes in a second: where there is much, snapshots at most
/// double what the engine is busy with.
const LOADED_PER_SECOND: u64 = 32 << 20;

/// A replica and what it drives. `M` is an engine in memory, `S` the store of one on disk, and `H` what is held until a
/// record is durable.
#[derive(Debug)]
pub struct ReplicaDriver<M, S: Store, H> {
    replica: Replica,
    execution: Execution<M, S>,
    snapshots: SnapshotSchedule<M, S>,
    /// Length of the last snapshot that this process has taken.
    taken_bytes: u64,
    /// All records up to here are durable.
    durable: Ticket,
    /// What the core has been told of that.
    told_durable: Ticket,
    /// What leaves when records are durable. The core bounds it: it accepts nothing while too much of its log is not durable.
    held: TicketQueue<Ticket, H>,
    /// What has come of events and reports, for [`Self::poll`]. A turn takes all of it.
    outputs: VecDeque<Output<S>>,
    /// A record that is appended when the file of the view says what it says.
    unappended: Option<(Ticket, Record)>,
    /// The last record that was appended, or is known to become durable.
    appended: Ticket,
    /// The log takes no records any more.
    is_log_closed: bool,
    /// Records up to this one may be lost with a log that was closed.
    lost: Ticket,
    /// What the core has been told: the disk has room for so many bytes.
    disk_room: u64,
    /// Bytes that a snapshot may take, if that is limited.
    snapshot_room: Option<u64>,
    /// What the data may take in memory, if that is limited.
    memory_limit: Option<MemoryLimit>,
    /// What the core has been told: by so many bytes the data may grow, and a leader's by so many more.
    memory_room: (i64, u64),
    /// Keys that are to go because memory is short.
    evictions: Evictions,
    /// What commands wait for at this node.
    waited: WaitedKeys,
    /// What has happened to keys.
    key_events: KeyEvents,
    /// The last entry of an engine on disk that has been looked at for what is waited for.
    seen: OpNumber,
    #[cfg(feature = "planted-bugs")]
    planted: Option<PlantedBug>,
}

/// Which update a log entry behind `before` is, if it is a single one.
fn update_of(replica: &Replica, number: OpNumber, before: OpNumber) -> Option<OperationId> {
    if number <= before {
        return None;
    }
    let Payload::Update(update) = &replica.entry(number).payload else { return None };
    Some(update.request.id)
}

impl<M: InMemory + Send + 'static, S: Store, H> ReplicaDriver<M, S, H> {
    /// Drives a replica that has just been booted, whose engine goes as far as the core takes it to go.
    pub fn new(replica: Replica, execution: Execution<M, S>, sizes: SnapshotSizes, now: Now) -> Self {
        let seen = execution.executed();
        let key_events = KeyEvents::new(replica.last_entry());
        let mut driver = Self {
            replica,
            execution,
            snapshots: SnapshotSchedule::new(sizes),
            taken_bytes: 0,
            durable: Ticket(0),
            told_durable: Ticket(0),
            held: TicketQueue::default(),
            outputs: VecDeque::new(),
            unappended: None,
            appended: Ticket(0),
            is_log_closed: false,
            lost: Ticket(0),
            disk_room: u64::MAX,
            snapshot_room: None,
            memory_limit: None,
            memory_room: (i64::MAX, 0),
            evictions: Evictions::default(),
            waited: WaitedKeys::default(),
            key_events,
            seen,
            #[cfg(feature = "planted-bugs")]
            planted: None,
        };
        driver.tell_expiry(now);
        driver
    }

    /// Makes it wrong in a known way, if the bug is one of this module or of its parts.
    #[cfg(feature = "planted-bugs")]
    pub const fn plant(&mut self, bug: Option<PlantedBug>) {
        self.planted = bug;
        self.key_events.plant(bug);
        self.snapshots.plant(bug);
    }

    #[cfg(feature = "planted-bugs")]
    fn sends_early(&self) -> bool {
        self.planted == Some(PlantedBug::SentBeforeRecord)
    }

    #[cfg(feature = "planted-bugs")]
    fn notes_late(&self) -> bool {
        self.planted == Some(PlantedBug::ViewNotNoted)
    }

    #[cfg(not(feature = "planted-bugs"))]
    #[expect(clippy::unused_self, reason = "same signature as with planted bugs")]
    const fn sends_early(&self) -> bool {
        false
    }

    #[cfg(not(feature = "planted-bugs"))]
    #[expect(clippy::unused_self, reason = "same signature as with planted bugs")]
    const fn notes_late(&self) -> bool {
        false
    }

    /// The core.
    #[must_use]
    pub const fn replica(&self) -> &Replica {
        &self.replica
    }

    /// What executes the log.
    #[must_use]
    pub const fn execution(&self) -> &Execution<M, S> {
        &self.execution
    }

    /// The engine, if it is in memory.
    #[must_use]
    pub const fn memory(&self) -> Option<&MemoryExecutor<M>> {
        match &self.execution {
            Execution::InMemory(memory) => Some(memory),
            Execution::OnDisk(_) => None,
        }
    }

    /// What deals out to the threads of an engine on disk.
    #[must_use]
    pub const fn executor(&self) -> Option<&DiskExecutor<S>> {
        match &self.execution {
            Execution::InMemory(_) => None,
            Execution::OnDisk(disk) => Some(&disk.executor),
        }
    }

    /// What deals out to the threads of an engine on disk: its items and reads are to be taken from here.
    pub const fn executor_mut(&mut self) -> Option<&mut DiskExecutor<S>> {
        match &mut self.execution {
            Execution::InMemory(_) => None,
            Execution::OnDisk(disk) => Some(&mut disk.executor),
        }
    }

    /// What commands wait for at this node, and what has been executed of that.
    pub const fn waited_mut(&mut self) -> &mut WaitedKeys {
        &mut self.waited
    }

    /// Removals that the front end of this process is to submit.
    pub const fn evictions_mut(&mut self) -> &mut Evictions {
        &mut self.evictions
    }

    /// What has happened to keys, if anybody listens.
    #[must_use]
    pub const fn key_events(&self) -> &KeyEvents {
        &self.key_events
    }

    /// What has happened to keys, if anybody listens.
    pub const fn key_events_mut(&mut self) -> &mut KeyEvents {
        &mut self.key_events
    }

    // ---- The core.

    /// Tells the core of an event that does not concern the driver.
    pub fn handle(&mut self, now: Now, event: Event) {
        self.note_uses(now, &event);
        self.replica.handle(now, event);
    }

    /// Whoever asks a leader which entry has changed a key last has another member's value of the key, or asks for it: that is a
    /// use of which the leader's engine would not know.
    fn note_uses(&self, now: Now, event: &Event) {
        let asks_for_uses = self.memory_limit.is_some_and(|limit| limit.eviction.policy.needs_uses());
        if asks_for_uses
            && let Event::Message { message: Message::Read { asked: Asked::LastChange, body, .. }, .. } =
                event
            && let Execution::InMemory(memory) = &self.execution
        {
            memory.engine().note_uses(now.wall, body);
        }
    }

    /// The next thing that has come of events and reports, without anything that the core wants.
    pub fn take_output(&mut self) -> Option<Output<S>> {
        self.outputs.pop_front()
    }

    /// The next thing that has come of events and reports, or that the core wants. `clock` tells how long it takes to execute
    /// something.
    pub fn poll(
        &mut self,
        now: Now,
        clock: impl Fn() -> Instant,
        observer: &mut impl DriverObserver<M, S>,
    ) -> Option<Output<S>> {
        if self.key_events.is_wanted() != self.key_events.is_told() {
            self.tell_wanted();
        }
        if self.evictions.take_ended() {
            self.tell_memory_room(now, self.memory_limit);
        }
        if let Some((ticket, record)) = self.unappended.take()
            && !self.is_log_closed
        {
            return Some(self.append(ticket, record));
        }
        if let Some(output) = self.outputs.pop_front() {
            return Some(output);
        }
        let action = self.replica.poll()?;
        Some(self.act(action, now, clock, observer))
    }

    fn act(
        &mut self,
        action: Action,
        now: Now,
        clock: impl Fn() -> Instant,
        observer: &mut impl DriverObserver<M, S>,
    ) -> Output<S> {
        match action {
            Action::Send { to, message, after } if after <= self.durable || self.sends_early() => {
                Output::Send { to, message }
            }
            // It would never leave. The core sends the like again and again, for as long as nobody repairs the disk.
            Action::Send { after, .. } if self.is_log_closed && after > self.appended => Output::Nothing,
            Action::Send { to, message, after } => Output::SendAfter { after, to, message },
            // Nothing that is appended now would ever be durable.
            Action::Persist { .. } if self.is_log_closed => Output::Nothing,
            // It is of the log before this one.
            Action::Persist { ticket, .. } if ticket <= self.lost => Output::Nothing,
            Action::Persist { ticket, record } => self.persist(ticket, record),
            Action::Apply { through } => self.apply(through, now, clock, observer),
            Action::Read { to, view, number, applied, body, freshness, time, now } => {
                Output::Read(ReadJob { to, view, number, body, freshness, applied, now, time })
            }
            Action::Evaluate { to, view, id, body } => self.evaluate(now, to, view, id, body),
            Action::TakeSnapshot { head, ticket, is_file } => self.take_snapshot(head, ticket, is_file, now),
            Action::KeepFrom { op_number, ticket } => {
                self.snapshots.keep_from(op_number, ticket);
                Output::Nothing
            }
            Action::SendSnapshotPart { to, op_number, offset } => {
                self.snapshots.read_part(to, op_number, offset);
                Output::SnapshotJobs
            }
            Action::ReadEntries(wanted) => Output::ReadEntries(wanted),
            Action::WriteSnapshotPart { op_number, offset, part } => {
                self.snapshots.write_part(op_number, offset, part);
                Output::SnapshotJobs
            }
            Action::LoadSnapshot { op_number } => {
                self.snapshots.load(op_number);
                Output::SnapshotJobs
            }
            Action::AdoptSnapshot { op_number } => self.adopt(op_number, now),
            Action::Reconfigured(configuration) => Output::NoteConfiguration(Box::new(configuration)),
            Action::Trace(event) => Output::Trace(event),
        }
    }

    // ---- What is durable.

    /// Has a record appended.
    fn persist(&mut self, ticket: Ticket, record: Record) -> Output<S> {
        if let Record::View { view, .. } | Record::EnterView { view, .. } = &record
            && !self.notes_late()
        {
            let view = *view;
            // What the log will say, the file of the view has to say first.
            self.unappended = Some((ticket, record));
            return Output::NoteView(view);
        }
        self.append(ticket, record)
    }

    const fn append(&mut self, ticket: Ticket, record: Record) -> Output<S> {
        self.appended = ticket;
        Output::Append { ticket, record }
    }

    /// All records up to here are durable: what waits for them may leave. The core hears of it by [`Self::tell_durable`].
    pub fn on_durable(&mut self, ticket: Ticket) {
        self.durable = self.durable.max(ticket);
    }

    /// Tells the core which records are durable. True if that is news.
    pub fn tell_durable(&mut self, now: Now) -> bool {
        let is_news = self.durable > self.told_durable;
        if is_news {
            self.told_durable = self.durable;
            self.replica.handle(now, Event::Persisted(self.durable));
        }
        is_news
    }

    /// Keeps something until a record is durable.
    pub fn hold(&mut self, after: Ticket, held: H) {
        self.held.push(after, held);
    }

    /// The next thing that was held and may leave now.
    pub fn pop_held(&mut self) -> Option<H> {
        self.held.pop(self.durable)
    }

    /// True if nothing is held.
    #[must_use]
    pub fn holds_nothing(&self) -> bool {
        self.held.first().is_none()
    }

    /// The first record that anything here waits for.
    #[must_use]
    pub fn awaited(&self) -> Option<Ticket> {
        let kept = self.snapshots.awaited(self.durable);
        let checkpoint = self.executor().and_then(DiskExecutor::awaited);
        #[cfg(feature = "planted-bugs")]
        if self.planted == Some(PlantedBug::NobodyWoken) {
            return [self.held.first(), kept, checkpoint].into_iter().flatten().min();
        }
        [self.held.first(), kept, checkpoint, self.replica.awaited()].into_iter().flatten().min()
    }

    /// Everything up to this record is durable.
    #[must_use]
    pub const fn durable(&self) -> Ticket {
        self.durable
    }

    /// From now on nothing is appended to the log: its disk has failed. The core hears of it.
    pub fn fail(&mut self, now: Now) {
        if !self.is_log_closed {
            self.is_log_closed = true;
            self.replica.handle(now, Event::PersistFailed);
        }
    }

    /// As [`Self::fail`]; and of what was appended nothing more becomes durable either: the log itself has stopped.
    pub fn end_log(&mut self, now: Now) {
        self.appended = self.durable;
        self.fail(now);
    }

    /// True if the process can go on with what it has in memory when its disk takes writes again. With durability `fsync`
    /// the disk holds all that the replica has promised, and the replica starts anew from there; without, a restart would
    /// lose what other members may have lost as well. An engine on disk that has failed cannot go on.
    #[must_use]
    pub fn outlives_log(&self) -> bool {
        self.replica.is_forgetful() && self.engine_failure().is_none()
    }

    /// The log has been opened again, and takes records. Records that were not durable may be lost: see
    /// [`RecordNumbering`](crate::RecordNumbering), which is to count from the ticket returned.
    ///
    /// # Panics
    /// Unless the process [outlives its log](Self::outlives_log).
    pub fn reopen_log(&mut self, now: Now) -> Ticket {
        assert!(self.outlives_log(), "entries that were not durable would be missing");
        self.is_log_closed = false;
        self.unappended = None;
        self.lost = self.replica.last_ticket();
        self.replica.handle(now, Event::LogReopened);
        if !self.has_room_to_keep() {
            // Nobody could tell the log before it.
            self.outputs.push_back(Output::DropKept);
        }
        self.lost
    }

    /// True if nothing is appended to the log any more.
    #[must_use]
    pub const fn is_log_closed(&self) -> bool {
        self.is_log_closed
    }

    // ---- Room.

    /// Tells the core how much room the disk has (see [`Event::DiskRoom`]), if it takes it to have more or less.
    pub fn tell_disk_room(&mut self, now: Now, bytes: u64) {
        let bytes = if self.executor().is_some_and(DiskExecutor::lacks_room) { 0 } else { bytes };
        // The core takes less, by what is on its way to the disk.
        if self.replica.disk_room() != bytes {
            self.replica.handle(now, Event::DiskRoom(bytes));
        }
        let had_room = self.has_room_to_keep();
        self.disk_room = bytes;
        if had_room && !self.has_room_to_keep() {
            self.outputs.push_back(Output::DropKept);
        }
    }

    /// False if nothing is to be kept beside the log, because the disk has not much room.
    #[must_use]
    pub const fn has_room_to_keep(&self) -> bool {
        self.disk_room >= KEEPING_ROOM_MIN
    }

    /// Entries have been read from the log on disk.
    pub fn on_entries_read(&mut self, now: Now, report: EntriesReport) {
        let EntriesReport { copier, after, found, warning } = report;
        if let Some(problem) = warning {
            self.notice(Notice::Warning(format!("cannot read the log for those who copy it: {problem}")));
        }
        self.replica.handle(now, Event::EntriesRead { copier, after, found });
    }

    /// From now on a snapshot may take so many bytes of the disk, if that is limited.
    pub const fn set_snapshot_room(&mut self, room: Option<u64>) {
        self.snapshot_room = room;
    }

    /// Tells the core by how much the data may grow, if it is in memory and has this limit; where this replica leads, keys are
    /// chosen that go.
    pub fn tell_memory_room(&mut self, now: Now, limit: Option<MemoryLimit>) {
        let before = std::mem::replace(&mut self.memory_limit, limit);
        let Execution::InMemory(memory) = &mut self.execution else { return };
        let Some(data) = memory.engine().data_bytes() else { return };
        let eviction = limit.map(|limit| limit.eviction);
        if before.map(|before| before.eviction) != eviction {
            memory.engine_mut().set_eviction(eviction.unwrap_or_default());
        }
        if let Some(limit) = limit.filter(|_| self.replica.is_leader()) {
            self.evictions.choose(memory.engine(), memory.executed(), &limit);
        }
        #[cfg(feature = "planted-bugs")]
        if let (Some(limit), Some(PlantedBug::EvictedInPassing)) = (limit, self.planted) {
            Evictions::default().evict_at_once(memory, &limit);
        }
        let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        let room = limit.map_or((i64::MAX, 0), |limit| {
            (signed(limit.bytes_for_now(memory.engine())) - signed(data as u64), limit.leader_margin)
        });
        if room == self.memory_room {
            return;
        }
        self.memory_room = room;
        let (bytes, leader_margin) = room;
        self.replica.handle(now, Event::MemoryRoom { bytes, leader_margin });
        if let (true, Some(MemoryLimit { bytes: limit, .. })) = (bytes < 0, limit) {
            self.notice(Notice::MemoryExceeded { data, limit });
        }
    }

    // ---- Execution.

    /// Lets an engine in memory execute so many entries, about, until [`Self::pause`]: at once what it was to execute
    /// before, and what it is told to.
    pub fn resume(
        &mut self,
        entries: u64,
        now: Now,
        clock: impl Fn() -> Instant,
        observer: &mut impl DriverObserver<M, S>,
    ) {
        let Execution::InMemory(memory) = &mut self.execution else { return };
        if let Some(through) = memory.resume(entries) {
            self.apply_in_memory(through, now, &clock, observer);
        }
        let Execution::InMemory(memory) = &mut self.execution else { return };
        if let Some(reply) = memory.go_on(clock) {
            self.outputs.push_back(Output::PutTogether(reply));
        }
        while let Execution::InMemory(memory) = &mut self.execution
            && let Some(leftover) = memory.engine_mut().take_leftover()
        {
            self.discard(leftover);
        }
    }

    /// From now on an engine in memory takes note of what it is to execute, and does not. True if there is something.
    pub fn pause(&mut self) -> bool {
        let Execution::InMemory(memory) = &mut self.execution else { return false };
        memory.pause();
        memory.has_work()
    }

    fn apply(
        &mut self,
        through: OpNumber,
        now: Now,
        clock: impl Fn() -> Instant,
        observer: &mut impl DriverObserver<M, S>,
    ) -> Output<S> {
        match &mut self.execution {
            Execution::InMemory(_) => {
                self.apply_in_memory(through, now, clock, observer);
                Output::Nothing
            }
            Execution::OnDisk(disk) => {
                let executor = &mut disk.executor;
                let mut time = WallTime(0);
                for number in executor.dispatched().0 + 1..=through.0 {
                    let number = OpNumber(number);
                    let entry = self.replica.entry(number);
                    time = entry.time;
                    observer.on_deal(number, entry);
                    executor.entry(number, entry);
                    observer.on_dealt(executor);
                }
                executor.end_chunk(time);
                Output::Deal
            }
        }
    }

    fn apply_in_memory(
        &mut self,
        through: OpNumber,
        now: Now,
        clock: impl Fn() -> Instant,
        observer: &mut impl DriverObserver<M, S>,
    ) {
        let Execution::InMemory(memory) = &mut self.execution else { return };
        let before = memory.executed();
        if let Some(executed) = memory.apply(&self.replica, through, clock, observer) {
            let announcements = memory.engine_mut().take_announcements();
            self.key_events.add_of(announcements, |number| update_of(&self.replica, number, before));
            let executed_through = memory.executed();
            self.note_executed(before, executed_through);
            self.replica.handle(now, executed);
            self.tell_expiry(now);
            self.tell_memory_room(now, self.memory_limit);
            self.tell_executing(now);
        }
    }

    /// Tells the core that a snapshot is due if executing again what has been executed since the last one would take long.
    fn tell_executing(&mut self, now: Now) {
        let Execution::InMemory(memory) = &mut self.execution else { return };
        let executing = memory.executing();
        if executing < EXECUTING_MAX {
            return;
        }
        let data = memory.engine().data_bytes().map_or(self.taken_bytes, |bytes| bytes as u64);
        if executing.as_secs() >= data / LOADED_PER_SECOND {
            // It is told again if the core takes none by then.
            memory.forget_executing();
            self.replica.handle(now, Event::CheckpointDue);
        }
    }

    /// Tells what executes the log whether anybody listens.
    fn tell_wanted(&mut self) {
        let is_wanted = self.key_events.is_wanted();
        let is_exact = match &mut self.execution {
            Execution::InMemory(memory) => {
                memory.engine_mut().set_notifying(is_wanted);
                true
            }
            Execution::OnDisk(disk) => {
                disk.executor.shared().set_notifying(is_wanted);
                false
            }
        };
        self.key_events.set_told(is_exact);
    }

    /// The entries after `before`, up to `through`, have been executed, and the core has not heard of it.
    fn note_executed(&mut self, before: OpNumber, through: OpNumber) {
        if self.waited.is_empty() {
            return;
        }
        for number in before.0 + 1..=through.0 {
            self.waited.on_executed(self.replica.entry(OpNumber(number)));
        }
    }

    /// Tells the core before when no key expires, if that has changed.
    pub fn tell_expiry(&mut self, now: Now) {
        if let Some(event) = self.execution.expiry_news() {
            self.replica.handle(now, event);
        }
    }

    /// Executes a read, now or later; its answer, if now. An engine on disk then has it for its threads.
    pub fn read(&mut self, now: Now, job: ReadJob) -> Option<(Peer, Message)> {
        match &mut self.execution {
            Execution::InMemory(memory) => match memory.read(job)? {
                ReadOutcome::Answer(to, message) => return Some((to, message)),
                ReadOutcome::NotRead(event) => self.replica.handle(now, event),
            },
            Execution::OnDisk(disk) => disk.executor.read(job),
        }
        None
    }

    /// The answer to a read has been put together: see [`Output::PutTogether`]. `None` if that has failed; the client asks
    /// again.
    pub fn on_put_together(&mut self, now: Now, outcome: Option<ReadOutcome>) {
        if let Execution::InMemory(memory) = &mut self.execution {
            memory.on_put_together();
        }
        if let Some(outcome) = outcome {
            self.on_read(now, outcome);
        }
    }

    /// A read has ended elsewhere.
    fn on_read(&mut self, now: Now, outcome: ReadOutcome) {
        match outcome {
            ReadOutcome::Answer(to, message) => self.outputs.push_back(Output::Answer { to, message }),
            ReadOutcome::NotRead(event) => self.replica.handle(now, event),
        }
    }

    /// What an update of these keys answers if it changes nothing, and if this replica leads and may answer reads of them at
    /// once: then it is one.
    pub fn answer_no_op(&mut self, now: Now, footprint: &Footprint, body: &[u8]) -> NoOpAnswer {
        let Execution::InMemory(memory) = &mut self.execution else { return NoOpAnswer::Unknown };
        if let Some(work) = memory.too_much(body) {
            return NoOpAnswer::TooMuch(work);
        }
        if !may_be_no_op(body) {
            // It was only to be weighed: looking for what it answers would execute it once more.
            return NoOpAnswer::Unknown;
        }
        let executed = memory.executed();
        if executed != self.replica.applied() {
            return NoOpAnswer::Unknown;
        }
        let time = match self.replica.reads_at_once(now, footprint) {
            ReadAtOnce::Certain(time) => time,
            ReadAtOnce::Pending => return NoOpAnswer::Later,
            ReadAtOnce::Uncertain => return NoOpAnswer::Unknown,
        };
        match memory.answer_no_op(time, body) {
            Some(reply) => NoOpAnswer::NoOp(executed, reply),
            None => NoOpAnswer::Change,
        }
    }

    fn evaluate(&mut self, now: Now, to: Peer, view: View, id: OperationId, body: Body) -> Output<S> {
        match &mut self.execution {
            Execution::InMemory(memory) => match memory.evaluate(&body) {
                Some(reply) => {
                    return Output::Evaluated { to, message: Message::Evaluated { view, id, reply } };
                }
                None => self.replica.handle(now, Event::NotEvaluated { to, id }),
            },
            Execution::OnDisk(disk) => {
                disk.executor.evaluate(to, view, id, body);
                return Output::Deal;
            }
        }
        Output::Nothing
    }

    /// Takes a report of a thread of an engine on disk, and what has been executed by now; without a report only that.
    /// [`Self::tell_expiry`] ends a row of reports.
    pub fn on_execution(
        &mut self,
        now: Now,
        report: Option<Report<S>>,
        observer: &mut impl DriverObserver<M, S>,
    ) {
        let mut report = report;
        while let Execution::OnDisk(disk) = &mut self.execution
            && let Some(news) = disk.executor.next_news(|| report.take())
        {
            self.on_news(now, news, observer);
        }
    }

    fn on_news(&mut self, now: Now, news: ExecutorEvent<S>, observer: &mut impl DriverObserver<M, S>) {
        match news {
            ExecutorEvent::Executed(executed) => {
                observer.on_prefix(&executed);
                self.note_executed(self.seen, executed.through);
                let before = std::mem::replace(&mut self.seen, executed.through);
                self.key_events
                    .add_of(executed.announcements, |number| update_of(&self.replica, number, before));
                let replies = executed.replies.into_iter();
                let replies = replies.map(|ExecutedUpdate { number, reply, effects }| Returned {
                    number,
                    reply: Body::from(reply),
                    effects,
                });
                let replies = replies.collect();
                self.replica.handle(now, Event::Applied { through: executed.through, replies });
            }
            ExecutorEvent::Expired(notifications) => {
                self.key_events.add(notifications.into_iter().map(Announcement::KeyEvent).collect());
            }
            ExecutorEvent::Read(outcome) => self.on_read(now, outcome),
            ExecutorEvent::Evaluated(to, message) => {
                self.outputs.push_back(Output::Evaluated { to, message });
            }
            ExecutorEvent::NotEvaluated(to, id) => self.replica.handle(now, Event::NotEvaluated { to, id }),
            ExecutorEvent::Sealed(head, cut) => {
                if let (Some(cut), Some(executor)) = (cut, self.executor()) {
                    let bytes = executor.shared().store().disk_bytes();
                    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
                    self.snapshots.begin_cut(head, Box::new(cut), bytes);
                    self.outputs.push_back(Output::SnapshotJobs);
                }
            }
            ExecutorEvent::Flushed(op_number, bytes) => {
                self.notice(Notice::Flushed(op_number));
                if let Some(bytes) = bytes {
                    self.on_taken(now, op_number, bytes);
                }
            }
            ExecutorEvent::Counted(request, census) => {
                self.outputs.push_back(Output::Counted(request, census));
            }
            ExecutorEvent::Failed(op_number, error) => {
                self.snapshots.failed(op_number, self.execution.snapshot_state());
                self.outputs.push_back(Output::SnapshotJobs);
                self.on_not_taken(now, op_number, error.to_string());
            }
        }
    }

    /// Looks how much an engine on disk owes to the disk, now and then, and has a checkpoint made if it is much. True if compaction
    /// has to catch up.
    pub fn look_at_engine(&mut self, now: Now) -> bool {
        let Some(executor) = self.executor_mut() else { return false };
        let is_compaction_behind = executor.look_at_pressure(now);
        if executor.needs_checkpoint() {
            self.replica.handle(now, Event::CheckpointDue);
        }
        is_compaction_behind
    }

    /// Why an engine on disk cannot go on: nothing that it has executed since its last checkpoint counts.
    #[must_use]
    pub fn engine_failure(&self) -> Option<&StoreError> {
        self.executor()?.shared().failure()
    }

    // ---- Snapshots.

    fn take_snapshot(
        &mut self,
        head: Box<SnapshotHead>,
        ticket: Ticket,
        is_file: bool,
        now: Now,
    ) -> Output<S> {
        let op_number = head.op_number;
        assert!(op_number == self.execution.executed(), "a snapshot is of what has been executed");
        let data = self.execution.snapshot_bytes().unwrap_or(0);
        if let Some(room) = self.snapshot_room.filter(|room| data > *room) {
            // It would take what is there for updates, and the reserve, and not be complete in the end.
            let problem = format!("it takes about {data} bytes, and {room} are free on the disk");
            self.on_not_taken(now, op_number, problem);
            return Output::Nothing;
        }
        self.notice(Notice::SnapshotBegun { op_number, is_file });
        match &mut self.execution {
            Execution::InMemory(memory) => {
                memory.forget_executing();
                match memory.engine_mut().snapshot() {
                    SnapshotState::Here(engine) => self.snapshots.begin(head, engine, now.instant),
                    SnapshotState::Copy(blocks, bytes) => self.snapshots.begin_cut(head, blocks, bytes),
                }
                Output::SnapshotJobs
            }
            Execution::OnDisk(disk) => {
                disk.executor.take_snapshot(head, ticket, is_file);
                Output::Deal
            }
        }
    }

    /// A snapshot is durable.
    fn on_taken(&mut self, now: Now, op_number: OpNumber, bytes: u64) {
        self.taken_bytes = bytes;
        self.notice(Notice::SnapshotTaken { op_number, bytes });
        self.replica.handle(now, Event::SnapshotTaken { op_number, bytes });
    }

    /// A snapshot cannot be made.
    fn on_not_taken(&mut self, now: Now, op_number: OpNumber, problem: String) {
        self.notice(Notice::SnapshotFailed { op_number, problem });
        self.replica.handle(now, Event::SnapshotFailed { op_number });
    }

    fn notice(&mut self, notice: Notice) {
        self.outputs.push_back(Output::Notice(notice));
    }

    fn adopt(&mut self, op_number: OpNumber, now: Now) -> Output<S> {
        let loaded = self.snapshots.adopt();
        let engine =
            match (&mut self.execution, loaded.expect("a snapshot is adopted when it has been loaded")) {
                (Execution::InMemory(memory), LoadedEngine::InMemory(engine)) => {
                    let before = memory.adopt(engine, op_number);
                    memory
                        .engine_mut()
                        .set_eviction(self.memory_limit.map(|limit| limit.eviction).unwrap_or_default());
                    self.snapshots.discard(before);
                    None
                }
                (Execution::OnDisk(disk), LoadedEngine::OnDisk(store, engine)) => {
                    disk.executor.begin_again(Arc::clone(engine.shared()), op_number);
                    disk.store = store;
                    Some(engine)
                }
                _ => unreachable!("engines are loaded where the engine is"),
            };
        self.seen = op_number;
        self.key_events.state_replaced(op_number);
        self.waited.on_state_replaced();
        self.tell_wanted();
        self.replica.handle(now, self.execution.expiry());
        self.tell_memory_room(now, self.memory_limit);
        self.outputs.push_back(Output::SnapshotJobs);
        Output::Adopted { op_number, engine }
    }

    /// Has the worker on snapshots drop something that takes its time.
    pub fn discard(&mut self, garbage: impl Send + 'static) {
        self.snapshots.discard(garbage);
        self.outputs.push_back(Output::SnapshotJobs);
    }

    /// The next job for the worker on snapshots.
    pub fn next_snapshot_job(&mut self) -> Option<SnapshotJob> {
        self.snapshots.next_job()
    }

    /// The job that [`Self::next_snapshot_job`] gives next.
    #[must_use]
    pub fn first_snapshot_job(&self) -> Option<&SnapshotJob> {
        self.snapshots.first_job()
    }

    /// Begins to look at what the worker on snapshots has done: the core has done by now what it wanted with a snapshot that
    /// was loaded.
    pub fn begin_reports(&mut self) {
        self.snapshots.discard_loaded();
    }

    /// True if a report of the worker on snapshots may be looked at. After a snapshot is loaded, the core comes first.
    #[must_use]
    pub const fn takes_reports(&self) -> bool {
        !self.snapshots.has_loaded()
    }

    /// Takes a report of the worker on snapshots.
    pub fn on_snapshot_report(&mut self, now: Now, report: SnapshotReport<M, S>) {
        match self.snapshots.on_report(report, self.execution.snapshot_state()) {
            None => {}
            Some(SnapshotNews::Event(Event::SnapshotTaken { op_number, bytes })) => {
                self.on_taken(now, op_number, bytes);
            }
            Some(SnapshotNews::Event(event)) => self.replica.handle(now, event),
            Some(SnapshotNews::Failed { op_number, error }) => {
                self.on_not_taken(now, op_number, error.to_string());
            }
            Some(SnapshotNews::Unreadable { op_number, warning }) => {
                warning.into_iter().for_each(|warning| self.notice(Notice::Warning(warning)));
                self.replica.handle(now, Event::SnapshotUnreadable { op_number });
            }
            Some(SnapshotNews::Send(to, message)) => self.outputs.push_back(Output::Send { to, message }),
            Some(SnapshotNews::Warning(warning)) => self.notice(Notice::Warning(warning)),
        }
        // A part that was asked for meanwhile is read next.
        self.outputs.push_back(Output::SnapshotJobs);
    }

    /// Looks whether what is durable now lets a checkpoint be flushed, or old snapshots and records go.
    pub fn look_at_records(&mut self) {
        let durable = self.durable;
        if let Some(executor) = self.executor_mut()
            && let Some(op_number) = executor.flush_if_due(durable)
        {
            self.outputs.push_back(Output::Flush(op_number));
        }
        if let Some(ticket) = self.snapshots.remove_if_due(durable, self.execution.store()) {
            self.outputs.push_back(Output::RemoveBefore(ticket));
            if !self.has_room_to_keep() {
                self.outputs.push_back(Output::DropKept);
            }
            self.outputs.push_back(Output::SnapshotJobs);
        }
    }

    /// When to call [`Self::cut_snapshot`].
    #[must_use]
    pub fn cut_at(&self) -> Instant {
        self.snapshots.deadline()
    }

    /// Cuts the next block of the snapshot of an engine in memory, if it is time at `begin`; `end` is the time after that.
    pub fn cut_snapshot(&mut self, begin: Instant, end: impl FnOnce() -> Instant) {
        let Execution::InMemory(memory) = &mut self.execution else { return };
        let StateOf::Memory(engine) = memory.engine_mut().snapshot_state() else { return };
        if begin < self.snapshots.deadline() {
            return;
        }
        if let Some((op_number, took)) = self.snapshots.cut_next(engine, begin, end) {
            self.notice(Notice::SnapshotCut { op_number, took });
        }
        self.outputs.push_back(Output::SnapshotJobs);
    }

    // ---- Waiting.

    /// When there is something to do even if nothing happens until then.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        let engine = match &self.execution {
            Execution::InMemory(memory) if memory.has_work() => Instant(0),
            Execution::InMemory(_) => self.snapshots.deadline(),
            // Clients that were made to wait are looked at again.
            Execution::OnDisk(disk) if disk.executor.is_behind() => disk.executor.pressure_at(),
            Execution::OnDisk(_) => Instant::NEVER,
        };
        self.replica.deadline().min(engine)
    }

    /// True if clients should wait until the engine or its snapshot has caught up.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        match &self.execution {
            Execution::InMemory(memory) => {
                memory.engine().keys().is_some_and(|keys| self.snapshots.is_behind(keys))
            }
            Execution::OnDisk(disk) => disk.executor.is_behind(),
        }
    }
}
