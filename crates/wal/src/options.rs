//! How a log is opened.

use crate::format::{FORMAT_VERSION, RecordNumber, SegmentHeader};
use syros_types::ReplicaId;

/// Size of a segment, in bytes: 64 MiB. A segment is the unit in which old records go, so at most this
/// much is kept longer than needed; and every new one costs six extra syncs, which is nothing once per
/// 64 MiB.
pub const SEGMENT_BYTES_DEFAULT: u64 = 64 * 1024 * 1024;

/// How much room is made at once, in bytes: 256 KiB. Syncing what is written over room that is already on
/// the device is one write; a file that grows takes the file system's journal as well, for each sync
/// (docs/BENCHMARKS.md). Making room costs as much I/O as using it: more at once makes fewer pauses, and
/// longer ones.
pub const RESERVE_BYTES_DEFAULT: u64 = 256 * 1024;

/// How many bytes may wait for the disk: 64 MiB. What waits cannot be acknowledged; a disk that is this
/// far behind (a second, at the speed of a poor one) is better met by refusing than by more memory.
pub const WAITING_BYTES_DEFAULT: usize = 64 * 1024 * 1024;

/// How to open a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The cluster that the log belongs to. A log of another one is refused.
    pub cluster: u64,
    /// The replica that the log belongs to. A log of another one is refused.
    pub replica: ReplicaId,
    /// A batch that would make a segment longer than this, in bytes, goes to a new one; a batch longer
    /// than this has a segment of its own. Default [`SEGMENT_BYTES_DEFAULT`].
    pub segment_bytes: u64,
    /// Room for records is made in pieces of so many bytes, but no more than a segment takes.
    /// Default [`RESERVE_BYTES_DEFAULT`].
    pub reserve_bytes: u64,
    /// While this many bytes wait for the disk, appending is refused; a record accepted just below the
    /// limit may exceed it by its own length, so that no record is too long for an idle log.
    /// Default [`WAITING_BYTES_DEFAULT`].
    pub waiting_bytes_max: usize,
    /// Whether to create the log if there is none. A replica that has had one must not: a log that is
    /// gone is a lost disk, not a new replica. Default false.
    pub may_create: bool,
    /// Segments that the log needs no more are kept beside it up to so many bytes, for those who copy it. When the disk is full,
    /// they go. Default 0.
    pub keep_bytes: u64,
}

impl Options {
    /// The defaults, for the log of this replica of this cluster.
    #[must_use]
    pub const fn new(cluster: u64, replica: ReplicaId) -> Self {
        Self {
            cluster,
            replica,
            segment_bytes: SEGMENT_BYTES_DEFAULT,
            reserve_bytes: RESERVE_BYTES_DEFAULT,
            waiting_bytes_max: WAITING_BYTES_DEFAULT,
            may_create: false,
            keep_bytes: 0,
        }
    }

    /// The header of the segment that begins with `first`.
    pub(crate) const fn header(&self, first: RecordNumber) -> SegmentHeader {
        SegmentHeader { version: FORMAT_VERSION, cluster: self.cluster, replica: self.replica, first }
    }

    /// How long to make the file of a segment that needs `bytes`.
    pub(crate) fn reserved(&self, bytes: u64) -> u64 {
        bytes.next_multiple_of(self.reserve_bytes.max(1)).min(self.segment_bytes).max(bytes)
    }
}
