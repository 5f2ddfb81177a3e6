//! Reading a snapshot, and everything that can be wrong with one.

use super::format::{
    BlockHeader, END_BYTES, HeaderFault, SNAPSHOT_BLOCK_BYTES_MAX, SNAPSHOT_BLOCK_HEADER_BYTES,
    SNAPSHOT_END_KIND, SNAPSHOT_FORMAT_VERSION, SNAPSHOT_HEADER_BYTES, SnapshotHeader, block_checksum,
    decode_end, header_checksum, snapshot_name,
};
use crate::disk::{Cause, Disk, DiskError};
use std::fmt;
use std::ops::Range;
use syros_types::OpNumber;

/// Bytes read at once: large enough that system calls do not count, small enough not to matter.
const READ_BYTES: usize = 1024 * 1024;

/// Why a snapshot cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotError {
    /// There is no such file.
    Missing {
        /// The file.
        file: String,
    },
    /// A format that this build does not read.
    UnsupportedVersion {
        /// The file.
        file: String,
        /// Its version.
        version: u32,
    },
    /// The file is not what was written under this name. A crash cannot cause that.
    Damaged {
        /// The file.
        file: String,
        /// The place, in bytes from its beginning.
        offset: u64,
        /// What is wrong there.
        reason: SnapshotDamage,
    },
    /// The disk failed.
    Disk(DiskError),
}

/// What is wrong with a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SnapshotDamage {
    /// There are fewer bytes than a header takes.
    HeaderTruncated {
        /// How many there are.
        bytes: u64,
    },
    /// It does not begin like a snapshot.
    Magic,
    /// The header's checksum does not match.
    HeaderChecksum,
    /// It belongs to another cluster.
    OtherCluster {
        /// The one asked for.
        expected: u64,
        /// The one in the file.
        found: u64,
    },
    /// The header has another op number than the name.
    Renamed {
        /// What the header says.
        header: OpNumber,
    },
    /// A block is not valid.
    Block {
        /// Its index; the first is 0.
        index: u64,
        /// What is wrong with it.
        fault: BlockFault,
    },
    /// The file ends after a block, and that is not the last one.
    NoEnd {
        /// Number of blocks there are.
        blocks: u64,
    },
    /// The last block is genuine, and says something else about the blocks before it.
    End {
        /// How many blocks it says there are.
        blocks: u64,
        /// How long it says the file is, in bytes.
        bytes: u64,
    },
    /// Something follows the last block.
    Trailing {
        /// How many bytes.
        bytes: u64,
    },
}

/// What is wrong with a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockFault {
    /// The file ends in the middle of it.
    Incomplete,
    /// Its length is above [`SNAPSHOT_BLOCK_BYTES_MAX`].
    Length(u32),
    /// Its checksum does not match.
    Checksum,
    /// It is a last block of this length, which no last block has.
    End(u32),
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { file } => write!(f, "there is no snapshot {file}"),
            Self::UnsupportedVersion { file, version } => write!(
                f,
                "unsupported snapshot format version {version} in {file}; this build reads version {SNAPSHOT_FORMAT_VERSION}"
            ),
            Self::Damaged { file, offset, reason } => {
                write!(f, "the snapshot {file} is damaged at offset {offset}: {reason}")
            }
            Self::Disk(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for SnapshotDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HeaderTruncated { bytes } => {
                write!(f, "the header takes {SNAPSHOT_HEADER_BYTES} bytes and there are {bytes}")
            }
            Self::Magic => f.write_str("not a snapshot"),
            Self::HeaderChecksum => f.write_str("the checksum of the header does not match"),
            Self::OtherCluster { expected, found } => {
                write!(f, "it belongs to cluster {found:016x}, not {expected:016x}")
            }
            Self::Renamed { header } => write!(f, "its header says that it is of op {}", header.0),
            Self::Block { index, fault } => write!(f, "block {index} is bad ({fault})"),
            Self::NoEnd { blocks } => write!(f, "it ends after {blocks} blocks without a last one"),
            Self::End { blocks, bytes } => {
                write!(f, "its last block says that there are {blocks} blocks and {bytes} bytes")
            }
            Self::Trailing { bytes } => write!(f, "{bytes} bytes follow the last block"),
        }
    }
}

