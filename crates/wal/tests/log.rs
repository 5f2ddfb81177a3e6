//! Segments, identities, limits, and faults.

mod common;

use common::{disk_with, only_segment, open, options, payload, payloads, segment_with, write_to};
use std::convert::Infallible;
use syros_types::{Prng, ReplicaId};
use syros_wal::memory_disk::MemoryDisk;
use syros_wal::{
    AppendError, Cause, Damage, Disk, DiskError, DiskOperation, HEADER_BYTES, MARK_BYTES, OpenError, Options,
    RECORD_BYTES_MAX, RecordFault, RecordNumber, Wal, WalError, inspect_log, segment_name,
};

/// Segments of some two records.
fn short_segments() -> Options {
    Options { segment_bytes: 100, ..options() }
}

/// The segments of a log.
fn segment_names(disk: &MemoryDisk) -> Vec<String> {
    names(disk).into_iter().filter(|name| name.starts_with("wal-")).collect()
}

fn damage(disk: &MemoryDisk, options: &Options) -> (String, u64, Damage) {
    match open(disk.clone(), options).err() {
        Some(OpenError::Damaged { file, offset, reason }) => (file, offset, reason),
        other => panic!("{other:?}"),
    }
}

fn names(disk: &MemoryDisk) -> Vec<String> {
    disk.clone().list().unwrap()
}

#[test]
fn an_absent_log_is_created_only_if_allowed() {
    let disk = MemoryDisk::new();
    let error = open(disk.clone(), &Options { may_create: false, ..options() }).err();
    assert_eq!(error, Some(OpenError::Missing));
    let (_, recovery, records) = open(disk.clone(), &options()).unwrap();
    assert_eq!((recovery.first.0, recovery.last.0, recovery.segments, records.len()), (1, 0, 1, 0));
    assert_eq!((recovery.bytes, recovery.cut), (HEADER_BYTES as u64, None));
    assert!(open(disk, &Options { may_create: false, ..options() }).is_ok());
}

#[test]
fn segments_begin_when_the_last_is_full() {
    let disk = MemoryDisk::new();
    let (mut wal, ..) = open(disk.clone(), &short_segments()).unwrap();
    write_to(&mut wal, 20);
    let segments = wal.counters().segments as usize + 1;
    assert!(segments > 5);
    assert_eq!(segment_names(&disk).len(), segments);
    assert!(segment_names(&disk).iter().all(|name| disk.contents(name).unwrap().len() <= 100));
    let long = vec![1; 1000];
    wal.append(&[b"short"]).unwrap();
    wal.append(&[&long]).unwrap();
    wal.flush().unwrap();
    wal.sync().unwrap();
    let (_, recovery, records) = open(disk.clone(), &short_segments()).unwrap();
    assert_eq!((recovery.segments, recovery.last.0), (segments + 1, 22), "a long batch is not split");
    assert_eq!(records[..20], payloads(20));
    assert_eq!(records[21], long);
    let bytes: usize = segment_names(&disk).iter().map(|name| disk.contents(name).unwrap().len()).sum();
    assert_eq!(recovery.bytes, bytes as u64);
}

#[test]
fn old_segments_go() {
    let disk = MemoryDisk::new();
    let (mut wal, ..) = open(disk.clone(), &short_segments()).unwrap();
    write_to(&mut wal, 20);
    let before = segment_names(&disk).len();
    assert_eq!(wal.remove_before(RecordNumber(1)), Ok(0));
    let removed = wal.remove_before(RecordNumber(11)).unwrap();
    assert!(removed > 0 && segment_names(&disk).len() == before - removed);
    let first = wal.first();
    assert!(first.0 <= 11 && first.0 > 7, "{first}");
    let (mut wal, recovery, records) = open(disk.clone(), &short_segments()).unwrap();
    assert_eq!((recovery.first, recovery.last.0), (first, 20));
    assert_eq!(records, payloads(20)[first.0 as usize - 1..]);
    wal.remove_before(RecordNumber(1_000)).unwrap();
    assert_eq!(segment_names(&disk).len(), 1, "the last one stays");
    write_to(&mut wal, 22);
    assert_eq!(open(disk, &short_segments()).unwrap().1.last.0, 22);
}

