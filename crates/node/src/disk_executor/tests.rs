use super::*;

use std::collections::VecDeque;
use syros_protocol::message::{Request, Update};
use syros_protocol::sessions::Sessions;
use syros_storage::conformance::body_of;
use syros_storage::{DiskEngine, MemoryStore};
use syros_types::SessionId;

const LIMITS: PressureLimits =
    PressureLimits { checkpoint_bytes: 10_000, unflushed_bytes: u64::MAX, runs: 9 };

/// An executor with two lanes, whose threads do something when they are told to.
struct Harness {
    executor: DiskExecutor<MemoryStore>,
    lanes: Vec<(LaneWorker<MemoryStore>, VecDeque<LaneItem>)>,
    readings: VecDeque<Reading<MemoryStore>>,
    reports: VecDeque<Report<MemoryStore>>,
    reader: ReadWorker<MemoryStore>,
}

impl Harness {
    fn new() -> Self {
        let (engine, _) = DiskEngine::open(MemoryStore::new()).expect("a map in memory works");
        let shared = engine.into_shared();
        let executor = DiskExecutor::new(Arc::clone(&shared), OpNumber(0), 2, LIMITS);
        let lane = |_| (LaneWorker::new(Arc::clone(&shared)), VecDeque::new());
        let lanes = (0..executor.lanes()).map(lane).collect();
        let reader = ReadWorker::new(shared);
        Self { executor, lanes, readings: VecDeque::new(), reports: VecDeque::new(), reader }
    }

    /// Deals out an update, the next entry.
    fn update(&mut self, words: &[&[u8]]) {
        let number = self.executor.dispatched().next();
        let id = OperationId { session: SessionId(1), sequence: number.0 };
        let body = Body::from(body_of(words));
        let request = Request { id, micros: number.0, acked_below: 0, body };
        let update = Update::describe(|body| syros_commands::describe(body).ok(), request);
        let payload = Payload::Update(update.expect("it is an operation"));
        let entry = LogEntry { view: View(0), time: WallTime(number.0 * 1_000), payload };
        self.executor.entry(number, &entry);
        self.executor.end_chunk(entry.time);
    }

    fn read(&mut self, number: u64, words: &[&[u8]]) {
        let (to, view, applied) = (Peer::Client(1), View(0), self.executor.dispatched());
        let (freshness, now, time, body) = (None, WallTime(0), None, Body::from(body_of(words)));
        self.executor.read(ReadJob { to, view, number, body, freshness, applied, now, time });
    }

    /// Gives the threads what there is for them.
    fn hand_out(&mut self) {
        while let Some((lane, item)) = self.executor.next_item() {
            self.lanes[lane].1.push_back(item);
        }
        self.readings.extend(self.executor.readings().drain(..));
    }

    /// The thread of a lane does its next item; false if it has none, or waits.
    fn step(&mut self, lane: usize) -> bool {
        self.hand_out();
        let (worker, items) = &mut self.lanes[lane];
        let Some(item) = items.front() else { return false };
        match worker.step(item) {
            LaneStep::Wait => return false,
            LaneStep::Done => {}
            LaneStep::Report(report) => self.reports.push_back(report),
            LaneStep::Reading(reading) => self.readings.push_back(reading),
        }
        self.lanes[lane].1.pop_front();
        true
    }

    /// Lets all threads do all there is, readers last.
    fn run(&mut self) {
        while (0..self.lanes.len()).any(|lane| self.step(lane)) {}
        while let Some(reading) = self.readings.pop_front() {
            self.reports.push_back(self.reader.perform(reading));
        }
    }

    fn news(&mut self) -> Option<ExecutorEvent<MemoryStore>> {
        let Self { executor, reports, .. } = self;
        let news = executor.next_news(|| reports.pop_front());
        self.hand_out();
        news
    }

    /// The numbers of reads in the news, and the last entry that was executed.
    fn all_news(&mut self) -> (Vec<u64>, OpNumber) {
        let (mut reads, mut through) = (Vec::new(), OpNumber(0));
        while let Some(news) = self.news() {
            match news {
                ExecutorEvent::Read(ReadOutcome::Answer(_, Message::ReadReply { number, .. })) => {
                    reads.push(number);
                }
                ExecutorEvent::Executed(executed) => through = executed.through,
                news => panic!("not expected: {news:?}"),
            }
        }
        (reads, through)
    }

    /// A key that the lane has.
    fn key(&self, lane: usize) -> Vec<u8> {
        let keys = (0_u32..).map(|number| number.to_string().into_bytes());
        let mut keys = keys.filter(|key| {
            let described = syros_commands::describe(&body_of(&[b"GET", key])).expect("it is an operation");
            matches!(described.footprint, Footprint::One(hash) if self.executor.lane_of(hash) == lane)
        });
        keys.next().expect("each lane has keys")
    }

