//! One life of a replica process: the real core, the real write-ahead log on a virtual disk, the real
//! engine, and what stands between them in a server.

use crate::adapter;
use crate::clock::{Clock, VirtualTime};
use crate::invariants::Invariants;
use crate::journal::Journal;
use crate::on_disk::OnDisk;
use crate::shelf::Shelf;
use crate::tally::{Kind, Tally};
use crate::trace::Trace;
use core::time::Duration;
use std::collections::VecDeque;
use std::rc::Rc;
use syros_node::snapshots::{
    EngineFiles, LoadedEngine, SnapshotJob, SnapshotNews, SnapshotReport, SnapshotSchedule, SnapshotSizes,
    SnapshotWorker, StateOf,
};
use syros_node::{MemoryExecutor, News, Observer, ReadJob, ReadOutcome, TicketQueue};
use syros_protocol::message::{Body, LogEntry, Message, Peer, Prepared, RoleName, Standing};
use syros_protocol::record::{SnapshotHead, Ticket};
use syros_protocol::replica::{Action, Boot, Config, Event, Replica, TraceEvent};
use syros_snapshot::{Depot, SnapshotFiles};
use syros_storage::{Engine as _, MemoryEngine, MemoryStore};
use syros_types::{Instant, Now, OpNumber, OperationId, Prng, ReplicaId, View, WallTime};
use syros_wal::memory_disk::MemoryDisk;

/// What a process wants of the world after it ran.
#[derive(Debug)]
pub enum Effect {
    /// A message leaves.
    Send {
        /// To whom.
        to: Peer,
        /// What kind of message it is.
        kind: &'static str,
        /// The view that the sender may not fall behind once it has said this.
        binds: Option<View>,
        /// The last entry the sender has executed.
        executed: OpNumber,
        /// Requests and entries of the log in it.
        entries: u64,
        /// It is the answer to a read.
        answers_read: bool,
        /// Encoded.
        bytes: Rc<[u8]>,
    },
    /// An engine in memory has something to execute, later: see [`ReplicaProcess::execute_soon`].
    Execute,
    /// There is work on snapshots: see [`ReplicaProcess::step_snapshots`].
    Snapshots,
    /// An engine on disk has something to execute: see [`ReplicaProcess::step_engine`].
    Engine,
    /// An engine on disk is to be flushed: see [`ReplicaProcess::begin_flush`].
    Flush,
}

/// An engine in memory.
#[derive(Debug)]
pub(crate) struct InMemory {
    executor: MemoryExecutor<MemoryEngine>,
}

/// What executes the log.
#[derive(Debug)]
pub(crate) enum Execution {
    /// An engine in memory, executed by the process itself.
    InMemory(Box<InMemory>),
    /// An engine on disk, executed by threads.
    OnDisk(Box<OnDisk>),
}

impl Execution {
    /// An engine in memory that goes up to `executed`, and may have a planted bug.
    pub(crate) fn in_memory(engine: Option<MemoryEngine>, executed: OpNumber, loses_updates: bool) -> Self {
        let engine = engine.unwrap_or_else(adapter::empty_engine);
        let mut executor = MemoryExecutor::new(engine, executed);
        if loses_updates {
            executor.lose_updates();
        }
        Self::InMemory(Box::new(InMemory { executor }))
    }

    fn expiry_news(&mut self) -> Option<Event> {
        match self {
            Self::InMemory(memory) => memory.executor.expiry_news(),
            Self::OnDisk(disk) => disk.executor().expiry_news(),
        }
    }

    fn expiry(&mut self) -> Event {
        match self {
            Self::InMemory(memory) => memory.executor.expiry(),
            Self::OnDisk(disk) => disk.executor().expiry(),
        }
    }

    /// The last entry that was executed, or dealt out to be.
    pub(crate) const fn executed(&self) -> OpNumber {
        match self {
            Self::InMemory(memory) => memory.executor.executed(),
            Self::OnDisk(disk) => disk.dispatched(),
        }
    }

