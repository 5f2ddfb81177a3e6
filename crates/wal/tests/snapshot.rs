//! Snapshots: whole or absent, whatever happens.

use syros_types::{OpNumber, Prng, View, WallTime};
use syros_wal::memory_disk::MemoryDisk;
use syros_wal::{
    BlockFault, Cause, Disk, DiskError, FileDisk, ReceiveError, SNAPSHOT_BLOCK_BYTES_MAX,
    SNAPSHOT_BLOCK_HEADER_BYTES, SNAPSHOT_END_KIND, SNAPSHOT_HEADER_BYTES, SnapshotBytes, SnapshotDamage,
    SnapshotError, SnapshotHeader, SnapshotReader, SnapshotReceiver, SnapshotWriter, list_snapshots,
    remove_snapshot, remove_unfinished, snapshot_name,
};

const CLUSTER: u64 = 7;
const OP: OpNumber = OpNumber(42);

type Blocks = Vec<(u8, Vec<u8>)>;

fn header() -> SnapshotHeader {
    SnapshotHeader { cluster: CLUSTER, op_number: OP, view: View(3), time: WallTime(1_000_000) }
}

/// A few blocks of different lengths, one of them empty.
fn blocks() -> Blocks {
    [(1, 5), (2, 0), (1, 30), (0, 1), (254, 12)].map(|(kind, bytes)| (kind, vec![kind ^ 9; bytes])).to_vec()
}

fn write<D: Disk>(disk: &mut D, header: SnapshotHeader, blocks: &Blocks) -> Result<u64, DiskError> {
    let mut writer = SnapshotWriter::create(disk, header)?;
    for (kind, payload) in blocks {
        writer.block(disk, *kind, payload)?;
    }
    writer.finish(disk)
}

