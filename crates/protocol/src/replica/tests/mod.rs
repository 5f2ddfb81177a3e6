//! Scripted situations on replicas that exchange messages without a network: what leaves, and what
//! is true afterwards. Random ones are the simulator's.

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

mod amnesia;
mod clocks;
mod hostile;
mod liveness;

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
        };
        cluster.deliver_all();
        // The leader has heard of the members, and of their clocks.
        cluster.pass(1);
        cluster
    }

    fn event(&mut self, replica: usize, event: Event) {
        if self.down.contains(&replica) {
            return;
        }
        let now = self.clock(replica);
        self.replicas[replica].handle(now, event);
        while let Some(action) = self.replicas[replica].poll() {
            match action {
                Action::Persist { ticket, .. } => match self.unwritten.get_mut(&replica) {
                    Some(unwritten) => *unwritten = ticket,
                    // The disk is instantaneous here.
                    None => self.replicas[replica].handle(now, Event::Persisted(ticket)),
                },
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
                Action::Apply { .. } if self.stuck => {}
                Action::Apply { through } => self.apply(replica, through),
                other => unreachable!("no snapshot is due in these tests: {other:?}"),
            }
        }
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
                    replies.push((OpNumber(n), Body::from(*b"reply")));
                }
            }
        }
        let now = self.clock(replica);
        self.replicas[replica].handle(now, Event::Applied { through, replies });
    }

    /// Delivers everything, until silence.
    fn deliver_all(&mut self) {
        while let Some((from, to, message)) = self.wire.pop_front() {
            if !self.down.contains(&from) && !self.cut.contains(&(from, to)) {
                let from = Peer::Replica(ReplicaId(from as u8));
                self.event(to, Event::Message { from, message });
            }
        }
    }

    /// Lets time pass, in steps of a millisecond.
    fn pass(&mut self, millis: u64) {
        for _ in 0..millis {
            self.now.instant.0 += 1_000_000;
            self.now.wall.0 += 1_000;
            for replica in 0..self.replicas.len() {
                if self.replicas[replica].deadline() <= self.now.instant {
                    self.event(replica, Event::Tick);
                }
            }
            self.deliver_all();
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

#[test]
fn a_nilext_update_is_acknowledged_before_it_is_ordered() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    let request = cluster.request(session, 1, 5, Path::Durability, "oA1");
    cluster.send(&[0, 1, 2], &request);
    assert_eq!(cluster.answers(), [(0, "ok"), (1, "ok"), (2, "ok")]);
    assert!(cluster.executed.iter().all(Vec::is_empty));
    cluster.pass(30);
    assert!(cluster.executed.iter().all(|executed| executed == &["oA1"]));
    assert!(cluster.replicas.iter().all(|replica| replica.dlog.is_empty()));
    // A duplicate is answered and not executed.
    cluster.send(&[0, 1], &request);
    assert_eq!(cluster.answers(), [(0, "committed"), (1, "ok")]);
    cluster.pass(30);
    assert_eq!(cluster.executed[0].len(), 1);
}

#[test]
fn an_older_timestamp_conflicts_and_the_leader_orders_at_once() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    let newer = cluster.request(session, 1, 50, Path::Durability, "oA1");
    let older = cluster.request(session, 2, 40, Path::Durability, "oA2");
    cluster.send(&[0, 1, 2], &newer);
    cluster.answers();
    cluster.send(&[0, 1, 2], &older);
    cluster.deliver_all();
    assert_eq!(cluster.answers(), [(1, "conflict"), (2, "conflict"), (0, "committed")]);
    assert_eq!(cluster.executed[0], ["oA1", "oA2"]);
}

#[test]
fn a_reference_without_body_is_fetched() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    let request = cluster.request(session, 1, 5, Path::Durability, "oA1");
    cluster.send(&[0, 1], &request);
    cluster.pass(100);
    assert!(cluster.executed.iter().all(|executed| executed == &["oA1"]));
}

/// Two bodies under one id: what the leader holds is what everybody executes. Before references carried a hash, the third
/// replica executed the other one.
#[test]
fn another_body_under_the_same_id_is_not_executed() {
    for path in [Path::Durability, Path::Ordered] {
        let mut cluster = Cluster::new(3, FastQuorum::Majority);
        let session = cluster.register();
        let other = cluster.request(session, 1, 5, Path::Durability, "oB2");
        cluster.send(&[2], &other);
        let request = cluster.request(session, 1, 5, path, "oA1");
        let recipients: &[usize] = if path == Path::Ordered { &[0] } else { &[0, 1] };
        cluster.send(recipients, &request);
        cluster.pass(100);
        assert!(cluster.executed.iter().all(|executed| executed == &["oA1"]), "{:?}", cluster.executed);
        // Nothing of the other one is left behind: an older update of its key is accepted by all.
        cluster.answers();
        let next = cluster.request(session, 2, 4, Path::Durability, "oB3");
        cluster.send(&[0, 1, 2], &next);
        assert_eq!(cluster.answers(), [(0, "ok"), (1, "ok"), (2, "ok")]);
    }
}

