//! What the tests share. Each uses a part of it.
#![allow(dead_code, reason = "every test binary compiles this module and uses a part of it")]

use std::convert::Infallible;
use syros_types::ReplicaId;
use syros_wal::memory_disk::MemoryDisk;
use syros_wal::{Disk, OpenError, Options, RecordNumber, Recovery, Wal, segment_name};

/// The options of most tests: no room behind the records, so that a file is as long as what is in it.
pub(crate) fn options() -> Options {
    Options { may_create: true, reserve_bytes: 1, ..Options::new(7, ReplicaId(1)) }
}

/// A log, what is said about it, and its payloads.
pub(crate) type Opened<D> = (Wal<D>, Recovery, Vec<Vec<u8>>);

/// Opens and returns all payloads, having checked their numbers.
pub(crate) fn open<D: Disk>(disk: D, options: &Options) -> Result<Opened<D>, OpenError<Infallible>> {
    let mut records: Vec<(RecordNumber, Vec<u8>)> = Vec::new();
    let (wal, recovery) = Wal::open(disk, options.clone(), |number, payload| {
        records.push((number, payload.to_vec()));
        Ok(())
    })?;
    let mut expected = recovery.first;
    for (number, _) in &records {
        assert_eq!(*number, expected);
        expected = expected.next();
    }
    assert_eq!(recovery.last.next(), expected);
    assert_eq!(wal.persisted(), recovery.last);
    assert_eq!(wal.appended(), recovery.last);
    Ok((wal, recovery, records.into_iter().map(|(_, payload)| payload).collect()))
}

/// The payload of a record, different for each.
pub(crate) fn payload(number: u64) -> Vec<u8> {
    format!("record {number} {}", "x".repeat((number * 7 % 23) as usize)).into_bytes()
}

/// The payloads of the records 1 to `last`.
pub(crate) fn payloads(last: u64) -> Vec<Vec<u8>> {
    (1..=last).map(payload).collect()
}

/// Appends, flushes and syncs the records up to `last`.
pub(crate) fn write_to<D: Disk>(wal: &mut Wal<D>, last: u64) {
    while wal.appended().0 < last {
        let bytes = payload(wal.appended().0 + 1);
        wal.append(&[&bytes]).unwrap();
        wal.flush().unwrap();
    }
    assert_eq!(wal.sync().unwrap().0, last);
}

/// The name of the only segment of a short log.
pub(crate) fn only_segment() -> String {
    segment_name(RecordNumber(1))
}

/// The only segment of a log with so many records.
pub(crate) fn segment_with(records: u64) -> Vec<u8> {
    let disk = MemoryDisk::new();
    let (mut wal, ..) = open(disk.clone(), &options()).unwrap();
    write_to(&mut wal, records);
    disk.contents(&only_segment()).unwrap()
}

/// A disk with one segment of these bytes.
pub(crate) fn disk_with(segment: &[u8]) -> MemoryDisk {
    let disk = MemoryDisk::new();
    disk.replace(&only_segment(), segment);
    disk
}
