//! One life of a replica process: the real core, the real write-ahead log on a virtual disk, the real
//! engine, and what stands between them in a server.

use crate::adapter;
use crate::clock::{Clock, VirtualTime};
use crate::engine_threads::EngineThreads;
use crate::invariants::Invariants;
use crate::journal::{Disk, DiskFault, DiskTrouble, Journal};
use crate::sim_stores::SimStores;
use crate::tally::{Occurrence, Tally};
use crate::trace::Trace;
use core::time::Duration;
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use syros_commands::access::Announcement;
use syros_node::data::ViewFile;
use syros_node::front_end::RedisFrontEnd;
use syros_node::snapshots::{EngineFiles, SnapshotJob, SnapshotReport, SnapshotSizes, SnapshotWorker};
use syros_node::{
    DiskExecutor, DriverObserver, DurableQueue, EntriesReader, EntriesReport, Evictions, Execution,
    MemoryLimit, NoOpAnswer, Notice, Observer, Output, RecordNumbering, ReplicaDriver, Report, WaitedKeys,
};
use syros_protocol::message::{LogEntry, Message, Peer, Prepared, RoleName};
use syros_protocol::record::Ticket;
use syros_protocol::replica::{Boot, Config, Event, Replica, TraceEvent};
use syros_resp::Submission;
use syros_snapshot::{SnapshotFiles, SnapshotStore};
use syros_storage::execution::Executed;
use syros_storage::{Engine as _, MemoryEngine, MemoryStore};
use syros_types::{Configuration, EvictionSettings, Instant, Now, OpNumber, Prng, ReplicaId, View};
use syros_wal::WriteError;
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
    /// The log is to be read for somebody who copies it: a step at a time.
    ReadEntries,
    /// An engine on disk has something to execute: see [`ReplicaProcess::step_engine`].
    Engine,
    /// An engine on disk is to be flushed: see [`ReplicaProcess::begin_flush`].
    Flush,
}

/// What drives a replica here.
type Driver = ReplicaDriver<MemoryEngine, MemoryStore, Effect>;

/// What executes the log of a replica, with its threads if it is on disk.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) execution: Execution<MemoryEngine, MemoryStore>,
    pub(crate) threads: Option<EngineThreads>,
}

/// What a process needs from the world while it runs.
#[derive(Debug)]
pub struct ProcessContext<'a> {
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
    /// What the clock of an engine in memory shows executing an entry to take.
    pub execution_time: Duration,
    /// An engine in memory executes in the turn in which it is asked to, as far as it may.
    pub apply_at_once: bool,
    /// Entries that an engine in memory executes in one turn.
    pub entries_per_turn: u64,
    /// Updates that were executed.
    pub executed: u64,
    /// States of engines in memory are compared after every entry whose number this divides.
    pub compare_every: u64,
    /// The process's disk.
    pub disk: &'a Disk,
    /// Draws faults of the disk when a view is noted.
    pub view_faults: &'a mut Prng,
    /// How often the machine stops then, and how often the disk refuses, of a million times.
    pub view_faults_ppm: (u64, u64),
    /// Syncs fail as well then, after which a disk cannot be relied upon.
    pub syncs_fail: bool,
}

