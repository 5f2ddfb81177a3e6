//! Random schedules of a few replicas and real clients. Each step of a schedule is one number, which says by itself what
//! happens: so schedules that fail are made shorter by leaving steps out. `SYROS_SCHEDULES=100000` runs more of them,
//! from `SYROS_SCHEDULES_FROM` on; `SYROS_SCHEDULE=17` runs one and tells what happens.
//!
//! What a real network or disk cannot do is left out:
//!
//! - Between a client and a replica there is one connection at a time, which keeps the order of messages. One that loses a
//!   message is closed, and both ends hear of that: Attach and Request do not change places.
//! - What was sent to a process does not reach the next one of the same replica, which has connections of its own. What was sent
//!   by a process is not taken after something of the next one: members refuse earlier incarnations.
//! - A disk loses what it has not reported, from some record on, and nothing else.
//! - Of replicas with `replicated`, and of those that are replaced, no more than `f` are without memory at a time.
//! - In half of the worlds clocks run as they like. A lease means nothing there, so nobody reads.
//! - A file of a snapshot is written, sent and read as a whole, and what is executed is executed at once: engines are for other
//!   tests. The replica hears of both at any later step.
//! - Nodes are connected if each knows the other; if not, they compare configurations, as in a handshake.

use super::sizes::{node, roster_of};
use super::*;
use crate::client::{self, Client, Outcome, Token};
use crate::record::SnapshotHead;
use alloc::format;
use core::time::Duration;
use std::collections::HashSet;
use std::{println, thread_local};
use syros_types::{NodeId, ReadPolicy};

/// The most members that a group has here.
const MOST: usize = 5;

/// A file of a snapshot is a number that says which one it is.
const FILE_BYTES: u64 = 8;

/// What the state machine holds: of each of two keys, which operations have written it.
type State = [Vec<u8>; 2];

/// An operation: a letter of a class, a key, and its own number. `w` writes both keys.
type Operation = [u8; 3];

fn describe_schedule(body: &[u8]) -> Option<Description> {
    match body.first()? {
        b'w' => {
            let footprint = Footprint::of(vec![0, 1]);
            Some(Description { class: Class::Merge, footprint, growth: body.len() })
        }
        _ => Some(Description { footprint: Footprint::One(u64::from(*body.get(1)?)), ..describe(body)? }),
    }
}

fn execute(state: &mut State, body: &[u8]) -> Vec<u8> {
    let [class, key, number] = body[..3].try_into().unwrap();
    let key = usize::from(key);
    match class {
        b'o' => state[key] = vec![number],
        b'w' => state.iter_mut().for_each(|written| written.push(number)),
        b'm' | b'u' => state[key].push(number),
        _ => {}
    }
    match class {
        b'u' | b'r' => state[key].clone(),
        _ => Vec::new(),
    }
}

/// An operation of a client, from one moment to another.
#[derive(Clone, Debug)]
struct Invoked {
    body: Operation,
    began: u64,
    /// And what it returned.
    ended: Option<(u64, Vec<u8>)>,
}

/// True if the operations could have taken place one after the other: those that ended all, and any of the others.
fn is_linearizable(ops: &[Invoked], done: u64, state: &State, seen: &mut HashSet<(u64, State)>) -> bool {
    let open = || ops.iter().enumerate().filter(|(at, _)| done & 1 << at == 0);
    let Some(first_end) = open().filter_map(|(_, op)| op.ended.as_ref().map(|ended| ended.0)).min() else {
        return true;
    };
    seen.insert((done, state.clone()))
        && open().filter(|(_, op)| op.began < first_end).any(|(at, op)| {
            let mut next = state.clone();
            let returned = execute(&mut next, &op.body);
            op.ended.as_ref().is_none_or(|(_, reply)| *reply == returned)
                && is_linearizable(ops, done | 1 << at, &next, seen)
        })
}

/// What may happen in a step, and how often it does, compared with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Deliver,
    DeliverOldest,
    Lose,
    Duplicate,
    Write,
    TellWritten,
    Report,
    Tick,
    TickClient,
    Submit,
    Rush,
    Crash,
    Restart,
    Cut,
    Part,
    Without,
    Mend,
    Calm,
    HandOver,
    ChangeMode,
    Shrink,
    Grow,
    Replace,
}

const STEPS: [(Step, u64); 23] = [
    (Step::Deliver, 40),
    (Step::DeliverOldest, 30),
    (Step::Lose, 1),
    (Step::Duplicate, 2),
    (Step::Write, 15),
    (Step::TellWritten, 10),
    (Step::Report, 10),
    (Step::Tick, 12),
    (Step::TickClient, 3),
    (Step::Submit, 9),
    (Step::Rush, 4),
    (Step::Crash, 2),
    (Step::Restart, 4),
    (Step::Cut, 2),
    (Step::Part, 4),
    (Step::Without, 1),
    (Step::Mend, 3),
    (Step::Calm, 6),
    (Step::HandOver, 1),
    (Step::ChangeMode, 1),
    (Step::Shrink, 2),
    (Step::Grow, 2),
    (Step::Replace, 1),
];

/// What a snapshot holds.
type Snapshot = (Box<SnapshotHead>, State);

/// The place of a member: its process, if it runs, and its disk.
struct Place {
    replica: Option<Replica>,
    /// With the configuration that its directory says.
    config: Config,
    /// Counts processes.
    life: u64,
    /// How far its monotonic clock is ahead, and its wall clock.
    ahead: (u64, u64),
    disk: Vec<Record>,
    /// So many of its records are not needed any more.
    removed: usize,
    /// So many there were when the process began.
    found: usize,
    /// What is to be kept once a record is there.
    keeps: Option<(OpNumber, Ticket)>,
    snapshots: BTreeMap<OpNumber, Snapshot>,
    /// One that is being taken, and the record that goes with it.
    taking: Option<(Snapshot, Ticket)>,
    /// One that has been received.
    received: Option<Snapshot>,
    unwritten: VecDeque<Record>,
    written: Ticket,
    /// What waits for the disk.
    waiting: Vec<(Ticket, Peer, Message)>,
    state: State,
    /// The state is that after this entry.
    executed: OpNumber,
    /// What has been done, and is to be reported.
    reports: VecDeque<Event>,
    /// Has never been a member.
    learns: bool,
    /// There is no node, or none any more.
    is_gone: bool,
    /// A node that is to take this place, whose own was lost.
    wanted: Option<NodeId>,
    /// The last process of each other replica that it has heard of.
    heard: [u64; MOST],
    /// What was compared with all others.
    checked: u64,
}

