//! Snapshots: files of opaque blocks that are either whole or absent.
//!
//! What the payloads mean is somebody else's business. This module promises:
//!
//! - A file under a finished name ([`snapshot_name`]) was durable before it got that name, so a crash
//!   leaves it whole or not at all. While it is written its name ends in `.tmp`, while it comes from a
//!   peer in `.part`.
//! - What is read is what was written: every block's checksum covers its place, its kind, and the
//!   checksum before it, so that parts of two snapshots never make one, not even when they have the same
//!   header. The last block says how long the file is, so that a shortened file is never taken for a
//!   whole one.
//! - A received snapshot is read from the disk and verified before it gets its finished name.
//!
//! Blocks are handed out as they are verified. Whoever uses them before the end was reached must be able
//! to drop what came of them.

mod format;
mod raw;
mod reader;
mod receiver;
mod writer;

pub use format::{
    SNAPSHOT_BLOCK_BYTES_MAX, SNAPSHOT_BLOCK_HEADER_BYTES, SNAPSHOT_END_KIND, SNAPSHOT_FORMAT_VERSION,
    SNAPSHOT_HEADER_BYTES, SnapshotHeader, snapshot_name,
};
pub use raw::SnapshotBytes;
pub use reader::{BlockFault, SnapshotDamage, SnapshotError, SnapshotReader};
pub use receiver::{ReceiveError, SnapshotReceiver};
pub use writer::SnapshotWriter;

pub(crate) use format::{SnapshotName, parse_name};
pub(crate) use reader::open_file;

use crate::disk::{Disk, DiskError};
use syros_types::OpNumber;

/// The op numbers of the finished snapshots, ascending. Nothing is said about their contents.
///
/// # Errors
/// What the disk reports.
pub fn list_snapshots<D: Disk>(disk: &mut D) -> Result<Vec<OpNumber>, DiskError> {
    let mut found: Vec<OpNumber> = disk
        .list()?
        .iter()
        .filter_map(|name| match parse_name(name) {
            Some(SnapshotName::Finished(op_number)) => Some(op_number),
            Some(SnapshotName::Unfinished) | None => None,
        })
        .collect();
    found.sort_unstable();
    Ok(found)
}

/// Removes a finished snapshot, durably. Whoever has it open can go on reading it.
///
/// # Errors
/// [`crate::Cause::NotFound`] when there is none.
pub fn remove_snapshot<D: Disk>(disk: &mut D, op_number: OpNumber) -> Result<(), DiskError> {
    disk.remove(&snapshot_name(op_number))?;
    disk.sync_directory()
}

/// Removes what was being written or received when a process ended, durably; returns how many files that
/// were. To be called before anything is written or received.
///
/// # Errors
/// What the disk reports; some may be removed then.
pub fn remove_unfinished<D: Disk>(disk: &mut D) -> Result<usize, DiskError> {
    let mut removed = 0;
    for name in disk.list()? {
        if parse_name(&name) == Some(SnapshotName::Unfinished) {
            disk.remove(&name)?;
            removed += 1;
        }
    }
    if removed > 0 {
        disk.sync_directory()?;
    }
    Ok(removed)
}