/// One life of a replica process.
#[derive(Debug)]
pub struct ReplicaProcess {
    id: ReplicaId,
    driver: Driver,
    /// What entries up to this one have done to keys has been told, or is not.
    events_from: OpNumber,
    /// Keys that the engine has removed because memory was short.
    evicted: u64,
    /// What clients are told of, for the front end in the same process.
    untold: Vec<Announcement>,
    /// There is such a front end.
    has_front_end: bool,
    /// The threads of an engine on disk.
    threads: Option<EngineThreads>,
    /// The write-ahead log.
    pub journal: Journal,
    /// The view that the replica has reached.
    view: ViewFile<MemoryDisk>,
    /// The configuration that is to be noted: nothing of what was asked for later is done before.
    configuration: Option<Box<Configuration>>,
    /// What has become of a view that was to be noted.
    trouble: Option<DiskTrouble>,
    /// The process's clock.
    pub clock: Clock,
    /// What has arrived and not been looked at yet.
    pub inbox: Vec<Event>,
    /// When the process is to run next; wake-ups for other times are void.
    pub wake_at: Option<VirtualTime>,
    /// Messages that leave as soon as their records are durable, whatever the process does.
    durable_queue: DurableQueue<Ticket, Effect>,
    /// What the log's thread knows to be durable.
    synced: Ticket,
    /// The next turn executes.
    executes: bool,
    /// Such a turn is planned.
    execution_planned: bool,
    /// What a server has a thread for.
    worker: SnapshotWorker<MemoryDisk, SnapshotFiles, SimStores>,
    /// What the worker has done and the owner has not looked at.
    reports: VecDeque<SnapshotReport<MemoryEngine, MemoryStore>>,
    /// What reads the log for those who copy it.
    entries_reader: EntriesReader<MemoryDisk>,
    /// What it has found and the owner has not looked at.
    entries_reports: VecDeque<EntriesReport>,
    /// Its next step is planned.
    pub entries_planned: bool,
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
    /// What happens when they take as many.
    pub eviction: EvictionSettings,
    /// Its disk has room for so many bytes of updates in each turn.
    pub disk_room: u64,
}

/// Bytes of the log that are read at a time for those who copy it.
const ENTRIES_STEP_BYTES: u64 = 500;

/// How long it takes to cut a block of a snapshot.
const CUT_TIME: Duration = Duration::from_micros(2);

/// One in so many messages to clients waits for the process, not only for its record.
const HELD_ONE_IN: u64 = 4;

/// Most things a driver may want in one go: more is a loop.
const OUTPUTS_MAX: usize = 1_000_000;

/// True if the judge looks at what this replica tells of keys. Others execute as if nobody listened, unless their front end
/// does.
fn tells_judge(id: ReplicaId) -> bool {
    id.index().is_multiple_of(2)
}

/// A clock that goes on by `step` whenever somebody looks at it, as an engine does after each entry.
fn execution_clock(now: Instant, step: Duration) -> impl Fn() -> Instant {
    let shown = Cell::new(now);
    move || shown.replace(shown.get().after(step))
}

impl ReplicaProcess {
    /// Starts the core of a process.
    #[must_use]
    pub(crate) fn new(
        config: Config,
        boot: Boot,
        (mut journal, view, snapshot_store): (Journal, ViewFile<MemoryDisk>, SnapshotStore<MemoryDisk>),
        (files, sizes): (EngineFiles<SnapshotFiles, SimStores>, SnapshotSizes),
        engine: Engine,
        clock: Clock,
        time: VirtualTime,
    ) -> Self {
        let id = config.replica;
        let (now, planted) = (clock.now(time), config.planted);
        // A few records at a time: anything may happen between two steps.
        let entries_reader = journal.entries_reader(&config).with_step_bytes(ENTRIES_STEP_BYTES);
        let Engine { execution, threads } = engine;
        let core = Replica::new(config, boot, now);
        assert!(core.applied() == execution.executed(), "the engine goes as far as the core takes it to go");
        let normal_in = core.is_normal().then(|| core.view());
        let without_memory = core.status().role == RoleName::Recovering;
        let mut driver = ReplicaDriver::new(core, execution, sizes, now);
        driver.plant(planted);
        driver.key_events_mut().set_wanted(tells_judge(id));
        let events_from = driver.replica().last_entry();
        Self {
            id,
            driver,
            events_from,
            evicted: 0,
            untold: Vec::new(),
            has_front_end: false,
            threads,
            journal,
            view,
            configuration: None,
            trouble: None,
            clock,
            inbox: Vec::new(),
            wake_at: None,
            durable_queue: DurableQueue::default(),
            synced: Ticket(0),
            executes: false,
            execution_planned: false,
            worker: SnapshotWorker::new(snapshot_store, files, sizes),
            reports: VecDeque::new(),
            entries_reader,
            entries_reports: VecDeque::new(),
            entries_planned: false,
            step_planned: false,
            engine_planned: false,
            compared: OpNumber(0),
            normal_in,
            without_memory,
            maxmemory: None,
            eviction: EvictionSettings::DEFAULT,
            disk_room: u64::MAX,
        }
    }

