//! Segments that the log needs no more and that are kept beside it, and reading a log that is in use.

mod common;

use common::{open, options, payload, write_to};
use syros_types::Prng;
use syros_wal::memory_disk::MemoryDisk;
use syros_wal::{
    Cause, Disk, LogPiece, LogPosition, LogReadError, Options, RecordNumber, Unneeded, Wal, log_segments,
    read_log,
};

/// Segments of some two records, of which all are kept.
fn keeping(keep_bytes: u64) -> Options {
    Options { segment_bytes: 100, keep_bytes, ..options() }
}

fn names(disk: &MemoryDisk, prefix: &str) -> Vec<String> {
    disk.clone().list().unwrap().into_iter().filter(|name| name.starts_with(prefix)).collect()
}

/// Reads from a segment on, a few bytes at a time.
fn read_from(disk: &MemoryDisk, first: u64, through: u64) -> Result<Vec<(u64, Vec<u8>)>, LogReadError> {
    let mut position = LogPosition::beginning_of(RecordNumber(first));
    let mut records = Vec::new();
    loop {
        let mut take = |number: RecordNumber, bytes: &[u8]| {
            records.push((number.0, bytes.to_vec()));
            true
        };
        let piece =
            read_log(&mut disk.clone(), &options(), &mut position, RecordNumber(through), 30, &mut take)?;
        if piece == LogPiece::End {
            return Ok(records);
        }
    }
}

fn log_of(disk: &MemoryDisk, keep_bytes: u64, records: u64) -> Wal<MemoryDisk> {
    let (mut wal, ..) = open(disk.clone(), &keeping(keep_bytes)).unwrap();
    write_to(&mut wal, records);
    wal
}

#[test]
fn what_the_log_needs_no_more_is_kept_and_read_and_does_not_come_back() {
    let disk = MemoryDisk::new();
    let mut wal = log_of(&disk, u64::MAX, 20);
    wal.remove_before(RecordNumber(15)).unwrap();
    assert_eq!(wal.first_kept(), RecordNumber(1));
    let expected: Vec<(u64, Vec<u8>)> = (1..=20).map(|number| (number, payload(number))).collect();
    assert_eq!(read_from(&disk, 1, 20).unwrap(), expected);
    assert_eq!(log_segments(&mut disk.clone()).unwrap()[0], RecordNumber(1));
    // Only what is asked for, though more is there.
    assert_eq!(read_from(&disk, 1, 17).unwrap(), expected[..17]);
    drop(wal);
    let (wal, recovery, records) = open(disk.clone(), &keeping(u64::MAX)).unwrap();
    assert!(recovery.first > RecordNumber(10) && records.len() < 10, "what is kept is no part of the log");
    assert_eq!(wal.first_kept(), RecordNumber(1));
    drop(wal);
    // One who keeps nothing removes what was kept.
    drop(open(disk.clone(), &keeping(0)).unwrap());
    assert!(names(&disk, "kept-").is_empty());
    assert_eq!(read_from(&disk, 1, 20), Err(LogReadError::Gone(RecordNumber(1))));
}

#[test]
fn the_oldest_goes_when_too_much_is_kept_and_all_when_the_disk_is_full() {
    let disk = MemoryDisk::new();
    let mut wal = log_of(&disk, 250, 20);
    wal.remove_before(RecordNumber(20)).unwrap();
    assert!(wal.kept_bytes() <= 250 && wal.kept_bytes() > 100, "{}", wal.kept_bytes());
    let first = wal.first_kept();
    assert!(first > RecordNumber(1) && first < wal.first());
    assert_eq!(log_segments(&mut disk.clone()).unwrap()[0], first);
    disk.fail_next_append(Cause::Full, 5);
    write_to(&mut wal, 24);
    assert!(names(&disk, "kept-").is_empty(), "what is kept gives way to what is written");
    assert_eq!(wal.kept_bytes(), 0);
}

#[test]
fn what_goes_together_with_what_is_kept_is_not_kept() {
    let disk = MemoryDisk::new();
    let mut wal = log_of(&disk, u64::MAX, 20);
    wal.remove_before(RecordNumber(5)).unwrap();
    assert!(wal.kept_bytes() > 0);
    wal.let_go(Unneeded { before: Some(RecordNumber(15)), kept: true }).unwrap();
    assert!(names(&disk, "kept-").is_empty(), "a full disk would stay full");
    assert_eq!((wal.kept_bytes(), wal.first_kept()), (0, wal.first()));
}

#[test]
fn a_reader_hears_that_a_segment_has_gone_and_gets_no_other() {
    let disk = MemoryDisk::new();
    let mut wal = log_of(&disk, 0, 20);
    let mut position = LogPosition::beginning_of(RecordNumber(1));
    let through = RecordNumber(20);
    read_log(&mut disk.clone(), &options(), &mut position, through, 10, |_, _| true).unwrap();
    wal.remove_before(RecordNumber(20)).unwrap();
    let error =
        read_log(&mut disk.clone(), &options(), &mut position, through, 10, |_, _| panic!()).unwrap_err();
    assert!(matches!(error, LogReadError::Gone(_)), "{error}");
}

#[test]
fn damage_is_told_from_the_end() {
    let disk = MemoryDisk::new();
    let mut wal = log_of(&disk, u64::MAX, 20);
    wal.remove_before(RecordNumber(20)).unwrap();
    let name = names(&disk, "kept-").swap_remove(1);
    disk.corrupt(&name, 70, 1);
    let error = read_from(&disk, 1, 20).unwrap_err();
    assert!(matches!(&error, LogReadError::Damaged { file, .. } if *file == name), "{error}");
    // It is nothing to the log.
    drop(wal);
    assert!(open(disk, &keeping(u64::MAX)).is_ok());
}

/// What a build that keeps nothing leaves behind has a gap to the log.
#[test]
fn what_does_not_connect_to_the_log_goes() {
    let disk = MemoryDisk::new();
    let mut wal = log_of(&disk, u64::MAX, 20);
    wal.remove_before(RecordNumber(20)).unwrap();
    drop(wal);
    let kept = names(&disk, "kept-");
    disk.clone().remove(&kept[2]).unwrap();
    let (wal, ..) = open(disk.clone(), &keeping(u64::MAX)).unwrap();
    assert_eq!(names(&disk, "kept-"), kept[3..]);
    assert!(wal.first_kept() < wal.first());
}

/// Wherever the machine stops while segments go, the log is whole, and what is kept connects to it.
#[test]
fn power_may_fail_while_segments_are_kept() {
    for stop in 1.. {
        let disk = MemoryDisk::new();
        let mut wal = log_of(&disk, 250, 20);
        disk.stop_at(disk.operations() + stop);
        let result = wal.remove_before(RecordNumber(20));
        let has_stopped = disk.has_stopped();
        drop(wal);
        disk.crash(&mut Prng::new(stop));
        let (wal, recovery, _) = open(disk.clone(), &keeping(250)).unwrap();
        assert_eq!(recovery.last, RecordNumber(20));
        let records = read_from(&disk, wal.first_kept().0, 20).unwrap();
        assert_eq!(records.len() as u64, 21 - wal.first_kept().0);
        if !has_stopped {
            assert!(result.is_ok());
            return;
        }
    }
}
