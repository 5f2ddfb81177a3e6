//! The smallest file-system interface that the log needs.

use std::fmt;

/// One directory of flat files, used by one owner at a time.
///
/// Every call is synchronous. What a successful call promises about a crash:
///
/// - appended and filled bytes survive once [`Disk::sync`] on their file returned; until then any part of
///   them may,
/// - a created, renamed or removed name survives once [`Disk::sync_directory`] returned,
/// - a rename is atomic: its target is the old or the new file, never neither.
pub trait Disk {
    /// An open file.
    type File;

    /// Creates an empty file and opens it, replacing a file of that name.
    ///
    /// # Errors
    /// What the file system reports, as in all calls of this trait.
    fn create(&mut self, name: &str) -> Result<Self::File, DiskError>;

    /// Opens an existing file.
    ///
    /// # Errors
    /// [`Cause::NotFound`] when there is none.
    fn open(&mut self, name: &str) -> Result<Self::File, DiskError>;

    /// Writes all of `bytes` at the end of the file, with one write call where the system allows it.
    ///
    /// # Errors
    /// Any part of `bytes` may have been written when this fails.
    fn append(&mut self, file: &mut Self::File, bytes: &[u8]) -> Result<(), DiskError>;

    /// Writes `parts`, one behind the other, at byte `offset`, where the file holds nothing but zeros from
    /// there to its end; it does not become longer. What was synced before stays whatever happens; of the
    /// rest a crash may leave any sectors written and the others zero.
    ///
    /// # Errors
    /// Any part may have been written when this fails.
    fn fill(&mut self, file: &mut Self::File, offset: u64, parts: &[&[u8]]) -> Result<(), DiskError>;

    /// Fills `buffer` from byte `offset` on.
    ///
    /// # Errors
    /// [`Cause::ShortRead`] when the file ends before the buffer does.
    fn read(&mut self, file: &Self::File, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError>;

    /// Length of the file in bytes.
    ///
    /// # Errors
    /// What the file system reports.
    fn length(&mut self, file: &Self::File) -> Result<u64, DiskError>;

    /// Drops the bytes of the file from `length` on. Durable after [`Disk::sync`].
    ///
    /// # Errors
    /// What the file system reports.
    fn truncate(&mut self, file: &mut Self::File, length: u64) -> Result<(), DiskError>;

    /// Makes content and length of the file durable.
    ///
    /// # Errors
    /// After an error nobody knows what is durable, and calling this again does not help.
    fn sync(&mut self, file: &mut Self::File) -> Result<(), DiskError>;

    /// Makes later reads of the file return what is durable: syncs it and drops it from caches. A cache
    /// may hold pages whose write-back failed under an earlier process and which are not on the disk.
    ///
    /// # Errors
    /// As for [`Disk::sync`].
    fn sync_and_evict(&mut self, file: &mut Self::File) -> Result<(), DiskError>;

    /// Gives file `from` the name `to`, replacing a file of that name.
    ///
    /// # Errors
    /// [`Cause::NotFound`] when there is no `from`.
    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError>;

    /// Removes a name.
    ///
    /// # Errors
    /// [`Cause::NotFound`] when there is none.
    fn remove(&mut self, name: &str) -> Result<(), DiskError>;

    /// All file names, sorted.
    ///
    /// # Errors
    /// What the file system reports.
    fn list(&mut self) -> Result<Vec<String>, DiskError>;

    /// Makes creations, renames and removals durable.
    ///
    /// # Errors
    /// As for [`Disk::sync`].
    fn sync_directory(&mut self) -> Result<(), DiskError>;
}

/// What was asked of a disk when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DiskOperation {
    /// [`Disk::create`].
    Create,
    /// [`Disk::open`].
    Open,
    /// [`Disk::append`].
    Append,
    /// [`Disk::fill`].
    Fill,
    /// [`Disk::read`].
    Read,
    /// [`Disk::length`].
    Length,
    /// [`Disk::truncate`].
    Truncate,
    /// [`Disk::sync`] or [`Disk::sync_and_evict`].
    Sync,
    /// [`Disk::rename`].
    Rename,
    /// [`Disk::remove`].
    Remove,
    /// [`Disk::list`].
    List,
    /// [`Disk::sync_directory`].
    SyncDirectory,
}

impl fmt::Display for DiskOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "create",
            Self::Open => "open",
            Self::Append => "append to",
            Self::Fill => "write to",
            Self::Read => "read",
            Self::Length => "take the length of",
            Self::Truncate => "truncate",
            Self::Sync => "sync",
            Self::Rename => "rename",
            Self::Remove => "remove",
            Self::List => "list",
            Self::SyncDirectory => "sync the directory of",
        })
    }
}

/// Why a disk failed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// There is no such file.
    NotFound,
    /// No space is left, or a quota is used up (ENOSPC, EDQUOT).
    Full,
    /// The device reports an error (EIO).
    Io,
    /// The file ended before the read did.
    ShortRead,
    /// The name is not a plain file name.
    Name,
    /// The simulated machine has stopped (see [`crate::memory_disk`]).
    Stopped,
    /// Anything else, in the operating system's words.
    Other(String),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("no such file"),
            Self::Full => f.write_str("no space left on the device"),
            Self::Io => f.write_str("input/output error"),
            Self::ShortRead => f.write_str("the file is shorter than it was"),
            Self::Name => f.write_str("not a plain file name"),
            Self::Stopped => f.write_str("the simulated machine has stopped"),
            Self::Other(message) => f.write_str(message),
        }
    }
}

/// A failed disk operation. Cloneable, because an error of the log is reported to everybody who asks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DiskError {
    /// What was asked.
    pub operation: DiskOperation,
    /// The file it was asked for; the directory where there is no file.
    pub file: String,
    /// Why it failed.
    pub cause: Cause,
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: {}", self.operation, self.file, self.cause)
    }
}

impl std::error::Error for DiskError {}