    /// The core.
    #[must_use]
    pub const fn core(&self) -> &Replica {
        self.driver.replica()
    }

    /// What commands wait for at this node, and what has been executed of that.
    pub(crate) const fn waited_mut(&mut self) -> &mut WaitedKeys {
        self.driver.waited_mut()
    }

    /// Removals that the front end of this process is to submit.
    pub(crate) const fn evictions_mut(&mut self) -> &mut Evictions {
        self.driver.evictions_mut()
    }

    /// The reply to a body of reads, if the engine is in memory.
    pub(crate) fn read_at_once(&self, now: Now, body: &[u8]) -> Option<Vec<u8>> {
        let memory = self.driver.memory()?;
        let mut reply = Vec::new();
        memory.engine().read(now.wall, body, &mut reply);
        Some(reply)
    }

    /// What an update answers that changes nothing, and after which entry, if this replica can say so.
    pub(crate) fn answer_no_op(&mut self, time: VirtualTime, submission: &Submission) -> NoOpAnswer {
        self.driver.answer_no_op(self.clock.now(time), &submission.footprint, &submission.body)
    }

    /// One line on the core.
    #[must_use]
    pub fn summary(&self) -> String {
        let s = self.core().status();
        format!(
            "{} view {} log {} commit {} applied {} dlog {}",
            s.role, s.view, s.op_number, s.commit, s.applied, s.dlog_length
        )
    }

    /// Digest of the engine's state, and up to which entry it has executed; one that executes in parallel has
    /// done so when the core has been told of that entry.
    #[must_use]
    pub fn state(&self) -> (OpNumber, u64) {
        (self.driver.execution().executed(), self.digest())
    }

    fn digest(&self) -> u64 {
        let in_memory = self.driver.memory().map(|memory| memory.engine().digest());
        in_memory.or_else(|| self.threads.as_ref().map(EngineThreads::digest)).unwrap_or_default()
    }

    /// When the process wants to run if nothing arrives; `None` if never.
    #[must_use]
    pub fn deadline(&self) -> Option<VirtualTime> {
        if !self.reports.is_empty() || !self.entries_reports.is_empty() {
            return self.clock.when(Instant(0));
        }
        // It looks again whether those that were made to wait have to, unless the engine has failed: then it does not look.
        let has_failed = self.threads.as_ref().is_some_and(|threads| threads.has_failed);
        let behind = self.driver.executor().filter(|executor| !has_failed && executor.is_behind());
        let again = behind.map_or(Instant::NEVER, DiskExecutor::pressure_at);
        self.clock.when(self.core().deadline().min(self.driver.cut_at()).min(again))
    }

    /// Handles everything in the inbox, a deadline that has passed, and what comes of it.
    pub fn run(&mut self, context: &mut ProcessContext<'_>) {
        let now = self.clock.now(context.time);
        self.on_execution_reports(now, context);
        self.on_snapshot_reports(now, context);
        self.on_entries_reports(now, context);
        self.driver.tell_disk_room(now, self.disk_room);
        self.driver.tell_memory_room(now, self.memory_limit());
        context.invariants.begin_turn(context.time);
        self.driver.on_durable(self.synced);
        self.driver.tell_durable(now);
        // As a node does not read from its clients then.
        let clients_wait = self.driver.is_behind();
        for event in core::mem::take(&mut self.inbox) {
            match event {
                Event::Message { from: Peer::Client(_), .. } if clients_wait => self.inbox.push(event),
                Event::PersistFailed if self.journal.has_stopped() => self.driver.end_log(now),
                Event::PersistFailed => self.driver.fail(now),
                event => self.driver.handle(now, event),
            }
        }
        if clients_wait && !self.inbox.is_empty() {
            context.tally.record(Occurrence::ClientsWaited);
        }
        self.driver.look_at_records();
        // Only an engine in memory is cut here.
        self.driver.cut_snapshot(now.instant, || now.instant.after(CUT_TIME));
        self.carry_out_outputs(None, context);
        if self.core().deadline() <= now.instant {
            self.driver.handle(now, Event::Tick);
        }
        self.carry_out_all(now, context);
        if core::mem::take(&mut self.executes) || context.apply_at_once {
            self.resume(now, context);
            self.carry_out_all(now, context);
        }
        if self.driver.pause() && !self.execution_planned {
            self.execution_planned = true;
            context.effects.push(Effect::Execute);
        }
        self.count_views(context.tally);
        self.release(context);
        if !self.step_planned && self.wants_step() {
            self.step_planned = true;
            context.effects.push(Effect::Snapshots);
        }
        if !self.entries_planned && self.entries_reader.has_work() {
            self.entries_planned = true;
            context.effects.push(Effect::ReadEntries);
        }
        if !self.engine_planned && self.engine_has_work() {
            self.engine_planned = true;
            context.effects.push(Effect::Engine);
        }
        context.invariants.observe(self.id, self.driver.replica());
        self.tell_key_events(context);
        let evicted = self.driver.memory().map_or(0, |memory| memory.engine().evicted());
        if core::mem::replace(&mut self.evicted, evicted) < evicted {
            context.tally.record(Occurrence::Evicted);
        }
    }

