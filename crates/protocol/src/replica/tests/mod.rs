//! Scripted situations on replicas that exchange messages without a network: what leaves, and what
//! is true afterwards. Random ones are the simulator's.

mod active;
mod amnesia;
mod clocks;
mod configurations;
mod copies;
mod direct;
mod divergence;
mod durability;
mod first_views;
mod hostile;
mod lagging;
mod learner;
mod liveness;
mod reads;
mod schedules;
mod sessions;
mod sizes;
mod trimming;
mod updates;
mod view_changes;

use super::snapshots::HELD_SHARE;
use super::*;
use crate::message::{Asked, Body, Path, Payload, Prepared, Request, ViewChangeReason};
use crate::record::Checkpoint;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use std::collections::{BTreeMap, BTreeSet};
use syros_types::{
    Class, Configuration, Description, FastQuorum, Footprint, Group, OperationId, ReplicaSet, SessionId,
};

/// Operations here are `CK...`: class letter, key letter, anything.
fn describe(body: &[u8]) -> Option<Description> {
    let class = match body.first()? {
        b'r' => Class::Read,
        b'o' => Class::Overwrite,
        b'm' => Class::Merge,
        b'u' => Class::Update,
        _ => return None,
    };
    let footprint = Footprint::One(u64::from(*body.get(1)?));
    Some(Description { class, footprint, growth: body.len() })
}

struct Cluster {
    replicas: Vec<Replica>,
    executed: Vec<Vec<String>>,
    now: Now,
    down: BTreeSet<usize>,
    /// Links that carry nothing: (from, to).
    cut: BTreeSet<(usize, usize)>,
    /// How far each wall clock is ahead, microseconds.
    ahead: Vec<i64>,
    /// Messages to clients: (client, from, message).
    inbox: Vec<(u64, usize, Message)>,
    reads: Vec<(usize, u64)>,
    /// The time that the last read was to count lifetimes from.
    counted_from: WallTime,
    /// How often an engine was asked what an update returns.
    evaluated: usize,
    wire: VecDeque<(usize, usize, Message)>,
    /// What replicas reported: (replica, event).
    traced: Vec<(usize, TraceEvent)>,
    /// Engines are on disk, and do not get on.
    stuck: bool,
    /// Whose disk takes its time: the newest record on its way there.
    unwritten: BTreeMap<usize, Ticket>,
    /// Checkpoints that were written to write-ahead logs, and snapshots for whose sake they were.
    checkpoints: usize,
    checkpoint_bytes: usize,
    snapshots: usize,
    /// Disks that are short take snapshots all the same.
    takes_snapshots: bool,
    /// The records of each replica's write-ahead log.
    records: Vec<Vec<Record>>,
    /// Nobody can read them.
    is_unreadable: bool,
    /// Entries that members and learners got which were gone from memory.
    from_disk: u64,
}

const CLIENT: Peer = Peer::Client(7);

/// Compiled with planted bugs, replicas have this one.
fn planted(bug: Option<PlantedBug>) -> impl Fn(&mut Config) {
    move |config| {
        #[cfg(feature = "planted-bugs")]
        (config.planted = bug);
        #[cfg(not(feature = "planted-bugs"))]
        (_ = (&config, bug));
    }
}

impl Cluster {
    fn new(n: usize, mode: FastQuorum) -> Self {
        Self::with(n, mode, |_| {})
    }

    /// A group whose members' settings are changed.
    fn with(n: usize, mode: FastQuorum, change: impl Fn(&mut Config)) -> Self {
        let now = Now { instant: Instant(1_000_000_000), wall: WallTime(1_000_000) };
        let group = Group::new(n).unwrap();
        let replicas = group.members().map(|id| {
            let configuration = Configuration::first(group, mode);
            let mut config = Config::new(configuration, id, describe, |newer, older| newer[1] == older[1]);
            change(&mut config);
            Replica::new(config, Boot::Fresh, now)
        });
        let replicas: Vec<Replica> = replicas.collect();
        let mut cluster = Self {
            executed: vec![Vec::new(); n],
            replicas,
            now,
            down: BTreeSet::new(),
            cut: BTreeSet::new(),
            ahead: vec![0; n],
            inbox: Vec::new(),
            reads: Vec::new(),
            counted_from: WallTime(0),
            evaluated: 0,
            wire: VecDeque::new(),
            traced: Vec::new(),
            stuck: false,
            unwritten: BTreeMap::new(),
            checkpoints: 0,
            checkpoint_bytes: 0,
            snapshots: 0,
            takes_snapshots: false,
            records: vec![Vec::new(); n],
            is_unreadable: false,
            from_disk: 0,
        };
        cluster.deliver_all();
        // The leader has heard of the members, and of their clocks.
        cluster.pass(1);
        cluster
    }

