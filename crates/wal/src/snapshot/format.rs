//! Bytes of snapshots. All numbers are little-endian.
//!
//! ```text
//! header (48 bytes)                    block (9 bytes and the payload)
//!   0  8  magic "SYROSNAP"               0  4  payload length, 0..=SNAPSHOT_BLOCK_BYTES_MAX
//!   8  4  format version                 4  1  kind
//!  12  8  cluster id                     5  4  CRC-32C of the checksum before it (4 bytes: of the block
//!  20  8  op number                            before, or of the header), block index from 0
//!  28  8  view                                 (8 bytes), kind (1 byte), payload length (4 bytes),
//!  36  8  time, µs since 1970                  payload
//!  44  4  CRC-32C of bytes 0..44         9     payload
//! ```
//!
//! The last block has kind 255 and the payload: number of blocks before it (8 bytes), length of the file
//! in bytes, this block included (8 bytes).

use crate::checksum::{START, extend, finish};
use crate::format::{read_u32, read_u64};
use syros_types::limits::{BODY_BYTES_MAX, VALUE_BYTES_MAX};
use syros_types::{OpNumber, View, WallTime};

/// The format this build writes, and the only one it reads.
pub const SNAPSHOT_FORMAT_VERSION: u32 = 1;

/// Bytes before the first block.
pub const SNAPSHOT_HEADER_BYTES: usize = 48;

/// Bytes before the payload of a block.
pub const SNAPSHOT_BLOCK_HEADER_BYTES: usize = 9;

/// Longest payload, in bytes. A largest value with its key must fit, and what is said about them; and
/// whoever reads a snapshot holds one block in memory.
pub const SNAPSHOT_BLOCK_BYTES_MAX: usize = 2 * VALUE_BYTES_MAX;

const _: () = assert!(SNAPSHOT_BLOCK_BYTES_MAX > BODY_BYTES_MAX);
const _: () = assert!(SNAPSHOT_BLOCK_BYTES_MAX < u32::MAX as usize);

/// The kind of the last block, which is not for callers.
pub const SNAPSHOT_END_KIND: u8 = u8::MAX;

/// Bytes of the last block's payload.
pub(super) const END_BYTES: usize = 16;

const MAGIC: [u8; 8] = *b"SYROSNAP";
const CHECKSUM_AT: usize = SNAPSHOT_HEADER_BYTES - 4;
const NAME_PREFIX: &str = "snapshot-";
const NAME_SUFFIX: &str = ".snap";
/// Digits of `u64::MAX`, so that names sort as numbers do.
const NAME_DIGITS: usize = 20;

/// The name of the snapshot of everything up to `op_number`.
#[must_use]
pub fn snapshot_name(op_number: OpNumber) -> String {
    format!("{NAME_PREFIX}{:0NAME_DIGITS$}{NAME_SUFFIX}", op_number.0)
}

/// Its name while it is written here.
pub(super) fn temporary_name(op_number: OpNumber) -> String {
    snapshot_name(op_number) + ".tmp"
}

/// Its name while it comes from a peer.
pub(super) fn part_name(op_number: OpNumber) -> String {
    snapshot_name(op_number) + ".part"
}

/// What a file name means here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SnapshotName {
    /// A finished snapshot.
    Finished(OpNumber),
    /// One that was being written or received.
    Unfinished,
}

/// Sorts a file name; `None` if no snapshot has such a name.
pub(crate) fn parse_name(name: &str) -> Option<SnapshotName> {
    let rest = name.strip_prefix(NAME_PREFIX)?;
    let unfinished = rest.strip_suffix(".tmp").or_else(|| rest.strip_suffix(".part"));
    let digits = unfinished.unwrap_or(rest).strip_suffix(NAME_SUFFIX)?;
    if digits.len() != NAME_DIGITS || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let op_number = digits.parse().ok().map(OpNumber)?;
    Some(if unfinished.is_some() { SnapshotName::Unfinished } else { SnapshotName::Finished(op_number) })
}

/// What stands at the beginning of every snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SnapshotHeader {
    /// The cluster whose state it is.
    pub cluster: u64,
    /// The last operation that the state contains.
    pub op_number: OpNumber,
    /// The view of that operation.
    pub view: View,
    /// The time of that operation.
    pub time: WallTime,
}

/// Why bytes are no snapshot header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderFault {
    Magic,
    Version(u32),
    Checksum,
}

impl SnapshotHeader {
    /// The header that a snapshot file begins with; `None` if the bytes are none, or one of a version that this build does not
    /// read.
    #[must_use]
    pub fn read(bytes: &[u8; SNAPSHOT_HEADER_BYTES]) -> Option<Self> {
        Self::decode(bytes).ok()
    }