    /// What the data may take, with a margin that tells in worlds of few bytes.
    fn memory_limit(&self) -> Option<MemoryLimit> {
        let bytes = self.maxmemory? as u64;
        Some(MemoryLimit { bytes, leader_margin: bytes / 8, eviction: self.eviction })
    }

    /// Has the judge look at what has happened to keys, where that is wanted, and clients hear of what scripts have published.
    fn tell_key_events(&mut self, context: &mut ProcessContext<'_>) {
        let applied = self.driver.replica().applied();
        let key_events = self.driver.key_events_mut();
        let happened = key_events.take();
        let replayed = key_events.replayed().0;
        let is_new = |announcement: &&Announcement| announcement.entry() > replayed;
        if tells_judge(self.id) && applied > self.events_from {
            let new: Vec<Announcement> = happened.iter().filter(is_new).cloned().collect();
            context.invariants.told_events(self.id, (self.events_from, applied), &new);
            self.events_from = applied;
        }
        if self.has_front_end {
            self.untold.extend(happened);
        }
    }

    /// True if something has happened to keys that the front end in the same process has not heard of.
    pub(crate) fn has_untold(&self) -> bool {
        !self.untold.is_empty() || self.driver.key_events().is_state_replaced()
    }

    /// Hands what has happened to keys to the front end in the same process.
    pub(crate) fn exchange_key_events(&mut self, now: Now, front_end: &mut RedisFrontEnd) {
        self.has_front_end = true;
        let key_events = self.driver.key_events_mut();
        assert!(key_events.take().is_empty(), "the judge looks at what happens before the front end does");
        key_events.add(core::mem::take(&mut self.untold));
        front_end.exchange_key_events(now, key_events);
        if tells_judge(self.id) {
            key_events.set_wanted(true);
        }
    }

    /// Does what the driver wants, until it wants nothing more.
    fn carry_out_all(&mut self, now: Now, context: &mut ProcessContext<'_>) {
        let mut outputs = 0;
        while let Some(output) = self.poll(now, context) {
            outputs += 1;
            assert!(outputs < OUTPUTS_MAX, "the core never stops asking for actions");
            self.carry_out(output, None, context);
        }
    }

    fn poll(&mut self, now: Now, context: &mut ProcessContext<'_>) -> Option<Output<MemoryStore>> {
        let Self { id, driver, threads, .. } = self;
        let mut observer = ExecutionObserver { replica: *id, threads: threads.as_mut(), context };
        let clock = execution_clock(now.instant, observer.context.execution_time);
        driver.poll(now, clock, &mut observer)
    }

    /// Does what has come of something that goes by the entries up to `seen`.
    fn carry_out_outputs(&mut self, seen: Option<OpNumber>, context: &mut ProcessContext<'_>) {
        while let Some(output) = self.driver.take_output() {
            self.carry_out(output, seen, context);
        }
    }

    /// Counts the views that the replica enters.
    fn count_views(&mut self, tally: &mut Tally) {
        let view = self.core().view();
        if self.core().is_normal() && self.normal_in != Some(view) {
            self.normal_in = Some(view);
            tally.record(Occurrence::ViewEntered);
            if core::mem::take(&mut self.without_memory) {
                tally.record(Occurrence::MemoryRegained);
            }
        }
    }