impl Place {
    /// What its disk says of everything.
    fn restored(&self) -> Option<Restored> {
        if self.config.durability == Durability::Replicated {
            return None;
        }
        let mut restored = Restored::new(&self.config, self.snapshots.keys().copied());
        for (number, record) in (1..).zip(&self.disk).skip(self.removed) {
            restored.replay(number, record.clone()).unwrap();
        }
        restored.check_beginning(self.removed as u64 + 1).unwrap();
        if let Some(base) = restored.needed_snapshot().unwrap() {
            restored.attach((*self.snapshots[&base].0).clone(), FILE_BYTES).unwrap();
        }
        Some(restored)
    }

    /// The last view on its disk, as the file of the view has it.
    fn noted_view(&self) -> View {
        let views = self.disk.iter().filter_map(|record| match record {
            Record::View { view, .. } => Some(*view),
            _ => None,
        });
        views.max().unwrap_or_default()
    }

    fn clear_disk(&mut self) {
        self.disk.clear();
        self.snapshots.clear();
        self.removed = 0;
    }

    /// What the log on disk says of entries, read from its beginning on, or from that of what was kept.
    fn read_entries(&self, wanted: &EntriesWanted, from: usize) -> Option<ScannedEntries> {
        let mut scan = LogScan::new(describe_schedule);
        self.disk[from..].iter().try_for_each(|record| scan.take(record.clone())).ok()?;
        Some(scan.entries(wanted, self.unwritten.is_empty()))
    }
}

struct User {
    client: Client,
    ahead: (u64, u64),
    /// Its connections to replicas.
    connections: [Option<u64>; MOST],
    /// What it waits for.
    tokens: Vec<(Token, usize)>,
}

/// A message on its way. Ends are the numbers of replicas and connections, with the lives of replicas.
#[derive(Clone, Debug)]
struct Packet {
    from: (Peer, u64),
    to: (Peer, u64),
    node: Option<NodeId>,
    message: Message,
}

struct World {
    places: Vec<Place>,
    users: Vec<User>,
    wire: Vec<Packet>,
    /// The user and the replica of each connection, from 0 on.
    connections: Vec<(usize, usize)>,
    cut: BTreeSet<(usize, usize)>,
    now: Now,
    clocks_agree: bool,
    durability: Durability,
    weights: Vec<(Step, u64)>,
    ops: Vec<Invoked>,
    moments: u64,
    /// Every entry that some replica has committed.
    committed: BTreeMap<u64, LogEntry>,
    /// Every part of a snapshot that was sent.
    files: Vec<Snapshot>,
    nodes: u64,
    wrong: Option<String>,
}

thread_local! {
    static TELLS: core::cell::Cell<bool> = const { core::cell::Cell::new(false) };
}

fn tell(what: impl FnOnce() -> String) {
    if TELLS.get() {
        println!("{}", what());
    }
}

const fn member(replica: usize) -> ReplicaId {
    ReplicaId(replica as u8)
}

impl World {
    fn new(seed: u64, bug: Option<PlantedBug>) -> Self {
        let mut prng = Prng::new(seed);
        let n = if prng.chance(1, 2) { 3 } else { 5 };
        let modes = [FastQuorum::Majority, FastQuorum::Mixed, FastQuorum::Mixed, FastQuorum::Supermajority];
        let mode = modes[prng.below(4) as usize];
        let durability = if prng.chance(2, 3) { Durability::Fsync } else { Durability::Replicated };
        let clocks_agree = prng.chance(1, 2);
        let mut weights = STEPS.to_vec();
        weights.iter_mut().for_each(|(_, weight)| *weight *= [0, 1, 1, 1, 5][prng.below(5) as usize]);
        let now = Now { instant: Instant(1_000_000_000), wall: WallTime(1_000_000) };
        let mut configuration = Configuration::first(Group::new(n).unwrap(), mode);
        configuration.roster = roster_of(n);
        let overwrites = |newer: &[u8], older: &[u8]| newer[1] == older[1];
        let mut skewed = prng.fork();
        let (takes_snapshots, snapshot_bytes) = (prng.chance(1, 2), 1 + prng.below(2_000) as usize);
        let places = (0..MOST).map(|at| {
            let mut config = Config::new(configuration, member(at), describe_schedule, overwrites);
            config.durability = durability;
            if takes_snapshots {
                (config.settings.log_keep_bytes, config.settings.snapshot_log_bytes) = (0, snapshot_bytes);
            }
            planted(bug)(&mut config);
            Place {
                replica: None,
                config,
                life: 0,
                ahead: (0, skewed.below(50_000)),
                disk: Vec::new(),
                removed: 0,
                found: 0,
                keeps: None,
                snapshots: BTreeMap::new(),
                taking: None,
                received: None,
                unwritten: VecDeque::new(),
                written: Ticket(0),
                waiting: Vec::new(),
                state: State::default(),
                executed: OpNumber(0),
                reports: VecDeque::new(),
                learns: false,
                is_gone: at >= n,
                wanted: None,
                heard: [0; MOST],
                checked: 0,
            }
        });
        let users = (0..3).map(|at| {
            let mut config = client::Config::new(configuration, seed * 10 + at);
            #[cfg(feature = "planted-bugs")]
            (config.planted = bug);
            if prng.chance(1, 2) {
                config.settings.write_policy = syros_types::WritePolicy::Fast;
            }
            User {
                client: Client::new(config, now),
                ahead: (0, prng.below(50_000)),
                connections: [None; MOST],
                tokens: Vec::new(),
            }
        });
        let mut world = Self {
            places: places.collect(),
            users: users.collect(),
            wire: Vec::new(),
            connections: Vec::new(),
            cut: BTreeSet::new(),
            now,
            clocks_agree,
            durability,
            weights,
            ops: Vec::new(),
            moments: 0,
            committed: BTreeMap::new(),
            files: Vec::new(),
            nodes: 100,
            wrong: None,
        };
        tell(|| format!("{n} {mode} {durability}, clocks agree: {clocks_agree}"));
        (0..n).for_each(|replica| world.start(replica, Boot::Fresh));
        world.connect();
        world
    }