    pub(crate) fn digest(&self) -> u64 {
        match self {
            Self::InMemory(memory) => memory.executor.engine().digest(),
            Self::OnDisk(disk) => disk.digest(),
        }
    }

    /// Where the state of snapshots comes from.
    fn snapshot_state(&mut self) -> StateOf<'_> {
        match self {
            Self::InMemory(memory) => StateOf::Memory(memory.executor.engine_mut()),
            Self::OnDisk(disk) => StateOf::Checkpoints(disk.executor().checkpoints()),
        }
    }

    /// The store in use, of an engine on disk.
    const fn store(&self) -> Option<u64> {
        match self {
            Self::InMemory(_) => None,
            Self::OnDisk(disk) => Some(disk.number()),
        }
    }
}

/// What a process needs from the world while it runs.
#[derive(Debug)]
pub struct Surroundings<'a> {
    /// True time.
    pub time: VirtualTime,
    /// Watches what is executed.
    pub invariants: &'a mut Invariants,
    /// Diary.
    pub trace: &'a mut Trace,
    /// Counts what happens.
    pub tally: &'a mut Tally,
    /// What is to be done.
    pub effects: &'a mut Vec<Effect>,
    /// An engine in memory executes in the turn in which it is asked to, as far as it may.
    pub apply_at_once: bool,
    /// Entries that an engine in memory executes in one turn.
    pub entries_per_turn: u64,
    /// Updates that were executed.
    pub executed: u64,
    /// States of engines in memory are compared after every entry whose number this divides.
    pub compare_every: u64,
}

/// The answer to a read.
#[derive(Debug)]
struct Answer {
    to: Peer,
    message: Message,
    /// It has seen every entry up to here that concerns what it read, and none after it.
    seen: OpNumber,
}

/// One life of a replica process.
#[derive(Debug)]
pub struct ReplicaProcess {
    id: ReplicaId,
    core: Replica,
    execution: Execution,
    /// The write-ahead log.
    pub journal: Journal,
    /// The process's clock.
    pub clock: Clock,
    /// What has arrived and not been looked at yet.
    pub inbox: Vec<Event>,
    /// When the process is to run next; wake-ups for other times are void.
    pub wake_at: Option<VirtualTime>,
    /// Messages that wait for the disk.
    held: TicketQueue<Ticket, Effect>,
    persisted: Ticket,
    /// What the core has not been told of that.
    untold: Option<Ticket>,
    /// The next turn executes.
    executes: bool,
    /// Such a turn is planned.
    execution_planned: bool,
    /// The snapshots, as the owner of the engine sees them, with the jobs that the worker has not begun.
    snapshots: SnapshotSchedule<MemoryEngine, MemoryStore>,
    /// What a server has a thread for.
    worker: SnapshotWorker<MemoryDisk, SnapshotFiles, Shelf>,
    /// What the worker has done and the owner has not looked at.
    reports: VecDeque<SnapshotReport<MemoryEngine, MemoryStore>>,
    /// The next step of the worker is planned.
    pub step_planned: bool,
    /// The next step of an engine on disk is planned.
    pub engine_planned: bool,
    /// The entry after which the state of an engine on disk was compared last.
    compared: OpNumber,
    /// The view that the replica was last seen to be normal in.
    normal_in: Option<View>,
    /// It started without its memory and has not got it back.
    without_memory: bool,
    /// Most bytes that the data of an engine in memory may take.
    pub maxmemory: Option<usize>,
    /// Its disk is nearly full.
    pub disk_is_short: bool,
    /// What the core has been told of that.
    told_disk_is_short: bool,
}

/// How long it takes to cut a block of a snapshot.
const CUT_TIME: Duration = Duration::from_micros(2);

/// Most actions a core may ask for in one go: more is a loop.
const ACTIONS_MAX: usize = 1_000_000;

