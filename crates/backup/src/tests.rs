//! Whole backups, written, damaged and read.

use crate::{
    Backup, BackupError, BackupWriter, Item, LastEntry, LogWriter, MANIFEST, Origin, Until, put_record,
    remove_unfinished,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use syros_protocol::message::{LogEntry, Payload};
use syros_protocol::record::{Record, SnapshotHead};
use syros_protocol::sessions::Sessions;
use syros_snapshot::SnapshotStore;
use syros_storage::{Engine as _, MemoryEngine};
use syros_types::{OpNumber, View, WallTime, mix};
use syros_wal::memory_disk::MemoryDisk;

const CLUSTER: u64 = 0x77;
const VIEW: View = View(3);
const TIME: WallTime = WallTime(1_000_000);
const OP_NUMBER: OpNumber = OpNumber(9);

/// A directory that goes when the test ends.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("syros-backup-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A snapshot of an engine with some keys, as a file; and the digest of the engine.
fn snapshot(keys: u32) -> (Vec<u8>, u64) {
    let mut engine = MemoryEngine::new();
    engine.advance(TIME);
    for key in 0..keys {
        let set = set_of(key);
        engine.apply(TIME, &set, &mut Vec::new());
    }
    let mut store = SnapshotStore::open(MemoryDisk::new(), CLUSTER).expect("an empty disk");
    let (op_number, view, time) = (OP_NUMBER, VIEW, TIME);
    store
        .begin(&SnapshotHead { op_number, view, time, sessions: Sessions::default(), configuration: None })
        .expect("the disk works");
    engine.begin_snapshot();
    let mut more = true;
    while more {
        let mut block = Vec::new();
        more = engine.snapshot_block(1000, &mut block);
        store.state(&block).expect("the disk works");
    }
    let bytes = store.finish().expect("the disk works");
    let mut file = Vec::new();
    while let Some(part) = store.read_part(OP_NUMBER, file.len() as u64, 4096).expect("the disk works") {
        file.extend_from_slice(&part);
    }
    assert_eq!(file.len() as u64, bytes);
    (file, engine.digest())
}

/// A hundred bytes that cannot be compressed.
fn noise(key: u32) -> [u8; 100] {
    std::array::from_fn(|at| (mix(u64::from(key) << 8 | at as u64) >> 13) as u8)
}

/// A SET, as the engine takes it.
fn set_of(key: u32) -> Vec<u8> {
    let words = [&b"SET"[..], &key.to_be_bytes(), &noise(key)];
    let Ok(syros_commands::Parsed::Data(operation)) = syros_commands::parse(&words) else {
        panic!("it is a command")
    };
    let mut body = Vec::new();
    operation.encode(&mut body);
    body
}

fn tick(number: u64) -> LogEntry {
    LogEntry { view: VIEW, time: WallTime(TIME.0 + number), payload: Payload::Tick }
}

fn records() -> Vec<Record> {
    vec![
        Record::Transfer { base: OP_NUMBER, entries: vec![tick(1), tick(2)] },
        Record::Transfer { base: OpNumber(11), entries: vec![tick(3)] },
    ]
}

fn origin(snapshot_bytes: usize, record_bytes: usize) -> Origin {
    Origin {
        id: 0x1234,
        cluster: CLUSTER,
        product: "0.1.0".to_owned(),
        created: WallTime(5),
        snapshot: Some((OP_NUMBER, snapshot_bytes as u64)),
        last: LastEntry { op_number: OpNumber(12), view: VIEW, time: TIME },
        record_bytes: record_bytes as u64,
    }
}

/// Writes a backup of several parts; the digest of the engine.
fn write(path: &Path) -> u64 {
    let (file, digest) = snapshot(300);
    let mut behind = Vec::new();
    records().iter().for_each(|record| put_record(record, &mut behind));
    let mut writer = BackupWriter::create(path).expect("the place is free").in_small_pieces();
    for piece in file.chunks(777) {
        writer.write(piece).expect("the disk works");
    }
    writer.write(&behind).expect("the disk works");
    let manifest = writer.finish(origin(file.len(), behind.len()), || {}).expect("the disk works");
    assert_eq!((manifest.keys, manifest.digest, manifest.is_of_disk_engine), (300, digest, false));
    digest
}

#[test]
fn what_was_written_is_read_back() {
    let place = Place::new();
    let digest = write(&place.0);
    let backup = Backup::open(&place.0).expect("it is whole");
    assert_eq!(backup.manifest().origin.last.op_number, OpNumber(12));
    backup.verify(|_| {}).expect("it is intact");
    let mut loader = Some(MemoryEngine::loader(7));
    let (mut heads, mut found) = (0, Vec::new());
    let describe = |_: &[u8]| None;
    backup
        .read::<BackupError>(describe, |item| {
            match item {
                Item::Head(head) => {
                    assert_eq!((head.op_number, head.view, head.time), (OP_NUMBER, VIEW, TIME));
                    heads += 1;
                }
                Item::Block(block) => loader.as_mut().unwrap().block(block).expect("it is a block"),
                Item::Record(record) => found.push(*record),
            }
            Ok(())
        })
        .expect("it is intact");
    assert_eq!((heads, found), (1, records()));
    let engine = loader.take().unwrap().finish().expect("it is a snapshot");
    assert_eq!((engine.digest(), engine.len()), (digest, 300));
}

#[test]
fn every_flipped_bit_and_every_cut_is_found_and_named() {
    let place = Place::new();
    write(&place.0);
    let mut names: Vec<PathBuf> =
        fs::read_dir(&place.0).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    assert!(names.len() > 2, "there are several parts");
    for path in names {
        let intact = fs::read(&path).unwrap();
        let name = path.display().to_string();
        for at in (0..intact.len()).step_by(1.max(intact.len() / 25)) {
            let mut flipped = intact.clone();
            flipped[at] ^= 1 << (at % 8);
            fs::write(&path, &flipped).unwrap();
            let found = Backup::open(&place.0).and_then(|backup| backup.verify(|_| {}));
            let error = found.expect_err("a bit was flipped").to_string();
            assert!(error.contains(&name), "byte {at} of {name}: {error}");
            fs::write(&path, &intact[..at]).unwrap();
            let found = Backup::open(&place.0).and_then(|backup| backup.verify(|_| {}));
            let error = found.expect_err("the file was cut").to_string();
            assert!(error.contains(&name), "{name} cut to {at} bytes: {error}");
        }
        let longer = [&intact[..], b"x"].concat();
        fs::write(&path, longer).unwrap();
        assert!(Backup::open(&place.0).and_then(|backup| backup.verify(|_| {})).is_err(), "{name} is longer");
        fs::write(&path, &intact).unwrap();
    }
    Backup::open(&place.0).and_then(|backup| backup.verify(|_| {})).expect("all is as it was");
}

#[test]
fn parts_of_another_backup_are_not_taken() {
    let (one, other) = (Place::new(), Place::new());
    write(&one.0);
    let (file, _) = snapshot(301);
    let mut writer = BackupWriter::create(&other.0).expect("the place is free").in_small_pieces();
    writer.write(&file).expect("the disk works");
    writer.finish(origin(file.len(), 0), || {}).expect("the disk works");
    fs::copy(other.0.join("data-00001"), one.0.join("data-00001")).unwrap();
    assert!(Backup::open(&one.0).unwrap().verify(|_| {}).is_err());
}

#[test]
fn a_backup_that_was_not_finished_is_none() {
    let place = Place::new();
    let (file, _) = snapshot(300);
    let mut writer = BackupWriter::create(&place.0).expect("the place is free").in_small_pieces();
    writer.write(&file).expect("the disk works");
    drop(writer);
    assert!(matches!(Backup::open(&place.0), Err(BackupError::NoManifest { .. })));
    assert!(
        matches!(BackupWriter::create(&place.0), Err(BackupError::NotEmpty { .. })),
        "nothing is overwritten"
    );
    remove_unfinished(&place.0);
    assert_eq!(fs::read_dir(&place.0).unwrap().count(), 0);
    // What cannot be read back gets no manifest.
    let mut writer = BackupWriter::create(&place.0).expect("it is empty now");
    writer.write(&file[..file.len() - 1]).expect("the disk works");
    let refused = writer.finish(origin(file.len(), 0), || {}).expect_err("a byte is missing");
    assert!(matches!(refused, BackupError::Snapshot { .. }), "{refused}");
    assert!(!place.0.join(MANIFEST).exists());
}

#[test]
fn a_finished_backup_is_not_removed() {
    let place = Place::new();
    write(&place.0);
    remove_unfinished(&place.0);
    Backup::open(&place.0).and_then(|backup| backup.verify(|_| {})).expect("it is intact");
}

#[test]
fn a_later_format_is_refused_by_name() {
    let place = Place::new();
    write(&place.0);
    let path = place.0.join(MANIFEST);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("format = 1", "format = 2")).unwrap();
    let refused = Backup::open(&place.0).expect_err("it is of another format");
    assert!(refused.to_string().contains("has format version 2; this build reads version 1"), "{refused}");
}