    fn head(&self) -> Box<SnapshotHead> {
        let op_number = self.executor.dispatched();
        Box::new(SnapshotHead {
            op_number,
            view: View(0),
            time: WallTime(0),
            sessions: Sessions::default(),
            configuration: None,
        })
    }
}

#[test]
fn a_read_of_several_keys_waits_until_their_lanes_have_met() {
    let mut harness = Harness::new();
    let keys = [harness.key(0), harness.key(1)];
    harness.update(&[b"MSET", &keys[0], b"a", &keys[1], b"b"]);
    harness.read(1, &[b"MGET", &keys[0], &keys[1]]);
    harness.read(2, &[b"GET", &keys[0]]);
    while harness.step(0) {}
    assert!(harness.reports.is_empty(), "lane 1 has not come to the barrier");
    harness.run();
    let (mut reads, through) = harness.all_news();
    reads.sort_unstable();
    assert_eq!((reads, through), (vec![1, 2], OpNumber(1)));
}

#[test]
fn a_read_of_all_keys_shows_the_moment_at_which_the_lanes_met() {
    let mut harness = Harness::new();
    harness.update(&[b"SET", b"k", b"v"]);
    harness.read(1, &[b"DBSIZE"]);
    harness.update(&[b"SET", b"l", b"v"]);
    // The reader comes last.
    while (0..2).any(|lane| harness.step(lane)) {}
    let reading = harness.readings.pop_front().expect("the lanes leave it to a reader");
    assert!(reading.is_long() && harness.readings.is_empty());
    let Report::Read(ReadOutcome::Answer(_, Message::ReadReply { reply, .. })) =
        harness.reader.perform(reading)
    else {
        panic!("it is a read");
    };
    let (mut expected, engine) = (Vec::new(), &mut syros_storage::MemoryEngine::new());
    syros_storage::Engine::apply(engine, WallTime(1), &body_of(&[b"SET", b"k", b"v"]), &mut Vec::new());
    syros_storage::Engine::read(engine, WallTime(1), &body_of(&[b"DBSIZE"]), &mut expected);
    assert_eq!(*reply, *expected, "one key");
}

#[test]
fn a_checkpoint_is_durable_after_its_record_and_with_its_file() {
    let mut harness = Harness::new();
    harness.update(&[b"SET", b"k", b"v"]);
    let (head, at) = (harness.head(), OpNumber(1));
    harness.executor.take_snapshot(head, Ticket(7), true);
    assert_eq!(harness.executor.awaited(), Some(Ticket(7)));
    assert_eq!(harness.executor.flush_if_due(Ticket(9)), None, "it is not sealed");
    harness.run();
    let mut sealed = false;
    while let Some(news) = harness.news() {
        sealed |= matches!(news, ExecutorEvent::Sealed(head, Some(_)) if head.op_number == at);
    }
    assert!(sealed);
    assert_eq!(harness.executor.flush_if_due(Ticket(6)), None, "the log would end before it");
    assert_eq!(harness.executor.flush_if_due(Ticket(7)), Some(at));
    assert_eq!(harness.executor.flush_if_due(Ticket(8)), None, "told once");
    harness.reports.push_back(Report::Flushed(at, harness.executor.shared().flush()));
    assert!(matches!(harness.news(), Some(ExecutorEvent::Flushed(_, None))), "its file is missing");
    assert_eq!(harness.executor.checkpoints().written(at, 100), Some(100));

    let head = harness.head();
    harness.executor.take_snapshot(head, Ticket(8), false);
    harness.run();
    assert!(matches!(harness.news(), Some(ExecutorEvent::Sealed(_, None))));
    assert_eq!(harness.executor.flush_if_due(Ticket(8)), Some(at));
    harness.executor.shared().store().refuse_flushes(1);
    harness.reports.push_back(Report::Flushed(at, harness.executor.shared().flush()));
    assert!(matches!(harness.news(), Some(ExecutorEvent::Failed(failed, _)) if failed == at));
    assert!(harness.executor.checkpoints().failed(at) && !harness.executor.checkpoints().failed(at));
}

#[test]
fn what_has_expired_is_removed_once_and_while_lanes_wait() {
    let mut harness = Harness::new();
    harness.update(&[b"PSETEX", b"k", b"1", b"v"]);
    for _ in 0..4 {
        harness.update(&[b"SET", b"l", b"v"]);
    }
    harness.run();
    harness.all_news();
    assert!(harness.executor.shared().has_expired());
    harness.run();
    harness.all_news();
    assert!(!harness.executor.shared().has_expired());
}