impl ReplicaProcess {
    /// Starts the core of a process.
    #[must_use]
    pub(crate) fn new(
        config: Config,
        boot: Boot,
        (journal, depot): (Journal, Depot<MemoryDisk>),
        (files, sizes): (EngineFiles<SnapshotFiles, Shelf>, SnapshotSizes),
        mut execution: Execution,
        clock: Clock,
        time: VirtualTime,
    ) -> Self {
        let id = config.replica;
        let mut snapshots = SnapshotSchedule::new(sizes);
        snapshots.plant(config.planted);
        let core = Replica::new(config, boot, clock.now(time));
        assert!(core.applied() == execution.executed(), "the engine goes as far as the core takes it to go");
        let normal_in = core.is_normal().then(|| core.view());
        let without_memory = core.status().role == RoleName::Recovering;
        let mut inbox = Vec::new();
        inbox.extend(execution.expiry_news());
        Self {
            id,
            core,
            execution,
            journal,
            clock,
            inbox,
            wake_at: None,
            held: TicketQueue::default(),
            persisted: Ticket(0),
            untold: None,
            executes: false,
            execution_planned: false,
            snapshots,
            worker: SnapshotWorker::new(depot, files, sizes),
            reports: VecDeque::new(),
            step_planned: false,
            engine_planned: false,
            compared: OpNumber(0),
            normal_in,
            without_memory,
            maxmemory: None,
            disk_is_short: false,
            told_disk_is_short: false,
        }
    }

    /// The core.
    #[must_use]
    pub const fn core(&self) -> &Replica {
        &self.core
    }

    /// One line on the core.
    #[must_use]
    pub fn summary(&self) -> String {
        let s = self.core.status();
        format!(
            "{} view {} log {} commit {} applied {} dlog {}",
            s.role, s.view, s.op_number, s.commit, s.applied, s.dlog_length
        )
    }

    /// Digest of the engine's state, and up to which entry it has executed; one that executes in parallel has
    /// done so when the core has been told of that entry.
    #[must_use]
    pub fn state(&self) -> (OpNumber, u64) {
        (self.execution.executed(), self.execution.digest())
    }

    /// When the process wants to run if nothing arrives; `None` if never.
    #[must_use]
    pub fn deadline(&self) -> Option<VirtualTime> {
        if !self.reports.is_empty() {
            return self.clock.when(Instant(0));
        }
        self.clock.when(self.core.deadline().min(self.snapshots.deadline()))
    }

    /// Handles everything in the inbox, a deadline that has passed, and what comes of it.
    pub fn run(&mut self, around: &mut Surroundings<'_>) {
        let now = self.clock.now(around.time);
        self.note_execution(now, around);
        self.note_snapshots(now, around);
        self.tell_room(now);
        self.tell_persisted(now);
        for event in core::mem::take(&mut self.inbox) {
            if let Event::Persisted(ticket) = event {
                self.persisted = self.persisted.max(ticket);
                // What waits for the disk leaves without the core, which may hear of it later if it waits for nothing
                // itself. One half of the times, it does.
                if ticket.0.is_multiple_of(2) && !self.is_awaited(ticket) {
                    self.untold = Some(ticket);
                    continue;
                }
            }
            self.core.handle(now, event);
        }
        self.note_record(now, around);
        if self.core.deadline() <= now.instant {
            self.core.handle(now, Event::Tick);
        }
        self.act_on_all(now, around);
        if core::mem::take(&mut self.executes) || around.apply_at_once {
            self.resume_execution(around);
            self.act_on_all(now, around);
        }
        if let Execution::InMemory(memory) = &mut self.execution {
            memory.executor.pause();
            if memory.executor.has_work() && !self.execution_planned {
                self.execution_planned = true;
                around.effects.push(Effect::Execute);
            }
        }
        self.note_view(around.tally);
        self.release(around);
        if !self.step_planned && self.wants_step() {
            self.step_planned = true;
            around.effects.push(Effect::Snapshots);
        }
        if !self.engine_planned && self.engine_has_work() {
            self.engine_planned = true;
            around.effects.push(Effect::Engine);
        }
        around.invariants.observe(self.id, &self.core);
    }

