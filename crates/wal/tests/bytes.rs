//! Every truncation and every flipped bit of a segment.

mod common;

use common::{disk_with, only_segment, open, options, payload, payloads, segment_with, write_to};
use syros_types::Prng;
use syros_wal::memory_disk::MemoryDisk;
use syros_wal::{
    Damage, FORMAT_VERSION, FORMAT_VERSION_UNMARKED, HEADER_BYTES, HeaderError, MARK_BYTES, OpenError,
    Options, RECORD_HEADER_BYTES, RecordFault, RecordNumber, SegmentHeader, SegmentTail, recover_segment,
};

/// Where the mark before record `number` starts, in a segment that begins with record 1. Without room, each
/// record is marked: making some syncs what is before.
fn mark_of(number: u64) -> usize {
    HEADER_BYTES
        + (1..number).map(|number| MARK_BYTES + RECORD_HEADER_BYTES + payload(number).len()).sum::<usize>()
}

fn start_of(number: u64) -> usize {
    mark_of(number) + MARK_BYTES
}

/// The same records as one batch, or with nothing but the version of the first format and without marks.
fn without_marks(segment: &[u8], records: u64, version: u32) -> Vec<u8> {
    let header = SegmentHeader { version, ..SegmentHeader::decode(segment).unwrap() };
    let mut bytes = header.encode().to_vec();
    for number in 1..=records {
        if number == 1 && version != FORMAT_VERSION_UNMARKED {
            bytes.extend_from_slice(&segment[mark_of(1)..start_of(1)]);
        }
        bytes.extend_from_slice(&segment[start_of(number)..mark_of(number + 1)]);
    }
    bytes
}

#[test]
fn every_length_gives_the_longest_valid_prefix() {
    let segment = segment_with(6);
    assert_eq!(segment.len(), mark_of(7));
    for length in 0..=segment.len() {
        let disk = disk_with(&segment[..length]);
        let opened = open(disk.clone(), &options());
        if length < HEADER_BYTES {
            let reason = Damage::Header(HeaderError::Truncated { bytes: length as u64 });
            let expected = OpenError::Damaged { file: only_segment(), offset: 0, reason };
            assert_eq!(opened.err(), Some(expected));
            assert_eq!(disk.contents(&only_segment()).unwrap(), segment[..length], "left as it was");
            continue;
        }
        let complete = (1..=6).take_while(|number| mark_of(number + 1) <= length).count() as u64;
        let (mut wal, recovery, records) = opened.unwrap();
        assert_eq!(records, payloads(complete));
        let valid = if length >= start_of(complete + 1) { start_of } else { mark_of }(complete + 1);
        let torn = length - valid;
        match recovery.cut {
            None => assert_eq!(torn, 0),
            Some(cut) => {
                assert_eq!((cut.bytes, cut.offset), (torn as u64, valid as u64));
                assert_eq!((cut.record.0, cut.fault), (complete + 1, RecordFault::Incomplete));
                assert_ne!(torn, 0);
            }
        }
        // The cut is durable before anything is appended: no crash brings the tail back.
        disk.crash(&mut Prng::new(length as u64));
        assert_eq!(disk.contents(&only_segment()).unwrap(), segment[..valid]);
        // And the log goes on as if nothing had happened.
        assert!(wal.append(&[b"the disk has crashed under this one"]).is_ok() && wal.flush().is_err());
        let (mut wal, ..) = open(disk.clone(), &options()).unwrap();
        write_to(&mut wal, 6);
        assert_eq!(open(disk, &options()).unwrap().2, payloads(6));
    }
}

#[test]
fn every_flipped_bit_is_noticed() {
    let records = 6;
    let segment = segment_with(records);
    for (byte, bit) in (0..segment.len()).flat_map(|byte| (0..8).map(move |bit| (byte, bit))) {
        let mut bad = segment.clone();
        bad[byte] ^= 1 << bit;
        let opened = open(disk_with(&bad), &options());
        let number = (1..=records).find(|number| byte < mark_of(number + 1)).unwrap();
        let offset = if byte < start_of(number) { mark_of } else { start_of }(number);
        if byte < HEADER_BYTES {
            match opened.err().unwrap() {
                OpenError::UnsupportedVersion { .. } => assert!((8..12).contains(&byte)),
                OpenError::Damaged { offset: 0, reason: Damage::Header(_), .. } => {}
                error => panic!("byte {byte}: {error:?}"),
            }
        } else if number < records {
            let Some(OpenError::Damaged { offset: found, reason, .. }) = opened.err() else {
                panic!("byte {byte} bit {bit}")
            };
            let Damage::Record { record, later, .. } = reason else { panic!("{reason}") };
            assert_eq!((found, record.0), (offset as u64, number));
            assert_eq!(later, Some(RecordNumber(number + 1)));
        } else {
            // Undecidable: it looks like a torn write, and is reported as a cut.
            let (_, recovery, kept) = opened.unwrap();
            assert_eq!(kept, payloads(records - 1));
            let cut = recovery.cut.unwrap();
            assert_eq!((cut.bytes as usize, cut.record.0), (segment.len() - offset, records));
        }
    }
}