    // ---- Processes.

    fn clock(&self, (nanos, micros): (u64, u64)) -> Now {
        let instant = self.now.instant.after(Duration::from_nanos(nanos));
        Now { instant, wall: WallTime(self.now.wall.0 + micros) }
    }

    fn start(&mut self, replica: usize, boot: Boot) {
        let now = self.clock(self.places[replica].ahead);
        let place = &mut self.places[replica];
        tell(|| format!("{replica} starts: {boot:?}"));
        place.life += 1;
        (place.written, place.found, place.checked) = (Ticket(0), place.disk.len(), 0);
        (place.keeps, place.taking, place.received) = (None, None, None);
        (place.state, place.executed) = (State::default(), OpNumber(0));
        if let Boot::Restored(restored) = &boot
            && let Some(base) = restored.needed_snapshot().unwrap()
        {
            (place.state, place.executed) = (place.snapshots[&base].1.clone(), base);
        }
        place.reports.clear();
        place.heard = [0; MOST];
        let mut config = place.config.clone();
        config.node = config.node.or_else(|| node_of(replica));
        config.promised_before = config.settings.lease;
        place.config.node = config.node;
        place.replica = Some(Replica::new(config, boot, now));
        place.learns = place.replica.as_ref().is_some_and(Replica::is_learner);
        self.carry_out(replica);
        self.event(replica, Event::Tick);
    }

    fn restart(&mut self, replica: usize) {
        let place = &mut self.places[replica];
        if place.replica.is_some() || place.is_gone || place.wanted.is_some() {
            return;
        }
        let boot = if place.learns {
            place.clear_disk();
            Boot::Fresh
        } else {
            match place.restored() {
                Some(restored) if !restored.is_amnesiac() => Boot::Restored(restored.into()),
                restored => {
                    place.snapshots.clear();
                    let view = restored.map_or_else(|| place.noted_view(), |restored| restored.view());
                    Boot::Amnesiac { view }
                }
            }
        };
        self.start(replica, boot);
        (0..MOST).for_each(|other| self.shake_hands(replica, other));
    }

    /// The process ends. Of the records that are on their way to the disk some, the first ones, get there.
    fn crash(&mut self, replica: usize, prng: &mut Prng) {
        let place = &mut self.places[replica];
        let written = prng.below(place.unwritten.len() as u64 + 1) as usize;
        place.disk.extend(place.unwritten.drain(..).take(written));
        place.waiting.clear();
        place.replica = None;
        let life = place.life;
        let peer = Peer::Replica(member(replica));
        self.wire.retain(|packet| packet.to != (peer, life));
        for user in 0..self.users.len() {
            self.disconnect(user, replica);
        }
    }

    /// So many members are without memory, or would be if they started now.
    fn forgetful(&self) -> usize {
        let is_forgetful = |place: &&Place| {
            let in_memory = || place.replica.as_ref().is_none_or(Replica::has_lost_memory);
            let forgets = place.restored().map_or_else(in_memory, |restored| restored.is_amnesiac());
            !place.is_gone && !place.learns && (forgets || place.wanted.is_some())
        };
        self.places.iter().filter(is_forgetful).count()
    }

    /// True if one more may lose its memory, or its disk `for_good`. From the moment on at which the entry is in a log by which the
    /// group shrinks, it bears what the smaller one does; and no more lost disks even before: see the tests in `first_views`.
    fn may_forget(&self, for_good: bool) -> bool {
        let shrinks = self.weights.iter().any(|(step, weight)| *step == Step::Shrink && *weight > 0);
        let faults = |place: &Place| {
            let core = place.replica.as_ref();
            let next = core.and_then(|core| {
                core.next_configuration().or(core.backlog.reconfiguration.map(|(_, next)| next))
            });
            let faults = next.map_or(MOST, |next| next.roster.group().faults());
            // Until a view of its own has committed something, a configuration needs the one before.
            let is_unproven = core.is_some_and(|core| !core.is_established());
            let before = place.config.configuration.before.filter(|_| is_unproven);
            let of_before = before.map_or(MOST, |before| before.group().faults());
            faults.min(of_before).min(place.config.configuration.faults())
        };
        let members = self.places.iter().filter(|place| !place.is_gone && !place.learns);
        let least = members.map(faults).min().unwrap_or(0);
        self.forgetful() < if for_good && shrinks { least.min(1) } else { least }
    }

    fn event(&mut self, replica: usize, event: Event) {
        let now = self.clock(self.places[replica].ahead);
        let Some(core) = &mut self.places[replica].replica else { return };
        core.handle(now, event);
        self.carry_out(replica);
    }

