use super::*;

use core::cell::Cell;

use syros_protocol::message::{Path, Prepared, Request, ViewChangeReason};
use syros_protocol::record::Record;
use syros_protocol::replica::{Boot, Config, Durability};
use syros_storage::conformance::body_of;
use syros_storage::{MemoryEngine, MemoryStore};
use syros_types::{Configuration, EvictionSettings, FastQuorum, Group, ReplicaId, ReplicaSet, SessionId};

const CLIENT: Peer = Peer::Client(7);

/// The driver of a group of one. The test appends records and makes them durable.
struct Harness {
    driver: ReplicaDriver<MemoryEngine, MemoryStore, Message>,
    now: Now,
    /// What has been appended.
    appended: Vec<(Ticket, Record)>,
    /// What has left.
    sent: Vec<Message>,
    notices: Vec<Notice>,
    /// What the engine's clock shows executing an entry to take.
    execution_time: Duration,
}

impl Harness {
    fn new(change: impl FnOnce(&mut Config)) -> Self {
        let now = Now { instant: Instant(1_000_000), wall: WallTime(1_000_000) };
        let describe = |body: &[u8]| syros_commands::describe(body).ok();
        let group = Group::new(1).expect("a group of one");
        let mut config =
            Config::new(Configuration::first(group, FastQuorum::Majority), ReplicaId(0), describe, |_, _| {
                true
            });
        change(&mut config);
        let replica = Replica::new(config, Boot::Fresh, now);
        let execution = Execution::InMemory(Box::new(MemoryExecutor::new(MemoryEngine::new(), OpNumber(0))));
        let driver = ReplicaDriver::new(replica, execution, SnapshotSizes::SERVER, now);
        let mut harness = Self {
            driver,
            now,
            appended: Vec::new(),
            sent: Vec::new(),
            notices: Vec::new(),
            execution_time: Duration::ZERO,
        };
        harness.driver.handle(now, Event::MemberConnected(7));
        harness
    }

    /// A harness with a session.
    fn attached() -> Self {
        let mut harness = Self::new(|_| {});
        harness.message(Message::Register { view: View(0), nonce: 3 });
        harness.make_durable();
        let registered = harness.sent.iter().find_map(|message| match message {
            Message::Registered { session, .. } => Some(*session),
            _ => None,
        });
        let session = registered.expect("it is registered");
        assert_eq!(session, SessionId(1));
        harness.message(Message::Attach { session, nonce: 3 });
        harness.sent.clear();
        harness
    }

    fn message(&mut self, message: Message) {
        self.driver.handle(self.now, Event::Message { from: CLIENT, message });
        self.turn();
    }

    fn set(&mut self, sequence: u64, value: &str) {
        self.request(sequence, Path::Durability, &[b"SET", b"key", value.as_bytes()]);
    }

    fn request(&mut self, sequence: u64, path: Path, words: &[&[u8]]) -> Body {
        let id = OperationId { session: SessionId(1), sequence };
        let body = Body::from(body_of(words));
        let sent = Arc::clone(&body);
        let request = Request { id, micros: 1_000_000, acked_below: 1, body };
        let (view, recipients) = (View(0), ReplicaSet(1));
        self.message(Message::Request { view, path, recipients, request });
        sent
    }

    /// What the event loop does in a turn, but for making records durable.
    fn turn(&mut self) {
        let (now, step) = (self.now, self.execution_time);
        let shown = Cell::new(now.instant);
        let clock = || shown.replace(shown.get().after(step));
        self.driver.resume(u64::MAX, now, clock, &mut ());
        while let Some(output) = self.driver.poll(now, clock, &mut ()) {
            match output {
                Output::Send { message, .. }
                | Output::Evaluated { message, .. }
                | Output::Answer { message, .. } => {
                    self.sent.push(message);
                }
                Output::SendAfter { after, message, .. } => self.driver.hold(after, message),
                Output::Append { ticket, record } => self.appended.push((ticket, record)),
                Output::Notice(notice) => self.notices.push(notice),
                _ => {}
            }
        }
        while let Some(message) = self.driver.pop_held() {
            self.sent.push(message);
        }
    }