    /// Does one thing that the driver wants, which goes by the entries up to `seen`, or by all executed.
    fn carry_out(
        &mut self,
        output: Output<MemoryStore>,
        seen: Option<OpNumber>,
        context: &mut ProcessContext<'_>,
    ) {
        let (id, time) = (self.id, context.time);
        match output {
            Output::Send { to, message } => {
                let effect = self.send(to, &message, context);
                context.effects.push(effect);
            }
            Output::SendAfter { after, to, message } => {
                context.trace.line(time, format_args!("{id} waits for {}", after.0));
                let effect = self.send(to, &message, context);
                // A server holds some of what goes to clients back until it runs again.
                if matches!(to, Peer::Client(_)) && after.0.is_multiple_of(HELD_ONE_IN) {
                    self.driver.hold(after, effect);
                } else {
                    self.durable_queue.add(after, effect);
                }
            }
            Output::Answer { to, message } | Output::Evaluated { to, message } => {
                self.answer(to, &message, seen, context);
            }
            Output::NoteView(view) => self.record_view(view, context),
            Output::NoteConfiguration(configuration) => {
                context.trace.line(time, format_args!("{id} acts in {configuration:?}"));
                context.tally.record(Occurrence::Reconfigured);
                self.configuration = Some(configuration);
            }
            Output::Append { ticket, record } => {
                context.trace.line(time, format_args!("{id} writes {}: {record:?}", ticket.0));
                let engine_failed = self.threads.as_ref().is_some_and(|threads| threads.has_failed);
                if !engine_failed {
                    self.journal.append(ticket, &record);
                }
            }
            Output::Read(job) => {
                let now = self.clock.now(time);
                if let Some((to, message)) = self.driver.read(now, job) {
                    self.answer(to, &message, seen, context);
                }
                self.hand_out();
            }
            Output::Deal => self.hand_out(),
            Output::Flush(_) => context.effects.push(Effect::Flush),
            Output::RemoveBefore(ticket) => self.journal.remove_before(ticket),
            Output::DropKept => self.journal.drop_kept(),
            Output::ReadEntries(wanted) => {
                context.tally.record(Occurrence::EntriesReadFromDisk);
                self.entries_reader.begin(self.journal.entries_job(wanted));
            }
            Output::Adopted { op_number, engine } => {
                context.trace.line(time, format_args!("{id} takes over a snapshot of {}", op_number.0));
                self.driver.key_events_mut().take();
                self.events_from = op_number;
                if let (Some(engine), Some(threads)) = (engine, &mut self.threads)
                    && let Execution::OnDisk(disk) = self.driver.execution()
                {
                    threads.begin_again((disk.store, *engine), &disk.executor);
                }
                context.tally.record(Occurrence::SnapshotInstalled);
                context.invariants.installed(id, op_number, self.digest());
            }
            Output::PutTogether(reply) => {
                self.driver.on_put_together(self.clock.now(time), Some(reply.put_together()));
            }
            Output::Notice(notice) => self.on_notice(&notice, context),
            Output::Trace(event) => {
                context.trace.line(time, format_args!("{id} reports {event:?}"));
                if let TraceEvent::DroppedEntriesGiven { .. } = event {
                    context.tally.record(Occurrence::DroppedEntriesGiven);
                }
                if let TraceEvent::Differing { op_number } | TraceEvent::Diverged { op_number } = event {
                    context.invariants.digests_differ(id, op_number);
                }
            }
            // Jobs are looked for at the end of the turn, and nobody counts keys here.
            Output::Nothing | Output::SnapshotJobs | Output::Counted(..) => {}
        }
    }