#[test]
fn damage_outside_the_last_segment_is_never_the_end() {
    let disk = MemoryDisk::new();
    let (mut wal, ..) = open(disk.clone(), &short_segments()).unwrap();
    write_to(&mut wal, 12);
    let all = segment_names(&disk);
    for (index, name) in all.iter().enumerate().take(all.len() - 1) {
        let contents = disk.contents(name).unwrap();
        let missing = disk.duplicate();
        missing.clone().remove(name).unwrap();
        if index > 0 {
            let (file, offset, reason) = damage(&missing, &options());
            assert_eq!((&file, offset), (&all[index + 1], 0));
            assert_eq!(
                reason.to_string(),
                format!("a segment that begins with {} is missing", {
                    let first: u64 = name[4..24].parse().unwrap();
                    RecordNumber(first)
                })
            );
        }
        for length in 0..contents.len() {
            let cut = disk.duplicate();
            cut.replace(name, &contents[..length]);
            let (file, _, reason) = damage(&cut, &options());
            match reason {
                Damage::Header(_) => assert!(length < HEADER_BYTES && file == *name),
                // A cut between two records is noticed by the next segment.
                Damage::Gap { .. } => assert_eq!(file, all[index + 1]),
                Damage::Record { fault: RecordFault::Incomplete, later: None, .. } => assert_eq!(file, *name),
                _ => panic!("{reason}"),
            }
        }
        for offset in 0..contents.len() {
            let rotten = disk.duplicate();
            assert!(rotten.corrupt(name, offset as u64, 0x10));
            match open(rotten, &options()).err() {
                Some(OpenError::UnsupportedVersion { file, .. }) => {
                    assert!(file == *name && (8..12).contains(&offset));
                }
                Some(OpenError::Damaged { file, .. }) => assert_eq!(file, *name),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn the_last_segment_is_missed() {
    let disk = MemoryDisk::new();
    let (mut wal, ..) = open(disk.clone(), &short_segments()).unwrap();
    write_to(&mut wal, 12);
    let all = segment_names(&disk);
    for gone in 1..all.len() {
        let missing = disk.duplicate();
        all[all.len() - gone..].iter().for_each(|name| missing.clone().remove(name).unwrap());
        let last = all.last().unwrap().clone();
        assert_eq!(damage(&missing, &options()), (last.clone(), 0, Damage::LastMissing), "{gone}");
        let found = inspect_log(&mut missing.clone(), None, |_, _| {}).unwrap();
        let fault = found.segments.last().map(|segment| (segment.file.clone(), segment.faults[0].reason));
        assert_eq!(fault, Some((last, Damage::LastMissing)));
    }
    // The note itself may be lost, and is made again; then the segment is missed again.
    for note in [None, Some(b"garbage".as_slice())] {
        let rotten = disk.duplicate();
        match note {
            None => rotten.clone().remove("newest-segment").unwrap(),
            Some(bytes) => rotten.replace("newest-segment", bytes),
        }
        drop(open(rotten.clone(), &options()).unwrap());
        rotten.clone().remove(all.last().unwrap()).unwrap();
        assert_eq!(damage(&rotten, &options()).2, Damage::LastMissing);
    }
}

#[test]
fn foreign_files() {
    let segment = segment_with(3);
    let disk = disk_with(&segment);
    disk.replace("identity", b"not ours to judge");
    assert!(open(disk.clone(), &options()).is_ok());

    disk.replace("wal-1.log", &segment);
    assert_eq!(damage(&disk, &options()), ("wal-1.log".to_owned(), 0, Damage::ForeignFile));

    let disk = disk_with(b"something else, and not short at all");
    let (file, _, reason) = damage(&disk, &options());
    assert_eq!((file, reason.to_string().as_str()), (only_segment(), "not a segment of a write-ahead log"));

    let disk = MemoryDisk::new();
    disk.replace(&segment_name(RecordNumber(2)), &segment);
    let reason = Damage::Renamed { header: RecordNumber(1) };
    assert_eq!(damage(&disk, &options()), (segment_name(RecordNumber(2)), 0, reason));
}

#[test]
fn other_owners_and_versions_are_refused() {
    let mut segment = segment_with(3);
    let disk = disk_with(&segment);
    let reason = Damage::OtherCluster { expected: 8, found: 7 };
    assert_eq!(damage(&disk, &Options { cluster: 8, ..options() }), (only_segment(), 0, reason));
    let reason = Damage::OtherReplica { expected: ReplicaId(2), found: ReplicaId(1) };
    assert_eq!(damage(&disk, &Options { replica: ReplicaId(2), ..options() }), (only_segment(), 0, reason));
    // Another version has another checksum; if the rest were as this version writes it, it would be rot.
    segment[8] = 7;
    segment[HEADER_BYTES - 1] ^= 1;
    assert_eq!(
        open(disk_with(&segment), &options()).err().unwrap().to_string(),
        "unsupported WAL format version 7 in wal-00000000000000000001.log; this build reads up to 4"
    );
}

#[test]
fn a_refusing_callback_ends_the_recovery() {
    let opened =
        Wal::open(
            disk_with(&segment_with(5)),
            options(),
            |number, _| {
                if number.0 < 3 { Ok(()) } else { Err("no") }
            },
        );
    let Some(OpenError::Refused { file, offset, record, error }) = opened.err() else { panic!("refused") };
    assert_eq!((file.as_str(), record, error), ("wal-00000000000000000001.log", RecordNumber(3), "no"));
    assert!(offset > HEADER_BYTES as u64, "{offset}");
}

#[test]
fn limits_of_records() {
    let disk = MemoryDisk::new();
    let (mut wal, ..) = open(disk.clone(), &Options { waiting_bytes_max: 20, ..options() }).unwrap();
    assert_eq!(wal.append(&[]), Err(AppendError::Empty));
    assert_eq!(wal.append(&[b"", b""]), Err(AppendError::Empty));
    let megabyte = vec![0; 1 << 20];
    let parts = vec![megabyte.as_slice(); (RECORD_BYTES_MAX >> 20) + 1];
    let bytes = parts.len() << 20;
    assert_eq!(wal.append(&parts), Err(AppendError::TooLong { bytes, limit: RECORD_BYTES_MAX }));
    assert_eq!(wal.append(&[b"0123456789"]), Ok(RecordNumber(1)));
    assert_eq!(wal.append(&[b"longer than ", b"what is left"]), Ok(RecordNumber(2)));
    assert_eq!(wal.append(&[b"x"]), Err(AppendError::Full { waiting: 50, limit: 20 }));
    wal.flush().unwrap();
    assert_eq!(wal.append(&[b"x"]), Ok(RecordNumber(3)));
    assert_eq!(wal.persisted(), RecordNumber(0));
    assert_eq!(wal.sync(), Ok(RecordNumber(2)), "the third was not flushed");
    assert_eq!(wal.sync(), Ok(RecordNumber(2)));
    assert_eq!((wal.counters().writes, wal.counters().syncs), (1, 1), "one write; no needless sync");
}

#[test]
fn records_longer_than_the_read_buffer() {
    let disk = MemoryDisk::new();
    let (mut wal, ..) = open(disk.clone(), &options()).unwrap();
    let mut prng = Prng::new(1);
    let records: Vec<Vec<u8>> = [1_000_000, 10, 3_000_000, 1_048_576 - 8, 1, 500_000]
        .into_iter()
        .map(|bytes| (0..bytes).map(|_| prng.next_u64() as u8).collect())
        .collect();
    for record in &records {
        wal.append(&[record]).unwrap();
    }
    wal.flush().unwrap();
    assert_eq!(open(disk, &options()).unwrap().2, records);
}

fn disk_failure<T: std::fmt::Debug>(result: Result<T, WalError>) -> (DiskOperation, Cause) {
    match result.unwrap_err() {
        WalError::Disk(DiskError { operation, cause, .. }) => (operation, cause),
        error @ (WalError::ThreadPanicked | WalError::Closed) => panic!("{error}"),
    }
}

#[test]
fn a_failed_write_is_final() {
    let options = Options { reserve_bytes: 1000, ..options() };
    for written in 0..50 {
        let disk = MemoryDisk::new();
        let (mut wal, ..) = open(disk.clone(), &options).unwrap();
        write_to(&mut wal, 3);
        wal.append(&[b"never written whole"]).unwrap();
        disk.fail_next_write(Cause::Full, written);
        assert_eq!(disk_failure(wal.flush()), (DiskOperation::Fill, Cause::Full));
        let after = disk.contents(&only_segment());
        let failed = wal.error().unwrap().clone();
        assert_eq!(wal.append(&[b"x"]), Err(AppendError::Failed(failed.clone())));
        assert_eq!(wal.flush(), Err(failed.clone()));
        assert_eq!(wal.sync(), Err(failed.clone()));
        assert_eq!(wal.remove_before(RecordNumber(9)), Err(failed));
        assert_eq!(disk.contents(&only_segment()), after, "nothing was written any more");
        assert_eq!(wal.persisted(), RecordNumber(3));
        let (_, recovery, records) = open(disk, &options).unwrap();
        if written >= MARK_BYTES + 27 {
            assert_eq!(records[3], b"never written whole", "unacknowledged, and allowed to survive");
        } else {
            assert_eq!(records, payloads(3));
            // Room had been made already, and what was written in it is cut; but a mark is true by itself, and
            // whole when its number, of one byte, is.
            let is_cut = (1..9).contains(&written) || written > MARK_BYTES;
            assert_eq!(recovery.cut.is_some(), is_cut, "{written}");
        }
    }
}

#[test]
fn a_failed_sync_is_final_and_what_it_lost_is_not_recovered() {
    let disk = MemoryDisk::new();
    let (mut wal, ..) = open(disk.clone(), &options()).unwrap();
    write_to(&mut wal, 3);
    wal.append(&[&payload(4)]).unwrap();
    wal.flush().unwrap();
    disk.fail_next_sync(Cause::Io);
    assert_eq!(disk_failure(wal.sync()), (DiskOperation::Sync, Cause::Io));
    assert_eq!(disk_failure(wal.sync()), (DiskOperation::Sync, Cause::Io), "not tried again");
    assert_eq!(wal.persisted(), RecordNumber(3));
    // A new process must not take the cache's word for it that record 4 is on the disk.
    let (mut wal, recovery, records) = open(disk.clone(), &options()).unwrap();
    assert_eq!((recovery.last.0, records), (3, payloads(3)));
    write_to(&mut wal, 4);
    disk.crash(&mut Prng::new(0));
    assert_eq!(open(disk, &options()).unwrap().2, payloads(4));
}

#[test]
fn a_full_disk_when_a_segment_begins() {
    let disk = MemoryDisk::new();
    let (mut wal, ..) = open(disk.clone(), &short_segments()).unwrap();
    write_to(&mut wal, 2);
    let used: usize = names(&disk).iter().map(|name| disk.contents(name).unwrap().len()).sum();
    disk.set_capacity(Some(used as u64 + 10));
    wal.append(&[&[1; 90]]).unwrap();
    assert_eq!(disk_failure(wal.flush()), (DiskOperation::Append, Cause::Full));
    disk.set_capacity(None);
    let (mut wal, recovery, records) = open(disk.clone(), &short_segments()).unwrap();
    assert_eq!((recovery.cut, records), (None, payloads(2)));
    assert!(names(&disk).iter().all(|name| !name.ends_with(".tmp")), "the unfinished segment is gone");
    write_to(&mut wal, 10);
    assert_eq!(open(disk, &short_segments()).unwrap().2, payloads(10));
}

#[test]
fn disk_errors_while_opening_are_reported() {
    let disk = disk_with(&segment_with(3));
    disk.fail_next_sync(Cause::Io);
    let error: OpenError<Infallible> = open(disk.clone(), &options()).err().unwrap();
    let OpenError::Disk(error) = error else { panic!("{error:?}") };
    assert_eq!((error.operation, error.cause), (DiskOperation::Sync, Cause::Io));
    let name = only_segment();
    disk.clone().sync_directory().unwrap();
    assert_eq!(error.file, name);
    assert_eq!(open(disk, &options()).unwrap().2, payloads(3));
}