    fn carry_out(&mut self, replica: usize) {
        while let Some(action) = self.places[replica].replica.as_mut().and_then(Replica::poll) {
            let place = &mut self.places[replica];
            match action {
                Action::Persist { record, .. } => place.unwritten.push_back(record),
                Action::Send { to, message, after } => {
                    if after <= place.written {
                        self.send(replica, to, message);
                    } else {
                        place.waiting.push((after, to, message));
                    }
                }
                Action::Apply { through } => {
                    let core = place.replica.as_ref().unwrap();
                    let mut replies = Vec::new();
                    for number in (place.executed.0 + 1..=through.0).map(OpNumber) {
                        for update in core.entry(number).updates() {
                            let reply = execute(&mut place.state, &update.request.body);
                            if !update.class.is_nilext() {
                                replies.push(Returned { number, reply: Body::from(reply), effects: 0 });
                            }
                        }
                    }
                    place.executed = through;
                    place.reports.push_back(Event::Applied { through, replies });
                }
                Action::TakeSnapshot { head, ticket, .. } => {
                    assert!(head.op_number == place.executed, "it is of what is executed");
                    place.taking = Some(((head, place.state.clone()), ticket));
                }
                Action::KeepFrom { op_number, ticket } => place.keeps = Some((op_number, ticket)),
                Action::SendSnapshotPart { to, op_number, offset } => match place.snapshots.get(&op_number) {
                    Some(snapshot) => {
                        let part = Body::from((self.files.len() as u64).to_le_bytes());
                        self.files.push(snapshot.clone());
                        self.send(replica, to, Message::SnapshotPart { op_number, offset, part });
                    }
                    None => place.reports.push_back(Event::SnapshotUnreadable { op_number }),
                },
                Action::WriteSnapshotPart { op_number, offset, part } => {
                    let file = u64::from_le_bytes(part[..].try_into().unwrap());
                    place.received = Some(self.files[file as usize].clone());
                    let received = offset + FILE_BYTES;
                    place.reports.push_back(Event::SnapshotPartWritten { op_number, received });
                }
                Action::LoadSnapshot { op_number } => {
                    let snapshot = place.received.clone().unwrap();
                    let head = snapshot.0.clone();
                    place.snapshots.insert(op_number, snapshot);
                    place.reports.push_back(Event::SnapshotLoaded { head, bytes: FILE_BYTES });
                }
                Action::AdoptSnapshot { op_number } => {
                    (place.state, place.executed) = (place.snapshots[&op_number].1.clone(), op_number);
                }
                Action::ReadEntries(wanted) => {
                    let from = if self.moments.is_multiple_of(2) { place.removed } else { 0 };
                    let found = place.read_entries(&wanted, from);
                    let EntriesWanted { copier, after, .. } = wanted;
                    place.reports.push_back(Event::EntriesRead { copier, after, found });
                }
                Action::Read { to, view, number, applied, body, freshness, .. } => {
                    let reply = Body::from(execute(&mut place.state.clone(), &body));
                    let message = match freshness {
                        None => Message::ReadReply { view, number, reply },
                        Some(freshness) => {
                            let expiry = WallTime(0);
                            Message::MemberReply { view, number, applied, freshness, expiry, reply }
                        }
                    };
                    self.send(replica, to, message);
                }
                Action::Evaluate { to, view, id, body } => {
                    let reply = Body::from(execute(&mut place.state.clone(), &body));
                    self.send(replica, to, Message::Evaluated { view, id, reply });
                }
                Action::Reconfigured(configuration) => place.config.configuration = configuration,
                Action::Trace(event) => tell(|| format!("{replica}: {event:?}")),
            }
        }
        self.look_at(replica);
    }

    /// What a replica has committed is what others have.
    fn look_at(&mut self, replica: usize) {
        let place = &mut self.places[replica];
        let Some(core) = &place.replica else { return };
        place.learns = core.is_learner();
        while place.checked < core.commit().0 {
            place.checked += 1;
            let Some(entry) = core.log.entry(OpNumber(place.checked)) else { continue };
            match self.committed.get(&place.checked) {
                None => _ = self.committed.insert(place.checked, entry.clone()),
                Some(known) if known != entry => {
                    let wrong = format!(
                        "entry {} is committed twice: {known:?}, and at {replica} {entry:?}",
                        place.checked
                    );
                    _ = self.wrong.get_or_insert(wrong);
                }
                Some(_) => {}
            }
        }
    }

    fn write(&mut self, replica: usize) {
        let place = &mut self.places[replica];
        let Some(record) = place.unwritten.pop_front() else { return };
        place.disk.push(record);
        place.written.0 += 1;
        let written = place.written;
        if let Some((op_number, ticket)) = place.keeps.take_if(|(_, ticket)| *ticket <= written) {
            // Of a snapshot that was there when the process began, the record is known to be there already.
            if ticket > Ticket(0) {
                place.removed = place.found + ticket.0 as usize - 1;
            }
            place.snapshots.retain(|of, _| *of >= op_number);
        }
        let ready = place.waiting.extract_if(.., |(after, ..)| *after <= written);
        for (_, to, message) in ready.collect::<Vec<_>>() {
            self.send(replica, to, message);
        }
    }

    // ---- The network.

    fn send(&mut self, from: usize, to: Peer, message: Message) {
        let place = &self.places[from];
        let (node, life) = (place.config.node, place.life);
        let to = match to {
            Peer::Replica(other) if other.index() < MOST => {
                if !(self.takes(from, other.index()) && self.takes(other.index(), from)) {
                    return self.shake_hands(from, other.index());
                }
                (to, self.places[other.index()].life)
            }
            Peer::Client(connection) if connection < u64::MAX && self.is_open(connection) => (to, 0),
            _ => return,
        };
        self.wire.push(Packet { from: (Peer::Replica(member(from)), life), to, node, message });
    }

    fn is_open(&self, connection: u64) -> bool {
        let (user, replica) = self.connections[connection as usize];
        self.users[user].connections[replica] == Some(connection)
    }

    /// True if a replica takes the node at another place for one to talk to.
    fn takes(&self, replica: usize, other: usize) -> bool {
        let (Some(core), there) = (&self.places[replica].replica, &self.places[other]) else { return false };
        let Some(node) = there.config.node.filter(|_| there.replica.is_some()) else { return false };
        let newcomer = there.learns || self.places[replica].learns;
        let group = core.newest_configuration().roster.group();
        core.is_peer(member(other), node)
            || (newcomer && (group.grows_by(member(other)) || group.has(member(other))))
    }

    /// Two nodes compare their configurations. One that is not told the whole of the other's takes the connection, and asks.
    fn shake_hands(&mut self, one: usize, other: usize) {
        for (teller, learner) in [(one, other), (other, one)] {
            let (from, to) = (&self.places[teller], &self.places[learner]);
            let (Some(core), Some(ours), Some(told)) = (&from.replica, &to.replica, to.config.node) else {
                continue;
            };
            if from.learns || self.cut.contains(&(teller, learner)) {
                continue;
            }
            let (known, newest) = (core.newest_configuration(), ours.newest_configuration());
            let has = |place: usize, node| known.has_voter(member(place), node);
            let is_gone = core.newest_configuration().epoch == core.configuration().id.epoch
                && newest.epoch <= known.epoch
                && newest.has_voter(member(learner), told)
                && core.is_established()
                && !core.configuration().roster.nodes().contains(&Some(told));
            if known.epoch > newest.epoch && has(teller, from.config.node.unwrap()) && has(learner, told) {
                let message = Message::Configuration(Box::new(known));
                let from = Peer::Replica(member(teller));
                self.event(learner, Event::Message { from, message });
            } else if is_gone {
                tell(|| format!("{learner} is told that it has gone"));
                self.crash(learner, &mut Prng::new(0));
                self.places[learner].is_gone = true;
            }
        }
    }

