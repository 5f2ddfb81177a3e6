//! The thread. Nothing here sleeps: a gate in the disk decides when a sync ends.

mod common;

use common::{open, payload, payloads};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use syros_types::Prng;
use syros_wal::memory_disk::{MemoryDisk, MemoryFile};
use syros_wal::{
    AppendError, Cause, Disk, DiskError, GroupCommit, HEADER_BYTES, MARK_BYTES, Options, RECORD_HEADER_BYTES,
    RecordNumber, Wal, WalError,
};

/// With room for whatever is written here, as the tests count syncs.
fn options() -> Options {
    Options { reserve_bytes: 16 << 10, ..common::options() }
}

/// A disk whose syncs announce themselves and wait for a permit.
struct Gated {
    disk: MemoryDisk,
    begun: Sender<()>,
    permits: Receiver<()>,
}

impl Disk for Gated {
    type File = MemoryFile;

    fn sync(&mut self, file: &mut MemoryFile) -> Result<(), DiskError> {
        // A test that no longer cares has dropped its ends, which opens the gate.
        let _ = self.begun.send(());
        let _ = self.permits.recv();
        self.disk.sync(file)
    }

    fn create(&mut self, name: &str) -> Result<MemoryFile, DiskError> {
        self.disk.create(name)
    }
    fn open(&mut self, name: &str) -> Result<MemoryFile, DiskError> {
        self.disk.open(name)
    }
    fn append(&mut self, file: &mut MemoryFile, bytes: &[u8]) -> Result<(), DiskError> {
        self.disk.append(file, bytes)
    }
    fn fill(&mut self, file: &mut MemoryFile, offset: u64, parts: &[&[u8]]) -> Result<(), DiskError> {
        self.disk.fill(file, offset, parts)
    }
    fn read(&mut self, file: &MemoryFile, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError> {
        self.disk.read(file, offset, buffer)
    }
    fn length(&mut self, file: &MemoryFile) -> Result<u64, DiskError> {
        self.disk.length(file)
    }
    fn truncate(&mut self, file: &mut MemoryFile, length: u64) -> Result<(), DiskError> {
        self.disk.truncate(file, length)
    }
    fn sync_and_evict(&mut self, file: &mut MemoryFile) -> Result<(), DiskError> {
        self.disk.sync_and_evict(file)
    }
    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        self.disk.rename(from, to)
    }
    fn remove(&mut self, name: &str) -> Result<(), DiskError> {
        self.disk.remove(name)
    }
    fn list(&mut self) -> Result<Vec<String>, DiskError> {
        self.disk.list()
    }
    fn sync_directory(&mut self) -> Result<(), DiskError> {
        self.disk.sync_directory()
    }
}

/// The owner's end of everything.
struct Owner {
    disk: MemoryDisk,
    log: GroupCommit<Gated>,
    begun: Receiver<()>,
    permits: Sender<()>,
    woken: Receiver<()>,
}

fn start(options: &Options) -> Owner {
    let disk = MemoryDisk::new();
    // The log's creation syncs too, and should not wait at the gate.
    drop(open(disk.clone(), options).unwrap());
    let (begun_sender, begun) = channel();
    let (permits, permits_receiver) = channel();
    let gated = Gated { disk: disk.clone(), begun: begun_sender, permits: permits_receiver };
    let (wal, ..) = open(gated, options).unwrap();
    let (wake, woken) = channel();
    let log = GroupCommit::start(wal, move |_| {
        let _ = wake.send(());
    })
    .unwrap();
    Owner { disk, log, begun, permits, woken }
}

impl Owner {
    fn append(&mut self, records: u64) {
        for _ in 0..records {
            let bytes = payload(self.log.appended().0 + 1);
            self.log.append(&[&bytes]).unwrap();
        }
    }

    /// Opens the gate for one sync and waits until its result is published.
    fn finish_sync(&self) {
        self.permits.send(()).unwrap();
        self.woken.recv().unwrap();
    }

    fn close(self) -> Result<Wal<Gated>, WalError> {
        drop((self.permits, self.begun));
        self.log.close()
    }
}