impl fmt::Display for BlockFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Incomplete => f.write_str("the file ends in the middle of it"),
            Self::Length(length) => {
                write!(f, "its length of {length} exceeds the limit of {SNAPSHOT_BLOCK_BYTES_MAX}")
            }
            Self::Checksum => f.write_str("its checksum does not match"),
            Self::End(length) => write!(f, "a last block of {length} bytes"),
        }
    }
}

impl std::error::Error for SnapshotError {}

impl From<DiskError> for SnapshotError {
    fn from(error: DiskError) -> Self {
        Self::Disk(error)
    }
}

/// Opens a file and says that it is missing if it is.
pub(crate) fn open_file<D: Disk>(disk: &mut D, name: &str) -> Result<D::File, SnapshotError> {
    disk.open(name).map_err(|error| match error.cause {
        Cause::NotFound => SnapshotError::Missing { file: name.to_owned() },
        _ => SnapshotError::Disk(error),
    })
}

/// Streams the blocks of a snapshot. Holds one piece of the file, or one block where that is longer.
pub struct SnapshotReader<D: Disk> {
    file: D::File,
    name: String,
    /// Bytes in the file.
    length: u64,
    /// Where the next block starts in the file.
    offset: u64,
    /// A piece of the file; its last byte is the one before `read_to`.
    buffer: Vec<u8>,
    /// Where the next block starts in the buffer.
    at: usize,
    /// Bytes of the file that have been read.
    read_to: u64,
    /// Number of blocks so far.
    blocks: u64,
    /// The last checksum, which the next block's covers.
    checksum: u32,
    /// Whether the last block was met and everything was in order.
    ended: bool,
}

impl<D: Disk> SnapshotReader<D> {
    /// Opens the finished snapshot of `op_number` and verifies its header.
    ///
    /// # Errors
    /// See [`SnapshotError`]; a snapshot of another cluster is [`SnapshotDamage::OtherCluster`].
    pub fn open(
        disk: &mut D,
        op_number: OpNumber,
        cluster: u64,
    ) -> Result<(SnapshotHeader, Self), SnapshotError> {
        let name = snapshot_name(op_number);
        let file = open_file(disk, &name)?;
        Self::from_file(disk, file, name, op_number, Some(cluster))
    }

    /// Reads a file that is open under the name `name`; of any cluster if `cluster` is `None`.
    pub(crate) fn from_file(
        disk: &mut D,
        file: D::File,
        name: String,
        op_number: OpNumber,
        cluster: Option<u64>,
    ) -> Result<(SnapshotHeader, Self), SnapshotError> {
        let length = disk.length(&file)?;
        let mut reader = Self {
            file,
            name,
            length,
            offset: 0,
            buffer: Vec::new(),
            at: 0,
            read_to: 0,
            blocks: 0,
            checksum: 0,
            ended: false,
        };
        let header = reader.header(disk)?;
        match cluster {
            Some(expected) if expected != header.cluster => {
                Err(reader.damaged(SnapshotDamage::OtherCluster { expected, found: header.cluster }))
            }
            _ if header.op_number != op_number => {
                Err(reader.damaged(SnapshotDamage::Renamed { header: header.op_number }))
            }
            _ => {
                reader.advance(SNAPSHOT_HEADER_BYTES);
                Ok((header, reader))
            }
        }
    }

    /// The next block, kind and payload; `None` once all blocks were handed out and the file is known to
    /// be whole.
    ///
    /// # Errors
    /// See [`SnapshotError`]; the same from then on.
    pub fn next(&mut self, disk: &mut D) -> Result<Option<(u8, &[u8])>, SnapshotError> {
        if self.ended {
            return Ok(None);
        }
        if self.offset == self.length {
            return Err(self.damaged(SnapshotDamage::NoEnd { blocks: self.blocks }));
        }
        let header = self.block_header(disk)?;
        let span = SNAPSHOT_BLOCK_HEADER_BYTES + header.length as usize;
        if self.length - self.offset < span as u64 {
            return Err(self.bad_block(BlockFault::Incomplete));
        }
        self.fill(disk, span)?;
        let payload = self.at + SNAPSHOT_BLOCK_HEADER_BYTES..self.at + span;
        let found = block_checksum(self.checksum, self.blocks, header.kind, &self.buffer[payload.clone()]);
        if found != header.checksum {
            return Err(self.bad_block(BlockFault::Checksum));
        }
        if header.kind == SNAPSHOT_END_KIND {
            return self.end(header.length, payload).map(|()| None);
        }
        self.checksum = header.checksum;
        self.blocks += 1;
        self.advance(span);
        Ok(Some((header.kind, &self.buffer[payload])))
    }

