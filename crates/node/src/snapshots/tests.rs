use super::*;
use crate::checkpoints::Checkpoints;
use core::time::Duration;
use syros_commands::Operation;
use syros_commands::families::{FlushAll, SetNx};
use syros_protocol::message::Message;
use syros_protocol::record::Ticket;
use syros_protocol::replica::{Event, PlantedBug};
use syros_protocol::sessions::Sessions;
use syros_snapshot::SnapshotStore;
use syros_storage::{Engine as _, MemoryEngine, MemoryStore, RemovalPace};
use syros_types::{Instant, ReplicaId, View, WallTime};
use syros_wal::memory_disk::MemoryDisk;
use syros_wal::{Cause, Disk as _, DiskError, DiskOperation};

const CLUSTER: u64 = 7;

const FILES: SnapshotFiles = SnapshotFiles { hash_seed: 0, pace: RemovalPace::STANDARD };

const SIZES: SnapshotSizes = SnapshotSizes {
    block_bytes: 20,
    part_bytes: 64,
    unwritten_max: 50,
    share: 5,
    hurry_bytes: 10,
    behind_bytes: 30,
};

/// No store is ever asked for.
#[derive(Clone, Debug)]
struct NoStores;

impl StoreDirectory for NoStores {
    type Store = MemoryStore;

    fn list(&mut self) -> Result<Vec<u64>, StoreError> {
        unreachable!("the engine is in memory")
    }

    fn open(&mut self, _: u64) -> Result<MemoryStore, StoreError> {
        unreachable!("the engine is in memory")
    }

    fn create(&mut self) -> Result<(u64, MemoryStore), StoreError> {
        unreachable!("the engine is in memory")
    }

    fn complete(&mut self, _: u64) -> Result<(), StoreError> {
        unreachable!("the engine is in memory")
    }

    fn keep_only(&mut self, _: Option<u64>) -> Result<(), StoreError> {
        unreachable!("the engine is in memory")
    }

    fn remove_before(&mut self, _: u64) -> Result<(), StoreError> {
        unreachable!("the engine is in memory")
    }

    fn remove(&mut self, _: u64) -> Result<(), StoreError> {
        unreachable!("the engine is in memory")
    }
}

/// A replica's snapshots without the replica.
struct Harness {
    disk: MemoryDisk,
    engine: MemoryEngine,
    schedule: SnapshotSchedule<MemoryEngine, MemoryStore>,
    worker: SnapshotWorker<MemoryDisk, SnapshotFiles, NoStores>,
    now: Instant,
}

impl Harness {
    /// With as many keys.
    fn new(keys: u64) -> Self {
        let disk = MemoryDisk::new();
        let snapshot_store = SnapshotStore::open(disk.clone(), CLUSTER).expect("an empty disk");
        let mut harness = Self {
            disk,
            engine: MemoryEngine::with_hash_seed(0),
            schedule: SnapshotSchedule::new(SIZES),
            worker: SnapshotWorker::new(snapshot_store, EngineFiles::InMemory(FILES), SIZES),
            now: Instant(1_000),
        };
        (0..keys).for_each(|key| harness.set(key, b"before"));
        harness
    }

    fn set(&mut self, key: u64, value: &[u8]) {
        let mut body = Vec::new();
        let key = format!("key {key}");
        Operation::new(SetNx { key: key.as_bytes(), value }).encode(&mut body);
        self.engine.apply(WallTime(1), &body, &mut Vec::new());
    }

    fn begin(&mut self, op_number: u64) {
        self.schedule.begin(head(op_number), &mut self.engine, self.now);
    }

    /// Cuts a block, if it is time. True if it was the last.
    fn cut(&mut self) -> bool {
        let end = self.now.after(Duration::from_nanos(10));
        self.schedule.cut_next(&mut self.engine, self.now, || end).is_some()
    }

    /// Lets the worker do its next job, and the owner look at the report.
    fn step(&mut self) -> Option<SnapshotNews> {
        let job = self.schedule.next_job().expect("there is a job");
        let report = self.worker.work(job, |_| Ok(()))?;
        self.schedule.on_report(report, StateOf::Memory(&mut self.engine))
    }

