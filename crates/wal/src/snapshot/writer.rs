//! Writing a snapshot.

use super::format::{
    BlockHeader, END_BYTES, SNAPSHOT_BLOCK_BYTES_MAX, SNAPSHOT_BLOCK_HEADER_BYTES, SNAPSHOT_END_KIND,
    SnapshotHeader, block_checksum, encode_end, header_checksum, snapshot_name, temporary_name,
};
use crate::disk::{Cause, Disk, DiskError, DiskOperation};
use syros_types::OpNumber;

/// So many bytes are gathered before they are written: enough that system calls do not count.
const BUFFER_BYTES: usize = 256 * 1024;

/// Synced whenever so much has been written: a sync of the write-ahead log would otherwise have to wait until
/// the system has written out gigabytes of snapshot.
pub(super) const SYNC_BYTES: usize = 8 << 20;

/// A snapshot that is being written. Dropping it leaves a file for
/// [`remove_unfinished`](super::remove_unfinished).
pub struct SnapshotWriter<D: Disk> {
    file: D::File,
    /// Bytes written since the last sync.
    unsynced: usize,
    op_number: OpNumber,
    /// Written to the file next.
    buffer: Vec<u8>,
    /// Bytes of the header and the blocks so far.
    bytes: u64,
    /// Number of blocks so far.
    blocks: u64,
    /// The last checksum, which the next block's covers.
    checksum: u32,
    /// Once set, nothing is written any more: nobody knows what the file holds.
    failed: Option<DiskError>,
}

impl<D: Disk> SnapshotWriter<D> {
    /// Begins a snapshot; replaces an unfinished one of the same op number.
    ///
    /// # Errors
    /// What the disk reports.
    pub fn create(disk: &mut D, header: SnapshotHeader) -> Result<Self, DiskError> {
        let file = disk.create(&temporary_name(header.op_number))?;
        let encoded = header.encode();
        Ok(Self {
            file,
            unsynced: 0,
            op_number: header.op_number,
            buffer: encoded.to_vec(),
            bytes: encoded.len() as u64,
            blocks: 0,
            checksum: header_checksum(&encoded),
            failed: None,
        })
    }

    /// Adds a block. It may be empty, and of any kind but [`SNAPSHOT_END_KIND`].
    ///
    /// # Errors
    /// What the disk reports; the same error from then on. A payload above
    /// [`SNAPSHOT_BLOCK_BYTES_MAX`] or a kind that is taken is refused ([`Cause::Other`]), and the
    /// snapshot stays as it was.
    pub fn block(&mut self, disk: &mut D, kind: u8, payload: &[u8]) -> Result<(), DiskError> {
        let refused = |reason: String| {
            let file = temporary_name(self.op_number);
            Err(DiskError { operation: DiskOperation::Append, file, cause: Cause::Other(reason) })
        };
        if payload.len() > SNAPSHOT_BLOCK_BYTES_MAX {
            let bytes = payload.len();
            return refused(format!(
                "a block of {bytes} bytes exceeds the limit of {SNAPSHOT_BLOCK_BYTES_MAX}"
            ));
        }
        if kind == SNAPSHOT_END_KIND {
            return refused(format!("kind {kind} is the last block's"));
        }
        self.append(disk, kind, payload)
    }

    /// Bytes of the snapshot so far, the last block not included.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Makes the snapshot durable and gives it its name. Returns its length in bytes. Replaces a finished
    /// one of the same op number.
    ///
    /// # Errors
    /// What the disk reports. Then there is no new snapshot, except that after a failed sync of the
    /// directory ([`DiskOperation::SyncDirectory`]) there may be a whole one.
    pub fn finish(mut self, disk: &mut D) -> Result<u64, DiskError> {
        if let Err(error) = self.complete(disk) {
            // On a full disk the space is wanted back. If this fails too, the file waits for
            // `remove_unfinished`.
            let _ = self.abandon(disk);
            return Err(error);
        }
        disk.sync_directory()?;
        Ok(self.bytes)
    }

    /// Gives up: removes the file.
    ///
    /// # Errors
    /// What the disk reports.
    pub fn abandon(self, disk: &mut D) -> Result<(), DiskError> {
        disk.remove(&temporary_name(self.op_number))
    }

    fn complete(&mut self, disk: &mut D) -> Result<(), DiskError> {
        let total = self.bytes + (SNAPSHOT_BLOCK_HEADER_BYTES + END_BYTES) as u64;
        self.append(disk, SNAPSHOT_END_KIND, &encode_end(self.blocks, total))?;
        self.write(disk, &[])?;
        disk.sync(&mut self.file)?;
        disk.rename(&temporary_name(self.op_number), &snapshot_name(self.op_number))
    }

    fn append(&mut self, disk: &mut D, kind: u8, payload: &[u8]) -> Result<(), DiskError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let checksum = block_checksum(self.checksum, self.blocks, kind, payload);
        let header = BlockHeader { length: payload.len() as u32, kind, checksum };
        self.buffer.extend_from_slice(&header.encode());
        if payload.len() >= BUFFER_BYTES {
            self.write(disk, payload)?;
        } else {
            self.buffer.extend_from_slice(payload);
            if self.buffer.len() >= BUFFER_BYTES {
                self.write(disk, &[])?;
            }
        }
        self.checksum = checksum;
        self.blocks += 1;
        self.bytes += (SNAPSHOT_BLOCK_HEADER_BYTES + payload.len()) as u64;
        Ok(())
    }

    /// Writes the buffer and then `payload`, which need not pass through it.
    fn write(&mut self, disk: &mut D, payload: &[u8]) -> Result<(), DiskError> {
        for bytes in [&self.buffer, payload] {
            if bytes.is_empty() {
                continue;
            }
            self.unsynced += bytes.len();
            let mut written = disk.append(&mut self.file, bytes);
            if written.is_ok() && self.unsynced >= SYNC_BYTES {
                self.unsynced = 0;
                written = disk.sync(&mut self.file);
            }
            if let Err(error) = written {
                self.failed = Some(error.clone());
                return Err(error);
            }
        }
        self.buffer.clear();
        Ok(())
    }
}
