//! One life of a replica process: the real core, the real write-ahead log on a virtual disk, the real
//! engine, and what stands between them in a server.

use crate::adapter::{self, Engine};
use crate::clock::{Clock, VirtualTime};
use crate::invariants::Invariants;
use crate::journal::Journal;
use crate::trace::Trace;
use std::rc::Rc;
use syros_protocol::message::{Body, Message, Peer};
use syros_protocol::record::Ticket;
use syros_protocol::replica::{Action, Boot, Config, Event, Replica};
use syros_types::{OpNumber, ReplicaId, View, WallTime};

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
}

/// Most actions a core may ask for in one go: more is a loop.
const ACTIONS_MAX: usize = 1_000_000;

impl ReplicaProcess {
    /// Starts the core of a process.
    #[must_use]
    pub fn new(config: Config, boot: Boot, journal: Journal, clock: Clock, time: VirtualTime) -> Self {
        let id = config.replica;
        let core = Replica::new(config, boot, clock.now(time));
        Self {
            id,
            core,
            engine: Engine::default(),
            journal,
            clock,
            inbox: Vec::new(),
            wake_at: None,
            held: Vec::new(),
            persisted: Ticket(0),
            executed: OpNumber(0),
            next_expiry: None,
            applied_until: 0,
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
        self.release(around);
        around.invariants.observe(self.id, &self.core);
    }

    fn act(&mut self, action: Action, around: &mut Surroundings<'_>) {
        match action {
            Action::Send { to, message, after } => {
                around.trace.line(
                    around.time,
                    format_args!("{} sends to {to:?} after {}: {message:?}", self.id, after.0),
                );
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
            Action::Read { to, view, number, body } => {
                let reply = self.engine.read(self.clock.now(around.time).wall, &body);
                around.trace.line(
                    around.time,
                    format_args!("{} answers read {number} of {to:?} at {}", self.id, self.executed.0),
                );
                let effect = self.send(to, &Message::ReadReply { view, number, reply });
                around.effects.push(effect);
            }
        }
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