    /// Lets both go on until the worker has nothing to do and nothing is cut; what came of it.
    fn finish(&mut self) -> Vec<SnapshotNews> {
        let mut news = Vec::new();
        loop {
            let due = self.schedule.deadline();
            if due != Instant::NEVER {
                self.now = self.now.max(due);
                self.cut();
            }
            if self.schedule.first_job().is_some() {
                news.extend(self.step());
            } else if due == Instant::NEVER {
                return news;
            }
        }
    }

    fn load(&self, op_number: u64) -> Result<MemoryEngine, SnapshotStoreError> {
        let mut snapshot_store = SnapshotStore::open(self.disk.clone(), CLUSTER)?;
        Ok(snapshot_store.load(OpNumber(op_number), FILES.loader())?.engine)
    }

    fn snapshots(&self) -> Vec<u64> {
        let mut snapshot_store = SnapshotStore::open(self.disk.clone(), CLUSTER).expect("a disk that works");
        snapshot_store.list().expect("a disk that works").into_iter().map(|op_number| op_number.0).collect()
    }
}

fn head(op_number: u64) -> Box<SnapshotHead> {
    let op_number = OpNumber(op_number);
    Box::new(SnapshotHead {
        op_number,
        view: View(1),
        time: WallTime(1),
        sessions: Sessions::default(),
        configuration: None,
    })
}

fn refused() -> SnapshotStoreError {
    let cause = Cause::Full;
    DiskError { operation: DiskOperation::Append, file: "a snapshot".to_owned(), cause }.into()
}

/// The number of the snapshot that the core hears of as taken, if that is all it hears.
fn taken(news: &[SnapshotNews]) -> Option<u64> {
    match news {
        [SnapshotNews::Event(Event::SnapshotTaken { op_number, .. })] => Some(op_number.0),
        _ => None,
    }
}

/// The number of the snapshot that failed, if that is what the owner has to act on.
fn failed(news: Option<&SnapshotNews>) -> Option<u64> {
    match news {
        Some(SnapshotNews::Failed { op_number, .. }) => Some(op_number.0),
        _ => None,
    }
}

#[test]
fn a_snapshot_holds_what_the_engine_held_when_it_began() {
    let mut harness = Harness::new(20);
    let digest = harness.engine.digest();
    harness.begin(9);
    assert!(!harness.cut(), "there is more than one block");
    harness.set(100, b"after");
    assert_eq!(taken(&harness.finish()), Some(9));
    assert_eq!(harness.load(9).expect("it is intact").digest(), digest);
    assert!(harness.engine.digest() != digest && harness.schedule.deadline() == Instant::NEVER);
}

#[test]
fn the_owner_cuts_no_more_than_the_worker_writes_and_leaves_time_for_others() {
    let mut harness = Harness::new(20);
    harness.begin(9);
    harness.cut();
    let pause = Duration::from_nanos(10 + 4 * 10);
    assert_eq!(harness.schedule.deadline(), harness.now.after(pause), "it takes a fifth of the time");
    assert!(!harness.cut() && harness.schedule.deadline() == harness.now.after(pause), "it is not time");
    while harness.schedule.deadline() != Instant::NEVER {
        harness.now = harness.schedule.deadline();
        harness.cut();
    }
    let blocks = |harness: &Harness| harness.schedule.jobs_of(|job| matches!(job, SnapshotJob::Write { .. }));
    let before = blocks(&harness);
    assert!((2..=3).contains(&before), "{before} blocks of at least 20 bytes reach 50");
    // The snapshot is begun, and a block is written.
    assert!(harness.step().is_none() && harness.step().is_none());
    assert!(harness.schedule.deadline() != Instant::NEVER, "there is room for another block");
}