    /// Does what the core asks for, until it asks for nothing more.
    fn act_on_all(&mut self, now: Now, around: &mut Surroundings<'_>) {
        let mut actions = 0;
        loop {
            while let Some(action) = self.core.poll() {
                actions += 1;
                assert!(actions < ACTIONS_MAX, "the core never stops asking for actions");
                self.act(action, around);
            }
            // It may wait for it now.
            if !self.untold.is_some_and(|ticket| self.is_awaited(ticket)) {
                break;
            }
            self.tell_persisted(now);
        }
    }

    /// Tells the core by how much the data may grow, and whether the disk is nearly full.
    fn tell_room(&mut self, now: Now) {
        if self.told_disk_is_short != self.disk_is_short {
            self.told_disk_is_short = self.disk_is_short;
            self.core.handle(now, Event::DiskShort(self.disk_is_short));
        }
        if let (Some(limit), Execution::InMemory(memory)) = (self.maxmemory, &self.execution) {
            let room = limit as i64 - memory.executor.engine().memory_bytes() as i64;
            self.core.handle(now, Event::MemoryRoom(room));
        }
    }

    /// True if the core waits for a record up to here.
    fn is_awaited(&self, ticket: Ticket) -> bool {
        self.core.awaited().is_some_and(|awaited| awaited <= ticket)
    }

    /// Tells the core what it has not been told yet.
    fn tell_persisted(&mut self, now: Now) {
        if let Some(ticket) = self.untold.take() {
            self.core.handle(now, Event::Persisted(ticket));
        }
    }

    /// Counts the views that the replica enters.
    fn note_view(&mut self, tally: &mut Tally) {
        let view = self.core.view();
        if self.core.is_normal() && self.normal_in != Some(view) {
            self.normal_in = Some(view);
            tally.note(Kind::ViewEntered);
            if core::mem::take(&mut self.without_memory) {
                tally.note(Kind::MemoryRegained);
            }
        }
    }

    fn act(&mut self, action: Action, around: &mut Surroundings<'_>) {
        match action {
            Action::Send { to, message, after } => {
                around.trace.line(
                    around.time,
                    format_args!("{} sends to {to:?} after {}: {message:?}", self.id, after.0),
                );
                if let Message::Prepare { entries, .. } = &message
                    && entries.iter().any(|entry| matches!(entry, Prepared::Expire(_)))
                {
                    around.tally.note(Kind::EndProposed);
                }
                let effect = self.send(to, &message);
                if after <= self.persisted {
                    around.effects.push(effect);
                } else {
                    self.held.push(after, effect);
                }
            }
            Action::Persist { ticket, record } => {
                around.trace.line(around.time, format_args!("{} writes {}: {record:?}", self.id, ticket.0));
                let engine_failed = matches!(&self.execution, Execution::OnDisk(disk) if disk.has_failed);
                if !engine_failed {
                    self.journal.append(ticket, &record);
                }
            }
            Action::Apply { through } => self.apply(through, around),
            Action::Read { to, view, number, applied, body, standing, time, now } => {
                self.read(to, (view, number), applied, body, (standing, time, now), around);
            }
            Action::Evaluate { to, view, id, body } => self.evaluate(to, view, id, body, around),
            Action::TakeSnapshot { head, ticket, is_file } => {
                self.take_snapshot(head, ticket, is_file, around);
            }
            Action::KeepFrom { op_number, ticket } => self.snapshots.keep_from(op_number, ticket),
            Action::SendSnapshotPart { to, op_number, offset } => {
                self.snapshots.read_part(to, op_number, offset);
            }
            Action::WriteSnapshotPart { op_number, offset, part } => {
                self.snapshots.write_part(op_number, offset, part);
            }
            Action::LoadSnapshot { op_number } => self.snapshots.load(op_number),
            Action::AdoptSnapshot { op_number } => self.adopt(op_number, around),
            Action::Trace(event) => {
                around.trace.line(around.time, format_args!("{} reports {event:?}", self.id));
                if let TraceEvent::Differing { op_number } | TraceEvent::Diverged { op_number } = event {
                    around.invariants.digests_differ(self.id, op_number);
                }
            }
        }
    }

