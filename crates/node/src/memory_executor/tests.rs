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
    assert_eq!(harness.pieces[0].0 - before.0, 1, "the clock is looked at after each entry");
    assert!(harness.executor.has_work());
}

#[test]
fn one_update_is_evaluated_in_a_turn_of_those_that_take_long() {
    let mut harness = Harness::new();
    let body = body_of(&[b"ZUNIONSTORE", b"to", b"1", b"from"]);
    let short = body_of(&[b"LPUSH", b"l", b"v"]);
    for _ in 0..2 {
        harness.resume(1);
        assert!(harness.executor.evaluate(&body).is_some());
        assert!(harness.executor.evaluate(&body).is_none(), "it would keep others waiting");
        assert!(harness.executor.evaluate(&short).is_some());
    }
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

/// Adds a hash of some megabytes at `h`, and executes that.
fn add_large_hash(harness: &mut Harness) {
    let fields: Vec<Vec<u8>> = (0..30_000).map(|number| format!("field:{number}").into_bytes()).collect();
    let pairs = fields.iter().flat_map(|field| [field.as_slice(), b"the value of the field"]);
    let words: Vec<&[u8]> = [&b"HSET"[..], b"h"].into_iter().chain(pairs).collect();
    harness.update(&words);
    harness.resume(u64::MAX);
    assert!(!harness.executor.has_work());
}

#[test]
fn what_is_left_of_a_large_value_goes_in_turns() {
    let mut harness = Harness::new();
    add_large_hash(&mut harness);
    harness.update(&[b"DEL", b"h"]);
    harness.resume(u64::MAX);
    let clock = || Instant(0);
    let mut left = harness.executor.engine().garbage_bytes();
    assert!(left > 1 << 20 && harness.executor.has_work());
    let mut turns = 0;
    while harness.executor.has_work() {
        assert!(harness.executor.go_on(clock).is_none());
        let now = harness.executor.engine().garbage_bytes();
        assert!((1..=4096 * NODES_PER_TURN as u64).contains(&(left - now)), "{} bytes at once", left - now);
        (left, turns) = (now, turns + 1);
    }
    assert!(turns >= 2 && left < GARBAGE_BYTES_MIN, "{left} bytes after {turns} turns");
    // What is left is not worth a turn; updates give it back.
    while harness.executor.engine().garbage_bytes() > 0 {
        harness.update(&[b"SET", b"k", b"v"]);
        harness.resume(u64::MAX);
    }
}

/// A read of this body that must not see what expires at `time` or before.
fn read_job(harness: &Harness, number: u64, words: &[&[u8]], time: Option<WallTime>) -> ReadJob {
    let (view, applied) = (View(0), harness.executor.executed());
    let (freshness, now, body) = (None, WallTime(0), Body::from(body_of(words)));
    ReadJob { to: CLIENT, view, number, body, freshness, applied, now, time }
}

#[test]
fn large_values_are_read_apart_two_at_a_time() {
    let mut harness = Harness::new();
    add_large_hash(&mut harness);
    let words: &[&[u8]] = &[b"HGETALL", b"h"];
    let mut expected = Vec::new();
    InMemory::read(harness.executor.engine(), WallTime(0), &body_of(words), &mut expected);
    for number in 0..3 {
        let job = read_job(&harness, number, words, None);
        assert!(harness.executor.read(job).is_none(), "it takes long");
    }
    let short = read_job(&harness, 3, &[b"HGET", b"h", b"field:1"], None);
    assert!(harness.executor.read(short).is_some());
    let clock = || Instant(0);
    let first = harness.executor.go_on(clock).expect("the first");
    let second = harness.executor.go_on(clock).expect("the second");
    assert!(harness.executor.go_on(clock).is_none() && !harness.executor.has_work(), "the third waits");
    harness.update(&[b"DEL", b"h"]);
    harness.resume(u64::MAX);
    let mut answered = |reply: LongReply, value: &[u8]| match reply.put_together() {
        ReadOutcome::Answer(to, Message::ReadReply { number, reply, .. }) => {
            assert_eq!((to, &*reply == value), (CLIENT, true));
            harness.executor.on_put_together();
            number
        }
        other => panic!("{other:?}"),
    };
    assert_eq!((answered(second, &expected), answered(first, &expected)), (1, 0));
    // It sees the moment at which it is begun.
    let third = harness.executor.go_on(clock).expect("the third");
    let mut empty = Vec::new();
    InMemory::read(harness.executor.engine(), WallTime(0), &body_of(words), &mut empty);
    let ReadOutcome::Answer(_, Message::ReadReply { reply, .. }) = third.put_together() else {
        panic!("no answer")
    };
    assert_eq!(*reply, *empty);
}

#[test]
fn what_expires_before_a_read_apart_begins_is_not_answered() {
    let mut harness = Harness::new();
    add_large_hash(&mut harness);
    let time = WallTime(10_000_000);
    let job = read_job(&harness, 0, &[b"HGETALL", b"h"], Some(time));
    assert!(harness.executor.read(job).is_none());
    harness.update(&[b"PEXPIRE", b"h", b"5"]);
    harness.resume(u64::MAX);
    let reply = harness.executor.go_on(|| Instant(0)).expect("it begins");
    assert!(matches!(reply.put_together(), ReadOutcome::NotRead(_)));
}

/// A body of so many of the same read.
fn repeated(words: &[&[u8]], times: usize) -> Body {
    Body::from(body_of(words).repeat(times))
}

/// Found by an adversary: three reads of minutes kept the large reads of everybody waiting, for good.
#[test]
fn reads_that_would_take_minutes_are_refused() {
    let mut harness = Harness::new();
    add_large_hash(&mut harness);
    let once = match harness.executor.engine().long_read(&body_of(&[b"HGETALL", b"h"])) {
        Some(LongRead::Detached { work }) => work,
        other => panic!("{other:?}"),
    };
    let most = MemoryEngine::READ_WORK_MAX / once;
    for (times, is_refused) in [(most, false), (most + 1, true)] {
        let body = repeated(&[b"HGETALL", b"h"], times);
        let outcome = harness.executor.read(ReadJob { body, ..read_job(&harness, 1, &[b"GET", b"k"], None) });
        assert_eq!(outcome.is_some(), is_refused, "{times} times {once}");
        if let Some(ReadOutcome::Answer(_, Message::ReadReply { reply, .. })) = outcome {
            let replies = syros_commands::Reply::decode_all(&reply).expect("whole replies");
            assert_eq!(replies.len(), times);
            let text = format!("{:?}", String::from_utf8_lossy(&reply));
            assert!(text.contains("MiB of collections, one after the other"), "{text}");
        }
    }
}

/// Whoever waits for one has asked again, or has gone, when the last of them would be begun.
#[test]
fn reads_apart_that_wait_are_bounded_by_their_work_and_wait_once() {
    let mut harness = Harness::new();
    add_large_hash(&mut harness);
    let Some(LongRead::Detached { work }) =
        harness.executor.engine().long_read(&body_of(&[b"HGETALL", b"h"]))
    else {
        panic!("it takes long")
    };
    let times = MemoryEngine::READ_WORK_MAX / work;
    let at_most = 2 + (4_usize << 30) / (times * work);
    for number in 0..40 {
        for _ in 0..2 {
            let body = repeated(&[b"HGETALL", b"h"], times);
            let job = ReadJob { body, ..read_job(&harness, number, &[b"GET", b"k"], None) };
            assert!(harness.executor.read(job).is_none());
        }
    }
    let mut begun = 0;
    while harness.executor.has_work() {
        // It is dropped: putting it together would take seconds.
        assert!(harness.executor.go_on(|| Instant(0)).is_some());
        harness.executor.on_put_together();
        begun += 1;
    }
    assert!((2..=at_most).contains(&begun), "{begun} of {at_most}");
    // There is room again.
    assert!(harness.executor.read(read_job(&harness, 50, &[b"HGETALL", b"h"], None)).is_none());
    assert!(harness.executor.go_on(|| Instant(0)).is_some());
}