fn read<D: Disk>(disk: &mut D, op_number: OpNumber) -> Result<(SnapshotHeader, Blocks), SnapshotError> {
    let (header, mut reader) = SnapshotReader::open(disk, op_number, CLUSTER)?;
    let mut blocks = Vec::new();
    let outcome = loop {
        match reader.next(disk) {
            Ok(Some((kind, payload))) => blocks.push((kind, payload.to_vec())),
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    // Asking again changes nothing.
    let again = reader.next(disk).map(|block| assert!(block.is_none()));
    assert_eq!(again, outcome);
    outcome.map(|()| (header, blocks))
}

/// The bytes of a small snapshot.
fn small_file() -> Vec<u8> {
    let mut disk = MemoryDisk::new();
    write(&mut disk, header(), &blocks()).unwrap();
    disk.contents(&snapshot_name(OP)).unwrap()
}

fn disk_with(bytes: &[u8]) -> MemoryDisk {
    let disk = MemoryDisk::new();
    disk.replace(&snapshot_name(OP), bytes);
    disk
}

fn receive(disk: &mut MemoryDisk, bytes: &[u8], piece: usize) -> Result<SnapshotHeader, SnapshotError> {
    let mut receiver = SnapshotReceiver::create(disk, OP)?;
    for piece in bytes.chunks(piece) {
        match receiver.append(disk, receiver.received(), piece) {
            Ok(()) => {}
            Err(ReceiveError::Disk(error)) => return Err(error.into()),
            Err(error) => panic!("{error}"),
        }
    }
    receiver.finish(disk, CLUSTER)
}

#[test]
fn what_was_written_is_read() {
    let mut prng = Prng::new(1);
    let large: Blocks = (0..60)
        .map(|_| {
            let bytes = [0, 1, 100, 70_000, 256 * 1024, 3 << 20][prng.below(6) as usize];
            (prng.below(255) as u8, vec![prng.below(256) as u8; bytes])
        })
        .collect();
    for blocks in [Vec::new(), blocks(), large] {
        let mut disk = MemoryDisk::new();
        let bytes = write(&mut disk, header(), &blocks).unwrap();
        assert_eq!(disk.contents(&snapshot_name(OP)).unwrap().len() as u64, bytes);
        assert_eq!(read(&mut disk, OP), Ok((header(), blocks)));
        assert_eq!(disk.list().unwrap(), [snapshot_name(OP)], "nothing else is left");
    }
}

#[test]
fn golden_file() {
    let blocks = vec![(1, b"hello".to_vec())];
    let mut disk = MemoryDisk::new();
    assert_eq!(write(&mut disk, header(), &blocks), Ok(87));
    let golden = [
        b'S', b'Y', b'R', b'O', b'S', b'N', b'A', b'P', 1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 42, 0, 0, 0, 0,
        0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x42, 0x0f, 0, 0, 0, 0, 0, 0x79, 0x59, 0x47,
        0xce, // checksum
        5, 0, 0, 0, 1, 0x7a, 0x24, 0x06, 0x1f, b'h', b'e', b'l', b'l', b'o', // first block
        16, 0, 0, 0, 255, 0x22, 0xb5, 0x52, 0xc9, 1, 0, 0, 0, 0, 0, 0, 0, 87, 0, 0, 0, 0, 0, 0, 0,
    ];
    assert_eq!(disk.contents(&snapshot_name(OP)).unwrap(), golden);
}

#[test]
fn small_blocks_do_not_each_cost_a_write() {
    let mut disk = MemoryDisk::new();
    let many: Blocks = (0..10_000).map(|index| (1, vec![index as u8; 40])).collect();
    write(&mut disk, header(), &many).unwrap();
    assert!(disk.operations() < 10, "{}", disk.operations());
    assert_eq!(read(&mut disk, OP), Ok((header(), many)));
}

#[test]
fn the_longest_block() {
    let mut disk = MemoryDisk::new();
    let mut writer = SnapshotWriter::create(&mut disk, header()).unwrap();
    let mut payload = vec![3; SNAPSHOT_BLOCK_BYTES_MAX + 1];
    let error = writer.block(&mut disk, 1, &payload).unwrap_err();
    assert!(error.to_string().contains("33554433 bytes exceeds the limit of 33554432"), "{error}");
    let error = writer.block(&mut disk, SNAPSHOT_END_KIND, b"x").unwrap_err();
    assert!(error.to_string().contains("kind 255"), "{error}");
    payload.pop();
    writer.block(&mut disk, 1, &payload).unwrap();
    let so_far = writer.bytes();
    assert_eq!(writer.finish(&mut disk), Ok(so_far + 25));
    assert_eq!(read(&mut disk, OP), Ok((header(), vec![(1, payload)])));
}

#[test]
fn a_crash_at_every_operation_of_writing() {
    let mut outcomes = [0; 2];
    let whole = MemoryDisk::new();
    // Large enough for several writes.
    let large: Blocks = (0..6).map(|index| (index, vec![index; 100_000])).collect();
    write(&mut whole.clone(), header(), &large).unwrap();
    assert!(whole.operations() >= 7, "{}", whole.operations());
    for operation in 1..=whole.operations() + 1 {
        for seed in 0..40 {
            let mut disk = MemoryDisk::new();
            disk.stop_at(operation);
            let written = write(&mut disk, header(), &large);
            assert_eq!(written.is_ok(), operation > whole.operations());
            disk.crash(&mut Prng::new(seed));
            remove_unfinished(&mut disk).unwrap();
            let found = list_snapshots(&mut disk).unwrap();
            if !found.is_empty() {
                assert_eq!(found, [OP]);
                assert_eq!(read(&mut disk, OP), Ok((header(), large.clone())));
            }
            assert!(written.is_err() || !found.is_empty(), "durable once written");
            assert_eq!(disk.list().unwrap().len(), found.len());
            outcomes[found.len()] += 1;
        }
    }
    assert!(outcomes.iter().all(|&count| count > 30), "{outcomes:?}");
}

#[test]
fn a_crash_at_every_operation_of_replacing_and_receiving() {
    let new = SnapshotHeader { view: View(4), ..header() };
    let mut source = MemoryDisk::new();
    write(&mut source, new, &blocks()).unwrap();
    let bytes = source.contents(&snapshot_name(OP)).unwrap();
    let mut outcomes = [0; 2];
    for operation in 1..=9 {
        for seed in 0..40 {
            let mut disk = MemoryDisk::new();
            write(&mut disk, header(), &blocks()).unwrap();
            disk.stop_at(disk.operations() + operation);
            let received = receive(&mut disk, &bytes, bytes.len().div_ceil(4));
            assert_eq!(received.is_ok(), operation == 9, "creation, 4 pieces, sync, rename, sync");
            disk.crash(&mut Prng::new(seed));
            remove_unfinished(&mut disk).unwrap();
            let (found, content) = read(&mut disk, OP).unwrap();
            assert!((found == header() || found == new) && content == blocks());
            assert!(received.is_err() || found == new, "durable once received");
            outcomes[usize::from(found == new)] += 1;
        }
    }
    assert!(outcomes.iter().all(|&count| count > 30), "{outcomes:?}");
}

#[test]
fn every_flipped_bit_is_noticed() {
    let good = small_file();
    for byte in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[byte] ^= 1 << bit;
            match read(&mut disk_with(&bad), OP) {
                Err(SnapshotError::UnsupportedVersion { .. }) => assert!((8..12).contains(&byte)),
                Err(SnapshotError::Damaged { offset, reason, .. }) => {
                    assert!(offset <= byte as u64);
                    let in_block = matches!(reason, SnapshotDamage::Block { .. });
                    assert_eq!(in_block, byte >= SNAPSHOT_HEADER_BYTES, "byte {byte}: {reason}");
                }
                other => panic!("byte {byte} bit {bit}: {other:?}"),
            }
            let mut disk = MemoryDisk::new();
            assert!(receive(&mut disk, &bad, 50).is_err());
            assert!(disk.list().unwrap().is_empty(), "it is removed");
        }
    }
}