/// A backup that ends with entry 12, and has a log from entry `first` on with one tick in each file: 13 to 16, and two earlier.
fn write_with_log(path: &Path) -> u64 {
    let (file, digest) = snapshot(300);
    let mut log = LogWriter::begin(path, 0x1234, OpNumber(OP_NUMBER.0 - 2));
    let mut writer = BackupWriter::create(path).expect("the place is free").in_small_pieces();
    let at = |number: u64| LogEntry { time: WallTime(TIME.0 + 10 * number - 90), ..tick(0) };
    for number in OP_NUMBER.0 - 1..=OP_NUMBER.0 {
        log.push(vec![LogEntry { time: TIME, ..tick(0) }]).expect("the disk works");
        assert_eq!(log.end().op_number.0, number);
    }
    log.push(vec![at(10), at(11)]).expect("the disk works");
    log.finish_file().expect("the disk works");
    log.finish_file().expect("there is nothing to write");
    writer.write(&file).expect("the disk works");
    let last = LastEntry { op_number: OP_NUMBER, view: VIEW, time: TIME };
    writer.finish(Origin { last, ..origin(file.len(), 0) }, || {}).expect("the disk works");
    drop(log);
    for number in 12..=14 {
        let (mut log, _) = LogWriter::resume(path).expect("it is whole");
        log.push(vec![at(number)]).expect("the disk works");
        log.finish_file().expect("the disk works");
    }
    digest
}

