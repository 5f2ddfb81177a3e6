//! Every truncation and every flipped bit of a segment.

mod common;

use common::{disk_with, only_segment, open, options, payload, payloads, segment_with, write_to};
use syros_types::Prng;
use syros_wal::{
    Damage, HEADER_BYTES, HeaderError, OpenError, RECORD_HEADER_BYTES, RecordFault, RecordNumber,
    SegmentTail, recover_segment,
};

/// Where record `number` starts, in a segment that begins with record 1.
fn start_of(number: u64) -> usize {
    HEADER_BYTES + (1..number).map(|number| RECORD_HEADER_BYTES + payload(number).len()).sum::<usize>()
}

#[test]
fn every_length_gives_the_longest_valid_prefix() {
    let segment = segment_with(6);
    assert_eq!(segment.len(), start_of(7));
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
        let complete = (1..=6).take_while(|number| start_of(number + 1) <= length).count() as u64;
        let (mut wal, recovery, records) = opened.unwrap();
        assert_eq!(records, payloads(complete));
        let torn = length - start_of(complete + 1);
        match recovery.cut {
            None => assert_eq!(torn, 0),
            Some(cut) => {
                assert_eq!((cut.bytes, cut.offset), (torn as u64, start_of(complete + 1) as u64));
                assert_eq!((cut.record.0, cut.fault), (complete + 1, RecordFault::Incomplete));
                assert_ne!(torn, 0);
            }
        }
        // The cut is durable before anything is appended: no crash brings the tail back.
        disk.crash(&mut Prng::new(length as u64));
        assert_eq!(disk.contents(&only_segment()).unwrap(), segment[..start_of(complete + 1)]);
        // And the log goes on as if nothing had happened.
        assert!(wal.append(&[b"the disk has crashed under this one"]).is_ok() && wal.flush().is_err());
        let (mut wal, ..) = open(disk.clone(), &options()).unwrap();
        write_to(&mut wal, 6);
        assert_eq!(disk.contents(&only_segment()).unwrap(), segment);
    }
}

#[test]
fn every_flipped_bit_is_noticed() {
    let records = 6;
    let segment = segment_with(records);
    for byte in 0..segment.len() {
        for bit in 0..8 {
            let mut bad = segment.clone();
            bad[byte] ^= 1 << bit;
            let opened = open(disk_with(&bad), &options());
            let number = (1..=records).find(|number| byte < start_of(number + 1)).unwrap();
            if byte < HEADER_BYTES {
                match opened.err().unwrap() {
                    OpenError::UnsupportedVersion { .. } => assert!((8..12).contains(&byte)),
                    OpenError::Damaged { offset: 0, reason: Damage::Header(_), .. } => {}
                    error => panic!("byte {byte}: {error:?}"),
                }
            } else if number < records {
                let OpenError::Damaged { offset, reason: Damage::Record { record, later, .. }, .. } =
                    opened.err().unwrap()
                else {
                    panic!("byte {byte} bit {bit}")
                };
                assert_eq!((offset, record.0), (start_of(number) as u64, number));
                assert_eq!(later, Some(RecordNumber(number + 1)));
            } else {
                // Undecidable: it looks like a torn write, and is reported as a cut.
                let (_, recovery, kept) = opened.unwrap();
                assert_eq!(kept, payloads(records - 1));
                let cut = recovery.cut.unwrap();
                assert_eq!((cut.bytes as usize, cut.record.0), (segment.len() - start_of(records), records));
            }
        }
    }
}

#[test]
fn rot_before_a_torn_tail_is_still_rot() {
    let segment = segment_with(6);
    for length in start_of(3)..segment.len() {
        let mut bad = segment[..length].to_vec();
        bad[start_of(2) + 9] ^= 4;
        let tail = recover_segment(&bad).unwrap().tail;
        let intact = length >= start_of(4);
        match tail {
            SegmentTail::Damaged { later, later_offset, .. } => {
                assert!(intact);
                assert_eq!((later.0, later_offset), (3, start_of(3) as u64));
            }
            SegmentTail::Torn(RecordFault::Checksum) => assert!(!intact),
            _ => panic!("{tail:?}"),
        }
    }
}

#[test]
fn zeros_at_the_end_are_a_torn_tail() {
    let mut segment = segment_with(3);
    let valid = segment.len();
    segment.resize(valid + 5000, 0);
    let (_, recovery, records) = open(disk_with(&segment), &options()).unwrap();
    assert_eq!(records, payloads(3));
    let cut = recovery.cut.unwrap();
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
            assert_eq!(contents.valid_bytes, start_of(contents.records.len() as u64 + 1));
        }
    }
}