/// A session's id is an op number, which anybody can guess; its nonce is not.
#[test]
fn only_who_registered_a_session_can_use_it() {
    const STRANGER: Peer = Peer::Client(8);
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    let stolen = cluster.request(session, 1, 5, Path::Durability, "oA9");
    let refusals = |cluster: &mut Cluster| -> Vec<_> {
        let refusal = |(client, _, message)| match message {
            Message::Refused { refusal, .. } => (client, Some(refusal)),
            _ => (client, None),
        };
        cluster.inbox.drain(..).map(refusal).collect()
    };
    for nonce in [None, Some(2), Some(0)] {
        for replica in 0..3 {
            if let Some(nonce) = nonce {
                let message = Message::Attach { session, nonce };
                cluster.event(replica, Event::Message { from: STRANGER, message });
            }
            cluster.event(replica, Event::Message { from: STRANGER, message: stolen.clone() });
        }
        let refused = (8, Some(crate::message::Refusal::NotAttached));
        assert_eq!(refusals(&mut cluster), [refused; 3], "with nonce {nonce:?}");
    }
    let own = cluster.request(session, 1, 5, Path::Durability, "oA1");
    cluster.send(&[0, 1, 2], &own);
    assert_eq!(cluster.answers(), [(0, "ok"), (1, "ok"), (2, "ok")]);
    // Nor is anybody else told what an operation has returned.
    cluster.pass(30);
    cluster.event(0, Event::Message { from: STRANGER, message: own.clone() });
    assert_eq!(refusals(&mut cluster), [(8, Some(crate::message::Refusal::NotAttached))]);
    // Once its connection is closed, its number says nothing.
    cluster.event(0, Event::ClientGone(7));
    cluster.event(0, Event::Message { from: CLIENT, message: own });
    assert_eq!(cluster.answers(), [(0, "refused")]);
    assert!(cluster.executed.iter().all(|executed| executed == &["oA1"]));
}

/// A follower whose log ends before the registration cannot judge a claim, and takes no update on it: in a view change, what
/// somebody else sent under the id of a completed update could be recovered in its place.
#[test]
fn a_follower_takes_no_claim_on_trust() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    cluster.down.insert(2);
    let session = cluster.register();
    cluster.down.remove(&2);
    cluster.attach(session);
    let request = cluster.request(session, 1, 5, Path::Durability, "oA1");
    cluster.send(&[0, 1, 2], &request);
    assert_eq!(cluster.answers(), [(0, "ok"), (1, "ok"), (2, "refused")]);
    assert!(cluster.replicas[2].dlog.is_empty());
    // As soon as its log has the registration, it can.
    cluster.pass(200);
    cluster.attach(session);
    let next = cluster.request(session, 2, 6, Path::Durability, "oA2");
    cluster.inbox.clear();
    cluster.send(&[2], &next);
    assert_eq!(cluster.answers(), [(2, "ok")]);
}

/// Somebody takes all sessions that there are. Clients that come later get one all the same, and those in use keep theirs.
#[test]
fn sessions_that_nobody_uses_make_room() {
    const SESSIONS: u64 = 65_536;
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    let view = View(0);
    let register = |cluster: &mut Cluster, client: u64, nonce: u64| {
        let message = Message::Register { view, nonce };
        cluster.event(0, Event::Message { from: Peer::Client(client), message });
    };
    let in_use = cluster.request(session, 1, 5, Path::Durability, "oA1");
    cluster.send(&[0, 1, 2], &in_use);
    // One connection gets no further than its share.
    (0..1_000).for_each(|number| register(&mut cluster, 50, 10_000 + number));
    cluster.pass(50);
    assert!(cluster.replicas[0].sessions.len() <= 10, "{}", cluster.replicas[0].sessions.len());
    for batch in 0..SESSIONS / 1024 {
        (0..1024).map(|number| 1024 * batch + number).for_each(|number| {
            register(&mut cluster, 100 + number, 20_000 + number);
        });
        cluster.pass(5);
    }
    assert_eq!(cluster.replicas[0].sessions.len() as u64, SESSIONS);
    // A client that tries again until it has a session has one within a second.
    cluster.inbox.clear();
    let registered = |cluster: &Cluster, client: u64| {
        cluster
            .inbox
            .iter()
            .any(|(to, _, message)| *to == client && matches!(message, Message::Registered { .. }))
    };
    // A member's front end need not wait.
    cluster.event(0, Event::MemberConnected(60));
    register(&mut cluster, 60, 60);
    cluster.pass(20);
    assert!(registered(&cluster, 60));
    for millis in 0.. {
        assert!(millis < 1_000, "a client waits for a session");
        if millis % 200 == 0 {
            register(&mut cluster, 70, 70);
        }
        cluster.pass(1);
        if registered(&cluster, 70) {
            break;
        }
    }
    let next = cluster.request(session, 2, 6, Path::Durability, "oA2");
    cluster.inbox.clear();
    cluster.send(&[0, 1, 2], &next);
    assert_eq!(cluster.answers(), [(0, "ok"), (1, "ok"), (2, "ok")]);
}

/// A follower executes something else than the others: the leader finds that out by itself, and the follower hears of it.
#[test]
fn a_member_that_executed_something_else_is_found_and_answers_no_reads() {
    const SEGMENT: u64 = 8;
    for wrong in [0, 2] {
        let mut cluster = Cluster::new(3, FastQuorum::Majority);
        for replica in &mut cluster.replicas {
            replica.config.digest_entries = SEGMENT;
            replica.restart_digests(OpNumber(0));
        }
        let session = cluster.register();
        for sequence in 1..SEGMENT {
            let request = cluster.request(session, sequence, 5 + sequence, Path::Ordered, "oA1");
            cluster.send(&[0], &request);
            if sequence == 3 {
                // As if the memory of one had changed.
                let replica = &mut cluster.replicas[wrong];
                let entry = LogEntry { view: View(0), time: WallTime(9), payload: Payload::Tick };
                replica.digests.executed(OpNumber(SEGMENT + 1), &entry);
            }
            cluster.pass(30);
        }
        cluster.pass(100);
        let diverged: Vec<bool> = cluster.replicas.iter().map(|replica| replica.status().diverged).collect();
        assert_eq!(diverged, [wrong == 0, false, wrong == 2]);
        assert_eq!(cluster.replicas[0].status().divergences, 1);
        cluster.inbox.clear();
        let asked = Asked::StaleValue;
        let read = Message::Read { view: View(0), number: 1, asked, body: Body::from(*b"rA") };
        cluster.reads.clear();
        cluster.send(&[0, 1, 2], &read);
        let readers: Vec<usize> = cluster.reads.iter().map(|(replica, _)| *replica).collect();
        assert_eq!(readers, (0..3).filter(|replica| *replica != wrong).collect::<Vec<_>>());
        // One that leads does not for long.
        cluster.pass(2_000);
        assert!(cluster.leader() != wrong || wrong != 0);
        // The next segment is right again, and changes nothing of that; another's snapshot would.
        assert!(cluster.replicas[wrong].status().diverged);
        cluster.replicas[wrong].restart_digests(OpNumber(SEGMENT));
        assert!(!cluster.replicas[wrong].status().diverged);
    }
}