#[test]
fn every_flipped_bit_within_a_batch_is_noticed() {
    let segment = segment_with(6);
    for version in [FORMAT_VERSION, FORMAT_VERSION_UNMARKED] {
        let batch = without_marks(&segment, 6, version);
        let last = batch.len() - payload(6).len() - RECORD_HEADER_BYTES;
        for (byte, bit) in (HEADER_BYTES..batch.len()).flat_map(|byte| (0..8).map(move |bit| (byte, bit))) {
            let mut bad = batch.clone();
            bad[byte] ^= 1 << bit;
            match open(disk_with(&bad), &options()) {
                Err(OpenError::Damaged { reason: Damage::Record { .. }, .. }) => assert!(byte < last),
                Ok((_, recovery, kept)) => {
                    assert!(byte >= last && kept == payloads(5));
                    assert_eq!(recovery.cut.unwrap().offset, last as u64);
                }
                other => panic!("{:?}", other.err()),
            }
        }
    }
}

#[test]
fn a_log_that_was_closed_shows_rot_in_its_last_records_too() {
    let disk = MemoryDisk::new();
    let (mut wal, ..) = open(disk.clone(), &options()).unwrap();
    write_to(&mut wal, 6);
    wal.mark().unwrap();
    let length = disk.contents(&only_segment()).unwrap().len();
    assert_eq!(length, start_of(7));
    wal.mark().unwrap();
    assert_eq!(disk.contents(&only_segment()).unwrap().len(), length, "one is enough");
    for byte in mark_of(6)..mark_of(7) {
        let rotten = disk.duplicate();
        rotten.corrupt(&only_segment(), byte as u64, 0x10);
        let Some(OpenError::Damaged { reason, .. }) = open(rotten, &options()).err() else {
            panic!("{byte}")
        };
        let Damage::Record { record, later, .. } = reason else { panic!("{reason}") };
        assert_eq!((record, later), (RecordNumber(6), Some(RecordNumber(7))));
    }
    let (mut wal, recovery, _) = open(disk.clone(), &options()).unwrap();
    assert_eq!(recovery.cut, None);
    write_to(&mut wal, 8);
    assert_eq!(open(disk, &options()).unwrap().2, payloads(8));
}

#[test]
fn rot_before_a_torn_tail_is_still_rot() {
    let segment = segment_with(6);
    for length in mark_of(3)..segment.len() {
        let mut bad = segment[..length].to_vec();
        bad[start_of(2) + 9] ^= 4;
        let tail = recover_segment(&bad).unwrap().tail;
        let intact = length >= start_of(3);
        match tail {
            SegmentTail::Damaged { later, later_offset, .. } => {
                assert!(intact);
                assert_eq!((later.0, later_offset), (3, mark_of(3) as u64));
            }
            SegmentTail::Torn(RecordFault::Checksum) => assert!(!intact),
            _ => panic!("{tail:?}"),
        }
    }
}

/// Payloads of a batch that takes several sectors.
fn long_payload(number: u64) -> Vec<u8> {
    vec![number as u8; 150]
}

/// Two batches of ten long records, and where the second begins.
fn two_batches() -> (Vec<u8>, usize) {
    let disk = MemoryDisk::new();
    let (mut wal, ..) = open(disk.clone(), &Options { reserve_bytes: 8192, ..options() }).unwrap();
    for number in 1..=20 {
        wal.append(&[&long_payload(number)]).unwrap();
        if number % 10 == 0 {
            wal.flush().unwrap();
            wal.sync().unwrap();
        }
    }
    let segment = disk.contents(&only_segment()).unwrap();
    assert_eq!(segment.len(), 8192);
    let second = HEADER_BYTES + MARK_BYTES + 10 * (RECORD_HEADER_BYTES + 150);
    assert_eq!(recover_segment(&segment).unwrap().marked_bytes, second);
    (segment, second)
}

