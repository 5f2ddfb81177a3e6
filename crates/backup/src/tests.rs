//! Whole backups, written, damaged and read.

use crate::{
    Backup, BackupError, BackupWriter, Item, LastEntry, LogWriter, MANIFEST, Origin, Place, Until,
    put_record, remove_unfinished,
};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use syros_protocol::message::{LogEntry, Payload};
use syros_protocol::record::{Record, SnapshotHead};
use syros_protocol::sessions::Sessions;
use syros_s3::Location;
use syros_s3::test_server::{BUCKET, Conditions, Fault, TestServer};
use syros_snapshot::SnapshotStore;
use syros_storage::{Engine as _, MemoryEngine};
use syros_types::{OpNumber, View, WallTime, mix};
use syros_wal::memory_disk::MemoryDisk;

const CLUSTER: u64 = 0x77;
const VIEW: View = View(3);
const TIME: WallTime = WallTime(1_000_000);
const OP_NUMBER: OpNumber = OpNumber(9);

/// A place for a backup, which goes when the test ends.
struct Spot {
    place: Place,
    kind: Kind,
}

enum Kind {
    Directory(PathBuf),
    Bucket(TestServer),
}

/// What stands before the names of objects.
const PREFIX: &str = "backups/of today/";

impl Spot {
    fn directory() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("syros-backup-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self { place: Place::directory(&path), kind: Kind::Directory(path) }
    }

    fn bucket() -> Self {
        let server = TestServer::start();
        Self { place: place_in(&server), kind: Kind::Bucket(server) }
    }

    /// One of each kind: whatever holds in a directory holds in a bucket.
    fn both() -> [Self; 2] {
        [Self::directory(), Self::bucket()]
    }

    /// The same place, as another process sees it.
    fn elsewhere(&self) -> Place {
        match &self.kind {
            Kind::Directory(path) => Place::directory(path),
            Kind::Bucket(server) => place_in(server),
        }
    }

    const fn is_bucket(&self) -> bool {
        matches!(self.kind, Kind::Bucket(_))
    }

    fn server(&self) -> &TestServer {
        let Kind::Bucket(server) = &self.kind else { panic!("it is a directory") };
        server
    }

    fn names(&self) -> Vec<String> {
        let mut names = self.place.storage().list().expect("it can be read");
        names.sort();
        names
    }

    fn read(&self, name: &str) -> Vec<u8> {
        match &self.kind {
            Kind::Directory(path) => fs::read(path.join(name)).expect("it is there"),
            Kind::Bucket(server) => server.objects()[&format!("{PREFIX}{name}")].clone(),
        }
    }

    fn write(&self, name: &str, bytes: impl Into<Vec<u8>>) {
        match &self.kind {
            Kind::Directory(path) => fs::write(path.join(name), bytes.into()).expect("it can be written"),
            Kind::Bucket(server) => server.set(&format!("{PREFIX}{name}"), Some(bytes.into())),
        }
    }

    fn remove(&self, name: &str) {
        match &self.kind {
            Kind::Directory(path) => fs::remove_file(path.join(name)).expect("it is there"),
            Kind::Bucket(server) => server.set(&format!("{PREFIX}{name}"), None),
        }
    }

    fn verify(&self) -> Result<(), BackupError> {
        Backup::open(&self.place).and_then(|backup| backup.verify(|_| {}))
    }
}

impl Drop for Spot {
    fn drop(&mut self) {
        if let Kind::Directory(path) = &self.kind {
            let _ = fs::remove_dir_all(path);
        }
    }
}

fn place_in(server: &TestServer) -> Place {
    let location = Location::parse(&format!("s3://{BUCKET}/{PREFIX}")).expect("it is a bucket");
    Place::bucket(server.client(), location.expect("it is a location"))
}

/// Nothing is to be done meanwhile.
fn nothing() {}

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
fn write(place: &Place) -> u64 {
    let (file, digest) = snapshot(300);
    let mut behind = Vec::new();
    records().iter().for_each(|record| put_record(record, &mut behind));
    let mut writer = BackupWriter::create(place).expect("the place is free").in_small_pieces();
    for piece in file.chunks(777) {
        writer.write(piece, &mut nothing).expect("the disk works");
    }
    writer.write(&behind, &mut nothing).expect("the disk works");
    let manifest = writer.finish(origin(file.len(), behind.len()), || {}).expect("the disk works");
    assert_eq!((manifest.keys, manifest.digest, manifest.is_of_disk_engine), (300, digest, false));
    digest
}

