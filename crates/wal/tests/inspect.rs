//! Looking at logs and snapshots: everything that is wrong is told, and nothing is changed.

mod common;

use common::{disk_with, open, options, payload, segment_with, write_to};
use syros_types::{OpNumber, Prng, ReplicaId, View, WallTime};
use syros_wal::memory_disk::MemoryDisk;
use syros_wal::{
    Damage, Disk, FileDisk, FileDiskError, HEADER_BYTES, HeaderError, LogInspection, MARK_BYTES, Options,
    RecordFault, RecordNumber, SnapshotHeader, SnapshotWriter, check_unlocked, inspect_log,
    inspect_snapshots, segment_name, snapshot_name,
};
use syros_wal::{ReadOnlyDisk, SegmentFault};

const OWNER: Option<(u64, ReplicaId)> = Some((7, ReplicaId(1)));

/// Inspects, and checks that every record handed over is genuine and that nothing was changed.
fn inspect(disk: &MemoryDisk) -> (LogInspection, Vec<u64>) {
    let (operations, names) = (disk.operations(), disk.clone().list().unwrap());
    let mut records = Vec::new();
    let found = inspect_log(&mut disk.clone(), OWNER, |number, bytes| {
        assert_eq!(bytes, payload(number.0));
        records.push(number.0);
    });
    assert_eq!((disk.operations(), disk.clone().list().unwrap()), (operations, names));
    let found = found.unwrap();
    assert_eq!(found.segments.iter().map(|segment| segment.records).sum::<u64>(), records.len() as u64);
    (found, records)
}

/// Ten records in several segments, and the first records of those.
fn segments() -> (MemoryDisk, Vec<u64>) {
    let disk = MemoryDisk::new();
    let options = Options { segment_bytes: 120, ..options() };
    let (mut wal, ..) = open(disk.clone(), &options).unwrap();
    write_to(&mut wal, 10);
    let (found, records) = inspect(&disk);
    assert_eq!(records, (1..=10).collect::<Vec<u64>>());
    assert!(found.segments.len() >= 4 && found.foreign.is_empty() && found.unfinished.is_empty());
    assert!(found.segments.iter().all(|segment| segment.faults.is_empty() && segment.torn.is_none()));
    let firsts = found.segments.iter().map(|segment| segment.range.unwrap().0.0).collect();
    (disk, firsts)
}

fn faults(found: &LogInspection) -> Vec<(String, SegmentFault)> {
    let of = |segment: &syros_wal::SegmentInspection| {
        let file = segment.file.clone();
        segment.faults.clone().into_iter().map(move |fault| (file.clone(), fault))
    };
    found.segments.iter().flat_map(of).collect()
}

#[test]
fn every_flipped_bit_is_told_and_the_rest_is_read() {
    let segment = segment_with(6);
    for byte in 0..segment.len() {
        for bit in 0..8 {
            let mut bad = segment.clone();
            bad[byte] ^= 1 << bit;
            let (found, records) = inspect(&disk_with(&bad));
            let segment = &found.segments[0];
            assert_eq!(segment.faults.len() + usize::from(segment.torn.is_some()), 1);
            let expected = if byte < HEADER_BYTES { 0 } else { 5 };
            assert_eq!(records.len(), expected, "byte {byte} bit {bit}: all but one");
        }
    }
}

#[test]
fn every_length_and_any_bytes_are_told_without_panic() {
    let segment = segment_with(6);
    for length in 0..segment.len() {
        let (found, _) = inspect(&disk_with(&segment[..length]));
        let segment = &found.segments[0];
        assert_eq!(segment.faults.len(), usize::from(length < HEADER_BYTES));
        assert_eq!(segment.bytes, length as u64);
    }
    let mut prng = Prng::new(8);
    for _ in 0..3_000 {
        let mut bytes = segment.clone();
        for _ in 0..=prng.below(6) {
            let at = prng.below(bytes.len() as u64) as usize;
            match prng.below(3) {
                0 => bytes[at] = prng.below(256) as u8,
                1 => bytes.truncate(at + 1),
                _ => bytes.extend_from_within(at..),
            }
        }
        inspect(&disk_with(&bytes));
    }
}