#[test]
fn sectors_that_a_crash_kept_from_being_written_are_a_torn_tail() {
    let (segment, second) = two_batches();
    let end = second + MARK_BYTES + 10 * (RECORD_HEADER_BYTES + 150);
    let sectors = second / 512..end.div_ceil(512);
    assert!(sectors.len() > 3);
    // Any of the sectors of the last batch: nothing that was synced is lost, and the rest can be written again.
    for lost in 1..1_u32 << sectors.len() {
        let mut holes = segment.clone();
        for (index, sector) in sectors.clone().enumerate() {
            if lost & 1 << index != 0 {
                holes[(sector * 512).max(second)..(sector + 1) * 512].fill(0);
            }
        }
        let first = sectors.start + lost.trailing_zeros() as usize;
        let disk = disk_with(&holes);
        let (mut wal, recovery, records) = open(disk.clone(), &options()).unwrap();
        let kept = records.len() as u64;
        assert!(records.iter().zip(1..).all(|(record, number)| *record == long_payload(number)));
        assert!((10..20).contains(&kept), "{kept}");
        let valid = recover_segment(&holes).unwrap().valid_bytes;
        assert!(valid <= (first * 512).max(second) && valid + 150 + 8 + 16 > first * 512, "{valid}");
        // A hole that reaches to the end is room, unless it begins within a record.
        assert!(recovery.cut.is_none_or(|cut| cut.offset == valid as u64 && cut.record.0 == kept + 1));
        wal.append(&[&long_payload(kept + 1)]).unwrap();
        wal.flush().unwrap();
        wal.sync().unwrap();
        assert_eq!(open(disk, &options()).unwrap().1.last.0, kept + 1);
    }
}

#[test]
fn sectors_that_were_synced_are_missed() {
    let (segment, second) = two_batches();
    for sector in 0..second / 512 {
        let mut rotten = segment.clone();
        rotten[(sector * 512).max(HEADER_BYTES)..(sector + 1) * 512].fill(0);
        let Err(OpenError::Damaged { reason: Damage::Record { later, .. }, .. }) =
            open(disk_with(&rotten), &options())
        else {
            panic!("sector {sector}")
        };
        assert!(later.is_some());
        // And so they are when nothing of the second batch is left but its mark.
        rotten[second + MARK_BYTES..].fill(0);
        assert!(matches!(open(disk_with(&rotten), &options()), Err(OpenError::Damaged { .. })), "{sector}");
    }
}

#[test]
fn zeros_at_the_end_are_room() {
    let mut segment = segment_with(3);
    let valid = segment.len();
    segment.resize(valid + 5000, 0);
    let disk = disk_with(&segment);
    let (mut wal, recovery, records) = open(disk.clone(), &options()).unwrap();
    assert_eq!((recovery.cut, recovery.bytes, records), (None, valid as u64, payloads(3)));
    write_to(&mut wal, 6);
    assert_eq!(disk.contents(&only_segment()).unwrap().len(), valid + 5000, "it is used");
    assert_eq!(open(disk, &options()).unwrap().2, payloads(6));
    // Whatever is in it is not, however far behind.
    let mut long = segment.clone();
    long.resize(3 << 20, 0);
    assert_eq!(open(disk_with(&long), &options()).unwrap().1.cut, None);
    long.push(1);
    let cut = open(disk_with(&long), &options()).unwrap().1.cut.unwrap();
    assert_eq!((cut.offset, cut.bytes), (valid as u64, long.len() as u64 - valid as u64));
    segment[valid + 4000] = 1;
    let cut = open(disk_with(&segment), &options()).unwrap().1.cut.unwrap();
    assert_eq!((cut.offset, cut.bytes, cut.fault), (valid as u64, 5000, RecordFault::Length(0)));
    assert_eq!(
        cut.to_string(),
        format!(
            "cut 5000 bytes at offset {valid} of wal-00000000000000000001.log: record 4 is torn \
             (its length of 0 is not between 1 and 536870912)"
        )
    );
}