/// An `Ok` for an id says nothing of another body: whoever holds one refuses it by name.
#[test]
fn another_body_under_the_same_id_is_refused() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    let request = cluster.request(session, 1, 5, Path::Durability, "oA1");
    cluster.send(&[0, 1, 2], &request);
    assert_eq!(cluster.answers(), [(0, "ok"), (1, "ok"), (2, "ok")]);
    for path in [Path::Durability, Path::Ordered] {
        let other = cluster.request(session, 1, 5, path, "oA2");
        let to: &[usize] = if path == Path::Ordered { &[0] } else { &[0, 1, 2] };
        cluster.send(to, &other);
        let refused = |(_, _, message): (u64, usize, Message)| {
            matches!(message, Message::Refused { refusal: crate::message::Refusal::OtherOperation, .. })
        };
        assert_eq!(cluster.inbox.len(), to.len());
        assert!(cluster.inbox.drain(..).all(refused));
    }
    // So does a follower that has no more than the log of it.
    cluster.replicas[0].order_all();
    cluster.event(0, Event::Tick);
    cluster.deliver_all();
    let other = cluster.request(session, 1, 5, Path::Durability, "oA2");
    cluster.send(&[1], &other);
    assert_eq!(cluster.answers(), [(1, "refused")]);
    cluster.pass(30);
    assert!(cluster.executed.iter().all(|executed| executed == &["oA1"]));
}

/// Whoever was not sent an update by its client has it with the Prepare, and nobody else does.
#[test]
fn those_that_a_client_spares_get_the_body_from_the_leader() {
    let mut cluster = Cluster::new(5, FastQuorum::Majority);
    let session = cluster.register();
    let spread: ReplicaSet = [0, 1, 3].map(ReplicaId).into_iter().collect();
    let Message::Request { view, path, request, .. } =
        cluster.request(session, 1, 5, Path::Durability, "oA1")
    else {
        unreachable!()
    };
    let request = Message::Request { view, path, recipients: spread, request };
    cluster.send(&[0, 1, 3], &request);
    let everybody = cluster.request(session, 2, 6, Path::Durability, "oB1");
    cluster.send(&[0, 1, 2, 3, 4], &everybody);
    cluster.replicas[0].order_all();
    cluster.replicas[0].emit_batch();
    let mut full = [const { Vec::new() }; 5];
    while let Some(action) = cluster.replicas[0].poll() {
        if let Action::Send { to: Peer::Replica(to), message: Message::Prepare { entries, .. }, .. } = action
        {
            full[to.index()] = entries.iter().map(|entry| matches!(entry, Prepared::Full(_))).collect();
        }
    }
    let [spared, known] = [vec![true, false], vec![false, false]];
    assert_eq!(full, [vec![], known.clone(), spared.clone(), known, spared]);
    // The next batch does not have it again.
    let request = cluster.request(session, 3, 7, Path::Durability, "oC1");
    cluster.send(&[0, 1, 2, 3, 4], &request);
    cluster.replicas[0].order_all();
    assert!(
        cluster.replicas[0]
            .role
            .leading()
            .is_some_and(|leader| leader.batch.bodies.is_empty() && leader.batch.bytes == 0)
    );
}

#[test]
fn a_read_waits_for_what_is_pending_on_its_key_only() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    let request = cluster.request(session, 1, 5, Path::Durability, "oA1");
    cluster.send(&[0, 1, 2], &request);
    let view = View(0);
    cluster.send(&[0], &Message::Read { view, number: 1, asked: Asked::Answer, body: Body::from(*b"rB") });
    assert_eq!(cluster.reads, [(0, 1)]);
    cluster.send(&[0], &Message::Read { view, number: 2, asked: Asked::Answer, body: Body::from(*b"rA") });
    assert_eq!(cluster.reads, [(0, 1)]);
    cluster.deliver_all();
    assert_eq!((cluster.reads.clone(), cluster.executed[0].len()), (vec![(0, 1), (0, 2)], 1));
}

/// A reader that was told of an entry which a view change has dropped since would wait for ever, and take the
/// place of others.
#[test]
fn nobody_waits_for_an_entry_that_is_not_in_the_log() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    let request = cluster.request(session, 1, 5, Path::Ordered, "uA1");
    cluster.send(&[0], &request);
    cluster.deliver_all();
    cluster.inbox.clear();
    let end = cluster.replicas[1].log.op_number();
    let ask = |cluster: &mut Cluster, replica: usize, after: OpNumber| {
        let asked = Asked::Value { after };
        let body = Body::from(*b"rA");
        cluster.send(&[replica], &Message::Read { view: View(0), number: 1, asked, body });
    };
    for replica in 0..3 {
        ask(&mut cluster, replica, end.next());
    }
    let refused = |(_, _, message): &(u64, usize, Message)| {
        matches!(message, Message::ReadRefused { refusal: crate::message::Refusal::NotNormal, .. })
    };
    assert!(cluster.inbox.len() == 3 && cluster.inbox.iter().all(refused), "{:?}", cluster.inbox);
    // One that is in the log is waited for, and the value comes when it is executed.
    assert!(cluster.replicas[1].applied() < end && cluster.reads.is_empty());
    ask(&mut cluster, 1, end);
    assert!(cluster.reads.is_empty());
    cluster.pass(10);
    assert_eq!(cluster.reads, [(1, 1)]);
}