#[test]
fn damage_does_not_stop_it() {
    let (disk, firsts) = segments();
    // A bad record in the first segment, a bad header in the second, and a torn end.
    let first = segment_name(RecordNumber(1));
    assert!(disk.corrupt(&first, HEADER_BYTES as u64 + 10, 4));
    let second = segment_name(RecordNumber(firsts[1]));
    assert!(disk.corrupt(&second, 20, 1));
    let last = segment_name(RecordNumber(*firsts.last().unwrap()));
    let mut bytes = disk.contents(&last).unwrap();
    bytes.truncate(bytes.len() - 2);
    disk.replace(&last, &bytes);
    let (found, records) = inspect(&disk);
    let expected: Vec<u64> = (2..firsts[1]).chain(firsts[2]..10).collect();
    assert_eq!(records, expected);
    let later = (firsts[1] > 2).then_some(RecordNumber(2));
    let record = Damage::Record { record: RecordNumber(1), fault: RecordFault::Checksum, later };
    assert_eq!(
        faults(&found),
        [
            (first, SegmentFault { offset: HEADER_BYTES as u64, reason: record }),
            (second, SegmentFault { offset: 0, reason: Damage::Header(HeaderError::Checksum) }),
        ]
    );
    let torn = found.segments.last().unwrap().torn.unwrap();
    assert_eq!((torn.record.0, torn.offset + torn.bytes), (10, bytes.len() as u64));
    assert!(torn.to_string().contains("record 10 is bad (the segment ends in the middle of it)"), "{torn}");
}

#[test]
fn room_is_told_apart_from_a_torn_end() {
    let disk = MemoryDisk::new();
    let (mut wal, ..) = open(disk.clone(), &Options { reserve_bytes: 4096, ..options() }).unwrap();
    write_to(&mut wal, 10);
    let (found, records) = inspect(&disk);
    let segment = &found.segments[0];
    assert_eq!((records.len(), segment.bytes, segment.torn), (10, 4096, None));
    assert!(segment.faults.is_empty() && (1..4000).contains(&segment.room), "{}", segment.room);
    disk.corrupt(&segment.file, 4095, 1);
    let torn = inspect(&disk).0.segments[0].clone();
    assert_eq!((torn.room, torn.torn.unwrap().bytes), (0, segment.room));
}

#[test]
fn missing_and_foreign_files_are_told() {
    let (mut disk, firsts) = segments();
    disk.remove(&segment_name(RecordNumber(1))).unwrap();
    let (found, _) = inspect(&disk);
    assert!(faults(&found).is_empty(), "old segments may have been removed");

    disk.remove(&segment_name(RecordNumber(firsts[2]))).unwrap();
    disk.replace("wal-1.log", b"");
    disk.replace("wal-00000000000000000099.log.tmp", b"");
    disk.replace(&snapshot_name(OpNumber(3)), b"not the log's");
    let (found, records) = inspect(&disk);
    let expected: Vec<u64> = (firsts[1]..firsts[2]).chain(firsts[3]..=10).collect();
    assert_eq!(records, expected);
    let reason = Damage::Gap { expected: RecordNumber(firsts[2]) };
    let fault = SegmentFault { offset: 0, reason };
    assert_eq!(faults(&found), [(segment_name(RecordNumber(firsts[3])), fault)]);
    assert_eq!(found.foreign, ["wal-1.log"]);
    assert_eq!(found.unfinished, ["wal-00000000000000000099.log.tmp"]);

    // A segment under another name, and a log of somebody else.
    let bytes = disk.contents(&segment_name(RecordNumber(firsts[3]))).unwrap();
    disk.replace(&segment_name(RecordNumber(firsts[3] + 100)), &bytes);
    let reasons: Vec<Damage> = faults(&inspect(&disk).0).iter().map(|(_, fault)| fault.reason).collect();
    assert!(reasons.contains(&Damage::Renamed { header: RecordNumber(firsts[3]) }), "{reasons:?}");
    let other = inspect_log(&mut disk, Some((8, ReplicaId(0))), |number, _| panic!("{number}")).unwrap();
    let reasons: Vec<Damage> = other.segments[0].faults.iter().map(|fault| fault.reason).collect();
    let cluster = Damage::OtherCluster { expected: 8, found: 7 };
    let replica = Damage::OtherReplica { expected: ReplicaId(0), found: ReplicaId(1) };
    assert_eq!(reasons, [cluster, replica]);
}

#[test]
fn a_segment_that_is_bad_all_over_is_given_up() {
    let mut bytes = segment_with(400);
    let mut at = HEADER_BYTES;
    for number in 1..=400_u64 {
        let span = MARK_BYTES + 8 + payload(number).len();
        if number % 2 == 0 {
            bytes[at + MARK_BYTES + 9] ^= 1;
        }
        at += span;
    }
    let (found, records) = inspect(&disk_with(&bytes));
    assert_eq!(found.segments[0].faults.len(), 64);
    assert_eq!(records.len(), 64, "every second one up to there");
}