    /// Has the file of the view say this view, if the disk lets it.
    fn record_view(&mut self, view: View, context: &mut ProcessContext<'_>) {
        let (stops, fails) = context.view_faults_ppm;
        if stops > 0 && context.view_faults.chance(stops, 1_000_000) {
            context.disk.plan(DiskFault::Stop(context.view_faults.below(6)));
        } else if fails > 0 && context.view_faults.chance(fails, 1_000_000) {
            let write = DiskFault::Write(context.view_faults.below(40) as usize);
            let is_write = context.view_faults.chance(1, 2) || !context.syncs_fail;
            context.disk.plan(if is_write { write } else { DiskFault::Sync });
        }
        if let Err(error) = self.view.record(view) {
            let trouble = match &error {
                WriteError::Disk(error) => error.into(),
                WriteError::TooLong { .. } => unreachable!("a view has a few bytes"),
            };
            context
                .trace
                .line(context.time, format_args!("{} cannot note view {}: {error}", self.id, view.0));
            self.trouble = Some(trouble);
            self.driver.fail(self.clock.now(context.time));
        }
    }

    /// True if the process can go on with what it has in memory when its disk takes writes again.
    pub(crate) fn outlives_log(&self) -> bool {
        self.driver.outlives_log() && self.threads.as_ref().is_none_or(|threads| !threads.has_failed)
    }

    /// True if the engine is on disk.
    pub(crate) const fn has_engine_on_disk(&self) -> bool {
        self.threads.is_some()
    }

    /// Goes on with a log that takes records again.
    ///
    /// # Errors
    /// [`DiskTrouble`]: it does not.
    pub(crate) fn reopen_log(&mut self, disk: &Disk, time: VirtualTime) -> Result<(), DiskTrouble> {
        let now = self.clock.now(time);
        // It may not have looked yet.
        self.inbox.retain(|event| *event != Event::PersistFailed);
        self.driver.fail(now);
        let found = self.journal.reopen(disk, &mut self.view)?;
        // What waited for records of the log before may be lost, as messages may.
        self.durable_queue = DurableQueue::default();
        self.journal.renumber(RecordNumbering::new(found, self.driver.reopen_log(now)));
        Ok(())
    }

    /// Bytes that are kept beside the log though the disk has little room.
    pub(crate) fn kept_without_room(&self) -> u64 {
        if self.driver.has_room_to_keep() { 0 } else { self.journal.kept_bytes() }
    }

    /// What has become of a view that was to be noted, if that went wrong.
    pub(crate) const fn take_trouble(&mut self) -> Option<DiskTrouble> {
        self.trouble.take()
    }

    /// The configuration that the replica has begun to act in.
    pub(crate) const fn take_configuration(&mut self) -> Option<Box<Configuration>> {
        self.configuration.take()
    }

    fn on_notice(&self, notice: &Notice, context: &mut ProcessContext<'_>) {
        context.trace.line(context.time, format_args!("{}: {notice:?}", self.id));
        match notice {
            Notice::SnapshotBegun { .. } => context.tally.record(Occurrence::SnapshotBegun),
            Notice::Flushed(_) => context.tally.record(Occurrence::Flushed),
            Notice::SnapshotTaken { .. } => context.tally.record(Occurrence::SnapshotTaken),
            Notice::SnapshotFailed { .. } => context.tally.record(Occurrence::SnapshotFailed),
            Notice::SnapshotCut { .. } | Notice::MemoryExceeded { .. } | Notice::Warning(_) => {}
        }
    }

    /// A message of the replica on its way out.
    fn send(&self, to: Peer, message: &Message, context: &mut ProcessContext<'_>) -> Effect {
        context.trace.line(context.time, format_args!("{} sends to {to:?}: {message:?}", self.id));
        if let Message::Prepare { entries, .. } = message
            && entries.iter().any(|entry| matches!(entry, Prepared::Expire(_)))
        {
            context.tally.record(Occurrence::EndProposed);
        }
        sending(to, message, self.driver.execution().executed())
    }

    /// Sends the answer to a read: it has seen every entry up to `seen` that concerns what it read, and none after it.
    fn answer(&self, to: Peer, message: &Message, seen: Option<OpNumber>, context: &mut ProcessContext<'_>) {
        let seen = seen.unwrap_or_else(|| self.driver.execution().executed());
        if let Message::ReadReply { number, .. } | Message::MemberReply { number, .. } = message {
            context.trace.line(
                context.time,
                format_args!("{} answers read {number} of {to:?} at {}", self.id, seen.0),
            );
            if self.core().status().role == RoleName::Recovering {
                context.invariants.answered_without_memory(self.id);
            }
        }
        context.effects.push(sending(to, message, seen));
    }