/// Found by seed 12017947: a client that was refused by a replica between views believed in a view that never began.
#[test]
fn a_reader_hears_of_no_view_that_has_not_begun() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let moved = Message::StartViewChange { view: View(4), reason: ViewChangeReason::Moved };
    cluster.event(2, Event::Message { from: Peer::Replica(ReplicaId(0)), message: moved });
    assert_eq!((cluster.replicas[2].view(), cluster.replicas[2].is_normal()), (View(4), false));
    cluster.inbox.clear();
    for asked in [Asked::Value { after: OpNumber(0) }, Asked::StaleValue] {
        let message = Message::Read { view: View(0), number: 1, asked, body: Body::from(*b"rA") };
        cluster.replicas[2].handle(cluster.now, Event::Message { from: CLIENT, message });
    }
    let told = core::iter::from_fn(|| cluster.replicas[2].poll()).filter_map(|action| match action {
        Action::Send { to: Peer::Client(_), message: Message::ReadRefused { view, refusal, .. }, .. } => {
            Some((view, Some(refusal)))
        }
        Action::Read { view, .. } => Some((view, None)),
        _ => None,
    });
    let told: Vec<_> = told.collect();
    assert_eq!(told, [(View(0), Some(crate::message::Refusal::NotNormal)), (View(0), None)]);
}

/// Found by seed 70053421: a leader told a client what an update returned, and had forgotten the view it led after a
/// crash. Leading the same view once more, with another log, it would have been believed.
#[test]
fn nothing_is_told_out_of_a_view_that_a_crash_undoes() {
    let mut cluster = Cluster::new(3, FastQuorum::NilextOrCommutative);
    let session = cluster.register();
    cluster.down.insert(0);
    cluster.unwritten.insert(1, Ticket(0));
    let leads = |cluster: &Cluster| cluster.replicas[1].is_leader() && cluster.replicas[1].is_normal();
    for _ in 0..5_000 {
        if leads(&cluster) {
            break;
        }
        cluster.pass(1);
    }
    assert!(leads(&cluster) && cluster.unwritten[&1] > Ticket(0), "it does not wait for its own disk");
    cluster.inbox.clear();
    let view = cluster.replicas[1].view();
    let read = |number| Message::Read {
        view,
        number,
        asked: Asked::Value { after: OpNumber(0) },
        body: Body::from(*b"rA"),
    };
    let update = |sequence| {
        let id = OperationId { session, sequence };
        let request = Request { id, micros: 5, acked_below: 1, body: Body::from(*b"uB1") };
        Message::Request { view, path: Path::Durability, recipients: ReplicaSet::ALL, request }
    };
    cluster.attach(session);
    cluster.send(&[1], &read(1));
    cluster.send(&[1], &update(1));
    let refused =
        Message::ReadRefused { view: View(0), number: 1, refusal: crate::message::Refusal::NotNormal };
    assert_eq!(cluster.inbox, [(7, 1, refused)]);
    assert_eq!((cluster.reads.len(), cluster.evaluated), (0, 0), "the update is ordered instead");
    let ticket = cluster.unwritten.remove(&1).unwrap();
    cluster.event(1, Event::Persisted(ticket));
    cluster.pass(50);
    assert!(cluster.executed[1].iter().any(|body| body == "uB1"));
    cluster.send(&[1], &read(2));
    cluster.send(&[1], &update(2));
    assert_eq!((cluster.reads.len(), cluster.evaluated), (1, 1));
}

/// What it waits for itself, a replica has to be told at once; of the rest it may hear later.
#[test]
fn replicas_await_their_view_and_leaders_their_entries() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    for replica in [0, 1] {
        cluster.unwritten.insert(replica, Ticket(0));
    }
    let awaited = |cluster: &Cluster| [0, 1].map(|replica| cluster.replicas[replica].awaited());
    assert_eq!(awaited(&cluster), [None, None]);
    let update = cluster.request(session, 1, 1, Path::Durability, "oA1");
    cluster.send(&[0, 1, 2], &update);
    let accepted = cluster.unwritten.clone();
    assert!(accepted.values().all(|ticket| *ticket > Ticket(0)), "its record is on its way to the disk");
    assert_eq!(awaited(&cluster), [None, None], "clients wait for that, and nobody else");
    cluster.pass(10);
    let ordered = cluster.unwritten.clone();
    assert!(ordered.iter().all(|(replica, ticket)| *ticket > accepted[replica]));
    assert_eq!(awaited(&cluster), [Some(ordered[&0]), None], "a leader counts its own copies");
    cluster.event(0, Event::Persisted(accepted[&0]));
    assert_eq!(awaited(&cluster), [Some(ordered[&0]), None]);
    cluster.event(0, Event::Persisted(ordered[&0]));
    assert_eq!(awaited(&cluster), [None, None]);

    // The follower, which has heard of nothing, goes on to lead: it counts its copies as well, and waits for its view.
    cluster.down.insert(0);
    cluster.pass(1_000);
    assert!(cluster.replicas[1].is_leader());
    assert_eq!(awaited(&cluster)[1], Some(ordered[&1]));
    cluster.event(1, Event::Persisted(ordered[&1]));
    assert!(awaited(&cluster)[1] > Some(ordered[&1]));
    let newest = cluster.unwritten.remove(&1).unwrap();
    cluster.event(1, Event::Persisted(newest));
    cluster.pass(50);
    assert!(cluster.replicas[1].is_normal());
    assert_eq!(awaited(&cluster)[1], None);
}

