//! Reading in the background what nobody reads otherwise.

mod common;

use std::convert::Infallible;
use syros_types::{OpNumber, ReplicaId, View, WallTime};
use syros_wal::memory_disk::MemoryDisk;
use syros_wal::{
    Disk as _, Options, RecordNumber, SnapshotHeader, SnapshotWriter, Wal, scrub_log, scrub_snapshots,
    segment_name, snapshot_name,
};

const CLUSTER: u64 = 7;
const REPLICA: ReplicaId = ReplicaId(1);

/// A log with these many records, two in each segment.
fn log_of(records: u64) -> (MemoryDisk, Wal<MemoryDisk>) {
    log_with(records, 1)
}

/// The same, and room made in pieces of so many bytes.
fn log_with(records: u64, reserve_bytes: u64) -> (MemoryDisk, Wal<MemoryDisk>) {
    let disk = MemoryDisk::new();
    let options =
        Options { may_create: true, segment_bytes: 300, reserve_bytes, ..Options::new(CLUSTER, REPLICA) };
    let (mut wal, _) = Wal::open(disk.clone(), options, |_, _| Ok::<(), Infallible>(())).unwrap();
    for number in 0..records {
        wal.append(&[&[number as u8; 90]]).unwrap();
        wal.flush().unwrap();
        wal.sync().unwrap();
    }
    (disk, wal)
}

fn name(first: u64) -> String {
    segment_name(RecordNumber(first))
}

/// What is wrong with the log, in words; empty if nothing is.
fn told(disk: &MemoryDisk) -> String {
    let found = scrub_log(&mut disk.clone(), CLUSTER, REPLICA, |_| true).unwrap();
    found.map_or_else(String::new, |flaw| flaw.to_string())
}

#[test]
fn every_flipped_byte_of_a_finished_segment_is_found_and_the_last_is_left_alone() {
    let (disk, _wal) = log_of(7);
    assert_eq!(disk.clone().list().unwrap().len(), 5, "four segments and the note of the last");
    assert_eq!(told(&disk), "");
    for first in [1, 3, 5] {
        let good = disk.contents(&name(first)).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            disk.replace(&name(first), &bad);
            assert!(told(&disk).starts_with(&format!("{} at offset ", name(first))), "byte {at} of {first}");
        }
        disk.replace(&name(first), &good[..good.len() - 1]);
        assert!(told(&disk).contains(&name(first)), "cut short");
        disk.replace(&name(first), &good);
    }
    let mut last = disk.contents(&name(7)).unwrap();
    last.truncate(last.len() - 3);
    disk.replace(&name(7), &last);
    assert_eq!(told(&disk), "", "it may be in the middle of being written");
}

#[test]
fn room_behind_the_records_is_no_flaw_unless_something_is_in_it() {
    let (disk, _wal) = log_with(7, 300);
    let room = disk.contents(&name(1)).unwrap();
    assert!(room.len() == 300 && room.ends_with(&[0; 20]));
    assert_eq!(told(&disk), "");
    for at in 280..300 {
        disk.corrupt(&name(1), at, 1);
        assert!(told(&disk).starts_with(&name(1)), "byte {at}");
        disk.corrupt(&name(1), at, 1);
    }
    // The last segment is being written.
    disk.corrupt(&name(7), 290, 1);
    assert_eq!(told(&disk), "");
}

#[test]
fn what_is_missing_or_not_ours_is_told() {
    let (disk, _wal) = log_of(7);
    let third = disk.contents(&name(3)).unwrap();
    disk.clone().remove(&name(3)).unwrap();
    assert_eq!(
        told(&disk),
        format!("{} at offset 0: a segment that begins with record 3 is missing", name(5))
    );
    disk.replace(&name(3), &third);
    disk.replace(&name(9), b"garbage with the name of a segment, longer than any header");
    assert!(told(&disk).starts_with(&name(9)), "{}", told(&disk));
    disk.clone().remove(&name(9)).unwrap();
    disk.replace("wal-old.log", b"");
    assert_eq!(told(&disk), "wal-old.log at offset 0: not a file of this log");
    disk.clone().remove("wal-old.log").unwrap();
    disk.clone().remove(&name(7)).unwrap();
    assert_eq!(told(&disk), format!("{} at offset 0: it was the last segment, and is missing", name(7)));
}

#[test]
fn segments_that_are_trimmed_meanwhile_are_no_flaw() {
    for calls in 1..5 {
        let (disk, mut wal) = log_of(9);
        let (mut called, mut look) = (0, disk.clone());
        let large = vec![0; 2 << 20];
        // Records long enough that every one of them is a call.
        for _ in 0..3 {
            wal.append(&[&large]).unwrap();
            wal.flush().unwrap();
            wal.sync().unwrap();
        }
        let found = scrub_log(&mut look, CLUSTER, REPLICA, |_| {
            called += 1;
            if called == calls {
                wal.remove_before(RecordNumber(8 + calls)).unwrap();
            }
            true
        });
        assert_eq!(found, Ok(None), "{calls}");
    }
}

#[test]
fn reading_ends_when_it_is_told_to() {
    let (disk, mut wal) = log_of(1);
    for _ in 0..4 {
        wal.append(&[&vec![0; 2 << 20]]).unwrap();
        wal.flush().unwrap();
        wal.sync().unwrap();
    }
    let mut bytes = 0;
    let found = scrub_log(&mut disk.clone(), CLUSTER, REPLICA, |read| {
        bytes += read;
        false
    });
    assert_eq!(found, Ok(None));
    assert!((2 << 20..3 << 20).contains(&bytes), "{bytes}");
}

#[test]
fn every_flipped_byte_of_a_snapshot_is_found() {
    let mut disk = MemoryDisk::new();
    for number in [5, 9] {
        let (op_number, view, time) = (OpNumber(number), View(4), WallTime(1));
        let header = SnapshotHeader { cluster: CLUSTER, op_number, view, time };
        let mut writer = SnapshotWriter::create(&mut disk, header).unwrap();
        writer.block(&mut disk, 1, b"hello").unwrap();
        writer.finish(&mut disk).unwrap();
    }
    let told = |disk: &MemoryDisk| scrub_snapshots(&mut disk.clone(), CLUSTER, |_| true).unwrap();
    assert_eq!(told(&disk), None);
    let file = snapshot_name(OpNumber(9));
    let good = disk.contents(&file).unwrap();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        disk.replace(&file, &bad);
        assert_eq!(told(&disk).unwrap().file, file, "byte {at}");
    }
    disk.remove(&file).unwrap();
    assert_eq!(told(&disk), None);
}
