//! Backups of a cluster, as files in a directory, or as objects in a bucket of an S3-compatible store ([`Place`]).
//!
//! ```text
//! PLACE/data-00001   a part of the data: a header, and chunks, each compressed and with a checksum
//! PLACE/data-00002   the next one
//! PLACE/log-00000001 entries of the log that follow the snapshot, if the backup was continued, and so on
//! PLACE/manifest     what the backup holds, and length and SHA-256 of each part; written last
//! ```
//!
//! The data is the snapshot file of a replica, byte by byte, and behind it records of a log, each after its length (4 bytes),
//! if the backup has any. A backup without a manifest is none. What is written is read back before the manifest is written.
//!
//! Nobody who reads or writes a backup in a directory holds more of it in memory than one block of a snapshot, one record, and one
//! chunk. In a bucket, five parts of 16 MiB come to that while it is written, and four pieces of 4 MiB while it is read.
#![forbid(unsafe_code)]

mod chain;
mod chunk;
mod data;
mod error;
mod layout;
mod log_file;
mod log_writer;
mod manifest;
mod moment;
mod reader;
mod records;
mod sink;
mod storage;
#[cfg(test)]
mod tests;
mod writer;

pub use chain::Until;
pub use error::BackupError;
pub use layout::{FORMAT, MANIFEST};
pub use log_file::LogFile;
pub use log_writer::LogWriter;
pub use manifest::{LastEntry, Manifest, Origin, Part};
pub use moment::{parse_moment, rfc3339};
pub use reader::{Backup, Item, any_operation, snapshot_header};
pub use records::put_record;
pub use sink::SnapshotSink;
pub use storage::Place;
pub use writer::{BackupWriter, remove_unfinished};
