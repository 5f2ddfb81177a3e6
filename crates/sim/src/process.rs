//! One life of a replica process: the real core, the real write-ahead log on a virtual disk, the real
//! engine, and what stands between them in a server.

use crate::adapter::{self, Engine};
use crate::clock::{Clock, VirtualTime};
use crate::invariants::Invariants;
use crate::journal::{DiskTrouble, Journal};
use crate::tally::{Kind, Tally};
use crate::trace::Trace;
use std::collections::VecDeque;
use std::rc::Rc;
use syros_protocol::message::{Body, Message, Peer, Prepared, RoleName};
use syros_protocol::record::{SnapshotHead, Ticket};
use syros_protocol::replica::{Action, Boot, Config, Event, Replica};
use syros_snapshot::{Depot, Loaded};
use syros_storage::MemoryEngine;
use syros_types::{OpNumber, ReplicaId, View, WallTime};
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
        /// Encoded.
        bytes: Rc<[u8]>,
    },
    /// Entries were executed; the core is to be told later.
    Executed {
        /// The last one.
        through: OpNumber,
        /// Results of those that have one.
        replies: Vec<(OpNumber, Body)>,
    },
    /// There is work on snapshots: see [`ReplicaProcess::step_snapshots`].
    Snapshots,
}

/// Something to be done with snapshots, in the order in which it was asked for.
#[derive(Debug)]
enum Job {
    /// Begin to write one.
    Begin(Box<SnapshotHead>),
    /// Write the next block of the one that was begun.
    State(OpNumber),
    /// Everything is written but the end.
    Finish(OpNumber),
    /// Write a part of one that is being received.
    Part { op_number: OpNumber, offset: u64, part: Body },
    /// Load one that has been received.
    Load(OpNumber),
    /// Remove what is not needed once there is this one and this record.
    KeepFrom(OpNumber, Ticket),
}

/// Sizes that a server has as constants.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotSizes {
    /// About how many bytes of state are written at a time.
    pub block_bytes: usize,
    /// Bytes in a part that is sent.
    pub part_bytes: usize,
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
    /// Tell the core of executed entries at once.
    pub apply_at_once: bool,
}

/// A message that waits for the disk.
#[derive(Debug)]
struct Held {
    after: Ticket,
    effect: Effect,
}

/// One life of a replica process.
#[derive(Debug)]
pub struct ReplicaProcess {
    id: ReplicaId,
    core: Replica,
    engine: Engine,
    /// The write-ahead log.
    pub journal: Journal,
    /// The process's clock.
    pub clock: Clock,
    /// What has arrived and not been looked at yet.
    pub inbox: Vec<Event>,
    /// When the process is to run next; wake-ups for other times are void.
    pub wake_at: Option<VirtualTime>,
    held: Vec<Held>,
    persisted: Ticket,
    executed: OpNumber,
    next_expiry: Option<WallTime>,
    /// Until when the reports of executed entries are delayed.
    pub applied_until: VirtualTime,
    depot: Depot<MemoryDisk>,
    sizes: SnapshotSizes,
    jobs: VecDeque<Job>,
    /// The next step on snapshots is planned.
    pub step_planned: bool,
    /// The snapshot being written; what is left of an earlier one is void.
    taking: Option<OpNumber>,
    /// The engine of a snapshot that the core is about to be told of.
    loaded: Option<MemoryEngine>,
    /// The view that the replica was last seen to be normal in.
    normal_in: Option<View>,
    /// It started without its memory and has not got it back.
    without_memory: bool,
}

/// Most actions a core may ask for in one go: more is a loop.
const ACTIONS_MAX: usize = 1_000_000;