#[test]
fn a_leader_without_lease_answers_after_a_round_of_heartbeats() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    cluster.register();
    cluster.now.instant.0 += 260_000_000;
    cluster.send(
        &[0],
        &Message::Read { view: View(0), number: 1, asked: Asked::Answer, body: Body::from(*b"rA") },
    );
    assert!(cluster.reads.is_empty());
    cluster.deliver_all();
    assert_eq!(cluster.reads, [(0, 1)]);
}

#[test]
fn a_view_change_recovers_what_was_acknowledged() {
    for mode in [FastQuorum::Majority, FastQuorum::Supermajority] {
        for n in [3, 5, 7, 9] {
            let mut cluster = Cluster::new(n, mode);
            let session = cluster.register();
            let everyone: Vec<usize> = (0..n).collect();
            for (sequence, body) in [(1, "oA1"), (2, "oB1"), (3, "oA2")] {
                let request = cluster.request(session, sequence, sequence, Path::Durability, body);
                cluster.send(&everyone, &request);
            }
            cluster.down.insert(0);
            cluster.wire.clear();
            cluster.pass(700);
            assert_eq!(cluster.leader(), 1);
            let expected: &[&str] =
                if mode == FastQuorum::Majority { &["oB1", "oA2"] } else { &["oA1", "oB1", "oA2"] };
            assert!(
                cluster.executed[1..].iter().all(|executed| executed == expected),
                "{:?}",
                cluster.executed
            );
            // The old leader, which slept, is let in again.
            cluster.down.clear();
            cluster.pass(300);
            assert!(cluster.replicas.iter().all(|replica| replica.is_normal() && replica.view() == View(1)));
            assert_eq!(cluster.executed[0], expected);
        }
    }
}

#[test]
fn one_replica_without_links_disturbs_nobody() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    cluster.down.insert(2);
    cluster.pass(2000);
    cluster.down.clear();
    cluster.pass(500);
    assert!(cluster.replicas.iter().all(|replica| replica.view() == View(0) && replica.is_normal()));
}

/// Whose view changes have come to nothing waits longer each time. Those that have not waited in vain need
/// not wait for it: found by the simulator, as a group that took seconds to go on.
#[test]
fn a_replica_that_has_backed_off_goes_along_with_others() {
    let mut cluster = Cluster::new(5, FastQuorum::Majority);
    let start_view_change = |from: u8, view: u64, reason: ViewChangeReason| Event::Message {
        from: Peer::Replica(ReplicaId(from)),
        message: Message::StartViewChange { view: View(view), reason },
    };
    for view in 1..=6 {
        cluster.event(4, start_view_change(0, view, ViewChangeReason::Moved));
    }
    assert_eq!(cluster.replicas[4].view(), View(6));
    cluster.event(4, start_view_change(1, 7, ViewChangeReason::Suspicion));
    assert_eq!(cluster.replicas[4].view(), View(6), "one alone may have a bad link");
    cluster.event(4, start_view_change(2, 7, ViewChangeReason::Suspicion));
    assert_eq!(cluster.replicas[4].view(), View(7), "f others and this one are a majority");
}

#[test]
fn an_amnesiac_enters_only_a_new_view() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    let request = cluster.request(session, 1, 5, Path::Ordered, "uA1");
    cluster.send(&[0], &request);
    cluster.deliver_all();
    assert_eq!(cluster.answers(), [(0, "committed")]);
    let config = cluster.replicas[2].config.clone();
    cluster.replicas[2] = Replica::new(config, Boot::Amnesiac { view: View(0) }, cluster.now);
    cluster.executed[2].clear();
    cluster.pass(500);
    assert!(cluster.replicas.iter().all(|replica| replica.is_normal() && replica.view() == View(3)));
    assert!(cluster.executed.iter().all(|executed| executed == &["uA1"]));
}

/// Found by seed 73010310: the file with the record that says so was gone, and the log began with the next one, in the
/// next file.
#[test]
fn an_amnesiac_whose_log_has_lost_its_beginning_is_one() {
    let config = Cluster::new(3, FastQuorum::Majority).replicas[2].config.clone();
    let (view, base) = (View(4), OpNumber(9));
    let checkpoint = |amnesiac| {
        Record::Checkpoint(Box::new(Checkpoint {
            view,
            last_normal: view,
            base,
            base_view: View(3),
            base_time: WallTime(5),
            commit: base,
            suffix: Vec::new(),
            dlog: Vec::new(),
            amnesiac,
        }))
    };
    let enter = Record::EnterView { view: View(5), base, commit: base, suffix: Vec::new() };
    let restore = |snapshots: &[OpNumber], first: u64, records: &[Record]| {
        let mut restored = Restored::new(&config, snapshots.iter().copied());
        for (number, record) in (first..).zip(records) {
            restored.replay(number, record.clone()).unwrap();
        }
        (restored.is_amnesiac(), restored.view(), restored.needed_snapshot())
    };
    for snapshots in [&[base][..], &[]] {
        let amnesiac = (true, view, Ok(None));
        assert_eq!(restore(snapshots, 1, &[Record::Forgot { view }, checkpoint(true)]), amnesiac);
        assert_eq!(restore(snapshots, 2, &[checkpoint(true)]), amnesiac);
    }
    assert_eq!(restore(&[base], 2, &[checkpoint(false)]), (false, view, Ok(Some(base))));
    assert_eq!(restore(&[base], 2, &[checkpoint(true), enter]), (false, View(5), Ok(Some(base))));
}