    fn event(&mut self, replica: usize, event: Event) {
        if self.down.contains(&replica) || replica >= self.replicas.len() {
            return;
        }
        let now = self.clock(replica);
        self.replicas[replica].handle(now, event);
        while let Some(action) = self.replicas[replica].poll() {
            match action {
                Action::Persist { ticket, record } => {
                    if let Record::Checkpoint(checkpoint) = &record {
                        self.checkpoints += 1;
                        let of_log: usize = checkpoint.suffix.iter().map(LogEntry::memory_bytes).sum();
                        let of_dlog: usize = checkpoint.dlog.iter().map(|it| it.body.len()).sum();
                        self.checkpoint_bytes += of_log + of_dlog;
                    }
                    if let Some(records) = self.records.get_mut(replica) {
                        records.push(record);
                    }
                    match self.unwritten.get_mut(&replica) {
                        Some(unwritten) => *unwritten = ticket,
                        // The disk is instantaneous here.
                        None => self.replicas[replica].handle(now, Event::Persisted(ticket)),
                    }
                }
                Action::Send { to: Peer::Replica(to), message, .. } => {
                    self.wire.push_back((replica, to.index(), message));
                }
                Action::Send { to: Peer::Client(to), message, .. } => self.inbox.push((to, replica, message)),
                Action::Read { number, now, .. } => {
                    self.reads.push((replica, number));
                    self.counted_from = now;
                }
                Action::Evaluate { .. } => self.evaluated += 1,
                Action::Trace(event) => self.traced.push((replica, event)),
                Action::Reconfigured(_) => {}
                Action::Apply { .. } if self.stuck => {}
                Action::Apply { through } => self.apply(replica, through),
                // That is for the sake of space.
                Action::TakeSnapshot { head, .. } if self.replicas[replica].resources.disk_is_short() => {
                    self.snapshots += 1;
                    let op_number = head.op_number;
                    let event = match self.takes_snapshots {
                        true => Event::SnapshotTaken { op_number, bytes: 0 },
                        false => Event::SnapshotFailed { op_number },
                    };
                    self.replicas[replica].handle(now, event);
                }
                Action::KeepFrom { .. } if self.takes_snapshots => {}
                Action::ReadEntries(wanted) => {
                    let mut scan = LogScan::new(describe);
                    self.records[replica].iter().for_each(|record| scan.take(record.clone()).unwrap());
                    let found = (!self.is_unreadable).then(|| scan.entries(&wanted, true));
                    if let Some(ScannedEntries::Entries { entries, .. }) = &found {
                        self.from_disk += entries.len() as u64;
                    }
                    let EntriesWanted { copier, after, .. } = wanted;
                    self.replicas[replica].handle(now, Event::EntriesRead { copier, after, found });
                }
                other => unreachable!("no snapshot is due in these tests: {other:?}"),
            }
        }
    }

    /// A leader is to propose these nodes, if nothing is against it.
    fn propose_to(&mut self, leader: usize, roster: &syros_types::Roster) {
        if self.replicas[leader].objection_to(roster).is_none() {
            self.replicas[leader].propose(*roster);
        }
        self.event(leader, Event::Tick);
    }

    /// The time as a replica's clocks say.
    fn clock(&self, replica: usize) -> Now {
        let wall = WallTime(self.now.wall.0.saturating_add_signed(self.ahead[replica]));
        Now { wall, ..self.now }
    }

    /// Cuts the links between two replicas, in both directions.
    fn cut_between(&mut self, a: usize, b: usize) {
        self.cut.extend([(a, b), (b, a)]);
    }

