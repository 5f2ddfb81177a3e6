//! Bytes of segments, records and marks. All numbers are little-endian.
//!
//! ```text
//! segment header (36 bytes)            record (8 bytes and the payload)
//!   0  8  magic "SYROSWAL"               0  4  payload length, 1..=RECORD_BYTES_MAX
//!   8  4  format version                 4  4  CRC-32C of record number (8 bytes),
//!  12  1  replica id                           payload length (4 bytes), payload
//!  13  3  zero                           8     payload
//!  16  8  cluster id
//!  24  8  number of the first record   mark (16 bytes)
//!  32  4  CRC-32C of bytes 0..32         0  4  2^32 - 1, which is no record's length
//!                                        4  4  CRC-32C of record number, 2^32 - 1 (4 bytes)
//!                                        8  8  number of the next record
//! ```
//!
//! A mark says that every record before it was durable when it was written. It stands before each batch
//! that was written when nothing else waited for a sync. Behind the last record, zeros fill the file: room
//! that is already there when records come, so that syncing them changes nothing but their bytes.
//!
//! Versions 3 and 4 are laid out as version 2. Records of version 3 may name a configuration, and those of version 4 may
//! hold operations on streams, databases and scripts: that is the payload's business, but processes of before would take
//! what they do not know for damage, and set aside the log. Version 1 had neither marks nor room.

use crate::checksum::{START, extend, finish};
use std::fmt;
use syros_types::ReplicaId;
use syros_types::limits::FRAME_BYTES_MAX;

/// The format this build writes. It reads all versions from [`FORMAT_VERSION_UNMARKED`] on; a log whose last segment has
/// another version than this one goes on in a new segment.
pub const FORMAT_VERSION: u32 = 4;

/// The first format: without marks, and a segment ends where its file does.
pub const FORMAT_VERSION_UNMARKED: u32 = 1;

/// Bytes before the first record of a segment.
pub const HEADER_BYTES: usize = 36;

/// Bytes before the payload of a record.
pub const RECORD_HEADER_BYTES: usize = 8;

/// Bytes of a mark.
pub const MARK_BYTES: usize = 16;

/// What stands where a record has its length.
pub(crate) const MARK_LENGTH: u32 = u32::MAX;

/// Longest payload, in bytes. The longest record is the one that enters a view: it holds what came in
/// one message, so a message's limit is a record's.
pub const RECORD_BYTES_MAX: usize = FRAME_BYTES_MAX;

const _: () = assert!(RECORD_BYTES_MAX < u32::MAX as usize - RECORD_HEADER_BYTES);

/// Numbers above this are taken for damage, so that counting on from a number that was read can never
/// overflow. A million records a second reach it in 292,000 years.
pub(crate) const RECORD_NUMBER_MAX: u64 = u64::MAX >> 1;

const MAGIC: [u8; 8] = *b"SYROSWAL";
const CHECKSUM_AT: usize = HEADER_BYTES - 4;
const NAME_PREFIX: &str = "wal-";
const NAME_SUFFIX: &str = ".log";
/// Digits of `u64::MAX`, so that names sort as numbers do.
const NAME_DIGITS: usize = 20;

/// Position of a record in the log. The first is 1; 0 means "none".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordNumber(pub u64);

impl RecordNumber {
    /// The position after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for RecordNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {}", self.0)
    }
}

/// A small file beside the segments that says which is the last one.
pub(crate) const NEWEST_SEGMENT_FILE: &str = "newest-segment";

/// The name of the segment that begins with record `first`.
#[must_use]
pub fn segment_name(first: RecordNumber) -> String {
    format!("{NAME_PREFIX}{:0NAME_DIGITS$}{NAME_SUFFIX}", first.0)
}

/// What a file name means to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameKind {
    /// A segment that begins with this record.
    Segment(RecordNumber),
    /// A segment whose creation was not finished.
    Temporary,
    /// In the log's name space, but nothing the log would write.
    Foreign,
    /// None of the log's business.
    Other,
}

/// The name under which a segment is prepared.
pub(crate) fn temporary_name(first: RecordNumber) -> String {
    segment_name(first) + ".tmp"
}

/// Sorts a file name into its kind.
pub(crate) fn name_kind(name: &str) -> NameKind {
    let Some(rest) = name.strip_prefix(NAME_PREFIX) else { return NameKind::Other };
    let (rest, temporary) = match rest.strip_suffix(".tmp") {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    let digits = rest.strip_suffix(NAME_SUFFIX).filter(|digits| digits.len() == NAME_DIGITS);
    let plain = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    match plain.and_then(|digits| digits.parse().ok()) {
        Some(1..=RECORD_NUMBER_MAX) if temporary => NameKind::Temporary,
        Some(first @ 1..=RECORD_NUMBER_MAX) => NameKind::Segment(RecordNumber(first)),
        _ => NameKind::Foreign,
    }
}

/// What stands at the beginning of every segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SegmentHeader {
    /// The format: [`FORMAT_VERSION_UNMARKED`] to [`FORMAT_VERSION`].
    pub version: u32,
    /// The cluster the log belongs to.
    pub cluster: u64,
    /// The replica the log belongs to.
    pub replica: ReplicaId,
    /// Number of the first record.
    pub first: RecordNumber,
}