#[test]
fn a_follower_far_behind_catches_up_across_a_view_change() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    cluster.down.insert(2);
    for sequence in 1..=20_000 {
        let request = cluster.request(session, sequence, sequence, Path::Ordered, "uA1");
        cluster.send(&[0], &request);
        cluster.deliver_all();
    }
    assert_eq!(cluster.executed[0].len(), 20_000);
    // A new view, in which the laggard is needed.
    let view = View(3);
    let reason = ViewChangeReason::Moved;
    let from = Peer::Replica(ReplicaId(1));
    cluster.event(0, Event::Message { from, message: Message::StartViewChange { view, reason } });
    cluster.deliver_all();
    cluster.down.clear();
    cluster.down.insert(1);
    cluster.pass(2000);
    assert_eq!(cluster.executed[2].len(), 20_000);
    assert!(cluster.replicas[2].is_normal());
}

#[test]
fn recovered_updates_are_one_entry() {
    let mut cluster = Cluster::new(3, FastQuorum::Supermajority);
    let session = cluster.register();
    for (sequence, body) in [(1, "mA1"), (2, "mB1")] {
        let request = cluster.request(session, sequence, sequence, Path::Durability, body);
        cluster.send(&[0, 1, 2], &request);
    }
    cluster.down.insert(0);
    cluster.pass(700);
    let entry = cluster.replicas[1].entry(cluster.replicas[1].applied()).clone();
    assert!(matches!(entry.payload, Payload::Recovered(updates) if updates.len() == 2));
}

#[test]
fn malformed_and_misplaced_requests_are_refused_without_a_trace() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    for (path, body) in [
        (Path::Durability, "x"),
        (Path::Durability, ""),
        (Path::Durability, "mA"),
        (Path::Durability, "uA"),
        (Path::Ordered, "rA"),
    ] {
        let request = cluster.request(session, 1, 5, path, body);
        cluster.send(&[0], &request);
        assert_eq!(cluster.answers(), [(0, "refused")], "{body}");
    }
    let skewed = cluster.request(session, 1, u64::MAX, Path::Durability, "oA");
    let unknown = cluster.request(SessionId(99), 1, 5, Path::Ordered, "uA");
    cluster.send(&[0], &skewed);
    cluster.send(&[0], &unknown);
    assert_eq!(cluster.answers(), [(0, "refused"), (0, "refused")]);
    cluster.pass(50);
    assert!(cluster.executed[0].is_empty() && cluster.replicas[0].dlog.is_empty());
}

#[test]
fn recovery_leaves_out_only_what_is_dealt_with() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    cluster.send(&[0, 1, 2], &cluster.request(session, 1, 1, Path::Durability, "oa1"));
    cluster.pass(50);
    let replica = &cluster.replicas[1];
    let id = |session, sequence| OperationId { session, sequence };
    assert!(!replica.may_recover(id(session, 1)), "executed");
    assert!(!replica.may_recover(id(session, 0)), "acknowledged");
    assert!(replica.may_recover(id(session, 2)));
    // What was executed here may be far behind what the leader had executed when it accepted this.
    assert!(replica.may_recover(id(session, 1 + 2 * crate::sessions::SESSION_WINDOW_MAX)));
    assert!(!replica.may_recover(id(SessionId(replica.applied.0), 1)), "no such session, or no longer");
    assert!(replica.may_recover(id(SessionId(replica.applied.0 + 1), 1)), "registered in entries to come");
}

/// What an update returned is not kept where the session table has no room for it. Whoever waits for it hears it; to the
/// copies that come later, nobody claims to know it, and no copy is executed.
#[test]
fn a_reply_that_is_not_kept_is_told_once() {
    let mut cluster = Cluster::with(3, FastQuorum::Majority, |config| config.reply_bytes_max = 0);
    let session = cluster.register();
    let request = cluster.request(session, 1, 5, Path::Ordered, "uA1");
    cluster.send(&[0], &request);
    cluster.pass(30);
    let told = cluster.inbox.drain(..).filter_map(|(_, from, message)| match message {
        Message::Committed { reply, .. } => Some((from, reply)),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), [(0, Body::from(*b"reply"))]);
    assert!(cluster.replicas.iter().all(|replica| replica.reply_bytes() == 0));
    cluster.send(&[0], &request);
    let refusal = crate::message::Refusal::ReplyDropped;
    assert!(matches!(&cluster.inbox[0].2, Message::Refused { refusal: why, .. } if *why == refusal));
    assert_eq!(cluster.answers(), [(0, "refused")]);
    cluster.pass(30);
    assert!(cluster.executed.iter().all(|executed| executed == &["uA1"]));
}

/// A client that acknowledges nothing is refused everywhere once the session table is full, for now and without a trace;
/// what it acknowledges makes room again.
#[test]
fn a_full_session_table_takes_no_more_from_who_has_more_than_its_share() {
    let mut cluster = Cluster::with(3, FastQuorum::Majority, |config| {
        config.completions_max = 4;
    });
    let [greedy, modest] = [cluster.register(), cluster.register()];
    for far in [1, 100, 200, 300] {
        let request = cluster.request(greedy, far, 5, Path::Durability, &alloc::format!("oA{far}"));
        cluster.send(&[0, 1, 2], &request);
        assert_eq!(cluster.answers(), [(0, "ok"), (1, "ok"), (2, "ok")]);
        cluster.pass(50);
    }
    let refused = cluster.request(greedy, 301, 5, Path::Durability, "oA301");
    cluster.send(&[0, 1, 2], &refused);
    let refusal = crate::message::Refusal::Overloaded;
    assert!(matches!(&cluster.inbox[0].2, Message::Refused { refusal: why, .. } if *why == refusal));
    assert_eq!(cluster.answers(), [(0, "refused"), (1, "refused"), (2, "refused")]);
    assert!(cluster.replicas.iter().all(|replica| replica.dlog.is_empty()));
    cluster.send(&[0, 1, 2], &cluster.request(modest, 1, 5, Path::Durability, "oB1"));
    assert_eq!(cluster.answers(), [(0, "ok"), (1, "ok"), (2, "ok")]);
    cluster.pass(50);
    assert_eq!(cluster.replicas[1].sessions.completions(), 5);
    let mut acknowledging = refused;
    if let Message::Request { request, .. } = &mut acknowledging {
        request.acked_below = 301;
    }
    cluster.send(&[0, 1, 2], &acknowledging);
    assert_eq!(cluster.answers(), [(0, "ok"), (1, "ok"), (2, "ok")]);
    cluster.pass(50);
    assert!(cluster.replicas.iter().all(|replica| replica.sessions.completions() == 2));
}