    fn read(
        &mut self,
        to: Peer,
        (view, number): (View, u64),
        applied: OpNumber,
        body: Body,
        (standing, time, now): (Option<Standing>, Option<WallTime>, WallTime),
        around: &mut Surroundings<'_>,
    ) {
        let job = ReadJob { to, view, number, body, standing, applied, now, time };
        match &mut self.execution {
            Execution::InMemory(memory) => {
                let seen = memory.executor.executed();
                let outcome = memory.executor.read(job);
                self.end_read(outcome, seen, around);
            }
            Execution::OnDisk(disk) => {
                disk.executor().read(job);
                disk.hand_out();
            }
        }
    }

    fn evaluate(&mut self, to: Peer, view: View, id: OperationId, body: Body, around: &mut Surroundings<'_>) {
        match &mut self.execution {
            Execution::InMemory(memory) => {
                let seen = memory.executor.executed();
                match memory.executor.evaluate(&body) {
                    Some(reply) => {
                        let message = Message::Evaluated { view, id, reply };
                        self.answer(Answer { to, message, seen }, around);
                    }
                    None => {
                        let now = self.clock.now(around.time);
                        self.core.handle(now, Event::NotEvaluated { to, id });
                    }
                }
            }
            Execution::OnDisk(disk) => {
                disk.executor().evaluate(to, view, id, body);
                disk.hand_out();
            }
        }
    }

    /// Sends the answer to a read.
    fn answer(&self, answer: Answer, around: &mut Surroundings<'_>) {
        let Answer { to, message, seen } = answer;
        if let Message::ReadReply { number, .. } | Message::MemberReply { number, .. } = &message {
            around
                .trace
                .line(around.time, format_args!("{} answers read {number} of {to:?} at {}", self.id, seen.0));
            if self.core.status().role == RoleName::Recovering {
                around.invariants.answered_without_memory(self.id);
            }
        }
        around.effects.push(sending(to, &message, seen));
    }

    fn take_snapshot(
        &mut self,
        head: Box<SnapshotHead>,
        ticket: Ticket,
        is_file: bool,
        around: &mut Surroundings<'_>,
    ) {
        let op_number = head.op_number;
        assert!(op_number == self.execution.executed(), "a snapshot is of what has been executed");
        around.trace.line(
            around.time,
            format_args!("{} begins a snapshot of {}, file {is_file}", self.id, op_number.0),
        );
        around.tally.note(Kind::SnapshotBegun);
        match &mut self.execution {
            Execution::InMemory(memory) => {
                let now = self.clock.now(around.time);
                self.snapshots.begin(head, memory.executor.engine_mut(), now.instant);
            }
            Execution::OnDisk(disk) => {
                disk.executor().take_snapshot(head, ticket, is_file);
                disk.hand_out();
            }
        }
    }

    fn adopt(&mut self, op_number: OpNumber, around: &mut Surroundings<'_>) {
        around.trace.line(around.time, format_args!("{} takes over a snapshot of {}", self.id, op_number.0));
        let loaded = self.snapshots.adopt();
        match (&mut self.execution, loaded.expect("a snapshot is adopted when it has been loaded")) {
            (Execution::InMemory(memory), LoadedEngine::InMemory(engine)) => {
                let before = memory.executor.adopt(engine, op_number);
                self.snapshots.discard(before);
            }
            (Execution::OnDisk(disk), LoadedEngine::OnDisk(store, engine)) => {
                disk.adopt(op_number, (store, *engine));
            }
            _ => unreachable!("engines are loaded where the engine is"),
        }
        around.tally.note(Kind::SnapshotInstalled);
        around.invariants.installed(self.id, op_number, self.execution.digest());
        let now = self.clock.now(around.time);
        self.core.handle(now, self.execution.expiry());
    }