    fn apply(&mut self, replica: usize, through: OpNumber) {
        let mut replies = Vec::new();
        for n in self.replicas[replica].applied().0 + 1..=through.0 {
            for update in self.replicas[replica].entry(OpNumber(n)).updates() {
                self.executed[replica].push(String::from_utf8_lossy(&update.request.body).into_owned());
                if !update.class.is_nilext() {
                    let (number, reply) = (OpNumber(n), Body::from(*b"reply"));
                    replies.push(Returned { number, reply, effects: 0 });
                }
            }
        }
        let now = self.clock(replica);
        self.replicas[replica].handle(now, Event::Applied { through, replies });
    }

    /// Delivers everything, until silence.
    fn deliver_all(&mut self) {
        self.deliver_until(|_| false);
    }

    /// Delivers one message after the other until something holds, or there is none any more. True if it holds.
    fn deliver_until(&mut self, holds: impl Fn(&Self) -> bool) -> bool {
        while !holds(self) {
            let Some((from, to, message)) = self.wire.pop_front() else { return false };
            self.deliver(from, to, message);
        }
        true
    }

    fn deliver(&mut self, from: usize, to: usize, message: Message) {
        if !self.down.contains(&from) && !self.cut.contains(&(from, to)) {
            let from = Peer::Replica(ReplicaId(from as u8));
            self.event(to, Event::Message { from, message });
        }
    }

    /// Lets time pass, in steps of a millisecond.
    fn pass(&mut self, millis: u64) {
        for _ in 0..millis {
            self.pass_silently();
            self.deliver_all();
        }
    }

    /// Lets a millisecond pass, of which nothing is delivered yet.
    fn pass_silently(&mut self) {
        self.now.instant.0 += 1_000_000;
        self.now.wall.0 += 1_000;
        for replica in 0..self.replicas.len() {
            if self.replicas[replica].deadline() <= self.now.instant {
                self.event(replica, Event::Tick);
            }
        }
    }

    fn leader(&self) -> usize {
        let alive = (0..self.replicas.len()).filter(|r| !self.down.contains(r));
        alive.filter(|r| self.replicas[*r].is_leader()).max_by_key(|r| self.replicas[*r].view()).unwrap()
    }

    fn register(&mut self) -> SessionId {
        let (leader, view) = (self.leader(), self.replicas[self.leader()].view());
        self.event(leader, Event::Message { from: CLIENT, message: Message::Register { view, nonce: 1 } });
        self.deliver_all();
        self.pass(30);
        let session = self.inbox.iter().find_map(|(_, _, message)| match message {
            Message::Registered { session, .. } => Some(*session),
            _ => None,
        });
        self.inbox.clear();
        let session = session.unwrap();
        self.attach(session);
        session
    }

    /// The client shows all replicas that the session is its own.
    fn attach(&mut self, session: SessionId) {
        for replica in 0..self.replicas.len() {
            let message = Message::Attach { session, nonce: 1 };
            self.event(replica, Event::Message { from: CLIENT, message });
        }
    }

    fn request(&self, session: SessionId, sequence: u64, micros: u64, path: Path, body: &str) -> Message {
        let view = self.replicas[self.leader()].view();
        let id = OperationId { session, sequence };
        let request = Request { id, micros, acked_below: 1, body: Body::from(body.as_bytes()) };
        Message::Request { view, path, recipients: ReplicaSet::ALL, request }
    }

    /// As the client that has registered its session here: it attaches before it sends updates.
    fn send(&mut self, to: &[usize], message: &Message) {
        for to in to {
            if let Message::Request { request, .. } = message {
                let message = Message::Attach { session: request.id.session, nonce: 1 };
                self.event(*to, Event::Message { from: CLIENT, message });
            }
            self.event(*to, Event::Message { from: CLIENT, message: message.clone() });
        }
    }

    fn answers(&mut self) -> Vec<(usize, &'static str)> {
        let name = |message: &Message| match message {
            Message::Ok { .. } => "ok",
            Message::Conflict { .. } => "conflict",
            Message::Committed { .. } => "committed",
            Message::WrongView { .. } => "wrong view",
            Message::Refused { .. } => "refused",
            _ => "other",
        };
        self.inbox.drain(..).map(|(_, from, message)| (from, name(&message))).collect()
    }
}