/// A client that sends an update to others, too, does not count on the leader's refusal of the first copy, which it may not
/// have heard: when there is room again, the update is welcome.
#[test]
fn an_update_that_was_refused_alone_is_welcome_among_all() {
    let last = |bug| {
        let mut cluster = Cluster::with(3, FastQuorum::Majority, |config| {
            (config.completions_max, config.sessions_max) = (2, 1);
            planted(bug)(config);
        });
        let session = cluster.register();
        let alone = ReplicaSet::default().with(ReplicaId(0));
        let mut send = |sequence, acked_below, sent_to| {
            let body = alloc::format!("u{}{sequence}", char::from(b'A' + sequence as u8));
            let mut message = cluster.request(session, sequence, 5, Path::Ordered, &body);
            if let Message::Request { request, recipients, .. } = &mut message {
                (request.acked_below, *recipients) = (acked_below, sent_to);
            }
            cluster.send(&[0], &message);
            cluster.pass(50);
            cluster.answers()
        };
        assert_eq!(send(1, 1, alone), [(0, "committed")]);
        assert_eq!(send(2, 1, alone), [(0, "committed")]);
        assert_eq!(send(3, 1, alone), [(0, "refused")]);
        assert_eq!(send(4, 3, alone), [(0, "committed")], "which makes room");
        assert_eq!(send(3, 1, alone), [(0, "refused")], "a copy of the first");
        send(3, 1, ReplicaSet::ALL)
    };
    assert_eq!(last(None), [(0, "committed")]);
    if cfg!(feature = "planted-bugs") {
        assert_eq!(last(Some(PlantedBug::CrowdedOutForGood)), [(0, "refused")]);
    }
}

/// A client takes for refused for good what it has sent once, to the leader alone: a copy on its way must not take effect
/// when the session table has room again.
#[test]
fn a_full_session_table_refuses_for_good_what_went_to_the_leader_alone() {
    let mut cluster = Cluster::with(3, FastQuorum::Majority, |config| {
        config.completions_max = 1;
    });
    let session = cluster.register();
    cluster.send(&[0, 1, 2], &cluster.request(session, 1, 5, Path::Durability, "oA1"));
    cluster.pass(50);
    cluster.answers();
    let Message::Request { view, request, .. } = cluster.request(session, 9, 6, Path::Ordered, "uA9") else {
        unreachable!()
    };
    let alone = Message::Request { view, path: Path::Ordered, recipients: ReplicaSet(1), request };
    cluster.send(&[0], &alone);
    assert_eq!(cluster.answers(), [(0, "refused")]);
    for replica in &mut cluster.replicas {
        replica.config.completions_max = 100;
    }
    cluster.send(&[0], &alone);
    cluster.pass(50);
    assert_eq!(cluster.answers(), [(0, "refused")]);
    assert!(cluster.executed.iter().all(|executed| executed == &["oA1"]));
}

/// What an engine on disk has yet to execute is bounded: beyond, updates are refused, and taken again when it has
/// caught up.
#[test]
fn an_engine_that_is_behind_is_not_outrun() {
    let mut cluster = Cluster::new(1, FastQuorum::Majority);
    cluster.replicas[0].config.engine_is_durable = true;
    let session = cluster.register();
    let body = ["ua", &"x".repeat(1 << 20)].concat();
    let mut sequence = 0;
    let mut send = |cluster: &mut Cluster| {
        sequence += 1;
        let message = cluster.request(session, sequence, 1_000_000 + sequence, Path::Ordered, &body);
        cluster.event(0, Event::Message { from: CLIENT, message });
        cluster.pass(1);
        let refused = |(_, _, message): &(u64, usize, Message)| {
            matches!(message, Message::Refused { refusal: crate::message::Refusal::Overloaded, .. })
        };
        let refused = cluster.inbox.iter().any(refused);
        cluster.inbox.clear();
        refused
    };
    cluster.stuck = true;
    let taken = (0..100).take_while(|_| !send(&mut cluster)).count();
    assert!((60..=65).contains(&taken), "{taken} updates of 1 MiB were taken");
    assert!(send(&mut cluster), "nothing has changed");
    cluster.stuck = false;
    let through = cluster.replicas[0].commit;
    cluster.replicas[0].apply_requested = through;
    cluster.apply(0, through);
    assert!(!send(&mut cluster), "there is room again");
}

