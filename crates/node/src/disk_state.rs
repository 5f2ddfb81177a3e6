//! What the disk of a replica does, as far as its process knows.

use syros_wal::{Cause, DiskError, DiskOperation, WalError};

/// What a disk does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskState {
    /// It takes writes.
    Works,
    /// No space is left on it.
    Full,
    /// The data directory is not there.
    Missing,
    /// It takes no writes now, for another reason: the process may have no file descriptor left.
    Refusing,
    /// It cannot be relied upon any more.
    Failed,
}

impl DiskState {
    /// After an operation that failed.
    #[must_use]
    pub const fn after(error: &DiskError) -> Self {
        // In all other cases what the log holds is in doubt. After a sync that failed, for example, the system may have
        // dropped what it could not write, and still show it to readers.
        if !matches!(error.operation, DiskOperation::Create | DiskOperation::Append) {
            return Self::Failed;
        }
        match error.cause {
            Cause::Full => Self::Full,
            Cause::NotFound => Self::Missing,
            _ => Self::Refusing,
        }
    }

    /// After a log has stopped. `None` if it was closed to be opened again, and could not be.
    #[must_use]
    pub const fn after_log(error: &WalError) -> Option<Self> {
        match error {
            WalError::Disk(error) => Some(Self::after(error)),
            WalError::ThreadPanicked => Some(Self::Failed),
            WalError::Closed => None,
        }
    }

    /// True if the log can be opened again once the disk takes writes.
    #[must_use]
    pub const fn may_return(self) -> bool {
        matches!(self, Self::Full | Self::Missing | Self::Refusing)
    }
}