#[test]
fn every_truncation_and_every_addition_is_noticed() {
    let good = small_file();
    for length in 0..good.len() {
        let truncated = read(&mut disk_with(&good[..length]), OP);
        assert!(matches!(truncated, Err(SnapshotError::Damaged { .. })), "{length}: {truncated:?}");
        let mut zeros = good[..length].to_vec();
        zeros.resize(good.len() + 1, 0);
        let zeroed = read(&mut disk_with(&zeros), OP);
        let version = matches!(zeroed, Err(SnapshotError::UnsupportedVersion { .. })) && length == 8;
        assert!(version || matches!(zeroed, Err(SnapshotError::Damaged { .. })), "{length}: {zeroed:?}");
    }
    for more in [1, SNAPSHOT_BLOCK_HEADER_BYTES, 100_000] {
        let mut longer = good.clone();
        longer.resize(good.len() + more, 0);
        let offset = good.len() as u64;
        let reason = SnapshotDamage::Trailing { bytes: more as u64 };
        let expected = SnapshotError::Damaged { file: snapshot_name(OP), offset, reason };
        assert_eq!(read(&mut disk_with(&longer), OP), Err(expected));
    }
}

#[test]
fn blocks_that_are_missing_twice_there_or_another_snapshots() {
    let file = |header, blocks: &Blocks| {
        let mut disk = MemoryDisk::new();
        write(&mut disk, header, blocks).unwrap();
        disk.contents(&snapshot_name(OP)).unwrap()
    };
    // All blocks are of the same length, so that every boundary is one in the other file too.
    let same = |fill: u8| -> Blocks { (0..4).map(|index| (1, vec![fill + index; 8])).collect() };
    let at = |index: usize| SNAPSHOT_HEADER_BYTES + index * (SNAPSHOT_BLOCK_HEADER_BYTES + 8);
    let (one, other) = (file(header(), &same(0)), file(header(), &same(100)));
    let spliced = [&one[..at(2)], &other[at(2)..]].concat();
    let missing = [&one[..at(1)], &one[at(2)..]].concat();
    let twice = [&one[..at(2)], &one[at(1)..]].concat();
    let swapped = [&one[..at(1)], &one[at(2)..at(3)], &one[at(1)..at(2)], &one[at(3)..]].concat();
    for (bytes, index) in [(spliced, 2), (missing, 1), (twice, 2), (swapped, 1)] {
        let reason = SnapshotDamage::Block { index, fault: BlockFault::Checksum };
        let offset = at(index as usize) as u64;
        let expected = SnapshotError::Damaged { file: snapshot_name(OP), offset, reason };
        assert_eq!(read(&mut disk_with(&bytes), OP), Err(expected.clone()));
        assert_eq!(
            expected.to_string(),
            format!(
                "the snapshot snapshot-00000000000000000042.snap is damaged at offset {offset}: \
                 block {index} is bad (its checksum does not match)"
            )
        );
    }
}