    /// The header as bytes.
    pub(super) fn encode(&self) -> [u8; SNAPSHOT_HEADER_BYTES] {
        let mut bytes = [0; SNAPSHOT_HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&SNAPSHOT_FORMAT_VERSION.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.cluster.to_le_bytes());
        bytes[20..28].copy_from_slice(&self.op_number.0.to_le_bytes());
        bytes[28..36].copy_from_slice(&self.view.0.to_le_bytes());
        bytes[36..CHECKSUM_AT].copy_from_slice(&self.time.0.to_le_bytes());
        let checksum = finish(extend(START, &bytes[..CHECKSUM_AT]));
        bytes[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The header that `bytes` are.
    pub(super) fn decode(bytes: &[u8; SNAPSHOT_HEADER_BYTES]) -> Result<Self, HeaderFault> {
        if !bytes.starts_with(&MAGIC) {
            return Err(HeaderFault::Magic);
        }
        let version = read_u32(bytes, 8);
        let has_checksum_of = |version: u32| {
            let parts = [&bytes[..8], &version.to_le_bytes(), &bytes[12..CHECKSUM_AT]];
            header_checksum(bytes) == finish(parts.iter().fold(START, |state, part| extend(state, part)))
        };
        match (version, has_checksum_of(SNAPSHOT_FORMAT_VERSION)) {
            (SNAPSHOT_FORMAT_VERSION, true) => {}
            // The header is one of ours in all but the version, or there never was such a version: rot.
            (0 | SNAPSHOT_FORMAT_VERSION, false) | (_, true) => return Err(HeaderFault::Checksum),
            (_, false) => return Err(HeaderFault::Version(version)),
        }
        Ok(Self {
            cluster: read_u64(bytes, 12),
            op_number: OpNumber(read_u64(bytes, 20)),
            view: View(read_u64(bytes, 28)),
            time: WallTime(read_u64(bytes, 36)),
        })
    }
}

/// The checksum that a header carries, from which the blocks' checksums go on.
pub(super) fn header_checksum(bytes: &[u8; SNAPSHOT_HEADER_BYTES]) -> u32 {
    read_u32(bytes, CHECKSUM_AT)
}

/// The checksum of a block that comes after the checksum `previous`.
pub(super) fn block_checksum(previous: u32, index: u64, kind: u8, payload: &[u8]) -> u32 {
    let mut prefix = [0; 17];
    prefix[..4].copy_from_slice(&previous.to_le_bytes());
    prefix[4..12].copy_from_slice(&index.to_le_bytes());
    prefix[12] = kind;
    prefix[13..].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    finish(extend(extend(START, &prefix), payload))
}

/// What stands before a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockHeader {
    /// Length of the payload in bytes.
    pub(super) length: u32,
    /// What the payload is.
    pub(super) kind: u8,
    /// See [`block_checksum`].
    pub(super) checksum: u32,
}

impl BlockHeader {
    pub(super) fn encode(self) -> [u8; SNAPSHOT_BLOCK_HEADER_BYTES] {
        let mut bytes = [0; SNAPSHOT_BLOCK_HEADER_BYTES];
        bytes[..4].copy_from_slice(&self.length.to_le_bytes());
        bytes[4] = self.kind;
        bytes[5..].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    /// The header at the beginning of `bytes`; the caller knows that it is there.
    pub(super) fn decode(bytes: &[u8]) -> Self {
        Self { length: read_u32(bytes, 0), kind: bytes[4], checksum: read_u32(bytes, 5) }
    }
}

/// The last block's payload.
pub(super) fn encode_end(blocks: u64, bytes: u64) -> [u8; END_BYTES] {
    let mut payload = [0; END_BYTES];
    payload[..8].copy_from_slice(&blocks.to_le_bytes());
    payload[8..].copy_from_slice(&bytes.to_le_bytes());
    payload
}

/// Number of blocks and length of the file that the last block's payload says.
pub(super) fn decode_end(payload: &[u8; END_BYTES]) -> (u64, u64) {
    (read_u64(payload, 0), read_u64(payload, 8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{NameKind, name_kind};

    #[test]
    fn golden_header() {
        let header = SnapshotHeader {
            cluster: 0x1122_3344_5566_7788,
            op_number: OpNumber(0x0102),
            view: View(3),
            time: WallTime(0x0405),
        };
        let golden = [
            b'S', b'Y', b'R', b'O', b'S', b'N', b'A', b'P', 1, 0, 0, 0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33,
            0x22, 0x11, 0x02, 0x01, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0x05, 0x04, 0, 0, 0, 0, 0, 0,
            0x11, 0x32, 0xb3, 0x30,
        ];
        assert_eq!(header.encode(), golden);
        assert_eq!(SnapshotHeader::decode(&golden), Ok(header));
    }

    #[test]
    fn names() {
        for number in [0, 1, 42, u64::MAX] {
            let number = OpNumber(number);
            assert_eq!(parse_name(&snapshot_name(number)), Some(SnapshotName::Finished(number)));
            for unfinished in [temporary_name(number), part_name(number)] {
                assert_eq!(parse_name(&unfinished), Some(SnapshotName::Unfinished));
                assert_eq!(name_kind(&unfinished), NameKind::Other, "the log ignores it");
            }
            assert_eq!(name_kind(&snapshot_name(number)), NameKind::Other, "the log ignores it");
        }
        assert_eq!(snapshot_name(OpNumber(42)), "snapshot-00000000000000000042.snap");
        let foreign = [
            "snapshot-",
            "snapshot-1.snap",
            "snapshot-18446744073709551616.snap",
            "snapshot-+0000000000000000001.snap",
            "snapshot-00000000000000000001.snap.bak",
            "snapshot-00000000000000000001.snap.tmp.part",
            "snapshot-00000000000000000001.tmp",
            "wal-00000000000000000001.log",
        ];
        for name in foreign {
            assert_eq!(parse_name(name), None, "{name}");
        }
    }
}