#[test]
fn what_was_written_is_read_back() {
    for spot in &Spot::both() {
        let digest = write(&spot.place);
        let backup = Backup::open(&spot.place).expect("it is whole");
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
}

#[test]
fn every_flipped_bit_and_every_cut_is_found_and_named() {
    for spot in &Spot::both() {
        write(&spot.place);
        let names = spot.names();
        assert!(
            names.len() > 2 && !names.contains(&"claim".to_owned()),
            "there are several parts: {names:?}"
        );
        for name in names {
            let intact = spot.read(&name);
            let full_name = spot.place.name_of(&name);
            // Each of them reads all of the backup, which takes longer by a network.
            let every = if spot.is_bucket() { intact.len() } else { 1.max(intact.len() / 25) };
            for at in (intact.len() / 2 % every..intact.len()).step_by(every) {
                let mut flipped = intact.clone();
                flipped[at] ^= 1 << (at % 8);
                spot.write(&name, flipped);
                let error = spot.verify().expect_err("a bit was flipped").to_string();
                assert!(error.contains(&full_name), "byte {at} of {name}: {error}");
                spot.write(&name, &intact[..at]);
                let error = spot.verify().expect_err("the file was cut").to_string();
                assert!(error.contains(&full_name), "{name} cut to {at} bytes: {error}");
            }
            spot.write(&name, [&intact[..], b"x"].concat());
            assert!(spot.verify().is_err(), "{name} is longer");
            spot.remove(&name);
            let error = spot.verify().expect_err("the file is gone").to_string();
            assert!(error.contains(&full_name) || name == MANIFEST, "{name} is gone: {error}");
            spot.write(&name, intact);
        }
        spot.verify().expect("all is as it was");
    }
}

#[test]
fn parts_of_another_backup_are_not_taken() {
    for (one, other) in Spot::both().iter().zip(&Spot::both()) {
        write(&one.place);
        let (file, _) = snapshot(301);
        let mut writer = BackupWriter::create(&other.place).expect("the place is free").in_small_pieces();
        writer.write(&file, &mut nothing).expect("the disk works");
        writer.finish(origin(file.len(), 0), || {}).expect("the disk works");
        one.write("data-00001", other.read("data-00001"));
        assert!(one.verify().is_err());
    }
}

#[test]
fn a_backup_that_was_not_finished_is_none() {
    for spot in &Spot::both() {
        let (file, _) = snapshot(300);
        let mut writer = BackupWriter::create(&spot.place).expect("the place is free").in_small_pieces();
        writer.write(&file, &mut nothing).expect("the disk works");
        drop(writer);
        assert!(matches!(Backup::open(&spot.place), Err(BackupError::NoManifest { .. })));
        assert!(BackupWriter::create(&spot.elsewhere()).is_err(), "nothing is overwritten");
        spot.write("of somebody else", *b"stays");
        assert!(!remove_unfinished(&spot.place));
        assert_eq!(spot.names(), ["of somebody else"]);
        spot.remove("of somebody else");
        // What cannot be read back gets no manifest.
        let mut writer = BackupWriter::create(&spot.place).expect("it is empty now");
        writer.write(&file[..file.len() - 1], &mut nothing).expect("the disk works");
        let refused = writer.finish(origin(file.len(), 0), || {}).expect_err("a byte is missing");
        assert!(matches!(refused, BackupError::Snapshot { .. }), "{refused}");
        assert!(!spot.names().contains(&MANIFEST.to_owned()));
    }
}

/// Each is told of the other, and nothing of the winner's is touched.
#[test]
fn of_two_who_make_a_backup_in_one_place_one_wins() {
    for spot in &Spot::both() {
        let mut writer = BackupWriter::create(&spot.place).expect("the place is free").in_small_pieces();
        let second = |what: &str| {
            let refused = BackupWriter::create(&spot.elsewhere()).expect_err(what);
            let is_told = matches!(refused, BackupError::Claimed { .. })
                || spot.is_bucket() && matches!(refused, BackupError::NotEmpty { .. });
            assert!(is_told, "{what}: {refused}");
        };
        second("another one has just begun");
        let (file, _) = snapshot(300);
        writer.write(&file, &mut nothing).expect("the disk works");
        second("another one has written something");
        writer.finish(origin(file.len(), 0), || {}).expect("the disk works");
        spot.verify().expect("it is intact");
        let refused = BackupWriter::create(&spot.elsewhere()).expect_err("there is a backup");
        assert!(matches!(refused, BackupError::NotEmpty { .. }), "{refused}");
        spot.verify().expect("it is intact");
    }
    // All at once, so that several find nothing there.
    for spot in &Spot::both() {
        let places: Vec<Place> = (0..8).map(|_| spot.elsewhere()).collect();
        let start = std::sync::Barrier::new(places.len());
        let won = std::thread::scope(|threads| {
            let tries: Vec<_> = places
                .iter()
                .map(|place| {
                    threads.spawn(|| {
                        start.wait();
                        BackupWriter::create(place).is_ok()
                    })
                })
                .collect();
            tries.into_iter().map(|one| one.join().expect("it does not panic")).filter(|won| *won).count()
        });
        assert_eq!(won, 1);
    }
}

#[test]
fn a_finished_backup_is_not_removed() {
    for spot in &Spot::both() {
        write(&spot.place);
        remove_unfinished(&spot.place);
        Backup::open(&spot.place).and_then(|backup| backup.verify(|_| {})).expect("it is intact");
    }
}

#[test]
fn a_later_format_is_refused_by_name() {
    for spot in &Spot::both() {
        write(&spot.place);
        let text = String::from_utf8(spot.read(MANIFEST)).expect("it is text");
        spot.write(MANIFEST, text.replace("format = 1", "format = 2"));
        let refused = Backup::open(&spot.place).expect_err("it is of another format");
        let told = refused.to_string();
        assert!(told.contains("has format version 2; this build reads version 1"), "{told}");
    }
}

/// A backup that ends with entry 12, and has a log from entry `first` on with one tick in each file: 13 to 16, and two earlier.
fn write_with_log(place: &Place) -> u64 {
    let (file, digest) = snapshot(300);
    let mut log = LogWriter::begin(place, 0x1234, OpNumber(OP_NUMBER.0 - 2));
    let mut writer = BackupWriter::create(place).expect("the place is free").in_small_pieces();
    let at = |number: u64| LogEntry { time: WallTime(TIME.0 + 10 * number - 90), ..tick(0) };
    for number in OP_NUMBER.0 - 1..=OP_NUMBER.0 {
        log.push(vec![LogEntry { time: TIME, ..tick(0) }], &mut nothing).expect("the disk works");
        assert_eq!(log.end().op_number.0, number);
    }
    log.push(vec![at(10), at(11)], &mut nothing).expect("the disk works");
    log.finish_file(&mut nothing).expect("the disk works");
    log.finish_file(&mut nothing).expect("there is nothing to write");
    writer.write(&file, &mut nothing).expect("the disk works");
    let last = LastEntry { op_number: OP_NUMBER, view: VIEW, time: TIME };
    writer.finish(Origin { last, ..origin(file.len(), 0) }, || {}).expect("the disk works");
    drop(log);
    for number in 12..=14 {
        let (mut log, _) = LogWriter::resume(place).expect("it is whole");
        log.push(vec![at(number)], &mut nothing).expect("the disk works");
        log.finish_file(&mut nothing).expect("the disk works");
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
    for spot in &Spot::both() {
        write_with_log(&spot.place);
        let backup = Backup::open(&spot.place).expect("it is whole");
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
                told.contains(
                    "covers entry 9 of 1970-01-01T00:00:01Z to entry 14 of 1970-01-01T00:00:01.00005Z"
                ),
                "{told}"
            );
        }
    }
}