#[test]
fn a_length_that_cannot_be_is_not_believed() {
    let mut bytes = small_file();
    bytes[SNAPSHOT_HEADER_BYTES..SNAPSHOT_HEADER_BYTES + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let reason = SnapshotDamage::Block { index: 0, fault: BlockFault::Length(u32::MAX) };
    let expected = SnapshotError::Damaged { file: snapshot_name(OP), offset: 48, reason };
    assert_eq!(read(&mut disk_with(&bytes), OP), Err(expected));
}

#[test]
fn other_files_are_refused() {
    let reason = |result: Result<(SnapshotHeader, Blocks), SnapshotError>| match result {
        Err(SnapshotError::Damaged { offset: 0, reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    let foreign = vec![b'x'; 1000];
    assert_eq!(reason(read(&mut disk_with(&foreign), OP)), SnapshotDamage::Magic);
    assert_eq!(reason(read(&mut disk_with(b"x"), OP)), SnapshotDamage::HeaderTruncated { bytes: 1 });
    let mut disk = disk_with(&small_file());
    let opened = SnapshotReader::open(&mut disk, OP, 8).map(|(header, _)| (header, Vec::new()));
    assert_eq!(reason(opened), SnapshotDamage::OtherCluster { expected: 8, found: CLUSTER });
    disk.rename(&snapshot_name(OP), &snapshot_name(OpNumber(43))).unwrap();
    assert_eq!(reason(read(&mut disk, OpNumber(43))), SnapshotDamage::Renamed { header: OP });
    let missing = read(&mut disk, OP).unwrap_err();
    assert_eq!(missing, SnapshotError::Missing { file: snapshot_name(OP) });
    assert_eq!(missing.to_string(), "there is no snapshot snapshot-00000000000000000042.snap");
    let mut version = small_file();
    // Another version has another checksum; if the rest were as this version writes it, it would be rot.
    version[8] = 2;
    version[SNAPSHOT_HEADER_BYTES - 1] ^= 1;
    assert_eq!(
        read(&mut disk_with(&version), OP).unwrap_err().to_string(),
        "unsupported snapshot format version 2 in snapshot-00000000000000000042.snap; this build reads version 1"
    );
}

#[test]
fn a_full_disk_leaves_nothing() {
    let bytes = small_file();
    for capacity in 0..bytes.len() as u64 {
        let mut disk = MemoryDisk::new();
        disk.set_capacity(Some(capacity));
        assert_eq!(write(&mut disk, header(), &blocks()).unwrap_err().cause, Cause::Full);
        assert!(disk.list().unwrap().is_empty(), "the space is given back");
        let mut disk = MemoryDisk::new();
        disk.set_capacity(Some(capacity));
        let error = receive(&mut disk, &bytes, 40).unwrap_err();
        assert!(matches!(error, SnapshotError::Disk(DiskError { cause: Cause::Full, .. })), "{error}");
        assert_eq!(remove_unfinished(&mut disk), Ok(1));
    }
    let mut disk = MemoryDisk::new();
    disk.set_capacity(Some(300_000));
    let mut writer = SnapshotWriter::create(&mut disk, header()).unwrap();
    writer.block(&mut disk, 1, &vec![0; 290_000]).unwrap();
    let failed = writer.block(&mut disk, 1, &vec![0; 290_000]).unwrap_err();
    assert_eq!(failed.cause, Cause::Full);
    disk.set_capacity(None);
    assert_eq!(writer.block(&mut disk, 1, b"small"), Err(failed.clone()), "for ever");
    assert_eq!(writer.finish(&mut disk), Err(failed));
    assert!(disk.list().unwrap().is_empty());
}

#[test]
fn a_failed_sync_makes_no_snapshot() {
    let mut disk = MemoryDisk::new();
    disk.fail_next_sync(Cause::Io);
    assert_eq!(write(&mut disk, header(), &blocks()).unwrap_err().cause, Cause::Io);
    disk.fail_next_sync(Cause::Io);
    assert!(matches!(receive(&mut disk, &small_file(), 40), Err(SnapshotError::Disk(_))));
    assert!(disk.list().unwrap().is_empty());
}

#[test]
fn pieces_come_in_order() {
    let bytes = small_file();
    let mut disk = MemoryDisk::new();
    let mut receiver = SnapshotReceiver::create(&mut disk, OP).unwrap();
    receiver.append(&mut disk, 0, &bytes[..60]).unwrap();
    for found in [0, 59, 61] {
        let error = receiver.append(&mut disk, found, b"x").unwrap_err();
        assert_eq!(error, ReceiveError::Offset { expected: 60, found });
    }
    assert_eq!((receiver.received(), receiver.op_number()), (60, OP));
    receiver.append(&mut disk, 60, &bytes[60..]).unwrap();
    assert!(list_snapshots(&mut disk).unwrap().is_empty(), "not before it is finished");
    assert_eq!(receiver.finish(&mut disk, CLUSTER), Ok(header()));
    assert_eq!(read(&mut disk, OP), Ok((header(), blocks())));

    // Another cluster's, and one of another op number.
    let mut disk = MemoryDisk::new();
    for (op_number, cluster) in [(OP, 8), (OpNumber(41), CLUSTER)] {
        let mut receiver = SnapshotReceiver::create(&mut disk, op_number).unwrap();
        receiver.append(&mut disk, 0, &bytes).unwrap();
        let error = receiver.finish(&mut disk, cluster).unwrap_err();
        assert!(matches!(error, SnapshotError::Damaged { offset: 0, .. }), "{error}");
        assert!(disk.list().unwrap().is_empty());
    }
}

#[test]
fn snapshots_are_listed_sent_and_removed() {
    let mut disk = MemoryDisk::new();
    for number in [300, 7, 20] {
        write(&mut disk, SnapshotHeader { op_number: OpNumber(number), ..header() }, &blocks()).unwrap();
    }
    let writer = SnapshotWriter::create(&mut disk, SnapshotHeader { op_number: OpNumber(8), ..header() });
    drop(writer.unwrap());
    drop(SnapshotReceiver::create(&mut disk, OpNumber(9)).unwrap());
    disk.replace("snapshot-1.snap", b"foreign");
    disk.replace("wal-00000000000000000001.log", b"the log's");
    assert_eq!(list_snapshots(&mut disk).unwrap(), [7, 20, 300].map(OpNumber));
    assert_eq!(remove_unfinished(&mut disk), Ok(2));
    assert_eq!(remove_unfinished(&mut disk), Ok(0));
    assert_eq!(disk.list().unwrap().len(), 5);

    let file = disk.contents(&snapshot_name(OpNumber(20))).unwrap();
    let bytes = SnapshotBytes::open(&mut disk, OpNumber(20)).unwrap();
    assert_eq!(bytes.length(), file.len() as u64);
    let mut piece = [0; 50];
    let mut sent = Vec::new();
    loop {
        match bytes.read(&mut disk, sent.len() as u64, &mut piece).unwrap() {
            0 => break,
            read => sent.extend_from_slice(&piece[..read]),
        }
    }
    assert_eq!(sent, file);
    assert_eq!(bytes.read(&mut disk, u64::MAX, &mut piece), Ok(0));

    remove_snapshot(&mut disk, OpNumber(20)).unwrap();
    assert_eq!(remove_snapshot(&mut disk, OpNumber(20)).unwrap_err().cause, Cause::NotFound);
    assert!(matches!(SnapshotBytes::open(&mut disk, OpNumber(20)), Err(SnapshotError::Missing { .. })));
    disk.crash(&mut Prng::new(1));
    assert_eq!(list_snapshots(&mut disk).unwrap(), [7, 300].map(OpNumber), "removed for good");

    let writer = SnapshotWriter::create(&mut disk, header()).unwrap();
    writer.abandon(&mut disk).unwrap();
    let receiver = SnapshotReceiver::create(&mut disk, OP).unwrap();
    receiver.abandon(&mut disk).unwrap();
    assert_eq!(remove_unfinished(&mut disk), Ok(0));
}

#[test]
fn any_bytes_are_judged_without_panic() {
    let good = small_file();
    let mut prng = Prng::new(3);
    for round in 0..20_000 {
        let mut bytes = if round % 4 == 0 {
            (0..prng.below(300)).map(|_| prng.below(256) as u8).collect()
        } else {
            good.clone()
        };
        for _ in 0..=prng.below(4) {
            if bytes.is_empty() {
                break;
            }
            let at = prng.below(bytes.len() as u64) as usize;
            match prng.below(4) {
                0 => bytes[at] = prng.below(256) as u8,
                1 => bytes.truncate(at + 1),
                2 => drop(bytes.remove(at)),
                _ => bytes.extend_from_within(at..),
            }
        }
        match read(&mut disk_with(&bytes), OP) {
            Ok(found) => assert!(bytes == good && found == (header(), blocks())),
            Err(SnapshotError::Damaged { offset, .. }) => assert!(offset <= bytes.len() as u64),
            Err(error) => assert!(matches!(error, SnapshotError::UnsupportedVersion { .. }), "{error}"),
        }
    }
}

#[test]
fn on_a_real_disk() {
    let path = std::env::temp_dir().join(format!("syros-snapshot-{}", std::process::id()));
    let mut disk = FileDisk::open(&path).unwrap();
    let large: Blocks = (0..30).map(|index| (index, vec![index; 100_000])).collect();
    let bytes = write(&mut disk, header(), &large).unwrap();
    assert_eq!(read(&mut disk, OP), Ok((header(), large.clone())));

    // It can be sent after it was removed.
    let source = SnapshotBytes::open(&mut disk, OP).unwrap();
    remove_snapshot(&mut disk, OP).unwrap();
    let mut receiver = SnapshotReceiver::create(&mut disk, OP).unwrap();
    let mut piece = vec![0; 1 << 20];
    while receiver.received() < source.length() {
        let read = source.read(&mut disk, receiver.received(), &mut piece).unwrap();
        receiver.append(&mut disk, receiver.received(), &piece[..read]).unwrap();
    }
    assert_eq!(receiver.received(), bytes);
    assert_eq!(receiver.finish(&mut disk, CLUSTER), Ok(header()));
    assert_eq!(read(&mut disk, OP), Ok((header(), large)));
    assert_eq!(disk.list().unwrap(), [snapshot_name(OP)]);
    drop(disk);
    std::fs::remove_dir_all(&path).unwrap();
}
