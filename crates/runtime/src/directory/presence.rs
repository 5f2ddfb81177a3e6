//! Whether a data directory that is in use still is at its path.
//!
//! The directory is recognized by the file that this process has locked. The path may lead somewhere else meanwhile,
//! because the directory was removed, renamed or replaced, or its file system unmounted. A process writes on to the files
//! that it has open, and no restart will find them.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;

use syros_wal::{FileDisk, LOCK_FILE, OpenDirectory};

use super::identity_file::{FORMATION, IDENTITY};

/// Finds out, from any thread, whether a data directory that is in use still is at its path.
#[derive(Clone, Debug)]
pub(crate) struct PresenceCheck {
    directory: OpenDirectory,
    /// Device and inode of the lock.
    device: u64,
    inode: u64,
}

impl PresenceCheck {
    /// For this directory, whose lock this process holds.
    pub(super) fn new(directory: &FileDisk) -> io::Result<Self> {
        let lock = directory.lock_metadata()?;
        Ok(Self { directory: directory.directory().clone(), device: lock.dev(), inode: lock.ino() })
    }

    /// The directory.
    pub(crate) const fn directory(&self) -> &OpenDirectory {
        &self.directory
    }

    /// What is wrong with the directory, if it is not there any more. Nothing, if the system does not say.
    pub(crate) fn problem(&self) -> Option<String> {
        let is_missing = |error: &io::Error| {
            matches!(
                error.kind(),
                ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::StaleNetworkFileHandle
            )
        };
        let path = self.directory.path();
        let lacks = |name: &str| fs::metadata(path.join(name)).is_err_and(|error| is_missing(&error));
        let problem = match fs::metadata(path.join(LOCK_FILE)) {
            Ok(lock) if (lock.dev(), lock.ino()) != (self.device, self.inode) => {
                "another one has taken its place"
            }
            // One of them is there at any time.
            Ok(_) if lacks(IDENTITY.name) && lacks(FORMATION.name) => "its file identity has been removed",
            Ok(_) => return None,
            Err(error) if !is_missing(&error) => return None,
            Err(_) if path.is_dir() => {
                "its files are gone: were they removed, or their file system unmounted?"
            }
            Err(_) => "it was removed or renamed",
        };
        Some(format!("the data directory {} is not there any more: {problem}", path.display()))
    }
}
