//! A snapshot that comes from a peer, piece by piece.

use super::format::{SnapshotHeader, part_name, snapshot_name};
use super::reader::{SnapshotError, SnapshotReader, open_file};
use super::writer::SYNC_BYTES;
use crate::disk::{Disk, DiskError};
use std::fmt;
use syros_types::OpNumber;

/// A snapshot that is being received. Dropping it leaves a file for
/// [`remove_unfinished`](super::remove_unfinished).
pub struct SnapshotReceiver<D: Disk> {
    file: D::File,
    op_number: OpNumber,
    received: u64,
    /// Once set, nothing is written any more: nobody knows what the file holds.
    failed: Option<DiskError>,
}

/// Why a piece was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiveError {
    /// It is not the next piece. Nothing has changed.
    Offset {
        /// Where the next piece starts, in bytes: what was received.
        expected: u64,
        /// Where this one starts.
        found: u64,
    },
    /// The disk failed; the same error comes from then on.
    Disk(DiskError),
}

impl fmt::Display for ReceiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Offset { expected, found } => {
                write!(f, "a piece of a snapshot at offset {found} instead of {expected}")
            }
            Self::Disk(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReceiveError {}

impl From<DiskError> for ReceiveError {
    fn from(error: DiskError) -> Self {
        Self::Disk(error)
    }
}

impl<D: Disk> SnapshotReceiver<D> {
    /// Begins to receive the snapshot of `op_number`; forgets what was received of it before.
    ///
    /// # Errors
    /// What the disk reports.
    pub fn create(disk: &mut D, op_number: OpNumber) -> Result<Self, DiskError> {
        let file = disk.create(&part_name(op_number))?;
        Ok(Self { file, op_number, received: 0, failed: None })
    }

    /// Takes the piece that starts at byte `offset` of the file. Written at once: pieces are large.
    ///
    /// # Errors
    /// See [`ReceiveError`].
    pub fn append(&mut self, disk: &mut D, offset: u64, bytes: &[u8]) -> Result<(), ReceiveError> {
        if let Some(error) = &self.failed {
            return Err(ReceiveError::Disk(error.clone()));
        }
        if offset != self.received {
            return Err(ReceiveError::Offset { expected: self.received, found: offset });
        }
        let before = self.received / SYNC_BYTES as u64;
        let mut written = disk.append(&mut self.file, bytes);
        if written.is_ok() {
            self.received += bytes.len() as u64;
            if self.received / SYNC_BYTES as u64 > before {
                written = disk.sync(&mut self.file);
            }
        }
        if let Err(error) = written {
            self.failed = Some(error.clone());
            return Err(ReceiveError::Disk(error));
        }
        Ok(())
    }

    /// Bytes received so far: where the next piece starts.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The snapshot that is being received.
    #[must_use]
    pub fn op_number(&self) -> OpNumber {
        self.op_number
    }

    /// Makes the file durable, reads it back and verifies all of it, and gives it its name. Replaces a
    /// finished one of the same op number. Reads the whole file: not for a thread that must not wait.
    ///
    /// # Errors
    /// See [`SnapshotError`]. Then there is no new snapshot and what was received is removed, except that
    /// after a failed sync of the directory there may be a whole one.
    pub fn finish(mut self, disk: &mut D, cluster: u64) -> Result<SnapshotHeader, SnapshotError> {
        match self.complete(disk, cluster) {
            Ok(header) => {
                disk.sync_directory()?;
                Ok(header)
            }
            Err(error) => {
                // If this fails too, the file waits for `remove_unfinished`.
                let _ = self.abandon(disk);
                Err(error)
            }
        }
    }

    /// Gives up: removes the file.
    ///
    /// # Errors
    /// What the disk reports.
    pub fn abandon(self, disk: &mut D) -> Result<(), DiskError> {
        disk.remove(&part_name(self.op_number))
    }

    fn complete(&mut self, disk: &mut D, cluster: u64) -> Result<SnapshotHeader, SnapshotError> {
        if let Some(error) = &self.failed {
            return Err(SnapshotError::Disk(error.clone()));
        }
        // What is verified must be what is on the disk.
        disk.sync_and_evict(&mut self.file)?;
        let name = part_name(self.op_number);
        let file = open_file(disk, &name)?;
        let (header, mut reader) =
            SnapshotReader::from_file(disk, file, name.clone(), self.op_number, Some(cluster))?;
        while reader.next(disk)?.is_some() {}
        disk.rename(&name, &snapshot_name(self.op_number))?;
        Ok(header)
    }
}