#[test]
fn the_owner_hurries_and_clients_wait_when_much_is_kept_for_the_snapshot() {
    let mut harness = Harness::new(20);
    harness.begin(9);
    assert!(!harness.schedule.is_behind(&harness.engine));
    let mut flush = Vec::new();
    Operation::new(FlushAll).encode(&mut flush);
    harness.engine.apply(WallTime(2), &flush, &mut Vec::new());
    assert!(harness.schedule.is_behind(&harness.engine));
    harness.cut();
    assert_eq!(harness.schedule.deadline(), harness.now.after(Duration::from_nanos(10)), "without a pause");
    assert_eq!(taken(&harness.finish()), Some(9));
    assert!(!harness.schedule.is_behind(&harness.engine));
}

#[test]
fn a_snapshot_that_cannot_be_received_leaves_the_one_being_taken_alone() {
    for planted in [None, Some(PlantedBug::SnapshotCutShort)] {
        let mut harness = Harness::new(20);
        harness.schedule.plant(planted);
        let digest = harness.engine.digest();
        harness.begin(9);
        harness.cut();
        let report = SnapshotReport::NotReceived { op_number: OpNumber(30), error: refused() };
        let news = harness.schedule.on_report(report, StateOf::Memory(&mut harness.engine));
        assert_eq!(failed(news.as_ref()), Some(30));
        assert_eq!(taken(&harness.finish()), Some(9));
        let loaded = harness.load(9);
        assert_eq!(loaded.is_ok_and(|engine| engine.digest() == digest), planted.is_none());
    }
}

#[test]
fn a_snapshot_that_cannot_be_received_ends_one_that_is_taken_of_the_same_number() {
    let mut harness = Harness::new(20);
    harness.begin(9);
    harness.cut();
    let report = SnapshotReport::NotReceived { op_number: OpNumber(9), error: refused() };
    let news = harness.schedule.on_report(report, StateOf::Memory(&mut harness.engine));
    // To the core, both have failed.
    assert_eq!(failed(news.as_ref()), Some(9));
    assert!(harness.finish().is_empty() && harness.snapshots().is_empty());
    harness.begin(9);
    assert_eq!(taken(&harness.finish()), Some(9));
    assert!(harness.load(9).is_ok());
}

#[test]
fn what_is_reported_of_an_earlier_attempt_concerns_nobody() {
    let mut harness = Harness::new(20);
    harness.begin(9);
    harness.cut();
    let mut late = Vec::new();
    while let Some(job) = harness.schedule.next_job() {
        late.extend(harness.worker.work(job, |_| Ok(())));
    }
    let SnapshotReport::Written { attempt, .. } = late[0] else { panic!("a block was written: {late:?}") };
    late.push(SnapshotReport::NotTaken { attempt, error: refused() });
    late.push(SnapshotReport::Taken { attempt, bytes: 1 });
    harness.schedule.failed(OpNumber(9), StateOf::Memory(&mut harness.engine));
    harness.begin(9);
    harness.cut();
    for report in late {
        assert!(harness.schedule.on_report(report, StateOf::Memory(&mut harness.engine)).is_none());
    }
    assert_eq!(taken(&harness.finish()), Some(9));
    assert!(harness.load(9).is_ok());
}

#[test]
fn a_disk_that_refuses_a_block_ends_the_snapshot_and_keeps_nothing_of_it() {
    let mut harness = Harness::new(20);
    harness.begin(9);
    harness.cut();
    harness.disk.fail_next_write(Cause::Full, 3);
    let news = harness.finish();
    assert_eq!((news.len(), failed(news.first())), (1, Some(9)), "{news:?}");
    assert!(harness.engine.snapshot_waiting_bytes() == 0 && harness.snapshots().is_empty());
    let left = harness.disk.clone().list().expect("a disk that works");
    assert!(left.is_empty(), "{left:?}");
    harness.begin(10);
    assert_eq!(taken(&harness.finish()), Some(10), "the disk works again");
}

#[test]
fn a_snapshot_for_which_there_is_no_room_is_not_begun() {
    let mut harness = Harness::new(3);
    harness.begin(9);
    let job = harness.schedule.next_job().expect("it is to be begun");
    let report = harness.worker.work(job, |bytes| {
        assert_eq!(bytes, harness.engine.memory_bytes());
        Err(refused())
    });
    let report = report.expect("it is not begun");
    let news = harness.schedule.on_report(report, StateOf::Memory(&mut harness.engine));
    assert_eq!(failed(news.as_ref()), Some(9));
    assert!(harness.finish().is_empty() && harness.disk.operations() == 0);
}