#[test]
fn every_flipped_bit_and_every_gap_in_a_log_is_found_and_named() {
    for (spot, other) in Spot::both().iter().zip(&Spot::both()) {
        write_with_log(&spot.place);
        let steps = if spot.is_bucket() { 397 } else { 1 };
        for number in 1..=4 {
            let name = format!("log-0000000{number}");
            let intact = spot.read(&name);
            let is_found = |bytes: &[u8], what: &str| {
                spot.write(&name, bytes);
                let error = spot.verify().expect_err(what).to_string();
                assert!(error.contains(&spot.place.name_of("log-0000000")), "{what}: {error}");
            };
            for at in (0..intact.len()).step_by(steps) {
                let mut flipped = intact.clone();
                flipped[at] ^= 1 << (at % 8);
                is_found(&flipped, &format!("byte {at} of file {number}"));
            }
            for at in (0..intact.len()).step_by(37.max(steps)) {
                is_found(&intact[..at], &format!("file {number} cut to {at} bytes"));
            }
            is_found(&[&intact[..], b"x"].concat(), "a longer file");
            spot.remove(&name);
            // What follows the end nobody can miss.
            assert_eq!(spot.verify().is_err(), number < 4);
            spot.write(&name, intact);
        }
        spot.verify().expect("all is as it was");
        // A file of another log, and one at another place.
        write_with_log(&other.place);
        let intact = spot.read("log-00000003");
        spot.write("log-00000003", spot.read("log-00000002"));
        assert!(spot.verify().is_err(), "it is another file");
        spot.write("log-00000003", intact);
        spot.verify().expect("all is as it was");
    }
}