#[test]
fn one_sync_covers_what_arrived_during_the_last() {
    let mut owner = start(&options());
    owner.append(1);
    assert!(owner.begun.try_recv().is_err(), "nothing happens before it is submitted");
    owner.log.submit();
    owner.begun.recv().unwrap();
    for _ in 0..100 {
        owner.append(3);
        owner.log.submit();
    }
    owner.append(2);
    assert_eq!(owner.log.persisted(), RecordNumber(0));
    owner.finish_sync();
    assert_eq!(owner.log.persisted(), RecordNumber(1));
    owner.begun.recv().unwrap();
    owner.finish_sync();
    assert_eq!(owner.log.persisted(), RecordNumber(301), "the last two were not submitted");
    let disk = owner.disk.clone();
    let wal = owner.close().unwrap();
    let counters = wal.counters();
    assert_eq!((counters.records, counters.writes, counters.syncs), (303, 3, 3));
    assert_eq!(open(disk, &options()).unwrap().2, payloads(303));
}

#[test]
fn waiting_bytes_are_limited() {
    let mut owner = start(&Options { waiting_bytes_max: 1000, ..options() });
    let mut appended = 0;
    let error = loop {
        match owner.log.append(&[&[7; 92]]) {
            Ok(_) => appended += 1,
            Err(error) => break error,
        }
        owner.log.submit();
    };
    // Whether it lies in the first, second or third buffer: all of it waits.
    assert_eq!((appended, error), (10, AppendError::Full { waiting: 1000, limit: 1000 }));
    assert_eq!(owner.log.waiting_bytes(), 1000);
    owner.begun.recv().unwrap();
    owner.finish_sync();
    assert!(owner.log.waiting_bytes() < 1000);
    assert_eq!(owner.log.append(&[b"x"]), Ok(RecordNumber(11)), "the number was not used up");
    assert_eq!(owner.close().unwrap().counters().records, 11);
}

/// Whoever waits for a batch does not wait for the room of those after it.
#[test]
fn room_is_made_when_the_batch_has_been_told() {
    const PIECE: usize = 4096;
    let mut owner = start(&Options { reserve_bytes: PIECE as u64, ..options() });
    let room = |owner: &Owner| owner.disk.contents(&common::only_segment()).unwrap().len();
    let batch = MARK_BYTES + RECORD_HEADER_BYTES + 100;
    let (mut used, mut pieces) = (HEADER_BYTES, 1);
    for _ in 0..200 {
        owner.log.append(&[&[7; 100]]).unwrap();
        owner.log.submit();
        owner.begun.recv().unwrap();
        assert_eq!(room(&owner), pieces * PIECE, "enough, before it is needed");
        owner.finish_sync();
        used += batch;
        if pieces * PIECE - used < 4 * batch {
            pieces += 1;
            owner.begun.recv().unwrap();
            assert_eq!(room(&owner), pieces * PIECE);
            owner.permits.send(()).unwrap();
        }
    }
    assert!(pieces > 5, "{pieces}");
    let disk = owner.disk.clone();
    owner.close().unwrap();
    assert_eq!(open(disk, &options()).unwrap().2.len(), 200);
}

/// A log with room for three batches, one of which is on its way to the disk.
fn cramped() -> Owner {
    let mut owner = start(&Options { reserve_bytes: 200, ..options() });
    owner.log.append(&[&payload(1)]).unwrap();
    owner.log.submit();
    owner.begun.recv().unwrap();
    owner
}

#[test]
fn a_disk_without_room_stops_nobody_before_it_is_needed() {
    let mut owner = cramped();
    owner.disk.set_capacity(Some(200));
    owner.finish_sync();
    for number in 2..=3 {
        owner.log.append(&[&payload(number)]).unwrap();
        owner.log.submit();
        owner.begun.recv().unwrap();
        owner.finish_sync();
        assert_eq!((owner.log.persisted(), owner.log.error()), (RecordNumber(number), None));
    }
    owner.log.append(&[&payload(4)]).unwrap();
    owner.log.submit();
    owner.woken.recv().unwrap();
    assert!(owner.log.error().unwrap().to_string().ends_with("no space left on the device"));
    owner.disk.set_capacity(None);
    let disk = owner.disk.clone();
    assert!(owner.close().is_err());
    assert_eq!(open(disk, &options()).unwrap().2, payloads(3));
}

#[test]
fn a_sync_that_fails_while_room_is_made_ahead_is_final() {
    let owner = cramped();
    owner.finish_sync();
    owner.begun.recv().unwrap();
    owner.disk.fail_next_sync(Cause::Io);
    assert_eq!((owner.log.persisted(), owner.log.error()), (RecordNumber(1), None));
    owner.finish_sync();
    assert!(owner.log.error().unwrap().to_string().ends_with("input/output error"));
    let disk = owner.disk.clone();
    assert!(owner.close().is_err());
    assert_eq!(open(disk, &options()).unwrap().2, payloads(1), "the batch is on disk all the same");
}