impl ReplicaProcess {
    /// Starts the core of a process.
    #[must_use]
    pub fn new(
        config: Config,
        boot: Boot,
        (journal, depot, sizes): (Journal, Depot<MemoryDisk>, SnapshotSizes),
        engine: Option<MemoryEngine>,
        clock: Clock,
        time: VirtualTime,
    ) -> Self {
        let id = config.replica;
        let core = Replica::new(config, boot, clock.now(time));
        let executed = core.applied();
        let engine = Engine(engine.unwrap_or_default());
        let next_expiry = engine.next_expiry();
        let normal_in = core.is_normal().then(|| core.view());
        let without_memory = core.status().role == RoleName::Recovering;
        let mut inbox = Vec::new();
        if next_expiry.is_some() {
            inbox.push(Event::NextExpiry(next_expiry));
        }
        Self {
            id,
            core,
            engine,
            journal,
            clock,
            inbox,
            wake_at: None,
            held: Vec::new(),
            persisted: Ticket(0),
            executed,
            next_expiry,
            applied_until: 0,
            depot,
            sizes,
            jobs: VecDeque::new(),
            step_planned: false,
            taking: None,
            loaded: None,
            normal_in,
            without_memory,
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

    /// Digest of the engine's state, and up to which entry it has executed.
    #[must_use]
    pub fn state(&self) -> (OpNumber, u64) {
        (self.executed, self.engine.digest())
    }

    /// When the process wants to run if nothing arrives; `None` if never.
    #[must_use]
    pub fn deadline(&self) -> Option<VirtualTime> {
        self.clock.when(self.core.deadline())
    }

    /// Handles everything in the inbox, a deadline that has passed, and what comes of it.
    pub fn run(&mut self, around: &mut Surroundings<'_>) {
        let now = self.clock.now(around.time);
        for event in core::mem::take(&mut self.inbox) {
            if let Event::Persisted(ticket) = event {
                self.persisted = self.persisted.max(ticket);
            }
            self.core.handle(now, event);
        }
        if self.core.deadline() <= now.instant {
            self.core.handle(now, Event::Tick);
        }
        let mut actions = 0;
        while let Some(action) = self.core.poll() {
            actions += 1;
            assert!(actions < ACTIONS_MAX, "the core never stops asking for actions");
            self.act(action, around);
        }
        self.loaded = None;
        self.note_view(around.tally);
        self.release(around);
        if !self.step_planned && !self.jobs.is_empty() {
            self.step_planned = true;
            around.effects.push(Effect::Snapshots);
        }
        around.invariants.observe(self.id, &self.core);
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
                    self.held.push(Held { after, effect });
                }
            }
            Action::Persist { ticket, record } => {
                around.trace.line(around.time, format_args!("{} writes {}: {record:?}", self.id, ticket.0));
                self.journal.append(ticket, &record);
            }
            Action::Apply { through } => self.apply(through, around),
            Action::Read { to, view, number, body, standing } => {
                let (reply, expiry) = self.engine.read(self.clock.now(around.time).wall, &body);
                around.trace.line(
                    around.time,
                    format_args!("{} answers read {number} of {to:?} at {}", self.id, self.executed.0),
                );
                let applied = self.executed;
                let effect = match standing {
                    None => self.send(to, &Message::ReadReply { view, number, reply }),
                    Some(standing) => self
                        .send(to, &Message::MemberReply { view, number, applied, standing, expiry, reply }),
                };
                around.effects.push(effect);
            }
            Action::TakeSnapshot { head } => {
                assert!(head.op_number == self.executed, "a snapshot is of what has been executed");
                around
                    .trace
                    .line(around.time, format_args!("{} begins a snapshot of {}", self.id, head.op_number.0));
                around.tally.note(Kind::SnapshotBegun);
                self.engine.begin_snapshot();
                self.taking = Some(head.op_number);
                self.jobs.push_back(Job::Begin(head));
            }
            Action::KeepFrom { op_number, ticket } => self.jobs.push_back(Job::KeepFrom(op_number, ticket)),
            Action::SendSnapshotPart { to, op_number, offset } => {
                // What cannot be read is not sent; the other one asks again.
                if let Ok(Some(part)) = self.depot.read_part(op_number, offset, self.sizes.part_bytes) {
                    let part = part.into();
                    let message = Message::SnapshotPart { op_number, offset, part };
                    let effect = self.send(Peer::Replica(to), &message);
                    around.effects.push(effect);
                }
            }
            Action::WriteSnapshotPart { op_number, offset, part } => {
                self.jobs.push_back(Job::Part { op_number, offset, part });
            }
            Action::LoadSnapshot { op_number } => self.jobs.push_back(Job::Load(op_number)),
            Action::AdoptSnapshot { op_number } => self.adopt(op_number, around),
        }
    }

    fn adopt(&mut self, op_number: OpNumber, around: &mut Surroundings<'_>) {
        let engine = self.loaded.take().expect("a snapshot is adopted when it has been loaded");
        around.trace.line(around.time, format_args!("{} takes over a snapshot of {}", self.id, op_number.0));
        self.engine = Engine(engine);
        self.executed = op_number;
        self.taking = None;
        around.tally.note(Kind::SnapshotInstalled);
        around.invariants.installed(self.id, op_number, self.engine.digest());
        self.next_expiry = self.engine.next_expiry();
        let now = self.clock.now(around.time);
        self.core.handle(now, Event::NextExpiry(self.next_expiry));
    }

    /// Does the next thing there is to do with snapshots. Returns what the core is to be told.
    ///
    /// # Errors
    /// [`DiskTrouble::Stopped`]; any other trouble the core is told of.
    pub fn step_snapshots(&mut self) -> Result<Option<Event>, DiskTrouble> {
        self.step_planned = false;
        let Some(job) = self.jobs.pop_front() else { return Ok(None) };
        let concerns = match &job {
            Job::Begin(head) => head.op_number,
            Job::State(op_number)
            | Job::Finish(op_number)
            | Job::Load(op_number)
            | Job::Part { op_number, .. }
            | Job::KeepFrom(op_number, _) => *op_number,
        };
        match self.work_on_snapshots(job) {
            Ok(event) => Ok(event),
            Err(DiskTrouble::Stopped) => Err(DiskTrouble::Stopped),
            Err(DiskTrouble::Failed | DiskTrouble::Damaged) => {
                if self.taking == Some(concerns) {
                    self.taking = None;
                    self.engine.end_snapshot();
                }
                Ok(Some(Event::SnapshotFailed { op_number: concerns }))
            }
        }
    }

    /// True if there is more to do with snapshots.
    #[must_use]
    pub fn wants_step(&self) -> bool {
        !self.jobs.is_empty()
    }

    /// True if a whole snapshot is to be loaded next.
    #[must_use]
    pub fn loads_next(&self) -> bool {
        matches!(self.jobs.front(), Some(Job::Load(_)))
    }

    fn work_on_snapshots(&mut self, job: Job) -> Result<Option<Event>, DiskTrouble> {
        match job {
            Job::Begin(head) => {
                if self.taking == Some(head.op_number) {
                    self.depot.begin(&head)?;
                    self.jobs.push_back(Job::State(head.op_number));
                }
            }
            Job::State(op_number) => {
                if self.taking == Some(op_number) {
                    let (block, more) = self.engine.snapshot_block(self.sizes.block_bytes);
                    self.depot.state(&block)?;
                    self.jobs.push_back(if more { Job::State(op_number) } else { Job::Finish(op_number) });
                } else {
                    self.depot.give_up()?;
                }
            }
            Job::Finish(op_number) => {
                if self.taking == Some(op_number) {
                    let bytes = self.depot.finish()?;
                    self.taking = None;
                    return Ok(Some(Event::SnapshotTaken { op_number, bytes }));
                }
                self.depot.give_up()?;
            }
            Job::Part { op_number, offset, part } => {
                let received = self.depot.write_part(op_number, offset, &part)?;
                return Ok(Some(Event::SnapshotPartWritten { op_number, received }));
            }
            Job::Load(op_number) => {
                let Loaded { head, engine, bytes } = self.depot.receive(op_number, 0)?;
                self.loaded = Some(engine);
                return Ok(Some(Event::SnapshotLoaded { head: Box::new(head), bytes }));
            }
            Job::KeepFrom(op_number, ticket) => {
                if self.persisted >= ticket {
                    self.depot.remove_before(op_number)?;
                    self.journal.remove_before(ticket)?;
                } else {
                    self.jobs.push_back(Job::KeepFrom(op_number, ticket));
                }
            }
        }
        Ok(None)
    }

    fn apply(&mut self, through: OpNumber, around: &mut Surroundings<'_>) {
        let mut replies = Vec::new();
        while self.executed < through {
            let number = self.executed.next();
            let entry = self.core.entry(number);
            around.trace.line(around.time, format_args!("{} executes {}: {entry:?}", self.id, number.0));
            for update in entry.updates() {
                let reply = self.engine.apply(entry.time, &update.request.body);
                if !update.class.is_nilext() {
                    replies.push((number, reply));
                }
            }
            if entry.updates().is_empty() {
                self.engine.advance(entry.time);
            }
            around.invariants.executed(self.id, number, entry, self.engine.digest());
            self.executed = number;
        }
        let now = self.clock.now(around.time);
        let next_expiry = self.engine.next_expiry();
        if next_expiry != self.next_expiry {
            self.next_expiry = next_expiry;
            self.core.handle(now, Event::NextExpiry(next_expiry));
        }
        if around.apply_at_once {
            self.core.handle(now, Event::Applied { through, replies });
        } else {
            around.effects.push(Effect::Executed { through, replies });
        }
    }

    /// A message on its way out.
    fn send(&self, to: Peer, message: &Message) -> Effect {
        let bytes = adapter::encode_message(message);
        let (kind, binds) = (message.name(), binding_view(message));
        Effect::Send { to, kind, binds, executed: self.executed, bytes }
    }

    /// Lets go of the messages whose records are on disk.
    fn release(&mut self, around: &mut Surroundings<'_>) {
        let persisted = self.persisted;
        for held in self.held.extract_if(.., |held| held.after <= persisted) {
            around.effects.push(held.effect);
        }
    }
}

/// The view that a message binds its sender to: whoever said it may not be in an older one later.
const fn binding_view(message: &Message) -> Option<View> {
    match message {
        Message::Ok { view, .. }
        | Message::Committed { view, .. }
        | Message::Prepare { view, .. }
        | Message::PrepareOk { view, .. } => Some(*view),
        Message::DoViewChange(change) => Some(change.view),
        Message::StartView(start) => Some(start.view),
        _ => None,
    }
}