    /// All that was appended becomes durable, and the core hears of it.
    fn make_durable(&mut self) {
        let (last, _) = self.appended.last().expect("something was appended");
        self.driver.on_durable(*last);
        self.driver.tell_durable(self.now);
        self.turn();
    }
}

#[test]
fn an_answer_waits_for_its_record_and_not_for_a_later_one() {
    let mut harness = Harness::attached();
    harness.set(1, "a");
    let (first, _) = harness.appended.last().cloned().expect("the update is appended");
    harness.set(2, "b");
    assert!(harness.appended.last().expect("so is the second").0 > first);
    assert!(harness.sent.is_empty(), "nothing is durable: {:?}", harness.sent);
    assert!(!harness.driver.holds_nothing());
    assert_eq!(harness.driver.awaited(), Some(first), "the log is to tell when the first is durable");

    // The core need not hear of it.
    harness.driver.on_durable(first);
    harness.turn();
    let answered: Vec<u64> = harness.sent.iter().filter_map(acknowledged).collect();
    assert_eq!(answered, [1]);
    // One that is told late is told once.
    assert!(harness.driver.tell_durable(harness.now));
    assert!(!harness.driver.tell_durable(harness.now));
    harness.make_durable();
    let answered: Vec<u64> = harness.sent.iter().filter_map(acknowledged).collect();
    assert_eq!(answered, [1, 2]);
    assert!(harness.driver.holds_nothing());
}

/// See "How often a body is copied" in ARCHITECTURE.md.
#[test]
fn a_body_is_one_allocation_from_the_message_to_the_log() {
    let mut harness = Harness::attached();
    let body = harness.request(1, Path::Durability, &[b"SET", b"key", b"value"]);
    let Some((_, Record::Accept(accepted))) = harness.appended.last() else {
        panic!("{:?}", harness.appended)
    };
    assert!(Arc::ptr_eq(&accepted.body, &body));

    let body = harness.request(2, Path::Ordered, &[b"INCR", b"counter"]);
    let Some((_, Record::Append { entries, .. })) = harness.appended.last() else {
        panic!("{:?}", harness.appended)
    };
    let [.., Prepared::Full(ordered)] = entries.as_slice() else { panic!("{entries:?}") };
    assert!(Arc::ptr_eq(&ordered.body, &body));
    // The log of the replica has it, too: it is not the record's alone.
    assert!(Arc::strong_count(&body) > 2);
}

fn acknowledged(message: &Message) -> Option<u64> {
    match message {
        Message::Ok { id, .. } | Message::Committed { id, .. } => Some(id.sequence),
        _ => None,
    }
}

/// In a group of one no message would make the core look: it would commit at its next heartbeat.
#[test]
fn the_log_wakes_the_driver_for_what_only_the_core_waits_for() {
    for planted in [None, Some(PlantedBug::NobodyWoken)] {
        let mut harness = Harness::attached();
        harness.driver.plant(planted);
        harness.request(1, Path::Ordered, &[b"INCR", b"counter"]);
        let last = harness.appended.last().expect("it is appended").0;
        assert!(harness.driver.holds_nothing(), "the answer comes when it is committed");
        let awaited = harness.driver.awaited();
        assert_eq!(
            awaited.is_some_and(|awaited| awaited <= last),
            planted.is_none(),
            "{awaited:?} of {last:?}"
        );
    }
}

#[test]
fn after_the_disk_failed_nothing_is_appended_and_nothing_that_waits_leaves() {
    let mut harness = Harness::attached();
    harness.set(1, "a");
    let appended = harness.appended.len();
    harness.driver.fail(harness.now);
    assert!(harness.driver.is_log_closed());
    harness.set(2, "b");
    harness.turn();
    assert_eq!(harness.appended.len(), appended);
    assert!(!harness.sent.iter().any(|message| acknowledged(message).is_some()), "{:?}", harness.sent);
}

