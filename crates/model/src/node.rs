//! One member as the models see it: the real replica, its state machine, its disk; and one turn of it.

use crate::machine::{self, KEYS, KeyValues, Operation};
use crate::setup::{Setup, Time};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use syros_protocol::fingerprint::Moments;
use syros_protocol::message::{Body, LogEntry, Message, Peer, RoleName};
use syros_protocol::record::{Record, Ticket};
use syros_protocol::replica::{Action, Boot, Config, Durability, Event, Replica, Restored};
use syros_types::{Class, Instant, Now, OpNumber, ReadPolicy, ReplicaId, WallTime};

/// How long followers wait for their leader, in the clocks' unit. Below 8, so that there is no jitter.
pub(crate) const PATIENCE: u64 = 4;

/// Time between the heartbeats of an idle leader.
pub(crate) const HEARTBEAT: u64 = 2;

/// The replicas' wall clocks stand still.
const WALL: WallTime = WallTime(0);

/// A message with its ends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Envelope {
    pub(crate) from: Peer,
    pub(crate) to: Peer,
    pub(crate) message: Message,
}

/// What can happen to a member.
#[derive(Clone, Debug)]
pub(crate) enum Input<'a> {
    Message(&'a Envelope),
    /// Timers that have ended are looked at.
    Tick,
    /// The next timer ends.
    Timeout,
    /// All records are on disk.
    Flush,
    /// What the engine was asked to execute is executed.
    Execute,
    /// The process ends and starts again.
    Restart,
}

/// A member.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    id: ReplicaId,
    replica: Replica,
    clock: Instant,
    store: KeyValues,
    /// What is on disk or waits to be, and how much of it is there for good.
    records: Vec<Record>,
    written: usize,
    /// The last record's number since the process started, and the last one's that is written.
    ticket: Ticket,
    persisted: Ticket,
    /// The engine has been asked to execute up to here, and has not.
    unexecuted: Option<OpNumber>,
    /// Messages that wait for a record.
    held: Vec<(Ticket, Envelope)>,
    /// An assertion failed, or the disk could not be read back.
    pub(crate) failure: Option<String>,
}

/// What invariants need to know of a member.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) view: u64,
    pub(crate) role: RoleName,
    /// Hashes of the committed log up to each op number, from 1.
    pub(crate) committed: Vec<u64>,
    /// Leader: what each key holds once everything pending is executed: what a read will wait for.
    pub(crate) pending_reads: Option<KeyValues>,
    pub(crate) timer_is_due: bool,
    pub(crate) has_timer: bool,
    pub(crate) unwritten: bool,
    pub(crate) unexecuted: bool,
    pub(crate) failure: Option<String>,
}

fn config(setup: &Setup, id: ReplicaId) -> Config {
    let unit = Duration::from_nanos;
    // Long enough that it never ends.
    let never = Duration::from_secs(3600);
    let mut config = Config::new(setup.configuration(), id, machine::describe, machine::overwrites);
    config.durability = setup.durability;
    config.planted = setup.planted;
    config.open_sessions = true;
    config.heartbeat = unit(HEARTBEAT);
    config.lease = unit(if setup.time == Time::Leases { PATIENCE } else { 0 });
    config.suspect_after = unit(PATIENCE);
    config.view_change_timeout = unit(3);
    config.resend = unit(1);
    config.order_delay = unit(0);
    config.fetch_delay = unit(0);
    config.forward_after = never;
    config.session_timeout = never * 24;
    config.clock_skew_max = never;
    if setup.reads == ReadPolicy::Meta {
        // What is in the history is as good as what is forgotten: it is with what is forgotten that it can err.
        config.history_bytes_max = 0;
    }
    // Snapshots come and go in the simulator; here the log is short.
    config.slow_disk_after = never;
    config.apply_ahead = u64::from(setup.slow_engine == Some(id.0));
    config.snapshot_log_bytes = usize::MAX;
    config.log_keep_bytes = usize::MAX;
    config
}

impl Node {
    /// A member of a new cluster, and what it does first.
    pub(crate) fn new(setup: &Setup, id: u8) -> (Self, Vec<Envelope>) {
        let id = ReplicaId(id);
        // Not 0, which messages use for "no clock".
        let clock = Instant(1);
        let replica = Replica::new(config(setup, id), Boot::Fresh, Now { instant: clock, wall: WALL });
        let mut node = Self {
            id,
            replica,
            clock,
            store: KeyValues::default(),
            records: Vec::new(),
            written: 0,
            ticket: Ticket(0),
            persisted: Ticket(0),
            unexecuted: None,
            held: Vec::new(),
            failure: None,
        };
        let mut sent = Vec::new();
        node.drain(setup, false, &mut sent);
        (node, sent)
    }

