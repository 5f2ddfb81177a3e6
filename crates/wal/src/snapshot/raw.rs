//! A snapshot as plain bytes, to send it to a peer.

use super::format::snapshot_name;
use super::reader::{SnapshotError, open_file};
use crate::disk::{Disk, DiskError};
use syros_types::OpNumber;

/// A finished snapshot that is open for reading. On a file system it stays readable when the snapshot is
/// removed. Nothing is verified: whoever receives it does that.
pub struct SnapshotBytes<D: Disk> {
    file: D::File,
    length: u64,
}

impl<D: Disk> SnapshotBytes<D> {
    /// Opens the finished snapshot of `op_number`.
    ///
    /// # Errors
    /// [`SnapshotError::Missing`] or [`SnapshotError::Disk`].
    pub fn open(disk: &mut D, op_number: OpNumber) -> Result<Self, SnapshotError> {
        let file = open_file(disk, &snapshot_name(op_number))?;
        let length = disk.length(&file)?;
        Ok(Self { file, length })
    }

    /// Bytes in the file.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Reads from byte `offset` on; returns how much of `buffer` was filled, which is less than all only
    /// at the end of the file, and 0 beyond it.
    ///
    /// # Errors
    /// What the disk reports.
    pub fn read(&self, disk: &mut D, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        let rest = self.length.saturating_sub(offset);
        let bytes = usize::try_from(rest).map_or(buffer.len(), |rest| rest.min(buffer.len()));
        if bytes > 0 {
            disk.read(&self.file, offset, &mut buffer[..bytes])?;
        }
        Ok(bytes)
    }
}