/// A checkpoint is due by what is in memory, unless one is being made; and what nobody asked to remove waits for it.
#[test]
fn a_checkpoint_is_due_when_much_is_in_memory() {
    let mut harness = Harness::new();
    let now = |millis: u64| Now { instant: Instant(millis * 1_000_000), wall: WallTime(millis * 1_000) };
    harness.executor.look_at_pressure(now(0));
    assert!(!harness.executor.needs_checkpoint());
    let value = vec![b'v'; 6_000];
    harness.update(&[b"SET", b"k", &value]);
    harness.update(&[b"PSETEX", b"l", b"1", &value]);
    harness.run();
    harness.all_news();
    harness.executor.look_at_pressure(now(1));
    assert!(!harness.executor.needs_checkpoint(), "it was looked a moment ago");
    harness.executor.look_at_pressure(now(10));
    assert!(harness.executor.needs_checkpoint());
    harness.update(&[b"SET", b"k", &value]);
    harness.update(&[b"SET", b"k", &value]);
    harness.run();
    harness.all_news();
    assert!(harness.executor.shared().has_expired(), "what has expired stays until the next checkpoint");
    let head = harness.head();
    harness.executor.take_snapshot(head, Ticket(7), false);
    assert!(!harness.executor.needs_checkpoint(), "one is being made");
}

#[test]
fn clients_wait_while_too_many_reads_are_unanswered() {
    let mut harness = Harness::new();
    for number in 0..=READS_WAITING_MAX as u64 {
        assert!(!harness.executor.is_behind());
        harness.read(number, &[b"GET", b"k"]);
    }
    assert!(harness.executor.is_behind());
    harness.run();
    assert_eq!(harness.all_news().0.len(), READS_WAITING_MAX + 1);
    assert!(!harness.executor.is_behind());
}

/// What waits for a checkpoint to be removed is removed after it, though no entry comes.
#[test]
fn removal_goes_on_after_the_checkpoint() {
    let mut harness = Harness::new();
    let now = |millis: u64| Now { instant: Instant(millis * 1_000_000), wall: WallTime(millis * 1_000) };
    let value = vec![b'v'; 6_000];
    harness.update(&[b"SET", b"k", &value]);
    harness.update(&[b"PSETEX", b"l", b"1", &value]);
    for _ in 0..3 {
        harness.update(&[b"SET", b"k", &value]);
    }
    harness.run();
    harness.all_news();
    harness.executor.look_at_pressure(now(10));
    assert!(harness.executor.needs_checkpoint() && harness.executor.shared().has_expired());
    let head = harness.head();
    let at = head.op_number;
    harness.executor.take_snapshot(head, Ticket(7), false);
    harness.run();
    while harness.news().is_some() {}
    assert_eq!(harness.executor.flush_if_due(Ticket(7)), Some(at));
    harness.reports.push_back(Report::Flushed(at, harness.executor.shared().flush()));
    while harness.news().is_some() {}
    assert_eq!(harness.executor.shared().store().pressure().unflushed_bytes, 0);
    for millis in 20..200 {
        harness.executor.look_at_pressure(now(millis));
        harness.run();
        while harness.news().is_some() {}
    }
    assert!(!harness.executor.shared().has_to_purge(), "nobody removes it any more");
}

#[test]
fn an_engine_without_room_lets_clients_remove_things() {
    let mut harness = Harness::new();
    harness.executor.limits.unflushed_bytes = 1_000;
    let mut millis = 0;
    let mut write_until = |harness: &mut Harness, bytes: u64| {
        while harness.executor.pressure.unflushed_bytes <= bytes {
            harness.update(&[b"SET", b"k", &[b'x'; 200]]);
            harness.run();
            millis += 1_000;
            let now = Now { instant: Instant(0).after(Duration::from_millis(millis)), wall: WallTime(0) };
            harness.executor.look_at_pressure(now);
        }
    };
    write_until(&mut harness, 1_000);
    assert!(
        harness.executor.is_behind() && !harness.executor.lacks_room(),
        "clients wait until it has caught up"
    );
    let shared = Arc::clone(&harness.executor.shared);
    shared.store().refuse_flushes(1);
    shared.flush().unwrap_err();
    assert!(harness.executor.lacks_room() && !harness.executor.is_behind(), "it does not by itself");
    write_until(&mut harness, REMOVING_SHARE * 1_000);
    assert!(harness.executor.is_behind(), "there is a limit");
    shared.flush().expect("the disk has room");
    assert!(!harness.executor.lacks_room());
}
