//! Random runs with crashes at every disk operation.

mod common;

use common::{open, options, payload};
use std::convert::Infallible;
use syros_types::Prng;
use syros_wal::memory_disk::MemoryDisk;
use syros_wal::{
    Cause, CutTail, Disk, DiskError, OpenError, Options, ReadError, RecordNumber, Wal, WalError, WriteError,
    read_atomic, write_atomically,
};

/// What the outside knows about a log.
#[derive(Default)]
struct Model {
    /// Records up to this one are durable.
    persisted: u64,
    /// No more than this was ever appended. Contents depend on the number alone.
    appended: u64,
    /// Segments before this record may go.
    removable: u64,
}

/// What happened in all runs, so that the test can tell that it tests something.
#[derive(Default, Debug)]
struct Seen {
    stops: u64,
    stops_while_opening: u64,
    cuts: u64,
    /// Cuts of records that are whole, because one before them in their batch is not.
    holes: u64,
    unacknowledged: u64,
    lost: u64,
    segments: u64,
    removed: u64,
    failures: u64,
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

fn stopped(error: &WalError) -> bool {
    matches!(error, WalError::Disk(DiskError { cause: Cause::Stopped, .. }))
}

/// Uses the log until something fails.
fn work(
    wal: &mut Wal<MemoryDisk>,
    model: &mut Model,
    prng: &mut Prng,
    seen: &mut Seen,
) -> Result<(), WalError> {
    for _ in 0..prng.below(60) {
        match prng.below(8) {
            0..=3 => {
                // Now and then a batch that takes several sectors.
                for _ in 0..if prng.chance(1, 5) { 80 } else { 1 } {
                    let bytes = payload(wal.appended().0 + 1);
                    let split = prng.below(bytes.len() as u64) as usize;
                    wal.append(&[&bytes[..split], &bytes[split..]]).unwrap();
                }
                model.appended = model.appended.max(wal.appended().0);
            }
            4 | 5 => wal.flush()?,
            6 => assert_eq!(wal.sync()?, wal.persisted()),
            _ if prng.chance(1, 4) => {
                let record = RecordNumber(prng.below(wal.persisted().0 + 1));
                model.removable = model.removable.max(record.0);
                seen.removed += wal.remove_before(record)? as u64;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Opens the log, crashing on the way now and then, and checks what comes back.
fn reopen(
    disk: &MemoryDisk,
    options: &Options,
    model: &mut Model,
    prng: &mut Prng,
    seen: &mut Seen,
) -> Wal<MemoryDisk> {
    loop {
        let before = disk.duplicate();
        if prng.chance(1, 3) {
            disk.stop_at(disk.operations() + 1 + prng.below(8));
        }
        let (wal, recovery, records) = match open(disk.clone(), options) {
            Ok(opened) => opened,
            // It may also meet a fault that was planned for the process before.
            Err(OpenError::Disk(DiskError { cause, .. })) => {
                seen.stops_while_opening += u64::from(cause == Cause::Stopped);
                disk.crash(prng);
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        let (first, last) = (recovery.first.0, recovery.last.0);
        assert!(first <= model.removable.max(1), "{first} exceeds {}", model.removable);
        assert!((model.persisted..=model.appended).contains(&last), "{last}");
        assert!((first..).zip(&records).all(|(number, record)| *record == payload(number)));
        if let Some(CutTail { record, bytes, offset, file, .. }) = recovery.cut {
            assert!(record.0 == last + 1 && bytes > 0);
            seen.cuts += 1;
            let torn = before.contents(&file).unwrap().split_off(offset as usize);
            let later = (record.0 + 1..=model.appended).map(payload);
            seen.holes += u64::from(later.into_iter().any(|later| contains(&torn, &later)));
        }
        seen.unacknowledged += last - model.persisted;
        seen.lost += model.appended - last;
        seen.segments += recovery.segments as u64 - 1;
        model.persisted = last;
        model.appended = last;
        return wal;
    }
}

#[test]
fn what_was_synced_survives() {
    let mut seen = Seen::default();
    for seed in 0..3_000 {
        let mut prng = Prng::new(seed);
        let disk = MemoryDisk::new();
        let segment_bytes = if prng.chance(1, 2) { 60 + prng.below(400) } else { 8_000 };
        let reserve_bytes = [1, 100, 1_000, 10_000][prng.below(4) as usize];
        let options = Options { segment_bytes, reserve_bytes, ..options() };
        let mut model = Model::default();
        for _ in 0..8 {
            let mut wal = reopen(&disk, &options, &mut model, &mut prng, &mut seen);
            if prng.chance(2, 3) {
                disk.stop_at(disk.operations() + 1 + prng.below(40));
            }
            match prng.below(12) {
                0 => disk.fail_next_sync(Cause::Io),
                1 => disk.fail_next_write(Cause::Full, prng.below(60) as usize),
                _ => {}
            }
            match work(&mut wal, &mut model, &mut prng, &mut seen) {
                Err(error) if stopped(&error) => seen.stops += 1,
                Err(_) => seen.failures += 1,
                Ok(()) => {}
            }
            model.persisted = wal.persisted().0;
            // A process may also die while the machine goes on: then nothing is forgotten.
            let machine_stopped = disk.clone().list().is_err();
            if machine_stopped || prng.chance(5, 6) {
                disk.crash(&mut prng);
            }
        }
    }
    println!("{seen:?}");
    let Seen { stops, stops_while_opening, cuts, holes, unacknowledged, lost, segments, removed, failures } =
        seen;
    let counts = [stops, stops_while_opening, cuts, holes, unacknowledged, lost, segments, removed, failures];
    assert!(counts.iter().all(|&count| count > 500), "everything happens: {counts:?}");
}

#[test]
fn a_crash_at_every_operation() {
    // One fixed run, stopped at each of its operations in turn, with several outcomes of each crash.
    let options = Options { segment_bytes: 120, ..options() };
    let run = |disk: &MemoryDisk, persisted: &mut u64| -> Result<(), OpenError<Infallible>> {
        let (mut wal, ..) = open(disk.clone(), &options)?;
        let failed = |_| OpenError::Missing;
        for number in 1..=12 {
            wal.append(&[&payload(number)]).unwrap();
            wal.flush().map_err(failed)?;
            if number % 2 == 0 {
                *persisted = wal.sync().map_err(failed)?.0;
            }
            if number == 9 {
                wal.remove_before(RecordNumber(5)).map_err(failed)?;
            }
        }
        Ok(())
    };
    let whole = MemoryDisk::new();
    run(&whole, &mut 0).unwrap();
    assert!(whole.operations() > 30);
    for operation in 1..=whole.operations() {
        for seed in 0..40 {
            let disk = MemoryDisk::new();
            disk.stop_at(operation);
            let mut persisted = 0;
            assert!(run(&disk, &mut persisted).is_err());
            disk.crash(&mut Prng::new(seed));
            let (_, recovery, records) = open(disk, &options).unwrap();
            assert!(recovery.last.0 >= persisted && recovery.first.0 <= 5);
            assert!((recovery.first.0..).zip(&records).all(|(number, record)| *record == payload(number)));
        }
    }
}

#[test]
fn an_atomic_file_is_old_or_new() {
    let (old, new) = (b"old content".as_slice(), b"new content, and longer".as_slice());
    let mut outcomes = [0; 2];
    for operation in 1..=7 {
        for seed in 0..200 {
            let mut disk = MemoryDisk::new();
            write_atomically(&mut disk, "identity", old).unwrap();
            disk.stop_at(disk.operations() + operation);
            let written = write_atomically(&mut disk, "identity", new);
            assert_eq!(written.is_ok(), operation == 7);
            disk.crash(&mut Prng::new(seed));
            let found = read_atomic(&mut disk, "identity").unwrap().unwrap();
            assert!(found == old || found == new);
            assert!(written.is_err() || found == new, "durable once written");
            outcomes[usize::from(found == new)] += 1;
        }
    }
    assert!(outcomes.iter().all(|&count| count > 100), "{outcomes:?}");
}

/// The simulator found this: the file of a failed attempt had the name of the next one's, and a crash brought it back.
#[test]
fn an_atomic_file_is_old_or_new_after_a_failed_attempt() {
    let (old, new) = (b"old content".as_slice(), b"new content, and longer".as_slice());
    for operation in 1..=8 {
        for seed in 0..500 {
            let mut disk = MemoryDisk::new();
            write_atomically(&mut disk, "identity", old).unwrap();
            disk.fail_next_write(Cause::Full, 3);
            write_atomically(&mut disk, "identity", b"never there").unwrap_err();
            disk.stop_at(disk.operations() + operation);
            let _ = write_atomically(&mut disk, "identity", new);
            disk.crash(&mut Prng::new(seed));
            let found = read_atomic(&mut disk, "identity").unwrap().unwrap();
            assert!(found == old || found == new, "stopped at {operation}, seed {seed}: {found:?}");
        }
    }
}

#[test]
fn an_atomic_file_is_checked() {
    let mut disk = MemoryDisk::new();
    assert_eq!(read_atomic(&mut disk, "identity"), Ok(None));
    write_atomically(&mut disk, "identity", b"abc").unwrap();
    let golden = [
        b'S', b'Y', b'R', b'O', b'S', b'F', b'I', b'L', 1, 0, 0, 0, 3, 0, 0, 0, 0x35, 0x45, 0x3d, 0xa2, b'a',
        b'b', b'c',
    ];
    assert_eq!(disk.contents("identity").unwrap(), golden);
    assert_eq!(read_atomic(&mut disk, "identity"), Ok(Some(b"abc".to_vec())));
    for byte in 0..golden.len() {
        let rotten = disk.duplicate();
        rotten.corrupt("identity", byte as u64, 0x20);
        match read_atomic(&mut rotten.clone(), "identity") {
            Err(ReadError::UnsupportedVersion { .. }) => assert!((8..12).contains(&byte)),
            Err(ReadError::Damaged { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    for length in 0..golden.len() {
        disk.replace("identity", &golden[..length]);
        assert!(matches!(read_atomic(&mut disk, "identity"), Err(ReadError::Damaged { .. })));
    }
    disk.replace("other", &golden);
    let error = read_atomic(&mut disk, "other").unwrap_err();
    assert_eq!(error.to_string(), "other is damaged: its checksum does not match", "the name is checked too");
    let limit = syros_wal::ATOMIC_FILE_BYTES_MAX;
    let too_long = WriteError::TooLong { bytes: limit + 1, limit };
    assert_eq!(write_atomically(&mut disk, "identity", &vec![0; limit + 1]), Err(too_long));
}