fn numbers(backup: &Backup, last: u64) -> Vec<u64> {
    let mut numbers = Vec::new();
    let take = |number: OpNumber, _| -> Result<(), BackupError> {
        numbers.push(number.0);
        Ok(())
    };
    backup.read_log(OpNumber(last), |_| None, take).expect("it is intact");
    numbers
}

#[test]
fn a_log_goes_on_where_a_backup_ends_and_is_read_up_to_any_entry_or_moment() {
    let place = Place::new();
    write_with_log(&place.0);
    let backup = Backup::open(&place.0).expect("it is whole");
    backup.verify(|_| {}).expect("it is intact");
    assert_eq!((backup.log_files().len(), backup.end().op_number), (4, OpNumber(14)));
    assert_eq!(numbers(&backup, 14), [10, 11, 12, 13, 14]);
    assert_eq!(numbers(&backup, 11), [10, 11]);
    assert_eq!(numbers(&backup, 9), [0_u64; 0]);
    let resolve =
        |until| backup.resolve(until).map(|last| last.op_number.0).map_err(|error| error.to_string());
    assert_eq!(resolve(Until::End), Ok(14));
    for number in 9..=14 {
        assert_eq!(resolve(Until::Entry(OpNumber(number))), Ok(number));
        // Its moment, and just before the next one's.
        for more in [0, 9] {
            let time = WallTime(TIME.0 + 10 * number - 90 + more);
            if number < 14 || more == 0 {
                assert_eq!(resolve(Until::Time(time)), Ok(number), "{number} and {more} us");
            }
        }
    }
    let refused = [
        Until::Entry(OpNumber(8)),
        Until::Entry(OpNumber(15)),
        Until::Time(WallTime(TIME.0 - 1)),
        Until::Time(WallTime(TIME.0 + 51)),
    ];
    for until in refused {
        let told = resolve(until).expect_err("it is not in it");
        assert!(
            told.contains("covers entry 9 of 1970-01-01T00:00:01Z to entry 14 of 1970-01-01T00:00:01.00005Z"),
            "{told}"
        );
    }
}