/// Why bytes are no segment header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeaderError {
    /// There are fewer than [`HEADER_BYTES`] bytes. A crash cannot cause that: a segment gets its name
    /// only after its header is durable.
    Truncated {
        /// How many there are.
        bytes: u64,
    },
    /// They do not begin like a segment.
    Magic,
    /// A format that this build does not read.
    Version(u32),
    /// The checksum does not match.
    Checksum,
    /// The checksum matches, but a field has a value that no writer gives it: reserved bytes, or a
    /// first record number that is 0 or beyond 2^63 - 1.
    Field,
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { bytes } => {
                write!(f, "the segment header takes {HEADER_BYTES} bytes and there are {bytes}")
            }
            Self::Magic => f.write_str("not a segment of a write-ahead log"),
            Self::Version(version) => {
                write!(f, "format version {version}; this build reads up to {FORMAT_VERSION}")
            }
            Self::Checksum => f.write_str("the checksum of the segment header does not match"),
            Self::Field => f.write_str("the segment header has a field with an impossible value"),
        }
    }
}

impl std::error::Error for HeaderError {}

impl SegmentHeader {
    /// The header as bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&self.version.to_le_bytes());
        bytes[12] = self.replica.0;
        bytes[16..24].copy_from_slice(&self.cluster.to_le_bytes());
        bytes[24..CHECKSUM_AT].copy_from_slice(&self.first.0.to_le_bytes());
        let checksum = finish(extend(START, &bytes[..CHECKSUM_AT]));
        bytes[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads the header at the beginning of `bytes`.
    ///
    /// # Errors
    /// Another version is told from rot: its checksum may be anywhere, but it is not ours.
    pub fn decode(bytes: &[u8]) -> Result<Self, HeaderError> {
        if bytes.len() >= MAGIC.len() && !bytes.starts_with(&MAGIC) {
            return Err(HeaderError::Magic);
        }
        let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(HeaderError::Truncated { bytes: bytes.len() as u64 });
        };
        let version = read_u32(header, 8);
        let has_checksum_of = |version: u32| {
            let parts = [&header[..8], &version.to_le_bytes(), &header[12..CHECKSUM_AT]];
            read_u32(header, CHECKSUM_AT)
                == finish(parts.iter().fold(START, |state, part| extend(state, part)))
        };
        match version {
            FORMAT_VERSION_UNMARKED..=FORMAT_VERSION if has_checksum_of(version) => {}
            // The header is one of ours in all but the version, or there never was such a version: rot.
            0..=FORMAT_VERSION => return Err(HeaderError::Checksum),
            _ if (FORMAT_VERSION_UNMARKED..=FORMAT_VERSION).any(has_checksum_of) => {
                return Err(HeaderError::Checksum);
            }
            _ => return Err(HeaderError::Version(version)),
        }
        let first = RecordNumber(read_u64(header, 24));
        if header[13..16] != [0; 3] || first.0 == 0 || first.0 > RECORD_NUMBER_MAX {
            return Err(HeaderError::Field);
        }
        Ok(Self { version, cluster: read_u64(header, 16), replica: ReplicaId(header[12]), first })
    }
}

/// The number at `at`; the caller knows that 4 bytes are there.
pub(crate) fn read_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub(crate) fn read_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from(read_u32(bytes, at)) | u64::from(read_u32(bytes, at + 4)) << 32
}

/// Why a record is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordFault {
    /// The segment ends in the middle of it.
    Incomplete,
    /// Its length is 0 or above [`RECORD_BYTES_MAX`]. (Zeros, which file systems leave after a crash,
    /// are never a record: that is why a payload cannot be empty.)
    Length(u32),
    /// Its checksum does not match.
    Checksum,
}

impl fmt::Display for RecordFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Incomplete => f.write_str("the segment ends in the middle of it"),
            Self::Length(length) => {
                write!(f, "its length of {length} is not between 1 and {RECORD_BYTES_MAX}")
            }
            Self::Checksum => f.write_str("its checksum does not match"),
        }
    }
}