    /// Bytes of the file that were read and verified.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes in the file.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    fn header(&mut self, disk: &mut D) -> Result<SnapshotHeader, SnapshotError> {
        self.fill(disk, SNAPSHOT_HEADER_BYTES)?;
        let Some(bytes) = self.buffer.first_chunk::<SNAPSHOT_HEADER_BYTES>() else {
            return Err(self.damaged(SnapshotDamage::HeaderTruncated { bytes: self.length }));
        };
        self.checksum = header_checksum(bytes);
        SnapshotHeader::decode(bytes).map_err(|fault| match fault {
            HeaderFault::Magic => self.damaged(SnapshotDamage::Magic),
            HeaderFault::Version(version) => {
                SnapshotError::UnsupportedVersion { file: self.name.clone(), version }
            }
            HeaderFault::Checksum => self.damaged(SnapshotDamage::HeaderChecksum),
        })
    }

    fn block_header(&mut self, disk: &mut D) -> Result<BlockHeader, SnapshotError> {
        self.fill(disk, SNAPSHOT_BLOCK_HEADER_BYTES)?;
        let rest = &self.buffer[self.at..];
        if rest.len() < SNAPSHOT_BLOCK_HEADER_BYTES {
            return Err(self.bad_block(BlockFault::Incomplete));
        }
        let header = BlockHeader::decode(rest);
        // Before anything of that length is read: it may be anything.
        if header.length as usize > SNAPSHOT_BLOCK_BYTES_MAX {
            return Err(self.bad_block(BlockFault::Length(header.length)));
        }
        Ok(header)
    }

    /// Checks what the last block says, whose payload of `length` bytes is at `payload` in the buffer.
    fn end(&mut self, length: u32, payload: Range<usize>) -> Result<(), SnapshotError> {
        let Ok(payload) = <&[u8; END_BYTES]>::try_from(&self.buffer[payload]) else {
            return Err(self.bad_block(BlockFault::End(length)));
        };
        let (blocks, bytes) = decode_end(payload);
        let span = SNAPSHOT_BLOCK_HEADER_BYTES + END_BYTES;
        let end = self.offset + span as u64;
        if blocks != self.blocks || bytes != end {
            return Err(self.damaged(SnapshotDamage::End { blocks, bytes }));
        }
        if end < self.length {
            let reason = SnapshotDamage::Trailing { bytes: self.length - end };
            return Err(SnapshotError::Damaged { file: self.name.clone(), offset: end, reason });
        }
        self.advance(span);
        self.ended = true;
        Ok(())
    }

    /// Damage at the current position.
    fn damaged(&self, reason: SnapshotDamage) -> SnapshotError {
        SnapshotError::Damaged { file: self.name.clone(), offset: self.offset, reason }
    }

    fn bad_block(&self, fault: BlockFault) -> SnapshotError {
        self.damaged(SnapshotDamage::Block { index: self.blocks, fault })
    }

    fn advance(&mut self, bytes: usize) {
        self.at += bytes;
        self.offset += bytes as u64;
    }

    /// Reads on until the buffer holds `needed` bytes from the current position, or the file's rest.
    fn fill(&mut self, disk: &mut D, needed: usize) -> Result<(), DiskError> {
        if self.buffer.len() - self.at >= needed {
            return Ok(());
        }
        self.buffer.drain(..self.at);
        self.at = 0;
        let held = self.buffer.len();
        let wanted = (needed.max(READ_BYTES) - held) as u64;
        // No more than `wanted`, which came from a `usize`.
        let bytes = wanted.min(self.length - self.read_to) as usize;
        self.buffer.resize(held + bytes, 0);
        if let Err(error) = disk.read(&self.file, self.read_to, &mut self.buffer[held..]) {
            // What was not read must not be taken for the file's.
            self.buffer.truncate(held);
            return Err(error);
        }
        self.read_to += bytes as u64;
        Ok(())
    }
}