    /// Clients connect to all replicas that run, if they are not connected.
    fn connect(&mut self) {
        for (user, replica) in (0..self.users.len()).flat_map(|user| (0..MOST).map(move |to| (user, to))) {
            let is_member = self.users[user].client.members().any(|it| it == member(replica));
            if self.places[replica].replica.is_some()
                && is_member
                && self.users[user].connections[replica].is_none()
            {
                self.users[user].connections[replica] = Some(self.connections.len() as u64);
                self.connections.push((user, replica));
                self.client_event(user, client::Event::Connected(member(replica)));
            }
        }
    }

    fn disconnect(&mut self, user: usize, replica: usize) {
        let Some(connection) = self.users[user].connections[replica].take() else { return };
        let peer = Peer::Client(connection);
        self.wire.retain(|packet| packet.from.0 != peer && packet.to.0 != peer);
        self.client_event(user, client::Event::Disconnected(member(replica)));
        self.event(replica, Event::ClientGone(connection));
    }

    fn client_event(&mut self, user: usize, event: client::Event) {
        let now = self.clock(self.users[user].ahead);
        self.users[user].client.handle(now, event);
        self.carry_out_client(user);
    }

    fn carry_out_client(&mut self, user: usize) {
        while let Some(action) = self.users[user].client.poll() {
            match action {
                client::Action::Send { to, message } => {
                    for to in to.iter().filter(|to| to.index() < MOST) {
                        let Some(connection) = self.users[user].connections[to.index()] else { continue };
                        let to = (Peer::Replica(to), self.places[to.index()].life);
                        let from = (Peer::Client(connection), 0);
                        self.wire.push(Packet { from, to, node: None, message: message.clone() });
                    }
                }
                client::Action::Completed { token, outcome, .. } => {
                    let tokens = &mut self.users[user].tokens;
                    let at = tokens.iter().position(|(of, _)| *of == token).unwrap();
                    let op = &mut self.ops[tokens.swap_remove(at).1];
                    self.moments += 1;
                    tell(|| format!("user {user}: {op:?} ends: {outcome:?}"));
                    match outcome {
                        Outcome::Done => op.ended = Some((self.moments, Vec::new())),
                        Outcome::Reply(reply) => op.ended = Some((self.moments, reply.to_vec())),
                        Outcome::Unknown => {}
                        // It never takes place: nobody may see its number.
                        Outcome::Refused(_) | Outcome::TimedOut | Outcome::NoQuorum => op.began = u64::MAX,
                    }
                }
                client::Action::Reconfigured(_) => {
                    for replica in 0..MOST {
                        let is_member = self.users[user].client.members().any(|it| it == member(replica));
                        if !is_member {
                            self.disconnect(user, replica);
                        }
                    }
                    self.connect();
                }
            }
        }
    }

    /// Few operations at a time, of few in all: else nobody could say in which order they may have taken place.
    fn submit_if_free(&mut self, user: usize, class: u8, key: u8) {
        if self.users[user].tokens.len() < 3 && self.ops.len() < 30 {
            self.submit(user, class, key);
        }
    }

    fn submit(&mut self, user: usize, class: u8, key: u8) {
        let body = [class, key, self.ops.len() as u8];
        let description = describe_schedule(&body).unwrap();
        self.moments += 1;
        self.ops.push(Invoked { body, began: self.moments, ended: None });
        tell(|| format!("user {user} begins {:?}", self.ops.last()));
        let now = self.clock(self.users[user].ahead);
        let (body, class) = (Body::from(body), description.class);
        let policies = [ReadPolicy::Leader, ReadPolicy::Meta, ReadPolicy::Quorum];
        let policy = policies[self.ops.len() % 3];
        let token =
            self.users[user].client.submit_with(now, body, class, &description.footprint, Some(policy));
        self.users[user].tokens.push((token.unwrap(), self.ops.len() - 1));
        self.carry_out_client(user);
    }

    /// Where a message comes from or goes to: a replica, or a user behind all of them.
    fn end(&self, peer: Peer) -> usize {
        match peer {
            Peer::Replica(replica) => replica.index(),
            Peer::Client(connection) => MOST + self.connections[connection as usize].0,
        }
    }

    /// What may arrive next.
    fn arriving(&self) -> Vec<usize> {
        let mut earlier = HashSet::new();
        let mut arrives = |packet: &Packet| {
            let is_between = matches!((packet.from.0, packet.to.0), (Peer::Replica(_), Peer::Replica(_)));
            let is_cut = self.cut.contains(&(self.end(packet.from.0), self.end(packet.to.0)));
            !is_cut && (is_between || earlier.insert((packet.from, packet.to)))
        };
        (0..self.wire.len()).filter(|at| arrives(&self.wire[*at])).collect()
    }

    fn deliver(&mut self, packet: Packet) {
        let Packet { from, to, node, message } = packet;
        match (from.0, to.0) {
            (_, Peer::Client(connection)) => {
                let (user, replica) = self.connections[connection as usize];
                tell(|| format!("user {user} <- {replica}: {message:?}"));
                self.client_event(user, client::Event::Message { from: member(replica), message });
            }
            (Peer::Client(_), Peer::Replica(replica)) => {
                tell(|| format!("{} <- user: {message:?}", replica.index()));
                self.event(replica.index(), Event::Message { from: from.0, message });
            }
            (Peer::Replica(sender), Peer::Replica(replica)) => {
                let (sender, replica) = (sender.index(), replica.index());
                let is_known = node == self.places[sender].config.node;
                let place = &mut self.places[replica];
                if place.life != to.1 || !is_known || from.1 < place.heard[sender] {
                    return;
                }
                place.heard[sender] = from.1;
                if self.places[sender].replica.is_some() && !self.takes(replica, sender) {
                    return self.shake_hands(sender, replica);
                }
                tell(|| format!("{replica} <- {sender}: {message:?}"));
                self.event(replica, Event::Message { from: from.0, message });
            }
        }
    }