/// What stands at the beginning of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parsed<'a> {
    /// A valid record with this payload.
    Record(&'a [u8]),
    /// A valid mark, which says that the record looked for comes next.
    Mark,
    /// Too few bytes to tell; at least this many are needed.
    Incomplete(usize),
    /// Not the record that was looked for.
    Invalid(RecordFault),
}

/// Looks for the record `number`, or a mark before it, at the beginning of `bytes`.
pub(crate) fn parse_record(bytes: &[u8], number: RecordNumber) -> Parsed<'_> {
    if bytes.len() < RECORD_HEADER_BYTES {
        return Parsed::Incomplete(RECORD_HEADER_BYTES);
    }
    let length = read_u32(bytes, 0);
    if length == MARK_LENGTH {
        return match bytes.first_chunk() {
            None => Parsed::Incomplete(MARK_BYTES),
            Some(found) if *found == mark(number) => Parsed::Mark,
            Some(_) => Parsed::Invalid(RecordFault::Checksum),
        };
    }
    if length == 0 || length as usize > RECORD_BYTES_MAX {
        return Parsed::Invalid(RecordFault::Length(length));
    }
    let end = RECORD_HEADER_BYTES + length as usize;
    let Some(payload) = bytes.get(RECORD_HEADER_BYTES..end) else { return Parsed::Incomplete(end) };
    if read_u32(bytes, 4) == finish(extend(record_state(number, length), payload)) {
        Parsed::Record(payload)
    } else {
        Parsed::Invalid(RecordFault::Checksum)
    }
}

/// The checksum register before the payload.
fn record_state(number: RecordNumber, length: u32) -> u32 {
    let mut prefix = [0; 12];
    prefix[..8].copy_from_slice(&number.0.to_le_bytes());
    prefix[8..].copy_from_slice(&length.to_le_bytes());
    extend(START, &prefix)
}

/// The mark before the record `next`.
pub(crate) fn mark(next: RecordNumber) -> [u8; MARK_BYTES] {
    let mut bytes = [0; MARK_BYTES];
    bytes[..4].copy_from_slice(&MARK_LENGTH.to_le_bytes());
    bytes[4..8].copy_from_slice(&finish(record_state(next, MARK_LENGTH)).to_le_bytes());
    bytes[8..].copy_from_slice(&next.0.to_le_bytes());
    bytes
}

/// Encoded records on their way to the disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    /// The records, as they will stand in the segment.
    pub(crate) bytes: Vec<u8>,
    /// How many there are.
    pub(crate) records: u64,
}

/// A buffer that grew beyond this is shrunk to it after use, so that one burst does not hold memory
/// for ever. Batches of ordinary traffic are far smaller, and theirs is never given back.
pub(crate) const RETAINED_BYTES_MAX: usize = 8 * 1024 * 1024;