/// A crash leaves what was finished, and nobody else goes on at the same time.
#[test]
fn an_interrupted_file_counts_for_nothing_and_one_process_continues_a_backup() {
    for spot in &Spot::both() {
        write_with_log(&spot.place);
        spot.write("log-00000005.tmp", *b"syros backup log\nformat = 1");
        spot.verify().expect("it is whole");
        let (mut log, _) = LogWriter::resume(&spot.place).expect("it is whole");
        let again = LogWriter::resume(&spot.elsewhere());
        log.push(vec![tick(100)], &mut nothing).expect("the disk works");
        log.finish_file(&mut nothing).expect("the disk works");
        if spot.is_bucket() {
            // There are no locks. The second one is told when it writes what is there.
            let (mut again, _) = again.expect("it is whole");
            again.push(vec![tick(200)], &mut nothing).expect("nothing is written yet");
            let refused = again.finish_file(&mut nothing).expect_err("another one has written that");
            assert!(matches!(refused, BackupError::InUse { .. }), "{refused}");
        } else {
            assert!(matches!(again, Err(BackupError::InUse { .. })));
            assert!(!spot.names().contains(&"log-00000005.tmp".to_owned()));
        }
        spot.verify().expect("it is whole");
        drop(log);
        assert!(LogWriter::resume(&spot.elsewhere()).is_ok());
        assert!(!spot.names().contains(&"claim".to_owned()));
        // One that was not finished leaves nothing, its log neither.
        spot.remove(MANIFEST);
        assert!(matches!(LogWriter::resume(&spot.place), Err(BackupError::NoManifest { .. })));
        remove_unfinished(&spot.place);
        assert_eq!(spot.names().len(), 0);
    }
    for recovered in &Spot::both() {
        write(&recovered.place);
        assert!(matches!(LogWriter::resume(&recovered.place), Err(BackupError::HasRecords { .. })));
    }
}

/// The log is copied while the snapshot is, and a crash just after that may leave it behind.
#[test]
fn a_log_that_ends_before_the_snapshot_goes_on_behind_it() {
    for spot in &Spot::both() {
        let (file, _) = snapshot(300);
        let mut log = LogWriter::begin(&spot.place, 0x1234, OpNumber(OP_NUMBER.0 - 4));
        let mut writer = BackupWriter::create(&spot.place).expect("the place is free");
        log.push(vec![LogEntry { time: TIME, ..tick(0) }], &mut nothing).expect("the disk works");
        log.finish_file(&mut nothing).expect("the disk works");
        writer.write(&file, &mut nothing).expect("the disk works");
        let last = LastEntry { op_number: OP_NUMBER, view: VIEW, time: TIME };
        writer.finish(Origin { last, ..origin(file.len(), 0) }, || {}).expect("the disk works");
        drop(log);
        let (mut log, backup) = LogWriter::resume(&spot.place).expect("it is whole");
        assert_eq!((backup.end(), log.durable()), (last, OP_NUMBER));
        log.push(vec![tick(1)], &mut nothing).expect("the disk works");
        assert_eq!((log.durable(), log.end().op_number), (OP_NUMBER, OP_NUMBER.next()));
        log.finish_file(&mut nothing).expect("the disk works");
        drop(log);
        let backup = Backup::open(&spot.place).expect("it is whole");
        backup.verify(|_| {}).expect("it is intact");
        assert_eq!((backup.end().op_number, numbers(&backup, 10)), (OpNumber(10), vec![10]));
        // What no restoration needs is looked at all the same.
        let mut flipped = spot.read("log-00000001");
        *flipped.last_mut().unwrap() ^= 1;
        spot.write("log-00000001", flipped);
        assert!(backup.verify(|_| {}).is_err());
        spot.remove("log-00000001");
        assert!(Backup::open(&spot.place).is_err(), "one is missing before another");
    }
}