#[test]
fn nothing_is_removed_before_the_record_that_replaces_it_is_on_disk() {
    let mut harness = Harness::new(3);
    for op_number in [5, 9] {
        harness.begin(op_number);
        assert_eq!(taken(&harness.finish()), Some(op_number));
    }
    harness.schedule.keep_from(OpNumber(9), Ticket(4));
    assert_eq!(harness.schedule.awaited(Ticket(3)), Some(Ticket(4)));
    assert_eq!(harness.schedule.remove_if_due(Ticket(3), None), None);
    assert_eq!(harness.schedule.awaited(Ticket(4)), None);
    assert_eq!(harness.schedule.remove_if_due(Ticket(4), None), Some(Ticket(4)));
    assert_eq!(harness.snapshots(), [5, 9]);
    // Another one has to wait for the first.
    harness.schedule.keep_from(OpNumber(9), Ticket(6));
    assert_eq!(harness.schedule.remove_if_due(Ticket(9), None), None);
    assert!(harness.step().is_none());
    assert_eq!(harness.snapshots(), [9]);
    assert_eq!(harness.schedule.remove_if_due(Ticket(9), None), Some(Ticket(6)));
    assert_eq!(harness.schedule.remove_if_due(Ticket(9), None), None, "it is asked for once");
}

#[test]
fn a_removal_that_the_disk_refuses_is_told_and_does_not_stop_the_next() {
    let mut harness = Harness::new(3);
    harness.schedule.keep_from(OpNumber(9), Ticket(1));
    assert!(harness.schedule.remove_if_due(Ticket(1), None).is_some());
    let report = SnapshotReport::Removed { snapshots: Err(refused()), stores: Ok(()) };
    let news = harness.schedule.on_report(report, StateOf::Memory(&mut harness.engine));
    assert!(matches!(&news, Some(SnapshotNews::Warning(text)) if text.contains("old snapshots")), "{news:?}");
    harness.schedule.keep_from(OpNumber(9), Ticket(2));
    assert!(harness.schedule.remove_if_due(Ticket(2), None).is_some());
}

/// Found by seed 747756033038: three members waited for parts, and copies of what they had asked for kept the worker busy for
/// longer than it took them to ask again.
#[test]
fn a_member_that_asks_again_for_a_part_gets_one_copy() {
    let mut source = Harness::new(20);
    source.begin(9);
    assert_eq!(taken(&source.finish()), Some(9));
    let read = |job: &SnapshotJob| matches!(job, SnapshotJob::ReadPart { .. });
    for _ in 0..3 {
        for member in 1..3 {
            source.schedule.read_part(Peer::Replica(ReplicaId(member)), OpNumber(9), 0);
        }
    }
    assert_eq!(source.schedule.jobs_of(read), 2, "one for each member");
    // The first has got the part by other means, and asks for the next one.
    source.schedule.read_part(Peer::Replica(ReplicaId(1)), OpNumber(9), 64);
    let mut sent = Vec::new();
    while source.schedule.jobs_of(read) > 0 {
        if let Some(SnapshotNews::Send(to, Message::SnapshotPart { offset, .. })) = source.step() {
            sent.push((to, offset));
        }
    }
    assert_eq!(sent, [(Peer::Replica(ReplicaId(2)), 0), (Peer::Replica(ReplicaId(1)), 64)]);
    // A part that does not exist is not waited for, and the core hears of it.
    source.schedule.read_part(Peer::Replica(ReplicaId(1)), OpNumber(8), 0);
    let news = source.step();
    assert!(
        matches!(news, Some(SnapshotNews::Unreadable { op_number: OpNumber(8), warning: None })),
        "{news:?}"
    );
    source.schedule.read_part(Peer::Replica(ReplicaId(1)), OpNumber(9), 0);
    assert!(matches!(source.step(), Some(SnapshotNews::Send(Peer::Replica(ReplicaId(1)), _))));
}