impl Batch {
    /// Appends a record whose payload `write` appends to the buffer that goes to the disk: nothing lies in between.
    ///
    /// # Errors
    /// The bytes of a payload that is empty, or longer than [`RECORD_BYTES_MAX`]. The batch is then as it was.
    pub(crate) fn push(
        &mut self,
        number: RecordNumber,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; RECORD_HEADER_BYTES]);
        write(&mut self.bytes);
        let (header, payload) = self.bytes[start..].split_at_mut(RECORD_HEADER_BYTES);
        let bytes = payload.len();
        match u32::try_from(bytes) {
            Ok(length) if (1..=RECORD_BYTES_MAX).contains(&bytes) => {
                let checksum = finish(extend(record_state(number, length), payload));
                header[..4].copy_from_slice(&length.to_le_bytes());
                header[4..].copy_from_slice(&checksum.to_le_bytes());
                self.records += 1;
                Ok(())
            }
            _ => {
                self.bytes.truncate(start);
                Err(bytes)
            }
        }
    }

    /// Moves the records of `other` behind the ones here; copies only when there are some.
    pub(crate) fn take_from(&mut self, other: &mut Self) {
        if self.records == 0 {
            std::mem::swap(self, other);
        } else {
            self.bytes.extend_from_slice(&other.bytes);
            self.records += other.records;
        }
        other.clear();
    }

    /// Empties the batch and keeps its buffer for the next.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(RETAINED_BYTES_MAX);
        self.records = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::{Batch, FORMAT_VERSION_UNMARKED, HeaderError, NameKind, Parsed, RecordFault, RecordNumber};
    use super::{SegmentHeader, mark, name_kind, parse_record, segment_name, temporary_name};
    use crate::checksum::{START, extend, finish};
    use syros_types::ReplicaId;

    const HEADER: SegmentHeader = SegmentHeader {
        version: 4,
        cluster: 0x1122_3344_5566_7788,
        replica: ReplicaId(2),
        first: RecordNumber(0x0102),
    };

    #[test]
    fn golden_header() {
        let golden = [
            b'S', b'Y', b'R', b'O', b'S', b'W', b'A', b'L', 4, 0, 0, 0, 2, 0, 0, 0, 0x88, 0x77, 0x66, 0x55,
            0x44, 0x33, 0x22, 0x11, 0x02, 0x01, 0, 0, 0, 0, 0, 0, 0x8f, 0xe1, 0x1e, 0x61,
        ];
        assert_eq!(HEADER.encode(), golden);
        assert_eq!(SegmentHeader::decode(&golden), Ok(HEADER));
        for (version, checksum) in [
            (FORMAT_VERSION_UNMARKED, [0xdb, 0xc4, 0xb6, 0x39]),
            (2, [0xb8, 0xf5, 0x8a, 0xf2]),
            (3, [0x36, 0x37, 0xc5, 0x48]),
        ] {
            let mut older = golden;
            older[8] = version as u8;
            older[32..].copy_from_slice(&checksum);
            let header = SegmentHeader { version, ..HEADER };
            assert_eq!(SegmentHeader::decode(&older), Ok(header), "what older versions wrote");
        }
    }

    #[test]
    fn golden_mark() {
        let golden = [0xff, 0xff, 0xff, 0xff, 0xf5, 0x2d, 0xad, 0x0a, 7, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(mark(RecordNumber(7)), golden);
        assert_eq!(parse_record(&golden, RecordNumber(7)), Parsed::Mark);
        let invalid = Parsed::Invalid(RecordFault::Checksum);
        assert_eq!(parse_record(&golden, RecordNumber(8)), invalid, "of another place");
        assert_eq!(parse_record(&golden[..15], RecordNumber(7)), Parsed::Incomplete(16));
    }

    #[test]
    fn golden_record() {
        let mut batch = Batch::default();
        batch.push(RecordNumber(7), |out| out.extend_from_slice(b"hello")).unwrap();
        let golden = [5, 0, 0, 0, 0x87, 0x19, 0x4d, 0xb5, b'h', b'e', b'l', b'l', b'o'];
        assert_eq!(batch.bytes, golden);
        assert_eq!(parse_record(&golden, RecordNumber(7)), Parsed::Record(b"hello"));
        let invalid = Parsed::Invalid(RecordFault::Checksum);
        assert_eq!(parse_record(&golden, RecordNumber(8)), invalid, "the number is part of the checksum");
    }

    #[test]
    fn header_errors() {
        let good = HEADER.encode();
        for bytes in 0..good.len() {
            let expected = HeaderError::Truncated { bytes: bytes as u64 };
            assert_eq!(SegmentHeader::decode(&good[..bytes]), Err(expected));
        }
        for byte in 0..good.len() {
            for bit in 0..8 {
                let mut bad = good;
                bad[byte] ^= 1 << bit;
                let error = SegmentHeader::decode(&bad).unwrap_err();
                match byte {
                    0..8 => assert_eq!(error, HeaderError::Magic),
                    // All else is as this version writes it.
                    _ => assert_eq!(error, HeaderError::Checksum),
                }
            }
        }
        let mut reserved = good;
        reserved[14] = 1;
        let checksum = finish(extend(START, &reserved[..32]));
        reserved[32..].copy_from_slice(&checksum.to_le_bytes());
        assert_eq!(SegmentHeader::decode(&reserved), Err(HeaderError::Field));
        let zero = SegmentHeader { first: RecordNumber(0), ..HEADER };
        assert_eq!(SegmentHeader::decode(&zero.encode()), Err(HeaderError::Field));
    }

    #[test]
    fn names() {
        for first in [1, 7, 1 << 40, u64::MAX >> 1] {
            let first = RecordNumber(first);
            assert_eq!(name_kind(&segment_name(first)), NameKind::Segment(first));
            assert_eq!(name_kind(&temporary_name(first)), NameKind::Temporary);
        }
        assert_eq!(segment_name(RecordNumber(42)), "wal-00000000000000000042.log");
        let foreign = [
            "wal-",
            "wal-1.log",
            "wal-00000000000000000000.log",
            "wal-99999999999999999999.log",
            "wal-18446744073709551615.log",
            "wal-+0000000000000000001.log",
            "wal-00000000000000000001.log.bak",
        ];
        for name in foreign {
            assert_eq!(name_kind(name), NameKind::Foreign, "{name}");
        }
        assert_eq!(name_kind("identity"), NameKind::Other);
    }

    #[test]
    fn zeros_are_never_a_record() {
        for number in 1..1000 {
            let parsed = parse_record(&[0; 64], RecordNumber(number));
            assert_eq!(parsed, Parsed::Invalid(RecordFault::Length(0)));
        }
    }
}