/// Everything that a store and a network do to requests, while a backup is written, continued and read: it is whole, or an error says
/// what it was, and then there is no manifest.
#[test]
fn a_bucket_that_fails_now_and_then_gets_a_whole_backup() {
    for fault in [
        Fault::Status(500, "InternalError"),
        Fault::Status(503, "SlowDown"),
        Fault::Status(409, "ConditionalRequestConflict"),
        Fault::Reset,
        Fault::Lost,
    ] {
        let spot = Spot::bucket();
        for end in ["claim", "data-00001", "data-00003", "log-00000002", "manifest"] {
            spot.server().fail("PUT", end, 2, fault.clone());
            spot.server().fail("GET", end, 2, fault.clone());
        }
        write_with_log(&spot.place);
        spot.server().fail("GET", "data-00002", 2, Fault::Cut);
        spot.verify().unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        assert_eq!(numbers(&Backup::open(&spot.place).expect("it is whole"), 14), [10, 11, 12, 13, 14]);
    }
}

#[test]
fn a_bucket_that_fails_for_good_has_no_manifest_and_says_why() {
    for (end, fault, told) in [
        ("data-00003", Fault::Status(500, "InternalError"), "500 InternalError"),
        ("data-00003", Fault::Status(403, "AccessDenied"), "403 AccessDenied"),
        ("data-00003", Fault::Status(507, "InsufficientStorage"), "507 InsufficientStorage"),
        ("data-00002", Fault::Stall, "no answer in time"),
        ("manifest", Fault::Reset, "tried 4 times"),
    ] {
        let spot = Spot::bucket();
        spot.server().fail("PUT", end, u32::MAX, fault);
        let mut writer = BackupWriter::create(&spot.place).expect("the place is free").in_small_pieces();
        let (file, _) = snapshot(300);
        let mut meanwhile = 0;
        let written = writer
            .write(&file, &mut nothing)
            .and_then(|()| writer.finish(origin(file.len(), 0), || meanwhile += 1).map(drop));
        let error = written.expect_err("it cannot be written").to_string();
        let place = format!("PUT s3://{BUCKET}/{PREFIX}{end}");
        assert!(error.contains(told) && error.contains(&place), "{error}");
        assert!(matches!(Backup::open(&spot.place), Err(BackupError::NoManifest { .. })));
        assert!(!remove_unfinished(&spot.place), "there is no backup");
        assert_eq!(spot.names().len(), 0, "the space is free again");
    }
    // No answer says that the manifest was written, and it was: then all that it names is there, and stays.
    let spot = Spot::bucket();
    spot.server().fail("PUT", "manifest", u32::MAX, Fault::Lost);
    let mut writer = BackupWriter::create(&spot.place).expect("the place is free").in_small_pieces();
    let (file, _) = snapshot(300);
    writer.write(&file, &mut nothing).expect("the store works");
    assert!(writer.finish(origin(file.len(), 0), || {}).is_err());
    assert!(remove_unfinished(&spot.place), "there is a backup");
    spot.verify().expect("it is intact");
}

/// A bit that flips on the way to this machine, and is not there any more when somebody looks: it is damage all the same.
#[test]
fn a_bit_that_flips_on_its_way_from_a_bucket_is_found() {
    let spot = Spot::bucket();
    write_with_log(&spot.place);
    for name in ["manifest", "data-00002", "log-00000003"] {
        spot.server().fail("GET", name, 1, Fault::Flip);
        let error = spot.verify().expect_err("a bit was flipped").to_string();
        assert!(error.contains(&format!("s3://{BUCKET}/{PREFIX}{name}")), "{error}");
        spot.verify().expect("it was the way");
    }
}

/// With a store that does not know conditions, a backup is made and continued, and whoever does it is told.
#[test]
fn a_bucket_without_conditions_is_named() {
    for (conditions, is_known) in
        [(Conditions::Known, true), (Conditions::Ignored, false), (Conditions::Refused, false)]
    {
        let spot = Spot::bucket();
        spot.server().set_conditions(conditions);
        write_with_log(&spot.place);
        spot.verify().expect("it is whole");
        assert_eq!(spot.place.warning().is_none(), is_known, "{conditions:?}");
        let place = spot.elsewhere();
        let (mut log, _) = LogWriter::resume(&place).expect("it is whole");
        assert_eq!(place.warning().is_none(), is_known, "{conditions:?}");
        // What is there is not overwritten, be it that two do not write in the same moment.
        let (mut other, _) = LogWriter::resume(&spot.elsewhere()).expect("it is whole");
        log.push(vec![tick(100)], &mut nothing).expect("it is only taken");
        log.finish_file(&mut nothing).expect("the store works");
        other.push(vec![tick(200)], &mut nothing).expect("it is only taken");
        assert!(matches!(other.finish_file(&mut nothing), Err(BackupError::InUse { .. })), "{conditions:?}");
        spot.verify().expect("it is whole");
        assert!(BackupWriter::create(&spot.elsewhere()).is_err(), "{conditions:?}");
    }
}