    // ---- What happens.

    fn tick(&mut self, replica: usize) {
        let Some(core) = &self.places[replica].replica else { return };
        let now = self.clock(self.places[replica].ahead).instant;
        let nanos = core.deadline().since(now).min(Duration::from_millis(500)).as_nanos() as u64;
        if self.clocks_agree {
            self.pass(nanos);
        } else {
            self.places[replica].ahead.0 += nanos;
        }
        self.event(replica, Event::Tick);
    }

    fn tick_client(&mut self, user: usize) {
        let now = self.clock(self.users[user].ahead).instant;
        let User { client, ahead, .. } = &mut self.users[user];
        ahead.0 += client.deadline().since(now).min(Duration::from_millis(500)).as_nanos() as u64;
        self.client_event(user, client::Event::Tick);
    }

    fn pass(&mut self, nanos: u64) {
        self.now.instant.0 += nanos;
        self.now.wall.0 += nanos / 1_000;
    }

    /// All that is on its way arrives, disks write, and time goes on to the next moment at which somebody does something.
    fn calm(&mut self) {
        for _ in 0..2_000 {
            for replica in 0..MOST {
                while !self.places[replica].unwritten.is_empty() {
                    self.write(replica);
                }
                self.tell_written(replica);
                while !self.places[replica].reports.is_empty() {
                    self.report(replica);
                }
            }
            let Some(at) = self.arriving().first().copied() else { break };
            let packet = self.wire.remove(at);
            self.deliver(packet);
        }
        let replicas = self.places.iter().filter_map(|place| {
            Some(place.replica.as_ref()?.deadline().since(self.clock(place.ahead).instant))
        });
        let users = self.users.iter().map(|it| it.client.deadline().since(self.clock(it.ahead).instant));
        let nanos = replicas.chain(users).min().unwrap().as_nanos() as u64;
        self.pass(nanos.clamp(1_000, 50_000_000));
        for replica in 0..MOST {
            let place = &self.places[replica];
            let now = self.clock(place.ahead).instant;
            if place.replica.as_ref().is_some_and(|core| core.deadline() <= now) {
                self.event(replica, Event::Tick);
            }
        }
        for user in 0..self.users.len() {
            if self.users[user].client.deadline() <= self.clock(self.users[user].ahead).instant {
                self.client_event(user, client::Event::Tick);
            }
        }
        self.admit();
    }

    fn tell_written(&mut self, replica: usize) {
        let place = &self.places[replica];
        let written = place.written;
        if written > Ticket(0) {
            self.event(replica, Event::Persisted(written));
        }
        if let Some((snapshot, _)) = self.places[replica].taking.take_if(|(_, ticket)| *ticket <= written) {
            let op_number = snapshot.0.op_number;
            self.places[replica].snapshots.insert(op_number, snapshot);
            self.event(replica, Event::SnapshotTaken { op_number, bytes: FILE_BYTES });
        }
    }

    fn report(&mut self, replica: usize) {
        if let Some(event) = self.places[replica].reports.pop_front() {
            self.event(replica, event);
        }
    }

    /// Nodes that want places ask leaders for them, and start when a configuration has them.
    fn admit(&mut self) {
        for place in 0..MOST {
            let Some(wanted) = self.places[place].wanted else { continue };
            for replica in 0..MOST {
                let Some(core) = &self.places[replica].replica else { continue };
                let newest = core.newest_configuration();
                if newest.roster.node(member(place)) == Some(wanted) {
                    self.places[place].config.configuration = core.config.configuration.after(newest);
                    self.places[place].config.node = Some(wanted);
                    self.places[place].wanted = None;
                    self.places[place].clear_disk();
                    self.start(place, Boot::Fresh);
                    break;
                }
                self.event(replica, Event::PlaceWanted { member: member(place), node: wanted });
            }
        }
    }

    fn take_step(&mut self, step: u64) {
        let mut prng = Prng::new(step);
        self.pass(20_000);
        let mut drawn = prng.below(self.weights.iter().map(|(_, weight)| weight).sum::<u64>().max(1));
        let what = self.weights.iter().find(|(_, weight)| {
            let found = drawn < *weight;
            drawn = drawn.saturating_sub(*weight);
            found
        });
        let what = what.map_or(Step::Deliver, |(what, _)| *what);
        let replica = prng.below(MOST as u64) as usize;
        let other = prng.below((MOST + self.users.len()) as u64) as usize;
        let user = prng.below(self.users.len() as u64) as usize;
        if !matches!(what, Step::Deliver | Step::DeliverOldest) {
            tell(|| format!("{what:?} {replica} {other} {user}"));
        }
        match what {
            Step::Deliver | Step::DeliverOldest | Step::Lose | Step::Duplicate => {
                let arriving = self.arriving();
                if arriving.is_empty() {
                    return;
                }
                let at =
                    if what == Step::DeliverOldest { 0 } else { prng.below(arriving.len() as u64) as usize };
                let packet = self.wire[arriving[at]].clone();
                let ends = (packet.from.0, packet.to.0);
                match (what, ends) {
                    (Step::Deliver | Step::DeliverOldest, _) => {
                        self.wire.remove(arriving[at]);
                        self.deliver(packet);
                    }
                    (Step::Lose, (Peer::Client(connection), _) | (_, Peer::Client(connection))) => {
                        let (user, replica) = self.connections[connection as usize];
                        self.disconnect(user, replica);
                    }
                    (Step::Lose, _) => _ = self.wire.remove(arriving[at]),
                    (_, (Peer::Replica(_), Peer::Replica(_))) => self.deliver(packet),
                    _ => {}
                }
            }
            Step::Write => {
                (0..=prng.below(4)).for_each(|_| self.write(replica));
            }
            Step::TellWritten => self.tell_written(replica),
            Step::Report => self.report(replica),
            Step::Tick => self.tick(replica),
            Step::TickClient => self.tick_client(user),
            Step::Submit => {
                let classes: &[u8] = if self.clocks_agree { b"ooommuuwrr" } else { b"ooommuuw" };
                let class = classes[prng.below(classes.len() as u64) as usize];
                self.submit_if_free(user, class, prng.below(2) as u8);
            }
            Step::Rush => self.rush(),
            Step::Crash => self.crash_if_possible(replica, &mut prng),
            Step::Restart => self.restart(replica),
            Step::Cut => _ = self.cut.insert((replica, other)),
            Step::Part => self.part(&mut prng),
            Step::Without => self.go_on_without(&mut prng),
            Step::Mend => {
                self.cut.clear();
                self.connect();
            }
            Step::Calm => {
                (0..1 + prng.below(20)).for_each(|_| self.calm());
            }
            Step::HandOver => (0..MOST).for_each(|replica| self.event(replica, Event::StepDown)),
            Step::ChangeMode => {
                let mode = if prng.chance(1, 2) { FastQuorum::Majority } else { FastQuorum::Mixed };
                self.tell_all(&Message::ChangeMode { mode });
            }
            Step::Shrink => {
                self.tell_all(&Message::Shrink { to: Group::new(3).unwrap() });
                if prng.chance(1, 2) {
                    self.part(&mut prng);
                    self.submit_if_free(user, b'o', 0);
                    self.rush();
                }
            }
            Step::Grow => self.grow(replica),
            Step::Replace => {
                let place = &mut self.places[replica];
                let is_member = place.replica.is_none() && !place.is_gone && !place.learns;
                if is_member && place.wanted.is_none() {
                    self.nodes += 1;
                    let wanted = node(self.nodes);
                    // It is without memory, in any case.
                    self.places[replica].is_gone = true;
                    let may = self.may_forget(true);
                    self.places[replica].is_gone = false;
                    if may {
                        tell(|| format!("{wanted} wants the place of {replica}"));
                        self.places[replica].wanted = Some(wanted);
                    }
                }
                self.admit();
            }
        }
    }