#[test]
fn a_log_of_the_first_format_is_read_and_goes_on_in_this_one() {
    for records in [0, 5] {
        let mut old = without_marks(&segment_with(5), records, FORMAT_VERSION_UNMARKED);
        for torn in [0, 3000] {
            // It had no room: zeros at its end were a file system's doing.
            let valid = old.len();
            old.resize(valid + torn, 0);
            let disk = disk_with(&old);
            let (mut wal, recovery, found) = open(disk.clone(), &options()).unwrap();
            assert_eq!((found, recovery.segments), (payloads(records), 1));
            assert_eq!(recovery.cut.map(|cut| cut.bytes as usize), (torn > 0).then_some(torn));
            assert_eq!(wal.mark(), Ok(()), "which it cannot have");
            assert_eq!(disk.contents(&only_segment()).unwrap().len(), valid);
            write_to(&mut wal, 8);
            let (mut wal, recovery, found) = open(disk.clone(), &options()).unwrap();
            assert_eq!((found, recovery.segments), (payloads(8), if records == 0 { 1 } else { 2 }));
            assert_eq!(wal.remove_before(RecordNumber(9)), Ok(recovery.segments - 1));
            assert_eq!(open(disk, &options()).unwrap().1.last, RecordNumber(8));
            old.truncate(valid);
        }
    }
}

#[test]
fn a_log_of_the_second_format_is_read_and_goes_on_in_this_one() {
    let segment = segment_with(5);
    let header = SegmentHeader { version: 2, ..SegmentHeader::decode(&segment).unwrap() };
    let mut old = header.encode().to_vec();
    old.extend_from_slice(&segment[HEADER_BYTES..]);
    // Room, and a torn record.
    for torn in [&[0; 3000][..], &[9, 0, 0, 0, 1]] {
        let disk = disk_with(&[&old[..], torn].concat());
        let (mut wal, recovery, found) = open(disk.clone(), &options()).unwrap();
        assert_eq!((found, recovery.segments, recovery.cut.is_some()), (payloads(5), 1, torn.len() < 9));
        write_to(&mut wal, 8);
        assert!(disk.contents(&only_segment()).unwrap().starts_with(&old), "nothing more is written to it");
        let (_, recovery, found) = open(disk, &options()).unwrap();
        assert_eq!((found, recovery.segments), (payloads(8), 2));
    }
}

#[test]
fn a_large_torn_record_is_judged_in_reasonable_time() {
    // Small numbers everywhere, so that nearly every position has a length that fits.
    let mut segment = segment_with(2);
    let valid = segment.len();
    segment.extend_from_slice(&(8_u32 << 20).to_le_bytes());
    segment.extend_from_slice(&[1, 2, 3, 4]);
    let mut prng = Prng::new(5);
    segment.extend((0..1 << 17).flat_map(|_| [prng.below(256) as u8, prng.below(200) as u8, 1, 0]));
    let contents = recover_segment(&segment).unwrap();
    assert_eq!((contents.valid_bytes, contents.tail), (valid, SegmentTail::Torn(RecordFault::Incomplete)));
}

#[test]
fn any_bytes_are_judged_without_panic() {
    let segment = segment_with(5);
    let mut prng = Prng::new(3);
    for _ in 0..5_000 {
        let mut bytes = segment.clone();
        for _ in 0..prng.below(5) {
            let at = prng.below(bytes.len() as u64) as usize;
            match prng.below(4) {
                0 => bytes[at] = prng.below(256) as u8,
                1 => bytes.truncate(at + 1),
                2 => drop(bytes.remove(at)),
                _ => bytes.extend_from_within(at..),
            }
            if bytes.is_empty() {
                break;
            }
        }
        if let Ok(contents) = recover_segment(&bytes) {
            // Whatever is recovered was written, at that place.
            assert!(contents.records.len() <= 5);
            for (number, record) in (1..).zip(&contents.records) {
                assert_eq!(*record, payload(number));
            }
            let next = contents.records.len() as u64 + 1;
            assert!([mark_of(next), start_of(next)].contains(&contents.valid_bytes));
        }
    }
}

/// A log that was closed ends with a mark, and the next batch begins with one more before the same record.
#[test]
fn rot_in_the_first_of_two_marks_is_no_torn_tail() {
    let disk = MemoryDisk::new();
    let (mut wal, ..) = open(disk.clone(), &options()).unwrap();
    write_to(&mut wal, 3);
    wal.mark().unwrap();
    drop(wal);
    let first = recover_segment(&disk.contents(&only_segment()).unwrap()).unwrap().marked_bytes;
    let (mut wal, ..) = open(disk.clone(), &options()).unwrap();
    write_to(&mut wal, 4);
    drop(wal);
    let bytes = disk.contents(&only_segment()).unwrap();
    assert_eq!(recover_segment(&bytes).unwrap().marked_bytes, first + MARK_BYTES, "two marks");
    for end in first + 1..=first + MARK_BYTES {
        let mut rotten = bytes.clone();
        rotten[first..end].fill(0);
        let opened = open(disk_with(&rotten), &options());
        assert!(matches!(opened, Err(OpenError::Damaged { .. })), "zeros up to {end}");
    }
}
