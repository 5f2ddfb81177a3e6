//! The write-ahead log: opaque records, numbered 1, 2, 3, in checksummed segments.
//!
//! What the payloads mean is somebody else's business. This crate promises:
//!
//! - A record whose [`Wal::sync`] returned, or that [`GroupCommit::persisted`] covers, comes back from
//!   every later [`Wal::open`], in order, whatever crashes in between.
//! - What comes back is a prefix of what was appended, never a record nobody wrote, never one in the
//!   wrong place (a record's number is part of its checksum).
//! - A torn tail, which is what a crash in the middle of a write leaves, is cut and reported. Anything
//!   else that is wrong with the files is an error ([`OpenError::Damaged`]), never taken for the end of
//!   the log; also a last segment that is gone as a whole, since a small file says that there was one.
//! - After a failed write or sync nothing is written any more: a failed fsync may have dropped the data
//!   from memory and report success the next time (Rebello et al., ATC'20).
//!
//! # Torn or rotten
//!
//! A batch is written over zeros, and a power failure may leave any of its sectors written and the others
//! zero. So before each batch stands a mark, which says that everything before it had been synced when it was
//! written ([`Wal::mark`] and [`GroupCommit::close`] leave one behind the last batch). Damage that a later
//! mark follows, or that lies in a segment that is not the last, is not a torn tail: the log reports it. So is
//! damage that a later record of the same batch follows, unless a whole sector of zeros explains it. What
//! stays undecidable from the bytes:
//!
//! - In the batch after the last mark, rot in the very last record (or so much of it that no record after
//!   it survives), and a sector that has become zero, look exactly like a write that a crash cut short.
//!   [`Recovery::cut`] says which record was cut, where, and how many bytes went. If all of that batch has
//!   become zero, there is nothing to cut. A caller who knows that the record had been persisted (it shut
//!   down cleanly and noted its last record number, or a peer holds its acknowledgement) must treat the cut
//!   as a lost disk.
//! - A payload may contain the image of a later record or mark. It counts only when the record that holds it
//!   is itself torn, and then errs in the safe direction: the replica recovers from its peers, which is slow
//!   but never wrong.
//!
//! How an intact record is told from bytes that look like one by accident is described at
//! [`recover_segment`].
//!
//! # Copying
//!
//! Segments that the log needs no more may be kept beside it ([`Options::keep_bytes`]). [`read_log`] reads them, and the log itself
//! while it is in use.
//!
//! # Snapshots
//!
//! On the same interface, files of opaque blocks that are either whole or absent: written by
//! [`SnapshotWriter`], received from a peer by [`SnapshotReceiver`], read by [`SnapshotReader`].
//!
//! [`scrub_log`] and [`scrub_snapshots`] read in the background what nobody reads otherwise;
//! [`inspect_log`] and [`inspect_snapshots`] tell what a directory holds without changing it.
#![forbid(unsafe_code)]

mod atomic_file;
mod checksum;
mod disk;
mod file_disk;
mod format;
mod group_commit;
mod inspect;
mod kept;
mod log_reader;
pub mod memory_disk;
mod meter;
mod open_directory;
mod options;
mod recovery;
mod resync_scan;
mod scrub;
mod segment;
mod snapshot;
mod wal;

pub use atomic_file::{
    ATOMIC_FILE_BYTES_MAX, ATOMIC_FILE_VERSION, ReadError, WriteError, read_atomic, replace_file,
    write_atomically,
};
pub use disk::{Cause, Disk, DiskError, DiskOperation};
pub use file_disk::{
    FileDisk, FileDiskError, LOCK_FILE, ReadOnlyDisk, ReadOnlyFile, SpaceKeeper, check_unlocked,
};
pub use format::{
    FORMAT_VERSION, FORMAT_VERSION_UNMARKED, HEADER_BYTES, HeaderError, MARK_BYTES, RECORD_BYTES_MAX,
    RECORD_HEADER_BYTES, RecordFault, RecordNumber, SegmentHeader, segment_name,
};
pub use group_commit::GroupCommit;
pub use inspect::{
    LogInspection, SegmentFault, SegmentInspection, SnapshotInspection, SnapshotsInspection, TornTail,
    inspect_log, inspect_snapshots,
};
pub use log_reader::{LogPiece, LogPosition, LogReadError, log_segments, read_log};
pub use meter::{Distribution, LogActivity};
pub use open_directory::OpenDirectory;
pub use options::{Options, RESERVE_BYTES_DEFAULT, SEGMENT_BYTES_DEFAULT, WAITING_BYTES_DEFAULT};
pub use recovery::{CutTail, Damage, OpenError, Recovery};
pub use scrub::{Flaw, scrub_log, scrub_snapshots};
pub use segment::{SegmentContents, SegmentTail, recover_segment};
pub use snapshot::{
    BlockFault, ReceiveError, SNAPSHOT_BLOCK_BYTES_MAX, SNAPSHOT_BLOCK_HEADER_BYTES, SNAPSHOT_END_KIND,
    SNAPSHOT_FORMAT_VERSION, SNAPSHOT_HEADER_BYTES, SnapshotBytes, SnapshotDamage, SnapshotError,
    SnapshotHeader, SnapshotReader, SnapshotReceiver, SnapshotWriter, list_snapshots, remove_snapshot,
    remove_unfinished, snapshot_name,
};
pub use wal::{AppendError, Counters, Unneeded, Wal, WalError};