    /// One turn: an event, and everything that follows from it here. `now`: if all clocks are one.
    pub(crate) fn turn(
        &self,
        setup: &Setup,
        input: &Input<'_>,
        now: Option<Instant>,
    ) -> (Self, Vec<Envelope>) {
        let mut node = self.clone();
        let mut sent = Vec::new();
        let ran = catch_unwind(AssertUnwindSafe(|| node.run(setup, input, now, &mut sent)));
        if let Err(panic) = ran {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            node = self.clone();
            node.failure = Some(text.unwrap_or_else(|| "an assertion failed".to_owned()));
            sent.clear();
        }
        (node, sent)
    }

    fn run(&mut self, setup: &Setup, input: &Input<'_>, now: Option<Instant>, sent: &mut Vec<Envelope>) {
        if let Some(now) = now {
            self.clock = self.clock.max(now);
        }
        let slow = setup.slow_disk == Some(self.id.0);
        match input {
            Input::Message(envelope) => {
                if setup.time == Time::Clocks && matches!(envelope.message, Message::Read { .. }) {
                    // Time has passed since this leader last said anything.
                    self.clock.0 += 1;
                }
                let (from, message) = (envelope.from, envelope.message.clone());
                self.handle(Event::Message { from, message });
            }
            Input::Tick => self.handle(Event::Tick),
            Input::Timeout => {
                self.clock = self.clock.max(self.replica.deadline());
                self.handle(Event::Tick);
            }
            Input::Flush => {
                self.write_all();
                sent.extend(self.held.drain(..).map(|(_, envelope)| envelope));
            }
            Input::Execute => {
                if let Some(through) = self.unexecuted.take() {
                    self.apply(through);
                }
            }
            Input::Restart => {
                if let Err(problem) = self.restart(setup) {
                    self.failure = Some(format!("the log cannot be read back: {problem}"));
                    return;
                }
            }
        }
        self.drain(setup, slow, sent);
    }

    fn handle(&mut self, event: Event) {
        self.replica.handle(Now { instant: self.clock, wall: WALL }, event);
    }

    fn restart(&mut self, setup: &Setup) -> Result<(), syros_protocol::replica::InvalidRecord> {
        let config = config(setup, self.id);
        self.records.truncate(self.written);
        (self.ticket, self.persisted) = (Ticket(0), Ticket(0));
        self.held.clear();
        self.unexecuted = None;
        self.store = KeyValues::default();
        let boot = match setup.durability {
            Durability::Replicated => {
                let views = self.records.iter().filter_map(|record| match record {
                    Record::View { view, .. } => Some(*view),
                    _ => None,
                });
                Boot::Amnesiac { view: views.max().unwrap_or_default() }
            }
            Durability::Fsync => {
                let mut restored = Restored::new(&config, []);
                for (number, record) in (1..).zip(&self.records) {
                    restored.replay(number, record.clone())?;
                }
                Boot::Restored(Box::new(restored))
            }
        };
        self.replica = Replica::new(config, boot, Now { instant: self.clock, wall: WALL });
        Ok(())
    }

    /// Does what the replica asks for until it asks for nothing more.
    fn drain(&mut self, setup: &Setup, slow: bool, sent: &mut Vec<Envelope>) {
        loop {
            while let Some(action) = self.replica.poll() {
                match action {
                    Action::Send { to, message, after } => self.send(setup, slow, to, message, after, sent),
                    Action::Persist { record, ticket } => {
                        self.ticket = ticket;
                        self.records.push(record);
                    }
                    Action::Apply { through } if setup.slow_engine == Some(self.id.0) => {
                        self.unexecuted = Some(through);
                    }
                    Action::Apply { through } => self.apply(through),
                    Action::Trace(_) => {}
                    Action::TakeSnapshot { .. }
                    | Action::KeepFrom { .. }
                    | Action::SendSnapshotPart { .. }
                    | Action::WriteSnapshotPart { .. }
                    | Action::LoadSnapshot { .. }
                    | Action::AdoptSnapshot { .. } => unreachable!("the log of a model is never trimmed"),
                    Action::Evaluate { to, view, id, body } => {
                        let reply = machine::encode_value(execute(&body, &mut self.store.clone()));
                        let message = Message::Evaluated { view, id, reply };
                        sent.push(Envelope { from: Peer::Replica(self.id), to, message });
                    }
                    // No key of a model expires.
                    Action::Read { to, view, number, applied, body, freshness, time: _, now: _ } => {
                        let value = Operation::decode(&body).map_or(0, |read| read.apply(&mut self.store));
                        let reply = machine::encode_value(value);
                        let message = match freshness {
                            None => Message::ReadReply { view, number, reply },
                            Some(freshness) => {
                                let expiry = WallTime(0);
                                Message::MemberReply { view, number, applied, freshness, expiry, reply }
                            }
                        };
                        sent.push(Envelope { from: Peer::Replica(self.id), to, message });
                    }
                }
            }
            if slow || self.written == self.records.len() {
                return;
            }
            self.write_all();
            if setup.durability == Durability::Replicated {
                // Only the newest view is ever read back.
                self.records.drain(..self.records.len() - 1);
                self.written = self.records.len();
            }
        }
    }