#[test]
fn a_failure_is_reported_and_final() {
    let mut owner = start(&options());
    owner.append(2);
    owner.log.submit();
    owner.begun.recv().unwrap();
    owner.finish_sync();
    owner.append(2);
    owner.log.submit();
    owner.begun.recv().unwrap();
    owner.append(2);
    owner.log.submit();
    owner.disk.fail_next_sync(Cause::Io);
    assert_eq!(owner.log.error(), None);
    owner.finish_sync();
    let error = owner.log.error().unwrap().clone();
    assert!(error.to_string().ends_with("input/output error"), "{error}");
    assert_eq!(owner.log.persisted(), RecordNumber(2));
    assert_eq!(owner.log.append(&[b"x"]), Err(AppendError::Failed(error.clone())));
    let disk = owner.disk.clone();
    assert_eq!(owner.close().err(), Some(error));
    disk.crash(&mut Prng::new(1));
    let last = open(disk, &options()).unwrap().1.last.0;
    assert!((2..=4).contains(&last), "5 and 6 were never written: {last}");
}

#[test]
fn a_full_disk_is_reported() {
    let mut owner = start(&options());
    owner.disk.fail_next_write(Cause::Full, 3);
    owner.append(1);
    owner.log.submit();
    owner.woken.recv().unwrap();
    assert!(owner.log.error().unwrap().to_string().ends_with("no space left on the device"));
}

#[test]
fn a_panic_in_the_thread_is_reported() {
    let disk = MemoryDisk::new();
    let (wal, ..) = open(disk, &options()).unwrap();
    let mut log = GroupCommit::start(wal, |_| panic!("the callback's fault")).unwrap();
    log.append(&[b"x"]).unwrap();
    log.submit();
    // Nobody can be woken by a thread that is gone, but whoever looks finds out.
    let deadline = Instant::now() + Duration::from_secs(30);
    while log.error().is_none() {
        assert!(Instant::now() < deadline, "the panic is not reported");
        std::thread::yield_now();
    }
    assert_eq!(log.close().err(), Some(WalError::ThreadPanicked));
}

#[test]
fn dropping_ends_the_thread() {
    let mut owner = start(&options());
    owner.append(3);
    owner.log.submit();
    owner.append(1);
    let disk = owner.disk.clone();
    drop((owner.permits, owner.begun));
    drop(owner.log);
    assert_eq!(open(disk, &options()).unwrap().2, payloads(3), "what was submitted was written");
}

#[test]
fn what_was_appended_before_the_thread_goes_along() {
    let disk = MemoryDisk::new();
    let (mut wal, ..) = open(disk.clone(), &options()).unwrap();
    wal.append(&[&payload(1)]).unwrap();
    let mut log = GroupCommit::start(wal, |_| ()).unwrap();
    assert_eq!(log.append(&[&payload(2)]), Ok(RecordNumber(2)));
    let mut wal = log.close().unwrap();
    assert_eq!((wal.appended(), wal.persisted()), (RecordNumber(2), RecordNumber(2)));
    // And the log can be used on, with or without a thread.
    wal.append(&[&payload(3)]).unwrap();
    let wal = GroupCommit::start(wal, |_| ()).unwrap().close().unwrap();
    assert_eq!(wal.persisted(), RecordNumber(3));
    assert_eq!(open(disk, &options()).unwrap().2, payloads(3));
}

#[test]
fn old_segments_go_in_the_background() {
    let options = Options { segment_bytes: 100, ..options() };
    let disk = MemoryDisk::new();
    let (wal, ..) = open(disk.clone(), &options).unwrap();
    // Waking says that a batch is durable.
    let woken = Arc::new((Mutex::new(0_u64), Condvar::new()));
    let theirs = Arc::clone(&woken);
    let mut log = GroupCommit::start(wal, move |_| {
        *theirs.0.lock().unwrap() += 1;
        theirs.1.notify_one();
    })
    .unwrap();
    for number in 1..=20 {
        log.append(&[&payload(number)]).unwrap();
        log.submit();
        let count = woken.0.lock().unwrap();
        drop(woken.1.wait_while(count, |count| *count < number).unwrap());
        assert_eq!(log.persisted(), RecordNumber(number));
    }
    log.remove_before(RecordNumber(15));
    log.remove_before(RecordNumber(3));
    let wal = log.close().unwrap();
    assert!((10..=15).contains(&wal.first().0), "{}", wal.first());
    let (_, recovery, records) = open(disk, &options).unwrap();
    assert_eq!(records, payloads(20)[recovery.first.0 as usize - 1..]);
}