    /// Links are cut between two sides: all of them, or those between replicas, or those between replicas and users.
    fn part(&mut self, prng: &mut Prng) {
        let (sides, ends, kind) = (prng.next_u64(), MOST + self.users.len(), prng.below(3));
        let (is_one_way, side) = (prng.chance(1, 4), |end: usize| sides >> end & 1);
        let is_cut = |(from, to): &(usize, usize)| {
            let is_between = from.max(to) < &MOST;
            (kind == 0 || is_between == (kind == 1))
                && (side(*from) > side(*to) || (side(*from) < side(*to) && !is_one_way))
        };
        let pairs = (0..ends).flat_map(|from| (0..ends).map(move |to| (from, to)));
        self.cut = pairs.filter(is_cut).collect();
    }

    /// All that users and replicas have to say to each other arrives, and nothing of what replicas tell each other: fast updates are
    /// complete before any of them is in a log elsewhere.
    fn rush(&mut self) {
        loop {
            (0..MOST).for_each(|replica| (0..8).for_each(|_| self.write(replica)));
            let is_of_user = |at: &usize| {
                let Packet { from, to, .. } = &self.wire[*at];
                matches!((from.0, to.0), (Peer::Client(_), _) | (_, Peer::Client(_)))
            };
            let Some(at) = self.arriving().into_iter().find(is_of_user) else { return };
            let packet = self.wire.remove(at);
            self.deliver(packet);
        }
    }

    fn crash_if_possible(&mut self, replica: usize, prng: &mut Prng) {
        let forgets = self.durability == Durability::Replicated && !self.places[replica].learns;
        if self.places[replica].replica.is_some() && (!forgets || self.may_forget(false)) {
            self.crash(replica, prng);
        }
    }

    /// One or two replicas reach no other one for a while, and all others run.
    fn go_on_without(&mut self, prng: &mut Prng) {
        let away = [prng.below(MOST as u64) as usize, prng.below(MOST as u64) as usize];
        let pairs = (0..MOST).flat_map(|from| (0..MOST).map(move |to| (from, to)));
        self.cut = pairs.filter(|(from, to)| away.contains(from) || away.contains(to)).collect();
        for replica in (0..MOST).filter(|replica| !away.contains(replica)) {
            if prng.chance(1, 4) {
                self.crash_if_possible(replica, prng);
            }
            self.restart(replica);
        }
        self.connect();
        (0..20 + prng.below(60)).for_each(|_| self.calm());
    }

    /// An operator says something, which only leaders act upon.
    fn tell_all(&mut self, message: &Message) {
        for replica in 0..MOST {
            self.event(replica, Event::Message { from: Peer::Client(u64::MAX), message: message.clone() });
        }
    }

    /// Two nodes want to be members, if the group has three and knows of no others.
    fn grow(&mut self, known_to: usize) {
        let Some(core) = &self.places[known_to].replica else { return };
        let known = core.config.configuration;
        let is_free = |place: &Place| place.is_gone;
        if known.size() != 3 || self.places[known_to].learns || !self.places[3..].iter().all(is_free) {
            return;
        }
        for place in 3..MOST {
            self.nodes += 1;
            let new = node(self.nodes);
            let place_there = &mut self.places[place];
            (place_there.config.configuration, place_there.config.node) = (known, Some(new));
            place_there.is_gone = false;
            place_there.clear_disk();
            self.start(place, Boot::Fresh);
        }
    }

    // ---- The end.

    /// Everything that is there is connected again. True if all that must happen then happens in time.
    fn recover(&mut self) -> Result<(), String> {
        self.cut.clear();
        for replica in 0..MOST {
            self.restart(replica);
        }
        for (one, other) in (0..MOST).flat_map(|one| (0..one).map(move |other| (one, other))) {
            self.shake_hands(one, other);
        }
        self.connect();
        (0..2).for_each(|key| self.submit(0, b'u', key));
        let end = self.now.instant.after(Duration::from_secs(100));
        while self.now.instant < end && self.wrong.is_none() {
            self.calm();
            self.connect();
            if !self.users[0].tokens.is_empty() {
                continue;
            }
            let is_whole = self.is_whole();
            if is_whole {
                return Ok(());
            }
        }
        let views = self.places.iter().map(|place| {
            let core = place.replica.as_ref();
            core.map(|it| (it.view(), it.role(), it.commit(), it.configuration().size(), place.learns))
        });
        let views: Vec<_> = views.collect();
        Err(format!("it stands still: {views:?} {:?}", self.users[0].tokens))
    }