    // ---- An engine on disk.

    /// Acts on what an engine on disk has done.
    fn note_execution(&mut self, now: Now, around: &mut Surroundings<'_>) {
        loop {
            let Execution::OnDisk(disk) = &mut self.execution else { return };
            let Some((news, seen)) = disk.next_news() else { break };
            match news {
                News::Executed(executed) => {
                    let through = executed.through;
                    around.trace.line(around.time, format_args!("{} has executed {}", self.id, through.0));
                    around.invariants.answered(self.id, &executed.replies);
                    let replies = executed.replies.into_iter();
                    let replies = replies.map(|(number, reply)| (number, Body::from(reply))).collect();
                    self.core.handle(now, Event::Applied { through, replies });
                }
                News::Read(outcome) => self.end_read(Some(outcome), seen, around),
                News::Evaluated(to, message) => self.answer(Answer { to, message, seen }, around),
                News::NotEvaluated(to, id) => self.core.handle(now, Event::NotEvaluated { to, id }),
                News::Sealed(head, cut) => {
                    if let Some(cut) = cut {
                        self.snapshots.begin_cut(head, Box::new(cut), 0);
                    }
                }
                News::Flushed(op_number, bytes) => {
                    around.trace.line(around.time, format_args!("{} has flushed {}", self.id, op_number.0));
                    around.tally.note(Kind::Flushed);
                    if let Some(bytes) = bytes {
                        around.tally.note(Kind::SnapshotTaken);
                        self.core.handle(now, Event::SnapshotTaken { op_number, bytes });
                    }
                }
                // Nobody counts keys here.
                News::Counted(..) => {}
                News::Failed(op_number, _) => {
                    around.tally.note(Kind::SnapshotFailed);
                    self.snapshots.failed(op_number, StateOf::Checkpoints(disk.executor().checkpoints()));
                    self.core.handle(now, Event::SnapshotFailed { op_number });
                }
            }
        }
        self.note_expiry(now);
        let Execution::OnDisk(disk) = &self.execution else { return };
        let executed = disk.dispatched();
        if disk.is_idle() && !disk.has_failed && executed > self.compared {
            self.compared = executed;
            around.invariants.holds(self.id, executed, disk.digest(), "executed in parallel");
        }
    }

    fn note_expiry(&mut self, now: Now) {
        if let Some(event) = self.execution.expiry_news() {
            self.core.handle(now, event);
        }
    }

    /// Looks for what has waited for a record, and lets a snapshot that is being taken go on.
    fn note_record(&mut self, now: Now, around: &mut Surroundings<'_>) {
        if let Execution::OnDisk(disk) = &mut self.execution
            && disk.flush_is_due(self.persisted)
        {
            around.effects.push(Effect::Flush);
        }
        if let Some(ticket) = self.snapshots.remove_if_due(self.persisted, self.execution.store()) {
            self.journal.remove_before(ticket);
        }
        if let Execution::InMemory(memory) = &mut self.execution {
            let end = || now.instant.after(CUT_TIME);
            self.snapshots.cut_next(memory.executor.engine_mut(), now.instant, end);
        }
    }

    /// True if an engine on disk has something to execute.
    #[must_use]
    pub fn engine_has_work(&self) -> bool {
        matches!(&self.execution, Execution::OnDisk(disk) if disk.has_work())
    }

    /// Lets a thread of an engine on disk do something. True if the process is to be told of it.
    pub fn step_engine(&mut self, prng: &mut Prng, readers_one_in: u64) -> bool {
        let Execution::OnDisk(disk) = &mut self.execution else { return false };
        disk.step(prng, readers_one_in);
        disk.has_reports()
    }

    /// An engine on disk cannot write any more: nothing that it has executed since its last checkpoint counts.
    pub fn fail_engine(&mut self) {
        if let Execution::OnDisk(disk) = &mut self.execution {
            disk.has_failed = true;
        }
    }