#[test]
fn a_snapshot_is_not_begun_that_the_disk_has_no_room_for() {
    let mut harness = Harness::new(|config| config.settings.snapshot_log_bytes = 1);
    harness.driver.set_snapshot_room(Some(0));
    harness.message(Message::Register { view: View(0), nonce: 3 });
    harness.make_durable();
    harness.message(Message::Attach { session: SessionId(1), nonce: 3 });
    for sequence in 1..40 {
        harness.set(sequence, &"x".repeat(1000));
        harness.make_durable();
        harness.now.instant = Instant(harness.now.instant.0 + 1_000_000_000);
        harness.driver.handle(harness.now, Event::Tick);
        harness.turn();
    }
    let refused = harness.notices.iter().find_map(|notice| match notice {
        Notice::SnapshotFailed { problem, .. } => Some(problem.clone()),
        _ => None,
    });
    let problem = refused.expect("a snapshot was refused");
    assert!(problem.contains("and 0 are free on the disk"), "{problem}");
    assert!(!harness.notices.iter().any(|notice| matches!(notice, Notice::SnapshotBegun { .. })));
    assert!(harness.driver.next_snapshot_job().is_none());

    harness.driver.set_snapshot_room(None);
    for sequence in 40..80 {
        harness.set(sequence, "x");
        harness.make_durable();
        harness.now.instant = Instant(harness.now.instant.0 + 1_000_000_000);
        harness.driver.handle(harness.now, Event::Tick);
        harness.turn();
    }
    assert!(harness.notices.iter().any(|notice| matches!(notice, Notice::SnapshotBegun { .. })));
}

/// How many of 60 updates have been executed when the first snapshot is begun, if one is.
fn executed_before_snapshot(execution_time: Duration) -> Option<u64> {
    let mut harness = Harness::attached();
    harness.execution_time = execution_time;
    (1..=60).find(|sequence| {
        harness.request(*sequence, Path::Ordered, &[b"SET", b"key", b"x"]);
        harness.make_durable();
        harness.notices.iter().any(|notice| matches!(notice, Notice::SnapshotBegun { .. }))
    })
}

#[test]
fn a_snapshot_is_due_when_executing_the_log_again_would_take_long() {
    assert_eq!(executed_before_snapshot(Duration::from_millis(160)), None, "9.6 s for all of them");
    assert_eq!(executed_before_snapshot(Duration::from_millis(500)), Some(20));
    assert_eq!(executed_before_snapshot(Duration::from_secs(60)), Some(1));
}

#[test]
fn the_core_hears_of_room_and_space_once() {
    let mut harness = Harness::attached();
    harness.driver.tell_disk_room(harness.now, 0);
    assert_eq!(harness.driver.replica().disk_room(), 0);
    harness.driver.tell_disk_room(harness.now, u64::MAX);
    assert_eq!(harness.driver.replica().disk_room(), u64::MAX);
    harness.set(1, "a");
    harness.make_durable();
    harness.driver.tell_memory_room(harness.now, Some(MemoryLimit::new(1, EvictionSettings::DEFAULT)));
    harness.driver.tell_memory_room(harness.now, Some(MemoryLimit::new(1, EvictionSettings::DEFAULT)));
    harness.turn();
    let exceeded =
        harness.notices.iter().filter(|notice| matches!(notice, Notice::MemoryExceeded { limit: 1, .. }));
    assert_eq!(exceeded.count(), 1);
}

/// A member of three. Its disk may stay as it is for days, until somebody looks after it.
struct Member {
    driver: ReplicaDriver<MemoryEngine, MemoryStore, Message>,
    now: Now,
    last: Ticket,
    held: usize,
}

impl Member {
    fn new() -> Self {
        let now = Now { instant: Instant(1_000_000), wall: WallTime(1_000_000) };
        let describe = |body: &[u8]| syros_commands::describe(body).ok();
        let group = Group::new(3).expect("a group of three");
        let config =
            Config::new(Configuration::first(group, FastQuorum::Majority), ReplicaId(1), describe, |_, _| {
                true
            });
        let replica = Replica::new(config, Boot::Fresh, now);
        let execution = Execution::InMemory(Box::new(MemoryExecutor::new(MemoryEngine::new(), OpNumber(0))));
        let driver = ReplicaDriver::new(replica, execution, SnapshotSizes::SERVER, now);
        let mut member = Self { driver, now, last: Ticket(0), held: 0 };
        member.turn();
        member.driver.on_durable(member.last);
        member.driver.tell_durable(now);
        member.turn();
        member
    }

    fn turn(&mut self) {
        let now = self.now;
        while let Some(output) = self.driver.poll(now, || now.instant, &mut ()) {
            match output {
                Output::SendAfter { after, message, .. } => {
                    self.held += 1;
                    self.driver.hold(after, message);
                }
                Output::Append { ticket, .. } => self.last = ticket,
                _ => {}
            }
        }
    }