    /// Every member of the newest configuration takes part, and has what is committed.
    fn is_whole(&self) -> bool {
        let cores = || self.places.iter().filter_map(|place| place.replica.as_ref());
        let Some(leader) = cores().filter(|it| it.is_leader()).max_by_key(|it| it.view()) else {
            return false;
        };
        let is_there = |at: ReplicaId| {
            let core = self.places[at.index()].replica.as_ref();
            core.is_some_and(|it| {
                it.is_normal() && it.view() == leader.view() && it.commit() == leader.commit()
            })
        };
        leader.configuration().members().all(is_there)
    }

    fn judge(&self) -> Result<(), String> {
        if let Some(wrong) = &self.wrong {
            return Err(wrong.clone());
        }
        let ops: Vec<Invoked> = self.ops.iter().filter(|op| op.began < u64::MAX).cloned().collect();
        if is_linearizable(&ops, 0, &State::default(), &mut HashSet::new()) {
            return Ok(());
        }
        Err(format!("it is not linearizable: {ops:#?}"))
    }
}

/// The first node of each place.
fn node_of(replica: usize) -> Option<NodeId> {
    Some(node(replica as u64 + 1))
}

fn steps_of(seed: u64) -> Vec<u64> {
    let mut prng = Prng::new(seed ^ 0x5EED);
    (0..100 + prng.below(300)).map(|_| prng.next_u64()).collect()
}

/// What is wrong after these steps, if anything is.
fn run(seed: u64, steps: &[u64], bug: Option<PlantedBug>) -> Result<World, String> {
    let schedule = || {
        let mut world = World::new(seed, bug);
        (0..3).for_each(|user| world.submit(user, b'u', 0));
        (0..40).for_each(|_| world.calm());
        for step in steps {
            world.take_step(*step);
            if world.wrong.is_some() {
                break;
            }
        }
        world.go_on_without(&mut Prng::new(seed));
        let recovered = world.recover();
        // What was lost is said first: a group may stand still for the same reason.
        world.judge().and(recovered).map(|()| world)
    };
    let outcome = std::panic::catch_unwind(core::panic::AssertUnwindSafe(schedule));
    outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        Err(format!("panic: {}", text.or(panic.downcast_ref::<&str>().copied()).unwrap_or_default()))
    })
}

/// The steps without those that it fails without.
fn shorter(seed: u64, mut steps: Vec<u64>, bug: Option<PlantedBug>) -> Vec<u64> {
    let mut length = steps.len() / 2;
    while length > 0 {
        let mut at = 0;
        while at < steps.len() {
            let mut fewer = steps.clone();
            fewer.drain(at..(at + length).min(steps.len()));
            if run(seed, &fewer, bug).is_err() {
                steps = fewer;
            } else {
                at += length;
            }
        }
        length /= 2;
    }
    steps
}

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
}

/// The first of so many schedules that fails.
fn first_failure(from: u64, count: u64, bug: Option<PlantedBug>) -> Option<(u64, String)> {
    (from..from + count).find_map(|seed| Some((seed, run(seed, &steps_of(seed), bug).err()?)))
}

/// Fails with the shortest schedule that fails as one of these does.
fn search(from: u64, count: u64, bug: Option<PlantedBug>) {
    if let Some((seed, wrong)) = first_failure(from, count, bug) {
        let steps = shorter(seed, steps_of(seed), bug);
        TELLS.set(true);
        _ = run(seed, &steps, bug);
        panic!("seed {seed}, {} steps: {wrong}", steps.len());
    }
}

#[test]
fn random_schedules() {
    match number("SYROS_SCHEDULE", u64::MAX) {
        u64::MAX => search(number("SYROS_SCHEDULES_FROM", 0), number("SYROS_SCHEDULES", 300), None),
        only => search(only, 1, None),
    }
}

/// How much happens in them.
#[test]
fn schedules_get_somewhere() {
    let (mut ended, mut fast, mut views, mut epochs, mut lost) = (0, 0, 0, 0, 0);
    let count = number("SYROS_SCHEDULES_COUNTED", 60);
    for seed in 0..count {
        let world = run(seed, &steps_of(seed), None).unwrap();
        ended += world.ops.iter().filter(|op| op.ended.is_some()).count();
        fast += world.users.iter().map(|user| user.client.write_counts().fast).sum::<u64>();
        lost += world.places.iter().map(|place| place.life.saturating_sub(1)).sum::<u64>();
        let view = |place: &Place| place.replica.as_ref().map(Replica::view).unwrap_or_default();
        let view = world.places.iter().map(view).max().unwrap();
        views += view.number();
        epochs += view.epoch().0;
    }
    println!(
        "of {count}: {ended} operations ended, {fast} fast; {views} views, {epochs} epochs, {lost} restarts"
    );
    assert!(ended as u64 > 5 * count && fast > count && views > count && epochs > count / 4 && lost > count);
}

/// `SYROS_PLANTED=view-change-before-persist,commit-too-early` looks for these.
#[cfg(feature = "planted-bugs")]
#[test]
fn planted_bugs_are_found() {
    const USUAL: &str = "commit-too-early,quorum-skips-dlog,recovery-threshold-too-high,old-quorum-skipped,\
        established-early,shrunk-by-those-that-go";
    let names = std::env::var("SYROS_PLANTED").unwrap_or_else(|_| USUAL.into());
    let count = number("SYROS_SCHEDULES", 300);
    std::panic::set_hook(Box::new(|_| {}));
    let missed: Vec<&str> = names
        .split(',')
        .filter(|name| {
            let bug = PlantedBug::ALL.iter().copied().find(|bug| bug.name() == *name);
            let found = first_failure(0, count, Some(bug.expect("there is such a bug")));
            std::eprintln!(
                "{name}: {}",
                found.as_ref().map_or("not found".into(), |(seed, wrong)| {
                    format!("after {} schedules: {}", seed + 1, wrong.lines().next().unwrap_or_default())
                })
            );
            found.is_none()
        })
        .collect();
    _ = std::panic::take_hook();
    assert!(missed.is_empty(), "not found: {missed:?}");
}