    /// Begins to flush an engine on disk; the disk refuses if it `is_refused`. The store, if there is one to
    /// be flushed.
    pub fn begin_flush(&mut self, is_refused: bool) -> Option<u64> {
        match &mut self.execution {
            Execution::InMemory(_) => None,
            Execution::OnDisk(disk) => disk.begin_flush(is_refused),
        }
    }

    /// The flush of a store has ended.
    pub fn end_flush(&mut self, store: u64) {
        if let Execution::OnDisk(disk) = &mut self.execution {
            disk.end_flush(store);
        }
    }

    // ---- Snapshots.

    /// Lets the worker do the next thing that it has to do. True if the process is to be told of it.
    pub fn step_snapshots(&mut self) -> bool {
        let report = match self.snapshots.next_job() {
            Some(job) => self.worker.work(job, |_| Ok(())),
            None => self.worker.cut_next(),
        };
        let has_report = report.is_some();
        self.reports.extend(report);
        has_report
    }

    /// True if the worker has something to do.
    #[must_use]
    pub fn wants_step(&self) -> bool {
        self.snapshots.first_job().is_some() || self.worker.is_cutting()
    }

    /// True if a whole snapshot is to be loaded next.
    #[must_use]
    pub fn loads_next(&self) -> bool {
        matches!(self.snapshots.first_job(), Some(SnapshotJob::Load(_)))
    }

    /// Acts on what the worker has done.
    fn note_snapshots(&mut self, now: Now, around: &mut Surroundings<'_>) {
        self.snapshots.discard_loaded();
        // What comes of a snapshot that is loaded has to be carried out before the rest is looked at.
        while !self.snapshots.has_loaded()
            && let Some(report) = self.reports.pop_front()
        {
            match self.snapshots.on_report(report, self.execution.snapshot_state()) {
                Some(SnapshotNews::Event(event)) => {
                    if matches!(event, Event::SnapshotTaken { .. }) {
                        around.tally.note(Kind::SnapshotTaken);
                    }
                    self.core.handle(now, event);
                }
                Some(SnapshotNews::Failed { op_number, .. }) => {
                    around.tally.note(Kind::SnapshotFailed);
                    self.core.handle(now, Event::SnapshotFailed { op_number });
                }
                Some(SnapshotNews::Send(to, message)) => {
                    let effect = self.send(Peer::Replica(to), &message);
                    around.effects.push(effect);
                }
                Some(SnapshotNews::Warning(_)) | None => {}
            }
        }
    }

    fn apply(&mut self, through: OpNumber, around: &mut Surroundings<'_>) {
        match &self.execution {
            Execution::InMemory(_) => self.execute(through, around),
            Execution::OnDisk(_) => self.deal_out(through, around),
        }
    }

    /// Has an engine on disk execute entries at some time.
    fn deal_out(&mut self, through: OpNumber, around: &mut Surroundings<'_>) {
        let Execution::OnDisk(disk) = &mut self.execution else { return };
        let mut time = WallTime(0);
        for number in disk.dispatched().0 + 1..=through.0 {
            let number = OpNumber(number);
            let entry = self.core.entry(number);
            around.trace.line(around.time, format_args!("{} deals out {}: {entry:?}", self.id, number.0));
            around.invariants.dealt_out(self.id, number, entry);
            disk.executor().entry(number, entry);
            disk.hand_out();
            time = entry.time;
        }
        disk.executor().end_chunk(time);
        disk.hand_out();
    }

    /// Has an engine in memory execute entries, now or in a later turn.
    fn execute(&mut self, through: OpNumber, around: &mut Surroundings<'_>) {
        let Execution::InMemory(memory) = &mut self.execution else { return };
        let now = self.clock.now(around.time);
        let mut watch = Watch { replica: self.id, around };
        let executed = memory.executor.apply(&self.core, through, || now.instant, &mut watch);
        if let Some(event) = executed {
            self.core.handle(now, event);
            self.note_expiry(now);
        }
    }