    fn hear(&mut self, message: Message) {
        self.driver.handle(self.now, Event::Message { from: Peer::Replica(ReplicaId(0)), message });
        self.turn();
    }

    /// The leader leaves view 0, and nobody makes view 1 begin.
    fn leave(&mut self) {
        self.hear(Message::StartViewChange { view: View(1), reason: ViewChangeReason::Moved });
    }

    /// An hour goes by.
    fn wait(&mut self) {
        for _ in 0..3600 * 10 {
            self.now.instant = Instant(self.now.instant.0 + 100_000_000);
            self.driver.handle(self.now, Event::Tick);
            self.turn();
        }
    }
}

#[test]
fn what_can_never_leave_after_the_disk_failed_is_not_kept() {
    let mut member = Member::new();
    member.driver.fail(member.now);
    member.leave();
    member.wait();
    assert!(member.held < 10, "{} messages are kept after an hour", member.held);

    // Here the record was appended, and the log stopped in the middle of it.
    let mut member = Member::new();
    member.leave();
    assert!(member.held > 0, "they leave when the view is durable");
    member.driver.end_log(member.now);
    member.wait();
    assert!(member.held < 10, "{} messages are kept after an hour", member.held);
}

#[test]
fn after_a_failure_what_was_appended_before_may_still_become_durable() {
    let mut member = Member::new();
    member.leave();
    member.driver.fail(member.now);
    let before = member.held;
    member.now.instant = Instant(member.now.instant.0 + 100_000_000);
    member.driver.handle(member.now, Event::Tick);
    member.turn();
    assert!(member.held > before, "the file of the view failed, say, and the log goes on");
    member.driver.on_durable(member.last);
    let left = std::iter::from_fn(|| member.driver.pop_held()).count();
    assert_eq!(left, member.held);
}

#[test]
fn what_waits_for_a_lost_record_leaves_when_the_view_is_in_the_log_that_was_opened_again() {
    let mut harness = Harness::new(|config| config.durability = Durability::Replicated);
    harness.turn();
    let (view, _) = harness.appended.last().cloned().expect("the first view is appended");
    harness.message(Message::Register { view: View(0), nonce: 3 });
    assert!(harness.sent.is_empty(), "the view is not durable: {:?}", harness.sent);

    harness.driver.end_log(harness.now);
    harness.turn();
    let lost = harness.driver.reopen_log(harness.now);
    assert_eq!(lost, view);
    harness.turn();
    let (renewed, record) = harness.appended.last().cloned().expect("the view is appended again");
    assert!(renewed > lost && matches!(record, Record::View { view: View(0), .. }), "{record:?}");
    assert_eq!(harness.driver.durable(), Ticket(0));
    assert!(harness.sent.is_empty(), "nothing is durable yet: {:?}", harness.sent);

    harness.make_durable();
    assert!(
        harness.sent.iter().any(|message| matches!(message, Message::Registered { .. })),
        "the client hears of its session: {:?}",
        harness.sent
    );
}

#[test]
#[should_panic(expected = "entries that were not durable would be missing")]
fn a_log_with_entries_is_not_done_without() {
    let mut harness = Harness::new(|_| {});
    harness.driver.end_log(harness.now);
    harness.driver.reopen_log(harness.now);
}

/// To find what an update answers it is executed once, apart from the state. A transaction that reads much is weighed, and not
/// executed for that.
#[test]
fn what_is_not_often_sent_in_vain_is_weighed_and_not_tried() {
    let mut harness = Harness::attached();
    let vain = body_of(&[b"EXPIRE", b"missing", b"10"]);
    let long = [vain.clone(), body_of(&[b"LPOS", b"missing", b"element"]).repeat(20)].concat();
    let mut answer = |body: &[u8]| {
        let footprint = syros_commands::describe(body).expect("a body").footprint;
        harness.driver.answer_no_op(harness.now, &footprint, body)
    };
    assert!(matches!(answer(&vain), NoOpAnswer::NoOp(..)), "{:?}", answer(&vain));
    assert_eq!(answer(&long), NoOpAnswer::Unknown);
}