#[test]
fn a_snapshot_goes_to_another_replica_part_by_part_and_is_adopted_or_not() {
    let mut source = Harness::new(20);
    source.begin(9);
    assert_eq!(taken(&source.finish()), Some(9));
    for adopts in [true, false] {
        let mut target = Harness::new(10);
        target.begin(3);
        assert_eq!(taken(&target.finish()), Some(3));
        let mut offset = 0;
        loop {
            source.schedule.read_part(Peer::Replica(ReplicaId(2)), OpNumber(9), offset);
            let Some(SnapshotNews::Send(to, Message::SnapshotPart { part, .. })) = source.step() else {
                break;
            };
            assert_eq!(to, Peer::Replica(ReplicaId(2)));
            target.schedule.write_part(OpNumber(9), offset, part);
            let written = target.step();
            let Some(SnapshotNews::Event(Event::SnapshotPartWritten { received, .. })) = written else {
                panic!("{written:?}")
            };
            offset = received;
        }
        assert!(offset > 64, "there were several parts");
        target.begin(4);
        target.cut();
        target.schedule.load(OpNumber(9));
        while !target.schedule.has_loaded() {
            target.step();
        }
        if !adopts {
            target.schedule.discard_loaded();
            assert_eq!(target.schedule.jobs_of(|job| matches!(job, SnapshotJob::Discard { .. })), 1);
            continue;
        }
        let Some(LoadedEngine::InMemory(engine)) = target.schedule.adopt() else { panic!("it is loaded") };
        assert_eq!(engine.digest(), source.engine.digest());
        assert!(!target.schedule.has_loaded() && target.schedule.deadline() == Instant::NEVER);
        assert!(target.finish().is_empty(), "its own snapshot is given up");
        assert_eq!(target.snapshots(), [3, 9]);
    }
}

/// A state of so many blocks.
struct Numbers(u8, u8);

impl Blocks for Numbers {
    fn block(&mut self, _: usize, block: &mut Vec<u8>) -> Result<bool, StoreError> {
        block.push(self.0);
        self.0 += 1;
        Ok(self.0 < self.1)
    }
}

#[test]
fn the_worker_cuts_a_state_between_other_jobs_and_the_checkpoint_waits_for_the_file() {
    let mut harness = Harness::new(0);
    let mut checkpoints = Checkpoints::default();
    checkpoints.begin(OpNumber(9), Ticket(1), true);
    checkpoints.sealed(OpNumber(9));
    harness.schedule.begin_cut(head(9), Box::new(Numbers(0, 3)), 3);
    assert_eq!(harness.schedule.deadline(), Instant::NEVER, "the owner cuts nothing");
    assert!(harness.step().is_none() && harness.step().is_none());
    for _ in 0..2 {
        assert!(harness.worker.is_cutting() && harness.worker.cut_next().is_none());
    }
    let report = harness.worker.cut_next().expect("that was the last");
    assert!(!harness.worker.is_cutting());
    assert_eq!(checkpoints.flush_if_due(Ticket(1)), Some(OpNumber(9)));
    let news = harness.schedule.on_report(report, StateOf::Checkpoints(&mut checkpoints));
    assert!(news.is_none(), "the checkpoint is not durable yet");
    assert!(checkpoints.flushed(OpNumber(9)).is_some_and(|bytes| bytes > 0));
    assert_eq!(harness.snapshots(), [9]);
}

#[test]
fn a_checkpoint_that_fails_takes_its_file_with_it() {
    let mut harness = Harness::new(0);
    let mut checkpoints = Checkpoints::default();
    checkpoints.begin(OpNumber(9), Ticket(1), true);
    harness.schedule.begin_cut(head(9), Box::new(Numbers(0, 3)), 3);
    assert!(harness.step().is_none() && harness.step().is_none());
    assert!(harness.worker.cut_next().is_none());
    harness.schedule.failed(OpNumber(9), StateOf::Checkpoints(&mut checkpoints));
    assert!(harness.step().is_none() && !harness.worker.is_cutting());
    assert!(!checkpoints.failed(OpNumber(9)), "there is none any more");
    assert!(harness.worker.cut_next().is_none() && harness.snapshots().is_empty());
}