    // ---- An engine on disk.

    /// Gives the threads of an engine on disk what has been dealt out.
    fn hand_out(&mut self) {
        if let (Some(threads), Some(executor)) = (&mut self.threads, self.driver.executor_mut()) {
            threads.hand_out(executor);
        }
    }

    /// Acts on what an engine on disk has done.
    fn on_execution_reports(&mut self, now: Now, context: &mut ProcessContext<'_>) {
        if self.threads.as_ref().is_some_and(|threads| !threads.has_failed) {
            self.driver.look_at_engine(now);
            self.take_report(None, now, context);
            while let Some(report) = self.threads.as_mut().and_then(EngineThreads::next_report) {
                self.take_report(Some(report), now, context);
            }
        }
        self.driver.tell_expiry(now);
        let (Some(threads), Some(executor)) = (&self.threads, self.driver.executor()) else { return };
        let executed = executor.dispatched();
        if executor.is_idle() && !threads.has_failed && executed > self.compared {
            self.compared = executed;
            context.invariants.holds(self.id, executed, threads.digest(), "executed in parallel");
            context.invariants.keeps_pages(self.id, threads.check_pages());
        }
    }

    /// Acts on what a thread of an engine on disk reports, which goes by the entries up to a number; without a report, on
    /// what was executed before.
    fn take_report(
        &mut self,
        report: Option<(Report<MemoryStore>, OpNumber)>,
        now: Now,
        context: &mut ProcessContext<'_>,
    ) {
        let (report, seen) = report.unzip();
        let mut observer = ExecutionObserver { replica: self.id, threads: None, context };
        self.driver.on_execution(now, report, &mut observer);
        self.hand_out();
        self.carry_out_outputs(seen, context);
    }

    /// True if an engine on disk has something to execute.
    #[must_use]
    pub fn engine_has_work(&self) -> bool {
        self.threads.as_ref().is_some_and(EngineThreads::has_work)
    }

    /// Lets a thread of an engine on disk do something. True if the process is to be told of it.
    pub fn step_engine(&mut self, prng: &mut Prng, readers_one_in: u64) -> bool {
        let (Some(threads), Some(executor)) = (&mut self.threads, self.driver.executor()) else {
            return false;
        };
        threads.step(executor, prng, readers_one_in);
        threads.has_reports()
    }

    /// An engine on disk cannot write any more: nothing that it has executed since its last checkpoint counts.
    pub const fn fail_engine(&mut self) {
        if let Some(threads) = &mut self.threads {
            threads.has_failed = true;
        }
    }

    /// Begins to flush an engine on disk; the disk refuses if it `is_refused`. The store, if there is one to
    /// be flushed.
    pub fn begin_flush(&mut self, is_refused: bool) -> Option<u64> {
        let op_number = self.driver.executor()?.flushing()?;
        Some(self.threads.as_mut()?.begin_flush(op_number, is_refused))
    }

    /// The flush of a store has ended.
    pub fn end_flush(&mut self, store: u64) {
        let dispatched = self.driver.execution().executed();
        if let Some(threads) = &mut self.threads {
            threads.end_flush(store, dispatched);
        }
    }

    // ---- Snapshots.