#[test]
fn a_disk_that_fails_is_told() {
    let (disk, _) = segments();
    disk.stop_at(disk.operations() + 1);
    assert!(disk.clone().create("anything").is_err());
    assert!(inspect_log(&mut disk.clone(), None, |_, _| ()).is_err());
    assert!(inspect_snapshots(&mut disk.clone(), None).is_err());
}

#[test]
fn snapshots_are_read_to_their_ends() {
    let mut disk = MemoryDisk::new();
    for number in [5, 6, 7, 8] {
        let cluster = if number == 8 { 1 } else { 7 };
        let header =
            SnapshotHeader { cluster, op_number: OpNumber(number), view: View(2), time: WallTime(9) };
        let mut writer = SnapshotWriter::create(&mut disk, header).unwrap();
        writer.block(&mut disk, 1, b"one").unwrap();
        writer.block(&mut disk, 2, b"two").unwrap();
        if number == 7 {
            drop(writer);
        } else {
            writer.finish(&mut disk).unwrap();
        }
    }
    assert!(disk.corrupt(&snapshot_name(OpNumber(6)), 70, 1));
    disk.replace("notes.txt", b"");
    let operations = disk.operations();
    let found = inspect_snapshots(&mut disk, Some(7)).unwrap();
    assert_eq!(disk.operations(), operations);
    assert_eq!(found.unfinished, [snapshot_name(OpNumber(7)) + ".tmp"]);
    assert_eq!(found.foreign, ["notes.txt"]);
    let told: Vec<_> = found
        .snapshots
        .iter()
        .map(|snapshot| {
            let problem = snapshot.problem.as_ref().map(ToString::to_string);
            (snapshot.op_number.0, snapshot.blocks, snapshot.header.is_some(), problem)
        })
        .collect();
    let damaged = |number: u64, what: &str| {
        Some(format!("the snapshot {} is damaged at offset {what}", snapshot_name(OpNumber(number))))
    };
    assert_eq!(
        told,
        [
            (5, 2, true, None),
            (6, 1, true, damaged(6, "60: block 1 is bad (its checksum does not match)")),
            (8, 0, false, damaged(8, "0: it belongs to cluster 0000000000000001, not 0000000000000007")),
        ]
    );
    let found = inspect_snapshots(&mut disk, None).unwrap();
    assert!(found.snapshots[2].problem.is_none(), "nobody said which cluster");
}

#[test]
fn a_real_directory_is_only_looked_at() {
    let path = std::env::temp_dir().join(format!("syros-inspect-{}", std::process::id()));
    assert!(check_unlocked(&path).is_ok() && !path.exists());
    assert!(ReadOnlyDisk::new(&path).list().is_err() && !path.exists());
    let disk = FileDisk::open(&path).unwrap();
    let error = check_unlocked(&path).unwrap_err();
    let process = Some(std::process::id());
    assert!(matches!(&error, FileDiskError::Locked { process: found, .. } if *found == process), "{error}");
    let (mut wal, ..) = open(disk, &options()).unwrap();
    write_to(&mut wal, 5);

    let mut look = ReadOnlyDisk::new(&path);
    let mut records = 0;
    let found = inspect_log(&mut look, None, |_, _| records += 1).unwrap();
    assert_eq!((records, found.segments[0].records, found.segments[0].torn), (5, 5, None));
    let name = segment_name(RecordNumber(1));
    let mut file = look.open(&name).unwrap();
    assert!(look.create("x").is_err() && look.remove(&name).is_err() && look.rename(&name, "x").is_err());
    assert!(look.append(&mut file, b"x").is_err() && look.truncate(&mut file, 0).is_err());
    assert!(look.sync(&mut file).is_err() && look.sync_directory().is_err());
    look.sync_and_evict(&mut file).unwrap();
    assert_eq!(look.list().unwrap(), [name]);
    drop(wal);
    assert!(check_unlocked(&path).is_ok());
    drop(FileDisk::open(&path).unwrap());
    std::fs::create_dir(path.join("wal-00000000000000000009.log")).unwrap();
    assert!(look.open("wal-00000000000000000009.log").is_err());
    std::fs::remove_dir_all(&path).unwrap();
}