#[test]
fn what_is_persisted_survives_a_crash_at_any_moment() {
    for seed in 0..200 {
        let mut prng = Prng::new(seed);
        let options = Options { segment_bytes: 300, waiting_bytes_max: 2_000, ..options() };
        let disk = MemoryDisk::new();
        let (wal, ..) = open(disk.clone(), &options).unwrap();
        disk.stop_at(disk.operations() + 1 + prng.below(60));
        let mut log = GroupCommit::start(wal, |_| ()).unwrap();
        // Ends because the disk stops, and it does: every submission makes the thread use it.
        loop {
            match log.append(&[&payload(log.appended().0 + 1)]) {
                Err(AppendError::Failed(_)) => break,
                Ok(_) if prng.chance(2, 3) => {}
                Ok(_) => log.submit(),
                Err(_) => {
                    log.submit();
                    std::thread::yield_now();
                }
            }
        }
        let (persisted, appended) = (log.persisted().0, log.appended().0);
        drop(log);
        disk.crash(&mut prng);
        let (_, recovery, records) = open(disk, &options).unwrap();
        assert!((persisted..=appended).contains(&recovery.last.0));
        assert_eq!(records, payloads(recovery.last.0));
    }
}

#[test]
fn a_log_that_has_failed_can_be_opened_again() {
    let disk = MemoryDisk::new();
    let failed = |_: Result<RecordNumber, &WalError>| {};
    let open_log = || Ok::<_, std::io::Error>(open(disk.clone(), &options()).expect("the log is whole").0);
    let mut log = GroupCommit::start(open_log().unwrap(), failed).unwrap();
    let wait = |log: &GroupCommit<MemoryDisk>| {
        let end = Instant::now() + Duration::from_secs(20);
        while log.persisted() < log.appended() && log.error().is_none() {
            assert!(Instant::now() < end, "the thread goes on");
            std::thread::yield_now();
        }
    };
    log.append(&[b"kept"]).unwrap();
    log.submit();
    wait(&log);
    disk.fail_next_write(Cause::Full, 3);
    log.append(&[b"lost"]).unwrap();
    log.submit();
    wait(&log);
    assert!(log.error().is_some());

    let refuse = |why: Option<&WalError>| {
        assert!(matches!(why, Some(WalError::Disk(error)) if error.cause == Cause::Full));
        Err(std::io::Error::other("not yet"))
    };
    assert_eq!(log.reopen(refuse, failed).unwrap_err().to_string(), "not yet");
    assert!(matches!(log.append(&[b"refused"]), Err(AppendError::Failed(_))));

    let (found, (progress, progressed)) = (log.persisted(), channel());
    let report = move |result: Result<RecordNumber, &WalError>| {
        progress.send(result.map_err(Clone::clone)).expect("the test listens");
    };
    log.reopen(|_| open_log(), report).unwrap();
    assert_eq!((log.appended(), log.persisted(), log.error()), (found, found, None));
    assert_eq!(log.append(&[b"next"]).unwrap(), found.next());
    log.submit();
    assert_eq!(progressed.recv().unwrap(), Ok(found.next()));
    drop(log.close().expect("the log is in order"));
    assert_eq!(open(disk, &options()).expect("the log is whole").2, [b"kept".to_vec(), b"next".to_vec()]);
}

#[test]
fn a_log_that_is_opened_again_says_how_its_last_sync_ended() {
    let disk = MemoryDisk::new();
    let quiet = |_: Result<RecordNumber, &WalError>| {};
    let mut log = GroupCommit::start(open(disk.clone(), &options()).unwrap().0, quiet).unwrap();
    // The thread is to write and sync this when it is told to stop.
    disk.fail_next_sync(Cause::Io);
    log.append(&[b"lost"]).unwrap();
    log.submit();
    let told = log.reopen(|why| Err(std::io::Error::other(why.expect("it has failed").to_string())), quiet);
    assert!(told.unwrap_err().to_string().contains("cannot sync"), "{:?}", log.error());
}