    /// Everything is on disk now.
    fn write_all(&mut self) {
        self.written = self.records.len();
        self.persisted = self.ticket;
        self.handle(Event::Persisted(self.ticket));
    }

    fn send(
        &mut self,
        setup: &Setup,
        slow: bool,
        to: Peer,
        mut message: Message,
        after: Ticket,
        sent: &mut Vec<Envelope>,
    ) {
        if setup.time == Time::Timers
            && let Message::Prepare { sent_at, .. } | Message::Commit { sent_at, .. } = &mut message
        {
            // Without leases and reads nothing depends on it.
            *sent_at = Instant(0);
        }
        let envelope = Envelope { from: Peer::Replica(self.id), to, message };
        if slow && after > self.persisted {
            self.held.push((after, envelope));
        } else {
            sent.push(envelope);
        }
    }

    fn apply(&mut self, through: OpNumber) {
        let mut replies: Vec<(OpNumber, Body)> = Vec::new();
        let mut number = self.replica.applied();
        while number < through {
            number = number.next();
            for update in self.replica.entry(number).updates() {
                let value = execute(&update.request.body, &mut self.store);
                if update.class == Class::Update {
                    replies.push((number, machine::encode_value(value)));
                }
            }
        }
        self.handle(Event::Applied { through, replies });
    }

    /// Two members with the same fingerprint behave alike.
    pub(crate) fn fingerprint(&self, setup: &Setup) -> u64 {
        let moments = if setup.time == Time::Timers { Moments::Remaining } else { Moments::Absolute };
        let mut hasher = DefaultHasher::new();
        self.id.hash(&mut hasher);
        self.replica.fingerprint(moments, &mut hasher);
        (self.store, self.unexecuted, &self.failure).hash(&mut hasher);
        if setup.durability == Durability::Fsync {
            (&self.records, self.written).hash(&mut hasher);
        } else {
            self.records.hash(&mut hasher);
        }
        for (ticket, envelope) in &self.held {
            (ticket.0 - self.persisted.0, envelope).hash(&mut hasher);
        }
        hasher.finish()
    }

    pub(crate) fn view(&self) -> View {
        let status = self.replica.status();
        let mut hasher = DefaultHasher::new();
        let committed = (1..=status.commit).map(|number| {
            self.replica.entry(OpNumber(number)).hash(&mut hasher);
            hasher.finish()
        });
        View {
            view: status.view,
            role: status.role,
            committed: committed.collect(),
            pending_reads: (status.role == RoleName::Leader).then(|| self.pending_reads(status.op_number)),
            timer_is_due: self.replica.deadline() <= self.clock,
            has_timer: self.replica.deadline() != Instant::NEVER,
            unwritten: self.written < self.records.len(),
            unexecuted: self.unexecuted.is_some(),
            failure: self.failure.clone(),
        }
    }

    /// What each key holds once log and durability log are executed.
    fn pending_reads(&self, op_number: u64) -> KeyValues {
        let mut store = self.store;
        for number in self.replica.applied().0 + 1..=op_number {
            for update in self.replica.entry(OpNumber(number)).updates() {
                execute(&update.request.body, &mut store);
            }
        }
        let unordered = self.replica.accepted().filter(|update| !self.replica.is_ordered(update.request.id));
        for update in unordered {
            execute(&update.request.body, &mut store);
        }
        store
    }

    #[cfg(test)]
    pub(crate) const fn peer(&self) -> Peer {
        Peer::Replica(self.id)
    }

    /// True if the next timer has ended at `now`.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.replica.deadline() <= now
    }

    /// The whole log and what else a reader of a counterexample wants to see.
    pub(crate) fn log(&self) -> Vec<&LogEntry> {
        (1..=self.replica.status().op_number).map(|number| self.replica.entry(OpNumber(number))).collect()
    }

    pub(crate) fn accepted(&self) -> Vec<Body> {
        let unordered = self.replica.accepted().filter(|update| !self.replica.is_ordered(update.request.id));
        unordered.map(|update| update.request.body.clone()).collect()
    }

    pub(crate) fn commit(&self) -> u64 {
        self.replica.commit().0
    }
}

fn execute(body: &[u8], store: &mut [u32; KEYS]) -> u32 {
    Operation::decode(body).expect("only operations get into a log").apply(store)
}