#[test]
fn every_flipped_bit_and_every_gap_in_a_log_is_found_and_named() {
    let (place, other) = (Place::new(), Place::new());
    write_with_log(&place.0);
    let verify = || Backup::open(&place.0).and_then(|backup| backup.verify(|_| {}));
    for number in 1..=4 {
        let path = place.0.join(format!("log-0000000{number}"));
        let intact = fs::read(&path).unwrap();
        let is_found = |bytes: &[u8], what: &str| {
            fs::write(&path, bytes).unwrap();
            let error = verify().expect_err(what).to_string();
            assert!(
                error.contains(&path.display().to_string()) || error.contains("log-0000000"),
                "{what}: {error}"
            );
        };
        for at in 0..intact.len() {
            let mut flipped = intact.clone();
            flipped[at] ^= 1 << (at % 8);
            is_found(&flipped, &format!("byte {at} of file {number}"));
        }
        for at in (0..intact.len()).step_by(37) {
            is_found(&intact[..at], &format!("file {number} cut to {at} bytes"));
        }
        is_found(&[&intact[..], b"x"].concat(), "a longer file");
        fs::remove_file(&path).unwrap();
        // What follows the end nobody can miss.
        assert_eq!(verify().is_err(), number < 4);
        fs::write(&path, &intact).unwrap();
    }
    verify().expect("all is as it was");
    // A file of another log, and one at another place.
    write_with_log(&other.0);
    let path = place.0.join("log-00000003");
    let intact = fs::read(&path).unwrap();
    fs::copy(place.0.join("log-00000002"), &path).unwrap();
    assert!(verify().is_err(), "it is another file");
    fs::write(&path, intact).unwrap();
    verify().expect("all is as it was");
}

/// A crash leaves what was finished, and nobody else goes on at the same time.
#[test]
fn an_interrupted_file_counts_for_nothing_and_one_process_continues_a_backup() {
    let place = Place::new();
    write_with_log(&place.0);
    fs::write(place.0.join("log-00000005.tmp"), b"syros backup log\nformat = 1").unwrap();
    Backup::open(&place.0).and_then(|backup| backup.verify(|_| {})).expect("it is whole");
    let (log, _) = LogWriter::resume(&place.0).expect("it is whole");
    assert!(matches!(LogWriter::resume(&place.0), Err(BackupError::InUse { .. })));
    drop(log);
    assert!(!place.0.join("log-00000005.tmp").exists());
    assert!(LogWriter::resume(&place.0).is_ok());
    // One that was not finished leaves nothing, its log neither.
    fs::remove_file(place.0.join(MANIFEST)).unwrap();
    assert!(matches!(LogWriter::resume(&place.0), Err(BackupError::NoManifest { .. })));
    remove_unfinished(&place.0);
    assert_eq!(fs::read_dir(&place.0).unwrap().count(), 0);
    let recovered = Place::new();
    write(&recovered.0);
    assert!(matches!(LogWriter::resume(&recovered.0), Err(BackupError::HasRecords { .. })));
}

/// The log is copied while the snapshot is, and a crash just after that may leave it behind.
#[test]
fn a_log_that_ends_before_the_snapshot_goes_on_behind_it() {
    let place = Place::new();
    let (file, _) = snapshot(300);
    let mut log = LogWriter::begin(&place.0, 0x1234, OpNumber(OP_NUMBER.0 - 4));
    let mut writer = BackupWriter::create(&place.0).expect("the place is free");
    log.push(vec![LogEntry { time: TIME, ..tick(0) }]).expect("the disk works");
    log.finish_file().expect("the disk works");
    writer.write(&file).expect("the disk works");
    let last = LastEntry { op_number: OP_NUMBER, view: VIEW, time: TIME };
    writer.finish(Origin { last, ..origin(file.len(), 0) }, || {}).expect("the disk works");
    drop(log);
    let (mut log, backup) = LogWriter::resume(&place.0).expect("it is whole");
    assert_eq!((backup.end(), log.durable()), (last, OP_NUMBER));
    log.push(vec![tick(1)]).expect("the disk works");
    assert_eq!((log.durable(), log.end().op_number), (OP_NUMBER, OP_NUMBER.next()));
    log.finish_file().expect("the disk works");
    drop(log);
    let backup = Backup::open(&place.0).expect("it is whole");
    backup.verify(|_| {}).expect("it is intact");
    assert_eq!((backup.end().op_number, numbers(&backup, 10)), (OpNumber(10), vec![10]));
    // What no restoration needs is looked at all the same.
    let path = place.0.join("log-00000001");
    let mut flipped = fs::read(&path).unwrap();
    *flipped.last_mut().unwrap() ^= 1;
    fs::write(&path, flipped).unwrap();
    assert!(backup.verify(|_| {}).is_err());
    fs::remove_file(path).unwrap();
    assert!(Backup::open(&place.0).is_err(), "one is missing before another");
}
