use super::*;

use std::cell::Cell;
use syros_protocol::message::{Path, Peer, Request};
use syros_protocol::replica::{Action, Boot, Config};
use syros_storage::conformance::body_of;
use syros_types::{
    Configuration, FastQuorum, Group, Now, OperationId, ReplicaId, ReplicaSet, SessionId, View,
};

const CLIENT: Peer = Peer::Client(7);

/// A group of one, whose disk takes no time.
struct Harness {
    replica: Replica,
    executor: MemoryExecutor<MemoryEngine>,
    now: Now,
    clock: Cell<u64>,
    /// Nanoseconds between two looks at the clock.
    step: u64,
    session: Option<(SessionId, u64)>,
    /// The last entries of each piece that was executed.
    pieces: Vec<OpNumber>,
}

impl Harness {
    fn new() -> Self {
        let now = Now { instant: Instant(1_000_000), wall: WallTime(1_000_000) };
        let describe = |body: &[u8]| syros_commands::describe(body).ok();
        let group = Group::new(1).expect("a group of one");
        let config =
            Config::new(Configuration::first(group, FastQuorum::Majority), ReplicaId(0), describe, |_, _| {
                true
            });
        let replica = Replica::new(config, Boot::Fresh, now);
        let executor = MemoryExecutor::new(MemoryEngine::new(), OpNumber(0));
        let mut harness =
            Self { replica, executor, now, clock: Cell::new(0), step: 0, session: None, pieces: Vec::new() };
        harness.resume(u64::MAX);
        harness.tell(Event::MemberConnected(7));
        harness.message(Message::Register { view: View(0), nonce: 3 });
        harness.message(Message::Attach { session: harness.session.expect("it has registered").0, nonce: 3 });
        harness.executor.pause();
        harness
    }

    fn message(&mut self, message: Message) {
        self.tell(Event::Message { from: CLIENT, message });
    }

    fn tell(&mut self, event: Event) {
        self.replica.handle(self.now, event);
        while let Some(action) = self.replica.poll() {
            match action {
                Action::Persist { ticket, .. } => self.replica.handle(self.now, Event::Persisted(ticket)),
                Action::Apply { through } => self.apply(through),
                Action::Send { message: Message::Registered { session, .. }, .. } => {
                    self.session = Some((session, 0));
                }
                _ => {}
            }
        }
    }

    fn apply(&mut self, through: OpNumber) {
        let clock = || {
            self.clock.set(self.clock.get() + self.step);
            Instant(self.clock.get())
        };
        if let Some(event) = self.executor.apply(&self.replica, through, clock, &mut ()) {
            let Event::Applied { through, .. } = event else { panic!("{event:?}") };
            self.pieces.push(through);
            self.replica.handle(self.now, event);
        }
    }

    /// One turn in which so many entries may be executed.
    fn resume(&mut self, allowance: u64) {
        if let Some(through) = self.executor.resume(allowance) {
            self.apply(through);
            self.tell(Event::Tick);
        }
    }

    fn update(&mut self, words: &[&[u8]]) {
        let (session, sequence) = self.session.expect("it has registered");
        let id = OperationId { session, sequence: sequence + 1 };
        self.session = Some((session, sequence + 1));
        let request = Request { id, micros: 1_000_000, acked_below: 1, body: Body::from(body_of(words)) };
        let (view, path, recipients) = (View(0), Path::Ordered, ReplicaSet(1));
        self.message(Message::Request { view, path, recipients, request });
    }
}

#[test]
fn entries_are_executed_in_pieces() {
    let mut harness = Harness::new();
    let before = harness.executor.executed();
    for number in 0..20_u32 {
        harness.update(&[b"APPEND", b"k", number.to_string().as_bytes()]);
    }
    assert_eq!(harness.executor.executed(), before, "it is paused");
    assert!(harness.executor.has_work());
    harness.pieces.clear();
    while harness.executor.has_work() {
        harness.resume(6);
        harness.executor.pause();
    }
    let lengths: Vec<u64> = harness.pieces.iter().map(|through| through.0 - before.0).collect();
    // The replica asks for the first before it knows of the others.
    assert_eq!(lengths, [1, 6, 12, 18, 20]);
    let mut reply = Vec::new();
    InMemory::read(harness.executor.engine(), WallTime(0), &body_of(&[b"STRLEN", b"k"]), &mut reply);
    let mut expected = Vec::new();
    syros_commands::Reply::Integer(30).encode(&mut expected);
    assert_eq!(reply, expected);
}

#[test]
fn a_piece_ends_when_it_has_taken_long() {
    let mut harness = Harness::new();
    let before = harness.executor.executed();
    for _ in 0..40 {
        harness.update(&[b"APPEND", b"k", b"v"]);
    }
    harness.step = 5_000_000;
    harness.pieces.clear();
    harness.resume(u64::MAX);
    let first = harness.pieces[0].0 - before.0;
    assert!((1..=ENTRIES_PER_LOOK).contains(&first), "{first}: the clock is looked at now and then");
    assert!(harness.executor.has_work());
}

#[test]
fn a_read_of_what_has_expired_is_not_answered() {
    let mut harness = Harness::new();
    harness.update(&[b"PSETEX", b"k", b"5", b"v"]);
    harness.resume(u64::MAX);
    let expiry = harness.executor.engine().next_expiry().expect("a key expires");
    assert!(matches!(harness.executor.expiry_news(), Some(Event::NextExpiry(Some(next))) if next == expiry));
    assert!(harness.executor.expiry_news().is_none(), "told once");
    for (time, answered) in [(WallTime(expiry.0 - 1), true), (expiry, false)] {
        let body = Body::from(body_of(&[b"GET", b"k"]));
        let (view, applied) = (View(0), harness.executor.executed());
        let (freshness, now, time) = (None, WallTime(0), Some(time));
        let job = ReadJob { to: CLIENT, view, number: 1, body, freshness, applied, now, time };
        let outcome = harness.executor.read(job).expect("it does not take long");
        assert_eq!(matches!(outcome, ReadOutcome::Answer(..)), answered, "{outcome:?}");
    }
}