/// Every view change has a cause in the trace of each replica that takes part, and says how long it took.
#[test]
fn replicas_say_why_views_change() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    cluster.pass(100);
    assert_eq!(cluster.traced, []);
    cluster.down.insert(0);
    cluster.pass(400);
    let (view, leader) = (View(0), ReplicaId(0));
    for member in [1, 2] {
        let events = cluster.traced.iter().filter(|(replica, _)| *replica == member);
        let [suspected, left, entered] = events.map(|(_, event)| *event).collect::<Vec<_>>()[..] else {
            unreachable!("{:?}", cluster.traced)
        };
        let TraceEvent::Suspected { silent, .. } = suspected else { unreachable!("{suspected:?}") };
        assert!(silent >= cluster.replicas[member].config.suspect_after);
        assert_eq!(suspected, TraceEvent::Suspected { view, leader, silent });
        let TraceEvent::LeftView { from: View(0), to: View(1), cause } = left else {
            unreachable!("{left:?}")
        };
        let (silent, followed) =
            (ViewChangeCause::LeaderSilent, ViewChangeCause::Followed(ReplicaId(3 - member as u8)));
        assert!(cause == silent || cause == followed, "{cause:?}");
        let TraceEvent::EnteredView { took, .. } = entered else { unreachable!("{entered:?}") };
        assert!(took < Duration::from_millis(10));
        assert_eq!(entered, TraceEvent::EnteredView { view: View(1), leader: ReplicaId(1), took });
    }
    // The old one comes back and finds the view gone; then the leader is told to let it lead.
    cluster.down.clear();
    cluster.pass(100);
    assert!(cluster.replicas.iter().all(|replica| replica.is_normal() && replica.view == View(1)));
    cluster.traced.clear();
    cluster.send(&[1], &Message::HandOver { to: ReplicaId(2) });
    cluster.pass(50);
    let cause = ViewChangeCause::HandedOver(ReplicaId(2), HandOverReason::Requested);
    assert_eq!(cluster.traced[0], (1, TraceEvent::LeftView { from: View(1), to: View(2), cause }));
    assert!(cluster.traced.contains(&(
        0,
        TraceEvent::LeftView { from: View(1), to: View(2), cause: ViewChangeCause::LeaderLeft }
    )));
}

/// An engine on disk answers later than it is asked, and a driver handles several events before it looks at what is to
/// be done: what happens in between may be of another view than the answer says it is of.
#[test]
fn an_answer_names_the_entry_that_was_executed_when_it_was_asked_for() {
    let mut cluster = Cluster::new(1, FastQuorum::Majority);
    let session = cluster.register();
    cluster.stuck = true;
    let before = cluster.replicas[0].applied();
    let message = cluster.request(session, 1, 1_000_001, Path::Ordered, "oA1");
    cluster.event(0, Event::Message { from: CLIENT, message });
    let through = cluster.replicas[0].apply_requested;
    assert!(through > before, "the engine is to execute it");
    let (asked, body) = (Asked::Value { after: OpNumber(0) }, Body::from(*b"rA"));
    let message = Message::Read { view: View(0), number: 1, asked, body };
    cluster.replicas[0].handle(cluster.now, Event::Message { from: CLIENT, message });
    cluster.replicas[0].handle(cluster.now, Event::Applied { through, replies: Vec::new() });
    let named = core::iter::from_fn(|| cluster.replicas[0].poll()).find_map(|action| match action {
        Action::Read { applied, .. } => Some(applied),
        _ => None,
    });
    assert_eq!(named, Some(before));
}

/// A leader that was stopped hears first of all that the others have moved on. It follows them; taking the lead back
/// would cost the group another view change.
#[test]
fn a_leader_that_was_stopped_leaves_the_lead_to_its_successor() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    cluster.pass(1_000);
    cluster.down.insert(0);
    cluster.pass(400);
    assert_eq!((cluster.leader(), cluster.replicas[1].view()), (1, View(1)));
    cluster.down.clear();
    let moved = Message::StartViewChange { view: View(1), reason: ViewChangeReason::Moved };
    cluster.event(0, Event::Message { from: Peer::Replica(ReplicaId(2)), message: moved });
    cluster.deliver_all();
    cluster.pass(100);
    assert!(cluster.replicas.iter().all(|replica| replica.is_normal() && replica.view() == View(1)));
}

#[test]
fn a_replica_whose_disk_takes_nothing_tells_its_status() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    // Its view never reaches the disk.
    cluster.unwritten.insert(0, Ticket(0));
    cluster.event(0, Event::StepDown);
    assert!(!cluster.replicas[0].persistence.has_view());
    let now = cluster.clock(0);
    cluster.replicas[0].handle(now, Event::PersistFailed);
    cluster.replicas[0].handle(now, Event::Message { from: CLIENT, message: Message::StatusRequest });
    let answer = core::iter::from_fn(|| cluster.replicas[0].poll()).find_map(|action| match action {
        Action::Send { message: Message::Status(report), after, .. } => Some((report, after)),
        _ => None,
    });
    let (report, after) = answer.unwrap();
    assert!(report.disk_failed && report.role == RoleName::ViewChange, "{report:?}");
    assert!(after <= cluster.replicas[0].persistence.persisted(), "it waits for {after:?}");
}

#[test]
fn a_majority_without_memory_says_so() {
    let is_gone = |traced: &(usize, TraceEvent)| matches!(traced.1, TraceEvent::MemoryGone { .. });
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let forget = |cluster: &mut Cluster, member: usize| {
        let config = cluster.replicas[member].config.clone();
        let view = cluster.replicas[member].view();
        cluster.replicas[member] = Replica::new(config, Boot::Amnesiac { view }, cluster.now);
        cluster.executed[member].clear();
    };
    forget(&mut cluster, 2);
    cluster.pass(2000);
    assert!(cluster.replicas.iter().all(Replica::is_normal), "the others remember");
    forget(&mut cluster, 2);
    forget(&mut cluster, 1);
    assert!(!cluster.traced.iter().any(is_gone), "{:?}", cluster.traced);
    cluster.pass(2000);
    let told: Vec<_> = cluster.traced.iter().filter(|traced| is_gone(traced)).collect();
    let members = [ReplicaId(1), ReplicaId(2)].into_iter().collect();
    let event = TraceEvent::MemoryGone { members };
    assert!(told.len() == 2 && told.contains(&&(1, event)) && told.contains(&&(2, event)), "{told:?}");
}