    /// Lets the worker do the next thing that it has to do. True if the process is to be told of it.
    pub fn step_snapshots(&mut self) -> bool {
        let report = match self.driver.next_snapshot_job() {
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
        self.driver.first_snapshot_job().is_some() || self.worker.is_cutting()
    }

    /// True if a whole snapshot is to be loaded next.
    #[must_use]
    pub fn loads_next(&self) -> bool {
        matches!(self.driver.first_snapshot_job(), Some(SnapshotJob::Load(_)))
    }

    /// Acts on what the worker has done.
    fn on_snapshot_reports(&mut self, now: Now, context: &mut ProcessContext<'_>) {
        self.driver.begin_reports();
        while self.driver.takes_reports()
            && let Some(report) = self.reports.pop_front()
        {
            self.driver.on_snapshot_report(now, report);
            self.carry_out_outputs(None, context);
        }
    }

    // ---- Entries for those who copy the log.

    /// Lets the reader of the log read the next piece. True if the process is to be told of it.
    pub(crate) fn step_entries(&mut self) -> bool {
        let report = self.entries_reader.step();
        let has_report = report.is_some();
        self.entries_reports.extend(report);
        has_report
    }

    /// True if the reader of the log has something to do.
    pub(crate) fn reads_entries(&self) -> bool {
        self.entries_reader.has_work()
    }

    /// Acts on what the reader of the log has found.
    fn on_entries_reports(&mut self, now: Now, context: &mut ProcessContext<'_>) {
        while let Some(report) = self.entries_reports.pop_front() {
            if let Some(problem) = &report.warning {
                context.trace.line(context.time, format_args!("{} cannot read its log: {problem}", self.id));
            }
            self.driver.on_entries_read(now, report);
            self.carry_out_outputs(None, context);
        }
    }

    /// An engine in memory executes in the next turn what it was to.
    pub const fn execute_soon(&mut self) {
        self.executes = true;
        self.execution_planned = false;
    }

    /// Executes what there was to be executed, and lets what comes of it be executed until the turn ends.
    fn resume(&mut self, now: Now, context: &mut ProcessContext<'_>) {
        let Self { id, driver, threads, .. } = self;
        let entries = context.entries_per_turn;
        let mut observer = ExecutionObserver { replica: *id, threads: threads.as_mut(), context };
        let clock = execution_clock(now.instant, observer.context.execution_time);
        driver.resume(entries, now, clock, &mut observer);
        self.carry_out_outputs(None, context);
    }

    /// Lets go of the messages that were held and whose records are durable, and says for which record the process is to be
    /// woken next.
    fn release(&mut self, context: &mut ProcessContext<'_>) {
        while let Some(effect) = self.driver.pop_held() {
            context.effects.push(effect);
        }
        self.durable_queue.wake_at(self.driver.awaited());
    }

    /// The log's thread has made records durable up to here: the messages that leave without the process. True if the
    /// process is to be woken.
    pub(crate) fn on_synced(&mut self, ticket: Ticket, effects: &mut Vec<Effect>) -> bool {
        self.synced = self.synced.max(ticket);
        while let Some(effect) = self.durable_queue.pop(ticket) {
            effects.push(effect);
        }
        self.durable_queue.wakes(ticket)
    }
}

/// Looks on while a replica executes its log.
struct ExecutionObserver<'a, 'b> {
    replica: ReplicaId,
    /// The threads of an engine on disk, which get each entry by itself.
    threads: Option<&'a mut EngineThreads>,
    context: &'a mut ProcessContext<'b>,
}

impl Observer<MemoryEngine> for ExecutionObserver<'_, '_> {
    fn on_executed(&mut self, number: OpNumber, entry: &LogEntry, engine: &MemoryEngine) {
        let Self { replica, context, .. } = self;
        context.trace.line(context.time, format_args!("{replica} executes {}: {entry:?}", number.0));
        context.executed += entry.updates().len() as u64;
        let is_compared = number.0.is_multiple_of(context.compare_every);
        let digest = if is_compared { engine.digest() } else { 0 };
        context.invariants.executed(*replica, number, entry, digest);
    }
}

impl DriverObserver<MemoryEngine, MemoryStore> for ExecutionObserver<'_, '_> {
    fn on_deal(&mut self, number: OpNumber, entry: &LogEntry) {
        let Self { replica, context, .. } = self;
        context.trace.line(context.time, format_args!("{replica} deals out {}: {entry:?}", number.0));
        context.invariants.dealt_out(*replica, number, entry);
    }

    fn on_dealt(&mut self, executor: &mut DiskExecutor<MemoryStore>) {
        if let Some(threads) = &mut self.threads {
            threads.hand_out(executor);
        }
    }

    fn on_prefix(&mut self, executed: &Executed) {
        let Self { replica, context, .. } = self;
        context.trace.line(context.time, format_args!("{replica} has executed {}", executed.through.0));
        context.invariants.answered(*replica, &executed.replies);
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
        | Message::Advise { view, .. }
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