    /// An engine in memory executes in the next turn what it was to.
    pub const fn execute_soon(&mut self) {
        self.executes = true;
        self.execution_planned = false;
    }

    /// Executes what there was to be executed, and lets what comes of it be executed until the turn ends.
    fn resume_execution(&mut self, around: &mut Surroundings<'_>) {
        let Execution::InMemory(memory) = &mut self.execution else { return };
        if let Some(through) = memory.executor.resume(around.entries_per_turn) {
            self.execute(through, around);
        }
        let Execution::InMemory(memory) = &mut self.execution else { return };
        let (now, seen) = (self.clock.now(around.time).instant, memory.executor.executed());
        if let Some(reply) = memory.executor.go_on(|| now) {
            self.end_read(Some(reply.put_together()), seen, around);
        }
    }

    /// Sends the answer to a read that has seen what was executed up to `seen`, or tells the core that there is none.
    fn end_read(&mut self, outcome: Option<ReadOutcome>, seen: OpNumber, around: &mut Surroundings<'_>) {
        match outcome {
            None => {}
            Some(ReadOutcome::Answer(to, message)) => self.answer(Answer { to, message, seen }, around),
            Some(ReadOutcome::NotRead(event)) => {
                let now = self.clock.now(around.time);
                self.core.handle(now, event);
            }
        }
    }

    /// A message on its way out.
    fn send(&self, to: Peer, message: &Message) -> Effect {
        sending(to, message, self.execution.executed())
    }

    /// Lets go of the messages whose records are on disk.
    fn release(&mut self, around: &mut Surroundings<'_>) {
        while let Some(effect) = self.held.pop(self.persisted) {
            around.effects.push(effect);
        }
    }
}

/// Looks on while a replica executes its log.
struct Watch<'a, 'b> {
    replica: ReplicaId,
    around: &'a mut Surroundings<'b>,
}

impl Observer<MemoryEngine> for Watch<'_, '_> {
    fn on_executed(&mut self, number: OpNumber, entry: &LogEntry, engine: &MemoryEngine) {
        let Self { replica, around } = self;
        around.trace.line(around.time, format_args!("{replica} executes {}: {entry:?}", number.0));
        around.executed += entry.updates().len() as u64;
        let is_compared = number.0.is_multiple_of(around.compare_every);
        let digest = if is_compared { engine.digest() } else { 0 };
        around.invariants.executed(*replica, number, entry, digest);
    }
}

/// A message on its way out, whose sender has executed so much.
fn sending(to: Peer, message: &Message, executed: OpNumber) -> Effect {
    let bytes = adapter::encode_message(message);
    let (kind, binds) = (message.name(), binding_view(message));
    let answers_read = matches!(message, Message::ReadReply { .. } | Message::MemberReply { .. });
    Effect::Send { to, kind, binds, executed, entries: entries(message), answers_read, bytes }
}

/// Requests and entries of the log in a message.
pub(crate) const fn entries(message: &Message) -> u64 {
    match message {
        Message::Request { .. } | Message::Read { .. } => 1,
        Message::Prepare { entries, .. } => entries.len() as u64,
        Message::Bodies { requests, .. } | Message::Forward { requests, .. } => requests.len() as u64,
        Message::NewState { entries, .. } => entries.len() as u64,
        _ => 0,
    }
}

/// The view that a message binds its sender to: whoever said it may not be in an older one later.
const fn binding_view(message: &Message) -> Option<View> {
    match message {
        Message::Ok { view, .. }
        | Message::Committed { view, .. }
        | Message::Evaluated { view, .. }
        | Message::ReadReply { view, .. }
        | Message::MemberReply { view, .. }
        | Message::LastChange { view, .. }
        | Message::Prepare { view, .. }
        | Message::PrepareOk { view, .. } => Some(*view),
        Message::DoViewChange(change) => Some(change.view),
        Message::StartView(start) => Some(start.view),
        _ => None,
    }
}
